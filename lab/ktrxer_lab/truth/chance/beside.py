# SPDX-License-Identifier: MIT OR Apache-2.0
"""Error bounds beside random CPU load, in real time: `python3 -m ktrxer_lab.truth.chance.beside` draws a load, a rate of the path and a
command, and compares the headline figures with those of tcpdump at both ends of the path (docs/decisions/0077).

tcpdump sees a packet behind the queue of the device. The round trips of the command contain the own and the far queue, whose parts the
samples have: they are subtracted. REFERENCE_US is allowed for the distance between the tap of the device and the stamp of its driver."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median_low
from typing import Any

from ktrxer_lab import hosts
from ktrxer_lab.truth.figure import binomial_interval

REFERENCE_US = 10.0
RATE_SHARE = 0.02  # a late first datagram of a flow, behind which the others follow in time, is an edge of its time
GOAL = 25  # of 500 runs
PROBERS = tuple(f"{name} {{b}} {probes}" for name in ("ping", "stamp") for probes in ("-c 150 -i 8ms", "-c 300 -i 3ms"))
COMMANDS = (*PROBERS, "flow up {b} -u -b 4M --for 1.2s")
ICMP, UDP = 1, 17
TCPDUMP = ("tcpdump", "-n", "-U", "-s", "128", "-B", "32768", "--time-stamp-precision=nano")
STAMP_PORT = struct.pack("!H", 8620)
RECORD = struct.Struct("<IIII")
# A share of each 50 ms, with normal (0) or real-time priority; or packets between two other hosts, whose softirqs run here.
LOAD = """
import os, sys, time
share, fifo = float(sys.argv[1]), int(sys.argv[2])
if fifo: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
while True:
    until = time.monotonic() + 0.05 * share
    while time.monotonic() < until: pass
    if share < 1: time.sleep(0.05 * (1 - share))
"""
PACKETS = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((sys.argv[1], 9))
while True:
    try: s.send(bytes(1000))
    except OSError: pass
"""


@dataclass(frozen=True)
class Draw:
    seed: int
    command: str
    rate_mbps: int | None
    busy: tuple[float, ...]  # shares of a processor, normal priority
    real_time: tuple[float, ...]
    packets: int  # senders between two other hosts


def draw(seed: int) -> Draw:
    chance = random.Random(seed)
    shares = [round(chance.uniform(0.1, 1), 2) for _ in range(chance.choice((0, 1, 2, 2, 4, 6)))]
    fifo = [round(chance.uniform(0.05, 0.6), 2) for _ in range(chance.choice((0, 0, 1, 2)))]
    return Draw(seed, chance.choice(COMMANDS), chance.choice((None, None, 10, 50)), tuple(shares), tuple(fifo), chance.choice((0, 0, 0, 1)))


# ------------------------------------------------------------------------------------------------------------- reference


@dataclass(frozen=True)
class Seen:
    at_ns: int
    source: bytes
    protocol: int
    key: bytes  # the same in a request and in its answer, or of a datagram
    length: int


def read(pcap: bytes) -> Iterator[Seen]:
    """IPv4 packets in a file of tcpdump with stamps in nanoseconds, as this host's byte order writes it."""
    at = 24
    while at + RECORD.size <= len(pcap):
        seconds, nanoseconds, kept, _ = RECORD.unpack_from(pcap, at)
        data = pcap[at + RECORD.size + 14 : at + RECORD.size + kept]
        at += RECORD.size + kept
        if len(data) < 28 or data[0] >> 4 != 4:
            continue
        after = 4 * (data[0] & 15)
        body = data[after + 8 :]
        # An answer of STAMP repeats the number of the probe behind its own (RFC 8762, 4.3.1).
        key = data[after + 4 : after + 8] if data[9] == ICMP else body[24:28] if data[after : after + 2] == STAMP_PORT else body[:4]
        yield Seen(seconds * 10**9 + nanoseconds, data[12:16], data[9], key, struct.unpack_from("!H", data, 2)[0] - after - 8)


