# SPDX-License-Identifier: MIT OR Apache-2.0
"""/dev/ktx: the guarantees for each probe, through the interface of <linux/ktrxer.h>."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import struct
from pathlib import Path

import pytest
from inside import run
from ktrxer_lab.pytest_plugin import in_device
from ktx_raw import (
    CANCELLED,
    CATCH_UP,
    ERROR,
    FAILED,
    GUARD,
    MS,
    NEVER,
    NONE,
    SENT,
    SHIFT,
    SKIP,
    SKIPPED,
    SLOW,
    SOFTIRQ,
    THREAD,
    TRAIN,
    Ear,
    Ktx,
    Report,
    frame,
    now,
)
from module_help import MODULE

DEVICES = ("pc", "phone", "router")
KINDS = {"softirq": SOFTIRQ, "thread": THREAD, "none": NONE}


def statuses(reports: object) -> list[int]:
    return [report.status for report in reports]  # type: ignore[attr-defined]


def read_one(tun: int) -> bytes | None:
    try:
        return os.read(tun, 2000)
    except BlockingIOError:
        return None


def tagged(number: int, length: int) -> bytes:
    """The frame with a tag of VLAN 5."""
    plain = frame(number, length - 4)
    return plain[:12] + b"\x81\x00\x00\x05" + plain[12:]


def frames_times_and_trains(ear: Ear) -> None:
    for name, kind in KINDS.items():
        with Ktx("wire0", timer=kind) as ktx:
            # K1: whole frames, of every length, any bytes.
            sent = [frame(i, length) for i, length in enumerate((14, 18, 59, 60, 61, 200, 1514))]
            ktx.send(sent)
            assert statuses(ktx.reports(len(sent))) == [SENT] * len(sent), name
            assert ear.hear() == sent, name
            # K2: each at its time or, if that is past, at once, with a stamp.
            begin = now() + 20 * MS
            times = [begin + i * MS for i in range(40)]
            ktx.send([frame(i) for i in range(40)], times)
            reports = ktx.reports(40)
            late = sorted(report.sent_ns - at for report, at in zip(reports, times, strict=True))
            assert statuses(reports) == [SENT] * 40 and late[20] < 1 * MS, (name, late)
            assert all(report.planned_ns == at and report.tries == 1 for report, at in zip(reports, times, strict=True))
            assert ear.numbers() == list(range(40))
            if kind != NONE:
                assert late[0] > -2_000 and late[20] < 2_000, (name, late)
            # K3, O3: a train and a list without times leave back to back.
            for flags in (TRAIN, 0):
                ktx.send([frame(i) for i in range(30)], flags=flags)
                stamps = [report.sent_ns for report in ktx.reports(30)]
                assert stamps == sorted(stamps) and stamps[-1] - stamps[0] < 1 * MS, name
                assert ear.numbers() == list(range(30))
            assert ktx.word(GUARD) == 0, name  # interrupts stay on unless the administrator allows it
            print(f"{name} {os.environ['KTRXER_LAB_DEVICE']}: margin {ktx.margin_ns} ns, late {late[20]} ns, worst {late[-1]} ns")


@in_device(*DEVICES, modules=MODULE)
def test_frames_leave_as_they_are_at_their_times_and_in_trains(wire: Ear) -> None:
    frames_times_and_trains(wire)


@in_device("pc", "router", modules=MODULE)
def test_the_timer_is_chosen_by_trying_both(wire: Ear) -> None:
    with Ktx("wire0") as ktx:
        assert ktx.timer in (SOFTIRQ, THREAD) and ktx.softirq_ns and ktx.thread_ns
        print(f"{os.environ['KTRXER_LAB_DEVICE']}: softirq {ktx.softirq_ns} ns, thread {ktx.thread_ns} ns: {ktx.timer}, margin {ktx.margin_ns}")


@in_device("phone", modules=MODULE)
def test_the_administrator_may_choose_timer_and_guard(wire: Ear) -> None:
    """Module parameters, for files without their own settings; interrupts are disabled only for a driver that the administrator names."""
    parameters = Path("/sys/module/ktrxer/parameters")
    run("modprobe", "dummy")
    run("ip", "link", "add", "name", "other", "type", "dummy")
    run("ip", "link", "set", "other", "up")
    for device, guard_us, drivers, guarded in (
        ("wire0", "20", "\n", False),
        ("wire0", "20", "vet", False),
        ("wire0", "20", "dummy,vethh", False),
        ("wire0", "20", "dummy, veth\n", True),
        ("wire0", "1000000", "veth", True),
        ("wire0", "0", "veth", False),
        ("wire0", "1", "veth", True),
        ("other", "20", "dummy,veth", False),  # virtual: not a hardware driver
    ):
        (parameters / "guard_us").write_text(guard_us)
        (parameters / "guard_drivers").write_text(drivers)
        with Ktx(device, timer=SOFTIRQ) as ktx:
            ktx.send([frame(i) for i in range(20)], [now() + 2 * MS + i * MS for i in range(20)])
            assert statuses(ktx.reports(20)) == [SENT] * 20
            assert (0 < ktx.word(GUARD) <= 20_000) == guarded and (guard_us != "1" or ktx.word(GUARD) == 1000), (device, guard_us, ktx.word(GUARD))
    (parameters / "guard_us").write_text("20")
    (parameters / "guard_drivers").write_text("\n")
    for wanted, got in (("1", (SOFTIRQ,)), ("2", (THREAD,)), ("77", (SOFTIRQ, THREAD)), ("0", (SOFTIRQ, THREAD))):
        (parameters / "timer").write_text(wanted)
        with Ktx("wire0") as ktx, Ktx("wire0", timer=NONE) as untimed:
            assert ktx.timer in got and untimed.timer == NONE


@in_device("pc", modules=MODULE)
@pytest.mark.parametrize("kind", KINDS)
def test_late_probes_go_as_asked(wire: Ear, kind: str) -> None:
    for policy in (CATCH_UP, SKIP, SHIFT):
        with Ktx("wire0", timer=KINDS[kind], late=policy) as ktx:
            begin = now()
            # One time in 1970 (not with SHIFT, which would move all by decades), one now, two in the future.
            times = [begin - 6 * MS if policy == SHIFT else 1, begin - 5 * MS, begin + 2 * MS, begin + 4 * MS]
            ktx.send([frame(i) for i in range(4)], times)
            reports = ktx.reports(4)
            if policy == SKIP:
                assert statuses(reports) == [SKIPPED, SKIPPED, SENT, SENT]
                assert reports[0].tries == 0 and reports[0].sent_ns == 0
                assert wire.numbers() == [2, 3]
                continue
            assert statuses(reports) == [SENT] * 4 and wire.numbers() == [0, 1, 2, 3]
            moved = [report.planned_ns - at for report, at in zip(reports, times, strict=True)]
            if policy == CATCH_UP:
                assert moved == [0] * 4
            else:  # the first one and all that follow move by the lateness of the first
                assert 6 * MS <= moved[0] < 12 * MS and moved == sorted(moved) and moved[3] - moved[0] < 1 * MS
                assert reports[3].sent_ns >= times[3] + moved[3] - 10_000


@in_device("pc", "router", modules=MODULE)
def test_what_waits_is_cancelled_and_the_file_goes_on(wire: Ear) -> None:
    for kind in KINDS.values():
        with Ktx("wire0", timer=kind, slots=8) as ktx:
            for _ in range(3):
                begin = now()
                ktx.send([frame(i) for i in range(6)], [0, begin, begin + 3600 * 10**9, (1 << 63) - 1, (1 << 63) + 5, NEVER])
                assert statuses(ktx.reports(2)) == [SENT, SENT]
                ktx.kick(cancel_to=ktx.head - 1)
                assert statuses(ktx.reports(3)) == [CANCELLED] * 3
                ktx.kick(cancel_to=ktx.head)
                assert statuses(ktx.reports(1)) == [CANCELLED]
            assert wire.numbers() == [0, 1] * 3
            ktx.kick(cancel_to=ktx.head - 3)  # in the past: no effect
            with pytest.raises(OSError, match="Invalid argument"):
                ktx.kick(cancel_to=ktx.head + 1)
            ktx.send([frame(7)])
            assert statuses(ktx.reports(1)) == [SENT] and wire.numbers() == [7]


@in_device("pc", modules=MODULE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_probe_that_cannot_go_fails_alone(wire: Ear, kind: str) -> None:
    run("ip", "link", "set", "wire0", "mtu", "1000")
    with Ktx("wire0", timer=KINDS[kind]) as ktx:
        ktx.put(frame(0), flags=TRAIN)
        ktx.put(frame(1), length=0, flags=TRAIN)
        ktx.put(frame(2), length=1515, flags=TRAIN)
        ktx.put(frame(3), length=NEVER >> 32, flags=TRAIN)
        ktx.put(frame(4), flags=0x80000000)
        ktx.put(frame(5, 13), flags=TRAIN)
        ktx.put(frame(6, 1019), flags=TRAIN)
        ktx.put(frame(7, 1014), flags=TRAIN)
        ktx.put(frame(8), flags=TRAIN)
        ktx.put(frame(9, 1015), flags=TRAIN)  # the space of a VLAN tag is only for frames with one
        ktx.put(tagged(10, 1018), flags=TRAIN)
        ktx.put(tagged(11, 1019))
        ktx.kick()
        reports = ktx.reports(12)
        wrong = -errno.EMSGSIZE, -errno.EINVAL
        assert [report.error for report in reports] == [0, wrong[0], wrong[0], wrong[0], wrong[1], wrong[1], wrong[0], 0, 0, wrong[0], 0, wrong[0]]
        assert [report.status for report in reports] == [FAILED if report.error else SENT for report in reports]
        assert wire.numbers() == [0, 7, 8, 10]  # the tag is removed


@in_device("pc", modules=MODULE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_device_that_refuses_is_tried_again_for_a_bounded_time(wire: Ear, kind: str) -> None:
    run("ip", "link", "set", "wire1", "down")  # no carrier
    with Ktx("wire0", timer=KINDS[kind], retry_ns=200 * MS) as ktx:
        if kind != "none":  # a carrier that comes back in time: no loss, and the same order
            ktx.send([frame(2), frame(3)])
            run("ip", "link", "set", "wire1", "up")
            reports = ktx.reports(2)
            # The carrier appears shortly before the far device accepts packets, which veth of newer kernels reports; a slow device always meets that time.
            assert statuses(reports) == [SENT, SENT] or (SLOW > 1 and {report.error for report in reports} <= {0, -errno.EIO}), reports
            assert reports[0].tries > 1
            assert wire.numbers() in ([], [3], [2, 3])
            run("ip", "link", "set", "wire1", "down")
    with Ktx("wire0", timer=KINDS[kind], retry_ns=20 * MS) as ktx:
        begin = now()
        ktx.send([frame(0), frame(1)])
        first, second = ktx.reports(2)
        took = now() - begin
        assert (first.status, first.error, second.status, second.error) == (FAILED, -errno.ENOLINK) * 2
        assert first.tries > 50 and second.tries > 20 and 30 * MS <= took < 60 * MS, (first, second, took)


@in_device("pc", "router", modules=MODULE)
def test_k5_what_the_driver_drops_is_told_of_each_probe(module: None) -> None:
    """A tap device without a reader: its queue accepts a number of frames, and drops the rest."""
    run("modprobe", "tun")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    try:
        set_iff = 0x800454CA if os.environ["KTRXER_LAB_DEVICE"] == "router" else 0x400454CA
        fcntl.ioctl(tap, set_iff, struct.pack("16sH22x", b"tap0", 0x0002 | 0x1000))
        run("ip", "link", "set", "tap0", "txqueuelen", "100", "up")
        with Ktx("tap0", slots=512) as ktx:
            ktx.send([frame(i) for i in range(300)], flags=TRAIN)
            reports = ktx.reports(300)
        arrived = []
        while (data := read_one(tap)) is not None:
            if data[12:14] == b"\x88\xb5":
                arrived.append(struct.unpack_from(">I", data, 14)[0])
        assert [i for i, report in enumerate(reports) if report.status == SENT] == arrived
        assert 50 < len(arrived) < 200
        assert {report.error for report in reports if report.status == FAILED} == {-errno.EIO}
    finally:
        os.close(tap)


@in_device("pc", modules=MODULE)
def test_a_ring_that_is_full_of_more_than_is_prepared_goes_on(wire: Ear) -> None:
    """More slots than prepared socket buffers: the rest is prepared between the probes."""
    for kind in (THREAD, SOFTIRQ):
        with Ktx("wire0", timer=kind, slots=8192, frame_size=64) as ktx:
            begin = now() + 500 * MS
            # Intervals longer than the wake-up margin, because one processor must also process arriving packets.
            ktx.send([frame(i) for i in range(4300)], [begin + i * 50_000 for i in range(4300)])
            reports: list[Report] = []
            numbers: list[int] = []
            while len(reports) < 4300:
                reports += ktx.reports(1)
                numbers += wire.numbers()
            assert statuses(reports) == [SENT] * 4300 and numbers == list(range(4300))
            late = sorted(report.sent_ns - report.planned_ns for report in reports)
            assert late[2150] < 10_000, late[2150]


@in_device("pc", modules=MODULE)
def test_poll_tells_of_reports_and_of_the_end(wire: Ear) -> None:
    with Ktx("wire0", timer=THREAD) as ktx:
        poll = select.poll()
        poll.register(ktx.fd, select.POLLIN)
        assert poll.poll(0) == []
        ktx.send([frame(0)], [now() + 5 * MS])
        assert poll.poll(0) == []
        assert poll.poll(1000) == [(ktx.fd, select.POLLIN)]
        assert poll.poll(0) == [(ktx.fd, select.POLLIN)]  # until it is read
        ktx.collect()
        assert poll.poll(0) == []
        run("ip", "link", "set", "wire0", "down")
        assert poll.poll(0) == [(ktx.fd, select.POLLERR)]
        assert ktx.word(ERROR) == errno.ENETDOWN


@in_device("phone", modules=MODULE)
def test_frames_without_a_link_header(module: None) -> None:
    """A tunnel accepts IP packets of both versions, and refuses others."""
    run("modprobe", "tun")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x0001 | 0x1000))
        run("ip", "link", "set", "tun0", "up")
        packets = [bytes([0x45]) + bytes(39), bytes([0x60]) + bytes(59), bytes([0x15]) + bytes(39)]
        with Ktx("tun0") as ktx:
            ktx.send(packets)
            assert [report.error for report in ktx.reports(3)] == [0, 0, -errno.EINVAL]
        arrived = []
        while (data := read_one(tun)) is not None:
            arrived.append(data)
        assert [data for data in arrived if data in packets] == packets[:2]
    finally:
        os.close(tun)


@in_device("pc", modules=MODULE)
def test_loopback_takes_large_frames(module: None) -> None:
    run("ip", "link", "set", "lo", "up")
    ear = Ear("lo")
    big = b"\0" * 12 + struct.pack(">HI", 0x88B5, 9) + bytes(range(256)) * 250
    with Ktx("lo", frame_size=65553) as ktx:
        ktx.send([big, frame(1)])
        assert statuses(ktx.reports(2)) == [SENT, SENT]
    heard = list(ear.hear(0.01 * SLOW))
    assert big in heard and socket.if_nametoindex("lo") == 1
