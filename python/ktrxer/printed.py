# SPDX-License-Identifier: MIT OR Apache-2.0
"""The JSON objects that the Python commands print. contract/experiments/ has their fields; docs/schema/ is made from it."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ktrxer import __version__

READINGS = 5  # of the clocks: the pair with the smallest bound counts


def show(made: Mapping[str, Any], *, line: bool = False, stream: TextIO | None = None) -> None:
    """The one object of a command. `line`: one of several, each in a line."""
    print(json.dumps(made, indent=None if line else 2), file=stream or sys.stdout, flush=line)


def row(made: Mapping[str, Any]) -> None:
    """A row of a query (the table `query rows`): one of many, so that lines are not written one by one."""
    print(json.dumps(made))


def start(argv: Sequence[str]) -> dict[str, Any]:
    """The object `start`, as that of a C command (contract/fields/common.toml)."""
    boot, system = Path("/proc/sys/kernel/random/boot_id"), platform.uname()
    return {
        "schema": 1, "version": __version__, "command": argv[1], "argv": list(argv),
        "boot_id": boot.read_text().strip() if boot.is_file() else None, "hostname": system.node or None, "kernel": system.release or None,
        "clock": min((_clocks() for _ in range(READINGS)), key=lambda pair: pair["bound_ns"]),
    }  # fmt: skip


def end(argv: Sequence[str], made: Mapping[str, Any], *, line: bool) -> dict[str, Any]:
    """The object `end`: in a line of --jsonl, or as the one object of --json, which has `start` as a member."""
    return {"type": "end"} | ({} if line else {"start": start(argv)}) | dict(made) | {"end_ns": time.monotonic_ns()}


def _clocks() -> dict[str, int]:
    before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    return {"mono_ns": (before + after) // 2, "real_ns": real, "bound_ns": (after - before + 1) // 2}
