# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts that the commands of ktrxer have in common: times on the command line, output (a JSON object a line, docs/schema/), health.

Another program may be at the other end of the pipe, so every value is checked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ktrxer.runners.runner import Ended, Options, Times
from ktrxer.runners.samples import LINE_MOST, NS_MOST, NotUnderstood, Reading, Samples
from ktrxer.store import one_line
from ktrxer.store.objects import Unknown
from ktrxer.store.reasons import TEXT, Reason, Severity, reason
from ktrxer.store.reasons import read_all as read_reasons

Object = dict[str, Any]


def words(command: list[str], times: Times) -> list[str]:
    """The command line of a process of a run, for a command that measures for a given time."""
    return counted([*command, "--for", f"{times.length_ns}ns"], times)


def counted(command: list[str], times: Times) -> list[str]:
    """The same, for a command that ends after a number of probes, or when it has its result."""
    start = ["--start-at", str(times.start_real_ns)] if times.start_real_ns is not None else []
    return [*command, *start, "--jsonl", "--stop-on-eof"]


def sockets(o: Options) -> list[str]:
    """Options of every command."""
    return [*([o.family] if o.family else []), *(["--from", o.source] if o.source else [])]


def read(
    samples: Samples,
    sample: Callable[[Object], None],
    event: Callable[[Object], None] | None = None,
    end: Callable[[Object], None] | None = None,
) -> Reading:
    """`sample` adds the rows of one object, or refuses it (NotUnderstood). `event` receives the events, which are stored in any case,
    and `end` the last object, which is stored, too."""
    rest, unknown = b"", Unknown(samples.unknown)
    while (chunk := (yield)) is not None:
        samples.now_ns = chunk.at_ns
        *lines, rest = (rest + chunk.data).split(b"\n")
        if len(rest) > LINE_MOST:
            samples.too_much(rest)
            rest = b""
        for line, made in zip(lines, _objects(lines), strict=True):
            if made is None and not line.strip():
                continue
            if not isinstance(made, dict) or not isinstance(kind := made.get("type"), str):
                samples.not_understood(line[:80].decode("utf-8", "replace"))
                continue
            unknown.see(made)
            try:
                if kind == "sample":
                    sample(made)
                elif kind == "event":
                    _event(samples, made)
                    if event is not None:
                        event(made)
                elif kind == "end":
                    samples.result = made
                    if end is not None:
                        end(made)
                elif kind == "start":
                    _start(samples, made)
            except NotUnderstood as error:
                samples.not_understood(str(error))
    if rest.strip():
        samples.not_understood((rest[:60] + b" (cut off)").decode("utf-8", "replace"))


def _start(samples: Samples, made: Object) -> None:
    """The object holds both clocks of its host, which give the monotonic clock of another kernel."""
    clock = made.get("clock")
    if samples.clock.zero_mono_ns is None and isinstance(clock, dict):
        samples.clock.zero_mono_ns = samples.clock.zero_real_ns - (number(clock, "real_ns") - number(clock, "mono_ns"))


def zero(samples: Samples) -> int:
    """The run's zero on the monotonic clock of the process."""
    found = samples.clock.zero_mono_ns
    if found is None:
        raise NotUnderstood("a sample before the start object, which has the clocks of its host")
    return found


def _event(samples: Samples, made: Object) -> None:
    rest = {name: value for name, value in made.items() if name not in ("type", "name", "time_ns")}
    text = json.dumps(rest, ensure_ascii=False, separators=(",", ":")) if rest else ""
    samples.event(number(made, "time_ns") - zero(samples), str(made.get("name")), text)


def number(made: Object, name: str) -> int:
    value = made.get(name)
    if type(value) is not int or not -NS_MOST <= value <= NS_MOST:
        raise NotUnderstood(f"{name} is {json.dumps(value, default=str)[:40]}")
    return value


def maybe(made: Object, name: str) -> int | None:
    """A count may be written as a double; anything else than a number counts as missing."""
    value = made.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -NS_MOST <= value <= NS_MOST:
        return None
    return int(value)


def health(ended: Ended, worst: str = "invalid") -> Iterable[Reason]:
    """The verdict of the process itself. `invalid` makes the run invalid only if the process has samples and `worst` allows it."""
    end = ended.process.end or {}
    if end.get("verdict") in ("degraded", "invalid"):
        invalid = end["verdict"] == "invalid" and ended.samples and worst == "invalid"
        severity: Severity = "invalid" if invalid else "degraded"
        for one in read_reasons(end.get("reasons")) or [reason("no_reason_given", severity)]:
            # A sentence of an older version has no severity of its own.
            yield replace(one, severity=severity if one.id == TEXT or not invalid else one.severity)


def mild_health(ended: Ended) -> Iterable[Reason]:
    """A process without a result does not make the samples of the other processes invalid."""
    return health(ended, worst="degraded")


def complaint(stderr: str) -> str:
    """The last line for people, without the name of the command."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return one_line(lines[-1].removeprefix("ktrxer: ")) if lines else ""


# -------------------------------------------------------------------------------------------------------------- JSON


def _refuse(name: str) -> float:
    raise ValueError(name)


_decode = json.JSONDecoder(parse_constant=_refuse).decode


def _objects(lines: list[bytes]) -> list[Any]:
    """The value of each line; None for one that is not JSON. All lines are decoded at once, which is half the work, unless one is wrong."""
    with contextlib.suppress(ValueError, RecursionError):
        made = _decode(f"[{b','.join(lines).decode()}]")
        if len(made) == len(lines):
            return list(made)
    return [_object(line) for line in lines]


def _object(line: bytes) -> Any:
    try:
        return _decode(line.decode())
    except (ValueError, RecursionError):
        return None
