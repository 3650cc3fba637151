# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer flow` with faults on the path, and a server with hostile clients.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves; tc narrows the link where a test says so
   fd00:77::1                    fd00:77::2
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from flows import MS, Run, S, check_series, command, stop
from noise import before_others
from shims import shim
from waiting import event, received, until, waited_ns

# ------------------------------------------------------------------------------------------------ what breaks on the way


def test_the_server_is_stopped_and_comes_back(shared_pair, flow, ktrxer, serve, token):
    a, b = shared_pair
    for number in (signal.SIGTERM, signal.SIGKILL):
        server = serve(b, "--token-file", token)
        child = a.popen([*command(ktrxer, token, "both", b.address, "--bitrate", "50M", "--for", "10s"), "--jsonl"])
        received(child, flows=2)
        begin = time.monotonic()
        server.process.send_signal(number)
        out, err = child.communicate(timeout=10)
        assert time.monotonic() - begin < 3
        run = Run('{"type":"start"}\n' + out, child.returncode, err)
        assert run.status == 3 and run.end["verdict"] == "degraded"
        assert any("the server was stopped" in r for r in run.reasons), run.reasons
        named = [r for r in run.reasons if r.startswith("flow ")]
        assert len(named) == 2 and "early, after" in named[0] and "flow 1 (down)" in named[1], run.reasons
        assert all(one["bytes"] > 0 and one["error"] for one in run.flows)
        server.process.communicate(timeout=10)
    serve(b, "--token-file", token)  # at once, on the same port
    assert flow(a, "down", b.address, "--bytes", "1M").flows[0]["bytes"] == 1_000_000


def test_the_client_is_gone(shared_pair, flow, ktrxer, serve, token):
    """A client is killed during a measurement: the server frees its resources and serves the next client."""
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--max-clients", 1)
    child = a.popen([*command(ktrxer, token, "both", b.address, "--flows", 20, "--bitrate", "1M", "--for", "30s"), "--jsonl"])
    event(child, "flows_started")
    descriptors = Path(f"/proc/{server.process.pid}/fd")
    many = len(list(descriptors.iterdir()))
    child.kill()
    child.communicate()
    until(lambda: len(list(descriptors.iterdir())) <= many - 41, "the server has closed the client's 41 connections")
    assert flow(a, "down", b.address, "--bytes", "1M").flows[0]["bytes"] == 1_000_000
    assert stop(server)["clients_lost"] == 1


def test_one_direction_lost(requires_namespaces, ktrxer, serve, token):
    """In the second half no packet passes in one or both directions: the run ends nevertheless, and reports the unknown figures."""
    from ktrxer_lab import hosts

    with hosts.pair() as first, hosts.pair() as second:
        children = []
        for a, b in (first, second):
            serve(b, "--token-file", token)
            options = ["--bitrate", "10M", "--for", "1500ms", "--sample-interval", "100ms", "--jsonl"]
            children.append(a.popen(command(ktrxer, token, "both", b.address, *options)))
        for host in (first[1], second[0]):
            host.run(["nft", "add", "table", "inet", "loss"])
            host.run(["nft", "add", "chain", "inet", "loss", "in", "{ type filter hook input priority 0; policy accept; }"])
        for child in children:
            received(child, flows=2)
        for host in (first[1], second[0]):
            host.run(["nft", "chain", "inet", "loss", "in", "{ policy drop; }"])
        begin = time.monotonic()
        for child in children:
            out, err = child.communicate(timeout=30)
            run = Run('{"type":"start"}\n' + out, child.returncode, err)
            assert run.end["verdict"] != "valid"
            assert any("final counts of 2 of 2 flows did not arrive" in r for r in run.reasons), run.reasons
            assert all(0 < one["bytes"] < 1.7e6 for one in run.flows), run.flows
        assert time.monotonic() - begin < 15


