# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer doctor`: what it says works must work, and what it says does not must fail for that reason."""

import json

import pytest

ENGINES = {"packet", "raw", "udp"}


def doctor(host, ktrxer, *options, status=0):
    done = host.run([ktrxer, "doctor", "--json", *options], check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_what_it_says_works(shared_pair, ktrxer):
    a, b = shared_pair
    result = doctor(a, ktrxer, "--device", "a0")
    assert result["device"]["name"] == "a0" and result["device"]["mtu"] == 1500 and result["device"]["kind"] == "veth"
    engines = {engine["name"]: engine for engine in result["engines"]}
    assert set(engines) >= ENGINES and "verdict" not in result
    for name in ENGINES:
        assert engines[name]["available"] and engines[name]["reason"] and "ipv4" in engines[name]["features"]
        done = a.run([ktrxer, "send", b.address, "-c", "3", "-i", "1ms", "-e", name, "-d", "a0"], check=False)
        assert "3 sent" in done.stdout
    assert "unprivileged" in engines["udp"]["features"] and "whole-frame" in engines["packet"]["features"]
    clocks = result["clocks"]
    assert clocks["source"] and 0 < clocks["read_ns"] < 100_000 and clocks["pair_bound_ns"] > 0
    assert result["receive_module"]["available"] or "modprobe ktrxer" in result["receive_module"]["reason"]
    assert result["receive_preceded_by"] is None
    assert result["privileges"]["uid"] == 0 and result["privileges"]["CAP_NET_RAW"] is True


def test_it_finds_a_device_by_itself(shared_pair, ktrxer):
    assert doctor(shared_pair[0], ktrxer)["device"]["name"] == "a0"


def test_unknown_device(shared_pair, ktrxer):
    result = doctor(shared_pair[0], ktrxer, "--device", "nosuch", status=1)
    assert result["device"] is None
    for engine in result["engines"]:
        assert not engine["available"] and "'nosuch'" in engine["reason"]


def test_no_device_is_up(pair, ktrxer):
    a, _ = pair
    a.ip("link", "set", "a0", "down")
    a.ip("link", "set", "lo", "down")
    done = a.run([ktrxer, "doctor"])
    assert "no device is up: `ip link set DEV up`" in done.stdout
    assert "engine udp     works" in done.stdout, "the host's sockets need none"


def test_nothing_is_sent(shared_pair, ktrxer):
    a, b = shared_pair
    a.run([ktrxer, "doctor", "--device", "a0"])
    # The kernel itself sends a few reports of group membership when a device is young; doctor would send each time.
    sent = []
    for _ in range(4):
        before = a.counters()["tx"]["packets"]
        for _ in range(3):
            a.run([ktrxer, "doctor", "--device", "a0"])
        sent.append(a.counters()["tx"]["packets"] - before)
        if sent[-1] == 0:
            return
    pytest.fail(f"packets sent while doctor ran: {sent}")
