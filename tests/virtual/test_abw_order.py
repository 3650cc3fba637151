# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer abw` over an idle link, behind which a quarter of the packets are delayed and overtaken: a range that misses the link's rate is not valid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guests import KTRXER, Lab
from shaped import truth

pytestmark = pytest.mark.slow

MBIT, RUNS = 20, 6
ENDS = (("near", "one"), ("one", "two"), ("two", "far"))
FILE = 'hosts = ["near", "far"]\nrouters = ["one", "two"]\n' + "".join(f'[[links]]\nends = ["{x}", "{y}"]\n' for x, y in ENDS)
JOB = (
    f"ip netns exec one tc qdisc add dev to-two root netem rate {MBIT}mbit limit 100\n"
    "ip netns exec two tc qdisc add dev to-far root netem delay 10ms reorder 75% 50%\n"
    + "".join(f"{KTRXER} abw far --direction up --token-file token --json >abw{n}.json\n" for n in range(RUNS))
    + "true"
)


def test_a_range_that_is_too_low_is_not_valid(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    (lab.folder / "links.toml").write_text(FILE)
    lab.write_token()
    server = f"far={KTRXER} serve --quiet --token-file token"
    done = lab("run", "./links.toml", "--time", "virtual", "--beside", server, "--", "sh", "-c", JOB, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    overtaken = 0
    for n in range(RUNS):
        made = json.loads((lab.folder / f"abw{n}.json").read_text())
        found = made["up"]["available_bit_s"]
        print(f"figure: {found}; {made['verdict']}: {made['reasons']}")
        overtaken += any(reason["id"] == "overtaken" for reason in made["reasons"])
        assert not found or found["low"] <= truth(MBIT) <= found["high"] or made["verdict"] != "valid"
    assert overtaken, "the reference: some probes overtake others"
