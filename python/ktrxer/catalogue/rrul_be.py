# SPDX-License-Identifier: MIT OR Apache-2.0
"""RRUL without markings: everything is best effort."""

from __future__ import annotations

from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test


def plan(setting: Setting, _: NoParameters) -> Plan:
    return rrul.shape(setting, [(name, "BE") for name in ("BE", "BE2", "BE3", "BE4")], [(name, "BE") for name in ("BE1", "BE2", "BE3")])


TEST = Test("rrul_be", "Four TCP flows up and four down, ICMP and UDP probes, all of them best effort", plan)
