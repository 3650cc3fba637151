# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two groups of runs: each figure's difference with its interval, the drift over time, and a sentence for each primary outcome.

A test declares two to four primary outcomes (Plan.outcomes); without a declaration they are the delay that load adds, the rates and the
loss. Only they share the correction for several figures. The other figures are exploratory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from ktrxer.analyse.figure import Figure
from ktrxer.analyse.grouping import Group, LeftOut, Member, distinct
from ktrxer.analyse.order import Order, order
from ktrxer.statistics.difference import RUNS_LEAST, Difference, Trend, difference, holm, trend

LEVEL = 0.95
ALPHA = 0.05
# A difference matters from the larger of this share of A's mean,
SAME_SHARE = 0.05
# and this on, by unit: a delay of 1 ms, a loss of half a percentage point.
SAME_LEAST = {"ms": 1.0, "us": 1000.0, "s": 0.001, "%": 0.5}
PRIMARY_MOST = 4
RUNS_MOST = 10_000  # a larger number of runs is not stated
DRIFT_ALPHA = 0.01

Outcome = Literal["higher", "lower", "same", "unclear", "too few runs", "lost"]


@dataclass(frozen=True)
class Row:
    figure: Figure  # its value is A's mean
    values_a: list[float]
    values_b: list[float]
    missing_a: int  # runs without this figure
    missing_b: int
    infinite_a: int  # runs in which this quantile is among the lost probes
    infinite_b: int
    found: Difference | None  # None: a group has no finite value, or some values are infinite
    p_corrected: float | None
    outcome: Outcome
    primary: bool = False  # one of the outcomes that share the correction; the others are exploratory
    runs_needed: int | None = None  # in each group, to decide; None: it is decided, or more than RUNS_MOST
    drift: Trend | None = None  # within the groups, where it is significant

    @property
    def margin(self) -> float:
        """The least difference that matters, in the figure's unit."""
        mean = abs(self.found.mean_a) if self.found is not None else 0.0
        return max(SAME_SHARE * mean, SAME_LEAST.get(self.figure.unit, 0.0))

    @property
    def share(self) -> float | None:
        """The difference as a share of A's mean."""
        return self.found.difference / abs(self.found.mean_a) if self.found is not None and self.found.mean_a else None


@dataclass(frozen=True)
class Comparison:
    name_a: str
    name_b: str
    runs_a: list[str]
    runs_b: list[str]
    left_out_a: list[LeftOut]
    left_out_b: list[LeftOut]
    differ_in: dict[str, tuple[str, str]]
    rows: list[Row]
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        groups = ((self.name_a, self.runs_a, self.left_out_a), (self.name_b, self.runs_b, self.left_out_b))
        return {
            "groups": [{"name": name, "runs": runs, "left_out": [asdict(one) for one in out]} for name, runs, out in groups],
            "differ_in": {key: list(values) for key, values in self.differ_in.items()},
            "level": LEVEL,
            "figures": [_row_json(row) for row in self.rows],
            "sentences": sentences(self),
            "notes": self.notes,
        }


def _row_json(row: Row) -> dict[str, Any]:
    made: dict[str, Any] = {"key": row.figure.key, "label": row.figure.label, "unit": row.figure.unit, "better": row.figure.better}
    made |= {"outcome": row.outcome, "primary": row.primary, "margin": row.margin, "runs_needed": row.runs_needed}
    made |= {"p_corrected": row.p_corrected, "share_of_a": row.share}
    made |= {"missing": [row.missing_a, row.missing_b], "infinite": [row.infinite_a, row.infinite_b]}
    found = row.found if row.found is not None else None
    return made | (asdict(found) if found is not None else {}) | {"drift": asdict(row.drift) if row.drift is not None else None}


def compare(a: Group, b: Group, known: Mapping[str, Figure]) -> Comparison:
    """`known`: a description of each figure by its key, in the order of the table. The groups have been made comparable (grouping.py)."""
    rows = [_row(figure, a.members, b.members) for figure in known.values()]
    rows = [row for row in rows if row.values_a or row.values_b or row.infinite_a or row.infinite_b]
    declared = list(dict.fromkeys(key for member in (*a.members, *b.members) for key in member.facts.outcomes))
    chosen = primary_keys([row.figure for row in rows], declared)
    rows = [replace(row, primary=row.figure.key in chosen) for row in rows]
    tested = [i for i, row in enumerate(rows) if row.primary and row.found is not None and row.found.p is not None]
    corrected = dict(zip(tested, holm([_p(rows[i]) for i in tested]), strict=True))
    rows = [_judged(row, corrected.get(i)) for i, row in enumerate(rows)]
    made_at = order([*a.members, *b.members])
    rows = _with_drift(rows, a.members, b.members, made_at)
    made = Comparison(
        a.name, b.name, [one.name for one in a.members], [one.name for one in b.members], a.left_out, b.left_out, distinct(a, b), rows
    )
    made.notes.extend(_notes(made, a, b, made_at))
    return made


