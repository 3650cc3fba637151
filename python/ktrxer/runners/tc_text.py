# SPDX-License-Identifier: MIT OR Apache-2.0
"""The output of `tc -s class show dev DEVICE`. It is read as text, because iproute2 6.1 prints no JSON of classes."""

from __future__ import annotations

import re

from ktrxer.collect.netlink import QUEUES_MOST, Qdisc
from ktrxer.collect.queue_stats import Values, marks
from ktrxer.runners.samples import NotUnderstood
from ktrxer.runners.tc_json import NUMBER_MOST, ROOT, handle_number

_HEAD = re.compile(r"class (\S{1,16}) (?:([0-9a-f]{0,4}:[0-9a-f]{0,4}) )?(?:(root)|parent ([0-9a-f]{0,4}:[0-9a-f]{0,4}))(?: |$)")
_SENT = re.compile(r"Sent (\d{1,19}) bytes (\d{1,19}) pkt")
_DROPPED = re.compile(r"\(dropped (\d{1,10}), overlimits (\d{1,10}) requeues (\d{1,10})\)")
_BACKLOG = re.compile(r"backlog (\d{1,19})([KMG]?)b (\d{1,10})p")
_OWN = re.compile(r"\b([a-z_]{1,40}):? (-?\d{1,19}(?:\.\d{1,9})?)(ns|us|ms|s|b|Kb|Mb)?(?=\s|$)")
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}  # of a backlog, which tc rounds to them when it is within 16 bytes
_UNITS = {"": 1, "ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6, "b": 1, "Kb": 1 << 10, "Mb": 1 << 20}
_SIGNED = {"deficit", "drop_next", "blue_timer", "allot", "tokens", "ctokens"}  # of cake printed without their sign


def classes(text: str, device: str) -> list[tuple[str, Qdisc]]:
    """Device and class."""
    found: list[tuple[str, Qdisc]] = []
    for part in re.split(r"(?m)^(?=class )", text)[:QUEUES_MOST]:
        if part.strip():
            found.append((device, _class(part)))
    return found


def _class(text: str) -> Qdisc:
    head = _HEAD.match(text)
    if head is None:
        raise NotUnderstood(f"not a class of tc: {text[:60]}")
    _, _, rest = text.partition("\n")
    sent, dropped, backlog = _SENT.search(rest), _DROPPED.search(rest), _BACKLOG.search(rest)
    drops, overlimits, requeues = map(int, dropped.groups()) if dropped is not None else (0, 0, 0)
    size = int(backlog[1]) * _SIZES[backlog[2]] if backlog is not None else 0
    count, packets = map(int, sent.groups()) if sent is not None else (0, 0)
    if max(size, count, packets) > NUMBER_MOST:
        raise NotUnderstood(f"a count of tc is too large: {text[:60]}")
    own = _own(rest[backlog.end() :].partition("\n")[2]) if backlog is not None else {}
    parent = ROOT if head[3] else handle_number(head[4])
    length = int(backlog[3]) if backlog is not None else 0
    return Qdisc(
        0, head[1], handle_number(head[2]), parent, count, packets, drops, overlimits, requeues, size, length, marks(head[1], own, []),
        None, own,
    )  # fmt: skip


def _own(text: str) -> Values:
    """The statistics that a kind prints below its counters: times in microseconds, sizes in bytes."""
    found: Values = {}
    for name, number, unit in _OWN.findall(text):
        value = float(number) * _UNITS[unit]
        if abs(value) <= NUMBER_MOST:
            whole = int(value) if value == int(value) else value
            found[name] = whole - (1 << 32) if name in _SIGNED and 1 << 31 <= whole < 1 << 32 else whole
    if re.search(r"\bdropping\b", text):
        found["dropping"] = 1
    return found
