# SPDX-License-Identifier: MIT OR Apache-2.0
"""What beside.sh must have printed."""

from __future__ import annotations

import re


def read(output: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z_-]+): *(.*)$", output, re.MULTILINE))


def judge(said: dict[str, str]) -> None:
    came = {name[5:]: int(value) for name, value in said.items() if name.startswith("came-")}
    assert came == {"before": 5, "together": 0, "stopped": 5, "continued": 0, "killed": 5}
    parts = {name[6:]: int(value) for name, value in said.items() if name.startswith("parts-")}
    assert parts == {"alone": 1, "after": 1, "killed": 2, "cleaned": 1, "left": 0}
    assert said["together-backend"] == '"xdp"' and said["together-lost"] == "0" and said["together-dropped"] == "5"
    assert said["together-backend_note"] == '"beside other programs, by libxdp\'s dispatcher"'
    assert "its heart paused 1 times, and what came then passed by the rules" in said["stopped-backend_note"]
    assert said["seen-by-doctor"] == "" and said["clean-while-alive"] == "nothing was left behind", "a program that lives stays"
    assert said["doctor"].startswith("1 XDP program of a killed ktrxer still there") and "`ktrxer doctor --clean`" in said["doctor"]
    assert said["clean"] == "1 XDP program that a killed ktrxer had left behind taken out" and said["clean-again"] == "nothing was left behind"
    assert int(said["neighbour-saw"]) >= 15, "what no rule drops goes on to the other program"
