# SPDX-License-Identifier: MIT OR Apache-2.0
"""A router drops large packets up without an answer (a tunnel whose ICMP messages are filtered), and small ones pass. Reference: its counter."""

import json

import pytest

BYTES = 1240  # IP packets above this vanish: the load of `capacity` has 1250, large packets of `pair` 1500 and small ones 764


@pytest.fixture
def dropped(path):
    """A function that returns the number of dropped packets."""
    path.r.run(["nft", f'table ip hole {{ chain c {{ type filter hook forward priority 0; oifname "rb" ip length > {BYTES} counter drop; }}; }}'])

    def count():
        told = json.loads(path.r.run(["nft", "-j", "list", "table", "ip", "hole"]).stdout)["nftables"]
        (rule,) = [one["rule"] for one in told if "rule" in one]
        return next(part["counter"]["packets"] for part in rule["expr"] if "counter" in part)

    return count


def measure(path, *words):
    done = path.a.run(list(map(str, [path.ktrxer, *words, "--token-file", path.token, "--json"])), check=False, timeout=60)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_capacity(path, serve, dropped):
    """The receiver counts gaps in the numbers, and there is no gap without a later datagram."""
    serve(path.b, "--token-file", path.token, "--udpstp-port", 24601)
    end = measure(path, "capacity", "10.78.0.2", "--direction", "up", "--for", "2s")
    up = end["up"]
    print(f"figure: by nftables {dropped()} of {up['sender']['sent']} datagrams dropped, loss {up['loss']}; {end['reasons']}")
    assert dropped() > 0.9 * up["sender"]["sent"], "the reference"
    assert end["verdict"] != "valid"
    assert not any("no datagram was lost" in reason["text"] for reason in end["reasons"])
    assert any(f"{up['sender']['sent'] - up['datagrams']} of {up['sender']['sent']} datagrams did not arrive" in reason["text"] for reason in end["reasons"])


def test_pair(path, serve, dropped):
    """All large packets are lost. The small ones, as fast as this host sends them, are not the cause."""
    serve(path.b, "--token-file", path.token)
    end = measure(path, "pair", "10.78.0.2", "--direction", "up", "--count", 40)
    print(f"figure: by nftables {dropped()} packets dropped; {end['up']['sizes']}; {end['reasons']}")
    assert dropped() == 80, "the reference"
    assert (end["verdict"], end["up"]["reading"]) == ("invalid", "too_few")
    lost = next(reason for reason in end["reasons"] if reason["id"] == "train_size_lost")
    assert (lost["bytes"], lost["arrived_bytes"]) == (1500, 764) and not any("far apart" in reason["text"] for reason in end["reasons"])
