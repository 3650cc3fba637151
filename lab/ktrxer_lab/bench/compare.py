# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares two runs of the same bench, row by row: which figures have changed by more than the spread of the rounds of each run?"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ktrxer_lab.bench import kinds
from ktrxer_lab.bench.table import Cell, Column, Row, Table, people, value

NOISE_PERCENT = 5  # smaller differences do not count as changes, even with a small spread
FILE_LIMIT, ROWS_LIMIT, NUMBER_LIMIT, TEXT_LIMIT = 16 << 20, 65536, 1 << 62, 200


class Damaged(Exception):
    """The file is not a result of `ktrxer bench ... --json`."""


@dataclass(frozen=True)
class Saved:
    """The stored result of an older run."""

    name: str  # of the bench
    settings: dict[str, Any]
    rows: list[Row]

    @property
    def methods(self) -> bool:
        return bool(self.settings.get("methods"))


def read(path: Path) -> Saved:
    """Raises Damaged, or OSError."""
    with path.open("rb") as file:
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise Damaged("it is too long")
    try:
        return parse(json.loads(data.decode(), parse_constant=_no_number))
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    except ValueError as error:
        raise Damaged(str(error)) from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def parse(document: Any) -> Saved:
    if not isinstance(document, dict) or document.get("bench") not in kinds.NAMES or not isinstance(document.get("rows"), list):
        raise Damaged("it has no \"bench\" or no \"rows\"")
    settings = document.get("settings", {})
    if not isinstance(settings, dict) or len(document["rows"]) > ROWS_LIMIT:
        raise Damaged("its \"settings\" or \"rows\" have the wrong type")
    saved = Saved(document["bench"], settings, [])
    columns = kinds.columns(saved.name, saved.methods)
    for row in document["rows"]:
        if not isinstance(row, dict):
            raise Damaged("one of its rows is not an object")
        saved.rows.append({column.key: _cell(column, row.get(column.key)) for column in columns})
    return saved


def _cell(column: Column, value: Any) -> Cell:
    if value is None:
        return None
    if column.text:
        if not isinstance(value, str) or len(value) > TEXT_LIMIT:
            raise Damaged(f'"{column.key}" is not a short text')
        return str(value)
    number = isinstance(value, int if column.decimals == 0 else int | float) and not isinstance(value, bool)
    if not number or not abs(value) < NUMBER_LIMIT / 10**column.decimals:
        raise Damaged(f'"{column.key}" is not a number of this column')
    kept: int = round(value * 10**column.decimals)
    return kept


def arguments(saved: Saved) -> list[str]:
    """The settings as options `--option=value`. The harness checks them like those of a user."""
    words = []
    for key in kinds.options(saved.name, saved.methods):
        value, name = saved.settings.get(key), key.replace("_", "-")
        if value is None:
            continue
        if key in ("fq", "both_ways", "no_flow"):
            words += [f"--{name}"] if value else []
        elif isinstance(value, (int, str)) and len(str(value)) <= TEXT_LIMIT:
            words.append(f"--{name.removesuffix('-ns')}={value}ns" if key.endswith("_ns") else f"--{name.removesuffix('-pps')}={value}")
        else:
            raise Damaged(f'"{key}" of its settings has the wrong type')
    return words


# ---------------------------------------------------------------------------------------------------------------- changes


@dataclass(frozen=True)
class Change:
    word: str  # "better", "worse", "changed"
    row: Row
    column: Column
    was: int
    now: int

    @property
    def share(self) -> float | None:
        """The change relative to the old value; None if that is zero."""
        return (self.now - self.was) / abs(self.was) if self.was else None

    def line(self, columns: Sequence[Column]) -> str:
        keys = (f"{'' if one.text else f'{one.head} '}{people(one, self.row[one.key])}" for one in columns if one.is_key)
        share = "" if self.share is None else f" ({100 * self.share:+.1f} %)"
        figure = f"{self.column.key} was {people(self.column, self.was)}, is {people(self.column, self.now)}{share}"
        return f"{self.word}: {', '.join(keys)}: {figure}"

    def json(self, columns: Sequence[Column]) -> dict[str, Any]:
        keys = {one.key: value(one, self.row[one.key]) for one in columns if one.is_key}
        was, now = value(self.column, self.was), value(self.column, self.now)
        return {**keys, "figure": self.column.key, "change": self.word, "was": was, "is": now}


@dataclass
class Comparison:
    changes: list[Change]
    compared: int = 0
    alone: int = 0  # rows without a counterpart


def notches_apart(a: int, iqr_a: int, n: int, b: int, iqr_b: int, m: int) -> bool:
    """Whether two medians of n and m rounds differ: the notches of box plots, median +- 1.57 IQR / sqrt(n), do not overlap. Without a
    change they overlap in about 95 of 100 cases."""
    return n > 0 and m > 0 and abs(a - b) > 1.57 * (iqr_a / math.sqrt(n) + iqr_b / math.sqrt(m))


def _rounds(row: Row) -> int:
    count, stalled = row.get("rounds"), row.get("stalled_rounds")
    count, stalled = count if isinstance(count, int) else 0, stalled if isinstance(stalled, int) else 0
    return count - stalled if 0 < stalled < count else count


def _figures(column: Column, was: Row, now: Row) -> tuple[int, int, int, int] | None:
    a, b, x, y = was.get(column.key), now.get(column.key), was.get(column.spread), now.get(column.spread)
    return (a, x, b, y) if isinstance(a, int) and isinstance(b, int) and isinstance(x, int) and isinstance(y, int) else None


def _changes(table: Table, was: Row, now: Row, comparison: Comparison) -> Iterator[Change]:
    for column in table.columns:
        figures = _figures(column, was, now) if column.spread else None
        if figures is None:
            continue
        comparison.compared += 1
        a, spread_a, b, spread_b = figures
        large = a != b and (a == 0 or abs(b - a) * 100 >= NOISE_PERCENT * abs(a))
        if large and notches_apart(a, spread_a, _rounds(was), b, spread_b, _rounds(now)):
            word = "changed" if not column.better else "better" if (b > a) == (column.better > 0) else "worse"
            yield Change(word, now, column, a, b)


def compare(table: Table, old: list[Row]) -> Comparison:
    keys = [column.key for column in table.columns if column.is_key]
    older = {tuple(row.get(key) for key in keys): row for row in reversed(old)}
    comparison = Comparison([])
    for row in table.rows:
        was = older.get(tuple(row.get(key) for key in keys))
        if was is None:
            comparison.alone += 1
        else:
            comparison.changes += _changes(table, was, row, comparison)
    return comparison
