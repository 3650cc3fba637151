# SPDX-License-Identifier: MIT OR Apache-2.0
"""Another implementation of UDPSTP (RFC 9946), for tests: it shares no code with what is tested, and is written from the layouts of the RFC.

    udpstp_peer.py client HOST PORT TOKEN up|down SECONDS [MODIFIERS]   one test; prints what it counted
    udpstp_peer.py serve ADDRESS PORT TOKEN [open] [jumbo] [die] [forge]   a server for one test; prints what it counted

Each PDU that it sends has the optional checksum. TOKEN "-": without authentication.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import select
import socket
import struct
import sys
import time
from dataclasses import dataclass, field

SETUP, ACTIVATION, LOAD, STATUS, NULL = 0xACE1, 0xACE2, 0xBEEF, 0xFEED, 0xDEAD
VERSION = 20
LENGTHS = {SETUP: 56, ACTIVATION: 104, NULL: 48, STATUS: 204}
UP, DOWN = 1, 2
STOP = 2
NONE = 0xFFFFFFFF


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def keys(token: str, unix: int) -> tuple[bytes, bytes]:
    """Of client and server: SP 800-108 in counter mode, 512 bits."""
    made = [
        hmac.digest(token.encode(), struct.pack(">I", i) + b"UDPSTP\0" + str(unix).encode() + struct.pack(">I", 512), "sha256") for i in (1, 2)
    ]
    return made[0], made[1]


def sign(pdu: bytes, key: bytes | None, unix: int) -> bytes:
    """The last 41 bytes of a PDU: mode, time, digest, key, reserved, checksum."""
    body = pdu[:-41]
    if key is None:
        plain = body + bytes(39)
    else:
        digest = hmac.new(key, body + struct.pack(">BI", 1, unix) + bytes(32) + bytes(4), hashlib.sha256).digest()
        plain = body + struct.pack(">BI", 1, unix) + digest + bytes(2)
    return plain + struct.pack(">H", checksum(plain + bytes(2)))


def signed(pdu: bytes, key: bytes) -> bool:
    digest = hmac.digest(key, pdu[:-36] + bytes(32) + pdu[-4:-2] + bytes(2), "sha256")
    return pdu[-41] == 1 and hmac.compare_digest(digest, pdu[-36:-4])


def setup(request: int, answer: int, ident: int, port: int, modifiers: int, mbit: int = 0, version: int = VERSION) -> bytes:
    return struct.pack(">HHBBHBBHHB", SETUP, version, 0, 1, ident, request, answer, mbit, port, modifiers) + bytes(41)


def row(mbit: int) -> bytes:
    """Datagrams of 1250 bytes of IP and a smaller one, each millisecond."""
    if mbit == 0:
        return struct.pack(">7I", 0, 0, 0, 50000, 0, 0, 200)
    rest = mbit % 10 * 125 - 28 if mbit % 10 else 0
    return struct.pack(">7I", 0, 0, 0, 1000, 1222 if mbit >= 10 else 0, mbit // 10, rest)


def activation(direction: int, response: int, seconds: int, rate: bytes = bytes(28), *, trial: int = 50, interval: int = 1000) -> bytes:
    head = struct.pack(">HHBBHHHHBBHBBHHBBBB", ACTIVATION, VERSION, direction, response, 30, 90, trial, seconds, 0, 0, 0xFFFF, 0, 10, 3, 10, 1, 0, 0, 0)
    return head + rate + struct.pack(">HHHB", interval, 0, 0, 0) + bytes(41)


@dataclass
class Receiver:
    """Load in, status out."""

    highest: int = 0
    lost: int = 0
    trial_lost: int = 0
    datagrams: int = 0
    payload: int = 0
    trial: list[int] = field(default_factory=list)  # ms above the least delay
    least: int | None = None
    rtt_least: int | None = None
    rtt_sample: int = NONE
    echoed: tuple[int, int] = (0, 0)
    saved: bytes = bytes(56)
    intervals: int = 0
    current: list[int] = field(default_factory=lambda: [0, 0, 0])  # datagrams, payload, lost
    begun: float = 0.0
    number: int = 0
    rates: list[float] = field(default_factory=list)
    bad: int = 0

    def load(self, data: bytes) -> int:
        """The action of the sender."""
        now = time.time_ns()
        if len(data) < 32 or struct.unpack(">H", data[:2])[0] != LOAD:
            self.bad += 1
            return 0
        action, _, number, length, _, status_s, status_ns, sent_s, sent_ns, held = struct.unpack(">BBIHHIIIIH", data[2:30])
        if length != len(data) or (checksum(data[:32]) not in (0, 0xFFFF) and data[30:32] != b"\0\0"):
            self.bad += 1
            return 0
        self.begun = self.begun or time.monotonic()
        self.datagrams += 1
        self.payload += length
        gap = max(0, number - self.highest - 1)
        self.lost += gap
        self.trial_lost += gap
        self.current = [self.current[0] + 1, self.current[1] + length, self.current[2] + gap]
        self.highest = max(self.highest, number)
        delay = (now - sent_s * 10**9 - sent_ns) // 10**6
        self.least = delay if self.least is None else min(self.least, delay)
        self.trial.append(delay - self.least)
        if (status_s, status_ns) not in ((0, 0), self.echoed):
            self.echoed = (status_s, status_ns)
            rtt = max(0, (now - status_s * 10**9 - status_ns) // 10**6 - held)
            self.rtt_least = rtt if self.rtt_least is None else min(self.rtt_least, rtt)
            self.rtt_sample = rtt - self.rtt_least
        return int(action)

    def roll(self) -> None:
        passed = time.monotonic() - self.begun
        if not self.begun or passed < 0.975:
            return
        datagrams, payload, lost = self.current
        self.rates.append((payload + 28 * datagrams) * 8 / passed)
        self.intervals += 1
        self.saved = struct.pack(">IQ11I", datagrams, payload, int(passed * 1e6), lost, 0, 0, 0, 5, 5, 1, 0, 7, self.intervals * 1000)
        self.current = [0, 0, 0]
        self.begun = time.monotonic()

    def status(self, action: int, rate: bytes) -> bytes:
        self.number += 1
        low, high = (min(self.trial), max(self.trial)) if self.trial else (NONE, 0)
        now = time.time_ns()
        pdu = struct.pack(">HBBI", STATUS, action, 0, self.number) + rate + struct.pack(">I", self.intervals) + self.saved
        pdu += struct.pack(">3I", self.trial_lost, 0, 0)
        pdu += struct.pack(">5I", 0, low, high, sum(self.trial), len(self.trial))
        pdu += struct.pack(">2IBBH", self.rtt_least or 0, self.rtt_sample, 0, 0, 0)
        pdu += struct.pack(">5I", 50000, len(self.trial), 0, now // 10**9, now % 10**9) + bytes(3) + bytes(41)
        self.trial, self.trial_lost, self.rtt_sample = [], 0, NONE
        return sign(pdu, None, 0)


@dataclass
class Sender:
    """Status in, load out."""

    number: int = 0
    status: tuple[int, int] = (0, 0)
    arrived: int = 0
    payload: int = 0

    def load(self, length: int, action: int) -> bytes:
        now = time.time_ns()
        self.number += 1
        self.payload += length
        held = (now - self.arrived) // 10**6 if self.arrived else 0
        head = struct.pack(
            ">HBBIHHIIIIH", LOAD, action, 0, self.number, length, 0, *self.status, now // 10**9, now % 10**9, min(held, 65535)
        )
        return head + struct.pack(">H", checksum(head + bytes(2))) + bytes(length - 32)

    def heard(self, data: bytes) -> tuple[int, tuple[int, ...]]:
        """The action and the rate of a status PDU."""
        assert len(data) == 204 and struct.unpack(">H", data[:2])[0] == STATUS, data[:8]
        self.arrived = time.time_ns()
        self.status = struct.unpack(">II", data[152:160])
        return data[2], struct.unpack(">7I", data[8:36])


def burst(sock: socket.socket, sender: Sender, rate: tuple[int, ...], action: int) -> float:
    """One turn of the second transmitter; the time until the next."""
    interval1, payload1, burst1, interval2, payload2, burst2, add = rate
    repeat = interval2 // interval1 if interval1 and interval2 else 1
    sizes = [payload1] * burst1 * repeat + [payload2] * burst2 + ([add & 0x7FFFFFFF] if add else [])
    for size in sizes if action == 0 else [32]:
        with contextlib.suppress(BlockingIOError):
            sock.send(sender.load(max(32, size), action))
    return (interval2 or interval1) / 1e6


def receive(sock: socket.socket, seconds: int, *, serves: bool) -> dict[str, object]:
    receiver, mbit, action = Receiver(), 0, 0
    due, end, confirmed = time.monotonic(), time.monotonic() + seconds + 5, False
    while time.monotonic() < end and not confirmed:
        if select.select([sock], [], [], max(0.0, due - time.monotonic()))[0]:
            try:
                got = receiver.load(sock.recv(65535))
            except ConnectionRefusedError:
                break
            if got and serves:
                confirmed = True
            elif got:
                action = STOP
                due = 0.0
        if time.monotonic() >= due:
            if serves and not receiver.trial_lost and (not receiver.trial or max(receiver.trial) < 30):
                mbit = min(20, mbit + 2)
            elif serves:
                mbit = max(1, mbit - 1)
            if serves and receiver.intervals >= seconds:
                action = STOP
            receiver.roll()
            sock.send(receiver.status(action, row(mbit) if serves else bytes(28)))
            due = time.monotonic() + 0.05
            if action and not serves:
                confirmed = True
    return {
        "datagrams": receiver.datagrams, "lost": receiver.lost, "bad": receiver.bad, "rates": receiver.rates,
        "intervals": receiver.intervals, "confirmed": confirmed,
    }  # fmt: skip


def send(sock: socket.socket, seconds: int, rate: tuple[int, ...], *, serves: bool, dies: bool = False) -> dict[str, object]:
    sender, action, statuses = Sender(), 0, 0
    due = begun = time.monotonic()
    mbit = 0
    saved: list[tuple[int, int, int]] = []
    confirmed = False
    while time.monotonic() < begun + seconds + 3 and not confirmed:
        if dies and time.monotonic() > begun + 1.2:
            os._exit(0)
        if serves and time.monotonic() > begun + seconds + 0.5:
            action = STOP
        if select.select([sock], [], [], max(0.0, due - time.monotonic()))[0]:
            try:
                data = sock.recv(65535)
            except ConnectionRefusedError:
                break
            if struct.unpack(">H", data[:2])[0] == ACTIVATION:
                continue
            got, asked = sender.heard(data)
            statuses += 1
            number = struct.unpack(">I", data[36:40])[0]
            if number > len(saved):
                datagrams, payload, lasts = struct.unpack(">IQI", data[40:56])
                saved.append((datagrams, payload, lasts))
            if serves:
                mbit = min(20, mbit + 2)
                rate = struct.unpack(">7I", row(mbit))
                confirmed = got != 0
            else:
                rate = asked
                if got:
                    sock.send(sender.load(32, STOP))
                    confirmed = True
        if time.monotonic() >= due and not confirmed:
            due = max(due + burst(sock, sender, rate, action), time.monotonic())
    return {"sent": sender.number, "statuses": statuses, "confirmed": confirmed, "intervals": saved}


def client(host: str, port: int, token: str, direction: int, seconds: int, modifiers: int) -> dict[str, object]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.settimeout(5)
    now = int(time.time())
    own, other = keys(token, now) if token != "-" else (None, None)
    sock.sendto(sign(setup(1, 0, 77, 0, modifiers), own, now), (host, port))
    null = False
    while True:
        data, _ = sock.recvfrom(65535)
        assert checksum(data) == 0 or data[-2:] == b"\0\0"
        if struct.unpack(">H", data[:2])[0] == SETUP:
            break
        assert struct.unpack(">H", data[:2])[0] == NULL and len(data) == LENGTHS[NULL]
        null = True
    assert len(data) == LENGTHS[SETUP]
    _, version, _, _, ident, request, answer, _, test_port, got = struct.unpack(">HHBBHBBHHB", data[:15])
    assert (version, ident, request, got) == (VERSION, 77, 2, modifiers)
    if answer != 1:
        return {"answer": answer}
    assert other is None or signed(data, other)
    sock.connect((host, test_port))
    sock.send(sign(activation(direction, 0, seconds), own, int(time.time())))
    data = sock.recv(65535)
    response = data[5]
    assert len(data) == LENGTHS[ACTIVATION] and (other is None or signed(data, other))
    if response != 1:
        return {"answer": answer, "response": response}
    agreed = struct.unpack(">H", data[12:14])[0]
    sock.setblocking(False)
    result = receive(sock, agreed, serves=False) if direction == DOWN else send(sock, agreed, struct.unpack(">7I", data[28:56]), serves=False)
    return result | {"answer": answer, "response": response, "seconds": agreed, "null": null}


def serve(address: str, port: int, token: str, *flags: str) -> dict[str, object]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    control = socket.socket(family, socket.SOCK_DGRAM)
    control.bind((address, port))
    print("ready", flush=True)
    wanted = 1 if "jumbo" in flags else 0
    while True:
        data, source = control.recvfrom(65535)
        assert len(data) == LENGTHS[SETUP] and struct.unpack(">HH", data[:4]) == (SETUP, VERSION)
        unix = struct.unpack(">I", data[-40:-36])[0]
        ident, modifiers = struct.unpack(">H", data[6:8])[0], data[14]
        own: bytes | None = None
        answer = 1
        if "open" in flags:
            answer = 1 if data[-41] == 0 else 4
        else:
            other, own = keys(token, unix)
            answer = 5 if data[-41] == 0 else 1 if signed(data, other) else 7
        if answer == 1 and modifiers != wanted:
            answer = 3
        if answer == 1:
            break
        control.sendto(sign(setup(2, answer, ident, 0, modifiers), own, int(time.time())), source)
    if "forge" in flags:
        own = b"another key of no meaning"
    test = socket.socket(family, socket.SOCK_DGRAM)
    test.bind((address, 0))
    test.connect(source)
    test.send(sign(struct.pack(">HHBBB", NULL, VERSION, 1, 0, 0) + bytes(41), own, int(time.time())))
    control.sendto(sign(setup(2, 1, ident, test.getsockname()[1], modifiers), own, int(time.time())), source)
    test.settimeout(5)
    data = test.recv(65535)
    assert len(data) == LENGTHS[ACTIVATION] and ("open" in flags or signed(data, other))
    direction, seconds = data[4], struct.unpack(">H", data[12:14])[0]
    trial, interval = struct.unpack(">H", data[10:12])[0], struct.unpack(">H", data[56:58])[0]
    rate = row(0)
    test.send(sign(activation(direction, 1, seconds, rate if direction == UP else bytes(28), trial=trial, interval=interval), own, int(time.time())))
    test.setblocking(False)
    if direction == UP:
        return receive(test, seconds, serves=True)
    return send(test, seconds, struct.unpack(">7I", rate), serves=True, dies="die" in flags)


if __name__ == "__main__":
    if sys.argv[1] == "client":
        host, port, token, direction, seconds, *more = sys.argv[2:]
        print(json.dumps(client(host, int(port), token, UP if direction == "up" else DOWN, int(seconds), int(more[0]) if more else 0)))
    else:
        print(json.dumps(serve(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])))
