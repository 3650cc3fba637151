# SPDX-License-Identifier: MIT OR Apache-2.0
from __future__ import annotations

import re

# Control characters but line feed and tab, line separators, what turns the direction of writing, half characters.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class StoreError(Exception):
    """A run cannot be read or written; the text is one line for a person: which file, what is wrong, what now."""

    def __init__(self, text: str) -> None:
        # Names and titles come from files of other people: nothing of them may move a cursor, or begin a second line.
        super().__init__(one_line(text))


def printable(text: str) -> str:
    """Text of a file, fit to be shown: what would move a cursor or has no encoding becomes U+FFFD. Line feeds and tabs stay."""
    return _UNPRINTABLE.sub("\ufffd", text)


def one_line(text: str, limit: int = 400) -> str:
    """Control characters out, length bounded: fit for a terminal."""
    clean = "".join(c if c.isprintable() else "?" for c in text.replace("\n", "; ").replace("\t", " "))
    return clean if len(clean) <= limit else clean[: limit - 3] + "..."
