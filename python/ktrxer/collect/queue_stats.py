# SPDX-License-Identifier: MIT OR Apache-2.0
"""The statistics that each kind of qdisc and class has of its own (TCA_STATS_APP), by the names of `tc -s -j`.

Layouts are those of <linux/pkt_sched.h>. An older kernel sends a shorter structure: the fields that are missing there are left out. A
damaged structure gives fewer fields, and never an error.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Mapping, Sequence

ATTRIBUTE = struct.Struct("=HH")
Values = dict[str, int | float]

# Each field: name, and the letter of its type in the module struct; names without a colon are 32-bit counts.
_QDISCS: dict[str, tuple[int, str]] = {  # kind: offset of the first field, fields
    "codel": (0, "maxpacket count lastcount ldelay drop_next:i drop_overlimit ecn_mark dropping ce_mark"),
    "fq_codel": (
        4, "maxpacket drop_overlimit ecn_mark new_flow_count new_flows_len old_flows_len ce_mark memory_used drop_overmemory",
    ),
    "pie": (0, "prob:Q delay avg_dq_rate - pkts_in dropped overlimit maxq ecn_mark"),
    "fq_pie": (0, "pkts_in dropped overlimit overmemory ecn_mark new_flow_count new_flows_len old_flows_len memory_used"),
    "fq": (
        0, "gc:Q highprio:Q retrans:Q throttled:Q flows_plimit:Q pkts_too_long:Q alloc_errors:Q next_packet_delay:q flows inactive"
        " throttled_flows latency ce_mark:Q horizon_drops:Q horizon_caps:Q fastpath:Q band0_drops:Q band1_drops:Q band2_drops:Q"
        " band0_packets band1_packets band2_packets",
    ),
    "dualpi2": (
        0, "prob delay_c delay_l packets_in_c packets_in_l maxq ecn_mark step_marks credit:i memory_used max_memory_used memory_limit",
    ),
    "red": (0, "early pdrop other marked"),
    "sfb": (0, "earlydrop penaltydrop bucketdrop queuedrop childdrop marked maxqlen maxprob avgprob"),
    "choke": (0, "early pdrop other marked matched"),
}  # fmt: skip
_CLASSES: dict[str, tuple[int, str]] = {
    "fq_codel": (4, "deficit:i ldelay count lastcount dropping drop_next:i"),
    "htb": (0, "lended borrowed giants tokens:i ctokens:i"),
    "hfsc": (0, "work:Q rtwork:Q period level"),
    "sfq": (0, "allot:i"),
    "drr": (0, "deficit"),
}
_FQ_CODEL_TYPES = {False: 0, True: 1}  # TCA_FQ_CODEL_XSTATS_QDISC, TCA_FQ_CODEL_XSTATS_CLASS: the first field of both
_CERTAIN = {"pie": (1 << 64) - 1, "dualpi2": (1 << 32) - 1}  # the drop probability 1

# Attributes of cake, in the order of the two enumerations; a dash: not read.
_CAKE = (
    "-", "capacity_estimate", "memory_limit", "memory_used", "avg_hdr_offset", "min_network_size", "max_network_size", "min_adj_size",
    "max_adj_size", "-", "deficit:i", "count", "dropping", "drop_next:i", "blue_prob", "blue_timer:i",
)  # fmt: skip
_CAKE_TIN = (
    "-", "sent_packets", "sent_bytes", "drops", "dropped_bytes", "ack_drops", "ack_dropped_bytes", "ecn_mark", "ecn_marked_bytes",
    "backlog_packets", "backlog_bytes", "threshold_rate", "target_us", "interval_us", "way_indirect_hits", "way_misses", "way_collisions",
    "peak_delay_us", "avg_delay_us", "base_delay_us", "sparse_flows", "bulk_flows", "unresponsive_flows", "max_pkt_len", "flow_quantum",
)  # fmt: skip
_CAKE_TINS = 10  # TCA_CAKE_STATS_TIN_STATS
TINS_MOST = 8  # TC_CAKE_MAX_TINS


def attributes(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Type and value of each attribute; a damaged rest is ignored."""
    at = 0
    while at + 4 <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if length < 4 or at + length > len(data):
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


