# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer owamp` and `ktrxer serve --owamp-port` between two hosts, and another implementation of the protocol (owamp_peer.py) in both roles.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves
   fd00:77::1                    fd00:77::2
"""

import json
import signal
import struct
import sys
import time
from pathlib import Path

import owamp_peer as peer
import pytest
from clients import client, servers
from recorded import wrong

PEER = [sys.executable, Path(__file__).resolve().parent / "owamp_peer.py"]
PORT = 861
QUICK = ("--interval", "20ms", "--timeout", "300ms")


@pytest.fixture
def owamp(ktrxer):
    return client(ktrxer, "owamp")


@pytest.fixture
def peer_serves(shared_pair):
    _, b = shared_pair
    with servers(b, *PEER, "serve", b.address, str(PORT)) as start:
        yield start


def peer_does(host, *words):
    done = host.run([*PEER, *map(str, words)], check=False, timeout=40)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def serves(serve, host, token, *options):
    return serve(host, "--token-file", token, "--owamp-port", PORT, *options)


# --------------------------------------------------------------------------------------------------- both ends are ours


@pytest.mark.parametrize(("address", "model"), [("address", "poisson"), ("address6", "constant")])
def test_both_directions(shared_pair, owamp, serve, ktrxer, token, address, model):
    a, b = shared_pair
    server = serves(serve, b, token)
    done = owamp(a, getattr(b, address), "--count", 40, "--model", model, "--payload", 200, "--jsonl", *QUICK)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong(objects)
    end, samples = objects[-1], [one for one in objects if one.get("kind") == "owamp"]
    for way in ("up", "down"):
        found = end[way]
        assert found["sent"] == found["arrived"] == 40 and found["lost"] == found["duplicates"] == found["reordered"] == 0, end
        assert found["hops_min"] == found["hops_max"] == 0, "packets leave with a TTL of 255"
        mine = [one for one in samples if one["direction"] == way]
        assert [one["number"] for one in mine] == list(range(40))
        delays = [one["received_ns"] - one["sent_ns"] for one in mine]
        assert all(-1000 < delay < 1e9 for delay in delays), "one clock: no delay is negative"
        if model == "constant":
            gaps = [after["sent_ns"] - before["sent_ns"] for before, after in zip(mine, mine[1:], strict=False)]
            assert sum(gaps) / len(gaps) == pytest.approx(20e6, rel=0.25)
    assert end["up"]["from_packet_scheduler"] == 40, "T1 is the packet scheduler's stamp"
    server.stop()
    counts = {"connections": 1, "sessions": 2, "refused": 0, "protocol_errors": 0, "packets_in": 40, "packets_out": 40, "lost_in_socket": 0}
    assert server.end["owamp"] == counts
    assert server.listening["owamp_port"] == PORT
    assert server.listening["system_call_filter"] is (b"__asan_init" not in ktrxer.read_bytes())


def test_losses(shared_pair, owamp, serve, token):
    """Every third packet up is dropped, and all packets down."""
    a, b = shared_pair
    serves(serve, b, token)
    rule = "table inet t { chain i { type filter hook input priority 0; ip protocol udp udp length 22 numgen inc mod 3 0 drop; }; }"
    a.run(["nft", "table inet t { chain i { type filter hook input priority 0; ip protocol udp udp length 22 drop; }; }"])
    b.run(["nft", rule])
    try:
        end = json.loads(owamp(a, b.address, "--count", 30, "--json", *QUICK, status=3).stdout)
    finally:
        for host in (a, b):
            host.run(["nft", "delete table inet t"])
    assert (end["up"]["sent"], end["up"]["lost"], end["up"]["loss"]) == (30, 10, pytest.approx(1 / 3, abs=1e-5))
    assert (end["down"]["sent"], end["down"]["lost"]) == (30, 30) and end["down"]["delay_us"] is None
    assert end["verdict"] == "invalid" and any("down: no packet arrived" in reason["text"] for reason in end["reasons"]), end["reasons"]


def test_a_client_that_is_stopped(shared_pair, ktrxer, serve, token):
    """The records so far are fetched."""
    a, b = shared_pair
    server = serves(serve, b, token)
    process = a.popen([ktrxer, "owamp", b.address, "--count", "1000", "--interval", "10ms", "--direction", "up", "--timeout", "300ms", "--jsonl"])
    process.stdout.readline()  # start
    until_sent(server, b)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    end = json.loads(process.communicate(timeout=20)[0].splitlines()[-1])
    assert 1 <= end["up"]["arrived"] <= end["up"]["sent"] < 1000
    assert end["up"]["lost"] == 0 and end["up"]["undecided"] >= 10, "packets of the last 300 ms are neither arrived nor lost (RFC 4656, 3.8)"
    assert end["verdict"] != "valid" and any("stopped before their time" in reason["text"] for reason in end["reasons"]), end["reasons"]


def until_sent(server, host):
    """A test packet has arrived at the host."""
    host.run([sys.executable, "-c", WAIT], timeout=20)


WAIT = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(0x0800))
while True:
    data = s.recv(100)
    if data[9] == 17 and len(data) == 42:
        break
"""


