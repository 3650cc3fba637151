# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rates of false claims, with their Clopper-Pearson intervals of 95 %. A draw counts once, because its commands share a path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ktrxer_lab.truth.chance import text
from ktrxer_lab.truth.chance.claims import VALID
from ktrxer_lab.truth.chance.judge import FALSE_ALARM, FALSE_CAUSE, FALSE_VALID
from ktrxer_lab.truth.chance.run import Tried
from ktrxer_lab.truth.figure import binomial_interval

GOALS = {FALSE_VALID: 0.005, FALSE_CAUSE: 0.01, FALSE_ALARM: 0.02}  # of the upper end
OF = {
    FALSE_VALID: "draws with a run called valid",
    FALSE_CAUSE: "draws with a fault",
    FALSE_ALARM: "draws without a fault, or without a result",
}


@dataclass(frozen=True)
class Rate:
    kind: str
    false: int
    trials: int

    @property
    def between(self) -> tuple[float, float]:
        return binomial_interval(self.false, self.trials) if self.trials else (0.0, 1.0)

    @property
    def reached(self) -> bool:
        return self.between[1] < GOALS[self.kind]


def record(one: Tried) -> dict[str, Any]:
    """The line of the log about one draw."""
    words = {"seed": one.draw.seed, "draw": text.of_draw(one.draw), "wall_s": round(one.wall_s, 2), "problem": one.problem}
    return words | {"runs": [asdict(run) for run in one.runs], "findings": [asdict(finding) for finding in one.findings]}


def rates(log: Iterable[Mapping[str, Any]]) -> list[Rate]:
    false, trials = Counter[str](), Counter[str]()
    for one in log:
        kinds = {finding["kind"] for finding in one["findings"]}
        trials[FALSE_VALID] += any(run["verdict"] == VALID for run in one["runs"])
        faulty = any(run["faulty"] for run in one["runs"])
        trials[FALSE_CAUSE] += faulty
        trials[FALSE_ALARM] += bool(one["runs"]) and (not faulty or FALSE_ALARM in kinds)
        false.update(kinds)
    return [Rate(kind, false[kind], trials[kind]) for kind in GOALS]


def lines(log: list[Mapping[str, Any]]) -> list[str]:
    made = []
    for rate in rates(log):
        low, high = rate.between
        goal = f"goal below {100 * GOALS[rate.kind]:g} %: {'reached' if rate.reached else 'not reached'}"
        interval = f"95 % interval {100 * low:.2f} to {100 * high:.2f} %"
        made.append(f"{rate.kind}: {rate.false} of {rate.trials} {OF[rate.kind]}, {interval}, {goal}")
    runs = [run for one in log for run in one["runs"]]
    verdicts = Counter(run["verdict"] for run in runs)
    figures, reasons = sum(run["figures"] for run in runs), sum(len(run["reasons"]) for run in runs)
    broken = sum(bool(one["problem"]) for one in log)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    compared = f"{figures} figures compared, {reasons} reasons judged, {broken} guests failed"
    made.append(f"{len(log)} draws, {len(runs)} runs ({counts}), {compared}")
    return made
