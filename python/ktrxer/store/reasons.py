# SPDX-License-Identifier: MIT OR Apache-2.0
"""A reason of a verdict: data, from which the sentence for people is made (contract/reasons.toml, docs/reference/reasons.md).

    reason("ended_before_time", name="TCP upload BE", early_s=3.2)
    read(value)      of a command or a file: an object; a string of a version without identifiers
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from ktrxer.store.errors import one_line, printable
from ktrxer.store.reason_table import FAILURES, FORMS, WORDS, Form
from ktrxer.units import delay, nanoseconds

Severity = Literal["degraded", "invalid"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
TEXT = "text"  # the identifier of a reason that has a sentence only
VALUES_MOST = 32
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,59}")
_PLACE = re.compile(r"\{(\w+)\}")
_OWN = ("id", "text", "severity", "cause", "names")


@dataclass(frozen=True)
class Reason:
    severity: Severity
    text: str
    name: str = ""  # of a series or a process; empty: of the whole
    id: str = TEXT
    cause: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)  # the words and numbers of the sentence
    names: tuple[str, ...] = ()  # of the processes and series, when the same reason of several of them was put together

    def as_json(self) -> dict[str, Any]:
        """The object of results and files."""
        names = {"names": list(self.names)} if self.names else {}
        return {"id": self.id, "text": self.text, "severity": self.severity, "cause": self.cause} | names | dict(self.values)

    @staticmethod
    def from_json(value: Any) -> Reason | None:
        return read(value)

    def named(self, name: str) -> Reason:
        return replace(self, name=self.name or name)


def reason(identifier: str, severity: Severity | None = None, *, name: str = "", **values: Any) -> Reason:
    """A reason of the table. `severity`: where it depends on the numbers. `values`: the words and numbers of the sentence."""
    form = FORMS[identifier]
    found = severity or form.severity
    assert found in SEVERITIES, identifier
    text = _PLACE.sub(lambda place: _shown(place[1], values[place[1]]), form.text)
    return Reason("invalid" if found == "invalid" else "degraded", one_line(text, 1000), name, identifier, form.cause, {
        key: one_line(value, 1000) if isinstance(value, str) else value for key, value in values.items()
    })  # fmt: skip


def read(value: Any) -> Reason | None:
    """The reason of a command or a file of any version. None: it is no reason."""
    if isinstance(value, str):
        return Reason("degraded", printable(value))
    if not isinstance(value, dict):
        return None
    identifier, text, severity, cause, names = (value.get(key) for key in _OWN)
    if not isinstance(identifier, str) or not _IDENTIFIER.fullmatch(identifier):
        identifier = TEXT
    values = {
        printable(key)[:60]: printable(one) if isinstance(one, str) else one
        for key, one in list(value.items())[:VALUES_MOST]
        if key not in _OWN and (one is None or isinstance(one, str | int) or (isinstance(one, float) and math.isfinite(one)))
    }
    return Reason(
        "invalid" if severity == "invalid" else "degraded", printable(text) if isinstance(text, str) else identifier, "", identifier,
        printable(cause) if isinstance(cause, str) else "", values,
        tuple(printable(one) for one in names if isinstance(one, str)) if isinstance(names, list) else (),
    )  # fmt: skip


def read_all(value: Any) -> list[Reason]:
    """The reasons of an object of any origin."""
    return [found for one in value if (found := read(one)) is not None] if isinstance(value, list) else []


def as_json(reasons: Iterable[Reason]) -> list[dict[str, Any]]:
    return [one.as_json() for one in reasons]


def sentences(reasons: Iterable[Reason]) -> list[str]:
    return [one.text for one in reasons]


def _shown(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if name.endswith("_ns"):
        return nanoseconds(round(value))
    if name.endswith("_ms"):
        return delay(value)
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)


# ---------------------------------------------------------------------------------------------------------- several of a run


def together(reasons: Iterable[Reason]) -> list[Reason]:
    """The same reason (identifier and words) of several processes once, with all their names, and with the numbers of the worst, by the
    number that the table declares."""
    groups: dict[tuple[Any, ...], list[Reason]] = {}
    for one in reasons:
        words = tuple(sorted((key, value) for key, value in one.values.items() if isinstance(value, str)))
        groups.setdefault((one.id, words, one.text if one.id not in FORMS else ""), []).append(one)
    return [_together(those) for those in groups.values()]


def _together(those: list[Reason]) -> Reason:
    names = tuple(dict.fromkeys(one.name for one in those if one.name))
    worst = max(those, key=_badness)
    severity: Severity = "invalid" if any(one.severity == "invalid" for one in those) else "degraded"
    if not names:
        return replace(worst, severity=severity)
    differ = len({one.text for one in those}) > 1
    more = "" if not differ else " (figures of the worst)" if len(set(map(_badness, those))) > 1 else " (figures of the first)"
    return replace(worst, severity=severity, name="", names=names, text=f"{listed(names)}: {worst.text}{more}")


def _badness(one: Reason) -> float:
    worst = FORMS.get(one.id, Form("", "", "")).worst
    value = one.values.get(worst.removeprefix("-"))
    return 0.0 if isinstance(value, bool) or not isinstance(value, int | float) else -value if worst.startswith("-") else value


def listed(names: Iterable[str]) -> str:
    those = list(names)
    return ", ".join(those[:4]) + (f" and {len(those) - 4} more" if len(those) > 4 else "")


__all__ = ["FAILURES", "FORMS", "WORDS", "Reason", "Severity", "as_json", "listed", "read", "read_all", "reason", "sentences", "together"]
