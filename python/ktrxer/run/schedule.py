# SPDX-License-Identifier: MIT OR Apache-2.0
"""A plan as processes: which runner, in which place, from when to when, and which series their output belongs to."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ktrxer import runners
from ktrxer.catalogue.recipe import Invocation, Plan, PlanError, S, Setting
from ktrxer.places import LOCAL, is_here
from ktrxer.run import timers
from ktrxer.run.provenance import plain
from ktrxer.runners.runner import Options, Runner, RunnerError, Times
from ktrxer.store.meta import Phase, Series
from ktrxer.store.meta import Runner as Stored

SHARE_GOAL = 0.01  # of the path's rate: what the probes should take
PROBE_BYTES = 105  # of a probe before it is known: its mean size over IPv4


@dataclass
class Job:
    """A process of the run. Times are since the run's zero; None: not known before others have ended."""

    invocation: Invocation
    runner: Runner
    stored: Stored
    options: Options
    from_ns: int | None
    length_ns: int
    series: Mapping[Hashable, Series]
    riders: list[Job] = field(default_factory=list)  # jobs that the process of this one does as well

    @property
    def rides(self) -> bool:
        """Another job's process does its work."""
        return self.stored.process is not None

    @property
    def timeout_ns(self) -> int:
        """The process waits so long for the last answer."""
        return self.runner.timeout_ns(self.invocation.parameters, self.options)

    def command(self, start_real_ns: int | None = None) -> list[str]:
        """The command line; `start_real_ns` is on the clock of its place."""
        with runners.refusals(self.runner):
            command = self.runner.command(self.invocation.parameters, self.options, Times(self.length_ns, start_real_ns))
        return [*command, *(word for rider in self.riders for word in self._carried(rider) or [])]

    def _carried(self, rider: Job) -> list[str] | None:
        carries = self.runner.carries
        return carries(self.invocation.parameters, self.options, rider.runner.name, rider.invocation.parameters) if carries else None

    def carries(self, other: Job) -> bool:
        """Can this job's process do the other job as well?"""
        same = (self.invocation.when, self.invocation.place) == (other.invocation.when, other.invocation.place)
        return same and is_here(self.invocation.place) and not self.riders and self._carried(other) is not None

    @property
    def inside(self) -> bool:
        """This program does its work, without a process."""
        return self.runner.here is not None and self.invocation.place == LOCAL

    @property
    def probes(self) -> int:
        return self.runner.probes(self.invocation.parameters)


