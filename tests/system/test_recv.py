# SPDX-License-Identifier: MIT OR Apache-2.0
"""
ktrxer recv: real packets between two network namespaces.

      A                              B
    a0 10.78.1.1/24 ------------- b0 10.78.1.2/24      what A sends, ktrxer (and tcpdump) in B receive
       fd78:1::1                     fd78:1::2
"""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from noise import reasons
from receivers import (
    KTRXER,
    SEND,
    Net,
    Recv,
    read_pcap,
    read_pcapng,
    sh,
)
from waiting import until

pytestmark = pytest.mark.usefixtures("requires_namespaces")

# Makes a tun device. Each line of input is a number of packets that arrive on it.
TUN = """
import fcntl, os, struct, subprocess, sys
fd = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))
subprocess.check_call("ip addr add 10.79.1.1/24 dev tun0 && ip link set tun0 up", shell=True)
packet = bytes.fromhex(sys.argv[1])
print("up", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        os.write(fd, packet)
"""


@pytest.fixture(scope="module")
def net():
    n = Net()
    try:
        n.up()
        yield n
    finally:
        n.down()


def mixed(net):
    """One packet of each difficult kind."""
    frames = []
    for i in range(20):
        frames += [
            net.frame(b"four %d" % i),
            net.frame(b"six %d" % i, version=6),
            net.frame(b"tagged %d" % i, tags=[(0x8100, 0x6005)]),
            net.frame(b"twice %d" % i, tags=[(0x88A8, 7), (0x8100, 8)]),
            net.frame(b"priority %d" % i, tags=[(0x8100, 0)]),
            net.frame(b"elsewhere %d" % i, to="192.0.2.77", mac=bytes.fromhex("02aabbccddee")),
            net.frame(b"large %d" % i, size=7900),
            net.frame(b"ordinary %d" % i, size=1400),
        ]
    return frames


@pytest.mark.skipif(not shutil.which("tcpdump"), reason="tcpdump is not installed")
@pytest.mark.parametrize("what", ["capture any from any to any", "capture udp from any to any:2000"])
def test_stamps_and_bytes_are_those_of_libpcap(net, tmp_path, what, requires_real_root):  # tcpdump changes its groups
    theirs, ours = tmp_path / "theirs.pcap", tmp_path / "ours.pcapng"
    with Recv(net, "--rule", what, "--write", str(ours)) as recv:
        tcpdump = subprocess.Popen(["ip", "netns", "exec", net.b, "tcpdump", "-Z", "root", "-i", "b0", "-Q", "in", "-s", "0", "-U", "--immediate-mode",
                                    "--time-stamp-precision=nano", "-w", str(theirs)], stderr=subprocess.PIPE, text=True)
        while "listening on" not in (line := tcpdump.stderr.readline()):
            assert line, "tcpdump has ended"
        frames = mixed(net)
        net.send(frames, gap=0.001)
        least = 24 + sum(16 + len(frame) for frame in frames)
        until(lambda: theirs.stat().st_size >= least and {packet for _, packet, _ in read_pcap(theirs)} >= set(frames), "the capture has all frames")
        tcpdump.terminate()
        assert tcpdump.wait(10) == 0
        end = recv.stop()
    got = read_pcapng(ours)
    want = [p for p in read_pcap(theirs) if b" " in p[1]]
    sent = set(frames)
    want = [p for p in want if p[1] in sent]
    assert len(want) == len(frames) and [p[1] for p in want] == frames
    # No other packets, such as neighbour discovery, disturb the comparison.
    got = [p for p in got if p[1] in sent]
    assert got == want
    assert end["lost"] == 0 and end["rules"][0]["captured"] >= len(frames)
    # The JSON has the same values, and the monotonic time is the raw one plus a constant.
    raw = {s["raw_ns"] for s in recv.samples}
    assert {p[0] for p in got} <= raw
    shifts = [s["raw_ns"] - s["time_ns"] for s in recv.samples]
    bound = max(s["bound_ns"] for s in recv.samples)
    assert max(shifts) - min(shifts) <= 2 * bound + 2 and bound < 10000
    assert all(s["clock"] == "realtime" and s["source"] == "kernel" for s in recv.samples)


