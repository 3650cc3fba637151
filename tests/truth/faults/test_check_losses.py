# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check` over a path that needs repair without a deep queue. Reference: the router's rule, by construction."""


def test_a_path_that_loses_packets(path, serve):
    """One packet of ten is lost in each direction, with and without load."""
    path.shape("rb", 10, 15_000)
    path.shape("ra", 10, 15_000)
    path.r.run(["nft", "table ip t { chain c { type filter hook forward priority 0; numgen random mod 10 < 1 counter drop; }; }"])
    made = path.check(serve, "--for", "5", "--delay", "4", "-i", "20ms", "--hops", "0")
    assert made["bloated"] == "no", "the reference: a queue of 12 ms at most"
    assert "nothing to repair" not in made["answer"][2] and "probes were lost, " in made["answer"][2] and "on the idle line" in made["answer"][2]