def parse(kind: str, data: memoryview, *, of_class: bool = False) -> tuple[Values, list[Values]]:
    """The statistics of a qdisc or class, and those of its tins."""
    if kind == "cake":
        return _cake(data)
    at, fields = (_CLASSES if of_class else _QDISCS).get(kind, (0, ""))
    if kind == "fq_codel" and (len(data) < 4 or struct.unpack_from("=I", data)[0] != _FQ_CODEL_TYPES[of_class]):
        return {}, []
    found = _structure(data, at, fields.split())
    if "prob" in found:
        found["prob"] /= _CERTAIN[kind]
    return found, []


def _structure(data: memoryview, at: int, fields: list[str]) -> Values:
    found: Values = {}
    for field in fields:
        name, _, letter = field.partition(":")
        size = 8 if letter in ("Q", "q") else 4
        if at + size > len(data):
            break
        if name != "-":
            found[name] = struct.unpack_from(f"={letter or 'I'}", data, at)[0]
        at += size
    return found


def _cake(data: memoryview) -> tuple[Values, list[Values]]:
    known = dict(attributes(data))
    tins = [_numbers(tin, _CAKE_TIN) for _, tin in attributes(known.get(_CAKE_TINS, data[:0]))]
    return _numbers(data, _CAKE), tins[:TINS_MOST]


def _numbers(data: memoryview, names: Sequence[str]) -> Values:
    found: Values = {}
    for number, value in attributes(data):
        name, _, signed = (names[number - 1] if 0 < number <= len(names) else "-").partition(":")
        if name != "-" and len(value) in (4, 8):
            found[name] = int.from_bytes(value, sys.byteorder, signed=bool(signed))
    return found


def marks(kind: str, values: Mapping[str, int | float], tins: list[Values]) -> int | None:
    """Packets that were marked; None if the kind does not mark, or is unknown here."""
    if kind == "cake":
        counts = [tin["ecn_mark"] for tin in tins if "ecn_mark" in tin]
    elif "ecn_mark" in values:
        counts = [values["ecn_mark"], values.get("ce_mark", 0)]
    else:
        counts = [values[name] for name in ("marked", "ce_mark") if name in values]
    return int(sum(counts)) if counts else None


# The unit of the numbers, for the axis of a plot. Counts have no unit.
_UNITS = (
    ("us", ("ldelay", "drop_next", "delay", "delay_c", "delay_l", "blue_timer", "_us")),
    ("ns", ("latency", "next_packet_delay")),
    ("bytes", ("_bytes", "_size", "maxpacket", "memory_used", "max_memory_used", "memory_limit", "max_pkt_len", "flow_quantum", "deficit",
               "allot", "work", "rtwork")),
    ("bytes/s", ("capacity_estimate", "threshold_rate")),
)  # fmt: skip


# Numbers of the moment. All others are counts, which only grow.
_GAUGES = frozenset({
    "ldelay", "count", "lastcount", "dropping", "drop_next", "maxpacket", "deficit", "allot", "new_flows_len", "old_flows_len",
    "memory_used", "memory_limit", "prob", "delay", "avg_dq_rate", "maxq", "flows", "inactive", "throttled_flows", "latency",
    "next_packet_delay", "tokens", "ctokens", "level", "capacity_estimate", "avg_hdr_offset", "min_network_size", "max_network_size",
    "min_adj_size", "max_adj_size", "threshold_rate", "target_us", "interval_us", "peak_delay_us", "avg_delay_us", "base_delay_us",
    "sparse_flows", "bulk_flows", "unresponsive_flows", "max_pkt_len", "flow_quantum", "backlog_bytes", "backlog_packets", "blue_prob",
    "blue_timer", "maxqlen", "maxprob", "avgprob", "delay_c", "delay_l", "credit", "max_memory_used", "band0_packets", "band1_packets",
    "band2_packets",
})  # fmt: skip


def is_count(name: str) -> bool:
    return name not in _GAUGES


def unit_of(name: str) -> str:
    for unit, endings in _UNITS:
        if any(name == ending or (ending[0] == "_" and name.endswith(ending)) for ending in endings):
            return unit
    return ""
