# SPDX-License-Identifier: MIT OR Apache-2.0
"""The settings of a picture that do not fit all plots. Settings of axes, titles and legends do (axes.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ktrxer.panels.errors import SettingError
from ktrxer.panels.spec import Options, Spec


@dataclass(frozen=True)
class _Rule:
    setting: str
    given: Callable[[Options], bool]
    fits: Callable[[Spec], bool]
    plots: str  # those that it fits


def _any(_: Spec) -> bool:
    return True


def _over_time(spec: Spec) -> bool:
    return spec.kind == "series"


def _each_over_time(spec: Spec) -> bool:
    return spec.kind == "series" and spec.combine is None


def _grouped(spec: Spec) -> bool:
    return spec.combine is not None or spec.kind in ("line", "difference")


def _small(spec: Spec) -> bool:
    return spec.multiples != ""


# Settings of which the samples or their groups are made.
_RULES = (
    _Rule("part", lambda options: options.part is not None, _any, ""),
    _Rule("smoothing", lambda options: options.smooth > 0, _over_time, "plots of series over time"),
    _Rule("norm-factor", lambda options: options.norm != 1, _any, ""),
    _Rule("absolute-time", lambda options: options.absolute_time, _each_over_time, "plots of each run over time"),
    _Rule("concatenate", lambda options: options.concatenate, _each_over_time, "plots of each run over time"),
    _Rule("series", lambda options: bool(options.only), _any, ""),
    _Rule("filter-series", lambda options: bool(options.drop), _any, ""),
    _Rule("replace-legend", lambda options: bool(options.relabel), _any, ""),
    _Rule("override-group-by", lambda options: options.by is not None, _grouped, "plots that combine runs, such as box_combine"),
    _Rule("filter-regexp", lambda options: bool(options.drop_names), _grouped, "plots that combine runs, such as box_combine"),
    _Rule("no-print-n", lambda options: not options.count, _grouped, "plots that combine runs, such as box_combine"),
    _Rule(
        "own-axes", lambda options: not options.same_axes, _small,
        "runs beside each other, and plots with a panel for each run or series, such as ping_by_run",
    ),
)  # fmt: skip


def of_samples(options: Options) -> list[str]:
    """The settings that need the specification of a plot."""
    return [rule.setting for rule in _RULES if rule.given(options)]


def check(plot: str, specs: Sequence[Spec], options: Options) -> None:
    """SettingError: a setting fits none of the specifications, which are those of the panels of the plot."""
    for rule in _RULES:
        if rule.given(options) and not any(rule.fits(spec) for spec in specs):
            raise SettingError(f"{rule.setting}: does not fit the plot {plot!r}; it fits {rule.plots}")
