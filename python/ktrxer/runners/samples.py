# SPDX-License-Identifier: MIT OR Apache-2.0
"""The objects that a runner's `read` works with: the output as it comes, the times of a place, and the samples that it adds."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ktrxer.store import columns, one_line
from ktrxer.store.columns import ANSWERED, LOCAL, LOST
from ktrxer.store.meta import Series
from ktrxer.store.reasons import Reason, reason
from ktrxer.store.tables import Column

S = 10**9
NS_MOST = 2**62
LINE_MOST = 1 << 20  # bytes of a line
DOCUMENT_MOST = 64 << 20  # bytes of an output that is read as a whole
GARBAGE_MOST = 20  # lines that are not understood: then the process is stopped
TEXT_MOST = 100  # characters in a column of text
AROUND_NS = 600 * S  # a time stamp may lie so far outside of the run
NEW_MOST = 2000  # series of one process that its output brings
CONSTANT_MOST = 20_000  # values that have not changed yet
_NEVER = {"latency": ("up_ns", "down_ns", "up_bound_ns", "down_bound_ns")}  # columns that are computed after the run


class NotUnderstood(Exception):
    """Output that is not what this tool prints."""


@dataclass(frozen=True)
class Chunk:
    """A piece of the output."""

    data: bytes
    at_ns: int  # when it was read, in time of the run


@dataclass(frozen=True)
class Line:
    text: str
    at_ns: int


@dataclass(frozen=True)
class ClockStep:
    """The clock was stepped between these two of its times, both as without this step."""

    from_ns: int
    to_ns: int
    size_ns: int


@dataclass
class Clock:
    """A place's clocks at the zero of the run, to +- bound_ns."""

    zero_real_ns: int
    zero_mono_ns: int | None  # None: another kernel's clock, not known before a program there prints both clocks
    bound_ns: int = 0
    steps: Sequence[ClockStep] = ()  # of CLOCK_REALTIME since the run began; grows
    corrected: bool = False
    _passed: int = 0  # of the steps: a tool's times ascend
    _last_ns: int = 0

    def real(self, ns: int) -> int:
        """A time of CLOCK_REALTIME as time of the run."""
        for step in self.steps[self._passed :]:
            back = step.size_ns < 0 and step.from_ns + step.size_ns <= ns < self._last_ns + step.size_ns // 2
            if not back and ns <= max(step.to_ns, step.from_ns + step.size_ns):
                break
            self._passed, self.corrected = self._passed + 1, True
        self._last_ns = ns
        return ns - self.zero_real_ns - sum(step.size_ns for step in self.steps[: self._passed])


@functools.cache
def names(kind: str) -> tuple[str, ...]:
    """Columns that a process fills."""
    return tuple(column.name for column in columns.TABLES[kind] if column.name not in _NEVER.get(kind, ()))


