# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module's limits: its use of the machine, of memory and of a processor, and its privileges (docs/explanation/security.md)."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from inside import run
from krx import CAPTURE, DROP, Krx, Link, Rule, libc
from ktrxer_lab.pytest_plugin import in_device
from ktx_raw import (
    AUTO,
    CANCELLED,
    ERROR,
    FAILED,
    FEATURES,
    GUARD,
    KICK,
    KICK_FORMAT,
    MS,
    NONE,
    QUEUE,
    SENT,
    SOFTIRQ,
    THREAD,
    TRAIN,
    Ear,
    Ktx,
    frame,
    now,
)
from module_help import MODULE, kernel_warnings
from test_module_rx_faults import CAP_NET_RAW, capabilities_set, in_child

KINDS = {"softirq": SOFTIRQ, "thread": THREAD, "none": NONE}
TIMED = {"softirq": SOFTIRQ, "thread": THREAD}
PARAMETERS = Path("/sys/module/ktrxer/parameters")
WARY = Path("/sys/module/wary/parameters")


# ------------------------------------------------------------------------------------------------------- interrupts


@contextlib.contextmanager
def wary(*options: str) -> Iterator[None]:
    run("insmod", "/root/wary.ko", *options)
    try:
        Path("/proc/sys/net/ipv6/conf/wary0/disable_ipv6").write_text("1")
        run("ip", "link", "set", "wary0", "up")
        yield
    finally:
        run("rmmod", "wary")


def lost_by_wary(kind: int, count: int = 40) -> tuple[int, int]:
    """Of a number of timed probes, those that the device lost because interrupts were off; and the guard."""
    before = int((WARY / "lost").read_text()), int((WARY / "taken").read_text())
    with Ktx("wary0", timer=kind) as ktx:
        begin = now() + 5 * MS
        ktx.send([frame(i) for i in range(count)], [begin + i * MS for i in range(count)])
        assert [report.status for report in ktx.reports(count)] == [SENT] * count
        guard = ktx.word(GUARD)
    lost, taken = int((WARY / "lost").read_text()) - before[0], int((WARY / "taken").read_text()) - before[1]
    assert lost + taken == count
    return lost, guard


@in_device("pc", "phone", "router", modules=(*MODULE, "wary"), slow=("phone", "router"))
@pytest.mark.parametrize("kind", TIMED)
def test_a_driver_is_called_with_interrupts_on(module: None, kind: str) -> None:
    """A switch port (DSA) loses frames that are sent with interrupts off: the module must not do so unless the administrator names the driver."""
    with wary():
        assert lost_by_wary(TIMED[kind]) == (0, 0)
        (PARAMETERS / "guard_drivers").write_text("wary")
        try:
            lost, guard = lost_by_wary(TIMED[kind])
            assert lost > 30 and guard > 0, "the stand-in sees interrupts that are off"
        finally:
            (PARAMETERS / "guard_drivers").write_text("\n")
    with wary("dsa=1"):
        (PARAMETERS / "guard_drivers").write_text("wary,dsa")
        try:
            assert lost_by_wary(TIMED[kind]) == (0, 0), "a port of a switch, even when it is named"
        finally:
            (PARAMETERS / "guard_drivers").write_text("\n")


@in_device("phone", modules=(*MODULE, "ports"))
@pytest.mark.parametrize("guard", ["\n", "ports"])
@pytest.mark.parametrize("kind", TIMED)
def test_probes_of_a_port_of_a_switch_leave(wire: Ear, kind: str, guard: str) -> None:
    """The kernel's own DSA: dsa_enqueue_skb() loses each frame that it gets with interrupts off."""
    run("modprobe", "dsa_core")
    run("insmod", "/root/ports.ko", "conduit=wire0")
    try:
        Path("/proc/sys/net/ipv6/conf/lan0/disable_ipv6").write_text("1")
        run("ip", "link", "set", "lan0", "up")
        end = now() + 20 * 10**9
        while Path("/sys/class/net/lan0/carrier").read_text() != "1\n":
            assert now() < end, "the port has no link"
            time.sleep(0.1)
        (PARAMETERS / "guard_drivers").write_text(guard)
        with Ktx("lan0", timer=TIMED[kind]) as ktx:
            begin = now() + 5 * MS
            ktx.send([frame(i) for i in range(40)], [begin + i * MS for i in range(40)])
            assert [report.status for report in ktx.reports(40)] == [SENT] * 40
            assert ktx.word(GUARD) == 0
        assert wire.numbers() == list(range(40))
    finally:
        (PARAMETERS / "guard_drivers").write_text("\n")
        run("rmmod", "ports")


