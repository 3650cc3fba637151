# SPDX-License-Identifier: MIT OR Apache-2.0
"""A plan as processes: the command line of each, when it begins, and which series its lines belong to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ktrxer.catalogue.recipe import DSCP, Flows, Plan, PlanError, Probe, S, Setting, When
from ktrxer.store.meta import Phase, Runner, Series


@dataclass(frozen=True)
class Classes:
    """UDP probes that leave at the same times, each with its mark: one process for all, one wake-up for one probe of each."""

    probes: tuple[Probe, ...]

    @property
    def name(self) -> str:
        return ", ".join(probe.name for probe in self.probes)

    @property
    def when(self) -> When:
        return self.probes[0].when


Item = Flows | Probe | Classes
CLASSES_MOST = 8  # of one process
SHARE_GOAL = 0.01  # of the path's rate: what the probes should take
PROBE_BYTES = 105  # of a probe before it is known: its mean size over IPv4
WAITING_MOST = 20_000  # probes of one series within a time-out


@dataclass(frozen=True)
class Options:
    """How the processes are started: the same for all of them."""

    ktrxer: str
    port: int = 8620
    token_file: str | None = None
    family: str = ""  # "-4", "-6", or either
    source: str | None = None
    precise: bool = False  # probes spin before each send time


@dataclass
class Job:
    """One process to be. Times are since the run's zero; None: not known before others have ended."""

    item: Item
    runner: Runner
    command: list[str]  # without its times
    from_ns: int | None
    length_ns: int
    series: dict[tuple[str, int | None], Series] = field(default_factory=dict)  # (kind of table, number of the flow or class)
    timeout_ns: int = 0  # of its probes: the process waits so long for the last answer

    @property
    def kind(self) -> str:
        return self.runner.kind

    def argv(self, start_at_real_ns: int) -> list[str]:
        return [*self.command, "--for", f"{self.length_ns}ns", "--start-at", str(start_at_real_ns), "--jsonl", "--stop-on-eof"]


