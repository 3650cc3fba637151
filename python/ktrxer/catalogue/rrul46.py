# SPDX-License-Identifier: MIT OR Apache-2.0
"""RRUL over IPv4 and IPv6 at once. The far end must have a name with addresses of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import Plan, Setting, Test, When, combine, downloads, icmp, parameter, udp, uploads

V4: dict[str, Any] = {"family": "-4"}
V6: dict[str, Any] = {"family": "-6"}
# Seconds after the beginning of the load at which the uploads of rrul46compete begin.
STARTS = {"6BK": 0, "BK": 1, "BE": 2, "6BE": 4}


@dataclass(frozen=True)
class Parameters:
    compete: bool = parameter(False, "the same two classes over both, and uploads that begin 0, 1, 2 and 4 s after each other")


def plan(setting: Setting, p: Parameters) -> Plan:
    return _compete(setting) if p.compete else _mixed(setting)


def _mixed(setting: Setting) -> Plan:
    return combine(
        icmp(setting, **V6),
        *(udp(setting, f"Ping (ms) UDP {mark}", mark, **V4) for mark in ("BE", "BK")),
        *(udp(setting, f"Ping (ms) UDP6 {mark}", mark, **V6) for mark in ("BE", "BK")),
        uploads(setting, ["TCP upload BE", "TCP upload BK"], ["BE", "BK"], "TCP upload IPv4", group="TCP upload", **V4),
        uploads(setting, ["TCP upload CS5", "TCP upload EF"], ["CS5", "EF"], "TCP upload IPv6", group="TCP upload", **V6),
        downloads(setting, ["TCP download BE", "TCP download BK"], ["BE", "BK"], "TCP download IPv4", group="TCP download", **V4),
        downloads(setting, ["TCP download CS5", "TCP download EF"], ["CS5", "EF"], "TCP download IPv6", group="TCP download", **V6),
        plots=rrul.PLOTS,
    )


def _compete(setting: Setting) -> Plan:
    def upload(label: str) -> Plan:
        when = When(setting.delay_s + STARTS[label], setting.length_s)
        name = f"TCP upload {label}"
        return uploads(setting, [name], [label[-2:]], name, when=when, group="TCP upload", **_family(label))

    return combine(
        icmp(setting, **V4),
        icmp(setting, "Ping (ms) ICMP6", **V6),
        *(udp(setting, f"Ping (ms) UDP {label}", label[-2:], **_family(label)) for label in ("BE", "6BE", "6BK", "6EF")),
        *(upload(label) for label in STARTS),
        downloads(setting, ["TCP download BE", "TCP download BK"], ["BE", "BK"], "TCP download IPv4", group="TCP download", **V4),
        downloads(setting, ["TCP download 6BE", "TCP download 6BK"], ["BE", "BK"], "TCP download IPv6", group="TCP download", **V6),
        plots=rrul.PLOTS,
        total_s=setting.total_s + max(STARTS.values()),
    )


def _family(label: str) -> dict[str, Any]:
    return V6 if label.startswith("6") else V4


TEST = Test("rrul46", "RRUL with half of its flows over IPv4 and half over IPv6", plan, Parameters)
