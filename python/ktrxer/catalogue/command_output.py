# SPDX-License-Identifier: MIT OR Apache-2.0
"""Any number that a command prints, again and again."""

from __future__ import annotations

from dataclasses import dataclass

from ktrxer.catalogue.recipe import Panel, Plan, PlanError, Setting, Test, parameter, run


@dataclass(frozen=True)
class Parameters:
    command: str = parameter("cat /proc/loadavg", "the command; the first number that it prints is the value")
    command_host: str = parameter("localhost", "where it runs: this host, or another one that ssh reaches")
    command_label: str = parameter("", "name of the plot; by default the command's first word")
    unit: str = parameter("", "of the value")


def place_of(host: str) -> str:
    return "local" if host in ("", "localhost") else f"ssh:{host}"


def plan(setting: Setting, p: Parameters) -> Plan:
    if not p.command.strip():
        raise PlanError("the command is empty: give --set command='...'")
    part = run(
        "command", "command-values", command=p.command, unit=p.unit, interval_ns=setting.sample_interval_ns, place=place_of(p.command_host)
    )  # fmt: skip
    panel = Panel("command-values", p.command_label or p.command.split()[0], ("command-values*",))
    return Plan(part.runs, ("command-values",), setting.length_s, panels=(panel,))


TEST = Test("command-output", "A number that a command prints, again and again", plan, Parameters)
