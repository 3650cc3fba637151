# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is tested in this example: a file over UDP, with a window, acknowledgements and repetitions. Put your own protocol here.

    transfer.py receive                 prints `ready`, then takes one file
    transfer.py send HOST BYTES         sends a file; prints one line of figures
"""

import hashlib
import random
import socket
import struct
import sys
import time

PORT, PAYLOAD, WINDOW, TIMEOUT_S = 9000, 1200, 32, 0.25
HEAD = struct.Struct("!II")  # number of the packet, number of packets


def receive() -> None:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", PORT))
    print("ready", flush=True)
    parts: dict[int, bytes] = {}
    while True:
        data, sender = s.recvfrom(2048)
        number, count = HEAD.unpack_from(data)
        parts[number] = data[HEAD.size :]
        digest = hashlib.sha256(b"".join(parts[i] for i in range(count))).digest() if len(parts) == count else b""
        s.sendto(HEAD.pack(number, len(parts)) + digest, sender)


def send(host: str, size: int) -> int:
    content = random.Random(1).randbytes(size)
    parts = [content[at : at + PAYLOAD] for at in range(0, size, PAYLOAD)]
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((host, PORT))
    begun = time.monotonic()
    missing, on_the_way, repeated, digest = list(range(len(parts))), dict[int, float](), 0, b""
    while missing or on_the_way or not digest:
        now = time.monotonic()
        for number, sent in list(on_the_way.items()):
            if now - sent > TIMEOUT_S:
                del on_the_way[number]
                missing.insert(0, number)
                repeated += 1
        while missing and len(on_the_way) < WINDOW:
            number = missing.pop(0)
            on_the_way[number] = time.monotonic()
            s.send(HEAD.pack(number, len(parts)) + parts[number])
        s.settimeout(TIMEOUT_S / 4)
        try:
            answer = s.recv(2048)
        except TimeoutError:
            continue
        number, _ = HEAD.unpack_from(answer)
        on_the_way.pop(number, None)
        if number in missing:
            missing.remove(number)
        digest = digest or answer[HEAD.size :]
    seconds = time.monotonic() - begun
    print(f"{size} bytes in {seconds:.3f} s, {repeated} packets repeated")
    return 0 if digest == hashlib.sha256(content).digest() and seconds < 10 else 1


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive()
    sys.exit(send(sys.argv[2], int(sys.argv[3])))
