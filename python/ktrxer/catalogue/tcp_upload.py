# SPDX-License-Identifier: MIT OR Apache-2.0
"""One upload."""

from __future__ import annotations

from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, icmp, uploads

PLOTS = ("totals", "upload", "ping", "ping_cdf", "box_totals")


def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(icmp(setting), uploads(setting, ["TCP upload"]), plots=PLOTS)


TEST = Test("tcp_upload", "One TCP upload, with pings before, during and after", plan)