@dataclass
class Schedule:
    jobs: list[Job]
    series: list[Series]
    phases: list[Phase]
    length_ns: int

    def reflected_hz(self) -> float:
        """UDP probes a second, all together."""
        return sum(len(job.series) * S / (job.runner.interval_ns or S) for job in self.jobs if job.kind == "stamp")

    def light_interval(self, interval_ns: int, rate_bps: float) -> int:
        """`interval_ns`, or a longer one, at which the probes of this plan take SHARE_GOAL of a rate; in two digits, a second at most."""
        shortest = min((job.runner.interval_ns or S for job in self.jobs if job.kind != "flow"), default=S)
        probes = sum(len(job.series) * PROBE_BYTES * 8 * S / (job.runner.interval_ns or S) for job in self.jobs if job.kind != "flow")
        factor = probes / (SHARE_GOAL * rate_bps)
        if factor <= 1:
            return interval_ns
        wanted = math.ceil(shortest * factor)
        step: int = 10 ** max(0, len(str(wanted)) - 2)
        return min(-(-wanted // step) * step, S)

    def after(self, name: str) -> list[Job]:
        return [job for job in self.jobs if job.item.when.start_after == name]

    def until(self, name: str) -> list[Job]:
        return [job for job in self.jobs if job.item.when.stop_after == name]


def ns(seconds: float) -> int:
    return round(seconds * S)


def make(plan: Plan, setting: Setting, options: Options) -> Schedule:
    total = ns(plan.total_s if plan.total_s is not None else setting.total_s)
    jobs: list[Job] = []
    series: list[Series] = []
    items: list[Item] = [*together(plan), *plan.flows]
    for item in items:
        jobs.append(_job(item, len(jobs), total, setting, options))
        for key, made in _series(item, jobs[-1].runner.id).items():
            made.id = len(series)
            series.append(made)
            jobs[-1].series[key] = made
    return Schedule(jobs, series, _phases(plan, jobs, total), total)


def together(plan: Plan) -> list[Item]:
    """Probes that may share a process do. One whose end others wait for keeps its own."""
    whens = [flow.when for flow in plan.flows] + [probe.when for probe in plan.probes]
    named = {name for when in whens for name in (when.start_after, when.stop_after)}
    groups: dict[object, list[Probe]] = {}
    for probe in plan.probes:
        alone = probe.protocol != "udp" or probe.name in named
        key = (probe.name,) if alone else (probe.interval_ns, probe.when)
        groups.setdefault(key, []).append(probe)
    made: list[Item] = []
    for probes in groups.values():
        for at in range(0, len(probes), CLASSES_MOST):
            some = probes[at : at + CLASSES_MOST]
            made.append(Classes(tuple(some)) if len(some) > 1 else some[0])
    return made


def _job(item: Item, number: int, total: int, setting: Setting, options: Options) -> Job:
    when = item.when
    begin = ns(when.delay_s) if when.start_after is None else None
    length = ns(when.length_s) if when.length_s is not None else total - ns(when.delay_s)
    if length <= 0 or (begin is not None and begin + length > total):
        beyond = f"it would last beyond the end of the run ({total / S:g} s)"
        raise PlanError(f"{item.name}: {beyond}; make the run longer or its idle phases shorter")
    one = item.probes[0] if isinstance(item, Classes) else item
    kind = "flow" if isinstance(one, Flows) else "ping" if one.protocol == "icmp" else "stamp"
    runner = Runner(
        number, item.name, kind, [], setting.host, interval_ns=one.sample_ns if isinstance(one, Flows) else one.interval_ns,
        from_ns=begin, to_ns=begin + length if begin is not None else None,
    )  # fmt: skip
    timeout = 0 if isinstance(one, Flows) else timeout_of(one, setting)
    return Job(item, runner, command_of(item, setting, options), begin, length, timeout_ns=timeout)


def timeout_of(probe: Probe, setting: Setting) -> int:
    """The prober has room for 65,536 probes, and keeps each of them for three time-outs."""
    return min(setting.timeout_ns, WAITING_MOST * probe.interval_ns)


def command_of(item: Item, setting: Setting, options: Options) -> list[str]:
    """What is started, but for its times."""
    host = setting.host
    common = [word for word in (options.family,) if word]
    if options.source:
        common += ["--from", options.source]
    if isinstance(item, Flows):
        command = [options.ktrxer, "flow", item.direction, host, "--flows", str(len(item.series))]
        command += ["--sample-interval", f"{item.sample_ns}ns"]
        if item.cc:
            command += ["--cc", ",".join(item.cc)]
        if item.marks:
            command += ["--dscp", ",".join(str(DSCP[mark or "BE"]) for mark in item.marks)]
        command += ["--port", str(options.port)]
        if options.token_file:
            command += ["--token-file", options.token_file]
        return command + common
    probes = item.probes if isinstance(item, Classes) else (item,)
    one = probes[0]
    marked = any(probe.mark for probe in probes) or len(probes) > 1
    dscp = ["--dscp", ",".join(str(DSCP[probe.mark or "BE"]) for probe in probes)] if marked else []
    command = [options.ktrxer, "ping" if one.protocol == "icmp" else "stamp", host, "--brief", "--interval", f"{one.interval_ns}ns"]
    command += ["--timeout", f"{timeout_of(one, setting)}ns", *dscp, *(["--precise"] if options.precise else [])]
    if one.protocol == "udp":
        # The reflector reports the marks that arrived, where there are marks.
        command += ["--port", str(options.port), "--tlv", "limits"]
        command += ["--tlv", "cos"] if any(DSCP[probe.mark or "BE"] for probe in probes) else []
    return command + common


def _of_probe(probe: Probe, runner: int) -> Series:
    return Series(0, probe.name, "latency", "ms", runner, klass=probe.mark, group=probe.group)


def _series(item: Item, runner: int) -> dict[tuple[str, int | None], Series]:
    if isinstance(item, Probe):
        return {("latency", None): _of_probe(item, runner)}
    if isinstance(item, Classes):
        return {("latency", place): _of_probe(probe, runner) for place, probe in enumerate(item.probes)}
    made: dict[tuple[str, int | None], Series] = {}
    for flow, name in enumerate(item.series):
        for kind, unit in (("bytes", "Mbit/s"), ("tcp_info", "")):
            made[kind, flow] = Series(0, name, kind, unit, runner, flow, item.direction, item.mark(flow), item.name)  # type: ignore[arg-type]
    return made


def _phases(plan: Plan, jobs: list[Job], total: int) -> list[Phase]:
    """When the path is loaded: from the first flow's beginning to the last one's end."""
    flows = [job for job in jobs if isinstance(job.item, Flows)]
    if plan.load_s is not None:
        begin, end = map(ns, plan.load_s)
    elif flows:
        starts = [job.from_ns for job in flows if job.from_ns is not None]
        begin = min(starts, default=0)
        # One that begins after another one's end may last to the end of the run.
        waits = any(job.from_ns is None for job in flows)
        end = total if waits else max((job.from_ns or 0) + job.length_ns for job in flows)
    else:
        return [Phase("idle_before", 0, total)]
    phases = [Phase("idle_before", 0, begin), Phase("load", begin, end), Phase("idle_after", end, total)]
    return [phase for phase in phases if phase.to_ns > phase.from_ns]
