# SPDX-License-Identifier: MIT OR Apache-2.0
"""/dev/krx on two processors, with concurrent operations."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

from inside import run
from krx import CAPTURE, CAPTURE_DROP, DROP, PROMISCUOUS, Krx, Link, Rule, within
from krx_link import MODULES, stack
from ktrxer_lab.pytest_plugin import in_device

SECONDS = 4.0
REAL = in_device("pc", time="real", modules=MODULES, slow=("pc",))
REAL_OLD = in_device("pc", time="real", kernel="5.10", modules=MODULES, slow=("pc",))
REAL_NEW = in_device("pc", time="real", kernel="6.12", modules=MODULES, slow=("pc",))


def ended_by(number: int) -> threading.Event:
    told = threading.Event()
    signal.signal(number, lambda *_: told.set())
    return told


@contextlib.contextmanager
def workers(*works: Callable[[random.Random], None]) -> Iterator[None]:
    """Repeat each function in its own process during the body; none may fail."""
    ready, told = os.pipe()
    children = []
    for number, work in enumerate(works):
        child = os.fork()
        if child == 0:
            chance = random.Random(number)
            stop = ended_by(signal.SIGTERM)
            status = 1
            try:
                while not stop.is_set():
                    work(chance)
                status = 0
            except BaseException as error:
                os.write(told, f"worker {number}: {type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(status)
        children.append(child)
    try:
        yield
    finally:
        for child in children:
            os.kill(child, signal.SIGTERM)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        words = os.read(ready, 4096).decode() if select.select([ready], [], [], 0)[0] else ""
        os.close(ready)
        os.close(told)
    assert statuses == [0] * len(works), words


def flood(link: Link) -> Callable[[random.Random], None]:
    frames = [link.frame(bytes(size), (port, 2000), version) for size in (0, 100, 1400) for port in (1, 2) for version in (4, 6)]

    def work(chance: random.Random) -> None:
        for _ in range(50):
            with contextlib.suppress(OSError):  # the device is down or removed
                link.send(chance.choice(frames))

    return work


def tables_change_under_traffic(link: Link) -> None:
    """Two tables that drop all packets replace each other, and no packet passes meanwhile."""
    tables = ([Rule(DROP, 17, to_port=2000)], [Rule(CAPTURE_DROP, 17, from_port=port) for port in (1, 2)])
    with Krx("far") as krx, stack(4) as heard, stack(6) as heard6:
        krx.setup(link.far_index, ring=65536).rules(tables[0])
        with workers(flood(link)):
            end, changes = time.monotonic() + SECONDS, 0
            while time.monotonic() < end:
                changes += 1
                krx.rules(tables[changes % 2])
                krx.records()
        assert heard() == heard6() == [] and changes > 10
        link.send(link.frame())


def everything_at_once(link: Link) -> None:
    """Packets, scribbling, tables that change, files that are opened, forked and closed, readers that poll, a device that comes and goes."""
    shared = Krx("far").setup(link.far_index, ring=16384)
    shared.rules([Rule(CAPTURE, 17)])

    def scribbles(chance: random.Random) -> None:
        own = Krx("far").setup(link.far_index, ring=8192).rules([Rule(CAPTURE_DROP, 17)])
        assert own.map is not None
        for _ in range(200):
            at = chance.randrange(own.map_bytes - 4)
            own.map[at : at + 4] = struct.pack("=I", chance.getrandbits(32))
            own.map[own.tail_at : own.tail_at + 4] = struct.pack("=I", (own.head() + chance.choice((0, 8, -8, -4096, 1, 1 << 31))) & 0xFFFFFFFF)
        for _ in range(1000):  # a packet may be between the updates of two counters
            matched, captured, lost, _ = own.stats(1)
            if captured + lost == matched[0]:
                break
        own.close()
        assert captured + lost == matched[0], "packets that were neither kept nor counted as lost"

    def changes(chance: random.Random) -> None:
        rules = [Rule(chance.choice((CAPTURE, DROP, CAPTURE_DROP)), 17, "10.9.0.1", "10.9.0.2", 1 + i, 2000) for i in range(chance.randrange(300))]
        with contextlib.suppress(OSError):
            shared.rules([*rules, Rule(CAPTURE)])
        shared.stats(chance.randrange(300))

    def opens(chance: random.Random) -> None:
        with contextlib.suppress(OSError), Krx("far") as krx:
            krx.setup(link.far_index, flags=PROMISCUOUS, ring=1 << chance.randrange(12, 20))
            krx.rules([Rule(CAPTURE)])
            krx.poll(1)
            krx.records(3)

    def comes_and_goes(chance: random.Random) -> None:
        time.sleep(0.02)
        run("ip", "-n", "far", "link", "set", "dev", "wire", "down")
        run("ip", "-n", "far", "link", "set", "dev", "wire", "name", "thread")
        run("ip", "-n", "far", "link", "set", "dev", "thread", "name", "wire")
        run("ip", "-n", "far", "link", "set", "dev", "wire", "up")

    def vanishes(chance: random.Random) -> None:
        run("ip", "-n", "far", "link", "add", "name", "brief", "type", "veth", "peer", "name", "other")
        with contextlib.suppress(OSError), Krx("far") as krx:
            with within("far"):
                index = socket.if_nametoindex("brief")
            krx.setup(index, flags=PROMISCUOUS).rules([Rule(DROP)])
            run("ip", "-n", "far", "link", "del", "dev", "brief")
            return
        run("ip", "-n", "far", "link", "del", "dev", "brief")

    with shared, workers(flood(link), scribbles, changes, opens, comes_and_goes, vanishes):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            shared.poll(10)
            shared.records(50)
    with Krx("far") as krx:
        krx.setup(link.far_index).rules([Rule(CAPTURE, 17, to_port=2000)])
        link.send(link.frame())
        assert [r.data for r in krx.records()] == [link.frame()]


@REAL
def test_tables_change_under_traffic(link: Link) -> None:
    tables_change_under_traffic(link)


@REAL
def test_everything_at_once(link: Link) -> None:
    everything_at_once(link)


@REAL_OLD
def test_everything_at_once_5_10(link: Link) -> None:
    everything_at_once(link)


@REAL_NEW
def test_everything_at_once_6_12(link: Link) -> None:
    everything_at_once(link)
