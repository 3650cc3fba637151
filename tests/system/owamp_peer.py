# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Another implementation of OWAMP (RFC 4656, unauthenticated mode), written from the layouts of the RFC: client and server of OWAMP-Control, sender
and receiver of OWAMP-Test, with slots of constant length alone.

owamp_peer.py client HOST PORT up|down COUNT       prints what it saw as JSON
owamp_peer.py serve ADDRESS PORT [FLAG]            one connection; prints "ready", then what it saw as JSON
owamp_peer.py raw HOST PORT HEX...                 sends each, prints the lengths of the answers
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import time
from typing import Any, NoReturn

SLOT_S = 0.02
SKIPPED, LOST, TWICE = (3, 4), 7, 9  # numbers: not sent; counted as sent; sent twice
IP_RECVTTL = 12  # of linux/in.h
POUR_MOST = 1 << 29  # bytes
EPOCH = 2208988800  # from 1900 to 1970


def ntp(seconds: float) -> int:
    return int((seconds + EPOCH) * 2**32)


def unix(stamp: int) -> float:
    return stamp / 2**32 - EPOCH


def request(
    conf_sender: bool, packets: int, ports: tuple[int, int], addresses: tuple[str, str], *, sid: bytes = bytes(16), start: float = 0, slots: int = 1, padding: int = 0,
    slot: tuple[int, float] = (1, SLOT_S), type_p: int = 0,
) -> bytes:  # fmt: skip
    head = struct.pack(">BBBBIIHH", 1, 4, conf_sender, not conf_sender, slots, packets, *ports)
    both = b"".join(socket.inet_aton(one).ljust(16, b"\0") for one in addresses)
    tail = struct.pack(">IQQI8x", padding, ntp(start), 1 << 32, type_p)
    one = struct.pack(">B7xQ", slot[0], int(slot[1] * 2**32))
    return head + both + sid + tail + bytes(16) + one * slots + bytes(16)


def stop(sessions: list[tuple[bytes, int, list[tuple[int, int]]]]) -> bytes:
    body = b""
    for sid, following, skips in sessions:
        one = sid + struct.pack(">II", following, len(skips)) + b"".join(struct.pack(">II", *skip) for skip in skips)
        body += one + bytes(-len(one) % 16)
    return struct.pack(">BBHI8x", 3, 0, 0, len(sessions)) + body + bytes(16)


