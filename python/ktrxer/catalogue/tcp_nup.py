# SPDX-License-Identifier: MIT OR Apache-2.0
"""N uploads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ktrxer.catalogue.recipe import Plan, Setting, Test, combine, icmp, numbered, parameter, uploads

PLOTS = ("totals", "upload", "ping", "ping_cdf", "box_totals")


def streams() -> Any:
    """A parameter: the number of flows, as Flent's tests take it."""
    about = "how many flows: 1 to 1000, or num_cpus for as many as this host has processors"
    return parameter("num_cpus", about, low=1, high=1000, words={"num_cpus": lambda: os.cpu_count() or 1})


@dataclass(frozen=True)
class Parameters:
    upload_streams: int = streams()


def plan(setting: Setting, p: Parameters) -> Plan:
    return combine(icmp(setting), uploads(setting, numbered("TCP upload", p.upload_streams)), plots=PLOTS)


TEST = Test("tcp_nup", "N TCP uploads, with pings", plan, Parameters)
