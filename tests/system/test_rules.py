# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Rules before the network stack, by XDP and by nftables: their effect on packets.

      A                              B
    a0 10.78.1.1/24 ------------- b0 10.78.1.2/24      the rules in B apply to packets from A
       fd78:1::1                     fd78:1::2
"""

import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
from noise import reasons
from receivers import KTRXER, SEND, Recv, read_pcapng, sh
from rules_here import BY, counts, judged, rules, run, stack
from waiting import until

pytestmark = pytest.mark.usefixtures("requires_namespaces", "requires_real_root")


HANDSHAKE = KTRXER.parents[1] / "examples" / "example_handshake"

net = pytest.fixture(judged, scope="module")


# ------------------------------------------------------------------------------------------------------ what rules do


@pytest.mark.parametrize("by", BY)
def test_the_four_operations(net, by):
    texts = ["capture udp from any:1 to any:2000", "drop udp from any:2 to any:2000", "capture+drop udp from any:3 to any:2000",
             "forward udp from any:4 to any:2000", "drop udp from any:4 to any:2000 prio 1"]
    with stack(net) as got, Recv(net, "--backend", by, *rules(*texts)) as recv:
        for version in (4, 6):
            net.send([net.frame(b"%d by %d" % (port, version), ports=(port, 2000), version=version) for port in (1, 2, 3, 4, 5) for _ in range(3)])
        end = recv.stop()
    assert end["backend"] == by and end["lost"] == 0 and not reasons(end)
    assert counts(end) == [(6, 6, 0), (6, 0, 6), (6, 6, 6), (6, 0, 0), (0, 0, 0)]
    assert [(s["from_port"], s["rule"]) for s in recv.samples] == ([(1, 0)] * 3 + [(3, 2)] * 3) * 2
    assert sorted(got) == sorted(b"%d by %d" % (port, version) for port in (1, 4, 5) for version in (4, 6) for _ in range(3))
    assert end["before_taps"] is (by == "xdp") and end["after_gro"] is (by != "xdp")


@pytest.mark.parametrize("by", BY)
def test_odd_packets(net, by):
    """VLAN tags, later fragments, other protocols, packets for other hosts: the result equals a linear scan of the rules."""
    frames = [
        net.frame(bytes(16), ports=(9, 9)),
        net.frame(bytes(16), fragment=0x2000, ports=(9, 9)),  # the first: its ports are there
        net.frame(bytes(16), fragment=0x0003),                # a later one: no ports
        net.frame(b"x", ports=(9, 9), tags=[(0x8100, 5)]),
        net.frame(b"x", ports=(9, 9), to="192.0.2.77", mac=bytes.fromhex("02aabbccddee")),
        net.frame(b"x", proto=47),
        net.mac["b0"] + net.mac["a0"] + b"\x88\xb6" + bytes(50),
    ]
    texts = ["drop udp from any to any:9", "capture+drop udp from any to any", "capture+drop 47 from 10.78.1.0/24 to any",
             "capture+drop any from any to any prio 1"]
    with Recv(net, "--force", "--backend", by, *rules(*texts)) as recv:
        net.send(frames)
        end = recv.stop()
    assert counts(end)[:3] == [(4, 0, 4), (1, 1, 1), (1, 1, 1)]
    assert counts(end)[3][0] >= 1 and counts(end)[3][0] == counts(end)[3][1] == counts(end)[3][2]
    mine = [s for s in recv.samples if s.get("proto") in (17, 47) or s.get("ethertype") == 0x88B6]
    assert [s["rule"] for s in mine] == [1, 2, 3]


@pytest.mark.parametrize("by", BY)
def test_one_rule_set_works_on_every_back_end(net, by):
    """16384 rules, the most that there may be, 1024 of them with wildcards: the first rule that fits decides."""
    texts = []
    for i in range(1024):
        texts += [f"drop {proto} from {a}:{1 + i} to {b}:{port - i}"
                  for a, b in (("10.78.1.1", "10.78.1.2"), ("[fd78:1::1]", "[fd78:1::2]")) for port in (10000, 20000, 30000) for proto in ("tcp", "udp")]
        texts += [f"drop udp from 10.78.1.1:{50000 + i} to 10.78.1.2:{7 + k}" for k in range(3)]
        texts.append(f"forward udp from any:{3 + i} to any")  # two later 5-tuples with this source port are hidden
    assert len(texts) == 16384
    chosen = [(port, base - port + 1, version) for port in (1, 2, 3, 500, 1024) for base in (10000, 20000, 30000) for version in (4, 6)]
    packets = [*chosen, (50000, 7, 4), (51023, 9, 4), (51023, 10, 4), (1024, 5, 6), (40000, 5, 4)]
    wanted = {}
    for source, target, version in packets:
        a, b = ("10.78.1.1", "10.78.1.2") if version == 4 else ("[fd78:1::1]", "[fd78:1::2]")
        fits = (f"drop udp from {a}:{source} to {b}:{target}", f"forward udp from any:{source} to any")
        decides = next((i for i, text in enumerate(texts) if text in fits), None)
        if decides is not None and texts[decides].startswith("drop"):
            wanted[decides] = wanted.get(decides, 0) + 1
    assert len(wanted) == 3 * 6 - 6 + 2
    with Recv(net, "--backend", by, *rules(*texts)) as recv:
        net.send([net.frame(b"x", ports=(source, target), version=version) for source, target, version in packets for _ in range(3)])
        end = recv.stop()
    assert end["backend"] == by
    assert {i: rule["dropped"] for i, rule in enumerate(end["rules"]) if rule["dropped"]} == {i: 3 * count for i, count in wanted.items()}


@pytest.mark.parametrize("by", [*BY, "packet"])
def test_the_limit_of_rules_with_wildcards_is_the_same_on_every_back_end(net, by):
    done = run(net, "--device", "b0", "--backend", by, *rules(*(f"forward udp from any:{1 + i} to any" for i in range(1025))))
    assert done.returncode == 1 and "1025 rules have wildcards or prefixes, and 1024 is the most" in done.stderr, done.stderr


@pytest.mark.skipif(not shutil.which("tc"), reason="tc (iproute2) is not installed")
@pytest.mark.parametrize("by", ["xdp", "nftables", "packet"])
def test_the_result_lists_what_precedes_the_rules(net, by):
    """XDP comes before taps, and these before tc and the hook that nftables' rules sit at."""
    sh(f"tc -n {net.b} qdisc add dev b0 clsact")
    try:
        for direction in ("ingress", "egress"):  # that at egress sees no packet that arrives
            sh(f"tc -n {net.b} filter add dev b0 {direction} protocol ip prio 1 bpf bytecode '1,6 0 0 0,'")
        rule = rules("forward udp from any:9 to any" if by == "packet" else "drop udp from any:9 to any")
        with Recv(net, "--backend", "packet"), Recv(net, "--backend", by, *rule) as recv:
            doctor = json.loads(sh(f"ip netns exec {net.b} {KTRXER} doctor --device b0 --json"))
            end = recv.stop()
    finally:
        sh(f"tc -n {net.b} qdisc del dev b0 clsact")
    assert end["backend"] == by
    assert end["preceded_by"] == ("1 tap, 1 tc filter" if by == "nftables" else None)
    xdp, _, rest = doctor["receive_preceded_by"].rpartition("), ")
    assert xdp.endswith("(native") if by == "xdp" else not xdp, doctor["receive_preceded_by"]
    assert rest == ("2 taps, 1 tc filter" if by == "packet" else "1 tap, 1 tc filter")


