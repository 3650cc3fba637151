# SPDX-License-Identifier: MIT OR Apache-2.0
"""A router that sends each UDP packet up several times: no packet is lost, and no copy is capacity. Reference: tc counts the copies."""

import json

import pytest

COPY = ["u32", "match", "ip", "protocol", "17", "0xff", "action", "mirred", "egress", "mirror", "dev", "rb"]


@pytest.fixture
def copying(path):
    """A function that returns the number of copies so far."""
    done = path.r.run(["tc", "qdisc", "add", "dev", "rb", "clsact"], check=False)
    if done.returncode == 0:
        done = path.r.run(["tc", "filter", "add", "dev", "rb", "egress", "protocol", "ip", *COPY], check=False)
    if done.returncode:
        pytest.skip(f"this kernel has no mirred, u32 or clsact: {done.stderr}")
    return lambda: json.loads(path.r.run(["tc", "-s", "-j", "filter", "show", "dev", "rb", "egress"]).stdout)[-1]["options"]["actions"][0]["stats"]["packets"]


def measure(path, *words):
    done = path.a.run(list(map(str, [path.ktrxer, *words, "--json"])), check=False, timeout=60)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_owamp(path, serve, copying):
    serve(path.b, "--token-file", path.token, "--owamp-port", 861)
    end = measure(path, "owamp", "10.78.0.2", "--direction", "up", "-i", "10ms", "-c", 100, "--timeout", "1s")
    up = end["up"]
    print(f"figure: by tc {copying()} copies; {up['arrived']} of {up['sent']} arrived, {up['lost']} lost, {up['duplicates']} copies; {end['reasons']}")
    assert copying() >= 100, "the router made no copies"
    assert (up["sent"], up["arrived"], up["lost"]) == (100, 100, 0)
    assert 0 < up["duplicates"] <= copying()


def test_capacity(path, serve, copying):
    """Row 2 is 2 Mbit/s."""
    serve(path.b, "--token-file", path.token, "--udpstp-port", 24601)
    end = measure(path, "capacity", "10.78.0.2", "--direction", "up", "--for", "2s", "--row", 2, "--token-file", path.token)
    up = end["up"]
    print(f"figure: by tc {copying()} copies; {up['mean_bit_s'] / 1e6:.2f} Mbit/s, {up['duplicates']} copies of {up['datagrams']}; {end['reasons']}")
    assert copying() >= 100, "the router made no copies"
    assert any("datagrams that arrived were copies, which the path made: the capacity contains them" in reason["text"] for reason in end["reasons"])
    assert end["verdict"] != "valid"
