# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer ppt measure` between two hosts: counts, schemas, its load and refused options. Figures need shaped links:
tests/virtual/test_ppt_measure.py.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves
   fd00:77::1                    fd00:77::2
"""

import json
import re

import pytest
from clients import client
from recorded import wrong


@pytest.fixture
def measure(ktrxer, token):
    return client(ktrxer, "ppt", "measure", token=token)


COUNTS = ("lost", "unsent", "reordered", "one_stamp", "not_back_to_back", "usable")


@pytest.mark.parametrize("address,least", [("address", 78), ("address6", 98)])
def test_each_probe_is_counted_once(shared_pair, measure, serve, token, address, least):
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = measure(a, getattr(b, address), "--count", 20, "--interval", "5ms", "--direction", "both", "--jsonl")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong(objects)
    end = objects[-1]
    assert end["heading_wire_bytes"] == 1502 and end["interval_ns"] == 5_000_000
    trailing = [least, 232, (least + 232) // 2, 171]
    heading = [1502, 1502, 1502, 1124]
    assert end["probe_bit_s"] == round((8 * sum(heading + trailing) / 4 + 192) * 200)
    for way in ("up", "down"):
        assert [train["trailing_wire_bytes"] for train in end[way]["trains"]] == trailing
        assert [train["heading_wire_bytes"] for train in end[way]["trains"]] == heading
        for train in end[way]["trains"]:
            assert train["probes"] == sum(train[name] for name in COUNTS) == 20, train
            assert train["lost"] == train["unsent"] == train["reordered"] == 0 and train["send_gap_ns"] > 0, train
        samples = [one for one in objects if one.get("kind") == "compound_probe" and one["direction"] == way]
        assert len(samples) == 80 and {one["number"] for one in samples} == set(range(20))
        for one in samples:
            assert one["first_sent_ns"] <= one["second_sent_ns"] and one["first_arrived_ns"] <= one["second_arrived_ns"]
        assert (end[way]["capacity_bit_s"] is None) == (end[way]["reading"] != "resolved")
    assert done.returncode == (0 if end["verdict"] == "valid" else 1)


@pytest.mark.plain_build  # sanitizers slow the sender, so that its gaps differ
def test_a_veth_pair_has_no_rate_and_gives_none(shared_pair, measure, serve, token):
    """Both packets take as long as the sender's interval. Without send times this would look like a service time of the receiver, or a capacity."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    end = json.loads(measure(a, b.address, "--count", 50, "--interval", "5ms", "--json", status=1).stdout)
    assert end["verdict"] == "invalid" and end["up"]["reading"] in ("not_back_to_back", "too_few", "coalesced"), end
    assert end["up"]["capacity_bit_s"] is None and end["up"]["delta_ns"] is None and end["up"]["link_share"] is None


@pytest.mark.plain_build  # the processor time of a sanitizer is not the program's
def test_its_load(shared_pair, measure, serve, token):
    """Under 0.5 % of a processor with 30 probes of each size, 100 ms apart (P6)."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    # Stolen time and the caches of a shared machine add to a thread's processor time: the least of three runs is the program's.
    shares = list[float]()
    while len(shares) < 3 and (not shares or shares[-1] >= 0.005):
        end = json.loads(measure(a, b.address, "--count", 30, "--json").stdout)
        assert end["probe_bit_s"] < 0.02 * 10e6
        shares.append(end["cpu_share"])
    assert 0 < min(shares) < 0.005, shares


def test_text(shared_pair, measure, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = measure(a, b.address, "--count", 10, "--interval", "5ms", "--size1", 100, "--size2", 300, "--heading", 1000)
    assert "10 compound probes of 1000 and 100 bytes and as many of 1000 and 300" in done.stdout, done.stdout
    assert "up: 10 probes with trailing packets of 100 bytes" in done.stdout and "down:" not in done.stdout
    assert "% of a processor busy" in done.stdout and "verdict: " in done.stdout


def test_a_capture_of_the_probes(shared_pair, measure, serve, token, ktrxer, tmp_path):
    """Each size has its own source port: a capture at the receiver contains the probes of all kinds, with the gaps of the run."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    path = tmp_path / "receiver.pcapng"
    rule = f"capture udp from {a.address} to {b.address}:8620"
    with b.popen([ktrxer, "recv", "--device", "b0", "--rule", rule, "--write", path, "--jsonl"]) as capture:
        assert any(json.loads(line).get("name") == "listening" for line in capture.stdout), capture.stderr.read()
        done = measure(a, b.address, "--count", 20, "--interval", "5ms", "--jsonl")
        capture.terminate()
        capture.communicate(timeout=10)
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    read = b.run([ktrxer, "ppt", "estimate", path, "--port", "8620", "--size1", "78", "--size2", "232", "--json"], check=False)
    found = json.loads(read.stdout)
    counted = found["capture"]
    # A sender that another program interrupts between two packets makes a split probe, which is no defect of the capture.
    unusable = counted["split"] + counted["backwards"]
    assert counted["probes"] + unusable == 60 and unusable <= 4 and counted["heading_wire_bytes"] == 1502, counted
    assert [train["trailing_wire_bytes"] for train in found["trains"]] == [78, 232]
    for train in found["trains"]:
        probes = [one for one in samples if one.get("trailing_wire_bytes") == train["trailing_wire_bytes"]]
        gaps = [one["second_arrived_ns"] - one["first_arrived_ns"] for one in probes]
        assert len(gaps) == 20 and train["small_ns"] == pytest.approx(min(gap for gap in gaps if gap > 0), abs=100)


