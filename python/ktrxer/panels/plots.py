# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots by name. A name that Flent uses means the same plot: those of PLOTS are drawn from the run's own columns, with its losses, bounds
and notes; all others of Flent's tests, and those of OWN, from their specifications."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ktrxer.panels import axes, flent_variants, palette
from ktrxer.panels.build import build
from ktrxer.panels.errors import PlotError
from ktrxer.panels.groups import distinct
from ktrxer.panels.latency import DASHES_OF_LOAD
from ktrxer.panels.makers import MAKERS
from ktrxer.panels.model import EventRow, Panel, PlotModel, Series
from ktrxer.panels.parts import ratio
from ktrxer.panels.spec import Kind, Options, Pick, Spec
from ktrxer.store import Run
from ktrxer.units import near


@dataclass(frozen=True)
class Plot:
    summary: str
    panels: tuple[str, ...]  # of panels.MAKERS
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of these kinds of samples, only these columns (Run.narrow)


_ROUND_TRIPS = {"latency": ("series", "t_ns", "rtt_ns", "state")}
PLOTS: dict[str, Plot] = {
    "all": Plot("throughput of each flow by direction, and round-trip times", ("download", "upload", "latency"), _ROUND_TRIPS),
    "totals": Plot("both directions as sums, and round-trip times", ("totals", "latency"), _ROUND_TRIPS),
    "download": Plot("throughput of each flow down", ("download",)),
    "upload": Plot("throughput of each flow up", ("upload",)),
    "ping": Plot("round-trip times by class", ("latency",), _ROUND_TRIPS),
    "ping_cdf": Plot("distribution of round-trip times, idle and under load", ("latency_cdf",), _ROUND_TRIPS),
    "oneway": Plot("one-way delay, up and down", ("one_way_up", "one_way_down")),
    "host_queues": Plot("delay of the probes in the queues of the two hosts' own devices", ("host_queues",)),
    "box_totals": Plot("sums of throughput and round-trip times under load as boxes", ("box_throughput", "box_latency"), _ROUND_TRIPS),
    "box_ping": Plot("round-trip times under load as boxes", ("box_latency",), _ROUND_TRIPS),
    "lateness": Plot("lateness of the probes", ("lateness",)),
    "tcp_cwnd": Plot("congestion windows", ("cwnd",)),
    "tcp_rtt": Plot("TCP's round-trip times", ("tcp_rtt",)),
    "tcp_delivery_rate": Plot("TCP's delivery rates", ("delivery",)),
    "tcp_retransmits": Plot("retransmitted segments", ("retransmits",)),
    "qdisc": Plot("backlog, drops and marks of the queues", ("queue", "drops")),
    "cpu": Plot("processors: busy and stolen", ("host",)),
}
_PROBES = (Pick("Ping (ms)**", exclude=("*avg",)),)
OWN: dict[str, Spec] = {
    "ping_band": Spec("band", "p50, p5 and p95 of the round-trip times of each second", _PROBES, "Round trip"),
    "ping_ccdf": Spec("ccdf", "tail of the round-trip times under load, on a logarithmic axis", _PROBES, "Round trip", part="load"),
    "ping_events": Spec(
        "series", "round-trip times with the losses, drops, marks and retransmits above them", _PROBES, "Round trip", events=True
    ),
    "ping_heat": Spec("heat", "where the round-trip times of each moment lie", _PROBES, "Round trip"),
    "ping_histogram": Spec("histogram", "histogram of the round-trip times under load", _PROBES, "Round trip", part="load"),
    "ping_violin": Spec("violin", "density of the round-trip times under load", _PROBES, "Round trip", part="load"),
    "ping_by_run": Spec("series", "round-trip times, a panel for each run", _PROBES, "Round trip", multiples="run"),
    "ping_by_class": Spec("series", "round-trip times, a panel for each class", _PROBES, "Round trip", multiples="series"),
    "ping_difference": Spec(
        "difference", "difference of the mean round-trip times of two groups of runs", _PROBES, "Difference", part="load", combine="each"
    ),
}
RECIPE_KINDS: dict[str, Kind] = {"time": "series", "cdf": "cdf", "box": "box"}
MOST_OWN = 32  # plots of a recipe's own, and patterns of one
SCALED = "_scaled"  # suffix of any name: the plot without outliers, as in Flent
REPORT = tuple(name for name in MAKERS if name not in ("totals", "box_throughput", "box_latency", "delivery"))
OUTLIERS = 99.0  # percentile of y that a scaled plot shows