def primary_keys(figures: Sequence[Figure], declared: Sequence[str] = ()) -> list[str]:
    """The keys of at most PRIMARY_MOST figures. `declared`: patterns of keys."""
    keys = [one.key for one in figures]
    if found := [key for pattern in declared for key in keys if fnmatchcase(key, pattern)]:
        return list(dict.fromkeys(found))[:PRIMARY_MOST]
    delays = [key for key in keys if key == "added"] or [one.key for one in figures if one.main and ".rtt." in one.key]
    rates = [key for key in keys if key.startswith("rate.")]
    groups = [key for key in rates if not key.endswith("totals")]
    loss: list[str] = [key for key in ("loss.load", "loss.idle") if key in keys]
    made = [*delays[:1], *(groups if len(groups) < 3 else rates[-1:]), *loss[:1]]
    if not set(made) - set(loss):
        others = [one for one in figures if one.key not in loss]
        made = [one.key for one in [one for one in others if one.main] or others][:2] + loss[:1]
    return made[:PRIMARY_MOST]


def _p(row: Row) -> float:
    return row.found.p if row.found is not None and row.found.p is not None else 1.0


def _row(figure: Figure, a: Sequence[Member], b: Sequence[Member]) -> Row:
    there = [[one.figures[figure.key] for one in members if figure.key in one.figures] for members in (a, b)]
    finite = [[value for value in values if math.isfinite(value)] for values in there]
    infinite = [len(values) - len(some) for values, some in zip(there, finite, strict=True)]
    # A quantile among lost probes has no mean with the others; without it the mean would be of the better runs.
    found = difference(finite[0], finite[1], LEVEL) if finite[0] and finite[1] and not any(infinite) else None
    missing = [sum(figure.key not in one.figures and figure.key not in one.doubtful for one in members) for members in (a, b)]
    return Row(figure, finite[0], finite[1], missing[0], missing[1], infinite[0], infinite[1], found, None, "unclear")


def _judged(row: Row, p: float | None) -> Row:
    found = row.found
    if found is None:
        return replace(row, outcome="lost")
    if found.low is None or found.high is None:
        return replace(row, outcome="too few runs")
    outcome: Outcome = "unclear"
    shown = p is not None and p < ALPHA if row.primary else found.low * found.high > 0
    if shown and abs(found.difference) > row.margin:
        outcome = "higher" if found.difference > 0 else "lower"
    elif max(abs(found.low), abs(found.high)) <= row.margin:
        outcome = "same"
    needed = _runs_needed(found, row.margin) if outcome == "unclear" else None
    return replace(row, p_corrected=p, outcome=outcome, runs_needed=needed)


def _runs_needed(found: Difference, margin: float) -> int | None:
    """Runs in each group whose interval would lie on one side of zero, or within the margin. Its width falls with the root of their
    number."""
    assert found.low is not None and found.high is not None
    least, size = min(found.count_a, found.count_b), abs(found.difference)
    wanted = size if size > margin else margin - size
    if wanted <= 0:
        return None
    needed = math.ceil(least * ((found.high - found.low) / 2 / wanted) ** 2)
    return max(needed, least + 1) if needed <= RUNS_MOST else None


def _with_drift(rows: list[Row], a: Sequence[Member], b: Sequence[Member], made_at: Order) -> list[Row]:
    """Each figure less the mean of its group, over the time of the runs."""
    found: dict[int, Trend] = {}
    for i, row in enumerate(rows):
        if row.found is None:
            continue
        t, residuals = [], []
        for members, mean in ((a, row.found.mean_a), (b, row.found.mean_b)):
            for member in members:
                if member.name in made_at.at and row.figure.key in member.figures:
                    t.append(made_at.at[member.name])
                    residuals.append(member.figures[row.figure.key] - mean)
        if (made := trend(t, residuals)) is not None:
            found[i] = made
    corrected = dict(zip(found, holm([one.p for one in found.values()]), strict=True))
    return [replace(row, drift=found[i]) if corrected.get(i, 1.0) < DRIFT_ALPHA else row for i, row in enumerate(rows)]


def _notes(made: Comparison, a: Group, b: Group, made_at: Order) -> list[str]:
    notes = list(made_at.notes)
    few = [f"{name} has {len(runs)}" for name, runs in ((a.name, a.members), (b.name, b.members)) if len(runs) < RUNS_LEAST]
    if few:
        notes.append(f"an interval needs at least {RUNS_LEAST} runs in each group: {', '.join(few)}")
    drifting = [row.figure.label for row in made.rows if row.drift is not None]
    if drifting:
        notes.append(f"these figures change with time within the groups, so runs of a group are not alike: {', '.join(drifting[:4])}")
    times = [made_at.times(group.members) for group in (a, b)]
    if min(map(len, times)) > 1 and (max(times[0]) < min(times[1]) or max(times[1]) < min(times[0])):
        first, second = (a.name, b.name) if max(times[0]) < min(times[1]) else (b.name, a.name)
        notes.append(f"all runs of {first} were made before those of {second}: a change of the path over time is part of each difference")
    if len(changed := [key for key in made.differ_in if key not in ("title", "parameters")]) > 1:
        notes.append(f"the groups differ in more than one property, so a difference has no single cause: {', '.join(changed)}")
    return notes


