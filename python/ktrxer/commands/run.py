# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run`: a test, from the checks before it to its summary."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import shlex
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer import __version__, catalogue, printed
from ktrxer.arguments import outside
from ktrxer.catalogue import extras, flents
from ktrxer.catalogue.recipe import Invocation, PlanError, Setting, Test
from ktrxer.commands.common import DOUBTFUL, NO_RESULT, USAGE, VALID, complain
from ktrxer.commands.run_options import parsed, parser
from ktrxer.places import LOCAL, Place
from ktrxer.run import binary, checks, provenance
from ktrxer.run.schedule import Job, Schedule, make, ns
from ktrxer.runners import Options, RunnerError
from ktrxer.store import Host, Meta, StoreError, Zero, names
from ktrxer.store.reasons import Reason

if TYPE_CHECKING:
    from ktrxer.store.run import Run

__all__ = ["main", "parsed", "parser"]

SERVED_HZ = 10_000
INTERVAL_S = 0.01  # of the probes, unless --interval names one


def main(arguments: list[str]) -> int:
    if arguments == ["--requests"]:  # of `ktrxer batch`
        requested = _requested()
        if requested is None:
            return VALID
        arguments = requested
    given = parsed(arguments)
    try:
        return _run(given, arguments)
    except (PlanError, RunnerError) as error:
        complain("run", str(error))
        return USAGE
    except (checks.CheckError, StoreError) as error:
        complain("run", str(error))
        return NO_RESULT


def _requested() -> list[str] | None:
    # All modules that a run needs are imported here, before the first process is forked.
    import pyarrow.parquet  # noqa: F401

    import ktrxer.collect
    import ktrxer.run.hosts
    import ktrxer.run.session
    import ktrxer.store.run  # noqa: F401
    from ktrxer.batch.maker import requested

    return requested()


def setting_of(given: argparse.Namespace) -> Setting:
    ccs = flents.congestion_controls(given.cc, _values(given))
    pinged = flents.ping_hosts(_values(given))
    return checked(Setting(
        given.host[0], given.length, given.delay, round((given.interval or INTERVAL_S) * 1e9), round(given.sample_interval * 1e9),
        ccs[0], ccs[-1], round(given.timeout * 1e9), tuple(given.host[1:]), (*given.ping_host, *pinged),
    ), given.port)  # fmt: skip


def checked(setting: Setting, port: int) -> Setting:
    for name, value, low, high, bounds in (
        ("--for", setting.length_s, 0.2, 30 * 86400, "200ms to 720h"),
        ("--delay", setting.delay_s, 0, 3600, "0s to 1h"),
        ("--interval", setting.probe_interval_ns / 1e9, 1e-4, 60, "100us to 60s"),
        ("--timeout", setting.timeout_ns / 1e9, 0.001, 600, "1ms to 10m"),
        ("--sample-interval", setting.sample_interval_ns / 1e9, 0.01, 60, "10ms to 60s"),
    ):
        if not low <= round(value, 9) <= high:  # in nanoseconds: 100 us is a little less than 0.0001
            shown = f"{value:g}s" if abs(value) >= 1e-3 or not value else f"{value * 1e6:g}us"
            raise PlanError(f"{name}: {outside(shown, value < low, bounds)}")
    if not 1 <= port <= 65535:  # of a run that is repeated
        raise PlanError(f"--port: {outside(str(port), port < 1, '1 to 65535')}")
    return setting


def parameters_of(given: argparse.Namespace) -> dict[str, str]:
    """Those of the test: a parameter that is a setting of every test is none."""
    return {name: value for name, value in _values(given).items() if name not in flents.SETTINGS}


def _values(given: argparse.Namespace) -> dict[str, str]:
    return _named("--set", given.set)


def _checked_name(name: str | None) -> None:
    if name is not None:
        try:
            names.checked(name)
        except ValueError as error:
            raise PlanError(f"--name: {error}") from None


def labels_of(given: argparse.Namespace) -> dict[str, str]:
    return _named("--label", given.label)


