# SPDX-License-Identifier: MIT OR Apache-2.0
"""The end of a run, by itself or by `ktrxer recover`: one-way delays, losses by direction, accounts, the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ktrxer.figures.bounds import PROBERS, Judged, of_run
from ktrxer.places import is_here
from ktrxer.run import losses
from ktrxer.run.exact import exact_quantiles
from ktrxer.run.judge import judge
from ktrxer.run.phases import as_measured
from ktrxer.runners import Runner
from ktrxer.statistics.one_way import one_way
from ktrxer.store import Run, columns
from ktrxer.store.arrays import column, numbers
from ktrxer.store.columns import ANSWERED, DUPLICATE, LOST, LOST_DOWN, LOST_UP, TOO_LATE
from ktrxer.store.errors import one_line
from ktrxer.store.reasons import Reason, reason
from ktrxer.store.run import as_array

if TYPE_CHECKING:
    import pyarrow as pa

Noted = Iterable[Reason]


def close(run: Run, noted: Noted = (), runners: Mapping[str, Runner] | None = None) -> dict[str, pa.Table]:
    """The tables that replace the recorded ones; `run.meta` gets verdict, reasons and accounts. `runners`: those of the run, by name;
    without them those of ktrxer."""
    return closed(run, noted, runners)[1]


def closed(run: Run, noted: Noted = (), runners: Mapping[str, Runner] | None = None) -> tuple[Run, dict[str, pa.Table]]:
    """The same, with the closed run itself."""
    notes = list(noted)
    tables: dict[str, pa.Table] = {}
    if "latency" in run.kinds():
        tables["latency"] = _latency(run, notes)
    for kind in ("bytes", "tcp_info"):
        if kind in run.kinds():
            tables[kind] = _far(run, kind)
    run = run.with_tables(tables)
    if "latency" in tables:
        exact_quantiles(run)
    run.meta.phases = as_measured(run)
    bounds = _bounds(run, notes)
    built = judge(run, notes, runners, bounds)
    run.meta.verdict = built.verdict
    run.meta.reasons = built.reasons()
    run.meta.accounts = _accounts(run, tables) | {"bounds": [one.as_json() for one in bounds], "measured": built.measured}
    run.meta.settings["congestion_control"] = _congestion_controls(run)
    return run, tables


def _bounds(run: Run, notes: list[Reason]) -> list[Judged]:
    """A defect of an estimate must not lose the run."""
    try:
        return of_run(run)
    except Exception as error:
        notes.append(reason("check_failed", finding="error bounds", error=one_line(f"{type(error).__name__}: {error}", 200)))
        return []


def _latency(run: Run, notes: list[Reason]) -> pa.Table:
    table = _without_given_up(run.table("latency"))
    columns_ = {name: as_array(table, name).copy() for name in table.column_names}
    # Whole, where a double would not hold it: unix time in nanoseconds.
    far = numbers(table.column("far_ns"))[0]
    for series in run.meta.of_kind("latency"):
        mine = columns_["series"] == series.id
        wrong = mine & (columns_["rtt_ns"] < 0)
        if wrong.any():
            notes.append(reason("negative_round_trips", name=series.name, round_trips=int(wrong.sum())))
            columns_["rtt_ns"][wrong] = np.nan
        ok = mine & np.isin(columns_["state"], (ANSWERED, TOO_LATE)) & ~np.isnan(columns_["far_ns"]) & ~np.isnan(columns_["rtt_ns"])
        if not ok.any():
            continue
        own, far_queue, adjusted, held = (columns_[name][ok] for name in ("own_queue_ns", "far_queue_ns", "adjusted_ns", "dwell_ns"))
        runner = run.meta.runner_of(series)
        free_running = runner is not None and runner.result.get("clocks_adjusted", False)
        made = one_way(columns_["t_ns"][ok], columns_["rtt_ns"][ok], far[ok], own, far_queue, adjusted, free_running, held)
        if made is not None:
            columns_["up_ns"][ok] = np.rint(made.up_ns)
            columns_["down_ns"][ok] = np.rint(made.down_ns)
            for name in ("up_bound_ns", "down_bound_ns"):
                columns_[name][ok] = np.ceil(made.bound_ns)
            if made.steps:
                notes.append(reason("hosts_stepped", name=series.name, steps=made.steps))
        rows = {name: columns_[name][mine] for name in ("seq", "state", "far_seq")}
        columns_["state"][mine] = losses.placed(run.meta, series, rows, certain=True)
    replaced = {name: columns_[name] for name in ("rtt_ns", "up_ns", "down_ns", "up_bound_ns", "down_bound_ns", "state")}
    return _replace(table, "latency", replaced)


def _without_given_up(table: pa.Table) -> pa.Table:
    """A probe that was given up as lost, and answered later, has two rows. The answer is its result."""
    state, series, seq = (as_array(table, name) for name in ("state", "series", "seq"))
    if not (state == TOO_LATE).any():
        return table
    key = series.astype(np.int64) << 40 | seq.astype(np.int64)
    return table.filter(~((state == LOST) & np.isin(key, key[state == TOO_LATE])))


def _far(run: Run, kind: str) -> pa.Table:
    """Counts of the far end have a time of the far clock. The process of a flow estimates the offset of the two clocks; its last estimate
    is the best, so these times are converted again by it."""
    table = run.table(kind)
    names = ("t_ns", "series", "end", *(["bound_ns"] if kind == "bytes" else []))
    arrays = {name: as_array(table, name).copy() for name in names}
    far, missing = numbers(table.column("far_ns"))
    there = ~missing & (arrays["end"] == columns.REMOTE)
    for runner in run.meta.runners:
        clock = runner.result.get("clock", {})
        its = [series.id for series in run.meta.of_kind(kind) if series.runner == runner.id]
        mine = (arrays["end"] == columns.REMOTE) & np.isin(arrays["series"], its)
        offset, at, bound = (clock.get(name) for name in ("offset_ns", "at_ns", "bound_ns"))
        if offset is not None and at is not None:
            skew = clock.get("skew_ppm", 0)
            ppm = float(skew) if abs(skew) < 1000 else 0.0
            ours = far - offset
            ours -= np.rint((ours - at) * (ppm * 1e-6)).astype(np.int64)
            arrays["t_ns"] = np.where(mine & there, ours - run.meta.zero.monotonic_ns, arrays["t_ns"])
        if kind == "bytes" and bound is not None:
            arrays["bound_ns"][mine & np.isnan(arrays["bound_ns"])] = bound
    return _replace(table, kind, {name: arrays[name] for name in ("t_ns", *names[3:])})


def _replace(table: pa.Table, kind: str, arrays: dict[str, Any]) -> pa.Table:
    for name, values in arrays.items():
        field = columns.schema(kind).field(name)
        table = table.set_column(table.column_names.index(name), field, column(values, field.type))
    return table


def _congestion_controls(run: Run) -> dict[str, str]:
    """The congestion control of each TCP flow at its sender, by the kernel's name."""
    made: dict[str, str] = {}
    for series in run.meta.of_kind("bytes"):
        runner = run.meta.runner_of(series)
        flows = runner.result.get("flows", ()) if runner is not None else ()
        used = next((one.get("cc") for one in flows if one.get("flow") == series.flow), None)
        if used:
            made[series.name] = used[:16]
    return made


