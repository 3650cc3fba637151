# SPDX-License-Identifier: MIT OR Apache-2.0
"""examples/regression: the commands of its workflow file, for a change without an effect and for one that makes the delay worse."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from guests import KTRXER, ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "examples" / "regression"
BATCHES_S = 900


def step(name: str) -> list[list[str]]:
    """The commands `ktrxer ...` of a step of the workflow."""
    text = (FOLDER / "workflow.yml").read_text()
    block = re.search(rf"- name: {name}\n(?: +if: .*\n)?(?: +run: \|\n)((?: {{10}}.*\n)+)", text)
    assert block
    lines = [shlex.split(line) for line in block[1].replace("\\\n", " ").splitlines()]
    return [words[1:-2] if words[-2:] == ["||", "true"] else words[1:] for words in lines if words[0] == "ktrxer"]


def environment() -> dict[str, str]:
    return os.environ | {"KTRXER_BIN": str(KTRXER), "PYTHONPATH": str(ROOT / "python")}


def ktrxer(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ktrxer", *words]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=200, check=False)


def failures(file: Path) -> list[str]:
    return [case.get("name", "") for case in ElementTree.parse(file).getroot() if case.find("failure") is not None]


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkouts and the runs of a base and of a change, whose queue is a long FIFO. Both batches run at the same time. The
    limit of a test does not count here, because it is for a test that hangs: six runs in virtual time take minutes."""
    folder = tmp_path_factory.mktemp("regression")
    for name in ("base", "change"):
        shutil.copytree(FOLDER, folder / name)
        runs = folder / name / "runs.toml"
        runs.write_text(runs.read_text().replace('"8s"', '"4s"').replace("repetitions = 5", "repetitions = 3"))
    net = folder / "change" / "net.toml"
    net.write_text(net.read_text().replace("fq_codel limit 1000", "pfifo limit 50"))
    batches = []
    for words in step("runs"):
        command = [sys.executable, "-m", "ktrxer", *words]
        batches.append(subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    assert len(batches) == 2
    try:
        printed = [batch.communicate(timeout=BATCHES_S)[0] for batch in batches]
    finally:
        for batch in batches:
            if batch.poll() is None:  # as Ctrl-C does: the batch ends its guests itself
                batch.send_signal(signal.SIGINT)
                batch.wait(60)
    assert all("3 runs in " in text for text in printed), printed
    return folder


def test_a_worse_delay_fails(commits: Path) -> None:
    (compare,) = step("compare")
    worse = ktrxer(commits, compare)
    assert worse.returncode == 3, worse.stdout + worse.stderr
    assert failures(commits / "regression.xml") == ["ICMP round trip, loaded, p95"]
    assert "**not shown**" in (commits / "regression.md").read_text()


def test_the_page_has_both_groups(commits: Path) -> None:
    (page,) = step("pages")
    done = ktrxer(commits, page)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "change against base: 3 and 3 runs" in (commits / "regression.html").read_text()


def test_a_change_without_an_effect_passes(commits: Path, tmp_path: Path) -> None:
    """Its seed is that of the base, so its runs are the same: those of the base stand for them."""
    for name in ("base", "change"):
        shutil.copytree(commits / "base", tmp_path / name)
    (compare,) = step("compare")
    held = ktrxer(tmp_path, compare)
    assert held.returncode == 0, held.stdout + held.stderr
    assert failures(tmp_path / "regression.xml") == []
