# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module's senders beside grace periods of RCU, and while a processor goes off line and comes back (docs/explanation/security.md)."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import time
from pathlib import Path

import pytest
from ktrxer_lab.pytest_plugin import in_device
from ktx_raw import MS, SENT, SLOT, SLOW, SOFTIRQ, TAIL, THREAD, Ear, Ktx, frame, now
from module_help import MODULE, kernel_warnings

KINDS = {"softirq": SOFTIRQ, "thread": THREAD}
GAP_NS = 100_000  # 10,000 probes a second
EXPEDITED = Path("/sys/kernel/rcu_expedited")
ONLINE = Path("/sys/devices/system/cpu/cpu1/online")
MEMBARRIER, GLOBAL = 324, 1  # synchronize_rcu(); x86-64's number
LIMIT_S = 2.0  # of one grace period or change of a processor; the host of the emulator has other work


class Stream:
    """Timed probes that are all in the ring before the first one's time."""

    def __init__(self, kind: int, count: int) -> None:
        # A processor that its host holds up for long brings its probes at once: the other end of the wire takes all.
        Path("/proc/sys/net/core/netdev_max_backlog").write_text("100000")
        self.count, self.arrived = count, arrived()
        self.ktx = Ktx("wire0", timer=kind, slots=1 << (count - 1).bit_length(), frame_size=64, cpu=1)
        for i in range(count):
            self.ktx.put(frame(i), user=i)
        self.begin = now() + 3000 * MS
        for i in range(count):
            struct.pack_into("=Q", self.ktx.map, self.ktx.slots + SLOT * i, self.begin + i * GAP_NS)
        self.ktx.kick()
        assert now() < self.begin, "the probes were to be in the ring before the first one's time"
        time.sleep((self.begin - now()) / 1e9)
        self.goes_on()

    def left(self) -> int:
        return self.ktx.word(TAIL)

    def goes_on(self) -> None:
        """A hundred probes more leave, and they are not the last ones."""
        wanted, end = self.left() + 100, time.monotonic() + 20 * SLOW
        while self.left() < wanted:
            assert time.monotonic() < end, f"{wanted - self.left()} of 100 probes have not left"
            time.sleep(0.001)
        assert self.left() < self.count, "the probes were to leave during the whole test"

    def adds_up(self) -> str:
        """Each probe left once, in order, and none before its time."""
        reports = self.ktx.reports(self.count, limit_s=30)
        self.ktx.close()
        assert [report.user for report in reports] == list(range(self.count))
        assert {report.status for report in reports} == {SENT}
        sent = [report.sent_ns for report in reports]
        assert sent == sorted(sent)
        late = sorted(at - self.begin - i * GAP_NS for i, at in enumerate(sent))
        assert late[0] >= -50_000, "a probe left early"
        assert arrived() - self.arrived == self.count
        return f"{len(late)} probes, late by {late[len(late) // 2] / 1000:.1f} us (p50), {late[-1] / 1e6:.1f} ms at most"


def arrived() -> int:
    return int(Path("/sys/class/net/wire1/statistics/rx_packets").read_text())


def grace_periods(count: int) -> list[float]:
    libc, took = ctypes.CDLL(None, use_errno=True), []
    for _ in range(count):
        before = time.monotonic()
        assert libc.syscall(MEMBARRIER, GLOBAL, 0, 0) == 0, os.strerror(ctypes.get_errno())
        took.append(time.monotonic() - before)
    return sorted(took)


@in_device("pc", time="real", modules=MODULE)
@pytest.mark.parametrize("expedited", [False, True], ids=["normal", "expedited"])
@pytest.mark.parametrize("kind", KINDS)
def test_grace_periods_end_beside_timed_probes(wire: Ear, kind: str, expedited: bool) -> None:
    """A probe is sent with bottom halves off; a grace period waits for that probe, and not for the stream."""
    EXPEDITED.write_text(str(int(expedited)))
    try:
        alone = grace_periods(20)
        stream = Stream(KINDS[kind], 30_000)
        beside = grace_periods(20)
        stream.goes_on()
    finally:
        EXPEDITED.write_text("0")
    account = stream.adds_up()
    print(
        f"{kind}, {'expedited' if expedited else 'normal'}: a grace period takes {beside[10] * 1000:.1f} ms (p50), {beside[-1] * 1000:.1f} ms at most;"
        f" without probes {alone[10] * 1000:.1f}, {alone[-1] * 1000:.1f} ms; {account}"
    )
    assert beside[-1] < LIMIT_S + alone[-1] and beside[10] < 0.2 + 3 * alone[10], (beside, alone)
    assert kernel_warnings() == []


@in_device("pc", time="real", modules=MODULE)
@pytest.mark.parametrize("kind", KINDS)
def test_the_processor_of_a_sender_goes_off_line(wire: Ear, kind: str) -> None:
    """The timer, the tasklet and the thread continue on another processor; no probe is lost."""
    took = []
    try:
        stream = Stream(KINDS[kind], 60_000)
        for state in ("0", "1") * 3:
            before = time.monotonic()
            ONLINE.write_text(state)
            took.append(time.monotonic() - before)
            if state == "0":
                with pytest.raises(OSError) as caught:
                    Ktx("wire0", timer=KINDS[kind], cpu=1)
                assert caught.value.errno == errno.EINVAL
            stream.goes_on()
    finally:
        ONLINE.write_text("1")
    account = stream.adds_up()
    print(f"{kind}: six changes of processor 1, {max(took) * 1000:.0f} ms each at most; {account}")
    assert max(took) < LIMIT_S, took
    with Ktx("wire0", timer=KINDS[kind], cpu=1) as ktx:
        ktx.send([frame(0)])
        assert ktx.reports(1)[0].status == SENT
    assert kernel_warnings() == []
