# SPDX-License-Identifier: MIT OR Apache-2.0
"""A broker of MQTT 3.1.1 that publishes 0.5, 1.5, 2.5 ... to each subscriber, whatever its topic. argv: port.
It prints a line when it listens."""

import contextlib
import socket
import sys
import threading
import time


def publish(peer, published):
    """A message of JSON every 100 ms until the subscriber is gone. Each text has one byte of length."""
    with peer, contextlib.suppress(OSError):
        assert peer.recv(1000)[:1] == b"\x10", "CONNECT"
        peer.sendall(b"\x20\x02\0\0")  # CONNACK: accepted
        subscribe = peer.recv(1000)
        assert subscribe[:1] == b"\x82", "SUBSCRIBE"
        peer.sendall(b"\x90\x03" + subscribe[2:4] + b"\0")
        for number in range(1000):
            body = b"\0\x05power" + b'{"voltage": 230, "power": "%d.5"}' % number
            peer.sendall(bytes([0x30, len(body)]) + body)
            published.append(number + 0.5)
            time.sleep(0.1)


if __name__ == "__main__":
    with socket.create_server(("", int(sys.argv[1]))) as listener:
        print("listening", flush=True)
        while True:
            threading.Thread(target=publish, args=(listener.accept()[0], []), daemon=True).start()
