# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runner `qdisc`: messages of the kernel and the output of tc give the same rows; damaged and hostile ones give no wrong rows.

The messages follow <linux/pkt_sched.h>, the texts the sources of iproute2.
"""

import json
import random
import struct

import pytest
from ktrxer.collect import netlink, queue_stats
from ktrxer.runners import tc_json, tc_text
from state_output import MS, fed, frame, values
from test_collect import attribute, inside

CODEL = struct.pack("=4Ii4I", 1514, 3, 2, 4999, -7, 1, 12, 1, 5)
FQ_CODEL = struct.pack("=10I", 0, 1514, 1, 11, 4, 2, 3, 6, 4096, 8)
FQ_CODEL_FLOW = struct.pack("=IiIIIIi", 1, -12, 15000, 3, 2, 1, 900)
PIE = struct.pack("=Q8I", (1 << 63), 15000, 77, 0, 100, 9, 2, 33, 13)
FQ_PIE = struct.pack("=9I", 100, 2, 3, 4, 15, 6, 7, 8, 9000)
FQ = struct.pack("=7Qq4I3Q", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
RED = struct.pack("=4I", 1, 2, 3, 16)
HTB = struct.pack("=3I2i", 5, 6, 0, -100, 200)
HFSC = struct.pack("=2Q2I", 1000, 500, 12, 1)
SFQ = struct.pack("=i", -3000)
U32, U64 = struct.Struct("=I").pack, struct.Struct("=Q").pack


def tin(base):
    wide = {3, 5, 7, 9, 12}
    return b"".join(attribute(number, U64(base + number) if number in wide else U32(base + number)) for number in range(2, 26))


CAKE = (attribute(2, U64(10**9)) + attribute(3, U32(4 << 20)) + attribute(4, U32(70_000)) + attribute(5, U32(14))
        + attribute(6, U32(28)) + attribute(7, U32(1500)) + attribute(8, U32(66)) + attribute(9, U32(1538))
        + attribute(10, b"".join(attribute(n + 1, tin(100 * n)) for n in range(3))))
CAKE_FLOW = attribute(11, struct.pack("=i", -5)) + attribute(12, U32(4)) + attribute(13, U32(1)) + attribute(14, struct.pack("=i", 3000))
TIN_KEYS = {"threshold_rate": 12, "sent_bytes": 3, "backlog_bytes": 11, "target_us": 13, "interval_us": 14, "peak_delay_us": 18,
            "avg_delay_us": 19, "base_delay_us": 20, "sent_packets": 2, "way_indirect_hits": 15, "way_misses": 16, "way_collisions": 17,
            "drops": 4, "ecn_mark": 8, "ack_drops": 6, "sparse_flows": 21, "bulk_flows": 22, "unresponsive_flows": 23, "max_pkt_len": 24,
            "flow_quantum": 25}
QUEUE = {"bytes": 1 << 40, "packets": 77, "drops": 7, "overlimits": 9, "requeues": 8, "backlog": 6000, "qlen": 5}

# kind, of a class, the kernel's structure, and the members of tc's JSON; of a class its text.
KINDS = [
    ("codel", False, CODEL, {"count": 3, "lastcount": 2, "ldelay": 4999, "dropping": True, "drop_next": -7, "maxpacket": 1514, "ecn_mark": 12,
                             "drop_overlimit": 1, "ce_mark": 5}),
    ("fq_codel", False, FQ_CODEL, {"maxpacket": 1514, "drop_overlimit": 1, "new_flow_count": 4, "ecn_mark": 11, "ce_mark": 6, "new_flows_len": 2,
                                   "old_flows_len": 3, "memory_used": 4096, "drop_overmemory": 8}),
    ("fq_codel", True, FQ_CODEL_FLOW, "  deficit -12 count 3 lastcount 2 ldelay 15ms dropping drop_next 900us"),
    ("pie", False, PIE, {"prob": 0.5, "delay": 15000, "avg_dq_rate": 77, "pkts_in": 100, "overlimit": 2, "dropped": 9, "maxq": 33, "ecn_mark": 13}),
    ("fq_pie", False, FQ_PIE, {"pkts_in": 100, "overlimit": 3, "overmemory": 4, "dropped": 2, "ecn_mark": 15, "new_flow_count": 6,
                               "new_flows_len": 7, "old_flows_len": 8, "memory_used": 9000}),
    ("fq", False, FQ, {"flows": 9, "inactive": 10, "next_packet_delay": 8, "gc": 1, "highprio": 2, "retrans": 3, "throttled": 4, "latency": 12,
                       "ce_mark": 13, "flows_plimit": 5, "pkts_too_long": 6, "alloc_errors": 7, "horizon_drops": 14, "horizon_caps": 15}),
    ("red", False, RED, {"marked": 16, "early": 1, "pdrop": 2, "other": 3}),
    ("htb", True, HTB, " lended: 5 borrowed: 6 giants: 0\n tokens: -100 ctokens: 200"),
    ("hfsc", True, HFSC, " period 12 work 1000 bytes rtwork 500 bytes level 1 "),
    ("sfq", True, SFQ, " allot -3000 "),
    ("cake", False, CAKE, {"memory_used": 70_000, "memory_limit": 4 << 20, "capacity_estimate": 10**9, "min_network_size": 28,
                           "max_network_size": 1500, "min_adj_size": 66, "max_adj_size": 1538, "avg_hdr_offset": 14,
                           "tins": [{name: 100 * n + number for name, number in TIN_KEYS.items()} for n in range(3)]}),
    ("cake", True, CAKE_FLOW, "  deficit 4294967291 count 4 dropping drop_next 3ms"),
    ("dualpi2", False, struct.pack("=8Ii3I", 0xFFFFFFFF, 15000, 900, 7, 8, 33, 13, 4, -10, 5000, 6000, 7000),
     {"prob": 1.0, "delay_c": 15000, "delay_l": 900, "packets_in_c": 7, "packets_in_l": 8, "maxq": 33, "ecn_mark": 13, "step_marks": 4, "credit": -10,
      "memory_used": 5000, "max_memory_used": 6000, "memory_limit": 7000}),
    ("tbf", False, b"", {}),
]


def message(kind, app, of_class=False, handle=0x100000, parent=0xFFFFFFFF):
    stats = attribute(1, struct.pack("=QI", QUEUE["bytes"], QUEUE["packets"])) + attribute(4, app)
    stats += attribute(3, struct.pack("=5I", *(QUEUE[name] for name in ("qlen", "backlog", "drops", "requeues", "overlimits"))))
    body = attribute(1, kind.encode() + b"\0") + attribute(7, stats)
    return netlink._qdisc(3, handle, parent, memoryview(body), of_class=of_class)


def document(kind, members):
    """As tc prints it."""
    own = {"kind": kind, "handle": "10:", "dev": "eth0", "root": True, "refcnt": 2, "options": {"limit": 10240}} | QUEUE | members
    return json.dumps([own], separators=(",", ":"))


def class_text(kind, own, handle="10:1a", backlog="6000b"):
    """As tc 6.1 prints a class."""
    return (f"class {kind} {handle} parent 10: leaf 20: prio 0 rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b \n"
            f" Sent {QUEUE['bytes']} bytes {QUEUE['packets']} pkt (dropped {QUEUE['drops']}, overlimits {QUEUE['overlimits']} requeues "
            f"{QUEUE['requeues']}) \n backlog {backlog} {QUEUE['qlen']}p requeues {QUEUE['requeues']}\n{own}\n\n")


@pytest.mark.parametrize(("kind", "of_class", "app", "members"), KINDS, ids=[f"{kind}{'-class' if cls else ''}" for kind, cls, *_ in KINDS])
def test_netlink_and_tc_give_the_same(kind, of_class, app, members):
    ours = message(kind, app, of_class)
    ((device, theirs),) = tc_text.classes(class_text(kind, members), "eth0") if of_class else tc_json.queues(document(kind, members), "eth0")
    assert device == "eth0" and theirs.kind == kind and theirs.handle == (0x10001A if of_class else 0x100000)
    for name in ("bytes", "packets", "drops", "overlimits", "requeues", "backlog_bytes", "backlog_packets", "marks"):
        assert getattr(ours, name) == getattr(theirs, name), name
    extra = {"throttled_flows"}  # tc prints it by a name that it prints twice
    assert {name: value for name, value in ours.own.items() if name not in extra} == pytest.approx(theirs.own)
    assert len(ours.tins) == len(theirs.tins) == (3 if kind == "cake" and not of_class else 0)
    for one, other in zip(ours.tins, theirs.tins, strict=True):
        assert {name: one[name] for name in TIN_KEYS} == other


@pytest.mark.parametrize(("kind", "of_class", "app"), [case[:3] for case in KINDS])
def test_a_structure_that_is_cut_off_has_fewer_fields_and_the_same_values(kind, of_class, app):
    whole, tins = queue_stats.parse(kind, memoryview(app), of_class=of_class)
    for cut in range(len(app)):
        part, fewer = queue_stats.parse(kind, memoryview(app[:cut]), of_class=of_class)
        assert part.items() <= whole.items() and len(fewer) <= len(tins)
    random.seed(18)
    for _ in range(300):
        queue_stats.parse(kind, memoryview(random.randbytes(random.randrange(300))), of_class=of_class)


def test_a_flow_is_not_read_as_a_qdisc():
    assert queue_stats.parse("fq_codel", memoryview(FQ_CODEL_FLOW)) == ({}, [])
    assert queue_stats.parse("fq_codel", memoryview(FQ_CODEL), of_class=True) == ({}, [])
    assert len(queue_stats.parse("cake", memoryview(attribute(10, b"".join(attribute(n, tin(n)) for n in range(1, 60)))))[1]) == 8


def queue_text(qdiscs, classes=None):
    return f"#qdisc\n{qdiscs}" + (f"\n#class\n{classes}" if classes is not None else "")


def test_rows_of_a_cake_with_tins_and_flows():
    first = document("cake", dict(KINDS[10][3]))
    later = json.loads(first)
    later[0]["bytes"] += 5
    later[0]["tins"][2]["peak_delay_us"] = 9999
    flow = KINDS[11][3]
    begin, end = queue_text(first, class_text("cake", flow)), queue_text(json.dumps(later), class_text("cake", flow, backlog="9000b"))
    samples = fed("qdisc", frame(begin), frame(end, 200 * MS), device="eth0", flows=True)
    assert samples.garbage == 0, samples.first_garbage
    tables = samples._rows
    assert {series.name for series in samples.series.values()} == {
        "qdisc eth0 cake 10:", "qdisc eth0 cake 10: tin Voice peak_delay_us", "qdisc eth0 cake 10: flow 10:1a backlog_bytes"}, "what changed"
    assert tables["qdisc"][2] == [1 << 40, (1 << 40) + 5] and tables["qdisc"][1] == [0, 200 * MS]
    assert values(samples)["qdisc eth0 cake 10: tin Voice peak_delay_us"] == [(0, 218.0), (200 * MS, 9999.0)]


def test_words_between_the_json_of_tc():
    """Some kinds print plain text into the JSON."""
    sfq = '[{"kind":"sfq","handle":"8001:","root":true,"refcnt":2,limit 127p quantum 1514b depth 127 divisor 1024 "bytes":9,"packets":1}]'
    assert tc_json.queues(sfq, "eth0")[0][1].bytes == 9


@pytest.mark.parametrize("text", [
    "", "qdisc noqueue 0: root refcnt 2", "[", "[[[", "[" * 100_000, '{"kind":"fq"}', '[{"kind":7}]', '[{"handle":"1:"}]', '[{"kind":"fq","bytes":-1}]',
    '[{"kind":"fq","bytes":1e999}]', '[{"kind":"fq","bytes":NaN}]', f'[{{"kind":"fq","bytes":{10**30}}}]', '[{"kind":"fq","dev":5}]', '\x00\xff', "null",
])
def test_output_that_tc_does_not_print(text):
    samples = fed("qdisc", frame(queue_text(text)))
    assert samples.garbage >= 1 and samples.take() == {}


@pytest.mark.parametrize("text", ["Sent 5 bytes", "class ", "class htb", "class htb 1:1 parent far", "class htb 1:1 root\n Sent 9999999999999999999 bytes 1 pkt"])
def test_classes_that_tc_does_not_print(text):
    root = json.dumps([{"kind": "htb", "handle": "1:", "root": True} | QUEUE])
    assert fed("qdisc", frame(queue_text(root, text)), device="eth0").garbage >= 1
    assert tc_text.classes("class htb 1:1 root leaf 10: prio 0\n", "eth0")[0][1].bytes == 0, "without statistics"


def test_a_device_with_many_queues_has_its_root_only():
    many = [{"kind": "mq", "handle": "8001:", "dev": "eth0", "root": True} | QUEUE]
    many += [{"kind": "fq_codel", "handle": "0:", "dev": "eth0", "parent": f"8001:{n:x}"} | QUEUE for n in range(1, 64)]
    assert list(values(fed("qdisc", frame(queue_text(json.dumps(many)))), "qdisc")) == ["qdisc eth0 mq 8001:"]
    two = values(fed("qdisc", frame(queue_text(json.dumps(many[:3])))), "qdisc")
    assert list(two) == ["qdisc eth0 mq 8001:", "qdisc eth0 fq_codel at 8001:1", "qdisc eth0 fq_codel at 8001:2"]


def test_flows_without_end_have_a_limit():
    classes, more = ("".join(class_text("fq_codel", "", f"1:{n:x}", backlog) for n in range(1, 500)) for backlog in ("5b", "7Kb"))
    root = json.dumps([{"kind": "fq_codel", "handle": "1:", "root": True} | QUEUE])
    samples = fed("qdisc", frame(queue_text(root, classes)), frame(queue_text(root, more), MS), device="eth0", flows=True)
    assert sum("flow 1:" in series.name for series in samples.series.values()) == 64
    assert [name for _, name, _ in samples.events] == ["flows_not_recorded"]


# --------------------------------------------------------------------------------------------------- against this kernel


def test_counters_equal_those_of_tc():
    out = inside("""
