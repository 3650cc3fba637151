# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module's receiving side (/dev/krx): what rules do to packets, that nothing is lost in silence, and that nothing stays behind.

      near                           far
    wire 10.9.0.1/24 ----------- wire 10.9.0.2/24      what near sends, rules in far judge
         fd09::1                      fd09::2
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Self

import pytest
from inside import run
from krx import (
    CAPTURE,
    CAPTURE_DROP,
    DOWN,
    DROP,
    FORWARD,
    GONE,
    IOC_RULES,
    IOC_SETUP,
    IOC_STATS,
    IOC_VERSION,
    LATE,
    PREROUTING,
    PROMISCUOUS,
    RULE,
    RULES,
    SETUP,
    TAGGED,
    UP,
    Chance,
    Krx,
    Link,
    Prepared,
    Rule,
    enter,
    libc,
    scan,
    use_count,
    within,
)
from ktrxer.lab.pytest_plugin import in_device

MODULES = ("../../module",)
EVERYWHERE = in_device("pc", "phone", "router", modules=MODULES, slow=("phone", "router"))


@pytest.fixture
def link(pair: None) -> Iterator[Link]:
    """The pair with IPv6, the module loaded; afterwards it must go, and the kernel must have had nothing to say."""
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
    assert after == 0, "somebody still holds the module"
    assert "ktrxer " not in Path("/proc/modules").read_text()
    said = [line for line in run("dmesg").splitlines() if any(word in line for word in ("WARNING", "BUG", "Oops", "Call Trace", "ktrxer:", "unregister_netdevice"))]
    said = [line for line in said if "out-of-tree" not in line and "verification failed" not in line]
    assert not said, "\n".join(said)


@contextlib.contextmanager
def stack(version: int, port: int = 2000) -> Iterator[Callable[[], list[bytes]]]:
    """What far's own sockets get."""
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
    """What a tap in far sees of what arrives."""
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


# ------------------------------------------------------------------------------------------------------- what rules do


@EVERYWHERE
@pytest.mark.parametrize("version", [4, 6])
def test_the_four_operations(link: Link, version: int) -> None:
    rules = [Rule(CAPTURE, 17, from_port=1), Rule(DROP, 17, from_port=2), Rule(CAPTURE_DROP, 17, from_port=3), Rule(FORWARD, 17, from_port=4), Rule(DROP, 17, from_port=4)]
    with Krx("far") as krx, stack(version) as heard, tap() as seen:
        krx.setup(link.far_index).rules(rules)
        frames = [link.frame(b"from %d" % port, (port, 2000), version) for port in (1, 2, 3, 4, 5) for _ in range(3)]
        link.send(*frames)
        assert heard() == [b"from %d" % port for port in (1, 4, 5) for _ in range(3)]
        assert [frame for frame in seen() if frame in frames] == frames, "dropped behind the taps"
        records = krx.records()
        assert [(r.rule, r.data) for r in records] == [(rule, frame) for rule, frame in zip([0] * 3 + [2] * 3, frames[0:3] + frames[6:9], strict=True)]
        assert all(r.length == len(r.data) and r.direction == 0 and r.ifindex == link.far_index for r in records)
        assert krx.stats(5) == ([3, 3, 3, 3, 0], 6, 0, UP)


@EVERYWHERE
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("operation", [CAPTURE_DROP, CAPTURE])
def test_a_connection_made_by_hand(link: Link, version: int, operation: int) -> None:
    """With capture+drop far's own TCP does not hear of the answer. With capture alone it does, and resets what it knows nothing of."""
    near, far = ("10.9.0.1", "10.9.0.2") if version == 4 else ("fd09::1", "fd09::2")
    port = 7000 + version + 10 * operation
    with within("near"):
        server = socket.create_server((near, port), family=socket.AF_INET if version == 4 else socket.AF_INET6)
        sniff = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sniff.bind(("wire", 3))
    with within("far"):
        hand = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        hand.bind(("wire", 0))
    mirror = Link(near_mac=link.far_mac, far_mac=link.near_mac)

    def segment(flags: int, sequence: int, acknowledged: int) -> bytes:
        tcp = struct.pack("!IIBBHHH", sequence, acknowledged, 0x50, flags, 8192, 0, 0)
        return mirror.frame(b"", (50123, port), version, 6, tcp=tcp, from_=far, to=near)

    with server, sniff, hand, Krx("far") as krx:
        krx.setup(link.far_index).rules([Rule(operation, 6, near, far, port, 50123)])
        run("ip", "netns", "exec", "near", "ping", "-c", "1", "-q", far)  # the neighbours know each other
        hand.send(segment(2, 1000, 0))
        assert krx.poll(1000) == select.POLLIN
        (answer,) = krx.records(1)
        tcp = answer.data[14 + (20 if version == 4 else 40) :]
        assert tcp[13] == 0x12, "SYN, ACK"
        hand.send(segment(0x10, 1001, int.from_bytes(tcp[4:8], "big") + 1))
        time.sleep(0.05)
        server.settimeout(1)
        sniff.settimeout(0.2)
        flags = []
        with contextlib.suppress(TimeoutError):
            while True:
                data, address = sniff.recvfrom(2048)
                inner = data[14 + (20 if version == 4 else 40) :]
                if address[2] != 4 and data[14 + (9 if version == 4 else 6)] == 6 and inner[2:4] == port.to_bytes(2, "big"):
                    flags.append(inner[13])
        if operation == CAPTURE_DROP:
            assert flags == [0x02, 0x10]
            connection, peer = server.accept()
            assert peer[1] == 50123
            connection.close()
        else:
            assert 0x04 in flags, "it was reset"


