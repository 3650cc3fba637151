# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures of many runs as data-frame expressions (ibis) over a data set (dataset.py). They run on DuckDB by default, and unchanged on
other engines of ibis that have window functions: DataFusion, ClickHouse, Spark (docs/decisions/0013-stored-runs.md).

    connection = ibis.duckdb.connect()
    t = open_tables(connection, Path("SET"))
    t.figures().execute()             # run, figure, value, lost: as `ktrxer compare` has them, quantiles of type 1
    t.differences("cc").execute()     # for each figure and value of cc: runs, mean, standard deviation

They are the quantiles of delays, the mean rates and the losses. The other figures of a summary (`added`, `rpm`, means of values) are in
figures.parquet of the data set.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis

from ktrxer.analyse.dataset import is_dataset
from ktrxer.analyse.grouping import Facts, Member
from ktrxer.figures.delays import DIRECTIONS, ROUND_TRIP
from ktrxer.statistics.throughput import FULL, gap_ns
from ktrxer.store import StoreError, columns
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP, TOO_LATE

Expr = Any  # ibis has no types that mypy could check here

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
PHASES = {"idle_before": "idle", "idle_after": "idle", "load": "load", "drain": "drain"}
_LOST = (LOST, LOST_UP, LOST_DOWN)


@dataclass(frozen=True)
class Tables:
    """The tables of a data set in one engine."""

    runs: Expr
    series: Expr
    phases: Expr
    latency: Expr | None
    bytes: Expr | None

    def figures(self) -> Expr:
        """`value` is empty where `lost` is true: the quantile is among lost probes."""
        made = [self.delays(), self.losses()] if self.latency is not None else []
        made += [self.rates()] if self.bytes is not None else []
        if not made:
            raise StoreError("the data set has neither delays nor byte counts")
        return ibis.union(*made) if len(made) > 1 else made[0]

    def _probes(self) -> Expr:
        """Each probe with the kind of its probes and its phase."""
        assert self.latency is not None
        kinds = self.series.filter(self.series.kind == "latency").select("run", "series", "protocol")
        delays = [column for _, column in DIRECTIONS]
        samples = self.latency.select("run", "series", "t_ns", "state", *delays).join(kinds, ["run", "series"])
        samples = samples.select("run", "protocol", "t_ns", "state", *delays)
        phases = self.phases.select(at="run", phase="phase", from_ns="from_ns", to_ns="to_ns")
        inside = [samples.run == phases["at"], samples.t_ns >= phases.from_ns, samples.t_ns < phases.to_ns]
        return samples.join(phases, inside).select("run", "phase", "protocol", "t_ns", "state", *delays)

    def delays(self) -> Expr:
        """The smallest value with at least that share of the values at or below it. A lost probe is above all values."""
        probes = self._probes()
        probes = probes.filter(probes.phase.isin(["idle_before", "idle_after", "load"]))
        made = []
        for name, column in DIRECTIONS:
            lost = probes.state.isin(_LOST) if name == ROUND_TRIP else ibis.literal(False)
            way = "rtt" if name == ROUND_TRIP else _word_of(name)
            value = probes[column].cast("float64") / 1e6
            rows = probes.select("run", "phase", key=_word(probes.protocol) + "." + way, lost=lost, value=value)
            made.append(rows.filter(rows.lost | rows.value.notnull()))
        rows = ibis.union(*made)
        group = ["run", "key", "phase"]
        ranked = rows.mutate(
            rank=ibis.row_number().over(group_by=group, order_by=[rows.lost, rows.value]),
            count=rows.run.count().over(group_by=group),
        )
        at = {name: ibis.greatest((ranked["count"] * share - 1e-9).ceil().cast("int64") - 1, 0) for name, share in QUANTILES.items()}
        made_of: dict[str, Expr] = {"known": ranked.value.count()}
        for name, place in at.items():
            there = ranked["rank"] == place
            made_of[name] = ranked.value.max(where=there & ~ranked.lost)
        found = ranked.group_by(group).aggregate(**made_of)
        found = found.filter(found.known > 0)
        # The idle figures come from before the load if a probe was answered there, else from after it.
        found = found.mutate(state=ibis.cases((found.phase == "load", "load"), else_="idle"))
        # The order is that of the phases: idle_before, idle_after.
        found = found.mutate(choice=ibis.row_number().over(group_by=[found.run, found.key, found.state], order_by=found.phase.desc()))
        found = found.filter(found.choice == 0)
        key = found.key + "." + found.state
        return ibis.union(*(found.select("run", figure=key + f".{q}", value=found[q], lost=found[q].isnull()) for q in QUANTILES))

    def losses(self) -> Expr:
        probes = self._probes()
        name = ibis.cases((probes.phase.isin(["idle_before", "idle_after"]), "idle"), else_=probes.phase)
        rows = probes.mutate(state_name=name)
        lost = rows.state.isin(_LOST)
        found = rows.group_by("run", "state_name").aggregate(
            sent=(lost | rows.state.isin((ANSWERED, TOO_LATE))).sum(), lost_count=lost.sum()
        )
        found = found.filter(found.sent > 0)
        share = found.lost_count.cast("float64") * 100 / found.sent
        return found.select("run", figure=ibis.literal("loss.") + found.state_name, value=share, lost=ibis.literal(False))

    def rates(self) -> Expr:
        """The mean rate of each group of flows, and of all flows if there are several groups, over the time in which the counts of all its
        flows are known. No rate if a flow has a gap or a restarted counter in that time (statistics/throughput.py)."""
        s = self.series.filter(self.series.kind == "bytes")
        group, way = ibis.coalesce(s["group"], s["name"]), ibis.coalesce(s.direction, "")
        flows = s.select("run", "series", group_name=group, way=way, gap_ns=gap_ns(s.interval_ns))
        names = flows.select("run", "group_name").distinct()
        several = names.group_by("run").aggregate(groups=names.count())
        several = several.filter(several.groups > 1).select("run")
        total = flows.semi_join(several, "run").select(*flows.columns).mutate(group_name=ibis.literal("TCP totals"))
        flows = ibis.union(flows, total)
        return self._rates(self._counts(flows), flows)

    def _counts(self, flows: Expr) -> Expr:
        """Received bytes of each flow over time; where the receiver's counts are missing, the sender's."""
        assert self.bytes is not None
        rows = self.bytes.select("run", "series", "t_ns", far="end", counted="bytes").join(flows, ["run", "series"])
        receiver = ibis.cases((rows.way == "down", 0), else_=1)
        rows = rows.select("run", "group_name", "series", "gap_ns", "t_ns", "counted", received=rows.far.cast("int64") == receiver)
        there = rows.received.cast("int64").max().over(group_by=["run", "group_name", "series"])
        rows = rows.mutate(there=there)
        rows = rows.filter(rows.received.cast("int64") == rows.there)
        return rows.group_by("run", "group_name", "series", "gap_ns", "t_ns").aggregate(counted=rows.counted.max())

    @staticmethod
    def _rates(counts: Expr, flows: Expr) -> Expr:
        ranges = counts.group_by("run", "group_name", "series")
        ranges = ranges.aggregate(begin=counts.t_ns.min(), finish=counts.t_ns.max(), samples=counts.count())
        ranges = ranges.filter(ranges.samples > 1)
        windows = ranges.group_by("run", "group_name")
        windows = windows.aggregate(begin=ranges.begin.max(), finish=ranges.finish.min(), counted_flows=ranges.count())
        all_flows = flows.group_by("run", "group_name").aggregate(all_flows=flows.count())
        names = ["run", "group_name"]
        windows = windows.join(all_flows, names).select(*names, "begin", "finish", "counted_flows", "all_flows")
        windows = windows.filter((windows.counted_flows == windows.all_flows) & (windows.finish > windows.begin))
        following = {"group_by": ["run", "group_name", "series"], "order_by": counts.t_ns}
        steps = counts.mutate(t_after=counts.t_ns.lead().over(**following), counted_after=counts.counted.lead().over(**following))
        steps = steps.filter(steps.t_after.notnull()).join(windows.select("run", "group_name", "begin", "finish"), ["run", "group_name"])
        steps = steps.select(*counts.columns, "t_after", "counted_after", "begin", "finish")
        inside = ibis.least(steps.t_after, steps.finish) - ibis.greatest(steps.t_ns, steps.begin)
        steps = steps.mutate(inside=inside)
        steps = steps.filter(steps.inside > 0)
        long = steps.t_after - steps.t_ns
        moved = (steps.counted_after - steps.counted).cast("float64") * steps.inside / long
        seen = ibis.cases((long <= steps.gap_ns, steps.inside), else_=0)
        steps = steps.mutate(moved=moved, seen=seen, fell=steps.counted_after < steps.counted)
        each = steps.group_by("run", "group_name", "series", "begin", "finish").aggregate(
            moved=steps.moved.sum(), seen=steps.seen.sum(), fell=steps.fell.cast("int64").max()
        )
        each = each.mutate(whole=(each.seen >= (each.finish - each.begin) * FULL) & (each.fell == 0))
        sums = each.group_by("run", "group_name", "begin", "finish").aggregate(moved=each.moved.sum(), whole=each.whole.cast("int64").min())
        sums = sums.filter(sums.whole == 1)
        rate = sums.moved * 8e3 / (sums.finish - sums.begin)
        return sums.select("run", figure=ibis.literal("rate.") + _word(sums.group_name), value=rate, lost=ibis.literal(False))

    def differences(self, *by: str) -> Expr:
        """The figures of groups of runs: runs, mean and standard deviation. A figure of which a run has a quantile among lost probes has no
        mean, because the others are the better runs. Intervals: `members` and analyse/compare.py."""
        found = self.figures().join(self.runs.select("run", *by), "run")
        grouped = found.group_by(*by, "figure").aggregate(
            runs=found.count(), infinite=found.lost.cast("int64").sum(), mean=found.value.mean(), deviation=found.value.std(how="sample")
        )
        empty = ibis.null("float64")
        kept = grouped.infinite == 0
        return grouped.mutate(mean=ibis.ifelse(kept, grouped["mean"], empty), deviation=ibis.ifelse(kept, grouped.deviation, empty))


