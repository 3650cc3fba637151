# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer capacity` and `ktrxer serve --udpstp-port` between two hosts: what is counted, what is refused, and another implementation of the protocol
(udpstp_peer.py) in both roles. Figures need shaped links: tests/virtual/test_capacity.py.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves
   fd00:77::1                    fd00:77::2
"""

import json
import signal
import struct
import sys
import time
from pathlib import Path

import pytest
import udpstp_peer as peer
from clients import client, servers
from flows import secret
from recorded import wrong

PEER = [sys.executable, Path(__file__).resolve().parent / "udpstp_peer.py"]
PORT = 24601
NULL_BYTES = 48  # of the PDU that opens a firewall
TOKEN = "a token for tests, long enough"
LIMIT = ("--max-bitrate", "20M")


@pytest.fixture
def capacity(ktrxer, token):
    return client(ktrxer, "capacity", token=token)


@pytest.fixture
def peer_serves(shared_pair):
    _, b = shared_pair
    with servers(b, *PEER, "serve", b.address, str(PORT)) as start:
        yield lambda *flags, token=TOKEN: start(token, *flags)


def peer_asks(host, to, *words, token=TOKEN):
    done = host.run([*PEER, "client", to, str(PORT), token, *map(str, words)], check=False, timeout=40)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --------------------------------------------------------------------------------------------------- both ends are ours


@pytest.mark.parametrize("address", ["address", "address6"])
def test_both_directions(shared_pair, capacity, serve, ktrxer, token, address):
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--udpstp-port", PORT, *LIMIT)
    done = capacity(a, getattr(b, address), "--for", "2s", "--jsonl", *LIMIT)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong(objects)
    end, samples = objects[-1], [one for one in objects if one.get("kind") == "ip_capacity"]
    headers = 48 if address == "address6" else 28
    for way in ("up", "down"):
        mine = [one for one in samples if one["direction"] == way]
        assert len(mine) == 2 == end[way]["sub_intervals"], end
        late = any(f"{way}: limited by" in reason["text"] and "ended late" in reason["text"] for reason in end["reasons"])  # a busy machine
        assert late or end[way]["maximum"]["bit_s"] == max(one["bit_s"] for one in mine)
        assert end[way]["datagrams"] == sum(one["datagrams"] for one in mine) > 100
        # 1 Mbit/s is a datagram of 125 bytes, 10 Mbit/s are those of 1250: no IP packet is longer.
        assert all(headers + 32 <= one["ip_bytes"] / one["datagrams"] <= 1250 for one in mine)
        assert end[way]["maximum"]["bit_s"] < 21e6
    sender = end["up"]["sender"]
    assert sender["requested"] == sender["sent"] + sender["failed"] + sender["skipped"] + sender["cancelled"] >= end["up"]["datagrams"]
    assert sender["skipped"] <= sender["late"] and sender["late_after_us"] == 100 and 0 < sender["lateness_us"]["p50"] <= sender["lateness_us"]["max"]
    assert "sender" not in end["down"]
    # Two namespaces have no narrow link: a test under a limit does not fill the path, and says so.
    assert end["verdict"] != "valid" and any("not filled the path" in reason["text"] or "rising" in reason["text"] for reason in end["reasons"])
    server.stop()
    counts = server.end["capacity"]
    assert counts["tests"] == 2 and counts["refused"] == 0 and counts["bytes_in"] > 0 and counts["bytes_out"] > 0
    assert server.listening["udpstp_port"] == PORT
    assert server.listening["system_call_filter"] is (b"__asan_init" not in ktrxer.read_bytes())


def test_a_fixed_row_and_one_mode(shared_pair, capacity, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token, "--udpstp-port", PORT)
    done = capacity(a, b.address, "--for", "3s", "--direction", "down", "--row", 8, "--first-mode", 1, "--jsonl")
    *samples, end = [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] in ("sample", "end")]
    # Row 8 is a packet of 1000 bytes each millisecond. A busy machine leaves some out.
    assert end["down"]["mean_bit_s"] < 8.4e6 and all(one["ip_bytes"] == 1000 * one["datagrams"] > 0 for one in samples)
    assert end["down"]["first_mode"]["count"] == 1 and end["down"]["second_mode"]["count"] == 2
    assert any("--row" in reason["text"] for reason in end["reasons"])


# ------------------------------------------------------------------------------------------- another implementation


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_foreign_client(shared_pair, serve, token, direction):
    a, b = shared_pair
    serve(b, "--token-file", token, "--udpstp-port", PORT, "--max-duration", "2s")
    result = peer_asks(a, b.address, direction, 3)
    assert result["answer"] == result["response"] == 1 and result["null"], result
    assert result["seconds"] == 2, "the server has changed the duration to its own limit"
    assert result["confirmed"], "both ends agree that it is over"
    if direction == "down":
        assert result["bad"] == 0 and result["intervals"] >= 2 and result["rates"][-1] > 2e6
    else:
        datagrams, payload, lasts_us = result["intervals"][-1]
        assert len(result["intervals"]) == 2 and payload > 32 * datagrams > 0 and 900_000 < lasts_us < 1_500_000
        assert sum(one[0] for one in result["intervals"]) <= result["sent"]


@pytest.mark.parametrize("modifiers", [1, 2])
def test_a_foreign_client_with_other_sizes(shared_pair, serve, token, modifiers):
    """Jumbo frames and packets of 1500 bytes: the answer has the same setting, without which the client ends."""
    a, b = shared_pair
    serve(b, "--token-file", token, "--udpstp-port", PORT)
    assert peer_asks(a, b.address, "down", 1, modifiers)["intervals"] >= 1


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("flags", [(), ("open",), ("open", "jumbo")])
def test_a_foreign_server(shared_pair, capacity, peer_serves, token, direction, flags):
    a, b = shared_pair
    server = peer_serves(*flags)
    done = capacity(a, b.address, "--for", "2s", "--direction", direction, "--json", token=None if "open" in flags else token)
    end = json.loads(done.stdout)
    counted = json.loads(server.communicate(timeout=20)[0])
    assert end["authenticated"] is ("open" not in flags) and end[direction]["sub_intervals"] == 2, (end, done.stderr)
    assert counted["confirmed"], counted
    if direction == "up":
        assert counted["bad"] == 0 and counted["datagrams"] <= end["up"]["sender"]["sent"]
        assert end["up"]["maximum"]["bit_s"] == pytest.approx(max(counted["rates"][:2]), rel=1e-4)
        assert end["up"]["delay_variation"]["max_ns"] == 5_000_000 and end["up"]["rtt_variation"]["max_ns"] == 7_000_000
    else:
        assert end["down"]["datagrams_received"] <= counted["sent"] and end["down"]["ignored"] == 0
        assert counted["statuses"] > 20


# ------------------------------------------------------------------------------------------------------- bad input


def test_what_is_refused(shared_pair, capacity, serve, token, tmp_path):
    a, b = shared_pair
    assert "no program serves UDPSTP" in capacity(a, b.address, status=1).stderr
    serve(b, "--token-file", token)  # a server without the feature
    assert "no program serves UDPSTP" in capacity(a, b.address, status=1).stderr
    other = secret(tmp_path / "other", "another token that is long enough")
    serve(b, "--token-file", token, "--port", 8621, "--udpstp-port", PORT, "--max-bitrate", "20M", "--max-clients", 1)
    assert "the server has another token" in capacity(a, b.address, token=other, status=1).stderr
    assert "requires authentication" in capacity(a, b.address, token=None, status=1).stderr
    assert "requires the highest rate" in capacity(a, b.address, status=1).stderr
    assert "no capacity left" in capacity(a, b.address, "--max-bitrate", "30M", status=1).stderr
    assert "parameters of the test" in capacity(a, b.address, *LIMIT, "--dscp", "CS6", "--for", "1s", status=1).stderr
    assert "no connection left" in _second(a, b, capacity)
    for options in (["--for", "1500ms"], ["--sample-interval", "20s"], ["--low-delay", "2s"], ["--start-row"], ["--for", "0"]):
        assert capacity(a, b.address, *options, status=2).stderr


def _second(a, b, capacity):
    """The message of a client that comes while another one is served, of which there may be one."""
    end = time.monotonic() + 20
    first = a.popen([*PEER, "client", b.address, str(PORT), TOKEN, "down", "5"])
    try:
        # The first client states no rate, which this server requires: the places are taken by a client that does.
        first.communicate(timeout=20)
        sock = [sys.executable, "-c", HOLD, str(Path(__file__).parent), b.address, str(PORT), TOKEN]
        holder = a.popen(sock)
        assert holder.stdout.readline() == "held\n", holder.communicate()
        text = capacity(a, b.address, *LIMIT, "--for", "1s", status=1).stderr
        holder.kill()
        holder.communicate()
        return text
    finally:
        assert time.monotonic() < end


# A client that asks for a test and does not activate it.
HOLD = """
import socket, sys, time
sys.path.insert(0, sys.argv[1])
import udpstp_peer as peer
now = int(time.time())
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(5)
sock.sendto(peer.sign(peer.setup(1, 0, 5, 0, 0, mbit=20), peer.keys(sys.argv[4], now)[0], now), (sys.argv[2], int(sys.argv[3])))
while sock.recv(999)[:2] != b"\\xac\\xe1":
    pass
