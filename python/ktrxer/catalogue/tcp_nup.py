# SPDX-License-Identifier: MIT OR Apache-2.0
"""N uploads."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ktrxer.catalogue.recipe import Plan, PlanError, Setting, Test, combine, icmp, numbered, parameter, uploads

PLOTS = ("totals", "upload", "ping", "ping_cdf", "box_totals")


@dataclass(frozen=True)
class Parameters:
    upload_streams: str = parameter("num_cpus", "how many flows: 1 to 1000, or num_cpus for as many as this host has processors")


def streams(text: str) -> int:
    """A number of flows as Flent's tests take it."""
    if text == "num_cpus":
        return os.cpu_count() or 1
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise PlanError(f"{text!r} is no number of flows: 1 to 1000, or num_cpus")
    return int(text)


def plan(setting: Setting, p: Parameters) -> Plan:
    return combine(
        Plan(probes=(icmp(setting),), plots=PLOTS), uploads(setting, numbered("TCP upload", streams(p.upload_streams)))
    )


TEST = Test("tcp_nup", "N TCP uploads, with pings", plan, Parameters)
