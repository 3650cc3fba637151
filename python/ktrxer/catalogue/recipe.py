# SPDX-License-Identifier: MIT OR Apache-2.0
"""The language of tests. A test is a function from a setting (host, length) to a plan: which runners, where, when, and the plots.

    def plan(setting: Setting, p: Parameters) -> Plan:
        return combine(icmp(setting), uploads(setting, ["TCP upload"]), plots=("totals", "ping"))

    TEST = Test("my_upload", "One upload, and pings", plan, Parameters)
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import traceback
import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal

from ktrxer import places, runners
from ktrxer.catalogue import plots
from ktrxer.places import LOCAL
from ktrxer.runners.flow import Flows
from ktrxer.runners.marks import DSCP
from ktrxer.runners.probes import Probes
from ktrxer.runners.runner import MS, RunnerError, S
from ktrxer.runners.stamp import Classes
from ktrxer.units import near

Direction = Literal["up", "down"]


class PlanError(Exception):
    """A test cannot run with these settings. One line: what, why, what to do."""


class NoRunner(PlanError):
    """The runner that a test names is not installed."""


@dataclass(frozen=True)
class Setting:
    """The settings of the user that every test has."""

    host: str
    length_s: float = 60
    delay_s: float = 5  # idle before and after the load
    probe_interval_ns: int = 10 * MS
    sample_interval_ns: int = 200 * MS
    cc_up: str = ""  # congestion control; empty: the host's own
    cc_down: str = ""
    timeout_ns: int = 10 * S  # a probe without an answer for so long is lost: longer than any usual queue
    more_hosts: tuple[str, ...] = ()  # further far ends, for tests that use several
    ping_hosts: tuple[str, ...] = ()  # HOST, or HOST,DSCP or HOST,DSCP,ECN: each has pings of its own, beside the test

    @property
    def hosts(self) -> tuple[str, ...]:
        return (self.host, *self.more_hosts)

    @property
    def labelled_hosts(self) -> list[tuple[str, str]]:
        """Each far end with a name for its series. A host that is given again is HOST//2, as in Flent."""
        seen: Counter[str] = Counter()
        made = []
        for host in self.hosts:
            seen[host] += 1
            made.append((host, host if seen[host] == 1 else f"{host}//{seen[host]}"))
        return made

    @property
    def total_s(self) -> float:
        return self.length_s + 2 * self.delay_s


@dataclass(frozen=True)
class When:
    """A time of `length_s`, `delay_s` after the beginning of the run (or after the end of `start_after`); it ends early at the end of
    `stop_after`."""

    delay_s: float = 0
    length_s: float | None = None  # None: to the end of the run
    start_after: str | None = None  # the name of an invocation
    stop_after: str | None = None


@dataclass(frozen=True)
class Invocation:
    """One use of a runner: a process with a name, a place and a time. Its parameters are those of the runner (runners/NAME.py)."""

    runner: str
    name: str
    parameters: Any
    when: When = When()
    place: str = LOCAL


@dataclass(frozen=True)
class Panel:
    """A plot of a recipe's own, beside those that every run has: series by their names, in which * stands for any text."""

    name: str
    title: str
    series: tuple[str, ...]
    type: Literal["time", "cdf", "box"] = "time"


@dataclass(frozen=True)
class Step:
    """A part of the load with a name of its own, stored with the run: `two flows`, from 5 s to 10 s."""

    name: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class Plan:
    runs: tuple[Invocation, ...] = ()
    plots: tuple[str, ...] = ()  # the first one is shown first; names of plots.py, or of `panels`
    total_s: float | None = None  # of the whole run; None: the setting's length and idle phases
    load_s: tuple[float, float] | None = None  # None: from the first load's beginning to the last one's end
    panels: tuple[Panel, ...] = ()
    steps: tuple[Step, ...] = ()  # the parts of a load that changes while it is on
    outcomes: tuple[str, ...] = ()  # the primary outcomes of a comparison, by keys of figures; empty: added delay, rates and loss
    tolerance_percent: float | None = None  # of the headline figures, in which `valid` needs their error bounds; None: 5


