# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of a check, from its stored run: what each load adds to the round trip, with its interval, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ktrxer.figures.delays import DIRECTIONS
from ktrxer.figures.facts import flow_counts, flow_facts, probes_of
from ktrxer.statistics.latency import Delays, delays, grade, p50_interval, scale_text
from ktrxer.statistics.throughput import bytes_rate, gap_ns, sum_of_flows
from ktrxer.store import Run
from ktrxer.store.columns import LOST, LOST_DOWN, LOST_UP
from ktrxer.store.meta import Series
from ktrxer.summary.byte_outages import ByteOutage, byte_outages, longest_of_all
from ktrxer.summary.changes import Held, rates
from ktrxer.summary.figures import FIRST_WINDOW_BYTES
from ktrxer.summary.findings import Findings
from ktrxer.summary.outages import Outage, capped, outages
from ktrxer.summary.policer import Policed, policed
from ktrxer.summary.where import DOWN, FAR, OWN, UP, Part, own_qdisc, parts
from ktrxer.units import delay as ms

MS, S = 1e6, 10**9
# The queue of a load fills in its first part, which the figures leave out.
SETTLE_SHARE, SETTLE_NS, SETTLE_TRIPS = 0.3, 2 * S, 5
LEVEL = 0.90  # of the interval of a difference: two intervals of 95 % hold at the same time with 90 % (Bonferroni)
OUT_SHARE = 0.01  # of the highest rate: a lower level is an outage, and no load
QUEUE_LEAST_MS = 0.1  # a smaller delay under load is the work of the hosts, too
HALF = 0.5  # of the added delay: a place with more is where the queue is

Floats = NDArray[np.float64]
Way = Literal["up", "down"]
WAYS: tuple[Way, ...] = ("up", "down")


@dataclass(frozen=True)
class Window:
    from_ns: int
    to_ns: int
    levels: tuple[Held, ...] = ()  # of the rate, if it changed: the window is a part of the slowest one


@dataclass(frozen=True)
class Hop:
    """A router; the delay that the load adds to its answers and to those of all routers behind it."""

    number: int
    address: str
    idle_ms: float | None
    added_ms: float | None


@dataclass(frozen=True)
class Queue:
    """The place that adds the delay: one of those of summary/where.py, and between which routers; `hop` is the number of the router behind
    the queue (0: behind the last one that was probed), None: not known."""

    place: str
    share: float | None = None  # of the delay that the load adds
    hop: int | None = None
    qdisc: str = ""


@dataclass(frozen=True)
class Load:
    direction: Way
    rate_mbps: float | None  # in the window
    loaded: Delays
    added_ms: float  # to the p50; infinite if half of the probes were lost
    low_ms: float | None  # interval at LEVEL
    high_ms: float | None
    hops: tuple[Hop, ...]
    queue: Queue | None  # None: the load adds nothing that is above its uncertainty
    policed: Policed | None  # the losses are those of a policer
    levels: tuple[Held, ...]  # of the rate that changed under the load; all figures are of the slowest one


@dataclass(frozen=True)
class Check:
    target: str
    probes: str  # the kind of the probes that have these delays
    idle: Delays
    loads: tuple[Load, ...]
    outages: tuple[Outage, ...] = ()  # times without any answer, which limit the grade
    byte_outages: tuple[ByteOutage, ...] = ()  # times without any byte of a direction, which limit the grade, too
    failed: tuple[str, ...] = ()  # findings that could not be computed, each with the error

    @property
    def added_ms(self) -> float:
        """The delay that the load of the worse direction adds: the grade is that of this direction."""
        return max(0.0, self.worst.added_ms)

    @property
    def bounds_ms(self) -> tuple[float, float] | None:
        """The larger of the lower bounds and the larger of the upper bounds of the directions."""
        known = [(load.low_ms, load.high_ms) for load in self.loads if load.low_ms is not None and load.high_ms is not None]
        if len(known) < len(self.loads):
            return None
        return max(0.0, *(low for low, _ in known)), max(0.0, *(high for _, high in known))

    @property
    def grades(self) -> tuple[str, str, str]:
        """The letter, and the letters of the interval's ends."""
        low, high = self.bounds_ms or (self.added_ms, self.added_ms)
        dead = longest_of_all(self.outages, self.byte_outages)
        return capped(grade(self.added_ms), dead), capped(grade(low), dead), capped(grade(high), dead)

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(grade(max(0.0, load.added_ms)) for load in self.loads)

    @property
    def without(self) -> tuple[Way, ...]:
        """The directions that no load filled."""
        return tuple(way for way in WAYS if all(load.direction != way for load in self.loads))

    @property
    def worst(self) -> Load:
        return max(self.loads, key=lambda load: load.added_ms)


def scale() -> str:
    return scale_text()


