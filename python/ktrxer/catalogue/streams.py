# SPDX-License-Identifier: MIT OR Apache-2.0
"""Lists of flows by Flent's parameters: one value for each stream, with commas between. A list that is shorter than the number of flows
is used again from its beginning, except that a flow without a delay of its own has none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ktrxer.catalogue.recipe import Direction, Plan, PlanError, Setting, When, combine, downloads, parameter, uploads

STREAMS_MOST = 1000


@dataclass(frozen=True)
class Stream:
    series: str
    mark: str | None = None
    cc: str = ""  # empty: that of the setting
    delay_s: float = 0  # after the beginning of the load; it ends with the load
    host: str = ""


def count(high: int = STREAMS_MOST, default: int | str = "num_cpus", low: int = 1) -> Any:
    """A parameter: the number of flows, as Flent's tests take it."""
    about = f"how many flows: {low} to {high}, or num_cpus for as many as this host has processors"
    return parameter(default, about, low=low, high=high, words={"num_cpus": lambda: min(high, os.cpu_count() or 1)})


def markings() -> Any:
    return parameter((), "DSCP of the flows, assigned in turn")


def cc_algos() -> Any:
    return parameter((), "congestion control of the flows, assigned in turn; empty: that of --cc")


def delays() -> Any:
    return parameter((), "seconds from the beginning of the load to that of each flow", low=0, high=3600)


def turn(values: Sequence[str], place: int, default: str = "") -> str:
    """The value of a list that is assigned in turn."""
    return values[place % len(values)] if values else default


def streams(names: Sequence[str], marks: Sequence[str] = (), ccs: Sequence[str] = (), after_s: Sequence[float] = ()) -> list[Stream]:
    return [
        Stream(name, turn(marks, i) or None, turn(ccs, i), after_s[i] if i < len(after_s) else 0) for i, name in enumerate(names)
    ]  # fmt: skip


def flows(setting: Setting, direction: Direction, name: str, members: Sequence[Stream], **more: Any) -> Plan:
    """One process for the flows that begin at one time and go to one host."""
    groups: dict[tuple[float, str, bool], list[Stream]] = {}
    for one in members:
        groups.setdefault((one.delay_s, one.host, bool(one.cc)), []).append(one)
    made = []
    for (delay_s, host, has_cc), some in groups.items():
        if delay_s >= setting.length_s:
            raise PlanError(f"{some[0].series}: it would begin {delay_s:g} s after the beginning of a load of {setting.length_s:g} s")
        cc: dict[str, Any] = {"cc": tuple(one.cc for one in some)} if has_cc else {}
        when = When(setting.delay_s + delay_s, setting.length_s - delay_s)
        series, marks = [one.series for one in some], [one.mark for one in some]
        title = name if len(groups) == 1 else f"{name} of {some[0].series}"
        build = uploads if direction == "up" else downloads
        made.append(build(setting, series, marks if any(marks) else (), title, when=when, host=host, group=name, **cc, **more))
    return combine(*made)
