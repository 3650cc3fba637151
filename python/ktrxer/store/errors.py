# SPDX-License-Identifier: MIT OR Apache-2.0
from __future__ import annotations


class StoreError(Exception):
    """A run cannot be read or written; the text is one line for a person: which file, what is wrong, what now."""

    def __init__(self, text: str) -> None:
        # Names and titles come from files of other people: nothing of them may move a cursor, or begin a second line.
        super().__init__(one_line(text))


def one_line(text: str, limit: int = 400) -> str:
    """Control characters out, length bounded: fit for a terminal."""
    clean = "".join(c if c.isprintable() else "?" for c in text.replace("\n", "; ").replace("\t", " "))
    return clean if len(clean) <= limit else clean[: limit - 3] + "..."
