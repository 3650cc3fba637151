# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module's receiver (/dev/krx): wrong use, and no leftovers.

      near                           far
    wire 10.9.0.1/24 ----------- wire 10.9.0.2/24      the rules in far apply to packets from near
         fd09::1                      fd09::2
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

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
    PREROUTING,
    PROMISCUOUS,
    RULE,
    RULES,
    SETUP,
    UP,
    Krx,
    Link,
    Rule,
    enter,
    libc,
    use_count,
    within,
)
from krx_link import EVERYWHERE, refused, stack

# ------------------------------------------------------------------------------------------------------------- wrong use


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
        for at, value in ((0, SETUP.size - 1), (0, 5000), (1, 2), (2, 0), (2, 3), (3, 0), (4, 262145), (5, 4095), (5, (1 << 30) + 1), (10, 1), (11, 1)):
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
    """CAP_NET_RAW to open and to capture, CAP_NET_ADMIN to drop: required of the caller and of the process that opened the file."""

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
        with Krx("far") as krx:  # opened by a privileged process, passed to an unprivileged one
            krx.setup(link.far_index)
            assert in_child(rules(CAP_NET_RAW, op=op, krx=krx)) == want

    ours, theirs = socket.socketpair()

    def hands_over() -> None:
        enter("far")
        capabilities_set(CAP_NET_RAW)
        socket.send_fds(theirs, [b"x"], [Krx().setup(link.far_index).fd])

    assert in_child(hands_over) == 0  # opened by an unprivileged process, passed to a privileged one
    _, (fd, *_), _, _ = socket.recv_fds(ours, 1, 1)
    krx = object.__new__(Krx)
    krx.fd, krx.map = fd, None
    with ours, theirs, krx:
        krx.rules([Rule(CAPTURE, 17)])
        refused(errno.EPERM, lambda: krx.rules([Rule(DROP, 17)]))
    mode = os.stat("/dev/krx").st_mode
    assert mode & 0o777 == 0o660


# ------------------------------------------------------------------------------------------ files, processes, namespaces


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
    """Device renamed: no change. Down: reported, and it may come back. Moved or deleted: reported as final, with nothing left on it."""
    with Krx("far") as krx, stack(4) as heard:
        krx.setup(link.far_index, flags=PROMISCUOUS).rules([Rule(DROP, 17, to_port=2000)])
        run("ip", "-n", "far", "link", "set", "dev", "wire", "down")
        assert krx.stats()[3] == DOWN and krx.poll() == select.POLLERR
        assert krx.events() == 1 and krx.poll() == 0, "reported once, not for as long as it is down"
        run("ip", "-n", "far", "link", "set", "dev", "wire", "name", "thread")
        run("ip", "-n", "far", "link", "set", "dev", "thread", "up")
        assert krx.stats()[3] == UP and krx.poll(events=select.POLLIN | select.POLLPRI) == select.POLLPRI
        assert krx.events() == 2 and krx.poll(events=select.POLLIN | select.POLLPRI) == 0
        link.send(link.frame())
        assert krx.stats(1)[0] == [1] and heard() == []
        run("ip", "-n", "far", "link", "set", "dev", "thread", "netns", "near")
        assert krx.stats()[3] == GONE and krx.poll() == select.POLLERR | select.POLLHUP
        assert krx.events() == 4 and krx.poll() == select.POLLHUP
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
    """A file holds its namespace, as a socket does. It receives no packets of other namespaces."""
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
    """A tun device has no link layer: its packets begin with the IP header."""
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
