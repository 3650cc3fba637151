# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plots of Flent's tests: each name has a specification that selects what Flent selects."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
from flent_plot_names import TESTS
from ktrxer.catalogue.table import EXPLAINED, TABLE
from ktrxer.panels import reduce
from ktrxer.panels.flent_variants import SPECS, VARIANTS, specs_of
from ktrxer.panels.groups import Combine, GroupBy
from ktrxer.panels.select import chosen
from ktrxer.panels.spec import Kind, Spec

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-flent" / "bin" / "python"

KINDS = {"timeseries": "series", "cdf": "cdf", "box": "box", "bar": "bar", "qq": "qq", "ellipsis": "ellipse", "meta": "stack", "line": "line"}
GROUPS = {"groups": "name", "groups_points": "name", "groups_concat": "name", "series": "series", "both": "both", None: None}

# Names of columns that Flent has in the raw values of a series; here they are series of their own.
OTHER_NAMES = {("dashtest", "throughput"), ("dashtest", "buffer")}
# Data sets that a test multiplies when it runs: the description of the test still has the one that is replaced.
REPLACED = {"rrul_be_nflows": {"TCP download BE", "TCP upload BE"}, "rrul_var": {"TCP download BE", "TCP upload BE"}}


def test_every_test_of_flent_has_its_plots_here() -> None:
    assert len(TESTS) == 84  # the 82 of its documentation, and two of its authors
    assert {*TABLE, *EXPLAINED} - {"l4s", "dash"} == TESTS.keys()
    missing = {(test, name) for test, names in TESTS.items() for name in names if name not in specs_of(test)}
    assert not missing
    assert sum(map(len, TESTS.values())) == 1695
    assert not [name for name in SPECS if not any(name in names for names in TESTS.values())], "no name that Flent does not have"


def test_specifications_are_consistent() -> None:
    for tests, _ in VARIANTS:
        assert tests <= set(TESTS), "a variant of a test that does not exist"
    for test in TESTS:
        for name, spec in specs_of(test).items():
            assert spec.kind in get_args(Kind) and spec.by in get_args(GroupBy) and (spec.combine is None or spec.combine in get_args(Combine))
            assert bool(spec.panels) == (spec.kind == "stack") and bool(spec.picks) != (spec.kind == "stack"), name
            assert all(part in specs_of(test) for part in spec.panels), name
            assert all(pick.reduce in reduce.NAMES and pick.axis in (1, 2) for pick in spec.picks), name
            assert spec.summary and spec.summary == spec.summary.strip()


def combined(described: dict[str, Any]) -> tuple[str, str | None]:
    kind, _, combine = described["type"].partition("_combine")
    if described["type"].endswith("_combine"):
        how = "averaged" if kind == "timeseries" else "pooled" if (kind, described["group_by"]) == ("cdf", "groups_concat") else "each"
        return KINDS[kind], how
    assert not combine
    return KINDS[described["type"]], None


def rows_of(spec: Spec, names: list[str]) -> list[list[Any]]:
    return [[name, pick.axis, pick.column, pick.smooth, pick.reduce] for pick in spec.picks for name in chosen(names, pick.data, pick.exclude)]


@pytest.mark.slow
def test_the_real_flent_selects_the_same_series() -> None:
    if not PYTHON.exists():
        pytest.skip("Flent is not installed in .venv-flent: `make .venv-flent/.ok` does it (and `make test` does)")
    done = subprocess.run([PYTHON, ROOT / "tests/python/flent_plots.py"], capture_output=True, text=True, timeout=110, check=True)
    real: dict[str, Any] = json.loads(done.stdout)
    assert {test: sorted(one["plots"]) for test, one in real.items()} == {test: sorted(names) for test, names in TESTS.items()}
    differ = []
    for test, one in real.items():
        names = [name for name in one["names"] if name not in REPLACED.get(test, ())]
        specs = specs_of(test)
        for name, described in one["plots"].items():
            spec = specs[name]
            if (spec.kind, spec.combine) != combined(described):
                differ.append((test, name, "kind", spec.kind, spec.combine))
            elif spec.kind == "stack":
                if [part for part in spec.panels if part in one["plots"]] != described["subplots"]:
                    differ.append((test, name, "panels", spec.panels, described["subplots"]))
            elif (test, name) not in OTHER_NAMES:
                if spec.combine is not None and GROUPS[described["group_by"]] not in (None, spec.by):
                    differ.append((test, name, "groups", spec.by, described["group_by"]))
                if (spec.part, spec.scaling is not None) != (described["part"], described["scaled"]):
                    differ.append((test, name, "part or scaling", spec.part, described["part"]))
                theirs, ours = (_without_sockets_of_sums(rows) for rows in (described["series"], rows_of(spec, names)))
                theirs = [row for row in theirs if row[0] in names]  # a series of a data set with several is not in its list
                if spec.combine != "each":  # Flent's plots without one number for each run have no reducer
                    theirs, ours = [row[:4] for row in theirs], [row[:4] for row in ours]
                if sorted(theirs) != sorted(ours):
                    differ.append((test, name, "series", theirs[:4], ours[:4]))
    assert differ == []


def _without_sockets_of_sums(rows: list[list[Any]]) -> list[list[Any]]:
    """A sum has no socket, and so no columns of one."""
    return [row for row in rows if not (row[2].startswith("tcp_") and any(word in row[0] for word in (" sum", " avg", "totals", " total", "fairness")))]
