# SPDX-License-Identifier: MIT OR Apache-2.0
"""One TCP flow, up, down, or one of each at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ktrxer.catalogue.recipe import Plan, Setting, Test, When, combine, downloads, icmp, loaded, parameter, uploads

PLOTS = ("totals", "ping", "ping_cdf", "box_totals")


@dataclass(frozen=True)
class Parameters:
    directions: Literal["both", "up", "down"] = parameter("both", "directions of the flows")
    ping: bool = parameter(True, "pings, and idle time before and after the load")
    marking: str = parameter("", "DSCP of the flows; empty: not marked")


def plan(setting: Setting, p: Parameters) -> Plan:
    when = loaded(setting) if p.ping else When(length_s=setting.length_s)
    marks = [p.marking] if p.marking else []
    up, down = p.directions != "down", p.directions != "up"
    return combine(
        icmp(setting) if p.ping else Plan(total_s=setting.length_s),
        downloads(setting, ["TCP download"], marks, when=when) if down else Plan(),
        uploads(setting, ["TCP upload"], marks, when=when) if up else Plan(),
        plots=("totals", *(["download"] if down and not up else ["upload"] if up and not down else []), *(PLOTS[1:] if p.ping else ())),
    )


TEST = Test("tcp_bidirectional", "One TCP upload and one download at the same time, with pings", plan, Parameters)
