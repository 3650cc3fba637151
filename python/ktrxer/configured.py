# SPDX-License-Identifier: MIT OR Apache-2.0
"""The configuration, read by the C half (cli/runtime/config.h), which gives it to this half in an environment variable."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

VARIABLE, OFF = "KTRXER_CONFIG", "off"
SERVER_PORT = 8620  # `port` without the table of a command is that of `ktrxer serve`, and sets no other port


@dataclass(frozen=True)
class Value:
    text: str
    source: str  # FILE:LINE
    of_command: bool  # from the table of this command


_values: dict[str, Value] | None = None


def _read() -> dict[str, Value]:
    """Processes that this one starts get complete command lines, so for them no configuration counts."""
    text = os.environ.get(VARIABLE, OFF)
    os.environ[VARIABLE] = OFF
    try:
        made = json.loads(text) if text != OFF else []
        return {one["key"]: Value(str(one["value"]), str(one["source"]), "." in one["key"]) for one in made}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def value(command: str, key: str) -> Value | None:
    """The value of a key for a command, as `run`; None if no file has one."""
    global _values
    if _values is None:
        _values = _read()
    return _values.get(f"{command}.{key}") or _values.get(key)
