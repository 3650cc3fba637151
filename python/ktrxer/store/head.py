# SPDX-License-Identifier: MIT OR Apache-2.0
"""The fields of meta.json that a list of runs shows, read without the rest of it.

A writer puts the large parts, such as `runners` and `metadata`, behind these fields. So parsing stops there. Fields behind that point are
not checked; each command that opens the run checks all of them.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ktrxer.store import checked
from ktrxer.store.container import Container
from ktrxer.store.errors import StoreError
from ktrxer.store.meta import SCHEMA, Meta, Verdict
from ktrxer.store.names import META
from ktrxer.store.reasons import Reason


@dataclass
class Head:
    id: str
    test: str
    created: str
    length_ns: int
    schema: str = SCHEMA
    title: str = ""
    version: str = ""
    targets: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    reasons: list[Reason] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema[:40]!r}; this version of ktrxer reads {SCHEMA!r}: a newer one is needed")


FIELDS = tuple(one.name for one in dataclasses.fields(Head))


def of_meta(meta: Meta) -> Head:
    return Head(**{name: getattr(meta, name) for name in FIELDS})


def read(path: Path) -> Head:
    """The head of a finished run. StoreError if the file is damaged, or is not a run."""
    text = bytes(Container(path).read(META))
    where = f"{path}: {META}"
    return checked.parse(Head, members(text, frozenset(FIELDS), where), where)


# ------------------------------------------------------------------------------------------------------------------ partial JSON


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_SPACE = re.compile(r"[ \t\r\n]*")


def members(text: bytes, wanted: frozenset[str], where: str) -> dict[str, Any]:
    """The wanted members of a JSON object, unchecked. Parsing ends behind the last of them."""
    checked.bounded(text, where)
    try:
        return _members(text.decode("utf-8"), wanted)
    except RecursionError:
        raise StoreError(f"{where}: nested too deeply") from None
    except ValueError as error:
        raise StoreError(f"{where}: invalid JSON: {error}") from None


def _members(text: str, wanted: frozenset[str]) -> dict[str, Any]:
    def behind_space(at: int) -> int:
        found = _SPACE.match(text, at)
        return found.end() if found is not None else at

    def expect(mark: str, at: int) -> int:
        at = behind_space(at)
        if text[at : at + 1] != mark:
            raise ValueError(f"no {mark!r} at character {at}")
        return behind_space(at + 1)

    made: dict[str, Any] = {}
    at = expect("{", 0)
    more = text[at : at + 1] != "}"
    while more:
        name, at = _DECODER.raw_decode(text, at)
        if not isinstance(name, str):
            raise ValueError(f"a name of a member that is no text, before character {at}")
        value, at = _DECODER.raw_decode(text, expect(":", at))
        if name in wanted:
            if name in made:
                raise ValueError("a name occurs twice in one object")
            made[name] = value
            if len(made) == len(wanted):
                break
        at = behind_space(at)
        more = text[at : at + 1] != "}"
        at = expect(",", at) if more else at
    return made
