# SPDX-License-Identifier: MIT OR Apache-2.0
"""A command in virtual time: a guest of user-mode Linux with time travel, whose root is this host's.

    this process -- setpriv -- the kernel -- booted.py, process 1 of the guest -- the command, and what runs beside it

A program of the guest is a process of this host. The guest's kernel catches its system calls, by seccomp or ptrace. The program ends with
the kernel, and the kernel with this process. This needs no root, no namespaces and no KVM. Two limits end each guest: one of its own time,
one of wall time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrxer_lab import cache, console, places, scratch, source
from ktrxer_lab.errors import GuestFailure, LabError, MissingPackage, TimeLimit, Unavailable
from ktrxer_lab.packages import Archive
from ktrxer_lab.recipe import Recipe

BOOTED = Path(__file__).with_name("booted.py")
SUFFIX = "-virtual"  # suffix of the kernels' names in lab/ktrxer_lab/data/images.toml
KERNEL = "7.3"
ARCH = "amd64"
MEMORY_MIB = 512
OVERLAY_SHARE = 0.5  # share of the memory for the overlay
WALL_LIMIT_S = 600.0
VIRTUAL_LIMIT_S = 86400.0  # an idle guest reaches this in seconds of wall time
POLL_S = 0.01
SHM = Path("/dev/shm")
# The working folder of the guest's kernel, through the host's /proc. Its name must not be on the kernel's command line: the kernel seeds
# its random numbers with the command line and with the start time.
INIT = "/proc/self/cwd/init"
QEMU = "the device lab emulates a machine without it: ktrxer lab vm --topology FILE --in NODE -- COMMAND"

OnOutput = Callable[[bytes, bytes], None]


@dataclass(frozen=True)
class Guest:
    """The parameters of a guest, and its limits."""

    kernel: str = KERNEL
    memory_mib: int = MEMORY_MIB
    wall_limit_s: float = WALL_LIMIT_S
    seed: int = 1  # of the guest's random numbers


@dataclass(frozen=True)
class Answer:
    status: int
    virtual_s: float  # duration of the command, in the guest's time
    boot_s: float  # wall time to the command's start
    wall_s: float
    overlay_full: bool


def kernels() -> list[str]:
    table = Recipe.load().get("kernels")
    return [name.removesuffix(SUFFIX) for name in table if name.endswith(SUFFIX)]


def archive(kernel: str) -> Archive:
    """The archive of Debian that has the kernel's source."""
    return Archive(str(Recipe.load().get("kernels", kernel + SUFFIX, "suite")), ARCH)


def prepare(kernel: str, show: cache.Show) -> Path:
    """The path of the kernel's program, from the cache or built now."""
    if platform.machine() != "x86_64":
        raise Unavailable(f"virtual time needs an x86-64 host, this is {platform.machine()}; {QEMU}")
    if kernel not in kernels():
        raise LabError(f"no kernel {kernel!r} for virtual time; choose one of: {', '.join(kernels())}")
    with cache.no_space(places.cache()):
        try:
            return source.prepared(Recipe.load(), ARCH, kernel + SUFFIX, show) / "vmlinuz"
        except MissingPackage as error:
            others = ", ".join(f"--kernel {name}" for name in kernels() if name != kernel)
            raise LabError(f"{error}, because its current version differs; use {others}") from None


def run(guest: Guest, plan: Mapping[str, Any], on_output: OnOutput, show: cache.Show) -> Answer:
    """Boot, run the plan (`inside.py`), and end. Raises LabError. No process is left running in any case."""
    kernel = prepare(guest.kernel, show)
    with scratch.folder() as folder:
        whole = {
            **plan,
            "timeout_s": plan.get("timeout_s") or VIRTUAL_LIMIT_S,
            "overlay_mib": int(guest.memory_mib * OVERLAY_SHARE),
            "folder": _here(),
            # Start at the host's next second, so that files of the host do not have times in the guest's future.
            "epoch_s": int(time.time()) + 1,
        }
        with cache.no_space(folder):
            (folder / "plan").write_text(json.dumps(whole))
            (folder / "init").write_text(
                f"#!/bin/sh\nexec {shlex.join([sys.executable, '-P', '-E', '-s', '-B', str(BOOTED), str(folder)])}\n"
            )
            (folder / "init").chmod(0o700)
        with _cpu() as cpu:
            return _Running(guest, kernel, folder, cpu).wait(on_output)


