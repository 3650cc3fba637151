# SPDX-License-Identifier: MIT OR Apache-2.0
"""The columns of each table of a run. Made by contract/generate.py from contract/store.toml."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    name: str
    type: str  # the name of the Arrow type
    nullable: bool = False
    values: tuple[str, ...] = ()  # of an enumeration: the names of 0, 1, ...


STATES = ("answered", "lost", "lost_up", "lost_down", "failed", "skipped", "duplicate", "too_late")
ANSWERED, LOST, LOST_UP, LOST_DOWN, FAILED, SKIPPED, DUPLICATE, TOO_LATE = range(8)
ENDS = ("local", "remote")
LOCAL, REMOTE = range(2)
PAIR_EVENTS = ("unknown", "in_order", "reordered", "complete", "first_lost", "second_lost", "both_lost")
UNKNOWN, IN_ORDER, REORDERED, COMPLETE, FIRST_LOST, SECOND_LOST, BOTH_LOST = range(7)
DOUBTS = ("none", "no_conclusion", "short_segments", "connection_ended")
NONE, NO_CONCLUSION, SHORT_SEGMENTS, CONNECTION_ENDED = range(4)
STAGES = ("search", "repeat", "loaded", "same_flow")
SEARCH, REPEAT, LOADED, SAME_FLOW = range(4)
HOP_ANSWERS = ("time_exceeded", "unreachable", "echo_reply", "tcp")
TIME_EXCEEDED, UNREACHABLE, ECHO_REPLY, TCP = range(4)

TABLES: dict[str, tuple[Column, ...]] = {
    "latency": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("seq", "int64"),
        Column("rtt_ns", "int64", True),
        Column("up_ns", "int64", True),
        Column("down_ns", "int64", True),
        Column("up_bound_ns", "int64", True),
        Column("down_bound_ns", "int64", True),
        Column("lateness_ns", "int64", True),
        Column("state", "uint8", values=STATES),
        Column("far_ns", "int64", True),
        Column("far_seq", "int64", True),
        Column("own_queue_ns", "int64", True),
        Column("far_queue_ns", "int64", True),
        Column("dwell_ns", "int64", True),
        Column("adjusted_ns", "int64", True),
    ),
    "bytes": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("end", "uint8", values=ENDS),
        Column("bytes", "int64"),
        Column("bound_ns", "int64", True),
        Column("far_ns", "int64", True),
    ),
    "tcp_info": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("end", "uint8", values=ENDS),
        Column("rtt_us", "int64", True),
        Column("rttvar_us", "int64", True),
        Column("min_rtt_us", "int64", True),
        Column("cwnd_segments", "int64", True),
        Column("ssthresh_segments", "int64", True),
        Column("unacked", "int64", True),
        Column("lost", "int64", True),
        Column("retransmits", "int64", True),
        Column("delivery_rate_bps", "int64", True),
        Column("pacing_rate_bps", "int64", True),
        Column("delivered_ce", "int64", True),
        Column("far_ns", "int64", True),
    ),
    "udp": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("end", "uint8", values=ENDS),
        Column("packets", "int64"),
        Column("bytes", "int64"),
        Column("ect0", "int64"),
        Column("ect1", "int64"),
        Column("ce", "int64"),
        Column("lost", "int64", True),
    ),
    "qdisc": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("bytes", "int64"),
        Column("packets", "int64"),
        Column("drops", "int64"),
        Column("overlimits", "int64"),
        Column("requeues", "int64"),
        Column("marks", "int64", True),
        Column("backlog_bytes", "int64"),
        Column("backlog_packets", "int64"),
    ),
    "host": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("cpu_percent", "float", True),
        Column("steal_percent", "float", True),
    ),
    "value": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("value", "double", True),
    ),
    "range": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("value", "double", True),
        Column("low", "double", True),
        Column("high", "double", True),
    ),
    "pair": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("seq", "int64"),
        Column("bytes", "int64"),
        Column("send_gap_ns", "int64", True),
        Column("arrival_gap_ns", "int64", True),
        Column("delay_ns", "int64", True),
    ),
    "tcp_pair": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("seq", "int64"),
        Column("up", "uint8", values=PAIR_EVENTS),
        Column("down", "uint8", values=PAIR_EVENTS),
        Column("doubt", "uint8", values=DOUBTS),
    ),
    "ip_capacity": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("lasts_ns", "int64"),
        Column("datagrams", "int64"),
        Column("ip_bytes", "int64"),
        Column("lost", "int64"),
        Column("reordered", "int64"),
        Column("duplicates", "int64"),
        Column("delay_variation_min_ns", "int64", True),
        Column("delay_variation_max_ns", "int64", True),
        Column("rtt_variation_min_ns", "int64", True),
        Column("rtt_variation_max_ns", "int64", True),
    ),
    "hop": (
        Column("series", "int32"),
        Column("t_ns", "int64"),
        Column("seq", "int64"),
        Column("hop", "int64"),
        Column("flow", "int64"),
        Column("stage", "uint8", values=STAGES),
        Column("answer", "uint8", values=HOP_ANSWERS),
        Column("address", "string"),
        Column("rtt_ns", "int64", True),
        Column("own_queue_ns", "int64", True),
    ),
    "events": (
        Column("t_ns", "int64"),
        Column("runner", "int32", True),
        Column("name", "string"),
        Column("text", "string"),
    ),
}
