# SPDX-License-Identifier: MIT OR Apache-2.0
"""From a run to panels: pure functions. Each gives None where the run has nothing to show in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.estimate.distribution import ecdf, thin_ecdf
from ktrxer.estimate.throughput import Windows, bytes_rate, edges, receiver_end, sum_of_flows
from ktrxer.run.judge import gap_ns
from ktrxer.store import Run
from ktrxer.store import Series as Stored
from ktrxer.store.columns import ANSWERED, FAILED, LOST, LOST_BACKWARD, LOST_FORWARD, SKIPPED
from ktrxer.view import palette
from ktrxer.view.model import TIME, Axis, Band, Floats, Panel, Series

S = 1e9
WINDOW_NS = 200_000_000  # of rates, unless the samples are further apart
MANY = 24  # flows that are drawn one by one; of more, the sum, the mean and the spread
CDF_POINTS = 2000
MOST_WINDOWS = 20_000
ROUND_NS = 10_000_000  # windows are whole multiples of it

DIRECTIONS = {"up": "Upload", "down": "Download"}


def bands(run: Run) -> tuple[Band, ...]:
    names = {"idle_before": "idle", "load": "load", "idle_after": "idle"}
    return tuple(
        Band(phase.from_ns / S, phase.to_ns / S, names[phase.name], "load" if phase.name == "load" else "idle") for phase in run.meta.phases
    )


def _time_axis() -> Axis:
    return Axis("Time", "s", zero=False)


def _label(series: Stored) -> str:
    """Without what the whole group is called, for that stands above."""
    group = series.group or ""
    rest = series.name.removeprefix(group).strip(" :") if group else ""
    return f"flow {rest}" if rest.isdigit() else rest or series.name


def _key(series: Stored) -> str:
    return series.name


def _wish(series: Stored) -> str | None:
    return series.klass or ("ICMP" if "ICMP" in series.name else None)


def unit_of(values: Sequence[NDArray[Any]], steps: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest unit in which the largest value is at least one; `steps` are (size, name), the smallest first."""
    tops = [float(np.nanmax(np.abs(v))) for v in values if len(v) and not np.isnan(v).all()]
    top = max(tops, default=0.0)
    return next((step for step in reversed(steps) if top >= step[0]), steps[0])


