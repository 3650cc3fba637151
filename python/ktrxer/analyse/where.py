# SPDX-License-Identifier: MIT OR Apache-2.0
"""Conditions on the columns of a list: `test=rrul and (verdict!=valid or length>=60 s) and not title~fifo*`."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

Value = str | float | None
Lookup = Callable[[str], Value]

DEPTH = 50  # of parentheses and `not`
_TOKEN = re.compile(r"""\s*(?:(?P<mark>[()]|!=|<=|>=|[=<>~])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s()=<>!~"']+))""")
_QUANTITY = re.compile(r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?) ?([A-Za-z/%]*)")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class WhereError(Exception):
    pass


class Condition(NamedTuple):
    keys: tuple[str, ...]  # the columns that it needs
    holds: Callable[[Lookup], bool]


def quantity(text: str) -> tuple[float, str] | None:
    """A number and its unit."""
    found = _QUANTITY.fullmatch(text.strip())
    return (float(found[1]), found[2]) if found is not None else None


def parse(text: str) -> Condition:
    """WhereError: what is wrong, and where."""
    parser = _Parser(text)
    holds = parser.either(0)
    if parser.at < len(parser.tokens):
        raise WhereError(f"{parser.here()}: expected `and` or `or`")
    return Condition(tuple(dict.fromkeys(parser.keys)), holds)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []  # kind (mark, text, word), text
        self.keys: list[str] = []
        self.at = 0
        end, text = 0, text.strip()
        while end < len(text):
            found = _TOKEN.match(text, end)
            if found is None:
                raise WhereError(f"at {text[end:][:20]!r}: a quotation mark without its end, or a character without meaning")
            kind = found.lastgroup or ""
            self.tokens.append((kind if kind in ("mark", "word") else "text", found[kind]))
            end = found.end()

    def here(self) -> str:
        return f"at {self.tokens[self.at][1]!r}" if self.at < len(self.tokens) else "at its end"

    def takes(self, kind: str, *texts: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at][0] == kind and self.tokens[self.at][1] in texts:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def either(self, depth: int) -> Callable[[Lookup], bool]:
        parts = [self.all_of(depth)]
        while self.takes("word", "or"):
            parts.append(self.all_of(depth))
        return parts[0] if len(parts) == 1 else lambda lookup: any(part(lookup) for part in parts)

    def all_of(self, depth: int) -> Callable[[Lookup], bool]:
        parts = [self.one(depth)]
        while self.takes("word", "and"):
            parts.append(self.one(depth))
        return parts[0] if len(parts) == 1 else lambda lookup: all(part(lookup) for part in parts)

    def one(self, depth: int) -> Callable[[Lookup], bool]:
        if depth > DEPTH:
            raise WhereError(f"nested more than {DEPTH} deep")
        if self.takes("word", "not"):
            inner = self.one(depth + 1)
            return lambda lookup: not inner(lookup)
        if self.takes("mark", "("):
            whole = self.either(depth + 1)
            if not self.takes("mark", ")"):
                raise WhereError(f"{self.here()}: expected `)`")
            return whole
        return self.comparison()

    def comparison(self) -> Callable[[Lookup], bool]:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] == "mark":
            raise WhereError(f"{self.here()}: expected the name of a column, as in test=rrul")
        key = self.tokens[self.at][1]
        self.at += 1
        sign = self.takes("mark", "=", "!=", "<", "<=", ">", ">=", "~")
        if sign is None:
            raise WhereError(f"{self.here()}: expected =, !=, <, <=, >, >= or ~ behind {key!r}")
        self.keys.append(key)
        given = self.value(key)
        return lambda lookup: _compare(lookup(key), sign, given)

    def value(self, key: str) -> str:
        """A quoted text, or words up to `and`, `or` and parentheses."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "text":
            self.at += 1
            return self.tokens[self.at - 1][1]
        words = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "word" and self.tokens[self.at][1] not in ("and", "or"):
            words.append(self.tokens[self.at][1])
            self.at += 1
        if not words:
            raise WhereError(f"{self.here()}: expected a value for {key!r}; an empty one is ''")
        return " ".join(words)


def _compare(value: Value, sign: str, given: str) -> bool:
    """Compares values where both sides are numbers of one unit, else texts. A number without a unit has that of the run's value. Of a run
    without a value only `!=` holds."""
    if value is None:
        return sign == "!="
    text = f"{value:.12g}" if isinstance(value, float) else value
    if sign == "~":
        return fnmatch.fnmatchcase(text, given)
    there, wanted = quantity(text), quantity(given)
    numbers = there is not None and wanted is not None and wanted[1] in ("", there[1])
    if sign in ("=", "!="):
        equal = text == given or (there is not None and wanted is not None and numbers and there[0] == wanted[0])
        return equal == (sign == "=")
    if there is not None and wanted is not None:
        return numbers and _ORDER[sign](there[0], wanted[0])
    return there is None and wanted is None and _ORDER[sign](text, given)