@in_device("pc", modules=(*MODULE, "wary"))
@pytest.mark.parametrize("kind", KINDS)
def test_a_device_that_changes_its_type_ends_the_file(module: None, kind: str) -> None:
    with wary(), Ktx("wary0", timer=KINDS[kind]) as ktx:
        ktx.send([frame(0), frame(1)], [0, now() + 3600 * 10**9])
        assert ktx.reports(1)[0].status == SENT
        (WARY / "retype").write_text("1")
        assert ktx.word(ERROR) == errno.ENODEV
        if kind == "none":
            with pytest.raises(OSError, match="No such device"):
                ktx.kick()
        ktx.timer = THREAD
        assert [report.error for report in ktx.reports(1)] == [-errno.ENODEV]


# -------------------------------------------------------------------------------------------------- privileges and memory

NEW_USER, NEW_NET = 0x10000000, 0x40000000


@in_device("pc", "phone", modules=MODULE, slow=("phone",))
def test_a_user_namespace_starts_no_timer(module: None) -> None:
    """Membership of the device's group and a user namespace do not permit threads of real-time priority."""

    def work(kind: int) -> Callable[[], None]:
        def sets_up() -> None:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (8 << 20, 8 << 20))  # kernels before 5.16 begin with 64 KiB
            assert libc.unshare(NEW_USER | NEW_NET) == 0, os.strerror(ctypes.get_errno())
            Path("/proc/self/uid_map").write_text("0 0 1")  # else `ip` has no privilege
            run("ip", "link", "set", "lo", "up")
            with Ktx("lo", timer=kind) as ktx:
                ktx.send([frame(0)])
                assert ktx.reports(1)[0].status == SENT

        return sets_up

    assert [in_child(work(kind)) for kind in (AUTO, SOFTIRQ, THREAD)] == [errno.EPERM] * 3
    assert in_child(work(NONE)) == 0

    def handed_over() -> None:
        """A file opened in the namespace and set up by a process of the host: neither gets a privilege of the other."""
        fd = os.open("/dev/ktx", os.O_RDWR)
        capabilities_set()
        Ktx("lo", fd=fd, timer=THREAD)

    run("ip", "link", "set", "lo", "up")
    assert in_child(handed_over) == errno.EPERM


@in_device("pc", "phone", modules=MODULE, slow=("phone",))
def test_rings_count_for_the_limit_of_the_user(wire: Ear) -> None:
    def opens(most: int) -> list[Ktx]:
        files: list[Ktx] = []
        with contextlib.suppress(MemoryError):
            while len(files) < most:
                try:
                    files.append(Ktx("wire0", timer=NONE, slots=64))
                except OSError as error:
                    if error.errno != errno.ENOMEM:
                        raise
                    break
        return files

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
        files = opens(40)
        assert len(files) == 40, "CAP_IPC_LOCK lifts the limit"
        for ktx in files:
            ktx.close()
        capabilities_set(CAP_NET_RAW)
        files = opens(40)
        assert 2 <= len(files) <= 10, len(files)  # 100 KB of frames and as much of socket buffers each
        krx = Krx()
        try:
            krx.setup(socket.if_nametoindex("wire0"), ring=1 << 20, map=False)
            raise AssertionError("the receiving side counts for the same limit")
        except OSError as error:
            assert error.errno == errno.ENOMEM
        files.pop().close()
        assert len(opens(40)) == 1, "a file that was closed gives its part back"

    assert in_child(work) == 0


@in_device("pc", modules=MODULE)
def test_rings_are_charged_to_the_memory_cgroup(wire: Ear) -> None:
    place = Path("/run/charged")
    place.mkdir()
    run("mount", "-t", "cgroup2", "none", str(place))
    group = place / "group"
    try:
        (place / "cgroup.subtree_control").write_text("+memory")
        group.mkdir()

        def work() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))
            before = int((group / "memory.current").read_text())
            with Ktx("wire0", timer=NONE, slots=4096) as ktx:
                grown = int((group / "memory.current").read_text()) - before
                assert grown > 4096 * 1536, grown
                ktx.send([frame(1)])  # the mapping is that of the charged pages
                assert ktx.reports(1)[0].status == SENT
            with Krx() as krx:
                krx.setup(socket.if_nametoindex("wire0"), ring=4 << 20)
                assert int((group / "memory.current").read_text()) - before > 4 << 20
            (group / "memory.max").write_text(str(int((group / "memory.current").read_text()) + (2 << 20)))
            Ktx("wire0", timer=NONE, slots=4096)

        assert in_child(work) == errno.ENOMEM  # the process was not killed
        assert "oom_kill 0" in (group / "memory.events").read_text()
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()
        run("umount", str(place))


