# SPDX-License-Identifier: MIT OR Apache-2.0
"""The contract of a runner: a tool that measures, as five functions in one file (docs/howto/add-runner.md).

    validate(p)         what is wrong with the parameters, before anything starts
    command(p, options, times)
                        the command line
    series(p, name)     which series its output has, by a key of the runner's own
    read(p, samples)    a generator that receives the output as it comes, and adds samples (made by `by_line` or `whole`)
    health(ended)       reasons for the verdict, from the end of the process
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ktrxer.configured import SERVER_PORT
from ktrxer.runners.samples import Reading, Samples
from ktrxer.store.meta import Runner as Process
from ktrxer.store.meta import Series
from ktrxer.store.reasons import Reason, reason

MS, S = 10**6, 10**9


class RunnerError(Exception):
    """A tool cannot run with these parameters or in this place. One line: what, why, what to do."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Every runner has these. The class of a runner adds its own, each with a default."""

    host: str = ""  # the far end; empty: the host of the run
    family: Literal["", "-4", "-6"] = ""  # empty: that of the run
    interval_ns: int | None = None  # between two samples


@dataclass(frozen=True)
class Options:
    """Settings that are the same for all processes of a run in one place."""

    ktrxer: str = "ktrxer"  # the command itself in that place
    port: int = SERVER_PORT
    token_file: str | None = None
    family: str = ""  # "-4", "-6", or either
    source: str | None = None
    precise: bool = False  # probes spin before each send time
    host: str = ""
    timeout_ns: int = 10 * S  # a probe without an answer for so long is lost
    ahead_ns: int | None = None  # the flows of a path with a long round trip are connected so long before they begin


@dataclass(frozen=True)
class Times:
    """The time in which a process measures."""

    length_ns: int
    start_real_ns: int | None = None  # CLOCK_REALTIME of its place; None: not known yet

    @property
    def length_s(self) -> float:
        return self.length_ns / S


@dataclass(frozen=True)
class Tool:
    """A program that must be in the place, and how it prints its version. An older version than `least` is refused."""

    program: str
    package: str  # of Debian, for the message; empty: any
    version: Sequence[str] = ()  # the words after the program that print its version; none: any version will do
    pattern: str = r"(\d+(?:\.\d+)+)"
    least: str = ""

    def check(self, status: int, printed: str) -> str:
        """The version. RunnerError when the tool is missing or too old."""
        if status == 127:
            where = f" (Debian: {self.package})" if self.package else ""
            raise RunnerError(f"{self.program} is not installed{where}")
        found = re.search(self.pattern, printed)
        if found is None:
            raise RunnerError(f"`{self.program} {' '.join(self.version)}` printed no version (exit status {status})")
        if self.least and _numbers(found[1]) < _numbers(self.least):
            raise RunnerError(f"{self.program} has version {found[1]}; {self.least} or newer is needed")
        return found[1]


def between(what: str, value: float | None, low: float, high: float, unit: str = "") -> None:
    """RunnerError when a parameter is out of its limits. None: it is not given."""
    if value is not None and not low <= value <= high:
        raise RunnerError(f"{what}: {value:.15g}{unit}; {low:.15g}{unit} to {high:.15g}{unit} are possible")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


@dataclass(frozen=True)
class Ended:
    """A process at its end, as it is stored: it can be read from a run that was cut off."""

    process: Process  # status, exit_status, end (the result that it printed), stderr_tail, parameters
    samples: int  # answered probes, and flows that moved bytes


@dataclass(frozen=True)
class Trial:
    """A short measurement before the run, which finds a far end that does not answer."""

    command: list[str]
    server: bool  # an answer shows that `ktrxer serve` is there
    estimates: bool = False  # its result has the rate of the path
    label: str = ""  # in messages; empty: the first two words of the command


class Listener(NamedTuple):
    """A server of another project that a tool needs at the far end. Before the run it must accept a TCP connection."""

    host: str
    port: int
    server: str  # what to start there


class Source(Protocol):
    """The state of this host, read in this program: no process is started for it."""

    def sample(self, samples: Samples, at_ns: int) -> None:
        """Read the state once, and add it. `at_ns`: time of the run. This must take a millisecond at most. A RunnerError or an OSError ends
        this source, not the run."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Runner:
    """The object RUNNER of a runner's file."""

    name: str
    summary: str
    parameters: type[Any]
    validate: Callable[[Any], None]
    command: Callable[[Any, Options, Times], list[str]]
    series: Callable[[Any, str], Mapping[Hashable, Series]]
    read: Callable[[Any, Samples], Reading]
    health: Callable[[Ended], Iterable[Reason]]
    tool: Tool | None = None  # None: a command of ktrxer
    program: Callable[[Any], str] | None = None  # instead of `tool`: the program that the user's parameters name
    protocol: str | None = None  # of its probes: UDP, ICMP, ...; round trips of two protocols are never mixed
    loads: bool = False  # it fills the path: the load phase lasts as long as such processes
    own: bool = False  # a command of ktrxer: it ends with its standard input, and starts at the given time by itself
    endless: Callable[[Any], bool] = lambda _: False  # it goes on until the run stops it, at the end of its time
    ends_itself: bool = False  # it ends as soon as it has its result: its time in the plan is the longest that it may take
    # Parameters of one process that also does the work of a second one, whose series has this name; None: each needs a process.
    merge: Callable[[Any, str, Any], Any | None] | None = None
    # The options with which its process also does the work of another runner's process, of this name and these parameters, and marks the
    # objects of that work ("of" and the name). None: it cannot.
    carries: Callable[[Any, Options, str, Any], list[str] | None] | None = None
    trial: Callable[[Any, Options, bool], Trial] | None = None  # True: the trial must estimate the rate of the path
    listeners: Callable[[Any, Options], Sequence[Listener]] = lambda _, __: ()
    timeout_ns: Callable[[Any, Options], int] = lambda _, __: 0  # the process waits so long for its last answers
    probes: Callable[[Any], int] = lambda _: 0  # delay probes that leave at each interval
    # The state of a host beside the measurement: the run does not last longer for it, and is not invalid without it.
    auxiliary: bool = False
    # This program reads the state itself in place `local`, instead of `command`. RunnerError when it cannot.
    here: Callable[[Any, Options], Source] | None = None


def ends_well(ended: Ended) -> Iterable[Reason]:
    """The health of a tool by its exit status. Some tools always end with 0: without samples, a line on standard error is a reason, too."""
    lines = [line.strip() for line in ended.process.stderr_tail.splitlines() if line.strip()]
    status = ended.process.exit_status or 0  # negative: a signal, which the verdict names in any case
    if status > 0 or (lines and not ended.samples and ended.process.exit_status == 0):
        stated = f": {lines[-1]}" if lines else ""
        yield reason("exit_status", status=status, error=stated)


def lookup_name(host: str) -> str | bytes:
    """getaddrinfo encodes a text by IDNA, but no bytes: that import takes a millisecond. A label of more than 63 characters is
    refused by IDNA with its reason."""
    return host.encode() if host.isascii() and len(host) <= 63 else host
