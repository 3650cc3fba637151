# SPDX-License-Identifier: MIT OR Apache-2.0
"""Memory shortage: each request of the module to the kernel fails once, one after another (by the module in tests/lab/failing).

The system call fails with ENOMEM or EFAULT, no memory stays allocated, and the next call succeeds.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from inside import run
from krx import CAPTURE, CAPTURE_DROP, PREROUTING, PROMISCUOUS, Krx, Link, Rule
from ktrxer_lab.pytest_plugin import in_device
from ktx_raw import (
    AUTO,
    ERROR,
    FAILED,
    NONE,
    SENT,
    SETUP,
    SETUP_FORMAT,
    SOFTIRQ,
    THREAD,
    Ktx,
    frame,
    now,
    setup_words,
)
from module_help import kernel_warnings, two_ends

FAILING = ("failing",)
KINDS = {"auto": AUTO, "softirq": SOFTIRQ, "thread": THREAD, "none": NONE}
MOST = 60
HERE = Path("/sys/module/ktrxer_failing/parameters")
SHORT = in_device("pc", "router", modules=FAILING, slow=("router",))


def live() -> int:
    """Memory that the module has allocated and not freed."""
    return int((HERE / "live").read_text())


def each_refused(action: Callable[[], object], after: Callable[[], object]) -> int:
    """Repeat a function; the n-th request fails at the n-th time. Returns the number of requests."""
    before = live()
    for number in range(1, MOST):
        (HERE / "left").write_text(str(number))
        failed = None
        try:
            action()
        except OSError as error:
            failed = error.errno
        left = int((HERE / "left").read_text())
        (HERE / "left").write_text("0")
        assert (failed is None) if left else failed in (errno.ENOMEM, errno.EFAULT, None), (number, failed)
        after()
        assert live() == before, f"number {number}: {live() - before} of what it took is still taken"
        if left:
            return number - 1
    raise AssertionError(f"{MOST} refusals and no end")


@pytest.fixture
def failing() -> Iterator[None]:
    run("dmesg", "-c")
    run("insmod", "/root/ktrxer_failing.ko")
    try:
        yield
        assert live() == 0
        assert int((HERE / "left").read_text()) == 0
    finally:
        subprocess.run(["rmmod", "ktrxer_failing"], capture_output=True, check=False)
    assert not HERE.exists(), "it cannot be unloaded"
    assert kernel_warnings() == []


@pytest.fixture
def wire(failing: None) -> Iterator[None]:
    with two_ends():
        yield


@pytest.fixture
def link(pair: None, failing: None) -> Iterator[Link]:
    link = Link.make()
    yield link
    link.close()


@SHORT
def test_it_is_loaded_wholly_or_not_at_all() -> None:
    run("dmesg", "-c")
    refusals = 0
    while True:
        done = subprocess.run(["insmod", "/root/ktrxer_failing.ko", f"left={refusals + 1}"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        refusals += 1
        assert "annot allocate memory" in done.stderr and not HERE.exists() and not Path("/dev/ktx").exists(), done
    assert refusals == 4
    run("rmmod", "ktrxer_failing")
    assert kernel_warnings() == []


@SHORT
@pytest.mark.parametrize("kind", KINDS)
def test_a_sender_that_was_refused_may_try_again(wire: None, kind: str) -> None:
    files: list[int] = []
    words = setup_words(ifindex=socket.if_nametoindex("wire0"), timer=KINDS[kind])

    def sets_up() -> None:
        files.append(os.open("/dev/ktx", os.O_RDWR))
        fcntl.ioctl(files[-1], SETUP, bytearray(struct.pack(SETUP_FORMAT, *words)), True)

    def sends() -> None:
        """The same file if its set-up has failed, else a new one."""
        fd = files.pop() if files else os.open("/dev/ktx", os.O_RDWR)
        try:
            ktx = Ktx("wire0", fd=fd, timer=KINDS[kind])
        except OSError as error:
            assert error.errno == errno.EBUSY, error  # it is set up: only the copy of the answer failed
            ktx = Ktx("wire0", timer=KINDS[kind])
        with ktx:
            ktx.send([frame(1), frame(2)], [0, now() + 1_000_000])
            assert [report.status for report in ktx.reports(2)] == [SENT, SENT]

    print(f"soak: /dev/ktx open and SETUP, {kind}: refused at each of {each_refused(sets_up, sends)} places")


@SHORT
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_device_that_was_down_the_same_file_sends(wire: None, kind: str) -> None:
    """The same error path without a lack of memory."""
    fd = os.open("/dev/ktx", os.O_RDWR)
    run("ip", "link", "set", "wire0", "down")
    with pytest.raises(OSError, match="Network is down"):
        fcntl.ioctl(fd, SETUP, bytearray(struct.pack(SETUP_FORMAT, *setup_words(ifindex=socket.if_nametoindex("wire0"), timer=KINDS[kind]))), True)
    run("ip", "link", "set", "wire0", "up")
    with Ktx("wire0", fd=fd, timer=KINDS[kind]) as ktx:
        ktx.send([frame(1), frame(2)], [0, now() + 1_000_000])
        assert [report.status for report in ktx.reports(2)] == [SENT, SENT]


@SHORT
@pytest.mark.parametrize("kind", ("softirq", "thread", "none"))
def test_a_probe_without_memory_fails_alone(wire: None, kind: str) -> None:
    with Ktx("wire0", timer=KINDS[kind], slots=16) as ktx:
        failed: list[int] = []

        def commits() -> None:
            for i in range(6):
                ktx.put(frame(i), now() + 2_000_000)
            ktx.kick()

        def told() -> None:
            ktx.kick()  # the commit itself may have failed
            reports = ktx.reports(6)
            assert {(report.status, report.error) for report in reports} <= {(SENT, 0), (FAILED, -errno.ENOMEM)}
            assert ktx.word(ERROR) == 0
            failed.append(sum(report.status == FAILED for report in reports))

        places = each_refused(commits, told)
        assert sorted(failed)[-6:] == [1] * 6 and sum(failed) == 6, failed
        print(f"soak: KICK, {kind}: refused at each of {places} places; the 6 probes of which one was refused failed alone")


@SHORT
def test_a_mapping_that_was_refused_may_be_tried_again(wire: None) -> None:
    with Ktx("wire0") as ktx:
        maps: list[mmap.mmap] = []

        def maps_it() -> None:
            maps.append(mmap.mmap(ktx.fd, ktx.size))

        def unmaps() -> None:
            while maps:
                maps.pop().close()

        assert each_refused(maps_it, unmaps) == 1
        ktx.send([frame(1)])
        assert [report.status for report in ktx.reports(1)] == [SENT]


@SHORT
@pytest.mark.parametrize("hook", (1, PREROUTING))
def test_a_receiver_that_was_refused_leaves_nothing(link: Link, hook: int) -> None:
    files: list[Krx] = []
    rules = [Rule(CAPTURE_DROP, 17, "10.9.0.1", "10.9.0.2", 1000 + i, 2000) for i in range(40)] + [Rule(CAPTURE, 17)]

    def sets_up() -> None:
        files.append(Krx("far"))
        files[-1].setup(link.far_index, hook, flags=PROMISCUOUS)

    def asks() -> None:
        sets_up()
        files[-1].rules(rules)
        files[-1].stats(41)

    def hears() -> None:
        """The same file if it is set up, and a new one."""
        for krx in files:
            krx.close()
        files.clear()
        assert "promiscuity 0" in run("ip", "-n", "far", "-d", "link", "show", "wire")
        with Krx("far") as krx:
            krx.setup(link.far_index, hook).rules(rules)
            link.send(link.frame())
            assert [record.rule for record in krx.records()] == [0]

    print(f"soak: /dev/krx open, SETUP, mmap, RULES and STATS, hook {hook}: refused at each of {each_refused(asks, hears)} places")


@SHORT
def test_rules_that_were_refused_leave_the_former_ones(link: Link) -> None:
    with Krx("far") as krx:
        former = [Rule(CAPTURE_DROP, 17, to_port=2000)]
        krx.setup(link.far_index).rules(former)
        taken = []

        def replaces() -> None:
            krx.rules([Rule(CAPTURE_DROP, 17, "10.9.0.1", "10.9.0.2", 1000, 2000), Rule(CAPTURE, 17)])
            taken.append(1)

        def captured() -> None:
            link.send(link.frame())
            assert [record.data for record in krx.records()] == [link.frame()]
            krx.rules(former)

        print(f"soak: RULES in the place of others: refused at each of {each_refused(replaces, captured)} places")
        assert taken == [1]
