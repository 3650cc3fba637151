# SPDX-License-Identifier: MIT OR Apache-2.0
"""The objects that Python commands print in the process of a test, against the schemas (tests/system/recorded.py does so for processes)."""

import json
import sys
from functools import cache
from pathlib import Path

import jsonschema
from ktrxer import printed
from ktrxer.cli import SUBCOMMANDS

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
MODULES = {one.module: name for name, one in SUBCOMMANDS.items()}
LIVE = "ktrxer.run.json_lines"  # prints the lines of `run` and `check`, whose tables are the same


@cache
def validator(command):
    return jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{command}.schema.json").read_text()))


def wrong(command, made):
    """One line for each part of the object that the schema does not allow."""
    plain = json.loads(json.dumps(made))
    return [f"{command}: {error.json_path}: {error.message[:300]}" for error in validator(command).iter_errors(plain)]


def watch(found, show=printed.show):
    """printed.show() that appends to `found`. The module of the caller is that of the command."""

    def checked(made, **more):
        module = sys._getframe(1).f_globals["__name__"]
        found.extend(wrong("run" if module == LIVE else MODULES[module], made))
        show(made, **more)

    return checked


def watch_rows(found, row=printed.row):
    """printed.row() that appends to `found`."""

    def checked(made):
        found.extend(wrong("query-rows", made))
        row(made)

    return checked
