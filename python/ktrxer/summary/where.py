# SPDX-License-Identifier: MIT OR Apache-2.0
"""The places where load adds delay: the local host's own queue, up, down, or the far host's own queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ktrxer.store.meta import Runner

Floats = NDArray[np.float64]

OWN, UP, DOWN, FAR = PLACES = "this host's own queue", "up", "down", "the far host's own queue"
LOWER = "of a lower device"
MEASURABLE = 0.005  # a smaller share of the round trip is no queue


@dataclass(frozen=True)
class Part:
    """The mean delay that load adds at one place, in milliseconds, and its share of the mean that load adds to the round trip."""

    place: str
    added_ms: float
    share: float
    qdisc: str = ""


def parts(idle: Mapping[str, Floats], loaded: Mapping[str, Floats], qdisc: str = "") -> list[Part]:
    """Computed from the columns rtt_ns, up_ns, down_ns, own_queue_ns and far_queue_ns of the same probes, idle and under load.

    The parts are means, because means add up and medians do not. The list is empty if up or down is not known. A queue that was not
    measured stays a part of its direction."""

    def added(column: str) -> float | None:
        pair = [values[~np.isnan(values)] for values in (idle[column], loaded[column])]
        return float(pair[1].mean() - pair[0].mean()) / 1e6 if all(len(values) for values in pair) else None

    trip, up, down = added("rtt_ns"), added("up_ns"), added("down_ns")
    if trip is None or up is None or down is None:
        return []
    own, far = added("own_queue_ns"), added("far_queue_ns")
    places: list[tuple[str, float, str]] = [(UP, up - (own or 0.0), ""), (DOWN, down - (far or 0.0), "")]
    if own is not None:
        # A device without a queue (a bridge, a VLAN) is above another one that has it.
        places.append((OWN, own, LOWER if qdisc == "noqueue" and own > MEASURABLE * trip else qdisc))
    if far is not None:
        places.append((FAR, far, ""))
    return sorted((Part(name, ms, ms / trip if trip > 0 else 0.0, kind) for name, ms, kind in places), key=lambda part: -part.added_ms)


def own_qdisc(runner: Runner) -> str:
    """The name of the device's qdisc, from the end object of a prober."""
    return str(runner.result.get("own_qdisc", ""))[:15]