def members(tables: Tables) -> list[Member]:
    """The runs with these figures, for analyse/compare.py: the resampling of whole runs needs one value of each run."""
    runs = {row["run"]: row for row in tables.runs.to_pyarrow().to_pylist()}
    made: dict[str, Member] = {}
    for name, row in runs.items():
        properties = {key: value for key, value in row.items() if key not in ("run", "reasons", "created", "verdict")}
        properties["length"] = f"{row['length_s']:g} s"
        made[name] = Member(name, Facts(row["created"], row["verdict"], [row["reasons"]] if row["reasons"] else [], False, properties))
    for row in tables.figures().to_pyarrow().to_pylist():
        made[row["run"]].figures[row["figure"]] = float("inf") if row["lost"] else row["value"]
    return list(made.values())


def open_tables(connection: Any, directory: Path) -> Tables:
    """The tables of a data set, in the engine of `connection` (an ibis backend with `read_parquet`)."""
    if not is_dataset(directory):
        raise StoreError(f"{directory}: not a data set: `ktrxer runs --parquet` makes one")

    def table(name: str) -> Expr:
        place = directory / name if name in columns.KINDS else directory / f"{name}.parquet"
        if not place.exists():
            return None
        return connection.read_parquet(f"{place}/*.parquet" if place.is_dir() else str(place), table_name=f"ktrxer_{name}")

    return Tables(*(table(name) for name in ("runs", "series", "phases", "latency", "bytes")))


def _word(text: Expr) -> Expr:
    """The word that figures.py makes of a text."""
    return text.lower().re_replace("[^a-z0-9]+", "_").re_replace("^_+|_+$", "")


def _word_of(name: str) -> str:
    return name.replace(" ", "_")
