# SPDX-License-Identifier: MIT OR Apache-2.0
"""A shaper of a router whose bucket holds a pair: it does not spread pairs, and this host's link is not to blame alone. Reference: the shaper by construction."""

import json

import pytest


@pytest.mark.parametrize("command", ["pair", "abw"])
def test_a_bucket_that_holds_a_pair(path, serve, command):
    path.shape("rb", 8, 40_000)  # 5000 bytes at once
    serve(path.b, "--token-file", path.token)
    words = [path.ktrxer, command, "10.78.0.2", "--direction", "up", "--token-file", path.token, "--json"]
    end = json.loads(path.a.run(list(map(str, words)), check=False, timeout=60).stdout)
    print(f"figure: {end['up']['reading']}; {end['reasons']}")
    assert end["up"]["capacity_bit_s"] is None and end["verdict"] == "invalid"
    assert any("burst" in reason["text"] for reason in end["reasons"])


@pytest.mark.parametrize("burst", ["3m", "5k"])
def test_a_bucket_that_holds_the_first_second(path, serve, burst):
    """The mean over the whole time is not the shaper's rate, and the summary says so."""
    path.r.run(["tc", "qdisc", "replace", "dev", "rb", "root", "tbf", "rate", "4mbit", "burst", burst, "limit", "40000"])
    serve(path.b, "--token-file", path.token)
    made = path.measure("tcp_upload", "--for", "8", "--delay", "1", "-i", "100ms", "--no-extras")
    mean = next(one.mean_mbps for one in made.summary.throughput)
    found = [one for one in made.summary.changes if one.unit == "Mbit/s"]
    print(f"figure: mean {mean:.2f} Mbit/s of a shaper of 4; {found}")
    assert (mean > 5) == (burst == "3m"), "the reference: 24 Mbit of the bucket in 8 s"
    assert bool(found) == (burst == "3m")
    assert not found or (found[0].levels[0].median > 10 and 3 < found[0].levels[-1].median < 4)
    assert not found or any(line.startswith("changed in mid-run") for line in made.lines)
