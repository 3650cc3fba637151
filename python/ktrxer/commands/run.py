# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run`: a test, from the checks before it to its summary."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer import __version__, catalogue
from ktrxer.catalogue.recipe import PlanError, Setting, Test
from ktrxer.commands.common import BAD, USAGE, VALID, Parser, complain, few_collections
from ktrxer.places import LOCAL, Place
from ktrxer.run import binary, checks, provenance
from ktrxer.run.schedule import Schedule, make
from ktrxer.runners import Options, RunnerError
from ktrxer.store import Host, Meta, StoreError, Zero
from ktrxer.units import duration

if TYPE_CHECKING:
    from ktrxer.collect.collector import Collector

EXAMPLES = """\
examples:
  ktrxer run rrul -H server.example               a minute of load, five idle seconds before and after
  ktrxer run tcp_nup -H server.example -l 20 -t "new router" --set upload_streams=8
  ktrxer run ./mine.py -H server.example          a test of your own
`ktrxer serve` runs at the far end; `ktrxer tests` lists what can be run. Exit status: 0 valid, 1 degraded, invalid or failed, 2 usage."""

SERVED_HZ = 10_000
INTERVAL_S = 0.01  # of the probes, unless --interval names one


def parser() -> Parser:
    p = Parser("run", "Runs a test of flows and probes, and stores it as one file.", EXAMPLES)
    p.add_argument("test", metavar="TEST", help="a name that `ktrxer tests` lists, or the path of a test of your own")
    p.add_argument("-H", "--host", required=True, help="the far end, where `ktrxer serve` runs")
    p.add_argument("-l", "--length", type=duration, default=60.0, metavar="SECONDS", help="length of the load (60s)")
    p.add_argument("--delay", type=duration, default=5.0, metavar="SECONDS", help="idle time before the load, and after it (5s)")
    p.add_argument("-t", "--title", default="", help="a few words that tell this run from others")
    p.add_argument("-D", "--directory", type=Path, default=Path(), metavar="DIR", help="where the file is stored (here)")
    several = "a parameter of the test; `ktrxer tests TEST` lists them; may be given several times"
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=several)
    p.add_argument("--cc", default="", metavar="NAME[,NAME]", help="congestion control of all flows, or of uploads and of downloads")
    spacing = "time between probes; by default 10ms, or more, so that the probes take 1 %% of the path's rate"
    p.add_argument("-i", "--interval", type=duration, metavar="D", help=spacing)
    patience = "without an answer for so long a probe is lost (10s)"
    p.add_argument("-W", "--timeout", type=duration, default=10.0, metavar="D", help=patience)
    spin = "probes spin before each send time, in a thread with a real-time priority where permitted: more processor time, less lateness"
    p.add_argument("--precise", action="store_true", help=spin)
    p.add_argument("--sample-interval", type=duration, default=0.2, metavar="D", help="time between samples of flows (200ms)")
    p.add_argument("--token-file", metavar="FILE", help="the server's token, in a file of mode 0600 ($KTRXER_TOKEN)")
    p.add_argument("-p", "--port", type=int, default=8620, metavar="N", help="port of the server, for TCP and UDP (8620)")
    family = p.add_mutually_exclusive_group()
    family.add_argument("-4", dest="family", action="store_const", const="-4", default="", help="IPv4 only")
    family.add_argument("-6", dest="family", action="store_const", const="-6", help="IPv6 only")
    small = "what is stored of this host: small (default): nothing that identifies it; full: name, addresses, routes and link addresses"
    p.add_argument("--metadata", choices=("small", "full"), default="small", metavar="KIND", help=small)
    p.add_argument("--no-extras", action="store_true", help="record no counters of this host, and nothing about it")
    p.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="stored with the run, to group runs by")
    p.add_argument("--dry-run", action="store_true", help="check everything, say what would be done, and do nothing")
    results = p.add_mutually_exclusive_group()
    results.add_argument("--json", action="store_true", help="print one object: file and summary")
    results.add_argument("--jsonl", action="store_true", help="print one object a line: start, the figures of each second, end")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing but the path of the file")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    try:
        with few_collections():
            return _run(given, arguments)
    except (PlanError, RunnerError) as error:
        complain("run", str(error))
        return USAGE
    except (checks.CheckError, StoreError) as error:
        complain("run", str(error))
        return BAD


