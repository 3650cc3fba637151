# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run --ping-host` with hosts that do not answer: the run goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from flows import secret

pytest.importorskip("pyarrow", reason="the Python part's packages are not installed: `make .venv/.ok`")

from ktrxer.store import open_run

ROOT = Path(__file__).resolve().parents[2]
DEAD, DYING = "10.99.99.1", "10.99.99.2"


@pytest.mark.plain_build
@pytest.mark.parametrize("dead", [DEAD, DYING])
def test_a_dead_host_beside_the_far_end_does_not_end_the_run(pair, ktrxer, serve, tmp_path, dead):
    """DEAD never answers; DYING answers before the run, and no longer in it."""
    a, b = pair
    token = secret(tmp_path / "token")
    serve(b, "--token-file", token)
    a.run(["ip", "route", "add", "10.99.99.0/24", "via", b.address])
    b.run(["ip", "address", "add", f"{DYING}/32", "dev", "lo"])
    environment = os.environ | {"KTRXER_BIN": str(ktrxer), "PYTHONPATH": str(ROOT / "python")}
    words = ["tcp_1up", "-H", b.address, "--ping-host", dead, "--ping-host", f"{dead},EF", "--for", "2", "--delay", "1", "--timeout", "1"]
    command = [sys.executable, "-m", "ktrxer", "run", *words, "--no-extras", "--token-file", str(token), "--json"]
    if dead == DYING:
        # The address goes when the first file of the run is there: after the trial, in the run.
        watch = "while ! ls *.ktrxer.part >/dev/null 2>&1; do sleep 0.05; done; sleep 1"
        watcher = subprocess.Popen(["sh", "-c", watch], cwd=tmp_path)
        with a.popen(command, env=environment, cwd=tmp_path) as run:
            watcher.wait(20)
            b.run(["ip", "address", "del", f"{DYING}/32", "dev", "lo"])
            out, said = run.communicate(timeout=60)
    else:
        done = a.run(command, env=environment, cwd=tmp_path, check=False, timeout=60)
        out, said = done.stdout, done.stderr
    assert out, said
    made = json.loads(out)
    names = {f"Ping (ms) ICMP {dead}{mark} (extra)" for mark in ("", " EF")}
    assert made["verdict"] == "degraded", made["reasons"]
    assert {name for reason in made["reasons"] for name in reason.get("names", [])} >= names
    stored = open_run(tmp_path / made["file"])
    there = {series.name for series in stored.meta.of_kind("latency")}
    assert there == {"Ping (ms) ICMP"} | (names if dead == DYING else set())
    (far,) = [series for series in stored.meta.of_kind("latency") if series.name == "Ping (ms) ICMP"]
    assert (stored.arrays(far)["state"] == 0).mean() > 0.9
