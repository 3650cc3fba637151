# SPDX-License-Identifier: MIT OR Apache-2.0
"""Correct and wrong use of the module at the same time on all processors, from a seed."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator

from krx import (
    CAPTURE,
    CAPTURE_DROP,
    DROP,
    PREROUTING,
    PROMISCUOUS,
    Krx,
    Link,
    Rule,
    enter,
    libc,
    within,
)
from ktx_raw import ANY, NONE, SETUP, SETUP_FORMAT, TRAIN, Ktx, frame, now, setup_words
from soak_kernel import short_of_memory

MS = 1_000_000
# Possible errors of a device that is down or removed, of an invalid index, or without memory.
EXPECTED = {
    errno.ENODEV, errno.ENETDOWN, errno.ENXIO, errno.EPROTO, errno.EINVAL, errno.ENOMEM, errno.EFAULT, errno.EBUSY, errno.E2BIG, errno.ENOTTY,
    errno.ENOBUFS, errno.EAGAIN, errno.EPERM, errno.EOPNOTSUPP, None,  # None: no device of that name
}


@contextlib.contextmanager
def expected(counts: Counter[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        assert error.errno in EXPECTED, error
        counts["refusals"] += 1


class Chaos:
    """Two namespaces, `near` and `far`, with the pair `wire` between them; the module is loaded."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    # -- one step of each worker; counted by its name --

    def scribbles_over_a_senders_ring(self, chance: random.Random, counts: Counter[str]) -> None:
        with expected(counts), within("near"), Ktx("wire", timer=chance.randrange(4), slots=chance.choice((2, 16, 256)), late=chance.randrange(3),
                                                  frame_size=chance.choice((1, 60, 1514)), retry_ns=chance.choice((0, MS))) as ktx:
            for _ in range(60):
                where = chance.randrange(6)
                value = chance.choice((0, 1, TRAIN, ktx.count, ANY, chance.getrandbits(32), chance.randrange(2000)))
                if where == 0:
                    ktx.put_word(4 * chance.randrange(96), value)
                elif where < 3:
                    ktx.put_word(ktx.slots + 4 * chance.randrange(8 * ktx.count), value)
                elif where == 3 and ktx.size > 8192:
                    at = chance.randrange(ktx.size - 64)
                    ktx.map[at : at + 64] = chance.randbytes(64)
                else:
                    for i in range(chance.randrange(6)):
                        ktx.put(frame(i), chance.choice((0, now() + chance.randrange(MS), 1, (1 << 63) + 5)), chance.choice((0, TRAIN)))
                with expected(counts):
                    ktx.kick(cancel_to=chance.choice((None, None, ktx.head, chance.getrandbits(32))))
            counts["rings scribbled over"] += 1

    def sends_by_all_timers(self, chance: random.Random, counts: Counter[str]) -> None:
        with expected(counts), within("near"), Ktx("wire", timer=chance.randrange(4), slots=64) as ktx:
            count = chance.randrange(1, 60)
            begin = now() + chance.randrange(2 * MS)
            ktx.send([frame(i, chance.randrange(14, 1514)) for i in range(count)], [begin + i * chance.choice((0, 3000, 50_000)) for i in range(count)])
            end = now() + 200 * MS
            got = 0
            while got < count and now() < end:
                if ktx.timer == NONE:
                    ktx.kick()
                select.select([ktx.fd], [], [], 0.01)
                got += len(ktx.collect())
            counts["probes reported"] += got

    def is_killed_with_probes_and_rules(self, chance: random.Random, counts: Counter[str]) -> None:
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                with within("near"):
                    ktx = Ktx("wire", timer=chance.randrange(4))
                ktx.send([frame(i) for i in range(40)], [now() + i * MS for i in range(40)])
                krx = Krx("far")
                with within("far"):
                    krx.setup(socket.if_nametoindex("wire"), flags=PROMISCUOUS).rules([Rule(CAPTURE_DROP, 17)])
                os.write(told, b".")
                time.sleep(10)
            os._exit(0)
        os.close(told)
        select.select([ready], [], [], 1)
        time.sleep(chance.random() * 0.01)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        counts["processes killed with probes pending and rules set"] += 1

    def calls_anything(self, chance: random.Random, counts: Counter[str]) -> None:
        """ioctl() with any number, any bytes, any pointer."""
        enter("far" if chance.randrange(2) else "near")
        with contextlib.suppress(OSError):
            index = socket.if_nametoindex("wire")
            fd = os.open(chance.choice(("/dev/ktx", "/dev/krx")), os.O_RDWR)
            words = setup_words(index)
            for _ in range(chance.randrange(3)):
                words[chance.randrange(len(words))] = chance.choice((0, 1, 2, 3, ANY, chance.getrandbits(32)))
            for _ in range(8):
                data = chance.choice((struct.pack(SETUP_FORMAT, *words), chance.randbytes(128), struct.pack("=12I", 48, 0, 1, index, 0, 4096, *[0] * 6).ljust(128, b"\0")))
                buffer = ctypes.create_string_buffer(data, 128)
                number = chance.choice((SETUP, 0xE911, 0xC030E940, 0x4018E941, 0xC038E942, 0x8010E900, chance.getrandbits(32)))
                address = chance.choice((ctypes.addressof(buffer),) * 6 + (0, 8, chance.getrandbits(47), (1 << 64) - 8))
                libc.ioctl(fd, ctypes.c_ulong(number), ctypes.c_void_p(address))
                counts["ioctls of any kind"] += 1
            os.close(fd)

    def rules_change_under_packets(self, chance: random.Random, counts: Counter[str]) -> None:
        with expected(counts), Krx("far") as krx:
            with within("far"):
                index = socket.if_nametoindex("wire")
            krx.setup(index, chance.choice((1, PREROUTING)), flags=chance.choice((0, PROMISCUOUS)), ring=1 << chance.randrange(12, 18))
            for _ in range(10):
                rules = [Rule(chance.choice((CAPTURE, DROP, CAPTURE_DROP)), 17, "10.9.0.1", "10.9.0.2", 1 + i, 2000) for i in range(chance.randrange(60))]
                with expected(counts):
                    krx.rules([*rules, Rule(CAPTURE)])
                with expected(counts):
                    krx.stats(chance.randrange(60))
                if krx.map is not None:
                    at = chance.randrange(krx.map_bytes - 4)
                    krx.map[at : at + 4] = struct.pack("=I", chance.getrandbits(32))
                    krx.map[krx.tail_at : krx.tail_at + 4] = struct.pack("=I", (krx.head() + chance.choice((0, 8, -8, -4096, 1, 1 << 31))) & ANY)
                krx.poll(1)
                counts["tables of rules"] += 1

    def floods(self, chance: random.Random, counts: Counter[str]) -> None:
        with contextlib.suppress(OSError):
            link = Link.make()
            frames = [link.frame(bytes(size), (port, 2000), version) for size in (0, 100, 1400) for port in (1, 2) for version in (4, 6)]
            for _ in range(50):
                link.send(chance.choice(frames))
                counts["packets received"] += 1
            link.close()

    def devices_come_and_go(self, chance: random.Random, counts: Counter[str]) -> None:
        time.sleep(0.05)
        here, there = chance.sample(("near", "far"), 2)
        steps = chance.choice((
            (("-n", here, "link", "set", "dev", "wire", "down"), ("-n", here, "link", "set", "dev", "wire", "up")),
            (("-n", here, "link", "set", "dev", "wire", "down"), ("-n", here, "link", "set", "dev", "wire", "name", "brief"),
             ("-n", here, "link", "set", "dev", "brief", "name", "wire"), ("-n", here, "link", "set", "dev", "wire", "up")),
            (("-n", here, "link", "set", "dev", "wire", "name", "brief"), ("-n", here, "link", "set", "dev", "brief", "netns", there),
             ("-n", there, "link", "set", "dev", "brief", "netns", here), ("-n", here, "link", "set", "dev", "brief", "name", "wire"),
             ("-n", here, "link", "set", "dev", "wire", "up")),
            (("-n", here, "link", "del", "dev", "wire"),),
            (("-n", here, "link", "set", "dev", "wire", "mtu", chance.choice(("68", "1500", "9000"))),),
        ))
        for words in steps:
            subprocess.run(["ip", *words], capture_output=True, check=False)
        counts["devices down, renamed, moved, deleted"] += 1
        mend()

    def wants_it_unloaded(self, chance: random.Random, counts: Counter[str]) -> None:
        """Keeps a file open."""
        time.sleep(0.1)
        assert subprocess.run(["rmmod", "ktrxer"], capture_output=True, check=False).returncode, "a module in use has gone"
        counts["unloads refused"] += 1

    # -- all of them --

    def run(self, seconds: float, percent: int) -> dict[str, int]:
        works = (self.scribbles_over_a_senders_ring, self.sends_by_all_timers, self.is_killed_with_probes_and_rules, self.calls_anything,
                 self.rules_change_under_packets, self.floods, self.devices_come_and_go, self.wants_it_unloaded)
        mend()
        with Krx("far"), short_of_memory(percent):
            totals: Counter[str] = Counter()
            ears = [_worker(work, self.chance.getrandbits(32), time.monotonic() + seconds) for work in works]
            for child, pipe in ears:
                message = b"".join(iter(lambda pipe=pipe: os.read(pipe, 65536), b"")).decode()  # type: ignore[misc]
                os.close(pipe)
                os.waitpid(child, 0)
                answer = json.loads(message)
                assert "error" not in answer, answer["error"]
                totals.update(answer)
        mend()
        return dict(totals)

    def still_works(self) -> None:
        mend()
        with Krx("far") as krx:
            link = Link.make()
            krx.setup(link.far_index).rules([Rule(CAPTURE, 17, to_port=2000)])
            with within("near"), Ktx("wire") as ktx:
                ktx.send([link.frame(b"still")])
                assert [report.error for report in ktx.reports(1)] == [0]
            time.sleep(0.1)
            assert link.frame(b"still") in [record.data for record in krx.records()]
            link.close()


