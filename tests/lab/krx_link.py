# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the tests of /dev/krx: the loaded module between two namespaces, and other receivers of the packets."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from inside import run
from krx import (
    Link,
    use_count,
    within,
)
from ktrxer_lab.pytest_plugin import in_device

MODULES = ("../../module",)
EVERYWHERE = in_device("pc", "phone", "router", modules=MODULES, slow=("phone", "router"))


@pytest.fixture
def link(pair: None) -> Iterator[Link]:
    """The pair with IPv6, and the loaded module. Afterwards the module must unload, and the kernel log must have no warning."""
    run("dmesg", "-c")
    run("insmod", "/root/ktrxer.ko")
    for name, address in (("near", "fd09::1"), ("far", "fd09::2")):
        run("ip", "-n", name, "address", "add", f"{address}/64", "dev", "wire", "nodad")
    link = Link.make()
    try:
        yield link
    finally:
        link.close()
        after = use_count()
        subprocess.run(["rmmod", "ktrxer"], capture_output=True, check=False)
    assert after == 0, "a process still holds the module"
    assert "ktrxer " not in Path("/proc/modules").read_text()
    message = [line for line in run("dmesg").splitlines() if any(word in line for word in ("WARNING", "BUG", "Oops", "Call Trace", "ktrxer:", "unregister_netdevice"))]
    message = [line for line in message if "out-of-tree" not in line and "verification failed" not in line]
    assert not message, "\n".join(message)


@contextlib.contextmanager
def stack(version: int, port: int = 2000) -> Iterator[Callable[[], list[bytes]]]:
    """Packets that far's own sockets receive."""
    with within("far"):
        sock = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
    if version == 6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind(("0.0.0.0" if version == 4 else "::", port))
    sock.setblocking(False)

    def heard() -> list[bytes]:
        got = []
        with contextlib.suppress(BlockingIOError):
            while True:
                got.append(sock.recv(65536))
        return got

    with sock:
        yield heard


@contextlib.contextmanager
def tap() -> Iterator[Callable[[], list[bytes]]]:
    """Arriving packets that a packet socket in far receives."""
    with within("far"):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sock.bind(("wire", 3))
    sock.setblocking(False)

    def seen() -> list[bytes]:
        got = []
        with contextlib.suppress(BlockingIOError):
            while True:
                data, address = sock.recvfrom(65536)
                if address[2] != 4:  # not outgoing
                    got.append(data)
        return got

    with sock:
        yield seen


def refused(code: int, what: Callable[[], object]) -> None:
    with pytest.raises(OSError) as caught:
        what()
    assert caught.value.errno == code, caught.value
