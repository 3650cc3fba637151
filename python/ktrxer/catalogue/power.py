# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values of a meter: those that an MQTT broker passes on, and those that a command prints.

`mosquitto_sub` reads a user name and a password from its own file, ~/.config/mosquitto_sub: what stands on a command line is visible to
other users, and is stored with the run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ktrxer.catalogue.command_output import place_of
from ktrxer.catalogue.recipe import Panel, Plan, PlanError, Setting, Test, combine, parameter, run


@dataclass(frozen=True)
class Parameters:
    mqtt_topic: str = parameter("power", "the topic whose messages are read; empty: none")
    mqtt_host: str = parameter("localhost", "the broker")
    mqtt_port: int = parameter(8883, "its port", low=1, high=65535)
    mqtt_series: str = parameter("mqtt_power", "name of the series")
    ipmi_power_command: str = parameter("", "a command that prints a power; empty: none")
    ipmi_host: str = parameter("localhost", "where it runs: this host, or another one that ssh reaches")
    unit: str = parameter("W", "of the values")


def plan(setting: Setting, p: Parameters) -> Plan:
    if not p.mqtt_topic and not p.ipmi_power_command:
        raise PlanError("neither mqtt_topic nor ipmi_power_command is given: nothing would be read")
    parts = []
    if p.mqtt_topic:
        command = shlex.join(["mosquitto_sub", "-C", "1", "-h", p.mqtt_host, "-p", str(p.mqtt_port), "-t", p.mqtt_topic])
        parts.append(run("command", p.mqtt_series, command=command, unit=p.unit, interval_ns=setting.sample_interval_ns))
    if p.ipmi_power_command:
        more = {"unit": p.unit, "interval_ns": setting.sample_interval_ns, "place": place_of(p.ipmi_host)}
        parts.append(run("command", "ipmi_power", command=p.ipmi_power_command, **more))
    panel = Panel("power", "Power", (f"{p.mqtt_series}*", "ipmi_power*"))
    return combine(*parts, plots=("power", "cpu"), total_s=setting.total_s, panels=(panel,))


TEST = Test("power_usage", "Power by a meter's MQTT messages and by a command", plan, Parameters)
