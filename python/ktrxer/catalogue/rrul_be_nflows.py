# SPDX-License-Identifier: MIT OR Apache-2.0
"""Best effort with any number of flows up and down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import Plan, PlanError, Setting, Test, combine, downloads, icmp, numbered, parameter, uploads
from ktrxer.catalogue.streams import count


@dataclass(frozen=True)
class Parameters:
    upload_streams: int = count(low=0)
    download_streams: int = count(low=0)
    numbers: Literal["both", "up", "down"] = parameter("both", "directions whose flows have numbers; a single flow may be without one")
    ping_labels: tuple[str, ...] = parameter(("BE",), "the end of the name of each UDP probe", most=rrul.MOST)


def plan(setting: Setting, p: Parameters) -> Plan:
    if not p.upload_streams and not p.download_streams:
        raise PlanError("upload_streams and download_streams are both 0: nothing would load the path")
    return combine(
        icmp(setting),
        rrul.probes(setting, p.ping_labels, ["BE"]),
        uploads(setting, _names("TCP upload BE", p.upload_streams, p.numbers != "down"), ["BE"]) if p.upload_streams else Plan(),
        downloads(setting, _names("TCP download BE", p.download_streams, p.numbers != "up"), ["BE"]) if p.download_streams else Plan(),
        plots=rrul.PLOTS if p.upload_streams and p.download_streams else rrul.PLOTS_UP if p.upload_streams else rrul.PLOTS_DOWN,
    )


def _names(name: str, flows: int, numbers: bool) -> list[str]:
    return numbered(name, flows) if numbers or flows > 1 else [name]


TEST = Test("rrul_be_nflows", "N TCP flows up and M down, ICMP and UDP probes, all of them best effort", plan, Parameters)
