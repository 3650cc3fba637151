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

import arrivals  # type: ignore[import-not-found]
import during  # type: ignore[import-not-found]
import plain  # type: ignore[import-not-found]

WIRE = "wire-3"  # between `right` and `server`: has the delays and losses of both directions
COUNTED = {  # node and device that packets enter, before and behind the wire
    "up": ((WIRE, "to-right"), ("server", "to-right")),
    "down": ((WIRE, "to-server"), ("right", "to-server")),
}
ENDS = {
    "up": {"first": ("left", "to-client"), "last": ("server", "to-right")},
    "down": {"first": (WIRE, "to-server"), "last": ("client", "to-left")},
}
NEIGHBOURS = (130, 131, 132, 133, 134, 135, 136, 143)  # types of ICMPv6
NOT_COUNTED = (  # filters in this order; matchall counts the rest
    ("ip", ("flower", "ip_proto", "tcp")), ("ip", ("matchall",)),
    ("ipv6", ("flower", "ip_proto", "tcp")),
    *(("ipv6", ("flower", "ip_proto", "icmpv6", "type", str(kind))) for kind in NEIGHBOURS), ("ipv6", ("matchall",)),
)  # fmt: skip
SETTLE_S = 2.0
DRAIN_S = 2.0  # longer than the last packets of a command are on the path


def setup(plan: dict[str, Any]) -> None:
    for node, shell in plan["setup"]:
        subprocess.run(["ip", "netns", "exec", node, "sh", "-ec", shell], check=True, stdin=subprocess.DEVNULL)
    for direction, percent in plan["marks"].items():
        # Set CE on a share of the ECN-capable packets, at the entry of the last router of this direction.
        node, device = ("right", "to-left") if direction == "up" else ("left", "to-right")
        rules = (
            "table netdev truth { chain marks { "
            f'type filter hook ingress device "{device}" priority 0; '
            f"ip ecn ect0 numgen random mod 1000000 < {round(percent * 1e4)} counter ip ecn set ce; "
            f"ip6 ecn ect0 numgen random mod 1000000 < {round(percent * 1e4)} counter ip6 ecn set ce; }}; }}"
        )
        subprocess.run(["ip", "netns", "exec", node, "nft", rules], check=True, stdin=subprocess.DEVNULL)


def tc(node: str, *words: str) -> str:
    return subprocess.run(["tc", "-n", node, *words], capture_output=True, text=True, check=True).stdout


def counted_at(beside: bool) -> dict[str, dict[str, tuple[str, str]]]:
    """The places of the counters: both sides of the wire, and the entry and the end of the whole path."""
    return {way: {"sent": ends[0], "packets": ends[1]} | (ENDS[way] if beside else {}) for way, ends in COUNTED.items()}


def count_packets(beside: bool) -> None:
    """Count packets: all of IP except TCP, because a lost TCP segment of a tool's signalling is sent again, and except those of IPv6 for
    neighbours, which stay on a link."""
    for node, device in {place for places in counted_at(beside).values() for place in places.values()}:
        tc(node, "qdisc", "add", "dev", device, "clsact")
        for number, (protocol, match) in enumerate(NOT_COUNTED, 1):
            tc(node, "filter", "add", "dev", device, "ingress", "protocol", protocol, "prio", str(number), *match, "action", "pass")


def packets_at(node: str, device: str) -> int:
    filters = json.loads(tc(node, "-s", "-j", "filter", "show", "dev", device, "ingress"))
    actions = (one["options"]["actions"][0] for one in filters if one["kind"] == "matchall" and "options" in one)
    return sum(int(action["stats"]["packets"]) for action in actions)


def passed(beside: bool) -> dict[str, dict[str, int]]:
    """The number of packets at each counter."""
    places = counted_at(beside)
    counts = {place: packets_at(*place) for place in {place for ends in places.values() for place in ends.values()}}
    return {way: {name: counts[place] for name, place in ends.items()} for way, ends in places.items()}


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


def run(one: dict[str, Any], addresses: dict[str, str], plan: dict[str, Any]) -> dict[str, Any]:
    """Run one command. If it loads the path, plain probes run beside it."""
    beside, limit_s = plan.get("beside", False), plan["limit_s"]
    reference = plain.Probes(ways(addresses), one["reference_s"]) if one["reference_s"] else None
    before, came = passed(beside), arrived()
    captured = arrivals.Capture() if beside else None
    events = during.Events(plan["events"]) if beside else None
    try:
        done = subprocess.run(
            one["command"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
        status, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        status, out, err = 124, "", f"not done after {limit_s:g} s of the guest's clock"
    except OSError as error:
        status, out, err = 127, "", f"{one['command'][0]}: {error.strerror}"
    changes = events.stop() if events is not None else []
    if beside:
        time.sleep(DRAIN_S)
    after, gone = passed(beside), arrived()
    counted = {
        name: {
            **{key: after[name][key] - before[name][key] for key in after[name]},
            "bytes": gone[name][0] - came[name][0], "frames": gone[name][1] - came[name][1],
        } for name in COUNTED
    }  # fmt: skip
    probes = reference.stop() if reference is not None else None
    offset_ns = time.time_ns() - time.monotonic_ns()
    answer = {"status": status, "out": out, "err": err, "counted": counted, "reference": probes, "offset_ns": offset_ns}
    answer |= {"events": changes, "arrived": captured.stop() if captured is not None else {}}
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
    count_packets(plan.get("beside", False))
    answer: dict[str, Any] = {"checks": check(plan, addresses) if plan["count"] else None}
    streams = cross(plan, addresses)
    answer["done"] = [run(one, addresses, plan) for one in plan["commands"]]
    for stream in streams:
        stream.stopped = True
    print(json.dumps(answer))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    os._exit(main())