def test_two_tags_and_extension_headers(net):
    """Headers that only XDP skips."""
    inner = struct.pack("!HHHH", 9, 9, 8, 0)
    hops = bytes([60, 0, 1, 4, 0, 0, 0, 0]) + bytes([17, 0, 1, 4, 0, 0, 0, 0]) + inner
    ip = struct.pack("!IHBB", 6 << 28, len(hops), 0, 64) + socket.inet_pton(socket.AF_INET6, "fd78:1::1") + socket.inet_pton(socket.AF_INET6, "fd78:1::2")
    frames = [net.frame(b"x", ports=(9, 9), tags=[(0x88A8, 7), (0x8100, 8)]), net.mac["b0"] + net.mac["a0"] + b"\x86\xdd" + ip + hops,
              net.frame(b"x", ports=(9, 9), tags=[(0x88A8, 7), (0x8100, 8), (0x8100, 9)])]
    with Recv(net, "--backend", "xdp", *rules("capture+drop udp from any to any:9")) as recv:
        net.send(frames)
        end = recv.stop()
    assert counts(end) == [(2, 2, 2)]
    assert [s["length"] for s in recv.samples] == [len(f) for f in frames[:2]]


def test_bytes_and_stamps(net, tmp_path):
    """By ring buffer and by AF_XDP, small and jumbo packets are complete, in order, and have correct stamps."""
    chance = random.Random(1)
    frames = [net.frame(bytes(chance.randrange(256) for _ in range(size)), ports=(1 + i % 2, 2000))
              for i, size in enumerate([1, 18, 64, 100, 200, 470, 600, 1400, 1472, 1473, 2000, 3500, 4000, 8900] * 4)]
    path = tmp_path / "x.pcapng"
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns()
    with Recv(net, "--backend", "xdp", "--write", str(path), *rules("capture udp from any:1 to any:2000", "capture+drop udp from any:2 to any:2000")) as recv:
        net.send(frames, gap=0.001)
        end = recv.stop()
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns()
    assert end["lost"] == 0 and counts(end) == [(28, 28, 0), (28, 28, 28)]
    got = read_pcapng(path)
    assert [p[1] for p in got] == frames and [p[2] for p in got] == [len(f) for f in frames]
    assert [p[0] for p in got] == sorted(p[0] for p in got) and before[1] - 10**6 < got[0][0] and got[-1][0] < after[1] + 10**6
    stamps = [s["time_ns"] for s in recv.samples]
    assert stamps == sorted(stamps) and before[0] < stamps[0] and stamps[-1] < after[0]
    assert all(s["raw_ns"] == s["time_ns"] and s["clock"] == "monotonic" and s["source"] == "xdp" and s["bound_ns"] == 0 for s in recv.samples)
    gaps = [b - a for a, b in zip(stamps, stamps[1:])]
    assert min(gaps) > 500_000, "a millisecond was between them"


