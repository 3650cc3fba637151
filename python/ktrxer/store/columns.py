# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tables of a run: one for each kind of sample, and one of events. Each column has a type; a nullable column may be empty.

Times are integer nanoseconds since the run's zero. Counts are cumulative, as the kernel or the measuring process reports them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# TOO_LATE: the answer came after the time-out of the probes. Such a probe has a delay. It counts neither as lost nor as answered in time.
ANSWERED, LOST, LOST_UP, LOST_DOWN, FAILED, SKIPPED, DUPLICATE, TOO_LATE = range(8)
LOCAL, REMOTE = 0, 1
# Of a pair of TCP probes (`ktrxer tcp`). COMPLETE: neither was lost, and the order is not known.
UNKNOWN, IN_ORDER, REORDERED, COMPLETE, FIRST_LOST, SECOND_LOST, BOTH_LOST = range(7)
PAIR_EVENTS = ("unknown", "in_order", "reordered", "complete", "first_lost", "second_lost", "both_lost")
# Why a pair of TCP probes has no result; 0: it has one.
DOUBTS = ("none", "no_conclusion", "short_segments", "connection_ended")
# Of an answer to a probe of `ktrxer trace`: its part of the measurement, and its type.
STAGES = ("search", "repeat", "loaded")
HOP_ANSWERS = ("time_exceeded", "unreachable", "echo_reply", "tcp")


@dataclass(frozen=True)
class Column:
    name: str
    type: str  # the name of the Arrow type
    nullable: bool = False
    most: int | None = None  # the largest value of a small enumeration


def _filled(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "int64") for name in names)


def _maybe(*names: str, type: str = "int64") -> tuple[Column, ...]:
    return tuple(Column(name, type, True) for name in names)


_SERIES = Column("series", "int32")
_TIME = Column("t_ns", "int64")
_END = Column("end", "uint8", most=REMOTE)

TABLES: dict[str, tuple[Column, ...]] = {
    "latency": (
        _SERIES,
        _TIME,  # send time (T1): entry into this host's packet scheduler; for a lost, failed or skipped probe, its scheduled time
        Column("seq", "int64"),
        *_maybe("rtt_ns", "up_ns", "down_ns", "up_bound_ns", "down_bound_ns", "lateness_ns"),
        Column("state", "uint8", most=TOO_LATE),
        # From the reflector: its clock at the probe's arrival, and the number of probes that it had received. estimate/one_way.py computes
        # one-way delays from them, and estimate/loss.py the direction of losses.
        *_maybe("far_ns", "far_seq"),
        # Delays in the queues of the two hosts' own devices: parts of up_ns, of down_ns and of rtt_ns.
        *_maybe("own_queue_ns", "far_queue_ns"),
        # Clock adjustments by the two kernels since the first probe: those of the far clock minus those of the local clock.
        *_maybe("adjusted_ns"),
    ),
    # far_ns: the far end's clock, for counts of the far end.
    "bytes": (_SERIES, _TIME, _END, Column("bytes", "int64"), *_maybe("bound_ns", "far_ns")),
    "tcp_info": (
        _SERIES,
        _TIME,
        _END,
        *_maybe("rtt_us", "rttvar_us", "min_rtt_us", "cwnd_segments", "ssthresh_segments", "unacked", "lost", "retransmits"),
        *_maybe("delivery_rate_bps", "pacing_rate_bps", "delivered_ce", "far_ns"),
    ),
    "udp": (_SERIES, _TIME, _END, *_filled("packets", "bytes", "ect0", "ect1", "ce"), *_maybe("lost")),
    "qdisc": (
        _SERIES,
        _TIME,
        *_filled("bytes", "packets", "drops", "overlimits", "requeues"),
        *_maybe("marks"),
        *_filled("backlog_bytes", "backlog_packets"),
    ),
    "host": (_SERIES, _TIME, *_maybe("cpu_percent", "steal_percent", type="float")),
    "value": (_SERIES, _TIME, Column("value", "double", True)),
    # An estimate of a whole measurement, in the unit of its series, at the end of the measurement. `value` is empty if the result is a
    # range alone; the bounds are empty if the method has none.
    "range": (_SERIES, _TIME, *_maybe("value", "low", "high", type="double")),
    # Two packets sent back to back. The send times and the arrivals are of two clocks, so gaps are stored, and the delay of the first
    # packet minus that of the first pair of the series. A gap is empty if a time stamp is missing: the packet was lost or not sent.
    "pair": (_SERIES, _TIME, *_filled("seq", "bytes"), *_maybe("send_gap_ns", "arrival_gap_ns", "delay_ns")),
    # Two TCP segments to a server, and the two that they elicit.
    "tcp_pair": (
        _SERIES,
        _TIME,
        *_filled("seq"),
        Column("up", "uint8", most=len(PAIR_EVENTS) - 1),
        Column("down", "uint8", most=len(PAIR_EVENTS) - 1),
        Column("doubt", "uint8", most=len(DOUBTS) - 1),
    ),
    # A sub-interval of a test of IP-layer capacity (RFC 9097), at its end. Delays are above the minimum of the test.
    "ip_capacity": (
        _SERIES,
        _TIME,
        *_filled("lasts_ns", "datagrams", "ip_bytes", "lost", "reordered", "duplicates"),
        *_maybe("delay_variation_min_ns", "delay_variation_max_ns", "rtt_variation_min_ns", "rtt_variation_max_ns"),
    ),
    # An answer to a probe with a small hop limit, at the send time of the probe.
    "hop": (
        _SERIES,
        _TIME,
        *_filled("seq", "hop", "flow"),
        Column("stage", "uint8", most=len(STAGES) - 1),
        Column("answer", "uint8", most=len(HOP_ANSWERS) - 1),
        Column("address", "string"),
        *_maybe("rtt_ns", "own_queue_ns"),
    ),
    "events": (_TIME, Column("runner", "int32", True), Column("name", "string"), Column("text", "string")),
}
KINDS = tuple(TABLES)


def names(kind: str) -> tuple[str, ...]:
    return tuple(column.name for column in TABLES[kind])


@cache
def schema(kind: str) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(c.name, pa.type_for_alias(c.type), nullable=c.nullable) for c in TABLES[kind]])
