# SPDX-License-Identifier: MIT OR Apache-2.0
"""Functions from a run to panels, without side effects. Each returns None if the run has no samples for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ktrxer.panels import palette
from ktrxer.panels.counters import cwnd, delivery, drops, host, queue, retransmits, tcp_rtt
from ktrxer.panels.host_queues import host_queues
from ktrxer.panels.latency import latencies, latency, latency_cdf, lateness, looks_of, one_way, probes_of, split_by_load
from ktrxer.panels.model import TIME, Axis, Floats, Panel, Series
from ktrxer.panels.parts import BITS, DELAYS, bands, key_of, label_of, unit_of, values
from ktrxer.panels.shapes import five
from ktrxer.panels.throughput import DIRECTIONS, flows, imported_rates, throughput, totals
from ktrxer.statistics.throughput import Windows
from ktrxer.store import Run
from ktrxer.store import Series as Stored

# ------------------------------------------------------------------------------------------------------------------- boxes


def box(key: str, title: str, label: str, unit: str, found: Sequence[tuple[str, str, palette.Look, Floats]], note: str) -> Panel | None:
    """Boxes from (key, name, look, values): a line from the 1st to the 99th percentile, a box between the quartiles, and the median."""
    drawn: list[Series] = []
    names: list[str] = []
    for k, name, (color, _), y in found:
        if (quantiles := five(y)) is not None:
            hint = f"{np.count_nonzero(~np.isnan(y)):,} samples"
            drawn.append(Series(k, name, "box", np.full(5, float(len(names))), quantiles, color, width=1.5, hint=hint))
            names.append(name)
    if not drawn:
        return None
    notes = ("Box: p25 to p75, with p50. Line: p1 to p99.", note)
    across = Axis("", "", zero=False, names=tuple(names))
    return Panel(key, title, across, Axis(label, unit), tuple(drawn), link="", notes=tuple(filter(None, notes)))


def box_throughput(run: Run) -> Panel | None:
    parts = {direction: flows(run, direction) for direction in ("down", "up")}
    rates = {direction: _loaded_rate(run, found.total) for direction, found in parts.items() if found is not None}
    if not rates:
        return None
    scale, unit = unit_of(list(rates.values()), BITS)
    found = [(f"{d} sum", f"{DIRECTIONS[d].lower()} sum", (palette.DIRECTIONS[d], ()), rate / scale) for d, rate in rates.items()]
    return box("box-throughput", "Total throughput under load", "Throughput", unit, found, "")


def _loaded_rate(run: Run, windows: Windows) -> Floats:
    load = run.meta.phase("load")
    rate = windows.rate_bps()
    if load is None:
        return rate
    return rate[(windows.edges_ns[:-1] >= load.from_ns) & (windows.edges_ns[1:] <= load.to_ns)]


def box_latency(run: Run) -> Panel | None:
    probes = probes_of(latencies(run), run, "rtt_ns")
    if not probes:
        return None
    phases = run.meta.phase("load") is not None
    parts = [split_by_load(run, arrays["t_ns"], value)[1 if phases else 0] for _, arrays, value in probes]
    scale, unit = unit_of(parts, DELAYS)
    looks = looks_of([series for series, _, _ in probes])
    found = [
        (key_of(series), label_of(series), look, part / scale) for (series, _, _), look, part in zip(probes, looks, parts, strict=True)
    ]
    title = "Round-trip time under load" if phases else "Round-trip time"
    return box("box-latency", title, "Round trip", unit, found, "Lost probes have no delay and are left out.")


# ------------------------------------------------------------------------------------------------------------------ others


def others(run: Run) -> list[Panel]:
    """One panel for each unit of the values that no other panel shows."""
    shown = set()
    for panel in (imported_rates(run, "up"), imported_rates(run, "down"), latency(run)):
        shown |= {series.key for series in panel.series} if panel is not None else set()
    groups: dict[tuple[str, str], list[Stored]] = {}
    for series in run.meta.of_kind("value"):
        if key_of(series) not in shown:
            groups.setdefault((series.group or series.name.split("::")[0], series.unit), []).append(series)
    made = [values(run, f"value-{i}", group, found, "Value") for i, ((group, _), found) in enumerate(groups.items())]
    return [panel for panel in made if panel is not None]


Maker = Callable[[Run], Panel | None]

MAKERS: dict[str, Maker] = {
    "download": lambda run: throughput(run, "down"),
    "upload": lambda run: throughput(run, "up"),
    "totals": totals,
    "latency": latency,
    "one_way_up": lambda run: one_way(run, "up"),
    "one_way_down": lambda run: one_way(run, "down"),
    "host_queues": host_queues,
    "latency_cdf": latency_cdf,
    "box_throughput": box_throughput,
    "box_latency": box_latency,
    "lateness": lateness,
    "cwnd": cwnd,
    "tcp_rtt": tcp_rtt,
    "delivery": delivery,
    "retransmits": retransmits,
    "queue": queue,
    "drops": drops,
    "host": host,
}

__all__ = ["MAKERS", "TIME", "Maker", "bands", "flows", "others", "split_by_load", "throughput"]