import json, socket, subprocess
from ktrxer import runners
from ktrxer.runners import Options
from ktrxer.runners.samples import Clock, Samples
runner = runners.find("qdisc")
source = runner.here(runner.parameters(), Options(host="10.9.8.2"))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def rows():
    samples = Samples({}, Clock(0, 0), to_ns=10**9, name="qdisc")
    source.sample(samples, 5)
    names = {one.id: one.name for one in samples.series.values()}
    table = samples.take()["qdisc"]
    return {names[n]: {c: table[c][i] for c in table} for i, n in enumerate(table["series"])}
first = rows()
for _ in range(200):
    s.sendto(bytes(1000), ("10.9.8.2", 9))
import time
began = time.process_time()
for _ in range(50):
    rows()
print((time.process_time() - began) / 50)
while True:  # until nothing has left in between
    mine = rows()
    tc = [subprocess.run(["tc", "-s", *words, "show", "dev", "v0"], capture_output=True, text=True).stdout for words in (["-j", "qdisc"], ["class"])]
    if rows() == mine:
        break
print(json.dumps([first, mine]))
from ktrxer.runners import tc_json, tc_text
print(json.dumps([[one.__dict__ for _, one in found] for found in (tc_json.queues(tc[0], "v0"), tc_text.classes(tc[1], "v0"))]))
source.close()
""")
    cost, ours, theirs = out.splitlines()
    assert float(cost) < 0.005, "a sample must not be felt"
    first, mine = json.loads(ours)
    qdiscs, classes = json.loads(theirs)
    assert set(mine) == {"qdisc v0 htb 1:", "qdisc v0 pfifo 10:", "qdisc v0 class htb 1:1"}
    pairs = [("qdisc v0 htb 1:", qdiscs[0]), ("qdisc v0 pfifo 10:", qdiscs[1]), ("qdisc v0 class htb 1:1", classes[0])]
    for name, one in pairs:
        for counter in ("bytes", "packets", "drops", "overlimits", "requeues", "backlog_bytes", "backlog_packets"):
            assert mine[name][counter] == one[counter], (name, counter)
    assert mine["qdisc v0 pfifo 10:"]["drops"] > first["qdisc v0 pfifo 10:"]["drops"] and mine["qdisc v0 pfifo 10:"]["backlog_packets"] <= 5


def test_own_statistics_equal_those_of_tc():
    out = inside("""
import json, subprocess, socket
from ktrxer.collect.netlink import Netlink
from ktrxer.runners import tc_json, tc_text
index = socket.if_nametoindex("v0")
netlink = Netlink()
while True:
    ours = [one.own for one in netlink.classes(index)]
    text = subprocess.run(["tc", "-s", "class", "show", "dev", "v0"], capture_output=True, text=True).stdout
    if [one.own for one in netlink.classes(index)] == ours:
        break
print(json.dumps([ours, [one.own for _, one in tc_text.classes(text, "v0")]]))
""")
    ours, theirs = json.loads(out)
    assert len(ours) == len(theirs) == 1 and set(ours[0]) == {"lended", "borrowed", "giants", "tokens", "ctokens"}
    assert ours[0].items() <= theirs[0].items()
