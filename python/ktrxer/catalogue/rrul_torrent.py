# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bulk flows that yield, beside one flow each way that does not."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import Plan, Setting, Test, combine, downloads, icmp, numbered, parameter, uploads


@dataclass(frozen=True)
class Parameters:
    torrent_streams: int = parameter(6, "yielding flows in each direction", low=1, high=500)
    torrent_cc: str = parameter("ledbat", "their congestion control; ledbat is no part of Linux, lp is")
    torrent_marking: str = parameter("CS1", "their DSCP")


def plan(setting: Setting, p: Parameters) -> Plan:
    marks, cc = [p.torrent_marking], (p.torrent_cc,)
    return combine(
        icmp(setting),
        rrul.probes(setting, ("BE", "BK", "EF"), ("BE", "BK", "EF")),
        uploads(setting, numbered("TCP upload Torrent", p.torrent_streams), marks, "TCP upload Torrent", cc=cc),
        uploads(setting, ["TCP upload BE"], ["BE"]),
        downloads(setting, numbered("TCP download Torrent", p.torrent_streams), marks, "TCP download Torrent", cc=cc),
        downloads(setting, ["TCP download BE"], ["BE"]),
        plots=rrul.PLOTS,
    )


TEST = Test("rrul_torrent", "Six yielding TCP flows and a normal one each way, ICMP and UDP probes in three classes", plan, Parameters)