def _accounts(run: Run, tables: dict[str, pa.Table]) -> dict[str, Any]:
    """The store's own counts, to be compared with those of the processes (in runners[].end)."""
    accounts: dict[str, Any] = {"rows": {kind: len(run.table(kind)) for kind in run.kinds()}}
    if "latency" in tables:
        states = np.bincount(as_array(tables["latency"], "state"), minlength=TOO_LATE + 1).tolist()
        answered, lost, late = states[ANSWERED], sum(states[LOST : LOST_DOWN + 1]), states[TOO_LATE]
        accounts["probes"] = {
            "sent": answered + lost + late, "answered": answered, "lost": lost, "too_late": late, "duplicates": states[DUPLICATE],
        }  # fmt: skip
    if (spread := _start_spread(run, tables)) is not None:
        accounts["start_spread_ns"] = spread
    return accounts


def _start_spread(run: Run, tables: dict[str, pa.Table]) -> int | None:
    """The time between the first and the last of the first probes of all processes on this host that begin with the same instant; None:
    there are not several. They wait for it by themselves, so this host needs as long to wake them all."""
    if "latency" not in tables:
        return None
    series, t_ns, state = (as_array(tables["latency"], name) for name in ("series", "t_ns", "state"))
    sent = np.isin(state, (ANSWERED, LOST, LOST_UP, LOST_DOWN, TOO_LATE))
    firsts: dict[int, list[int]] = {}
    for runner in run.meta.runners:
        mine = sent & np.isin(series, [one.id for one in run.meta.of_kind("latency") if one.runner == runner.id])
        if runner.kind in PROBERS and is_here(runner.place) and runner.from_ns is not None and mine.any():
            firsts.setdefault(runner.from_ns, []).append(int(t_ns[mine].min()))
    return max((max(times) - min(times) for times in firsts.values() if len(times) > 1), default=None)
