# SPDX-License-Identifier: MIT OR Apache-2.0
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re


@cache
def _unprintable() -> re.Pattern[str]:
    """Control characters except line feed and tab, line separators, characters that change the direction of writing, surrogates. Compiled
    at its first use, because a list of runs from the cache does not need it."""
    import re

    return re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class StoreError(Exception):
    """A run cannot be read or written. The text is one line: the file, the reason, what to do."""

    def __init__(self, text: str) -> None:
        # Names and titles come from files of unknown origin: they must not move the cursor or begin a second line.
        super().__init__(one_line(text))


def printable(text: str) -> str:
    """Text of a file, made safe for display: characters that move a cursor or have no encoding become U+FFFD. Line feeds and tabs stay."""
    return _unprintable().sub("\ufffd", text)


def one_line(text: str, limit: int = 400) -> str:
    """Text for one line of a terminal: without control characters, with bounded length."""
    clean = text
    if not text.isprintable():
        clean = "".join(c if c.isprintable() else "?" for c in text.replace("\n", "; ").replace("\t", " "))
    return clean if len(clean) <= limit else clean[: limit - 3] + "..."