# ------------------------------------------------------------------------------------------- another implementation


def test_a_foreign_sender(shared_pair, serve, token):
    a, b = shared_pair
    serves(serve, b, token)
    got = peer_does(a, "client", b.address, PORT, "up", 20)
    assert got["modes"] == 1 and got["count"] >= 1024 and got["accept"] == got["taken"] == got["started"] == 0
    assert (got["fetch"], got["finished"], got["next"]) == (0, 1, 20) and got["stopped"] == []
    assert got["skips"] == [list(peer.SKIPPED)] and got["again"][:6] == [1, 4, 0, 1, 1, 20] and all(got["again"][6:])
    arrived = [one for one in got["records"] if one[4]]
    lost = [one for one in got["records"] if not one[4]]
    unsent = {*range(peer.SKIPPED[0], peer.SKIPPED[1] + 1)}
    assert sorted(one[0] for one in arrived) == sorted([*({*range(20)} - unsent - {peer.LOST}), peer.TWICE])
    assert all(one[1] == 1 and one[4] >= one[3] and one[5] == 64 for one in arrived)
    # A lost packet has the time of its schedule.
    assert [(one[0], one[5]) for one in lost] == [(peer.LOST, 255)]
    assert peer.unix(lost[0][3]) == pytest.approx(got["start"] + peer.SLOT_S * (peer.LOST + 1), abs=1e-5)


def test_a_foreign_receiver(shared_pair, serve, token):
    a, b = shared_pair
    serves(serve, b, token)
    got = peer_does(a, "client", b.address, PORT, "down", 20)
    assert [one[0] for one in got["came"]] == list(range(20)) and all(one[3] == 255 for one in got["came"])
    late = [one[1] - (got["start"] + peer.SLOT_S * (one[0] + 1)) for one in got["came"]]
    assert all(-1e-4 < one < 0.3 for one in late), "no packet before its time"
    assert got["stopped"] == [[20, []]] and got["fetch"] == 1, "the records are the receiver's"


def test_a_foreign_server(shared_pair, owamp, peer_serves):
    a, b = shared_pair
    server = peer_serves()
    end = json.loads(owamp(a, b.address, "--count", 20, "--json", "--model", "constant", "--dscp", "EF", *QUICK).stdout)
    seen = json.loads(server.communicate(timeout=20)[0])
    up, down = seen["sessions"]
    assert up["roles"] == [0, 1] and down["roles"] == [1, 0] and up["slots"] == down["slots"] == [[1, int(0.02 * 2**32)]]
    assert up["type_p"] == 46 << 24 and seen["stopped"] == [[20, []]]
    assert [one[0] for one in up["came"]] == list(range(20)) and all(one[3] == 255 for one in up["came"])
    assert (end["up"]["arrived"], end["up"]["lost"], end["up"]["duplicates"], end["up"]["hops_max"]) == (19, 1, 1, 5)
    # The peer's clock claims nothing, but each of its delays is 5 ms after the time in the packet.
    assert end["up"]["delay_us"] is None and end["up"]["delay_variation_us"]["max"] < 5000
    assert (end["down"]["sent"], end["down"]["not_sent"], end["down"]["lost"], end["down"]["duplicates"]) == (18, 2, 1, 1)


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("locked", "requires an authenticated mode"),
        ("closed", "does not serve this client"),
        ("refuse", "exceeds a limit of the server"),
        ("strange", "is not that of OWAMP"),
        ("die", "closed the control connection"),
    ],
)
def test_servers_that_do_not_measure(shared_pair, owamp, peer_serves, flag, text):
    a, b = shared_pair
    peer_serves(flag)
    assert text in owamp(a, b.address, "--count", 100, *QUICK, status=1).stderr


@pytest.mark.parametrize("flag", ["drip-greeting", "drip-records"])
def test_a_server_that_sends_a_byte_at_a_time_holds_the_client_for_ten_seconds(shared_pair, owamp, peer_serves, flag):
    """Each byte comes in time; the whole message has a limit, and some milliseconds more for each packet's record."""
    a, b = shared_pair
    server = peer_serves(flag)
    done = owamp(a, b.address, "--count", 5, "--direction", "up", *QUICK, status=1)
    assert "not complete after 10 s" in done.stderr
    assert 8 < json.loads(server.communicate(timeout=20)[0])["dripped_s"] < 20