# Forwards TCP from port 8700 to the server. After CONTROL_READY (type 5) it delays the first connection's bytes to the server once by so many seconds:
# the time that TCP needs to repeat a segment that was lost three times.
RELAY = r"""
import socket, struct, sys, threading, time
host, seconds = sys.argv[1], float(sys.argv[2])
wait = [seconds]
def up(client, server, until):
    while data := client.recv(65536):
        time.sleep(max(0, until[0] - time.monotonic())); server.sendall(data)
    server.shutdown(socket.SHUT_WR)
def down(client, server, until):
    frames, at = b"", 32                       # behind the preface
    while data := server.recv(65536):
        frames += data
        while len(frames) >= at + 4:
            head, = struct.unpack_from(">I", frames, at)
            if head >> 24 == 5 and wait: until[0] = time.monotonic() + wait.pop()
            at += 4 + (head & 0xffffff) + 16
        client.sendall(data)
    client.shutdown(socket.SHUT_WR)
def quiet(carry, *ends):
    try: carry(*ends)
    except OSError: pass
listener = socket.create_server((host, 8700))
print("ready", flush=True)
while True:
    ends = listener.accept()[0], socket.create_connection((host, 8620)), [0]
    for carry in (up, down): threading.Thread(target=quiet, args=(carry, *ends), daemon=True).start()
"""


def test_the_first_exchange_of_clocks_takes_longer_than_a_second(shared_pair, flow, serve, token):
    """With 10 % loss about one of a hundred sessions failed so: a segment of an exchange was lost three times."""
    a, b = shared_pair
    server = serve(b, "--token-file", token, prefix=before_others())
    with b.popen([*before_others(), "python3", "-c", RELAY, b.address, "1.5"]) as relay:
        try:
            assert relay.stdout.readline() == "ready\n"
            before = waited_ns(server.process.pid)
            run = flow(a, "down", b.address, "--bytes", 100_000, "--port", 8700)
        finally:
            relay.kill()
    assert run.flows[0]["bytes"] == 100_000 and not run.reasons, run.end
    # The start comes 200 ms ahead of its time.
    assert run.end["server_began_late_ns"] <= 10 * MS + waited_ns(server.process.pid) - before + run.stolen_ms * MS, run.end


def test_ctrl_c_blames_no_other_end(narrow_pair, ktrxer, serve, token):
    """The stop closes connections whose buffers are full: they end with a reset at the server."""
    a, b = narrow_pair
    serve(b, "--token-file", token)
    child = a.popen([*command(ktrxer, token, "both", b.address, "--flows", "2", "--for", "20s", "--sample-interval", "20ms"), "--jsonl"])
    received(child, flows=4)
    child.send_signal(signal.SIGINT)
    out = child.stdout.read()  # communicate() would lose what waits in the buffer of readline()
    run = Run('{"type":"start"}\n' + out, child.wait(timeout=20), child.stderr.read())
    assert run.status == 3 and not run.events("flow_failed"), run.events("flow_failed")
    ended = run.events("flow_ended")
    assert len(ended) == 8 and {(one["reason"], one["error"]) for one in ended} == {("stopped", None)}, ended
    assert not [one for one in run.reasons if "the server" in one or "reset" in one], run.reasons


def test_a_stop_counts_no_packet_whose_time_has_not_come(shared_pair, ktrxer, serve, token):
    """Packets are committed before their time. Those that a stop cancels were not due."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    child = a.popen([*command(ktrxer, token, "both", b.address, "--udp", "--bitrate", "3M", "--payload", "1250", "--for", "20s"), "--jsonl"])
    received(child, flows=2)
    child.send_signal(signal.SIGINT)
    for one in json.loads(child.stdout.read().splitlines()[-1])["flows"]:
        by_now = one["duration_ns"] * 3e6 / (1250 * 8e9)
        assert one["due_packets"] <= by_now + 1.5, (one, by_now)
    assert child.wait(timeout=20) == 3


def test_stop_on_eof(shared_pair, ktrxer, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)
    child = a.popen(
        [*command(ktrxer, token, "up", b.address, "--bitrate", "1M", "--for", "30s", "--stop-on-eof"), "--jsonl"], stdin=subprocess.PIPE
    )
    received(child, flows=1)
    child.stdin.close()
    child.stdin = None
    begin = time.monotonic()
    out, _ = child.communicate(timeout=10)
    assert time.monotonic() - begin < 3
    end = json.loads(out.splitlines()[-1])
    assert any("it was stopped" in r["text"] for r in end["reasons"]) and end["flows"][0]["bytes"] > 0
    assert end["flows"][0]["received_bytes"] is not None


def test_the_clock_is_stepped(shared_pair, ktrxer, flow, token):
    """CLOCK_REALTIME jumps at either end while flows run: none of their times are on it."""
    a, b = shared_pair
    stepped = ["env", f"LD_PRELOAD={shim(ktrxer)}", f"CLOCK_SHIM_STEP_NS={3600 * S}", "CLOCK_SHIM_AFTER_MS=500", "CLOCK_SHIM_BACK_MS=400"]
    server = b.popen([*stepped, ktrxer, "serve", "--token-file", token, "--port", 8621])
    server.stdout.readline()
    options = ["--bitrate", "10M", "--for", "1500ms", "--sample-interval", "100ms", "--port", 8621]
    run = flow(a, "both", b.address, *options, prefix=stepped)
    server.terminate()
    server.communicate(timeout=10)
    check_series(run, 100 * MS)
    assert all(1.49 * S < one["duration_ns"] < 1.8 * S + run.starved_ns(one, "here", "server") for one in run.flows)
    # The local step is reported, as in all commands; the flows are not affected.
    assert not [r for r in run.reasons if "clock" not in r.lower()], run.reasons


# ------------------------------------------------------------------------------------------------- hostile to the server

HOSTILE = r"""
import hashlib, hmac, os, socket, struct, sys, threading, time
host, mode, token = sys.argv[1], sys.argv[2], open(sys.argv[3], "rb").read().strip()
def connect():
    s = socket.create_connection((host, 8620), timeout=20); s.settimeout(40); return s
