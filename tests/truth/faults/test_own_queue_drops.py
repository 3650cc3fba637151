# SPDX-License-Identifier: MIT OR Apache-2.0
"""This host's own shaper drops packets of a method: they are no losses of the path, and this host is the limit. References: the drops of tc, and the packets
that the router forwards."""

import json

import pytest


def measure(path, *words):
    done = path.a.run(list(map(str, [path.ktrxer, *words, "--json"])), check=False, timeout=60)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_packets_of_owamp(path, serve):
    """16 times the rate of the shaper, for a second."""
    serve(path.b, "--token-file", path.token, "--owamp-port", 861)
    path.shape("a0", 1, 10_000, path.a)
    end = measure(path, "owamp", "10.78.0.2", "--direction", "up", "--model", "constant", "-i", "2ms", "--payload", "1000", "-c", "500", "--timeout", "1s")
    up, dropped = end["up"], path.drops("a0", path.a)
    print(f"figure: by tc {dropped} dropped; {up['not_sent']} not sent, {up['lost']} lost, {up['arrived']} arrived; {end['reasons']}")
    assert dropped > 100, "the shaper dropped nothing"
    # tc counts other packets of the device, too.
    assert dropped - 20 <= up["not_sent"] <= dropped and up["lost"] == 0
    assert up["sent"] == up["arrived"] and up["sent"] + up["not_sent"] == 500
    assert any("could not be sent (the last one: this host's own queue was full)" in reason["text"] for reason in end["reasons"])
    assert end["verdict"] != "valid"


@pytest.mark.parametrize("shaped", ["a0", "rb"])
def test_datagrams_of_capacity(path, serve, shaped):
    """The same shaper at the router is a limit of the path."""
    serve(path.b, "--token-file", path.token, "--udpstp-port", 24601)
    path.shape(shaped, 4, 20_000, path.a if shaped == "a0" else None)
    end = measure(path, "capacity", "10.78.0.2", "--direction", "up", "--for", "3s", "--token-file", path.token)
    up, dropped = end["up"], path.drops(shaped, path.a if shaped == "a0" else None)
    own = [reason["text"] for reason in end["reasons"] if "limited by this host: its own queue was full and dropped" in reason["text"]]
    print(f"figure: by tc {dropped} dropped; {up['sender']['refused']} refused, {up['lost']} lost of {up['datagrams']}; {end['reasons']}")
    assert dropped > 0, "the shaper dropped nothing"
    assert up["maximum"]["bit_s"] < 4.1e6
    if shaped == "a0":
        # A datagram that the queue drops is tried once more, if others of its burst came before it.
        assert 0 < up["sender"]["refused"] <= dropped and own and end["verdict"] != "valid"
    else:
        assert up["sender"]["refused"] == 0 and not own


COUNT = """
add table ip own
add counter ip own datagrams
add chain ip own forward { type filter hook forward priority 0; }
add rule ip own forward udp length > 1000 counter name datagrams
"""


def test_packets_of_a_udp_flow(path, serve):
    serve(path.b, "--token-file", path.token)
    path.shape("a0", 4, 20_000, path.a)
    path.r.run(["nft", "-f", "-"], input=COUNT)
    end = measure(path, "flow", "up", "10.78.0.2", "--udp", "-b", "6M", "--payload", "1200", "--for", "2s", "--token-file", path.token)
    (flow,) = end["flows"]
    told = json.loads(path.r.run(["nft", "-j", "list", "counters"]).stdout)["nftables"]
    (forwarded,) = [one["counter"]["packets"] for one in told if "counter" in one]
    print(f"figure: {flow['due_packets']} due, {flow['sent_packets']} sent, {forwarded} by the router, {flow['received_packets']} received, {flow['lost']} lost")
    assert flow["sent_packets"] < 0.9 * flow["due_packets"], "the shaper dropped nothing"
    assert forwarded == flow["received_packets"] == flow["sent_packets"] and flow["lost"] == 0
    assert end["verdict"] != "valid" and any("could not be sent (the last one: this host's own queue was full)" in reason["text"] for reason in end["reasons"])
