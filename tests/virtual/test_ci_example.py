# SPDX-License-Identifier: MIT OR Apache-2.0
"""examples/ci: the command of its workflow file, as a repository would run it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import pytest
from guests import ROOT, Lab

pytestmark = pytest.mark.slow

FOLDER = ROOT / "examples" / "ci"


def words_of_the_workflow() -> list[str]:
    """The command `ktrxer ...` of the step `test`."""
    text = (FOLDER / "workflow.yml").read_text()
    block = re.search(r"- name: test\n +run: \|\n((?: {10}.*\n)+)", text)
    assert block
    words = shlex.split(block[1].replace("\\\n", " "))
    assert words[:2] == ["ktrxer", "lab"]
    return words[2:]


@pytest.fixture
def repository(lab: Lab) -> Lab:
    shutil.copytree(FOLDER, lab.folder, dirs_exist_ok=True)
    program = ROOT / "build" / "cli" / "ktrxer"
    lab.environment["PATH"] = os.pathsep.join((str(program.parent), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    return lab


def test_the_workflow_passes_and_leaves_a_capture(repository: Lab) -> None:
    if shutil.which("tcpdump", path=repository.environment["PATH"]) is None:
        pytest.skip("there is no tcpdump: make setup")
    ready = repository("setup", "--device", "uml")
    assert ready.returncode == 0, ready.stderr
    begun = time.time()
    done = repository(*words_of_the_workflow())
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = re.findall(r"^500000 bytes in .*$", done.stdout, re.MULTILINE)
    seconds, repeated = re.fullmatch(r"500000 bytes in ([0-9.]+) s, ([0-9]+) packets repeated", line).groups()  # type: ignore[union-attr]
    assert 1.0 < float(seconds) < 8 and int(repeated) >= 3, "the link loses packets"
    packets = subprocess.run(
        ["tcpdump", "-tt", "-n", "-r", "link.pcapng"], cwd=repository.folder, capture_output=True, text=True, check=True
    )
    times = [float(one.split()[0]) for one in packets.stdout.splitlines() if "UDP" in one]
    assert len(times) > 350 and begun - 60 < times[0] < times[-1]
    assert times[-1] - times[0] == pytest.approx(float(seconds), abs=0.3), "the capture has the guest's clock"
    again = repository(*words_of_the_workflow())
    assert again.stdout == done.stdout, "another run with the same seed"


def test_a_test_that_fails_fails_the_step(repository: Lab) -> None:
    (repository.folder / "Makefile").write_text("test:\n\t@echo by intent; exit 3\n")
    done = repository("run", "./net.toml", "--time", "virtual", "--", "make", "test")
    assert done.returncode == 2 and "by intent" in done.stdout, "make says 2"


def test_without_its_server_the_test_ends_by_the_limit(repository: Lab) -> None:
    words = ["run", "./net.toml", "--time", "virtual", "--timeout", "30s", "--", sys.executable, "transfer.py", "send", "server", "5000"]
    done = repository(*words)
    assert done.returncode in (1, 124), done.stderr
