# SPDX-License-Identifier: MIT OR Apache-2.0
"""Converts a Flent document to a run: its samples go to the tables of the store, by their kind.

    pings, irtt, netperf's UDP_RR       latency, at the send time (Flent's time minus the round trip), with lost ones (probes.py)
    rates over intervals                bytes, as cumulative counts (flows.py)
    tcp_cwnd, tcp_rtt, ... in between   tcp_info of the same flow
    sent_bytes, dropped, ...            qdisc
    load of the CPUs                    host
    any other number                    value, unchanged

A series without its own samples (sums, averages, jitter of a call) comes from Flent's grid, as a value.
"""

from __future__ import annotations

import math
import re
import statistics
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.flent import about, container, probes
from ktrxer.flent.document import Document, Point, check, time_ns, time_text
from ktrxer.flent.errors import FlentError
from ktrxer.flent.flows import flow
from ktrxer.flent.tables import DAY_S, Columns, Tables, numbers, times, whole
from ktrxer.flent.upgrade import first_sample, upgrade
from ktrxer.store import Host, Meta, Phase, Runner, Series, Zero, limits
from ktrxer.store.reasons import Reason
from ktrxer.store.reasons import read_all as read_reasons

if TYPE_CHECKING:
    import pyarrow as pa

    from ktrxer.store import Run

NAMESPACE = uuid.UUID("8a1c7d4e-2f0b-5d3a-9c66-0f1e2d3c4b5a")  # of ids that are computed from a file's content
EARLY_S, LONGER = 3.0, 1.5  # of flows that are not in the load that LENGTH and TOTAL_LENGTH give
TCP_INFO = {  # Flent's key: column, factor
    "tcp_cwnd": ("cwnd_segments", 1),
    "tcp_rtt": ("rtt_us", 1000),
    "tcp_rtt_var": ("rttvar_us", 1000),
    "tcp_pacing_rate": ("pacing_rate_bps", 1_000_000),
    "tcp_delivery_rate": ("delivery_rate_bps", 1_000_000),
}
QDISC = {
    "sent_bytes": "bytes",
    "sent_pkts": "packets",
    "overlimits": "overlimits",
    "requeues": "requeues",
    "backlog_bytes": "backlog_bytes",
    "backlog_pkts": "backlog_packets",
}
RUNNER_KINDS = {
    "PingRunner": "ping",
    "IrttRunner": "irtt",
    "UdpRttRunner": "irtt",
    "NetperfDemoRunner": "flow",
    "IperfCsvRunner": "flow",
    "TcRunner": "qdisc",
    "CpuStatsRunner": "host",
}

# Runners that measure nothing themselves.
COMPUTING = {"AverageRunner", "SmoothAverageRunner", "SumRunner", "DiffMinRunner", "FairnessRunner", "NullRunner"}
PROBED = {"t", "val", "dur", "seq", "size", "lost", "lost_dir", "owd_up", "owd_down", "ipdv", "ipdv_up", "ipdv_down"}
LOADS = ("TCP", "UDP upload", "UDP download", "VoIP", "Burst", "DASH")  # begins of the names of series that load the path


def open_run(path: Path) -> Run:
    from ktrxer.store import Run

    try:
        data = container.load(path)
        document = upgrade(check(container.parse(data)))
        meta, tables = convert(document)
    except FlentError as error:
        raise FlentError(f"{path}: {error}") from None
    except ValueError as error:  # from the store's own checks
        raise FlentError(f"{path}: {error}") from None
    run = Run(path, meta, {kind: _loader(kind, columns) for kind, columns in tables.items()})
    run.original = lambda: data
    return run


def _loader(kind: str, columns: Columns) -> Callable[[], pa.Table]:
    def load() -> pa.Table:
        import pyarrow as pa

        from ktrxer.store import columns as store_columns

        schema = store_columns.schema(kind)
        count = len(columns["t_ns"])
        arrays = [
            pa.array(columns[one.name], one.type) if one.name in columns else pa.nulls(count, one.type)
            for one in schema
        ]
        return pa.table(arrays, schema=schema)

    return load


def convert(document: Document) -> tuple[Meta, dict[str, Columns]]:
    """Convert a document of version 4 to a run."""
    t0_ns = _zero(document)
    tables = Tables(t0_ns / 1e9)
    runners: list[Runner] = []
    for name in _order(document):
        before = len(tables.series)
        _series(document, name, tables)
        runner = _runner(document, name, len(runners), found=len(tables.series) > before)
        interval = tables.interval_s.get(name)
        if runner is not None and interval is not None:
            runner.interval_ns = max(1, round(interval * 1e9))
        if runner is not None and len(runners) < limits.RUNNERS:
            runners.append(runner)
            for one in tables.series[before:]:
                one.runner = runner.id
    if tables.dropped:
        document.notes.append(f"{tables.dropped} samples left out: their times are impossible or not numbers")
    meta = _meta(document, tables, t0_ns, runners)
    return meta, tables.columns