@pytest.mark.skipif(not shutil.which("capinfos"), reason="Wireshark's capinfos is not installed")
def test_wireshark_reads_the_file(net, tmp_path):
    path = tmp_path / "x.pcapng"
    with Recv(net, "--rule", "capture udp from any to any", "--write", str(path), "--count", "160") as recv:
        net.send(mixed(net))
        recv.end()
    info = sh(f"capinfos -M {path}")
    assert "Number of packets:   160" in info
    assert "nanoseconds (9)" in info and "ktrxer" in info and "Name = b0" in info
    if shutil.which("tshark"):
        fields = sh(f"tshark -r {path} -T fields -e frame.time_epoch -e vlan.id -e udp.dstport").splitlines()
        assert len(fields) == 160
        assert fields[0].split("\t")[2] == "2000"
        assert len(sh(f"tshark -r {path} -Y 'vlan.id == 5'").splitlines()) == 20


def test_an_empty_capture_is_a_file_too(net, tmp_path):
    path = tmp_path / "empty.pcapng"
    with Recv(net, "--rule", "capture udp from any to any:9", "--write", str(path), "--for", "0.2s") as recv:
        end = recv.end()
    assert recv.process.returncode == 1 and end["verdict"] == "invalid"
    assert any("nothing was received" in r["text"] for r in end["reasons"])
    assert read_pcapng(path) == []
    if shutil.which("capinfos"):
        assert "Number of packets:   0" in sh(f"capinfos -M {path}")


def test_packets_for_other_hosts(net):
    def promiscuity():
        return json.loads(sh(f"ip -n {net.b} -d -j link show b0"))[0]["promiscuity"]

    assert promiscuity() == 0
    with Recv(net, "--rule", "capture udp from any to 192.0.2.77", "--count", "5") as recv:
        assert promiscuity() == 1
        net.send([net.frame(b"x", to="192.0.2.77", mac=bytes.fromhex("02aabbccddee"))] * 5)
        end = recv.end()
    assert [s["direction"] for s in recv.samples] == ["other"] * 5
    assert end["rules"][0]["captured"] == 5 and not reasons(end)
    assert promiscuity() == 0
    with Recv(net, "--no-promiscuous", "--rule", "capture udp from any to any", "--count", "1") as recv:
        assert promiscuity() == 0
        net.send([net.frame(b"x")])
        recv.end()
    # It is removed with the process, after any end.
    recv = Recv(net)
    assert promiscuity() == 1
    recv.process.kill()
    recv.process.wait()
    until(lambda: promiscuity() == 0, "promiscuous mode is off")


def test_the_first_rule_by_priority_decides(net):
    rules = ["capture udp from any to any:5 prio 9", "forward udp from any to any:5 prio 2", "capture udp from any to any:6",
             "forward any from any to any:7", "capture udp from any to any prio 20"]
    with Recv(net, *(x for r in rules for x in ("--rule", r))) as recv:
        for port, n in ((5, 3), (6, 4), (7, 2), (8, 1)):
            net.send([net.frame(b"x", ports=(1, port))] * n)
        net.send([net.frame(b"x", proto=132, ports=(1, 6))])
        end = recv.stop()
    assert [(r["rule"], r["matched"], r["captured"], r["dropped"]) for r in end["rules"]] == [
        (rules[0], 0, 0, 0), (rules[1], 3, 0, 0), (rules[2], 4, 4, 0), (rules[3], 2, 0, 0), (rules[4], 1, 1, 0)]
    assert [(s["rule"], s["to_port"]) for s in recv.samples] == [(2, 6)] * 4 + [(4, 8)]
    assert end["captured"] == 5


def test_later_fragments_meet_wildcard_ports_only(net):
    with Recv(net, "--rule", "capture udp from any to any:2000", "--rule", "capture udp from any to any") as recv:
        net.send([net.frame(bytes(16), fragment=0x2000), net.frame(bytes(16), fragment=0x0003)])
        end = recv.stop()
    assert [r["captured"] for r in end["rules"]] == [1, 1]
    assert "to_port" in recv.samples[0] and "to_port" not in recv.samples[1]


