# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module's receiver (/dev/krx): the effect of rules on packets, and the count of each loss.

      near                           far
    wire 10.9.0.1/24 ----------- wire 10.9.0.2/24      the rules in far apply to packets from near
         fd09::1                      fd09::2
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import select
import socket
import statistics
import struct
import time
from dataclasses import replace
from itertools import pairwise

import pytest
from inside import run
from krx import (
    CAPTURE,
    CAPTURE_DROP,
    DROP,
    FORWARD,
    IOC_RULES,
    IOC_SETUP,
    IOC_STATS,
    IOC_VERSION,
    LATE,
    PREROUTING,
    TAGGED,
    UP,
    Chance,
    Krx,
    Link,
    Prepared,
    Rule,
    libc,
    scan,
    within,
)
from krx_link import EVERYWHERE, MODULES, refused, stack, tap
from ktrxer_lab.pytest_plugin import in_device

# --------------------------------------------------------------------------------------------------------- what rules do


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
    """With capture+drop far's own TCP does not receive the answer. With capture only it does, and resets the unknown connection."""
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
        run("ip", "netns", "exec", "near", "ping", "-c", "1", "-q", far)  # resolves the neighbours' addresses
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
    """VLAN tags, fragments, header chains, other protocols, packets for other hosts, wrong lengths: the result equals a linear scan, byte by byte."""

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
        (2, link.frame(version=6, extensions=chain(*[60] * 16, 17), next_header=60)),  # the module stops at the seventeenth header
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
    """The link has no traffic except the tests'."""
    for name in ("near", "far"):
        run("ip", "netns", "exec", name, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        run("ip", "-n", name, "address", "flush", "dev", "wire")
    time.sleep(0.1)


def differs(link: Link, seed: int, rounds: int, frames_each: int) -> tuple[int, int, int]:
    """Random rules and packets against a linear scan. A second file, after the first one, receives exactly the packets that the first one passes on."""
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
        shown: list[int] = []
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
    """In virtual time: the additional nanoseconds for each packet. The cost of exact rules does not depend on their number, also beside other rules."""
    silence()
    count, frame = 500, link.frame(bytes(100), (1, 2000))

    def each_ns() -> float:
        """The time of one packet, without other work of the kernel, which sometimes takes 20 us and more."""
        took = []
        for _ in range(count):
            start = time.monotonic_ns()
            link.send(frame)
            took.append(time.monotonic_ns() - start)
        return statistics.median(took)

    exact = [Rule(DROP, 17, "10.9.0.1", "10.9.0.2", 1 + i, 2001) for i in range(10000)]
    fits = Rule(FORWARD, 17, "10.9.0.1", "10.9.0.2", 1, 2000)
    wild = [Rule(DROP, 17, to="10.9.9.0/24", to_port=1 + i) for i in range(1000)]
    tables = {f"{n} exact": exact[:n] for n in (1, 100, 1000, 10000)} | {"10000 and one that fits": [*exact, fits], "1 wild": wild[:1], "1000 wild": wild}
    with Krx("far") as krx:
        # Run it once before: from then on each packet takes the router 15 us longer with any rules (perhaps because of its software-filled TLB).
        krx.setup(link.far_index).rules(tables["10000 and one that fits"])
    each_ns()
    bare = each_ns()
    costs: dict[str, float] = {}
    with Krx("far") as krx:
        krx.setup(link.far_index, ring=1 << 20)
        for what, rules in tables.items():
            krx.rules(rules)
            costs[what] = each_ns() - bare
        krx.rules([Rule(CAPTURE, 17)])
        costs["captured"] = each_ns() - bare
        assert krx.stats(1)[0] == [count] and krx.stats()[2] == 0
        krx.rules([Rule(DROP, 17)])
        costs["dropped"] = each_ns() - bare
    print(f"{os.environ['KTRXER_LAB_DEVICE']}: bare {bare:.0f} ns; " + ", ".join(f"{what} {cost:+.0f}" for what, cost in costs.items()))
    for many in ("100 exact", "1000 exact", "10000 exact"):
        assert costs[many] < 1.25 * costs["1 exact"] + 50
    assert costs["10000 and one that fits"] < 1.5 * costs["1 exact"] + 50
    assert costs["1000 wild"] > costs["1 wild"] + 999 * 20, "one after another"
    assert costs["dropped"] < 0, "the stack does not see it"


# -------------------------------------------------------------------------------------------------------------- the ring


@EVERYWHERE
def test_the_ring_gives_every_packet_back_whole(link: Link) -> None:
    """Many turns of a small ring, with records of all sizes that do not fit before its end."""
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
    """Random bytes anywhere in the mapping while packets flow: counts stay exact, another file is not affected, and the file works again afterwards."""
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
        link.send(link.frame(b"where is the head?"))  # reported again with each packet
        krx.tail_set(krx.head())
        link.send(link.frame(b"sound again"))
        assert [r.data for r in krx.records()] == [link.frame(b"sound again")]


@EVERYWHERE
def test_ioctls_of_any_kind_are_survived(link: Link) -> None:
    """Random numbers, sizes, pointers and contents, while packets flow. The writable memory ends before an unmapped page."""
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
        # Pointers: to valid memory, to the unmapped page, NULL, to kernel memory.
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
