# SPDX-License-Identifier: MIT OR Apache-2.0
"""Netlink and metadata: values equal the kernel's; private data only on request. test_host_state.py and test_queues.py have the runners of host state."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from ktrxer.collect import StateError, netlink
from ktrxer.collect.metadata import gather

ROOT = Path(__file__).resolve().parents[2]


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def qdisc(kind: bytes, app: bytes = b"", packets64: int | None = None) -> netlink.Qdisc:
    stats = attribute(1, struct.pack("=QI", 1 << 40, 77)) + attribute(3, struct.pack("=5I", 5, 6000, 7, 8, 9)) + attribute(4, app)
    if packets64 is not None:
        stats += attribute(8, struct.pack("=Q", packets64))
    return netlink._qdisc(3, 0x100000, 0xFFFFFFFF, memoryview(attribute(1, kind + b"\0") + attribute(7, stats)))


def test_the_counters_that_all_queues_have() -> None:
    one = qdisc(b"pfifo")
    assert (one.kind, netlink.handle_text(one.handle), one.bytes, one.packets) == ("pfifo", "10:", 1 << 40, 77)
    assert (one.backlog_packets, one.backlog_bytes, one.drops, one.requeues, one.overlimits, one.marks) == (5, 6000, 7, 8, 9, None)
    assert qdisc(b"pfifo", packets64=1 << 33).packets == 1 << 33


@pytest.mark.parametrize(
    ("kind", "app", "marks"),
    [
        (b"fq_codel", struct.pack("=10I", 0, 1514, 0, 11, 4, 0, 0, 3, 0, 0), 14),  # ecn_mark and ce_mark
        (b"codel", struct.pack("=9I", 1514, 0, 0, 0, 0, 0, 12, 0, 5), 17),
        (b"codel", struct.pack("=8I", 1514, 0, 0, 0, 0, 0, 12, 0), 12),  # before ce_mark existed
        (b"pie", struct.pack("=Q8I", 0, 0, 0, 0, 0, 0, 0, 0, 13), 13),
        (b"fq_pie", struct.pack("=9I", 1, 2, 3, 4, 15, 0, 0, 0, 0), 15),
        (b"red", struct.pack("=4I", 0, 0, 0, 16), 16),
        (b"cake", attribute(10, attribute(1, attribute(8, struct.pack("=I", 20))) + attribute(2, attribute(8, struct.pack("=I", 3)))), 23),
        (b"fq_codel", b"\0" * 8, None),
        (b"cake", b"\0" * 3, None),
        (b"htb", b"\0" * 40, None),
    ],
)
def test_marks_of_each_kind(kind: bytes, app: bytes, marks: int | None) -> None:
    assert qdisc(kind, app).marks == marks


def test_damaged_attributes_end_where_they_are_damaged() -> None:
    whole = attribute(1, b"abc\0") + attribute(2, b"12345678")
    for cut in range(len(whole)):
        found = dict(netlink.attributes(memoryview(whole[:cut])))
        assert set(found) <= {1, 2}
    assert list(netlink.attributes(memoryview(struct.pack("=HH", 3, 1) + bytes(8)))) == []
    assert list(netlink.attributes(memoryview(struct.pack("=HH", 60000, 1) + bytes(8)))) == []


@pytest.mark.parametrize(
    ("kind", "options", "parameters"),
    [
        (b"fq_codel", attribute(1, struct.pack("=I", 4999)) + attribute(7, b"odd") + attribute(99, bytes(4)), {"target": 4999}),
        (b"cake", attribute(2, struct.pack("=Q", 1 << 33)) + attribute(17, struct.pack("=I", 1)), {"base_rate64": 1 << 33, "split_gso": 1}),
        (b"netem", struct.pack("=6I", 1, 2, 3, 4, 5, 6) + attribute(10, struct.pack("=Q", 7)),
         {"latency": 1, "limit": 2, "loss": 3, "gap": 4, "duplicate": 5, "jitter": 6, "latency64": 7}),
        (b"tbf", attribute(1, struct.pack("=9I", 0, 0, 125000, 0, 0, 9, 10, 11, 12)),
         {"rate": 125000, "peakrate": 9, "limit": 10, "buffer": 11, "mtu": 12}),
        (b"pfifo", bytes(3), {}),
        (b"mq", b"", {}),
        (b"hhf", attribute(1, bytes(4)), None),
    ],
)
def test_parameters_of_each_kind(kind: bytes, options: bytes, parameters: dict[str, int] | None) -> None:
    assert netlink._qdisc(3, 0, 0, memoryview(attribute(1, kind + b"\0") + attribute(2, options))).parameters == parameters


def inside(script: str, *setup: str) -> str:
    """Run a Python script in a new network namespace with a shaped device."""
    if subprocess.run(["unshare", "-Urn", "true"], capture_output=True, timeout=20).returncode:
        pytest.skip("this kernel lets only root make user namespaces")
    lines = [
        "ip link set lo up", "ip link add name v0 type veth peer name v1", "ip address add 10.9.8.1/24 dev v0", "ip link set v0 up", "ip link set v1 up",
        "tc qdisc add dev v0 root handle 1: htb default 1", "tc class add dev v0 parent 1: classid 1:1 htb rate 1mbit",
        "tc qdisc add dev v0 parent 1:1 handle 10: pfifo limit 5", "ip neigh add 10.9.8.2 lladdr 02:00:00:00:00:01 dev v0", *setup,
    ]
    shell = "set -e\n" + "\n".join(lines) + '\nexec "$0" -c "$1"'
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    done = subprocess.run(["unshare", "-Urn", "sh", "-c", shell, sys.executable, script], env=environment, capture_output=True, text=True, timeout=60)
    if done.returncode and "Operation not supported" in done.stderr:
        pytest.skip(f"this kernel has no veth or htb: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_metadata_of_the_device_towards_the_target_and_what_is_private_only_when_asked() -> None:
    out = inside("""
