# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recipes of the catalogue over paths whose rate and queue are known, in virtual time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from guests import FOR_RUNS, Lab

RATE = 8.0  # Mbit/s of the bottleneck, with the headers of all layers
SHARE = 0.9  # of it that TCP's payload takes at least


def summary(folder: Path, leaf: str, *words: str) -> dict[str, Any]:
    lab = Lab(folder, FOR_RUNS)
    settings = [word for one in (f"rate={RATE:g}mbit", f"leaf={leaf}") for word in ("--set", one)]
    run = ["-m", "ktrxer", "run", *words, "-i", "50ms", "--no-extras", "--json"]
    done = lab("run", "flent", "--time", "virtual", *settings, "--beside", "server=ktrxer serve", "--", sys.executable, *run, timeout=500)
    assert done.returncode in (0, 3) and done.stdout, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    assert made["verdict"] == "valid", made["reasons"]
    found: dict[str, Any] = made["summary"]
    return found


def test_a_call_suffers_from_a_fifo(tmp_path: Path) -> None:
    """An upload fills a queue of 200 packets: 300 ms at 8 Mbit/s. A fair queue keeps the call out of it."""
    scores = {}
    for leaf in ("pfifo limit 200", "fq_codel"):
        made = summary(tmp_path / leaf[:2], leaf, "voip-1up", "-H", "server", "--for", "10", "--delay", "3")
        scores[leaf] = {(one["direction"], one["phase"]): one for one in made["voice"]}
    for way in ("up", "down"):
        for found in scores.values():
            assert found[way, "idle"]["mos"] > 4.2 and found[way, "idle"]["loss"] == 0
    fifo, fair = (scores[leaf]["up", "load"] for leaf in ("pfifo limit 200", "fq_codel"))
    # The play-out delay follows the packet that waited least, so a longer queue shows as late packets.
    assert fair["mos"] > 4 > 3.5 > fifo["mos"] and fifo["late"] > 0.5 and fair["late"] == 0


def test_each_step_of_two_uploads(tmp_path: Path) -> None:
    """The first upload has the path for itself, then shares it with the second one, half each by a fair queue."""
    made = summary(tmp_path, "fq_codel", "tcp_2up_delay", "-H", "server", "--for", "10", "--delay", "5")
    alone, both = (one["rates_mbps"] for one in made["steps"])
    assert [one["name"] for one in made["steps"]] == ["stream 1", "stream 1, stream 2"]
    assert alone.keys() == {"TCP stream 1"} and SHARE * RATE > both["TCP stream 1"] == pytest.approx(both["TCP stream 2"], rel=0.15)
    assert alone["TCP stream 1"] > 0.8 * RATE and sum(both.values()) > SHARE * RATE


def test_two_far_ends(tmp_path: Path) -> None:
    """The same host twice, as in Flent: its second series are called server//2."""
    made = summary(tmp_path, "fq_codel", "rtt_fair_var", "-H", "server", "-H", "server", "--for", "6", "--delay", "1", "--set", "data_directions=u,d")
    names = {one["name"] for one in made["series"]}
    assert names == {"Ping (ms) ICMP server", "Ping (ms) ICMP server//2", "TCP upload BE server", "TCP download BE server//2"}


def test_a_flood_is_limited_by_the_path(tmp_path: Path) -> None:
    made = summary(tmp_path, "pfifo limit 100", "udp_flood", "-H", "server", "--for", "5", "--delay", "1", "--set", "udp_bandwidth=20M")
    (flood,) = [one for one in made["throughput"] if one["name"] == "UDP upload"]
    assert SHARE * RATE < flood["mean_mbps"] < RATE
