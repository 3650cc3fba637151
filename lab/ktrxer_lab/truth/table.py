# SPDX-License-Identifier: MIT OR Apache-2.0
"""The paths: one table for each kind, and some single ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ktrxer_lab.truth.path import FRAME, PACKET, SEGMENT, Path, Way

IDLE, FLOWS, DATAGRAMS, LOAD, PAIRS, ROUTES = "idle", "flows", "datagrams", "load", "pairs", "routes"  # the kinds of commands (own.py)
QUICK = frozenset({
    "delay-25-25", "delay-5-45", "rate-5-5", "rate-10-1", "loss-2-0", "loss-burst-5-0", "jitter-normal-2", "queue-fq_codel", "standing-up",
    "own-queue",
})  # fmt: skip

# ms
DELAYS = ((0.1, 0.1), (1, 1), (5, 5), (25, 25), (100, 100), (300, 300), (5, 45), (45, 5), (1, 99), (10, 30), (200, 20), (0.2, 0.8))
RATES = ((1, 1), (2, 2), (5, 5), (10, 10), (20, 20), (50, 50), (2, 20), (5, 50), (20, 2), (10, 1))  # Mbit/s
PAIRS_MBPS = ((10, 10), (100, 100), (50, 5), (5, 200))
# percent
LOSSES = ((0.1, 0), (0.5, 0), (2, 0), (5, 0), (10, 0), (30, 0), (0, 0.5), (0, 2), (0, 10), (1, 3), (5, 1), (0.5, 0.5))
BURSTS = ((1, 0, 4), (5, 0, 8), (5, 0, 4), (0, 2, 4))  # percent, percent, packets
# Of 1,024 hash buckets (the default of fq_codel), one of our flows shares one with a probe in about 1 of 100 runs. That probe
# then waits, and the plain probes of the reference, which are other flows, do not.
QUEUES = (
    "bfifo limit 62500", "bfifo limit 250000", "pfifo limit 100", "codel", "fq_codel flows 65535", "pie", "fq_pie",
    "cake bandwidth 100mbit", "fq", "sfq",
)  # fmt: skip


def _rate_queue(rate_mbps: float) -> str:
    """A FIFO of 200 ms, but at least of 20 frames."""
    return f"bfifo limit {max(30_280, round(rate_mbps * 25_000))}"


def _generated() -> Iterator[Path]:
    for up, down in DELAYS:
        yield Path(f"delay-{up:g}-{down:g}", Way(up), Way(down), frozenset({IDLE}))
    for up, down in RATES:
        there, back = (Way(10, rate, _rate_queue(rate)) for rate in (up, down))
        yield Path(f"rate-{up:g}-{down:g}", there, back, frozenset({IDLE, FLOWS, DATAGRAMS}))
    for up, down in LOSSES:
        yield Path(f"loss-{up:g}-{down:g}", Way(10, loss=up), Way(10, loss=down), frozenset({IDLE, DATAGRAMS}))
    for up, down, burst in BURSTS:
        there, back = (Way(10, loss=loss, burst=burst if loss else 1) for loss in (up, down))
        yield Path(f"loss-burst-{up:g}-{down:g}" + ("" if burst != 8 else "-8"), there, back, frozenset({IDLE, DATAGRAMS}))
    for queue in QUEUES:
        name = queue.split()[0] + ("" if "fifo" not in queue else "-" + queue.split()[-1])
        way = Way(10, 10, queue)
        yield Path(f"queue-{name}", way, way, frozenset({LOAD}))


def _by_hand() -> Iterator[Path]:
    idle, datagrams, load = frozenset({IDLE}), frozenset({IDLE, DATAGRAMS}), frozenset({LOAD})
    plain = Way(10)
    yield Path("jitter-uniform-1", Way(10, jitter_ms=1), plain, idle)
    yield Path("jitter-uniform-5", Way(20, jitter_ms=5), Way(20, jitter_ms=5), idle)
    yield Path("jitter-normal-2", Way(20, jitter_ms=2, distribution="normal"), Way(20), idle)
    yield Path("jitter-down-only", plain, Way(20, jitter_ms=4), idle)
    yield Path("jitter-pareto-1", Way(20, jitter_ms=1, distribution="pareto"), plain, idle)
    yield Path("reorder-10", Way(20, reorder=10), plain, idle)
    yield Path("duplicate-5-0", Way(10, duplicate=5), plain, datagrams)
    yield Path("duplicate-0-10", plain, Way(10, duplicate=10), datagrams)
    shaped = Way(10, 10, "bfifo limit 62500")
    yield Path("standing-up", replace(shaped, cross_mbps=12), shaped, idle)
    yield Path("standing-down", shaped, replace(shaped, cross_mbps=12), idle)
    yield Path("standing-both", replace(shaped, cross_mbps=11), replace(shaped, cross_mbps=15), idle)
    yield Path("cross-half-up", replace(shaped, cross_mbps=5), shaped, idle)
    yield Path("cross-half-down", shaped, replace(shaped, cross_mbps=5), idle)
    yield Path("policed-up", Way(10, police_mbps=5), plain, idle)
    # A shaper on the measuring host itself: `tc` in the client instead of in the network.
    own = (
        "tc qdisc replace dev to-left root handle 1: htb default 1",
        "tc class add dev to-left parent 1: classid 1:1 htb rate 5mbit burst 1514 cburst 1514",
        "tc qdisc add dev to-left parent 1:1 bfifo limit 62500",
    )
    rate = 5 * SEGMENT / FRAME
    yield Path("own-queue", plain, plain, load, tuple(("client", shell) for shell in own), (("TCP up", rate, rate),))
    # Serial links: netem sends one packet after the other, while htb and tbf can pass two at once.
    for up, down in PAIRS_MBPS:
        devices = (("left", "to-right", up), ("right", "to-left", down))
        serial = tuple((node, f"tc qdisc add dev {device} root netem rate {rate:g}mbit limit 10000") for node, device, rate in devices)
        known = tuple((f"capacity {way}", *2 * (rate * PACKET / FRAME,)) for way, rate in (("up", up), ("down", down)))
        yield Path(f"pair-{up:g}-{down:g}", plain, plain, frozenset({PAIRS}), serial, known)
    for way in (plain, Way(100)):
        yield Path(f"trace-{way.delay_ms:g}", way, way, frozenset({ROUTES}))
    # Hosts with different clocks.
    yield Path("clock-ahead", Way(25), Way(25), idle, ahead_ms=3)
    yield Path("clock-behind-5-45", Way(5), Way(45), idle, ahead_ms=-120)
    yield Path("clock-fast-40", Way(5), Way(45), idle, ahead_ms=3, rate_ppm=40)
    yield Path("clock-slow-200", Way(10), Way(10), idle, rate_ppm=-200)
    yield Path("clock-fast-jitter", Way(20, jitter_ms=2, distribution="normal"), Way(20), idle, ahead_ms=7000, rate_ppm=75)
    queue = Way(10, 10, "fq_codel flows 65535")
    yield Path("clock-fast-loaded", queue, queue, load, ahead_ms=3, rate_ppm=40)
    yield Path("marks-10-0", Way(10, marks=10), plain, frozenset({DATAGRAMS}))


def paths() -> list[Path]:
    return [replace(path, quick=path.name in QUICK) for path in (*_generated(), *_by_hand())]
