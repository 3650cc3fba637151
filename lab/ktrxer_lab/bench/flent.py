# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares the CPU time of `ktrxer run` and of the real Flent, with the same load over the same link, in turns.

python3 -m ktrxer_lab.bench.flent [--rounds N] [--seconds S] [--load rrul|uploads] [--flent .venv-flent/bin/flent]

The link is 50 Mbit/s in each direction between namespaces. The load is each tool's `rrul`: four TCP flows up and four down, marked. ICMP
and three kinds of UDP probes run beside it, Flent's every 200 ms and ktrxer's every 10 ms, with five idle seconds before and after. Flent's
flows are netperf's, its UDP probes irtt's, its ICMP probes fping's or ping's. netperf is in Debian's non-free section, which many hosts do
not have. Without it the load is four uploads, which iperf (2.1, as Flent runs it) can make, too.

Both programs are compiled before: an installed package is, and otherwise each start on a machine that sets PYTHONDONTWRITEBYTECODE would
compile the source again, for 0.3 s.

The compared figure is the CPU time of each tool's process tree on the measuring host, from the start of the command to its end. The servers
(netserver and the irtt server; `ktrxer serve`) do not count.
"""

from __future__ import annotations

import argparse
import compileall
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
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
KTRXER = ROOT / "build/cli/ktrxer"
IDLE = 5
INTERVAL = "10ms"  # without it a low first estimate of the rate makes a round of fewer probes
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
    return combine(*probes, uploads(setting, [f"TCP upload {mark}" for mark in MARKS], MARKS), plots=("ping",))

TEST = Test("four_up", "four uploads and RRUL's probes", plan)
"""


def compiled(options: argparse.Namespace) -> None:
    """The package of each program, in the folders from which it loads. Installers compile the other packages."""
    packages = [ROOT / "python", *options.flent.absolute().parents[1].glob("lib/python3*/site-packages/flent")]
    for package in packages:
        compileall.compile_dir(package, quiet=1)


def spent(command: list[str], directory: Path) -> float:
    """CPU time in seconds of a command and of all its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=directory)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1) or "ERROR" in done.stderr:
        sys.exit(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    if done.returncode:
        print(f"  not a valid result:\n{done.stdout[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(options: argparse.Namespace, place: Path) -> tuple[list[str], list[str]]:
    """The commands of Flent and of ktrxer."""
    test = "rrul"
    if options.load == "uploads":
        test = str(place / "four_up")
        (place / "four_up.conf").write_text(FLENT_TEST)
        (place / "four_up.py").write_text(OUR_TEST)
    common, seconds = ["-H", options.server, "-D", str(place)], str(options.seconds)
    ours = [str(options.ktrxer), "run", test if options.load == "rrul" else f"{test}.py", *common, "--for", seconds, "--delay", str(IDLE)]
    ours += ["--interval", INTERVAL]
    return [str(options.flent), test, *common, "-l", seconds], [*ours, "--token-file", str(place / "token")]


def parts(processor_time: list[dict[str, Any]], whole_s: float) -> str:
    """The CPU time by kind of process, of `ktrxer summary --json`."""
    result = [f"{one['kind']} {one['seconds']:.2f}" for one in processor_time]
    return ", ".join([*result, f"the rest {whole_s - sum(one['seconds'] for one in processor_time):.2f}"]) if result else ""


def rounds(options: argparse.Namespace) -> int:
    """The measurement, inside the topology's client."""
    place = Path(options.inside)
    flent, ours = commands(options, place)
    ratios, samples = [], []
    for number in range(options.rounds):
        theirs = spent(flent, place)
        (data,) = place.glob("*.flent.gz")
        raw = json.loads(gzip.decompress(data.read_bytes()))["raw_values"]
        computed = (" avg", " sum", " totals")
        empty = [name for name, points in raw.items() if not points and not name.endswith(computed)]
        if empty:
            sys.exit(f"Flent has no samples of {', '.join(empty)}: the comparison needs all of its series")
        their_samples = sum("val" in point for name, points in raw.items() if name.startswith("Ping") for point in points)
        data.unlink()
        own = spent(ours, place)
        (stored,) = place.glob("*.ktrxer")
        words = [str(options.ktrxer), "summary", "--json", str(stored)]
        figures = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        our_samples = sum(one["count"] for one in figures["series"] if one["kind"] == "latency")
        stored.unlink()
        ratios.append(own / theirs)
        samples.append(our_samples / max(1, their_samples))
        print(
            f"round {number + 1}: Flent {theirs:.2f} s for {their_samples} latency samples, ktrxer {own:.2f} s for {our_samples} "
            f"({samples[-1]:.1f} times): ratio {ratios[-1]:.2f} ({parts(figures['processor_time'], own)})",
            flush=True,
        )
    middle = sorted(ratios)[len(ratios) // 2]
    print(
        f"ratio of processor time, median of {len(ratios)}: {middle:.2f} at {min(samples):.1f} times the samples "
        f"(goal {GOAL:g} at {TIMES}); load {options.load}, load average {os.getloadavg()[0]:.1f}"
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20, help="of the load")
    parser.add_argument("--load", choices=("rrul", "uploads"), help="default: rrul if netperf is installed")
    parser.add_argument("--flent", type=Path, default=ROOT / ".venv-flent/bin/flent")
    parser.add_argument("--ktrxer", type=Path, default=KTRXER, help="the ktrxer of another build")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--server", default="server", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return rounds(options)
    netperf = shutil.which("netperf") and shutil.which("netserver")
    if options.load is None:
        options.load = "rrul" if netperf else "uploads"
        if not netperf:
            print("no netperf here (Debian has it in non-free): four uploads by iperf instead of rrul")
    flow_tools = ("netperf", "netserver") if options.load == "rrul" else ("iperf",)
    missing = [tool for tool in ("irtt", *flow_tools) if shutil.which(tool) is None]
    if missing:
        sys.exit(f"{' and '.join(missing)} not found: Flent's tools are needed (Debian: apt-get install irtt fping iperf, or netperf)")
    if not os.access(options.flent, os.X_OK):
        sys.exit(f"{options.flent}: not here: `make .venv-flent/.ok` makes it")
    compiled(options)
    with tempfile.TemporaryDirectory(prefix="ktrxer-beside-flent-") as name:
        token = Path(name) / "token"
        token.touch(0o600)
        token.write_text("of a bench that lasts a minute\n")
        flows = "netserver -D" if options.load == "rrul" else "iperf -s"
        serve = f"irtt server >/dev/null 2>&1 & {flows} >/dev/null 2>&1 & exec '{KTRXER}' serve --token-file '{token}'"
        # The command line has it, because `ktrxer` removes PYTHON* variables.
        again = [
            "env",
            f"PYTHONPATH={ROOT / 'lab'}",
            sys.executable,
            "-m",
            "ktrxer_lab.bench.flent",
            "--inside",
            name,
            "--rounds",
            str(options.rounds),
        ]
        again += ["--load", options.load, "--seconds", str(options.seconds)]
        again += ["--flent", str(options.flent.absolute()), "--ktrxer", str(options.ktrxer.absolute())]
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
