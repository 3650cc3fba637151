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
QUEUES = ("bfifo", "bfifo", "bfifo", "fq_codel flows 65535", "codel", "codel ecn", "pie")
FAULTS = ("loss", "reorder", "duplicate", "jitter", "policer", "marks", "outage", "nat", "clock", "bleach", "box")
RUN_S, RUN_IDLE_S, RUN_SHARE = 4.0, 1.5, 0.1
SLOW_MBPS = 2.0
LAST_S = 1e6  # a change that follows the end of the command
# Middleboxes, from a time on: the commands that begin and end what they do. The kernel of virtual time has no `reject` of nftables.
BOXES = {
    "stall": (
        "nft 'table ip box { chain pass { type filter hook forward priority 0; meta l4proto tcp meta length > 400 drop; }; }'",
        "nft delete table ip box",
    ),
    "unreachable": tuple(f"ip rule {change} pref 100 iif to-client ipproto udp dport 8620 unreachable" for change in ("add", "del")),
    "prohibit": tuple(f"ip rule {change} pref 100 iif to-client ipproto tcp dport 8620 prohibit" for change in ("add", "del")),
}
BOX_WAYS = {"stall": (UP, DOWN), "unreachable": (UP,), "prohibit": (UP,)}


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
    box: str = ""  # a middlebox of BOXES, in the router `left`
    box_at_s: float = 0.0
    bleach: str = ""  # the direction in which the router `right` removes ECN marks
    nat: bool = False  # the router `left` puts its own address in the place of the client's
    ahead_ms: float = 0.0  # offset of the server's clock
    rate_ppm: float = 0.0

    @property
    def faults(self) -> frozenset[str]:
        """The names of the faults, for the tables of the judge."""
        found = {"outage"} if self.outage else set()
        found |= {"nat"} if self.nat else set()
        found |= {self.box} if self.box else set()
        found |= {"bleach"} if self.bleach else set()
        found |= {"clock"} if self.ahead_ms or self.rate_ppm else set()
        for way in (self.up, self.down):
            found |= {"slow"} if (way.rate_mbps or way.police_mbps or SLOW_MBPS) < SLOW_MBPS else set()
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
        parts += [f"{self.box} from {self.box_at_s:g} s on"] if self.box else []
        parts += [f"ECN removed {self.bleach}"] if self.bleach else []
        return "; ".join(parts)


def drawn(seed: int) -> Draw:
    """The draw of a seed, with up to three faults."""
    rng = random.Random(seed)
    up, down = _way(rng), _way(rng)
    whole_run = rng.random() < RUN_SHARE
    made = Draw(seed, up, down, ())
    for fault in rng.sample(FAULTS, rng.choice((0, 1, 2, 3))):
        if fault == "outage":
            begin_s = _round(rng.uniform(0.5, 1.5)) + (RUN_IDLE_S if whole_run else 0.0)
            made = replace(made, outage=Outage(rng.choice((UP, DOWN, BOTH)), begin_s, _round(_spread(rng, 0.1, 1.2))))
        elif fault == "nat":
            made = replace(made, nat=True)
        elif fault == "clock":
            rate_ppm = float(rng.choice((0, 0, rng.randint(-200, 200))))
            made = replace(made, ahead_ms=round(rng.uniform(-2000, 2000), 1), rate_ppm=rate_ppm)
        elif fault == "bleach":
            made = replace(made, bleach=rng.choice((UP, DOWN)))
        elif fault == "box" and not whole_run:
            made = replace(made, box=rng.choice(tuple(BOXES)), box_at_s=_round(rng.uniform(0.8, 2.5)))
        elif rng.random() < 0.5:
            made = replace(made, up=_faulty(rng, made.up, fault))
        else:
            made = replace(made, down=_faulty(rng, made.down, fault))
    return replace(made, commands=_run(rng, made) if whole_run else _commands(rng, made.up, made.down))


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
    if fault == "policer" and way.rate_mbps is None:
        return replace(way, police_mbps=_round(_spread(rng, 2, 20)))
    if fault == "marks":
        return replace(way, marks=_round(rng.uniform(1, 30)))
    return way


def _run(rng: random.Random, draw: Draw) -> tuple[str, ...]:
    limited = [name for name, way in (("upload", draw.up), ("download", draw.down)) if way.rate_mbps or way.police_mbps]
    test = f"tcp_{rng.choice(limited)}" if limited else "ping"
    return (f"run {test} -H server --for {RUN_S:g} --delay {RUN_IDLE_S:g} -i 20ms --no-extras -D /tmp",)


def _commands(rng: random.Random, up: Way, down: Way) -> tuple[str, ...]:
    probes = f"-i {GAP_MS}ms -c {PROBES}"
    found = [f"{rng.choice(('ping', 'stamp'))} server {probes}"]
    for name, way in ((UP, up), (DOWN, down)):
        limit, marks = way.rate_mbps or way.police_mbps, rng.choice(("", "", " --ecn ect0"))
        if limit is not None and rng.random() < 0.5:
            found.append(f"flow {name} server --for {FLOW_S:g}s")
        elif rng.random() < 0.5:
            rate = FREE_MBPS if limit is None else limit * rng.choice((BELOW, ABOVE))
            found.append(f"flow -u {name} server -b {1000 * rate:.0f}k --for {FLOW_S:g}s{marks}")
    found += ["trace server"] if rng.random() < 0.15 else []
    return tuple(found)


def build(draw: Draw) -> Path:
    """The path of the draw: its topology, the commands that set it up, and the events during each command."""
    setup: list[tuple[str, str]] = []
    if draw.nat:
        rule = 'table ip nat { chain post { type nat hook postrouting priority 100; oifname "to-right" masquerade; }; }'
        setup.append(("left", f"nft '{rule}'"))
    if draw.bleach:
        rule = f'oifname "{"to-server" if draw.bleach == UP else "to-left"}" ip ecn set not-ect'
        setup.append(("right", f"nft 'table ip bleach {{ chain pass {{ type filter hook forward priority 0; {rule}; }}; }}'"))
    events: list[tuple[float, str, str]] = []
    if draw.box:
        events += [(at_s, "left", shell) for at_s, shell in zip((draw.box_at_s, LAST_S), BOXES[draw.box], strict=True)]
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
