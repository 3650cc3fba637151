# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts that `ktrxer ping` and `ktrxer stamp` have in common: parameters, and their objects as rows of the table `latency`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ktrxer.runners import marks, own
from ktrxer.runners.own import Object, number
from ktrxer.runners.runner import MS, Options, Parameters, between
from ktrxer.runners.samples import NS_MOST, NotUnderstood, Reading, Samples, names
from ktrxer.store.columns import ANSWERED, DUPLICATE, FAILED, LOST, SKIPPED, TOO_LATE
from ktrxer.store.meta import Series

WAITING_MOST = 20_000  # probes of one series within a time-out
TRIAL_TIMEOUT = "5s"  # of the probes before the run: a queue that is full already may hold a probe for seconds
BATCH_MOST = 10_000  # round trips in one object
_STATES = {"lost": LOST, "failed": FAILED, "skipped": SKIPPED, "duplicate": DUPLICATE}
# Stored columns that a probe may lack: the printed field, and the smallest value; a smaller one means that it is not known.
_MORE: dict[str, tuple[str, int]] = {
    "far_ns": ("reflector_received_real_ns", 0),
    "far_seq": ("reflector_sequence", 0),
    "own_queue_ns": ("own_queue_ns", 0),
    "far_queue_ns": ("far_queue_ns", 0),
    "dwell_ns": ("dwell_ns", 1),
    "adjusted_ns": ("adjusted_ns", -NS_MOST),
}


@dataclass(frozen=True, kw_only=True)
class Probes(Parameters):
    """Small packets at equal intervals whose round trip is measured."""

    interval_ns: int = 10 * MS
    mark: str | None = None  # DSCP by name; None: not marked, and not shown as a class
    ecn: str = "off"  # off, ect0, ect1
    payload_bytes: int | None = None  # of a packet, without the headers of IP and UDP or ICMP; None: the smallest
    group: str = "Ping (ms)"
    klass: str = ""  # name of their class; empty: that of the mark


def validate(p: Probes) -> None:
    between("time between probes", p.interval_ns / MS, 0.1, 60_000, " ms")
    between("the payload", p.payload_bytes, 0, 65_000, " bytes")
    marks.check([p.mark])
    marks.check_ecn([p.ecn])


# A probe is given up when a probe that was sent a second later has its answer, so that a loss near the end does not hold up the run.
OVERTAKEN = ("--overtaken", "1s")


def timeout_of(p: Probes, o: Options) -> int:
    """The prober has room for 65,536 probes, and keeps each of them for three time-outs."""
    return min(o.timeout_ns, WAITING_MOST * p.interval_ns)


def series_of(name: str, p: Probes, mark: str | None) -> Series:
    return Series(0, name, "latency", "ms", klass=p.klass or mark, group=p.group)


def common(p: Probes, o: Options, dscp: list[str]) -> list[str]:
    """The command line from the host on."""
    more = ["--ecn", p.ecn] if p.ecn != "off" else []
    more += ["--payload", str(p.payload_bytes)] if p.payload_bytes is not None else []
    more += ["--precise"] if o.precise else []
    return [p.host or o.host, "--brief", "--interval", f"{p.interval_ns}ns", "--timeout", f"{timeout_of(p, o)}ns", *OVERTAKEN, *dscp, *more]


def trial(command: list[str]) -> list[str]:
    """Three probes instead of a measurement."""
    words = list(command)
    words[words.index("--interval") + 1], words[words.index("--timeout") + 1] = "50ms", TRIAL_TIMEOUT
    return [*words, "--count", "3", "--json"]


def read(p: Probes, samples: Samples) -> Reading:
    return own.read(samples, _Rows(p, samples).add)


def _four(made: Object) -> tuple[int, int, int, int]:
    """The number, send time, scheduled time and length of a round trip. The same checks as number(), in less time."""
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


def _column(made: Object, name: str, low: int = -NS_MOST) -> list[int]:
    """A column of several round trips in one object."""
    values = made.get(name)
    if not isinstance(values, list) or not 0 < len(values) <= BATCH_MOST or set(map(type, values)) != {int}:
        raise NotUnderstood(f"{name} is no column of whole numbers")
    if min(values) < low or max(values) > NS_MOST:
        raise NotUnderstood(f"{name} has a number out of bounds")
    return values


class _Rows:
    """The rows of one process."""

    def __init__(self, p: Probes, samples: Samples) -> None:
        self.samples = samples
        self.interval = p.interval_ns
        self.first_due: int | None = None  # scheduled time of probe 0: lost probes are placed by it

    def add(self, sample: Object) -> None:
        kind = sample.get("kind")
        if kind == "round_trips":
            self._round_trips(sample)
        elif kind in ("round_trip", "too_late"):
            self._round_trip(sample, ANSWERED if kind == "round_trip" else TOO_LATE)
        elif kind in _STATES:
            seq, zero = number(sample, "number"), own.zero(self.samples)
            due = self.first_due if self.first_due is not None else zero + self.samples.from_ns
            at = due + seq * self.interval - zero
            self._append({"series": self._class(sample.get("class")), "t_ns": at, "seq": seq, "state": _STATES[kind]})
        # Other versions of the command may print further kinds.

    def _class(self, which: Any) -> int:
        """The series of a probe: a process with several classes names the class."""
        series = self.samples.series.get(which if type(which) is int else None)
        if series is None:
            raise NotUnderstood(f"a probe of class {json.dumps(which, default=str)[:20]}")
        return series.id

    def _append(self, row: Mapping[str, int | None]) -> None:
        for name, values in zip(names("latency"), self.samples.table("latency"), strict=True):
            values.append(row.get(name))

    def _round_trip(self, sample: Object, state: int) -> None:
        seq, sent, due, rtt = _four(sample)
        if self.first_due is None:
            self.first_due = due - seq * self.interval
        row = {"series": self._class(sample.get("class")), "t_ns": sent - own.zero(self.samples), "seq": seq, "rtt_ns": rtt}
        row |= {"lateness_ns": sent - due, "state": state}
        for name, (printed, least) in _MORE.items():
            if type(value := sample.get(printed)) is int and least <= value <= NS_MOST:
                row[name] = value
        self._append(row)

    def _round_trips(self, sample: Object) -> None:
        """Many in one object, column by column: the output of --brief."""
        seq, due, sent, rtt = (_column(sample, name) for name in ("number", "scheduled_ns", "sent_ns", "rtt_ns"))
        if self.first_due is None:
            self.first_due = due[0] - seq[0] * self.interval
        if "class" in sample:
            which = _column(sample, "class", 0)
            found = {one: self._class(one) for one in set(which)}
            series = [found[one] for one in which]
        else:
            series = [self._class(None)] * len(seq)
        zero = own.zero(self.samples)
        lateness = [left - at for left, at in zip(sent, due, strict=False)]
        made: dict[str, Sequence[int | None]] = {"series": series, "t_ns": [left - zero for left in sent], "seq": seq, "rtt_ns": rtt}
        made |= {"lateness_ns": lateness, "state": [ANSWERED] * len(seq)}
        for name, (printed, least) in _MORE.items():
            if printed in sample:
                made[name] = [value if value >= least else None for value in _column(sample, printed)]
        if len({len(column) for column in (due, *made.values())}) > 1:
            raise NotUnderstood("its columns are not equally long")
        none: list[int | None] = [None] * len(seq)
        for name, values in zip(names("latency"), self.samples.table("latency"), strict=True):
            values.extend(made.get(name, none))
