# SPDX-License-Identifier: MIT OR Apache-2.0
"""A forwarding proxy on 127.0.0.1:3128 of a network namespace that has no other way out: forward_proxy.py LOG

Prints the path of the namespace when it listens. LOG gets a line for each request: method and target. Ends with its standard input.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

PORT = 3128
CLONE_NEWNET = 0x40000000
HEAD_MOST = 65536


def listener(made: list[socket.socket], namespace: list[int]) -> None:
    """A thread has a network namespace of its own. Its sockets stay there when other threads use them."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network namespace")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    made.append(socket.create_server(("127.0.0.1", PORT), backlog=64))
    namespace.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))


def relay(one: socket.socket, other: socket.socket) -> None:
    ends = {one: other, other: one}
    while ends:
        for ready in select.select(list(ends), [], [])[0]:
            data = ready.recv(65536)
            if data:
                ends[ready].sendall(data)
            else:
                with contextlib.suppress(OSError):
                    ends.pop(ready).shutdown(socket.SHUT_WR)


def serve(client: socket.socket, log: Path) -> None:
    """One request a connection: the header of a plain request is sent on with `Connection: close`."""
    with client, contextlib.suppress(OSError, ValueError):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(4096)
            if not data or len(head) > HEAD_MOST:
                return
            head += data
        head, rest = head.split(b"\r\n\r\n", 1)
        first, *fields = head.decode("latin-1").split("\r\n")
        method, target, version = first.split(" ")
        with log.open("a") as file:
            file.write(f"{method} {target}\n")
        url = urlsplit(f"//{target}" if method == "CONNECT" else target)
        if not url.hostname:
            client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            return
        with socket.create_connection((url.hostname, url.port or 80), timeout=60) as server:
            server.settimeout(None)
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                server.sendall(rest)
            else:
                path = (url.path or "/") + (f"?{url.query}" if url.query else "")
                kept = [field for field in fields if not field.lower().startswith(("connection:", "proxy-"))]
                lines = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
                server.sendall("\r\n".join(lines).encode("latin-1") + rest)
            relay(client, server)


def main() -> None:
    made: list[socket.socket] = []
    namespace: list[int] = []
    thread = threading.Thread(target=listener, args=(made, namespace))
    thread.start()
    thread.join()
    log = Path(sys.argv[1])
    log.touch()
    print(f"/proc/{os.getpid()}/fd/{namespace[0]}", flush=True)
    while sys.stdin not in select.select([made[0], sys.stdin], [], [])[0]:
        threading.Thread(target=serve, args=(made[0].accept()[0], log), daemon=True).start()


if __name__ == "__main__":
    main()
