# SPDX-License-Identifier: MIT OR Apache-2.0
"""Detect predictable failures before anything starts: hosts, tools, places, room on the disk, a far end that does not answer."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from ktrxer.arguments import host_fault
from ktrxer.catalogue.recipe import EXTRA
from ktrxer.places import LOCAL, Place, PlaceError, is_here, open_place, run
from ktrxer.run import addresses, timers
from ktrxer.run.schedule import Job, Schedule
from ktrxer.runners import RunnerError, defect
from ktrxer.runners.own import complaint
from ktrxer.runners.runner import Listener, Tool, Trial, lookup_name
from ktrxer.store import one_line
from ktrxer.store.reasons import FAILURES, TEXT, Reason, reason
from ktrxer.store.reasons import read_all as read_reasons

CONNECT_S = 4  # to a server of another project
ANSWERS = ("received", "bytes", "known")  # counts of answers in the last objects: of probes, of flows, of pairs of TCP segments
ESTIMATED_NS = 500_000_000  # of the round trip: the trial of a longer path moves its bytes in too few of them to estimate the rate
ROW_BYTES = 160  # of the directory and the file together
ROOM = 1 << 20  # for everything else: settings, state of hosts, the headers of tables; a run of 5 s has 40 kB in all
AUXILIARY_ROWS = 30  # of one sample of a host's state: its series are not known before

# The remedy where no server was found: for a test without flows, with a token, without one.
START = "the far end of a run is `ktrxer serve`: start it on that host{how}; its port (8620 without --port) must be open for TCP and UDP"
WITH_TOKEN = " with the same token as here (`ktrxer serve --token-file FILE`)"
WITHOUT_TOKEN = ", copy the file of its token, which it names at its start, to this host (mode 0600), and add --token-file FILE"
# Reasons of a trial that mean: no `ktrxer serve` was found. LATE is of this file: no result in time.
LATE = "no_result_in_time"
SILENT = "silent"
NO_SERVER = (SILENT, "refused", "token_missing", LATE)


NOT_PERMITTED = "not_permitted"


class Failure(NamedTuple):
    line: str
    reason: str = TEXT
    cause: str = ""  # the line without the command


class CheckError(Exception):
    """One line or several: each says what failed, why, and what to do."""


def resolve(host: str, family: str = "", port: int = 0, source: str | None = None) -> str:
    """The first address of `host`; with a port the one that accepts a connection first, if one of several does."""
    found = _addresses(host, family)
    return (addresses.ordered(found, port, source) if port else found)[0]


def _addresses(host: str, family: str) -> list[str]:
    if not host or host.startswith("-"):
        raise CheckError("-H: the host is empty" if not host else f"{host!r} is no host: names do not begin with a dash")
    if re.fullmatch(r"[^:]+:[0-9]+", host):
        raise CheckError(f"{one_line(host, 80)}: a host has no port; the port is given by --port")
    kinds = {"-4": socket.AF_INET, "-6": socket.AF_INET6}
    try:
        found = socket.getaddrinfo(lookup_name(host), None, kinds.get(family, socket.AF_UNSPEC), socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise CheckError(host_fault(host, error, family)) from None
    return list(dict.fromkeys(str(one[4][0]) for one in found))


Pins = Mapping[tuple[str, str], list[str]]  # name and family: its addresses


def several(schedule: Schedule) -> Pins:
    """The far ends whose names have several addresses. All commands of a run use the first one that accepts a connection: by itself each of
    them could take another, because name servers change the order, and one of the addresses may be dead."""
    names = {(_host(job), job.options.family): (job.options.port, job.options.source) for job in schedule.jobs if _pinned(job)}
    found = {key: addresses.ordered(_addresses(*key), *where) for key, where in sorted(names.items())}
    return {key: several for key, several in found.items() if len(several) > 1}


def others(pins: Pins) -> Iterator[str]:
    """A line for each far end with several addresses of the family of the first one."""
    for (host, _), found in pins.items():
        count = sum((":" in one) == (":" in found[0]) for one in found)
        if count > 1:
            yield f"{host} has {count} addresses of this family; {found[0]} alone is measured"


def pin(schedule: Schedule, pins: Pins) -> Schedule:
    for job in schedule.jobs:
        if _pinned(job) and (_host(job), job.options.family) in pins:
            address = pins[_host(job), job.options.family][0]
            job.options = replace(job.options, host=address)
            if job.invocation.parameters.host:
                job.invocation = replace(job.invocation, parameters=replace(job.invocation.parameters, host=address))
    return schedule


def _host(job: Job) -> str:
    return str(job.invocation.parameters.host or job.options.host)


def _pinned(job: Job) -> bool:
    """Names of other places may have other addresses there; other tools may need the name."""
    return job.runner.own and not job.runner.auxiliary and job.invocation.place == LOCAL


def hosts(schedule: Schedule, given: Sequence[str], family: str = "") -> dict[str, str]:
    """Has each far end an address of each family that the plan uses? The address of each host of -H."""
    used = {(job.invocation.parameters.host or given[0], job.options.family) for job in schedule.jobs}
    found = {host: resolve(host, next((one for name, one in sorted(used) if name == host), family)) for host in given}
    for host, wanted in sorted(used):
        resolve(host, wanted)
    return found


def directory(path: Path, rows: int) -> None:
    """Can the run be stored there?"""
    if not path.is_dir():
        raise CheckError(f"{path}: No such file or directory; make it, or name another one by -D")
    try:
        _try_file(path)
    except OSError as error:
        raise CheckError(f"{path}: no file can be made there: {error.strerror}; name another one by -D") from None
    needed, free = rows * ROW_BYTES + ROOM, shutil.disk_usage(path).free
    if free < needed:
        raise CheckError(f"{path}: {free / 1e6:.1f} MB are free there, and this run may need {needed / 1e6:.1f} MB; name another one by -D")


def _try_file(path: Path) -> None:
    """tempfile.TemporaryFile without its imports."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.EOPNOTSUPP):  # not known to all kernels and file systems
            raise
        trial = path / f".ktrxer-trial-{os.getpid()}"
        os.close(os.open(trial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        trial.unlink()


def rows_of(schedule: Schedule) -> int:
    """An estimate of the number of samples."""
    count = 0
    for job in schedule.jobs:
        times = job.length_ns // (job.stored.interval_ns or 10**9)
        if job.runner.auxiliary:
            count += times * AUXILIARY_ROWS
            continue
        count += times * (2 * len(job.series) if job.runner.loads else len(job.series))
    return count


@contextlib.contextmanager
def places_of(schedule: Schedule, more: Sequence[str] = ()) -> Iterator[dict[str, Place]]:
    """The places of a plan, and `more` of them, opened once each, and closed at the end."""
    with contextlib.ExitStack() as stack:
        found: dict[str, Place] = {}
        for name in dict.fromkeys([LOCAL, *(job.invocation.place for job in schedule.jobs), *more]):
            try:
                found[name] = open_place(name)
            except PlaceError as error:
                raise CheckError(str(error)) from None
            stack.callback(found[name].close)
        yield found


def estimators() -> None:
    """NoEstimatorsError: the figures at the end of a run cannot be computed."""
    from ktrxer.statistics import native  # numpy is not needed before

    native.check()


def tools(schedule: Schedule, places: Mapping[str, Place]) -> None:
    """Is every tool in its place, and new enough? Its version is stored."""
    versions: dict[tuple[str, str, str], str] = {}
    wrong: list[str] = []
    for job in schedule.jobs:
        name, place = job.invocation.place, places[job.invocation.place]
        tool = Tool(job.runner.program(job.invocation.parameters), "") if job.runner.program is not None else job.runner.tool
        if job.inside:
            wrong += [f"{job.invocation.name}: {reason}"] if (reason := _unreadable(job)) else []
            continue
        if tool is None:
            if place.shares_clock or not job.runner.own:
                continue  # the command of this host, or what every host has
            tool = Tool(job.options.ktrxer, "ktrxer", ("--version",))
        key = (name, job.runner.name, tool.program)
        if key not in versions:
            try:
                versions[key] = _version(tool, place)
            except (RunnerError, PlaceError) as error:
                versions[key] = ""
                wrong.append(str(error) if name in str(error) else f"{job.invocation.name}, in place {name}: {error}")
        job.stored.tool_version = versions[key] or None
    if wrong:
        raise CheckError("\n".join(wrong))


def _unreadable(job: Job) -> str | None:
    """Why this host's state cannot be read."""
    assert job.runner.here is not None
    try:
        job.runner.here(job.invocation.parameters, job.options).close()
    except RunnerError as error:
        return str(error)
    except (Exception, SystemExit) as error:  # of a runner of the user
        return defect(job.runner, error)
    return None


def _version(tool: Tool, place: Place) -> str:
    if not tool.version:
        found = run(place, ["sh", "-c", 'command -v "$1"', "sh", tool.program])
        tool.check(found.status and 127, "0.0")
        return ""
    done = run(place, [tool.program, *tool.version])
    return tool.check(done.status, done.out.decode("utf-8", "replace") + done.error)


def tokens(schedule: Schedule, places: Mapping[str, Place]) -> None:
    """The token of the server, in a private file of each place that does not have this host's files; `close()` of the place removes it."""
    for job in schedule.jobs:
        place, token = places[job.invocation.place], job.options.token_file
        if token is not None and not is_here(job.invocation.place):
            try:
                job.options = replace(job.options, token_file=place.copy_secret(Path(token)))
            except PlaceError as error:
                raise CheckError(str(error)) from None


def far_end(schedule: Schedule, estimate: bool = False, forbidden: dict[str, str] | None = None) -> float | None:
    """Does each kind of measurement get an answer? A short one of each, all at the same time. Their round trip is that of the schedule.

    `estimate`: the trials of the flows move enough for a first estimate of the rate in bit/s, of the slower direction.
    `forbidden`: takes the runners of probes that this host may not send, with the cause, if others remain; else they are failures. It takes
    the names of pings to further hosts, too, that do not answer."""
    rates: list[float] = []
    trials: dict[tuple[str, ...], Trial] = {}
    probers: dict[str, str] = {}  # by command
    named: dict[tuple[str, ...], list[str]] = {}  # the processes that a trial stands for
    for job in schedule.jobs:
        if job.runner.trial is not None and job.invocation.place == LOCAL:
            trial = job.runner.trial(job.invocation.parameters, job.options, estimate)
            key = tuple(trial.command) if job.runner.loads else (job.runner.name, job.stored.host or "", job.options.family)
            trials.setdefault(key, trial)
            named.setdefault(key, []).append(job.stored.name)
            if not job.runner.loads:
                probers[shlex.join(trial.command)] = job.runner.name
    answered = no_server = False  # by the server: ICMP echoes are answered by the kernel
    begun: list[tuple[subprocess.Popen[bytes], Trial, list[str]]] = []
    failures = _listen(schedule)
    trip = _Trip(time.monotonic())
    try:
        for key, trial in trials.items():
            try:
                begun.append((_begin(trial.command), trial, named[key]))
            except OSError as error:
                failures.append(f"{trial.command[0]}: cannot be started: {error.strerror}")
        if trials and not probers:
            job = next(job for job in schedule.jobs if job.runner.loads)
            trip.handshake = timers.Handshake(_host(job), job.options.port)
        for child, trial, names in list(begun):
            failure = _trial(child, trial, trip, rates)
            if failure is not None and failure.reason == SILENT:  # three probes are lost in one burst of losses, or in a short outage
                begun.append((_begin(_again(trial.command, trip.ns)), trial, names))
                failure = _trial(begun[-1][0], trial, trip, rates) and failure
            answered = answered or (failure is None and trial.server)
            prober = probers.get(shlex.join(trial.command))
            not_permitted = failure is not None and failure.reason == NOT_PERMITTED
            if failure and not_permitted and prober and forbidden is not None and _others(schedule, {prober, *forbidden}):
                forbidden[prober] = failure.cause
                continue
            if failure and forbidden is not None and all(name.endswith(EXTRA) for name in names):
                forbidden |= dict.fromkeys(names, failure.cause or failure.line)
                continue
            failures += [failure.line] if failure else []
            no_server = no_server or (failure is not None and failure.reason in NO_SERVER and (trial.server or failure.reason == LATE))
    finally:
        for child, *_ in begun:
            child.kill()
            child.wait()
    if no_server and not answered:
        failures.append(START.format(how=_how(schedule.jobs)))
    if failures:
        raise CheckError("\n".join(dict.fromkeys(failures)))
    schedule.set_trip(trip.ns)
    return min(rates, default=None) if estimate and trip.ns <= ESTIMATED_NS else None


def light(schedule: Schedule, interval_ns: int, rate_bps: float | None) -> int:
    """The time between probes that take little of the path. `rate_bps`: the estimate of far_end()."""
    if rate_bps is not None:
        return schedule.light_interval(interval_ns, rate_bps)
    return timers.probe_ns(interval_ns, schedule.trip_ns) if schedule.trip_ns > ESTIMATED_NS else interval_ns


def _again(command: list[str], trip_ns: int) -> list[str]:
    """A firewall that drops one kind of probes costs a second more, where the others have measured the round trip."""
    words = list(command)
    if trip_ns and "--timeout" in words:
        words[words.index("--timeout") + 1] = f"{timers.S + 2 * trip_ns}ns"
    return words


@dataclass
class _Trip:
    """The longest round trip that the trials have measured, which decides how long the others may take."""

    begun_s: float
    probed_ns: int = 0
    handshake: timers.Handshake | None = None

    @property
    def ns(self) -> int:
        return max(self.probed_ns, self.handshake.trip_ns if self.handshake else 0)

    @property
    def left_s(self) -> float:
        return self.begun_s + timers.trial_s(self.ns) - time.monotonic()


def not_measured(schedule: Schedule, forbidden: Mapping[str, str]) -> list[Reason]:
    """The reason for each process that this host may not run, and for each further host that does not answer."""
    errors = [(job.stored.name, forbidden.get(job.stored.name) or forbidden.get(job.runner.name)) for job in schedule.jobs]
    return [reason("not_measured", name=name, error=error) for name, error in errors if error]


def _others(schedule: Schedule, kinds: set[str]) -> bool:
    """Does anything else measure?"""
    return any(not job.runner.auxiliary and job.runner.name not in kinds for job in schedule.jobs)


def _listen(schedule: Schedule) -> list[str]:
    """The servers of other projects that accept no connection."""
    wanted: dict[tuple[Listener, str], str] = {}
    for job in schedule.jobs:
        if job.invocation.place == LOCAL:
            for one in job.runner.listeners(job.invocation.parameters, job.options):
                wanted.setdefault((one, job.options.family), job.invocation.name)
    if not wanted:
        return []
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(16, len(wanted))) as pool:
        reasons = pool.map(lambda key: _unconnected(*key), wanted)
        return [f"{name}: {reason}" for name, reason in zip(wanted.values(), reasons, strict=True) if reason is not None]


def _unconnected(one: Listener, family: str) -> str | None:
    try:
        socket.create_connection((resolve(one.host, family), one.port), CONNECT_S).close()
    except CheckError as error:
        return str(error)
    except OSError as error:
        why = error.strerror or "no answer"
        return f"no connection to TCP port {one.port} of {one.host}: {why}; start there: {one.server}"
    return None


def _how(jobs: list[Job]) -> str:
    """How to start the server for these processes."""
    if not any(job.runner.loads for job in jobs):
        return ""
    return WITH_TOKEN if jobs[0].options.token_file or os.environ.get("KTRXER_TOKEN") else WITHOUT_TOKEN


def _begin(command: list[str]) -> subprocess.Popen[bytes]:
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.Popen(command, stdin=none, stdout=pipe, stderr=pipe, start_new_session=True)


def _rates(end: dict[str, Any]) -> Iterator[int]:
    """The rates of a trial in bit/s by direction: the highest rate of the flows that had ended, at the end of each. So one flow that
    waits for the retransmission of its last packet, for longer than the others take, makes no low rate."""
    for direction in ("up", "down"):
        flows = [flow for flow in end.get("flows", []) if flow["direction"] == direction and flow["bytes"] and flow["duration_ns"]]
        if flows:
            begin = min(flow["start_ns"] for flow in flows)
            ends = sorted((flow["start_ns"] + flow["duration_ns"] - begin, flow["bytes"]) for flow in flows)
            yield round(max(8e9 * size / span for (span, _), size in zip(ends, accumulate(size for _, size in ends), strict=True)))


def _trip_of(end: dict[str, Any]) -> int:
    """The p50 of the round trips of a trial; 0: it has none."""
    trips = end.get("rtt_us")
    median = trips.get("p50") if isinstance(trips, dict) else None
    return round(median * 1000) if isinstance(median, int | float) else 0


def _trial(child: subprocess.Popen[bytes], trial: Trial, trip: _Trip, rates: list[float]) -> Failure | None:
    """None, or why it failed; the rate of a flow is added to `rates`. All trials run already, and each prints less than its pipe
    holds."""
    what = trial.label or f"{Path(trial.command[0]).name} {trial.command[1]}"
    while True:
        try:
            out, err = child.communicate(timeout=max(0.0, trip.left_s))
            break
        except subprocess.TimeoutExpired:
            if trip.left_s > 0:  # a handshake has ended meanwhile
                continue
        limit = f"{timers.trial_s(trip.ns):.0f} s"
        return Failure(
            f"{what}: no result within {limit}: the far end is not reachable, `ktrxer serve` does not run there, or a router drops "
            "some of the connections, by their DSCP or their number", LATE,
        )  # fmt: skip
    last = complaint(err.decode("utf-8", "replace"))
    try:
        end = json.loads(out)
    except ValueError:
        end = None
    if isinstance(end, dict) and (any(end.get(name) for name in ANSWERS) or end.get("verdict") in ("valid", "degraded")):
        rates += _rates(end)
        trip.probed_ns = max(trip.probed_ns, _trip_of(end))
        return None  # there is an answer: the lateness of three packets says nothing about the run
    if isinstance(end, dict) and end.get("reasons"):
        # The first reason may be lateness on a busy machine; a missing answer matters more here.
        reasons = read_reasons(end["reasons"])
        first = next((one for one in reasons if one.id in ("silent", *FAILURES)), reasons[0] if reasons else None)
        cause = one_line(first.text if first else last)
        return Failure(f"{what}: {cause}", first.id if first else TEXT, cause)
    return Failure(last or f"{what}: exit status {child.returncode}, without a message")