def setting_of(given: argparse.Namespace) -> Setting:
    ccs = given.cc.split(",") if given.cc else ["", ""]
    if len(ccs) > 2 or (given.cc and not all(ccs)):
        raise PlanError(f"--cc {given.cc}: one name, or two with a comma between")
    for name, value, low, high, bounds in (
        ("--length", given.length, 0.2, 30 * 86400, "200ms to 720h"),
        ("--delay", given.delay, 0, 3600, "0s to 1h"),
        ("--interval", given.interval or INTERVAL_S, 1e-4, 60, "100us to 60s"),
        ("--timeout", given.timeout, 0.001, 600, "1ms to 10m"),
        ("--sample-interval", given.sample_interval, 0.01, 60, "10ms to 60s"),
    ):
        if not low <= round(value, 9) <= high:  # in nanoseconds: 100 us is a little less than 0.0001
            raise PlanError(f"{name} {value:g}s: expected {bounds}")
    if not 1 <= given.port <= 65535:
        raise PlanError(f"--port {given.port}: expected 1 to 65535")
    return Setting(
        given.host, given.length, given.delay, round((given.interval or INTERVAL_S) * 1e9), round(given.sample_interval * 1e9),
        ccs[0], ccs[-1], round(given.timeout * 1e9),
    )  # fmt: skip


def parameters_of(given: argparse.Namespace) -> dict[str, str]:
    made: dict[str, str] = {}
    for text in given.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise PlanError(f"--set {text}: expected NAME=VALUE")
        made[name] = value
    return made


def labels_of(given: argparse.Namespace) -> dict[str, str]:
    made: dict[str, str] = {}
    for text in given.label:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise PlanError(f"--label {text}: expected NAME=VALUE")
        made[name] = value
    return made


def _run(given: argparse.Namespace, arguments: list[str]) -> int:
    from ktrxer.store import open_run

    test = catalogue.find(given.test)
    setting, parameters = setting_of(given), parameters_of(given)
    labels_of(given)
    plan = test.make(setting, parameters)
    options = options_of(given)
    schedule = make(plan, setting, options)
    address = checks.resolve(given.host, given.family)
    checks.hosts(schedule, given.family)
    checks.directory(given.directory, checks.rows_of(schedule))
    with checks.places_of(schedule) as places:
        checks.tools(schedule, places)
        if given.dry_run:
            return _dry_run(schedule, address)
        rate = checks.far_end(schedule, estimate=given.interval is None)
        if rate is not None:
            setting = replace(setting, probe_interval_ns=schedule.light_interval(setting.probe_interval_ns, rate))
            plan = test.make(setting, parameters)
            versions = schedule.versions()
            schedule = make(plan, setting, options)
            schedule.set_versions(versions)
        meta = describe(test, setting, parameters, given, arguments)
        meta.plots = list(plan.plots)
        meta.panels = [provenance.plain(panel) for panel in plan.panels]
        meta.settings["rate_estimate_bps"] = rate
        if (probes := schedule.reflected_hz()) > SERVED_HZ:
            limit = f"`ktrxer serve` answers {SERVED_HZ:,} to a network unless its --max-answer-rate allows more; the others count as lost"
            complain("run", f"{probes:,.0f} UDP probes a second: {limit}")
        checks.tokens(schedule, places)
        path = measure(given, meta, schedule, address, places)
    return report(path, open_run(path), given)