class Samples:
    """The samples of one process: rows by table, events, notes for the verdict, and the result that the tool itself printed."""

    def __init__(
        self,
        series: Mapping[Hashable, Series],
        clock: Clock,
        *,
        interval_ns: int | None = None,
        from_ns: int = 0,
        to_ns: int = 0,
        name: str = "",
        register: Callable[[Series], None] | None = None,
    ) -> None:
        """`name`: of the process. `register` gives a new series its number."""
        self.series, self.clock, self.name = dict(series), clock, name
        self._register = register or self._number
        self._new = 0
        self.interval_ns, self.from_ns, self.to_ns = interval_ns, from_ns, to_ns
        self.read_ns = from_ns  # when the last piece of a document was read
        self.result: dict[str, Any] | None = None
        self.unknown: dict[str, None] = {}  # fields of a newer version of the command
        self.garbage = 0
        self.first_garbage = ""
        self.events: list[tuple[int, str, str]] = []
        self.notes: list[Reason] = []
        self.now_ns = 0  # when the piece of output that `read` has was read
        self.memory: dict[Any, Any] = {}  # of the runner's `read`, from call to call
        self._rows: dict[str, tuple[list[Any], ...]] = {}
        self._constant: dict[Hashable, tuple[int, float]] = {}

    # ------------------------------------------------------------------------------------------------- for runners

    def add(self, key: Hashable, t_ns: int, **values: Any) -> None:
        """A row of the series' table (docs/reference/store.md has the columns). Times are times of the run; what is not given is empty."""
        series = self.of(key)
        if type(t_ns) is not int or not self.from_ns - AROUND_NS <= t_ns <= self.to_ns + AROUND_NS:
            raise NotUnderstood(f"a time stamp {_text(t_ns)} ns after the start, far outside of the run")
        given = {"series": series.id, "t_ns": t_ns, **values}
        row = []
        for column in columns.TABLES[series.kind]:
            value = given.pop(column.name, None)
            if column.name in _NEVER.get(series.kind, ()):
                continue
            if not _fits(value, column):
                raise NotUnderstood(f"{column.name} is {_text(value)}")
            row.append(value)
        if given:
            raise TypeError(f"a sample of kind {series.kind} has no {', '.join(given)}")
        for values_, value in zip(self.table(series.kind), row, strict=True):
            values_.append(value)

    def answered(self, key: Hashable, t_ns: int, seq: int, rtt_ns: int) -> None:
        """A delay probe with its send time."""
        self.add(key, t_ns, seq=seq, rtt_ns=rtt_ns, state=ANSWERED)

    def lost(self, key: Hashable, t_ns: int, seq: int) -> None:
        self.add(key, t_ns, seq=seq, state=LOST)

    def moved(self, key: Hashable, t_ns: int, count: int, end: int = LOCAL) -> None:
        """The bytes that a flow has moved since its beginning, as counted at this end (or at the REMOTE one)."""
        self.add(key, t_ns, bytes=count, end=end)

    def value(self, key: Hashable, t_ns: int, value: float) -> None:
        self.add(key, t_ns, value=float(value))  # Arrow refuses whole numbers that a double does not hold

    def new(self, key: Hashable, series: Series) -> bool:
        """A series that was not known before the run, once for each key. False: the process has too many of them."""
        if key in self.series:
            return True
        if self._new >= NEW_MOST:
            if self._new == NEW_MOST:
                self.reason("too_many_series", limit=NEW_MOST)
                self._new += 1
            return False
        self._new += 1
        self.series[key] = series
        self._register(series)
        return True

    def _number(self, series: Series) -> None:
        series.id = len(self.series) - 1

    def gauge(self, key: Hashable, t_ns: int, value: float, name: str, unit: str = "", group: str | None = None) -> None:
        """A value of a series of this name, which is new at its first value."""
        if self.new(key, Series(0, name, "value", unit, group=group)):
            self.value(key, t_ns, value)

    def changing(
        self, key: Hashable, t_ns: int, value: float, name: str, unit: str = "", group: str | None = None, *, count: bool = True
    ) -> None:
        """A gauge() from the first change on: a host has hundreds of counters, and most of them never change. The first row is the last
        one before the change."""
        if key not in self.series:
            before = self._constant.get(key)
            if before is None or before[1] == value:
                if before is not None or len(self._constant) < CONSTANT_MOST:
                    self._constant[key] = (t_ns, value)
                return
            if not self.new(key, Series(0, name, "value", unit, group=group, count=count)):
                return
            self.value(key, *self._constant.pop(key))
        self.value(key, t_ns, value)

    def number_of(self, key: Hashable, most: int, t_ns: int, what: str) -> int:
        """The number of this key among the first `most` ones of its kind (`what`, in the plural), from 1 on. 0: the key comes later, and
        an event says once that there are more."""
        known: dict[Hashable, int] = self.memory.setdefault(("first", what), {})
        if key not in known and len(known) < most:
            known[key] = len(known) + 1
        if key not in known and ("more", what) not in self.memory:
            self.memory["more", what] = True
            self.event(t_ns, f"{what}_not_recorded", f"there are more than {most} {what}; the others have no series")
        return known.get(key, 0)

    def event(self, t_ns: int, name: str, text: str = "") -> None:
        self.events.append((t_ns, name[:100], text[:1000]))

    def note(self, severity: Literal["degraded", "invalid"], text: str, name: str = "") -> None:
        """A reason for the verdict, of a runner of the user: a sentence. `name`: of the series."""
        self.notes.append(Reason(severity, text, name))

    def reason(self, identifier: str, *, name: str = "", **values: Any) -> None:
        """A reason of the table."""
        self.notes.append(reason(identifier, name=name, **values))

    def not_understood(self, text: str) -> None:
        self.garbage += 1
        self.first_garbage = self.first_garbage or one_line(text, 80)

    def too_much(self, data: bytes) -> None:
        """The output is longer than its limit: the process is stopped."""
        self.not_understood(data[:80].decode("utf-8", "replace"))
        self.garbage = GARBAGE_MOST + 1

    # ---------------------------------------------------------------------------------------- for runners of many samples

    def of(self, key: Hashable) -> Series:
        series = self.series.get(key)
        if series is None:
            raise NotUnderstood(f"a sample of {one_line(str(key), 60)}, which is not one of its series")
        return series

    def table(self, kind: str) -> tuple[list[Any], ...]:
        """The columns of a table, in the order of names(kind), to which rows are appended."""
        found = self._rows.get(kind)
        if found is None:
            found = self._rows[kind] = tuple([] for _ in names(kind))
        return found

    # ------------------------------------------------------------------------------------------------- for the session

    def tables(self) -> Mapping[str, tuple[list[Any], ...]]:
        return self._rows

    def take(self) -> dict[str, dict[str, list[Any]]]:
        """The rows since the last call: by table, by column."""
        made = {kind: dict(zip(names(kind), rows, strict=True)) for kind, rows in self._rows.items() if rows[0]}
        self._rows = {}
        return made


