# SPDX-License-Identifier: MIT OR Apache-2.0
"""The display of a run while it happens: its progress, rates and delays, and their past."""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from ktrxer.run.moment import figures
from ktrxer.run.session import Session

S = 10**9
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 32  # of a history, in bars
BAR_NS = S
PHASES = {"idle_before": "idle", "load": "under load", "drain": "drain", "idle_after": "idle again"}


def sparkline(values: list[float | None]) -> str:
    """A line of bars from zero to the largest value."""
    known = [value for value in values if value is not None]
    top = max(known, default=0) or 1
    return "".join(" " if value is None else BARS[min(len(BARS) - 1, int(value / top * len(BARS)))] for value in values)


class TerminalView:
    """Redraws a few lines of standard error; nothing of it goes into pipes."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self.console = Console(file=stream, highlight=False)
        self.progress = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(None),
            TextColumn("{task.fields[at]}", markup=False),
            console=self.console,
            auto_refresh=False,
        )
        self.task = self.progress.add_task("", total=1.0, at="")
        self.live: Live | None = None
        self.history: dict[str, deque[float | None]] = defaultdict(lambda: deque([None] * WIDTH, WIDTH))
        self.next_bar_ns = 0

    def begin(self) -> None:
        self.live = Live(console=self.console, auto_refresh=False, transient=True)
        self.live.start()

    def show(self, session: Session) -> None:
        if self.live is not None:
            self.live.update(self.picture(session), refresh=True)

    def end(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def picture(self, session: Session) -> RenderableType:
        now, length = session.now_ns, session.schedule.length_ns
        at = min(max(now, 0), length)
        phase = next((p.name for p in session.schedule.phases if p.from_ns <= at < p.to_ns), "")
        doing = "starting" if now < 0 else f"stopping ({session.stopping})" if session.stopping else PHASES.get(phase, "last answers")
        title = f"{session.meta.test} {doing}"
        self.progress.update(self.task, completed=at / length, description=title, at=f"{at / S:.0f} of {length / S:.0f} s")
        table = Table.grid(padding=(0, 2))
        for justify in ("left", "right", "left", "left"):
            table.add_column(justify=justify, no_wrap=True)
        new_bar = now >= self.next_bar_ns
        if new_bar:
            self.next_bar_ns = max(self.next_bar_ns, now) + BAR_NS
        for name, value, unit, note in figures(session, now):
            history = self.history[name]
            if new_bar:
                history.append(value)
            shown = "-" if value is None else f"{value:.3g}" if 0 < value < 1 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
            table.add_row(Text(name), f"[bold]{shown}[/] {unit}", Text(sparkline(list(history)), "cyan"), Text(note, "dim"))
        return Group(self.progress, table)
