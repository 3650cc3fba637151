# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer flow` where 30 % of all packets are lost in each direction, those of its control connection too: each flow has its result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from guests import KTRXER, Lab

RUNS = 5  # in each direction
FILE = """
hosts = ["client", "server"]
[[links]]
ends = ["client", "server"]
delay = "10ms"
"""
NO_COUNTS = "the server's final counts of 1 of 1 flows did not arrive"


LATE = ("exchange of clocks", "no answer came within 30 s", "lost packets delayed the greeting")


@pytest.mark.parametrize(("loss", "known"), [('from.client = { loss = "30%" }', 2 * RUNS), ('loss = "30%"', RUNS)], ids=["up", "both"])
def test_each_flow_has_a_result(lab: Lab, loss: str, known: int) -> None:
    """Of 60 runs with losses in both directions 13 ended before their flow began: the limits of the exchanges were shorter than TCP's."""
    (lab.folder / "lossy.toml").write_text(FILE + loss)
    one = f"{KTRXER} flow -u $way server -b 2000k --for 1s --json > $way-$i.json"
    job = f"for i in $(seq {RUNS}); do for way in up down; do {one}; done; done; true"
    done = lab("run", "./lossy.toml", "--time", "virtual", "--beside", f"server={KTRXER} serve", "--", "sh", "-c", job)
    assert done.returncode == 0, done.stderr
    ends: list[dict[str, Any]] = [json.loads(path.read_text()) for path in sorted(lab.folder.glob("*.json"))]
    assert len(ends) == 2 * RUNS
    # With losses in both directions one of some thousand exchanges takes longer than its limit of 30 s (flow_client_messages.c), or 16 s of the server.
    unclocked = [[reason["text"] for reason in end["reasons"]] for end in ends if "flows" not in end]
    assert len(unclocked) <= known % (2 * RUNS) // RUNS and all(any(words in texts[0] for words in LATE) for texts in unclocked), unclocked
    ends = [end for end in ends if "flows" in end]
    counted = [end for end in ends if None not in (end["flows"][0]["sent_packets"], end["flows"][0]["received_packets"])]
    assert len(counted) >= known - len(unclocked), [end["reasons"] for end in ends]
    assert all(any(NO_COUNTS in reason["text"] for reason in end["reasons"]) for end in ends if end not in counted)


ROUTED = """
hosts = ["client", "server"]
routers = ["hub"]
[[links]]
ends = ["client", "hub"]
[[links]]
ends = ["hub", "server"]
"""


@pytest.mark.parametrize("way", ["up", "down"])
def test_the_sender_sleeps_after_an_icmp_error(lab: Lab, way: str) -> None:
    """The clock stands still while a program computes, and each system call takes a time: a loop of them is seen as a busy processor."""
    (lab.folder / "routed.toml").write_text(ROUTED)
    flow = f"{KTRXER} flow -u {way} server -b 2000k --for 600ms --json"
    rule = "(sleep 0.4; ip -n hub rule add pref 1 ipproto udp prohibit) &"
    job = ("sh", "-c", f"{rule} head -1 /proc/stat > before; {flow}; head -1 /proc/stat > after")
    done = lab("run", "./routed.toml", "--time", "virtual", "--beside", f"server={KTRXER} serve", "--", *job)
    (one,) = json.loads(done.stdout)["flows"]
    assert one["received_packets"] > 10 and one["lost"] > 10, one
    before, after = ([int(word) for word in (lab.folder / name).read_text().split()[1:]] for name in ("before", "after"))
    ticks = [b - a for a, b in zip(before, after, strict=True)]
    assert ticks[3] / sum(ticks) > 0.9, f"idle {ticks[3]} of {sum(ticks)} ticks"
