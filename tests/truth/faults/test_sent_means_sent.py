# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packets that did not leave this host count neither as sent nor as lost on the path. Reference: the counters of the device, by `ip`."""

import json

import pytest
from waiting import read_until


def sent_by_the_device(host, device):
    return host.counters(device)["tx"]["packets"]


@pytest.mark.parametrize("engine", ["udp", "raw"])
def test_a_neighbour_that_never_answers(path, engine):
    before = sent_by_the_device(path.a, "a0")
    done = path.a.run([path.ktrxer, "send", "10.77.0.9", "--engine", engine, "--rate", "500", "--count", "500", "--json"], check=False)
    made = json.loads(done.stdout)
    print(made["reasons"], sent_by_the_device(path.a, "a0") - before)
    assert sent_by_the_device(path.a, "a0") - before < 20, "requests for the neighbour, and nothing else"
    assert made["verdict"] == "invalid"
    assert any("left this host" in reason["text"] and "10.77.0.9" in reason["text"] for reason in made["reasons"])


@pytest.mark.parametrize("engine", ["udp", "raw"])
@pytest.mark.parametrize("vanishes", [False, True])
def test_a_neighbour_without_stamps(path, engine, vanishes):
    words = [path.ktrxer, "send", "10.77.0.2" if vanishes else "10.77.0.9", "--engine", engine, "--no-stamps"]
    if vanishes:
        innocent = json.loads(path.a.run([*words, "--rate", "500", "--count", "200", "--json"], check=False).stdout)
        assert not any(reason["id"] == "next_hop_away" for reason in innocent["reasons"])
    child = path.a.popen([*words, "--rate", "100", "--for", "7s" if vanishes else "1s", "--jsonl"])
    if vanishes:
        for _ in range(50):
            read_until(child, lambda one: one["type"] == "sample")
        path.r.ip("link", "set", "ra", "arp", "off")
        path.a.run(["ip", "neigh", "flush", "dev", "a0"])
    made = json.loads(child.communicate(timeout=60)[0].splitlines()[-1])
    print(f"figure: {made['sent']} sent, {made['network_errors']} errors; {made['reasons']}")
    assert made["verdict"] == "invalid" and any("left this host is not known" in reason["text"] for reason in made["reasons"])


def test_a_neighbour_that_vanishes(path, serve):
    serve(path.r)
    child = path.a.popen([path.ktrxer, "stamp", "10.77.0.2", "-i", "10ms", "--for", "3s", "--jsonl"])
    for line in child.stdout:
        if json.loads(line).get("kind") == "round_trip" and json.loads(line)["number"] >= 100:
            break
    path.r.ip("addr", "del", "10.77.0.2/24", "dev", "ra")
    path.a.ip("neigh", "flush", "dev", "a0")
    out, _ = child.communicate(timeout=60)
    made = json.loads(out.splitlines()[-1])
    print(made["reasons"], made["stamps"])
    assert made["stamps"]["sent_queued"] > 100, "the stack took them all"
    assert made["verdict"] != "valid" and any("have no stamp of the driver" in reason["text"] for reason in made["reasons"])


@pytest.mark.parametrize("engine", ["udp", "raw"])
def test_this_hosts_own_queue_is_full(path, engine):
    """Four times the rate of this host's shaper: each refused probe is submitted again until there is room, and leaves late."""
    path.shape("a0", 2, 10_000, path.a)
    path.a.run(["ping", "-n", "-c", "1", "10.77.0.2"])
    words = [path.ktrxer, "send", "10.77.0.2", "--engine", engine, "--rate", "2000", "--count", "500", "--payload", "500", "--json"]
    made = json.loads(path.a.run(words, check=False, timeout=60).stdout)
    refused = path.drops("a0", path.a)
    print(f"figure: tc dropped {refused}; {made['reasons']}")
    assert refused > 500, "the reference's queue was not full"
    assert made["tries"] - made["sent"] - made["failed"] == pytest.approx(refused, rel=0.02)
    unsent = made["failed"] + made["skipped"]
    assert (made["verdict"] == "valid") == (unsent * 100 <= made["sent"] + unsent), made["reasons"]
