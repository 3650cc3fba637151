# SPDX-License-Identifier: MIT OR Apache-2.0
"""Values of a meter: those that an MQTT broker passes on, and those that a command prints.

`mosquitto_sub` reads a user name and a password from its own file, ~/.config/mosquitto_sub: what stands on a command line is visible to
other users, and is stored with the run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ktrxer.catalogue.command_output import number
from ktrxer.catalogue.recipe import Panel, Plan, PlanError, Setting, Test, combine, parameter, run

NUMBER = r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?"


@dataclass(frozen=True)
class Parameters:
    mqtt_topic: str = parameter("power", "the topic whose messages are read; empty: none")
    mqtt_host: str = parameter("localhost", "the broker")
    mqtt_port: int = parameter(8883, "its port", low=1, high=65535)
    mqtt_payload_key: str = parameter("", "the key of the value in messages of JSON; empty: the first number of a message")
    mqtt_series: str = parameter("mqtt_power", "name of the series")
    ipmi_power_command: str = parameter("", "a command that prints a power; empty: none")
    ipmi_host: str = parameter("localhost", "where it runs: this host, or another one that ssh reaches")
    unit: str = parameter("W", "of the values")


def plan(setting: Setting, p: Parameters) -> Plan:
    if not p.mqtt_topic and not p.ipmi_power_command:
        raise PlanError("neither mqtt_topic nor ipmi_power_command is given: nothing would be read")
    parts = []
    if p.mqtt_topic:
        words = ("mosquitto_sub", "-h", p.mqtt_host, "-p", str(p.mqtt_port), "-t", p.mqtt_topic)
        more: dict[str, Any] = {"pattern": rf'"{re.escape(p.mqtt_payload_key)}"\s*:\s*"?({NUMBER})'} if p.mqtt_payload_key else {}
        parts.append(run("number", p.mqtt_series, words=words, repeat=False, unit=p.unit, **more))
    if p.ipmi_power_command:
        parts.append(number(setting, "ipmi_power", p.ipmi_power_command, p.unit, p.ipmi_host))
    panel = Panel("power", "Power", (p.mqtt_series, "ipmi_power"))
    return combine(*parts, plots=("power", "cpu"), total_s=setting.total_s, panels=(panel,))


TEST = Test("power_usage", "Power by a meter's MQTT messages and by a command", plan, Parameters)
