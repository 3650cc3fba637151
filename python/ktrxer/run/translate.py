# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a process says, as rows of the store. Nothing is taken for granted: another program may be on the other end of the pipe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from ktrxer.run.schedule import Job
from ktrxer.store import columns
from ktrxer.store.columns import ANSWERED, DUPLICATE, FAILED, LOST, SKIPPED, TOO_LATE

NS_MOST = 2**62
_TCP_INFO = [column.name for column in columns.TABLES["tcp_info"] if column.nullable and column.name != "far_ns"]
_STATES = {"lost": LOST, "failed": FAILED, "skipped": SKIPPED, "duplicate": DUPLICATE}
_PROBE = ("series", "t_ns", "seq", "state", "rtt_ns", "lateness_ns", "far_ns", "far_seq", "own_queue_ns", "far_queue_ns", "adjusted_ns")
_QUEUES = ("own_queue_ns", "far_queue_ns")
_FLOW = {"bytes": ("series", "t_ns", "end", "far_ns", "bytes", "bound_ns"), "tcp_info": ("series", "t_ns", "end", "far_ns", *_TCP_INFO)}
_tcp_info_of = itemgetter(*_TCP_INFO)
_WHOLE = {int, type(None)}
BATCH_MOST = 10_000  # round trips in one object
_ENDS = {"local": columns.LOCAL, "remote": columns.REMOTE}

Row = dict[str, Any]


class Strange(Exception):
    """An object that is not what this kind of process says."""


def number(made: Row, name: str) -> int:
    value = made.get(name)
    if type(value) is not int or not -NS_MOST <= value <= NS_MOST:
        raise Strange(f"{name} is {json.dumps(value, default=str)[:40]}")
    return value


def maybe(made: Row, name: str) -> int | None:
    """Counts may be written as doubles by other tools; what is no number is not there."""
    value = made.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -NS_MOST <= value <= NS_MOST:
        return None
    return int(value)


def _four(made: Row) -> tuple[int, int, int, int]:
    """Of a round trip: number, sent, scheduled and the trip itself. As number() has them; there are thousands of them."""
    try:
        seq, sent, due, rtt = made["number"], made["sent_ns"], made["scheduled_ns"], made["rtt_ns"]
        if (
            type(seq) is type(sent) is type(due) is type(rtt) is int
            and max(seq, sent, due, rtt) <= NS_MOST
            and min(seq, sent, due, rtt) >= -NS_MOST
        ):
            return seq, sent, due, rtt
    except KeyError:
        pass
    return number(made, "number"), number(made, "sent_ns"), number(made, "scheduled_ns"), number(made, "rtt_ns")


def _tcp_info(made: Row) -> Sequence[int | None]:
    """As maybe() has each of them; there are a dozen in each of thousands of samples."""
    try:
        values: tuple[Any, ...] = _tcp_info_of(made)
    except KeyError:
        values = ()
    if values and set(map(type, values)) <= _WHOLE and all(value is None or -NS_MOST <= value <= NS_MOST for value in values):
        return values
    return [maybe(made, name) for name in _TCP_INFO]


def _column(made: Row, name: str, low: int = -NS_MOST) -> list[int]:
    """Of several round trips in one object."""
    values = made.get(name)
    if not isinstance(values, list) or not 0 < len(values) <= BATCH_MOST or set(map(type, values)) != {int}:
        raise Strange(f"{name} is no column of whole numbers")
    if min(values) < low or max(values) > NS_MOST:
        raise Strange(f"{name} has a number out of bounds")
    return values


