# SPDX-License-Identifier: MIT OR Apache-2.0
"""One download."""

from __future__ import annotations

from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, downloads, icmp

PLOTS = ("totals", "download", "ping", "ping_cdf", "box_totals")


def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(icmp(setting), downloads(setting, ["TCP download"]), plots=PLOTS)


TEST = Test("tcp_download", "One TCP download, with pings before, during and after", plan)
