# SPDX-License-Identifier: MIT OR Apache-2.0
"""Converts a Flent document to a run: its samples go to the tables of the store, by their kind.

    pings with seq, or of irtt          latency, at the send time (Flent's time minus the round trip), with lost ones
    rates over intervals (dur)          bytes, as cumulative counts
    tcp_cwnd, tcp_rtt, ... in between   tcp_info of the same flow
    sent_bytes, dropped, ...            qdisc
    load of the CPUs                    host
    any other number                    value, unchanged

A series without its own samples (sums and averages, or a file of version 1) comes from Flent's grid, as a value.
"""

from __future__ import annotations

import itertools
import math
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.flent import container
from ktrxer.flent.document import Document, Point, check, finite, show, time_ns, time_text
from ktrxer.flent.errors import FlentError
from ktrxer.flent.upgrade import first_sample, upgrade
from ktrxer.store import Host, Meta, Phase, Runner, Series, Zero, limits
from ktrxer.store.reasons import Reason
from ktrxer.store.reasons import read_all as read_reasons

if TYPE_CHECKING:
    import pyarrow as pa

    from ktrxer.store import Run

NAMESPACE = uuid.UUID("8a1c7d4e-2f0b-5d3a-9c66-0f1e2d3c4b5a")  # of ids that are computed from a file's content
DAY_S = 86400.0
GAP_S, GAP_SHARE = 0.02, 0.01  # limits of uncounted time between a flow's intervals
CLASSES = re.compile(r"\b(BE|BK|EF|CS[0-7]|AF[1-4][1-3]|LE)\b")
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
ANSWERED, LOST, LOST_UP, LOST_DOWN = range(4)
LOST_WHERE = {"up": LOST_UP, "down": LOST_DOWN}
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

Columns = dict[str, list[Any]]


@dataclass
class Tables:
    """Rows of each kind, column by column, and their series."""

    t0_s: float
    series: list[Series] = field(default_factory=list)
    columns: dict[str, Columns] = field(default_factory=dict)
    dropped: int = 0  # samples whose time is outside of this run
    last_s: float = 0.0
    longest_s: dict[str, float] = field(default_factory=dict)  # longest time between two counts of a flow

    def add(self, series: Series, rows: Columns) -> None:
        """Add rows with `t_s`, seconds since the run's zero; rows with an impossible time are left out."""
        times = rows.pop("t_s")
        bound = limits.SPAN_NS / 1e9 - DAY_S
        keep = [i for i, t in enumerate(times) if t is not None and -bound < t < bound]
        if len(keep) < len(times):
            self.dropped += len(times) - len(keep)
            times = [times[i] for i in keep]
            rows = {name: [values[i] for i in keep] for name, values in rows.items()}
        if not times:
            return
        series.id = len(self.series)
        self.series.append(series)
        self.last_s = max(self.last_s, max(times))
        into = self.columns.setdefault(series.kind, {"series": [], "t_ns": []})
        into["series"].extend([series.id] * len(times))
        into["t_ns"].extend([round(t * 1e9) for t in times])
        for name, values in rows.items():
            into.setdefault(name, []).extend(values)


def open_run(path: Path) -> Run:
    from ktrxer.store import Run

    try:
        document = upgrade(check(container.parse(container.load(path))))
        meta, tables = convert(document)
    except FlentError as error:
        raise FlentError(f"{path}: {error}") from None
    except ValueError as error:  # from the store's own checks
        raise FlentError(f"{path}: {error}") from None
    return Run(path, meta, {kind: _loader(kind, columns) for kind, columns in tables.items()})


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
        longest = tables.longest_s.get(name)
        if runner is not None and longest is not None:
            runner.interval_ns = max(1, round(longest * 1e9))
        if runner is not None:
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
    """Names in Flent's own order, if the file has it. A result `a::b` of a runner `a` that has samples is not a separate series."""
    names = dict.fromkeys([*document.raw, *document.results])

    def index(name: str) -> tuple[float, str]:
        number = document.series_meta(name).get("IDX", document.series_meta(name.rpartition("::")[0]).get("IDX"))
        return (number if isinstance(number, int) else math.inf, name)

    return [name for name in sorted(names, key=index) if document.raw.get(name) or not document.raw.get(name.rpartition("::")[0])]


