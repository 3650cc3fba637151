# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Clients of a server that takes the connection and sends a byte each fifth of a second, without an end: each wait of the client succeeds,
so only a limit of the whole exchange ends it. (OWAMP: test_owamp.py; HTTP load: tests/python/test_http_load.py.)

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A measures, B drips
"""

import sys
import time

import pytest
from clients import servers

# Answers each connection with the bytes of its argument, one at a time, and zeros after them.
DRIP = """
import socket, sys, threading, time
head = bytes.fromhex(sys.argv[3])
def drip(s):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for i in range(1 << 20):
            s.sendall(head[i : i + 1] or b"0")
            time.sleep(0.2)
    except OSError:
        pass
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
while True:
    threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.mark.parametrize(
    ("words", "port", "head", "limit_s", "text"),
    [
        (["flow", "up"], 8620, b"", 20, "is it `ktrxer serve`"),
        (["tcp", "--count", "4"], 80, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", 30, "the server stopped answering"),
        (["tcp", "--count", "4"], 80, b"HTTP/1.1 200 OK\r\nX: ", 30, "the server stopped answering"),
    ],
    ids=["flow", "tcp-body", "tcp-head"],
)
def test_the_client_ends(shared_pair, ktrxer, token, words, port, head, limit_s, text):
    a, b = shared_pair
    with servers(b, sys.executable, "-c", DRIP, b.address) as start:
        start(str(port), head.hex())
        began = time.monotonic()
        key = ["--token-file", token] if words[0] == "flow" else []
        done = a.run([ktrxer, *words, b.address, *key], check=False, timeout=80)
        took = time.monotonic() - began
    assert done.returncode == 1 and text in done.stdout + done.stderr, done.stdout + done.stderr
    assert took < limit_s
