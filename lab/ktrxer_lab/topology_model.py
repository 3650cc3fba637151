# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hosts, routers and links of a topology, with their addresses and routes. `topology.py` reads them from a file, `wiring.py` creates
them."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import sys
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path

PROVENANCE_LIMIT = 20_000  # characters of a file in an environment variable, which holds 128 KiB
POLICE_NS = 50_000_000  # size of a policer's bucket, as a time at its rate
TRACE = Path(__file__).with_name("trace.py")
DEFAULT_QUEUE = "pfifo limit 1000"
RATE_LIMIT_PPM = 500  # of a clock, by adjtimex(2); the rate of a clock during a slew


@dataclass(frozen=True)
class Trace:
    """A rate from a file (`trace.py`), and the queue before it."""

    path: Path
    unit: str  # packets or bytes, the unit of the limit
    limit: int


@dataclass(frozen=True)
class Bucket:
    """A token bucket: the burst after a pause, and its rate."""

    size_bytes: int
    peak_bps: int | None = None  # None: at the speed of the device


@dataclass(frozen=True)
class Aggregate:
    """The aggregation of a wireless link: the first waiting packet starts a timer; when it ends, all waiting packets leave together."""

    wait_ns: tuple[int, int]  # shortest and longest, uniform between them
    packets: int  # at most; the others wait for the next time


@dataclass(frozen=True)
class Shape:
    """The treatment of packets that leave through one end of a link: first the queue and the rate, then the wire."""

    rate_bps: int | None = None
    queue: tuple[str, ...] = ()
    delay_ns: int = 0
    jitter_ns: int = 0
    distribution: str = "uniform"  # of the jitter
    loss_ppm: int = 0
    burst: float = 1.0  # mean number of packets lost in a row; 1: independent losses
    reorder_ppm: int = 0  # packets that skip the delay
    duplicate_ppm: int = 0
    police_bps: int | None = None  # packets above this rate are dropped, not queued
    trace: Trace | None = None
    bucket: Bucket | None = None
    aggregate: Aggregate | None = None
    bleach: frozenset[str] = frozenset()  # "dscp", "ecn": set to 0 where packets enter the wire
    nat: bool = False  # the sender puts its own address in the place of the source
    queue_at: str = field(default="", compare=False)  # file and line of `queue`

    @property
    def impaired(self) -> bool:
        return bool(self.needs_netem or self.loss_ppm)

    @property
    def needs_netem(self) -> bool:
        """Whether it has impairments that nftables cannot make."""
        return bool(self.delay_ns or self.duplicate_ppm or self.aggregate or (self.loss_ppm and self.burst > 1))

    @property
    def entry(self) -> bool:
        """Whether packets are changed, policed or redirected where they enter the wire."""
        return bool(self.police_bps or self.trace or self.bleach)

    @property
    def shaped(self) -> bool:
        return self.rate_bps is not None or bool(self.queue)

    def words(self) -> str:
        """A description, for example "10 Mbit/s, pfifo limit 1000, 25 ms"."""
        parts = []
        if self.rate_bps is not None:
            parts.append(f"{self.rate_bps / 1e6:g} Mbit/s")
        if self.bucket is not None:
            peak = f" at {self.bucket.peak_bps / 1e6:g} Mbit/s" if self.bucket.peak_bps else ""
            parts.append(f"bursts of {self.bucket.size_bytes} bytes{peak}")
        if self.trace is not None:
            parts.append(f"the rate of {self.trace.path.name}, a queue of {self.trace.limit} {self.trace.unit}")
        if self.shaped:
            parts.append(" ".join(self.queue) or DEFAULT_QUEUE)
        if self.delay_ns:
            jitter = f" +- {self.jitter_ns / 1e6:g}" if self.jitter_ns else ""
            kind = f" ({self.distribution})" if self.jitter_ns else ""
            parts.append(f"{self.delay_ns / 1e6:g}{jitter} ms{kind}")
        if self.aggregate is not None:
            low, high = (wait / 1e6 for wait in self.aggregate.wait_ns)
            wait = f"{low:g} ms" if low == high else f"{low:g} to {high:g} ms"
            parts.append(f"aggregates of at most {self.aggregate.packets} packets after {wait}")
        if self.police_bps is not None:
            parts.append(f"policed to {self.police_bps / 1e6:g} Mbit/s")
        if self.loss_ppm:
            parts.append(f"{self.loss_ppm / 1e4:g} % lost" + (f", {self.burst:g} in a row" if self.burst > 1 else ""))
        if self.reorder_ppm:
            parts.append(f"{self.reorder_ppm / 1e4:g} % reordered")
        if self.duplicate_ppm:
            parts.append(f"{self.duplicate_ppm / 1e4:g} % duplicated")
        if self.bleach:
            parts.append(f"{' and '.join(sorted(self.bleach))} set to 0")
        if self.nat:
            parts.append("source address translated")
        return ", ".join(parts) or "unshaped"


