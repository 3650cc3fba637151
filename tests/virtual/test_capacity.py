# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer capacity` over links that netem shapes in virtual time: the IP-layer capacity is that of the link within 2 %."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import pytest
from guests import ROOT, Lab

pytestmark = pytest.mark.slow

KTRXER = Path(os.environ.get("KTRXER_BUILD", ROOT / "build")) / "cli" / "ktrxer"
FRAME = 14  # netem counts frames with their Ethernet header

FILE = """
hosts = ["near", "far"]
routers = ["mid"]
[[links]]
ends = ["near", "mid"]
delay = "2ms"
[[links]]
ends = ["mid", "far"]
"""

# A queue of about 60 ms of packets of 1250 bytes.
SHAPE = (
    "for d in to-near to-far; do ip netns exec mid tc qdisc del dev $d root 2>/dev/null; "
    "ip netns exec mid tc qdisc add dev $d root netem rate {0}mbit limit {1}; done"
)

# Mbit/s to options. A search from row 0 takes half a second for each 100 Mbit/s; a million packets take a minute of wall time.
LINKS = {
    10: "--for 6s",
    100: "--for 3s --low-delay 20ms",
    1000: "--for 1s --sample-interval 500ms --row 950 --start-row --low-delay 10ms --high-delay 40ms",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """All links, one after the other in one guest."""
    folder = tmp_path_factory.mktemp("capacity")
    lab = Lab(folder / "here", folder / "scratch")
    lab.folder.mkdir()
    lab.scratch.mkdir()
    (lab.folder / "capacity.toml").write_text(FILE)
    (lab.folder / "token").write_text(secrets.token_hex(16))
    (lab.folder / "token").chmod(0o600)
    job = list[str]()
    for mbit, options in LINKS.items():
        job.append(SHAPE.format(mbit, max(20, 6 * mbit)))
        job.append(f"{KTRXER} capacity far --json --token-file token {options} >{mbit}.json")
    serve = f"far={KTRXER} serve --quiet --token-file token --udpstp-port 24601"
    done = lab("run", "./capacity.toml", "--time", "virtual", "--beside", serve, "--", "sh", "-c", "\n".join([*job, "true"]), timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    return {mbit: json.loads((lab.folder / f"{mbit}.json").read_text()) for mbit in LINKS}


@pytest.mark.parametrize("mbit", LINKS)
@pytest.mark.parametrize("way", ["up", "down"])
def test_the_capacity_is_that_of_the_link(found: dict[int, dict[str, Any]], mbit: int, way: str) -> None:
    result = found[mbit]
    assert result["verdict"] == "valid", result["reasons"]
    maximum = result[way]["maximum"]
    # The largest packets have 1250 bytes; the additional one of a row is smaller, and has more headers in proportion.
    assert mbit * 1e6 * 0.98 * 1250 / (1250 + FRAME) <= maximum["bit_s"] <= mbit * 1e6 * 1250 / (1250 + FRAME) * 1.001
    # The queue was full: the delay variation is that of the queue, the round trip's no more than the sum of both.
    assert maximum["delay_variation"]["max_ns"] >= 10_000_000
    assert result[way]["datagrams_sent" if way == "up" else "datagrams_received"] >= result[way]["datagrams"]
