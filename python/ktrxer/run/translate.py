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
_PROBE = ("t_ns", "seq", "state", "rtt_ns", "lateness_ns", "far_ns", "far_seq")
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


class Translator:
    """Of one process."""

    def __init__(self, job: Job, zero_ns: int) -> None:
        self.job = job
        self.zero_ns = zero_ns
        self.rows: dict[str, dict[str, list[Any]]] = {}
        self._probes: list[tuple[int | None, ...]] = []  # of the table `latency`, by row: there are many of them
        self.count = 0
        self._probe_zero: int | None = None  # when probe 0 was due: probes that never came back are placed by it

    def take(self, kind: str) -> dict[str, list[Any]]:
        """Rows since the last call, by column."""
        return self.rows.pop(kind, {})

    def kinds(self) -> list[str]:
        """Of what there are rows now."""
        if self._probes:
            columns_ = dict(zip(_PROBE, map(list, zip(*self._probes, strict=True)), strict=True))
            self.rows["latency"] = {"series": [self.job.series["latency", None].id] * len(self._probes)} | columns_
            self._probes.clear()
        return list(self.rows)

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
        interval = self.job.runner.interval_ns or 0
        row: tuple[int | None, ...]
        if kind == "round_trip":
            seq, sent, due, rtt = _four(sample)
            if self._probe_zero is None:
                self._probe_zero = due - seq * interval
            far, far_seq = sample.get("reflector_received_real_ns"), sample.get("reflector_sequence")
            far = far if type(far) is int and 0 <= far <= NS_MOST else None
            row = (
                sent - self.zero_ns,
                seq,
                ANSWERED,
                rtt,
                sent - due,
                far,
                far_seq if type(far_seq) is int and 0 <= far_seq <= NS_MOST else None,
            )
        else:
            seq = number(sample, "number")
            due_zero = self._probe_zero if self._probe_zero is not None else self.zero_ns + (self.job.runner.from_ns or 0)
            row = (due_zero + seq * interval - self.zero_ns, seq, _STATES[str(kind)], None, None, None, None)
        self._probes.append(row)

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
