# SPDX-License-Identifier: MIT OR Apache-2.0
"""A batch over two queues, and the comparison of what it makes: FQ-CoDel takes away the delay that a FIFO adds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from guests import ROOT

BATCH = """
repetitions = 3
seed = 7
directory = "out"
retries = 0

[run]
test = "tcp_upload"
host = "server"
length = "4s"
delay = "1s"
interval = "50ms"
title = "{queue}"

[matrix]
queue = [{ name = "fifo", leaf = "pfifo limit 50" }, { name = "fq_codel", leaf = "fq_codel" }]

[lab]
topology = "flent"
time = "virtual"
set = { rate = "4mbit", leaf = "{leaf}" }
beside = ["server=ktrxer serve"]
"""


def ktrxer(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = ROOT / "build" / "cli" / "ktrxer"
    environment = os.environ | {"KTRXER_BIN": str(program), "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))}
    return subprocess.run([sys.executable, "-m", "ktrxer", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)


def test_a_batch_and_its_comparison(tmp_path: Path) -> None:
    (tmp_path / "queues.toml").write_text(BATCH)
    done = ktrxer(tmp_path, "batch", "queues.toml")
    assert "6 runs in 6 tries: " in done.stdout, done.stderr
    assert ", 0 without a file" in done.stdout
    done = ktrxer(tmp_path, "compare", "out", "--by", "queue", "--all", "--json", "--no-cache")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["comparisons"]
    by_name: dict[str, Any] = {one["name"]: one for one in found["groups"]}
    assert {name: len(one["runs"]) for name, one in by_name.items()} == {"fifo": 3, "fq_codel": 3}
    sign = 1 if found["groups"][0]["name"] == "fifo" else -1  # B - A
    rows = {row["key"]: row for row in found["figures"]}
    added = rows["added"]
    assert sign * added["difference"] < -50  # 50 packets at 4 Mbit/s are 150 ms
    assert sign * added["high"] < 0 or sign * added["low"] < 0
    assert list(found["differ_in"]) == ["topology", "title"]
    rate = rows["rate.tcp_upload"]
    assert abs(rate["share_of_a"]) < 0.1