def _named(option: str, texts: list[str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for text in texts:
        name, equals, made[name] = text.partition("=")
        if not equals or not name:
            raise PlanError(f"{option} {text}: expected NAME=VALUE")
    return made


@dataclass(frozen=True)
class Wanted:
    """The plan to run. `old`: the run that it repeats; `different`: the differences that are known already."""

    test: Test
    setting: Setting
    parameters: dict[str, str]
    old: Run | None = None
    different: list[str] = field(default_factory=list)


def _repeated(given: argparse.Namespace, stack: contextlib.ExitStack) -> Wanted:
    """The stored run of --again. Options that say where the far end is may replace those of the run."""
    from ktrxer.run import again
    from ktrxer.store import one_line, open_run

    old = open_run(given.again)
    stored = again.settings_of(old)
    if given.host is not None:
        stored.host, stored.more_hosts = given.host[0], given.host[1:]
    test, notes = (catalogue.find(given.test), []) if given.test is not None else stack.enter_context(again.recipe(old, given.trust_recipe))
    for line in notes:
        complain("run", line)
    if not test.path and test.name != old.meta.test:
        other = f"it is a run of {one_line(old.meta.test, 60)}, not of {test.name}"
        raise again.AgainError(f"{old.path}: {other}: --again repeats a run with its own test")
    parameters, different = again.parameters(old, test, stored)
    given.host, given.precise, given.interval = [stored.host, *stored.more_hosts], stored.precise, stored.probe_interval_ns / 1e9
    given.port = given.port if given.port is not None else stored.port
    given.family = given.family if given.family is not None else stored.family
    given.source = given.source if given.source is not None else stored.source or None
    given.title = given.title or old.meta.title
    given.beside = given.beside or list(old.meta.settings.get("with", []))
    try:
        setting = checked(again.setting_of(stored), given.port)
    except PlanError as error:
        raise again.AgainError(f"{old.path}: {error}") from None
    return Wanted(test, setting, parameters, old, different)


def _run(given: argparse.Namespace, arguments: list[str]) -> int:
    with contextlib.ExitStack() as stack:
        if given.again is not None:
            return _wanted(given, arguments, _repeated(given, stack))
        return _wanted(given, arguments, Wanted(catalogue.find(given.test), setting_of(given), parameters_of(given)))


def _wanted(given: argparse.Namespace, arguments: list[str], wanted: Wanted) -> int:
    test, setting, parameters = wanted.test, wanted.setting, wanted.parameters
    labels_of(given)
    _checked_name(given.name)
    requested = extras.parts(given.beside)
    plan = extras.beside(test.make(setting, parameters), requested, [])
    options = options_of(given)
    default, missing = _extras(given, setting, options)
    plan = extras.beside(plan, [], default)
    schedule = make(plan, setting, options)
    addresses = checks.hosts(schedule, setting.hosts, given.family)
    pins = checks.several(schedule)
    addresses |= {host: several[0] for (host, _), several in sorted(pins.items(), reverse=True) if host in addresses}
    address = addresses[setting.host]
    for host, other in combinations(addresses, 2):
        if addresses[host] == addresses[other]:
            complain("run", f"{host} and {other} are one far end, {addresses[host]}: their flows share its path")
    for one in checks.others(pins):
        complain("run", one)
    checks.pin(schedule, pins)
    checks.directory(given.directory, checks.rows_of(schedule))
    if wanted.old is not None and not given.quiet:  # before the first packet, because a file names the far end
        complain("run", f"again {given.again}: {test.name} to {', '.join(given.host)} ({address}), {schedule.length_ns / 1e9:g} s")
    with checks.places_of(schedule, given.metadata_from) as places:
        checks.tools(schedule, places)
        checks.estimators()
        if given.dry_run:
            if wanted.old is not None:
                _show_different(given, _different(wanted, describe(test, setting, parameters, given, arguments), schedule))
            return _dry_run(schedule, addresses)
        forbidden: dict[str, str] = {}
        rate = checks.far_end(schedule, estimate=given.interval is None, forbidden=forbidden)
        notes = checks.not_measured(schedule, forbidden)
        for note in notes:
            complain("run", f"{note.name}: {note.text}")
        interval_ns = checks.light(schedule, setting.probe_interval_ns, rate) if given.interval is None else setting.probe_interval_ns
        if interval_ns != setting.probe_interval_ns or forbidden:
            setting = replace(setting, probe_interval_ns=interval_ns)
            plan = extras.without(extras.beside(test.make(setting, parameters), requested, default), forbidden)
            tried = schedule
            schedule = checks.pin(make(plan, setting, options), pins)
            schedule.take_over(tried)
        meta = describe(test, setting, parameters, given, arguments)
        meta.settings["tolerance_percent"] = _tolerance(given.tolerance, plan.tolerance_percent, wanted.old)
        meta.plots = list(plan.plots)
        meta.panels = [provenance.plain(panel) for panel in plan.panels]
        meta.settings["rate_estimate_bps"] = rate
        if plan.outcomes:
            meta.settings["outcomes"] = list(plan.outcomes)
        if given.beside:
            meta.settings["with"] = given.beside
        if missing:
            meta.metadata["not_collected"] = missing
        meta.settings["steps"] = [{"name": step.name, "from_ns": ns(step.from_s), "to_ns": ns(step.to_s)} for step in plan.steps]
        if (probes := schedule.reflected_hz()) > SERVED_HZ:
            limit = f"`ktrxer serve` answers {SERVED_HZ:,} to a network unless its --max-answer-rate allows more; the others count as lost"
            complain("run", f"{probes:,.0f} UDP probes a second: {limit}")
        checks.tokens(schedule, places)
        if wanted.old is not None:
            of_old = {"id": wanted.old.meta.id, "file": wanted.old.path.name, "created": wanted.old.meta.created}
            meta.metadata["again"] = of_old | {"different": _different(wanted, meta, schedule)}
        run = measure(given, meta, schedule, address, places, wanted.old, notes, given.name)
    return report(run.path, run, given)


def _tolerance(given: float | None, of_plan: float | None, old: Run | None) -> float | None:
    """None: that of decision 77."""
    stored = old.meta.settings.get("tolerance_percent") if old is not None else None
    of_old = float(stored) if isinstance(stored, int | float) else None
    return next((one for one in (given, of_old, of_plan) if one is not None), None)


def _extras(given: argparse.Namespace, setting: Setting, options: Options) -> tuple[list[Invocation], list[str]]:
    """The parts of every run, and why some of them are left out."""
    if given.no_extras:
        return [], []
    return extras.every(replace(options, host=checks.resolve(setting.host, given.family, given.port, given.source)))


def _different(wanted: Wanted, meta: Meta, schedule: Schedule) -> list[str]:
    from ktrxer.run import again

    assert wanted.old is not None
    return [*wanted.different, *again.differences(wanted.old.meta, meta, schedule)]


def _show_different(given: argparse.Namespace, different: list[str]) -> None:
    """Prints to standard error, so that --json prints one object."""
    if not given.quiet:
        complain("run", "these things differ:" if different else "nothing is known to differ")
        for line in different:
            complain("run", f"  {line}")


def options_of(given: argparse.Namespace) -> Options:
    try:
        ktrxer = binary.find()
    except binary.NotFound as error:
        raise checks.CheckError(str(error)) from None
    if given.token_file and not os.access(given.token_file, os.R_OK):
        raise checks.CheckError(f"{given.token_file}: cannot be read; the file must hold the token of `ktrxer serve`")
    token_file = str(Path(given.token_file).resolve()) if given.token_file else None
    return Options(ktrxer, given.port, token_file, given.family, precise=given.precise, source=given.source)


def describe(test: Test, setting: Setting, parameters: dict[str, str], given: argparse.Namespace, arguments: list[str]) -> Meta:
    system = platform.uname()
    return Meta(
        id=str(uuid.uuid4()), test=test.name, title=given.title, version=__version__,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        host=Host(system.node, system.release, system.machine, os.cpu_count()), targets=list(setting.hosts), zero=Zero(0, 0), length_ns=0,
        settings=provenance.resolved(test, setting, parameters)
        | {"port": given.port, "precise": given.precise, "family": given.family, "source": given.source or ""},
        command=["ktrxer", "run", *arguments],
        metadata=_origin(test) | ({"labels": labels} if (labels := labels_of(given)) else {}),
    )  # fmt: skip


def _origin(test: Test) -> dict[str, Any]:
    lab = provenance.topology()
    return {"recipe": provenance.recipe(test)} | ({"topology": lab} if lab is not None else {})


def _dry_run(schedule: Schedule, addresses: Mapping[str, str]) -> int:
    """The plan, and whether the far end answers: the plan is printed also where it does not."""
    print(f"Nothing was measured. {schedule.length_ns / 1e9:g} seconds to {', '.join(dict.fromkeys(addresses.values()))}:")
    for job in schedule.jobs:
        begin = f"after {job.invocation.when.start_after}" if job.from_ns is None else f"{job.from_ns / 1e9:g} s"
        where = f" in {job.invocation.place}" if job.invocation.place != LOCAL else ""
        command = "read by this program" if job.inside else _carrier(schedule, job) or shlex.join(job.command())
        print(f"  {begin:>8}  for {job.length_ns / 1e9:g} s  {job.stored.name}{where}: {command}")
    forbidden: dict[str, str] = {}
    checks.far_end(schedule, forbidden=forbidden)
    for note in checks.not_measured(schedule, forbidden):
        print(f"{note.name}: {note.text}")
    print("All else is ready." if forbidden else "All is ready.")
    return VALID


def _carrier(schedule: Schedule, job: Job) -> str:
    carrier = next((other for other in schedule.jobs if job in other.riders), None)
    return f"by the process of {carrier.stored.name}" if carrier is not None else ""


def _gather(given: argparse.Namespace, schedule: Schedule, address: str, places: Mapping[str, Place]) -> dict[str, Any]:
    from ktrxer import collect
    from ktrxer.run import hosts

    full = given.metadata == "full"
    others = hosts.states(places, {job.invocation.place for job in schedule.jobs}, address, full=full, source=given.source)
    return collect.gather(address, port=given.port, full=full, source=given.source) | ({"places": others} if others else {})


def measure(
    given: argparse.Namespace, meta: Meta, schedule: Schedule, address: str, places: Mapping[str, Place], old: Run | None = None,
    notes: Sequence[Reason] = (), name: str | None = None,
) -> Run:  # fmt: skip
    """The run, which is stored in the file `path`. `old`: the run that it repeats. `notes`: reasons known before it. `name`: of the
    file, without its suffix."""
    from ktrxer.run.session import DiskError, NoView, Session, View

    view: View = NoView()
    if given.jsonl and not given.quiet:
        from ktrxer.run.json_lines import JsonLines

        view = JsonLines(meta.command)
    elif sys.stderr.isatty() and not given.quiet:
        from ktrxer.run.live import TerminalView

        view = TerminalView()
    if not given.no_extras:
        meta.metadata["before"] = _gather(given, schedule, address, places)
    if old is not None:
        from ktrxer.run import again

        different = meta.metadata["again"]["different"]
        different += again.of_hosts(old.meta.metadata.get("before"), meta.metadata.get("before"))
        _show_different(given, different)
    session = Session(schedule, meta, given.directory, view, places, name)
    session.notes += notes
    if not given.no_extras:
        session.after = lambda: _gather(given, schedule, address, places)
    try:
        session.run()
    except DiskError as error:
        raise checks.CheckError(str(error)) from None
    assert session.closed is not None
    return session.closed


def report(path: Path, run: Any, given: argparse.Namespace) -> int:
    verdict = VALID if run.meta.verdict == "valid" else DOUBTFUL if run.meta.accounts.get("measured", True) else NO_RESULT
    if given.quiet:  # as a batch has it: without the imports below
        print(path)
        return verdict
    from ktrxer.summary import figures, text

    if given.json or given.jsonl:
        made: dict[str, Any] = {"again": repeated} if (repeated := run.meta.metadata.get("again")) is not None else {}
        reasons = [one.as_json() for one in run.meta.reasons]
        made |= {"file": str(path), "verdict": run.meta.verdict, "reasons": reasons, "summary": figures.summarise(run).as_json()}
        printed.show(printed.end(run.meta.command, made, line=given.jsonl), line=given.jsonl)
    else:
        text.show(figures.summarise(run))
        print(f"\nstored; `ktrxer report` and `ktrxer plot` draw it:\n{path}")
    return verdict
