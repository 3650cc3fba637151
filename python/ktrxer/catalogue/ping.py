# SPDX-License-Identifier: MIT OR Apache-2.0
"""Delay alone: nothing is loaded."""

from __future__ import annotations

from dataclasses import replace

from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, icmp, udp

PLOTS = ("totals", "ping_cdf")


def plan(setting: Setting, _: NoParameters) -> Plan:
    probes = (icmp(setting), replace(udp(setting, "Ping (ms) UDP"), mark=None))
    return Plan(probes=probes, plots=PLOTS, total_s=setting.length_s, load_s=None)


TEST = Test("ping", "ICMP and UDP round trips on an idle path", plan)
