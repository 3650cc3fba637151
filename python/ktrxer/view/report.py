# SPDX-License-Identifier: MIT OR Apache-2.0
"""Converts one or more runs to the data of a page, which web/src/data.ts reads: figures, verdict, plots, and the command to repeat it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ktrxer
from ktrxer.analyse.compare import amount
from ktrxer.analyse.grouping import value_of
from ktrxer.figures.delays import ROUND_TRIP, Direction, headline
from ktrxer.panels import order, palette, plots
from ktrxer.panels.headline import Headline, percent, rate_unit, shown, three
from ktrxer.panels.headline import headline as in_words
from ktrxer.panels.model import Panel
from ktrxer.panels.parts import count_of
from ktrxer.statistics.latency import Delays
from ktrxer.store import Meta, Run, Runner, StoreError
from ktrxer.store.reasons import as_json
from ktrxer.store.run import being_written
from ktrxer.summary.figures import summarise
from ktrxer.summary.model import Summary
from ktrxer.summary.text import (
    by_class,
    dropped_here,
    late_of,
    limited_by,
    named,
    not_computed,
    not_in_figures,
    not_known,
    places,
    withdrawn,
)
from ktrxer.units import share
from ktrxer.view import pack
from ktrxer.view.arguments import MOST_POINTS
from ktrxer.view.page import plain

SCHEMA = "ktrxer-report/1"
MOST_EVENTS = 500
MOST_COMMANDS = 200
MOST_SERIES = 200
THRESHOLDS = (
    "degraded: the error bound of a headline figure is above its tolerance (5 %, of a delay at least 20 us; of the loss 0.5 percentage "
    "points), or a reason names it; invalid: a figure has no bound, there is no answer, or accounts do not close"
)
CUT_OFF = "The run was not finished: its samples end where the recording ended. `ktrxer recover` completes the file."
RUNNING = "The run is still being recorded: these are its samples so far."


@dataclass(frozen=True)
class Readable:
    """A run without its unreadable parts: reading it raises no further error. `damage` has a sentence for each part that cannot be read."""

    run: Run
    damage: tuple[str, ...]


def readable(run: Run) -> Readable:
    damage = []
    good = {}
    for kind in run.kinds():
        try:
            table = run.table(kind)
        except StoreError as error:
            damage.append(f"Its {kind} samples cannot be read: {error}")
        else:
            good[kind] = lambda table=table: table
    if not run.finished:
        damage.insert(0, RUNNING if being_written(run.path) else CUT_OFF)
    if not damage:
        return Readable(run, ())
    return Readable(Run(run.path, run.meta, good, finished=run.finished), tuple(damage))


@dataclass(frozen=True)
class Front:
    """The part of the page before the runs."""

    title: str
    sentences: list[str]  # the answer
    tables: list[dict[str, Any]]
    panels: list[Panel]


def build(runs: Sequence[Readable], created: str, most: int = MOST_POINTS, front: Front | None = None) -> tuple[str, dict[str, Any]]:
    """The title and the data of the page."""
    pool = pack.Pool()
    sums = [summarise(one.run) for one in runs]
    words = [in_words(one) for one in sums]
    parts = [order.report_panels(one.run, found) for one, found in zip(runs, words, strict=True)]
    titles = plots.labels([one.run for one in runs])
    made = [
        _run(one, title, panels, s, found, pool, most)
        for one, title, panels, s, found in zip(runs, titles, parts, sums, words, strict=True)
    ]
    title = front.title if front is not None else titles[0] if len(runs) == 1 else f"{len(runs)} runs compared"
    overview = None
    if len(runs) > 1:
        chosen = ("latency", "throughput-down", "throughput-up", "latency-cdf")
        picked = [[panel for key in chosen for panel in panels if panel.key == key] for panels in parts]
        over = plots.overlay(list(zip(titles, picked, strict=True)))
        if front is None:
            front = Front(title, [f"{one}: {found.text}" for one, found in zip(titles, words, strict=True)], [], [])
        overview = {
            "sentences": front.sentences,
            "tables": [*front.tables, _comparison(titles, made)],
            "panels": [pack.panel(panel, pool, most) for panel in (*front.panels, *over)],
        }
    data = {
        "schema": SCHEMA,
        "title": title,
        "generator": f"ktrxer {ktrxer.__version__}",
        "created": created,
        "palette": {"light": list(palette.LIGHT), "dark": list(palette.DARK)},
        "arrays": pool.packed,
        "overview": overview,
        "runs": made,
    }
    return title, data


def _run(one: Readable, title: str, panels: Sequence[Panel], s: Summary, found: Headline, pool: pack.Pool, most: int) -> dict[str, Any]:
    run, meta = one.run, one.run.meta
    figures, tables = summary(s)
    return {
        "title": title,
        "subtitle": plots.subtitle_of(run),
        "verdict": meta.verdict or "unknown",
        "headline": {"kind": found.kind, "text": found.text, "details": list(found.details)},
        "reasons": as_json(one for one in meta.reasons if one not in found.reasons),
        "damage": list(one.damage),
        "facts": [[name, value] for name, value in facts(run) if value],
        "figures": figures,
        "tables": tables,
        "panels": [pack.panel(panel, pool, most) for panel in panels],
        "commands": [_command(runner) for runner in meta.runners[:MOST_COMMANDS]],
        "repeat": [shlex.join(meta.command)] if meta.command else [],
        "events": _events(run),
        "metadata": plain({"settings": meta.settings, **meta.metadata, "accounts": meta.accounts}),
    }


# ----------------------------------------------------------------------------------------------------------------- summary

KINDS = "The hosts process each kind of probe differently: compare only figures of one kind."
NONE, MINUS = "\u2013", "\u2212"
Made = tuple[list[dict[str, str]], list[dict[str, Any]]]


def summary(made: Summary) -> Made:
    """The figures of `ktrxer summary` as tiles and tables."""
    tables = [_delays(made), _throughputs(made), _losses(made), _estimates(made), _routers(made), _each(made)]
    return _tiles(made), [one for one in tables if one["rows"]]


def _tiles(s: Summary) -> list[dict[str, str]]:
    tiles = []
    for direction, label in (("down", "Download"), ("up", "Upload")):
        found = next((t for t in s.throughput if t.direction == direction), None)
        if found is not None:
            value, unit = _rate(found.mean_mbps)
            tiles.append(_tile(label, value, unit, found.note or f"{count_of(found.flows, 'flow')} over {found.seconds:.1f}\u00a0s"))
    trip = headline(s.latency)
    if trip is not None:
        for label, delays in (("Latency, idle", trip.idle), ("Latency, loaded", trip.loaded)):
            if delays is not None:
                value, unit, between = _median(delays)
                note = f"{trip.probes}, p50{between}; p99 {' '.join(_delay(delays.p99))}"
                tiles.append(_tile(label, value, unit, note, trip.probes))
    under = next((one for one in s.loss if one.name == "load"), None) or next(iter(s.loss), None)
    if under is not None:
        where = "under load" if under.name == "load" else "idle"
        lost_share, unit = share(under.lost, under.sent).split()
        note = f"{under.lost:,} of {under.sent:,} probes ({percent(under.lost, under.sent)})"
        tiles.append(_tile(f"Loss, {where}", lost_share, unit, note))
    if s.responsiveness is not None:
        r = s.responsiveness
        probes = f" ({r.probes})" if r.probes else ""
        note = f"round trips a minute under load{probes}: {r.rating}{limited_by(r)}"
        tiles.append(_tile("Responsiveness", figure(r.rpm), "RPM", note, r.probes))
    if s.grade is not None:
        lost = math.isinf(s.grade.added_ms)
        note = "half of the probes are lost under load" if lost else f"load adds {' '.join(_delay(s.grade.added_ms))}"
        note += f" ({s.grade.probes})"
        if s.grade.outage_ms:
            note = f"an outage of {' '.join(_delay(s.grade.outage_ms))}; {note}"
        tiles.append(_tile("Grade", s.grade.letter, "", note, s.grade.probes))
    return tiles


def _tile(label: str, value: str, unit: str, note: str, probes: str = "") -> dict[str, str]:
    """`probes`: the kind of probes of the figure, if the run has several kinds."""
    return {"label": label, "value": value, "unit": unit, "note": note, "probes": probes}


def _rate(mbps: float | None) -> tuple[str, str]:
    if mbps is None:
        return NONE, ""
    size, unit = rate_unit(mbps)
    return figure(mbps / size), unit


def _delay(ms: float) -> tuple[str, str]:
    if math.isinf(ms):
        return "lost", ""
    return (figure(ms), "ms") if ms >= 1 or ms == 0 else (figure(ms * 1e3), "µs")


def _median(found: Delays) -> tuple[str, str, str]:
    """The p50 with as many digits as its interval supports, its unit, and the interval as text; three digits without an interval."""
    low, high = found.p50_low, found.p50_high
    if low is None or high is None or not math.isfinite(high):
        value, unit = _delay(found.p50)
        return value, unit, ""
    factor, unit = (1.0, "ms") if found.p50 >= 1 else (1e3, "µs")
    half = max((high - low) / 2, 1e-6) * factor
    ends = [amount(end * factor, max(half, found.p50 * factor / 1000)) for end in (low, high)]
    return shown(found.p50 * factor, half), unit, f" (95 %: {ends[0]} to {ends[1]})" if ends[0] != ends[1] else ""


def _quantity(pair: tuple[str, str]) -> str:
    return " ".join(pair).strip()


def table(title: str, columns: Sequence[str], rows: list[list[str]], notes: Sequence[str] = ()) -> dict[str, Any]:
    return {"title": title, "columns": list(columns), "rows": rows, "notes": list(notes)}


def _delays(s: Summary) -> dict[str, Any]:
    rows = []
    for one in s.latency:
        cells = [_quantity(_delay(v)) for d in (one.idle,) if d is not None for v in (d.p50, d.p99)] or [NONE] * 2
        cells += [_quantity(_delay(v)) for d in (one.loaded,) if d is not None for v in (d.p50, d.p95, d.p99, d.max)] or [NONE] * 4
        if one.loaded is not None and math.isinf(one.loaded.p99):
            cells[-1] += " of those answered"
        bounds = [(one.idle_bound_ms, " idle, "), (one.bound_ms, " loaded")] if one.loaded is not None else [(one.bound_ms, "")]
        bound = "".join(f"±{_quantity(_delay(value))}{phase}" for value, phase in bounds if value is not None)
        rows.append([named(one), *cells, bound])
    columns = ["delay", "idle p50", "idle p99", "loaded p50", "loaded p95", "loaded p99", "loaded max", "uncertainty"]
    notes = [f"{by_class(one)}." for one in s.latency if one.name == ROUND_TRIP and one.classes_ms]
    if len({one.probes for one in s.latency}) > 1:
        notes.append(KINDS)
    late = s.lateness_us
    if late is not None:
        notes.append(
            f"Lateness of the probes: p50 {figure(late.p50)} µs, p99 {figure(late.p99)} µs, max {figure(late.max)} µs"
            + (f"; first of each train p50 {figure(s.first_lateness_us.p50)} µs" if s.first_lateness_us else "")
            + (f"; {late_of(s)}." if s.late else ".")
        )
    if s.own_drops is not None and s.own_drops.dropped:
        notes.append(f"{dropped_here(s.own_drops)}.")
    noted = ((s.left_out, not_in_figures), (s.unknown, not_known), (s.failed, not_computed), (s.contradicted, withdrawn))
    notes += [f"{text(s)}." for there, text in noted if there]
    if s.where:
        notes.append(f"Mean delay that load adds: {places(s.where)}.")
    notes += [text for one in s.latency if one.name == ROUND_TRIP and (text := _sure(one))]
    if s.grade is not None:
        notes.append(f"The grade is for the delay that load adds to the p50 of the {s.grade.probes} round trip: {s.grade.scale}.")
        if s.grade.outage_ms:
            notes.append("No grade is better than that of a delay as long as the longest outage.")
    return table("Latency by direction", columns, rows, notes)


def _sure(one: Direction) -> str:
    """The p50 of a round trip with their intervals, and the lost probes that its quantiles contain."""
    parts = []
    for name, found in (("idle", one.idle), ("under load", one.loaded)):
        if found is not None:
            value, unit, between = _median(found)
            lost = f", {found.lost:,} of {found.count + found.lost:,} lost, which count as longer than all others" if found.lost else ""
            parts.append(f"{name} {_quantity((value, unit))}{between}{lost}")
    return f"{named(one)}: p50 {'; '.join(parts)}." if parts else ""


def _throughputs(s: Summary) -> dict[str, Any]:
    rows = [[t.name, _quantity(_rate(t.mean_mbps)), str(t.flows), f"{t.seconds:.1f} s", t.note] for t in s.throughput]
    return table("Throughput", ["flows", "mean of their sum", "number", "over", "note"], rows)


def _losses(s: Summary) -> dict[str, Any]:
    rows = []
    for one in (*s.loss, *([s.loss_of_run] if s.loss_of_run is not None and s.loss_of_run.lost else [])):
        directions = map(str, (one.lost_up, one.lost_down, one.unknown))
        rows.append([one.name, f"{one.sent:,}", f"{one.lost:,}", share(one.lost, one.sent), *directions])
    return table("Lost probes", ["phase", "sent", "lost", "share", "lost up", "lost down", "unknown direction"], rows)


def _estimates(s: Summary) -> dict[str, Any]:
    rows = [[one.name, figure(one.value), figure(one.low), figure(one.high), one.unit] for one in s.estimates[:MOST_SERIES]]
    return table("Estimates, with the bounds of their methods", ["estimate", "value", "low", "high", "unit"], rows)


def _routers(s: Summary) -> dict[str, Any]:
    rows = [
        [one.name, str(one.hop), one.address, f"{one.answers:,}", *(_quantity(_delay(x)) if x is not None else NONE for x in times)]
        for one in s.hops[:MOST_SERIES] for times in ((one.min_ms, one.p50_ms, one.loaded_p50_ms),)
    ]  # fmt: skip
    return table("Routers", ["trace", "hop", "address", "answers", "min", "p50", "loaded: p50"], rows)


def _each(s: Summary) -> dict[str, Any]:
    rows = [
        [one.name, figure(one.idle_p50), figure(one.mean), figure(one.p50), figure(one.p99), one.unit, f"{one.count:,}", one.note]
        for one in s.series[:MOST_SERIES]
    ]
    notes = [f"The first {MOST_SERIES} of {len(s.series)} series."] if len(s.series) > MOST_SERIES else []
    columns = ["series", "idle p50", "mean", "p50", "p99", "unit", "samples", "note"]
    return table("Each series; delays under load, and idle", columns, rows, notes)


def figure(value: float | None) -> str:
    """A number with three digits: more would claim a precision that no estimate of a run has."""
    if value is None or not math.isfinite(value):
        return NONE
    size = abs(value)
    text = f"{size:.1e}" if size >= 1e9 or 0 < size < 1e-4 else three(size)
    return MINUS + text if value < 0 else text


def _comparison(titles: Sequence[str], made: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A table of the main figures of all runs."""
    labels = list(dict.fromkeys(f["label"] for one in made for f in one["figures"]))
    mixed = len({f["probes"] for one in made for f in one["figures"] if f["probes"]}) > 1
    rows = []
    for title, one in zip(titles, made, strict=True):
        known = {
            f["label"]: f"{f['value']} {f['unit']}".strip() + (f" ({f['probes']})" if mixed and f["probes"] else "") for f in one["figures"]
        }
        rows.append([title, one["verdict"], *(known.get(label, NONE) for label in labels)])
    return table("Comparison of the runs", ["run", "verdict", *labels], rows, [KINDS] if mixed else [])