def _zero(document: Document) -> int:
    stated, first = time_ns(document.metadata.get("T0")), first_sample(document)
    if first is not None and not document.made_up and math.isfinite(first) and abs(first) < 1e11:
        if stated is None:
            return round(first * 1e9)
        if abs(stated / 1e9 - first) > DAY_S:
            document.notes.append("T0 in this file is more than a day from its first sample: the run begins with that sample")
            return round(first * 1e9)
    return stated or time_ns(document.metadata.get("TIME")) or 0


def _order(document: Document) -> list[str]:
    """Names in Flent's own order, if the file has it. A result `a::b` is a separate series where the samples of `a` have no `b`."""
    names = dict.fromkeys([*document.raw, *document.results])
    keys: dict[str, set[str]] = {}

    def known(name: str) -> bool:
        parent, _, key = name.rpartition("::")
        if not document.raw.get(parent):
            return False
        if parent not in keys:
            keys[parent] = set[str]().union(*document.raw[parent])
        return key in keys[parent]

    def index(name: str) -> tuple[float, str]:
        number = document.series_meta(name).get("IDX", document.series_meta(name.rpartition("::")[0]).get("IDX"))
        return (number if isinstance(number, int) else math.inf, name)

    return [name for name in sorted(names, key=index) if document.raw.get(name) or not known(name)]


def _series(document: Document, name: str, tables: Tables) -> None:
    points = document.raw.get(name) or []
    keys = set[str]().union(*points)
    unit = about.unit_of(document, name)
    direction = about.direction_of(document, name, unit)
    klass, group = about.class_of(name), about.group_of(name)

    def made(kind: Any, unit: str, own: str = name) -> Series:
        return Series(0, own, kind, unit, direction=direction, klass=klass, group=group, data_name=name)

    if not points or (document.made_up and about.is_computed(name)):
        grid = document.results.get(name)
        if grid is not None:
            pairs = about.complete(document, name, [(x, y) for x, y in zip(document.x, grid, strict=True) if y is not None])
            tables.add(made("value", unit), {"t_s": [x for x, _ in pairs], "value": [y for _, y in pairs]})
        return
    if about.is_call(name, keys):
        probes.call(document, name, points, made, tables)
    elif "val" in keys or "lost" in keys:
        chosen = [point for point in points if "val" in point or "lost" in point]
        if name.startswith("Ping") or (unit == "ms" and keys & {"seq", "owd_up", "lost"}):
            probes.latency(document, name, chosen, made, tables)
        elif unit == "Mbits/s" and ("dur" in keys or direction is not None):
            flow(document, name, chosen, made, tables, _grid_step(document) if document.made_up else None)
        else:
            tables.add(made("value", unit), {"t_s": times(chosen, name, tables), "value": numbers(chosen, "val", name)})
    if keys & TCP_INFO.keys():
        _tcp_info(name, [point for point in points if not TCP_INFO.keys().isdisjoint(point)], made, tables)
    if "sent_bytes" in keys:
        _qdisc(name, points, made, tables)
    if "load" in keys and "val" not in keys:
        load = [None if one is None else 100 * one for one in numbers(points, "load", name)]
        tables.add(made("host", "%"), {"t_s": times(points, name, tables), "cpu_percent": load, "steal_percent": [None] * len(load)})
        keys.discard("load")
    rest = keys - {*PROBED, *TCP_INFO}
    if "sent_bytes" in keys:
        rest -= {*QDISC, "dropped", "ecn_mark"}
    for key in sorted(rest):
        some = [point for point in points if isinstance(point.get(key), (int, float)) and not isinstance(point.get(key), bool)]
        if some and len(key) <= 100:
            if key == "value" and "val" not in keys:  # of a command, or of MQTT
                one = made("value", unit)
            else:
                one = made("value", "fraction" if re.fullmatch(r"cpu\d+", key) else "", f"{name}::{key}")
            tables.add(one, {"t_s": times(some, name, tables), "value": numbers(some, key, name)})


def _grid_step(document: Document) -> float:
    return statistics.median(b - a for a, b in zip(document.x, document.x[1:], strict=False)) if len(document.x) > 1 else 0.2


def _tcp_info(name: str, points: list[Point], made: Callable[..., Series], tables: Tables) -> None:
    rows: Columns = {"t_s": times(points, name, tables), "end": [0] * len(points)}
    for key, (column, factor) in TCP_INFO.items():
        rows[column] = whole(numbers(points, key, name), factor)
    tables.add(made("tcp_info", ""), rows)


def _qdisc(name: str, points: list[Point], made: Callable[..., Series], tables: Tables) -> None:
    rows: Columns = {"t_s": times(points, name, tables)}
    for key, column in QDISC.items():
        rows[column] = [one or 0 for one in whole(numbers(points, key, name), 1)]
    for key, column in (("dropped", "drops"), ("ecn_mark", "marks")):
        total, counted = 0, []
        for one in whole(numbers(points, key, name), 1):  # increments by interval
            total += max(0, one or 0)
            counted.append(total if total < 1 << 62 else 0)
        rows[column] = counted
    tables.add(made("qdisc", "packets"), rows)