@in_device("pc", modules=MODULE, layers=("capture",))
@pytest.mark.parametrize("guard", ["\n", "veth"])
@pytest.mark.parametrize("kind", KINDS)
def test_rules_of_netfilters_egress_hook_apply(wire: Ear, kind: str, guard: str) -> None:
    if tuple(map(int, os.uname().release.split(".")[:2])) < (5, 16):
        pytest.skip("netfilter has no egress hook before Linux 5.16")
    (PARAMETERS / "guard_drivers").write_text(guard)
    try:
        run("nft", "add table netdev t; add chain netdev t c { type filter hook egress device wire0 priority 0; }; add rule netdev t c @ll,112,32 1 drop")
        with Ktx("wire0", timer=KINDS[kind]) as ktx:
            begin = now() + 5 * MS
            ktx.send([frame(i) for i in range(3)], flags=TRAIN)
            ktx.send([frame(i) for i in range(3)], [begin + i * MS for i in range(3)])
            assert [(report.status, report.error) for report in ktx.reports(6)] == [(SENT, 0), (FAILED, -errno.EPERM), (SENT, 0)] * 2
            run("nft", "delete table netdev t")
            ktx.send([frame(1)])
            assert ktx.reports(1)[0].status == SENT
        assert wire.numbers() == [0, 2, 0, 2, 1]
    finally:
        subprocess.run(["nft", "delete table netdev t"], capture_output=True, check=False)
        (PARAMETERS / "guard_drivers").write_text("\n")


# ---------------------------------------------------------------------------------------------------------- cancellation


def kick(fd: int, cancel_to: int | None) -> None:
    fcntl.ioctl(fd, KICK, bytearray(struct.pack(KICK_FORMAT, 24, cancel_to is not None, cancel_to or 0, 0, 0)), True)


@in_device("pc", modules=MODULE)
def test_a_cancellation_waits_for_no_other_call(wire: Ear) -> None:
    """One process sends at once by KICK and stays in it because there is no carrier; another one cancels."""
    run("ip", "link", "set", "wire1", "down")
    with Ktx("wire0", timer=NONE, retry_ns=5 * 10**9) as ktx:
        for i in range(20):
            ktx.put(frame(i))
        ktx.put_word(128, ktx.head)
        child = os.fork()
        if child == 0:
            time.sleep(0.05)
            begin = time.monotonic()
            kick(ktx.fd, ktx.head)
            os._exit(0 if time.monotonic() - begin < 0.1 else 1)
        begin = time.monotonic()
        kick(ktx.fd, None)
        took = time.monotonic() - begin
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the cancellation waited"
        assert 0.04 < took < 1, took
        assert [report.status for report in ktx.collect()] == [CANCELLED] * 20


@in_device("pc", modules=MODULE)
def test_a_call_that_waits_for_another_can_be_killed(wire: Ear) -> None:
    run("ip", "link", "set", "wire1", "down")
    with Ktx("wire0", timer=NONE, retry_ns=2 * 10**9) as ktx:
        ktx.put(frame(0))
        ktx.put_word(128, ktx.head)
        children = []
        for _ in range(2):  # the second one waits for the first
            child = os.fork()
            if child == 0:
                with contextlib.suppress(OSError):
                    kick(ktx.fd, None)
                os._exit(0)
            children.append(child)
            time.sleep(0.05)
        begin = time.monotonic()
        for child in reversed(children):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert time.monotonic() - begin < 0.5


@in_device("pc", time="real", modules=MODULE)
@pytest.mark.parametrize("kind", TIMED)
def test_all_can_be_cancelled_while_they_leave(wire: Ear, kind: str) -> None:
    cancelled = 0
    with Ktx("wire0", timer=TIMED[kind], slots=64, frame_size=64) as ktx:
        for _ in range(3000):
            begin = now()
            ktx.send([frame(i) for i in range(40)], [begin + 1000 * i for i in range(40)])
            ktx.kick(cancel_to=ktx.head)
            reports = ktx.reports(40)
            cancelled += sum(report.status == CANCELLED for report in reports)
            assert {report.status for report in reports} <= {SENT, CANCELLED}
    print(f"{kind}: {cancelled} of {3000 * 40} probes were cancelled")


# --------------------------------------------------------------------------------------------------------------- shares