@dataclass(frozen=True)
class NoParameters:
    """The parameters of tests that have none of their own."""


def parameter(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    most: int = 1000,
    parse: Callable[[str], Any] | None = None,
    words: Mapping[str, Callable[[], Any]] | None = None,
) -> Any:
    """A field of a test's parameters. Its type is that of the field: a text, number, yes or no, a choice (Literal), or a tuple of them,
    which is given as a list with commas of at most `most` values. `parse` reads a number with a unit (ktrxer.units). `words` are values
    that are computed where the test runs, such as num_cpus."""
    limits = {"help": help, "low": low, "high": high, "most": most, "parse": parse, "words": words or {}}
    return field(default=default, metadata=limits)


@dataclass(frozen=True)
class Test:
    name: str
    summary: str
    plan: Callable[[Setting, Any], Plan]
    parameters: type = NoParameters
    description: str = ""
    given: Mapping[str, str] = field(default_factory=dict)  # parameters that another name of a recipe sets
    path: str = ""  # of a user's own file
    hosts: tuple[int, int] = (1, 1)  # the least and the largest number of far ends

    def make(self, setting: Setting, given: dict[str, str]) -> Plan:
        """The plan for these parameters, checked as a whole. An error of the recipe's own names its line."""
        least, most = self.hosts
        if not least <= len(setting.hosts) <= most:
            wanted, hosts = str(least) if least == most else f"{least} to {most}", len(setting.hosts)
            ends, times = ("far end", "time") if most == 1 else ("far ends", "times")
            was = f"it was given {hosts} time{'' if hosts == 1 else 's'}"
            raise PlanError(f"{self.name} has {wanted} {ends}: give -H {wanted} {times}; {was}")
        parameters = parameters_of(self, given)
        try:
            plan = self.plan(setting, parameters)
            if not isinstance(plan, Plan):
                raise TypeError(f"`plan` returned {type(plan).__name__}, not a Plan")
            plan = combine(plan, *(_pings(setting, one) for one in dict.fromkeys(setting.ping_hosts)))
        except (Exception, SystemExit) as error:
            if isinstance(error, PlanError) and not self.path:
                raise
            text = str(error) if isinstance(error, PlanError) else f"{type(error).__name__}: {error}"
            where = where_in(error, self.path or getattr(getattr(self.plan, "__code__", None), "co_filename", ""))
            raise type(error)(f"{where}{text}") if isinstance(error, PlanError) else PlanError(f"{where}{text}") from error
        try:
            check(plan)
        except PlanError as error:
            raise PlanError(f"{self.path}: {error}" if self.path else str(error)) from None
        return plan


def example(test: Test) -> Setting:
    """A setting with as many far ends as the test needs at least."""
    return Setting("HOST", more_hosts=tuple(f"HOST{n}" for n in range(2, test.hosts[0] + 1)))


# ---------------------------------------------------------------------------------------------------------------- building blocks


def run(runner: str, name: str, parameters: Any = None, *, when: When = When(), place: str = LOCAL, **more: Any) -> Plan:
    """Any runner. `more` are its parameters by name, where `parameters` are not given whole."""
    if parameters is None:
        kind = _runner(runner).parameters
        try:
            parameters = kind(**more)
        except TypeError:
            known = [one.name for one in dataclasses.fields(kind)]
            unknown = [key for key in more if key not in known]
            raise PlanError(f"{name}: runner {runner} has no parameter {', '.join(unknown)}; it has: {', '.join(known)}") from None
    return Plan((Invocation(runner, name, parameters, when, place),))


def icmp(setting: Setting, name: str = "Ping (ms) ICMP", *, when: When = When(), place: str = LOCAL, **more: Any) -> Plan:
    """ICMP echo at the setting's interval."""
    return run("ping", name, Probes(**{"interval_ns": setting.probe_interval_ns} | more), when=when, place=place)


