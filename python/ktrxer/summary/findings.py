# SPDX-License-Identifier: MIT OR Apache-2.0
"""Findings that are computed apart from each other, so that a defect in one of them costs that one alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ktrxer.store.errors import one_line

T = TypeVar("T")


@dataclass
class Findings:
    failed: list[str] = field(default_factory=list)  # names, each with the error

    def take(self, name: str, make: Callable[[], T], otherwise: T) -> T:
        """`otherwise` where `make` fails."""
        try:
            return make()
        except Exception as error:  # a defect, or data of an unexpected form
            self.failed.append(one_line(f"{name} ({type(error).__name__}: {error})", 200))
            return otherwise