def _of(points: Iterable[Point], key: str, name: str) -> list[float | None]:
    """One number of each point, or None. FlentError for any other value."""
    values: list[Any] = [point.get(key) for point in points]
    kinds = set(map(type, values))
    if not kinds <= {int, float, type(None)}:
        bad = next(value for value in values if type(value) not in (int, float, type(None)))
        raise FlentError(f"`raw_values[{name}]`: `{key}` must be a number, found {show(bad)}")
    if kinds == {float} and math.isfinite(sum(values)):
        return values  # the usual case: no need to check each value
    if int in kinds:
        return [finite(value) for value in values]
    return [None if value is None or not math.isfinite(value) else value for value in values]


def _times(points: list[Point], name: str, tables: Tables) -> list[float | None]:
    return [None if t is None else t - tables.t0_s for t in _of(points, "t", name)]


def _series(document: Document, name: str, tables: Tables) -> None:
    points = document.raw.get(name) or []
    unit = _unit(document, name)
    direction, klass, group = _about(name)

    def made(kind: Any, unit: str, name: str = name) -> Series:
        return Series(0, name, kind, unit, direction=direction, klass=klass, group=group, data_name=name)

    if not points:
        grid = document.results.get(name)
        if grid is not None:
            pairs = [(x, y) for x, y in zip(document.x, grid, strict=True) if y is not None]
            tables.add(made("value", unit), {"t_s": [x for x, _ in pairs], "value": [y for _, y in pairs]})
        return
    if document.made_up:
        tables.add(made("value", unit), {"t_s": _times(points, name, tables), "value": _of(points, "val", name)})
        return
    keys = set[str]().union(*points)
    if "val" in keys or "lost" in keys:
        flow = [point for point in points if "val" in point or "lost" in point]
        if "dur" in keys and unit == "Mbits/s":
            _flow(document, name, flow, made, tables)
        elif (unit == "ms" and keys & {"seq", "owd_up", "lost"}) or (group == "Ping (ms)" and "dur" not in keys):
            _latency(document, name, flow, made, tables)
        else:
            tables.add(made("value", unit), {"t_s": _times(flow, name, tables), "value": _of(flow, "val", name)})
    if keys & TCP_INFO.keys():
        _tcp_info(name, [point for point in points if not TCP_INFO.keys().isdisjoint(point)], made, tables)
    if "sent_bytes" in keys:
        _qdisc(name, points, made, tables)
    if "load" in keys and "val" not in keys:
        load = [None if one is None else 100 * one for one in _of(points, "load", name)]
        tables.add(made("host", "%"), {"t_s": _times(points, name, tables), "cpu_percent": load, "steal_percent": [None] * len(load)})
        keys.discard("load")
    rest = keys - {"t", "val", "dur", "seq", "lost", "lost_dir", "owd_up", "owd_down", "ipdv", "ipdv_up", "ipdv_down", *TCP_INFO}
    if "sent_bytes" in keys:
        rest -= {*QDISC, "dropped", "ecn_mark"}
    for key in sorted(rest):
        some = [point for point in points if isinstance(point.get(key), (int, float)) and not isinstance(point.get(key), bool)]
        if some and len(key) <= 100:
            if key == "value" and "val" not in keys:  # of a command, or of MQTT
                one = made("value", unit)
            else:
                one = made("value", "fraction" if re.fullmatch(r"cpu\d+", key) else "", f"{name}::{key}")
            tables.add(one, {"t_s": _times(some, name, tables), "value": _of(some, key, name)})


def _unit(document: Document, name: str) -> str:
    unit = document.series_meta(name).get("UNITS")
    if isinstance(unit, str) and unit:
        return unit[:40]
    return "ms" if name.startswith(("Ping", "UDP", "HTTP latency")) else "Mbits/s" if name.startswith("TCP") else ""