def _pings(setting: Setting, text: str) -> Plan:
    host, *marks = text.split(",")
    if len(marks) > 2:
        raise PlanError(f"--ping-host {text[:60]}: it is HOST, HOST,DSCP or HOST,DSCP,ECN")
    mark, ecn = [*marks, "", ""][:2]
    words = " ".join([host, *filter(None, marks)])
    return icmp(setting, f"Ping (ms) ICMP {words}{EXTRA}", host=host, mark=mark or None, ecn=ecn or "off")


def udp(setting: Setting, name: str, mark: str | None = None, *, when: When = When(), place: str = LOCAL, **more: Any) -> Plan:
    """STAMP over UDP at the setting's interval."""
    return run("stamp", name, Classes(**{"interval_ns": setting.probe_interval_ns, "mark": mark} | more), when=when, place=place)


def loaded(setting: Setting) -> When:
    """Idle, load, idle: when the load is on."""
    return When(delay_s=setting.delay_s, length_s=setting.length_s)


def uploads(setting: Setting, series: Sequence[str], marks: Sequence[str | None] = (), name: str = "TCP upload", **more: Any) -> Plan:
    """TCP flows up: one for each name. `more`: when, place, and parameters of the runner `flow`."""
    return _flows(setting, "up", name, series, marks, setting.cc_up, more)


def downloads(setting: Setting, series: Sequence[str], marks: Sequence[str | None] = (), name: str = "TCP download", **more: Any) -> Plan:
    return _flows(setting, "down", name, series, marks, setting.cc_down, more)


def _flows(
    setting: Setting, direction: Direction, name: str, series: Sequence[str], marks: Sequence[str | None], cc: str, more: dict[str, Any]
) -> Plan:
    if not series:
        raise PlanError(f"{name}: 0 flows; 1 to 1000 are possible")
    when, place = more.pop("when", loaded(setting)), more.pop("place", LOCAL)
    ccs = tuple(filter(None, [cc])) if more.get("protocol", "tcp") == "tcp" else ()
    given: dict[str, Any] = {"cc": ccs, "interval_ns": setting.sample_interval_ns} | more
    return run("flow", name, Flows(direction=direction, series=tuple(series), marks=tuple(marks), **given), when=when, place=place)


def numbered(name: str, count: int) -> list[str]:
    """Flent's names of like series: `TCP upload::1`, `TCP upload::2`."""
    return [f"{name}::{n}" for n in range(1, count + 1)]


def distinct(labels: Sequence[str]) -> None:
    """Each label becomes a name. Of two equal parts `combine` would keep one."""
    if twice := {label for label, count in Counter(labels).items() if count > 1}:
        raise PlanError(f"two labels of the test are {min(twice)[:60]!r}")


def combine(
    *plans: Plan,
    plots: Sequence[str] = (),
    total_s: float | None = None,
    load_s: tuple[float, float] | None = None,
    panels: Sequence[Panel] = (),
    steps: Sequence[Step] = (),
) -> Plan:
    """Larger tests from smaller ones: everything of all of them, and once what several of them have. The plots given here come first."""
    runs: dict[str, Invocation] = {}
    for one in (one for plan in plans for one in plan.runs):
        if runs.setdefault(one.name, one) != one:
            raise PlanError(f"two parts of the test are called {one.name[:60]!r}")
    totals = [plan.total_s for plan in plans if plan.total_s is not None]
    loads = [plan.load_s for plan in plans if plan.load_s is not None]
    load = (min(load[0] for load in loads), max(load[1] for load in loads)) if loads else None
    return Plan(
        tuple(runs.values()),
        tuple(dict.fromkeys([*plots, *(plot for plan in plans for plot in plan.plots)])),
        total_s if total_s is not None else max(totals, default=None),
        load_s if load_s is not None else load,
        tuple({panel.name: panel for panel in [*panels, *(one for plan in plans for one in plan.panels)]}.values()),
        (*(one for plan in plans for one in plan.steps), *steps),
        tuple(dict.fromkeys(one for plan in plans for one in plan.outcomes)),
        min((plan.tolerance_percent for plan in plans if plan.tolerance_percent is not None), default=None),
    )


