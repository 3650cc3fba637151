# SPDX-License-Identifier: MIT OR Apache-2.0
"""In the machine that test_nic.py boots: two NICs on one wire, and what ktrxer makes of their stamps. Prints one JSON object."""

import ctypes
import fcntl
import json
import socket
import struct
import subprocess
import time
from pathlib import Path

GET, SET = 0x89B1, 0x89B0  # SIOCGHWTSTAMP, SIOCSHWTSTAMP


def setting(tx: int | None = None, rx: int = 0) -> list[int]:
    """The NIC's: tx_type and rx_filter; set first, if given."""
    config = (ctypes.c_int * 3)(0, tx or 0, rx)
    request = struct.pack("16sP", b"eth0", ctypes.addressof(config)) + bytes(16)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        fcntl.ioctl(channel, GET if tx is None else SET, request)
    return list(config)[1:]


def run(line: str) -> str:
    return subprocess.run(line.split(), check=True, capture_output=True, text=True).stdout


def send(engine: str, *more: str) -> dict[str, object]:
    words = ["ktrxer", "send", "-e", engine, "-d", "eth0", "--to", "10.9.0.2:9", "--json", "--reports", "/reports.csv", *more]
    end = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    bounds = [int(line.rsplit(",", 1)[1]) for line in Path("/reports.csv").read_text().splitlines()[1:]]
    return {"sent": end["sent"], "proof": end["proof"], "lateness_us": end["lateness_us"], "bound_ns": sorted(bounds)[len(bounds) // 2],
            "after": setting()}


for command in ("ip netns add far", "ip link set eth1 netns far", "ip address add 10.9.0.1/24 dev eth0", "ip link set eth0 up",
                "ip -n far address add 10.9.0.2/24 dev eth1", "ip -n far link set eth1 up"):
    run(command)
time.sleep(3)  # until both ends have found their link
run("ping -c 3 -q 10.9.0.2")
told: dict[str, object] = {"before": setting()}
engines = json.loads(run("ktrxer doctor --device eth0 --json"))["engines"]
told["doctor"] = sorted(engine["name"] for engine in engines if "wire-stamp" in engine["features"])
told["packet"] = send("packet", "-c", "100", "-i", "10ms")
told["fast"] = send("packet", "-c", "2000", "--rate", "5k")
told["set"] = setting(1, 12)  # as ptp4l does it: stamps of what is sent, and of PTP's packets that come
run("tc qdisc replace dev eth0 root fq timer_slack 0")
told["txtime"] = send("txtime", "-c", "100", "-i", "10ms")
print(json.dumps(told), flush=True)
