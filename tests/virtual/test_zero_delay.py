# SPDX-License-Identifier: MIT OR Apache-2.0
"""A path without any delay: the kernel of the guest answers a ping within the time of one stamp, so each round trip is 0 ns. Reference: by
construction. Programs that run side by side delay each other between two readings of the clock, and no conversion of a stamp may show it."""

from __future__ import annotations

import json

from guests import KTRXER, Lab

PINGS = 4


def test_no_round_trip_is_shorter_than_0(lab: Lab) -> None:
    one = f"{KTRXER} ping -i 20ms -c 100 server --json"
    words = "; ".join([" & ".join(f"{one} >{n}.json" for n in range(PINGS)), "wait"])
    done = lab("run", "access", "--time", "virtual", "--", "sh", "-c", words)
    assert done.returncode == 0, done.stderr
    for n in range(PINGS):
        end = json.loads((lab.folder / f"{n}.json").read_text())
        print(end["verdict"], end["reasons"], end["rtt_us"])
        assert (end["received"], end["untimed"], end["verdict"]) == (100, 0, "valid"), end["reasons"]
        assert 0 <= end["rtt_us"]["min"] <= end["rtt_us"]["p50"] < 1