# ------------------------------------------------------------------------------------------------------------------------ checks


def parameters_of(test: Test, given: dict[str, str]) -> Any:
    """KEY=VALUE texts as the test's own typed parameters; values that are computed where the test runs are computed here."""
    fields = {f.name: f for f in dataclasses.fields(test.parameters)}
    hints = typing.get_type_hints(test.parameters)
    given = {**test.given, **{key.replace("-", "_"): text for key, text in given.items()}}  # Flent has names with both
    for key in given:
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise PlanError(f"{test.name} has no parameter {key!r}; it has: {known} (`ktrxer tests {test.name}` explains them)")
    values: dict[str, Any] = {}
    for name, one in fields.items():
        if name in given:
            values[name] = value_of(name, given[name], hints[name], one.metadata)
        elif isinstance(one.default, str) and one.default in one.metadata.get("words", {}):
            values[name] = one.metadata["words"][one.default]()
    return test.parameters(**values)


def value_of(key: str, text: str, kind: Any, limits: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """A text of the command line as a value of this type."""
    if typing.get_origin(kind) in (typing.Union, UnionType):  # a type, or None
        kind = next(one for one in typing.get_args(kind) if one is not NoneType)
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)[0]
        made = tuple(value_of(key, part.strip(), inner, limits) for part in text.split(",") if part.strip())
        if len(made) > limits.get("most", len(made)):
            raise PlanError(f"parameter {key}: {len(made)} values; there may be {limits['most']}")
        return made
    if text in limits.get("words", {}):
        return limits["words"][text]()
    if typing.get_origin(kind) is Literal:
        for choice in typing.get_args(kind):
            if text == str(choice):
                return choice
        raise PlanError(f"parameter {key}: {text!r}; it may be {', '.join(map(str, typing.get_args(kind)))}")
    if kind is bool:
        if text.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise PlanError(f"parameter {key}: {text!r}; it may be yes or no")
        return text.lower() in ("yes", "true", "1")
    if kind is str:
        return text
    try:
        value = (limits.get("parse") or kind)(text)
    except argparse.ArgumentTypeError as error:
        raise PlanError(f"parameter {key}: {error}") from None
    except ValueError:
        words = "".join(f", or {word}" for word in limits.get("words", {}))
        raise PlanError(f"parameter {key}: {text!r} is no {'whole number' if kind is int else 'number'}{words}") from None
    low, high = limits.get("low"), limits.get("high")
    if value != value or (low is not None and value < low) or (high is not None and value > high):
        raise PlanError(f"parameter {key}: {text}; it may be {low if low is not None else '-'} to {high if high is not None else 'any'}")
    return value


EXTRA = " (extra)"  # ends the name of the pings to a host of --ping-host
SERIES_MOST = 20_000  # of a stored run
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
_HOST = re.compile(r"[A-Za-z0-9_.:%\[\]-]{0,255}")


def _runner(name: str) -> runners.Runner:
    try:
        return runners.find(name)
    except RunnerError as error:
        raise NoRunner(str(error)) from None


