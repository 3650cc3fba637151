# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plan of a check: idle, a load up, a pause, a load down. Probes to the target and to the first routers all the time."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue.recipe import (
    MS,
    Plan,
    PlanError,
    S,
    Setting,
    Test,
    When,
    combine,
    downloads,
    icmp,
    numbered,
    parameter,
    run,
    udp,
    uploads,
)

HOP_NS = 200 * MS
PAUSE_S = 3.0
TAIL_S = 1.0  # after the last load, for the last answers
PLOTS = ("totals", "ping", "download", "upload", "ping_cdf")


@dataclass(frozen=True)
class Parameters:
    server: bool = parameter(False, "the target runs `ktrxer serve`")
    download: str = parameter("", "URL of a large object")
    upload: str = parameter("", "URL that takes POST requests")
    nq: str = parameter("", "URL of the configuration of a responsiveness server")
    nq_interval: float = parameter(1.0, "seconds between two checks of the responsiveness test for stability", low=0.1, high=60)
    ca_file: str = parameter("", "certificates of an authority, for https")
    flows: int = parameter(4, "connections of each load", low=1, high=32)
    hops: tuple[str, ...] = parameter((), "addresses of the first routers on the path")
    pings: bool = parameter(True, "whether the target answers ICMP echo requests")
    udp: bool = parameter(True, "whether `ktrxer serve` answers probes of UDP")
    load: bool = parameter(True, "whether a load is possible")
    handshakes: int = parameter(0, "TCP port of the target for probes by handshakes; 0: none", low=0, high=65535)
    pause: float = parameter(PAUSE_S, "seconds between the two loads", low=0, high=60)


def plan(s: Setting, p: Parameters) -> Plan:
    """`delay_s` of the setting is the idle time before the first load, `length_s` the length of each load."""
    ways = [way for way, there in (("up", p.server or p.nq or p.upload), ("down", p.server or p.nq or p.download)) if there]
    if not ways:
        raise PlanError("no load: name a server (--server, --nq), or an URL of a web server (--download, --upload)")
    parts: list[Plan] = []
    if p.server and p.udp:
        parts.append(udp(s, "Ping (ms) UDP"))
    if p.pings:
        parts.append(icmp(s, interval_ns=max(s.probe_interval_ns, 10 * MS)))
    if p.handshakes:
        parts.append(run("handshake", "Ping (ms) TCP", port=p.handshakes, interval_ns=max(s.probe_interval_ns, HOP_NS)))
    parts += [run("hop", f"Hop {n} (ms) {address}", host=address, interval_ns=HOP_NS) for n, address in enumerate(p.hops, 1)]
    at = s.delay_s
    for way in ways if p.load else ():
        parts.append(_load(s, p, way, When(delay_s=at, length_s=s.length_s)))
        at += s.length_s + p.pause
    return combine(*parts, plots=PLOTS, total_s=at - (p.pause if p.load else 0) + TAIL_S)


def _load(s: Setting, p: Parameters, way: str, when: When) -> Plan:
    if p.server:
        name = f"TCP {way}load"
        return (uploads if way == "up" else downloads)(s, numbered(name, p.flows), name=name, when=when)
    if p.nq:
        return run(
            "http_rpm", f"RPM {way}load", url=p.nq, direction=way, ca_file=p.ca_file, interval_ns=s.sample_interval_ns,
            draft_interval_ns=round(p.nq_interval * S), when=when,
        )  # fmt: skip
    name, url = f"HTTP {way}load", p.upload if way == "up" else p.download
    series = tuple(numbered(name, p.flows))
    return run(
        "http_load", name, url=url, direction=way, series=series, ca_file=p.ca_file, interval_ns=s.sample_interval_ns, when=when,
    )  # fmt: skip


TEST = Test("check", "idle, an upload, a download: `ktrxer check`", plan, Parameters)
