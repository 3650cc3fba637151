# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer lab run`: a topology in namespaces of this host, and a command in it.

    this process -- unshare -- inside.py, process 1 of its own process namespace -- the command, and what runs beside it

The namespaces have no names on the host. They exist in process 1, which ends with `unshare` (--kill-child), which ends with this process
(setpriv --pdeathsig). Process 1 also watches a pipe of this process. If any of these processes dies, by any signal, the kernel removes all
processes and all namespaces.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrxer_lab import wiring
from ktrxer_lab.errors import LabError, Unavailable
from ktrxer_lab.topology_model import Topology

INSIDE = Path(__file__).with_name("inside.py")
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool", "unshare": "util-linux", "setpriv": "util-linux"}
REFUSED = (
    "this kernel lets only root make user namespaces (kernel.unprivileged_userns_clone, "
    "kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces); run it as root, or with --time virtual, which needs none"
)


@dataclass(frozen=True)
class Job:
    command: tuple[str, ...]
    node: str | None  # None: no topology
    beside: tuple[tuple[str, str], ...] = ()  # node and shell command; it runs as long as the command
    timeout_s: float | None = None
    stdout: int | None = None  # a descriptor for the command's output; None: this process's own


def made_plan(topology: Topology | None, job: Job, remedy: str, place: str = "namespaces") -> dict[str, Any]:
    """The plan for `inside.py`. `remedy`: advice if the kernel lacks a feature that the topology needs."""
    environment = dict(os.environ)
    environment["PATH"] = environment.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=environment["PATH"]) is None:
            raise Unavailable(f"there is no `{program}` on this machine; install it (Debian: apt-get install {package})")
    if topology is not None and job.node is not None:
        environment["KTRXER_LAB_TOPOLOGY"] = topology.provenance(job.node, place=place)
    # A token for `ktrxer serve` and its clients in the lab, so that the user need not write one to a file.
    environment.setdefault("KTRXER_TOKEN", secrets.token_hex(16))
    return {
        "environment": environment,
        "script": wiring.script(topology) if topology else "",
        "events": topology.events() if topology else [],
        "helpers": topology.helpers() if topology else [],
        "remedy": remedy,
        "node": job.node,
        "command": job.command,
        "beside": job.beside,
        "timeout_s": job.timeout_s,
    }


def run(topology: Topology, job: Job) -> int:
    """Make the topology, run the command, and remove everything. Returns the command's exit status."""
    shown = topology.path if "/" in str(topology.path) else f"./{topology.path}"
    remedy = f"the kernel of virtual time has more: ktrxer lab run {shown} --time virtual -- COMMAND"
    plan = made_plan(topology, job, f"{remedy}; emulated devices have other kernels: ktrxer lab vm --topology {shown} -- COMMAND")
    environment: dict[str, str] = plan.pop("environment")
    flags = _flags(environment)
    if "--user" in flags:
        environment["KTRXER_USER_NAMESPACE"] = "1"
    with _pipe() as (plan_read, plan_write), _pipe() as (life_read, life_write), _pipe() as (answer_read, answer_write):
        inside = [sys.executable, "-P", "-E", "-s", str(INSIDE), str(plan_read), str(life_read), str(answer_write)]
        bound = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", *flags, "--", *inside]
        child = subprocess.Popen(bound, env=environment, pass_fds=(plan_read, life_read, answer_write), stdout=job.stdout)
        try:
            for descriptor in (plan_read, life_read, answer_write):
                os.close(descriptor)
            with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(plan_write), "wb") as out:
                out.write(json.dumps(plan).encode())
            os.close(plan_write)
            status = _wait(child, life_write)
        except BaseException:
            child.kill()  # the kernel then kills all processes in the lab
            child.wait()
            raise
        with os.fdopen(os.dup(answer_read), "rb") as answer:
            result: dict[str, Any] = json.loads(answer.read() or b"{}")
    if "error" in result:
        raise LabError(str(result["error"]))
    if "status" not in result:
        raise LabError(f"the lab's first process was killed (exit status {status}); all its processes are gone")
    return int(result["status"])


def _wait(child: subprocess.Popen[bytes], life: int) -> int:
    """Forward signals to the lab, where the command gets a moment to end. A second signal of the same kind ends it at once."""
    signals = 0

    def hand_in(number: int, _: object) -> None:
        nonlocal signals
        signals += 1
        if signals > 2:
            child.kill()
        with contextlib.suppress(OSError):
            os.write(life, bytes([number]))

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, hand_in) for number in numbers}
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            with contextlib.suppress(OSError):
                os.close(end)


def _flags(environment: dict[str, str]) -> Sequence[str]:
    """The options of `unshare` that work here: for root, else for root of a user namespace."""
    base = ["--mount", "--net", "--pid", "--fork", "--kill-child"]
    ways = [base, [*base, "--user", "--map-root-user"]] if os.geteuid() == 0 else [[*base, "--user", "--map-root-user"]]
    words = ""
    for flags in ways:
        done = subprocess.run(["unshare", *flags, "true"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0:
            return flags
        words = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}"
    raise Unavailable(f"no namespaces can be made here ({words}): {REFUSED}")