def of(run: Run) -> Check | None:
    """None: no probe of the target was answered while idle, or no load transferred data."""
    findings = Findings()
    loads = _windows(run, findings)
    if not loads:
        return None
    dead: tuple[Outage, ...] = findings.take("outages", lambda: tuple(outages(run, flow_facts(run)[2])), ())
    stalled: tuple[ByteOutage, ...] = findings.take("outages of flows", lambda: tuple(byte_outages(run)), ())
    limits: list[Policed] = findings.take("policer", lambda: policed(run, *flow_facts(run)), [])
    idle_window = Window(0, _idle_end(run))
    for kind, members, idle in _idle(run, idle_window):
        found = ((way, _load(run, way, window, members, idle_window, idle)) for way, window in loads.items())
        made = tuple(
            replace(load, policed=next((one for one in limits if one.direction == way), None)) for way, load in found if load is not None
        )
        if made:
            target = run.meta.targets[0] if run.meta.targets else "?"
            return Check(target, kind, idle, made, dead, stalled, tuple(findings.failed))
    return None


def _idle_end(run: Run) -> int:
    """It is a round trip before the first load, whose probes meet the load; 0: there is no idle time."""
    before = run.meta.phase("idle_before")
    return before.to_ns if before is not None else 0


def _settle_ns(run: Run, whole: Window) -> int:
    load = run.meta.phase("load")
    trip = load.from_ns - _idle_end(run) if load is not None else 0
    return min(max(SETTLE_NS, SETTLE_TRIPS * trip), round(SETTLE_SHARE * (whole.to_ns - whole.from_ns)))


def _idle(run: Run, window: Window) -> Iterator[tuple[str, list[Series], Delays]]:
    """The kinds of probes that were answered, those with the most figures first."""
    for kind in ("UDP", "ICMP", "TCP"):
        members = [series for series in run.meta.of_kind("latency") if probes_of(run, series) == kind]
        idle = _delays(run, members, window)
        if idle is not None and not math.isinf(idle.p50):
            yield kind, members, idle


def idle_alone(run: Run) -> str:
    """The round trips of a run without a load."""
    parts = [f"{ms(idle.p50)} ({kind})" for kind, _, idle in _idle(run, Window(0, run.meta.length_ns))]
    return f"the p50 of the idle round trip is {', '.join(parts)}" if parts else "no probe was answered"


def _times(run: Run) -> dict[Way, Window]:
    """The time of each load."""
    made: dict[Way, Window] = {}
    for series in run.meta.of_kind("bytes"):
        runner = run.meta.runner_of(series)
        if runner is not None and runner.from_ns is not None and runner.to_ns is not None and series.direction in ("up", "down"):
            made[series.direction] = Window(runner.from_ns, runner.to_ns)
    return made


def _windows(run: Run, findings: Findings) -> dict[Way, Window]:
    """The settled part of each load that moved more than its first windows."""
    made: dict[Way, Window] = {}
    changed: dict[str, tuple[Held, ...]] = findings.take("levels", lambda: _changed(run), {})
    for way, whole in _times(run).items():
        counted = [flow_counts(run, series)[:2] for series in run.meta.of_kind("bytes") if series.direction == way]
        flows = [(times, counts) for times, counts in counted if len(counts)]
        if sum(int(counts.max() - counts.min()) for _, counts in flows) > FIRST_WINDOW_BYTES * len(counted):
            settle = _settle_ns(run, whole)
            # The path has no load where the server ends or the user stops the run, and probes may have no answer.
            last = max(int(times.max()) for times, _ in flows)
            to_ns = whole.to_ns if last > whole.to_ns - S else last
            if to_ns >= whole.from_ns + settle + S:
                made[way] = _slowest(Window(whole.from_ns + settle, to_ns), changed.get(way, ()))
    return made


def _changed(run: Run) -> dict[str, tuple[Held, ...]]:
    """The levels of each direction whose rate changed, as that of a shaper whose bucket becomes empty."""
    flows = run.meta.of_kind("bytes")
    ways = {series.group or series.name: series.direction for series in flows}
    return {ways[one.name] or "": tuple(one.levels) for one in rates(run, *flow_facts(run)[:2])}


def _slowest(window: Window, levels: tuple[Held, ...]) -> Window:
    """The part of a window in which the rate was the lowest: a median over two rates is of neither."""
    inside = tuple(one for one in levels if one.to_s * S >= window.from_ns + S)
    if len(inside) < 2:
        return window
    most = max(one.median for one in inside)
    slow = min((one for one in inside if one.median > OUT_SHARE * most), key=lambda one: one.median)
    return Window(max(window.from_ns, round(slow.from_s * S)), min(window.to_ns, round(slow.to_s * S)), inside)


def _inside(run: Run, members: Sequence[Series], column: str, window: Window) -> Floats:
    made = [np.empty(0)]
    for series in members:
        arrays = run.arrays(series)
        inside = (arrays["t_ns"] >= window.from_ns) & (arrays["t_ns"] < window.to_ns)
        made.append(np.asarray(arrays[column], np.float64)[inside])
    return np.concatenate(made)


