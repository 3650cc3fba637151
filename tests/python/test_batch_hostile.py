# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batches among files of other users: links in the directory of the results, and batch files of another user."""

from __future__ import annotations

import os

import pytest
from ktrxer.commands import batch as command

BASE = """
[run]
test = "ping"
host = "far.example"
length = "1s"
"""


@pytest.mark.parametrize("log", ["b.log", "b.logs/00001-0001-try1.log"])
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_a_log_is_no_link_and_no_pipe(tmp_path, monkeypatch, capsys, log, kind):
    """In a directory that others may write to, a link would lead to any file of the user."""
    monkeypatch.setenv("KTRXER_BIN", "/bin/false")
    out, kept = tmp_path / "out", tmp_path / "kept"
    (out / "b.logs").mkdir(parents=True)
    kept.write_text("kept\n")
    if kind == "link":
        (out / log).symlink_to(kept)
    else:
        os.mkfifo(out / log)
    path = tmp_path / "b.toml"
    path.write_text("directory = 'out'\n" + BASE + "[[hooks]]\nwhen = 'first'\ncommand = 'echo here'\n")
    assert command.main([str(path)]) == 1
    said = capsys.readouterr().err
    assert f"{out / log}: " in said and "Traceback" not in said, said
    assert kept.read_text() == "kept\n"


def test_a_plan_names_the_commands_of_its_hooks(tmp_path, capsys):
    """A batch file is a program: its commands can be read before they are executed."""
    path = tmp_path / "b.toml"
    path.write_text(BASE + '[variables]\nwhere = "/x"\n[[hooks]]\nwhen = "after"\ncommand = "touch {where} \\u001b[2J"\n')
    assert command.main([str(path), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "hook, after: sh -c 'touch {where} ?[2J'" in said and "\x1b" not in said
