# SPDX-License-Identifier: MIT OR Apache-2.0
"""The load beside a test of an application: none, one flow, or RRUL with best effort."""

from __future__ import annotations

from typing import Literal

from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import Plan, Setting, downloads, uploads

Load = Literal["none", "up", "down", "rrul"]
RRUL_BE = rrul.Parameters(
    labels=("BE", "BE2", "BE3", "BE4"), markings=("BE",), ping_labels=("BE1", "BE2", "BE3"), ping_markings=("BE",)
)  # fmt: skip
LOAD = "beside it: nothing, a TCP upload, a download, or all flows and probes of rrul_be"  # what the parameter is for


def plan(setting: Setting, load: Load) -> Plan:
    """Idle phases surround a load; a run without one is as long as -l."""
    if load == "none":
        return Plan(total_s=setting.length_s)
    if load == "up":
        return uploads(setting, ["TCP upload"])
    return downloads(setting, ["TCP download"]) if load == "down" else rrul.plan(setting, RRUL_BE)
