# SPDX-License-Identifier: MIT OR Apache-2.0
"""A draw: a path, its faults with their times, and the commands that measure it, made from a seed by a pure function."""

from __future__ import annotations

import math
import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path as Path_

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
FAULTS = ("loss", "reorder", "duplicate", "jitter", "policer", "marks", "outage", "nat", "clock", "bleach", "box", "held", "step")
LEFT = ("10.64.1.2", "fd00:64:1::2")  # addresses of the router next to the client
V6_SHARE = 0.3
STEP_FLOW_S = 8.0  # two levels of two seconds, at least
RATE_NODES = {UP: ("left", "to-right"), DOWN: ("right", "to-left")}
HOLD = "pkill -{} -f '[k]trxer serve'"
RUN_S, RUN_IDLE_S, RUN_SHARE = 4.0, 1.5, 0.1
SLOW_MBPS, CHECK_SLOW_MBPS = 2.0, 6.0  # the probes take more than 2 % below; `check` sends 110 kbit/s of them at 20 ms
LAST_S = 1e6  # a change that follows the end of the command
PROGRAM = Path_(__file__).resolve().parents[1] / "boxes.py"
# Middleboxes in the router `left`, by their directions. The kernel of virtual time has no `reject` of nftables.
BOX_WAYS = {
    "stall": (UP, DOWN), "unreachable": (UP,), "prohibit": (UP,), "reset": (UP, DOWN), "portal": (UP, DOWN), "echo": (UP, DOWN)
}  # fmt: skip
RULES = ("unreachable", "prohibit")  # the kernel of virtual time has no rules of IPv6
ANSWERS = ("portal", "echo")  # they answer in the place of the server, from the start on
ANSWER_PORTS = {"portal": ("tcp", 8999), "echo": ("udp", 8998)}


def box_shells(name: str, v6: bool) -> tuple[str, str]:
    """The commands that begin and end what a middlebox does."""
    if name == "stall":
        chain = "chain pass { type filter hook forward priority 0; meta l4proto tcp meta length > 400 drop; }"
        return f"nft 'table inet box {{ {chain}; }}'", "nft delete table inet box"
    if name == "reset":
        return f"{sys.executable} -P {PROGRAM} reset </dev/null >/dev/null 2>&1 & echo $! >/tmp/box", "kill $(cat /tmp/box)"
    if name in ANSWERS:
        protocol, port = ANSWER_PORTS[name]
        to = f"ip6 to [{LEFT[1]}]:{port}" if v6 else f"ip to {LEFT[0]}:{port}"
        chain = f'chain in {{ type nat hook prerouting priority -100; iifname "to-client" {protocol} dport 8620 dnat {to}; }}'
        return f"{sys.executable} -P {PROGRAM} {name} </dev/null >/dev/null 2>&1 & nft 'table inet answer {{ {chain}; }}'", "true"
    match = "ipproto udp dport 8620 unreachable" if name == "unreachable" else "ipproto tcp dport 8620 prohibit"
    begin, end = (f"ip rule {change} pref 100 iif to-client {match}" for change in ("add", "del"))
    return begin, end


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
class Held:
    """A time in which the processes of the server have no processor."""

    begin_s: float
    length_s: float


@dataclass(frozen=True)
class Step:
    """The rate of a direction changes, from the start of each command on."""

    way: str
    at_s: float
    factor: float


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
    v6: bool = False
    held: Held | None = None
    step: Step | None = None

    @property
    def server(self) -> str:
        return "server-6" if self.v6 else "server"

    @property
    def faults(self) -> frozenset[str]:
        """The names of the faults, for the tables of the judge."""
        found = {"outage"} if self.outage else set()
        found |= {"nat"} if self.nat else set()
        found |= {self.box} if self.box else set()
        found |= {"bleach"} if self.bleach else set()
        found |= {"held"} if self.held else set()
        found |= {"step"} if self.step else set()
        found |= {"clock"} if self.ahead_ms or self.rate_ppm else set()
        slow_mbps = CHECK_SLOW_MBPS if any(one.startswith("check") for one in self.commands) else SLOW_MBPS
        for way in (self.up, self.down):
            found |= {"free"} if way.free else set()
            found |= {"slow"} if (way.rate_mbps or way.police_mbps or slow_mbps) < slow_mbps else set()
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
        parts += [f"server stopped from {self.held.begin_s:g} s for {self.held.length_s:g} s"] if self.held else []
        parts += [f"rate {self.step.way} times {self.step.factor:g} from {self.step.at_s:g} s on"] if self.step else []
        parts += ["IPv6"] if self.v6 else []
        parts += [f"ECN removed {self.bleach}"] if self.bleach else []
        return "; ".join(parts)


