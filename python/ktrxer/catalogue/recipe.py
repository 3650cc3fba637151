# SPDX-License-Identifier: MIT OR Apache-2.0
"""What tests are written in. A test is a function from a setting (which host, how long) to a plan: flows, probes, their times and plots.

    def plan(setting: Setting, p: Parameters) -> Plan:
        return combine(uploads(setting, ["TCP upload"]), Plan(probes=(icmp(setting),), plots=("totals", "ping")))

    TEST = Test("my_upload", "One upload, and pings", plan, Parameters)
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

MS = 10**6
S = 10**9

Direction = Literal["up", "down"]

# Code points by name: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE). BE and BK are what Flent calls CS0 and
# CS1.
DSCP: dict[str, int] = {
    "BE": 0, "BK": 8, "LE": 1, "EF": 46, "VA": 44,
    **{f"CS{n}": 8 * n for n in range(8)},
    **{f"AF{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)},
}  # fmt: skip


class PlanError(Exception):
    """A test cannot be run like that; one line: what, and what now."""


@dataclass(frozen=True)
class Setting:
    """What the user asked for, the same for every test."""

    host: str
    length_s: float = 60
    delay_s: float = 5  # idle before and after the load
    probe_interval_ns: int = 10 * MS
    sample_interval_ns: int = 200 * MS
    cc_up: str = ""  # congestion control; empty: the host's own
    cc_down: str = ""
    timeout_ns: int = 10 * S  # without an answer for so long a probe is lost: longer than the queues that there are

    @property
    def total_s(self) -> float:
        return self.length_s + 2 * self.delay_s


@dataclass(frozen=True)
class When:
    """From `delay_s` after the run's beginning (or after `start_after` has ended), for `length_s`; ended early when `stop_after` has
    ended."""

    delay_s: float = 0
    length_s: float | None = None  # None: to the end of the run
    start_after: str | None = None  # names of flows or probes
    stop_after: str | None = None


@dataclass(frozen=True)
class Probe:
    """Small packets at equal intervals whose round trip is measured: ICMP echo by `ktrxer ping`, STAMP over UDP by `ktrxer stamp`."""

    name: str  # of its series
    protocol: Literal["icmp", "udp"]
    interval_ns: int
    mark: str | None = None  # None: not marked, and not shown as a class
    when: When = When()
    group: str = "Ping (ms)"


@dataclass(frozen=True)
class Flows:
    """TCP flows of one direction which begin and end together, in one process. One name, mark and congestion control for each."""

    name: str
    direction: Direction
    series: tuple[str, ...]
    sample_ns: int
    marks: tuple[str | None, ...] = ()
    cc: tuple[str, ...] = ()
    when: When = When()

    def mark(self, flow: int) -> str | None:
        return self.marks[flow % len(self.marks)] if self.marks else None


@dataclass(frozen=True)
class Plan:
    flows: tuple[Flows, ...] = ()
    probes: tuple[Probe, ...] = ()
    plots: tuple[str, ...] = ()  # the first one is shown first
    total_s: float | None = None  # of the whole run; None: the setting's length and idle phases
    load_s: tuple[float, float] | None = None  # None: from the first flow's beginning to the last one's end


@dataclass(frozen=True)
class NoParameters:
    """For tests that need none of their own."""


def parameter(default: Any, help: str, *, low: float | None = None, high: float | None = None) -> Any:
    """A field of a test's parameters: its type is the field's, its limits are checked."""
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True)
class Test:
    name: str
    summary: str
    plan: Callable[[Setting, Any], Plan]
    parameters: type = NoParameters
    description: str = ""

    def make(self, setting: Setting, given: dict[str, str]) -> Plan:
        """The plan for these parameters, checked as a whole."""
        plan = self.plan(setting, parameters_of(self, given))
        check(plan)
        return plan


# ---------------------------------------------------------------------------------------------------------------- building blocks


def icmp(setting: Setting, name: str = "Ping (ms) ICMP", **more: Any) -> Probe:
    return Probe(name, "icmp", setting.probe_interval_ns, **more)


def udp(setting: Setting, name: str, mark: str | None = None, **more: Any) -> Probe:
    return Probe(name, "udp", setting.probe_interval_ns, mark, **more)


def loaded(setting: Setting) -> When:
    """Idle, load, idle: when the load is on."""
    return When(delay_s=setting.delay_s, length_s=setting.length_s)


def uploads(setting: Setting, series: Sequence[str], marks: Sequence[str | None] = (), name: str = "TCP upload", **more: Any) -> Plan:
    return _flows(setting, "up", name, series, marks, setting.cc_up, more)


def downloads(setting: Setting, series: Sequence[str], marks: Sequence[str | None] = (), name: str = "TCP download", **more: Any) -> Plan:
    return _flows(setting, "down", name, series, marks, setting.cc_down, more)


def _flows(
    setting: Setting, direction: Direction, name: str, series: Sequence[str], marks: Sequence[str | None], cc: str, more: dict[str, Any]
) -> Plan:
    given: dict[str, Any] = {"when": loaded(setting), "cc": tuple(filter(None, [cc])), "marks": tuple(marks)} | more
    return Plan(flows=(Flows(name, direction, tuple(series), setting.sample_interval_ns, **given),))


def numbered(name: str, count: int) -> list[str]:
    """Flent's names of like series: `TCP upload::1`, `TCP upload::2`."""
    return [f"{name}::{n}" for n in range(1, count + 1)]