@dataclass(frozen=True)
class Link:
    ends: tuple[str, str]
    number: int
    subnet: ipaddress.IPv4Network
    shapes: dict[str, Shape]  # by sending node
    mtu: int = 1500
    offload: bool = False
    hosts: frozenset[str] = frozenset()  # the ends that are not routers
    down: tuple[tuple[int, int], ...] = ()  # pairs of nanoseconds from the start of the command, between which no packet passes

    def other(self, node: str) -> str:
        return self.ends[1] if node == self.ends[0] else self.ends[0]

    def device(self, node: str) -> str:
        return f"to-{self.other(node)}"

    def address(self, node: str) -> ipaddress.IPv4Address:
        return self.subnet[1] if node == self.ends[0] else self.subnet[2]

    @property
    def subnet6(self) -> ipaddress.IPv6Network:
        return ipaddress.IPv6Network(f"fd00:64:{self.number:x}::/64")

    def address6(self, node: str) -> ipaddress.IPv6Address:
        return self.subnet6[1] if node == self.ends[0] else self.subnet6[2]

    @property
    def wire(self) -> str | None:
        """The namespace between the two ends, if the link needs one.

        A delay comes after a queue and must not share the device of the queue. Loss must also work with a kernel without netem. The
        impairments of a host's packets must arise in the network and not in the host's own queue."""
        apart = any(shape.loss_ppm or shape.duplicate_ppm or shape.entry for shape in self.shapes.values())
        needed = apart or self.down or any(shape.delay_ns and shape.shaped for shape in self.shapes.values())
        of_hosts = any(self.shapes[host].impaired or self.shapes[host].shaped for host in self.hosts)
        return f"wire-{self.number}" if needed or of_hosts else None

    @property
    def halves(self) -> bool:
        """Whether the wire has two bridges, joined by a pair of devices that hold the queues of the hosts."""
        return any(self.shapes[host].shaped for host in self.hosts)

    def bridge(self, node: str) -> str:
        """The name of the wire's bridge at an end."""
        return f"side-{node}" if self.halves else "wire"

    def queue_place(self, node: str) -> tuple[str, str]:
        """The namespace and the device with the egress queue of a node."""
        return (f"wire-{self.number}", f"from-{node}") if node in self.hosts and self.halves else (node, self.device(node))


@dataclass(frozen=True)
class Way:
    """A node sends packets for another node through a given neighbour, from a time on."""

    at_ns: int
    node: str
    to: str
    via: str


@dataclass(frozen=True)
class Clock:
    """The clock of a node is changed, from a time on, by a step, by the rate of its oscillator, and by a correction of this rate, which is
    not of CLOCK_MONOTONIC_RAW."""

    at_ns: int
    node: str
    step_ns: int
    rate_ppb: int
    slew_ppb: int = 0

    def slewed(self, slew_ns: int) -> list[Clock]:
        """The clock goes faster or slower until it has gained `slew_ns`, then as before: so a daemon corrects a clock."""
        if not slew_ns:
            return [self]
        slew_ppb = (RATE_LIMIT_PPM if slew_ns > 0 else -RATE_LIMIT_PPM) * 1000 - self.rate_ppb
        return [replace(self, slew_ppb=slew_ppb), Clock(self.at_ns + round(slew_ns * 1e9 / slew_ppb), self.node, 0, self.rate_ppb)]

    def words(self) -> list[str]:
        """The command that applies it. On a kernel without clocks for each host the command fails and changes nothing."""
        return ["ip", "netns", "exec", self.node, "sh", "-c", f"echo {self.step_ns} {self.rate_ppb} {self.slew_ppb} >/proc/net/host_clock"]


