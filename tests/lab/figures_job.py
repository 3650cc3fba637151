# SPDX-License-Identifier: MIT OR Apache-2.0
"""A job for the devices: E1, E2, O3 and E6 of every sender, beside cross traffic. Prints a JSON object a line for each figure.

Two namespaces, `near` and `far`, joined by a veth pair; each end is called `wire`. Cross traffic enters `near` through its own device, like a
NIC's interrupts (traffic/traffic.c), is routed, and leaves through the same wire as the probes; the far end discards it. All senders are judged
by the kernel's stamp at the far device, which veth takes within the sender's own call of its transmit function.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

COMMAND = "/usr/bin/ktrxer"
PROGRAMS = "/usr/local/libexec/ktrxer/bench"  # the command also searches here
FROM, TO, CROSS_TO, PORT = "10.9.0.1", "10.9.0.2", "10.9.0.3", 9
NEAR = ("ip", "netns", "exec", "near")
SEED = "7"
PARAMETERS = Path("/sys/module/ktrxer/parameters")
SETTLE_S = 0.03
LADDER = (4000, 6000, 8000, 10000, 14000, 16000, 18000, 20000, 28000, 32000)  # packets a second


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout


# ------------------------------------------------------------------------------------------------------------- the network


def make_network() -> None:
    for name in ("near", "far"):
        run("ip", "netns", "add", name)
    run("ip", "link", "add", "name", "wire", "netns", "near", "type", "veth", "peer", "name", "wire", "netns", "far")
    for index, name in enumerate(("near", "far"), start=1):
        run("ip", "-n", name, "address", "add", f"10.9.0.{index}/24", "dev", "wire")
        run("ip", "-n", name, "link", "set", "dev", "wire", "up")
    run(*NEAR, "ping", "-c", "1", "-q", TO)


def make_way_for_cross_traffic() -> None:
    """Packets to CROSS_TO have the link address of another station: the far end counts and discards them."""
    Path("/proc/sys/net/core/netdev_max_backlog").write_text("20000")  # packets of a NIC do not pass that queue
    run("modprobe", "dummy")
    run("ip", "-n", "near", "link", "add", "name", "in0", "type", "dummy")
    run("ip", "-n", "near", "address", "add", "10.8.0.1/24", "dev", "in0")
    run("ip", "-n", "near", "link", "set", "dev", "in0", "up")
    run("ip", "-n", "near", "neigh", "replace", CROSS_TO, "lladdr", "02:00:00:00:00:33", "dev", "wire", "nud", "permanent")
    run(*NEAR, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")


def far_received() -> int:
    return int(json.loads(run("ip", "-n", "far", "-s", "-j", "link", "show", "wire"))[0]["stats64"]["rx"]["packets"])


@dataclass
class Load:
    """Cross traffic: requested, received by `near`, received at the far end."""

    pps: int
    own: bool = False  # sent by a program on this host, not routed
    arrived_pps: float = 0.0
    brought_pps: float = 0.0
    _seen: tuple[float, int, int] = (0.0, 0, 0)

    @property
    def name(self) -> str:
        return f"{'own ' if self.own else ''}{self.pps / 1000:g}k" if self.pps else "idle"

    def look(self) -> tuple[float, int, int]:
        brought = Path("/sys/module/traffic/parameters/brought")
        return time.monotonic(), far_received(), int(brought.read_text()) if brought.exists() else 0

    def begin(self) -> None:
        self._seen = self.look()

    def end(self, probes: int) -> None:
        at, arrived, brought = self.look()
        seconds = at - self._seen[0]
        self.arrived_pps = (arrived - self._seen[1] - probes) / seconds if self.pps else 0.0
        self.brought_pps = (brought - self._seen[2]) / seconds


@contextmanager
def loaded(load: Load) -> Iterator[Load]:
    if not load.pps:
        yield load
    elif load.own:
        words = ("send", "--engine", "udp", CROSS_TO, "--port", "9", "--payload", "722", "--rate", str(load.pps), "--model", "poisson", "--seed", "07")
        cross = subprocess.Popen([*NEAR, COMMAND, *words, "--for", "600s", "--no-realtime", "--quiet"], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.1)
            yield load
            if cross.poll() is not None:
                raise RuntimeError("the cross traffic has ended")
        finally:
            cross.kill()
            cross.wait()
    else:
        run(*NEAR, "insmod", "/root/traffic.ko", f"rate={load.pps}", f"seed={SEED}")
        try:
            time.sleep(SETTLE_S)
            yield load
        finally:
            run("rmmod", "traffic")


def most_forwarded(wanted: Sequence[int]) -> dict[int, int]:
    """The rates that this device routes without loss; a higher rate is replaced by the highest of them."""
    for pps in sorted({*wanted, *LADDER}, reverse=True):
        if pps > max(wanted):
            continue
        with loaded(Load(pps)) as load:
            load.begin()
            began = time.monotonic()
            time.sleep(0.15)
            late = time.monotonic() - began - 0.15
            load.end(0)
        kept = load.arrived_pps >= 0.97 * load.brought_pps and late < 0.02 and load.brought_pps > 0.8 * pps
        print(json.dumps({"what": "forwarding", "pps": pps, "brought": round(load.brought_pps), "arrived": round(load.arrived_pps),
                          "late_ms": round(late * 1000, 2), "kept": kept}), flush=True)
        if kept:
            return {one: min(one, pps) for one in wanted}
    raise RuntimeError("this device does not even route the least of these rates")


# --------------------------------------------------------------------------------------------------------------- the judge


@contextmanager
def in_far() -> Iterator[None]:
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    far = os.open("/run/netns/far", os.O_RDONLY)
    try:
        if libc.setns(far, 0):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(home, 0)
        os.close(home)
        os.close(far)


class Judge:
    """Arrival times of the probes at the far device. They are read at the end, so that no wake-up disturbs a sender."""

    def __init__(self) -> None:
        with in_far():
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS_OLD
        self.socket.bind((TO, PORT))
        time.sleep(SETTLE_S)  # the kernel enables stamps by deferred work

    def take(self) -> list[int]:
        stamps: list[int] = []
        while True:
            try:
                _, notes, _, _ = self.socket.recvmsg(2048, 64, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return stamps
            seconds, nanoseconds = struct.unpack("@ll", notes[0][2][: struct.calcsize("@ll")])
            stamps.append(seconds * 10**9 + nanoseconds)


# ------------------------------------------------------------------------------------------------------------- the senders


@dataclass(frozen=True)
class Sender:
    name: str
    line: Callable[[Sending], list[str]]
    fifo: bool = False
    fq: bool = False
    module: dict[str, str] = field(default_factory=dict)  # the module's parameters

    @property
    def is_module(self) -> bool:
        return self.name.startswith("module")


@dataclass(frozen=True)
class Sending:
    count: int  # probes, or bursts of `train`
    interval_us: int
    payload: int
    train: int = 1


def engine(name: str) -> Callable[[Sending], list[str]]:
    def line(s: Sending) -> list[str]:
        words = [COMMAND, "send", "--engine", name, "--device", "wire", TO, "--port", str(PORT), "--payload", str(s.payload), "--json"]
        words += ["--count", str(s.count * s.train), "--interval", f"{s.interval_us}us", "--reports", "/tmp/reports.csv"]
        return words + (["--train", str(s.train)] if s.train > 1 else [])

    return line


def sleeper(kind: str) -> Callable[[Sending], list[str]]:
    return lambda s: [f"{PROGRAMS}/sleeper", kind, TO, str(PORT), str(s.interval_us), str(s.count), str(s.payload)]


def pacer(kind: str) -> Callable[[Sending], list[str]]:
    return lambda s: [f"{PROGRAMS}/pacer", kind, FROM, TO, str(PORT), str(s.interval_us), str(s.count), str(s.payload)]


def bursts(kind: str) -> Callable[[Sending], list[str]]:
    return lambda s: [f"{PROGRAMS}/bursts", kind, FROM, TO, str(PORT), str(s.count), str(s.train), str(s.interval_us), str(s.payload)]


TIMING = [
    Sender("module", engine("module")),
    Sender("socket, sleep", sleeper("usleep")),
    Sender("raw socket, sleep", pacer("raw-usleep")),
    Sender("absolute sleep", sleeper("absolute")),
    Sender("absolute sleep, FIFO", sleeper("absolute"), fifo=True),
    Sender("SO_TXTIME, fq", pacer("txtime"), fq=True),
    Sender("packet", engine("packet")),
]
VARIANTS = [
    Sender("module, softirq", engine("module"), module={"timer": "1"}),
    Sender("module, thread", engine("module"), module={"timer": "2"}),
    Sender("module, softirq, guard", engine("module"), module={"timer": "1", "guard_drivers": "veth"}),
    Sender("module, thread, guard", engine("module"), module={"timer": "2", "guard_drivers": "veth"}),
]
BURSTS = [
    Sender("module", engine("module")),
    Sender("packet", engine("packet")),
    Sender("raw", engine("raw")),
    Sender("raw socket", bursts("raw-sendto")),
    Sender("socket", bursts("udp-sendto")),
]
PAPERS = ("socket, sleep", "raw socket, sleep")
HONEST = ("absolute sleep", "absolute sleep, FIFO", "SO_TXTIME, fq")


@contextmanager
def set_up(sender: Sender) -> Iterator[None]:
    usual = {}
    if sender.is_module:
        for name, value in sender.module.items():
            usual[name] = (PARAMETERS / name).read_text()
            (PARAMETERS / name).write_text(value)
    if sender.fq:
        run("tc", "-n", "near", "qdisc", "replace", "dev", "wire", "root", "fq", "timer_slack", "0", "flow_limit", "1000", "limit", "100000")
    try:
        yield
    finally:
        for name, value in usual.items():
            (PARAMETERS / name).write_text(value)
        if sender.fq:
            run("tc", "-n", "near", "qdisc", "del", "dev", "wire", "root")


def send(judge: Judge, sender: Sender, sending: Sending) -> list[int]:
    """The arrivals of all probes, in order."""
    judge.take()

    def real_time() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(40))

    with set_up(sender):
        done = subprocess.run([*NEAR, *sender.line(sending)], capture_output=True, text=True, check=False, preexec_fn=real_time if sender.fifo else None)
        # Status 3: results of which some packets were not sent.
        account = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        if done.returncode and not (done.returncode == 3 and account.get("sent")):
            raise RuntimeError(f"{sender.name}: exit status {done.returncode}: {done.stderr}")
        time.sleep(SETTLE_S)
    return judge.take()


def of(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def rounded(value: float) -> float:
    return round(value, 3)


# --------------------------------------------------------------------------------------------------------------- the figures


def late_ones() -> list[tuple[int, float]]:
    """The probes that were off by more than 1 us, from the reports of the last run of an engine."""
    head, *rows = [line.split(",") for line in Path("/tmp/reports.csv").read_text().splitlines()]
    late = [(int(row[head.index("id")]) if "id" in head else i, int(row[head.index("lateness_ns")] or 0) / 1000) for i, row in enumerate(rows)]
    return [one for one in late if abs(one[1]) > 1]


def e2(judge: Judge, sender: Sender, load: Load, sending: Sending) -> dict[str, object]:
    load.begin()
    stamps = send(judge, sender, sending)
    load.end(len(stamps))
    interval = sending.interval_us * 1000
    # A pause longer than one and a half intervals shows a lost probe. It is counted and is not a timing error.
    lost = sending.count - len(stamps)
    gaps = [b - a for a, b in itertools.pairwise(stamps)]
    off = [abs(gap - interval) / 1000 for gap in gaps if not lost or gap < 1.5 * interval]
    return {"what": "E2", "sender": sender.name, "load": load.name, "interval_us": sending.interval_us, "n": len(off), "lost": lost,
            "median": rounded(of(off, 0.5)), "p95": rounded(of(off, 0.95)), "iqr": rounded(of(off, 0.75) - of(off, 0.25)), "max": rounded(max(off)),
            "cross_pps": round(load.arrived_pps), "cross_brought_pps": round(load.brought_pps),
            **({"late_us": late_ones()} if sender.is_module else {})}


def e1(judge: Judge, sender: Sender, load: Load, payload: int, runs: int) -> dict[str, object]:
    """Trains of 100: the rate from the first to the last, the median of the runs."""
    rates = []
    load.begin()
    probes = 0
    for _ in range(runs):
        stamps = send(judge, sender, Sending(1, 1000, payload, 100)) if sender.name != "pktgen" else pktgen(judge, payload)
        probes += len(stamps)
        if len(stamps) == 100:
            rates.append(99e9 / (stamps[-1] - stamps[0]) / 1000)
    load.end(probes)
    return {"what": "E1", "sender": sender.name, "load": load.name, "payload": payload, "runs": len(rates), "of": runs,
            "kpps": round(statistics.median(rates), 1) if rates else None, "cross_pps": round(load.arrived_pps)}


def pktgen(judge: Judge, payload: int) -> list[int]:
    mac = json.loads(run("ip", "-n", "far", "-j", "link", "show", "wire"))[0]["address"]
    words = ("count 100", "clone_skb 0", f"pkt_size {payload + 42}", f"dst {TO}", f"src_min {FROM}", f"dst_mac {mac}", f"udp_dst_min {PORT}",
             f"udp_dst_max {PORT}", "delay 0")
    script = "cd /proc/net/pktgen; echo rem_device_all > kpktgend_0; echo add_device wire > kpktgend_0; "
    script += "".join(f"echo {word} > wire; " for word in words) + "echo start > pgctrl"
    judge.take()
    run(*NEAR, "sh", "-c", script)
    time.sleep(SETTLE_S)
    return judge.take()


def o3(judge: Judge, sender: Sender, load: Load, pairs: int) -> dict[str, object]:
    load.begin()
    stamps = send(judge, sender, Sending(pairs, 1000, 12, 2))
    load.end(len(stamps))
    lost = 2 * pairs - len(stamps)
    gaps = [(stamps[i + 1] - stamps[i]) / 1000 for i in range(0, len(stamps) - 1, 2)] if not lost else []
    return {"what": "O3", "sender": sender.name, "load": load.name, "lost": lost, "median": rounded(of(gaps, 0.5)) if gaps else None,
            "p95": rounded(of(gaps, 0.95)) if gaps else None, "cross_pps": round(load.arrived_pps)}


def e6(judge: Judge, load: Load, gap_us: int, count: int) -> dict[str, object]:
    """The gap between reported stamps minus the gap at the wire, for each pair of neighbours with the scheduled gap `gap_us` (0: one train)."""
    sender = BURSTS[0]
    load.begin()
    stamps = send(judge, sender, Sending(count, gap_us, 12) if gap_us else Sending(count // 2, 1000, 12, 2))
    load.end(len(stamps))
    head, *rows = [line.split(",") for line in Path("/tmp/reports.csv").read_text().splitlines()]
    message = [int(row[head.index("departure_ns")]) for row in rows]
    if len(message) != len(stamps):
        return {"what": "E6", "gap_us": gap_us, "load": load.name, "lost": len(message) - len(stamps)}
    step = 1 if gap_us else 2
    off = [((message[i + 1] - message[i]) - (stamps[i + 1] - stamps[i])) / 1000 for i in range(0, len(message) - 1, step)]
    size = [abs(value) for value in off]
    return {"what": "E6", "gap_us": gap_us, "load": load.name, "lost": 0, "n": len(off), "median": rounded(of(off, 0.5)), "size_median": rounded(of(size, 0.5)),
            "size_p95": rounded(of(size, 0.95)), "size_max": rounded(max(size)), "cross_pps": round(load.arrived_pps)}


# ----------------------------------------------------------------------------------------------------------------------- all


def cells(arguments: argparse.Namespace) -> Iterator[Callable[[], dict[str, object]]]:
    judge = Judge()
    wanted = [int(word) for word in arguments.loads.split(",") if word]
    can = most_forwarded([pps for pps in wanted if pps]) if any(wanted) else {}
    routed = list(dict.fromkeys(can.get(pps, 0) for pps in wanted))
    loads = [*(Load(pps) for pps in routed), *(Load(int(word), own=True) for word in arguments.own.split(",") if word)]
    what = arguments.what.split(",")
    chosen = [*TIMING, *VARIANTS] if arguments.variants else TIMING
    if arguments.senders:
        chosen = [sender for sender in [*TIMING, *VARIANTS] if any(sender.name.startswith(word) for word in arguments.senders.split(";"))]
    for load in loads:
        with loaded(load):
            if "e2" in what:
                interval, count = (arguments.interval, arguments.count) if load.pps else (10_000, min(arguments.count, 201))
                for sender in chosen:
                    yield lambda s=sender, a=load, i=interval, n=count: e2(judge, s, a, Sending(n, i, 100))  # type: ignore[misc]
            if "o3" in what:
                for sender in BURSTS:
                    yield lambda s=sender, a=load: o3(judge, s, a, arguments.pairs)  # type: ignore[misc]
            if "e1" in what:
                for payload in (int(word) for word in arguments.payloads.split(",")):
                    for sender in [*BURSTS, *([Sender("pktgen", lambda _: [])] if not load.pps else [])]:
                        yield lambda s=sender, a=load, p=payload: e1(judge, s, a, p, arguments.runs)  # type: ignore[misc]
            if "e6" in what and not load.pps:
                for gap, count in ((0, 400), (10, 50), (100, 200), (1000, 200), (10_000, 100), (100_000, 20)):
                    yield lambda g=gap, a=load, n=count: e6(judge, a, g, n)  # type: ignore[misc]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", default="e2,o3,e1,e6")
    parser.add_argument("--loads", default="0,12000,24000,36000", help="packets a second, routed; what is too much becomes the most that is kept")
    parser.add_argument("--own", default="", help="packets a second, sent by a program of this host")
    parser.add_argument("--count", type=int, default=301, help="probes of each figure of E2 beside cross traffic")
    parser.add_argument("--interval", type=int, default=2000, help="of those, in us")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--payloads", default="28,528,1428")
    parser.add_argument("--variants", action="store_true", help="the module's clock-works, each with and without the guard, too")
    parser.add_argument("--senders", default="", help="only those whose names begin so; between semicolons")
    arguments = parser.parse_args(words)
    make_network()
    make_way_for_cross_traffic()
    run("insmod", "/root/ktrxer.ko")
    if "e1" in arguments.what:
        run("modprobe", "pktgen")
    failed = 0
    for cell in cells(arguments):
        began = time.monotonic()
        try:
            row = cell()
        except RuntimeError as error:
            row, failed = {"failed": str(error)}, failed + 1
        print(json.dumps({**row, "seconds": round(time.monotonic() - began, 2)}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
