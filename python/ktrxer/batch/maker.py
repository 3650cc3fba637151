# SPDX-License-Identifier: MIT OR Apache-2.0
"""A `ktrxer run` that makes many runs: it imports its modules once, and forks for each run. A Python that starts anew for each run of a
batch imports them each time.

`Maker` is the side of the batch. `requested` is that of `ktrxer run --requests`, which no person types. A request is a line of JSON on
standard input: arguments, folder, log. An answer is a line on standard output: `pid` when the run has begun, then `status` and `out` (what
the run wrote to its standard output). A run is a process group of its own, and ends with the process that forked it.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ktrxer.store import files

PR_SET_PDEATHSIG = 1
START_S = 60.0  # for the imports
END_S = 2.0


class Making:
    """A run that is being made. The part of subprocess.Popen that a batch uses."""

    def __init__(self, maker: Maker, first: dict[str, Any]) -> None:
        """`first`: the answer with its `pid`, or with the `status` of a maker that has ended before it forked."""
        self.pid = int(first.get("pid", 0))
        self.returncode = 0
        self._maker = maker
        self._first = first

    def communicate(self, timeout: float) -> tuple[bytes, None]:
        """The run's standard output. TimeoutExpired: it still runs."""
        last = self._first if "status" in self._first else self._maker.answer(timeout)
        self.returncode = int(last["status"])
        return str(last["out"]).encode(), None


class Maker:
    def __init__(self, start: Callable[[int], subprocess.Popen[bytes]]) -> None:
        """`start` starts `ktrxer run --requests` with this standard error."""
        self._start = start
        self._child: subprocess.Popen[bytes] | None = None
        self._read = b""

    def make(self, arguments: Sequence[str], folder: Path, log: Path) -> Making:
        """Begins a run. One at a time."""
        if self._child is None:
            descriptor = files.append(log)
            try:
                self._child, self._read = self._start(descriptor), b""
            finally:
                os.close(descriptor)
        request = {"arguments": list(arguments), "folder": str(folder.resolve()), "log": str(log.parent.resolve() / log.name)}
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
            return Making(self, self.answer(START_S))
        except (BrokenPipeError, subprocess.TimeoutExpired):
            return Making(self, self._dead())

    def answer(self, timeout: float) -> dict[str, Any]:
        """The next answer. TimeoutExpired: none yet. Of a process that has ended: its own status."""
        assert self._child is not None and self._child.stdout is not None
        end = time.monotonic() + timeout
        while b"\n" not in self._read:
            if not select.select([self._child.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                raise subprocess.TimeoutExpired("ktrxer run", timeout)
            data = os.read(self._child.stdout.fileno(), 1 << 16)
            if not data:
                return self._dead()
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        made: dict[str, Any] = json.loads(line)
        return made

    def _dead(self) -> dict[str, Any]:
        assert self._child is not None
        child, self._child = self._child, None
        try:
            child.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
        return {"status": child.returncode or 1, "out": ""}

    def close(self) -> None:
        if self._child is not None:
            self._child.communicate()  # closes its standard input, so it ends


def requested() -> list[str] | None:
    """Forks for each request, and returns in the new process: the arguments of its run. None in the first process, when there is no further
    request. Nothing may have started a thread yet whose locks the new process would need."""
    import ctypes

    libc = ctypes.CDLL(None)
    gc.freeze()  # the collector of a run leaves the pages of these modules shared
    first = os.getpid()
    with open(0, "rb", closefd=False) as requests:
        for line in requests:
            request = json.loads(line)
            ready, begun = os.pipe()
            result, out = os.pipe()
            pid = os.fork()
            if not pid:
                os.setsid()
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
                if os.getppid() != first:
                    os._exit(1)
                _become(Path(request["folder"]), Path(request["log"]), out)
                for descriptor in (ready, begun, result):
                    os.close(descriptor)
                return [str(word) for word in request["arguments"]]
            os.close(begun)
            os.close(out)
            os.read(ready, 1)  # until the run is a process group, so that a signal to the group reaches it
            os.close(ready)
            _answer({"pid": pid})
            with os.fdopen(result, "rb") as written:
                text = written.read().decode("utf-8", "replace")
            _answer({"status": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "out": text})
    return None


def _answer(made: dict[str, Any]) -> None:
    os.write(1, json.dumps(made).encode() + b"\n")


def _become(folder: Path, log: Path, out: int) -> None:
    """The process of a run: its folder, and its standard input, output and error."""
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDONLY)
    errors = files.append(log)
    for descriptor, number in ((nothing, 0), (out, 1), (errors, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