@EVERYWHERE
def test_odd_packets(link: Link) -> None:
    """Tags, fragments, chains of headers, what is not IP, packets for others, lengths that lie: as a linear scan has it, byte by byte."""

    def chain(*kinds: int) -> bytes:
        return b"".join(bytes((kind, 0, 1, 4, 0, 0, 0, 0)) for kind in kinds)

    def fragment6(offset: int, more: int) -> bytes:
        return struct.pack("!BBHI", 17, 0, offset << 3 | more, 7)

    other = bytes.fromhex("02aabbccddee")
    frames = [
        (0, link.frame()),
        (0, link.frame(fragment=0x2000)),  # the first: its ports are there
        (1, link.frame(bytes(16), fragment=0x0003)),  # a later one: none
        (0, link.frame(tags=[(0x8100, 5)])),
        (0, link.frame(tags=[(0x88A8, 7), (0x8100, 8)], version=6)),
        (3, link.frame(tags=[(0x88A8, 7), (0x8100, 8), (0x8100, 9)])),  # behind two tags, not behind three
        (0, other + link.frame()[6:]),
        (0, link.frame(version=6, extensions=chain(60, 17), next_header=0)),
        (0, link.frame(version=6, extensions=chain(*[60] * 15, 17), next_header=60)),
        (2, link.frame(version=6, extensions=chain(*[60] * 16, 17), next_header=60)),  # the seventeenth is not looked behind
        (0, link.frame(version=6, extensions=fragment6(0, 1), next_header=44)),
        (1, link.frame(version=6, extensions=fragment6(3, 0), next_header=44)),
        (1, link.frame(ip_total=22)),  # ends before its ports
        (1, link.frame(ip_total=10)),  # and before its own header
        (0, link.frame(ip_total=0)),
        (0, link.frame(version=6, ip_total=5)),
        (1, link.frame(version=6, ip_total=3)),
        (1, link.frame()[: 14 + 22]),
        (3, link.frame()[: 14 + 19]),
        (2, link.frame(proto=47)),
        (3, link.far_mac + link.near_mac + b"\x88\xb6" + bytes(50)),
        (3, link.far_mac + link.near_mac + b"\x08\x00" + b"\x55" + bytes(50)),
        (3, link.far_mac + link.near_mac + b"\x00\x20" + bytes(50)),  # 802.3
    ]
    rules = [Rule(CAPTURE_DROP, 17, to_port=2000), Rule(CAPTURE_DROP, 17), Rule(CAPTURE_DROP, 47), Rule(CAPTURE_DROP, 60), Rule(CAPTURE_DROP)]
    number = [0, 1, 2, 2, 3]  # of the packets above
    prepared = [Prepared.of(rule) for rule in rules]
    with Krx("far") as krx:
        krx.setup(link.far_index).rules(rules)
        link.send(*(frame for _, frame in frames))
        records = [r for r in krx.records() if r.data in [frame for _, frame in frames]]
        assert [r.data for r in records] == [frame for _, frame in frames]
        assert [number[r.rule] for r in records] == [want for want, _ in frames]
        assert [r.rule for r in records] == [scan(prepared, r.data) for r in records]
        assert [r.tci for r in records if r.flags & TAGGED] == [5, 7, 7]
        assert [r.direction for r in records][6] == 3


