# SPDX-License-Identifier: MIT OR Apache-2.0
"""What shows a run while it happens: the live view, or objects in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ktrxer.run.session import Session


class View(Protocol):
    def begin(self) -> None: ...
    def show(self, session: Session) -> None: ...
    def end(self) -> None: ...


class NoView:
    def begin(self) -> None: ...
    def show(self, session: Session) -> None: ...
    def end(self) -> None: ...