@dataclass
class Schedule:
    jobs: list[Job]
    series: list[Series]
    phases: list[Phase]
    length_ns: int
    trip_ns: int = 0  # the round trip, by the trials before the run; 0: not known

    @property
    def connect_ns(self) -> int:
        """The time before the run in which its flows are connected."""
        starts = [job.from_ns for job in self.jobs if job.runner.loads and job.from_ns is not None]
        return timers.connect_ns(self.trip_ns, min(starts, default=None))

    def reflected_hz(self) -> float:
        """Probes a second that `ktrxer serve` answers, all together: at the far end with most of them."""
        rates: dict[str | None, float] = {}
        for job in self.jobs:
            if job.runner.own and job.runner.protocol == "UDP":
                rates[job.stored.host] = rates.get(job.stored.host, 0) + job.probes * S / (job.stored.interval_ns or S)
        return max(rates.values(), default=0)

    def light_interval(self, interval_ns: int, rate_bps: float) -> int:
        """`interval_ns`, or a longer one, at which the probes of this plan take SHARE_GOAL of a rate; in two digits, a second at most."""
        probing = [job for job in self.jobs if job.probes]
        shortest = min((job.stored.interval_ns or S for job in probing), default=S)
        probes = sum(job.probes * PROBE_BYTES * 8 * S / (job.stored.interval_ns or S) for job in probing)
        factor = probes / (SHARE_GOAL * rate_bps)
        if factor <= 1:
            return interval_ns
        wanted = math.ceil(shortest * factor)
        step: int = 10 ** max(0, len(str(wanted)) - 2)
        return min(-(-wanted // step) * step, S)

    def take_over(self, tried: Schedule) -> None:
        """The results of the trials of another plan for the same path: the round trip, and the versions of the tools."""
        versions = {(job.invocation.place, job.runner.name): job.stored.tool_version for job in tried.jobs}
        for job in self.jobs:
            job.stored.tool_version = versions.get((job.invocation.place, job.runner.name))
        self.set_trip(tried.trip_ns)

    def set_trip(self, trip_ns: int) -> None:
        self.trip_ns = trip_ns
        for job in self.jobs:
            job.options = replace(job.options, ahead_ns=timers.ahead_ns(trip_ns))


def ns(seconds: float) -> int:
    return round(seconds * S)


def make(plan: Plan, setting: Setting, options: Options) -> Schedule:
    total = ns(plan.total_s if plan.total_s is not None else setting.total_s)
    options = replace(options, host=setting.host, timeout_ns=setting.timeout_ns)
    jobs: list[Job] = []
    every: list[Series] = []
    for invocation in sorted(together(plan.runs), key=_order):
        job = _job(invocation, len(jobs), total, options)
        for series in job.series.values():
            series.id, series.runner = len(every), job.stored.id
            every.append(series)
        jobs.append(job)
    _share(jobs, {name for one in plan.runs for name in (one.when.start_after, one.when.stop_after)})
    return Schedule(jobs, every, _phases(plan, jobs, total), total)


def _order(invocation: Invocation) -> tuple[bool, bool]:
    """Probes, then loads, then the state of hosts."""
    runner = runners.find(invocation.runner)
    return runner.auxiliary, runner.loads


def together(runs: Sequence[Invocation]) -> list[Invocation]:
    """Invocations that may share a process do. One that others wait for keeps its own."""
    named = {name for one in runs for name in (one.when.start_after, one.when.stop_after)}
    made: list[Invocation] = []
    for one in runs:
        merge = runners.find(one.runner).merge
        if merge is not None and one.name not in named:
            for place, other in enumerate(made):
                if (other.runner, other.when, other.place) != (one.runner, one.when, one.place) or other.name in named:
                    continue
                both = merge(other.parameters, one.name, one.parameters)
                if both is not None:
                    made[place] = replace(other, parameters=both)
                    break
            else:
                made.append(one)
        else:
            made.append(one)
    return made


def _share(jobs: Sequence[Job], named: Iterable[str | None]) -> None:
    """Jobs that the process of another one can do as well ride with it, but for those that others wait for."""
    for job in jobs:
        if job.invocation.name in named or job.invocation.when.start_after or job.invocation.when.stop_after:
            continue
        carrier = next((other for other in jobs if other is not job and other.carries(job)), None)
        if carrier is not None:
            carrier.riders.append(job)
            job.stored.process = carrier.stored.id


WITHOUT_SOURCE = ("http_load", "http_rpm")


def family_of(source: str) -> str:
    """The option of the address's family."""
    return "-6" if ":" in source else "-4"


def _job(invocation: Invocation, number: int, total: int, options: Options) -> Job:
    when, runner, parameters = invocation.when, runners.find(invocation.runner), invocation.parameters
    begin = ns(when.delay_s) if when.start_after is None else None
    length = ns(when.length_s) if when.length_s is not None else total - ns(when.delay_s)
    if length <= 0 or (begin is not None and begin + length > total):
        beyond = f"it would last beyond the end of the run ({total / S:g} s)"
        raise PlanError(f"{invocation.name}: {beyond}; make the run longer or its idle phases shorter")
    options = replace(options, family=parameters.family or options.family)
    if not is_here(invocation.place):
        options = replace(options, ktrxer="ktrxer", source=None)  # the one on the PATH there
    if options.source and family_of(options.source) != options.family:
        raise PlanError(f"{invocation.name}: --from {options.source} is not an address of {'IPv4' if options.family == '-4' else 'IPv6'}")
    if options.source and runner.name in WITHOUT_SOURCE:
        raise PlanError(f"{invocation.name}: --from: the runner {runner.name} cannot choose its address")
    series = runner.series(parameters, invocation.name)
    # A process that does the work of several invocations has the names of their series.
    name = ", ".join(one.name for one in series.values()) if runner.merge is not None else invocation.name
    host = parameters.host or (options.host if not runner.auxiliary else None)
    stored = Stored(
        number, name, runner.name, [], host, interval_ns=parameters.interval_ns, from_ns=begin,
        to_ns=begin + length if begin is not None else None, protocol=runner.protocol, place=invocation.place,
        parameters=plain(parameters), auxiliary=runner.auxiliary,
    )  # fmt: skip
    job = Job(invocation, runner, stored, options, begin, length, series)
    try:
        job.command()
    except RunnerError as error:
        raise PlanError(f"{invocation.name}: {error}") from None
    return job


def _phases(plan: Plan, jobs: list[Job], total: int) -> list[Phase]:
    """The time of the load: from the first load's beginning to the last one's end."""
    loads = [job for job in jobs if job.runner.loads]
    if plan.load_s is not None:
        begin, end = map(ns, plan.load_s)
    elif loads:
        starts = [job.from_ns for job in loads if job.from_ns is not None]
        begin = min(starts, default=0)
        # One that begins after another one's end may last to the end of the run.
        waits = any(job.from_ns is None for job in loads)
        end = total if waits else max((job.from_ns or 0) + job.length_ns for job in loads)
    else:
        return [Phase("idle_before", 0, total)]
    phases = [Phase("idle_before", 0, begin), Phase("load", begin, end), Phase("idle_after", end, total)]
    return [phase for phase in phases if phase.to_ns > phase.from_ns]