@pytest.mark.parametrize(
    ("flag", "what"),
    [("claim-records", "the answer to the request for records"), ("claim-ranges", "a range of packets that were not sent")],
)
def test_a_server_that_claims_too_much_costs_nothing(shared_pair, owamp, peer_serves, flag, what):
    """The server sends as fast as the client reads: the limit is the number of packets, not the time."""
    a, b = shared_pair
    server = peer_serves(flag)
    assert f"{what} of the server is not that of OWAMP" in owamp(a, b.address, "--count", 5, "--direction", "up", *QUICK, status=1).stderr
    # The count includes the bytes in the buffers of both sockets.
    assert json.loads(server.communicate(timeout=20)[0])["poured"] < 32 << 20


def test_ranges_of_more_packets_than_were_requested_are_refused(shared_pair, owamp, peer_serves):
    a, b = shared_pair
    peer_serves("claim-stopped")
    done = owamp(a, b.address, "--count", 12, "--direction", "down", *QUICK, status=1)
    assert "a range of packets that were not sent of the server is not that of OWAMP" in done.stderr


def test_a_server_that_stops_the_sessions(shared_pair, owamp, peer_serves):
    a, b = shared_pair
    peer_serves("early")
    end = json.loads(owamp(a, b.address, "--count", 10, "--direction", "down", "--interval", "20ms", "--timeout", "100ms", "--json", status=3).stdout)
    assert any("the server stopped the sessions" in reason["text"] for reason in end["reasons"]), end["reasons"]


def test_no_server(shared_pair, owamp, serve, token):
    a, b = shared_pair
    assert "no program serves OWAMP" in owamp(a, b.address, status=1).stderr
    serve(b, "--token-file", token)  # a server without the feature
    assert "no program serves OWAMP" in owamp(a, b.address, status=1).stderr


def test_what_the_server_refuses(shared_pair, owamp, serve, token):
    a, b = shared_pair
    server = serves(serve, b, token, "--max-duration", "10s", "--max-bitrate", "1M")
    for options in (["--count", "1000"], ["--interval", "1ms", "--payload", 1400], ["--count", "100000", "--interval", "100us"]):
        assert "exceeds a limit of the server" in owamp(a, b.address, *options, status=1).stderr
    assert "does not support" in owamp(a, b.address, "--dscp", "EF", status=1).stderr
    ends, other = (a.address, b.address), (a.address, "10.77.0.99")
    good = peer.request(False, 5, (4000, 0), ends)
    setup = struct.pack(">I160x", 1)
    cases = {
        "another sender": (peer.request(False, 5, (4000, 0), (other[1], b.address)), 3),
        "another receiver": (peer.request(True, 5, (0, 4000), (b.address, other[1])), 3),
        "no packets": (peer.request(False, 0, (4000, 0), ends), 4),
        "no port": (peer.request(False, 5, (0, 0), ends), 3),
        "no slots": (peer.request(False, 5, (4000, 0), ends, slots=0), 3),
        "no time": (peer.request(False, 5, (4000, 0), ends, slot=(1, 0)), 4),
        "good": (good, 0),
    }
    for name, (message, accept) in cases.items():
        answer = peer_does(a, "raw", b.address, PORT, setup.hex(), message.hex())["answers"][1]
        assert len(answer) == 96 and int(answer[:2], 16) == accept, (name, answer)
    start, unknown_stop, fetch = struct.pack(">B31x", 2), peer.stop([(bytes(16), 5, [])]), struct.pack(">B7xII16s16x", 4, 0, 9, bytes(16))
    for name, messages, answers in (
        ("mode of no server", [struct.pack(">I160x", 4)], [96]),
        ("no mode", [bytes(164)], [0]),
        ("no session", [setup, start], [96, 64]),
        ("17 slots", [setup, peer.request(False, 5, (4000, 0), ends, slots=17)], [96, 96]),
        ("unknown command", [setup, b"\x09" + bytes(31)], [96, 0]),
        ("a slot of an unknown type", [setup, peer.request(False, 5, (4000, 0), ends, slot=(2, 1))], [96, 96]),
        ("a stop of nothing", [setup, unknown_stop], [96, 0]),
        ("a stop of another session", [setup, good, start, unknown_stop], [96, 96, 64, 0]),
        ("a fetch of nothing", [setup, fetch], [96, 64]),
        ("a fetch while it runs", [setup, good, start, fetch], [96, 96, 64, 0]),
        ("a fetch of no range", [setup, struct.pack(">B7xII16s16x", 4, 9, 0, bytes(16))], [96, 0]),
    ):
        got = peer_does(a, "raw", b.address, PORT, *(one.hex() for one in messages))["answers"]
        assert [0 if one == "closed" else len(one) for one in got] == answers, (name, got)
    assert owamp(a, b.address, "--count", 5, *QUICK).returncode in (0, 3), "the server still serves"
    server.stop()
    assert server.end["owamp"]["refused"] >= 10 and server.end["owamp"]["protocol_errors"] >= 6
