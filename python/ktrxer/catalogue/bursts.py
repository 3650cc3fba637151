# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bursts of UDP with idle time between them, and probes in several classes."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.arguments import bitrate
from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import Plan, PlanError, Setting, Step, Test, When, combine, icmp, parameter, uploads

PLOTS = ("ping", "ping_cdf", "totals", "box_ping")
BURSTS_MOST = 1000
PORTS_MOST = 64


@dataclass(frozen=True)
class Parameters:
    burst_length: float = parameter(5.0, "seconds that a burst lasts", low=0.1, high=3600)
    burst_ports: int = parameter(8, "flows of a burst, each with a port of its own", low=1, high=PORTS_MOST)
    burst_psize: int = parameter(500, "bytes of payload of a packet", low=16, high=65_000)
    burst_bandwidth: int = parameter(100_000_000, "payload of all flows together in bit/s", low=1_000_000, high=10**12, parse=bitrate)
    burst_marking: str = parameter("", "DSCP of the bursts; empty: not marked")
    ping_labels: tuple[str, ...] = parameter(("EF", "BK", "BE"), "the end of the name of each UDP probe", most=rrul.MOST)
    ping_markings: tuple[str, ...] = parameter(("EF", "BK", "BE"), "DSCP of the UDP probes, assigned in turn", most=rrul.MOST)
    icmp: bool = parameter(True, "ICMP probes, too")
    flood: bool = parameter(False, "yes: the owner of a far end with a public address agrees to this rate")


def plan(setting: Setting, p: Parameters) -> Plan:
    period = setting.delay_s + p.burst_length
    count = int(setting.length_s / period + 1e-9)
    if count < 1:
        first = f"the first begins after {setting.delay_s:g} s (--delay) and lasts {p.burst_length:g} s (burst_length)"
        raise PlanError(f"no burst fits into {setting.length_s:g} s (--for): {first}")
    if count > BURSTS_MOST:
        raise PlanError(f"{count} bursts; 1 to {BURSTS_MOST} are possible: a longer burst_length or --delay makes fewer")
    starts = [setting.delay_s + i * period for i in range(count)]
    return combine(
        rrul.probes(setting, p.ping_labels, p.ping_markings),
        icmp(setting) if p.icmp else Plan(),
        *(_burst(setting, p, i, start) for i, start in enumerate(starts)),
        plots=PLOTS,
        total_s=setting.length_s,
        steps=[Step(f"burst {i}", start, start + p.burst_length) for i, start in enumerate(starts)],
    )


def _burst(setting: Setting, p: Parameters, place: int, start: float) -> Plan:
    name = f"Burst {place}"
    return uploads(
        setting, [f"{name}::{port}" for port in range(1, p.burst_ports + 1)], [p.burst_marking] if p.burst_marking else [], name,
        when=When(start, p.burst_length), protocol="udp", bitrate_bps=p.burst_bandwidth // p.burst_ports, payload_bytes=p.burst_psize,
        flood=p.flood,
    )  # fmt: skip


TEST = Test("bursts", "Bursts of UDP with idle time between them, ICMP and UDP probes in three classes", plan, Parameters)