def _about(name: str) -> tuple[Any, str | None, str | None]:
    """Direction, class and group, from Flent's name."""
    low = name.lower()
    direction = "up" if re.search(r"\bupload\b", low) else "down" if re.search(r"\bdownload\b", low) else None
    klass = CLASSES.search(name)
    group = next((one for one in ("TCP upload", "TCP download", "Ping (ms)") if name.startswith(one)), None)
    return direction, klass[1] if klass else None, group


def _flow(document: Document, name: str, points: list[Point], made: Callable[..., Series], tables: Tables) -> None:
    rows = [
        (t, dur, rate)
        for t, dur, rate in zip(_times(points, name, tables), _of(points, "dur", name), _of(points, "val", name), strict=True)
        if t is not None and dur is not None and rate is not None and dur > 0
    ]
    rows.sort()
    if not rows:
        return
    gap, total, times, counts = 0.0, 0.0, [rows[0][0] - rows[0][1]], [0]
    for t, dur, rate in rows:
        apart = t - dur - times[-1]
        gap += max(0.0, apart - GAP_S)
        total += rate * 125_000 * dur
        if not abs(total) < 1 << 62:
            raise FlentError(f"`raw_values[{name}]`: more bytes than a link can carry: a rate of {rate:g} Mbit/s")
        times.append(max(t, times[-1]))
        counts.append(max(0, round(total)))
    if gap > GAP_SHARE * (rows[-1][0] - times[0]) or any(b < a for a, b in itertools.pairwise(counts)):
        document.notes.append(f"{name}: its intervals have gaps, so its rates are kept unchanged")
        tables.add(made("value", "Mbits/s"), {"t_s": [t for t, _, _ in rows], "value": [rate for _, _, rate in rows]})
        return
    tables.longest_s[name] = max(after - before for before, after in itertools.pairwise(times))
    tables.add(made("bytes", "bytes"), {"t_s": times, "end": [0] * len(times), "bytes": counts})


def _latency(document: Document, name: str, points: list[Point], made: Callable[..., Series], tables: Tables) -> None:
    times, rtts, numbers = _times(points, name, tables), _of(points, "val", name), _of(points, "seq", name)
    up, down = _of(points, "owd_up", name), _of(points, "owd_down", name)
    rows: list[tuple[Any, ...]] = []
    for i, (t, rtt) in enumerate(zip(times, rtts, strict=True)):
        if t is None:
            tables.dropped += 1
        elif points[i].get("lost"):
            rows.append((t, numbers[i], None, None, None, LOST_WHERE.get(str(points[i].get("lost_dir")), LOST)))
        elif rtt is not None and 0 <= rtt < 1e9:
            rows.append((t - rtt / 1000, numbers[i], _ns(rtt), _ns(up[i]), _ns(down[i]), ANSWERED))
    if None not in numbers and not any("lost" in point for point in points):
        missing = _missing(rows)
        if missing:
            document.notes.append(f"{name}: {len(missing)} lost, counted from the gaps in the sequence numbers")
            rows += missing
    rows.sort(key=lambda row: row[0])
    if None in (row[1] for row in rows):
        rows = [(row[0], i, *row[2:]) for i, row in enumerate(rows)]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
    names = ("t_s", "seq", "rtt_ns", "up_ns", "down_ns", "state")
    table = dict(zip(names, columns, strict=True))
    table["seq"] = [int(number) if abs(number) < 1 << 62 else 0 for number in table["seq"]]
    tables.add(made("latency", "ms"), table)


