# SPDX-License-Identifier: MIT OR Apache-2.0
"""Process 1 of `ktrxer lab run`, started by `local.py` in its own namespaces. This program uses only the standard library.

    inside.py PLAN LIFE SAID      three descriptors: read the plan (JSON); read bytes as signals, end of file means stop; write the answer
    (JSON)

It sets up the topology, runs the command and the programs beside it, and ends. When process 1 ends, the kernel kills all other processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

LAB_FAILED, TIME_LIMIT, NOT_FOUND = 125, 124, 127
GRACE_S = 3.0  # for the command to end after a signal, and for the programs beside it to end after the command
SETTLE_S = 1.0  # the longest wait for the first output of each program beside it
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_MOVE, MS_REC = 2, 4, 8, 4096, 8192, 16384
MNT_DETACH = 2


class Failed(Exception):
    pass


def mount(source: str, target: str, kind: str, flags: int) -> str | None:
    """Mount a file system. The reason of a failure, or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None)
    return None if done == 0 else os.strerror(ctypes.get_errno())


def private_places() -> Path:
    """Mount a private /run/netns, and a /proc of this process namespace. Return a writable folder."""
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)  # some containers refuse this: then use the existing one
    place = Path("/run/netns")
    target = place if place.is_dir() else Path("/run")  # no new folder on the host
    wrong = mount("tmpfs", str(target), "tmpfs", MS_NOSUID | MS_NODEV)
    if wrong:
        raise Failed(f"no private {target}: {wrong}")
    place.mkdir(exist_ok=True)
    return place