class Translator:
    """Of one process."""

    def __init__(self, job: Job, zero_ns: int) -> None:
        self.job = job
        self.zero_ns = zero_ns
        self.rows: dict[str, dict[str, list[Any]]] = {}
        self._flows: dict[str, tuple[list[Any], ...]] = {}  # of tables of flows, by the columns of _FLOW
        self._probes: tuple[list[Any], ...] = tuple([] for _ in _PROBE)  # of the table `latency`: there are many of them
        self.count = 0
        self._probe_zero: int | None = None  # when probe 0 was due: probes that never came back are placed by it

    def take(self, kind: str) -> dict[str, list[Any]]:
        """Rows since the last call, by column."""
        return self.rows.pop(kind, {})

    def kinds(self) -> list[str]:
        """Of what there are rows now."""
        if self._probes[0]:
            self.rows["latency"] = dict(zip(_PROBE, self._probes, strict=True))
            self._probes = tuple([] for _ in _PROBE)
        for kind, values in self._flows.items():
            self.rows[kind] = dict(zip(_FLOW[kind], values, strict=True))
        self._flows = {}
        return list(self.rows)

    def add(self, sample: Row) -> None:
        if self.job.kind == "flow":
            self._flow(sample)
        else:
            self._probe(sample)
        self.count += 1

    def _class(self, which: Any) -> int:
        """The series of a probe: one of several classes says which."""
        series = self.job.series.get(("latency", which if type(which) is int else None))
        if series is None:
            raise Strange(f"a probe of class {json.dumps(which, default=str)[:20]}")
        return series.id

    def _probe(self, sample: Row) -> None:
        kind = sample.get("kind")
        if kind == "round_trips":
            self._round_trips(sample)
            return
        if kind not in ("round_trip", "too_late", *_STATES):
            return  # more kinds may come in any version
        interval = self.job.runner.interval_ns or 0
        row: tuple[int | None, ...]
        if kind in ("round_trip", "too_late"):
            seq, sent, due, rtt = _four(sample)
            if self._probe_zero is None:
                self._probe_zero = due - seq * interval
            far, far_seq = sample.get("reflector_received_real_ns"), sample.get("reflector_sequence")
            far = far if type(far) is int and 0 <= far <= NS_MOST else None
            row = (
                self._class(sample.get("class")),
                sent - self.zero_ns,
                seq,
                ANSWERED if kind == "round_trip" else TOO_LATE,
                rtt,
                sent - due,
                far,
                far_seq if type(far_seq) is int and 0 <= far_seq <= NS_MOST else None,
                *(value if type(value := sample.get(name)) is int and 0 <= value <= NS_MOST else None for name in _QUEUES),
                number(sample, "adjusted_ns") if "adjusted_ns" in sample else None,
            )
        else:
            seq = number(sample, "number")
            due_zero = self._probe_zero if self._probe_zero is not None else self.zero_ns + (self.job.runner.from_ns or 0)
            series = self._class(sample.get("class"))
            row = (series, due_zero + seq * interval - self.zero_ns, seq, _STATES[str(kind)], *[None] * 7)
        for values, value in zip(self._probes, row, strict=True):
            values.append(value)

    def _round_trips(self, sample: Row) -> None:
        """Many in one object, column by column: what a process says under --brief."""
        seq, due, sent, rtt = (_column(sample, name) for name in ("number", "scheduled_ns", "sent_ns", "rtt_ns"))
        none: list[int | None] = [None] * len(seq)
        far: Sequence[int | None] = _column(sample, "reflector_received_real_ns", 0) if "reflector_received_real_ns" in sample else none
        far_seq: Sequence[int | None] = _column(sample, "reflector_sequence", 0) if "reflector_sequence" in sample else none
        queues = [
            [wait if wait >= 0 else None for wait in _column(sample, name)] if name in sample else none  # negative: not known
            for name in _QUEUES
        ]
        adjusted: Sequence[int | None] = _column(sample, "adjusted_ns") if "adjusted_ns" in sample else none
        if self._probe_zero is None:
            self._probe_zero = due[0] - seq[0] * (self.job.runner.interval_ns or 0)
        if "class" in sample:
            which = _column(sample, "class", 0)
            found = {one: self._class(one) for one in set(which)}
            series = [found[one] for one in which]
        else:
            series = [self._class(None)] * len(seq)
        zero = self.zero_ns
        lateness = [left - at for left, at in zip(sent, due, strict=False)]
        columns_ = (series, [left - zero for left in sent], seq, [ANSWERED] * len(seq), rtt, lateness, far, far_seq, *queues, adjusted)
        if len({len(column) for column in (due, *columns_)}) > 1:
            raise Strange("its columns are not equally long")
        for values, more in zip(self._probes, columns_, strict=True):
            values.extend(more)

    def _flow(self, sample: Row) -> None:
        kind = sample.get("kind")
        if kind not in ("bytes", "tcp_info"):
            return
        series = self.job.series.get((str(kind), sample.get("flow")))
        end = _ENDS.get(str(sample.get("end")))
        if series is None or end is None:
            raise Strange(f"a sample of flow {json.dumps(sample.get('flow'), default=str)[:20]} at end {str(sample.get('end'))[:20]!r}")
        row = [series.id, number(sample, "time_ns") - self.zero_ns, end, maybe(sample, "remote_ns")]
        if kind == "bytes":
            row += (number(sample, "bytes"), maybe(sample, "bound_ns"))
        else:
            row += _tcp_info(sample)
        columns_ = self._flows.get(kind)
        if columns_ is None:
            columns_ = self._flows[kind] = tuple([] for _ in row)
        for values, value in zip(columns_, row, strict=True):
            values.append(value)

    def event(self, made: Row) -> tuple[int, str, str]:
        """Time, name and the rest as text."""
        rest = {name: value for name, value in made.items() if name not in ("type", "name", "time_ns")}
        text = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))[:1000] if rest else ""
        return number(made, "time_ns") - self.zero_ns, str(made.get("name"))[:100], text
