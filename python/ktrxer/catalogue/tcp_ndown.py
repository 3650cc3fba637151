# SPDX-License-Identifier: MIT OR Apache-2.0
"""N downloads."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue.recipe import Plan, Setting, Test, combine, downloads, icmp, numbered, parameter
from ktrxer.catalogue.tcp_nup import streams

PLOTS = ("totals", "download", "ping", "ping_cdf", "box_totals")


@dataclass(frozen=True)
class Parameters:
    download_streams: str = parameter("num_cpus", "how many flows: 1 to 1000, or num_cpus for as many as this host has processors")


def plan(setting: Setting, p: Parameters) -> Plan:
    return combine(
        Plan(probes=(icmp(setting),), plots=PLOTS), downloads(setting, numbered("TCP download", streams(p.download_streams)))
    )


TEST = Test("tcp_ndown", "N TCP downloads, with pings", plan, Parameters)
