# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures as data-frame expressions: two engines that share no code give the figures of `ktrxer compare`."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pytest
from ktrxer.analyse import dataset, frames
from ktrxer.analyse.compare import compare
from ktrxer.analyse.figures import of_run
from ktrxer.analyse.grouping import Group
from ktrxer.commands.opening import open_any
from ktrxer.store import StoreError, open_run
from ktrxer.store.columns import LOST
from ktrxer.store.writer import write_finished
from synthetic import synthetic

pytestmark = pytest.mark.slow

ENGINES = {"DuckDB": lambda: ibis.duckdb.connect(), "DataFusion": lambda: ibis.datafusion.connect()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Whole runs, and runs of which a figure has an exception: a flow with a gap, a restarted counter, a phase whose probes are all lost, mostly lost
    probes under load, times that occur twice."""
    place = tmp_path_factory.mktemp("runs")
    for i in range(6):
        synthetic(place, seconds=10, delay=2, seed=i, title="ab"[i % 2], name=f"r{i}", depth_ms=60 + 30 * (i % 2), icmp_more_ms=i)

    def change(name: str, kind: str, how) -> None:
        path = place / f"{name}.ktrxer"
        run = open_run(path)
        tables = {one: run.table(one) for one in run.kinds()}
        tables[kind] = how(tables[kind])
        write_finished(path, replace(run.meta, title=f"odd {name}"), tables, place / ".edited.tmp")

    def lost(table: pa.Table, begin: float, end: float) -> pa.Table:
        t = table.column("t_ns").to_numpy() / 1e9
        inside = (t >= begin) & (t < end) & (np.arange(len(t)) % 3 > 0)
        state = np.where(inside, LOST, table.column("state").to_numpy()).astype(np.uint8)
        table = table.set_column(table.schema.get_field_index("state"), table.schema.field("state"), pa.array(state))
        return table.set_column(table.schema.get_field_index("rtt_ns"), table.schema.field("rtt_ns"),
                                pa.array([None if gone else value for gone, value in zip(inside, table.column("rtt_ns").to_pylist())], pa.int64()))

    for name in ("gap", "restart", "lossy", "silent"):
        synthetic(place, seconds=10, delay=2, seed=len(name), title=name, name=name)
    first = min(one.id for one in open_run(place / "gap.ktrxer").meta.of_kind("bytes"))
    change("gap", "bytes", lambda table: table.filter(~((table.column("series").to_numpy() == first) & (np.abs(table.column("t_ns").to_numpy() - 5e9) < 1.5e9))))
    change("restart", "bytes", restarted)
    change("lossy", "latency", lambda table: lost(table, 2, 8))
    change("silent", "latency", lambda table: table.filter(table.column("t_ns").to_numpy() >= 2 * 10**9))
    return place


def restarted(table: pa.Table) -> pa.Table:
    counts = table.column("bytes").to_numpy().copy()
    late = (table.column("series").to_numpy() == table.column("series")[0].as_py()) & (table.column("t_ns").to_numpy() > 5 * 10**9)
    counts[late] -= counts[late].min()
    return table.set_column(table.schema.get_field_index("bytes"), table.schema.field("bytes"), pa.array(counts))


@pytest.fixture(scope="module")
def whole(runs, tmp_path_factory):
    to = tmp_path_factory.mktemp("set") / "set"
    dataset.write(sorted(runs.glob("*.ktrxer")), open_any, to)
    return to


@pytest.fixture(params=ENGINES)
def tables(request, whole):
    return frames.open_tables(ENGINES[request.param](), whole)


def test_the_figures_of_each_engine_are_those_of_the_summary(runs, tables):
    found: dict[str, dict[str, float]] = {}
    for row in tables.figures().to_pyarrow().to_pylist():
        assert row["figure"] not in found.setdefault(row["run"], {}), "one value of each figure"
        found[row["run"]][row["figure"]] = math.inf if row["lost"] else row["value"]
    for path in runs.glob("*.ktrxer"):
        expected = {one.key: one.value for one in of_run(open_run(path)) if one.key not in ("added", "rpm")}
        assert found[path.name.removesuffix(".ktrxer")] == pytest.approx(expected, rel=1e-9), path.name
    assert math.inf in found["lossy"].values()
    assert not {"rate.tcp_upload", "rate.tcp_totals"} & found["gap"].keys()


def test_a_comparison_from_each_engine_is_that_of_the_files(runs, tables):
    members = {member.name: member for member in frames.members(tables)}
    groups = [Group(name, [members[f"r{i}"] for i in range(first, 6, 2)]) for name, first in (("a", 0), ("b", 1))]
    known = {one.key: one for one in of_run(open_run(runs / "r0.ktrxer")) if one.key not in ("added", "rpm")}
    rows = {row.figure.key: row for row in compare(*groups, known).rows}
    for key in known:
        values = [[next(one.value for one in of_run(open_run(runs / f"r{i}.ktrxer")) if one.key == key) for i in range(first, 6, 2)] for first in (0, 1)]
        assert rows[key].values_a == pytest.approx(values[0], rel=1e-9) and rows[key].values_b == pytest.approx(values[1], rel=1e-9)
        assert rows[key].found.difference == pytest.approx(np.mean(values[1]) - np.mean(values[0]), rel=1e-6, abs=1e-9)


def test_means_of_groups(tables, runs):
    found = {(row["title"], row["figure"]): row for row in tables.differences("title").to_pyarrow().to_pylist()}
    values = [next(one.value for one in of_run(open_run(runs / f"r{i}.ktrxer")) if one.key == "udp.rtt.load.p95") for i in (0, 2, 4)]
    row = found["a", "udp.rtt.load.p95"]
    assert (row["runs"], row["infinite"]) == (3, 0)
    assert row["mean"] == pytest.approx(np.mean(values)) and row["deviation"] == pytest.approx(np.std(values, ddof=1))
    lossy = found["odd lossy", "icmp.rtt.load.p95"]
    assert lossy["infinite"] == 1 and lossy["mean"] is None


def test_a_directory_that_is_no_data_set_is_refused(tmp_path):
    with pytest.raises(StoreError, match="not a data set: `ktrxer runs --parquet` makes one"):
        frames.open_tables(None, Path(tmp_path))