@pytest.mark.parametrize("address", ["address", "address6"])
@pytest.mark.parametrize("links", [["10M"], ["10M", "155M", "10M", "100M"]])
def test_sizes_of_a_plan_are_accepted(shared_pair, measure, serve, token, ktrxer, address, links):
    a, b = shared_pair
    serve(b, "--token-file", token)
    text = a.run([ktrxer, "ppt", "plan", *links]).stdout
    found = re.search(r"use trailing packets of (\d+) \(IPv6: (\d+)\) and (\d+) bytes", text)
    assert found, text
    sizes = [int(found[2 if address == "address6" else 1]), int(found[3])]
    words = ("--size1", sizes[0], "--size2", sizes[1], "--count", 10, "--interval", "5ms", "--json")
    end = json.loads(measure(a, getattr(b, address), *words).stdout)
    assert [train["trailing_wire_bytes"] for train in end["up"]["trains"]][:2] == sizes
    assert "of 78 (IPv6: none) and 90 bytes" in a.run([ktrxer, "ppt", "plan", "10M", "10M", "--heading", "91"]).stdout


def test_what_is_refused(shared_pair, measure, serve, token):
    a, b = shared_pair
    assert "nothing listens on TCP port 8620" in measure(a, b.address, "--count", 10, status=1).stderr
    serve(b, "--token-file", token, "--max-bitrate", "100k")
    assert "--max-bitrate" in measure(a, b.address, "--count", 10, status=1).stderr
    for options, reason in (
        (("--heading", 1526, "--from", "10.77.0.1", "--size1", 1526), "a trailing packet of 1526 bytes on the wire: give 78 to 1525"),
        (("--size1", 77), "a trailing packet of 77 bytes on the wire: give 78 to 1501"),
        (("--size2", 78), "trailing packets of 78 and 78 bytes: the slope needs two sizes, 8 bytes apart"),
        (("--heading", 200), "a trailing packet of 232 bytes on the wire"),
        (("--heading", 1527), "--heading"),
        (("--count", 9), "--count"),
        (("-4", "-6"), "exclude each other"),
    ):
        assert reason in measure(a, b.address, *options, status=2).stderr, options


def test_a_server_without_flows(shared_pair, measure, serve):
    a, b = shared_pair
    serve(b, "--max-clients", 0)
    assert "nothing listens on TCP port 8620" in measure(a, b.address, "--count", 10, status=1).stderr


@pytest.mark.parametrize("command", ["ppt measure", "pair"])
def test_a_size_that_the_path_does_not_carry_is_named(shared_pair, ktrxer, serve, token, command):
    """A packet filter drops large packets without an error, as a path whose MTU is smaller does behind a filter of ICMP."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    b.run(["nft", "add table inet hole; add chain inet hole in { type filter hook input priority 0; }; add rule inet hole in udp length > 800 drop"])
    try:
        send = client(ktrxer, *command.split(), token=token)
        done = send(a, b.address, "--count", 10, "--interval", "5ms", "--direction", "up", "--json", status=1)
    finally:
        b.run(["nft", "delete table inet hole"])
    end = json.loads(done.stdout)
    reason = next(one for one in end["reasons"] if one["id"] == "train_size_lost")
    expected = (1124, 232) if command == "ppt measure" else (1500, 764)
    assert (reason["bytes"], reason["arrived_bytes"]) == expected, reason