def check(plan: Plan) -> None:
    """All checks of a plan that need no place and no far end."""
    if not plan.runs:
        raise PlanError("the test has no flow and no probe: nothing would be measured")
    names = [one.name for one in plan.runs]
    series: list[str] = []
    tables: list[tuple[str, str]] = []
    for one in plan.runs:
        runner = _runner(one.runner)
        if not isinstance(one.parameters, runner.parameters):
            raise PlanError(f"{one.name}: its parameters are {type(one.parameters).__name__}, not {runner.parameters.__name__}")
        try:
            with runners.refusals(runner):
                runner.validate(one.parameters)
                made = runner.series(one.parameters, one.name).values()
            places.check_name(one.place)
        except (RunnerError, places.PlaceError) as error:
            raise PlanError(f"{one.name}: {error}") from None
        if one.parameters.family not in ("", "-4", "-6"):
            raise PlanError(f"{one.name}: {one.parameters.family!r} is no address family; there are -4 and -6")
        if not _HOST.fullmatch(one.parameters.host) or one.parameters.host.startswith("-"):
            raise PlanError(f"{one.name}: {one.parameters.host[:40]!r} is no host")
        series += dict.fromkeys(single.name for single in made)
        tables += [(single.name, single.kind) for single in made]
    if len(tables) > SERIES_MOST:
        raise PlanError(f"the test has {len(tables):,} series; {SERIES_MOST:,} are possible")
    for what, given in (("parts", names), ("series", series), ("panels", [panel.name for panel in plan.panels])):
        twice = {name for name, count in Counter(given).items() if count > 1}
        if twice:
            raise PlanError(f"two {what} of the test are called {min(twice)!r}")
    if same := {name for (name, _), count in Counter(tables).items() if count > 1}:
        raise PlanError(f"two series of the test are called {min(same)!r}")
    for plot in plan.plots:
        _check_plot(plot, [panel.name for panel in plan.panels])
    for step in plan.steps:
        if not 0 <= step.from_s < step.to_s:
            raise PlanError(f"step {step.name!r} of the test lasts from {step.from_s:g} s to {step.to_s:g} s")
    for name in names + series + [step.name for step in plan.steps]:
        if not _NAME.fullmatch(name):
            raise PlanError(f"a name of the test is empty, too long or has control characters: {name[:40]!r}")
    for one in plan.runs:
        when = one.when
        for other in (when.start_after, when.stop_after):
            if other is not None and other not in names:
                raise PlanError(f"{one.name} waits for {other!r}, which the test does not have")
        if when.delay_s < 0 or (when.length_s is not None and when.length_s <= 0):
            raise PlanError(f"{one.name}: it cannot begin {when.delay_s:g} s after the start and last {when.length_s} s")
    _no_circle(plan.runs)


def _check_plot(name: str, own: Sequence[str]) -> None:
    known = [*own, *plots.NAMES]
    if name not in own and name.removesuffix(plots.SCALED) not in plots.NAMES:
        hint = near(name, known, "")
        raise PlanError(f"unknown plot {name[:60]!r} of the test; {f'{hint} There' if hint else 'there'} are: {', '.join(known)}")


def where_in(error: BaseException, path: str) -> str:
    """`FILE, line N (its text): `: the last line of a file that an exception went through; the file alone when it went through none."""
    whole = Path(path).resolve()  # Python names a module's file by its absolute path
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).resolve() == whole]
    if not frames:
        return f"{path}: " if path else ""
    line = " ".join((frames[-1].line or "").split())
    return f"{path}, line {frames[-1].lineno}" + (f" ({line[:80]}): " if line else ": ")


def _no_circle(runs: Sequence[Invocation]) -> None:
    waits = {one.name: one.when.start_after for one in runs}
    for name in waits:
        way: list[str] = []
        at = waits[name]
        while at is not None and at not in way:
            if at == name:
                raise PlanError(f"{name} waits for itself" + (f", by way of {', '.join(way)}" if way else ""))
            way.append(at)
            at = waits[at]


__all__ = [
    "DSCP", "MS", "Flows", "Invocation", "NoParameters", "NoRunner", "Panel", "Plan", "PlanError", "S", "Setting", "Step", "Test", "When",
    "check", "combine", "dataclass", "distinct", "downloads", "example", "icmp", "loaded", "numbered", "parameter", "parameters_of", "run",
    "udp", "uploads", "value_of", "where_in",
]  # fmt: skip