def rest(s):
    data = b""
    try:
        while part := s.recv(65536): data += part
    except ConnectionError: pass
    return data
def mac(key, data): return hmac.new(key, data, hashlib.sha256).digest()
class Control:
    def __init__(self, token=token, hello=None):
        self.s = connect()
        hello = hello or b"ktrxerC\1" + os.urandom(24)
        self.s.sendall(hello)
        answer = b""
        while len(answer) < 32:
            part = self.s.recv(32 - len(answer))
            if not part: raise ConnectionError
            answer += part
        base = mac(token, b"ktrxer control\0" + hello + answer)
        self.key, self.cookies, self.n = mac(base, b"to server"), mac(base, b"cookies"), 0
    def seal(self, kind, body):
        frame = struct.pack(">I", kind << 24 | len(body)) + body
        self.n += 1
        return frame + mac(self.key, struct.pack(">Q", self.n - 1) + frame)[:16]
    def send(self, kind, body=b""):
        frame = self.seal(kind, body); self.s.sendall(frame); return frame
def request(flows=1): return struct.pack(">IQQQQQB", flows, 10**9, 0, 10**9, 10**8, 0, 0)
REFUSE = lambda why: struct.pack(">IB", 13 << 24 | 9, why)
if mode == "garbage":
    for data in (os.urandom(4000), b"GET / HTTP/1.1\r\n\r\n", b"ktrxerX\1" + bytes(24), b"ktrxerD\1" + os.urandom(24), b"ktrxerC", b""):
        s = connect()
        try: s.sendall(data); s.shutdown(socket.SHUT_WR)
        except OSError: pass   # closed by then: the first bytes were wrong
        assert rest(s) == b"", data
elif mode == "slow":
    begin = time.monotonic()
    many = [connect() for _ in range(40)]
    def drip(s):
        try:
            for byte in b"ktrxerC\1" + bytes(24):
                s.sendall(bytes([byte])); time.sleep(1)
        except OSError: pass
    threads = [threading.Thread(target=drip, args=(s,)) for s in many[:5]]
    [t.start() for t in threads]
    half = Control()   # it has shown a nonce, and says no more
    assert rest(half.s) is not None
    for s in many: assert rest(s) == b""
    took = time.monotonic() - begin
    assert 9.5 < took < 25, took   # the last byte comes after 32 s
    [t.join() for t in threads]
elif mode == "oversized":
    c = Control(); c.s.sendall(struct.pack(">I", 1 << 24 | 513)); assert REFUSE(3) in rest(c.s)
    c = Control(); c.send(1, request()); c.s.sendall(struct.pack(">I", 3 << 24 | 0xffffff)); assert REFUSE(3) in rest(c.s)
    c = Control(); c.send(1, request(2**32 - 1)); assert REFUSE(5) in rest(c.s)
    c = Control(); c.send(1, bytes(300)); assert REFUSE(3) in rest(c.s)
    c = Control(); c.send(8, bytes(8)); assert REFUSE(3) in rest(c.s)       # out of turn
    c = Control(); c.send(1, request()); c.send(3, struct.pack(">IH", 0, 1) + bytes(39)); assert REFUSE(3) in rest(c.s)
