# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs `ktrxer run` with four TCP flows in one direction and probes of both kinds, and prints the output of `ktrxer run --json`. Its
`phases` have times in nanoseconds since 1970, so that other samples of the same time can be compared.

    loaded.py up|down
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

LENGTH_S, IDLE_S = 8, 4
RECIPE = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, {way}loads, icmp, udp
def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(icmp(setting), udp(setting, "Ping (ms) UDP"), {way}loads(setting, [f"TCP {way}load::{{n}}" for n in range(4)]))
TEST = Test("loaded", "four flows, and probes of two kinds", plan)
"""


def main(way: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        recipe = Path(folder) / "loaded.py"
        recipe.write_text(RECIPE.format(way=way))
        options = ("-H", "server", "--for", str(LENGTH_S), "--delay", str(IDLE_S), "-i", "20ms", "--no-extras", "--json", "-D", folder)
        words = ["ktrxer", "run", str(recipe), *options]
        return subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
