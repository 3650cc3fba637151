# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Two hosts without traffic except the test's packets, and `ktrxer recv` in one of them.

      A                              B
    a0 10.78.1.1/24 ------------- b0 10.78.1.2/24      what A sends, ktrxer (and tcpdump) in B receive
       fd78:1::1                     fd78:1::2
"""

import json
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

from ktrxer_lab import hosts
from ktrxer_lab.bench import contest
from waiting import until

KTRXER = contest.ktrxer()

# Sends frames (hex, one a line) by a packet socket: argv device, gap in seconds.
SEND = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
gap = float(sys.argv[2])
for line in sys.stdin:
    s.send(bytes.fromhex(line))
    if gap:
        time.sleep(gap)
"""


def sh(command, check=True):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert not check or done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


class Net:
    def __init__(self):
        self.a, self.b = (hosts.new_name(x) for x in "ab")

    def up(self):
        for ns in (self.a, self.b):
            sh(f"ip netns add {ns}")
            # Quiet: no router solicitations, no duplicate address detection, no reports of multicast groups.
            for name in ("default", "all"):
                sh(f"ip netns exec {ns} sh -c 'echo 0 > /proc/sys/net/ipv6/conf/{name}/router_solicitations;"
                   f" echo 0 > /proc/sys/net/ipv6/conf/{name}/accept_dad'")
            sh(f"ip -n {ns} link set lo up")
        sh(f"ip -n {self.a} link add a0 mtu 9000 type veth peer name b0 mtu 9000 netns {self.b}")
        for ns, dev, n in ((self.a, "a0", 1), (self.b, "b0", 2)):
            sh(f"ip -n {ns} addr add 10.78.1.{n}/24 dev {dev}")
            sh(f"ip -n {ns} addr add fd78:1::{n}/64 dev {dev} nodad")
            sh(f"ip -n {ns} link set {dev} up")
        self.mac = {d: bytes.fromhex(sh(f"ip netns exec {ns} cat /sys/class/net/{d}/address").strip().replace(":", ""))
                    for ns, d in ((self.a, "a0"), (self.b, "b0"))}
        until(lambda: "LOWER_UP" in sh(f"ip -n {self.b} link show b0"), "b0 is up")

    def down(self):
        for ns in (self.a, self.b):
            sh(f"ip netns del {ns}", check=False)

    def frame(self, payload, proto=17, ports=(1000, 2000), to=None, tags=(), mac=None, size=None, fragment=0, version=4):
        body = payload if size is None else payload + bytes(size - len(payload))
        if proto == 17 and not fragment & 0x1FFF:
            body = struct.pack("!HHHH", *ports, 8 + len(body), 0) + body
        if version == 4:
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 7, fragment, 64, proto, 0,
                             socket.inet_aton("10.78.1.1"), socket.inet_aton(to or "10.78.1.2"))
            total = sum(struct.unpack("!10H", ip))
            total = (total & 0xFFFF) + (total >> 16)
            ip = ip[:10] + struct.pack("!H", ~total & 0xFFFF) + ip[12:]
        else:
            ip = struct.pack("!IHBB16s16s", 6 << 28, len(body), proto, 64, socket.inet_pton(socket.AF_INET6, "fd78:1::1"),
                             socket.inet_pton(socket.AF_INET6, to or "fd78:1::2"))
            if proto == 17 and not fragment & 0x1FFF:  # IPv6 has no UDP without a checksum
                whole = ip[8:] + struct.pack("!II", len(body), proto) + body
                total = sum(struct.unpack(f"!{len(whole) // 2}H", whole[:len(whole) & ~1])) + (whole[-1] << 8 if len(whole) & 1 else 0)
                while total >> 16:
                    total = (total & 0xFFFF) + (total >> 16)
                body = body[:6] + struct.pack("!H", ~total & 0xFFFF or 0xFFFF) + body[8:]
        head = (mac or self.mac["b0"]) + self.mac["a0"]
        for kind, tci in tags:
            head += struct.pack("!HH", kind, tci)
        return head + struct.pack("!H", 0x0800 if version == 4 else 0x86DD) + ip + body

    def send(self, frames, gap=0):
        subprocess.run(["ip", "netns", "exec", self.a, sys.executable, "-c", SEND, "a0", str(gap)], check=True, text=True,
                       input="".join(f.hex() + "\n" for f in frames))


class Recv:
    """ktrxer recv --jsonl in namespace B, which receives when the constructor returns."""

    def __init__(self, net, *args, device="b0", ns=None):
        command = ["ip", "netns", "exec", ns or net.b, str(KTRXER), "recv", "--jsonl", *(("--device", device) if device else ()),
                   *args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            if self.lines[-1].get("name") == "listening":
                return
        raise AssertionError(self.process.stderr.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def captured(self, count):
        """Waits until so many packets have been printed."""
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            if sum(x["type"] == "sample" for x in self.lines) == count:
                return
        raise AssertionError(f"it ended before: {self.process.stderr.read()}")

    def stop(self, signal_number=signal.SIGINT):
        time.sleep(0.1)
        self.process.send_signal(signal_number)
        return self.end()

    def end(self):
        out, self.errors = self.process.communicate(timeout=20)
        self.lines += [json.loads(line) for line in out.splitlines()]
        self.samples = [x for x in self.lines if x["type"] == "sample"]
        assert self.lines[-1]["type"] == "end"
        return self.lines[-1]


def read_pcap(path):
    """Nanosecond pcap of this host's byte order: [(ns, bytes, original length)]."""
    data = pathlib.Path(path).read_bytes()
    assert struct.unpack_from("=I", data)[0] == 0xA1B23C4D
    at, packets = 24, []
    while at < len(data):
        s, ns, length, original = struct.unpack_from("=IIII", data, at)
        packets.append((s * 10**9 + ns, data[at + 16:at + 16 + length], original))
        at += 16 + length
    return packets


def read_pcapng(path):
    data = pathlib.Path(path).read_bytes()
    at, packets = 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0 and struct.unpack_from("<I", data, at + length - 4)[0] == length
        if kind == 6:
            _, high, low, captured, original = struct.unpack_from("<IIIII", data, at + 8)
            packets.append((high << 32 | low, data[at + 28:at + 28 + captured], original))
        at += length
    assert at == len(data)
    return packets