def spare(processors: list[int], seconds: float) -> dict[int, tuple[float, float]]:
    """Of each processor, the share that another task has, and the longest time that it waits, in ms. The host of the emulator takes a part, too."""
    heard, tables = os.pipe()
    children = []
    for processor in processors:
        child = os.fork()
        if child == 0:
            os.sched_setaffinity(0, [processor])
            os.nice(-20)  # so that only the timers of the hostile programs compete with this process
            last, longest, ran = now(), 0, 0
            begin = last
            while last < begin + int(seconds * 1e9):
                here = now()
                longest = max(longest, here - last)
                ran += here - last if here - last < 200_000 else 0
                last = here
            os.write(tables, struct.pack("=Qdd", processor, ran / (last - begin), longest / 1e6))
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    found = [struct.unpack("=Qdd", os.read(heard, 24)) for _ in processors]
    for end in (heard, tables):
        os.close(end)
    return {processor: (share, longest) for processor, share, longest in found}


@in_device("pc", time="real", modules=MODULE)
@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("at_once", [False, True])
def test_eight_hostile_files_leave_a_fifth_of_each_processor(wire: Ear, kind: str, at_once: bool) -> None:
    """Probes in the past, or one each microsecond, from eight files: other tasks continue, and the kernel logs no warning."""
    seconds, processors = 4.0, sorted(os.sched_getaffinity(0))
    before = spare(processors, 2.0)
    stop = now() + int((seconds + 3) * 1e9)
    ready, told = os.pipe()
    children = []
    for number in range(8):
        child = os.fork()
        if child == 0:
            try:
                here = processors[number % len(processors)]
                os.sched_setaffinity(0, [here])
                with Ktx("wire0", timer=TIMED[kind], slots=4096, frame_size=64, cpu=here) as ktx:
                    os.write(told, b".")
                    while now() < stop:
                        begin = 0 if at_once else now()
                        for i in range(ktx.count - (ktx.head - ktx.read)):
                            ktx.put(frame(i), begin and begin + 1000 * i)
                        ktx.kick()
                        ktx.collect()
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    for _ in children:
        os.read(ready, 1)
    time.sleep(0.5)
    shares = spare(processors, seconds)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * len(children)
    for processor, (share, longest_ms) in shares.items():
        alone, alone_ms = before[processor]
        print(
            f"{kind}, {'at once' if at_once else '1 us apart'}: processor {processor}: another task had {share:.2f} of it, waited {longest_ms:.1f} ms at most;"
            f" without the eight files {alone:.2f}, {alone_ms:.1f} ms"
        )
        assert share > 0.15 * alone and longest_ms < 100 + alone_ms, (share, longest_ms, alone, alone_ms)
    assert kernel_warnings() == []


