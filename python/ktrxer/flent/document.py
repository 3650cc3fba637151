# SPDX-License-Identifier: MIT OR Apache-2.0
"""The content of a Flent file, checked field by field: every value has its declared type."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ktrxer.flent.errors import FlentError

VERSION = 4
SERIES_LIMIT = 20_000
NAME_LIMIT, TEXT_LIMIT = 200, 4000
DEPTH_LIMIT, KEYS_LIMIT = 12, 20_000  # limits of the metadata
SERIES_KEYS, SERIES_KEYS_LIMIT = 50, 300_000  # further values for each series, and for all of them
NUMBERS = {int, float, type(None)}
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

Point = dict[str, Any]


@dataclass
class Document:
    version: int
    metadata: dict[str, Any]
    x: list[float]
    results: dict[str, list[float | None]]
    raw: dict[str, list[Point]]
    notes: list[str] = field(default_factory=list)  # corrections made while reading, as sentences
    made_up: bool = False  # the raw values come from the grid and are not samples

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) and value else None

    def number(self, key: str) -> float | None:
        value = self.metadata.get(key)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def series_meta(self, name: str) -> dict[str, Any]:
        table = self.metadata.get("SERIES_META")
        one = table.get(name) if isinstance(table, dict) else None
        return one if isinstance(one, dict) else {}


def clean(text: str, limit: int = TEXT_LIMIT) -> str:
    """Text of a file, made safe for display: no control characters, no characters that change the direction of writing, no surrogates."""
    return UNPRINTABLE.sub("\ufffd", text[:limit])


def show(value: Any) -> str:
    """A value of a file in an error message."""
    try:
        text = repr(value) if not isinstance(value, (dict, list)) else f"a {'table' if isinstance(value, dict) else 'list'}"
    except ValueError:  # an integer of too many digits
        text = "a number with too many digits"
    return clean(text if len(text) <= 60 else text[:57] + "...")


def check(value: Any) -> Document:
    if not isinstance(value, dict):
        raise FlentError(f"not a Flent file: its JSON is {show(value)}, not an object")
    if "x_values" not in value and "results" not in value:
        raise FlentError("not a Flent file: it has neither x_values nor results")
    version = value.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        version = 1  # Flent does the same with an unreadable version
    if version > VERSION:
        shown = version if version < 1_000_000 else "a huge number"
        raise FlentError(f"its format is version {shown}; this ktrxer reads 1 to {VERSION}: update ktrxer")
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        raise FlentError(f"`metadata` must be an object, found {show(metadata)}")
    x = [float(one) for one in _numbers("x_values", value.get("x_values")) if one is not None]
    if len(x) != len(value["x_values"]) or any(b < a for a, b in itertools.pairwise(x)):
        raise FlentError("`x_values` must be numbers that never decrease")
    raw_meta = metadata.get("SERIES_META") if version == 1 else None
    raw = _raw(value.get("raw_values", {} if version > 1 else _old_raw(raw_meta)))
    return Document(version, _Metadata(metadata.get("SERIES_META")).table(metadata), x, _results(value.get("results"), len(x)), raw)


def _old_raw(series_meta: Any) -> dict[str, Any]:
    """The samples of a file of version 1, which are in its metadata."""
    if not isinstance(series_meta, dict):
        return {}
    return {name: one["RAW_VALUES"] for name, one in series_meta.items() if isinstance(one, dict) and one.get("RAW_VALUES")}


def _numbers(where: str, value: Any) -> list[float | int | None]:
    if not isinstance(value, list):
        raise FlentError(f"`{where}` must be a list of numbers, found {show(value)}")
    if not set(map(type, value)) <= NUMBERS:
        bad = next(one for one in value if type(one) not in NUMBERS)
        raise FlentError(f"`{where}` must be a list of numbers, found {show(bad)} in it")
    return [finite(one) for one in value] if value and _odd(value) else value


def _odd(values: list[float | int | None]) -> bool:
    """Whether a value is not finite, or an integer too large for a float."""
    try:
        return not math.isfinite(math.fsum(one for one in values if one is not None))
    except (OverflowError, ValueError):
        return True


def finite(value: float | None) -> float | None:
    if value is None:
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _results(value: Any, length: int) -> dict[str, list[float | None]]:
    if not isinstance(value, dict):
        raise FlentError(f"`results` must be an object of series, found {show(value)}")
    found = {}
    for name, series in _named("results", value).items():
        numbers = _numbers(f"results[{name}]", series)
        if len(numbers) != length:
            raise FlentError(f"`results[{name}]` has {len(numbers)} values, `x_values` {length}: the numbers must be equal")
        found[name] = numbers
    return found


def _raw(value: Any) -> dict[str, list[Point]]:
    if not isinstance(value, dict):
        raise FlentError(f"`raw_values` must be an object of series, found {show(value)}")
    found = {}
    for name, points in _named("raw_values", value).items():
        if not isinstance(points, list):
            raise FlentError(f"`raw_values[{name}]` must be a list, found {show(points)}")
        if not set(map(type, points)) <= {dict}:
            bad = next(one for one in points if type(one) is not dict)
            raise FlentError(f"`raw_values[{name}]` must hold objects, found {show(bad)} in it")
        found[name] = points
    return found


def _named(where: str, table: dict[str, Any]) -> dict[str, Any]:
    if len(table) > SERIES_LIMIT:
        raise FlentError(f"`{where}` has {len(table)} series: at most {SERIES_LIMIT}")
    found = {}
    for name, value in table.items():
        shown = clean(name, NAME_LIMIT)
        if not shown or shown in found:
            raise FlentError(f"`{where}`: two series with the same name, or one without a name: {show(name)}")
        found[shown] = value
    return found


class _Metadata:
    """Copies the metadata within limits, with its text made safe for display."""

    def __init__(self, series_meta: Any) -> None:
        self.keys = 0
        series = len(series_meta) if isinstance(series_meta, dict) else 0
        self.limit = KEYS_LIMIT + min(SERIES_KEYS * series, SERIES_KEYS_LIMIT)

    def table(self, value: dict[str, Any], depth: int = 0) -> dict[str, Any]:
        self.keys += len(value)
        if self.keys > self.limit:
            raise FlentError(f"`metadata` has more than {self.limit} values")
        # The samples of version 1 have already been removed.
        return {clean(key, NAME_LIMIT): self.value(one, depth + 1) for key, one in value.items() if key != "RAW_VALUES"}

    def value(self, value: Any, depth: int) -> Any:
        if depth > DEPTH_LIMIT:
            raise FlentError("`metadata` is nested too deeply")
        if isinstance(value, dict):
            return self.table(value, depth)
        if isinstance(value, list):
            self.keys += len(value)
            if self.keys > self.limit:
                raise FlentError(f"`metadata` has more than {self.limit} values")
            return [self.value(one, depth + 1) for one in value]
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return value if -(1 << 63) <= value < 1 << 63 else finite(value)
        return finite(value)


TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z?)")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_ns(text: Any) -> int | None:
    """A time in Flent's format as nanoseconds since 1970, read as UTC; None if it is not a time."""
    match = TIME.fullmatch(text) if isinstance(text, str) else None
    if not match:
        return None
    try:
        whole = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError:
        return None
    return (whole - EPOCH) // timedelta(seconds=1) * 1_000_000_000 + int((match[2] or "").ljust(9, "0"))


def time_text(ns: int) -> str:
    """A time in Flent's format: UTC, microseconds."""
    return (EPOCH + timedelta(microseconds=ns // 1000)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
