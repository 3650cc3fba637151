# SPDX-License-Identifier: MIT OR Apache-2.0
"""Delay alone: nothing is loaded."""

from __future__ import annotations

from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, icmp, udp

PLOTS = ("totals", "ping_cdf")


def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(icmp(setting), udp(setting, "Ping (ms) UDP"), plots=PLOTS, total_s=setting.length_s)


TEST = Test("ping", "ICMP and UDP round trips on an idle path", plan)