def options_of(given: argparse.Namespace) -> Options:
    ktrxer = binary.find()
    if ktrxer is None:
        raise checks.CheckError("the `ktrxer` command itself is not found: put it on the PATH, or name it in KTRXER_BIN")
    if given.token_file and not os.access(given.token_file, os.R_OK):
        raise checks.CheckError(f"{given.token_file}: cannot be read; it is to hold the token that `ktrxer serve` prints at its start")
    token_file = str(Path(given.token_file).resolve()) if given.token_file else None
    return Options(str(ktrxer), given.port, token_file, given.family, precise=given.precise)


def describe(test: Test, setting: Setting, parameters: dict[str, str], given: argparse.Namespace, arguments: list[str]) -> Meta:
    system = platform.uname()
    return Meta(
        id=str(uuid.uuid4()), test=test.name, title=given.title, version=__version__,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        host=Host(system.node, system.release, system.machine, os.cpu_count()), targets=[given.host], zero=Zero(0, 0), length_ns=0,
        settings=provenance.resolved(test, setting, parameters) | {"port": given.port, "precise": given.precise},
        command=["ktrxer", "run", *arguments],
        metadata=_origin(test) | ({"labels": labels} if (labels := labels_of(given)) else {}),
    )  # fmt: skip


def _origin(test: Test) -> dict[str, Any]:
    lab = provenance.topology()
    return {"recipe": provenance.recipe(test)} | ({"topology": lab} if lab is not None else {})


def _dry_run(schedule: Schedule, address: str) -> int:
    """The plan, and whether the far end answers: the plan is printed also where it does not."""
    print(f"Nothing was measured. {schedule.length_ns / 1e9:g} seconds to {address}:")
    for job in schedule.jobs:
        begin = f"after {job.invocation.when.start_after}" if job.from_ns is None else f"{job.from_ns / 1e9:g} s"
        where = f" in {job.invocation.place}" if job.invocation.place != LOCAL else ""
        print(f"  {begin:>8}  for {job.length_ns / 1e9:g} s  {job.stored.name}{where}: {shlex.join(job.command())}")
    checks.far_end(schedule)
    print("All is ready.")
    return VALID


def _gather(given: argparse.Namespace, address: str) -> dict[str, Any]:
    from ktrxer import collect

    return collect.gather(address, port=given.port, full=given.metadata == "full")


def measure(given: argparse.Namespace, meta: Meta, schedule: Schedule, address: str, places: Mapping[str, Place]) -> Path:
    """The file of the run."""
    from ktrxer.run.session import DiskError, NoView, Session, View

    view: View = NoView()
    if given.jsonl and not given.quiet:
        from ktrxer.run.json_lines import JsonLines

        view = JsonLines(meta.command)
    elif sys.stderr.isatty() and not given.quiet:
        from ktrxer.run.live import TerminalView

        view = TerminalView()
    collectors: list[Collector] = []
    if not given.no_extras:
        from ktrxer.collect import default_collectors

        collectors, meta.metadata["before"] = default_collectors(address), _gather(given, address)
    session = Session(schedule, meta, given.directory, collectors, view, places)
    if not given.no_extras:
        session.after = lambda: _gather(given, address)
    try:
        return session.run()
    except DiskError as error:
        raise checks.CheckError(str(error)) from None


def report(path: Path, run: Any, given: argparse.Namespace) -> int:
    from ktrxer.summary import figures, text

    if given.quiet:
        print(path)
    elif given.json or given.jsonl:
        made: dict[str, Any] = {"type": "end"} if given.jsonl else {}
        made |= {"file": str(path), "verdict": run.meta.verdict, "reasons": run.meta.reasons, "summary": figures.summarise(run).as_json()}
        print(json.dumps(made, indent=None if given.jsonl else 2))
    else:
        text.show(figures.summarise(run))
        print(f"\nstored; `ktrxer report` and `ktrxer plot` draw it:\n{path}")
    return VALID if run.meta.verdict == "valid" else BAD
