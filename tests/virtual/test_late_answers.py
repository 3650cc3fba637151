# SPDX-License-Identifier: MIT OR Apache-2.0
"""Answers after the time-out are no silence of the far end. Reference: the delay of the path, by construction."""

from __future__ import annotations

import json

import pytest
from guests import KTRXER, Lab

WORDS = ("run", "flent", "--time", "virtual", "--set", "delay=750ms", "--beside", f"server={KTRXER} serve", "--")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ping", "stamp"])
def test_an_answer_after_the_time_out_is_named(lab: Lab, command: str) -> None:
    """The round trip is 3 s."""
    words = f"{KTRXER} {command} -i 20ms -c 500 -W 1s server"
    done = lab(*WORDS, "sh", "-c", f"{words} --json; {words}")
    end, at = json.JSONDecoder().raw_decode(done.stdout)
    text = done.stdout[at:]
    print(end["reasons"], text)
    assert end["received"] == 0 and end["too_late"] > 300 and end["verdict"] == "invalid"
    (reason,) = (one["text"] for one in end["reasons"])
    assert f"server answered {end['too_late']} of 500 probes after the time-out of 1.000 s" in reason and "--timeout" in reason
    assert end["lost"] + end["too_late"] == 500 and " lost (" in text and "answered after the time-out" in text and "nothing at all" not in text