def _delays(run: Run, members: Sequence[Series], window: Window) -> Delays | None:
    values, times = _inside(run, members, "rtt_ns", window) / MS, _inside(run, members, "t_ns", window)
    lost = np.isin(_inside(run, members, "state", window), (LOST, LOST_UP, LOST_DOWN))
    return delays(values[~lost], int(lost.sum()), p50_interval(times, np.where(lost, np.inf, values)))


def _load(run: Run, way: Way, window: Window, members: Sequence[Series], idle_window: Window, idle: Delays) -> Load | None:
    loaded = _delays(run, members, window)
    if loaded is None:
        return None
    added = loaded.p50 - idle.p50
    low = high = None
    if None not in (loaded.p50_low, loaded.p50_high, idle.p50_low, idle.p50_high):
        low, high = loaded.p50_low - idle.p50_high, loaded.p50_high - idle.p50_low  # type: ignore[operator]
        # Half seconds with two or three probes have medians that lie a little below that of all probes.
        low, high = min(low, added), max(high, added)
    hops = _hops(run, idle_window, window)
    before, under = ({column: _inside(run, members, column, one) for _, column in DIRECTIONS} for one in (idle_window, window))
    places = parts(before, under, _qdisc(run))
    own = _own_added(run, idle_window, window)
    # A figure without an interval gets at least the step to the next letter of the scale.
    above = low > 0 and added >= QUEUE_LEAST_MS if low is not None else added > 5
    queue = _queue(way, added, places, hops, own, _qdisc(run)) if above else None
    return Load(way, _rate(run, way, window), loaded, added, low, high, hops, queue, None, window.levels)


def _rate(run: Run, way: Way, window: Window) -> float | None:
    edges = np.asarray([window.from_ns, window.to_ns - S // 2], np.int64)  # the last count comes a little before the end
    flows = []
    for series in run.meta.of_kind("bytes"):
        if series.direction == way:
            times, counts, _ = flow_counts(run, series)
            runner = run.meta.runner_of(series)
            flows.append(bytes_rate(times, counts, edges, gap_ns=gap_ns((runner.interval_ns if runner is not None else None) or S // 5)))
    rate = sum_of_flows(flows).total_rate_bps() if flows else None
    return rate / 1e6 if rate is not None else None


def _qdisc(run: Run) -> str:
    return "/".join(sorted({own_qdisc(runner) for runner in run.meta.runners} - {""}))


def _own_added(run: Run, idle: Window, loaded: Window) -> float | None:
    """The mean delay that the load adds in the queue of this host's own device, by the stamps of any probes."""
    for series in run.meta.of_kind("latency"):
        pair = [values[~np.isnan(values)] for values in (_inside(run, [series], "own_queue_ns", one) for one in (idle, loaded))]
        if all(len(values) for values in pair):
            return float(pair[1].mean() - pair[0].mean()) / MS
    return None


def _hops(run: Run, idle: Window, loaded: Window) -> tuple[Hop, ...]:
    found: list[Hop] = []
    for series in run.meta.of_kind("value"):
        runner = run.meta.runner_of(series)
        if runner is None or runner.kind != "hop":
            continue
        before, under = (delays(_inside(run, [series], "value", window)) for window in (idle, loaded))
        added = under.p50 - before.p50 if before is not None and under is not None else None
        found.append(Hop(len(found) + 1, runner.host or "?", before.p50 if before is not None else None, added))
    # A queue delays the answers of all routers behind it; a router that is slow at answering delays only its own.
    made: list[Hop] = []
    least = math.inf
    for hop in reversed(found):
        least = min(least, hop.added_ms) if hop.added_ms is not None else least
        made.append(Hop(hop.number, hop.address, hop.idle_ms, None if hop.added_ms is None else least))
    return tuple(reversed(made))


def _queue(way: Way, added: float, places: Sequence[Part], hops: Sequence[Hop], own: float | None, qdisc: str) -> Queue:
    if places and places[0].share >= HALF and places[0].place in (OWN, FAR):
        return Queue(places[0].place, places[0].share, qdisc=places[0].qdisc)
    if not places and own is not None and own >= HALF * added and not math.isinf(added):
        return Queue(OWN, own / added, qdisc=qdisc)
    place, share = (UP if way == "up" else DOWN), None
    if places:
        share = places[0].share
        if share < HALF:
            return Queue("several places", share)
        place = places[0].place
    known = [hop for hop in hops if hop.added_ms is not None]
    if math.isinf(added):
        return Queue(place, share)
    behind = next((hop.number for hop in known if hop.added_ms is not None and hop.added_ms >= HALF * added), 0 if known else None)
    return Queue(place, share, behind)
