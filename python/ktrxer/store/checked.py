# SPDX-License-Identifier: MIT OR Apache-2.0
"""Conversion between dataclasses and JSON of unknown origin. The type of each field is the schema; there is no other one."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable
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


Reader = Callable[[Json], Any]  # checks and converts one value, or raises Bad


class Bad(Exception):
    """A value that breaks a rule. The path to it is put together while the error passes the callers, so that a good value costs no text."""

    def __init__(self, text: str, path: str = "") -> None:
        self.text = text
        self.path = path


def parse(kind: type[T], value: Json, where: str) -> T:
    """Convert `value` to the dataclass `kind`. A StoreError names the wrong field. Fields that the class does not have are ignored.
    A field that is a list may set a limit: `metadata={"most": N}`."""
    try:
        return typing.cast("T", _object(typing.cast("Any", kind))(value))
    except Bad as bad:
        raise StoreError(f"{where}{bad.path}: {bad.text}") from None


def free(value: Json, where: str) -> Json:
    """Check the size and depth of JSON of any shape, for example metadata or the `end` object of a process."""
    try:
        return _free(value)
    except Bad as bad:
        raise StoreError(f"{where}{bad.path}: {bad.text}") from None


@cache
def _object(kind: Any) -> Reader:
    hints = typing.get_type_hints(kind)
    fields = []
    for field in dataclasses.fields(kind):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        fields.append((field.name, _reader(hints[field.name], field.metadata.get("most", limits.ITEMS)), required))

    def read(value: Json) -> Any:
        if not isinstance(value, dict):
            raise _wrong("an object", value)
        made: dict[str, Any] = {}
        for name, reader, required in fields:
            if name in value:
                try:
                    made[name] = reader(value[name])
                except Bad as bad:
                    bad.path = f".{name}{bad.path}"
                    raise
            elif required:
                raise Bad("missing", f".{name}")
        try:
            return kind(**made)
        except ValueError as error:  # from __post_init__
            raise Bad(str(error)) from None

    return read


@cache
def _reader(hint: Any, most: int) -> Reader:
    """The parser of a field of this type. `most`: the limit of items of a list."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        inner = _reader(next(part for part in typing.get_args(hint) if part is not type(None)), most)
        return lambda value: None if value is None else inner(value)
    if origin is typing.Literal:
        return _one_of(typing.get_args(hint))
    if origin is list:
        (item,) = typing.get_args(hint)
        return _list_of(_reader(item, limits.ITEMS), most)
    if origin is dict:
        return _any_object
    if (read := getattr(hint, "from_json", None)) is not None:  # it has a form of its own in JSON
        return _own_form(read)
    if dataclasses.is_dataclass(hint):
        return _object(typing.cast("Any", hint))
    if hint is Any:
        return _free
    return _PLAIN[hint]


def _own_form(read: Callable[[Json], Any]) -> Reader:
    def checked(value: Json) -> Any:
        made = read(_free(value))
        if made is None:
            raise _wrong("text or an object", value)
        return made

    return checked


def _one_of(known: tuple[Any, ...]) -> Reader:
    def read(value: Json) -> Any:
        if isinstance(value, bool | dict | list) or value not in known:
            raise _wrong("one of " + ", ".join(map(str, known)), value)
        return value

    return read


def _list_of(item: Reader, most: int) -> Reader:
    def read(value: Json) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong("a list", value)
        if len(value) > most:
            raise Bad(f"{len(value)} items; at most {most} are read")
        made: list[Any] = []
        try:
            for entry in value:
                made.append(item(entry))
        except Bad as bad:
            bad.path = f"[{len(made)}]{bad.path}"
            raise
        return made

    return read


def _any_object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _wrong("an object", value)
    made: dict[str, Json] = _free(value)
    return made


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise _wrong("text", value)
    if len(value) > limits.TEXT:
        raise Bad(f"a text of {len(value)} characters; at most {limits.TEXT} are read")
    return value if value.isprintable() else printable(value)


def _truth(value: Json) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false", value)
    return value


def _whole(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise _wrong("a whole number of 64 bits", value)
    return value


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong("a number", value)
    return float(value)


_LEAVES = frozenset((str, int, float, bool, type(None)))
_PLAIN: dict[Any, Reader] = {str: _text, bool: _truth, int: _whole, float: _number}


def _free(value: Json, depth: int = limits.DEPTH) -> Json:
    if depth == 0:
        raise Bad(f"nested more than {limits.DEPTH} deep")
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        if len(value) > limits.ITEMS:
            raise Bad(f"{len(value)} members; at most {limits.ITEMS} are read")
        made = {}
        name = ""
        try:
            for name, entry in value.items():
                made[_text(name)] = _free(entry, depth - 1)
        except Bad as bad:
            bad.path = f".{name[:40]}{bad.path}"
            raise
        return made
    if isinstance(value, list):
        if len(value) > limits.ITEMS:
            raise Bad(f"{len(value)} items; at most {limits.ITEMS} are read")
        items: list[Json] = []
        try:
            for entry in value:
                items.append(_free(entry, depth - 1))
        except Bad as bad:
            bad.path = f"[{len(items)}]{bad.path}"
            raise
        return items
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise _wrong("a number of 64 bits", value)
        return value
    return _number(value)


def _wrong(wanted: str, value: Json) -> Bad:
    shown = json.dumps(value, default=str)[:40] if not isinstance(value, dict | list) else type(value).__name__
    return Bad(f"should be {wanted}, is {shown}")


@cache
def names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _plain(value: Any) -> Any:
    """dataclasses.asdict without a copy of each text and number: a run writes meta.json several times."""
    kind: Any = type(value)
    if kind in _LEAVES:
        return value
    if kind is dict:
        return {name: _plain(entry) for name, entry in value.items()}
    if kind is list:
        return [_plain(entry) for entry in value]
    if hasattr(kind, "from_json"):
        return value.as_json()
    return {name: _plain(entry) for name, entry in _members(value).items()} if dataclasses.is_dataclass(value) else value


def _members(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    if hasattr(kind, "from_json"):
        made: dict[str, Any] = value.as_json()
        return made
    return {name: getattr(value, name) for name in names(kind)}


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_members).encode


def dump(value: Any, where: str) -> bytes:
    """The JSON of a dataclass. The checks of `parse` apply, because a file that cannot be read again must not be written."""
    text = _encode(parse(type(value), _plain(value), where)).encode("utf-8", "replace")
    if len(text) > limits.META_BYTES:
        raise StoreError(f"{where}: {len(text)} bytes, more than the {limits.META_BYTES} that may be stored")
    if (values := _values(text)) > limits.VALUES:
        raise StoreError(f"{where}: about {values} values, more than the {limits.VALUES} that may be stored")
    return text
