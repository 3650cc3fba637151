# SPDX-License-Identifier: MIT OR Apache-2.0
"""Commands that measure a link which netem shapes in virtual time: near - mid - far; mid shapes both of its devices."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from guests import KTRXER, Lab

FRAME, LARGE = 14, 1500  # netem counts frames with their Ethernet header; the commands count IP packets
PAYLOADS = (200, 1472)  # of cross traffic

FILE = """
hosts = ["near", "far"]
routers = ["mid"]
[[links]]
ends = ["near", "mid"]
delay = "2ms"
[[links]]
ends = ["mid", "far"]
"""
# One more router, towards far: its packets wait for different times. SHAPE shapes the path to near alone.
WIRE_FILE = FILE.replace('["mid"]', '["mid", "wire"]').replace('["mid", "far"]', '["mid", "wire"]\n[[links]]\nends = ["wire", "far"]')
WIRE = "for d in to-mid to-far; do ip netns exec wire tc qdisc del dev $d root 2>/dev/null; ip netns exec wire tc qdisc add dev $d root netem {}; done"
SHAPE = "for d in to-near to-far; do ip netns exec mid tc qdisc del dev $d root 2>/dev/null; ip netns exec mid tc qdisc add dev $d root netem {}; done"
LIMIT = " limit 10000"  # packets of netem, where a scenario names no other limit
CROSS = "{} flow up far --udp --bitrate {}k --model poisson --payload {}..{} --for 60s --token-file token >/dev/null 2>&1 & sleep 0.5"


def truth(mbit: float) -> float:
    """What IP packets of the largest size get of a link, in bit/s."""
    return mbit * 1e6 * LARGE / (LARGE + FRAME)


CHANGE = "(sleep {}; for d in to-near to-far; do ip netns exec mid tc qdisc change dev $d root netem {}; done) &"


def measure(
    folder: Path,
    scenarios: Iterable[tuple[str, int, str]],
    timeout: float,
    serve_words: str = "",
    changes: Mapping[int, tuple[float, str]] | None = None,
) -> list[dict[str, Any]]:
    """The result of each scenario, one after the other in one guest. A scenario is: netem's words, cross traffic up in kbit/s of payload, and
    the words of the command. `serve_words`: further options of `ktrxer serve`. `changes`: of a scenario by its number, after so many seconds
    netem has other words."""
    jobs = list[tuple[str, str]]()
    for number, (netem, cross_kbit, words) in enumerate(scenarios):
        job = [SHAPE.format(netem if "limit" in netem else netem + LIMIT)]
        if cross_kbit:
            job.append(CROSS.format(KTRXER, cross_kbit, *PAYLOADS))
        if changes and number in changes:
            seconds, later = changes[number]
            job.append(CHANGE.format(seconds, later + LIMIT))
        jobs.append(("\n".join(job), words))
    return after(folder, jobs, timeout, serve_words)


def after(folder: Path, jobs: Iterable[tuple[str, str]], timeout: float, serve_words: str = "", file: str = FILE) -> list[dict[str, Any]]:
    """The result of each command after its shell commands, one after the other in one guest. A background process of the shell ends with the command."""
    lab = Lab(folder)
    (lab.folder / "shaped.toml").write_text(file)
    lab.write_token()
    shell = list[str]()
    results = list[Path]()
    for number, (before, words) in enumerate(jobs):
        results.append(lab.folder / f"{number}.json")
        # A shell's background processes ignore SIGINT.
        shell += [before, f"{KTRXER} {words} --json >{number}.json", "for p in $(jobs -p); do kill $p; done 2>/dev/null; wait"]
    serve = f"far={KTRXER} serve --quiet --token-file token {serve_words}".rstrip()
    done = lab("run", "./shaped.toml", "--time", "virtual", "--beside", serve, "--", "bash", "-c", "\n".join([*shell, "true"]), timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(path.read_text()) for path in results]
