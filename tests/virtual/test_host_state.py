# SPDX-License-Identifier: MIT OR Apache-2.0
"""Statistics of every kind of queue, as this project reads them from netlink. Reference: `tc -s` in the same guest, whose kernel has all
kinds. The kernels of many machines lack most of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from guests import Lab

# argv: the commands that make the queues of the device v0. Packets of three flows fill them.
SCRIPT = """
import json, socket, subprocess, sys, time
from ktrxer.collect.netlink import Netlink
from ktrxer.runners import tc_json, tc_text
for words in ["link add v0 type veth peer name v1", "address add 10.9.8.1/24 dev v0", "link set v0 up", "link set v1 up",
              "neigh add 10.9.8.2 lladdr 02:00:00:00:00:01 dev v0"]:
    subprocess.run(["ip", *words.split()], check=True)
for words in sys.argv[1:]:
    subprocess.run(["tc", *words.split()], check=True)
index, netlink = socket.if_nametoindex("v0"), Netlink()
for port in range(3):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind(("10.9.8.1", 5000 + port))
    for _ in range(40):
        sender.sendto(bytes(1000), ("10.9.8.2", 9))
time.sleep(0.05)
def ours():
    return [[one.__dict__ for one in found] for found in (netlink.qdiscs(index), netlink.classes(index))]
def theirs(parse, *words):
    text = subprocess.run(["tc", "-s", *words, "show", "dev", "v0"], capture_output=True, text=True, check=True).stdout
    return [one.__dict__ for _, one in parse(text, "v0")]
for _ in range(100):  # until nothing has happened between the two
    mine, others = ours(), [theirs(tc_json.queues, "-j", "qdisc"), theirs(tc_text.classes, "class")]
    if ours() == mine:
        break
print(json.dumps([mine, others]))
"""
TBF = "qdisc add dev v0 root handle 1: tbf rate 1mbit burst 5kb latency 1s"
BELOW = "qdisc add dev v0 parent 1:1 handle 10:"
UNPRINTED = {"throttled_flows", "fastpath"}  # tc prints the first by a name that it prints twice; tc 6.1 does not know the other
COUNTERS = ("kind", "handle", "parent", "bytes", "packets", "drops", "overlimits", "requeues", "backlog_bytes", "backlog_packets")


@pytest.mark.parametrize(("kind", "setup", "own"), [
    ("codel", (TBF, f"{BELOW} codel"), {"maxpacket", "ldelay"}),
    ("fq_codel", (TBF, f"{BELOW} fq_codel"), {"new_flow_count", "old_flows_len", "memory_used"}),
    ("fq", (TBF, f"{BELOW} fq"), {"flows", "gc"}),
    ("pie", (TBF, f"{BELOW} pie"), {"prob", "delay", "maxq"}),
    ("fq_pie", (TBF, f"{BELOW} fq_pie"), {"new_flow_count", "memory_used"}),
    ("red", (TBF, f"{BELOW} red limit 60000 min 5000 max 20000 avpkt 1000 burst 10 probability 0.1"), {"early", "pdrop"}),
    ("sfq", (TBF, f"{BELOW} sfq"), set()),
    ("cake", ("qdisc add dev v0 root handle 10: cake bandwidth 1mbit",), {"memory_used", "capacity_estimate"}),
    ("htb", ("qdisc add dev v0 root handle 10: htb default 1", "class add dev v0 parent 10: classid 10:1 htb rate 1mbit"), set()),
    ("hfsc", ("qdisc add dev v0 root handle 10: hfsc default 1", "class add dev v0 parent 10: classid 10:1 hfsc sc rate 1mbit"), set()),
    ("drr", (TBF, f"{BELOW} drr"), set()),
])  # fmt: skip
def test_statistics_of_each_kind(lab: Lab, kind: str, setup: tuple[str, ...], own: set[str]) -> None:
    Path(lab.folder / "script.py").write_text(SCRIPT)
    done = lab("vm", "--device", "uml", "--", sys.executable, "script.py", *setup)
    assert done.returncode == 0, done.stderr
    (qdiscs, classes), (theirs, their_classes) = json.loads(done.stdout)
    assert [one["kind"] for one in qdiscs] == [one["kind"] for one in theirs] and kind in {one["kind"] for one in qdiscs}
    assert len(classes) == len(their_classes)
    for one, other in zip([*qdiscs, *classes], [*theirs, *their_classes], strict=True):
        assert {name: one[name] for name in COUNTERS} == {name: other[name] for name in COUNTERS}
        assert (one["marks"] or 0) == (other["marks"] or 0), "tc does not print a count of 0 of some kinds"
        for name, value in one["own"].items():
            if name in other["own"]:  # tc leaves out most of those that are 0, and rounds times to three digits
                assert value == pytest.approx(other["own"][name], rel=0.01), (one["kind"], name)
            elif name not in UNPRINTED and not name.startswith("band"):
                assert value <= 0, (one["kind"], name, value)
        assert len(one["tins"]) == len(other["tins"])
        for mine, tin in zip(one["tins"], other["tins"], strict=True):
            assert tin.items() <= mine.items()
    (queue,) = [one for one in qdiscs if one["handle"] == 0x100000]
    assert queue["kind"] == kind and own <= queue["own"].keys() and queue["packets"] + queue["drops"] + queue["backlog_packets"] > 0
    if kind in ("fq_codel", "cake", "sfq"):
        flows = [one for one in classes if one["kind"] == kind]
        assert 1 <= len(flows) <= 9 and any(flow["backlog_packets"] for flow in flows), "those of the kernel itself are some of them"
    if kind == "cake":
        assert len(queue["tins"]) == 3 and sum(tin["sent_packets"] for tin in queue["tins"]) > 0
