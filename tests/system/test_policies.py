# SPDX-License-Identifier: MIT OR Apache-2.0
"""A user may give the command another scheduling policy by chrt(1): it begins, and its helper threads have this policy."""

import json
import os
import re
from pathlib import Path

import pytest


@pytest.mark.parametrize("policy", ["--idle", "--batch"])
def test_a_policy_below_the_normal_one(shared_pair, ktrxer, serve, policy):
    a, b = shared_pair
    words = ["chrt", policy, "0", ktrxer]
    server = b.popen([*words, "serve", "--port", "9107", "--jsonl"])
    try:
        assert '"start"' in server.stdout.readline(), server.stderr.read()
        assert "listening" in server.stdout.readline()
        tasks = [(task / "sched").read_text() for task in Path(f"/proc/{server.pid}/task").iterdir() if (task / "sched").exists()]
        policies = {int(found[1]) for text in tasks if (found := re.search(r"^policy\s*:\s*(\d+)$", text, re.MULTILINE))}
        assert policies <= {{"--idle": os.SCHED_IDLE, "--batch": os.SCHED_BATCH}[policy]}
        end = json.loads(a.run([*words, "stamp", b.address, "--port", "9107", "--count", "10", "--interval", "5ms", "--json"], check=False).stdout)
        assert end["received"] == 10, end
    finally:
        server.kill()
        server.communicate()
