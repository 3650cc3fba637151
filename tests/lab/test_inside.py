# SPDX-License-Identifier: MIT OR Apache-2.0
"""Features of the devices' kernels, tested inside the devices."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

import pytest
from inside import run
from ktrxer_lab.pytest_plugin import in_device


def ping_ms(count: int) -> list[float]:
    text = run("ip", "netns", "exec", "near", "ping", "-c", str(count), "-i", "0.2", "10.9.0.2")
    return [float(line.split("time=")[1].split()[0]) for line in text.splitlines() if "time=" in line]


@in_device("pc", "router", "phone")
def test_device_is_what_it_says() -> None:
    machine = os.uname().machine
    assert machine == {"pc": "x86_64", "router": "mips", "phone": "armv7l"}[os.environ["KTRXER_LAB_DEVICE"]]
    assert os.uname().nodename == os.environ["KTRXER_LAB_DEVICE"]


@in_device("pc", "router", "phone")
def test_the_root_has_room_for_the_output_of_tests(tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as file:
        for _ in range(32):
            file.write(bytes(1 << 20))
    (tmp_path / "output").unlink()


@in_device("pc", "router", "phone", slow=("phone",))
def test_timers_are_fine(pair: None) -> None:
    """High resolution timers: a sleep of 200 us ends within 200 us of its deadline, in the median."""
    late = []
    for _ in range(51):
        start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        time.sleep(200e-6)
        late.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - start - 200_000)
    assert 0 <= sorted(late)[25] < 200_000
    resolution = {line.split()[1] for line in Path("/proc/timer_list").read_text().splitlines() if ".resolution" in line}
    assert resolution == {"1"}


@in_device("pc", "router", "phone", slow=("phone",))
def test_netem_delays_by_what_it_is_told(pair: None) -> None:
    before = sorted(ping_ms(5))[2]
    run("tc", "-n", "near", "qdisc", "add", "dev", "wire", "root", "netem", "delay", "30ms")
    after = sorted(ping_ms(5))[2]
    assert 29.5 < after - before < 31


@in_device("pc", "router", "phone", slow=("phone", "router"))
@pytest.mark.parametrize("kind", ["codel", "pie", "fq_codel", "cake bandwidth 5mbit", "fq"])
def test_queue_passes_and_counts_packets(pair: None, kind: str) -> None:
    run("tc", "-n", "near", "qdisc", "add", "dev", "wire", "root", *kind.split())
    assert len(ping_ms(3)) == 3
    shown = run("tc", "-n", "near", "-s", "qdisc", "show", "dev", "wire")
    assert kind.split()[0] in shown
    sent = int(shown.split("Sent ")[1].split(" pkt")[0].split()[-1])
    assert sent >= 3


def send_at(sock: socket.socket, payload: bytes, when_ns: int) -> None:
    SCM_TXTIME = 61
    sock.sendmsg([payload], [(socket.SOL_SOCKET, SCM_TXTIME, when_ns.to_bytes(8, "little"))], 0, ("10.9.0.2", 9999))


@in_device("pc", "phone", slow=("phone",))
@pytest.mark.parametrize("qdisc", ["etf clockid CLOCK_TAI delta 500000", "fq"])
def test_launch_times_are_kept(pair: None, qdisc: str) -> None:
    """Frames with a launch time 20 ms ahead arrive then, not before, through ETF (TAI) and fq (monotonic)."""
    import ctypes

    ping_ms(1)  # ETF drops packets without a launch time, also ARP requests
    run("tc", "-n", "near", "qdisc", "add", "dev", "wire", "root", *qdisc.split())
    clock = time.CLOCK_TAI if qdisc.startswith("etf") else time.CLOCK_MONOTONIC
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(name: str) -> None:
        with open(f"/run/netns/{name}") as namespace:
            assert libc.setns(namespace.fileno(), 0) == 0, os.strerror(ctypes.get_errno())

    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        enter("far")
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind(("10.9.0.2", 9999))
        receiver.settimeout(1)
        enter("near")
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        SO_TXTIME = 61
        sender.setsockopt(socket.SOL_SOCKET, SO_TXTIME, clock.to_bytes(4, "little") + bytes(4))
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 3)
        for _ in range(5):
            when = time.clock_gettime_ns(clock) + 20_000_000
            send_at(sender, b"x", when)
            receiver.recv(100)
            late_ns = time.clock_gettime_ns(clock) - when
            assert -600_000 < late_ns < 1_000_000  # ETF lets a frame go `delta` (0.5 ms) early
    finally:
        libc.setns(home, 0)
        os.close(home)


@in_device("pc", "router", "phone")
def test_bbr_is_there() -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, 13, b"bbr")
        assert sock.getsockopt(socket.IPPROTO_TCP, 13, 16).rstrip(b"\0") == b"bbr"


@in_device("pc", "router", "phone")
def test_pktgen_sends(pair: None) -> None:
    run("modprobe", "pktgen")
    run("ip", "-n", "near", "link", "set", "dev", "wire", "netns", "1")
    run("ip", "link", "set", "dev", "wire", "up")

    def tables(file: str, *lines: str) -> None:
        for line in lines:
            Path("/proc/net/pktgen", file).write_text(line + "\n")

    tables("kpktgend_0", "rem_device_all", "add_device wire")
    tables("wire", "count 1000", "pkt_size 100", "delay 0", "dst 10.9.0.2", "dst_mac 02:00:00:00:00:01")
    tables("pgctrl", "start")
    result = Path("/proc/net/pktgen/wire").read_text()
    assert "Result: OK" in result
    assert "pkts-sofar: 1000 " in result
    with contextlib.suppress(OSError):
        tables("kpktgend_0", "rem_device_all")


@in_device("pc", kernel="5.10", slow=("pc",))
def test_kernel_5_10() -> None:
    assert os.uname().release.startswith("5.10.")


@in_device("pc", kernel="6.12", slow=("pc",))
def test_kernel_6_12() -> None:
    assert os.uname().release.startswith("6.12.")


@in_device("pc", time="real", slow=("pc",))
def test_real_time_has_several_cpus() -> None:
    assert os.cpu_count() == 2


@in_device("pc")
def test_virtual_time_has_one_cpu_and_idle_time_is_free() -> None:
    assert os.cpu_count() == 1
    start = time.monotonic()
    time.sleep(600)
    assert 600 <= time.monotonic() - start < 601
