# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Scripted hostile clients of `ktrxer serve`: adversary.py KIND SERVER TOKEN-FILE. Each runs until SIGTERM, prints a line when it has begun and the
number of its actions at its end. All addresses of 10.80.0.0/16 are local where it runs; forged ones are of 198.18.0.0/15.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import random
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import owamp_peer
import udpstp_peer

PORT, OWAMP_PORT, UDPSTP_PORT = 8620, 861, 24601
chance = random.Random(1)


class Stopped(Exception):
    pass


def paced(rate: float) -> Iterator[int]:
    """Yields numbers at `rate` a second; late ones are not caught up."""
    at = time.monotonic()
    number = 0
    while True:
        yield number
        number += 1
        at = max(at + 1 / rate, time.monotonic() - 0.05)
        if (left := at - time.monotonic()) > 0:
            time.sleep(left)


def mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def connect(server: str, source: str) -> socket.socket:
    s = socket.socket()
    s.settimeout(2)
    s.bind((source, 0))
    s.connect((server, PORT))
    return s


class Control:
    """A control connection (docs/reference/control.md)."""

    def __init__(self, server: str, source: str, token: bytes, hello: bytes | None = None) -> None:
        self.s = connect(server, source)
        hello = hello or b"ktrxerC\1" + os.urandom(24)
        self.s.sendall(hello)
        answer = b""
        while len(answer) < 32:
            part = self.s.recv(32 - len(answer))
            if not part:
                raise ConnectionError
            answer += part
        base = mac(token, b"ktrxer control\0" + hello + answer)
        self.key, self.number = mac(base, b"to server"), 0

    def send(self, kind: int, body: bytes = b"") -> bytes:
        frame = struct.pack(">I", kind << 24 | len(body)) + body
        sealed = frame + mac(self.key, struct.pack(">Q", self.number) + frame)[:16]
        self.number += 1
        self.s.sendall(sealed)
        return sealed


REQUEST = struct.pack(">IQQQQQB", 1, 10**9, 0, 10**9, 10**8, 0, 0)


def stamp(number: int, length: int = 44) -> bytes:
    """A STAMP request in open mode."""
    return struct.pack(">IQHH", number, time.time_ns() & (2**64 - 1), 0x0101, 0) + bytes(length - 16)


# Each kind is one function: one action a call, at its rate.


def connect_flood(server: str, _: bytes) -> Iterator[None]:
    many: list[socket.socket] = []
    for _number in paced(400):
        s = socket.socket()
        s.setblocking(False)
        s.bind(("10.80.1.1", 0))
        s.connect_ex((server, PORT))
        many.append(s)
        if len(many) > 500:
            many.pop(0).close()
        yield


def slow_loris(server: str, _: bytes) -> Iterator[None]:
    """Sends a byte of the preface a second, on as many connections as the server allows."""
    many: list[tuple[socket.socket, int]] = []
    hello = b"ktrxerC\1" + bytes(24)
    for number in paced(200):
        with contextlib.suppress(OSError):
            if len(many) < 200:
                many.append((connect(server, f"10.80.2.{1 + number % 200}"), 0))
            s, at = many.pop(0)
            s.sendall(hello[at : at + 1])
            if at + 1 < len(hello):
                many.append((s, at + 1))
        yield


def wrong_token(server: str, _: bytes) -> Iterator[None]:
    for _number in paced(100):
        with contextlib.suppress(OSError):
            c = Control(server, "10.80.3.1", b"a wrong token")
            c.send(1, REQUEST)
            c.s.close()
        yield


def replays(server: str, token: bytes) -> Iterator[None]:
    """Replays the messages of a token holder on another connection and on the same one, and repeats STAMP requests."""
    hello = b"ktrxerC\1" + bytes(24)
    udp = socket.socket(type=socket.SOCK_DGRAM)
    udp.bind(("10.80.4.2", 0))
    packet = stamp(7)
    for number in paced(200):
        with contextlib.suppress(OSError):
            if number % 50 == 0:
                first = Control(server, "10.80.4.1", token, hello)
                recorded = first.send(1, REQUEST)
                again = Control(server, "10.80.4.1", token, hello)
                again.s.sendall(recorded)
                first.s.sendall(recorded)
                first.s.close()
                again.s.close()
            udp.sendto(packet, (server, PORT))
        yield


def reordered_states(server: str, token: bytes) -> Iterator[None]:
    """Sends valid frames with the token, in an order that no client uses."""
    bodies = {1: REQUEST, 3: struct.pack(">IH", 0, 1) + bytes(40), 6: struct.pack(">Q", 1), 8: struct.pack(">Q", 1), 9: b"", 12: b"", 14: b""}
    for _number in paced(10):
        with contextlib.suppress(OSError):
            c = Control(server, "10.80.5.1", token)
            for kind in chance.sample(sorted(bodies), 4):
                c.send(kind, bodies[kind])
            c.s.close()
        yield


def half_closed(server: str, _: bytes) -> Iterator[None]:
    many: list[socket.socket] = []
    for number in paced(50):
        with contextlib.suppress(OSError):
            s = connect(server, "10.80.6.1")
            s.sendall(b"ktrxerC\1" + bytes(24) if number % 2 else b"ktrxerD")
            s.shutdown(socket.SHUT_WR)
            many.append(s)
        if len(many) > 100:
            many.pop(0).close()
        yield


