# SPDX-License-Identifier: MIT OR Apache-2.0
"""The fate of pairs of TCP segments by the server's answers alone (OneProbe): the estimators of `ktrxer tcp`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ktrxer.statistics import native

NO_DATA = -(1 << 31)
EVENTS = ("unknown", "in_order", "reordered", "complete", "first_lost", "second_lost", "both_lost")


@dataclass(frozen=True)
class Answer:
    """A segment of the server."""

    data: int | None  # 0 and 1: the segments that the probes elicit; negative: an earlier one; None: no data
    acknowledged: int  # how many of the probes: 0, 1, 2
    again: bool = False  # it came later than a first transmission can


@dataclass(frozen=True)
class TcpPair:
    up: str  # of the probes; one of EVENTS
    down: str  # of the segments that they elicit
    whole: bool = True  # no retransmission follows


@dataclass(frozen=True)
class Share:
    """A share with the interval of Wilson at 95 %, as if the events were independent."""

    count: int
    of: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Losses:
    """The losses of one direction."""

    lost: Share  # of the segments of pairs whose event is known
    reordered: Share  # of the pairs whose order is known


def tcp_pair(answers: Iterable[Answer]) -> TcpPair:
    """The fate of two probes and of the two segments that they elicit, by the segments of the server in the order of their arrival."""
    rows = [(NO_DATA if answer.data is None else answer.data, answer.acknowledged, int(answer.again)) for answer in answers]
    for data, acknowledged, _ in rows:
        if not NO_DATA <= data <= 1 or acknowledged not in (0, 1, 2):
            raise ValueError(f"segment {data} that acknowledges {acknowledged}: segments are 0, 1 or earlier ones, and the probes are two")
    found = native.call("tcp_pair", native.numbers(np.array(rows, np.int64), np.int64)[0], ctypes.c_size_t(len(rows)))
    numbers = {name: int(value) for name, value in found}
    return TcpPair(EVENTS[numbers["up"]], EVENTS[numbers["down"]], bool(numbers["whole"]))


def tcp_losses(pairs: Iterable[TcpPair]) -> tuple[Losses, Losses]:
    """Loss and reordering up and down."""
    for name in (rows := [(pair.up, pair.down) for pair in pairs]):
        if not {*name} <= {*EVENTS}:
            raise ValueError(f"{name} are none of {', '.join(EVENTS)}")
    events = np.array([[EVENTS.index(up), EVENTS.index(down)] for up, down in rows], np.int64)
    found = native.call("tcp_losses", native.numbers(events, np.int64)[0], ctypes.c_size_t(len(rows)))
    shares = [native.result(Share, part) for part in native.groups(found, "count")[1:]]
    return Losses(shares[0], shares[1]), Losses(shares[2], shares[3])