def silence() -> None:
    """Nothing but what a test sends is on the link."""
    for name in ("near", "far"):
        run("ip", "netns", "exec", name, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        run("ip", "-n", name, "address", "flush", "dev", "wire")
    time.sleep(0.1)


def differs(link: Link, seed: int, rounds: int, frames_each: int) -> tuple[int, int, int]:
    """Random rules and packets against a linear scan. A second file, which comes after the first, sees exactly what that one lets go on."""
    chance = Chance(seed)
    met = missed = dropped = 0
    with Krx("far") as behind, Krx("far") as krx:
        behind.setup(link.far_index, ring=1 << 21).rules([Rule(CAPTURE)])
        krx.setup(link.far_index, ring=1 << 21)
        for turn in range(rounds):
            count = 1 + chance.next(199 if turn % 2 else 12)
            rules = [replace(chance.rule(turn % 11), op=1 + chance.next(4)) for _ in range(count)]
            rules.sort(key=lambda rule: rule.priority)  # stable: the smallest number first, then the first
            prepared = [Prepared.of(rule) for rule in rules]
            frames: list[bytes] = []
            while len(frames) < frames_each:
                frame = chance.frame()
                # The kernel itself refuses a tag with less than six bytes behind the addresses' type.
                if len(frame) >= 20 or (len(frame) >= 14 and frame[12:14] not in (b"\x81\x00", b"\x88\xa8")):
                    frames.append(frame)
            krx.rules(rules)
            link.send(*frames)
            decided = [scan(prepared, frame) for frame in frames]
            assert [(r.rule, r.data) for r in krx.records()] == [(d, f) for d, f in zip(decided, frames, strict=True) if d >= 0 and rules[d].op in (CAPTURE, CAPTURE_DROP)]
            assert krx.stats(count)[0] == [decided.count(i) for i in range(count)]
            on = [f for d, f in zip(decided, frames, strict=True) if d < 0 or rules[d].op in (CAPTURE, FORWARD)]
            assert [r.data for r in behind.records()] == on
            met += sum(d >= 0 for d in decided)
            missed += decided.count(-1)
            dropped += len(frames) - len(on)
        assert krx.stats()[2] == behind.stats()[2] == 0
    return met, missed, dropped


@EVERYWHERE
def test_rules_decide_as_a_linear_scan_does(link: Link) -> None:
    silence()
    met, missed, dropped = differs(link, 4711, 8, 150)
    assert met > 400 and missed > 200 and dropped > 100, "worth something only if all of this happens often"


@in_device("pc", "phone", "router", modules=MODULES, slow=("pc", "phone", "router"))
def test_rules_decide_as_a_linear_scan_does_at_length(link: Link) -> None:
    silence()
    for seed in (1, 2, 3):
        met, missed, dropped = differs(link, seed, 22, 300)
        assert met > 2000 and missed > 1000 and dropped > 500


@EVERYWHERE
def test_tables_may_be_large(link: Link) -> None:
    with Krx("far") as krx:
        krx.setup(link.far_index)
        wild = [Rule(FORWARD, 17, to="10.9.9.0/24", to_port=1 + i) for i in range(1024)]
        exact = [Rule(CAPTURE_DROP, 17, "10.9.0.1", "10.9.0.2", 1 + i, 2000) for i in range(16384 - 1024)]
        packed = b"".join(rule.pack() for rule in wild + exact)
        krx.rules_packed(packed)
        link.send(*(link.frame(ports=(1 + i, 2000)) for i in (0, 7777, 16384 - 1025)), link.frame(to="10.9.9.9", ports=(1, 1024)))
        assert [r.rule - 1024 for r in krx.records()] == [0, 7777, 16384 - 1025]
        assert krx.stats(1024)[0][1023] == 1
        refused(errno.E2BIG, lambda: krx.rules([*wild, Rule(DROP)]))
        refused(errno.E2BIG, lambda: krx.rules_packed(packed + exact[0].pack()))
        link.send(link.frame(ports=(1, 2000)))
        assert len(krx.records()) == 1, "what is refused leaves the table as it was"
        krx.rules([])
        link.send(link.frame(ports=(1, 2000)))
        assert krx.records() == []


@EVERYWHERE
def test_prerouting_of_all_devices(link: Link) -> None:
    """The paper's hook: IPv4 and IPv6 of every device, nothing else."""
    with Krx("far") as krx, stack(4) as heard, stack(6) as heard6:
        krx.setup(0, PREROUTING).rules([Rule(CAPTURE_DROP, 17, from_port=3), Rule(CAPTURE)])
        for version in (4, 6):
            link.send(link.frame(b"dropped", (3, 2000), version), link.frame(b"seen", (4, 2000), version), link.frame(b"first", (3, 2000), version, fragment=0x2000))
        link.send(link.far_mac + link.near_mac + b"\x88\xb6" + bytes(50), link.frame(ip_total=10))
        with within("far"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            run("ip", "link", "set", "lo", "up")
            own.bind(("10.9.0.2", 3))
            own.sendto(b"by loopback", ("10.9.0.2", 2000))
        records = [r for r in krx.records() if r.data[14:15] in (b"\x45", b"\x60") and r.data[23 if r.data[14] == 0x45 else 20] == 17]
        assert [r.rule for r in records] == [0, 1, 0, 0, 1, 0, 0][: len(records)] and len(records) == 7
        assert [r.ifindex == link.far_index for r in records] == [True] * 6 + [False]
        assert heard() == [b"seen"] and heard6() == [b"seen"]
    with Krx("far") as krx:
        refused(errno.ENODEV, lambda: krx.setup(link.far_index + 1000, PREROUTING))
        krx.setup(link.far_index, PREROUTING).rules([Rule(DROP, 17)])
        link.send(link.frame())
        assert krx.stats(1)[0] == [1]


@EVERYWHERE
def test_stamps_are_those_that_taps_show(link: Link) -> None:
    SO_TIMESTAMPNS = 35
    with within("far"):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sock.bind(("wire", 3))
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.settimeout(2)
    with sock, Krx("far") as krx:
        krx.setup(link.far_index).rules([Rule(CAPTURE, 17, to_port=2000)])
        time.sleep(0.01)
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns()
        for _ in range(5):
            link.send(link.frame())
            time.sleep(0.001)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns()
        shown = []
        while len(shown) < 5:
            data, more, _, _ = sock.recvmsg(2048, 64)
            if data == link.frame():
                form = "=qq" if len(more[0][2]) == 16 else "=ii"
                seconds, nanoseconds = struct.unpack(form, more[0][2])
                shown.append(seconds * 10**9 + nanoseconds)
        records = krx.records()
        assert [r.real_ns for r in records] == shown
        assert not any(r.flags & LATE for r in records)
        stamps = [r.mono_ns for r in records]
        assert before[0] < stamps[0] and stamps[-1] < after[0] and before[1] < shown[0]
        gaps = [b - a for a, b in pairwise(stamps)]
        assert gaps == [b - a for a, b in pairwise(shown)] and min(gaps) >= 1_000_000


@in_device("pc", "phone", "router", modules=MODULES, slow=("pc", "phone", "router"))
def test_what_a_packet_costs(link: Link) -> None:
    """In virtual time: nanoseconds that each packet takes longer. Exact rules cost the same however many there are."""
    silence()
    frames = [link.frame(bytes(100), (1, 2000)) for _ in range(500)]

    def each_ns() -> float:
        start = time.monotonic_ns()
        link.send(*frames)
        return (time.monotonic_ns() - start) / len(frames)

    each_ns()
    bare = each_ns()
    costs: dict[str, float] = {}
    with Krx("far") as krx:
        krx.setup(link.far_index, ring=1 << 20)
        exact = [Rule(DROP, 17, "10.9.0.1", "10.9.0.2", 1 + i, 2001) for i in range(10000)]
        wild = [Rule(DROP, 17, to="10.9.9.0/24", to_port=1 + i) for i in range(1000)]
        for what, rules in (("1 exact", exact[:1]), ("100 exact", exact[:100]), ("10000 exact", exact), ("1 wild", wild[:1]), ("1000 wild", wild)):
            krx.rules(rules)
            costs[what] = each_ns() - bare
        krx.rules([Rule(CAPTURE, 17)])
        costs["captured"] = each_ns() - bare
        assert krx.stats(1)[0] == [500] and krx.stats()[2] == 0
        krx.rules([Rule(DROP, 17)])
        costs["dropped"] = each_ns() - bare
    print(f"{os.environ['KTRXER_LAB_DEVICE']}: bare {bare:.0f} ns; " + ", ".join(f"{what} {cost:+.0f}" for what, cost in costs.items()))
    assert costs["10000 exact"] < 1.5 * costs["1 exact"] + 300
    assert costs["1000 wild"] > 10 * costs["1 wild"]
    assert costs["dropped"] < 0, "the stack does not see it"


# ---------------------------------------------------------------------------------------------------------------- the ring


@EVERYWHERE
def test_the_ring_gives_every_packet_back_whole(link: Link) -> None:
    """Through many turns of a small ring, records of all sizes that never fit its end."""
    chance = Chance(5)
    frames = [link.frame(bytes(chance.next(256) for _ in range(chance.next(40))) * (1 + chance.next(30)), tags=[(0x8100, i % 4096)] if i % 3 else []) for i in range(300)]
    with Krx("far") as krx:
        krx.setup(link.far_index, ring=8192).rules([Rule(CAPTURE_DROP, 17)])
        got: list[bytes] = []
        for i, frame in enumerate(frames):
            link.send(frame)
            if i % 3 == 2:
                got += [r.data for r in krx.records()]
        assert got == frames and krx.stats(1) == ([300], 300, 0, UP)
    with Krx("far") as krx:
        krx.setup(link.far_index, snap=50).rules([Rule(CAPTURE_DROP, 17)])
        link.send(link.frame(bytes(100)), link.frame(bytes(100), tags=[(0x8100, 5)]), link.frame(b""))
        assert [(r.data, r.length) for r in krx.records()] == [
            (f[:50], len(f)) for f in (link.frame(bytes(100)), link.frame(bytes(100), tags=[(0x8100, 5)]), link.frame(b""))
        ]


@EVERYWHERE
@pytest.mark.parametrize("operation", [CAPTURE, CAPTURE_DROP])
def test_overruns_are_counted_to_the_last_packet(link: Link, operation: int) -> None:
    with Krx("far") as krx, stack(4) as heard:
        krx.setup(link.far_index, ring=4096).rules([Rule(operation, 17, to_port=2000)])
        link.send(*(link.frame(b"%d" % i) for i in range(100)))
        matched, captured, lost, _ = krx.stats(1)
        assert matched == [100] and captured + lost == 100 and captured > 20 and lost > 20
        records = krx.records()
        assert [r.data for r in records] == [link.frame(b"%d" % i) for i in range(captured)], "the first are kept"
        assert len(heard()) == (100 if operation == CAPTURE else 0), "what is not kept goes the same way"
        link.send(link.frame(b"again"))
        assert [r.data for r in krx.records()] == [link.frame(b"again")]
        link.send(link.frame(bytes(1400)), link.frame(bytes(1400)), link.frame(bytes(1400)))
        assert krx.stats(1)[2] == lost + 1, "of three in 4 KiB the third has no room"


@EVERYWHERE
def test_whoever_scribbles_harms_himself_alone(link: Link) -> None:
    """Random bytes anywhere in the mapping while packets flow: counts stay exact, another file is not touched, and it works again afterwards."""
    chance = Chance(99)
    with Krx("far") as other, Krx("far") as krx:
        other.setup(link.far_index, ring=1 << 20).rules([Rule(CAPTURE, 17, to_port=2000)])
        krx.setup(link.far_index, ring=16384).rules([Rule(CAPTURE, 17, to_port=2000)])
        assert krx.map is not None
        frames = [link.frame(bytes(chance.next(1400))) for _ in range(40)]
        sent = 0
        for turn in range(300):
            for _ in range(chance.next(4)):
                at = chance.next(krx.map_bytes - 8)
                krx.map[at : at + 8] = struct.pack("=Q", chance.state)
            if turn % 2:  # the word that is read
                krx.map[krx.tail_at : krx.tail_at + 4] = struct.pack("=I", (0, 1, 0xFFFFFFFF, chance.next(1 << 31), krx.head() + 8, krx.head() - 4)[turn // 2 % 6] & 0xFFFFFFFF)
            link.send(frames[turn % 40])
            sent += 1
            krx.poll()
        matched, captured, lost, state = krx.stats(1)
        assert matched == [sent] and captured + lost == sent and lost > 50 and captured > 10 and state == UP
        assert [r.data for r in other.records()] == [frames[turn % 40] for turn in range(300)]
        link.send(link.frame(b"where is the head?"))  # told anew with each packet
        krx.tail_set(krx.head())
        link.send(link.frame(b"sound again"))
        assert [r.data for r in krx.records()] == [link.frame(b"sound again")]


@EVERYWHERE
def test_ioctls_of_any_kind_are_survived(link: Link) -> None:
    """Random numbers, sizes, pointers and contents, while packets flow. What the kernel may write to ends before a page that is not there."""
    chance = Chance(7)
    answers: dict[int, int] = {}
    size = 1 << 20
    region = mmap.mmap(-1, size + mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(region))
    assert libc.mprotect(ctypes.c_void_p(base + size), mmap.PAGESIZE, 0) == 0
    kernel = 0xFFFF888000000000 if ctypes.sizeof(ctypes.c_void_p) == 8 else 0xC0000000
    krx = Krx("far")
    for turn in range(800):
        if turn % 100 == 99:
            krx.close()
            krx = Krx("far")
            if turn % 200 == 99:
                krx.setup(link.far_index, ring=4096, map=False)
        number = chance.next(1 << 16) << 16 | 0xE900 | chance.next(256)
        if chance.next(4):
            number = (IOC_VERSION, IOC_SETUP, IOC_RULES, IOC_STATS)[chance.next(4)]
        words = [chance.next(1 << 31) if chance.next(3) else (0, 1, 4, 40, 48, 0xFFFFFFFF, 1 << 30, 4096)[chance.next(8)] for _ in range(64)]
        words[0] = (16, 24, 40, 48, 64, 4096, 5000, words[0])[chance.next(8)]
        if chance.next(2):
            words[1] = chance.next(3)
        at = size - 256 if chance.next(4) else size - 2
        struct.pack_into("=64I", region, size - 256, *words)
        # The only pointers inside: to something, to the page that is not there, to nothing, to the kernel.
        struct.pack_into("=Q", region, size - 256 + 8, (base + chance.next(512), base + size - 8, 0, kernel)[chance.next(4)])
        pointer = (base + at, base + at, 0, 1, kernel)[chance.next(5)]
        result = libc.ioctl(krx.fd, ctypes.c_ulong(number), ctypes.c_void_p(pointer))
        code = ctypes.get_errno() if result else 0
        answers[code] = answers.get(code, 0) + 1
        if turn % 16 == 0:
            link.send(link.frame(bytes(chance.next(1400))))
    krx.close()
    assert set(answers) <= {0, errno.EINVAL, errno.EFAULT, errno.ENOTTY, errno.E2BIG, errno.ENXIO, errno.EBUSY, errno.ENODEV, errno.ENOMEM}, answers
    assert answers[0] > 10 and min(answers[code] for code in (errno.EINVAL, errno.EFAULT, errno.ENOTTY)) > 50, answers


# ----------------------------------------------------------------------------------------------------------- wrong use


@EVERYWHERE
def test_what_makes_no_sense_is_refused(link: Link) -> None:
    with Krx("far") as krx:
        good = [SETUP.size, 0, 1, link.far_index, 0, 4096, 0, 0, 0, 0, 0, 0]

        def setup(at: int, value: int) -> Callable[[], object]:
            return lambda: fcntl.ioctl(krx.fd, IOC_SETUP, bytearray(SETUP.pack(*(value if i == at else word for i, word in enumerate(good)))))

        refused(errno.ENXIO, lambda: krx.rules([Rule(CAPTURE)]))
        refused(errno.ENXIO, lambda: mmap.mmap(krx.fd, 3 * mmap.PAGESIZE))
        assert krx.poll() == select.POLLERR
        assert krx.stats() == ([], 0, 0, UP)
        for at, value in ((0, SETUP.size - 1), (0, 5000), (1, 2), (2, 0), (2, 3), (3, 0), (4, 262145), (5, 4095), (5, (1 << 30) + 1), (9, 1), (11, 1)):
            refused(errno.EINVAL, setup(at, value))
        refused(errno.ENODEV, setup(3, link.far_index + 77))
        longer = bytearray(SETUP.pack(*good)) + bytes(8)
        longer[0] += 8
        refused(errno.E2BIG, lambda: fcntl.ioctl(krx.fd, IOC_SETUP, longer[:-1] + b"\1"))
        fcntl.ioctl(krx.fd, IOC_SETUP, longer)
        refused(errno.EBUSY, setup(0, SETUP.size))
        refused(errno.ENOTTY, lambda: fcntl.ioctl(krx.fd, 0xE955, 0))
        refused(errno.EINVAL, lambda: os.read(krx.fd, 10))
        krx.map_bytes = struct.unpack_from("=I", longer, 24)[0]
        refused(errno.EINVAL, lambda: mmap.mmap(krx.fd, krx.map_bytes + mmap.PAGESIZE))
        refused(errno.EINVAL, lambda: mmap.mmap(krx.fd, krx.map_bytes - mmap.PAGESIZE))
        refused(errno.EINVAL, lambda: mmap.mmap(krx.fd, krx.map_bytes, offset=mmap.PAGESIZE))
        refused(errno.EINVAL, lambda: mmap.mmap(krx.fd, krx.map_bytes, flags=mmap.MAP_PRIVATE))
        sound = Rule(DROP, 17, "10.0.0.0/8", "10.9.0.2", 1, 2).pack()
        for at, value in ((0, 0), (0, 5), (1, 5), (1, 0), (1, 6), (3, 33), (4, 33), (3, 6), (5, 1)):
            broken = bytearray(sound)
            broken[at] = value
            if (at, value) == (1, 6):
                broken[3] = 129
            refused(errno.EINVAL, partial(krx.rules_packed, bytes(broken)))
        refused(errno.EFAULT, lambda: fcntl.ioctl(krx.fd, IOC_RULES, RULES.pack(RULES.size, 3, 8, RULE.size, 0)))
        refused(errno.EINVAL, lambda: fcntl.ioctl(krx.fd, IOC_RULES, RULES.pack(RULES.size, 0, 0, RULE.size + 4, 0)))
        refused(errno.EFAULT, lambda: fcntl.ioctl(krx.fd, IOC_STATS, 0))
        krx.rules_packed(sound)


def capabilities_set(*kept: int) -> None:
    bits = sum(1 << bit for bit in kept)
    header = struct.pack("=II", 0x20080522, 0)
    data = struct.pack("=6I", bits & 0xFFFFFFFF, bits & 0xFFFFFFFF, 0, bits >> 32, bits >> 32, 0)
    assert libc.capset(header, data) == 0, os.strerror(ctypes.get_errno())


def in_child(work: Callable[[], None]) -> int:
    """The errno that it fails with, 0: none. 255 is a failed assertion."""
    child = os.fork()
    if child == 0:
        status = 255
        try:
            work()
            status = 0
        except OSError as error:
            status = error.errno or 254
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


CAP_NET_ADMIN, CAP_NET_RAW = 12, 13


@EVERYWHERE
def test_privileges(link: Link) -> None:
    """CAP_NET_RAW to open and to capture, CAP_NET_ADMIN to drop: of the caller, and of whoever opened the descriptor."""

    def opens(*kept: int) -> Callable[[], None]:
        def work() -> None:
            enter("far")
            capabilities_set(*kept)
            os.open("/dev/krx", os.O_RDWR)

        return work

    assert in_child(opens(CAP_NET_ADMIN)) == errno.EPERM
    assert in_child(opens(CAP_NET_RAW)) == 0

    def rules(*kept: int, op: int, krx: Krx | None = None) -> Callable[[], None]:
        def work() -> None:
            if krx is not None:
                capabilities_set(*kept)
                krx.rules([Rule(op, 17)])
                return
            enter("far")
            capabilities_set(*kept)
            Krx().setup(link.far_index).rules([Rule(op, 17)])

        return work

    for op, want in ((CAPTURE, 0), (FORWARD, 0), (DROP, errno.EPERM), (CAPTURE_DROP, errno.EPERM)):
        assert in_child(rules(CAP_NET_RAW, op=op)) == want
        with Krx("far") as krx:  # opened by one who may, handed on to one who may not
            krx.setup(link.far_index)
            assert in_child(rules(CAP_NET_RAW, op=op, krx=krx)) == want

    ours, theirs = socket.socketpair()

    def hands_over() -> None:
        enter("far")
        capabilities_set(CAP_NET_RAW)
        socket.send_fds(theirs, [b"x"], [Krx().setup(link.far_index).fd])

    assert in_child(hands_over) == 0  # opened by one who may not, handed to one who may
    _, (fd, *_), _, _ = socket.recv_fds(ours, 1, 1)
    krx = object.__new__(Krx)
    krx.fd, krx.map = fd, None
    with ours, theirs, krx:
        krx.rules([Rule(CAPTURE, 17)])
        refused(errno.EPERM, lambda: krx.rules([Rule(DROP, 17)]))
    mode = os.stat("/dev/krx").st_mode
    assert mode & 0o777 == 0o660


# ------------------------------------------------------------------------------------------- files, processes, namespaces


@EVERYWHERE
def test_of_two_files_the_later_is_asked_first(link: Link) -> None:
    with Krx("far") as first, Krx("far") as second, stack(4) as heard:
        first.setup(link.far_index).rules([Rule(CAPTURE, 17)])
        second.setup(link.far_index).rules([Rule(CAPTURE_DROP, 17, from_port=1), Rule(CAPTURE, 17)])
        link.send(link.frame(ports=(1, 2000)), link.frame(ports=(2, 2000)))
        assert (first.stats(1)[0], second.stats(2)[0]) == ([1], [1, 1])
        assert [len(krx.records()) for krx in (first, second)] == [1, 2] and len(heard()) == 1
        second.close()
        link.send(link.frame(ports=(1, 2000)))
        assert first.stats(1)[0] == [2] and len(heard()) == 1


@EVERYWHERE
def test_a_fork_shares_the_file_and_not_the_mapping(link: Link) -> None:
    with stack(4) as heard:
        krx = Krx("far").setup(link.far_index).rules([Rule(DROP, 17, to_port=2000)])
        ready, go = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(ready[1], b"no" if "krx" in Path("/proc/self/maps").read_text() else b"ok")
                select.select([go[0]], [], [], 100)
            finally:
                os._exit(0)
        assert os.read(ready[0], 2) == b"ok", "the child has the mapping"
        krx.close()
        link.send(link.frame())
        assert heard() == [], "the child's descriptor holds the rules"
        os.write(go[1], b"x")
        os.waitpid(child, 0)
        link.send(link.frame(b"free"))
        assert heard() == [b"free"]
        for fd in (*ready, *go):
            os.close(fd)


@EVERYWHERE
def test_a_killed_process_leaves_no_rules(link: Link) -> None:
    with stack(4) as heard:
        ready = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                krx = Krx("far").setup(link.far_index, flags=PROMISCUOUS).rules([Rule(CAPTURE_DROP, 17, to_port=2000)])
                os.write(ready[1], b"x")
                time.sleep(1000 + krx.fd)
            finally:
                os._exit(1)
        assert select.select([ready[0]], [], [], 2)[0], "the child says nothing"
        link.send(link.frame())
        assert heard() == [] and use_count() == 1
        promiscuous = run("ip", "-n", "far", "-d", "link", "show", "wire")
        done = subprocess.run(["rmmod", "ktrxer"], capture_output=True, text=True, check=False)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        link.send(link.frame(b"free"))
        assert heard() == [b"free"] and use_count() == 0
        assert done.returncode != 0, "a module in use does not go"
        assert "promiscuity 1" in promiscuous and "promiscuity 0" in run("ip", "-n", "far", "-d", "link", "show", "wire")
        for fd in ready:
            os.close(fd)


@EVERYWHERE
def test_devices_come_and_go(link: Link) -> None:
    """Renamed: as before. Down: told, and it may come back. Moved or deleted: told, for good, with nothing left on it."""
    with Krx("far") as krx, stack(4) as heard:
        krx.setup(link.far_index, flags=PROMISCUOUS).rules([Rule(DROP, 17, to_port=2000)])
        run("ip", "-n", "far", "link", "set", "dev", "wire", "down")
        assert krx.stats()[3] == DOWN and krx.poll() == select.POLLERR
        run("ip", "-n", "far", "link", "set", "dev", "wire", "name", "thread")
        run("ip", "-n", "far", "link", "set", "dev", "thread", "up")
        assert krx.stats()[3] == UP and krx.poll() == 0
        link.send(link.frame())
        assert krx.stats(1)[0] == [1] and heard() == []
        run("ip", "-n", "far", "link", "set", "dev", "thread", "netns", "near")
        assert krx.stats()[3] == GONE and krx.poll() == select.POLLERR | select.POLLHUP
        refused(errno.ENODEV, lambda: krx.rules([Rule(DROP)]))
        assert "promiscuity 0" in run("ip", "-n", "near", "-d", "link", "show", "thread")
        run("ip", "-n", "near", "address", "add", "10.9.0.2/24", "dev", "thread")
        run("ip", "-n", "near", "link", "set", "dev", "thread", "up")
        link.send(link.frame())
        assert krx.stats(1)[0] == [1], "it is another namespace's now"
    with Krx("near") as krx, Krx("near") as prerouting:
        with within("near"):
            index = socket.if_nametoindex("thread")
        krx.setup(index).rules([Rule(CAPTURE, 17)])
        prerouting.setup(index, PREROUTING).rules([Rule(CAPTURE, 17)])
        link.send(link.frame(b"late", to="10.9.0.9"))
        run("ip", "-n", "near", "link", "del", "dev", "thread")
        for file in (krx, prerouting):
            assert file.stats()[3] == GONE
            refused(errno.ENODEV, partial(file.rules, [Rule(CAPTURE)]))
        assert len(krx.records()) == 1, "what came before can still be read"


@EVERYWHERE
def test_a_namespace_may_lose_its_name_and_its_device(link: Link) -> None:
    """A file holds its namespace, as a socket does. Other namespaces' packets are none of its business."""
    run("ip", "netns", "add", "brief")
    try:
        run("ip", "-n", "brief", "link", "add", "name", "wire", "type", "veth", "peer", "name", "other")
        for name in ("wire", "other"):
            run("ip", "-n", "brief", "link", "set", "dev", name, "up")
        with Krx("brief") as krx:
            with within("brief"):
                index = socket.if_nametoindex("wire")
                sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
                sender.bind(("other", 0))
            krx.setup(index).rules([Rule(CAPTURE, 17)])
            run("ip", "netns", "del", "brief")
            link.send(link.frame())
            sender.send(link.frame(b"here"))
            sender.close()
            assert [r.data for r in krx.records()] == [link.frame(b"here")]
    finally:
        subprocess.run(["ip", "netns", "del", "brief"], capture_output=True, check=False)


@EVERYWHERE
def test_memory_that_is_not_there_is_refused_without_a_word(link: Link) -> None:
    with Krx("far") as krx:
        refused(errno.ENOMEM, lambda: krx.setup(link.far_index, ring=1 << 30, map=False))
        krx.setup(link.far_index, ring=1 << 16).rules([Rule(CAPTURE, 17)])
        link.send(link.frame())
        assert len(krx.records()) == 1


@EVERYWHERE
def test_devices_without_an_ethernet_header(link: Link) -> None:
    """A tun device has none: packets begin with IP."""
    with within("far"):
        run("modprobe", "tun")
        tun = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(tun, 0x400454CA if not os.uname().machine.startswith("mips") else 0x800454CA, struct.pack("16sH22x", b"tun0", 0x1001))
        run("ip", "link", "set", "dev", "tun0", "up")
        index = socket.if_nametoindex("tun0")
    try:
        with Krx("far") as krx:
            krx.setup(index).rules([Rule(CAPTURE_DROP, 17, to_port=2000)])
            for version in (4, 6):
                os.write(tun, link.frame(b"bare", version=version)[14:])
            os.write(tun, link.frame(proto=47)[14:])
            assert [(r.flags & 4, r.data) for r in krx.records()] == [(4, link.frame(b"bare", version=version)[14:]) for version in (4, 6)]
    finally:
        os.close(tun)


# ------------------------------------------------------------------------------------------------- `ktrxer recv` over it


@pytest.fixture
def command() -> str:
    path = Path("/usr/bin/ktrxer")
    if not path.exists():
        pytest.skip(f"no build for the {os.environ['KTRXER_LAB_DEVICE']} (make lab-builds)")
    return str(path)


class Recv:
    """ktrxer recv --jsonl in far, listening once this returns."""

    def __init__(self, command: str, *arguments: str) -> None:
        words = ["ip", "netns", "exec", "far", command, "recv", "--jsonl", "--device", "wire", *arguments]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        assert self.process.stdout is not None and self.process.stderr is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            if self.lines[-1].get("name") == "listening":
                return
        raise AssertionError(self.process.stderr.read())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self, signal_number: int | None = signal.SIGINT) -> dict[str, object]:
        if signal_number is not None:
            time.sleep(0.05)
            self.process.send_signal(signal_number)
        out, self.complaints = self.process.communicate(timeout=20)
        self.lines += [json.loads(line) for line in out.splitlines()]
        self.samples = [line for line in self.lines if line["type"] == "sample"]
        return self.lines[-1]  # type: ignore[no-any-return]


@EVERYWHERE
@pytest.mark.parametrize(("by", "mode"), [("module", "ingress"), ("module-prerouting", "prerouting")])
def test_recv_by_the_module(link: Link, command: str, by: str, mode: str) -> None:
    texts = ["drop udp from any:4 to any:2000 prio 9", "capture udp from any:1 to any:2000", "drop udp from any:2 to any:2000",
             "capture+drop udp from any:3 to any:2000", "forward udp from any:4 to any:2000 prio 8"]
    with stack(4) as heard, stack(6) as heard6, Recv(command, "--backend", by, *(word for text in texts for word in ("--rule", text))) as recv:
        for version in (4, 6):
            link.send(*(link.frame(b"from %d" % port, (port, 2000), version) for port in (1, 2, 3, 4, 5)))
        end = recv.end()
        assert (end["backend"], end["backend_mode"], end["before_taps"], end["after_gro"], end["lost"]) == (by, mode, False, True, 0)
        assert "tcpdump sees it" in str(end["backend_note"])
        assert [(r["matched"], r["captured"], r["dropped"]) for r in end["rules"]] == [(0, 0, 0), (2, 2, 0), (2, 0, 2), (2, 2, 2), (2, 0, 0)]  # type: ignore[attr-defined]
        assert [(s["from_port"], s["rule"], s["source"], s["clock"], s["bound_ns"]) for s in recv.samples] == [(1, 1, "kernel", "realtime", 0), (3, 3, "kernel", "realtime", 0)] * 2
        assert heard() == heard6() == [b"from 1", b"from 4", b"from 5"]


@EVERYWHERE
def test_auto_takes_the_module_where_xdp_cannot_be_had(link: Link, command: str) -> None:
    """The static build has no XDP; and without the module there is nftables."""
    with Recv(command, "--rule", "drop udp from any to any:2000") as recv:
        link.send(link.frame())
        end = recv.end()
        assert end["backend"] == "module" and str(end["backend_why"]).startswith("a rule drops, and XDP cannot be had: ")
    with Recv(command, "--rule", "capture udp from any to any:2000") as recv:
        link.send(link.frame())
        assert recv.end()["backend"] == "packet"
    assert json.loads(run(command, "doctor", "--json"))["receive_module"] == {"available": True, "reason": None}
    # Root in a namespace of his own alone may not open the device, and has nftables.
    script = f"ip link set lo up; exec {command} recv --json --device lo --for 10ms --rule 'drop udp from any to any:9'"
    own = subprocess.run(["busybox", "unshare", "-Urn", "sh", "-c", script], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, check=False)
    if os.uname().release.startswith("5.10."):  # its nftables has no tables that go with their process
        assert "Linux 5.12" in own.stderr or "XDP" in own.stderr
    else:
        assert json.loads(own.stdout)["backend"] == "nftables", own.stderr
    run("rmmod", "ktrxer")
    assert "modprobe ktrxer" in json.loads(run(command, "doctor", "--json"))["receive_module"]["reason"]
    done = subprocess.run(["ip", "netns", "exec", "far", command, "recv", "--device", "wire", "--backend", "module", "--rule", "drop udp from any to any:1"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "modprobe ktrxer" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    run("insmod", "/root/ktrxer.ko")


@EVERYWHERE
def test_what_recv_refuses_and_survives(link: Link, command: str) -> None:
    def recv(*arguments: str, device: tuple[str, ...] = ("--device", "wire")) -> tuple[int, str]:
        done = subprocess.run(["ip", "netns", "exec", "far", command, "recv", *device, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    for arguments, device, says in (
        (("--backend", "module", "--rule", "drop any from any to any"), ("--device", "wire"), "--force"),
        (("--backend", "module", "--outgoing", "--rule", "drop udp from any to any:1"), ("--device", "wire"), "--backend packet"),
        (("--backend", "module", "--rule", "drop udp from any to any:1"), (), "name it (--device DEV)"),
    ):
        status, stderr = recv(*arguments, device=device)
        assert status == 1 and says in stderr and stderr.count("\n") == 1, stderr
    with Recv(command, "--backend", "module", "--force", "--ring", "1Gi", "--rule", "drop any from any to any", "--rule", "capture udp from any to any:1") as process:
        link.send(link.frame())
        process.process.kill()
        process.process.communicate()
    with stack(4) as heard:
        link.send(link.frame(b"free"))
        assert heard() == [b"free"], "killed, its rules are gone"
    with Recv(command, "--backend", "module", "--rule", "capture udp from any to any") as process:
        link.send(link.frame())
        run("ip", "-n", "far", "link", "set", "dev", "wire", "down")
        end = process.end(None)
        assert "went down" in process.complaints and end["captured"] == 1 and end["verdict"] == "degraded"
    run("ip", "-n", "far", "link", "set", "dev", "wire", "up")
    with Recv(command, "--backend", "module", "--rule", "capture udp from any to any") as process:
        link.send(link.frame())
        run("ip", "-n", "far", "link", "del", "dev", "wire")
        end = process.end(None)
        assert "was removed" in process.complaints and end["captured"] == 1
    link.socket = None
