# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ctrl-C while a command starts: silence, and an end by SIGINT or with status 130, in both halves."""

import os
import signal
import socket
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
NATIVE = (
    ["doctor"], ["serve"], ["ping", "localhost"], ["stamp", "localhost"], ["flow", "up", "localhost"], ["ppt", "direct", "localhost"],
    ["pair", "localhost"], ["abw", "localhost"], ["capacity", "localhost"], ["owamp", "localhost"], ["trace", "localhost"], ["tcp", "localhost"],
    ["send", "127.0.0.1", "--rate", "10"], ["recv", "--device", "lo"], ["config"], ["ping", "localhost", "--jsonl"],
)  # fmt: skip


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


@pytest.fixture(scope="module")
def server():
    """Options of clients."""
    environment = os.environ | {"KTRXER_TOKEN": "0" * 32}
    port = free_port()
    serving = subprocess.Popen([KTRXER, "serve", "--port", port], stdout=subprocess.PIPE, env=environment)
    serving.stdout.readline()
    yield ["--port", port], environment
    serving.terminate()
    serving.communicate(timeout=20)


def started(words, folder, environment=None):
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([KTRXER, *words], text=True, cwd=folder, env=environment, **pipes)


@pytest.mark.parametrize("words", PYTHON, ids=lambda words: words[0])
def test_an_interrupt_at_the_start_of_the_python_half_is_silent(words, tmp_path):
    if "  run " not in run(KTRXER, "--help").stdout:
        pytest.skip("this build has no Python part")
    for delay_ms in DELAYS_MS:
        child = started(words, tmp_path)
        time.sleep(delay_ms / 1000)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=20)
        status = child.returncode
        # A command without work may have ended before.
        assert status in (-signal.SIGINT, 130) or (status == 0 and delay_ms), (delay_ms, status, err)
        assert err == "", (delay_ms, status, err)


@pytest.mark.parametrize("words", NATIVE, ids=" ".join)
def test_an_interrupt_at_the_start_of_the_native_half_is_silent(words, server, tmp_path):
    options, environment = server
    more = options if words[0] in ("stamp", "flow", "ppt", "pair", "abw") else ["--port", free_port()] if words[0] == "serve" else []
    whole = run(KTRXER, *words) if words[0] in ("doctor", "config", "owamp", "capacity", "trace", "tcp") else None
    usual = whole and (whole.returncode, whole.stderr)
    checked = 0
    for delay_ms in (0, 2, 5, 10, 20, 40, 60, 80):
        begun = time.monotonic()
        child = started([*words, *more], tmp_path, environment)
        time.sleep(delay_ms / 1000)
        child.send_signal(signal.SIGINT)
        late = time.monotonic() - begun >= 0.1  # a busy machine
        _, err = child.communicate(timeout=20)
        # Commands without a far end may have ended before. A program that reads JSON gets an `end` for each `start`.
        ended = usual and err == usual[1] and child.returncode in (usual[0], -signal.SIGINT)
        if late or ended or ("--jsonl" in words and child.returncode in (0, 1, 3)):
            continue
        assert child.returncode in (-signal.SIGINT, 130) and err == "", (delay_ms, child.returncode, err)
        checked += 1
    assert checked or usual or "--jsonl" in words


def test_an_ignored_interrupt_stays_ignored(tmp_path):
    """As of a background job of a shell script."""
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", KTRXER, "tests"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for _ in range(20):
        time.sleep(0.01)
        child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 0 and "rrul" in out and err == ""
