# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check` over a path that needs repair without a deep queue. Reference: the router's rule, by construction."""

import json
import os
import sys

from conftest import ROOT


def check(path, serve, *words):
    serve(path.b, "--token-file", path.token)
    environment = os.environ | {"KTRXER_BIN": str(path.ktrxer), "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "ktrxer", "check", "--server", "10.78.0.2", "-D", path.directory, "--token-file", path.token, "--json", *words]
    done = path.a.run(list(map(str, command)), env=environment, check=False, timeout=120)
    assert done.stdout, done.stderr
    made = json.loads(done.stdout)
    print(f"figure: {made['answer']}; {made['reasons']}")
    return made


def test_a_path_that_loses_packets(path, serve):
    """One packet of ten is lost in each direction, with and without load."""
    path.shape("rb", 10, 15_000)
    path.shape("ra", 10, 15_000)
    path.r.run(["nft", "table ip t { chain c { type filter hook forward priority 0; numgen random mod 10 < 1 counter drop; }; }"])
    made = check(path, serve, "-l", "5", "--delay", "4", "-i", "20ms", "--hops", "0")
    assert made["bloated"] == "no", "the reference: a queue of 12 ms at most"
    assert "nothing to repair" not in made["answer"][2] and "probes were lost, " in made["answer"][2] and "on the idle line" in made["answer"][2]
