# SPDX-License-Identifier: MIT OR Apache-2.0
"""L4S (RFC 9330) and classic traffic side by side: TCP flows, UDP flows whose marks the far end counts, and probes of both kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ktrxer.arguments import bitrate
from ktrxer.catalogue.recipe import Direction, Panel, Plan, Setting, Test, combine, downloads, icmp, parameter, udp, uploads

PANELS = (
    Panel("l4s_latency", "Round trips of L4S and classic probes", ("Ping (ms) UDP L4S", "Ping (ms) UDP classic")),
    Panel("l4s_latency_cdf", "The same as CDF", ("Ping (ms) UDP L4S", "Ping (ms) UDP classic"), "cdf"),
)
PAYLOAD = 1200
L4S = "L4S"  # its own queue in the bottleneck: its round trips are not compared with those of classic packets
BITS: dict[str, Any] = {"low": 0, "parse": bitrate}


@dataclass(frozen=True)
class Parameters:
    l4s_cc: str = parameter("prague", "congestion control of the L4S flows; it marks their packets ECT(1)")
    classic_cc: str = parameter("cubic", "congestion control of the classic flows")
    streams: int = parameter(1, "TCP flows of each kind in each direction", low=1, high=500)
    udp_bandwidth: int = parameter(200_000, "bit/s of a UDP flow of each kind, whose marks are counted; 0: none", high=10**9, **BITS)
    directions: Literal["both", "up", "down"] = parameter("both", "directions of the flows")


def plan(setting: Setting, p: Parameters) -> Plan:
    return combine(
        icmp(setting),
        udp(setting, "Ping (ms) UDP L4S", ecn="ect1", klass=L4S),
        udp(setting, "Ping (ms) UDP classic"),
        _flows(setting, p, "up") if p.directions != "down" else Plan(),
        _flows(setting, p, "down") if p.directions != "up" else Plan(),
        plots=("l4s_latency", "l4s_latency_cdf", "all", "totals", "tcp_rtt", "qdisc"),
        panels=PANELS,
    )


def _flows(setting: Setting, p: Parameters, direction: Direction) -> Plan:
    build = uploads if direction == "up" else downloads
    kinds = ((L4S, p.l4s_cc, "ect1"), ("classic", p.classic_cc, "off"))
    flows = []
    for kind, cc, _ in kinds:
        names = [f"TCP {direction}load {kind}" + (f"::{n + 1}" if p.streams > 1 else "") for n in range(p.streams)]
        flows.append(build(setting, names, name=f"TCP {direction}load {kind}", cc=(cc,), klass=L4S if kind == L4S else ""))
    if p.udp_bandwidth:
        names = [f"UDP {direction}load {kind}" for kind, _, _ in kinds]
        flows.append(build(
            setting, names, name=f"UDP {direction}load", protocol="udp", bitrate_bps=max(1000, p.udp_bandwidth), payload_bytes=PAYLOAD,
            ecn=tuple(ecn for _, _, ecn in kinds),
        ))  # fmt: skip
    return combine(*flows)


TEST = Test("l4s", "L4S and classic TCP flows side by side, probes of both kinds, marks counted at the far end", plan, Parameters)
