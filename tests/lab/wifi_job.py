# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in the machine that test_wifi.py boots: two simulated radios in one network. Prints one JSON object: the stations of each device as this
project reads them from netlink, and the output of `iw`, with nothing between the two readings."""

import functools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, "/ktrxer")
from ktrxer.collect.wifi import Stations

DEVICES = ("wlan0", "wlan1")


def run(line: str) -> str:
    return subprocess.run(line.split(), capture_output=True, text=True, check=True).stdout


def until(what: Callable[[], Any], limit_s: float = 60) -> Any:
    """The first result that is true."""
    end = time.monotonic() + limit_s
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.2)
    return found


for device in DEVICES:
    run(f"iw dev {device} set type ibss")
    run(f"ip link set {device} up")
    run(f"iw dev {device} ibss join net 2412 fixed-freq 02:ca:ff:ee:00:01")
until(lambda: all("Station" in run(f"iw dev {device} station dump") for device in DEVICES))
with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as sender:
    far = run("cat /sys/class/net/wlan1/address").strip()
    for _ in range(300):
        sender.sendto(bytes(1000), ("wlan0", 0x88B5, 0, 0, bytes.fromhex(far.replace(":", ""))))
        time.sleep(0.005)
stations = Stations()


def compared(device: str) -> Any:
    """Both readings, if the counters did not change between them."""
    before = stations.stations(device)
    text = run(f"iw dev {device} station dump")
    same = [(one.mac, one.values) for one in before] == [(one.mac, one.values) for one in stations.stations(device)]
    return same and {"ours": [[one.device, one.mac, one.values] for one in before], "iw": text}


made = {device: until(functools.partial(compared, device)) for device in DEVICES}
print("\n" + json.dumps({"devices": sorted(stations.devices), **made}), flush=True)
