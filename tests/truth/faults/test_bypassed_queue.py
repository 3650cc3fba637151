# SPDX-License-Identifier: MIT OR Apache-2.0
"""An engine that bypasses this host's own shaper, whose queue is full: its round trips lack the queue, and the result says so. Reference: iputils' ping
through the queue."""

import json
import re
import statistics
import sys

import pytest


@pytest.fixture
def full(path):
    """The own queue of a takes 100 ms."""
    path.shape("a0", 2, 25_000, path.a)
    for host in (path.r, path.b):
        host.sysctl("ipv4/icmp_ratelimit", 0)  # the flow that fills the queue gets ICMP errors, too
    with path.filled(path.a):
        yield path


def by_ping(path):
    message = path.a.run(["ping", "-n", "-i", "0.1", "-c", "20", "10.78.0.2"], check=False, timeout=60).stdout
    return statistics.median(float(ms) for ms in re.findall(r" time=([0-9.]+) ms", message))


@pytest.mark.parametrize("engine", ["packet", "raw"])
@pytest.mark.parametrize("command", ["tcp", "trace"])
def test_round_trips_without_the_own_queue(full, tmp_path, command, engine):
    words = {"tcp": ["--interval", "100ms", "--count", "20", "--path", "/file"], "trace": ["--one-route", "--repeat", "20"]}[command]
    (tmp_path / "file").write_bytes(bytes(20_000))
    serve = [sys.executable, "-u", "-m", "http.server", "--bind", "10.78.0.2", "--directory", str(tmp_path), "--protocol", "HTTP/1.1", "80"]
    with full.b.popen(serve) as server:
        try:
            assert "Serving" in server.stdout.readline()
            done = full.a.run([full.ktrxer, command, "10.78.0.2", *words, "--engine", engine, "--json"], check=False, timeout=90)
            reference = by_ping(full)
        finally:
            server.kill()
    assert done.stdout, done.stderr
    end = json.loads(done.stdout)
    trip = (end if command == "tcp" else end["hops"][-1]["nodes"][0])["rtt_us"]["p50"] / 1000
    print(f"figure: {command} by {engine}: {trip:.2f} ms, by ping {reference:.2f} ms; {end['reasons']}")
    assert reference > 50, "the queue of the reference is no queue"
    assert (trip > reference / 2) == (engine == "raw"), "the engine packet bypasses the queue"
    message = any("engine packet bypasses the qdisc tbf of this host's device" in reason["text"] and "--engine raw has it" in reason["text"] for reason in end["reasons"])
    assert message == (engine == "packet")
    assert end["verdict"] != "valid" or engine == "raw"


@pytest.mark.parametrize("engine", ["packet", "udp"])
@pytest.mark.parametrize("command", ["flow", "pair", "echo", "abw"])
def test_rates_without_the_own_shaper(path, serve, command, engine):
    """5 Mbit/s. Two of the methods have no result beside such a shaper, and say so; the engine is named all the same."""
    words = {
        "flow": ["flow", "up", "10.78.0.2", "--udp", "-b", "8M", "--for", "2s"],
        "pair": ["pair", "10.78.0.2", "--direction", "up", "--count", "20"],
        "echo": ["pair", "10.78.0.2", "--echo", "--count", "20"],
        "abw": ["abw", "10.78.0.2", "--direction", "up"],
    }
    serve(path.b, "--token-file", path.token)
    path.shape("a0", 5, 20_000, path.a)
    token = ["--token-file", str(path.token)] if command != "echo" else []
    end = json.loads(path.a.run([path.ktrxer, *words[command], "--engine", engine, *token, "--json"], check=False, timeout=60).stdout)
    print(f"figure: {end['reasons']}")
    message = any("engine packet bypasses the qdisc tbf of this host's device" in reason["text"] and "--engine udp has it" in reason["text"] for reason in end["reasons"])
    assert message == (engine == "packet")
    assert end["verdict"] != "valid" or engine == "udp"
    if command == "flow":
        assert (end["rate_bps"] > 5.5e6) == (engine == "packet"), "the shaper of the reference"
