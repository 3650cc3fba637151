# SPDX-License-Identifier: MIT OR Apache-2.0
"""A draw: a path, its faults with their times, and the commands that measure it, made from a seed by a pure function."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from ktrxer_lab.truth.path import DOWN, FRAME, UP, Path, Way

WIRE = "wire-3"  # the namespace with the delays of both directions; packets of up enter through to-right, of down through to-server
BOTH = "both"
ENTRY = {UP: "to-right", DOWN: "to-server"}
FLOW_S = 3.0
PROBES, GAP_MS = 300, 10
FREE_MBPS = 3.0  # bit rate of UDP flows over a direction without a rate
BELOW, ABOVE = 0.7, 1.4  # bit rates of UDP flows, as parts of the rate
# Other packets fill a FIFO of fewer frames while a flow begins.
SHORTEST_FRAMES = 20
QUEUES = ("bfifo", "bfifo", "bfifo", "fq_codel flows 65535", "codel", "pie")


@dataclass(frozen=True)
class Outage:
    """A time, from the start of each command, in which the wire drops all packets of a direction."""

    way: str  # up, down, both
    begin_s: float
    length_s: float

    @property
    def ways(self) -> tuple[str, ...]:
        return (UP, DOWN) if self.way == BOTH else (self.way,)


@dataclass(frozen=True)
class Draw:
    seed: int
    up: Way
    down: Way
    commands: tuple[str, ...]  # words after `ktrxer`, without --json
    outage: Outage | None = None
    nat: bool = False  # the router `left` puts its own address in the place of the client's
    ahead_ms: float = 0.0  # offset of the server's clock
    rate_ppm: float = 0.0

    @property
    def faults(self) -> frozenset[str]:
        """The names of the faults, for the tables of the judge."""
        found = {"outage"} if self.outage else set()
        found |= {"nat"} if self.nat else set()
        found |= {"clock"} if self.ahead_ms or self.rate_ppm else set()
        for way in (self.up, self.down):
            found |= {
                name for name, there in (
                    ("rate", way.rate_mbps is not None), ("loss", way.loss), ("reorder", way.reorder), ("duplicate", way.duplicate),
                    ("jitter", way.jitter_ms), ("policer", way.police_mbps is not None), ("marks", way.marks),
                ) if there
            }  # fmt: skip
        return frozenset(found)

    def words(self) -> str:
        outage = self.outage
        parts = [build(self).words()]
        parts += [f"{outage.way} dead from {outage.begin_s:g} s for {outage.length_s:g} s"] if outage else []
        parts += ["NAT"] if self.nat else []
        return "; ".join(parts)


def drawn(seed: int) -> Draw:
    """The draw of a seed. A third of the draws has one fault, a third has two or more, and a third has rates and delays only."""
    rng = random.Random(seed)
    up, down = _way(rng), _way(rng)
    outage, nat, ahead_ms, rate_ppm = None, False, 0.0, 0.0
    names = ["loss", "reorder", "duplicate", "jitter", "outage", "nat", "clock"]
    for fault in rng.sample(names, rng.choice((0, 1, 2, 3))):
        if fault == "outage":
            outage = Outage(rng.choice((UP, DOWN, BOTH)), _round(rng.uniform(0.5, 1.5)), _round(_spread(rng, 0.1, 1.2)))
        elif fault == "nat":
            nat = True
        elif fault == "clock":
            ahead_ms, rate_ppm = round(rng.uniform(-2000, 2000), 1), float(rng.choice((0, 0, rng.randint(-200, 200))))
        elif rng.random() < 0.5:
            up = _faulty(rng, up, fault)
        else:
            down = _faulty(rng, down, fault)
    return Draw(seed, up, down, _commands(rng, up, down), outage, nat, ahead_ms, rate_ppm)


def _spread(rng: random.Random, low: float, high: float) -> float:
    """A value whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _round(value: float) -> float:
    return float(f"{value:.2g}")


def _way(rng: random.Random) -> Way:
    delay_ms = _round(_spread(rng, 0.3, 80))
    rate = _round(_spread(rng, 1, 20)) if rng.random() < 0.6 else None
    if rate is None:
        return Way(delay_ms)
    queue = rng.choice(QUEUES)
    if queue == "bfifo":
        queue = f"bfifo limit {max(SHORTEST_FRAMES * FRAME, round(rate * 125 * rng.uniform(20, 250)))}"
    return Way(delay_ms, rate, queue)


def _faulty(rng: random.Random, way: Way, fault: str) -> Way:
    if fault == "loss" and not way.duplicate:
        return replace(way, loss=_round(_spread(rng, 0.2, 10)), burst=rng.choice((1.0, 1.0, 3.0)))
    if fault == "duplicate" and not way.loss:  # the counters do not separate copies and losses
        return replace(way, duplicate=_round(rng.uniform(0.5, 10)))
    if fault == "reorder":
        return replace(way, reorder=_round(rng.uniform(0.5, 15)))
    if fault == "jitter":
        return replace(way, jitter_ms=_round(rng.uniform(0.05, 0.5) * way.delay_ms))
    return way


def _commands(rng: random.Random, up: Way, down: Way) -> tuple[str, ...]:
    probes = f"-i {GAP_MS}ms -c {PROBES}"
    found = [f"{rng.choice(('ping', 'stamp'))} server {probes}"]
    for name, way in ((UP, up), (DOWN, down)):
        if way.rate_mbps is not None and rng.random() < 0.5:
            found.append(f"flow {name} server --for {FLOW_S:g}s")
        elif rng.random() < 0.5:
            rate = FREE_MBPS if way.rate_mbps is None else way.rate_mbps * rng.choice((BELOW, ABOVE))
            found.append(f"flow -u {name} server -b {1000 * rate:.0f}k --for {FLOW_S:g}s")
    return tuple(found)


def build(draw: Draw) -> Path:
    """The path of the draw: its topology, the commands that set it up, and the events during each command."""
    setup: list[tuple[str, str]] = []
    if draw.nat:
        rule = 'table ip nat { chain post { type nat hook postrouting priority 100; oifname "to-right" masquerade; }; }'
        setup.append(("left", f"nft '{rule}'"))
    events: list[tuple[float, str, str]] = []
    if draw.outage is not None:
        chains = "".join(
            f'chain {way} {{ type filter hook ingress device "{ENTRY[way]}" priority 0; counter name {way} drop; }}; '
            for way in draw.outage.ways
        )
        counters = "".join(f"counter {way} {{ }}; " for way in draw.outage.ways)
        events.append((draw.outage.begin_s, WIRE, f"nft 'table netdev outage {{ {counters}{chains}}}'"))
        events.append((draw.outage.begin_s + draw.outage.length_s, WIRE, "nft -j list counters; nft delete table netdev outage"))
    path = Path(f"chance-{draw.seed}", draw.up, draw.down, ahead_ms=draw.ahead_ms, rate_ppm=draw.rate_ppm)
    return replace(path, setup=tuple(setup), events=tuple(events))
