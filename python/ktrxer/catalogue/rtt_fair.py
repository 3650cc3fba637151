# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flows to several far ends at once: do flows with different round-trip times get equal shares?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from ktrxer.arguments import bitrate
from ktrxer.catalogue.recipe import Plan, PlanError, Setting, Test, combine, icmp, loaded, parameter, uploads
from ktrxer.catalogue.streams import Stream, cc_algos, delays, flows, markings, turn
from ktrxer.catalogue.table import HOSTS_MOST

PLOTS = ("all_scaled", "all", "totals", "ping", "ping_cdf", "box_totals")


@dataclass(frozen=True)
class Parameters:
    labels: tuple[str, ...] = parameter(("BE",), "a word in the names of the flows of each host, assigned in turn", most=HOSTS_MOST)
    ping_labels: tuple[str, ...] = parameter(("ICMP",), "a word in the name of the probes of each host", most=HOSTS_MOST)
    markings: tuple[str, ...] = markings()
    cc_algos: tuple[str, ...] = cc_algos()
    stream_delays: tuple[float, ...] = delays()
    data_directions: tuple[Literal["u", "d", "ud"], ...] = parameter(("ud",), "u, d or ud for each host; the last one for all others")
    udp_bandwidth: int = parameter(0, "a UDP flow to the first host of so many bit/s (6M); 0: none", low=0, high=10**12, parse=bitrate)


def plan(setting: Setting, p: Parameters) -> Plan:
    if not p.data_directions:
        raise PlanError("data_directions is empty: no host would get a flow")
    last = p.data_directions[-1]
    ways = [way or last for way, _ in zip_longest(p.data_directions[: len(setting.hosts)], setting.hosts)]
    udp: dict[str, Any] = {"protocol": "udp", "bitrate_bps": p.udp_bandwidth or None, "when": loaded(setting)}
    return combine(
        *(
            icmp(setting, f"Ping (ms) {turn(p.ping_labels, i, 'ICMP')} {label}", host=host)
            for i, (host, label) in enumerate(setting.labelled_hosts)
        ),
        flows(setting, "up", "TCP upload", _streams(setting, p, "upload", [("u" in way) for way in ways])),
        flows(setting, "down", "TCP download", _streams(setting, p, "download", [("d" in way) for way in ways])),
        uploads(setting, ["UDP upload"], name="UDP upload", **udp) if p.udp_bandwidth else Plan(),
        plots=PLOTS,
    )


def _streams(setting: Setting, p: Parameters, way: str, wanted: Sequence[bool]) -> list[Stream]:
    made = []
    for i, (host, label) in enumerate(setting.labelled_hosts):
        if wanted[i]:
            name = f"TCP {way} {turn(p.labels, i, 'BE')} {label}"
            delay_s = p.stream_delays[i] if i < len(p.stream_delays) else 0
            made.append(Stream(name, turn(p.markings, i) or None, turn(p.cc_algos, i), delay_s, host))
    return made


TEST = Test("rtt_fair", "A TCP upload, a download and pings to each of several hosts", plan, Parameters, hosts=(1, HOSTS_MOST))