def _text(value: Any) -> str:
    return json.dumps(value, default=str)[:40]


def _fits(value: Any, column: Column) -> bool:
    if value is None:
        return column.nullable
    if column.type in ("double", "float"):
        return isinstance(value, int | float) and not isinstance(value, bool) and value == value
    if column.type == "string":
        return isinstance(value, str) and 0 < len(value) <= TEXT_MOST
    return type(value) is int and (0 <= value < len(column.values) if column.values else -NS_MOST <= value <= NS_MOST)


# ------------------------------------------------------------------------------------------------------- kinds of output

Reading = Generator[None, Chunk | None, None]  # None: the output has ended
_REFUSED = (NotUnderstood, ValueError, LookupError, TypeError, ArithmeticError)  # by a runner, for output that it does not understand


def by_line(
    read: Callable[[Any, Samples, Line], None], end: Callable[[Any, Samples], None] | None = None
) -> Callable[[Any, Samples], Reading]:
    """Reads a tool that prints lines: `read` is called for each of them, `end` after the last one. What they must remember stands in
    `samples.memory`. A line that `read` refuses by an exception counts as not understood."""

    @functools.wraps(read)
    def feed(p: Any, samples: Samples) -> Reading:
        rest = b""
        while (chunk := (yield)) is not None:
            *lines, rest = (rest + chunk.data).split(b"\n")
            if len(rest) > LINE_MOST:
                samples.too_much(rest)
                rest = b""
            for line in lines:
                _read_line(read, p, samples, Line(line.decode("utf-8", "replace"), chunk.at_ns))
        if rest:
            _read_line(read, p, samples, Line(rest.decode("utf-8", "replace"), samples.to_ns))
        if end is not None:
            end(p, samples)

    return feed


def _read_line(read: Callable[[Any, Samples, Line], None], p: Any, samples: Samples, line: Line) -> None:
    try:
        read(p, samples, line)
    except NotUnderstood as error:
        samples.not_understood(str(error) or line.text)
    except _REFUSED:
        samples.not_understood(line.text)


def whole(read: Callable[[Any, Samples, bytes], None]) -> Callable[[Any, Samples], Reading]:
    """Reads a tool that prints one document: `read` is called once, at the end, with all of it."""

    @functools.wraps(read)
    def feed(p: Any, samples: Samples) -> Reading:
        parts: list[bytes] = []
        size = 0
        while (chunk := (yield)) is not None:
            size += len(chunk.data)
            samples.read_ns = chunk.at_ns
            if size > DOCUMENT_MOST:
                samples.too_much(chunk.data)
                return
            parts.append(chunk.data)
        document = b"".join(parts)
        try:
            read(p, samples, document)
        except _REFUSED as error:
            samples.not_understood(f"{error}: {document[:60].decode('utf-8', 'replace')}")

    return feed
