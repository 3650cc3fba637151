# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab leaves no temporary files, also when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from ktrxer_lab import scratch

HOLD = """
import sys
from ktrxer_lab import scratch
with scratch.folder() as made:
    (made / "large").write_text("x")
    print(made, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_next_takes_away_what_the_killed_has_left(place: Path) -> None:
    environment = os.environ | {"TMPDIR": str(place)}
    holder = subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout
        left = Path(holder.stdout.readline().strip())
        with scratch.folder() as mine:
            assert (left / "large").exists(), "its maker lives"
            assert mine.is_dir() and mine != left
        assert not mine.exists()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    assert left.exists()
    with scratch.folder():
        assert not left.exists()


def test_what_says_nothing_of_its_maker_is_taken_when_it_is_old(place: Path) -> None:
    young, old, file, other = (place / name for name in (f"{scratch.PREFIX}a", f"{scratch.PREFIX}b", f"{scratch.PREFIX}c.tar", "ktrxer-else"))
    for folder in (young, old, other):
        folder.mkdir()
    file.touch()
    link = place / f"{scratch.PREFIX}d"
    link.symlink_to(other)
    for path in (old, file, other):
        os.utime(path, (1, 1))
    scratch.sweep(place)
    assert sorted(path.name for path in place.iterdir()) == ["ktrxer-else", f"{scratch.PREFIX}a", f"{scratch.PREFIX}d"]
