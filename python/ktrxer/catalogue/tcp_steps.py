# SPDX-License-Identifier: MIT OR Apache-2.0
"""A few uploads that begin and end at different times: how long does it take until they share the path?

Times are multiples of the idle phase (--delay), as in Flent's tests of this kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import Plan, PlanError, Setting, Step, Test, When, combine, distinct, icmp, parameter, uploads
from ktrxer.catalogue.streams import turn

MOST = 16
PLOTS = ("totals", "upload", "tcp_cwnd", "tcp_rtt")


@dataclass(frozen=True)
class Parameters:
    labels: tuple[str, ...] = parameter(("stream 1", "stream 2"), "the end of the name of each flow", most=MOST)
    cc_algos: tuple[str, ...] = parameter((), "congestion control of the flows, assigned in turn; empty: that of --cc", most=MOST)
    starts: tuple[float, ...] = parameter((0.0, 1.0), "start of each flow, in idle phases", low=0, high=100, most=MOST)
    lengths: tuple[Literal["length", "delay", "rest"], ...] = parameter(
        ("rest", "length"),
        "each flow lasts as long as the load (--for), as the idle phase (--delay), or to the end of the others",
        most=MOST,
    )
    after: float = parameter(0.0, "idle phases after the last flow", low=0, high=100)
    ping: Literal["no", "yes", "prio"] = parameter("no", "probes beside the flows; prio: further ones with DSCP 4, ToS 0x10")


def plan(setting: Setting, p: Parameters) -> Plan:
    if not (p.labels and p.starts and p.lengths):
        raise PlanError("labels, starts and lengths need a value each")
    distinct(p.labels)
    if setting.delay_s <= 0:
        raise PlanError("the flows of this test begin one idle phase after each other: --delay must be above 0")
    starts = [setting.delay_s * p.starts[min(i, len(p.starts) - 1)] for i in range(len(p.labels))]
    kinds = [p.lengths[min(i, len(p.lengths) - 1)] for i in range(len(p.labels))]
    fixed = {"length": setting.length_s, "delay": setting.delay_s}
    end = max((start + fixed[kind] for start, kind in zip(starts, kinds, strict=True) if kind != "rest"), default=setting.length_s)
    lasts = [fixed[kind] if kind != "rest" else end - start for start, kind in zip(starts, kinds, strict=True)]
    if min(lasts) <= 0:
        raise PlanError(f"{p.labels[lasts.index(min(lasts))]}: it would begin when all other flows have ended")
    return combine(
        *(_flow(setting, p, i, When(start, length)) for i, (start, length) in enumerate(zip(starts, lasts, strict=True))),
        Plan() if p.ping == "no" else rrul.low_delay(setting) if p.ping == "prio" else icmp(setting),
        plots=PLOTS if p.ping == "no" else (*PLOTS, "ping", "ping_cdf"),
        total_s=end + p.after * setting.delay_s,
        steps=_steps(p.labels, starts, lasts),
    )


def _flow(setting: Setting, p: Parameters, place: int, when: When) -> Plan:
    name = f"TCP {p.labels[place]}"
    cc = turn(p.cc_algos, place)
    more: dict[str, Any] = {"cc": (cc,)} if cc else {}
    return uploads(setting, [name], name=name, when=when, group="TCP upload", **more)


def _steps(labels: Sequence[str], starts: Sequence[float], lasts: Sequence[float]) -> list[Step]:
    """The flows that are on from each change to the next one."""
    ends = [start + length for start, length in zip(starts, lasts, strict=True)]
    changes = sorted({*starts, *ends})
    made = []
    for begin, end in pairwise(changes):
        on = [label for label, start, stop in zip(labels, starts, ends, strict=True) if start <= begin < stop]
        made.append(Step(", ".join(on)[:100] or "idle", begin, end))
    return made


TEST = Test("tcp_2up_delay", "Two TCP uploads, the second of which begins later", plan, Parameters)
