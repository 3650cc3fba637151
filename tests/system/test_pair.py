# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer pair` between two hosts: counts, schemas and refused options. Figures need shaped links: tests/virtual/test_pair.py.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves
   fd00:77::1                    fd00:77::2
"""

import json
import signal
import time

import pytest
from clients import client
from flows import secret
from recorded import wrong


@pytest.fixture
def pair(ktrxer, token):
    return client(ktrxer, "pair", token=token)


@pytest.mark.parametrize("address", ["address", "address6"])
def test_each_pair_is_counted_once(shared_pair, pair, serve, token, address):
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = pair(a, getattr(b, address), "--count", 20, "--interval", "5ms", "--jsonl")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong(objects)
    end, head = objects[-1], 48 if address == "address6" else 28
    for way in ("up", "down"):
        assert [size["ip_bytes"] for size in end[way]["sizes"]] in ([1472 + 28, 736 + 28], [1452 + 48, 726 + 48])
        for size in end[way]["sizes"]:
            counts = [size[name] for name in ("lost", "unsent", "reordered", "one_stamp", "not_back_to_back", "usable")]
            assert size["pairs"] == sum(counts) == 20 and size["lost"] == size["unsent"] == size["reordered"] == 0, size
        samples = [one for one in objects if one.get("kind") == "pair" and one["direction"] == way]
        assert len(samples) == 40 and {one["number"] for one in samples} == set(range(20))
        for one in samples:
            assert one["first_sent_ns"] <= one["second_sent_ns"] and one["first_arrived_ns"] <= one["second_arrived_ns"]
    assert end["probe_bit_s"] == 2 * (1500 + 726 + head + (10 if head == 28 else 0)) * 8 * 200
    assert done.returncode == (0 if end["verdict"] == "valid" else 1)


def test_one_direction_and_text(shared_pair, pair, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = pair(a, b.address, "--count", 10, "--interval", "5ms", "--direction", "down", "--payload", 1000)
    assert "down: 10 pairs of 1028 bytes" in done.stdout and "up:" not in done.stdout and "verdict: " in done.stdout, done.stdout


def test_what_is_refused(shared_pair, pair, serve, token, tmp_path):
    a, b = shared_pair
    assert "nothing listens on TCP port 8620" in pair(a, b.address, "--count", 10, status=1).stderr
    serve(b, "--token-file", token, "--max-bitrate", "1M")
    assert "--max-bitrate" in pair(a, b.address, "--count", 10, status=1).stderr
    other = secret(tmp_path / "other", "another token that is long enough")
    assert "token" in pair(a, b.address, "--count", 10, token=other, status=1).stderr
    assert "MTU of 1500" in pair(a, b.address, "--payload", 1473, status=2).stderr
    assert "exclude each other" in pair(a, b.address, "-4", "-6", status=2).stderr
    assert "not of the same family" in pair(a, b.address, "--from", "fd00:77::1").stderr


def test_a_server_without_flows(shared_pair, pair, serve):
    a, b = shared_pair
    serve(b, "--max-clients", 0)
    assert "nothing listens on TCP port 8620" in pair(a, b.address, "--count", 10, status=1).stderr


@pytest.mark.parametrize("address", ["address", "address6"])
def test_echo_needs_no_server(shared_pair, ktrxer, address):
    a, b = shared_pair
    done = a.run([ktrxer, "pair", getattr(b, address), "--echo", "--count", "20", "--interval", "4ms", "--jsonl"], check=False)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong(objects)
    end = objects[-1]
    assert end["one_sided"] and "up" not in end and "down" not in end, (end, done.stderr)
    for size in end["round_trip"]["sizes"]:
        counts = [size[name] for name in ("lost", "unsent", "reordered", "one_stamp", "not_back_to_back", "usable")]
        assert size["pairs"] == sum(counts) == 20 and size["lost"] == size["unsent"] == 0, size
    samples = [one for one in objects if one.get("kind") == "pair"]
    assert len(samples) == 40 and all(one["direction"] == "round_trip" for one in samples)
    for one in samples:
        assert one["first_sent_ns"] <= one["second_sent_ns"] < one["second_arrived_ns"] and one["first_sent_ns"] < one["first_arrived_ns"]


def test_echo_of_a_host_that_does_not_reply(shared_pair, ktrxer):
    a, _ = shared_pair
    done = a.run([ktrxer, "pair", "10.77.0.99", "--echo", "--count", "10", "--interval", "2ms", "--json"], check=False)
    end = json.loads(done.stdout)
    assert done.returncode == 1 and end["round_trip"]["reading"] == "too_few" and end["round_trip"]["sizes"][0]["lost"] == 10, end
    assert "--echo has no --direction" in a.run([ktrxer, "pair", "10.77.0.2", "--echo", "--direction", "up"], check=False).stderr


@pytest.mark.parametrize("name", ["pair", "ppt measure"])
def test_a_stopped_run_has_lost_no_packet(shared_pair, ktrxer, serve, token, name):
    """Pairs that never left are in no count; those of the moment of the stop may still be under way."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    words = [ktrxer, *name.split(), b.address, "--token-file", token, "--direction", "both", "--count", "1000", "--interval", "10ms", "--json"]
    child = a.popen(list(map(str, words)))
    time.sleep(1.5)
    child.send_signal(signal.SIGINT)
    end = json.loads(child.communicate(timeout=20)[0])
    assert any("it was stopped" in reason["text"] for reason in end["reasons"])
    for way in ("up", "down"):
        for one in end[way]["sizes" if name == "pair" else "trains"]:
            assert one["lost"] + one["unsent"] <= 10 and one["pairs" if name == "pair" else "probes"] < 1000, one


def test_a_shaper_of_this_host_is_a_cause_of_groups(shared_pair, pair, serve, token):
    """tbf of the sender's own device releases several packets at once, and the far host has no interrupts. Reference: tc."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    a.run(["tc", "qdisc", "replace", "dev", "a0", "root", "tbf", "rate", "4mbit", "burst", "10000", "limit", "300000"])
    try:
        for _ in range(5):  # the reading depends on the phase of both
            end = json.loads(pair(a, b.address, "--count", 60, "--interval", "4ms", "--direction", "up", "--json", status=1).stdout)
            if end["up"]["reading"] == "coalesced":
                break
    finally:
        a.run(["tc", "qdisc", "del", "dev", "a0", "root"])
    assert end["up"]["reading"] == "coalesced", end
    assert "this host's qdisc tbf or a device on the path sends in bursts" in end["reasons"][0]["text"], end["reasons"]


@pytest.mark.parametrize("name", ["pair", "abw"])
def test_a_shaper_of_this_host_that_holds_a_pair_is_named(shared_pair, ktrxer, serve, token, name):
    """Its bucket is full before each pair, so it does not spread pairs. Reference: tc."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    a.run(["tc", "qdisc", "replace", "dev", "a0", "root", "tbf", "rate", "8mbit", "burst", "40000", "limit", "300000"])
    try:
        words = [ktrxer, name, b.address, "--token-file", token, "--direction", "up", "--json"]
        for _ in range(5):  # on a busy machine another reason may come first
            end = json.loads(a.run(list(map(str, words)), check=False, timeout=60).stdout)
            if any("shaper of the path" in reason["text"] for reason in end["reasons"]):
                break
    finally:
        a.run(["tc", "qdisc", "del", "dev", "a0", "root"])
    assert any("or this host's qdisc tbf or a shaper of the path lets" in reason["text"] for reason in end["reasons"]), end
