# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of the moment, while a run happens: one row for each group of flows and each series of probes."""

from __future__ import annotations

import statistics
from collections import defaultdict

from ktrxer.run.session import Session
from ktrxer.store.meta import Series

S, MS = 10**9, 10**6
WINDOW_NS = S  # over which the figures of the moment are


def figures(session: Session, now: int) -> list[tuple[str, float | None, str, str]]:
    """Name, value, unit, and a note."""
    groups: dict[str, list[Series]] = defaultdict(list)
    rows: list[tuple[str, float | None, str, str]] = []
    for series in session.meta.series:
        if series.kind == "bytes":
            groups[series.group or series.name].append(series)
    for name, members in groups.items():
        rates = [session.newest.get(series.id).rate_bps() for series in members]
        known = [rate for rate in rates if rate is not None]
        count = f"{len(known)} of {len(members)}" if len(known) < len(members) else f"{len(members)}"
        rows.append((name, sum(known) / 1e6 if known else None, "Mbit/s", f"{count} flow{'s' if len(members) > 1 else ''}"))
    for series in session.meta.series:
        if series.kind != "latency":
            continue
        recent = session.newest.get(series.id)
        delays = [delay for at, delay in list(recent.delays) if at > now - WINDOW_NS]
        lost = f"{recent.lost} of {recent.lost + recent.answered} lost" if recent.lost else ""
        rows.append((series.name.replace("Ping (ms)", "Ping"), statistics.median(delays) / MS if delays else None, "ms", lost))
    return rows
