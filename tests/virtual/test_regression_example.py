# SPDX-License-Identifier: MIT OR Apache-2.0
"""examples/regression: the commands of its workflow file, for a change without an effect and for one that makes the delay worse."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from guests import ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "examples" / "regression"


def step(name: str) -> list[list[str]]:
    """The commands `ktrxer ...` of a step of the workflow."""
    text = (FOLDER / "workflow.yml").read_text()
    block = re.search(rf"- name: {name}\n(?: +if: .*\n)?(?: +run: \|\n)((?: {{10}}.*\n)+)", text)
    assert block
    lines = [shlex.split(line) for line in block[1].replace("\\\n", " ").splitlines()]
    return [words[1:-2] if words[-2:] == ["||", "true"] else words[1:] for words in lines if words[0] == "ktrxer"]


def ktrxer(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"KTRXER_BIN": str(ROOT / "build" / "cli" / "ktrxer")}
    return subprocess.run([sys.executable, "-m", "ktrxer", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)


def failures(file: Path) -> list[str]:
    return [case.get("name", "") for case in ElementTree.parse(file).getroot() if case.find("failure") is not None]


def test_the_workflow_passes_without_an_effect_and_fails_where_the_delay_is_worse(tmp_path: Path) -> None:
    for name in ("base", "change"):
        shutil.copytree(FOLDER, tmp_path / name)
        runs = tmp_path / name / "runs.toml"
        runs.write_text(runs.read_text().replace('"8s"', '"4s"').replace("repetitions = 5", "repetitions = 3"))
    net = tmp_path / "change" / "net.toml"
    net.write_text(net.read_text().replace("fq_codel limit 1000", "pfifo limit 50"))
    for words in step("runs"):
        done = ktrxer(tmp_path, words)
        assert "3 runs in " in done.stdout, done.stderr
    (compare,) = step("compare")
    worse = ktrxer(tmp_path, compare)
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert failures(tmp_path / "regression.xml") == ["ICMP round trip, loaded, p95"]
    assert "**not shown**" in (tmp_path / "regression.md").read_text()
    (page,) = step("pages")
    assert ktrxer(tmp_path, page).returncode == 0
    assert "change against base: 3 and 3 runs" in (tmp_path / "regression.html").read_text()
    # The same commit has the same runs, because its seed is the same.
    shutil.rmtree(tmp_path / "change" / "runs")
    shutil.copytree(tmp_path / "base" / "runs", tmp_path / "change" / "runs")
    held = ktrxer(tmp_path, compare)
    assert held.returncode == 0, held.stdout + held.stderr
    assert failures(tmp_path / "regression.xml") == []
