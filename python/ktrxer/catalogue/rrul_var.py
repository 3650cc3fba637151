# SPDX-License-Identifier: MIT OR Apache-2.0
"""RRUL with any number of flows, each with its own label, marking, congestion control and start."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue import rrul
from ktrxer.catalogue.recipe import Plan, Setting, Test, combine, icmp, parameter
from ktrxer.catalogue.streams import cc_algos, count, delays, flows, markings, streams, turn


@dataclass(frozen=True)
class Parameters:
    bidir_streams: int = count(high=rrul.MOST, default=4)
    labels: tuple[str, ...] = parameter((), "the end of the name of each flow; by default its number and its marking", most=rrul.MOST)
    markings: tuple[str, ...] = markings()
    cc_algos: tuple[str, ...] = cc_algos()
    stream_delays: tuple[float, ...] = delays()


def plan(setting: Setting, p: Parameters) -> Plan:
    marks = [turn(p.markings, i, "CS0") for i in range(p.bidir_streams)]
    labels = [p.labels[i] if i < len(p.labels) else f"{i} ({mark})" for i, mark in enumerate(marks)]

    def named(way: str) -> list[str]:
        return [f"TCP {way}::{label}" for label in labels]

    return combine(
        icmp(setting, "Ping (ms)::ICMP"),
        rrul.probes(setting, labels, marks, "Ping (ms)::UDP "),
        flows(setting, "up", "TCP upload", streams(named("upload"), marks, p.cc_algos, p.stream_delays)),
        flows(setting, "down", "TCP download", streams(named("download"), marks, p.cc_algos, p.stream_delays)),
        plots=rrul.PLOTS,
    )


TEST = Test("rrul_var", "N TCP flows up and N down, each with a label, marking, congestion control and start of its own", plan, Parameters)
