# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packets that a filter of this host drops behind the socket have the error number of a full queue. The queue is named only where it dropped them.
References: the rule, its counter, and the drops of tc."""

import json

import pytest
from waiting import read_until

QUEUE, FILTER = "this host's own queue was full", "a packet filter or a lower device of this host dropped it"
EGRESS = "table netdev own {{ chain c {{ type filter hook egress device a0 priority 0; {match} counter drop; }}; }}"
ADDRESSES = {4: "10.77.0.2", 6: "fd77::2"}


def measure(path, *words):
    done = path.a.run(list(map(str, [path.ktrxer, *words, "--json"])), check=False, timeout=60)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def addresses_of_6(path):
    for host, device, address in ((path.a, "a0", "fd77::1/64"), (path.r, "ra", "fd77::2/64")):
        host.ip("addr", "add", address, "dev", device, "nodad")


def filtered(path, match):
    path.a.run(["ping", "-n", "-c", "1", "10.77.0.2"])
    path.a.run(["nft", EGRESS.format(match=match)])


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("qdisc", [None, "tbf rate 100mbit burst 50k limit 100k"])
@pytest.mark.parametrize("command", ["ping", "stamp", "send"])
def test_an_egress_filter_is_no_queue(path, serve, command, qdisc, family):
    addresses_of_6(path)
    serve(path.r)
    if qdisc:
        path.a.run(["tc", "qdisc", "add", "dev", "a0", "root", *qdisc.split()])
    words = [command, ADDRESSES[family], "-i", "10ms", "-c", "50", *(() if command == "send" else ("--timeout", "500ms"))]
    assert measure(path, *words)["verdict"] == "valid", "the path without the filter"
    filtered(path, {"ping": "icmp type echo-request" if family == 4 else "icmpv6 type echo-request"}.get(command, "meta l4proto udp"))
    end = measure(path, *words)
    reasons = [reason["text"] for reason in end["reasons"]]
    print(f"figure: {end['failed']} of {end['requested']} failed; {reasons}")
    assert end["failed"] == 50 and any(FILTER in reason for reason in reasons)
    assert not any("queue" in reason for reason in reasons)


@pytest.mark.parametrize("filter_too", [False, True])
def test_a_full_queue_is_the_queue(path, serve, filter_too):
    """Also beside a filter for other packets."""
    path.shape("a0", 4, 20_000, path.a)
    if filter_too:
        filtered(path, "icmp type echo-request")
    path.a.run(["ping", "-n", "-c", "1", "-W", "1", "10.77.0.2"], check=False)
    serve(path.b, "--token-file", path.token)
    words = ["flow", "up", "10.78.0.2", "--udp", "-b", "6M", "--payload", "1200", "--for", "2s", "--token-file", path.token]
    end = measure(path, *words)
    reasons = [reason["text"] for reason in end["reasons"]]
    print(f"figure: {reasons}, by tc {path.drops('a0', path.a)}")
    assert any(QUEUE in reason for reason in reasons) and not any("filter" in reason for reason in reasons)


def test_a_filter_of_the_output_chain(path):
    path.a.run(["ping", "-n", "-c", "1", "10.77.0.2"])
    path.a.run(["nft", "table ip own { chain c { type filter hook output priority 0; meta l4proto udp drop; }; }"])
    end = measure(path, "send", "10.77.0.2", "--engine", "udp", "-i", "10ms", "-c", "50")
    assert end["failed"] == 50 and any("a packet filter of this host rejected it" in reason["text"] for reason in end["reasons"])


def test_a_udp_flow_and_an_egress_filter(path, serve):
    serve(path.b, "--token-file", path.token)
    filtered(path, "udp length > 1000")
    end = measure(path, "flow", "up", "10.78.0.2", "--udp", "-b", "2M", "--payload", "1200", "--for", "1s", "--token-file", path.token)
    reasons = [reason["text"] for reason in end["reasons"]]
    print(f"figure: {reasons}")
    assert end["verdict"] != "valid" and any(FILTER in reason for reason in reasons)
    assert not any("queue" in reason or "processor" in reason for reason in reasons)


def test_capacity_and_an_egress_filter(path, serve):
    serve(path.b, "--token-file", path.token, "--udpstp-port", 24601)
    filtered(path, "udp length > 1000 numgen random mod 10 < 3")
    end = measure(path, "capacity", "10.78.0.2", "--direction", "up", "--for", "3s", "--max-bitrate", "20M", "--token-file", path.token)
    reasons = [reason["text"] for reason in end["reasons"]]
    print(f"figure: {end['up']['sender']}; {reasons}")
    assert end["up"]["sender"]["failed"] > 10 and end["up"]["sender"]["refused"] == 0
    assert any("could not send" in reason and FILTER in reason for reason in reasons) and not any("own queue" in reason for reason in reasons)


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("command", ["ping", "send"])
def test_the_far_ends_device_is_down(path, command, family):
    addresses_of_6(path)
    words = ["--for", "4s", "-i", "10ms", *(() if command == "send" else ("--timeout", "500ms"))]
    with path.a.popen([str(path.ktrxer), command, ADDRESSES[family], *words, "--jsonl"]) as child:
        for _ in range(100):
            read_until(child, lambda one: one["type"] == "sample")
        path.r.ip("link", "set", "ra", "down")
        end = json.loads(child.stdout.read().splitlines()[-1])
    reasons = [reason["text"] for reason in end["reasons"]]
    print(f"figure: {end['failed']} failed of {end['requested']}; {reasons}")
    assert end["verdict"] != "valid" and any("link of this host's device was down" in reason or "their link was down" in reason for reason in reasons)
    assert not any(QUEUE in reason or "filter" in reason for reason in reasons)
