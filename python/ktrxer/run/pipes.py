# SPDX-License-Identifier: MIT OR Apache-2.0
"""The pipes of the processes of a run: when they are read, and what ends the wait before that.

Each read takes processor time that the processes lack, so a pipe is read seldom, but before it is full."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrxer.run.active import Active

S = 10**9
PAUSE_NS = S // 5  # between two reads; of output without times of its own, a sample has the time of the read
SHORT_NS = PAUSE_NS // 10  # a process that has filled the default size of a pipe may soon fill a larger one
LONG_NS = S  # of output that has its times in it


class Pipes:
    """`wait` ends early at the end of a process and at a signal, but not at output."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._ends = select.poll()
        self._pause_ns = PAUSE_NS
        self.next_ns = 0  # CLOCK_MONOTONIC: when they are read again

    def add(self, active: Active) -> None:
        for descriptor in active.process.open:
            self._selector.register(descriptor, selectors.EVENT_READ, active)
            self._ends.register(descriptor, 0)  # without output, but with POLLHUP

    def remove(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        self._ends.unregister(descriptor)

    @contextlib.contextmanager
    def woken_by_signals(self) -> Iterator[None]:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        old = signal.set_wakeup_fd(wake_write)
        self._selector.register(wake_read, selectors.EVENT_READ, None)
        self._ends.register(wake_read, select.POLLIN)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old)
            self._selector.close()
            os.close(wake_read)
            os.close(wake_write)

    def wait(self, until_ns: int, now_ns: int) -> None:
        """Waits until a time, the next read, the end of a process, or a signal."""
        left_ns = min(until_ns, self.next_ns) - now_ns
        if left_ns > 0 and self._ends.poll(left_ns / 1e6):
            self.next_ns = 0

    def ready(self) -> Iterator[tuple[Active, int]]:
        """The pipes that can be read, with their processes."""
        for key, _ in self._selector.select(0):
            if key.data is not None:
                yield key.data, key.fd
                continue
            with contextlib.suppress(BlockingIOError):
                os.read(key.fd, 4096)

    def were_read(self, now_ns: int, actives: Iterable[Active], *, watched: bool) -> None:
        """Sets the time of the next read. `watched`: a person watches the output."""
        actives = list(actives)
        if any(one.process.much for one in actives):
            self._pause_ns = SHORT_NS if self._pause_ns <= PAUSE_NS else PAUSE_NS
        elif watched or not all(one.has_times for one in actives):
            self._pause_ns = PAUSE_NS
        elif not any(one.process.some for one in actives):
            self._pause_ns = min(max(2 * self._pause_ns, PAUSE_NS), LONG_NS)
        for one in actives:
            one.process.much = one.process.some = False  # the next read may find no output
        self.next_ns = now_ns + self._pause_ns