BITS = ((1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"))
DELAYS = ((1e3, "µs"), (1e6, "ms"), (1e9, "s"))  # in nanoseconds
BYTES = ((1.0, "byte"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# -------------------------------------------------------------------------------------------------------------- throughput


@dataclass(frozen=True)
class Flows:
    """The flows of one direction over common windows."""

    series: list[Stored]
    windows: list[Windows]
    sender: int  # how many had to be taken from the sending end

    @property
    def total(self) -> Windows:
        return sum_of_flows(self.windows)


def interval_of(t_ns: NDArray[Any]) -> int:
    """What usually lies between two samples."""
    return int(np.median(np.diff(t_ns))) if len(t_ns) > 1 else 0


def flows(run: Run, direction: str, window_ns: int = WINDOW_NS) -> Flows | None:
    stored = [series for kind in ("bytes", "udp") for series in run.meta.of_kind(kind) if series.direction == direction]
    counted: list[tuple[Stored, NDArray[Any], NDArray[Any]]] = []
    sender = 0
    for series in stored:
        arrays = run.arrays(series)
        end = receiver_end(direction)
        there = arrays["end"] == end
        if not there.any() and len(there):
            there = ~there
            sender += 1
        counted.append((series, arrays["t_ns"][there], arrays["bytes"][there]))
    times = [t for _, t, _ in counted if len(t) > 1]
    if not times:
        return None
    interval = max(interval_of(t) for t in times)
    first, last = min(int(t[0]) for t in times), max(int(t[-1]) for t in times)
    window = max(window_ns, interval, (last - first) // MOST_WINDOWS)
    window = round(window / ROUND_NS) * ROUND_NS
    # Windows begin with the load, so that those of both directions and of other runs lie on each other.
    load = run.meta.phase("load")
    start = load.from_ns if load is not None else first
    start -= -(-(start - first) // window) * window if first < start else 0
    cuts = edges(start, last + window, window)
    gap = gap_ns(interval)  # as the verdict and the summary have it
    return Flows([series for series, _, _ in counted], [bytes_rate(t, c, cuts, gap_ns=gap) for _, t, c in counted], sender)


def _steps(windows: Windows, scale: float) -> tuple[Floats, Floats]:
    """Edges and values; the last value twice, for it ends the last step. What lies before the first and after the last one is left out."""
    rate = windows.rate_bps() / scale
    known = np.nonzero(~np.isnan(rate))[0]
    if not len(known):
        return np.empty(0), np.empty(0)
    a, b = int(known[0]), int(known[-1]) + 1
    return windows.edges_ns[a : b + 1] / S, np.append(rate[a:b], rate[b - 1])


def throughput(run: Run, direction: str, *, only_sum: bool = False) -> Panel | None:
    found = flows(run, direction)
    if found is None:
        return _imported_rates(run, direction)
    total = found.total
    several = len(found.series) > 1
    scale, unit = unit_of([w.rate_bps() for w in ([total] if several else []) + found.windows], BITS)
    drawn: list[Series] = []
    if not (several and only_sum) and len(found.series) <= MANY:
        looks = palette.looks([_wish(series) for series in found.series])
        for series, windows, (color, dash) in zip(found.series, found.windows, looks, strict=True):
            x, y = _steps(windows, scale)
            drawn.append(Series(_key(series), _label(series), "step", x, y, color, dash, hint=series.name))
    elif several and not only_sum:
        drawn.append(_spread(found, scale))
    if several:
        x, y = _steps(total, scale)
        drawn.append(
            Series(f"{direction} sum", f"sum of {len(found.series)}", "step", x, y, palette.INK, width=1.8, hint="bytes of all flows")
        )
    word = DIRECTIONS[direction]
    return Panel(
        f"throughput-{direction}",
        f"{word} throughput",
        _time_axis(),
        Axis("Throughput", unit),
        tuple(drawn),
        bands=bands(run),
        notes=_coverage_notes(found, total),
    )


def _spread(found: Flows, scale: float) -> Series:
    """Many flows as their mean and the range between the slowest and the fastest."""
    rates = np.stack([windows.rate_bps() / scale for windows in found.windows])
    known = ~np.isnan(rates)
    some = known.any(axis=0)
    cuts = found.windows[0].edges_ns / S
    mean, low, high = (np.full(rates.shape[1], np.nan) for _ in range(3))
    mean[some] = np.nanmean(rates[:, some], axis=0)
    low[some], high[some] = np.nanmin(rates[:, some], axis=0), np.nanmax(rates[:, some], axis=0)
    ends = np.repeat([mean[-1:], low[-1:], high[-1:]], 1, axis=1)
    return Series(
        "mean of flows",
        f"mean of {len(found.series)}, band: slowest to fastest",
        "step",
        cuts,
        np.append(mean, ends[0]),
        palette.FIRST,
        low=np.append(low, ends[1]),
        high=np.append(high, ends[2]),
    )


def _coverage_notes(found: Flows, total: Windows) -> tuple[str, ...]:
    width = int(total.edges_ns[1] - total.edges_ns[0]) / 1e6 if len(total.edges_ns) > 1 else 0
    end = "sending" if found.sender == len(found.series) else "receiving"
    notes = [
        f"Bytes that arrived at the {end} end, over windows of {width:g} ms."
        if end == "receiving"
        else f"Bytes that the sending end counted, over windows of {width:g} ms: there are no counts of the receiving end."
    ]
    if 0 < found.sender < len(found.series):
        notes.append(f"{_count(found.sender, 'flow')} of {len(found.series)} counted at the sending end.")
    if len(found.series) > 1:
        # Before the first flow began and after the last one ended there is nothing to be covered.
        seen = np.stack([windows.coverage > 0 for windows in found.windows]).any(axis=0)
        inside = np.nonzero(seen)[0]
        missing = int(np.isnan(total.bytes[inside[0] : inside[-1] + 1]).sum()) if len(inside) else 0
        edge = int(len(inside) > 0 and np.isnan(total.bytes[inside[0]])) + int(len(inside) > 1 and np.isnan(total.bytes[inside[-1]]))
        if missing > edge:
            share = 100 * (1 - missing / (inside[-1] + 1 - inside[0]))
            notes.append(
                f"The sum is drawn only where all {len(found.series)} flows were seen: {share:.1f} % of the time between the first byte "
                "and the last."
            )
    empty = [_label(series) for series, windows in zip(found.series, found.windows, strict=True) if np.isnan(windows.bytes).all()]
    if empty:
        notes.append(f"Without any samples: {', '.join(empty[:8])}{' and more' if len(empty) > 8 else ''}.")
    return tuple(notes)


def _imported_rates(run: Run, direction: str) -> Panel | None:
    """Rates as another tool has stored them: drawn as they are, and not added up."""
    words = {"up": ("upload",), "down": ("download",)}[direction]
    found = [
        series
        for series in run.meta.of_kind("value")
        if "bit/s" in series.unit
        and (series.direction == direction or (series.direction is None and any(w in series.name.lower() for w in words)))
    ]
    if not found:
        return None
    panel = values(run, f"throughput-{direction}", f"{DIRECTIONS[direction]} throughput", found, "Throughput")
    if panel is None:
        return None
    return replace(
        panel,
        notes=("Rates as the importing tool stored them; sums of them would not be sums of bytes, so none is drawn here.", *panel.notes),
    )


def totals(run: Run) -> Panel | None:
    """Both directions, each as its sum."""
    parts = {direction: flows(run, direction) for direction in ("down", "up")}
    there = {direction: found.total for direction, found in parts.items() if found is not None}
    if not there:
        return None
    scale, unit = unit_of([total.rate_bps() for total in there.values()], BITS)
    drawn = []
    for i, (direction, total) in enumerate(there.items()):
        x, y = _steps(total, scale)
        count = len(parts[direction].series)  # type: ignore[union-attr]
        label = f"{DIRECTIONS[direction].lower()}, sum of {_count(count, 'flow')}"
        drawn.append(Series(f"{direction} sum", label, "step", x, y, palette.FIRST + i, width=1.6))
    return Panel("totals", "Total throughput", _time_axis(), Axis("Throughput", unit), tuple(drawn), bands=bands(run))


# ----------------------------------------------------------------------------------------------------------------- latency


def _latencies(run: Run) -> list[Stored]:
    return [series for series in run.meta.of_kind("latency") if len(run.arrays(series)["t_ns"])]


def _looks(found: Sequence[Stored]) -> list[palette.Look]:
    return palette.looks([_wish(series) for series in found])


def _probes(found: Sequence[Stored], run: Run, column: str) -> list[tuple[Stored, dict[str, Any], Floats]]:
    """Series that have any value in that column, with the values; what is not answered has none."""
    made = []
    for series in found:
        arrays = run.arrays(series)
        value = np.where(arrays["state"] == ANSWERED, arrays[column], np.nan)
        if not np.isnan(value).all():
            made.append((series, arrays, value))
    return made


def latency(run: Run) -> Panel | None:
    probes = _probes(_latencies(run), run, "rtt_ns")
    if not probes:
        found = [series for series in run.meta.of_kind("value") if series.unit == "ms" and "ping" in series.name.lower()]
        return values(run, "latency", "Round-trip time", found, "Round trip") if found else None
    scale, unit = unit_of([value for _, _, value in probes], DELAYS)
    drawn, notes = [], []
    for (series, arrays, value), (color, dash) in zip(probes, _looks([p[0] for p in probes]), strict=True):
        lost = np.isin(arrays["state"], (LOST, LOST_FORWARD, LOST_BACKWARD))
        kept = lost | (arrays["state"] == ANSWERED)
        drawn.append(
            Series(
                _key(series), _label(series), "line", arrays["t_ns"][kept] / S, value[kept] / scale, color, dash, 1.0,
                lost=arrays["t_ns"][lost] / S if lost.any() else None, hint=series.name,
            )
        )  # fmt: skip
        if note := _loss_note(_label(series), arrays["state"]):
            notes.append(note)
    if any(series.lost is not None for series in drawn):
        notes.insert(0, "Crosses along the top: probes that got no answer; the line breaks there.")
    return Panel("latency", "Round-trip time", _time_axis(), Axis("Round trip", unit), tuple(drawn), bands=bands(run), notes=tuple(notes))


def _loss_note(label: str, state: NDArray[Any]) -> str:
    counts = {code: int((state == code).sum()) for code in (LOST, LOST_FORWARD, LOST_BACKWARD, FAILED, SKIPPED)}
    lost = counts[LOST] + counts[LOST_FORWARD] + counts[LOST_BACKWARD]
    sent = int((state == ANSWERED).sum()) + lost
    parts = []
    if lost:
        ways = [f"{counts[code]} on the way {where}" for code, where in ((LOST_FORWARD, "there"), (LOST_BACKWARD, "back")) if counts[code]]
        parts.append(f"{lost:,} of {sent:,} lost ({100 * lost / sent:.2f} %{': ' + ', '.join(ways) if ways else ''})")
    if counts[FAILED]:
        parts.append(f"{_count(counts[FAILED], 'probe')} could not be sent")
    if counts[SKIPPED]:
        parts.append(f"{counts[SKIPPED]:,} left out by us")
    return f"{label}: {'; '.join(parts)}." if parts else ""


def one_way(run: Run, way: str) -> Panel | None:
    """`way` is forward (to the far end) or backward."""
    probes = _probes(_latencies(run), run, f"{way}_ns")
    if not probes:
        return None
    scale, unit = unit_of([value for _, _, value in probes], DELAYS)
    drawn: list[Series] = []
    bounds: list[float] = []
    for (series, arrays, value), (color, dash) in zip(probes, _looks([p[0] for p in probes]), strict=True):
        known = ~np.isnan(value) | np.isin(arrays["state"], (LOST, LOST_FORWARD, LOST_BACKWARD))
        bound = arrays[f"{way}_bound_ns"][known]
        y = value[known] / scale
        wide = None if np.isnan(bound).all() else np.where(np.isnan(bound), 0, bound) / scale
        if wide is not None:
            bounds.append(float(np.nanmax(bound)))
        drawn.append(
            Series(
                _key(series), _label(series), "line", arrays["t_ns"][known] / S, y, color, dash, 1.0,
                low=None if wide is None else y - wide, high=None if wide is None else y + wide, hint=series.name,
            )
        )  # fmt: skip
    title = "One-way delay, to the far end" if way == "forward" else "One-way delay, back to us"
    if bounds:
        size, name = unit_of([np.asarray(bounds)], DELAYS)
        note = f"The offset between the two clocks is known to ±{max(bounds) / size:.3g} {name}; the band is that wide."
    else:
        note = "How well the offset between the two clocks is known was not recorded."
    return Panel(f"oneway-{way}", title, _time_axis(), Axis("One-way delay", unit), tuple(drawn), bands=bands(run), notes=(note,))


def split_by_load(run: Run, t_ns: NDArray[Any], y: Floats) -> tuple[Floats, Floats]:
    """Idle (before the load) and under load. A run without phases is idle throughout."""
    load, idle = run.meta.phase("load"), run.meta.phase("idle_before")
    if load is None:
        return y, np.empty(0)
    before = (t_ns < load.from_ns) if idle is None else (t_ns >= idle.from_ns) & (t_ns < idle.to_ns)
    return y[before], y[(t_ns >= load.from_ns) & (t_ns < load.to_ns)]


def latency_cdf(run: Run) -> Panel | None:
    probes = _probes(_latencies(run), run, "rtt_ns")
    parts = [(series, arrays["t_ns"], value, 1.0) for series, arrays, value in probes]
    if not parts:
        found = [series for series in run.meta.of_kind("value") if series.unit == "ms" and "ping" in series.name.lower()]
        parts = [(series, run.arrays(series)["t_ns"], run.arrays(series)["value"], 1e6) for series in found]
    return _cdf(run, parts, "latency-cdf", "Distribution of round-trip times", "Round trip", DELAYS)


def _cdf(
    run: Run,
    parts: Sequence[tuple[Stored, NDArray[Any], Floats, float]],
    key: str,
    title: str,
    label: str,
    units: Sequence[tuple[float, str]],
) -> Panel | None:
    whole = [value * factor for _, _, value, factor in parts]
    if not any(len(v) and not np.isnan(v).all() for v in whole):
        return None
    scale, unit = unit_of(whole, units)
    drawn = []
    thinned = False
    for (series, t_ns, _, _), value, (color, _dash) in zip(parts, whole, _looks([p[0] for p in parts]), strict=True):
        idle, loaded = split_by_load(run, t_ns, value / scale)
        for name, some, dash in (("load", loaded, ()), ("idle", idle, (2.0, 2.0))):
            exact = ecdf(some)
            if not len(exact[0]):
                continue
            x, share = thin_ecdf(*exact, CDF_POINTS)
            thinned |= len(x) < len(exact[0])
            kind = "" if run.meta.phase("load") is None else f", {name}"
            # It begins at zero: where the least value stands, the share rises from nothing.
            drawn.append(
                Series(
                    _key(series) + ("" if name == "load" or not kind else " (idle)"), _label(series) + kind, "step",
                    np.concatenate([x[:1], x, x[-1:]]), np.concatenate([[0], share, share[-1:]]) * 100, color, dash if kind else (), 1.5,
                    hint=f"{series.name}{kind}: {np.count_nonzero(~np.isnan(some)):,} samples",
                )
            )  # fmt: skip
    if not drawn:
        return None
    notes = ["Lost probes have no delay and are not in it."]
    if run.meta.phase("load") is not None:
        notes.insert(0, "Solid: under load. Dotted: idle, before it.")
    if thinned:
        notes.append(f"Each curve is drawn through some {CDF_POINTS} of its points; the extreme values are all there.")
    return Panel(
        key, title, Axis(label, unit, zero=True), Axis("Share at or below", "%"), tuple(drawn), link="", notes=tuple(notes), log="x"
    )


# ---------------------------------------------------------------------------------------------------------------- ourselves


def lateness(run: Run) -> Panel | None:
    probes = []
    for series in _latencies(run):
        arrays = run.arrays(series)
        if not np.isnan(arrays["lateness_ns"]).all():
            probes.append((series, arrays))
    if not probes:
        return None
    # A busy machine is late by milliseconds, a good one by less than one.
    scale, unit = unit_of([arrays["lateness_ns"] / 10 for _, arrays in probes], DELAYS[:2])
    drawn, early, furthest = [], 0, 0.0
    limits = set()
    for (series, arrays), (color, _) in zip(probes, _looks([p[0] for p in probes]), strict=True):
        late = arrays["lateness_ns"]
        before = late < 0
        early += int(before.sum())
        furthest = max(furthest, float(-late[before].min(initial=0)))
        there = ~np.isnan(late)
        drawn.append(
            Series(
                _key(series), _label(series), "points", arrays["t_ns"][there] / S, late[there] / scale, color, width=2.0, hint=series.name
            )
        )
        runner = run.meta.runner_of(series)
        if runner is not None and runner.interval_ns:
            limits.add(max(runner.interval_ns / 10, 100_000))
    notes = ["How much later than planned each probe left, by our own record."]
    if len(limits) == 1:
        limit = limits.pop() / scale
        span = [s.x for s in drawn if len(s.x)]
        x = np.array([min(v[0] for v in span), max(v[-1] for v in span)])
        drawn.append(Series("limit of lateness", "counts as late", "line", x, np.full(2, limit), palette.GREY, (6, 3), 1.2))
        notes.append("More than 1 % of the probes above the line make a run degraded, more than 10 % invalid.")
    if early:
        notes.append(
            f"{_count(early, 'probe')} left early, by at most {furthest / scale:.3g} {unit}; a logarithmic scale cannot show them."
        )
    return Panel(
        "lateness",
        "Our own lateness",
        _time_axis(),
        Axis("Lateness", unit, scale="log", zero=False),
        tuple(drawn),
        bands=bands(run),
        notes=tuple(notes),
    )


def tcp(run: Run, column: str, key: str, title: str, label: str, scale: float, unit: str, *, zero: bool = True) -> Panel | None:
    """A field of the kernel's TCP_INFO, of the sending end where both were asked."""
    stored = run.meta.of_kind("tcp_info")
    found = []
    for series in stored:
        arrays = run.arrays(series)
        sender = 0 if series.direction == "up" else 1
        there = arrays["end"] == sender
        if not there.any():
            there = np.ones(len(there), bool)
        y = arrays[column][there]
        if len(y) and not np.isnan(y).all():
            found.append((series, arrays["t_ns"][there], y))
    if not found:
        return None
    ways = {series.direction for series, _, _ in found}
    drawn = []
    for (series, t_ns, y), (color, dash) in zip(
        found[:MANY], palette.looks([_wish(s) if len(ways) < 2 else None for s, _, _ in found[:MANY]]), strict=True
    ):
        name = series.name if len(ways) > 1 else _label(series)
        drawn.append(Series(_key(series), name, "line", t_ns / S, y / scale, color, dash, hint=series.name))
    notes = (f"The first {MANY} of {len(found)} flows.",) if len(found) > MANY else ()
    return Panel(key, title, _time_axis(), Axis(label, unit, zero=zero), tuple(drawn), bands=bands(run), notes=notes)


def cwnd(run: Run) -> Panel | None:
    return tcp(run, "cwnd_segments", "cwnd", "Congestion window", "Window", 1, "segments")


def tcp_rtt(run: Run) -> Panel | None:
    return tcp(run, "rtt_us", "tcp-rtt", "Round-trip time as TCP knows it", "Smoothed round trip", 1e3, "ms")


def delivery(run: Run) -> Panel | None:
    return tcp(run, "delivery_rate_bps", "delivery", "Delivery rate as TCP knows it", "Delivery rate", 1e6, "Mbit/s")


def retransmits(run: Run) -> Panel | None:
    return tcp(run, "retransmits", "retransmits", "Retransmitted segments so far", "Retransmits", 1, "segments")


def queue(run: Run) -> Panel | None:
    found = [(series, run.arrays(series)) for series in run.meta.of_kind("qdisc")]
    found = [(series, arrays) for series, arrays in found if len(arrays["t_ns"])]
    if not found:
        return None
    scale, unit = unit_of([arrays["backlog_bytes"] for _, arrays in found], BYTES)
    drawn = [
        Series(_key(series), series.name, "line", arrays["t_ns"] / S, np.asarray(arrays["backlog_bytes"], np.float64) / scale, color, dash)
        for (series, arrays), (color, dash) in zip(found, palette.looks([None] * len(found)), strict=True)
    ]
    return Panel("queue", "Queue", _time_axis(), Axis("Backlog", unit), tuple(drawn), bands=bands(run))


def drops(run: Run) -> Panel | None:
    """What the queues dropped and marked, per window."""
    drawn: list[Series] = []
    found = [(series, run.arrays(series)) for series in run.meta.of_kind("qdisc")]
    found = [(series, arrays) for series, arrays in found if len(arrays["t_ns"]) > 1]
    looks = palette.looks([None] * len(found))
    for (series, arrays), (color, dash) in zip(found, looks, strict=True):
        for column, how in (("drops", dash), ("marks", (1.0, 2.0))):
            counted = np.asarray(arrays[column], np.float64)
            if np.isnan(counted).all() or (column == "marks" and not np.nanmax(counted)):
                continue
            x = arrays["t_ns"] / S
            y = np.diff(counted)
            y[y < 0] = np.nan  # a counter that began anew
            drawn.append(Series(f"{_key(series)} {column}", f"{series.name}: {column}", "step", x, np.append(y, y[-1]), color, how))
    if not drawn:
        return None
    width = interval_of(found[0][1]["t_ns"]) / 1e6
    return Panel("drops", "Drops and marks", _time_axis(), Axis(f"Packets in {width:.4g} ms", ""), tuple(drawn), bands=bands(run))


def host(run: Run) -> Panel | None:
    drawn = []
    for series in run.meta.of_kind("host"):
        arrays = run.arrays(series)
        for column, name in (("cpu_percent", "busy"), ("steal_percent", "steal")):
            if len(arrays["t_ns"]) and not np.isnan(arrays[column]).all():
                drawn.append((f"{_key(series)} {name}", f"{series.name}: {name}", arrays["t_ns"] / S, arrays[column]))
    if not drawn:
        return None
    looks = palette.looks([None] * len(drawn))
    made = tuple(Series(k, n, "line", x, y, color, dash) for (k, n, x, y), (color, dash) in zip(drawn, looks, strict=True))
    notes = ("Above 90 % for more than 5 % of the run makes it degraded.",)
    return Panel("host", "Processors", _time_axis(), Axis("Of all processors", "%"), made, bands=bands(run), notes=notes)


# ------------------------------------------------------------------------------------------------------------------- boxes


def box(key: str, title: str, label: str, unit: str, found: Sequence[tuple[str, str, palette.Look, Floats]], note: str) -> Panel | None:
    """(key, name, look, values) of each: from the 1st to the 99th percentile, the quartiles, and the median."""
    drawn: list[Series] = []
    names: list[str] = []
    for k, name, (color, _), y in found:
        known = y[~np.isnan(y)]
        if len(known):
            five = np.quantile(known, (0.01, 0.25, 0.5, 0.75, 0.99), method="inverted_cdf")
            drawn.append(Series(k, name, "box", np.full(5, float(len(names))), five, color, width=1.5, hint=f"{len(known):,} samples"))
            names.append(name)
    if not drawn:
        return None
    notes = ("Box: the middle half, with the median. Line: from the 1st to the 99th percentile.", note)
    return Panel(
        key, title, Axis("", "", zero=False, names=tuple(names)), Axis(label, unit), tuple(drawn), link="", notes=tuple(filter(None, notes))
    )


def box_throughput(run: Run) -> Panel | None:
    parts = {direction: flows(run, direction) for direction in ("down", "up")}
    rates = {direction: _loaded_rate(run, found.total) for direction, found in parts.items() if found is not None}
    if not rates:
        return None
    scale, unit = unit_of(list(rates.values()), BITS)
    found = [
        (f"{d} sum", f"{DIRECTIONS[d].lower()} sum", (palette.FIRST + i, ()), rate / scale) for i, (d, rate) in enumerate(rates.items())
    ]
    return box("box-throughput", "Total throughput under load", "Throughput", unit, found, "")


def _loaded_rate(run: Run, windows: Windows) -> Floats:
    load = run.meta.phase("load")
    rate = windows.rate_bps()
    if load is None:
        return rate
    return rate[(windows.edges_ns[:-1] >= load.from_ns) & (windows.edges_ns[1:] <= load.to_ns)]


def box_latency(run: Run) -> Panel | None:
    probes = _probes(_latencies(run), run, "rtt_ns")
    if not probes:
        return None
    phases = run.meta.phase("load") is not None
    parts = [split_by_load(run, arrays["t_ns"], value)[1 if phases else 0] for _, arrays, value in probes]
    scale, unit = unit_of(parts, DELAYS)
    looks = _looks([series for series, _, _ in probes])
    found = [(_key(series), _label(series), look, part / scale) for (series, _, _), look, part in zip(probes, looks, parts, strict=True)]
    title = "Round-trip time under load" if phases else "Round-trip time"
    return box("box-latency", title, "Round trip", unit, found, "Lost probes have no delay and are not in it.")


# ------------------------------------------------------------------------------------------------------------------ others


def values(run: Run, key: str, title: str, found: Sequence[Stored], label: str) -> Panel | None:
    """Numbers of one unit as they are."""
    drawn = []
    found = [series for series in found if len(run.arrays(series)["t_ns"])]
    for series, (color, dash) in zip(found[:MANY], palette.looks([_wish(s) for s in found[:MANY]]), strict=True):
        arrays = run.arrays(series)
        drawn.append(Series(_key(series), _label(series), "line", arrays["t_ns"] / S, arrays["value"], color, dash, hint=series.name))
    if not drawn:
        return None
    notes = (f"The first {MANY} of {len(found)} series.",) if len(found) > MANY else ()
    return Panel(key, title, _time_axis(), Axis(label, found[0].unit), tuple(drawn), bands=bands(run), notes=notes)


def others(run: Run) -> list[Panel]:
    """A panel for each unit of the values that no other panel shows."""
    shown = set()
    for panel in (_imported_rates(run, "up"), _imported_rates(run, "down"), latency(run)):
        shown |= {series.key for series in panel.series} if panel is not None else set()
    groups: dict[tuple[str, str], list[Stored]] = {}
    for series in run.meta.of_kind("value"):
        if _key(series) not in shown:
            groups.setdefault((series.group or series.name.split("::")[0], series.unit), []).append(series)
    made = [values(run, f"value-{i}", group, found, "Value") for i, ((group, _), found) in enumerate(groups.items())]
    return [panel for panel in made if panel is not None]


Maker = Callable[[Run], Panel | None]

MAKERS: dict[str, Maker] = {
    "download": lambda run: throughput(run, "down"),
    "upload": lambda run: throughput(run, "up"),
    "totals": totals,
    "latency": latency,
    "to": lambda run: one_way(run, "forward"),
    "back": lambda run: one_way(run, "backward"),
    "latency_cdf": latency_cdf,
    "box_throughput": box_throughput,
    "box_latency": box_latency,
    "lateness": lateness,
    "cwnd": cwnd,
    "tcp_rtt": tcp_rtt,
    "delivery": delivery,
    "retransmits": retransmits,
    "queue": queue,
    "drops": drops,
    "host": host,
}

__all__ = ["MAKERS", "TIME", "Maker", "bands", "flows", "others", "split_by_load", "throughput"]
