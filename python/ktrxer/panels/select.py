# SPDX-License-Identifier: MIT OR Apache-2.0
"""Selects series by their names, and changes labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    made = re.sub(r"\\\*\\\*|\\\*|\\\?", lambda found: {r"\*\*": ".*", r"\*": "[^:]*", r"\?": "[^:]"}[found[0]], re.escape(pattern))
    return re.compile(made, re.DOTALL)


def matches(pattern: str, name: str) -> bool:
    """`*` stops at a colon, `**` crosses it, `?` is one character, as in Flent. A name without them matches itself only."""
    return _compiled(pattern).fullmatch(name) is not None


def chosen(names: Iterable[str], pattern: str, exclude: Sequence[str] = ()) -> list[str]:
    """In the order of the names. A name that is exactly the pattern matches, too, also if it contains a star. In an exclusion each `*`
    crosses colons, as in Flent."""
    left_out = [one.replace("**", "*").replace("*", "**") for one in exclude]
    return [name for name in names if (name == pattern or matches(pattern, name)) and not any(matches(one, name) for one in left_out)]


class LabelError(Exception):
    """A pattern of labels is not a regular expression. The text is one line."""


def relabelled(label: str, replace: Mapping[str, str], drop: Sequence[str] = ()) -> str | None:
    """The label after the replacements of plain text; None if a regular expression of `drop` is found in it."""
    for old, new in replace.items():
        label = label.replace(old, new)
    for pattern in drop:
        try:
            if re.search(pattern, label):
                return None
        except re.error as error:
            raise LabelError(f"{pattern[:60]!r} is not a regular expression: {error}") from None
    return label