@in_device("pc", "phone", modules=MODULE, slow=("phone",))
@pytest.mark.parametrize("kinds", [(SOFTIRQ,), (THREAD,), (SOFTIRQ, THREAD)], ids=["softirq", "thread", "both"])
def test_eight_files_without_a_pause_leave_a_fifth_of_the_processor(wire: Ear, kinds: tuple[int, ...]) -> None:
    """In virtual time, on one processor: a probe each 2.5 us for 80 ms, beside a process that counts the time it has."""
    count, gap_ns = 4000, 20_000
    span = count * gap_ns
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(Ktx("wire0", timer=kinds[i % len(kinds)], slots=4096, frame_size=64)) for i in range(8)]
        begin = now() + 3000 * MS
        for i, ktx in enumerate(files):
            ktx.send([frame(n) for n in range(count)], [begin + n * gap_ns + i * gap_ns // 8 for n in range(count)])
        assert now() < begin, "the probes were committed too late: after the first scheduled time"
        time.sleep((begin - now()) / 1e9)
        last = now()
        end, ran, longest = last + span, 0, 0
        while last < end:
            here = now()
            ran += here - last if here - last < 100_000 else 0
            longest = max(longest, here - last)
            last = here
        reports = [report for ktx in files for report in ktx.reports(count, 5.0)]
    late = sorted(report.sent_ns - report.planned_ns for report in reports)
    print(
        f"{os.environ['KTRXER_LAB_DEVICE']}: another task had {ran / span:.3f} of the processor, waited {longest / 1e6:.2f} ms at most; "
        f"lateness p50 {late[len(late) // 2]} ns, p95 {late[len(late) * 95 // 100]} ns, max {late[-1]} ns"
    )
    assert ran > 0.2 * span and longest < 20 * MS, (ran / span, longest)


@in_device("pc", time="real", modules=MODULE)
def test_the_thread_stays_on_the_programs_processors(wire: Ear) -> None:
    processors = sorted(os.sched_getaffinity(0))
    assert len(processors) == 2

    def work() -> None:
        os.sched_setaffinity(0, processors[:1])
        for _ in range(4):
            with Ktx("wire0", timer=THREAD) as ktx:
                assert f"ktx-cpu:\t{processors[0]}\n" in Path(f"/proc/self/fdinfo/{ktx.fd}").read_text()
        Ktx("wire0", timer=THREAD, cpu=processors[1])

    assert in_child(work) == errno.EINVAL


# -------------------------------------------------------------------------------------------------------- interface version 2


@in_device("pc", "router", modules=MODULE, slow=("router",))
def test_features_numbers_and_queues_of_probes(module: None) -> None:
    run("ip", "link", "add", "name", "wire0", "numtxqueues", "4", "type", "veth", "peer", "name", "wire1", "numrxqueues", "4")
    try:
        for name in ("wire0", "wire1"):
            run("ip", "link", "set", name, "up")
        with Ktx("wire0", timer=NONE, queue=1) as ktx:
            answer = bytearray(struct.pack("=2I2Q4I", 40, 0, 0, 0, 0, 0, 0, 0))
            fcntl.ioctl(ktx.fd, FEATURES, answer, True)
            size, _, features, clocks, slots, longest, rules, listed = struct.unpack("=2I2Q4I", answer)
            assert (size, features & 0b111011, clocks, slots, longest, rules, listed) == (40, 0b111011, 2, 1 << 20, 65553, 16384, 1024)
            ktx.put(frame(0), user=7)
            ktx.put(frame(1), flags=TRAIN | QUEUE, queue=3, user=(1 << 64) - 1)
            ktx.put(frame(2), flags=QUEUE, queue=0)
            ktx.put(frame(3), flags=QUEUE, queue=4)
            ktx.put(frame(4), flags=QUEUE, queue=0xFFFFFFFF)
            ktx.put(frame(5), queue=2)  # without the flag there is no report
            ktx.kick()
            told = [(report.status, report.error, report.user, report.queue) for report in ktx.reports(6)]
            assert told[:3] == [(SENT, 0, 7, 1), (SENT, 0, (1 << 64) - 1, 3), (SENT, 0, 0, 0)]
            assert [one[:2] for one in told[3:5]] == [(FAILED, -errno.EINVAL)] * 2 and told[5] == (SENT, 0, 0, 1)
            text = Path(f"/proc/self/fdinfo/{ktx.fd}").read_text()
            assert "ktx-timer:\tnone\n" in text and "ktx-published:\t6\n" in text and "ktx-reported:\t6\n" in text
    finally:
        run("ip", "link", "del", "wire0")


@in_device("pc", "router", modules=MODULE, slow=("router",))
def test_records_name_their_table(link: Link) -> None:
    with Krx("far") as krx:
        krx.setup(link.far_index).rules([Rule(CAPTURE, 17)])
        link.send(link.frame(b"one"))
        krx.rules([Rule(DROP, 6), Rule(CAPTURE, 17)])
        link.send(link.frame(b"two"))
        assert [(record.generation, record.rule) for record in krx.records()] == [(1, 0), (2, 1)]
        text = Path(f"/proc/self/fdinfo/{krx.fd}").read_text()
        assert "krx-captured:\t2\n" in text and "krx-generation:\t2\n" in text
        assert "krx-rule:\t0 drop 0\n" in text and "krx-rule:\t1 capture 1\n" in text


@in_device("pc", modules=MODULE)
def test_tracepoints_show_the_way_of_a_probe(wire: Ear) -> None:
    tracing = Path("/sys/kernel/tracing")
    if not (tracing / "events").exists():
        run("mount", "-t", "tracefs", "none", str(tracing))
    (tracing / "trace").write_text("")
    try:
        (tracing / "events/ktrxer/enable").write_text("1")
        with Ktx("wire0", timer=THREAD) as ktx:
            ktx.send([frame(0)], [now() + 5 * MS])
            assert ktx.reports(1)[0].status == SENT
        events = [line.split(": ")[1] for line in (tracing / "trace").read_text().splitlines() if ": ktx_" in line]
        assert [event for event in events if event != "ktx_wake"] == ["ktx_commit", "ktx_transmit", "ktx_report"] and "ktx_wake" in events
    finally:
        (tracing / "events/ktrxer/enable").write_text("0")
