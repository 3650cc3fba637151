# SPDX-License-Identifier: MIT OR Apache-2.0
"""A comparison for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ktrxer.analyse.compare import Check, Comparison, Row, amount, notable, sentences, spread
from ktrxer.analyse.factorial import Effect, Factorial
from ktrxer.store import one_line
from ktrxer.summary.table import table

HEAD = ("figure", "A", "+-", "B", "+-", "B - A", "95 % interval", "share", "p", "")
WORDS = {"same": "the same", "unclear": "not decided", "too few runs": "too few runs", "lost": ""}


def lines(made: Comparison, checks: Sequence[Check], whole: bool = False) -> list[str]:
    """`whole`: also the rows of exploratory figures without a difference."""
    made_lines = [f"A: {_group(made.name_a, made.runs_a)}", f"B: {_group(made.name_b, made.runs_b)}"]
    if made.differ_in:
        differ = "; ".join(f"{key}: {one_line(a, 60)} | {one_line(b, 60)}" for key, (a, b) in made.differ_in.items())
        made_lines.append(f"they differ in {differ}")
    made_lines += ["", *(one_line(text, 400) for text in sentences(made))]
    shown = sorted((row for row in made.rows if whole or notable(row)), key=lambda row: not row.primary)
    made_lines += ["", *table(HEAD, [cells(row) for row in shown])]
    if len(shown) < len(made.rows):
        made_lines.append(f"{len(made.rows) - len(shown)} further figures without a shown difference; --figures '*' lists them")
    if checks:
        made_lines += ["", *(f"margin {'held' if one.held else 'NOT shown'}: {one.label}: {one_line(one.text, 300)}" for one in checks)]
    return made_lines + ([""] if made.notes else []) + [f"note: {one_line(note, 500)}" for note in made.notes]


INTERACTION = {"same": "no interaction", "higher": "the effects differ", "lower": "the effects differ"}
EFFECT_HEAD = ("effect", "figure", "difference", "95 % interval", "p", "combinations", "")


def effect_lines(made: Factorial) -> list[str]:
    factors = "; ".join(f"{one.key}: {', '.join(one_line(level or 'none', 40) for level in one.levels)}" for one in made.factors)
    rows = table(EFFECT_HEAD, [effect_cells(one) for one in made.effects])
    return [f"factors  {factors}", *rows, *(f"note: {one_line(note, 500)}" for note in made.notes)]


def effect_cells(one: Effect) -> list[str]:
    pairs = zip(one.factors, one.levels, one.bases, strict=True)
    name = " x ".join(f"{key} {one_line(level or 'none', 40)} - {one_line(base or 'none', 40)}" for key, level, base in pairs)
    half = (one.high - one.low) / 2 if one.low is not None and one.high is not None else abs(one.value)
    half = half or abs(one.value) / 100
    between = "-" if one.low is None or one.high is None else f"{amount(one.low, half)} to {amount(one.high, half)}"
    p = "-" if one.p_corrected is None else "<0.01" if one.p_corrected < 0.01 else f"{one.p_corrected:.2f}"
    words = WORDS | {one.better: "better"} if len(one.factors) == 1 else WORDS | INTERACTION
    remark = words.get(one.outcome, "worse")
    return [name, f"{one.label} ({one.unit})", amount(one.value, half), between, p, str(one.combinations), remark]


def _group(name: str, runs: Sequence[str]) -> str:
    return f"{one_line(name, 100)}, {len(runs)} run{'' if len(runs) == 1 else 's'}"


def cells(row: Row) -> list[str]:
    label = f"{row.figure.label} ({row.figure.unit})"
    a, b = spread(row.values_a), spread(row.values_b)
    smallest = max((abs(value) for one in (a, b) if one is not None for value in one), default=0.0) / 100
    return [label, *_mean_and_spread(a, smallest), *_mean_and_spread(b, smallest), *_difference(row), _remark(row)]


def _mean_and_spread(found: tuple[float, float] | None, smallest: float) -> list[str]:
    """A value with the digits of its standard deviation, but of no less than `smallest`."""
    if found is None:
        return ["-", "-"]
    mean, deviation = found
    return [amount(mean, max(deviation, smallest)), amount(deviation, max(deviation, smallest))]


def _difference(row: Row) -> list[str]:
    found = row.found
    if found is None:
        return ["-"] * 4
    if found.low is None or found.high is None:
        return [amount(found.difference, abs(found.difference)), "-", _share(row), "-"]
    half = (found.high - found.low) / 2 or abs(found.difference) / 100
    p = row.p_corrected if row.primary else found.p
    shown = "-" if p is None else "<0.01" if p < 0.01 else f"{p:.2f}"
    return [amount(found.difference, half), f"{amount(found.low, half)} to {amount(found.high, half)}", _share(row), shown]


def _share(row: Row) -> str:
    return "-" if row.share is None or abs(row.share) >= 100 else f"{row.share:+.1%}"


def _remark(row: Row) -> str:
    stated = [] if row.primary else ["exploratory"]
    stated += [WORDS[row.outcome]] if row.outcome in WORDS else ["better" if row.outcome == row.figure.better else "worse"]
    if row.infinite_a or row.infinite_b:
        stated.append(f"among lost probes in {row.infinite_a} of A, {row.infinite_b} of B")
    if row.missing_a or row.missing_b:
        stated.append(f"absent in {row.missing_a} of A, {row.missing_b} of B")
    if row.drift is not None:
        stated.append(f"drifts by {row.drift.per_hour:+.3g} {row.figure.unit} an hour")
    return "; ".join(filter(None, stated))


def finite(value: Any) -> Any:
    """JSON has no infinity: null."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
