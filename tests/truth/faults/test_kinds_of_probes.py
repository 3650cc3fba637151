# SPDX-License-Identifier: MIT OR Apache-2.0
"""A far end that limits its answers of ICMP, as kernels and routers do: its losses are not the path's. Reference: the sysctl, and nftables counts the answers."""

import json

import pytest

COUNT = """
add table ip own
add counter ip own requests
add counter ip own replies
add chain ip own forward { type filter hook forward priority 0; }
add rule ip own forward icmp type echo-request counter name requests
add rule ip own forward icmp type echo-reply counter name replies
"""


@pytest.mark.parametrize("limited", [True, False])
def test_answers_of_icmp_are_limited(path, serve, limited):
    path.shape("rb", 10, 50_000)
    path.r.run(["nft", "-f", "-"], input=COUNT)
    if limited:
        path.b.sysctl("ipv4/icmp_ratelimit", 1000)  # one each second
        path.b.sysctl("ipv4/icmp_ratemask", 1)  # of echo replies
    serve(path.b, "--token-file", path.token)
    made = path.measure("rrul", "--for", "8", "--delay", "1", "-i", "50ms", "--no-extras")
    told = json.loads(path.r.run(["nft", "-j", "list", "counters"]).stdout)["nftables"]
    counts = {
        one["counter"]["name"]: one["counter"]["packets"]
        for one in told
        if "counter" in one
    }
    print(f"figure: {counts}; {made.reasons}")
    assert (counts["replies"] < 0.2 * counts["requests"]) == limited, "the reference"
    message = [
        reason
        for reason in made.reasons
        if "UDP and" in reason and "probes of the same class are lost" in reason
    ]
    assert bool(message) == limited
    assert not limited or (
        made.verdict != "valid"
        and "limits or filters the one kind, or they take different paths" in message[0]
    )
