# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs by their properties: groups to compare, and the runs that do not belong among the others."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from ktrxer.analyse.doubts import doubts
from ktrxer.store.meta import Meta
from ktrxer.store.reasons import sentences


class GroupingError(Exception):
    pass


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, sort_keys=True)


def _congestion_control(meta: Meta) -> str:
    """The congestion control of the flows at their end; the one that was set, where no flow ended."""
    used = {flow["cc"] for runner in meta.runners if runner.kind == "flow" for flow in runner.result.get("flows", ()) if flow.get("cc")}
    requested = {str(meta.settings[key]) for key in ("cc", "cc_up", "cc_down") if meta.settings.get(key)}
    return ",".join(sorted(used or requested))


def _topology(meta: Meta) -> str:
    """Its name, its parameters, and a hash of its file: two files of one name differ."""
    made = meta.metadata.get("topology")
    if not isinstance(made, dict):
        return ""
    given = made.get("parameters")
    parameters = [f"{key}={value}" for key, value in sorted(given.items())] if isinstance(given, dict) else []
    digest = hashlib.sha256(_text(made.get("file", "")).encode()).hexdigest()[:8]
    return " ".join([str(made.get("name", "topology")), *parameters, f"({digest})"])


def _interval(meta: Meta) -> str:
    """The interval of the probes, where the user chose it. Else it follows from the path's rate, and differs from run to run."""
    interval = meta.settings.get("probe_interval_ns")
    if not isinstance(interval, int | float) or meta.settings.get("rate_estimate_bps") is not None:
        return ""
    return f"{interval / 1e6:g} ms"


def _qdisc(meta: Meta) -> str:
    found = {runner.result.get("own_qdisc", "") for runner in meta.runners} - {""}
    return ",".join(sorted(found))


PROPERTIES: dict[str, Callable[[Meta], str]] = {
    "test": lambda meta: meta.test,
    "title": lambda meta: meta.title,
    "host": lambda meta: meta.host.name,
    "kernel": lambda meta: meta.host.kernel or "",
    "machine": lambda meta: f"{meta.host.machine or ''} {meta.host.processors or ''}".strip(),
    "target": lambda meta: ",".join(meta.targets),
    "version": lambda meta: meta.version,
    "length": lambda meta: f"{meta.length_ns / 1e9:g} s",
    "cc": _congestion_control,
    "qdisc": _qdisc,
    "topology": _topology,
    "parameters": lambda meta: _text(meta.settings.get("parameters", {})),
    "interval": _interval,
}

# A run that differs from the others of its group in one of these was made under other conditions, and is no repetition.
ALIKE = ("test", "host", "kernel", "machine", "target", "length", "cc", "topology", "parameters", "interval")


def value_of(meta: Meta, key: str) -> str | None:
    """The value of a property, a label, a setting, or a path into meta.json with slashes (`metadata/before/cpu/model`). None: the run has
    none of these."""
    if key in PROPERTIES:
        return PROPERTIES[key](meta)
    labels = meta.metadata.get("labels")
    if isinstance(labels, dict) and key in labels:
        return _text(labels[key])
    if key in meta.settings:
        return _text(meta.settings[key])
    parameters = meta.settings.get("parameters")
    if isinstance(parameters, dict) and key in parameters:
        return _text(parameters[key])
    value: Any = {"metadata": meta.metadata, "settings": meta.settings, "accounts": meta.accounts}
    for part in key.split("/"):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return _text(value)


def unknown(keys: Iterable[str]) -> str:
    named = ", ".join(repr(key) for key in keys)
    return f"no property, setting or path of that name: {named}; properties: {', '.join(sorted(PROPERTIES))}"


@dataclass
class Facts:
    """The hundredth of a run's meta.json that lists and comparisons need."""

    created: str
    verdict: str | None
    reasons: list[str]
    imported: bool  # from a Flent file, which has no verdict
    properties: dict[str, str | None]  # all of PROPERTIES, and each further key that was asked for
    # The batch of a run, the run's number in it, and the number of the try.
    batch: str = ""
    number: int = 0
    attempt: int = 1
    # The run's zero on the clocks of its host; without a boot id the host's clocks are not known.
    boot: str = ""
    monotonic_ns: int = 0
    realtime_ns: int = 0
    outcomes: list[str] = field(default_factory=list)  # patterns of keys: the primary outcomes that the test declares
    doubts: list[list[str]] = field(default_factory=list)  # keys of figures that do not hold, each with the reason (doubts.py)


def facts(meta: Meta, keys: Iterable[str] = ()) -> Facts:
    properties = {key: value_of(meta, key) for key in (*PROPERTIES, *keys)}
    made = Facts(meta.created, meta.verdict, sentences(meta.reasons), "flent" in meta.metadata, properties, *_place(meta))
    made.doubts = [list(one) for one in doubts(meta)]
    stated = meta.settings.get("outcomes")
    made.outcomes = [one[:60] for one in stated if isinstance(one, str)][:4] if isinstance(stated, list) else []
    # A guest of virtual time has a boot id that follows from its seed: other guests have it, too.
    lab = meta.metadata.get("topology")
    if meta.zero.boot_id and not (isinstance(lab, dict) and lab.get("place") == "virtual time"):
        made.boot, made.monotonic_ns, made.realtime_ns = meta.zero.boot_id, meta.zero.monotonic_ns, meta.zero.realtime_ns
    return made


