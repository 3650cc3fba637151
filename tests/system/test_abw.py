# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer abw` between two hosts: counts, schemas and refused options. Figures need shaped links and cross traffic of a known
rate: tests/virtual/test_abw.py.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves
   fd00:77::1                    fd00:77::2
"""

import json
import signal

import pytest
from clients import client
from flows import secret
from recorded import wrong


@pytest.fixture
def abw(ktrxer, token):
    return client(ktrxer, "abw", token=token)


@pytest.mark.parametrize("address", ["address", "address6"])
def test_the_steps_and_the_load_of_a_direction(shared_pair, abw, serve, token, address):
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = abw(a, getattr(b, address), "--direction", "down", "--jsonl")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong(objects)
    end, steps = objects[-1], [one for one in objects if one.get("kind") == "abw_step"]
    assert "up" not in end and len(steps) == end["down"]["steps"] >= 1, end
    assert steps[0]["step"] == "back_to_back" and {step["direction"] for step in steps} == {"down"}
    assert all(step["arrived"] <= step["sent"] <= step["trains"] * step["packets"] for step in steps)
    assert end["down"]["probes"] == sum(step["trains"] * step["packets"] for step in steps)
    assert end["down"]["probe_bytes"] == sum(step["trains"] * step["packets"] * step["ip_bytes"] for step in steps)
    assert end["down"]["load_bit_s"] == pytest.approx(end["down"]["probe_bytes"] * 8e9 / end["down"]["lasted_ns"], abs=1)
    # Between two namespaces no link spreads back-to-back packets: there is no range, or one with a capacity.
    assert (end["down"]["available_bit_s"] is None) == (end["down"]["reading"] not in ("resolved", "not_converged"))
    assert done.returncode == (0 if end["verdict"] == "valid" else 1)


def test_text(shared_pair, abw, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = abw(a, b.address, "--direction", "up", "--payload", 1000)
    assert "packets of 1028 bytes" in done.stdout and "up: " in done.stdout and " a load of " in done.stdout, done.stdout
    assert "down:" not in done.stdout and "verdict: " in done.stdout


def test_without_a_range_a_stopped_measurement_is_invalid(shared_pair, ktrxer, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)
    process = a.popen([ktrxer, "abw", b.address, "--token-file", token, "--max-load", "100k", "--jsonl"])
    assert json.loads(process.stdout.readline())["type"] == "start"
    process.send_signal(signal.SIGINT)
    end = json.loads(process.communicate(timeout=30)[0].splitlines()[-1])
    assert "up" not in end and end["verdict"] == "invalid" and process.returncode == 1, end
    assert "up: it was stopped before the range was known" in [one["text"] for one in end["reasons"]], end


def test_what_is_refused(shared_pair, abw, serve, token, tmp_path):
    a, b = shared_pair
    assert "nothing listens on TCP port 8620" in abw(a, b.address, status=1).stderr
    serve(b, "--token-file", token)
    other = secret(tmp_path / "other", "another token that is long enough")
    assert "token" in abw(a, b.address, token=other, status=1).stderr
    assert "--payload" in abw(a, b.address, "--payload", 8000, status=2).stderr
    assert "--payload" in abw(a, b.address, "--payload", 100, status=2).stderr
    assert "--max-load" in abw(a, b.address, "--max-load", 1, status=2).stderr
    assert "auto" in abw(a, b.address, "--method", "spruce", status=2).stderr


def test_a_server_without_flows(shared_pair, abw, serve):
    a, b = shared_pair
    serve(b, "--max-clients", 0)
    assert "nothing listens on TCP port 8620" in abw(a, b.address, status=1).stderr
