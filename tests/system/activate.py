# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Acts like systemd for a .socket unit: activate.py SOCKET... -- COMMAND... opens the sockets, prints `open`, waits for a line on its standard input,
and executes COMMAND with the sockets as descriptors from 3 on, LISTEN_FDS and LISTEN_PID.

A SOCKET is KIND=ADDRESS=PORT: `udp` (as with PassPacketInfo=yes and Timestamping=ns), `udp-bare` (without both), `udp-unstamped`, `udp-connected`,
`tcp`, `tcp-silent` (does not listen), `both` (TCP of IPv4 and IPv6), `unix`, `raw`, `file`, `unbound`. Fields at the end may be missing.
PID=NUMBER and FDS=TEXT as first words replace the two variables.
"""

from __future__ import annotations

import os
import socket
import sys

SO_TIMESTAMPNS = 35
IP_PKTINFO = 8
IPV6_RECVPKTINFO = 49


def open_one(spec: str) -> int:
    kind, address, port = [*spec.split("="), "", ""][:3]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if kind == "file":
        return os.open(os.devnull, os.O_RDONLY)
    if kind == "unix":
        return socket.socket(socket.AF_UNIX).detach()
    if kind == "raw":
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).detach()
    s = socket.socket(family, socket.SOCK_DGRAM if kind.startswith("udp") else socket.SOCK_STREAM)
    if kind == "unbound":
        return s.detach()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(kind != "both"))
    if kind in ("udp", "udp-unstamped", "udp-connected"):
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        else:
            s.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        if kind != "udp-unstamped":
            s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    s.bind((address, int(port)))
    if kind == "udp-connected":
        s.connect((address, 9))
    if kind in ("tcp", "both"):
        s.listen()
    return s.detach()


def main() -> None:
    at = sys.argv.index("--")
    command, specs = sys.argv[at + 1 :], sys.argv[1:at]
    environment = {
        "LISTEN_PID": str(os.getpid()),
        "LISTEN_FDS": str(sum(spec.split("=")[0] not in ("PID", "FDS") for spec in specs)),
    }
    opened = []
    for spec in specs:
        name, _, value = spec.partition("=")
        if name in ("PID", "FDS"):
            environment["LISTEN_PID" if name == "PID" else "LISTEN_FDS"] = value
        else:
            opened.append(open_one(spec))
    # First move the descriptors to unused numbers, then to their final numbers.
    moved = [os.dup2(fd, 100 + number) for number, fd in enumerate(opened)]
    os.closerange(3, 100)
    for number, fd in enumerate(moved):
        os.dup2(fd, 3 + number, inheritable=True)
    os.closerange(100, 200)
    print("open", flush=True)
    sys.stdin.readline()
    os.execve(command[0], command, os.environ | environment)


if __name__ == "__main__":
    main()
