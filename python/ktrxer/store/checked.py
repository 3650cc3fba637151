# SPDX-License-Identifier: MIT OR Apache-2.0
"""Conversion between dataclasses and JSON of unknown origin. The type of each field is the schema; there is no other one."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from functools import cache
from typing import Any, TypeVar

from ktrxer.store import limits
from ktrxer.store.errors import StoreError, printable

T = TypeVar("T")
Json = Any  # a JSON value of any shape, of bounded size, without NaN and infinities


def load(text: bytes, where: str) -> Json:
    """Parse JSON. Refuse NaN, infinities, a duplicate name in an object, numbers beyond 64 bits and too deep nesting."""
    bounded(text, where)
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=_bounded, object_pairs_hook=_once)
    except RecursionError:
        raise StoreError(f"{where}: nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise StoreError(f"{where}: invalid JSON: {error}") from None


def bounded(text: bytes, where: str) -> None:
    """StoreError for a text that takes too much time or memory to parse."""
    if len(text) > limits.META_BYTES:
        raise StoreError(f"{where}: {len(text)} bytes; at most {limits.META_BYTES} are read")
    if (values := _values(text)) > limits.VALUES:
        raise StoreError(f"{where}: about {values} values; at most {limits.VALUES} are read")


def _values(text: bytes) -> int:
    """How many values the JSON has, or more: what stands in a text counts, too. Parsing calls a function of ours for each value."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large")
    return value


def _bounded(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= (value := int(text)) < 2**64:
        raise ValueError(f"{text[:40]} does not fit 64 bits")
    return value


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return made


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def parse(kind: type[T], value: Json, where: str) -> T:
    """Convert `value` to the dataclass `kind`. A StoreError names the wrong field. Fields that the class does not have are ignored.
    A field that is a list may set a limit: `metadata={"most": N}`."""
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    made: dict[str, Any] = {}
    hints = _hints(typing.cast("Any", kind))
    for field in dataclasses.fields(typing.cast("Any", kind)):
        at = f"{where}.{field.name}"
        if field.name in value:
            made[field.name] = _one(hints[field.name], value[field.name], at, field.metadata.get("most", limits.ITEMS))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise StoreError(f"{at}: missing")
    try:
        return kind(**made)
    except ValueError as error:  # from __post_init__
        raise StoreError(f"{where}: {error}") from None


def _one(hint: Any, value: Json, where: str, most: int = limits.ITEMS) -> Any:
    """`most`: the limit of items of a list. Parsing one item of a list of objects takes about 100 us."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
        origin = typing.get_origin(hint)
    if origin is typing.Literal:
        if value not in typing.get_args(hint) or isinstance(value, bool):
            raise _wrong(where, "one of " + ", ".join(map(str, typing.get_args(hint))), value)
        return value
    if origin is list:
        if not isinstance(value, list):
            raise _wrong(where, "a list", value)
        if len(value) > most:
            raise StoreError(f"{where}: {len(value)} items; at most {most} are read")
        (item,) = typing.get_args(hint)
        return [_one(item, entry, f"{where}[{i}]") for i, entry in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        return free(value, where)
    if dataclasses.is_dataclass(hint):
        return parse(typing.cast("Any", hint), value, where)
    if hint is Any:
        return free(value, where)
    return _plain(hint, value, where)


def _plain(hint: Any, value: Json, where: str) -> Any:
    if hint is str:
        if not isinstance(value, str):
            raise _wrong(where, "text", value)
        if len(value) > limits.TEXT:
            raise StoreError(f"{where}: a text of {len(value)} characters; at most {limits.TEXT} are read")
        return printable(value)
    if hint is bool:
        if not isinstance(value, bool):
            raise _wrong(where, "true or false", value)
        return value
    if hint is int:
        if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
            raise _wrong(where, "a whole number of 64 bits", value)
        return value
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _wrong(where, "a number", value)
        return float(value)
    raise TypeError(f"{where}: no rule for {hint!r}")


def free(value: Json, where: str, depth: int = limits.DEPTH) -> Json:
    """Check the size and depth of JSON of any shape, for example metadata or the `end` object of a process."""
    if depth == 0:
        raise StoreError(f"{where}: nested more than {limits.DEPTH} deep")
    if isinstance(value, dict):
        if len(value) > limits.ITEMS:
            raise StoreError(f"{where}: {len(value)} members; at most {limits.ITEMS} are read")
        return {_plain(str, name, where): free(entry, f"{where}.{name[:40]}", depth - 1) for name, entry in value.items()}
    if isinstance(value, list):
        if len(value) > limits.ITEMS:
            raise StoreError(f"{where}: {len(value)} items; at most {limits.ITEMS} are read")
        return [free(entry, f"{where}[{i}]", depth - 1) for i, entry in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _plain(str, value, where)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise _wrong(where, "a number of 64 bits", value)
        return value
    return _plain(float, value, where)


def _wrong(where: str, wanted: str, value: Json) -> StoreError:
    shown = json.dumps(value, default=str)[:40] if not isinstance(value, dict | list) else type(value).__name__
    return StoreError(f"{where}: should be {wanted}, is {shown}")


def dump(value: Any, where: str) -> bytes:
    """The JSON of a dataclass. The checks of `parse` apply, because a file that cannot be read again must not be written."""
    made = dataclasses.asdict(parse(type(value), dataclasses.asdict(value), where))
    text = json.dumps(made, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    if len(text) > limits.META_BYTES:
        raise StoreError(f"{where}: {len(text)} bytes, more than the {limits.META_BYTES} that may be stored")
    if (values := _values(text)) > limits.VALUES:
        raise StoreError(f"{where}: about {values} values, more than the {limits.VALUES} that may be stored")
    return text
