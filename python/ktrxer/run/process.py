# SPDX-License-Identifier: MIT OR Apache-2.0
"""One process that measures, and what it prints: a JSON object a line (docs/schema/)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from ktrxer.store import one_line

LINE_MAX = 1 << 20
GARBAGE_MAX = 20  # lines that are no objects: then it is stopped
TAIL = 4000  # of standard error that is kept
PIPE_BYTES = 1 << 20

Object = dict[str, Any]


class Process:
    """Started at once. Its standard input stays open until it shall stop: `--stop-on-eof` ends it when we die, whatever kills us."""

    def __init__(self, argv: Sequence[str]) -> None:
        # In a session of its own: Ctrl-C in the terminal is for us alone, and we tell each of them in order.
        self.child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, bufsize=0
        )
        assert self.child.stdout is not None and self.child.stderr is not None
        self.out, self.err = self.child.stdout.fileno(), self.child.stderr.fileno()
        for descriptor in (self.out, self.err):
            os.set_blocking(descriptor, False)
        # Looked at a few times a second: what many probes say in between must find room.
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.out, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.much = False  # more came at once than should: look again soon
        self.open = {self.out, self.err}
        self.processor_ns: int | None = None  # known when it has ended
        self.garbage = 0
        self.first_garbage = ""
        self.end: Object | None = None
        self.start: Object | None = None
        self._rest = b""
        self._stderr = b""

    @property
    def stderr_tail(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """The last line that it said to people, without its name in front."""
        lines = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()]
        return one_line(lines[-1].removeprefix("ktrxer ")) if lines else ""

    def read(self, descriptor: int) -> Iterator[Object]:
        """What has come on one of its two pipes; a pipe that has ended leaves `open`."""
        came, self.much = 0, False
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.open.discard(descriptor)
                if descriptor == self.out and self._rest.strip():
                    self._not_json(self._rest + b" (cut off)")
                    self._rest = b""
                return
            if descriptor == self.err:
                self._stderr = (self._stderr + data)[-TAIL:]
            else:
                yield from self._lines(data)
            came += len(data)
            self.much = came >= 1 << 16
            if len(data) < 1 << 16:
                return

    def _lines(self, data: bytes) -> Iterator[Object]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_MAX:
            self._not_json(self._rest)
            self.garbage, self._rest = GARBAGE_MAX + 1, b""
        for line, made in zip(lines, _objects(lines), strict=True):
            if made is None and not line.strip():
                continue
            if not isinstance(made, dict) or not isinstance(kind := made.get("type"), str):
                self._not_json(line)
            elif kind == "end":
                self.end = made
            elif kind == "start":
                self.start = made
            else:
                yield made

    def _not_json(self, line: bytes) -> None:
        self.garbage += 1
        self.first_garbage = self.first_garbage or one_line(line[:80].decode("utf-8", "replace"))

    def ask_to_stop(self) -> None:
        """It ends its measurement, and still says its end."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.child.returncode is None:  # not reaped: the number is still its own
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child.pid, number)

    def _reap(self) -> int:
        """As wait(), which does not tell what it has cost."""
        if self.child.returncode is None:
            number = self.child.pid
            if os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                os.kill(number, signal.SIGKILL)
            _, status, usage = os.wait4(number, 0)
            self.child.returncode = os.waitstatus_to_exitcode(status)
            self.processor_ns = round((usage.ru_utime + usage.ru_stime) * 1e9)
        return self.child.returncode

    def close(self) -> int:
        """After its end, or to end it: nothing of it stays. Its exit status, negative for a signal."""
        status = self._reap()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self.open.clear()
        return status


def _refuse(name: str) -> float:
    raise ValueError(name)


_decode = json.JSONDecoder(parse_constant=_refuse).decode


def _objects(lines: list[bytes]) -> list[Any]:
    """What each line says; None for one that is no JSON. All of them at once, which is half the work, unless one of them is not right."""
    with contextlib.suppress(ValueError, RecursionError):
        made = _decode(f"[{b','.join(lines).decode()}]")
        if len(made) == len(lines):
            return list(made)
    return [_object(line) for line in lines]


def _object(line: bytes) -> Any:
    try:
        return _decode(line.decode())
    except (ValueError, RecursionError):
        return None
