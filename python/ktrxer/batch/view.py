# SPDX-License-Identifier: MIT OR Apache-2.0
"""The progress of a batch on standard error: a bar on a terminal, a line for each run elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ktrxer.store import one_line
from ktrxer.units import span

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ktrxer.batch.execute import View
    from ktrxer.batch.journal import Try
    from ktrxer.batch.plan import Planned
    from ktrxer.batch.spec import Batch


def title(batch: Batch, run: Planned, attempt: int) -> str:
    again = f", try {attempt}" if attempt > 1 else ""
    return one_line(f"{batch.name}: {run.combination.group}, repetition {run.repetition}{again}", 200)


class Quiet:
    def begin(self, batch: Batch, run: Planned, attempt: int) -> None:
        pass

    def ended(self, made: Try) -> None:
        pass

    def show(self, text: str) -> None:
        print(f"ktrxer batch: {one_line(text, 500)}", file=sys.stderr, flush=True)


class Left:
    """The runs that have begun, with all tries of one counted once, and the time that is left: by the mean of the runs so far, at first by
    the plan."""

    def __init__(self, count: int, seconds: float) -> None:
        self.count, self.seconds = count, seconds
        self.begun = self.done = 0
        self._last: tuple[str, str] | None = None
        self._begun = time.monotonic()

    def begin(self, batch: Batch, run: Planned) -> None:
        if (batch.name, run.key) != self._last:
            self._last = batch.name, run.key
            self.begun += 1
        self.done = self.begun - 1

    def text(self) -> str:
        each = (time.monotonic() - self._begun) / self.done if self.done else self.seconds / max(1, self.count)
        return f"about {span(max(0, self.count - self.done) * each)} left"


class Lines(Quiet):
    def __init__(self, left: Left) -> None:
        self.left = left
        self._title = ""

    def begin(self, batch: Batch, run: Planned, attempt: int) -> None:
        self.left.begin(batch, run)
        self._title = title(batch, run, attempt)

    def ended(self, made: Try) -> None:
        self.left.done = self.left.begun
        of = f" of {self.left.count}" if self.left.begun <= self.left.count else ""  # `until` makes more than the least number
        why = f": {made.reason}" if made.reason and made.verdict != "valid" else ""
        verdict = made.verdict or f"no file (status {made.status})"
        self.show(f"{self.left.begun}{of}: {self._title}: {verdict} in {made.seconds:.1f} s{why}; {self.left.text()}")


class Bar(Lines):
    def __init__(self, left: Left, progress: Progress, task: TaskID) -> None:
        super().__init__(left)
        self.progress, self.task = progress, task

    def begin(self, batch: Batch, run: Planned, attempt: int) -> None:
        super().begin(batch, run, attempt)
        self.progress.update(self.task, completed=self.left.done, description=self._title, left=self.left.text())

    def ended(self, made: Try) -> None:
        self.left.done = self.left.begun
        self.progress.update(self.task, completed=self.left.done, total=max(self.left.count, self.left.done), left=self.left.text())
        if made.verdict != "valid":
            self.show(f"{self._title}: {made.verdict or f'no file (status {made.status})'}: {made.reason}")

    def show(self, text: str) -> None:
        self.progress.console.print(f"ktrxer batch: {one_line(text, 500)}", markup=False, highlight=False)


@contextlib.contextmanager
def view_of(quiet: bool, count: int, seconds: float) -> Iterator[View]:
    left = Left(count, seconds)
    if quiet:
        yield Quiet()
    elif not sys.stderr.isatty():
        yield Lines(left)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            yield Bar(left, progress, progress.add_task("", total=count, left=left.text()))
