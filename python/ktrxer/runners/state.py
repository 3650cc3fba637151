# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the runners of host state. This program reads the kernel itself in place `local`. Elsewhere one shell loop in the
place prints frames: the time by the clock of the place, the text of /proc or of a tool, and its exit status.

    @state 1700000000123456789
    ...
    @end 0
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ktrxer.collect.errors import StateError
from ktrxer.runners.runner import MS, Options, Parameters, RunnerError, S, Times, lookup_name
from ktrxer.runners.samples import Line, NotUnderstood, Reading, Samples, by_line
from ktrxer.store.meta import Series

FRAME_MOST = 8 << 20  # characters of one sample
FILE_MOST = 4 << 20  # bytes of a file of /proc
SHORTEST_NS, LONGEST_NS = 10 * MS, 60 * S
FAR_SHORTEST_NS = 50 * MS  # a shell starts three programs for each sample
NUMBER_MOST = 2**62

# $1: nanoseconds between two samples; $2: length; $3: the commands, whose $1, $2 and so on are the words after $3. A `date` without
# nanoseconds gives whole seconds, and a `sleep` without fractions sleeps whole ones. A wait is never longer than the interval, so that a
# clock that is stepped cannot stop the loop, and never shorter than a quarter of it: a host that is too slow for the interval has fewer
# samples, and time for other work. One line, because csh as a login shell accepts no other.
LOOP = (
    "every=$1 length=$2 body=$3; shift 3; "
    "look() { now=$(date +%s%N); case $now in *[!0-9]*) now=$(date +%s)000000000;; esac; }; "
    'look; due=$now; stop=$((now + length)) count=$((length / every + 1)); '
    'while [ "$now" -lt "$stop" ] && [ "$count" -gt 0 ]; do '
    'echo "@state $now"; (eval "$body"); echo "@end $?"; count=$((count - 1)); '
    'look; due=$((due + every)); left=$((due - now)); '
    'if [ "$left" -lt "$((every / 4))" ]; then left=$((every / 4)) due=$((now + every / 4)); fi; [ "$left" -le "$every" ] || left=$every; '
    'sleep "$((left / 1000000000)).$(printf %09d $((left % 1000000000)))" 2>/dev/null || sleep $(((left + 999999999) / 1000000000)); '
    "look; done"
)  # fmt: skip


def no_series(_: Any, __: str) -> Mapping[Hashable, Series]:
    """The series are those that the host has: they are made when they appear."""
    return {}


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """A state that cannot be read is a refusal of the runner."""
    try:
        yield
    except StateError as error:
        raise RunnerError(str(error)) from None


def loop(body: str, interval_ns: int, times: Times, *words: str) -> list[str]:
    """The command line that runs `body`, with its words, once an interval."""
    return ["sh", "-c", LOOP, "sh", str(max(interval_ns, FAR_SHORTEST_NS)), str(times.length_ns), body, *words]


def check_interval(p: Parameters) -> None:
    if p.interval_ns is None or not SHORTEST_NS <= p.interval_ns <= LONGEST_NS:
        raise RunnerError(f"samples every {(p.interval_ns or 0) / MS:g} ms; 10 ms to 60 s are possible")


def address_of(o: Options) -> str:
    """The address of the run's host."""
    kinds = {"-4": socket.AF_INET, "-6": socket.AF_INET6}
    try:
        found = socket.getaddrinfo(lookup_name(o.host), None, kinds.get(o.family, socket.AF_UNSPEC), socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise RunnerError(f"no address of {o.host[:60]!r} is known") from None
    return str(found[0][4][0]).partition("%")[0]


_DEVICE = re.compile(r"[^\s/:\x00-\x1f]{1,15}")


def check_device(device: str) -> None:
    if device and (not _DEVICE.fullmatch(device) or device.startswith("-") or device in (".", "..")):
        raise RunnerError(f"{device[:40]!r} is not a name of a network device: it has 1 to 15 characters, without space, / and :")


@dataclass
class Frame:
    """One sample that a loop printed."""

    text: str
    at_ns: int  # time of the run
    late: bool = False


@dataclass
class _Open:
    at_ns: int
    lines: list[str]
    size: int = 0


def by_frame(read: Callable[[Any, Samples, Frame], None]) -> Callable[[Any, Samples], Reading]:
    """`read` is called for each whole frame. A frame whose command failed, or without an end, counts as not understood."""

    def line(p: Any, samples: Samples, line: Line) -> None:
        frame: _Open | None = samples.memory.get(_Open)
        if line.text.startswith("@state "):
            samples.memory[_Open] = _Open(samples.clock.real(_whole(line.text[7:])), [])
            if frame is not None:
                raise NotUnderstood("a sample without an end")
        elif line.text.startswith("@end "):
            samples.memory.pop(_Open, None)
            if frame is None:
                raise NotUnderstood(line.text)
            if _whole(line.text[5:]):
                raise NotUnderstood(f"the command failed with exit status {line.text[5:]}")
            read(p, samples, Frame("\n".join(frame.lines), frame.at_ns))
        elif frame is not None:
            frame.size += len(line.text) + 1
            if frame.size > FRAME_MOST:
                samples.memory.pop(_Open)
                raise NotUnderstood("a sample without an end")
            frame.lines.append(line.text)
        elif line.text.strip():
            raise NotUnderstood(line.text)

    return by_line(line)


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d{1,19}", text.strip()):
        raise NotUnderstood(text)
    return int(text)


def whole(text: str | None) -> int | None:
    """A count of a text; None for anything else."""
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,19}", text) and abs(int(text)) <= NUMBER_MOST else None


class ProcFile:
    """A file of /proc that is opened once: it stays that of the network namespace in which it was opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RunnerError(f"{path}: {error.strerror}") from None

    def read(self) -> str:
        parts: list[bytes] = []
        size = 0
        os.lseek(self._file, 0, os.SEEK_SET)
        # Read in order: for a read at an offset (pread) the kernel makes the text before it again.
        while size < FILE_MOST:
            data = os.read(self._file, 1 << 16)
            if not data:
                break
            parts.append(data)
            size += len(data)
        return b"".join(parts).decode("utf-8", "replace")

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Files:
    """A source that reads files of /proc, and gives their texts to `read` in one."""

    def __init__(self, p: Any, read: Callable[[Any, Samples, Frame], None], paths: Sequence[str]) -> None:
        self._p, self._read = p, read
        self._files: list[ProcFile] = []
        try:
            for path in paths:
                self._files.append(ProcFile(path))
        except RunnerError:
            self.close()
            raise

    def sample(self, samples: Samples, at_ns: int) -> None:
        self._read(self._p, samples, Frame("\n".join(file.read().rstrip("\n") for file in self._files), at_ns))

    def close(self) -> None:
        for file in self._files:
            file.close()
