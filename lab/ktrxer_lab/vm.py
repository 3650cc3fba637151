# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs one command in one emulated device: boot, run, return the results, stop."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ktrxer_lab import cache, console, cpio, device, image, places, scratch
from ktrxer_lab.errors import GuestFailure, LabError, TimeLimit, Unavailable
from ktrxer_lab.recipe import Recipe

Time = Literal["virtual", "real"]
OnOutput = Callable[[bytes, bytes], None]

MARK = b"\n\0ktrxer-lab: here ends this stream\0\n"
PORTS = ("status", "out", "err", "kernel", "files")
POLL_S = 0.02
DISK_RESERVE = 1 << 20  # less free space counts as a full disk: the emulator would stop without a message
KILL_AFTER_S = 5  # a hung guest ignores SIGTERM
CLOCK = "2026-01-01T00:00:00"
# A timer of the emulator that is always pending, once a second. Without it, a device model that sets its timer before it raises its
# interrupt (as on MIPS) makes the idle machine skip to that timer at once: seconds ahead, or to the end of time.
HEARTBEAT = ("-netdev", "hubport,id=beat,hubid=0", "-object", "filter-buffer,id=heartbeat,netdev=beat,interval=1000000")


@dataclass(frozen=True)
class Machine:
    """The machine to boot."""

    device: device.Device
    kernel: str
    time: Time = "virtual"
    seed: int = 1
    shift: int | None = None
    cpus: int | None = None
    memory_mib: int | None = None

    @staticmethod
    def named(name: str, kernel: str | None = None, time: Time = "virtual", seed: int = 1) -> Machine:
        chosen = device.load(name)
        return Machine(chosen, chosen.kernel(kernel), time, seed)


@dataclass(frozen=True)
class Job:
    """The job to run in it."""

    command: tuple[str, ...]
    put: tuple[tuple[Path, str], ...] = ()
    get: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    setup: str = ""
    layers: tuple[str, ...] = ()
    limit_s: float = 60.0
    extra: cpio.Tree | None = None
    unit_tests: bool = False  # copy this build's unit tests to /usr/libexec/ktrxer/tests; they are large
    network: Path | None = None  # the folder with the socket that joins two machines
    side: int = 0


@dataclass
class Answer:
    """The results."""

    status: int
    stdout: bytes
    stderr: bytes
    files: Path | None  # a tar archive in the run's folder, which is removed at the end
    missing: list[str]
    kernel_log: list[str]
    boot_s: float  # wall time to the command's start
    wall_s: float
    cpu_s: float  # CPU time of the emulator; about the wall time on an idle host
    guest_s: float  # the device's own time from the command's start to its end
    boot_guest_s: float  # the device's own time from its start to the command's start

    @property
    def warnings(self) -> list[str]:
        return console.warnings(self.kernel_log)


def boot(
    machine: Machine,
    job: Job,
    on_output: OnOutput | None = None,
    show: cache.Show | None = None,
    stop: threading.Event | None = None,
) -> Answer:
    """Run a job and wait for its end. Raises LabError or GuestFailure. No process is left running in any case."""
    with scratch.folder() as folder, Guest(machine, job, folder, show or quiet) as guest:
        answer = guest.wait(on_output, stop)
        if answer.files is not None:
            answer.files = _outlive(answer.files)
        return answer


def quiet(_: str) -> None:
    pass


def _outlive(path: Path) -> Path:
    handle, name = tempfile.mkstemp(prefix=scratch.PREFIX, suffix=".tar")
    os.close(handle)
    shutil.move(path, name)
    return Path(name)


