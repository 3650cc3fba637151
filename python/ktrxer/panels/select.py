# SPDX-License-Identifier: MIT OR Apache-2.0
"""Selects series by their names, and changes labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


@lru_cache(maxsize=512)
def _parts(pattern: str) -> tuple[str, ...]:
    """Stars, question marks, and the text between them."""
    return tuple(part for part in re.split(r"(\*\*|\*|\?)", pattern) if part)


def matches(pattern: str, name: str) -> bool:
    """`*` stops at a colon, `**` crosses it, `?` is one character, as in Flent. A pattern without them matches only the same name. The time
    of a match is limited by the lengths of both, because a file of unknown origin may contain any pattern."""
    reached = {0}  # how much of the name the parts so far can match
    for part in _parts(pattern):
        if part == "**":
            reached = set(range(min(reached), len(name) + 1))
        elif part == "*":
            further: set[int] = set()
            for at in sorted(reached):
                if at not in further:
                    colon = name.find(":", at)
                    further.update(range(at, (len(name) if colon < 0 else colon) + 1))
            reached = further
        elif part == "?":
            reached = {at + 1 for at in reached if at < len(name) and name[at] != ":"}
        else:
            reached = {at + len(part) for at in reached if name.startswith(part, at)}
        if not reached:
            return False
    return len(name) in reached


def chosen(names: Iterable[str], pattern: str, exclude: Sequence[str] = ()) -> list[str]:
    """The matching names in their order. A name that is exactly the pattern matches, also if it contains a star. In an exclusion each `*`
    crosses colons, as in Flent."""
    left_out = [one.replace("**", "*").replace("*", "**") for one in exclude]
    return [name for name in names if (name == pattern or matches(pattern, name)) and not any(matches(one, name) for one in left_out)]


def relabelled(label: str, replace: Iterable[tuple[str, str]]) -> str:
    """The label after the replacements of plain text, in their order."""
    for old, new in replace:
        label = label.replace(old, new)
    return label