def _place(meta: Meta) -> tuple[str, int, int]:
    """The labels that a batch gives its runs: batch, number, try."""
    labels = meta.metadata.get("labels")
    labels = labels if isinstance(labels, dict) else {}
    number, attempt = (int(text) if re.fullmatch("[0-9]{1,9}", text := str(labels.get(key, ""))) else 0 for key in ("number", "try"))
    if not labels.get("batch_id") or not number:
        return "", 0, 1
    return f"{labels['batch_id']} {labels.get('batch', '')}", number, max(1, attempt)


@dataclass
class Member:
    """A run with what a comparison needs of it."""

    name: str
    facts: Facts
    figures: dict[str, float] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)  # figures that were left out

    def value(self, key: str) -> str:
        """GroupingError: the run has no such property."""
        value = self.facts.properties.get(key)
        if value is None:
            raise GroupingError(unknown([key]))
        return value


@dataclass(frozen=True)
class LeftOut:
    run: str
    reason: str
    figures: list[str] = field(default_factory=list)  # those that do not count, by patterns of keys; empty: the whole run

    @property
    def text(self) -> str:
        return f"{', '.join(self.figures)}: {self.reason}" if self.figures else self.reason


@dataclass
class Group:
    name: str
    members: list[Member]
    left_out: list[LeftOut] = field(default_factory=list)


def by(members: Sequence[Member], keys: Sequence[str]) -> list[Group]:
    """The groups have the order in which their first runs were given."""
    made: dict[tuple[str, ...], Group] = {}
    for member in members:
        values = tuple(member.value(key) for key in keys)
        name = " ".join(value or f"no {key}" for key, value in zip(keys, values, strict=True))
        made.setdefault(values, Group(name, [])).members.append(member)
    return list(made.values())


def only_valid(group: Group) -> None:
    """Leaves out runs that are invalid or not finished, and the figures of degraded runs that do not hold, each with its first reason.
    A Flent file has no verdict, and stays."""
    kept = []
    for member in group.members:
        verdict, reasons = member.facts.verdict, member.facts.reasons
        if verdict == "valid" or member.facts.imported:
            kept.append(member)
        elif verdict == "degraded" and (some := without_doubts(member)) is not None:
            kept.append(some)
            keys: dict[str, list[str]] = {}
            for key, why in member.facts.doubts:
                keys.setdefault(why, []).append(key)
            group.left_out += [LeftOut(member.name, why, list(dict.fromkeys(those))) for why, those in keys.items()]
        else:
            why = f": {reasons[0]}" if reasons else ""
            group.left_out.append(LeftOut(member.name, f"{verdict or 'not finished'}{why}"))
    group.members = kept


def without_doubts(member: Member) -> Member | None:
    """The run with the figures that hold. None: it has none."""
    patterns = {key for key, _ in member.facts.doubts}
    doubtful = {key for key in member.figures if any(fnmatchcase(key, pattern) for pattern in patterns)}
    if not member.figures.keys() - doubtful:
        return None
    return replace(member, figures={key: one for key, one in member.figures.items() if key not in doubtful}, doubtful=doubtful)


def alike(group: Group, mixed: Sequence[str] = ()) -> None:
    """Leaves out the runs that differ from most of their group in a property of ALIKE that is not in `mixed`. GroupingError: no value of
    that property has more than half of the runs."""
    for key in ALIKE:
        if key in mixed or len(group.members) < 2:
            continue
        counted = Counter(member.value(key) for member in group.members)
        usual, count = counted.most_common(1)[0]
        if len(counted) == 1:
            continue
        if 2 * count <= len(group.members):
            found = ", ".join(f"{value or 'none'} ({times} runs)" for value, times in counted.most_common(4))
            remedy = f"`--by {key}` parts them, `--mix {key}` allows it"
            raise GroupingError(f"group {group.name!r} mixes runs of different {key}: {found}; {remedy}")
        for member in group.members:
            if (value := member.value(key)) != usual:
                group.left_out.append(LeftOut(member.name, f"{key} is {value or 'none'}; {count} runs of the group have {usual or 'none'}"))
        group.members = [member for member in group.members if member.value(key) == usual]


def distinct(a: Group, b: Group) -> dict[str, tuple[str, str]]:
    """The properties in which two groups differ, with the value of each where a group has one value."""
    made: dict[str, tuple[str, str]] = {}
    for key in (*ALIKE, "qdisc", "version", "title"):
        values = [sorted({member.value(key) for member in group.members}) for group in (a, b)]
        if values[0] != values[1]:
            texts = [one[0] or "none" if len(one) == 1 else f"{len(one)} values" for one in values]
            made[key] = (texts[0], texts[1])
    return made
