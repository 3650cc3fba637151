# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer plot --effects KEY,KEY`: the picture of the factors of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ktrxer.analyse.factorial import factorial
from ktrxer.analyse.grouping import GroupingError, by
from ktrxer.commands.compare import Reader, Refusal, comparable, show_left_out
from ktrxer.panels import effects
from ktrxer.panels.model import PlotModel


def model(paths: Sequence[Path], keys: Sequence[str], *, every: bool) -> PlotModel:
    """`every`: also runs that are not valid. Refusal, Incomparable."""
    read = Reader("plot", False, list(keys))
    try:
        groups = by(read.members(list(paths)), keys)
        comparable("plot", groups, list(keys), every=every)
    except GroupingError as error:
        raise Refusal(str(error)) from None
    made = factorial(groups, keys, read.known)
    if made is None:
        raise Refusal("--effects draws the effects of several factors: give two keys that have two values each, as --effects cc,qdisc")
    for group in groups:
        show_left_out("plot", group)
    title = f"Effects of {' and '.join(one.key for one in made.factors)}"
    runs = f"{sum(len(group.members) for group in groups)} runs in {len(groups)} combinations"
    return PlotModel(title, runs, tuple(effects.panels(made, groups, read.known)), tuple(made.notes))
