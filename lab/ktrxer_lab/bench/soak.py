"""An hour at 10 kpps: do the accounts close, is the mean rate exact, and does memory stay where it is? A line a minute.

python3 -m ktrxer_lab.bench.soak [--seconds 3600] [--rate 10000] [--engine live]

With the live engine it is also a test of the change from one call of the program to the next, once in a minute or two: each probe is
sent once, and a hole would show in the worst lateness.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from ktrxer_lab import hosts
from ktrxer_lab.bench import contest


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--engine", default="auto")
    arguments = parser.parse_args()
    count = arguments.seconds * arguments.rate

    hosts.sweep()
    with hosts.pair() as (a, b), contest.sink(b):
        if arguments.engine == "live":  # veth accepts redirected frames only if its peer polls
            b.run(["ethtool", "-K", b.device, "gro", "on"])
        before = b.counters()["rx"]["packets"]
        command: list[str | Path] = [
            contest.ktrxer(),
            "send",
            "--engine",
            arguments.engine,
            b.address,
            "--port",
            str(contest.SINK),
            "--rate",
            str(arguments.rate),
            "--count",
            str(count),
            "--json",
        ]
        child = a.popen(command)
        sizes: list[int] = []
        start = time.monotonic()
        message = start
        while child.poll() is None:
            time.sleep(1)
            size = resident_kib(child.pid) if child.poll() is None else 0
            if size and time.monotonic() - start > 3:  # its size is stable now
                sizes.append(size)
            if sizes and time.monotonic() - message >= 60:
                message += 60
                seconds, came = time.monotonic() - start, b.counters()["rx"]["packets"] - before
                print(f"soak: {seconds:6.0f} s, {came} arrived, {came / seconds:.1f}/s, resident {sizes[-1]} KiB", flush=True)
        output, errors = child.communicate()
        arrived = b.counters()["rx"]["packets"] - before
    try:
        result = json.loads(output)
    except ValueError:
        print(f"soak: no result, exit status {child.returncode}: {errors}", file=sys.stderr)
        return 1
    off = abs(result["rate_pps"] / arguments.rate - 1)
    growth = max(sizes) - sizes[0] if sizes else 0
    accounts = {name: result[name] for name in ("requested", "sent", "failed", "skipped", "cancelled")}
    closed = accounts["requested"] == sum(list(accounts.values())[1:])
    print(f"soak: {accounts}, {arrived} arrived")
    print(f"soak: mean rate {result['rate_pps']} probes/s, off by {off:.2e} (goal < 1e-4)")
    late = result["lateness_us"]
    print(f"soak: lateness p50 {late['p50']} us, IQR {late['iqr']}, p99 {late['p99']}, max {late['max']}; {result['late']} late")
    print(f"soak: resident {sizes[0] if sizes else 0} KiB, at most {growth} KiB more later (goal: 0)")
    return 0 if off < 1e-4 and growth <= 64 and closed and accounts["sent"] == count and arrived >= count else 1


if __name__ == "__main__":
    sys.exit(main())
