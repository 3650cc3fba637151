# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer stamp` and `ktrxer serve` with faults, and unauthenticated packets to a reflector.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A measures, B serves; nftables in B loses what a test says,
   fd00:77::1                    fd00:77::2        by the sequence number in the packet
"""

import os
import signal
import sys

import pytest
from far_end import flowing
from noise import reasons
from stamps import PORT, parse
from waiting import until

# ---------------------------------------------------------------------------------------------------------------- faults


def test_server_restarted_in_mid_run(pair, ktrxer, serve):
    a, b = pair
    first = serve(b)
    client = a.popen([ktrxer, "stamp", b.address, "-i", "5ms", "--timeout", "300ms", "--jsonl"])
    flowing(a, 80)
    first.stop()
    flowing(a, 40)
    serve(b)
    flowing(a, 200)
    client.send_signal(signal.SIGINT)
    end, kinds = parse(client.communicate(timeout=20)[0])
    assert end["reflector_restarts"] == 1 and end["lost"] > 10 and end["received"] > 150
    assert any("began to count anew" in r for r in reasons(end))
    assert any("efused" in str(event.get("error")) or event.get("icmp_type") == 3 for event in kinds.get("network_error", []))


def test_server_stopped(pair, ktrxer, serve):
    a, b = pair
    server = serve(b)
    client = a.popen([ktrxer, "stamp", b.address, "-c", "200", "-i", "5ms", "--timeout", "200ms", "--jsonl"])
    flowing(a, 80)
    server.stop()
    end, _ = parse(client.communicate(timeout=20)[0])
    assert end["received"] > 20 and end["lost"] > 20 and end["lost_unknown"] > 20, "no counter of the reflector is left that shows the direction"


def test_client_gone(pair, ktrxer, stamp, serve):
    a, b = pair
    server = serve(b)
    client = a.popen([ktrxer, "stamp", b.address, "-i", "2ms", "--jsonl"])
    flowing(a, 100)
    client.kill()
    client.communicate()
    end, _ = stamp(a, b.address, "-c", 20, "-i", "2ms")
    assert end["received"] == 20
    assert server.stop()["answered"] > 50


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_client_closes_its_accounts(pair, ktrxer, serve, number):
    a, b = pair
    serve(b)
    client = a.popen([ktrxer, "stamp", b.address, "-c", "10000", "-i", "5ms", "--jsonl"])
    flowing(a, 50)
    client.send_signal(number)
    end, _ = parse(client.communicate(timeout=20)[0])
    assert end["requested"] == 10000 and end["cancelled"] > 9000 and end["received"] > 20
    assert any("it was stopped" in r for r in reasons(end))


def test_nobody_there(shared_pair, stamp):
    a, b = shared_pair
    end, kinds = stamp(a, b.address, "-c", 5, "-i", "10ms", "--timeout", "100ms", status=1)
    assert end["lost"] == 5 and end["verdict"] == "invalid" and end["network_errors"] > 0 and "network_error" in kinds


# A foreign reflector: `how` is its fault, or `short` for the shortest answer of RFC 5357, which is correct.
OTHER = """
import socket, struct, sys, time
own, port, how, second = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((own, port))
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); other.bind((second, port))
def now():
    ns = time.time_ns()
    return struct.pack("!II", ns // 10**9 + 2208988800, (ns % 10**9 << 32) // 10**9)
print("ready", flush=True)
while True:
    probe, sender = s.recvfrom(65536)
    arrived = now()
    copied = bytes(12) if how == "forgetful" else probe[4:16]
    answer = probe[:4] + now() + probe[12:14] + bytes(2) + arrived + probe[:4] + copied + bytes([64])
    (other if how == "elsewhere" else s).sendto(answer[:41], sender)
"""


@pytest.fixture
def other_reflector():
    started = []

    def start(host, how):
        host.ip("addr", "add", "10.77.0.99/24", "dev", "b0")
        process = host.popen([sys.executable, "-c", OTHER, host.address, str(PORT), how, "10.77.0.99"])
        assert process.stdout.readline() == "ready\n"
        started.append(process)

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_shortest_answer_of_twamp(pair, stamp, other_reflector):
    a, b = pair
    other_reflector(b, "short")
    end, _ = stamp(a, b.address, "-c", 20, "-i", "5ms")
    assert end["received"] == 20 and end["foreign"] == 0 and not end["follow_up"]


@pytest.mark.parametrize("how, words", [("forgetful", "no packet answers a probe of this run"), ("elsewhere", "from other addresses than")])
def test_answers_that_are_none_are_named(pair, stamp, other_reflector, how, words):
    a, b = pair
    other_reflector(b, how)
    end, _ = stamp(a, b.address, "-c", 20, "-i", "5ms", "--timeout", "100ms", status=1)
    assert end["received"] == 0 and end["foreign"] >= 20 and end["verdict"] == "invalid"
    assert any(words in reason["text"] for reason in end["reasons"]) and not any("nothing at all" in reason["text"] for reason in end["reasons"]), end["reasons"]


def test_probe_larger_than_the_mtu(shared_pair, ktrxer, serve):
    a, b = shared_pair
    serve(b)
    done = a.run([ktrxer, "stamp", b.address, "-c", "1", "-s", "1473"], check=False)
    assert done.returncode == 1 and "MTU of 1500" in done.stderr


def test_larger_than_what_the_far_end_takes(pair, stamp, serve):
    a, b = pair
    for host, device in ((a, "a0"), (b, "b0")):
        host.ip("link", "set", device, "mtu", "12000")
    server = serve(b)
    end, _ = stamp(a, b.address, "-c", 3, "-i", "5ms", "-s", 9216, "--timeout", "100ms")
    assert end["received"] == 3
    end, _ = stamp(a, b.address, "-c", 3, "-i", "5ms", "-s", 10000, "--timeout", "100ms", status=1)
    assert end["received"] == 0
    assert server.stop()["too_long"] >= 3


def test_port_taken(pair, ktrxer, serve):
    _, b = pair
    serve(b)
    done = b.run([ktrxer, "serve"], check=False)
    assert done.returncode == 1 and not done.stdout and "port 8620 of 0.0.0.0 is taken" in done.stderr
    done = b.run([ktrxer, "serve", "--bind", "10.1.2.3"], check=False)
    assert done.returncode == 1 and "no address of this host" in done.stderr
    done = b.run([ktrxer, "serve", "--bind", "example.org"], check=False)
    assert done.returncode == 2


def test_privileges_are_gone(pair, requires_real_root, serve):
    _, b = pair
    server = serve(b, "--stamp-port", 862)
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        with open(f"/proc/{server.process.pid}/task/{task}/status") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        assert status["Uid"].split() == ["65534"] * 4 and status["Gid"].split() == ["65534"] * 4 and not status["Groups"].split()
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == int(status["CapInh"], 16) == 0
    with open(f"/proc/{server.process.pid}/status") as file:
        assert "NoNewPrivs:\t1" in file.read()
    server.stop()


# ------------------------------------------------------------------------------------------------------- hostile packets

FLOOD = """
import random, socket, struct, sys, time
to, port, seconds, own = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
dice = random.Random(4)
base = struct.pack("!IQHH", 1, 0xe8754700 << 32, 1, 7) + bytes(28)
def tlv(t, l, v=b""): return struct.pack("!BBH", 0x80, t, l) + v
packets = [b"", b"x", base[:43], bytes(44), b"\\xff" * 44, base, base + bytes(1400), dice.randbytes(1400), base + tlv(7, 65535),
           base + tlv(4, 4, b"abc"), base + tlv(8, 16, bytes(16)), base + tlv(99, 0) * 300, base + tlv(2, 40, tlv(4, 65535) + bytes(36)),
           base + tlv(7, 16, bytes(16)) * 50, base[:4] + struct.pack("!Q", 1 << 60) + base[12:16] + struct.pack("!Q", 1 << 60) + bytes(20)]
packets += [base + dice.randbytes(dice.randrange(100)) for _ in range(50)]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((own, 0))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
def forged(p):
    source = bytes([dice.choice([10, 172, 192, 224, 0, 255, 127]), *dice.randbytes(3)])
    return struct.pack("!BBHHHBBH4s4sHHHH", 0x45, 0, 28 + len(p), 0, 0, 64, 17, 0, source, socket.inet_aton(to),
                       dice.choice([7, 862, port, 0, 50000]), port, 8 + len(p), 0) + p
forgeries = [forged(p) for p in packets for _ in range(4)]
end, sent = time.monotonic() + seconds, 0
while time.monotonic() < end:
    for p in packets: s.sendto(p, (to, port))
    for p in forgeries:
        try: raw.sendto(p, (to, 0))
        except OSError: pass
    sent += len(packets) + len(forgeries)
print(sent)
"""


def test_hostile_packets_at_full_rate(pair, ktrxer, stamp, serve):
    a, b = pair
    a.ip("addr", "add", "10.78.0.1/24", "dev", "a0")
    b.ip("addr", "add", "10.78.0.2/24", "dev", "b0")
    server = serve(b)
    before = b.counters()
    flood = a.popen([sys.executable, "-c", FLOOD, "10.78.0.2", str(PORT), "3", "10.78.0.1"])
    flowing(a, 1000)
    end, _ = stamp(a, b.address, "-c", 200, "-i", "10ms", "--timeout", "500ms")
    sent = int(flood.communicate(timeout=30)[0])
    after = b.counters()
    assert end["received"] > 100, "its own neighbourhood keeps its share"
    assert end["wrong_hmac"] == 0 and end["reflector_restarts"] == 0
    gained = {way: after[way]["bytes"] - before[way]["bytes"] for way in ("rx", "tx")}
    assert gained["tx"] <= gained["rx"], "never more bytes than it got"
    end, _ = stamp(a, b.address, "-c", 20, "-i", "5ms")
    assert end["received"] == 20
    counts = server.stop()
    assert sent > 10000 and counts["too_short"] > 100 and counts["own_port"] > 100 and counts["source_address"] + counts["rate"] > 100
    assert counts["answer_itself"] > 10 and counts["tlv_integrity_failed"] > 10


def datagrams(host):
    """UDP datagrams that programs of this host have read."""
    names, values = (line.split() for line in host.run(["grep", "^Udp:", "/proc/net/snmp"]).stdout.splitlines())
    return int(values[names.index("InDatagrams")])


def test_two_reflectors_fall_silent(pair, serve):
    """A forged packet makes two reflectors answer each other; also with ports that the other one does not use."""
    a, b = pair
    one, other = serve(a, "--port", 9001), serve(b, "--port", 9002)
    program = f"""
import socket, struct
p = struct.pack("!IQHH", 1, 0xe8754700 << 32, 1, 7) + bytes(28)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for _ in range(10):
    raw.sendto(struct.pack("!BBHHHBBH4s4sHHHH", 0x45, 0, 28 + len(p), 0, 0, 64, 17, 0, socket.inet_aton("{a.address}"),
               socket.inet_aton("{b.address}"), 9001, 9002, 8 + len(p), 0) + p, ("{b.address}", 0))
"""
    a.run([sys.executable, "-c", program])
    # The kernel counts a datagram when a program reads it.
    until(lambda: datagrams(a) >= 10 and datagrams(b) >= 10, "each reflector has read 10 packets")
    counts, theirs = other.stop(), one.stop()
    assert counts["answered"] == 10
    assert theirs["received"] == theirs["answer_itself"] == 10 and theirs["answered"] == 0


def test_broadcast_and_multicast_are_not_answered(pair, serve):
    a, b = pair
    server = serve(b)
    program = """
import socket, struct, sys
p = struct.pack("!IQHH", 1, 0xe8754700 << 32, 1, 7) + bytes(28)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.settimeout(0.3)
s.bind(("10.77.0.1", 0))
for to in ("10.77.0.255", "255.255.255.255", "224.0.0.1"):
    s.sendto(p, (to, 8620))
try: print(s.recv(100))
except TimeoutError: print("silence")
"""
    assert a.run([sys.executable, "-c", program]).stdout == "silence\n"
    counts = server.stop()
    assert counts["answered"] == 0 and counts["group_address"] >= 2
