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
    lab = Lab(folder)
    (lab.folder / "shaped.toml").write_text(FILE)
    lab.write_token()
    job = list[str]()
    results = list[Path]()
    for number, (netem, cross_kbit, words) in enumerate(scenarios):
        results.append(lab.folder / f"{number}.json")
        job.append(SHAPE.format(netem if "limit" in netem else netem + LIMIT))
        if cross_kbit:
            job.append(CROSS.format(KTRXER, cross_kbit, *PAYLOADS))
        if changes and number in changes:
            seconds, later = changes[number]
            job.append(CHANGE.format(seconds, later + LIMIT))
        job.append(f"{KTRXER} {words} --json >{number}.json")
        if cross_kbit:
            job.append("kill $!; wait $!")  # a shell's background processes ignore SIGINT
    serve = f"far={KTRXER} serve --quiet --token-file token {serve_words}".rstrip()
    done = lab("run", "./shaped.toml", "--time", "virtual", "--beside", serve, "--", "sh", "-c", "\n".join([*job, "true"]), timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(path.read_text()) for path in results]
