# SPDX-License-Identifier: MIT OR Apache-2.0
"""The summary of a run as data: figures.py makes it, consistent.py checks it, text.py prints it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ktrxer.figures.bound import Bound
from ktrxer.figures.delays import Direction
from ktrxer.figures.throughput import Throughput
from ktrxer.statistics.latency import Delays
from ktrxer.store.reasons import Reason
from ktrxer.summary.byte_outages import ByteOutage
from ktrxer.summary.losses import Loss
from ktrxer.summary.methods import Estimate, Hop
from ktrxer.summary.outages import Outage
from ktrxer.summary.steps import Step
from ktrxer.summary.times import PhaseTimes, ProcessorTime
from ktrxer.summary.where import Part

if TYPE_CHECKING:  # a comparison does not need them, nor the modules of `ktrxer run` that they import
    from ktrxer.run.egress import OwnDrops
    from ktrxer.run.own_load import OwnLoad
    from ktrxer.summary.changes import Change
    from ktrxer.summary.policer import Policed
    from ktrxer.summary.voice import Voice


@dataclass(frozen=True)
class SeriesFigures:
    name: str
    kind: str
    unit: str
    mean: float | None
    p50: float | None
    p99: float | None
    count: int
    direction: str | None = None
    klass: str | None = None
    note: str = ""
    idle_p50: float | None = None  # only for delays; the other figures are those under load


@dataclass(frozen=True)
class Late:
    """Probes that left later than the threshold of the verdict. Probers with different intervals have different thresholds."""

    count: int
    sent: int
    after_us: float


@dataclass(frozen=True)
class Responsiveness:
    rpm: float
    foreign_rpm: float | None
    self_rpm: float | None
    rating: str  # the draft's name of the class; with an outage, no better than that of a round trip of its length
    probes: str = ""  # the kind of the probes that foreign_rpm is computed from
    outage_ms: float = 0.0  # the length of the outage that limits the rating; 0: none
    limited_by: str = ""  # what makes the rating worse than that of `rpm`: an outage, or the round trips of the probes or of the flows


@dataclass(frozen=True)
class Grade:
    letter: str
    added_ms: float
    scale: str
    probes: str = ""  # the kind of the probes whose round trip is graded
    idle_ms: float = 0.0  # p50 of the idle round trip that it is compared with; it contains the queues of other traffic
    outage_ms: float = 0.0  # the length of the outage that limits the letter; 0: none


@dataclass(frozen=True)
class Summary:
    name: str
    test: str
    title: str
    created: str
    length_s: float
    targets: list[str]
    verdict: str | None
    reasons: list[Reason]
    series: list[SeriesFigures] = field(default_factory=list)
    latency: list[Direction] = field(default_factory=list)
    throughput: list[Throughput] = field(default_factory=list)
    loss: list[Loss] = field(default_factory=list)  # by phase
    loss_of_run: Loss | None = None  # of the whole run
    bounds: list[Bound] = field(default_factory=list)  # of the headline figures, as the run has stored them
    responsiveness: Responsiveness | None = None
    grade: Grade | None = None
    lateness_us: Delays | None = None
    first_lateness_us: Delays | None = None  # of the earliest probe of each train, if a train has several
    late: list[Late] = field(default_factory=list)  # by threshold
    left_out: dict[str, int] = field(default_factory=dict)  # answered probes that no figure contains, by reason
    own_load: list[OwnLoad] = field(default_factory=list)  # load of the measurement itself, by direction
    where: list[Part] = field(default_factory=list)  # parts of the delay that load adds, the largest first
    own_drops: OwnDrops | None = None  # drops in the local host's own qdisc
    estimates: list[Estimate] = field(default_factory=list)  # results of methods, with their bounds
    outages: list[Outage] = field(default_factory=list)  # times without any answer
    byte_outages: list[ByteOutage] = field(default_factory=list)  # times without any byte of the flows of a direction
    hops: list[Hop] = field(default_factory=list)  # routers of the traced routes
    voice: list[Voice] = field(default_factory=list)  # ratings of calls
    steps: list[Step] = field(default_factory=list)  # parts of a load that changes
    changes: list[Change] = field(default_factory=list)  # levels of rates and round trips that changed in mid-run
    policed: list[Policed] = field(default_factory=list)  # directions whose losses are those of a policer
    phases: list[PhaseTimes] = field(default_factory=list)  # empty if the run has no zero of its clock
    processor_time: list[ProcessorTime] = field(default_factory=list)  # where the system has reported it
    unknown: list[str] = field(default_factory=list)  # fields and series that this version does not have: in no figure
    failed: list[str] = field(default_factory=list)  # findings that could not be computed, each with the error
    contradicted: list[str] = field(default_factory=list)  # statements that were withdrawn, each with the figure that contradicts it

    def as_json(self) -> dict[str, Any]:
        made: dict[str, Any] = _finite(asdict(self))
        return made | {"reasons": [one.as_json() for one in self.reasons]}


def _finite(value: Any) -> Any:
    """Replace infinity by null, because JSON has no infinity. A quantile that falls among the lost probes is infinite."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and math.isinf(value) else value
