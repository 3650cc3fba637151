# SPDX-License-Identifier: MIT OR Apache-2.0
"""Progress of work that takes minutes: a line a minute in a log, one line that is redrawn on a terminal, and how long it took last time."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from ktrxer_lab import cache, places

LINE_S = 60.0  # between two lines of a log
DRAW_S = 1.0  # between two drawings on a terminal
USUAL = "usually 4 to 35 min"  # seen on machines with two processors, idle and busy


class Progress:
    """The state of one build. As a context manager it prints the state while the block runs; `changed` gets each state, too."""

    def __init__(
        self,
        name: str,
        files: int,
        show: cache.Show,
        terminal: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        changed: Callable[[str], None] | None = None,
    ) -> None:
        self.name, self.files, self.show, self.terminal, self.clock, self.changed = name, files, show, terminal, clock, changed
        self.compiled, self.step, self.usual = 0, "", usual(name)
        self.started = self.shown = clock()
        self.before_s = 0.0  # what earlier, interrupted parts of this build took
        self.drawn = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()
        self._clear()

    @property
    def seconds(self) -> float:
        return self.before_s + self.clock() - self.started

    def begin(self, step: str) -> None:
        self.step = step

    def line(self, text: str) -> None:
        """A line of make's output."""
        if text.lstrip().startswith(("CC ", "AS ")):
            self.compiled += 1

    def state(self) -> str:
        share = ""
        if self.compiled and self.files:
            done = min(99, self.compiled * 100 // self.files)
            share = f", {self.compiled} of about {self.files} files ({done} %)"
        elif self.compiled:
            share = f", {self.compiled} files"
        return f"{self.step}{share}, {span(self.seconds)} so far, {self.usual}"

    def tick(self) -> None:
        """Print the state if it is time for it."""
        if not self.step:
            return
        now = self.clock()
        if self.terminal is not None:
            self._draw()
        if now - self.shown >= LINE_S:
            self.shown = now
            if self.changed is not None:
                self.changed(self.state())
            if self.terminal is None:
                self.show(f"kernel {self.name}: {self.state()}")

    def _watch(self) -> None:
        while not self._end.wait(DRAW_S):
            self.tick()

    def _draw(self) -> None:
        assert self.terminal is not None
        text = f"kernel {self.name}: {self.state()}"
        self.terminal.write("\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1])
        self.terminal.flush()
        self.drawn = True

    def _clear(self) -> None:
        if self.terminal is not None and self.drawn:
            self.terminal.write("\r\x1b[K")
            self.terminal.flush()
            self.drawn = False


def span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.0f} min"


def usual(name: str) -> str:
    """How long a build took last time on this machine, or usually takes."""
    seconds = _times().get(name)
    return USUAL if seconds is None else f"{span(seconds)} last time"


def remember(name: str, seconds: float) -> None:
    with contextlib.suppress(OSError), cache.fresh_file(places.cache() / "times.json") as new:
        new.write_text(json.dumps(_times() | {name: round(seconds, 1)}))


def _times() -> dict[str, float]:
    try:
        found = json.loads((places.cache() / "times.json").read_text())
        return {str(name): float(seconds) for name, seconds in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
