# SPDX-License-Identifier: MIT OR Apache-2.0
"""What would go wrong, found before anything starts: a run of a minute must not fail in its last second for a reason of its first."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from ktrxer.catalogue.recipe import Flows
from ktrxer.run.schedule import Schedule
from ktrxer.store import one_line

ESTIMATE_BYTES = 250_000  # of each direction: on 1 Mbit/s two seconds, at long round trips enough for some rounds of slow start
ESTIMATE_S = 4
TRIAL_TIMEOUT = "5s"  # a queue that is full already may hold a probe for seconds
SECONDS = 12  # for all of them together, at most
ROW_BYTES = 160  # of the directory and the file together
ROOM = 8 << 20  # for everything else

# What to do where no server was found: for a test without flows, with a token, without one.
START = "the far end of a run is `ktrxer serve`: start it on that host{how}; its port (8620 without --port) must be open for TCP and UDP"
WITH_TOKEN = " with the same token as here (`ktrxer serve --token-file FILE`)"
WITHOUT_TOKEN = ", write the token that it prints into a file here (`(umask 077; echo TOKEN >token)`), and add --token-file token"
# Signs that no `ktrxer serve` was found, in the messages of `ktrxer stamp` and `ktrxer flow`, and in ours.
UNANSWERED = ("answered nothing at all on UDP port", "nothing listens on", "no result within", "--token-file is missing")
SILENT = "answered nothing at all"  # no ICMP echo reply: no sign of a server


class CheckError(Exception):
    """One line, or several: each says what and what now."""


def resolve(host: str, family: str = "") -> str:
    """An address of `host`, as the first of its processes will find it."""
    if not host or host.startswith("-"):
        raise CheckError("-H: the host is empty" if not host else f"{host!r} is no host: names do not begin with a dash")
    if re.fullmatch(r"[^:]+:[0-9]+", host):
        raise CheckError(f"{one_line(host, 80)}: a host has no port; the port is given by --port")
    kinds = {"-4": socket.AF_INET, "-6": socket.AF_INET6}
    try:
        found = socket.getaddrinfo(host, None, kinds.get(family, socket.AF_UNSPEC), socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise CheckError(f"{one_line(host, 80)}: no address of this host is known: {why}; see -H") from None
    return str(found[0][4][0])


def directory(path: Path, rows: int) -> None:
    """Can the run be stored there?"""
    if not path.is_dir():
        raise CheckError(f"{path}: no such directory; make it, or name another one by -D")
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise CheckError(f"{path}: no file can be made there: {error.strerror}; name another one by -D") from None
    needed, free = rows * ROW_BYTES + ROOM, shutil.disk_usage(path).free
    if free < needed:
        raise CheckError(f"{path}: {free / 1e6:.1f} MB are free there, and this run may need {needed / 1e6:.1f} MB; name another one by -D")


def rows_of(schedule: Schedule) -> int:
    """How many samples there will be, about."""
    count = 0
    for job in schedule.jobs:
        times = job.length_ns // (job.runner.interval_ns or 10**9)
        count += times * (4 * len(job.item.series) if isinstance(job.item, Flows) else len(job.series))
    return count


def far_end(schedule: Schedule, estimate: bool = False) -> float | None:
    """Does each kind of measurement get an answer? A tiny one of each, all at once.

    `estimate`: the trials of the flows move enough for a first estimate of the rate in bit/s, of the slower direction."""
    sized = ["--bytes", str(ESTIMATE_BYTES), "--for", f"{ESTIMATE_S}s"] if estimate else ["--bytes", "1"]
    rates: list[float] = []
    trials: dict[str, list[str]] = {}
    for job in schedule.jobs:
        command = list(job.command)
        if isinstance(job.item, Flows):
            command[command.index("--flows") + 1] = str(min(len(job.item.series), max(1, len(job.item.cc))))
            trials.setdefault(" ".join(command), [*command, *sized, "--json"])
        else:
            command[command.index("--interval") + 1], command[command.index("--timeout") + 1] = "50ms", TRIAL_TIMEOUT
            trials.setdefault(job.kind, [*command, "--count", "3", "--json"])
    answered = False  # by the server: ICMP echoes are answered by the kernel
    begun, told, give_up = [], [], time.monotonic() + SECONDS
    try:
        for command in trials.values():
            try:
                begun.append(_begin(command))
            except OSError as error:
                told.append(f"{command[0]}: cannot be started: {error.strerror}")
        for child in begun:
            line = _trial(child, give_up, rates)
            assert isinstance(child.args, list)
            answered = answered or (line is None and child.args[1] in ("stamp", "flow"))
            told += [line] if line else []
    finally:
        for child in begun:
            child.kill()
            child.wait()
    if not answered and any(sign in line for line in told for sign in UNANSWERED):
        flows = [job.command for job in schedule.jobs if isinstance(job.item, Flows)]
        has_token = any("--token-file" in command for command in flows) or os.environ.get("KTRXER_TOKEN")
        told.append(START.format(how="" if not flows else WITH_TOKEN if has_token else WITHOUT_TOKEN))
    if told:
        raise CheckError("\n".join(dict.fromkeys(told)))
    return min(rates, default=None) if estimate else None


def _begin(command: list[str]) -> subprocess.Popen[bytes]:
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.Popen(command, stdin=none, stdout=pipe, stderr=pipe, start_new_session=True)


def _trial(child: subprocess.Popen[bytes], give_up: float, rates: list[float]) -> str | None:
    """None, or what is wrong; a flow's rate is added to `rates`. They all run already, and say little
    enough for their pipes to hold it while another one is waited for."""
    assert isinstance(child.args, list)
    what = f"{Path(child.args[0]).name} {child.args[1]}"
    try:
        out, err = child.communicate(timeout=max(0.0, give_up - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"{what}: no result within {SECONDS} s; is the far end reachable, and does `ktrxer serve` run there?"
    said = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    try:
        end = json.loads(out)
    except ValueError:
        end = None
    if isinstance(end, dict) and (end.get("received") or end.get("bytes") or end.get("verdict") in ("valid", "degraded")):
        rates += [rate for name in ("up_bps", "down_bps") if isinstance(rate := end.get(name), int) and rate > 0]
        return None  # it is answered: how late three packets were says nothing of the run
    if isinstance(end, dict) and end.get("reasons"):
        # On a busy machine the first reason may be lateness; what was not answered matters more here.
        told = [str(reason) for reason in end["reasons"]]
        return f"{what}: {one_line(next((one for one in told if any(sign in one for sign in (*UNANSWERED, SILENT))), told[0]))}"
    return one_line(said[-1].removeprefix("ktrxer: ")) if said else f"{what}: exit status {child.returncode}, and not a word why"