@contextlib.contextmanager
def _cpu() -> Iterator[int]:
    """A CPU for a guest, which no other guest uses while there are enough. The guest's kernel and its programs alternate at each system
    call: on one CPU a switch takes a third of the time of waking another CPU.
    """
    locks = places.cache() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    cpus = sorted(os.sched_getaffinity(0))
    for cpu in cpus:
        with (locks / f"cpu-{cpu}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield cpu
            return
    yield random.choice(cpus)


class _Running:
    def __init__(self, guest: Guest, kernel: Path, folder: Path, cpu: int) -> None:
        self.guest, self.folder = guest, folder
        self.sent = {"out": 0, "err": 0}
        self.boot_s: float | None = None
        self.started = time.monotonic()
        memory = _memory_place(folder, guest.memory_mib)
        command = [
            *("setpriv", "--pdeathsig", "KILL", "--", str(kernel)),
            *(f"mem={guest.memory_mib}M", "root=hostfs", "rootfstype=hostfs", "rootflags=/", "ro", f"init={INIT}"),
            *("time-travel=inf-cpu", "time-travel-start=1", "dummy.numdummies=0", "ifb.numifbs=0"),
            # Catch system calls by seccomp if the kernel can, because it is faster than ptrace. Otherwise the guest's kernel uses ptrace.
            *("seccomp=auto", "con=null", "con0=null,fd:1", "ssl=null", "quiet", "loglevel=5", "panic=-1", "oops=panic"),
        ]
        with (folder / "console").open("wb") as out:
            self.process = subprocess.Popen(
                command,
                env={"PATH": os.defpath, "TMPDIR": str(memory), "HOME": str(folder), "KTRXER_SEED": str(guest.seed)},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        with contextlib.suppress(OSError):  # not allowed here: the guest is slower
            os.sched_setaffinity(self.process.pid, {cpu})  # its children inherit it

    def wait(self, on_output: OnOutput) -> Answer:
        try:
            while self.process.poll() is None:
                self._pass_on(on_output)
                if self.boot_s is None and (self.folder / "started").exists():
                    self.boot_s = time.monotonic() - self.started
                if time.monotonic() - self.started > self.guest.wall_limit_s:
                    self.kill()
                    self._pass_on(on_output)
                    raise self._too_long()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(POLL_S)
            self._pass_on(on_output)
            return self._answer()
        finally:
            self.kill()

    def kill(self) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _pass_on(self, on_output: OnOutput) -> None:
        new = {}
        for name, offset in self.sent.items():
            with contextlib.suppress(FileNotFoundError), (self.folder / name).open("rb") as file:
                file.seek(offset)
                new[name] = file.read()
                self.sent[name] = offset + len(new[name])
        if any(new.values()):
            on_output(new.get("out", b""), new.get("err", b""))

    def _answer(self) -> Answer:
        path = self.folder / "answer"
        if not path.is_file():
            raise self._failure()
        result: dict[str, Any] = json.loads(path.read_text())
        if "error" in result:
            raise LabError(str(result["error"]))
        wall_s = time.monotonic() - self.started
        return Answer(int(result["status"]), float(result["virtual_s"]), self.boot_s or wall_s, wall_s, bool(result["overlay_full"]))

    def _console(self) -> str:
        return (self.folder / "console").read_text(errors="replace")

    def _too_long(self) -> LabError:
        when = "the command" if self.boot_s is not None else "the guest's start"
        limit = f"not done after {self.guest.wall_limit_s:g} s of wall time (--wall-limit; of the device: --timeout)"
        hint = "; a program in an endless loop without system calls stops the guest's clock, so --timeout cannot end it"
        return TimeLimit(f"{when} was ended: {limit}{hint if self.boot_s is not None else ''}")

    def _failure(self) -> LabError:
        log = self._console()
        status = self.process.returncode
        if self.boot_s is None:
            for word in ("ptrace", "PTRACE", "check_sysemu"):  # the messages of a host that refuses seccomp and ptrace
                lines = [line for line in log.splitlines() if word in line and not line.rstrip().endswith("OK")]
                if lines:
                    message = lines[-1].strip()
                    return Unavailable(f"this host forbids seccomp filters and ptrace (the kernel printed: {message}); {QEMU}")
        dead = console.death(log)
        if dead and dead.startswith("ktrxer-lab: "):
            return GuestFailure(f"the guest did not boot: {dead.removeprefix('ktrxer-lab: ')}", log)
        if dead:
            return GuestFailure(f"the kernel of virtual time died: {dead}", log)
        if status == -signal.SIGBUS or "SIGBUS" in log:
            return GuestFailure(f"no memory is left for the guest in {SHM} or {self.folder}: give it less (--memory)", log)
        killed = f"by signal {-status}" if status < 0 else f"with exit status {status}"
        return GuestFailure(f"the guest ended {killed} without an answer", log)


def _here() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise LabError("the current folder has been deleted: change to the folder where the command is to run") from None


def _memory_place(folder: Path, mib: int) -> Path:
    """The folder for the file that is the guest's memory, which holds its programs: the first where programs may run, with enough room."""
    usable = [path for path in (SHM, folder) if _executable(path)]
    if not usable:
        raise Unavailable(f"{SHM} and {folder.parent} are mounted noexec or missing, and the guest's memory is a file there: set TMPDIR")
    return next((path for path in usable if _room(path) >= mib << 20), usable[-1])


def _executable(path: Path) -> bool:
    try:
        return not os.statvfs(path).f_flag & os.ST_NOEXEC
    except OSError:
        return False


def _room(path: Path) -> int:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return 0