@dataclass(frozen=True)
class Topology:
    name: str
    title: str
    nodes: tuple[str, ...]
    routers: frozenset[str]
    links: tuple[Link, ...]
    client: str
    server: str
    parameters: dict[str, str]
    path: Path
    ways: tuple[Way, ...] = ()
    clocks: tuple[Clock, ...] = ()

    def provenance(self, node: str, **more: str) -> str:
        """The value of $KTRXER_LAB_TOPOLOGY for a command in `node`: the network around it, as JSON, which `ktrxer run` stores."""
        with contextlib.suppress(OSError):
            more["file"] = self.path.read_text(errors="replace")[:PROVENANCE_LIMIT]
        return json.dumps({"name": self.name, "title": self.title, "node": node, "parameters": self.parameters, **more})

    def address(self, node: str) -> ipaddress.IPv4Address:
        """A node's address on its first link."""
        return next(link.address(node) for link in self.links if node in link.ends)

    def address6(self, node: str) -> ipaddress.IPv6Address:
        return next(link.address6(node) for link in self.links if node in link.ends)

    def routes(self, node: str) -> list[tuple[Link, Link, str]]:
        """Each link that a node is not on, with the link and the neighbour of the first hop towards it."""
        first: dict[str, tuple[Link, str] | None] = {node: None}
        order = deque([node])
        while order:
            here = order.popleft()
            if here != node and here not in self.routers:
                continue  # hosts do not forward
            for link in self.links:
                if here in link.ends and link.other(here) not in first:
                    first[link.other(here)] = first[here] or (link, link.other(here))
                    order.append(link.other(here))
        found = []
        for link in self.links:
            # `first` is sorted by distance: use the nearer end.
            nearest = next((end for end in first if end in link.ends and (end == node or end in self.routers)), None)
            step = first[nearest] if nearest is not None else None
            if step is not None:
                found.append((link, *step))
        return found

    def reaches(self, node: str) -> set[str]:
        """The other nodes to which a node has a route."""
        near = {link.other(node) for link in self.links if node in link.ends}
        return near | {end for link, _, _ in self.routes(node) for end in link.ends} - {node}

    def hosts(self) -> list[tuple[str, str]]:
        """Pairs of address and names, as in /etc/hosts. NAME-46 has both addresses."""
        made = [(str(self.address(node)), f"{node} {node}-46") for node in self.nodes]
        return made + [(str(self.address6(node)), f"{node}-6 {node}-46") for node in self.nodes]

    def events(self) -> list[tuple[float, list[str]]]:
        """Changes during the command: seconds from its start, and the command that makes the change."""
        made = [(way.at_ns / 1e9, ["sh", "-c", "; ".join(self.route(way))]) for way in self.ways if way.at_ns]
        made += [(clock.at_ns / 1e9, clock.words()) for clock in self.clocks if clock.at_ns]
        for link in self.links:
            for begin, end in link.down:
                for at, state in ((begin, "down"), (end, "up")):
                    for bridge in sorted({link.bridge(node) for node in link.ends}):
                        made.append((at / 1e9, ["ip", "-n", str(link.wire), "link", "set", "dev", bridge, state]))
        return sorted(made)

    def route(self, way: Way) -> list[str]:
        """Shell commands that apply a route, for each address of its destination."""
        by = next(link for link in self.links if {way.node, way.via} == set(link.ends))
        to = [link for link in self.links if way.to in link.ends]
        direct = f"dev {by.device(way.node)}"  # a neighbour, whose packets may have had another route before
        to.sort(key=lambda link: link is not by)  # the others are reached through its address on this link
        four = [(link.address(way.to), 32, direct if link is by else f"via {by.address(way.via)}") for link in to]
        six = [(link.address6(way.to), 128, direct if link is by else f"via {by.address6(way.via)}") for link in to]
        lines = [[f"ip -n {way.node} route replace {to}/{bits} {hop}" for to, bits, hop in each] for each in (four, six)]
        return ["set -e", *lines[0], "[ -e /proc/sys/net/ipv6 ] || exit 0", *lines[1]]

    def circle(self, way: Way) -> list[str]:
        """The nodes between which packets would loop with this route; empty if the route leads to its destination."""
        via = {one.node: one.via for one in sorted(self.ways, key=lambda one: one.at_ns) if one.to == way.to and one.at_ns <= way.at_ns}
        for link in (link for link in self.links if way.to in link.ends):
            here, seen = way.node, list[str]()
            while here != way.to:
                seen.append(here)
                here = via.get(here) or next((gate for to, _, gate in self.routes(here) if to is link), way.to)
                if here in seen:
                    return [*seen, here]
        return []

    def helpers(self) -> list[list[str]]:
        """Programs that are a part of the network. Each prints a line when it is ready, and runs as long as the network."""
        made = []
        for link in self.links:
            for node, trace in ((node, link.shapes[node].trace) for node in link.ends):
                if trace is not None:
                    words = [str(trace.path.resolve()), f"rate-{node}", link.bridge(link.other(node)), trace.unit, str(trace.limit)]
                    made.append(["ip", "netns", "exec", str(link.wire), sys.executable, "-P", "-E", "-s", str(TRACE), *words])
        return made

    def describe(self) -> str:
        """A description of the topology in lines of text."""
        lines = [self.title]
        width = max(map(len, self.nodes))
        for node in self.nodes:
            kind = "router" if node in self.routers else "host"
            where = ", ".join(str(link.address(node)) for link in self.links if node in link.ends)
            lines.append(f"  {node:<{width}}  {kind:<6}  {where}")
        for link in self.links:
            for node in link.ends:
                lines.append(f"  {node} -> {link.other(node)}: {link.shapes[node].words()}")
            for begin, end in link.down:
                lines.append(f"  {link.ends[0]} - {link.ends[1]}: down from {begin / 1e9:g} to {end / 1e9:g} s")
        for way in self.ways:
            lines.append(f"  {way.node}: to {way.to} through {way.via}" + (f" from {way.at_ns / 1e9:g} s on" if way.at_ns else ""))
        for clock in self.clocks:
            change = f"{clock.step_ns / 1e6:+g} ms, {(clock.rate_ppb + clock.slew_ppb) / 1e3:+g} ppm"
            lines.append(f"  {clock.node}: clock {change}" + (f" from {clock.at_ns / 1e9:g} s on" if clock.at_ns else ""))
        return "\n".join(lines) + "\n"