class Guest:
    """A running device. Leaving its `with` block stops it."""

    def __init__(self, machine: Machine, job: Job, folder: Path, show: cache.Show) -> None:
        self.machine = machine
        self.job = job
        self.folder = folder
        program = machine.device.emulator.program
        if shutil.which(program) is None:
            raise Unavailable(
                f"{program} is not installed; install it with: apt-get install --no-install-recommends {machine.device.emulator.package}"
            )
        images = image.prepare(machine.device, machine.kernel, job.layers, show)
        with cache.no_space(folder):
            self._write_initrd(images)
        for port in PORTS:
            (folder / port).touch()
        self.cpu_s = 0.0
        self.started = time.monotonic()
        self.boot_s: float | None = None
        self.process = subprocess.Popen(
            self._command(images),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "qemu").open("wb"),
            start_new_session=True,
        )

    def __enter__(self) -> Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        if not self._ended():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self._ended(block=True)

    def _ended(self, block: bool = False) -> bool:
        """Whether the emulator has ended. Records its CPU time, which Popen's own wait would discard."""
        if self.process.returncode is None:
            pid, status, used = os.wait4(self.process.pid, 0 if block else os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = used.ru_utime + used.ru_stime
        return self.process.returncode is not None

    def wait(self, on_output: OnOutput | None = None, stop: threading.Event | None = None) -> Answer:
        """Wait for the end or for `stop`, and pass output on as it arrives."""
        sent = {"out": 0, "err": 0}
        while True:
            ended = self._ended()
            if stop is not None and stop.is_set():
                raise LabError(f"the {self.machine.device.name} was stopped")
            if self.boot_s is None and b"start " in self._read("status"):
                self.boot_s = time.monotonic() - self.started
            if on_output is not None:
                new = {}
                for port in sent:
                    data = self._stream(port)[sent[port] :] if ended else self._fresh(port, sent[port])
                    sent[port] += len(data)
                    new[port] = data
                if new["out"] or new["err"]:
                    on_output(new["out"], new["err"])
            if ended:
                return self._answer()
            if shutil.disk_usage(self.folder).free < DISK_RESERVE:
                raise self._disk_full()
            time.sleep(POLL_S)

    # -- input --

    def _write_initrd(self, images: image.Images) -> None:
        path = self.folder / "initrd"
        with path.open("wb") as out:
            for part in (*images.layers, images.kernel.modules):
                with part.open("rb") as source:
                    shutil.copyfileobj(source, out, 1 << 20)
            self._job_tree().write(out)

    def _job_tree(self) -> cpio.Tree:
        job, emulator = self.job, self.machine.device.emulator
        tree = cpio.Tree()
        tree.file("init", (places.data() / "guest" / "init").read_bytes(), 0o755)
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in job.environment.items())
        tree.directory("lab/bin")
        tree.file("lab/command", f"#!/bin/sh\n{exports}exec {shlex.join(job.command)}\n".encode(), 0o755)
        loaded = Recipe.load().get("modules", "with_bus", emulator.bus)
        if job.network is not None:
            loaded = [*loaded, "virtio_net"]
        tree.file("lab/modules", "".join(f"{name}\n" for name in loaded).encode())
        tree.file("lab/hostname", f"{self.machine.device.name}\n".encode())
        tree.file("lab/mark", MARK)
        tree.file("lab/get", "".join(f"{path}\n" for path in job.get).encode())
        if job.setup:
            tree.file("lab/setup", f"#!/bin/sh\n{job.setup}".encode(), 0o755)
        put_build(tree, self.machine.device.build, job.unit_tests)
        for source, target in job.put:
            if not source.exists():
                raise LabError(f"--put {source}: No such file or directory")
            tree.copy(source, target)
        if job.extra is not None:
            tree.entries.update(job.extra.entries)
        return tree

    def _command(self, images: image.Images) -> list[str]:
        machine, emulator = self.machine, self.machine.device.emulator
        virtual = machine.time == "virtual"
        cpus = 1 if virtual else machine.cpus or emulator.cpus
        shift = emulator.shift if machine.shift is None else machine.shift
        append = f"console={emulator.console} panic=-1 oops=panic loglevel=5 {emulator.append}"
        if virtual and emulator.append_virtual:
            append += f" {emulator.append_virtual}"
        bus = "virtio-serial-pci" if emulator.bus == "pci" else "virtio-serial-device"
        if virtual:
            bus, more = (f"{bus},ioeventfd=off", []) if emulator.bus == "pci" else (bus, ["-global", "virtio-mmio.ioeventfd=off"])
        qemu = [
            emulator.program,
            *("-accel", "tcg" if virtual else "tcg,thread=multi" if cpus > 1 else "tcg"),
            *("-machine", emulator.machine, "-cpu", emulator.cpu, "-smp", str(cpus)),
            *("-m", str(machine.memory_mib or emulator.memory_mib)),
            *("-kernel", str(images.kernel.image), "-initrd", str(self.folder / "initrd"), "-append", append),
            *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
            *("-serial", f"file:{self.folder / 'console'}"),
            *("-rtc", f"base={CLOCK if virtual else 'utc'},clock=vm", "-seed", str(machine.seed)),
            *("-device", f"{bus},max_ports=8"),
        ]
        for port in PORTS:
            qemu += ["-chardev", f"file,id={port},path={_escaped(self.folder / port)}"]
            qemu += ["-device", f"virtserialport,chardev={port},name=lab.{port}"]
        if virtual:
            # The option ioeventfd=off avoids a thread of the emulator that handles the device's output when the host schedules it.
            qemu += ["-icount", f"shift={shift},sleep=off", *HEARTBEAT, *more]
        if self.job.network is not None:
            mine, theirs = self.job.network / f"{self.job.side}", self.job.network / f"{1 - self.job.side}"
            nic = "virtio-net-pci" if emulator.bus == "pci" else "virtio-net-device"
            qemu += [
                *("-netdev", f"dgram,id=net,local.type=unix,local.path={_escaped(mine)},remote.type=unix,remote.path={_escaped(theirs)}"),
                *("-device", f"{nic},netdev=net,mac=52:54:00:00:00:0{self.job.side + 1}" + (",romfile=" if emulator.bus == "pci" else "")),
            ]
        # The time limit kills the emulator, and each process dies with its parent, so no process is left.
        bound = ["setpriv", "--pdeathsig", "KILL"]
        return [*bound, "timeout", "-k", str(KILL_AFTER_S), str(self.job.limit_s), *bound, *qemu]

    # -- output --

    def _read(self, name: str) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / name).read_bytes()
        return b""

    def _fresh(self, port: str, offset: int) -> bytes:
        """Output after an offset, without a possible part of the end mark."""
        with (self.folder / port).open("rb") as source:
            source.seek(offset)
            data = source.read()
        return data[: max(0, len(data) - len(MARK))]

    def _stream(self, port: str) -> bytes:
        return self._read(port).removesuffix(MARK)

    def _whole(self, port: str) -> bool:
        with (self.folder / port).open("rb") as source:
            source.seek(max(0, source.seek(0, os.SEEK_END) - len(MARK)))
            return source.read() == MARK

    def _answer(self) -> Answer:
        wall_s = time.monotonic() - self.started
        lines = [line.split(" ", 1) for line in self._read("status").decode(errors="replace").splitlines()]
        answers = {words[0]: words[1] for words in lines if len(words) == 2}
        cut = [port for port in ("out", "err", "kernel", "files") if not self._whole(port)]
        if "end" not in answers or "status" not in answers or cut:
            raise self._failure(answers)
        if "failed" in answers:
            raise LabError(f"the {self.machine.device.name} could not pack the requested files (--get)")
        if self.job.get and (self.folder / "files").stat().st_size > len(MARK):
            with (self.folder / "files").open("r+b") as archive:
                archive.truncate((self.folder / "files").stat().st_size - len(MARK))
            files = self.folder / "files"
        else:
            files = None
        return Answer(
            status=int(answers["status"]),
            stdout=self._stream("out"),
            stderr=self._stream("err"),
            files=files,
            missing=[words[1] for words in lines if words[0] == "missing"],
            kernel_log=self._stream("kernel").decode(errors="replace").splitlines(),
            boot_s=self.boot_s if self.boot_s is not None else wall_s,
            wall_s=wall_s,
            cpu_s=self.cpu_s,
            guest_s=float(answers["end"]) - float(answers["start"]),
            boot_guest_s=float(answers["start"]),
        )

    def _disk_full(self) -> LabError:
        name = self.machine.device.name
        cure = "free some space or set TMPDIR to another disk"
        return LabError(f"the disk of {self.folder} is full: the output of the {name} is truncated; {cure}")

    def _failure(self, answers: dict[str, str]) -> LabError:
        name = f"{self.machine.device.name} ({self.machine.kernel}, {self.machine.time} time)"
        log = self._read("console").decode(errors="replace")
        qemu = self._read("qemu").decode(errors="replace").strip()
        when = "during the command" if "start" in answers else "before the command started"
        dead = console.death(log)
        streams = (log, self._stream("out"), self._stream("err"))
        if dead and dead.startswith("Initramfs unpacking failed"):
            size = (self.folder / "initrd").stat().st_size >> 20
            return GuestFailure(f"{name}: its memory is too small for {size} MiB of files; give it more (--memory)", *streams)
        if dead and dead.startswith("ktrxer-lab: "):
            return GuestFailure(f"{name}: it did not boot: {dead.removeprefix('ktrxer-lab: ')}", *streams)
        if dead:
            return GuestFailure(f"{name}: its kernel died {when}: {dead}", *streams)
        if self.process.returncode in (124, 137, -signal.SIGKILL):
            last = console.tail(log, 1) or "nothing on its console"
            limit = f"not done after {self.job.limit_s:g} s"
            return TimeLimit(f"{name}: {limit}, ended {when} (--timeout; last on its console: {last})", *streams)
        if qemu:
            return LabError(f"{self.machine.device.emulator.program}: {qemu.splitlines()[-1]}")
        return GuestFailure(f"{name}: ended {when} without an answer (exit status {self.process.returncode})", *streams)


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