elif mode == "replayed":
    hello = b"ktrxerC\1" + bytes(24)
    c = Control(hello=hello); recorded = c.send(1, request()); c.s.recv(64)
    again = Control(hello=hello); again.s.sendall(recorded); assert REFUSE(1) in rest(again.s)
    c.s.sendall(recorded); assert REFUSE(3) in rest(c.s)                   # the same again, on the same connection
    c = Control(token=b"wrong"); c.send(1, request()); assert REFUSE(1) in rest(c.s)
elif mode == "cookies":
    c = Control(); c.send(1, request()); grant = c.s.recv(64)
    session = struct.unpack(">I", grant[4:8])[0]
    c.send(3, struct.pack(">IH", 0, 1) + bytes(40)); c.s.recv(64)
    right = mac(c.cookies, struct.pack(">II", session, 0))[:16]
    for flow, cookie in ((0, os.urandom(16)), (1, right), (2**32 - 1, right)):
        s = connect(); s.sendall(b"ktrxerD\1" + struct.pack(">II", session, flow) + cookie); assert rest(s) == b""
    good = connect(); good.sendall(b"ktrxerD\1" + struct.pack(">II", session, 0) + right)
    assert c.s.recv(20)[0] == 5                                            # READY
    s = connect(); s.sendall(b"ktrxerD\1" + struct.pack(">II", session, 0) + right); assert rest(s) == b""   # taken
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(100): u.sendto(b"ktrxerU\1" + struct.pack(">II", session, 0) + os.urandom(16), (host, 8620))
elif mode == "flood":
    held, ended = [], threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        try: held.append(connect())
        except OSError: pass
        if len(held) == 400: print("floods", flush=True)
        if len(held) > 400: held.pop(0).close()