# ------------------------------------------------------------------------------------------------------------------- facts


def facts(run: Run) -> list[tuple[str, str]]:
    meta = run.meta
    load = meta.phase("load")
    host = meta.host
    processors = "" if host.processors is None else count_of(host.processors, "processor")
    machine = ", ".join(filter(None, [host.kernel and f"Linux {host.kernel}", host.machine, processors]))
    under_load = f", under load from {load.from_ns / 1e9:g} s to {load.to_ns / 1e9:g} s" if load else ""
    return [
        ("test", meta.test),
        ("from", meta.host.name),
        ("to", ", ".join(meta.targets)),
        ("begun", f"{meta.created[:19].replace('T', ' ')} UTC" if meta.created else ""),
        ("length", f"{meta.length_ns / 1e9:g} s{under_load}"),
        ("congestion control", _property(meta, "cc")),
        ("topology", _property(meta, "topology")),
        ("own queue", _property(meta, "qdisc")),
        ("thresholds of the verdict", THRESHOLDS),
        ("machine", machine),
        ("file", run.path.name),
        ("measured by", f"ktrxer {meta.version}" if meta.version else ""),
        ("id", meta.id),
    ]


def _property(meta: Meta, key: str) -> str:
    return (value_of(meta, key) or "")[:200]


def _command(runner: Runner) -> dict[str, Any]:
    parts: list[str] = [runner.status]
    if runner.exit_status is not None:
        parts.append(f"exit status {runner.exit_status}" if runner.exit_status >= 0 else f"killed by signal {-runner.exit_status}")
    if runner.started_ns is not None and runner.ended_ns is not None:
        parts.append(f"{(runner.ended_ns - runner.started_ns) / 1e9:.1f} s")
    return {
        "name": runner.name,
        "host": runner.host or "",
        "outcome": ", ".join(parts),
        "ended": runner.status == "ended",
        "words": shlex.join(runner.argv),
        "output": runner.stderr_tail,
    }


def _events(run: Run) -> dict[str, Any] | None:
    table = run.table("events")
    if not len(table):
        return None
    runners = {runner.id: runner.name for runner in run.meta.runners}
    shown = table.slice(0, MOST_EVENTS).to_pylist()
    shown.sort(key=lambda row: row["t_ns"])
    rows = [[f"{row['t_ns'] / 1e9:.3f} s", row["name"], runners.get(row["runner"], ""), row["text"]] for row in shown]
    notes = [f"The first {MOST_EVENTS} of {len(table):,}."] if len(table) > MOST_EVENTS else []
    return {"title": "Events", "columns": ["time", "event", "runner", "text"], "rows": rows, "notes": notes}