def _runner(document: Document, name: str, number: int, *, found: bool) -> Runner | None:
    """The process that measured a series. Files before version 3 do not name its kind."""
    meta = document.series_meta(name)
    kind = meta.get("RUNNER")
    if kind in COMPUTING or about.is_computed(name) or not (isinstance(kind, str) or document.raw.get(name)):
        return None
    command = meta.get("COMMAND")
    return Runner(
        number,
        name,
        RUNNER_KINDS.get(kind, kind[:40]) if isinstance(kind, str) else "flent",
        [command] if isinstance(command, str) else [],
        host=about.host_of(document, name),
        status="ended" if found else "failed",
        protocol=about.protocol_of(name),
    )


def _meta(document: Document, tables: Tables, t0_ns: int, runners: list[Runner]) -> Meta:
    total = document.number("TOTAL_LENGTH")
    end_s = max(tables.last_s, document.x[-1] if document.x else 0.0)
    end_s = total if total is not None and 0 < total <= end_s + DAY_S else end_s
    whole_ns = min(round(max(0.0, end_s) * 1e9), limits.SPAN_NS)
    load = _load(document, tables, end_s)
    phases = []
    if load is not None:
        from_ns, to_ns = (min(whole_ns, round(max(0.0, one) * 1e9)) for one in load)
        phases = [Phase("idle_before", 0, from_ns), Phase("load", from_ns, to_ns), Phase("idle_after", to_ns, whole_ns)]
        phases = [phase for phase in phases if phase.to_ns > phase.from_ns]
    silences, stalled = probes.stalled(document, tables, min(end_s, tables.last_s + EARLY_S), load)
    metadata = document.metadata
    test = (document.text("NAME") or "imported")[:100]
    parameters = metadata.get("TEST_PARAMETERS")
    failed = [runner.name for runner in runners if runner.status == "failed"]
    judged, why = _judged(metadata.get("KTRXER"))
    unnumbered = {name: True for name in tables.probe_times if probes.unnumbered(document, name)}
    if not tables.series:
        why.append(Reason("invalid", "this file contains no samples"))
    elif document.made_up:
        silences.append("this file has no samples, only values on a grid, which Flent interpolated: percentiles are those of the grid")
    doubts = [f"{name} gave no samples" for name in failed] + silences
    reasons = [*why, *(Reason("degraded", text) for text in doubts)]
    created = time_text(time_ns(metadata.get("TIME")) or t0_ns)
    content = f"{test} {created} {metadata.get('LOCAL_HOST')} {[(one.name, one.kind) for one in tables.series]} {tables.last_s}"
    return Meta(
        id=str(uuid.uuid5(NAMESPACE, content)),
        test=test,
        created=created,
        host=Host(document.text("LOCAL_HOST") or "", kernel=document.text("KERNEL_RELEASE")),
        zero=Zero(0, t0_ns),
        length_ns=whole_ns,
        title=document.text("TITLE") or "",
        version=f"flent {document.text('FLENT_VERSION') or '?'}",
        targets=about.targets_of(document),
        phases=phases,
        settings={"parameters": parameters} if isinstance(parameters, dict) and parameters else {},
        runners=runners,
        series=tables.series,
        verdict="invalid" if not tables.series or judged == "invalid" else "degraded" if judged or doubts else "valid",
        reasons=reasons,
        metadata={"flent": metadata, "notes": document.notes, "stalled": stalled, "unnumbered": unnumbered},
    )


def _load(document: Document, tables: Tables, end_s: float) -> tuple[float, float] | None:
    """The load as LENGTH and TOTAL_LENGTH give it, with the same idle time before and after it. Where flows begin long before it (LENGTH
    may be that of one flow of many), it is the time of the flows. None: nothing loads the path."""
    if not any(one.name.startswith(LOADS) or one.kind == "bytes" for one in tables.series):
        return None
    length, flows = document.number("LENGTH"), tables.flow_span
    planned = None
    if length is not None and 0 < length <= end_s:
        planned = (end_s - length) / 2, (end_s + length) / 2
    if flows is None or (planned is not None and flows[0] >= planned[0] - EARLY_S):
        return planned
    first, last = max(0.0, flows[0]), min(flows[1], end_s)
    if length is not None and length > 0 and last - first < LONGER * length:
        last = min(last, first + length)
    return (first, last) if last > first else planned


def _judged(own: Any) -> tuple[str, list[Reason]]:
    """The verdict of a run that ktrxer has exported, if it is not `valid`, and its reasons."""
    verdict = own.get("verdict") if isinstance(own, dict) else None
    if verdict not in ("degraded", "invalid"):
        return "", []
    reasons = own.get("reasons")
    return verdict, read_reasons(reasons) or [Reason(verdict, f"ktrxer has judged this run as {verdict}")]