def test_snap(net, tmp_path):
    path = tmp_path / "x.pcapng"
    with Recv(net, "--backend", "xdp", "--snap", "50", "--write", str(path), *rules("capture udp from any:1 to any:2000", "capture+drop udp from any:2 to any:2000")) as recv:
        net.send([net.frame(b"x", size=1000, ports=(1, 2000)), net.frame(b"x", size=1000, ports=(2, 2000)), net.frame(b"x", ports=(1, 2000))])
        recv.stop()
    assert [(len(p[1]), p[2]) for p in read_pcapng(path)] == [(50, 1042), (50, 1042), (43, 43)]


# Adds a VLAN tag to each frame that leaves through a device, as metadata beside the frame, like a NIC's offload. argv: index of the device.
TAG = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def bpf(command, attributes):
    attributes = ctypes.create_string_buffer(attributes, 128)
    fd = libc.syscall(321, command, attributes, 128)
    if fd < 0:
        sys.exit(f"bpf({command}): errno {ctypes.get_errno()}")
    return fd
code = b"".join(struct.pack("=BBhi", *i) for i in [(0xB7, 2, 0, 0x0081), (0xB7, 3, 0, 5), (0x85, 0, 0, 18), (0xB7, 0, 0, 0), (0x95, 0, 0, 0)])
code, words = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
program = bpf(5, struct.pack("=IIQQ", 3, 5, ctypes.addressof(code), ctypes.addressof(words)))
link = bpf(28, struct.pack("=IIII", program, int(sys.argv[1]), 47, 0))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of system calls are x86-64's")
@pytest.mark.parametrize("operation", ["capture", "capture+drop"])
def test_a_tag_that_the_device_has_taken_off_is_there_again(net, operation, tmp_path):
    path = tmp_path / "x.pcapng"
    index = json.loads(sh(f"ip -n {net.a} -j link show a0"))[0]["ifindex"]
    tagger = subprocess.Popen(["ip", "netns", "exec", net.a, sys.executable, "-c", TAG, str(index)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    try:
        if tagger.stdout.readline() != "ready\n":
            pytest.skip(f"this kernel has no programs at a device's way out (Linux 6.6): {tagger.stderr.read().strip()}")
        with Recv(net, "--backend", "xdp", "--write", str(path), *rules(f"{operation} udp from any to any:2000")) as recv:
            net.send([net.frame(b"tagged")] * 3)
            end = recv.stop()
    finally:
        tagger.kill()
        tagger.communicate()
    assert counts(end)[0][:2] == (3, 3) and [s.get("vlan") for s in recv.samples] == [5] * 3
    assert [p[1] for p in read_pcapng(path)] == [net.frame(b"tagged", tags=[(0x8100, 5)])] * 3


def test_generic_mode_where_the_driver_has_none(net):
    with Recv(net, *rules("capture+drop udp from any to any:7"), device="lo") as recv:
        assert recv.lines[-1]["backend"] == "xdp" and recv.lines[-1]["backend_mode"] == "generic"
        assert "generic XDP" in recv.lines[-1]["backend_note"]
        sh(f"ip netns exec {net.b} {sys.executable} -c \"import socket; [socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 7)) for _ in range(5)]\"")
        end = recv.stop()
    assert counts(end) == [(5, 5, 5)] and [s["direction"] for s in recv.samples] == ["in"] * 5


@pytest.mark.parametrize("ring", ["4Ki", "256Ki"])
@pytest.mark.parametrize("what", ["capture", "capture+drop"])
def test_overrun_is_counted_to_the_last_packet(net, ring, what):
    count = 5000
    with Recv(net, "--backend", "xdp", "--ring", ring, *rules(f"{what} udp from any to any:2000")) as recv:
        recv.process.send_signal(signal.SIGSTOP)
        net.send([net.frame(b"x")] * count)
        recv.process.send_signal(signal.SIGCONT)
        end = recv.stop()
    assert end["rules"][0]["matched"] == count
    assert end["captured"] + end["lost"] == count and end["lost"] > 0 and end["captured"] > 0
    assert end["verdict"] == "degraded" and any("were lost" in r["text"] for r in end["reasons"])


# ------------------------------------------------------------------------------------------------- a connection by hand


def sniff(net, port):
    """Flags of the TCP segments that B sends to a port, as they arrive at A's device."""
    code = ("import socket, sys\n"
            "s = socket.socket(17, 3, socket.htons(3)); s.bind(('a0', 0)); print('ready', flush=True)\n"
            "while True:\n"
            "    f = s.recv(2048)\n"
            "    ip = f[14:]\n"
            "    six = f[12:14] == b'\\x86\\xdd'\n"
            "    tcp = ip[40 if six else 20:]\n"
            "    if f[6:12].hex() == sys.argv[1] and (ip[6] if six else ip[9]) == 6 and tcp[2:4] == int(sys.argv[2]).to_bytes(2, 'big'):\n"
            "        print('%02x' % tcp[13], flush=True)\n")
    child = subprocess.Popen(["ip", "netns", "exec", net.a, sys.executable, "-c", code, net.mac["b0"].hex(), str(port)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("operation", ["capture+drop", "capture"])
def test_a_connection_made_by_hand(net, version, operation):
    """With capture+drop the host's stack does not receive the answer. With capture only it does, and resets the unknown connection."""
    to = "10.78.1.1" if version == 4 else "fd78:1::1"
    port = 7000 + version + (10 if operation == "capture" else 0)  # the rest of one connection does not disturb the next
    server = subprocess.Popen(["ip", "netns", "exec", net.a, sys.executable, "-c",
                               "import socket\n"
                               f"s = socket.create_server(('{to}', {port}), family=socket.{'AF_INET' if version == 4 else 'AF_INET6'})\n"
                               "print('ready', flush=True)\n"
                               "c, peer = s.accept(); print(peer[1], flush=True)\n"
                               "try: print(c.recv(1), flush=True)\n"
                               "except ConnectionResetError: print('reset', flush=True)\n"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    flags = None
    try:
        assert server.stdout.readline() == "ready\n"
        flags = sniff(net, port)
        hand = subprocess.Popen(["ip", "netns", "exec", net.b, str(HANDSHAKE), to, str(port), operation], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        out = hand.stdout.readline()
        assert out.startswith("answers come by "), hand.stderr.read()
        assert hand.stdout.readline() == "established\n", hand.stderr.read()
        if operation == "capture+drop":
            assert server.stdout.readline() == "50123\n"
        hand.communicate("", timeout=60)
        assert hand.returncode == 0
        if operation == "capture+drop":
            assert server.stdout.readline() == "b''\n", "the FIN came"
        last, sent = 0x01 if operation == "capture+drop" else 0x04, [0]
        while not sent[-1] & last:
            sent.append(int(flags.stdout.readline(), 16))
    finally:
        for child in (server, flags):
            if child:
                child.kill()
                child.communicate()
    if operation == "capture+drop":
        assert [x & 0x17 for x in sent[1:]] == [0x02, 0x10, 0x11], f"SYN, ACK, FIN by hand and nothing between: {sent}"
        assert "xdp" in out
    else:
        assert sent[1] & 0x17 == 0x02 and sent[-1] & 0x04, f"the host's own TCP resets it: {sent}"
        assert "packet" in out


def test_a_refusal_of_a_connection_made_by_hand(net):
    done = subprocess.run(["ip", "netns", "exec", net.b, str(HANDSHAKE), "10.78.1.1", "7099"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "handshake: 10.78.1.1 refuses the connection: no program listens on TCP port 7099 there\n")


def test_each_queue_has_a_socket_of_its_own(net):
    sh(f"ip -n {net.b} link add q0 numrxqueues 4 numtxqueues 4 type veth peer name q1 numrxqueues 4 numtxqueues 4 netns {net.a}")
    try:
        sh(f"ip -n {net.b} link set q0 up && ip -n {net.a} link set q1 up")
        until(lambda: "LOWER_UP" in sh(f"ip -n {net.b} link show q0"), "q0 is up")
        mac = bytes.fromhex(json.loads(sh(f"ip -n {net.b} -j link show q0"))[0]["address"].replace(":", ""))
        with Recv(net, *rules("capture+drop udp from any to any:2000"), device="q0") as recv:
            sockets = len([fd for fd in os.listdir(f"/proc/{recv.process.pid}/fd")
                           if os.path.exists(f"/proc/{recv.process.pid}/fd/{fd}") and "socket" in os.readlink(f"/proc/{recv.process.pid}/fd/{fd}")])
            frames = [net.frame(b"%d" % i, ports=(1 + i, 2000), mac=mac) for i in range(200)]
            subprocess.run(["ip", "netns", "exec", net.a, sys.executable, "-c", SEND, "q1", "0"], check=True, text=True,
                           input="".join(f.hex() + "\n" for f in frames))
            end = recv.stop()
        assert counts(end) == [(200, 200, 200)] and end["lost"] == 0 and end["backend_note"] is None
        assert sockets >= 5, "four queues, and the watch"
        assert sorted(s["from_port"] for s in recv.samples) == list(range(1, 201))
    finally:
        sh(f"ip -n {net.b} link del q0", check=False)


def test_thousands_of_rules(net):
    texts = [f"drop udp from 10.78.1.1:{1 + i} to 10.78.1.2:{10000 - i}" for i in range(3000)]
    chosen = [0, 1, 7, 1500, 2999]
    with Recv(net, *rules(*texts)) as recv:
        net.send([net.frame(b"x", ports=(1 + i, 10000 - i)) for i in chosen] + [net.frame(b"x", ports=(3, 3))])
        end = recv.stop()
    assert end["backend"] == "xdp"
    assert [i for i, r in enumerate(end["rules"]) if r["matched"]] == chosen
