# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares figures with the truth: the path's construction, the counters of the guest, and plain sockets at the same time."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ktrxer_lab.truth.figure import WORDS, Figure, binomial_interval
from ktrxer_lab.truth.own import REFERENCE_S
from ktrxer_lab.truth.path import DOWN, FRAME, ROUTE, SEGMENT, UDP_HEADERS, UP, Path, Truth

CONSTRUCTION, COUNTERS, SOCKETS, CLOCKS = "construction", "counters", "plain sockets", "both clocks"
HEAD = 16  # bytes of a plain probe's payload
TCP_HEADERS = 66  # Ethernet, IPv4, TCP with time stamps
REFERENCE_MBPS = (HEAD + UDP_HEADERS) * 8e-6 / REFERENCE_S
DELAY_MS, DELAY_SHARE = 0.05, 0.01
LOADED_MS, LOADED_SHARE = 1.0, 0.05
RATE_SHARE, BYTES_SHARE = 0.02, 0.01
CHECK_RATE_SHARE = 0.005
READING_MS = 0.001  # time between the readings of two clocks
PACKETS = 6  # allowed difference of counts: packets of the tool's signalling and of neighbour discovery
SURE = 0.999
JITTER = 2.5  # tolerance, in about so many standard errors of a median
PROBES = 100  # assumed number of probes of a tool that prints none


@dataclass(frozen=True)
class Row:
    path: str
    tool: str
    figure: str
    truth_low: float
    truth_high: float
    value: float
    low: float | None  # the interval
    high: float | None
    error: float  # signed distance from the nearer end of the truth
    good: bool  # within the tolerance, or the tool's own interval contains the truth
    holds: bool | None  # whether the interval contains the truth; None: no interval
    source: str  # the source of the truth
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in asdict(self).items()}


def rows(path: Path, tool: str, figures: Sequence[Figure], done: Mapping[str, Any], where: str = "") -> list[Row]:
    """The rows of one command. A figure without a known truth has no row."""
    probes = next((one.trials for one in figures if one.trials is not None), None) or PROBES
    both = {"TCP up", "TCP down"} <= {one.name for one in figures}
    return [row for one in figures for row in _rows(path, tool, one, done, where, probes, both)]


def _rows(path: Path, tool: str, one: Figure, done: Mapping[str, Any], where: str, probes: int, both: bool) -> Iterator[Row]:
    if one.name in WORDS:
        truth_word = where if one.name == "where" else ROUTE
        if truth_word:
            right, note = one.text == truth_word, f"{one.text}, truth {truth_word}"
            yield Row(path.name, tool, one.name, 1, 1, float(right), None, None, float(right) - 1, right, None, CONSTRUCTION, note)
        return
    found = known(path, one, done)
    if found is None:
        return
    truth, source = found
    if one.name in ("TCP up", "TCP down"):
        truth = _beside(path, one, truth, both, bool(done.get("reference")))
    low, high = (one.low, one.high) if one.low is not None else _of_counts(path, one)
    holds = None
    if low is not None and high is not None:
        of = path.truths().get(one.name, truth) if one.events is not None else truth
        holds = low <= of.high and of.low <= high
    error = truth.distance(one.value)
    # A tool with an interval claims only this interval.
    good = abs(error) <= _tolerance(path, one, truth, source, probes) or (one.low is not None and bool(holds))
    if one.events is not None and one.trials and source == CONSTRUCTION:
        between = binomial_interval(one.events, one.trials, SURE)
        good = between[0] <= truth.high and truth.low <= between[1]
    if not math.isfinite(one.value):
        good = False
    yield Row(path.name, tool, one.name, truth.low, truth.high, one.value, low, high, error, good, holds, source)


def _beside(path: Path, one: Figure, truth: Truth, both: bool, reference: bool) -> Truth:
    """The rate that remains for TCP's payload beside the probes and the acknowledgements of the other direction."""
    others = one.others_mbps + (REFERENCE_MBPS if reference else 0.0)
    other = (path.up if one.name == "TCP down" else path.down).rate_mbps or 0.0
    low = truth.low - SEGMENT / FRAME * (others + (other * TCP_HEADERS / FRAME if both else 0.0))
    return Truth(low, truth.high - SEGMENT / FRAME * others)


def _of_counts(path: Path, one: Figure) -> tuple[float | None, float | None]:
    """The binomial interval of a share; none for losses that depend on each other."""
    if one.events is None or not one.trials or (path.bursty() and one.name.startswith("loss")):
        return None, None
    return binomial_interval(one.events, one.trials)


def _way(path: Path, name: str) -> tuple[str, Any]:
    direction = DOWN if DOWN in name.split() else UP
    return direction, path.down if direction == DOWN else path.up