def put_build(tree: cpio.Tree, build: str, with_unit_tests: bool) -> None:
    """Add this build's existing binaries: the command and, if wanted, the unit tests."""
    command = places.program(build)
    if command is not None:
        tree.file("usr/bin/ktrxer", command.read_bytes(), 0o755)
    for test in unit_tests(build) if with_unit_tests else ():
        tree.file(f"usr/libexec/ktrxer/tests/{test.name}", test.read_bytes(), 0o755)


def unit_tests(build: str) -> list[Path]:
    """The unit test programs of one architecture's build."""
    folder = places.build_tree(build) / "tests" / "unit"
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob("test_*") if path.is_file() and os.access(path, os.X_OK) and path.suffix == "")


def boot_pair(
    left: Machine, right: Machine, job: Job, peer: str, on_output: OnOutput | None = None, show: cache.Show | None = None
) -> Answer:
    """Two machines joined by a network: `job` runs in the first. The shell command `peer` runs in the second until the first is done."""
    for machine in (left, right):
        if machine.time != "real":
            raise LabError("two machines need real time: in virtual time each has its own clock (--time real)")
    with scratch.folder() as folder, contextlib.ExitStack() as stack:
        for side in ("left", "right"):
            (folder / side).mkdir()
        addressed = [
            replace(
                one,
                network=folder,
                side=side,
                setup=f"set -e\nip address add 10.65.0.{side + 1}/24 dev eth0\nip link set eth0 up\n{one.setup}",
            )
            for side, one in enumerate((job, replace(job, command=("sh", "-c", peer), get=(), put=job.put)))
        ]
        other = stack.enter_context(Guest(right, addressed[1], folder / "right", show or quiet))
        guest = stack.enter_context(Guest(left, addressed[0], folder / "left", show or quiet))
        answer = guest.wait(on_output)
        if other._ended():
            other._answer()  # if the peer died, report that: it is the cause of the first machine's error
        if answer.files is not None:
            answer.files = _outlive(answer.files)
        return answer
