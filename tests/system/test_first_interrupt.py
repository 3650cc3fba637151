# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ctrl-C while a command starts: silence, and an end by SIGINT or with status 130, in both halves."""

import signal
import subprocess
import time

import pytest
from programs import KTRXER, run

DELAYS_MS = (0, 5, 10, 20, 40, 80, 100)
PYTHON = (
    ["batch", "--help"], ["check", "--server", "localhost"], ["compare", "--help"], ["export", "--help"], ["import", "--help"],
    ["lab", "run", "access", "--", "sleep", "9"], ["new", "--help"], ["plot", "--help"], ["query", "SELECT 1"], ["recover", "--help"],
    ["report", "--help"], ["run", "ping", "-H", "localhost"], ["runs", "."], ["serve-http", "--help"], ["summary", "--help"], ["tests"],
    ["truth", "--list"], ["view", "--help"],
)  # fmt: skip


def interrupted(words, delay_ms, folder):
    child = subprocess.Popen([KTRXER, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    time.sleep(delay_ms / 1000)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    return child.returncode, err


@pytest.mark.parametrize("words", PYTHON, ids=lambda words: words[0])
def test_an_interrupt_at_the_start_of_the_python_half_is_silent(words, tmp_path):
    if "  run " not in run(KTRXER, "--help").stdout:
        pytest.skip("this build has no Python part")
    for delay_ms in DELAYS_MS:
        status, err = interrupted(words, delay_ms, tmp_path)
        # A command without work may have ended before.
        assert status in (-signal.SIGINT, 130) or (status == 0 and delay_ms), (delay_ms, status, err)
        assert err == "", (delay_ms, status, err)


def test_an_ignored_interrupt_stays_ignored(tmp_path):
    """As of a background job of a shell script."""
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", KTRXER, "tests"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for _ in range(20):
        time.sleep(0.01)
        child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0 and "rrul" in out and err == ""