def thousand_sources(server: str, _: bytes) -> Iterator[None]:
    """A thousand addresses in forty networks, each with a socket."""
    many = []
    for number in range(1000):
        s = socket.socket(type=socket.SOCK_DGRAM)
        s.bind((f"10.80.{100 + number % 40}.{1 + number // 40}", 0))
        many.append(s)
    for number in paced(1000):
        many[number % 1000].sendto(stamp(number // 1000), (server, PORT))
        yield


def changing_ports(server: str, _: bytes) -> Iterator[None]:
    for number in paced(500):
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            s.bind(("10.80.7.1", 0))
            s.sendto(stamp(number), (server, PORT))
        yield


def forged_sources(server: str, _: bytes) -> Iterator[None]:
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for number in paced(500):
        payload = stamp(number, chance.choice((44, 44, 1400)))
        udp = struct.pack(">HHHH", 1024 + chance.randrange(60000), PORT, 8 + len(payload), 0)
        source = bytes((198, 18 + chance.randrange(2), chance.randrange(256), chance.randrange(1, 255)))
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp) + len(payload), 0, 0, 64, 17, 0) + source + socket.inet_aton(server)
        raw.sendto(head + udp + payload, (server, PORT))
        yield


def malformed(server: str, _: bytes) -> Iterator[None]:
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.bind(("10.80.8.1", 0))
    for _number in paced(500):
        s.sendto(os.urandom(chance.choice((0, 1, 14, 32, 44, 200, 1400))), (server, PORT))
        yield


def greedy_sender(server: str, _: bytes) -> Iterator[None]:
    """Requests more than the limit of answers to its network: each burst costs more than may come at once, on a slow machine too."""
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.bind(("10.80.9.1", 0))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for number in paced(10):
        for i in range(420):
            s.sendto(stamp(420 * number + i, 1400), (server, PORT))
        yield


def owamp_crowd(server: str, _: bytes) -> Iterator[None]:
    """OWAMP needs no token: all places for connections, and the most expensive answers, 200 of them requested at once."""
    many: list[socket.socket] = []
    stopped = owamp_peer.stop([(bytes(16), 36_000, [(35 * i, 35 * i + 33) for i in range(1024)])])
    for number in paced(30):
        source = f"10.80.10.{1 + number % 200}"
        with contextlib.suppress(OSError, EOFError):
            s = socket.create_connection((server, OWAMP_PORT), 1, (source, 0))
            many.append(s)
            if number % 10 == 0:
                owamp_peer.exactly(s, 64)
                s.sendall(struct.pack(">I160x", 1))
                owamp_peer.exactly(s, 48)
                s.sendall(owamp_peer.request(False, 36_000, (4000, 0), (source, server), slot=(1, 0.1)))
                session = owamp_peer.exactly(s, 48)[4:20]
                s.sendall(struct.pack(">B31x", 2) + stopped[:16] + session + stopped[32:])
                s.sendall(struct.pack(">B7xII16s16x", 4, 0, 36_000, session) * 200)
        if len(many) > 60:
            many.pop(0).close()
        yield


def udpstp_guesses(server: str, _: bytes) -> Iterator[None]:
    """Requests for tests of capacity with a wrong token: half of them of an own address, half with forged ones."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for number in paced(500):
        now = int(time.time())
        payload = udpstp_peer.sign(udpstp_peer.setup(1, 0, number % 65536, 0, 0, 1), udpstp_peer.keys("a wrong token of a guess", now)[0], now)
        source = socket.inet_aton("10.80.11.1") if number % 2 else bytes((198, 18, chance.randrange(256), chance.randrange(1, 255)))
        udp = struct.pack(">HHHH", 1024 + chance.randrange(60000), UDPSTP_PORT, 8 + len(payload), 0)
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp) + len(payload), 0, 0, 64, 17, 0) + source + socket.inet_aton(server)
        raw.sendto(head + udp + payload, (server, UDPSTP_PORT))
        yield


KINDS: dict[str, Callable[[str, bytes], Iterator[None]]] = {
    kind.__name__: kind
    for kind in (
        connect_flood, slow_loris, wrong_token, replays, reordered_states, half_closed, thousand_sources, changing_ports, forged_sources, malformed,
        greedy_sender, owamp_crowd, udpstp_guesses,
    )
}  # fmt: skip


def main() -> None:
    def stop(*_: object) -> None:
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
    # Real hostile hosts have their own processors; these may not delay the server and the honest clients. Beside other work of this machine
    # idle priority would stop the attacks, so it is for a server without real-time priority.
    urgent = os.sched_getscheduler(0) == os.SCHED_RR
    os.sched_setscheduler(0, os.SCHED_OTHER if urgent else os.SCHED_IDLE, os.sched_param(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000))
    kind, server, token = sys.argv[1:]
    actions = 0
    try:
        for _ in KINDS[kind](server, Path(token).read_bytes().strip()):
            actions += 1
            if actions == 1:
                print("begun", flush=True)
    except Stopped:
        print(actions, flush=True)


if __name__ == "__main__":
    main()
