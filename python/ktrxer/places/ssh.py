# SPDX-License-Identifier: MIT OR Apache-2.0
"""A host that is reached by ssh: the system's client with the user's configuration, one connection for each host.

The connection is a master of OpenSSH's ControlMaster whose own session is a shell; each process is a session of that connection. When this
program ends, for whatever reason, the standard input of every session ends, and the guard (process.py) ends the process group on the far
host. The far host needs a POSIX shell, `date` and /proc.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ktrxer.places.place import ClockOffset, PlaceError, run
from ktrxer.places.process import Process, guard

READY = "ktrxer-ready"  # the first line of the far shell
CONNECT_S = 20
ANSWER_S = 30  # of the far shell to one line
COPY_S = 600
EXIT_S = 2  # of a client whose pipes have ended
ALIVE = ("-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=3")  # a dead connection is found after 6 s
COMPARISONS = 12  # of the clocks: the one with the shortest round trip counts
FOLDER = "ktrxer-ssh-"  # with the socket of a connection, in /tmp
LOST = 255  # exit status of ssh when the connection failed
S = 10**9


class SshProcess(Process):
    """A session of the connection. Signals go through the guard, because the client passes none on."""

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(argv)
        self.guarded = True
        self._killed = False

    def ask_to_stop(self) -> None:
        self._show("INT")

    def kill(self) -> None:
        """The guard ends the process on the far host; then the client is ended, which may hang with its connection."""
        self._killed = True
        self._show("KILL")
        super().kill()

    def _show(self, word: str) -> None:
        pipe = self.child.stdin
        with contextlib.suppress(OSError, ValueError):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                os.write(pipe.fileno(), f"{word}\n".encode())

    def close(self) -> int:
        """The client closes its pipes some time before it exits."""
        if self.child.returncode is None and not self.open and not self._killed:
            descriptor = os.pidfd_open(self.child.pid)
            select.select([descriptor], [], [], EXIT_S)
            os.close(descriptor)
        status = super().close()
        return -9 if self._killed else status


class Ssh:
    shares_clock = False

    def __init__(self, destination: str) -> None:
        self.name = f"ssh:{destination}"
        if not destination or destination.startswith("-") or not destination.isprintable() or " " in destination:
            raise PlaceError(f"{self.name[:60]}: not a destination of ssh; it is [USER@]HOST")
        if re.fullmatch(r"[^:]+:\d+", destination):
            raise PlaceError(f"{self.name[:60]}: a destination of ssh has no port here: set the port in ~/.ssh/config (Host, Port)")
        self._destination = destination
        self._client = shlex.split(os.environ.get("KTRXER_SSH", "ssh"))
        if not self._client or shutil.which(self._client[0]) is None:
            raise PlaceError(f"{self.name}: the command {self._client[:1]} is missing (Debian: openssh-client)")
        self._folder, self._lock = _folder()
        self._socket = f"{self._folder}/s"
        self._processes: list[SshProcess] = []
        self._secrets: dict[Path, str] = {}
        # BatchMode: a question for a password would wait for ever. The master ends with the last of its sessions.
        options = ["-M", "-S", self._socket, "-o", "ControlPersist=no", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", *ALIVE]
        self._shell = Process([*self._client, "-T", *options, "--", destination, f"echo {READY}; exec sh"])
        try:
            if self._line(CONNECT_S + 5) != READY.encode():
                raise PlaceError(f"{self.name}: the login shell of the far host printed something before the first command; make it silent")
            before = time.monotonic_ns()
            run(self, ["true"], CONNECT_S)
            self.start_ns = time.monotonic_ns() - before
        except PlaceError:
            self.close()
            raise

    def _command(self, remote: str) -> list[str]:
        return [*self._client, "-T", "-S", self._socket, "-o", "ControlMaster=no", "-o", "BatchMode=yes", "--", self._destination, remote]

    def start(self, argv: Sequence[str], *, guarded: bool = True, at_real_ns: int | None = None) -> Process:
        del guarded  # always, because a connection can be lost
        process = SshProcess(self._command(f"exec {shlex.join(guard(argv, at_real_ns))}"))
        self._processes.append(process)
        return process

    def copy_in(self, source: Path, target: str) -> None:
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(source.open("rb"))
            except OSError as error:
                raise PlaceError(f"{source}: {error.strerror}") from None
            self._copy(f"cat > {shlex.quote(target)}", f"{source} cannot be copied to {target}", stdin=file)

    def copy_secret(self, source: Path) -> str:
        if source not in self._secrets:
            path = self._ask("umask 077; mktemp /tmp/ktrxer-XXXXXXXX || echo").decode("utf-8", "replace")
            if not path.startswith("/tmp/ktrxer-"):
                raise PlaceError(f"{self.name}: no file can be made in /tmp")
            self._secrets[source] = path
            self.copy_in(source, path)
        return self._secrets[source]

    def copy_out(self, source: str, target: Path) -> None:
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(target.open("wb"))
            except OSError as error:
                raise PlaceError(f"{target}: {error.strerror}") from None
            self._copy(f"exec cat {shlex.quote(source)}", f"{source} cannot be copied to {target}", stdout=file)

    def _copy(self, remote: str, what: str, *, stdin: object = subprocess.DEVNULL, stdout: object = subprocess.DEVNULL) -> None:
        try:
            done = subprocess.run(
                self._command(remote), stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=COPY_S, check=False,  # type: ignore[call-overload]
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise PlaceError(f"{self.name}: {what} within {COPY_S} s") from None
        if done.returncode:
            raise PlaceError(f"{self.name}: {what}: {_last(done.stderr.decode('utf-8', 'replace')) or f'exit status {done.returncode}'}")

    def clock(self) -> ClockOffset:
        """A round trip to the far shell and its `date` confines the far clock: it was read between the question and the answer."""
        best: ClockOffset | None = None
        for _ in range(COMPARISONS):
            before, mono = time.time_ns(), time.monotonic_ns()
            answer = self._ask("date +%s.%N")
            trip = time.monotonic_ns() - mono
            found = re.fullmatch(rb"(\d+)\.(\d{9})|(\d+).*", answer)
            if found is None:
                raise PlaceError(f"{self.name}: `date +%s` answered {answer[:40]!r}: the clocks cannot be compared")
            if found[1]:
                far, step = int(found[1]) * S + int(found[2]), 0
            else:  # a `date` without nanoseconds: the time is in the middle of its second, to half a second
                far, step = int(found[3]) * S + S // 2, S // 2
            bound = trip // 2 + 1 + step
            if best is None or bound < best.bound_ns:
                best = ClockOffset(far - before - trip // 2, bound, before)
        assert best is not None
        return best

    def _ask(self, line: str) -> bytes:
        assert self._shell.child.stdin is not None
        try:
            self._shell.child.stdin.write(f"{line}\n".encode())
        except OSError:
            raise PlaceError(f"{self.name}: {self.loss() or 'the connection was lost'}") from None
        return self._line(ANSWER_S)

    def _line(self, timeout_s: float) -> bytes:
        """One line of the far shell."""
        shell, text, deadline = self._shell, b"", time.monotonic() + timeout_s
        while not text.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or len(text) > 4000:
                raise PlaceError(f"{self.name}: no answer of the far shell within {timeout_s:g} s")
            for descriptor in shell.ready(left):
                text += b"".join(shell.read(descriptor))
            if shell.out not in shell.open:
                raise PlaceError(f"{self.name}: {self.loss() or 'ssh ended'}; `ssh {self._destination} true` must work without a question")
        return text.removesuffix(b"\n")

    def loss(self) -> str | None:
        for descriptor in self._shell.ready(0) if self._shell.open else []:
            for _ in self._shell.read(descriptor):
                pass
        if self._shell.out in self._shell.open:
            return None
        return f"the ssh connection was lost: {_last(self._shell.stderr_tail) or 'ssh gives no reason'}"

    def close(self) -> None:
        """The end of their standard input ends the processes on the far host; the clients get the time to pass that on."""
        if self._secrets and self.loss() is None:
            with contextlib.suppress(PlaceError):
                self._ask(f"rm -f {shlex.join(self._secrets.values())}; echo")
        for process in [*self._processes, self._shell]:
            with contextlib.suppress(OSError):
                if process.child.stdin is not None:
                    process.child.stdin.close()
        for process in [*self._processes, self._shell]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if process.child.returncode is None and process.open:
                    process.child.wait(timeout=3)
            with contextlib.suppress(OSError):
                process.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _folder() -> tuple[str, int]:
    """A folder for the socket of a connection, and its lock, which the kernel releases when this program ends, also by SIGKILL.

    The path of a socket may have 107 bytes: a folder of /tmp is short enough.
    """
    for left in Path("/tmp").glob(f"{FOLDER}*"):
        with contextlib.suppress(OSError):
            _remove_if_unused(left)
    while True:
        path = tempfile.mkdtemp(prefix=FOLDER, dir="/tmp")
        with contextlib.suppress(FileNotFoundError):  # another run removed it, because it had no lock yet
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if Path(path).is_dir():
                return path, lock
            os.close(lock)


def _remove_if_unused(folder: Path) -> None:
    """Removes the folder of a program of the same user that was killed."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    finally:
        os.close(lock)


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
