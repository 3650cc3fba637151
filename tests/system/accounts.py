# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks of a disturbed command's `end` object: its counts must add up."""

import json
import time

STATES = ("sent", "failed", "skipped", "cancelled")


def closed(result):
    assert result["requested"] == sum(result[name] for name in STATES), {name: result[name] for name in ("requested", *STATES)}
    return result


def finish(child, seconds=10):
    """(status, objects, standard error) of a command, which must end by itself within the time limit."""
    began = time.monotonic()
    output, errors = child.communicate(timeout=seconds + 20)
    assert time.monotonic() - began < seconds, "it took too long to end"
    return child.returncode, [json.loads(line) for line in output.splitlines()], errors
