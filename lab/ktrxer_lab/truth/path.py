# SPDX-License-Identifier: MIT OR Apache-2.0
"""A path whose figures are known by construction.

    client ---- left ======== right -------- server
                 |   rate and   |  delay, jitter, loss
                near  queue    far                      `near` and `far` exist only with cross traffic
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FRAME = 1514  # bytes of a full Ethernet frame, as rates count it
SEGMENT = 1448  # bytes of payload of a full TCP segment with time stamps
PACKET = 1500  # bytes of IP in a full frame
UDP_HEADERS = 42  # Ethernet, IPv4 and UDP
SYMMETRIC = ("uniform", "normal")
SATURATED = 1.02  # ratio of offered load to rate above which the queue is always full
UP, DOWN = "up", "down"
RTT = "round trip"
ROUTE = "10.64.1.2 10.64.2.2 10.64.3.2"  # left, right, server: links are numbered in the order of the topology file
HOSTS_MS = 0.01  # delay in both hosts, in which each reading of the clock takes 256 ns


@dataclass(frozen=True)
class Way:
    """The treatment of the packets of one direction, with the terms of a topology file."""

    delay_ms: float = 0.0
    rate_mbps: float | None = None
    queue: str = ""
    jitter_ms: float = 0.0
    distribution: str = ""
    loss: float = 0.0  # percent
    burst: float = 1.0
    reorder: float = 0.0  # percent
    duplicate: float = 0.0  # percent
    police_mbps: float | None = None
    cross_mbps: float = 0.0  # full frames through the queue, evenly spaced
    marks: float = 0.0  # percent of the ECN-capable packets that are marked CE

    @property
    def free(self) -> bool:
        """No part of the path limits the rate."""
        return self.rate_mbps is None and self.police_mbps is None

    def at_the_queue(self) -> str:
        words = [f'rate = "{self.rate_mbps:g}mbit"'] if self.rate_mbps is not None else []
        words += [f'queue = "{self.queue}"'] if self.queue else []
        words += [f'police = "{self.police_mbps:g}mbit"'] if self.police_mbps is not None else []
        return ", ".join(words)

    def of_the_wire(self) -> str:
        words = [f'{name} = "{value:g}{unit}"' for name, value, unit in (
            ("delay", self.delay_ms, "ms"), ("jitter", self.jitter_ms, "ms"), ("loss", self.loss, "%"),
            ("reorder", self.reorder, "%"), ("duplicate", self.duplicate, "%"),
        ) if value]  # fmt: skip
        words += [f'distribution = "{self.distribution}"'] if self.distribution else []
        words += [f"burst = {self.burst:g}"] if self.burst > 1 else []
        return ", ".join(words)

    @property
    def standing(self) -> bool:
        """Whether cross traffic keeps the queue full."""
        return self.rate_mbps is not None and self.cross_mbps > SATURATED * self.rate_mbps

    def queue_bytes(self) -> int:
        """The size of a FIFO; 0: not known by construction."""
        words = self.queue.split()
        if words[:2] == ["bfifo", "limit"]:
            return int(words[2])
        return int(words[2]) * FRAME if words[:2] == ["pfifo", "limit"] else 0

    def delays_ms(self) -> tuple[float, float] | None:
        """Lower and upper limit of the median delay of a small packet."""
        if self.jitter_ms and (self.distribution or "uniform") not in SYMMETRIC:
            return None
        if self.cross_mbps and self.rate_mbps is not None:
            frame_ms = FRAME * 8e-3 / self.rate_mbps
            if not self.standing:
                return self.delay_ms, self.delay_ms + frame_ms + HOSTS_MS
            full = self.queue_bytes() * 8e-3 / self.rate_mbps
            return self.delay_ms + full - 2 * frame_ms, self.delay_ms + full + frame_ms + HOSTS_MS
        return self.delay_ms, self.delay_ms + HOSTS_MS


@dataclass(frozen=True)
class Truth:
    """The true value lies between these two."""

    low: float
    high: float

    def distance(self, value: float) -> float:
        """Signed; 0 inside."""
        return value - self.high if value > self.high else value - self.low if value < self.low else 0.0

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Path:
    name: str
    up: Way
    down: Way
    kinds: frozenset[str] = field(default_factory=frozenset)  # kinds of the project's own commands that measure it (own.py)
    setup: tuple[tuple[str, str], ...] = ()  # node and shell command: settings that a topology file cannot express
    known: tuple[tuple[str, float, float], ...] = ()  # further figures: name, low, high
    ahead_ms: float = 0.0  # offset of the server's clock
    rate_ppm: float = 0.0  # rate offset of the server's clock
    quick: bool = False  # whether each test run includes it
    events: tuple[tuple[float, str, str], ...] = ()  # seconds from the start of each command, node, shell command

    def topology(self) -> str:
        """The text of the topology file."""
        cross = bool(self.up.cross_mbps or self.down.cross_mbps)
        hosts = '"client", "server"' + (', "near", "far"' if cross else "")
        links = [
            ('"client", "left"', "", ""),
            ('"left", "right"', f"left = {{ {self.up.at_the_queue()} }}", f"right = {{ {self.down.at_the_queue()} }}"),
            ('"right", "server"', f"right = {{ {self.up.of_the_wire()} }}", f"server = {{ {self.down.of_the_wire()} }}"),
        ]
        links += [('"near", "left"', "", ""), ('"right", "far"', "", "")] if cross else []
        text = [f'title = "{self.words()}"', f"hosts = [{hosts}]", 'routers = ["left", "right"]', 'server = "server"']
        for ends, *sides in links:
            text += ["[[links]]", f"ends = [{ends}]", *(f"from.{side}" for side in sides if side and "{  }" not in side)]
        if self.ahead_ms or self.rate_ppm:
            text += ["[[clocks]]", 'node = "server"', f'offset = "{self.ahead_ms:g}ms"', f"rate_ppm = {self.rate_ppm:g}"]
        return "\n".join(text) + "\n"

    def words(self) -> str:
        """A description: up / down."""
        parts = []
        for way in (self.up, self.down):
            rate = f"{way.rate_mbps:g} Mbit/s {way.queue or 'pfifo limit 1000'}, " if way.rate_mbps is not None else ""
            more = [f"jitter {way.jitter_ms:g} ms {way.distribution or 'uniform'}"] if way.jitter_ms else []
            more += [f"{way.loss:g} % lost" + (f", {way.burst:g} in a row" if way.burst > 1 else "")] if way.loss else []
            more += [f"{way.reorder:g} % reordered"] if way.reorder else []
            more += [f"{way.duplicate:g} % duplicated"] if way.duplicate else []
            more += [f"policed to {way.police_mbps:g} Mbit/s"] if way.police_mbps is not None else []
            more += [f"cross traffic {way.cross_mbps:g} Mbit/s"] if way.cross_mbps else []
            more += [f"{way.marks:g} % marked CE"] if way.marks else []
            parts.append(", ".join([f"{rate}{way.delay_ms:g} ms", *more]))
        clock = [f"server's clock {self.ahead_ms:+g} ms, {self.rate_ppm:+g} ppm"] if self.ahead_ms or self.rate_ppm else []
        return "; ".join([parts[0] + ", both ways" if parts[0] == parts[1] else " / ".join(parts), *clock])

    def truths(self) -> dict[str, Truth]:
        """The figures that are known by construction."""
        found: dict[str, Truth] = {}
        ways = {UP: self.up, DOWN: self.down}
        medians = {name: way.delays_ms() for name, way in ways.items()}
        for name, between in medians.items():
            if between is not None:
                found[f"delay {name} p50"] = Truth(*between)
        if all(between is not None for between in medians.values()):
            low, high = (sum(between[i] for between in medians.values() if between is not None) for i in (0, 1))
            found[f"{RTT} p50"] = Truth(low, high)
            if not (self.up.reorder or self.down.reorder):
                found[f"{RTT} mean"] = Truth(low, high)
            spread = sum(way.jitter_ms for way in ways.values())
            bounded = all(way.distribution in ("", "uniform") for way in ways.values())
            if bounded and not spread and not (self.up.reorder or self.down.reorder):
                found[f"{RTT} min"] = found[f"{RTT} max"] = Truth(low, high)
        for name, way in ways.items():
            if not way.cross_mbps and way.police_mbps is None:
                found[f"loss {name}"] = Truth(way.loss / 100, way.loss / 100)
                # TCP fills a shaped and lossless path: the FIFOs here are large enough for its window.
                if way.rate_mbps is not None and not way.loss and not way.jitter_ms and not way.reorder and not way.marks:
                    found[f"TCP {name}"] = Truth(*2 * (way.rate_mbps * SEGMENT / FRAME,))
            found[f"duplicates {name}"] = Truth(way.duplicate / 100, way.duplicate / 100)
            if way.marks:
                found[f"CE {name}"] = Truth(way.marks / 100, way.marks / 100)
        if "loss up" in found and "loss down" in found:
            lost = 1 - (1 - self.up.loss / 100) * (1 - self.down.loss / 100)
            found[f"loss {RTT}"] = Truth(lost, lost)
        found["routes"] = Truth(1, 1)
        found["clock rate"] = Truth(self.rate_ppm, self.rate_ppm)
        found |= {name: Truth(low, high) for name, low, high in self.known}
        return found

    def bursty(self) -> bool:
        """Whether losses depend on each other, so that a binomial interval does not apply."""
        return self.up.burst > 1 or self.down.burst > 1

    def plan(self) -> dict[str, Any]:
        """The plan for the program in the guest."""
        return {
            "setup": self.setup,
            "events": self.events,
            "cross": [[name, way.cross_mbps] for name, way in ((UP, self.up), (DOWN, self.down)) if way.cross_mbps],
            "rates": {name: way.rate_mbps for name, way in ((UP, self.up), (DOWN, self.down)) if way.rate_mbps is not None},
            "marks": {name: way.marks for name, way in ((UP, self.up), (DOWN, self.down)) if way.marks},
        }
