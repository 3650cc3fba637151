# SPDX-License-Identifier: MIT OR Apache-2.0
"""N downloads."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue.recipe import Plan, Setting, Test, combine, downloads, icmp, numbered
from ktrxer.catalogue.tcp_nup import streams

PLOTS = ("totals", "download", "ping", "ping_cdf", "box_totals")


@dataclass(frozen=True)
class Parameters:
    download_streams: int = streams()


def plan(setting: Setting, p: Parameters) -> Plan:
    return combine(icmp(setting), downloads(setting, numbered("TCP download", p.download_streams)), plots=PLOTS)


TEST = Test("tcp_ndown", "N TCP downloads, with pings", plan, Parameters)