print("held", flush=True)
time.sleep(30)
"""


def test_no_answer(shared_pair, capacity, token):
    """A host that drops the requests; the client gives up after three and a half seconds."""
    a, b = shared_pair
    b.run(["nft", "add table inet t; add chain inet t i { type filter hook input priority 0; }; add rule inet t i udp dport 24601 drop"])
    try:
        begin = time.monotonic()
        assert "does not answer" in capacity(a, b.address, status=1).stderr
        assert 2 < time.monotonic() - begin < 20
    finally:
        b.run(["nft", "delete table inet t"])


@pytest.mark.parametrize(("host", "reason"), [("192.0.2.1", "Network is unreachable"), ("10.77.0.99", "No route to host")])
def test_a_server_without_a_route(shared_pair, capacity, host, reason):
    """The kernel's reason, and no words about firewalls."""
    assert f"{host} port 24601: {reason}\n" in capacity(shared_pair[0], host, status=1).stderr


def test_a_server_that_dies(shared_pair, capacity, peer_serves):
    a, b = shared_pair
    peer_serves("die")
    end = json.loads(capacity(a, b.address, "--for", "4s", "--direction", "down", "--json", status=3).stdout)
    assert end["verdict"] != "valid" and any("nothing came from the server" in reason["text"] for reason in end["reasons"]), end["reasons"]