def exactly(sock: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = sock.recv(length - len(data))
        if not more:
            raise EOFError(f"{len(data)} of {length} bytes")
        data += more
    return data


def read_stop(sock: socket.socket) -> list[tuple[bytes, int, list[tuple[int, int]]]]:
    kind, accept, sessions = struct.unpack(">BBxxI8x", exactly(sock, 16))
    assert kind == 3 and accept == 0, (kind, accept)
    found = []
    for _ in range(sessions):
        sid, following, skips = struct.unpack(">16sII", exactly(sock, 24))
        ranges = [struct.unpack(">II", exactly(sock, 8)) for _ in range(skips)]
        exactly(sock, -(24 + 8 * skips) % 16)
        found.append((sid, following, ranges))
    exactly(sock, 16)
    return found


def send_test(sock: socket.socket, count: int, start: float) -> None:
    for number in range(count):
        time.sleep(max(0, start + SLOT_S * (number + 1) - time.time()))
        if SKIPPED[0] <= number <= SKIPPED[1] or number == LOST:
            continue
        packet = struct.pack(">IQH", number, ntp(time.time()), 0x0001)
        for _ in range(2 if number == TWICE else 1):
            sock.send(packet)


def receive_test(sock: socket.socket, until: float) -> list[tuple[int, float, int, int]]:
    came = []
    while (left := until - time.time()) > 0:
        sock.settimeout(left)
        try:
            data, more, *_ = sock.recvmsg(2000, 64)
        except TimeoutError:
            break
        number, stamp, error = struct.unpack(">IQH", data[:14])
        came.append((number, unix(stamp), error, struct.unpack("i", more[0][2])[0]))
    return came


def client(host: str, port: int, direction: str, count: int) -> dict[str, Any]:
    control = socket.create_connection((host, port), 5)
    mine = control.getsockname()[0]
    modes, greeting_count = struct.unpack(">12xI16x16xI12x", exactly(control, 64))
    control.sendall(struct.pack(">I160x", 1))
    accept, began = struct.unpack(">15xB16xQ8x", exactly(control, 48))
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_IP, IP_RECVTTL, 1)
    sock.bind((mine, 0))
    own = sock.getsockname()[1]
    start = time.time() + 0.3
    up = direction == "up"
    sid = bytes(16) if up else bytes(range(16))
    ports, ends = ((own, 0), (mine, host)) if up else ((0, own), (host, mine))
    control.sendall(request(not up, count, ports, ends, sid=sid, start=start))
    taken, test_port, theirs = struct.unpack(">BxH16s12x16x", exactly(control, 48))
    result: dict[str, Any] = {
        "modes": modes,
        "count": greeting_count,
        "accept": accept,
        "began": unix(began),
        "taken": taken,
        "start": start,
    }
    if taken:
        return result
    sid = theirs if up else sid
    sock.connect((host, test_port))
    control.sendall(struct.pack(">B31x", 2))
    result["started"] = exactly(control, 32)[0]
    if up:
        send_test(sock, count, start)
        time.sleep(1.2)  # the time-out of the request: packets within it have no record
    else:
        result["came"] = receive_test(sock, start + SLOT_S * count + 0.3)
    control.sendall(stop([(sid, count, [SKIPPED])] if up else []))
    result["stopped"] = [(following, skips) for _, following, skips in read_stop(control)]
    control.sendall(struct.pack(">B7xII16s16x", 4, 0, 0xFFFFFFFF, sid))
    fetch, finished, following, skips, records = struct.unpack(">BBxxIII16x", exactly(control, 32))
    result |= {"fetch": fetch, "finished": finished, "next": following}
    if fetch == 0:
        again = exactly(control, 112)
        result["again"] = struct.unpack(">BBBBII", again[:12]) + struct.unpack(">HH", again[12:16])
        exactly(control, 16 + 16)
        result["skips"] = [struct.unpack(">II", exactly(control, 8)) for _ in range(skips)]
        exactly(control, -8 * skips % 16 + 16)
        # number, send error, receive error, sent, received, TTL
        result["records"] = [struct.unpack(">IHHQQB", exactly(control, 25)) for _ in range(records)]
        exactly(control, -25 * records % 16 + 16)
    return result


def drip(control: socket.socket, data: bytes) -> NoReturn:
    """Until the client closes the connection."""
    control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    began = time.monotonic()
    with contextlib.suppress(OSError):
        for byte in data:
            control.sendall(bytes([byte]))
            time.sleep(0.25)
    print(json.dumps({"dripped_s": time.monotonic() - began}))
    sys.exit(0)


def pour(control: socket.socket, head: bytes, block: bytes) -> NoReturn:
    """As fast as the client reads, until it closes the connection."""
    poured = 0
    with contextlib.suppress(OSError):
        control.sendall(head)
        while poured < POUR_MOST:
            control.sendall(block)
            poured += len(block)
    print(json.dumps({"poured": poured}))
    sys.exit(0)