def known(name: str, further: Collection[str] = ()) -> str:
    """The plot's name without `_scaled`. PlotError if it does not exist. `further`: names of the recipe's own plots."""
    plain = name.removesuffix(SCALED)
    if plain in PLOTS:
        return plain
    if name in OWN or name in flent_variants.SPECS or name in further:
        return name
    hint = near(plain, [*PLOTS, *OWN, *flent_variants.SPECS], "")
    there = f"{hint} There are" if hint else "there are"
    raise PlotError(f"unknown plot {name[:60]!r}; {there}: {', '.join(PLOTS)}; `ktrxer plot --list` prints further ones")


def of_recipe(run: Run) -> dict[str, Spec]:
    """The plots of the recipe's own (catalogue/recipe.py, Panel), from the file of the run: what is not one is left out."""
    made: dict[str, Spec] = {}
    for one in run.meta.panels[:MOST_OWN]:
        name, title, kind, series = (one.get(key) for key in ("name", "title", "type", "series"))
        patterns = [text for text in series[:MOST_OWN] if isinstance(text, str)] if isinstance(series, list | tuple) else []
        if not isinstance(name, str) or not isinstance(title, str) or not isinstance(kind, str) or kind not in RECIPE_KINDS or not patterns:
            continue
        # There `*` stands for any text.
        picks = tuple(Pick(text.replace("**", "*").replace("*", "**")) for text in patterns)
        made[name] = Spec(RECIPE_KINDS[kind], title or name, picks, part="whole" if kind == "time" else "load")
    return made


def specifications(run: Run) -> dict[str, Spec]:
    """The specifications by name, as they are in the run's test."""
    return of_recipe(run) | flent_variants.SPECS | flent_variants.specs_of(run.meta.test) | OWN


def summaries() -> dict[str, str]:
    """The summary of each plot by its name."""
    specs = {name: spec.summary for name, spec in (flent_variants.SPECS | OWN).items() if name.removesuffix(SCALED) not in PLOTS}
    return {name: plot.summary for name, plot in PLOTS.items()} | dict(sorted(specs.items()))


def of_test(run: Run) -> list[str]:
    """The plots that the run's test names, those that this version has."""
    there = {*PLOTS, *specifications(run)}
    return [name for name in dict.fromkeys(run.meta.plots) if name in there or name.removesuffix(SCALED) in PLOTS] or ["all"]


def default(run: Run) -> str:
    """The first of them."""
    return of_test(run)[0]


def summary_of(name: str, runs: Sequence[Run]) -> str:
    plain = name.removesuffix(SCALED)
    return PLOTS[plain].summary if plain in PLOTS else specifications(runs[0])[name].summary


def title_of(run: Run) -> str:
    return run.meta.title or run.name


def subtitle_of(run: Run) -> str:
    meta = run.meta
    parts = [meta.test, f"from {meta.host.name}" if meta.host.name else "", f"to {', '.join(meta.targets)}" if meta.targets else ""]
    words = " ".join(part for part in parts if part)
    return f"{words}, {meta.created[:19].replace('T', ' ')} UTC" if meta.created else words


def panels_of(run: Run, makers: Sequence[str]) -> list[Panel]:
    made = [MAKERS[name](run) for name in makers]
    return [panel for panel in made if panel is not None]


def model(runs: Sequence[Run], name: str, options: Options | None = None) -> PlotModel:
    """The plot of one run, or of several runs in the same panels. A plot of PLOTS has only the options of axes, labels of runs, title and
    legend; picture.model() draws it from its specification where others are given."""
    options = options or Options()
    specs = specifications(runs[0])
    plain, columns = known(name, specs), 1
    if plain in PLOTS:
        plot = PLOTS[plain]
        summary = plot.summary
        if len(runs) == 1:
            panels = panels_of(runs[0], plot.panels)
        else:
            panels = overlay([(label, panels_of(run, plot.panels)) for label, run in zip(labels(runs, options), runs, strict=True)])
        if name.endswith(SCALED):
            panels = [scaled(panel) for panel in panels]
        panels = [axes.changed(panel, options) for panel in panels]
        axes.check(panels, options)
        panels = [axes.labelled(panel, options) for panel in panels]
    else:
        summary = specs[name].summary
        panels, columns = build(name, specs, runs, options)
    if not panels:
        raise PlotError(f"{', '.join(run.name for run in runs)[:200]}: no samples for the plot {name!r}")
    return titled(runs, summary, panels, columns, options)


