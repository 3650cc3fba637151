# SPDX-License-Identifier: MIT OR Apache-2.0
"""UDP flows: packets in a queue are not lost, and drops of the server's own socket are not the path's. References: tc, /proc/net/snmp."""

import json

import pytest
from waiting import stand_still


def flow(path, *words):
    command = [path.ktrxer, "flow", *words, "--udp", "--token-file", path.token, "--jsonl"]
    return path.a.popen(list(map(str, command)))


def end_of(child):
    out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    print(json.dumps({key: end[key] for key in ("verdict", "reasons")}), err)
    return end, end["flows"][0]


def stop_in_mid_flow(child, process, seconds):
    """Stop the process for so long, after its first samples show that the flow runs."""
    for line in child.stdout:
        made = json.loads(line)
        if made["type"] == "sample" and made.get("bytes"):
            break
    stand_still(process, seconds)


def receive_errors(host):
    head, values = [line.split() for line in host.run(["cat", "/proc/net/snmp"]).stdout.splitlines() if line.startswith("Udp:")]
    return int(values[head.index("RcvbufErrors")])


def test_what_waits_in_the_queue_is_not_lost(path, serve):
    path.shape("rb", 2, 2_000_000)  # 8 s
    serve(path.b, "--token-file", path.token)
    # Twice the rate for two seconds: half of the packets are still in the router when the sender ends.
    end, one = end_of(flow(path, "up", "10.78.0.2", "-b", "4M", "--payload", "1000", "--for", "2s"))
    dropped = path.drops("rb")
    print(f"figure: sent {one['sent_packets']}, received {one['received_packets']}, lost {one['lost']}; the router dropped {dropped}")
    assert one["lost"] == dropped == 0 and one["received_packets"] == one["sent_packets"] > 900
    assert "acked_bytes" not in one and one["sent_bytes"] == 1000 * one["sent_packets"]


def test_a_full_queue_of_the_path_loses_and_is_not_the_servers(path, serve):
    path.shape("rb", 2, 20_000)
    serve(path.b, "--token-file", path.token)
    before = receive_errors(path.b)
    end, one = end_of(flow(path, "up", "10.78.0.2", "-b", "4M", "--payload", "1000", "--for", "2s"))
    assert one["lost_in_socket"] == receive_errors(path.b) - before == 0, "at 2 Mbit/s the socket has room for a second without a processor"
    # The router drops segments of the control connection as well.
    assert 300 < one["lost"] <= path.drops("rb") <= one["lost"] + 20
    assert not any("limited by the server" in reason["text"] for reason in end["reasons"]), end["reasons"]


def test_the_servers_socket_is_full_while_it_stands_still(path, serve):
    server = serve(path.b, "--token-file", path.token)
    before = receive_errors(path.b)
    child = flow(path, "up", "10.78.0.2", "-b", "60M", "--payload", "1000", "--for", "3s", "--sample-interval", "50ms")
    stop_in_mid_flow(child, server.process, 1)
    end, one = end_of(child)
    dropped = receive_errors(path.b) - before
    print(f"figure: lost {one['lost']}, the server's socket {one['lost_in_socket']}, by /proc/net/snmp {dropped}")
    assert dropped > 1000, "the reference's socket was not full"
    assert one["lost"] == pytest.approx(dropped, rel=0.02), "nothing else loses here"
    assert one["lost_in_socket"] == pytest.approx(dropped, rel=0.02)
    assert end["verdict"] != "valid" and any("limited by the server: its socket dropped" in reason["text"] for reason in end["reasons"])


@pytest.mark.parametrize("direction", ["up", "down"])
def test_no_packet_arrives_after_the_drops(path, serve, direction):
    """The receiver stands still until the sender has ended: a datagram has the drops before it, and none comes after these."""
    server = serve(path.b, "--token-file", path.token)
    host = path.b if direction == "up" else path.a
    before = receive_errors(host)
    child = flow(path, direction, "10.78.0.2", "-b", "60M", "--payload", "1000", "--for", "2s", "--sample-interval", "50ms")
    stop_in_mid_flow(child, server.process if direction == "up" else child, 3)
    end, one = end_of(child)
    dropped = receive_errors(host) - before
    print(f"figure: lost {one['lost']}, the receiver's socket {one['lost_in_socket']}, by /proc/net/snmp {dropped}")
    assert dropped > 1000, "the reference's socket was not full"
    assert one["lost"] == pytest.approx(dropped, rel=0.02), "nothing else loses here"
    assert one["lost_in_socket"] == dropped
    message = "limited by the server: its socket dropped" if direction == "up" else "packets were lost in this host's own socket"
    assert end["verdict"] != "valid" and any(message in reason["text"] for reason in end["reasons"])


def test_the_server_sends_less_than_was_due(path, serve):
    server = serve(path.b, "--token-file", path.token)
    child = flow(path, "down", "10.78.0.2", "-b", "20M", "--payload", "1000", "--for", "3s", "--sample-interval", "50ms")
    stop_in_mid_flow(child, server.process, 1)
    end, one = end_of(child)
    print(f"figure: due {one['due_packets']}, sent {one['sent_packets']}, late {one['late_packets']}")
    assert one["due_packets"] == pytest.approx(7500, abs=2)
    assert one["late_packets"] > 1500, "a second of 2500 packets"
    less = one["sent_packets"] * 100 < 99 * one["due_packets"]
    assert any("limited by the server" in reason["text"] for reason in end["reasons"]) == less, end["reasons"]
