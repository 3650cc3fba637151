# SPDX-License-Identifier: MIT OR Apache-2.0
"""docs/tutorial/flent-paper.md: its batch, with one short repetition, and each of its pictures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from guests import KTRXER, ROOT

PAGE = ROOT / "docs" / "tutorial" / "flent-paper.md"
BATCH_S = 1800


def environment(folder: Path) -> dict[str, str]:
    """With a `ktrxer` that is that of this tree."""
    program = folder / "bin" / "ktrxer"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ktrxer "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "KTRXER_BIN": str(KTRXER), "PYTHONPATH": str(ROOT / "python")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("paper")
    shutil.copytree(ROOT / "examples" / "flent-paper", folder, dirs_exist_ok=True)
    file = folder / "showcase.toml"
    text = file.read_text()
    for old, new in (("repetitions = 30", "repetitions = 1"), ('length = "30s"', 'length = "5s"'), ('length = "20s"', 'length = "3s"')):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    words = environment(folder)
    done = subprocess.run(["ktrxer", "batch", file.name], cwd=folder, env=words, capture_output=True, text=True, timeout=BATCH_S, check=False)
    assert "17 runs in 17 tries: 17 valid" in done.stdout, done.stdout + done.stderr
    return folder, words


@pytest.mark.slow
def test_each_picture_is_drawn(runs: tuple[Path, dict[str, str]]) -> None:
    folder, words = runs
    commands = re.findall(r"^ktrxer plot .*? -o (\S+)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) == 6
    for line in re.findall(r"^ktrxer plot .*$", PAGE.read_text(), re.MULTILINE):
        done = subprocess.run(["sh", "-c", line], cwd=folder, env=words, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in commands)