import json
from ktrxer.collect import gather
print(json.dumps([gather("10.9.8.2"), gather("10.9.8.2", full=True), gather("192.0.2.1")]))
""", "ip route add 10.99.0.0/16 via 10.9.8.2")
    small, full, nowhere = json.loads(out)
    assert small["egress"]["device"] == "v0" and small["egress"]["driver"] == "veth" and small["egress"]["link"]["mtu"] == 1500
    assert {one["kind"]: one["handle"] for one in small["egress"]["qdiscs"]} == {"htb": "1:", "pfifo": "10:"}
    assert small["egress"]["qdiscs"][0]["parent"] == "root" and "bytes" in small["egress"]["qdiscs"][0]["stats"]
    assert small["egress"]["qdiscs"][0]["parameters"]["defcls"] == 1 and small["egress"]["qdiscs"][1]["parameters"] == {"limit": 5}
    assert set(small["egress"]["offloads"]) >= {"tso", "gso", "gro"}
    assert small["kernel"]["release"] == os.uname().release and small["cpu"]["online"] and small["clock"]["source"]
    assert "net.ipv4.tcp_rmem" in small["sysctls"] and "net.ipv4.tcp_fastopen_key" not in small["sysctls"]
    text = json.dumps(small)
    assert "10.9.8." not in text and not re.search(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", text), "neither addresses nor MACs"
    assert full["egress"]["source"] == "10.9.8.1" and re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", full["egress"]["mac"])
    assert "10.9.8.1/24" in full["addresses"]["v0"] and {"to": "10.99.0.0/16", "gateway": "10.9.8.2", "device": "v0"} in full["routes"]
    assert "unreachable" in nowhere["egress"]["error"]


def test_an_address_that_is_none() -> None:
    with pytest.raises(StateError, match="'far' is not an IP address"):
        netlink.Netlink().way_to("far")


def test_metadata_without_a_target_is_json() -> None:
    assert json.dumps(gather()) and "egress" not in gather()
