# SPDX-License-Identifier: MIT OR Apache-2.0
"""Capacity of the end link and dPPT from compound probes: the estimators of `ktrxer ppt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ktrxer.statistics import native


@dataclass(frozen=True)
class Ppt:
    """Figures are None where the reading does not support them. Intervals are those of 95 %."""

    reading: str
    capacity_bit_s: float | None = None
    capacity_low_bit_s: float | None = None
    capacity_high_bit_s: float | None = None
    delta_ns: float | None = None  # dPPT: of the trailing packet minus that of the heading packet
    delta_low_ns: float | None = None
    delta_high_ns: float | None = None
    fixed_trailing_ns: float | None = None  # PPT_t and PPT_h of the paper: 8 (s2 - s1) / c by construction, no measurement of the host
    fixed_heading_ns: float | None = None
    service_ns: float | None = None
    coalescing_period_ns: float | None = None


def ppt(gaps_ns: Mapping[int, npt.ArrayLike], resolution_ns: int = 0) -> Ppt:
    """Gaps between heading and trailing packet at the receiver, for both sizes of the trailing packet in bytes on the wire.

    resolution_ns: of the receiver's clock; 0: by the gaps."""
    if len(gaps_ns) != 2:
        raise ValueError(f"two sizes of the trailing packet give the slope, not {len(gaps_ns)}")
    trains = [(*native.numbers(gaps, np.int64), native.uint32(size)) for size, gaps in gaps_ns.items()]
    return native.result(Ppt, native.call("ppt_gaps", *trains[0], *trains[1], native.uint32(resolution_ns), text=True))


@dataclass(frozen=True)
class PptChecks:
    """Probes that can refute the model: two sizes fit any line. Sizes are those on the wire."""

    middle_bytes: int  # of the trailing packet, between both sizes of the estimate, behind their heading packet
    middle: npt.ArrayLike
    shorter_heading_bytes: int
    shorter_bytes: int  # of the trailing packet behind the shorter heading packet
    shorter: npt.ArrayLike


def ppt_of_probes(
    probes: Mapping[int, npt.ArrayLike], heading_bytes: int = 1502, resolution_ns: int = 1, checks: PptChecks | None = None
) -> Ppt:
    """ppt() from the send times and arrivals of both packets (rows as those of pairs()), without the probes that the sender split.

    checks: the readings `bent` and `not_covered` then refuse a path or a receiver that the model of two sizes does not fit, and a receiver
    that serves one packet after the other in constant time has this time in service_ns."""
    if len(probes) != 2:
        raise ValueError(f"two sizes of the trailing packet give the slope, not {len(probes)}")
    given = list(probes.items())
    given += [(checks.middle_bytes, checks.middle), (checks.shorter_bytes, checks.shorter)] if checks else [(0, ()), (0, ())]
    if checks and not min(probes) < checks.middle_bytes < max(probes):
        raise ValueError(f"the middle size, {checks.middle_bytes}, is not between {min(probes)} and {max(probes)}")
    if checks and not 0 < checks.shorter_heading_bytes < heading_bytes:
        raise ValueError(f"the shorter heading packet, {checks.shorter_heading_bytes}, is not shorter than {heading_bytes}")
    trains = [word for size, times in given for word in (*native.pair_times(times), native.uint32(size))]
    shorter = native.uint32(checks.shorter_heading_bytes if checks else 0)
    sizes = shorter, native.uint32(heading_bytes), native.uint32(resolution_ns)
    return native.result(Ppt, native.call("ppt_four_probes", *trains, *sizes, text=True))


@dataclass(frozen=True)
class PptPlan:
    narrow_link: int  # from 1 at the sender; the last one with the least capacity
    trailing_max_bytes: float  # larger trailing packets arrive with dispersion
    least_ratio: float  # of heading to trailing packet
    least_ratio_by_rule: float  # sufficient at every node
    size1_bytes: int
    size2_bytes: int
    least_step_bytes: int  # between both sizes, for the receiver's clock


def ppt_plan(capacities_bit_s: Sequence[int], heading_bytes: int = 1502, resolution_ns: int = 1, frame_gap_bits: int = 96) -> PptPlan:
    """Sizes for a path whose links are known, from the sender to the receiver. The examples of the paper have no gap between two frames."""
    sizes = native.uint32(heading_bytes), native.uint32(resolution_ns), native.uint32(frame_gap_bits)
    return native.result(PptPlan, native.call("ppt_plan", *native.numbers(capacities_bit_s, np.uint64), *sizes, text=True))
