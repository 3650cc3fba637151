# SPDX-License-Identifier: MIT OR Apache-2.0
"""N uploads."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue.recipe import Plan, Setting, Test, combine, icmp, numbered
from ktrxer.catalogue.streams import cc_algos, count, delays, flows, markings, streams

PLOTS = ("totals", "upload", "ping", "ping_cdf", "box_totals")


@dataclass(frozen=True)
class Parameters:
    upload_streams: int = count()
    markings: tuple[str, ...] = markings()
    cc_algos: tuple[str, ...] = cc_algos()
    stream_delays: tuple[float, ...] = delays()


def plan(setting: Setting, p: Parameters) -> Plan:
    members = streams(numbered("TCP upload", p.upload_streams), p.markings, p.cc_algos, p.stream_delays)
    return combine(icmp(setting), flows(setting, "up", "TCP upload", members), plots=PLOTS)


TEST = Test("tcp_nup", "N TCP uploads, with pings", plan, Parameters)
