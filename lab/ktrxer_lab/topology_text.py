# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads values of a topology file, and finds the line of an error."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ktrxer_lab.errors import LabError

HOLE = re.compile(r"\{([^{}]*)\}")
RATE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([kmg]?)bit(?:/s)?", re.IGNORECASE)
TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ns|us|ms|s)")
PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%")

SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([km]?)B")
RATE_BOUNDS_KBIT_S = (8, 100_000_000)
DELAY_LIMIT_NS = 60_000_000_000
SIZE_LIMIT_GIB = 1
TEXT_LIMIT = 1000  # characters
SCALE = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
BLOCK_END = re.compile(r"\s*\[(\[|\s*parameters\b)")


def one_line(error: object) -> str:
    return " ".join(str(error).split())[:200]


def show(value: object) -> str:
    """A value of a file for an error message: short, without control characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of ten thousand digits has no repr
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


class Text:
    """The text of a file and its values. Each error message names the file, the line and the table."""

    def __init__(self, path: Path, settings: Mapping[str, str], lines: list[str]) -> None:
        self.path = path
        self.settings = settings
        self.lines = lines
        self.parameters: dict[str, str] = {}

    def fail(self, where: str, what: str) -> LabError:
        line = self.line(where, what)
        at = f"{self.path}:{line}" if line else str(self.path)
        return LabError(f"{at}: {where}: {what}" if where else f"{at}: {what}")

    def at_line(self, where: str, key: str) -> str:
        """File and line of a key, for messages that come later."""
        line = self.line(where, f"`{key}`")
        return f"{self.path.name}:{line}" if line else self.path.name

    def line(self, where: str, what: str) -> int | None:
        """The line of an error. TOML's parser does not return lines, so search for the key, else for the beginning of the table."""
        heading, found = re.match(r"(link|route|clock) (\d+)|\[parameters\]", where), 0
        if heading:
            pattern = rf"\s*\[\[\s*{heading[1]}s\s*\]\]" if heading[1] else r"\s*\[\s*parameters\s*\]"
            heads = [index for index, line in enumerate(self.lines) if re.match(pattern, line)]
            number = int(heading[2] or 1)
            if number > len(heads):
                return None  # `links = [...]`
            found = heads[number - 1]
        end = next((index for index in range(found + 1, len(self.lines)) if BLOCK_END.match(self.lines[index])), len(self.lines))
        quoted = re.search(r"`([a-z0-9_.]+)`|unknown key '([^']*)'", what)
        if quoted is not None:
            key = re.escape(quoted[2] or quoted[1])
            lines = [index for index in range(found, end) if re.search(rf"(^|[{{,.\s]){key}\s*=", self.lines[index])]
            side = re.search(r"from ([a-z0-9]+)$", where)
            of_side = [index for index in lines if side and f"from.{side[1]}" in self.lines[index]]
            if lines:
                return (of_side or lines)[0] + 1
        return found + 1 if heading else None

    def only(self, table: dict[str, Any], known: Iterable[str], where: str) -> None:
        known = list(known)
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"; do you mean `{near[0]}`?" if near else f"; known are: {', '.join(known)}"
                raise self.fail(where, f"unknown key {show(key)}{hint}")

    def text(self, table: dict[str, Any], key: str, where: str, default: str | None = None) -> str | None:
        value = table.get(key, default)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.fail(where, f"`{key}` must be text in quotes, found {show(value)}")
        if len(value) > TEXT_LIMIT or not value.isprintable():
            raise self.fail(where, f"`{key}` must be one line of printable text of at most {TEXT_LIMIT} characters")
        return value

    def filled(self, table: dict[str, Any], key: str, where: str) -> str | None:
        """The text with each {parameter} replaced by its value."""
        value = self.text(table, key, where)
        if value is None:
            return None

        def put(hole: re.Match[str]) -> str:
            if hole[1] not in self.parameters:
                known = ", ".join(sorted(self.parameters)) or "none"
                raise self.fail(where, f"`{key}` uses the parameter {show(hole[1])}, which is not in [parameters] (there: {known})")
            return self.parameters[hole[1]]

        return HOLE.sub(put, value)

    def rate(self, key: str, text: str, where: str) -> int:
        match = RATE.fullmatch(text.strip())
        rate = round(float(match[1]) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[match[2].lower()]) if match else 0
        low, high = RATE_BOUNDS_KBIT_S
        if not low * 1000 <= rate <= high * 1000:
            raise self.fail(where, f'`{key}` must be from {low}kbit to {high // 10**6}gbit, e.g. "10mbit"; found {show(text)}')
        return rate

    def time(self, key: str, text: str, where: str) -> int:
        match = TIME.fullmatch(text.strip())
        value = round(float(match[1]) * SCALE[match[2]]) if match else -1
        if not 0 <= value <= DELAY_LIMIT_NS:
            raise self.fail(where, f'`{key}` must be a time up to {DELAY_LIMIT_NS // 10**9}s, e.g. "25ms"; found {show(text)}')
        return value

    def percent(self, key: str, text: str, where: str) -> int:
        match = PERCENT.fullmatch(text.strip())
        if not match or float(match[1]) > 100:
            raise self.fail(where, f'`{key}` must be 0% to 100%, e.g. "0.5%"; found {show(text)}')
        return round(float(match[1]) * 1e4)

    def span(self, key: str, text: str, where: str) -> tuple[int, int]:
        """One time, or two with " to " between them."""
        times = [self.time(key, part, where) for part in text.split(" to ")]
        if len(times) > 2 or times[0] > times[-1]:
            raise self.fail(where, f'`{key}` must be a time or two, e.g. "2ms to 8ms"; found {show(text)}')
        return times[0], times[-1]

    def size(self, key: str, text: str, where: str) -> int:
        match = SIZE.fullmatch(text.strip())
        size = round(float(match[1]) * {"": 1, "k": 1000, "m": 1e6}[match[2]]) if match else 0
        if not 0 < size <= SIZE_LIMIT_GIB << 30:
            raise self.fail(where, f'`{key}` must be a number of bytes up to {SIZE_LIMIT_GIB} GiB, e.g. "32kB"; found {show(text)}')
        return size

    def choice(self, key: str, word: str, known: Iterable[str], where: str) -> str:
        known = list(known)
        if word not in known:
            near = difflib.get_close_matches(word, known, 1)
            hint = f"do you mean `{near[0]}`?" if near else f"choose one of: {', '.join(known)}"
            raise self.fail(where, f"`{key}`: {show(word)}: {hint}")
        return word
