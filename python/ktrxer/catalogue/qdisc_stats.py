# SPDX-License-Identifier: MIT OR Apache-2.0
"""The queues of a device, without traffic of this program."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue.recipe import Plan, Setting, Test, parameter, run


@dataclass(frozen=True)
class Parameters:
    interface: str = parameter("", "the device; by default that of the route to the far end")
    place: str = parameter("local", "where: local, netns:NAME, ssh:[USER@]HOST")


def plan(setting: Setting, p: Parameters) -> Plan:
    part = run("qdisc", "qdisc-stats", device=p.interface, interval_ns=setting.sample_interval_ns, place=p.place)
    return Plan(part.runs, ("qdisc",), setting.length_s)


TEST = Test("qdisc-stats", "The queues of a device: backlog, drops, marks, delay", plan, Parameters)
