# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares the CPU time of plots: `ktrxer plot` and the real Flent on the same run, in turns, each in its own process.

python3 -m ktrxer_lab.bench.pictures RUN [--flent .venv-flent/bin/flent] [--rounds N]

The compared figure is CPU time, because it is nearly the same on a busy and on a quiet machine. Flent gets the run from `ktrxer export`.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GOAL = 0.5
GOAL_OF_MANY = 0.1
FILES = 60


def timed(command: list[str]) -> tuple[float, float]:
    """CPU time and wall time, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--flent", type=Path, default=ROOT / ".venv-flent/bin/flent", help="the real Flent, with matplotlib")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if not os.access(options.flent, os.X_OK):
        sys.exit(f"{options.flent}: not here: `make .venv-flent/.ok` makes it")
    ours = [sys.executable, "-I", str(ROOT / "python/ktrxer-py")]
    with tempfile.TemporaryDirectory(prefix="ktrxer-pictures-") as name:
        place = Path(name)
        foreign = place / "run.flent.gz"
        subprocess.run([*ours, "export", str(options.run), "-o", str(foreign)], check=True, capture_output=True)
        figures: list[tuple[str, list[tuple[float, float]], list[tuple[float, float]]]] = []
        # Each kind: its meaning, the plot, the number of files, the goal.
        for kind, plot, files in (("png", "all_scaled", 1), ("svg", "all_scaled", 1), ("png", "ping_cdf", FILES)):
            foreigns, runs = ([place / f"{i}{suffix}" for i in range(files)] for suffix in (".flent.gz", ".ktrxer"))
            for source, copies in ((foreign, foreigns), (options.run, runs)):
                for copy in copies:
                    shutil.copy(source, copy)
            flent, ktrxer = [], []
            for _ in range(options.rounds):
                inputs = [word for one in foreigns for word in ("-i", str(one))]
                flent.append(timed([str(options.flent), *inputs, "-p", plot, "-f", "plot", "-o", str(place / f"flent.{kind}")]))
                ktrxer.append(timed([*ours, "plot", *map(str, runs), "--plot", plot, "--force", "-o", str(place / f"ktrxer.{kind}")]))
            figures.append((f"{kind} of {plot}, {files} file{'s' if files > 1 else ''}", flent, ktrxer))
        one, _ = timed([*ours, "plot", str(options.run), "--plot", "all_scaled", "--force", "-o", str(place / "one.png")])
        every, _ = timed([*ours, "plot", str(options.run), "--all", "--format", "png", "-D", str(place)])
        further = len(list(place.glob(f"{options.run.stem}-*.png"))) - 1
        print(f"each further png of a process: {(every - one) / max(1, further):.2f} s of processor ({further} further ones; goal 0.1)")
        report = place / "report.html"
        timed([*ours, "report", str(options.run), "-o", str(report)])
        print(f"report of {options.run.name}: {report.stat().st_size / 1e6:.2f} MB (goal 1.5)")
    for kind, flent, ktrxer in figures:
        theirs, own = (min(processor for processor, _ in times) for times in (flent, ktrxer))
        walls = [statistics.median(wall for _, wall in times) for times in (flent, ktrxer)]
        print(
            f"{kind}: Flent {theirs:.2f} s, ktrxer {own:.2f} s of processor (best of {options.rounds}): ratio {own / theirs:.2f} "
            f"(goal {GOAL if '1 file' in kind else GOAL_OF_MANY:g}); on the wall {walls[0]:.2f} and {walls[1]:.2f} s (median)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
