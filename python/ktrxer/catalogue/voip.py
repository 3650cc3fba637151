# SPDX-License-Identifier: MIT OR Apache-2.0
"""A call: packets of the size and spacing of G.711 in both directions. The summary rates it by the E-model (statistics/voice.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ktrxer.catalogue import background
from ktrxer.catalogue.recipe import MS, Panel, Plan, Setting, Test, combine, parameter, udp

PANELS = (Panel("voip_delay", "Round trip of the call's packets", ("VoIP",)), Panel("voip_delay_cdf", "The same as CDF", ("VoIP",), "cdf"))
FRAME_NS = 20 * MS
PAYLOAD = 172  # bytes: 160 of G.711 and the RTP header of 12


@dataclass(frozen=True)
class Parameters:
    voip_marking: str = parameter("", "DSCP of the call's packets; empty: not marked")
    load: Literal["none", "up", "down", "rrul"] = parameter("none", background.LOAD)


def plan(setting: Setting, p: Parameters) -> Plan:
    return combine(
        udp(setting, "VoIP", p.voip_marking or None, interval_ns=FRAME_NS, payload_bytes=PAYLOAD, group="VoIP"),
        background.plan(setting, p.load),
        plots=("totals", "oneway", "ping", "ping_cdf", "voip_delay", "voip_delay_cdf"),
        panels=PANELS,
    )


TEST = Test("voip", "A call of G.711 size in both directions, rated by the E-model", plan, Parameters)
