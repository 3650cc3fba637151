# SPDX-License-Identifier: MIT OR Apache-2.0
"""The origin of a run: the source of its recipe, its resolved parameters, and the emulated topology that it ran in."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ktrxer.catalogue.recipe import Setting, Test, parameters_of
from ktrxer.catalogue.table import TABLE

TOPOLOGY = "KTRXER_LAB_TOPOLOGY"  # set by `ktrxer lab` for the commands that it runs
SOURCE_MOST = 200_000  # bytes of a recipe


def resolved(test: Test, setting: Setting, given: dict[str, str]) -> dict[str, Any]:
    """All settings and parameters, with the defaults."""
    return plain(setting) | {"parameters": plain(parameters_of(test, given))}


def plain(made: Any) -> dict[str, Any]:
    """A dataclass as JSON has it: lists instead of tuples."""
    text: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(made)))
    return text


def recipe(test: Test) -> dict[str, Any]:
    """The file that makes the plan. A run can be repeated, and understood, when the file has changed since."""
    module = sys.modules.get(test.plan.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return {"name": test.name}
    try:
        source = Path(file).read_bytes()
    except OSError as error:
        return {"name": test.name, "file": Path(file).name, "missing": str(error.strerror)}
    text = source[:SOURCE_MOST].decode("utf-8", "replace")
    ours = test.name in TABLE and test.plan.__module__.startswith("ktrxer.catalogue.")
    made = {"name": test.name, "file": Path(file).name, "catalogue": ours}
    return made | {"sha256": _sha256(source), "source": text}


def _sha256(data: bytes) -> str:
    """CPython's own module computes it where there is one: hashlib loads OpenSSL."""
    for name in ("_sha2", "_sha256"):
        with contextlib.suppress(ImportError):
            return str(import_module(name).sha256(data).hexdigest())
    return str(import_module("hashlib").sha256(data).hexdigest())


def topology() -> dict[str, Any] | None:
    """The description by `ktrxer lab` of the network that it made around this process; None outside of a lab."""
    text = os.environ.get(TOPOLOGY)
    if not text:
        return None
    try:
        made = json.loads(text)
    except ValueError:
        made = None
    return made if isinstance(made, dict) else {"missing": f"${TOPOLOGY} is no JSON object"}
