# SPDX-License-Identifier: MIT OR Apache-2.0
"""A picture of some runs as a user asks for it: which plot, how the runs stand in it, with which settings. `ktrxer plot` and the explorer
(`ktrxer view`) draw the same pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ktrxer.panels import axes, fitting, plots
from ktrxer.panels.arrange import Arrange
from ktrxer.panels.build import build, same_axes
from ktrxer.panels.errors import PlotError, SettingError
from ktrxer.panels.groups import Combine, GroupBy
from ktrxer.panels.items import scaled
from ktrxer.panels.model import Panel, PlotModel
from ktrxer.panels.parts import ratio
from ktrxer.panels.spec import Kind, Options, Spec
from ktrxer.store import Run

_BY: dict[str, GroupBy] = {"by-name": "name", "by-batch": "batch", "all": "series"}
# How each kind of plot makes one curve or box of several runs.
_COMBINED: dict[Kind, Combine] = {
    "series": "averaged",
    "cdf": "pooled",
    "ccdf": "pooled",
    "histogram": "pooled",
    "box": "each",
    "violin": "each",
    "bar": "each",
    "ellipse": "pooled",
}
DEFAULT = Options()


@dataclass(frozen=True)
class Picture:
    plot: str
    arrange: Arrange = "overlay"
    options: Options = DEFAULT


def model(runs: Sequence[Run], wish: Picture) -> PlotModel:
    """PlotError: the plot does not exist, has no samples, or cannot be drawn that way."""
    given = len(wish.options.labels)
    if given > len(runs):
        raise SettingError(f"override-label: {given} labels are given for {len(runs)} run{'s' if len(runs) > 1 else ''}")
    if wish.arrange in _BY:
        return _specified(runs, wish, _spec(runs, wish.plot, "combine runs"))
    if wish.arrange == "beside" and len(runs) > 1:
        return _beside(runs, wish)
    if wanted := fitting.of_samples(wish.options):
        return _specified(runs, wish, _spec(runs, wish.plot, f"have the setting {wanted[0]}"))
    return plots.model(runs, wish.plot, wish.options)


def narrow(runs: Sequence[Run], wish: Picture) -> None:
    """The runs then read only the columns that this picture needs."""
    plain = wish.plot.removesuffix(plots.SCALED)
    if plain in plots.PLOTS and wish.arrange not in _BY and not fitting.of_samples(wish.options):
        for run in runs:
            run.narrow(plots.PLOTS[plain].reads)


def apart(runs: Sequence[Run], wish: Picture) -> list[PlotModel]:
    """A model for each run, with the same axes in all of them, so that a user can turn from one to the next. A run without samples for the
    plot has a model without panels."""
    if len(runs) == 1:
        return [model(runs, replace(wish, arrange="overlay"))]
    options = wish.options
    # Bounds are those of the axes of all runs together, so they are set at the end.
    own = replace(wish, arrange="overlay", options=replace(options, labels=(), bounds_x=axes.FREE, bounds_y=axes.FREE, same_axes=True))
    each, refused = [], None
    for run in runs:
        try:
            each.append(model([run], own))
        except PlotError as error:
            refused = error if isinstance(error, SettingError) else refused
            each.append(plots.titled([run], "", (), 1, options))
    if refused is not None and not any(one.panels for one in each):
        raise refused
    panels_of_each = [list(one.panels) for one in each]
    made = _aligned(panels_of_each) if options.same_axes else panels_of_each
    axes.check([panel for panels in made for panel in panels], replace(options, log="", scaling=None))
    return [
        replace(one, panels=tuple(axes.bounded(panel, options) for panel in panels)) for one, panels in zip(each, made, strict=True)
    ]


def _beside(runs: Sequence[Run], wish: Picture) -> PlotModel:
    each = apart(runs, wish)
    labels = plots.labels(runs, wish.options)
    keys = list(dict.fromkeys(panel.key for one in each for panel in one.panels))
    made = [
        replace(panel, key=f"{i}: {panel.key}", title=label if len(keys) == 1 else f"{label}: {panel.title}")
        for key in keys
        for i, (label, one) in enumerate(zip(labels, each, strict=True))
        for panel in one.panels
        if panel.key == key
    ]
    if not made:
        raise PlotError(f"{', '.join(run.name for run in runs)[:200]}: no samples for the plot {wish.plot!r}")
    columns = len(runs) if len(runs) < 4 else min(4, round(len(runs) ** 0.5 + 0.49))
    return plots.titled(runs, plots.summary_of(wish.plot, runs), made, columns, wish.options)


def _specified(runs: Sequence[Run], wish: Picture, spec: Spec) -> PlotModel:
    specs = plots.specifications(runs[0])
    by = _BY.get(wish.arrange)
    names = spec.panels if spec.kind == "stack" else (wish.plot,)
    changed = {name: _with(specs[name], by, name) for name in names}
    fitting.check(wish.plot, list(changed.values()), wish.options)
    if by is not None and wish.options.by is not None:
        raise SettingError(f"override-group-by: the arrangement {wish.arrange} groups the runs already; give one of the two")
    options = replace(wish.options, by=by or wish.options.by)
    panels, columns = build(wish.plot, specs | changed | ({wish.plot: spec} if spec.kind == "stack" else {}), runs, options)
    if not panels:
        raise PlotError(f"{', '.join(run.name for run in runs)[:200]}: no samples for the plot {wish.plot!r}")
    return plots.titled(runs, spec.summary, panels, columns, options)


def _with(spec: Spec, by: GroupBy | None, name: str) -> Spec:
    if by is None or spec.combine is not None:
        return spec
    if spec.kind not in _COMBINED:
        kinds = ", ".join(_COMBINED)
        raise PlotError(f"the plot {name!r} cannot combine runs: it is a plot of the kind {spec.kind}; these kinds can: {kinds}")
    return replace(spec, combine=_COMBINED[spec.kind], multiples="")


def _spec(runs: Sequence[Run], name: str, what: str) -> Spec:
    specs = plots.specifications(runs[0])
    plots.known(name, specs)
    if name not in specs:
        able = ", ".join(sorted(specs)[:6])
        raise PlotError(f"the plot {name!r} cannot {what}: it is drawn from the run's own columns; plots that can: {able}, ...")
    return specs[name]


def _aligned(parts: list[list[Panel]]) -> list[list[Panel]]:
    """The panels of each run, where all panels of one key have the same units, the same range of y, and one link."""
    made: list[dict[str, Panel]] = [{panel.key: panel for panel in panels} for panels in parts]
    for key in dict.fromkeys(panel.key for panels in parts for panel in panels):
        there = [i for i, one in enumerate(made) if key in one]
        first = made[there[0]][key]
        panels = [_in_units(made[i][key], first) for i in there]
        tops = [panel.y.most for panel in panels if panel.y.most is not None]
        for i, panel in zip(there, same_axes(panels), strict=True):
            if tops:  # a plot without its outliers: as far as that of the run that needs most
                panel = replace(panel, y=replace(panel.y, most=max(tops)))
            made[i][key] = replace(panel, link=panel.link if panel.link or panel.x.names else key)
    return [list(one.values()) for one in made]


def _in_units(panel: Panel, first: Panel) -> Panel:
    up, across = ratio(panel.y.unit, first.y.unit), ratio(panel.x.unit, first.x.unit)
    if (up, across) == (1, 1) or panel.y2 is not None:
        return panel
    series = tuple(replace(scaled(one, 1 / up), x=one.x * across) for one in panel.series)
    return replace(panel, series=series, x=replace(panel.x, unit=first.x.unit), y=replace(panel.y, unit=first.y.unit))
