# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ends of `ktrxer run` before its time: its output is closed, and Ctrl-C while its file is closed."""

import json
import signal
import time

import pytest
from ktrxer.store import open_run
from test_run import children_of, command, fake, gone, runs, wait_for_part

__all__ = ["fake", "runs"]


@pytest.mark.slow
def test_a_closed_output_ends_the_run_and_closes_its_file(fake, runs):
    """As of `ktrxer run --jsonl | head -1`."""
    child = command(fake, runs, "rrul", "--for", "60", "--delay", "0.1", "--jsonl")
    assert json.loads(child.stdout.readline())["type"] == "start"
    wait_for_part(runs, 20)
    processes = children_of(child.pid)
    child.stdout.close()
    assert child.wait(timeout=30) == 141 and not child.stderr.read() and gone(processes)
    (path,) = runs.iterdir()
    assert any("the run was stopped by an output that cannot be written (Broken pipe) after " in reason for reason in open_run(path).meta.sentences)


@pytest.mark.slow
def test_ctrl_c_before_the_first_probe_is_no_early_end(fake, runs):
    """The plan of a process whose time has not come ends with the run."""
    child = command(fake, runs, "rrul", "--for", "60", "--delay", "5")
    for _ in range(3000):
        if [*runs.glob("*.part")] and children_of(child.pid):
            break
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    (path,) = runs.iterdir()
    assert any("stopped by Ctrl-C" in reason for reason in open_run(path).meta.sentences), (out, err)
    assert not [reason for reason in open_run(path).meta.sentences if "before its time" in reason], open_run(path).meta.sentences


@pytest.mark.slow
def test_ctrl_c_while_the_file_is_closed_names_what_can_be_recovered(fake, runs, monkeypatch, capsys):
    from ktrxer.cli import main
    from ktrxer.run import session

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "closed", stopped)
    monkeypatch.setenv("KTRXER_BIN", fake())
    code = main(["run", "ping", "-H", "localhost", "-D", str(runs), "--for", "0.2", "--delay", "0", "--no-extras"])
    (part,) = runs.iterdir()
    assert code == 130 and capsys.readouterr().err == f"ktrxer run: {part}: stopped before the file was closed; `ktrxer recover {part}` closes it\n"
