# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a command that was disturbed must say in its end: accounts that close."""

import json
import time

STATES = ("sent", "failed", "skipped", "cancelled")


def closed(result):
    assert result["requested"] == sum(result[name] for name in STATES), {name: result[name] for name in ("requested", *STATES)}
    return result


def finish(child, seconds=10):
    """(status, objects, standard error). It must end by itself within so long."""
    began = time.monotonic()
    output, errors = child.communicate(timeout=seconds + 20)
    assert time.monotonic() - began < seconds, "it took too long to end"
    return child.returncode, [json.loads(line) for line in output.splitlines()], errors
