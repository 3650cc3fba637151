# SPDX-License-Identifier: MIT OR Apache-2.0
"""Process 1 of a guest in virtual time, started by the guest's kernel (see `uml.py`). This program uses only the standard library.

    booted.py FOLDER      a folder of the host with `plan` (JSON); the program writes `out`, `err` and `answer` (JSON) to it

The root is the host's, read-only, below an overlay in the guest's memory. The folder of the command is the host's own and writable. The
program sets up the topology and runs the command as `inside.py` does, and stops the machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from ktrxer_lab import inside

MS_MOVE = 8192
SYNC_RANGE = 277, 7  # sync_file_range(2) on x86-64: wait, write, wait
POWER_OFF = 0x4321FEDC
BASE = "/tmp"  # mount point of the overlay's tmpfs, before the overlay becomes the root

LIBC = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    done = LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode() or None)
    if done:
        raise inside.Failed(f"{kind} cannot be mounted on {target} in the guest: {os.strerror(ctypes.get_errno())}")


def make_base(plan: dict[str, Any], folder: str) -> Path:
    """Mount the tmpfs of the overlay. Return the mount point of the host's folder for the answer."""
    mount("tmpfs", BASE, "tmpfs", data=f"mode=755,size={plan['overlay_mib']}m")
    answers = Path(BASE, "answers")
    answers.mkdir()
    mount("none", str(answers), "hostfs", data=folder)
    return answers


def make_root(plan: dict[str, Any], folder: str) -> Path:
    """Make the overlay the root. Return the new path of the folder for the answer."""
    upper, work, root = (Path(BASE, name) for name in ("upper", "work", "root"))
    for path in (upper, work, root):
        path.mkdir()
    mount("overlay", str(root), "overlay", data=f"lowerdir=/,upperdir={upper},workdir={work}")
    mount("proc", f"{root}/proc", "proc")
    mount("sysfs", f"{root}/sys", "sysfs")
    mount("devtmpfs", f"{root}/dev", "devtmpfs")
    for name, kind, data in (("pts", "devpts", "ptmxmode=666"), ("shm", "tmpfs", "mode=1777")):
        (root / "dev" / name).mkdir()
        mount(kind, f"{root}/dev/{name}", kind, data=data)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        with contextlib.suppress(FileExistsError):
            (root / "dev" / name).symlink_to(target)
    # Hide the host's network namespaces, locks and sockets from the guest.
    mount("tmpfs", f"{root}/run", "tmpfs", data="mode=755")
    answers = root / "run" / "ktrxer-lab"
    for path in (root / "run" / "netns", root / "run" / "lock", answers):
        path.mkdir()
    mount("none", str(answers), "hostfs", data=folder)
    here = str(plan["folder"])
    if here != "/":
        place = Path(f"{root}{here}")
        place.mkdir(parents=True, exist_ok=True)
        mount("none", str(place), "hostfs", data=here)
    os.chdir(root)
    mount(".", "/", "", MS_MOVE)
    os.chroot(".")
    os.chdir(here)
    return Path("/run/ktrxer-lab")


class Stream:
    """A pipe. A thread writes its bytes to a file of the host as they arrive."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.source, target = os.pipe()
        os.dup2(target, descriptor)
        os.close(target)
        self.descriptor = descriptor
        self.thread = threading.Thread(target=self._copy, daemon=True)
        self.thread.start()

    def _copy(self) -> None:
        # A real-time priority, so that a program in an endless loop does not delay output that was printed before.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # only this thread
        while data := os.read(self.source, 1 << 16):
            while data:
                data = data[os.write(self.out, data) :]
            LIBC.syscall(SYNC_RANGE[0], self.out, ctypes.c_long(0), ctypes.c_long(0), SYNC_RANGE[1])

    def close(self) -> None:
        """Wait until all bytes are in the file. The last writer must have ended."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.descriptor)
        os.close(null)
        self.thread.join()


def run(folder: str) -> None:
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # without /dev/console on the host, these descriptors are closed
        pass
    os.close(descriptor)
    plan: dict[str, Any] = json.loads(Path(folder, "plan").read_text())
    os.environ.clear()
    os.environ.update(plan["environment"])
    answer: dict[str, Any]
    answers: Path | None = None
    streams: list[Stream] = []
    try:
        # iputils' ping treats a CLOCK_MONOTONIC_RAW below one second as unset, and then sends without a pause.
        time.sleep(max(0.0, 1 - time.clock_gettime(time.CLOCK_MONOTONIC_RAW)))
        time.clock_settime(time.CLOCK_REALTIME, plan["epoch_s"])  # it starts near 1970, whatever the kernel's command line sets
        socket.sethostname("virtual")
        answers = make_base(plan, folder)
        answers = make_root(plan, folder)
        # All of them also for programs without privileges, such as `ktrxer serve`, which gives its own up.
        ipv4 = Path("/proc/sys/net/ipv4")
        (ipv4 / "tcp_allowed_congestion_control").write_text((ipv4 / "tcp_available_congestion_control").read_text())
        life, _held = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        streams = [Stream(answers / "out", 1), Stream(answers / "err", 2)]
        for descriptor in (0, 1, 2):
            os.set_inheritable(descriptor, True)
        (answers / "started").write_text(f"{time.monotonic()}\n")
        os.sync()
        begun = time.monotonic()
        status = inside.work(plan, life)
        answer = {"status": status, "virtual_s": time.monotonic() - begun}
    except inside.Failed as failure:
        answer = {"error": str(failure)}
    except OSError as error:
        answer = {"error": f"the guest failed: {error}"}
    if answers is None:
        print(f"ktrxer-lab: {answer['error']}", flush=True)  # on the console
    else:
        kill_all()
        for one in streams:
            one.close()
        left = os.statvfs("/")
        answer["overlay_full"] = left.f_bavail == 0 or left.f_favail == 0
        os.sync()
        with (answers / "answer.new").open("w") as out:
            out.write(json.dumps(answer))
            out.flush()
            os.fsync(out.fileno())
        (answers / "answer.new").rename(answers / "answer")
    LIBC.sync()
    LIBC.reboot(POWER_OFF)


def kill_all() -> None:
    """Kill all other processes, so that no process holds a stream."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, 9)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


if __name__ == "__main__":
    run(sys.argv[1])