def _missing(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Probes that are missing in ping's sequence numbers. Their times are interpolated."""
    found: list[tuple[Any, ...]] = []
    ordered = sorted(rows, key=lambda row: row[1])
    for (t, number, *_), (t_next, number_next, *_) in itertools.pairwise(ordered):
        lost = int(number_next - number) - 1 if abs(number_next) < 1 << 53 else 0
        if t_next < t or lost > max(100, len(rows)):
            return []  # these are not sequence numbers
        found += [(t + (t_next - t) * k / (lost + 1), number + k, None, None, None, LOST) for k in range(1, lost + 1)]
    return found


def _ns(ms: float | None) -> int | None:
    return None if ms is None or abs(ms) >= 1e9 else round(ms * 1e6)


def _whole(values: list[float | None], factor: float) -> list[int | None]:
    return [None if one is None or abs(one) * factor >= 1 << 62 else round(one * factor) for one in values]


def _tcp_info(name: str, points: list[Point], made: Callable[..., Series], tables: Tables) -> None:
    rows: Columns = {"t_s": _times(points, name, tables), "end": [0] * len(points)}
    for key, (column, factor) in TCP_INFO.items():
        rows[column] = _whole(_of(points, key, name), factor)
    tables.add(made("tcp_info", ""), rows)


def _qdisc(name: str, points: list[Point], made: Callable[..., Series], tables: Tables) -> None:
    rows: Columns = {"t_s": _times(points, name, tables)}
    for key, column in QDISC.items():
        rows[column] = [one or 0 for one in _whole(_of(points, key, name), 1)]
    for key, column in (("dropped", "drops"), ("ecn_mark", "marks")):
        total, counted = 0, []
        for one in _whole(_of(points, key, name), 1):  # increments by interval
            total += max(0, one or 0)
            counted.append(total if total < 1 << 62 else 0)
        rows[column] = counted
    tables.add(made("qdisc", "packets"), rows)


def _runner(document: Document, name: str, number: int, *, found: bool) -> Runner | None:
    meta = document.series_meta(name)
    kind = meta.get("RUNNER")
    if not isinstance(kind, str) or kind in COMPUTING:
        return None
    command, host = meta.get("COMMAND"), meta.get("REMOTE_HOST")
    end = {key.lower(): value for key, value in meta.items() if key not in ("COMMAND", "RUNNER") and isinstance(value, (int, float, str))}
    return Runner(
        number,
        name,
        RUNNER_KINDS.get(kind, kind[:40]),
        [command] if isinstance(command, str) else [],
        host=host if isinstance(host, str) else document.text("HOST"),
        status="ended" if found else "failed",
        end=end or None,
    )


def _meta(document: Document, tables: Tables, t0_ns: int, runners: list[Runner]) -> Meta:
    length, total = document.number("LENGTH"), document.number("TOTAL_LENGTH")
    whole = max(tables.last_s, document.x[-1] if document.x else 0.0)
    whole = total if total is not None and 0 < total <= whole + DAY_S else whole
    whole_ns = min(round(max(0.0, whole) * 1e9), limits.SPAN_NS)
    phases = []
    if length is not None and 0 < length <= whole:
        idle_ns = round((whole - length) / 2 * 1e9)
        load_ns = (idle_ns, min(whole_ns, idle_ns + round(length * 1e9)))
        phases = [Phase("idle_before", 0, idle_ns), Phase("load", *load_ns), Phase("idle_after", load_ns[1], whole_ns)]
        phases = [phase for phase in phases if phase.to_ns > phase.from_ns]
    metadata = document.metadata
    test = (document.text("NAME") or "imported")[:100]
    hosts = metadata.get("HOSTS")
    parameters = metadata.get("TEST_PARAMETERS")
    failed = [runner.name for runner in runners if runner.status == "failed"]
    judged, why = _judged(metadata.get("KTRXER"))
    reasons = [*why, *(Reason("degraded", f"{name} gave no samples") for name in failed)]
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
        targets=[one for one in hosts if isinstance(one, str)] if isinstance(hosts, list) else [],
        phases=phases,
        settings={"parameters": parameters} if isinstance(parameters, dict) and parameters else {},
        runners=runners,
        series=tables.series,
        verdict="invalid" if not tables.series or judged == "invalid" else "degraded" if judged or failed else "valid",
        reasons=reasons or ([] if tables.series else [Reason("invalid", "this file contains no samples")]),
        metadata={"flent": metadata, "notes": document.notes},
    )


def _judged(own: Any) -> tuple[str, list[Reason]]:
    """The verdict of a run that ktrxer has exported, if it is not `valid`, and its reasons."""
    verdict = own.get("verdict") if isinstance(own, dict) else None
    if verdict not in ("degraded", "invalid"):
        return "", []
    reasons = own.get("reasons")
    return verdict, read_reasons(reasons) or [Reason(verdict, f"ktrxer has judged this run as {verdict}")]