def build(plan: dict[str, Any], place: Path) -> None:
    script, hosts = place / "script", place / "hosts"
    wrong = None if Path("/etc/hosts").exists() else private_etc(place)  # before `ip netns add`, which makes this place a shared mount
    script.write_text(plan["script"])
    environment = os.environ | {"KTRXER_LAB_HOSTS": str(hosts), "KTRXER_LAB_REMEDY": plan["remedy"]}
    try:
        done = subprocess.run(["sh", str(script)], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        raise Failed("the topology was not made after 120 s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(lines[-1].removeprefix("topology: ") if lines else f"the topology's script ended with {done.returncode}")
    # In a nested lab, /etc/hosts is a mount of the outer lab whose file is deleted. The kernel refuses a mount on it.
    ctypes.CDLL(None).umount2(b"/etc/hosts", MNT_DETACH)
    wrong = wrong or mount(str(hosts), "/etc/hosts", "", MS_BIND)
    if wrong:
        print(f"ktrxer lab: /etc/hosts cannot be replaced ({wrong}); use addresses instead of names", file=sys.stderr)
    hosts.unlink()
    script.unlink()


def private_etc(place: Path) -> str | None:
    """Replace /etc, which has no file `hosts`, by a folder with the same entries and such a file. The reason of a failure, or None."""
    made = place / "etc"
    made.mkdir()
    wrong = mount("tmpfs", str(made), "tmpfs", MS_NOSUID | MS_NODEV)
    if wrong is None:
        for entry in os.scandir("/etc"):
            own = made / entry.name
            if entry.is_symlink():
                own.symlink_to(Path(entry.path).readlink())
            else:
                if entry.is_dir():
                    own.mkdir()
                else:
                    own.touch()
                wrong = wrong or mount(entry.path, str(own), "", MS_BIND | MS_REC)
        (made / "hosts").unlink(missing_ok=True)  # a link without a target
        (made / "hosts").touch()
        wrong = wrong or mount(str(made), "/etc", "", MS_MOVE)
    if wrong:
        ctypes.CDLL(None).umount2(str(made).encode(), MNT_DETACH)
    made.rmdir()
    return wrong


class Helper:
    """A program that is a part of the network. It prints a line when it is ready."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise Failed(f"a part of the network did not start: {' '.join(words)}")

    def check(self, children: Children) -> None:
        if self.process.pid in children.ended:
            raise Failed(f"a part of the network has ended, with exit status {children.ended[self.process.pid]}: {' '.join(self.words)}")


class Beside:
    """A shell command that runs beside the command. Its output goes to standard error, with the name of its node."""

    def __init__(self, node: str, shell: str) -> None:
        self.node = node
        self.heard, self.closed = threading.Event(), threading.Event()
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", node, "sh", "-c", shell],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C at the terminal must reach only the command
        )
        self.reader = threading.Thread(target=self._pass_on, daemon=True)
        self.reader.start()

    def _pass_on(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            text = line.decode(errors="replace").rstrip("\n")
            with contextlib.suppress(OSError):
                os.write(2, f"{self.node}| {text}\n".encode())
            self.heard.set()
        self.closed.set()
        self.heard.set()

    def settle(self, children: Children) -> None:
        """Wait for its first output. Raises Failed if the command has ended with an error."""
        self.heard.wait(SETTLE_S)
        self.closed.wait(0.05)  # output followed by an end is an error message, not readiness
        end = time.monotonic() + SETTLE_S
        while self.closed.is_set() and self.process.pid not in children.ended and time.monotonic() < end:
            children.reap()
            time.sleep(0.005)
        if status := self.status(children):
            raise Failed(f"the command beside in {self.node} ended at once, with exit status {status}")

    def status(self, children: Children) -> int:
        """Its exit status as a shell shows it; 0 while it runs."""
        return shell_status(children.ended.get(self.process.pid, 0))


class Children:
    """The exit statuses of all children that process 1 reaps: its own and orphans."""

    def __init__(self) -> None:
        self.ended: dict[int, int] = {}

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended[pid] = os.waitstatus_to_exitcode(status)

    def alone(self) -> bool:
        self.reap()
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        return False


def work(plan: dict[str, Any], life: int) -> int:
    if not shutil.which(plan["command"][0]):
        return missing(plan["command"][0])
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    place = private_places()
    if plan["script"]:
        build(plan, place)
    children = Children()
    helpers = [Helper(words) for words in plan["helpers"]]
    beside: list[Beside] = []
    for node, shell in plan["beside"]:  # one after the other, because each can need those before it
        beside.append(Beside(node, shell))
        beside[-1].settle(children)
    # This process now handles the signals and reaps the children of the namespace.
    signal.set_wakeup_fd(wake_write)
    got: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: got.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    at = ["ip", "netns", "exec", plan["node"]] if plan["node"] is not None else []
    main = subprocess.Popen([*at, *plan["command"]])
    events = Events(plan["events"])
    status = until_the_end(main.pid, children, life, wake_read, got, plan["timeout_s"], events)
    events.check(children)
    for helper in helpers:
        helper.check(children)
    failed = [(one.node, one.status(children)) for one in beside if one.status(children)]
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGTERM)
    end = time.monotonic() + GRACE_S
    while not children.alone() and time.monotonic() < end:
        select.select([wake_read], [], [], 0.05)
        drain(wake_read)
    for one in beside:
        one.reader.join(0.2)  # read its last lines
    for node, failure in failed:
        print(f"ktrxer lab: the command beside in {node} ended with exit status {failure}, before the command", file=sys.stderr, flush=True)
        status = status or failure
    return status


class Events:
    """Changes of the network during the command: seconds from its start, and the command that makes the change."""

    def __init__(self, planned: list[tuple[float, list[str]]]) -> None:
        start = time.monotonic()
        self.planned = [(start + at, words) for at, words in planned]
        self.started: list[tuple[int, list[str]]] = []

    def next(self) -> float | None:
        return self.planned[0][0] if self.planned else None

    def run(self, now: float) -> None:
        while self.planned and self.planned[0][0] <= now:
            _, words = self.planned.pop(0)
            self.started.append((subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).pid, words))

    def check(self, children: Children) -> None:
        for pid, words in self.started:
            if children.ended.get(pid, 0):
                raise Failed(f"a change of the network failed, with exit status {children.ended[pid]}: {' '.join(words)}")


def until_the_end(
    main: int, children: Children, life: int, wake: int, got: list[int], timeout_s: float | None, events: Events
) -> int:
    end = time.monotonic() + timeout_s if timeout_s else None
    kill_at: float | None = None
    late, open_life = False, True
    while True:
        children.reap()
        if main in children.ended:
            status = children.ended[main]
            return TIME_LIMIT if late else shell_status(status)
        now = time.monotonic()
        if end is not None and now >= end and not late:
            late, kill_at = True, now + GRACE_S
            print(f"ktrxer lab: the command has not ended within {timeout_s:g} s (--timeout) and is ended", file=sys.stderr, flush=True)
            forward(main, signal.SIGTERM)
        if kill_at is not None and now >= kill_at:
            forward(main, signal.SIGKILL)
            kill_at = None
        events.run(now)
        waits = [at - now for at in (end if not late else None, kill_at, events.next()) if at is not None]
        ready, _, _ = select.select([wake, *([life] if open_life else [])], [], [], max(0.0, min(waits)) if waits else None)
        drain(wake)
        if life in ready:
            numbers = os.read(life, 16)
            if not numbers:
                return 128 + signal.SIGKILL  # the parent process has ended
            for number in numbers:
                # Ctrl-C at a terminal has already sent this signal to the command and to this process.
                if number != signal.SIGINT or signal.SIGINT not in got:
                    forward(main, number)
                if number != signal.SIGINT:
                    kill_at = time.monotonic() + GRACE_S
            got.clear()


def shell_status(status: int) -> int:
    """128 + N for an end by signal N."""
    return status if status >= 0 else 128 - status


def forward(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def drain(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(descriptor, 4096)


def missing(program: str) -> int:
    print(f"ktrxer lab: {program}: command not found", file=sys.stderr)
    return NOT_FOUND


def main() -> int:
    plan_fd, life, output = map(int, sys.argv[1:4])
    for descriptor in (life, output):
        os.set_inheritable(descriptor, False)
    with os.fdopen(plan_fd, "rb") as file:
        text = file.read()
    if not text:
        return LAB_FAILED  # the parent process died
    answer: dict[str, Any]
    try:
        answer = {"status": work(json.loads(text), life)}
    except Failed as failure:
        answer = {"error": str(failure)}
    except KeyboardInterrupt:
        answer = {"status": 130}
    with contextlib.suppress(OSError):
        os.write(output, json.dumps(answer).encode())
    return LAB_FAILED if "error" in answer else int(answer["status"])


if __name__ == "__main__":
    os._exit(main())  # do not wait for threads that still read