def known(path: Path, one: Figure, done: Mapping[str, Any]) -> tuple[Truth, str] | None:
    truths, name = path.truths(), one.name
    direction, way = _way(path, name)
    if name.startswith("loaded "):
        return _loaded(path, name, done)
    if name == "clock offset":
        at_ns, ahead_ns = done["clock"]
        ahead_ms = ahead_ns / 1e6 - (at_ns - one.at_ns) * path.rate_ppm * 1e-12
        return Truth(ahead_ms - READING_MS, ahead_ms + READING_MS), CLOCKS
    if name.startswith("TCP bytes"):
        counted = done["counted"][direction]
        exact = float(counted["bytes"] - TCP_HEADERS * counted["frames"])
        # Bytes in transit at the end of a flow arrive after it.
        rate = way.rate_mbps or 0.0
        late = max(way.queue_bytes(), FRAME) + rate * 125 * (path.up.delay_ms + path.down.delay_ms)
        lossless = not any(one_way.loss or one_way.duplicate or one_way.cross_mbps for one_way in (path.up, path.down))
        return (Truth(exact - late, exact), COUNTERS) if lossless and rate and not done.get("reference") else None
    if name.startswith("UDP"):
        return (Truth(way.rate_mbps, way.rate_mbps), CONSTRUCTION) if way.rate_mbps is not None and not way.cross_mbps else None
    if name.startswith("loss") and one.loaded and (path.up.rate_mbps is not None or path.down.rate_mbps is not None):
        return None  # a load loses packets in the queue
    if name.startswith("loss") and name in truths:
        share = _lost(done["counted"], name)
        if share is not None and (path.up.loss or path.down.loss):
            return Truth(share, share), COUNTERS
    found = truths.get(name.removeprefix("idle "))
    return (found, CONSTRUCTION) if found is not None else None


def _lost(counted: Mapping[str, Any], name: str) -> float | None:
    passed = {}
    for way in (UP, DOWN):
        sent = counted[way]["sent"]
        passed[way] = min(1.0, counted[way]["packets"] / sent) if sent else 1.0
    if name == "loss round trip":
        return 1 - passed[UP] * passed[DOWN]
    return 1 - passed[name.split()[-1]]


def _tolerance(path: Path, one: Figure, truth: Truth, source: str, probes: int) -> float:
    """The tolerance of a figure that is not a share of counts by construction."""
    if one.name.startswith(("loss", "duplicates", "CE")):
        return PACKETS / (one.trials or PROBES)
    if one.name.startswith("TCP bytes"):
        return BYTES_SHARE * truth.high
    if one.name.startswith(("TCP", "UDP", "capacity")):
        return RATE_SHARE * truth.high
    if one.name.startswith("clock") or one.name == "routes":
        return 0.0  # the tool's interval decides
    if source == SOCKETS:
        return max(LOADED_MS, LOADED_SHARE * truth.high)
    jitter = path.up.jitter_ms + path.down.jitter_ms
    return max(DELAY_MS, DELAY_SHARE * truth.high) + JITTER * jitter / math.sqrt(probes)


# ------------------------------------------------------------------------------------------------------------- plain sockets


def _loaded(path: Path, name: str, done: Mapping[str, Any]) -> tuple[Truth, str] | None:
    """The truth from the plain probes of the same time. Means of the two directions add up, medians do not."""
    try:
        load = next(phase for phase in json.loads(done["out"])["summary"]["phases"] if phase["name"] == "load")
        begin, end = (load[name] - done["offset_ns"] for name in ("from_real_ns", "to_real_ns"))
    except (ValueError, KeyError, TypeError):
        return None
    if not done.get("reference"):
        return None
    delays = {way: [late / 1e6 for at, late in done["reference"][way]["delays"] if begin <= at < end] for way in (UP, DOWN)}
    if not all(delays.values()):
        return None
    if name == "loaded round trip mean":
        value = sum(statistics.fmean(delays[way]) for way in (UP, DOWN))
    else:
        value = statistics.median(delays[_way(path, name)[0]])
    return Truth(value, value), SOCKETS


def check(path: Path, shown: Mapping[str, Any]) -> list[Row]:
    """The rows of the path's own check by plain sockets."""
    made, truths = [], path.truths()

    def add(figure: str, value: float, tolerance: float, truth: Truth) -> None:
        error = truth.distance(value)
        good = abs(error) <= tolerance
        made.append(Row(path.name, SOCKETS, figure, truth.low, truth.high, value, None, None, error, good, None, CONSTRUCTION))

    for name, rate in shown["rates"].items():
        way = path.up if name == UP else path.down
        if way.rate_mbps is not None:
            add(f"UDP {name}", rate, CHECK_RATE_SHARE * way.rate_mbps, Truth(way.rate_mbps, way.rate_mbps))
    for name, way in ((UP, path.up), (DOWN, path.down)):
        seen = shown["probes"][name]
        delays = [late / 1e6 for _, late in seen["delays"]]
        truth = truths.get(f"delay {name} p50")
        if truth is not None and delays:
            tolerance = max(DELAY_MS, DELAY_SHARE * truth.high) + JITTER * way.jitter_ms / math.sqrt(len(delays))
            add(f"delay {name} p50", statistics.median(delays), tolerance, truth)
        truth = truths.get(f"loss {name}")
        if truth is not None:
            lost = seen["sent"] - seen["received"]
            between = binomial_interval(lost, seen["sent"], SURE)
            slack = max(truth.high - between[0], between[1] - truth.low) * (2 * way.burst) ** 0.5
            add(f"loss {name}", lost / seen["sent"], slack if way.loss else 0.0, truth)
    return made