@contextlib.contextmanager
def captured(host: hosts.Netns, device: str, what: str, file: Path) -> Iterator[None]:
    words = [*TCPDUMP, "-i", device, "-w", str(file), what]
    child = host.popen(words)
    assert child.stderr is not None
    for line in child.stderr:
        if "listening on" in line:
            break
    yield
    time.sleep(1)  # the ring of tcpdump, and its wait for a processor
    child.terminate()
    _, report = child.communicate()
    dropped = re.search(r"(\d+) packets? dropped by kernel", report)
    if dropped is None or int(dropped[1]):
        raise LookupError("tcpdump dropped packets")


def truth(draw_: Draw, near: list[Seen], far: list[Seen], a: bytes) -> dict[str, float]:
    if "flow" in draw_.command:
        came = [one for one in far if one.protocol == UDP and one.source == a and one.length > 1000]
        gone = [one for one in near if one.protocol == UDP and one.source == a and one.length > 1000]
        seconds = (came[-1].at_ns - came[0].at_ns) / 1e9
        rate = sum(one.length for one in came[1:]) * 8 / seconds / 1e6
        return {"rate_up": rate, "loss": 100 * (len(gone) - len(came)) / len(gone)}
    protocol = ICMP if draw_.command.startswith("ping") else UDP
    sent = {one.key: one.at_ns for one in reversed(near) if one.protocol == protocol and one.source == a}
    answered = {one.key: one.at_ns for one in reversed(near) if one.protocol == protocol and one.source != a}
    stood = dict.fromkeys(sent, 0)
    if protocol == UDP:
        there = {one.key: one.at_ns for one in reversed(far) if one.protocol == protocol and one.source == a}
        back = {one.key: one.at_ns for one in reversed(far) if one.protocol == protocol and one.source != a}
        stood = {key: back[key] - there[key] for key in there if key in back}
    trips = [(answered[key] - at - stood[key]) / 1e3 if key in answered and key in stood else math.inf for key, at in sent.items()]
    return {"rtt_p50": median_low(trips), "loss": 100 * sum(map(math.isinf, trips)) / len(trips)}


# ------------------------------------------------------------------------------------------------------------------ a run


@dataclass(frozen=True)
class Result:
    seed: int
    verdict: str
    outside: tuple[str, ...] = ()  # figures whose true value is outside of the bound
    beyond: tuple[str, ...] = ()  # figures further from the truth than the tolerance
    problem: str = ""
    reasons: tuple[str, ...] = ()  # sentences


def behind_queues(objects: list[dict[str, Any]]) -> float:
    """The p50 of the round trips in us without the queues of the two hosts' devices, which tcpdump does not see."""
    trips = [one for one in objects if one.get("kind") == "round_trip" and one["rtt_ns"] is not None]
    lost = sum(one.get("kind") == "lost" for one in objects)
    behind = [float(one["rtt_ns"] - (one.get("own_queue_ns") or 0) - (one.get("far_queue_ns") or 0)) for one in trips]
    return median_low([ns / 1e3 for ns in behind] + [math.inf] * lost)


def compare(objects: list[dict[str, Any]], true: dict[str, float]) -> tuple[list[str], list[str]]:
    outside, beyond = [], []
    for one in objects[-1]["bounds"]:
        if one["figure"] not in true or one["value"] is None:
            continue
        value = true[one["figure"]]
        if one["figure"] == "rtt_p50":
            one |= {"value": round(behind_queues(objects), 3)}
        allowed = RATE_SHARE * value if one["unit"] == "Mbit/s" else REFERENCE_US if one["unit"] == "us" else 0.001
        of = f"{one['bound']} of {one['tolerance']} {one['unit']}"
        text = f"{one['figure']} {one['value']} +- {of}, true {value:.3f} ({one['cause']})"
        if one["bound"] is not None and abs(one["value"] - value) > one["bound"] + allowed:
            outside.append(text)
        if abs(one["value"] - value) > one["tolerance"]:
            beyond.append(text)
    return outside, beyond


def measure(one: Draw, ktrxer: str, folder: Path) -> Result:
    with hosts.pair() as (a, b), hosts.pair() as (c, d), contextlib.ExitStack() as stack:
        token = folder / "token"
        token.write_text("0123456789abcdef0123456789abcdef\n")
        token.chmod(0o600)
        if one.rate_mbps:
            for host, device in ((a, "a0"), (b, "b0")):
                host.run(["tc", "qdisc", "add", "dev", device, "root", *f"tbf rate {one.rate_mbps}mbit burst 5k limit 100k".split()])
        server = b.popen([ktrxer, "serve", "--token-file", str(token), "--jsonl"])
        assert server.stdout is not None
        server.stdout.readline(), server.stdout.readline()
        children: list[subprocess.Popen[Any]] = [server]
        try:
            what = "icmp" if "ping" in one.command else "udp"
            for host, device in ((a, "a0"), (b, "b0")):
                stack.enter_context(captured(host, device, what, folder / device))
            for share, fifo in [*((share, 0) for share in one.busy), *((share, 1) for share in one.real_time)]:
                children.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", LOAD, str(share), str(fifo)]))
            children += [c.popen([sys.executable, "-I", "-S", "-c", PACKETS, d.address]) for _ in range(one.packets)]
            words = one.command.format(b=b.address).split()
            more = ["--token-file", str(token)] if words[0] == "flow" else []
            done = a.run([ktrxer, *words, *more, "--jsonl"], check=False, timeout=60)
            for child in children[1:]:
                child.kill()
            stack.close()
        finally:
            for child in children:
                child.kill()
                child.communicate()
        if not done.stdout:
            return Result(one.seed, "", problem=done.stderr.strip())
        objects = [json.loads(line) for line in done.stdout.splitlines()]
        near, far = (list(read((folder / device).read_bytes())) for device in ("a0", "b0"))
        outside, beyond = compare(objects, truth(one, near, far, bytes(map(int, a.address.split(".")))))
        reasons = tuple(reason["text"] for reason in objects[-1]["reasons"])
        return Result(one.seed, objects[-1]["verdict"], tuple(outside), tuple(beyond), reasons=reasons)


def main() -> int:
    parser = argparse.ArgumentParser(prog="beside", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--ktrxer", default="ktrxer")
    given = parser.parse_args()
    made: list[Result] = []
    for seed in range(given.seed, given.seed + given.runs):
        with tempfile.TemporaryDirectory() as folder:
            try:
                made.append(measure(draw(seed), given.ktrxer, Path(folder)))
            except LookupError as error:
                made.append(Result(seed, "", problem=str(error)))
        one = made[-1]
        if one.problem or one.outside or (one.verdict != "valid" and not one.beyond):
            print(json.dumps(asdict(draw(seed)) | asdict(one)), flush=True)
    return summary(made)


def summary(made: list[Result]) -> int:
    known = [one for one in made if not one.problem]
    valid = [one for one in known if one.verdict == "valid"]
    bad = [one for one in known if one.verdict != "valid"]
    missed = sum(bool(one.outside) for one in valid)
    cried = sum(not one.beyond for one in bad)
    texts = "valid runs with a true value outside of a bound", "runs are degraded, and all their figures within tolerance"
    for count, of, text in zip((missed, cried), (len(valid), len(known)), texts, strict=True):
        low, high = binomial_interval(count, of) if of else (0.0, 1.0)
        print(f"{count} of {of} {text}, 95 % interval {100 * low:.1f} to {100 * high:.1f} %, goal at most {GOAL} of 500")
    print(f"{len(made)} runs: {len(valid)} valid, {len(bad)} degraded or invalid, {len(made) - len(known)} without a reference")
    return 3 if missed * 500 > GOAL * len(valid) or cried * 500 > GOAL * len(known) else 0


if __name__ == "__main__":
    sys.exit(main())
