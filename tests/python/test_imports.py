# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages that are not installed everywhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ktrxer.cli import main
from synthetic import synthetic


@pytest.mark.parametrize("words", [["-o", "x.pdf"], ["--all"]])
def test_without_matplotlib_a_message_names_the_command_that_installs_it(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make demo` does not install it. A plot in the terminal, a CSV file and the report do not need it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    synthetic(tmp_path, seconds=4, delay=1, name="rrul")
    assert main(["plot", "rrul.ktrxer", "--plot", "ping", "-o", "x.csv"]) == 0
    assert main(["plot", "rrul.ktrxer", "--plot", "ping", "--text"]) == 0
    assert main(["report", "rrul.ktrxer", "-o", "x.html"]) == 0
    capsys.readouterr()
    assert main(["plot", "rrul.ktrxer", *words]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "it needs the Python package matplotlib" in told and "`make .venv/.plot` in the source tree" in told
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rrul.ktrxer", "x.csv", "x.html"]
