# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same load several times in one run, with idle time between."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue.recipe import Plan, Setting, Step, Test, When, combine, downloads, icmp, parameter, uploads

PLOTS = ("totals", "download", "upload", "ping", "box_totals")


@dataclass(frozen=True)
class Parameters:
    iterations: int = parameter(3, "how many times", low=1, high=100)


def plan(setting: Setting, p: Parameters) -> Plan:
    period = setting.delay_s + setting.length_s
    parts, steps = [icmp(setting)], []
    for i in range(p.iterations):
        when = When(setting.delay_s + i * period, setting.length_s)
        for build, name in ((downloads, "TCP download"), (uploads, "TCP upload")):
            parts.append(build(setting, [f"{name}::{i + 1}"], name=f"{name} {i + 1}", when=when, group=f"{name} {i + 1}"))
        steps.append(Step(f"iteration {i + 1}", when.delay_s, when.delay_s + setting.length_s))
    return combine(*parts, plots=PLOTS, total_s=p.iterations * period + setting.delay_s, steps=steps)


TEST = Test("iterated_bidirectional", "A TCP upload and a download at the same time, several times, with pings", plan, Parameters)