def combine(*plans: Plan) -> Plan:
    """Larger tests from smaller ones: everything of all of them, and once what several of them have. Plots of the first one come first."""
    flows = {flow.name: flow for plan in reversed(plans) for flow in reversed(plan.flows)}
    probes = {probe.name: probe for plan in reversed(plans) for probe in reversed(plan.probes)}
    totals = [plan.total_s for plan in plans if plan.total_s is not None]
    loads = [plan.load_s for plan in plans if plan.load_s is not None]
    return Plan(
        tuple(reversed(flows.values())),
        tuple(reversed(probes.values())),
        tuple(dict.fromkeys(plot for plan in plans for plot in plan.plots)),
        max(totals, default=None),
        (min(load[0] for load in loads), max(load[1] for load in loads)) if loads else None,
    )


# ------------------------------------------------------------------------------------------------------------------------ checks


def parameters_of(test: Test, given: dict[str, str]) -> Any:
    """KEY=VALUE texts as the test's own typed parameters."""
    fields = {f.name: f for f in dataclasses.fields(test.parameters)}
    hints = typing.get_type_hints(test.parameters)
    values: dict[str, Any] = {}
    for key, text in given.items():
        if key not in fields:
            known = ", ".join(fields) or "none"
            raise PlanError(f"{test.name} has no parameter {key!r}; it has: {known} (`ktrxer tests {test.name}` explains them)")
        values[key] = _value(key, text, hints[key], fields[key].metadata)
    return test.parameters(**values)


def _value(key: str, text: str, kind: Any, limits: Any) -> Any:
    if kind is bool:
        if text.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise PlanError(f"parameter {key}: {text!r}; yes or no is wanted")
        return text.lower() in ("yes", "true", "1")
    if kind is str:
        return text
    try:
        value = kind(text)
    except ValueError:
        raise PlanError(f"parameter {key}: {text!r} is no {'whole number' if kind is int else 'number'}") from None
    low, high = limits.get("low"), limits.get("high")
    if value != value or (low is not None and value < low) or (high is not None and value > high):
        raise PlanError(f"parameter {key}: {text}; it may be {low if low is not None else '-'} to {high if high is not None else 'any'}")
    return value


_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")


def check(plan: Plan) -> None:
    """What no later part should have to wonder about."""
    items: list[Flows | Probe] = [*plan.flows, *plan.probes]
    names = [item.name for item in items]
    series = [name for flow in plan.flows for name in flow.series] + [probe.name for probe in plan.probes]
    if not items:
        raise PlanError("the test has no flow and no probe: nothing would be measured")
    for what, given in (("flows or probes", names), ("series", series)):
        twice = {name for name in given if given.count(name) > 1}
        if twice:
            raise PlanError(f"two {what} of the test are called {min(twice)!r}")
    for name in names + series:
        if not _NAME.fullmatch(name):
            raise PlanError(f"a name of the test is empty, too long or has control characters: {name[:40]!r}")
    for flow in plan.flows:
        if not 1 <= len(flow.series) <= 1000:
            raise PlanError(f"{flow.name}: {len(flow.series)} flows; 1 to 1000 are possible")
        if not 10 * MS <= flow.sample_ns <= 60 * S:
            raise PlanError(f"{flow.name}: samples every {flow.sample_ns / MS:g} ms; 10 ms to 60 s are possible")
    for probe in plan.probes:
        if not MS // 10 <= probe.interval_ns <= 60 * S:
            raise PlanError(f"{probe.name}: probes every {probe.interval_ns / MS:g} ms; 0.1 ms to 60 s are possible")
    marks = {mark for flow in plan.flows for mark in flow.marks} | {probe.mark for probe in plan.probes}
    unknown = sorted(mark for mark in marks if mark is not None and mark not in DSCP)
    if unknown:
        raise PlanError(f"no marking is called {unknown[0]!r}; there are {', '.join(DSCP)}")
    for item in items:
        when = item.when
        for other in (when.start_after, when.stop_after):
            if other is not None and (other not in names or other == item.name):
                raise PlanError(f"{item.name} waits for {other!r}, which the test does not have")
        if when.delay_s < 0 or (when.length_s is not None and when.length_s <= 0):
            raise PlanError(f"{item.name}: it cannot begin {when.delay_s:g} s after the start and last {when.length_s} s")
    _no_circle(items)


def _no_circle(items: Sequence[Flows | Probe]) -> None:
    waits = {item.name: item.when.start_after for item in items}
    for name in waits:
        seen = {name}
        at = waits[name]
        while at is not None:
            if at in seen:
                raise PlanError(f"{name} waits for itself, by way of {at}")
            seen.add(at)
            at = waits[at]
