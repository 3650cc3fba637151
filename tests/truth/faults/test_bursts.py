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
    assert any("burst" in reason for reason in end["reasons"])
