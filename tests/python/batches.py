# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batches whose runs are copies: tests/python/fake_run.py makes each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from ktrxer.store import RunWriter
from ktrxer.store.columns import ANSWERED
from synthetic import describe

HERE = Path(__file__).parent
BASE = """
seed = 7
[run]
test = "ping"
host = "far.example"
length = "1s"
title = "valid"
"""


def written(folder: Path, text: str, name: str = "b.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture(name="templates", scope="module")
def templates_fixture(tmp_path_factory):
    """Five runs whose delays differ."""
    folder = tmp_path_factory.mktemp("templates")
    for number in range(5):
        meta = describe(3, 1, "")
        series = meta.of_kind("latency")[1]
        rtt = 10**7 + 10**5 * number
        writer = RunWriter(folder, meta, str(number))
        writer.append("latency", {
            "series": [series.id] * 300, "t_ns": [10**7 * i for i in range(300)], "seq": list(range(300)), "state": [ANSWERED] * 300,
            "rtt_ns": [rtt * (3 if 100 <= i < 200 else 1) for i in range(300)], "lateness_ns": [1000] * 300,
        })  # fmt: skip
        writer.finish()
    return folder


@pytest.fixture(name="fake")
def fake_fixture(monkeypatch, templates):
    """Each `ktrxer run` is tests/python/fake_run.py."""
    monkeypatch.setenv("KTRXER_BIN", str(HERE / "fake_run.py"))
    monkeypatch.setenv("FAKE_RUNS", str(templates))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parents[1] / "python")]))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def calls(folder: Path) -> list[str]:
    path = folder / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []
