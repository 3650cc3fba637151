# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in the machine that test_nic.py boots: two NICs on one wire, and ktrxer with their stamps. Prints one JSON object."""

import ctypes
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

GET, SET = 0x89B1, 0x89B0  # SIOCGHWTSTAMP, SIOCSHWTSTAMP
PAIRS = 50  # pairs of frames; the NIC stamps the first of each
PTP = "capture any from any to any"  # only a wildcard rule matches packets that are not IP


def setting(tx: int | None = None, rx: int = 0) -> list[int]:
    """tx_type and rx_filter of the near NIC, set first if values are given."""
    config = (ctypes.c_int * 3)(0, tx or 0, rx)
    request = struct.pack("16sP", b"eth0", ctypes.addressof(config)) + bytes(16)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        fcntl.ioctl(channel, GET if tx is None else SET, request)
    return list(config)[1:]


def run(line: str) -> str:
    return subprocess.run(line.split(), check=True, capture_output=True, text=True).stdout


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def ended(child: subprocess.Popen[str]) -> dict[str, object]:
    told: dict[str, object] = json.loads(child.communicate()[0])
    return told


def send(engine: str, *more: str) -> dict[str, object]:
    words = ["ktrxer", "send", "-e", engine, "-d", "eth0", "10.9.0.2", "--port", "9", "--json", "--reports", "/reports.csv", *more]
    end = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    header, *rows = (line.split(",") for line in Path("/reports.csv").read_text().splitlines())
    bounds = [int(row[header.index("bound_ns")]) for row in rows]
    return {"sent": end["sent"], "departure_stamp": end["departure_stamp"], "lateness_us": end["lateness_us"], "bound_ns": sorted(bounds)[len(bounds) // 2],
            "after": setting()}


def shared() -> dict[str, object]:
    """Two transmitters on one NIC, in two processes, and one receiver: the NIC's setting after the first and after the last has closed."""
    words = ("ktrxer", "send", "-e", "packet", "-d", "eth0", "10.9.0.2", "--port", "9", "--json", "-i")
    long, short = start(*words, "10ms", "-c", "150"), start(*words, "7ms", "-c", "70")
    listener = start("ktrxer", "recv", "-d", "eth0", "--nic-stamps", "--rule", PTP, "--for", "1s", "--json")
    time.sleep(0.3)
    together, first = setting(), ended(short)
    second = setting()
    ended(listener)
    third, last = setting(), ended(long)
    return {"first": first["departure_stamp"], "last": last["departure_stamp"], "settings": [together, second, third, setting()]}


def capture_file(path: str) -> None:
    """PTPv2 Syncs over Ethernet, which this NIC stamps, 10 ms apart, and a UDP packet behind each, which it does not."""
    macs = bytes.fromhex("011b19000000 525400000002")
    sync = macs + bytes.fromhex("88f7 0002 002c") + bytes(40)
    udp = bytes.fromhex("525400000001 525400000002 0800 4500001c 00000000 4011 66bd 0a090002 0a090001 0009 0009 0008 0000")
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for i in range(2 * PAIRS):
            frame = udp if i % 2 else sync
            file.write(struct.pack("<IIII", 1, i // 2 * 10_000_000 + i % 2 * 2_000_000, len(frame), len(frame)) + frame)


RXSATRH = 0xB630


def unlock() -> None:
    """
    QEMU's igb keeps its one arrival stamp until RXSATRH is read, which Linux' driver never does (a real one is content with the stamp's own
    registers). So this thread reads it, each three milliseconds: a stamp that the driver has not fetched by then is lost, as with a busy NIC.
    """
    with Path("/sys/class/net/eth0/device/resource0").open("r+b") as file:
        word = ctypes.c_uint32.from_buffer(mmap.mmap(file.fileno(), 0x20000), RXSATRH)
    while True:
        _ = word.value
        time.sleep(0.003)


def receive(*more: str) -> dict[str, object]:
    """From NIC to NIC: each has its own clock; the stamps of both are converted to this machine's clock."""
    words = ["ktrxer", "recv", "-d", "eth0", "--rule", PTP, "--count", str(2 * PAIRS), "--for", "6s", "--jsonl", *more]
    child = start(*words)
    assert child.stdout
    lines = [json.loads(child.stdout.readline()) for _ in range(2)]
    during = setting()
    run("ip netns exec far ktrxer send -e packet -d eth1 --pcap /ptp.pcap --reports /far.csv --json")
    lines += [json.loads(line) for line in child.stdout]
    child.wait()
    rows = [line.split(",") for line in Path("/far.csv").read_text().splitlines()]
    columns = {name: i for i, name in enumerate(rows[0])}
    sent = [int(row[columns["departure_ns"]]) for row in rows[1::2]]
    ptp = [line for line in lines if line.get("ethertype") == 0x88F7]
    flight = sorted(line["time_ns"] - at for line, at in zip(ptp, sent, strict=False))
    rest = [line for line in lines if line.get("kind") == "packet" and line.get("proto") == 17]
    return {"during": during, "after": setting(), "stamps": lines[-1]["stamps"], "note": lines[-1]["backend_note"],
            "ptp": sorted({(line["source"], line["clock"]) for line in ptp}), "udp": sorted({(line["source"], line["clock"]) for line in rest}),
            "count": [len(ptp), len(rest)], "flight_ns": [flight[0], flight[len(flight) // 2], flight[-1]] if flight else [],
            "bound_ns": sorted(line["bound_ns"] for line in ptp)[len(ptp) // 2] if ptp else None,
            "departures": sorted({row[columns["departure_stamp"]] for row in rows[1:]})}


for command in ("ip netns add far", "ip link set eth1 netns far", "ip address add 10.9.0.1/24 dev eth0", "ip link set eth0 up",
                "ip -n far address add 10.9.0.2/24 dev eth1", "ip -n far link set eth1 up"):
    run(command)
time.sleep(3)  # until both ends have a link
run("ping -c 3 -q 10.9.0.2")
told: dict[str, object] = {"before": setting()}
engines = json.loads(run("ktrxer doctor --device eth0 --json"))["engines"]
told["doctor"] = sorted(engine["name"] for engine in engines if "nic-stamp" in engine["features"])
told["packet"] = send("packet", "-c", "100", "-i", "10ms")
told["fast"] = send("packet", "-c", "2000", "--rate", "5k")
told["shared"] = shared()
capture_file("/ptp.pcap")
if not (helper := os.fork()):
    unlock()
told["received"] = receive("--nic-stamps")
told["off"] = receive()
told["set"] = setting(1, 12)  # like ptp4l: stamps of sent packets, and of received PTP packets
told["on"] = receive()
os.kill(helper, signal.SIGKILL)
run("tc qdisc replace dev eth0 root fq timer_slack 0")
told["txtime"] = send("txtime", "-c", "100", "-i", "10ms")
print(json.dumps(told), flush=True)
