# SPDX-License-Identifier: MIT OR Apache-2.0
"""Realtime Response Under Load: small packets while several flows each way fill the path, and whether markings help them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ktrxer.catalogue.recipe import Plan, Setting, Test, combine, distinct, downloads, icmp, parameter, udp, uploads

PLOTS = ("all_scaled", "all", "totals", "download", "upload", "ping", "ping_cdf", "lateness", "box_totals")
PLOTS_UP = ("totals", "upload", "ping", "ping_cdf", "lateness", "box_totals")
PLOTS_DOWN = ("totals", "download", "ping", "ping_cdf", "lateness", "box_totals")
MOST = 64  # names of a list
LOW_DELAY = "4"  # DSCP of Flent's ToS 0x10, the "minimize delay" of RFC 1349


@dataclass(frozen=True)
class Parameters:
    labels: tuple[str, ...] = parameter(("BE", "BK", "CS5", "EF"), "the end of the name of each flow", most=MOST)
    markings: tuple[str, ...] = parameter(("BE", "BK", "CS5", "EF"), "DSCP of the flows, assigned in turn", most=MOST)
    cc_algos: tuple[str, ...] = parameter((), "congestion control of the flows, assigned in turn; empty: that of --cc", most=MOST)
    directions: Literal["both", "up", "down"] = parameter("both", "directions of the flows")
    ping_labels: tuple[str, ...] = parameter(("BE", "BK", "EF"), "the end of the name of each UDP probe", most=MOST)
    ping_markings: tuple[str, ...] = parameter(("BE", "BK", "EF"), "DSCP of the UDP probes, assigned in turn", most=MOST)
    prio: bool = parameter(False, "further probes with DSCP 4, ToS 0x10, which the queue pfifo_fast serves first")


def probes(setting: Setting, labels: Sequence[str], marks: Sequence[str], prefix: str = "Ping (ms) UDP ") -> Plan:
    """UDP probes; `marks` are assigned in turn."""
    distinct(labels)
    return combine(*(udp(setting, prefix + label, marks[i % len(marks)] if marks else None) for i, label in enumerate(labels)))


def low_delay(setting: Setting) -> Plan:
    """ICMP probes with and without the marking that pfifo_fast serves first."""
    return combine(icmp(setting), icmp(setting, "Ping (ms) ICMP PRIO", mark=LOW_DELAY))


def plan(setting: Setting, p: Parameters) -> Plan:
    more: dict[str, Any] = {"cc": p.cc_algos} if p.cc_algos else {}
    up, down = p.directions != "down", p.directions != "up"
    return combine(
        low_delay(setting) if p.prio else icmp(setting),
        probes(setting, p.ping_labels, p.ping_markings),
        probes(setting, ["PRIO"] if p.prio else [], [LOW_DELAY]),
        uploads(setting, [f"TCP upload {label}" for label in p.labels], p.markings, **more) if up else Plan(),
        downloads(setting, [f"TCP download {label}" for label in p.labels], p.markings, **more) if down else Plan(),
        plots=PLOTS if up and down else PLOTS_UP if up else PLOTS_DOWN,
    )


TEST = Test(
    "rrul",
    "Four TCP flows up and four down in four classes, ICMP and UDP probes in three",
    plan,
    Parameters,
    description="The flows are marked CS0 (BE), CS1 (BK), CS5 and EF, the UDP probes BE, BK and EF. "
    "A queue that serves the classes differently shows as curves that lie apart.",
)
