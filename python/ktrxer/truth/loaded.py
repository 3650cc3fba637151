# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs `ktrxer run` with four TCP flows in one direction and probes of both kinds. Prints the output of `ktrxer run --json`, and the times
of its phases in nanoseconds since 1970, so that other samples of the same time can be compared.

    loaded.py up|down
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ktrxer.store import open_run

PACKAGES = sys.path[0]
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
        options = ("-H", "server", "-l", str(LENGTH_S), "--delay", str(IDLE_S), "-i", "20ms", "--no-extras", "--json", "-D", folder)
        words = [sys.executable, "-P", "-m", "ktrxer", "run", str(recipe), *options]
        path = os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH"))))
        environment = os.environ | {"PYTHONPATH": path}
        done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        sys.stderr.write(done.stderr)
        if not done.stdout.strip():
            return done.returncode or 1
        result = json.loads(done.stdout)
        meta = open_run(Path(result["file"])).meta
        zero = meta.zero.realtime_ns if meta.zero is not None else 0
        result["phases"] = {phase.name: [zero + phase.from_ns, zero + phase.to_ns] for phase in meta.phases}
        print(json.dumps(result))
        return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
