# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a measurement costs: `ktrxer run` and the real Flent with the same load over the same link, in turns.

python3 -m ktrxer.bench.flent [--rounds N] [--seconds S] [--flent .venv-flent/bin/flent]

The link is 50 Mbit/s each way between namespaces. The load is four TCP uploads, marked as RRUL's are; ICMP and three kinds of UDP probes
run beside it, Flent's every 200 ms and ours every 10 ms, each with five idle seconds before and after. Flent's flows are iperf's (2.1, as
Flent drives it), since netperf is not free enough for Debian's main section; its UDP probes are irtt's, its ICMP fping's or ping's.
What is compared is the processor time of each one's whole process tree, the far ends not counted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
KTRXER = ROOT / "build/cli/ktrxer"
IDLE = 5
TIMES, GOAL = 20, 1.0

FLENT_TEST = """
DESCRIPTION = "Four uploads by iperf, and RRUL's probes"
DEFAULTS = {"PLOT": "ping"}
AGGREGATOR = "timeseries"
TOTAL_LENGTH = LENGTH + 2 * DELAY
MARKS = [("BE", "CS0"), ("BK", "CS1"), ("CS5", "CS5"), ("EF", "EF")]
FLOW = {"ip_version": IP_VERSION, "interval": STEP_SIZE, "host": HOST, "delay": DELAY, "length": LENGTH, "units": "Mbits/s"}
PING = {"ip_version": IP_VERSION, "interval": STEP_SIZE, "host": HOST, "length": TOTAL_LENGTH, "units": "ms"}
DATA_SETS = o(
    [("TCP upload " + name, dict(FLOW, marking=mark, runner="iperf_csv")) for name, mark in MARKS]
    + [("Ping (ms) UDP " + name, dict(PING, marking=mark, runner="udp_rtt")) for name, mark in MARKS if name != "CS5"]
    + [("Ping (ms) ICMP", dict(PING, runner="ping"))])
PLOTS = o([("ping", {"type": "timeseries", "description": "Ping", "axis_labels": ["Latency (ms)"],
                     "series": [{"data": "Ping (ms) ICMP", "label": "Ping (ms)"}]})])
"""

OUR_TEST = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, icmp, udp, uploads

MARKS = ["BE", "CS1", "CS5", "EF"]

def plan(setting: Setting, _: NoParameters) -> Plan:
    probes = (icmp(setting), *(udp(setting, f"Ping (ms) UDP {mark}", mark) for mark in ("BE", "BK", "EF")))
    return combine(Plan(probes=probes, plots=("ping",)), uploads(setting, [f"TCP upload {mark}" for mark in MARKS], MARKS))

TEST = Test("four_up", "four uploads and RRUL's probes", plan)
"""


def spent(command: list[str], directory: Path) -> float:
    """Seconds of processors of a command and of all that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=directory)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1) or "ERROR" in done.stderr:
        sys.exit(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith(("verdict", "  - ")):
            print(f"  {line}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rounds(options: argparse.Namespace) -> int:
    """Inside the topology's client."""
    place, length = Path(options.inside), options.seconds
    (place / "four_up.conf").write_text(FLENT_TEST)
    (place / "four_up.py").write_text(OUR_TEST)
    flent = [str(options.flent), str(place / "four_up"), "-H", options.server, "-l", str(length), "-D", str(place)]
    ours = [
        str(options.ktrxer),
        "run",
        str(place / "four_up.py"),
        "-H",
        options.server,
        "-l",
        str(length),
        "-d",
        str(IDLE),
        "-D",
        str(place),
    ]
    ours += ["--token-file", str(place / "token")]
    from ktrxer.store import open_run
    from ktrxer.store.columns import ANSWERED
    from ktrxer.store.run import as_array

    ratios = []
    for number in range(options.rounds):
        theirs = spent(flent, place)
        (data,) = place.glob("*.flent.gz")
        raw = json.loads(gzip.decompress(data.read_bytes()))["raw_values"]
        their_samples = sum("val" in point for name, points in raw.items() if name.startswith("Ping") for point in points)
        data.unlink()
        own = spent(ours, place)
        (stored,) = place.glob("*.ktrxer")
        samples = int((as_array(open_run(stored).table("latency"), "state") == ANSWERED).sum())
        stored.unlink()
        ratios.append(own / theirs)
        print(
            f"round {number + 1}: Flent {theirs:.2f} s for {their_samples} latency samples, ktrxer {own:.2f} s for {samples} "
            f"({samples / max(1, their_samples):.1f} times): ratio {own / theirs:.2f}",
            flush=True,
        )
    ratios.sort()
    print(f"ratio of processor time, median of {len(ratios)}: {ratios[len(ratios) // 2]:.2f} (goal {GOAL:g} at {TIMES} times the samples)")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20, help="of the load")
    parser.add_argument("--flent", type=Path, default=ROOT / ".venv-flent/bin/flent")
    parser.add_argument("--ktrxer", type=Path, default=KTRXER, help="another build's, to compare with")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--server", default="server", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return rounds(options)
    missing = [tool for tool in ("irtt", "iperf") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"{' and '.join(missing)} not found: Flent's tools are needed beside it (Debian: apt-get install irtt iperf fping)")
    if not os.access(options.flent, os.X_OK):
        sys.exit(f"{options.flent}: not here: `make .venv-flent/.ok` makes it")
    with tempfile.TemporaryDirectory(prefix="ktrxer-beside-flent-") as name:
        token = Path(name) / "token"
        token.touch(0o600)
        token.write_text("of a bench that lasts a minute\n")
        serve = f"irtt server >/dev/null 2>&1 & iperf -s >/dev/null 2>&1 & exec '{KTRXER}' serve --token-file '{token}'"
        # By the command line: `ktrxer` keeps no PYTHON* variable.
        again = [
            "env",
            f"PYTHONPATH={ROOT / 'python'}",
            sys.executable,
            "-m",
            "ktrxer.bench.flent",
            "--inside",
            name,
            "--rounds",
            str(options.rounds),
        ]
        again += ["--seconds", str(options.seconds), "--flent", str(options.flent.absolute()), "--ktrxer", str(options.ktrxer.absolute())]
        lab = [
            str(KTRXER),
            "lab",
            "run",
            "access",
            "--set",
            "up=50mbit",
            "--set",
            "down=50mbit",
            "--beside",
            f"server={serve} >/dev/null",
            "--",
        ]
        return subprocess.run([*lab, *again]).returncode


if __name__ == "__main__":
    sys.exit(main())