def titled(runs: Sequence[Run], summary: str, panels: Sequence[Panel], columns: int, options: Options) -> PlotModel:
    """`summary`: of the plot, which is the title of several runs."""
    one = len(runs) == 1
    title = title_of(runs[0]) if one else summary[:1].upper() + summary[1:]
    subtitle = subtitle_of(runs[0]) if one else f"{len(runs)} runs"
    if options.title is not None:
        title, subtitle = options.title, subtitle if options.title else ""
    return PlotModel(title, subtitle, tuple(panels), columns=columns)


def scaled(panel: Panel) -> Panel:
    """End the y axis a little above the OUTLIERS percentile. A note states the number of samples above."""
    there = [series.y[~np.isnan(series.y)] for series in panel.series]
    if panel.y.scale == "log" or not any(len(y) for y in there):
        return panel
    together = np.concatenate(there)
    most = float(np.percentile(together, OUTLIERS)) * 1.1
    above = int((together > most).sum())
    if not above or most <= 0:
        return panel
    note = f"Scaled to {OUTLIERS:g} % of the samples; {above:,} of {len(together):,} lie above."
    return replace(panel, y=replace(panel.y, most=most), notes=(*panel.notes, note))


def labels(runs: Sequence[Run], options: Options | None = None) -> list[str]:
    """Labels that distinguish the runs: those of the user, their titles, or their file names if the titles are not distinct."""
    given = list(options.labels[: len(runs)]) if options is not None else []
    return [*given, *distinct([title_of(run) for run in runs], runs)[len(given) :]]


def overlay(parts: Sequence[tuple[str, Sequence[Panel]]]) -> list[Panel]:
    """Draw panels of the same key over each other, with a colour for each run and a dash for each of its series. If a throughput panel has
    a sum, only the sum is drawn."""
    keys = list(dict.fromkeys(panel.key for _, panels in parts for panel in panels))
    made = []
    for key in keys:
        found = [(i, label, panel) for i, (label, panels) in enumerate(parts) for panel in panels if panel.key == key]
        first = found[0][2]
        drawn: list[Series] = []
        event_rows: list[EventRow] = []
        notes: list[str] = []
        taken: set[palette.Look] = set()
        for i, label, panel in found:
            factor = ratio(panel.y.unit, first.y.unit)
            across = ratio(panel.x.unit, first.x.unit)
            sums = [series for series in panel.series if series.key.endswith(" sum")]
            chosen = sums or [series for series in panel.series if series.color != palette.GREY or i == 0]
            for j, series in enumerate(chosen):
                name = label if len(chosen) == 1 else f"{label}: {series.label}"
                color, dash = palette.free((palette.FIRST + i % palette.COUNT, palette.DASHES[j % len(palette.DASHES)]), taken)
                key, x, width = f"{i}: {series.key}", series.x * across, max(1.2, series.width) if sums else series.width
                drawn.append(replace(series.times(factor), key=key, label=name, color=color, dash=dash, x=x, width=width))
            own = palette.FIRST + i % palette.COUNT
            event_rows += [
                replace(row, key=f"{i}: {row.key}", label=f"{label}: {row.label}", x=row.x * across, color=own) for row in panel.event_rows
            ]
            notes += [f"{label}: {note}" for note in panel.notes if note != DASHES_OF_LOAD]
        axis = first.x
        if axis.names:
            drawn = [replace(series, x=np.full(len(series.x), float(at))) for at, series in enumerate(drawn)]
            axis = replace(axis, names=tuple(series.label for series in drawn))
        bands = first.bands if all(panel.bands == first.bands for _, _, panel in found) else ()
        # A note that is the same for all runs appears once.
        plain = [note for note in first.notes if note != DASHES_OF_LOAD and all(note in panel.notes for _, _, panel in found)]
        rest = [note for note in notes if not any(note.endswith(same) for same in plain)]
        made.append(
            replace(first, x=axis, series=tuple(drawn), event_rows=tuple(event_rows), bands=bands, folded="", notes=(*plain, *rest[:12]))
        )
    return made
