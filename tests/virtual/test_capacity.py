# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer capacity` over links that netem shapes in virtual time: the IP-layer capacity is that of the link within 2 %."""

from __future__ import annotations

from typing import Any

import pytest
from shaped import FRAME, measure

pytestmark = pytest.mark.slow

# Mbit/s to options. A search from row 0 takes half a second for each 100 Mbit/s; a million packets take a minute of wall time.
LINKS = {
    10: "--for 6s",
    100: "--for 3s --low-delay 20ms",
    1000: "--for 1s --sample-interval 500ms --row 950 --start-row --low-delay 10ms --high-delay 40ms",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """All links, one after the other in one guest."""
    # A queue of about 60 ms of packets of 1250 bytes.
    scenarios = [(f"rate {mbit}mbit limit {max(20, 6 * mbit)}", 0, f"capacity far --token-file token {options}") for mbit, options in LINKS.items()]
    results = measure(tmp_path_factory.mktemp("capacity"), scenarios, 580, "--udpstp-port 24601")
    return dict(zip(LINKS, results, strict=True))


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
    assert (result[way]["sender"]["sent"] if way == "up" else result[way]["datagrams_received"]) >= result[way]["datagrams"]