def test_a_client_that_is_stopped(shared_pair, ktrxer, serve, token):
    """It informs the server, which frees the place at once."""
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--udpstp-port", PORT, "--max-clients", 1, *LIMIT)
    words = [ktrxer, "capacity", b.address, "--token-file", token, "--direction", "down", *LIMIT, "--jsonl", "--sample-interval", "5s"]
    for _ in range(2):
        process = a.popen([*words, "--for", "10s"])
        process.stdout.readline()  # start
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        end = json.loads(process.communicate(timeout=20)[0].splitlines()[-1])
        assert end["verdict"] == "invalid" and any("stopped" in reason["text"] for reason in end["reasons"]), end["reasons"]
    server.stop()
    assert server.end["capacity"]["tests"] == 2 and server.end["capacity"]["refused"] == 0


def test_a_ctrl_c_that_ends_both_ends(shared_pair, ktrxer, serve, token):
    """As in `ktrxer lab run`, where a terminal sends it to all: the request to stop and the server's last message arrive together."""
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--udpstp-port", PORT, *LIMIT)
    process = a.popen([ktrxer, "capacity", b.address, "--token-file", token, "--direction", "up", *LIMIT, "--jsonl", "--for", "8s"])
    while json.loads(process.stdout.readline())["type"] != "sample":
        pass
    process.send_signal(signal.SIGSTOP)
    server.stop()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    reasons = [one["text"] for one in json.loads(process.communicate(timeout=20)[0].splitlines()[-1])["reasons"]]
    assert any("the test was stopped after" in reason for reason in reasons), reasons
    assert not any("the server ended the test" in reason for reason in reasons), reasons


@pytest.mark.parametrize("stopped_s", [2, 8])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_client_that_did_not_run(shared_pair, ktrxer, serve, token, direction, stopped_s):
    """The server sends nothing to a client that is silent for a second, and ends its test after five: neither the server nor the path is at fault."""
    a, b = shared_pair
    serve(b, "--token-file", token, "--udpstp-port", PORT, *LIMIT)
    process = a.popen([ktrxer, "capacity", b.address, "--token-file", token, "--direction", direction, *LIMIT, "--jsonl", "--for", "4s"])
    while json.loads(process.stdout.readline())["type"] != "sample":  # there is a result
        pass
    process.send_signal(signal.SIGSTOP)
    time.sleep(stopped_s)
    process.send_signal(signal.SIGCONT)
    reasons = [one["text"] for one in json.loads(process.communicate(timeout=20)[0].splitlines()[-1])["reasons"]]
    assert any("limited by this host: this program did not run" in reason for reason in reasons), reasons
    assert not any("nothing came from the server" in reason for reason in reasons), reasons


def test_a_server_without_the_key(shared_pair, capacity, peer_serves):
    a, b = shared_pair
    peer_serves("forge")
    assert "not signed with the token" in capacity(a, b.address, status=1).stderr


