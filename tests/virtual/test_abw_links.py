# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer abw` over two loaded links: the counters of the links' queues are the truth, and the range has it.

near - one - two - three - far, with cross traffic from a to b over the first shaped link (one - two), and from c to d over the second one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guests import KTRXER, Lab
from shaped import FRAME, LARGE, PAYLOADS

pytestmark = pytest.mark.slow

MBIT = 10
LOADS = (60, 30)
LINKS = (("one", "to-two"), ("two", "to-three"))
ENDS = (("near", "one"), ("one", "two"), ("two", "three"), ("three", "far"), ("a", "one"), ("b", "two"), ("c", "two"), ("d", "three"))
FILE = 'hosts = ["near", "far", "a", "b", "c", "d"]\nrouters = ["one", "two", "three"]\n' + "".join(
    f'[[links]]\nends = ["{x}", "{y}"]\n' for x, y in ENDS
)
CROSS = "ip netns exec {} {} flow up {} --udp --bitrate {}k --model poisson --payload {}..{} --for 60s --token-file token >/dev/null 2>&1 &"
HEADERS = 28


def _count(when: str) -> list[str]:
    return [f"ip netns exec {node} tc -s -j qdisc show dev {device} >{node}-{when}.json" for node, device in LINKS] + [
        f"date +%s%N >time-{when}"
    ]


def _job() -> list[str]:
    job = [f"ip netns exec {node} tc qdisc add dev {device} root netem rate {MBIT}mbit limit 10000" for node, device in LINKS]
    mean = sum(PAYLOADS) / 2
    for (sender, receiver), load in zip((("a", "b"), ("c", "d")), LOADS, strict=True):
        kbit = round(MBIT * 10 * load * mean / (mean + HEADERS + FRAME))
        job.append(CROSS.format(sender, KTRXER, receiver, kbit, *PAYLOADS))
    measured = f"{KTRXER} abw far --direction up --token-file token --json >abw.json"
    return [*job, "sleep 1", *_count("before"), measured, *_count("after"), "kill $(jobs -p); true"]


def _mbit(folder: Path, node: str, result: dict[str, Any]) -> float:
    """Of the cross traffic on a link, by the counters of its queue."""
    counts = [json.loads((folder / f"{node}-{when}.json").read_text())[0]["bytes"] for when in ("before", "after")]
    times = [int((folder / f"time-{when}").read_text()) for when in ("before", "after")]
    own: int = result["probe_bytes"] + FRAME * result["probes"]
    return float(counts[1] - counts[0] - own) * 8e3 / (times[1] - times[0])


def test_the_truth_is_in_the_range(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    (lab.folder / "links.toml").write_text(FILE)
    lab.write_token()
    servers = [word for host in ("far", "b", "d") for word in ("--beside", f"{host}={KTRXER} serve --quiet --token-file token")]
    done = lab("run", "./links.toml", "--time", "virtual", *servers, "--", "sh", "-c", "\n".join(_job()), timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((lab.folder / "abw.json").read_text())
    loads = [_mbit(lab.folder, node, result["up"]) for node, _ in LINKS]
    assert loads == pytest.approx([MBIT * load / 100 for load in LOADS], rel=0.15), "the cross traffic is what it should be"
    truth = (MBIT - max(loads)) * 1e6 * LARGE / (LARGE + FRAME)
    available = result["up"]["available_bit_s"]
    assert available["low"] <= truth <= available["high"], result
    assert available["low"] > 0.6 * truth and available["high"] < 1.4 * truth
