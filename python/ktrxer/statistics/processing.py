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


def ppt_of_probes(probes: Mapping[int, npt.ArrayLike], heading_bytes: int = 1502, resolution_ns: int = 1) -> Ppt:
    """ppt() from the send times and arrivals of both packets (rows as those of pairs()), without the probes that the sender split."""
    if len(probes) != 2:
        raise ValueError(f"two sizes of the trailing packet give the slope, not {len(probes)}")
    trains = [(*native.pair_times(times), native.uint32(size)) for size, times in probes.items()]
    sizes = native.uint32(heading_bytes), native.uint32(resolution_ns)
    return native.result(Ppt, native.call("ppt_probes", *trains[0], *trains[1], *sizes, text=True))


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
