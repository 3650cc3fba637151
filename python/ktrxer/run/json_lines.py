# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run --jsonl` and `check --jsonl`: a start object, the figures of each second as samples, and an end object, one a line."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from ktrxer import printed
from ktrxer.run.moment import WINDOW_NS, figures
from ktrxer.run.session import Session


class JsonLines:
    """Writes the samples of a run. The caller writes the end object, because the stored run gives its fields."""

    def __init__(self, command: list[str], stream: TextIO = sys.stdout) -> None:
        self.command = command
        self.stream = stream
        self.next_ns = WINDOW_NS

    def _write(self, made: dict[str, Any]) -> None:
        printed.show(made, line=True, stream=self.stream)

    def begin(self) -> None:
        self._write({"type": "start"} | printed.start(self.command))

    def show(self, session: Session) -> None:
        now = session.now_ns
        if now < self.next_ns:
            return
        self.next_ns = now - now % WINDOW_NS + WINDOW_NS
        for name, value, unit, note in figures(session, now):
            self._write({"type": "sample", "kind": "figure", "t_ns": now, "name": name, "value": value, "unit": unit, "note": note})

    def end(self) -> None: ...