def _worker(work: Callable[[random.Random, Counter[str]], None], seed: int, end: float) -> tuple[int, int]:
    pipe, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        return child, pipe
    os.close(pipe)
    chance, counts = random.Random(seed), Counter[str]()
    answer: dict[str, object] = {}
    try:
        while time.monotonic() < end:
            work(chance, counts)
        answer = dict(counts)
    except BaseException as error:
        answer = {"error": f"{work.__name__}: {type(error).__name__}: {error}"}
    finally:
        os.write(told, json.dumps(answer).encode())
        os._exit(0)


def mend() -> None:
    """Restore the wire from any state."""
    def ip(*words: str) -> bool:
        return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0

    if not (ip("-n", "near", "link", "show", "dev", "wire") and ip("-n", "far", "link", "show", "dev", "wire")):
        for name in ("near", "far"):
            for device in ("wire", "brief"):
                ip("-n", name, "link", "del", "dev", device)
        ip("link", "add", "name", "wire", "netns", "near", "type", "veth", "peer", "name", "wire", "netns", "far")
    for index, name in enumerate(("near", "far"), start=1):
        ip("-n", name, "link", "set", "dev", "wire", "mtu", "1500")
        ip("-n", name, "address", "add", f"10.9.0.{index}/24", "dev", "wire")
        ip("-n", name, "link", "set", "dev", "wire", "up")