def serve(address: str, port: int, flag: str) -> dict[str, Any]:
    """Flags: none, locked (another mode), closed (no mode), refuse (the request), die, early (it stops the sessions), strange (no OWAMP),
    drip-greeting and drip-records (a byte each quarter of a second, without an end), claim-records, claim-ranges and claim-stopped (2^24 records,
    2^32 - 1 ranges, a range of 2^32 packets; until the client closes the connection)."""
    listener = socket.create_server((address, port))
    print("ready", flush=True)
    control = listener.accept()[0]
    listener.close()
    control.settimeout(20)
    if flag == "strange":
        control.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n".ljust(64, b"\xff") * 4)
        return {}
    if flag == "drip-greeting":
        drip(control, struct.pack(">12xI", 1) + bytes(1 << 16))
    control.sendall(struct.pack(">12xI16x16xI12x", {"locked": 6, "closed": 0}.get(flag, 1), 1024))
    if flag in ("locked", "closed"):
        return {}
    assert struct.unpack(">I160x", exactly(control, 164))[0] == 1
    control.sendall(struct.pack(">15xB16xQ8x", 0, ntp(time.time())))
    sessions = list[dict[str, Any]]()
    while (kind := exactly(control, 16))[0] == 1:
        head = kind + exactly(control, 96)
        _, version, conf_sender, conf_receiver, slots, packets, sender_port, receiver_port = struct.unpack(">BBBBIIHH", head[:16])
        start, _, type_p = struct.unpack(">QQI8x16x", head[68:])
        slot = [struct.unpack(">B7xQ", exactly(control, 16)) for _ in range(slots)]
        exactly(control, 16)
        if flag == "refuse":
            control.sendall(struct.pack(">BxH16s12x16x", 4, 0, bytes(16)))
            return {}
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_IP, IP_RECVTTL, 1)
        sock.bind((address, 0))
        sock.connect((control.getpeername()[0], receiver_port if conf_sender else sender_port))
        sid = head[48:64] if conf_sender else bytes(range(100, 116))
        control.sendall(struct.pack(">BxH16s12x16x", 0, sock.getsockname()[1], sid))
        sessions.append({
            "sends": bool(conf_sender), "packets": packets, "slots": slot, "start": unix(start), "sock": sock, "sid": sid, "version": version,
            "roles": [conf_sender, conf_receiver], "type_p": type_p, "head": head,
        })  # fmt: skip
    assert kind[0] == 2
    exactly(control, 16)
    control.sendall(bytes(32))
    if flag == "die":
        time.sleep(0.6)
        return {}
    for one in sessions:
        if one["sends"]:
            send_test(one["sock"], one["packets"], one["start"])
    if flag == "early":
        control.sendall(stop([(one["sid"], one["packets"], [SKIPPED]) for one in sessions if one["sends"]]))
    stopped = read_stop(control)
    if flag == "claim-stopped":
        control.sendall(stop([(one["sid"], one["packets"], [(0, 2**32 - 2)]) for one in sessions if one["sends"]]))
    elif flag != "early":
        control.sendall(stop([(one["sid"], one["packets"], [SKIPPED]) for one in sessions if one["sends"]]))
    for one in sessions:
        if not one["sends"]:
            one["came"] = receive_test(one["sock"], time.time() + 0.1)
            kind = exactly(control, 48)
            assert kind[0] == 4 and kind[16:32] == one["sid"]
            # A copy of the first packet, the second one is lost, and all took 5 ms.
            late = [(number, stamp, error) for number, stamp, error, _ in one["came"][:1] + one["came"][:1] + one["came"][2:]]
            records = b"".join(
                struct.pack(">IHHQQB", number, error, error, ntp(stamp), ntp(stamp + 0.005), 250) for number, stamp, error in late
            )
            records += struct.pack(">IHHQQB", 1, 1, 1, ntp(one["start"]), 0, 255)
            if flag == "drip-records":
                control.sendall(struct.pack(">BBxxIII16x", 0, 1, one["packets"], 0, len(late) + 1))
                drip(control, one["head"] + bytes(1 << 16))
            head = one["head"] + b"".join(struct.pack(">B7xQ", *s) for s in one["slots"]) + bytes(16)
            if flag == "claim-records":
                pour(control, struct.pack(">BBxxIII16x", 0, 1, one["packets"], 0, 1 << 24) + head + bytes(16), records[:25] * 4096)
            if flag == "claim-ranges":
                pour(control, struct.pack(">BBxxIII16x", 0, 1, one["packets"], 2**32 - 1, 0) + head, struct.pack(">II", 1, 1) * 4096)
            control.sendall(struct.pack(">BBxxIII16x", 0, 1, one["packets"], 0, len(late) + 1))
            control.sendall(head + bytes(16))
            control.sendall(records + bytes(-len(records) % 16) + bytes(16))
    seen = [{key: value for key, value in one.items() if key not in ("sock", "sid", "head")} for one in sessions]
    return {"sessions": seen, "stopped": [(following, skips) for _, following, skips in stopped]}


def raw(host: str, port: int, messages: list[str]) -> dict[str, Any]:
    control = socket.create_connection((host, port), 5)
    exactly(control, 64)
    answers = []
    control.settimeout(0.3)
    for one in messages:
        try:
            control.sendall(bytes.fromhex(one))
            answers.append(control.recv(65536).hex())
        except TimeoutError:
            answers.append("silent")
        except OSError:
            answers.append("closed")
    return {"answers": answers}


if __name__ == "__main__":
    role, host, port, *words = sys.argv[1:]
    if role == "client":
        print(json.dumps(client(host, int(port), words[0], int(words[1]))))
    elif role == "serve":
        print(json.dumps(serve(host, int(port), *(words or ["none"]))))
    else:
        print(json.dumps(raw(host, int(port), words)))
