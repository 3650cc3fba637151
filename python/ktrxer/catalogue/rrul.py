# SPDX-License-Identifier: MIT OR Apache-2.0
"""Realtime Response Under Load: what happens to small packets while four flows each way fill the path, and whether markings help them."""

from __future__ import annotations

from collections.abc import Sequence

from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, downloads, icmp, udp, uploads

PLOTS = ("all_scaled", "all", "totals", "download", "upload", "ping", "ping_cdf", "lateness", "box_totals")
FLOWS = ("BE", "BK", "CS5", "EF")
PROBES = ("BE", "BK", "EF")


def shape(setting: Setting, flows: Sequence[tuple[str, str]], probes: Sequence[tuple[str, str]]) -> Plan:
    """`flows` (each way) and `probes` are pairs: the end of a name, and a marking."""
    names, marks = [name for name, _ in flows], [mark for _, mark in flows]
    return combine(
        icmp(setting),
        *(udp(setting, f"Ping (ms) UDP {name}", mark) for name, mark in probes),
        uploads(setting, [f"TCP upload {name}" for name in names], marks),
        downloads(setting, [f"TCP download {name}" for name in names], marks),
        plots=PLOTS,
    )


def plan(setting: Setting, _: NoParameters) -> Plan:
    return shape(setting, [(mark, mark) for mark in FLOWS], [(mark, mark) for mark in PROBES])


TEST = Test(
    "rrul",
    "Four TCP flows up and four down in four classes, ICMP and UDP probes in three",
    plan,
    description="The flows are marked CS0 (BE), CS1 (BK), CS5 and EF, the UDP probes BE, BK and EF. "
    "A queue that serves the classes differently shows as curves that lie apart.",
)