elif mode == "guess":
    # Several at once: the limit is 20 a second after the first 100, and a busy machine may need 50 ms for one after the other.
    refused, closed, begin = [], [], time.monotonic()
    def guess():
        while len(closed) < 4 and time.monotonic() < begin + 20:
            try:
                c = Control(token=os.urandom(8)); c.send(1, request())
                if REFUSE(1) in rest(c.s): refused.append(1)
            except (OSError, ConnectionError, IndexError): closed.append(1)
    threads = [threading.Thread(target=guess) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert 90 < len(refused) < 120 + 20 * (time.monotonic() - begin) and closed, (len(refused), len(closed))
print("done", flush=True)
"""


def attack(host, server, token, mode, timeout=60, **more):
    return host.popen(["timeout", str(timeout), "python3", "-c", HOSTILE, server.address, mode, token], **more)


def finished(child):
    out, err = child.communicate(timeout=80)
    assert child.returncode == 0 and "done" in out, err


def resident(server):
    (line,) = [one for one in Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1])


def test_hostile_clients(shared_pair, ktrxer, flow, serve, token):
    """The server serves an honest client during and after attacks, and keeps no resources of the attackers."""
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--max-clients", 3)
    descriptors = Path(f"/proc/{server.process.pid}/fd")
    before, memory = len(list(descriptors.iterdir())), resident(server)
    slow = attack(a, b, token, "slow")
    for mode in ("garbage", "oversized", "replayed", "cookies"):
        child = attack(a, b, token, mode)
        assert flow(a, "both", b.address, "--bytes", "1M").end["bytes"] == 2_000_000
        finished(child)
    child = attack(a, b, token, "flood", stdin=subprocess.PIPE)
    assert child.stdout.readline() == "floods\n"
    assert flow(a, "both", b.address, "--bitrate", "5M", "--bytes", "500k").end["bytes"] == 1_000_000
    assert child.poll() is None, "the attack ended before the flows"
    finished(child)
    finished(slow)
    finished(attack(a, b, token, "guess"))
    until(lambda: len(list(descriptors.iterdir())) == before, "the server has closed the attackers' connections")
    # A sanitizer delays freeing of memory; its leak detector checks at the end.
    assert resident(server) < memory + (65536 if b"__asan_init" in ktrxer.read_bytes() else 4096)
    counts = stop(server)
    assert (
        counts["protocol_errors"] >= 100
        and counts["pending_slow"] + counts["pending_displaced"] >= 40
        and counts["refused"]["malformed"] >= 5
    )
    assert counts["refused"]["wrong_token"] >= 90
    assert counts["bytes_in"] > 4_000_000


def test_a_token_file_that_is_not_there(ktrxer, tmp_path):
    done = subprocess.run([ktrxer, "serve", "--token-file", "token"], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    remedy = "`(umask 077; head -c 16 /dev/urandom | base64 >token)`"
    assert (
        done.returncode in (1, 2)
        and done.stderr.splitlines()[0] == f"ktrxer serve: --token-file token: No such file or directory; make it: {remedy}"
    )
    subprocess.run(["sh", "-c", remedy.strip("`")], cwd=tmp_path, check=True)
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            None,
            "ktrxer flow: --token-file is missing: the measurement needs the token of `ktrxer serve`, which names its file at its start. Put the token into",
        ),
        ("", "ktrxer flow: --token-file is missing"),
        ("short", "ktrxer flow: KTRXER_TOKEN holds 5 bytes; a token has 22 to 1022"),
        ("x" * 1023, "ktrxer flow: KTRXER_TOKEN holds 1023 bytes; a token has 22 to 1022"),
        ("x" * 1022, "nothing listens on TCP port 1"),
    ],
)
def test_a_token_from_the_environment(ktrxer, value, expected):
    environment = {name: text for name, text in os.environ.items() if name != "KTRXER_TOKEN"} | (
        {} if value is None else {"KTRXER_TOKEN": value}
    )
    words = [ktrxer, "flow", "up", "127.0.0.1", "--port", "1"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=20)
    assert done.returncode in (1, 2) and expected in done.stderr, done.stderr


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("family", ["address", "address6"])
def test_a_reset_ends_the_time_of_the_rate(pair, ktrxer, serve, token, direction, family):
    """A firewall of the receiver resets the flow after 1.3 s: its rate is of this time, and the direction has none."""
    a, b = pair
    serve(b, "--token-file", token)
    receiver, port = (b, "dport") if direction == "up" else (a, "sport")
    child = a.popen([*command(ktrxer, token, direction, getattr(b, family), "--bitrate", "5M", "--for", "6s"), "--jsonl"])
    start_ns = event(child, "flows_started")["start_ns"]
    receiver.run(["nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; }"])
    time.sleep(max(0, start_ns + 1.3 * S - time.monotonic_ns()) / S)
    receiver.run(["nft", f"add rule inet cut in meta length > 1000 tcp {port} 8620 reject with tcp reset"])
    cut_s = (time.monotonic_ns() - start_ns) / S
    out, err = child.communicate(timeout=20)
    run = Run('{"type":"start"}\n' + out, child.returncode, err)
    (one,) = run.flows
    assert abs(one["duration_ns"] / S - cut_s) < 0.25, (one, cut_s)
    assert one["rate_bps"] == pytest.approx(one["bytes"] * 8e9 / one["duration_ns"], rel=1e-6) and 4e6 < one["rate_bps"] < 5.6e6, one
    assert run.end[f"{direction}_bps"] is run.end["rate_bps"] is None
    assert run.end[f"{direction}_coverage_percent"] == pytest.approx(one["coverage_percent"], abs=2) and one["coverage_percent"] < 30
    assert any("there is no rate of this direction" in r for r in run.reasons) and any("early, after" in r for r in run.reasons), (
        run.reasons
    )


def test_losses_without_the_final_count_are_not_known(shared_pair, ktrxer, serve, token):
    """The last packets of a flow may be lost without a later packet that shows it: a number of losses would be too small."""
    a, b = shared_pair
    server = serve(b, "--token-file", token)
    child = a.popen([*command(ktrxer, token, "up", b.address, "--udp", "--bitrate", "1M", "--for", "5s"), "--jsonl"])
    received(child, flows=1)
    server.process.kill()
    out, err = child.communicate(timeout=10)
    run = Run('{"type":"start"}\n' + out, child.returncode, err)
    server.process.communicate(timeout=10)
    assert run.flows[0]["lost"] is None and run.flows[0]["bytes"] > 0, run.flows[0]
