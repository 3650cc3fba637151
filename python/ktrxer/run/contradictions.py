# SPDX-License-Identifier: MIT OR Apache-2.0
"""Do the probes and the flows of one run agree on the round trip, and on the share of lost probes? UDP and ICMP probes of the same class to
one far end share the path and its queues.

The medians of each second are compared in pairs, so that a queue that rises and falls does not count as a difference. The interval of the
median difference (95 %, by order statistics: no distribution is assumed) must lie beyond a tolerance, since the two hosts answer the
kinds in different places."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ktrxer.statistics.latency import NORMAL, grade, median, quantile
from ktrxer.statistics.throughput import receiver_end
from ktrxer.store import Run
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP, TOO_LATE
from ktrxer.store.meta import Runner
from ktrxer.store.reasons import Reason, reason

BLOCK_NS = 1_000_000_000
BLOCKS_LEAST, SAMPLES_LEAST = 8, 3
TOLERANCE_MS, TOLERANCE_SHARE = 1.0, 0.1
TOLERANCE_LOST = 0.1  # of the probes: both kinds lose in the same full queue, but not in the same moments
PROTOCOLS = ("UDP", "ICMP")
IDLE_BLOCK_NS, IDLE_BLOCKS_LEAST = 250_000_000, 4
IDLE_TOLERANCE_MS, IDLE_TOLERANCE_SHARE = 5.0, 0.2  # the limit of the best grade
STANDING_BLOCK_NS = 500_000_000


def contradictions(run: Run) -> Iterator[Reason]:
    """A reason for each pair of kinds that contradict each other."""
    phase = run.meta.phase("load")
    span = (phase.from_ns, phase.to_ns) if phase is not None else (0, run.meta.length_ns)
    paths = {_path(runner) for runner in run.meta.runners}
    for path in sorted(paths):
        yield from _of_path(run, span, path, "" if len(paths) == 1 else f"{' '.join(filter(None, path))}: ")


def losses_apart(run: Run) -> Iterator[Reason]:
    """A reason for each path on which one kind of probes is lost more often than the other, by the same comparison of each second."""
    span = (0, run.meta.length_ns)
    for path in sorted({_path(runner) for runner in run.meta.runners}):
        udp, icmp = ({block: lost / sent for block, (sent, lost) in _lost(run, kind, span, path).items()} for kind in PROTOCOLS)
        found = _difference(udp, icmp, TOLERANCE_LOST)
        if found is not None and (found[1] > found[3] or found[2] < -found[3]):
            counts = [np.sum(list(_lost(run, kind, span, path).values()), axis=0) for kind in PROTOCOLS]
            (sent_udp, lost_udp), (sent_icmp, lost_icmp) = (map(int, one) for one in counts)
            yield reason("losses_apart", lost_udp=lost_udp, sent_udp=sent_udp, lost_icmp=lost_icmp, sent_icmp=sent_icmp)


def idle_apart(run: Run) -> Iterator[Reason]:
    """A reason for each kind of probes whose idle round trips before and after the load are apart. Those under load are compared with
    those before it."""
    phases = [run.meta.phase(name) for name in ("idle_before", "idle_after")]
    for path in sorted({_path(runner) for runner in run.meta.runners}):
        for protocol in PROTOCOLS:
            found = [
                np.asarray(list(_probes(run, protocol, (phase.from_ns, phase.to_ns), path, IDLE_BLOCK_NS).values()))
                for phase in phases if phase is not None
            ]  # fmt: skip
            if len(found) < len(phases) or any(len(blocks) < IDLE_BLOCKS_LEAST for blocks in found):
                continue
            before, after = (median(blocks) for blocks in found)
            low, high = sorted(found, key=median)
            # Nine blocks of ten are beyond those of the other time: a single burst of other traffic is no reason.
            if quantile(high, 0.1) - quantile(low, 0.9) > max(IDLE_TOLERANCE_MS, IDLE_TOLERANCE_SHARE * max(before, after)):
                yield reason("idle_apart", protocol=protocol, before_ms=float(before), after_idle_ms=float(after))


def idle_delayed(run: Run) -> Iterator[Reason]:
    """A reason for each kind of probes whose grade depends on the idle round trip that the load is compared with: before the load a queue
    of others (or a device that saves power) delayed the probes by more than at another time of the run.

    The least round trip is that of blocks of half a second, as their medians: jitter of single packets is no queue. A queue that others
    fill in the whole run, without a pause of half a second, is in both and cannot be seen."""
    load = run.meta.phase("load")
    idle = run.meta.phase("idle_before") or run.meta.phase("idle_after")
    if load is None or idle is None:
        return
    for path in sorted({_path(runner) for runner in run.meta.runners}):
        for protocol in PROTOCOLS:
            spans = [(idle.from_ns, idle.to_ns), (load.from_ns, load.to_ns), (0, run.meta.length_ns)]
            found = [np.asarray(list(_probes(run, protocol, span, path, STANDING_BLOCK_NS).values())) for span in spans]
            if any(len(blocks) < IDLE_BLOCKS_LEAST for blocks in found):
                continue
            before, loaded, least = median(found[0]), median(found[1]), float(found[2].min())
            letters = [grade(max(0.0, loaded - one)) for one in (before, least)]
            if before - least > max(IDLE_TOLERANCE_MS, IDLE_TOLERANCE_SHARE * before) and letters[0] != letters[1]:
                yield reason(
                    "idle_delayed", protocol=protocol, before_ms=float(before), least_ms=least, grade=letters[0], other_grade=letters[1]
                )


def _path(runner: Runner | None) -> tuple[str, str]:
    """Far end and family: IPv4 and IPv6 may take different paths."""
    return (str(runner.host or ""), str(runner.parameters.get("family") or "")) if runner is not None else ("", "")


def _of_path(run: Run, span: tuple[int, int], path: tuple[str, str], of_path: str) -> Iterator[Reason]:
    trips = {protocol: _probes(run, protocol, span, path) for protocol in PROTOCOLS}
    flows = _flows(run, span, path)
    both = _difference(trips["UDP"], trips["ICMP"])
    if both is not None and not -both[3] <= both[0] <= both[3] and (both[1] > both[3] or both[2] < -both[3]):
        yield _apart(of_path, "UDP", "ICMP", trips["UDP"], trips["ICMP"], both)
    # A fair queue keeps probes out of the flows' own queue. Nothing keeps the flows out of the queue of probes of their class.
    own = _difference(trips["UDP"], flows)
    if own is not None and own[1] > own[3]:
        yield _apart(of_path, "UDP", "the flows' own", trips["UDP"], flows, own)


def _apart(
    of_path: str, one: str, other: str, a: dict[int, float], b: dict[int, float], found: tuple[float, float, float, float]
) -> Reason:
    middle = [median(list(blocks.values())) for blocks in (a, b)]
    difference, low, high = map(float, found[:3])
    return reason(
        "round_trips_apart", of_path=of_path, one=one, other=other, one_ms=float(middle[0]), other_ms=float(middle[1]),
        difference_ms=difference, from_ms=low, to_ms=high,
    )  # fmt: skip


def _difference(a: dict[int, float], b: dict[int, float], fixed: float | None = None) -> tuple[float, float, float, float] | None:
    """Median of the paired differences, its interval, and the tolerance: `fixed`, or that of milliseconds."""
    shared = sorted(a.keys() & b.keys())
    if len(shared) < BLOCKS_LEAST:
        return None
    apart = np.sort(np.asarray([a[block] - b[block] for block in shared]))
    n = len(apart)
    rank = max(0, math.floor(n / 2 - NORMAL * math.sqrt(n) / 2) - 1)
    tolerance = max(TOLERANCE_MS, TOLERANCE_SHARE * max(median([blocks[k] for k in shared]) for blocks in (a, b)))
    return median(apart), float(apart[rank]), float(apart[n - 1 - rank]), tolerance if fixed is None else fixed


def _blocks(t_ns: NDArray[np.int64], ms: NDArray[np.float64], block_ns: int) -> dict[int, float]:
    """The median of each block with enough samples."""
    order = np.lexsort((ms, where := t_ns // block_ns))
    where, ms = where[order], ms[order]
    starts = np.flatnonzero(np.concatenate([[len(where) > 0], where[1:] != where[:-1]]))
    counts = np.diff(starts, append=len(where))
    medians = (ms[starts + (counts - 1) // 2] + ms[starts + counts // 2]) / 2
    enough = counts >= SAMPLES_LEAST
    return dict(zip(where[starts][enough].tolist(), medians[enough].tolist(), strict=True))


def _of_kind(run: Run, protocol: str, path: tuple[str, str]) -> Iterator[Mapping[str, Any]]:
    """The columns of each series of best effort."""
    for series in run.meta.of_kind("latency"):
        runner = run.meta.runner_of(series)
        if runner is not None and runner.protocol == protocol and _path(runner) == path and series.klass in (None, "BE"):
            yield run.arrays(series)


def _lost(run: Run, protocol: str, span: tuple[int, int], path: tuple[str, str]) -> dict[int, tuple[int, int]]:
    """Sent and lost probes of each block with enough of them."""
    sent, gone = Counter[int](), Counter[int]()
    for arrays in _of_kind(run, protocol, path):
        lost = np.isin(arrays["state"], (LOST, LOST_UP, LOST_DOWN))
        inside = (lost | np.isin(arrays["state"], (ANSWERED, TOO_LATE))) & (arrays["t_ns"] >= span[0]) & (arrays["t_ns"] < span[1])
        sent.update((arrays["t_ns"][inside] // BLOCK_NS).tolist())
        gone.update((arrays["t_ns"][inside & lost] // BLOCK_NS).tolist())
    return {block: (count, gone[block]) for block, count in sent.items() if count >= SAMPLES_LEAST}


def _probes(run: Run, protocol: str, span: tuple[int, int], path: tuple[str, str], block_ns: int = BLOCK_NS) -> dict[int, float]:
    times, trips = [np.empty(0, np.int64)], [np.empty(0)]
    for arrays in _of_kind(run, protocol, path):
        inside = (arrays["state"] == ANSWERED) & (arrays["t_ns"] >= span[0]) & (arrays["t_ns"] < span[1]) & ~np.isnan(arrays["rtt_ns"])
        times.append(arrays["t_ns"][inside])
        trips.append(arrays["rtt_ns"][inside] / 1e6)
    return _blocks(np.concatenate(times), np.concatenate(trips), block_ns)


def _flows(run: Run, span: tuple[int, int], path: tuple[str, str]) -> dict[int, float]:
    times, trips = [np.empty(0, np.int64)], [np.empty(0)]
    for series in run.meta.of_kind("tcp_info"):
        if series.direction is None:  # a socket of another program
            continue
        if series.klass not in (None, "BE") or _path(run.meta.runner_of(series)) != path:
            continue
        arrays = run.arrays(series)
        sender = arrays["end"] == 1 - receiver_end(series.direction)
        inside = sender & (arrays["t_ns"] >= span[0]) & (arrays["t_ns"] < span[1]) & ~np.isnan(arrays["rtt_us"])
        times.append(arrays["t_ns"][inside])
        trips.append(arrays["rtt_us"][inside] / 1e3)
    return _blocks(np.concatenate(times), np.concatenate(trips), BLOCK_NS)