def drawn(seed: int) -> Draw:
    """The draw of a seed, with up to three faults."""
    rng = random.Random(seed)
    up, down = _way(rng), _way(rng)
    whole_run = rng.random() < RUN_SHARE
    made = Draw(seed, up, down, (), v6=rng.random() < V6_SHARE)
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
            bleach = rng.choice((UP, DOWN))
            made = replace(made, bleach="" if made.v6 else bleach)  # no rule of this kernel changes the ECN field of IPv6
        elif fault == "box" and not whole_run:
            boxes = (name for name in BOX_WAYS if not (made.v6 and name in RULES))
            box = rng.choice(tuple(boxes))
            made = replace(made, box=box, box_at_s=0.0 if box in ANSWERS else _round(rng.uniform(0.8, 2.5)))
        elif fault == "held":
            made = replace(made, held=Held(_round(rng.uniform(0.8, 2.0)), _round(_spread(rng, 0.05, 1.0))))
        elif fault == "step":
            limited = [name for name, way in ((UP, made.up), (DOWN, made.down)) if way.rate_mbps is not None]
            step = Step(rng.choice(limited), _round(rng.uniform(3.0, 4.0)), _round(_spread(rng, 0.1, 0.8))) if limited else None
            made = replace(made, step=None if whole_run else step)
        elif rng.random() < 0.5:
            made = replace(made, up=_faulty(rng, made.up, fault))
        else:
            made = replace(made, down=_faulty(rng, made.down, fault))
    return replace(made, commands=_run(rng, made) if whole_run else _commands(rng, made))


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
    if rng.random() < 0.3:
        return (f"check --server {draw.server} --for 5 --delay 4 -i 20ms -D /tmp",)
    return (f"run {test} -H {draw.server} --for {RUN_S:g} --delay {RUN_IDLE_S:g} -i 20ms --no-extras -D /tmp",)


def _commands(rng: random.Random, draw: Draw) -> tuple[str, ...]:
    probes, server = f"-i {GAP_MS}ms -c {PROBES}", draw.server
    found = [f"{rng.choice(('ping', 'stamp'))} {server} {probes}"]
    length_s = FLOW_S if draw.step is None else STEP_FLOW_S
    for name, way in ((UP, draw.up), (DOWN, draw.down)):
        limit, marks = way.rate_mbps or way.police_mbps, rng.choice(("", "", " --ecn ect0"))
        if limit is not None and rng.random() < 0.5:
            found.append(f"flow {name} {server} --for {length_s:g}s{rng.choice(('', '', ' --flows 3'))}")
        elif rng.random() < 0.5:
            rate = FREE_MBPS if limit is None else limit * rng.choice((BELOW, ABOVE))
            found.append(f"flow -u {name} {server} -b {1000 * rate:.0f}k --for {length_s:g}s{marks}")
    found += [f"trace {server}"] if rng.random() < 0.15 else []
    return tuple(found)


def build(draw: Draw) -> Path:
    """The path of the draw: its topology, the commands that set it up, and the events during each command."""
    setup: list[tuple[str, str]] = []
    if draw.nat:
        rule = 'table inet nat { chain post { type nat hook postrouting priority 100; oifname "to-right" masquerade; }; }'
        setup.append(("left", f"nft '{rule}'"))
    if draw.bleach:
        rule = f'oifname "{"to-server" if draw.bleach == UP else "to-left"}" {"ip6" if draw.v6 else "ip"} ecn set not-ect'
        setup.append(("right", f"nft 'table inet bleach {{ chain pass {{ type filter hook forward priority 0; {rule}; }}; }}'"))
    events: list[tuple[float, str, str]] = []
    if draw.box in ANSWERS:
        setup.append(("left", box_shells(draw.box, draw.v6)[0]))
    elif draw.box:
        events += [(at_s, "left", shell) for at_s, shell in zip((draw.box_at_s, LAST_S), box_shells(draw.box, draw.v6), strict=True)]
    if draw.held is not None:
        held = draw.held
        events += [(held.begin_s, "server", HOLD.format("STOP")), (held.begin_s + held.length_s, "server", HOLD.format("CONT"))]
    if draw.step is not None:
        node, device = RATE_NODES[draw.step.way]
        rate = (draw.up if draw.step.way == UP else draw.down).rate_mbps or 0.0
        for at_s, factor in ((draw.step.at_s, draw.step.factor), (LAST_S, 1.0)):
            words = f"parent 1: classid 1:1 htb rate {rate * factor * 1e6:.0f}bit burst {FRAME} cburst {FRAME} quantum {FRAME}"
            events.append((at_s, node, f"tc class change dev {device} {words}"))
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
