# SPDX-License-Identifier: MIT OR Apache-2.0
"""Any number that a command prints, again and again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ktrxer.catalogue.recipe import MS, Panel, Plan, PlanError, Setting, Test, parameter, run

LEAST_NS = 100 * MS


@dataclass(frozen=True)
class Parameters:
    command: str = parameter("cat /proc/loadavg", "the command; the first number that it prints is the value")
    command_host: str = parameter("localhost", "where it runs: this host, or another one that ssh reaches")
    command_label: str = parameter("", "name of the plot; by default the command's first word")
    unit: str = parameter("", "of the value")


def number(setting: Setting, name: str, command: str, unit: str, host: str) -> Plan:
    """The first number that `command` prints, at each interval of the samples. A shell runs only if the command names it."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise PlanError(f"{name}: the command {command[:60]!r} cannot be split into words: {error}") from None
    place = "local" if host in ("", "localhost") else f"ssh:{host}"
    return run("number", name, words=words, unit=unit, interval_ns=max(LEAST_NS, setting.sample_interval_ns), place=place)


def plan(setting: Setting, p: Parameters) -> Plan:
    if not p.command.strip():
        raise PlanError("the command is empty: give --set command='...'")
    part = number(setting, "command-values", p.command, p.unit, p.command_host)
    panel = Panel("command-values", p.command_label or p.command.split()[0], ("command-values",))
    return Plan(part.runs, ("command-values",), setting.length_s, panels=(panel,))


TEST = Test("command-output", "A number that a command prints, again and again", plan, Parameters)
