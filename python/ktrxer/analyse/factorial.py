# SPDX-License-Identifier: MIT OR Apache-2.0
"""Main effects and interactions of the factors of a batch: groups of runs by two or more properties, each with two or more values.

The effect of a level is its difference from the first level of the factor, as the mean over the combinations of the other factors, each
with the same weight. An interaction is the difference of two such effects: by how much the effect of one factor differs between two
levels of another one. Only combinations that have all their partners count, so that a design with missing ones compares like with like."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, product
from typing import Any

from ktrxer.analyse.compare import ALPHA, LEVEL, SAME_LEAST, SAME_SHARE, Outcome, primary_keys
from ktrxer.analyse.figure import Better, Figure
from ktrxer.analyse.grouping import Group
from ktrxer.statistics.contrast import contrast
from ktrxer.statistics.difference import RUNS_LEAST, holm

EFFECTS_MOST = 400  # of all figures together

Combination = tuple[str, ...]
Values = Mapping[Combination, Sequence[float]]


@dataclass(frozen=True)
class Factor:
    key: str
    levels: list[str]  # the first one is the base of the differences


@dataclass(frozen=True)
class Effect:
    """`factors` has one key: a main effect; two: an interaction. `levels` and `bases` have a level for each of them."""

    key: str  # of the figure
    label: str
    unit: str
    better: Better
    factors: list[str]
    levels: list[str]
    bases: list[str]
    combinations: int  # whose means are compared
    value: float
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    margin: float
    outcome: Outcome


@dataclass(frozen=True)
class Factorial:
    factors: list[Factor]
    effects: list[Effect]
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"level": LEVEL}


def factorial(groups: Sequence[Group], keys: Sequence[str], known: Mapping[str, Figure]) -> Factorial | None:
    """None: fewer than two factors have two levels. The groups are those of `keys` (grouping.by), and have been made comparable."""
    made = {tuple(group.members[0].value(key) for key in keys): group for group in groups}
    levels = [list(dict.fromkeys(combination[i] for combination in made)) for i in range(len(keys))]
    varied = [i for i, some in enumerate(levels) if len(some) > 1]
    if len(varied) < 2:
        return None
    factors = [Factor(key, some) for key, some in zip(keys, levels, strict=True)]
    notes: list[str] = []
    whole = math.prod(map(len, levels))
    if len(made) < whole:
        notes.append(f"{whole - len(made)} of {whole} combinations have no run: an effect is of those that have all partners")
    few = [group.name for group in groups if len(group.members) < RUNS_LEAST]
    if few:
        more = " ..." if len(few) > 6 else ""
        notes.append(f"an interval needs at least {RUNS_LEAST} runs in each combination: {', '.join(few[:6])}{more}")
    members = [member for group in groups for member in group.members]
    there = [figure for figure in known.values() if any(figure.key in member.figures for member in members)]
    declared = list(dict.fromkeys(key for member in members for key in member.facts.outcomes))
    effects: list[Effect] = []
    for key in primary_keys(there, declared):
        values = {at: [one.figures[key] for one in group.members if key in one.figures] for at, group in made.items()}
        if lost := sorted({made[at].name for at, some in values.items() if any(map(math.isinf, some))}):
            where = ", ".join(lost[:4])
            notes.append(f"{known[key].label}: the value is among lost probes in runs of {where}; these combinations do not count")
        usable = {at: some for at, some in values.items() if some and not any(map(math.isinf, some))}
        effects += _effects(known[key], factors, varied, usable)
    if len(effects) > EFFECTS_MOST:
        notes.append(f"the first {EFFECTS_MOST} of {len(effects)} effects are shown")
        effects = effects[:EFFECTS_MOST]
    tested = [i for i, one in enumerate(effects) if one.p is not None]
    corrected = dict(zip(tested, holm([effects[i].p or 0.0 for i in tested]), strict=True))
    return Factorial(factors, [_judged(one, corrected.get(i)) for i, one in enumerate(effects)], notes)


def _effects(figure: Figure, factors: Sequence[Factor], varied: Sequence[int], values: Values) -> Iterator[Effect]:
    for order in (1, 2):
        for chosen in combinations(varied, order):
            for levels in product(*(factors[i].levels[1:] for i in chosen)):
                if (made := _effect(figure, factors, chosen, levels, values)) is not None:
                    yield made


def _effect(figure: Figure, factors: Sequence[Factor], chosen: Sequence[int], levels: Combination, values: Values) -> Effect | None:
    """Each pair of a level and its base has the weights 1 and -1; an interaction has their product."""
    bases = tuple(factors[i].levels[0] for i in chosen)
    weights: dict[Combination, float] = {}
    rests = {tuple(part for i, part in enumerate(at) if i not in chosen) for at in values}
    used = 0
    for rest in sorted(rests):
        corners = {}
        for picked in product(*zip(levels, bases, strict=True)):
            of_rest = iter(rest)
            inside = dict(zip(chosen, picked, strict=True))
            at = tuple(inside[i] if i in inside else next(of_rest) for i in range(len(factors)))
            corners[at] = math.prod(1.0 if one == level else -1.0 for one, level in zip(picked, levels, strict=True))
        if corners.keys() <= values.keys():
            weights |= corners
            used += 1
    if not used:
        return None
    found = contrast([values[at] for at in weights], [weight / used for weight in weights.values()], LEVEL)
    at_base = [at for at in weights if all(at[i] == one for i, one in zip(chosen, bases, strict=True))]
    base = [value for at in at_base for value in values[at]]
    margin = max(SAME_SHARE * abs(sum(base) / len(base)), SAME_LEAST.get(figure.unit, 0.0))
    keys = [factors[i].key for i in chosen]
    return Effect(
        figure.key, figure.label, figure.unit, figure.better, keys, list(levels), list(bases), len(weights),
        found.value, found.low, found.high, found.p, None, margin, "too few runs",
    )  # fmt: skip


def _judged(one: Effect, p: float | None) -> Effect:
    """The rules are those of a comparison of two groups (compare.py)."""
    if one.low is None or one.high is None:
        return one
    outcome: Outcome = "unclear"
    if p is not None and p < ALPHA and abs(one.value) > one.margin:
        outcome = "higher" if one.value > 0 else "lower"
    elif max(abs(one.low), abs(one.high)) <= one.margin:
        outcome = "same"
    return replace(one, p_corrected=p, outcome=outcome)