ASK = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect((sys.argv[1], int(sys.argv[2])))
sock.settimeout(0.5)
for one in sys.argv[3:]:
    sock.send(bytes.fromhex(one))
    answers = []
    try:
        while True:
            answers.append(sock.recv(65535))
    except (TimeoutError, ConnectionRefusedError):
        pass
    print(" ".join(one.hex() for one in answers) or "-")
"""


def ask(host, to, *datagrams):
    done = host.run([sys.executable, "-c", ASK, to, str(PORT), *(one.hex() for one in datagrams)], timeout=60)
    return [[bytes.fromhex(one) for one in line.split() if one != "-"] for line in done.stdout.splitlines()]


def test_a_limit_below_one_megabit_is_a_limit(shared_pair, capacity, serve, token):
    """Rates of the protocol are whole numbers of Mbit/s: half of one once was no limit."""
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--udpstp-port", PORT, "--max-bitrate", "500k")
    now = int(time.time())
    key = peer.keys(TOKEN, now)[0]
    replies = ask(a, b.address, *(peer.sign(peer.setup(1, 0, 9, 0, 0, rate), key, now) for rate in (0, 1, 1000)))
    assert [one[0][9] for one in replies] == [9, 10, 10], replies
    server.stop()
    assert server.end["capacity"]["tests"] == 0


def test_hostile_requests(shared_pair, serve, token):
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--udpstp-port", PORT)
    now = int(time.time())
    key = peer.keys(TOKEN, now)[0]
    good = peer.sign(peer.setup(1, 0, 9, 0, 0), key, now)
    wrong_sum = good[:-2] + struct.pack(">H", (struct.unpack(">H", good[-2:])[0] + 1) % 65536 or 1)
    old = now - 1000
    replies = ask(
        a, b.address,
        b"", b"\xac\xe1", good[:-1], good + b"\0", bytes(56), wrong_sum,             # no answer at all
        peer.sign(peer.setup(2, 1, 9, 99, 0), key, now),                              # a response
        peer.sign(peer.setup(1, 0, 9, 0, 0, version=11), key, now),                   # an older version
        peer.sign(peer.setup(1, 0, 9, 0, 0), peer.keys(TOKEN, old)[0], old),          # too old
        peer.sign(peer.setup(1, 0, 9, 0, 0), None, 0),                                # not authenticated
        good, good,                                                                   # accepted; the copy gets the same answer
    )  # fmt: skip
    assert [len(one) for one in replies] == [0] * 7 + [1] * 5, replies
    assert [one[0][9] for one in replies[7:]] == [2, 8, 5, 1, 1]
    assert replies[10][0][12:14] == replies[11][0][12:14], "the port of the same test"
    assert all(len(one) <= 56 for answers in replies for one in answers)
    time.sleep(5.5)  # the test is not activated in time, and is forgotten
    assert ask(a, b.address, good) == [[]], "a request that was accepted is not accepted again"
    server.stop()
    assert server.end["capacity"]["tests"] == 0


@pytest.mark.parametrize("address", ["address", "address6"])
def test_a_nat_with_another_port_for_each_destination(shared_pair, capacity, serve, token, address):
    """The activation reaches the server from another port than the setup request (RFC 4787: address- and port-dependent mapping)."""
    a, b = shared_pair
    family, own = ("ip", a.address) if address == "address" else ("ip6", f"[{a.address6}]")
    serve(b, "--token-file", token, "--udpstp-port", PORT, *LIMIT)
    a.run(["nft", f"add table {family} t; add chain {family} t p {{ type nat hook postrouting priority 100; }}"])
    a.run(["nft", f"add rule {family} t p udp dport != {PORT} counter snat to {own}:30000-30999"])
    # The server's first datagram from the test port has no mapping on such a NAT, which drops it. Here it would make one before NAT.
    a.run(["nft", f"add chain {family} t r {{ type filter hook prerouting priority raw; }}"])
    a.run(["nft", f"add rule {family} t r udp sport != {PORT} udp length {8 + NULL_BYTES} drop"])
    try:
        done = capacity(a, getattr(b, address), "--for", "1s", "--json", *LIMIT)
        counted = a.run(["nft", "list", "table", family, "t"]).stdout
    finally:
        a.run(["nft", "delete", "table", family, "t"])
    end = json.loads(done.stdout)
    assert all(end[way]["maximum"]["bit_s"] > 1e6 for way in ("up", "down")), end["reasons"]
    assert "packets 0" not in counted, counted