def notable(row: Row) -> bool:
    """Rows of the short table: primary outcomes, and figures with a difference, losses or a drift."""
    return row.primary or row.outcome in ("higher", "lower", "lost") or row.drift is not None


def sentences(made: Comparison) -> list[str]:
    """One for each primary outcome: the difference of B from A."""
    return [_sentence(row, made.name_a, made.name_b) for row in made.rows if row.primary and row.found is not None]


def _sentence(row: Row, a: str, b: str) -> str:
    found, figure = row.found, row.figure
    assert found is not None
    unit = "percentage points" if figure.unit == "%" else figure.unit
    if found.low is None or found.high is None:
        gap = amount(found.difference, abs(found.difference))
        return f"{figure.label}: {b} - {a} is {gap} {unit}; too few runs for an interval"
    half = (found.high - found.low) / 2
    percent = f" ({100 * abs(row.share):.1f} %)" if row.share is not None and abs(row.share) < 10 else ""
    if row.outcome in ("higher", "lower"):
        low, high = sorted((abs(found.low), abs(found.high)))
        between = f"{amount(low, half)} to {amount(high, half)} {unit}"
        better = "better" if row.outcome == figure.better else "worse"
        gap = amount(abs(found.difference), half)
        return f"{figure.label}: {b} is {gap} {unit}{percent} {row.outcome} than {a} (95 %: {between}): {better}"
    interval = f"{b} - {a} is {amount(found.low, half)} to {amount(found.high, half)} {unit}, 95 %"
    margin = f"{amount(row.margin, row.margin)} {unit}"
    if row.outcome == "same":
        return f"{figure.label}: the same ({interval}, within the margin of {margin})"
    least = min(found.count_a, found.count_b)
    more = f"; about {row.runs_needed} runs in each group would decide, not {least}" if row.runs_needed is not None else ""
    return f"{figure.label}: not decided ({interval}; a difference matters from {margin} on){more}"


def amount(value: float, uncertainty: float) -> str:
    """The value with two digits of its uncertainty."""
    if not math.isfinite(value):
        return "lost"
    scale = uncertainty if uncertainty > 0 else abs(value) or 1.0
    digits = min(9, max(0, 1 - math.floor(math.log10(scale))))
    return f"{value:.{digits}f}"


# ------------------------------------------------------------------------------------------------------------------ margins


@dataclass(frozen=True)
class Margin:
    """How much worse B may be than A. `relative`: a share of A's mean; else in the figure's unit."""

    key: str
    value: float
    relative: bool


@dataclass(frozen=True)
class Check:
    """`held` only where the interval shows that B is not worse by more than the margin (non-inferiority, one-sided, 97.5 %)."""

    key: str
    label: str
    held: bool
    text: str


def check(made: Comparison, margins: Sequence[Margin]) -> list[Check]:
    by_key = {row.figure.key: row for row in made.rows}
    return [_check(margin, by_key.get(margin.key), made) for margin in margins]


def _check(margin: Margin, row: Row | None, made: Comparison) -> Check:
    if row is None:
        return Check(margin.key, margin.key, False, "no run has this figure")
    figure, found = row.figure, row.found
    if found is None:
        lost = f"{row.infinite_a} runs of {made.name_a} and {row.infinite_b} of {made.name_b} have this quantile among lost probes"
        absent = f"{made.name_a if not row.values_a else made.name_b} has no run with this figure"
        return Check(margin.key, figure.label, False, lost if row.infinite_a + row.infinite_b else absent)
    if found.low is None or found.high is None:
        fewest = min(found.count_a, found.count_b)
        return Check(margin.key, figure.label, False, f"{fewest} runs in a group: at least {RUNS_LEAST} are needed")
    allowed = margin.value * abs(found.mean_a) if margin.relative else margin.value
    worst = found.high if figure.better == "lower" else -found.low
    half = max((found.high - found.low) / 2, 1e-12)
    stated = f"worse by at most {amount(worst, half)} {figure.unit}" if worst > 0 else "not worse"
    text = f"{stated} (97.5 %); the margin is {amount(allowed, half)} {figure.unit}"
    missing = row.missing_a + row.missing_b
    if missing:
        text += f"; {missing} runs do not have this figure"
    return Check(margin.key, figure.label, bool(worst < allowed or (worst <= allowed and worst <= 0)) and not missing, text)


def spread(values: Sequence[float]) -> tuple[float, float] | None:
    """Mean and standard deviation."""
    if not values:
        return None
    array = np.asarray(values, np.float64)
    return float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else 0.0
