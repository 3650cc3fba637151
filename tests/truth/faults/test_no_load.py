# SPDX-License-Identifier: MIT OR Apache-2.0
"""A load of which nothing gets through: its run has no grade, because the delays under load are idle ones. Reference: the counter of the router's rule."""

import json

from noise import reasons


def test_a_load_that_does_not_get_through(path, serve):
    serve(path.b, "--token-file", path.token)
    path.shape("rb", 20, 50_000)
    path.a.sysctl("ipv4/tcp_mtu_probing", 0)  # else TCP tries shorter segments
    child = path.start("tcp_upload", "--for", "4", "--delay", "2", "-i", "50ms", "--no-extras")
    path.wait_for_run()  # the trial before it has ended, and the load begins two seconds later
    # The flows' segments with data are longer than those of the control connection.
    path.r.run(["nft", "-f", "-"], input="""
add table ip narrow
add chain ip narrow forward { type filter hook forward priority 0; }
add rule ip narrow forward tcp dport 8620 ip length > 1000 counter drop
""")
    made = path.result(child)
    rules = json.loads(path.r.run(["nft", "-j", "list", "chain", "ip", "narrow", "forward"]).stdout)["nftables"]
    (dropped,) = [part["counter"]["packets"] for rule in rules if "rule" in rule for part in rule["rule"]["expr"] if "counter" in part]
    print(f"figure: the router dropped {dropped}; {made.summary.throughput}; {made.reasons}")
    assert dropped > 0, "the reference dropped nothing"
    assert made.summary.latency and made.summary.grade is None and made.summary.responsiveness is None
    assert not any(line.startswith(("grade", "responsiveness")) for line in made.lines)
    assert made.verdict == "invalid" and made.says("flow measured nothing: no byte arrived")
    assert not reasons({"reasons": [reason for reason in made.reasons if "limited by" in reason]}), "a processor is the only one that may be named"
