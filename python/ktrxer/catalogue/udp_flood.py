# SPDX-License-Identifier: MIT OR Apache-2.0
"""UDP at a constant rate, which does not yield, and pings."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.arguments import bitrate
from ktrxer.catalogue.recipe import Plan, Setting, Step, Test, When, combine, icmp, parameter, uploads
from ktrxer.catalogue.streams import markings, turn

PLOTS = ("totals", "upload", "ping", "ping_cdf", "box_totals")
PAYLOAD = 1400  # bytes: with the headers of IPv6 and UDP less than 1500


@dataclass(frozen=True)
class Parameters:
    udp_bandwidth: int = parameter(100_000_000, "payload of each flow in bit/s (20M)", low=1000, high=10**12, parse=bitrate)
    udp_pktsize: int = parameter(PAYLOAD, "bytes of payload of a packet", low=16, high=65_000)
    markings: tuple[str, ...] = markings()
    by_host: bool = parameter(False, "the series of each host have its name")
    stagger: bool = parameter(False, "the flows begin one after another, in equal parts of the load, and end together")
    flood: bool = parameter(False, "yes: the owner of a far end with a public address agrees to this rate")


def plan(setting: Setting, p: Parameters) -> Plan:
    gap = setting.length_s / len(setting.hosts) if p.stagger else 0.0
    parts, steps = [], []
    for i, (host, label) in enumerate(setting.labelled_hosts):
        ending = f" {label}" if p.by_host else ""
        when = When(setting.delay_s + i * gap, setting.length_s - i * gap)
        mark = turn(p.markings, i)
        parts.append(icmp(setting, f"Ping (ms) ICMP{ending}", host=host))
        parts.append(uploads(
            setting, [f"UDP upload{ending}"], [mark] if mark else [], f"UDP upload{ending}", when=when, host=host, protocol="udp",
            bitrate_bps=p.udp_bandwidth, payload_bytes=p.udp_pktsize, flood=p.flood, group="UDP upload",
        ))  # fmt: skip
        if p.stagger:
            begin = setting.delay_s + i * gap
            steps.append(Step(f"{i + 1} of {len(setting.hosts)} flows", begin, begin + gap))
    return combine(*parts, plots=PLOTS, steps=steps)


TEST = Test("udp_flood", "A UDP flow up at a constant rate, with pings", plan, Parameters)
