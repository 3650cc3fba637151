# SPDX-License-Identifier: MIT OR Apache-2.0
"""N downloads."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue.recipe import Plan, Setting, Test, combine, icmp, numbered
from ktrxer.catalogue.streams import cc_algos, count, delays, flows, markings, streams

PLOTS = ("totals", "download", "ping", "ping_cdf", "box_totals")


@dataclass(frozen=True)
class Parameters:
    download_streams: int = count()
    markings: tuple[str, ...] = markings()
    cc_algos: tuple[str, ...] = cc_algos()
    stream_delays: tuple[float, ...] = delays()


def plan(setting: Setting, p: Parameters) -> Plan:
    members = streams(numbered("TCP download", p.download_streams), p.markings, p.cc_algos, p.stream_delays)
    return combine(icmp(setting), flows(setting, "down", "TCP download", members), plots=PLOTS)


TEST = Test("tcp_ndown", "N TCP downloads, with pings", plan, Parameters)