def test_snap_and_count(net, tmp_path):
    path = tmp_path / "x.pcapng"
    with Recv(net, "--rule", "capture udp from any to any:2000", "--snap", "50", "--count", "3", "--write", str(path)) as recv:
        net.send([net.frame(b"x", size=1000), net.frame(b"x"), net.frame(b"y", tags=[(0x8100, 3)], size=8000)] * 5)
        end = recv.end()
    assert end["captured"] == 3 and end["rules"][0]["matched"] == 3
    packets = read_pcapng(path)
    assert [(len(p[1]), p[2]) for p in packets] == [(50, 1042), (43, 43), (50, 8046)]


@pytest.mark.parametrize("ring", ["4Ki", "64Ki", "1Mi"])
def test_overrun_is_counted_to_the_last_packet(net, ring):
    count = 5000
    with Recv(net, "--rule", "capture udp from any to any", "--ring", ring) as recv:
        recv.process.send_signal(signal.SIGSTOP)
        net.send([net.frame(b"x")] * count)
        recv.process.send_signal(signal.SIGCONT)
        end = recv.stop()
    assert end["captured"] + end["lost"] == count
    assert end["lost"] > 0 and end["captured"] > 0
    assert end["verdict"] == "degraded" and any("were lost" in r["text"] for r in end["reasons"])
    assert recv.process.returncode == 3


def test_large_packets_that_wait_in_the_queue_stay_in_order(net, tmp_path):
    path = tmp_path / "x.pcapng"
    frames = [net.frame(b"%04d" % i, size=8500 if i % 3 else 20) for i in range(300)]
    with Recv(net, "--rule", "capture udp from any to any:2000", "--write", str(path)) as recv:
        recv.process.send_signal(signal.SIGSTOP)
        net.send(frames)
        recv.process.send_signal(signal.SIGCONT)
        end = recv.stop()
    assert end["lost"] == 0 and end["captured"] == 300
    got = read_pcapng(path)
    assert [p[2] for p in got] == [len(f) for f in frames]
    # A packet larger than its slot is truncated, and its two lengths show that.
    assert all(p[1] == f[:len(p[1])] for p, f in zip(got, frames))
    assert sum(len(p[1]) == len(f) for p, f in zip(got, frames)) >= 150


def test_what_this_host_sends(net):
    ping = f"ip netns exec {net.b} ping -c 2 -i 0.1 10.78.1.1"
    with Recv(net, "--rule", "capture icmp from any to any") as recv:
        sh(ping)
        recv.stop()
    assert [s["direction"] for s in recv.samples] == ["in"] * 2
    with Recv(net, "--outgoing", "--rule", "capture icmp from any to any") as recv:
        sh(ping)
        recv.stop()
    assert [s["direction"] for s in recv.samples] == ["out", "in"] * 2


def test_loopback_shows_each_packet_once(net):
    with Recv(net, "--outgoing", "--rule", "capture icmp from any to any", device="lo") as recv:
        sh(f"ip netns exec {net.b} ping -c 3 -i 0.1 127.0.0.1")
        end = recv.stop()
    assert end["captured"] == 6


def test_all_devices(net, tmp_path):
    path = tmp_path / "x.pcapng"
    with Recv(net, "--rule", "capture icmp from any to any", "--write", str(path), device=None) as recv:
        sh(f"ip netns exec {net.b} ping -c 1 127.0.0.1")
        sh(f"ip netns exec {net.a} ping -c 1 10.78.1.2")
        end = recv.stop()
    assert end["captured"] == 3 and end["device"] is None
    assert len(read_pcapng(path)) == 3
    if shutil.which("capinfos"):
        info = sh(f"capinfos -M {path}")
        assert "Name = lo" in info and "Name = b0" in info


