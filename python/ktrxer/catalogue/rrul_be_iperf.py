# SPDX-License-Identifier: MIT OR Apache-2.0
"""RRUL, best effort, with uploads by another program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import MS, Plan, Setting, Test, combine, downloads, icmp, loaded, parameter, run

LABELS = ("BE", "BE2", "BE3", "BE4")
LEAST_NS = 200 * MS  # between two samples of iperf3


@dataclass(frozen=True)
class Parameters:
    tool: Literal["iperf", "iperf3", "netperf"] = parameter("iperf", "the program of the uploads; its server must run at the far end")


def plan(setting: Setting, p: Parameters) -> Plan:
    interval_ns = max(LEAST_NS, setting.sample_interval_ns)
    return combine(
        icmp(setting),
        rrul.probes(setting, ("BE1", "BE2", "BE3"), ("BE",)),
        *(run(p.tool, f"TCP upload {label}", when=loaded(setting), interval_ns=interval_ns, mark="BE") for label in LABELS),
        downloads(setting, [f"TCP download {label}" for label in LABELS], ["BE"]),
        plots=rrul.PLOTS,
    )


TEST = Test("rrul_be_iperf", "RRUL, best effort, with uploads by iperf and downloads by ktrxer", plan, Parameters)
