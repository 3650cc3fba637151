# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a process says, as rows of the store. Nothing is taken for granted: another program may be on the other end of the pipe."""

from __future__ import annotations

import json
from typing import Any

from ktrxer.run.schedule import Job
from ktrxer.store import columns
from ktrxer.store.columns import ANSWERED, DUPLICATE, FAILED, LOST, SKIPPED

NS_MOST = 2**62
_TCP_INFO = [column.name for column in columns.TABLES["tcp_info"] if column.nullable and column.name != "far_ns"]
_STATES = {"lost": LOST, "failed": FAILED, "skipped": SKIPPED, "duplicate": DUPLICATE}
_ENDS = {"local": columns.LOCAL, "remote": columns.REMOTE}

Row = dict[str, Any]


class Strange(Exception):
    """An object that is not what this kind of process says."""


def number(made: Row, name: str) -> int:
    value = made.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not -NS_MOST <= value <= NS_MOST:
        raise Strange(f"{name} is {json.dumps(value, default=str)[:40]}")
    return value


def maybe(made: Row, name: str) -> int | None:
    """Counts may be written as doubles by other tools; what is no number is not there."""
    value = made.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -NS_MOST <= value <= NS_MOST:
        return None
    return int(value)


class Translator:
    """Of one process."""

    def __init__(self, job: Job, zero_ns: int) -> None:
        self.job = job
        self.zero_ns = zero_ns
        self.rows: dict[str, dict[str, list[Any]]] = {}
        self.count = 0
        self._probe_zero: int | None = None  # when probe 0 was due: probes that never came back are placed by it

    def take(self, kind: str) -> dict[str, list[Any]]:
        """Rows since the last call, by column."""
        return self.rows.pop(kind, {})

    def add(self, sample: Row) -> None:
        if self.job.kind == "flow":
            self._flow(sample)
        else:
            self._probe(sample)
        self.count += 1

    def _put(self, kind: str, row: Row) -> None:
        table = self.rows.setdefault(kind, {name: [] for name in row})
        for name, value in row.items():
            table[name].append(value)

    def _probe(self, sample: Row) -> None:
        kind = sample.get("kind")
        if kind not in ("round_trip", *_STATES):
            return  # too late, foreign: more kinds may come in any version
        seq = number(sample, "number")
        series = self.job.series["latency", None].id
        interval = self.job.runner.interval_ns or 0
        row: Row = {"series": series, "seq": seq, "rtt_ns": None, "lateness_ns": None, "far_ns": None, "far_seq": None}
        if kind == "round_trip":
            sent, due = number(sample, "sent_ns"), number(sample, "scheduled_ns")
            if self._probe_zero is None:
                self._probe_zero = due - seq * interval
            row |= {"t_ns": sent - self.zero_ns, "state": ANSWERED, "rtt_ns": number(sample, "rtt_ns")}
            row |= {"lateness_ns": maybe(sample, "lateness_ns"), "far_ns": maybe(sample, "reflector_received_real_ns")}
            row["far_seq"] = maybe(sample, "reflector_sequence")
        else:
            due_zero = self._probe_zero if self._probe_zero is not None else self.zero_ns + (self.job.runner.from_ns or 0)
            row |= {"t_ns": due_zero + seq * interval - self.zero_ns, "state": _STATES[str(kind)]}
        self._put("latency", row)

    def _flow(self, sample: Row) -> None:
        kind = sample.get("kind")
        if kind not in ("bytes", "tcp_info"):
            return
        series = self.job.series.get((str(kind), sample.get("flow")))
        end = _ENDS.get(str(sample.get("end")))
        if series is None or end is None:
            raise Strange(f"a sample of flow {json.dumps(sample.get('flow'), default=str)[:20]} at end {str(sample.get('end'))[:20]!r}")
        row: Row = {"series": series.id, "t_ns": number(sample, "time_ns") - self.zero_ns, "end": end}
        row["far_ns"] = maybe(sample, "remote_ns")
        if kind == "bytes":
            row |= {"bytes": number(sample, "bytes"), "bound_ns": maybe(sample, "bound_ns")}
        else:
            row |= {name: maybe(sample, name) for name in _TCP_INFO}
        self._put(str(kind), row)

    def event(self, made: Row) -> tuple[int, str, str]:
        """Time, name and the rest as text."""
        rest = {name: value for name, value in made.items() if name not in ("type", "name", "time_ns")}
        text = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))[:1000] if rest else ""
        return number(made, "time_ns") - self.zero_ns, str(made.get("name"))[:100], text
