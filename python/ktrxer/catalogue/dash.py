# SPDX-License-Identifier: MIT OR Apache-2.0
"""Video in segments, as players of DASH and HLS load it, alone or beside a load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ktrxer.catalogue import background
from ktrxer.catalogue.recipe import Panel, Plan, PlanError, Setting, Test, combine, parameter, run

PANELS = (Panel("dash", "Video", ("Dash*",)),)


@dataclass(frozen=True)
class Parameters:
    dash_url: str = parameter("", "the video; {bitrate} and {segment} in it are replaced; by default the file /video of the far end")
    load: Literal["none", "up", "down", "rrul"] = parameter("none", background.LOAD)


def plan(setting: Setting, p: Parameters) -> Plan:
    if ":" in setting.host and not p.dash_url:
        raise PlanError("the far end is an address of IPv6, so dash_url must be given")
    url = p.dash_url or f"http://{setting.host}/video"
    return combine(run("video", "Dash", url=url, group="Dash"), background.plan(setting, p.load), plots=("dash", "all"), panels=PANELS)


TEST = Test("dash", "A video in segments, alone or beside a load", plan, Parameters)
