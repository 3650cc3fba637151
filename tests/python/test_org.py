# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer export --format org`: the table of Flent's formatter org_table."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ktrxer.cli import main
from ktrxer.exchange import org
from synthetic import synthetic

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-flent/bin/python"


def columns(text: str) -> dict[str, list[str]]:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if not line.startswith("|-")]
    return {name: list(values) for name, *values in zip(*rows, strict=True)}


def test_cells() -> None:
    made = org.table("a|b", [0, 0.2], {"up": [1, None], "down": [2.345, -1]})
    assert made == "| a\\vert{}b | up | down |\n|-----------+----+------|\n| 0.00 | 1.00 | 2.35 |\n| 0.20 |  | -1.00 |\n"
    assert org.table("x\ny", [], {}).count("\n") == 2, "a name is one line"


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = synthetic(tmp_path, seconds=4, delay=0.5)
    assert main(["export", str(run), "--format", "org", "-o", str(tmp_path / "a.org")]) == 0
    assert main(["export", str(run), "--format", "org", "-o", str(tmp_path / "a.org")]) == 1 and "exists already" in capsys.readouterr().err
    assert main(["export", str(run), "--format", "org", "-D", str(tmp_path)]) == 0
    assert (tmp_path / f"{run.stem}.org").read_text() == (tmp_path / "a.org").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="Flent is not installed in .venv-flent: `make .venv-flent/.ok` does it")
def test_the_table_is_that_of_the_real_flent(tmp_path: Path) -> None:
    """Column by column, because Flent's order of columns differs from one start to the next."""
    run = synthetic(tmp_path, seconds=6, delay=0.5)
    for words in (["-o", str(tmp_path / "a.flent.gz")], ["--format", "org", "-o", str(tmp_path / "a.org")]):
        assert main(["export", str(run), *words]) == 0
    command = [PYTHON, ROOT / "tests/python/flent_stats.py", "--org", tmp_path / "b.org", tmp_path / "a.flent.gz"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (text,) = json.loads(done.stdout.splitlines()[-1]).values()
    theirs = {name: ["" if cell == "None" else cell for cell in cells] for name, cells in columns(text).items()}
    ours = columns((tmp_path / "a.org").read_text())
    assert ours.keys() >= theirs.keys() and {name: ours[name] for name in theirs} == theirs and len(theirs) > 3
