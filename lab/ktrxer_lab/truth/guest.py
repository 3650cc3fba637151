# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in the guest of one path: checks that the path has its constructed properties, then runs the commands.

    guest.py PLAN      PLAN as JSON on the command line; prints one JSON object

All its reference figures come from plain sockets (`plain.py`), `tc` and the counters of devices, never from ktrxer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import plain  # type: ignore[import-not-found]

WIRE = "wire-3"  # between `right` and `server`: has the delays and losses of both directions
COUNTED = {  # node and device that packets enter, before and behind the wire
    "up": ((WIRE, "to-right"), ("server", "to-right")),
    "down": ((WIRE, "to-server"), ("right", "to-server")),
}
SETTLE_S = 2.0


def setup(plan: dict[str, Any]) -> None:
    for node, shell in plan["setup"]:
        subprocess.run(["ip", "netns", "exec", node, "sh", "-ec", shell], check=True, stdin=subprocess.DEVNULL)
    for direction, percent in plan["marks"].items():
        # Set CE on a share of the ECN-capable packets, at the entry of the last router of this direction.
        node, device = ("right", "to-left") if direction == "up" else ("left", "to-right")
        rules = (
            "table netdev truth { chain marks { "
            f'type filter hook ingress device "{device}" priority 0; '
            f"ip ecn ect0 numgen random mod 1000000 < {round(percent * 1e4)} counter ip ecn set ce; }}; }}"
        )
        subprocess.run(["ip", "netns", "exec", node, "nft", rules], check=True, stdin=subprocess.DEVNULL)


def tc(node: str, *words: str) -> str:
    return subprocess.run(["tc", "-n", node, *words], capture_output=True, text=True, check=True).stdout


def count_packets() -> None:
    """Count packets on both sides of the wire: all of IPv4 except TCP, because a lost TCP segment of a tool's signalling is sent again."""
    for ends in COUNTED.values():
        for node, device in ends:
            tc(node, "qdisc", "add", "dev", device, "clsact")
            for number, match in ((1, ("flower", "ip_proto", "tcp")), (2, ("matchall",))):
                at = ("filter", "add", "dev", device, "ingress", "protocol", "ip", "prio", str(number))
                tc(node, *at, *match, "action", "pass")


def passed() -> dict[str, dict[str, int]]:
    """The number of packets before and behind the wire."""
    found = {}
    for name, ends in COUNTED.items():
        counts = []
        for node, device in ends:
            filters = json.loads(tc(node, "-s", "-j", "filter", "show", "dev", device, "ingress"))
            (action,) = (one["options"]["actions"][0] for one in filters if one["kind"] == "matchall" and "options" in one)
            counts.append(action["stats"]["packets"])
        found[name] = {"sent": counts[0], "packets": counts[1]}
    return found


def arrived() -> dict[str, tuple[int, int]]:
    """Bytes and packets that arrived, by the devices of both hosts."""
    found = {}
    for name, host in (("up", "server"), ("down", "client")):
        result = subprocess.run(["ip", "-n", host, "-s", "-j", "link", "show"], capture_output=True, text=True, check=True).stdout
        received = [one["stats64"]["rx"] for one in json.loads(result) if one["ifname"].startswith("to-")]
        found[name] = (sum(one["bytes"] for one in received), sum(one["packets"] for one in received))
    return found


def check(plan: dict[str, Any], addresses: dict[str, str]) -> dict[str, Any]:
    """Measure delays, losses and rates by plain sockets."""
    rates = {}
    for name, mbps in plan["rates"].items():
        sender, receiver = ("client", "server") if name == "up" else ("server", "client")
        rates[name] = plain.capacity_mbps(sender, receiver, addresses[receiver], mbps)
    streams = cross(plan, addresses)
    probes = plain.Probes(ways(addresses), plan["gap_s"], plan["count"]).wait()
    for stream in streams:
        stream.stop()
    if streams:
        time.sleep(SETTLE_S)
    return {"rates": rates, "probes": probes}


def ways(addresses: dict[str, str]) -> dict[str, str]:
    return {"up": addresses["server"], "down": addresses["client"]}


def cross(plan: dict[str, Any], addresses: dict[str, str]) -> list[Any]:
    streams = []
    for name, mbps in plan["cross"]:
        sender, receiver = ("near", "far") if name == "up" else ("far", "near")
        streams.append(plain.Stream(sender, receiver, addresses[receiver], 7004, mbps))
    if streams:
        time.sleep(SETTLE_S)
    return streams


def run(one: dict[str, Any], addresses: dict[str, str], limit_s: float) -> dict[str, Any]:
    """Run one command. If it loads the path, plain probes run beside it."""
    reference = plain.Probes(ways(addresses), one["reference_s"]) if one["reference_s"] else None
    before, came = passed(), arrived()
    try:
        done = subprocess.run(
            one["command"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
        status, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        status, out, err = 124, "", f"not done after {limit_s:g} s of the guest's clock"
    except OSError as error:
        status, out, err = 127, "", f"{one['command'][0]}: {error.strerror}"
    after, gone = passed(), arrived()
    counted = {
        name: {
            **{key: after[name][key] - before[name][key] for key in after[name]},
            "bytes": gone[name][0] - came[name][0], "frames": gone[name][1] - came[name][1],
        } for name in COUNTED
    }  # fmt: skip
    probes = reference.stop() if reference is not None else None
    offset_ns = time.time_ns() - time.monotonic_ns()
    answer = {"status": status, "out": out, "err": err, "counted": counted, "reference": probes, "offset_ns": offset_ns}
    return answer | {"clock": server_clock()}


def server_clock() -> tuple[int, int]:
    """The client's CLOCK_MONOTONIC, and the offset of the server's CLOCK_REALTIME to the client's at that time, in nanoseconds."""
    before = time.time_ns()
    with plain.inside("server"):
        there = time.time_ns()
    return time.monotonic_ns(), there - (before + time.time_ns()) // 2


def main() -> int:
    plan = json.loads(sys.argv[1])
    addresses = plain.hosts_file()
    setup(plan)
    count_packets()
    answer: dict[str, Any] = {"checks": check(plan, addresses) if plan["count"] else None}
    streams = cross(plan, addresses)
    answer["done"] = [run(one, addresses, plan["limit_s"]) for one in plan["commands"]]
    for stream in streams:
        stream.stopped = True
    print(json.dumps(answer))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    os._exit(main())