@pytest.mark.parametrize(
    ("device", "says"),
    [("b0", "no NIC stamps: b0 makes none of what it receives (`ethtool -T b0`)"), (None, "no NIC stamps: they are of one device, name it")],
)
def test_where_no_nic_stamps_one_line_says_so(net, device, says):
    """A device without NIC stamps: the packets have the kernel's stamps, and a note states it. For a NIC with stamps see tests/lab/test_nic.py."""
    with Recv(net, "--rule", "capture udp from any to any:2000", "--nic-stamps", device=device) as recv:
        net.send([net.frame(b"x")] * 3)
        end = recv.stop()
    assert end["backend_note"] == says and end["stamps"] == {"nic": 0, "xdp": 0, "kernel": 3, "user": 0}
    assert {(sample["source"], sample["clock"]) for sample in recv.samples} == {("kernel", "realtime")}


@pytest.mark.skipif(not os.access("/dev/net/tun", os.R_OK | os.W_OK), reason="/dev/net/tun is not there, or not for us")
def test_a_device_without_link_header(net, tmp_path):
    path = tmp_path / "x.pcapng"
    packet = net.frame(b"by tun", to="10.79.1.1")[14:]
    tun = subprocess.Popen(["ip", "netns", "exec", net.b, sys.executable, "-c", TUN, packet.hex()], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
    try:
        assert tun.stdout.readline() == "up\n"
        with Recv(net, "--rule", "capture udp from 10.78.1.1 to 10.79.1.1:2000", "--count", "4", "--write", str(path),
                  device="tun0") as recv:
            tun.stdin.write("4\n")
            tun.stdin.flush()
            end = recv.end()
        assert end["captured"] == 4 and recv.samples[0]["from"] == "10.78.1.1"
        assert [p[1] for p in read_pcapng(path)] == [packet] * 4
        if shutil.which("capinfos"):
            assert "Raw IP" in sh(f"capinfos -M {path}")
    finally:
        tun.kill()
        tun.wait()


@pytest.mark.parametrize("fault", ["del", "down"])
@pytest.mark.parametrize("traffic", [True, False])
def test_the_device_goes_in_mid_run(net, fault, traffic):
    sh(f"ip -n {net.b} link add gone0 type veth peer name gone1 netns {net.a}")
    try:
        sh(f"ip -n {net.b} link set gone0 up && ip -n {net.a} link set gone1 up")
        with Recv(net, "--rule", "capture udp from any to any", device="gone0") as recv:
            if traffic:
                until(lambda: "LOWER_UP" in sh(f"ip -n {net.b} link show gone0"), "gone0 is up")
                subprocess.run(["ip", "netns", "exec", net.a, sys.executable, "-c", SEND, "gone1", "0"], check=True, text=True,
                               input=(net.frame(b"x").hex() + "\n") * 7)
                recv.captured(7)
            sh(f"ip -n {net.b} link " + ("del gone0" if fault == "del" else "set gone0 down"))
            end = recv.end()
        assert recv.process.returncode == (3 if traffic else 1), "without a packet there is no result"
        assert end["captured"] == (7 if traffic else 0)
        word = "was removed" if fault == "del" else "went down"
        assert word in recv.errors and any(word in r["text"] for r in end["reasons"])
        assert end["verdict"] == ("degraded" if traffic else "invalid")
    finally:
        sh(f"ip -n {net.b} link del gone0", check=False)


def test_a_name_of_a_device_is_no_command_of_the_terminal(net):
    """The kernel takes control characters in names; U+009B begins a command as ESC [ does."""
    name = "x\x1b[2J\x9b1m"
    sh(f"ip -n {net.b} link add '{name}' type veth peer name other0 && ip -n {net.b} link set '{name}' up")
    try:
        with Recv(net, "--rule", "capture udp from any to any", device=name) as recv:
            sh(f"ip -n {net.b} link del '{name}'")
            recv.end()
        assert "'x?[2J??1m' was removed" in recv.errors
        assert not [c for c in recv.errors if c != "\n" and not c.isprintable()], recv.errors
    finally:
        sh(f"ip -n {net.b} link del '{name}'", check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_the_accounts(net, number):
    with Recv(net, "--rule", "capture udp from any to any") as recv:
        net.send([net.frame(b"x")] * 9)
        end = recv.stop(number)
    assert end["rules"] == [{"rule": "capture udp from any to any", "matched": 9, "captured": 9, "dropped": 0}]
    assert not reasons(end)


def run(net, *args, prefix=(), ns=None):
    return subprocess.run(["ip", "netns", "exec", ns or net.b, *prefix, str(KTRXER), "recv", *args], capture_output=True, text=True,
                          timeout=10)


@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv (util-linux) is not installed")
def test_without_privileges_it_says_what_is_missing(net, requires_real_root):
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
    if subprocess.run([*nobody, str(KTRXER), "--help"], capture_output=True).returncode:
        pytest.skip("the user 65534 cannot reach the build directory")
    done = run(net, "--device", "b0", prefix=nobody)
    assert done.returncode == 1
    assert "CAP_NET_RAW" in done.stderr and "unshare -Urn" in done.stderr


@pytest.mark.parametrize("args, status, says", [
    (["--device", "nowhere0"], 1, "nowhere0"),
    (["--device", "b0", "--rule", "capture udp from any"], 2, "it is written OP PROTO"),
    (["--device", "b0", "--rule", "capture udp from any to any:x"], 2, "port 'x'"),
    (["--device", "b0", "--backend", "packet", "--rule", "drop udp from any to any"], 1, "xdp"),
    (["--device", "b0", "--backend", "packet", "--rule", "capture+drop udp from any to any"], 1, "cannot drop"),
    (["--rule", "drop udp from any to any"], 1, "name the device"),
    (["--device", "b0", "--backend", "xdq"], 2, "packet"),
    (["--device", "b0", "--snap", "1M"], 2, "snap"),
    (["--device", "b0", "--ring", "0"], 2, "ring"),
    (["--device", "b0", "--count", "-1"], 2, "count"),
    (["--device", "b0", "--write", "/nonexistent/x.pcapng", "--for", "1"], 1, "/nonexistent/x.pcapng"),
    (["--device", "b0", "--write", "/dev/full", "--for", "1"], 1, "No space left"),
])
def test_bad_input(net, args, status, says):
    done = run(net, *args)
    assert done.returncode == status, done.stderr
    assert says in done.stderr


def test_a_device_that_is_down(net):
    sh(f"ip -n {net.b} link add off0 type veth peer name off1")
    try:
        done = run(net, "--device", "off0")
        assert done.returncode == 1 and "`ip link set off0 up`" in done.stderr
    finally:
        sh(f"ip -n {net.b} link del off0")


@pytest.mark.parametrize("room", [None, 20480, 4096])
@pytest.mark.parametrize("count", [500, 3000])
def test_hundreds_and_thousands_of_rules(net, count, room):
    """Too many rules for an exact filter in the kernel, or for its memory: the received packets are still the right ones."""
    knob = "/proc/sys/net/core/optmem_max"
    before = sh(f"ip netns exec {net.b} cat {knob}", check=False).strip()
    if room and not before:
        pytest.skip("net.core.optmem_max is the whole machine's on this kernel")
    try:
        if room:
            sh(f"ip netns exec {net.b} sh -c 'echo {room} > {knob}'")
        rules = [f"{'capture' if i % 2 else 'forward'} udp from 10.78.1.1:{1 + i} to 10.78.1.2:{10000 - i}" for i in range(count)]
        chosen = [0, 1, 7, count // 2, count - 1]
        with Recv(net, *(x for r in rules for x in ("--rule", r))) as recv:
            net.send([net.frame(b"x", ports=(1 + i, 10000 - i)) for i in chosen] + [net.frame(b"x", ports=(3, 3))])
            end = recv.stop()
        assert [i for i, r in enumerate(end["rules"]) if r["matched"]] == chosen
        assert [s["rule"] for s in recv.samples] == [i for i in chosen if i % 2]
    finally:
        if room:
            sh(f"ip netns exec {net.b} sh -c 'echo {before} > {knob}'")
