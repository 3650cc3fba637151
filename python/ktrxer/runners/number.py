# SPDX-License-Identifier: MIT OR Apache-2.0
"""Any command that prints a number: once at each interval, or a line for each number."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ktrxer.runners import tools
from ktrxer.runners.runner import Options, Parameters, Runner, RunnerError, S, Times, Tool, between, ends_well
from ktrxer.runners.samples import Line, Samples, by_line
from ktrxer.store.meta import Series

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
WORDS_MOST = 100
# The time and the output of each command as one line.
SCRIPT = tools.repeat("""printf '%s ' "$now"; "$@" </dev/null | tr '\\n' ' '; echo""")


@dataclass(frozen=True, kw_only=True)
class Numbers(Parameters):
    interval_ns: int = S
    words: tuple[str, ...] = ()  # the command and its arguments
    repeat: bool = True  # it is started at each interval; False: it is started once, prints lines, and may go on until the run stops it
    pattern: str = NUMBER  # a regular expression; its group, or all of it, is the number
    unit: str = ""
    group: str = ""


def validate(p: Numbers) -> None:
    tools.interval(p.interval_ns, 100, 3600)
    between("words of the command", len(p.words), 1, WORDS_MOST)
    tools.word("the command", p.words[0])
    try:
        groups = re.compile(p.pattern).groups
    except re.error as error:
        raise RunnerError(f"pattern {p.pattern[:60]!r} is no regular expression: {error}") from None
    if groups > 1:
        raise RunnerError(f"pattern {p.pattern[:60]!r} has {groups} groups; at most one is possible")


def command(p: Numbers, _: Options, times: Times) -> list[str]:
    return ["sh", "-c", SCRIPT, "sh", str(p.interval_ns), str(times.length_ns), *p.words] if p.repeat else list(p.words)


def series(p: Numbers, name: str) -> Mapping[Hashable, Series]:
    return {"number": Series(0, name, "value", p.unit, group=p.group or None)}


def line(p: Numbers, samples: Samples, line: Line) -> None:
    """A number without a time of its own has the time at which it was read."""
    at, _, text = line.text.partition(" ") if p.repeat else ("", "", line.text)
    if not text.strip() and not p.repeat:
        return
    found = re.search(p.pattern, text)
    if found is None:
        raise ValueError(text)
    number = float(found[1] if found.re.groups else found[0])
    samples.value("number", samples.clock.real(int(at)) if p.repeat else line.at_ns, number)


RUNNER = Runner(
    "number", "a number that any command prints", Numbers, validate, command, series, by_line(line), ends_well,
    tool=Tool("sh", "dash"), program=lambda p: p.words[0], endless=lambda p: not p.repeat,
)  # fmt: skip
