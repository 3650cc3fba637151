# SPDX-License-Identifier: MIT OR Apache-2.0
"""Outages: times in which no probe of any kind was answered, with the bounds of their length and their direction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.run import losses
from ktrxer.statistics.latency import GRADES, grade
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP, TOO_LATE
from ktrxer.units import delay

Times = NDArray[np.int64]

MS, S = 1e6, 1e9
LEAST_NS = 200_000_000  # a shorter time without an answer is a loss of packets
QUEUE_NS = 1_000_000_000  # a longer time in which each probe is lost is no effect of a queue
MOMENT_NS = 2_000_000  # probes that leave in the same part of this length leave at the same moment
MOMENTS_LEAST = 5
CHANCE = 1e-4  # of one time in the run in which so many moments are lost one after the other by chance
AGAIN = 0.5, 5  # the share of losses behind a loss without any evidence: of so many, so many
SENT = (ANSWERED, LOST, LOST_UP, LOST_DOWN, TOO_LATE)


@dataclass(frozen=True)
class Outage:
    """`low_ms`: between the first and the last lost probe. `high_ms`: between the answered probes before and after; None: none was answered
    after it, so that the end is not known."""

    from_s: float  # when the first lost probe was sent
    low_ms: float
    high_ms: float | None
    direction: str  # "up", "down", "both"; empty: not known
    lost: int
    probes: list[str]  # kinds

    @property
    def length_ms(self) -> float:
        return self.low_ms if self.high_ms is None else (self.low_ms + self.high_ms) / 2


def outages(run: Run, kind_of: dict[int, str]) -> list[Outage]:
    """`kind_of`: the kind of the probes of each series. A kind that is never answered is no part: it is blocked, and not out."""
    kinds: dict[str, list[tuple[Times, Times, Times]]] = {}
    for series in run.meta.of_kind("latency"):
        rows = run.arrays(series)
        known = losses.session_of(run.meta, series) is not None
        state = np.asarray(losses.placed(run.meta, series, rows, certain=False) if known else rows["state"], np.int64)
        there = np.isin(state, SENT)
        kinds.setdefault(kind_of[series.id], []).append((rows["t_ns"][there].astype(np.int64), state[there], _trips(rows)[there]))
    used = {kind: parts for kind, parts in kinds.items() if any(np.isin(state, (ANSWERED, TOO_LATE)).any() for _, state, _ in parts)}
    if not used:
        return []
    times, states, trips = (np.concatenate([part[i] for parts in used.values() for part in parts]) for i in (0, 1, 2))
    names = np.repeat(np.arange(len(used)), [sum(len(part[0]) for part in parts) for parts in used.values()])
    order = np.argsort(times, kind="stable")
    load = run.meta.phase("load")
    span = (load.from_ns, load.to_ns) if load is not None else (0, 0)
    return _found(times[order], states[order], trips[order], names[order], tuple(used), span)


def _trips(rows: Mapping[str, NDArray[Any]]) -> Times:
    """0: not known."""
    return np.nan_to_num(rows["rtt_ns"].astype(np.float64)).astype(np.int64)


def _found(t: Times, state: Times, trips: Times, names: Times, kinds: tuple[str, ...], load: tuple[int, int]) -> list[Outage]:
    """Probes of several classes leave at the same moment and meet the same full queue, so moments are counted, and not probes."""
    lost = np.isin(state, (LOST, LOST_UP, LOST_DOWN))
    answered, took = t[~lost], trips[~lost]
    _, first, moment = np.unique(t // MOMENT_NS, return_index=True, return_inverse=True)
    dead = np.bincount(moment, ~lost) == 0
    loaded = (t[first] >= load[0]) & (t[first] < load[1])
    edges = np.diff(np.concatenate([[0], dead.astype(np.int8), [0]]))
    made = []
    for begin, end in zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True):
        inside = slice(int(first[begin]), int(first[end]) if end < len(first) else len(t))
        from_ns, last_ns = int(t[inside][0]), int(t[inside][-1])
        if last_ns - from_ns < LEAST_NS or end - begin < MOMENTS_LEAST or end - begin < _by_chance(dead, loaded, begin, end):
            continue
        before, after = np.searchsorted(answered, from_ns) - 1, np.searchsorted(answered, last_ns, "right")
        # A flow that has filled the queue reduces its rate a round trip later, and meanwhile the queue may drop each packet.
        if loaded[begin] and before >= 0 and last_ns - from_ns < min(took[before], QUEUE_NS):
            continue
        since_ns = int(answered[before]) if before >= 0 else from_ns
        high = (int(answered[after]) - since_ns) / MS if after < len(answered) else None
        found = [kinds[i] for i in np.unique(names[inside]).tolist()]
        made.append(Outage(from_ns / S, (last_ns - from_ns) / MS, high, _direction(state[inside]), inside.stop - inside.start, found))
    return made


def _by_chance(dead: NDArray[np.bool_], loaded: NDArray[np.bool_], begin: int, end: int) -> float:
    """So many dead moments in a row the path has by chance, by its losses at other times, under load or not as these. A full queue loses
    several in a row: the chance is that of a loss behind a loss, if that is larger."""
    same = loaded == loaded[begin]
    others = same.copy()
    others[begin:end] = False
    share = float(dead[others].mean()) if others.any() else 0.0
    pairs = others[:-1] & others[1:] & dead[:-1]
    again = (int((pairs & dead[1:]).sum()) + AGAIN[0]) / (int(pairs.sum()) + AGAIN[1])
    return math.log(CHANCE / len(dead)) / math.log(min(0.99, max(share, again)))


def _direction(state: NDArray[np.int64]) -> str:
    """The direction of those probes whose direction of loss is known."""
    up, down = int((state == LOST_UP).sum()), int((state == LOST_DOWN).sum())
    if up and down:
        return "both"
    return "up" if up else "down" if down else ""


def longest(found: Sequence[Outage]) -> float:
    """The least length of the longest outage in ms; 0: none. It leaves out one kind of probes that has no answer up to the end, because the
    program at the far end may have ended, and not the path."""
    return max((one.low_ms for one in found if one.high_ms is not None or len(one.probes) > 1), default=0.0)


def capped(letter: str, outage_ms: float) -> str:
    """A packet that leaves when an outage begins waits for its length: no grade is better than that of such a delay."""
    letters = [name for _, name in GRADES] + ["F"]
    return max(letter, grade(outage_ms), key=letters.index) if outage_ms else letter


def line(one: Outage) -> str:
    where = {"up": ", up", "down": ", down", "both": ", in both directions"}.get(one.direction, ", direction not known")
    low = delay(one.low_ms)
    between = f"at least {low}, up to the last probe" if one.high_ms is None else f"{low} to {delay(one.high_ms)}"
    return f"no answer for {between}, from {one.from_s:.2f} s on{where} ({one.lost} probes of {', '.join(one.probes)})"
