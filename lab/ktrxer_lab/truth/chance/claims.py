# SPDX-License-Identifier: MIT OR Apache-2.0
"""The claims of one command: its verdict, its reasons and its figures, as read from its JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ktrxer_lab.truth import adapters
from ktrxer_lab.truth.chance.moved import Level, Still
from ktrxer_lab.truth.figure import Figure, Output, Unreadable
from ktrxer_lab.truth.path import DOWN, UP

VALID, NONE = "valid", "none"
# The names of the headline figures, and their units in those of `Figure`.
BOUNDS = {
    "rtt_p50": ("round trip p50", 1e-3), "loss": ("loss round trip", 1e-2), "rate_up": ("rate up", 1.0), "rate_down": ("rate down", 1.0),
    "idle_p50": ("idle round trip p50", 1e-3),
}  # fmt: skip


@dataclass(frozen=True)
class Reason:
    id: str
    text: str


@dataclass(frozen=True)
class Dead:
    """A time without any answer."""

    low_ms: float
    high_ms: float | None
    direction: str  # "": not known


@dataclass(frozen=True)
class Bound:
    """The error bound of a headline figure, in the units of `Figure`."""

    name: str
    value: float
    bound: float


@dataclass(frozen=True)
class Claims:
    command: str  # words after `ktrxer`
    status: int
    verdict: str  # "none": the command printed no object
    reasons: tuple[Reason, ...]
    figures: tuple[Figure, ...]
    rates: Mapping[str, float]  # Mbit/s of payload, by direction
    outages: tuple[Dead, ...] | None = None  # None: the command names none
    policed: tuple[str, ...] = ()  # directions
    still: tuple[Still, ...] = ()
    levels: tuple[Level, ...] = ()
    bounds: tuple[Bound, ...] = ()
    flow_ns: tuple[int, int] | None = None  # begin and end of the flows by their plan, by CLOCK_REALTIME
    span_ns: tuple[int, int] | None = None  # begin and end of a run, by CLOCK_REALTIME
    problem: str = ""  # why there are no figures

    @property
    def method(self) -> str:
        return self.command.split()[0]


def read(command: str, done: Mapping[str, Any]) -> Claims:
    """The claims in the output of a command."""
    try:
        shown = json.loads(done["out"])
    except ValueError:
        return Claims(command, done["status"], NONE, (), (), {}, problem=(done["err"].strip() or "it printed nothing").splitlines()[-1])
    reasons = tuple(Reason(one["id"], one.get("text", "")) for one in shown["reasons"])
    figures: list[Figure] = []
    problem = ""
    try:
        words = ("ktrxer", *command.split())
        figures = adapters.load(f"ktrxer_{words[1]}").read(Output(words, done["status"], done["out"], done["err"]))
    except (Unreadable, KeyError, TypeError) as error:
        problem = f"{type(error).__name__}: {error}"
    rates = {way: shown[f"{way}_bps"] / 1e6 for way in (UP, DOWN) if shown.get(f"{way}_bps") is not None}
    whole = Claims(command, done["status"], shown["verdict"] or NONE, reasons, tuple(figures), rates, problem=problem)
    whole = replace(whole, bounds=_bounds((shown.get("summary") or shown).get("bounds", [])))
    if "flows" in shown:
        return _of_flows(whole, shown, done["offset_ns"])
    if not (summary := shown.get("summary")):
        return whole
    rates = {one.name.removeprefix("TCP "): one.value for one in figures if one.name.startswith("TCP ")}
    outages = tuple(Dead(one["low_ms"], one["high_ms"], one["direction"]) for one in summary["outages"])
    phases = [(one["from_real_ns"], one["to_real_ns"]) for one in summary["phases"]]
    span_ns = (min(begin for begin, _ in phases), max(end for _, end in phases)) if phases else None
    policed = tuple(one["direction"] for one in summary["policed"])
    return replace(whole, rates=rates, outages=outages, policed=policed, span_ns=span_ns)


def _bounds(shown: list[dict[str, Any]]) -> tuple[Bound, ...]:
    known = [one for one in shown if one["figure"] in BOUNDS and one["value"] is not None and one["bound"] is not None]
    names = ((BOUNDS[one["figure"]], one) for one in known)
    return tuple(Bound(name, one["value"] * unit, one["bound"] * unit) for (name, unit), one in names)


def _of_flows(whole: Claims, shown: Mapping[str, Any], offset_ns: int) -> Claims:
    still = tuple(
        Still(one["direction"], one["from_ns"] + offset_ns, one["low_ns"], one["high_ns"], one["flow"] is not None)
        for one in shown["outages"]
    )
    levels = tuple(
        Level(one["direction"], one["from_ns"] + offset_ns, one["to_ns"] + offset_ns, one["rate_bps"] / 1e6)
        for one in shown["levels"]
    )
    words = whole.command.split()
    begin_ns = shown["start_ns"] + offset_ns
    end_ns = begin_ns + round(float(words[words.index("--for") + 1].removesuffix("s")) * 1e9)
    return replace(whole, still=still, levels=levels, flow_ns=(begin_ns, end_ns))
