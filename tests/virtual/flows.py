# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flows of plain sockets through a topology in virtual time: sent and received packets, with one clock for all hosts."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guests import Lab

PYTHON = f"{sys.executable} -I -S"
# Sends numbered and stamped packets.
SEND = """
import socket, struct, sys, time
name, port, count, interval, size, tos, wait = sys.argv[1], *map(float, sys.argv[2:])
time.sleep(wait)
family, *_, to = socket.getaddrinfo(name, int(port), type=socket.SOCK_DGRAM)[0]
s = socket.socket(family, socket.SOCK_DGRAM); s.connect(to)
s.setsockopt(*((socket.IPPROTO_IP, socket.IP_TOS) if family == socket.AF_INET else (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)), int(tos))
begun = time.monotonic()
for i in range(int(count)):
    wait = begun + i * interval - time.monotonic()
    if wait > 0: time.sleep(wait)
    s.send(struct.pack("!Iq", i, time.monotonic_ns()).ljust(int(size), b"."))
"""
# Writes for each arrival its number, delay, time, the byte with DSCP and ECN, and the sender's address.
TAKE = """
import json, select, socket, struct, sys, time
came, sockets = {}, {}
for port, name in enumerate(sys.argv[2:], 7000):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1); s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    s.bind(("::", port)); sockets[s] = came[name] = []
print("ready", flush=True)
idle = float(sys.argv[1])
while ready := select.select(list(sockets), [], [], idle)[0]:
    idle = 3
    for s in ready:
        data, more, _, sender = s.recvmsg(2000, 100); now = time.monotonic_ns()
        number, sent = struct.unpack("!Iq", data[:12])
        sockets[s].append((number, now - sent, now, max(value[0] for *_, value in more), sender[0]))
json.dump(came, open("came.json", "w"))
"""


@dataclass(frozen=True)
class Flow:
    host: str
    count: int
    interval_s: float
    size: int
    tos: int = 0
    name: str = ""  # name of the flow; default: the host's
    to: str = "server"
    wait_s: float = 0.0


@dataclass(frozen=True)
class Flows:
    arrived: dict[str, list[Any]]
    message: str  # output of the command that ran after the flows


def run_flows(folder: Path, topology: str, flows: Sequence[Flow], after: str = "true", files: Mapping[str, str] | None = None) -> Flows:
    """All flows at once, in one guest, to receivers in the host `server`."""
    lab = Lab(folder)
    for name, text in {"paths.toml": topology, "send.py": SEND, "take.py": TAKE, **(files or {})}.items():
        (lab.folder / name).write_text(text)
    senders = list[str]()
    for port, one in enumerate(flows, 7000):
        numbers = f"{port} {one.count} {one.interval_s} {one.size} {one.tos} {one.wait_s}"
        senders.append(f"ip netns exec {one.host} {PYTHON} send.py {one.to} {numbers} &")
    receiver = f"server={PYTHON} take.py 10 {' '.join(one.name or one.host for one in flows)}"
    job = f"{' '.join(senders)} wait; sleep 5; {after}"
    done = lab("run", "./paths.toml", "--time", "virtual", "--beside", receiver, "--", "sh", "-c", job, timeout=500)
    assert done.returncode == 0, done.stderr
    return Flows(json.loads((lab.folder / "came.json").read_text()), done.stdout)
