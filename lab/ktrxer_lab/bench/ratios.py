"""`make bench`: the four benches in under five minutes, their tables, and the promised ratios beside their targets. Judges nothing.

python3 -m ktrxer_lab.bench.ratios [--keep DIR] [schedule rate pairs stamps]
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ktrxer_lab.bench.contest import ktrxer

BENCHES: dict[str, list[str]] = {
    "schedule": ["--cross", "0,36k", "--count", "50"],
    "rate": ["--payload", "28..1428/1400"],
    "pairs": ["--count", "400"],
    "stamps": ["--gaps", "0us,100us,10ms", "--rounds", "5"],
}

Row = dict[str, str]


@dataclass
class Rows:
    rows: list[Row]

    def value(self, engine: str, figure: str, **keys: int | str) -> float | None:
        for row in self.rows:
            if row["engine"] == engine and all(row[key] == str(value) for key, value in keys.items()):
                return float(row[figure]) if row.get(figure) else None
        return None

    def engines(self, baselines: set[str]) -> list[str]:
        return list(dict.fromkeys(row["engine"] for row in self.rows if row["engine"] not in baselines))


def ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def line(name: str, value: float | None, target: str, good: Callable[[float], bool]) -> None:
    if value is None:
        print(f"  {name:<66} {'not measured':>12}  target {target}")
    else:
        print(f"  {name:<66} {value:>12.3g}  target {target:<8} {'' if good(value) else '  <-- missed'}")


def schedule(rows: Rows) -> None:
    quiet = rows.value("packet", "median_us", cross=0)
    line("packet: median |interval error| at 10 ms, us", quiet, "<= 1", lambda v: v <= 1)
    line("packet: IQR, us", rows.value("packet", "iqr_us", cross=0), "<= 2", lambda v: v <= 2)
    line("packet against usleep", ratio(quiet, rows.value("usleep", "median_us", cross=0)), "<= 1/50", lambda v: v <= 1 / 50)
    line("packet against absolute sleep", ratio(quiet, rows.value("absolute sleep", "median_us", cross=0)), "<= 1/4", lambda v: v <= 1 / 4)
    line("packet: median under 36 kpps of cross traffic, us", rows.value("packet", "median_us", cross=36000), "<= 2", lambda v: v <= 2)
    for engine in rows.engines({"usleep", "raw usleep", "usleep FIFO", "absolute sleep", "absolute sleep FIFO", "SO_TXTIME fq"}):
        with_cross, without = (rows.value(engine, "median_us", cross=cross) for cross in (36000, 0))
        line(f"{engine}: median with 36 kpps of cross traffic against without", ratio(with_cross, without), "< 2", lambda v: v < 2)


def rate(rows: Rows) -> None:
    targets = (
        ("packet", "raw sendmmsg", 28, 1.5),
        ("raw", "raw sendmmsg", 28, 0.95),
        ("udp", "udp sendmmsg", 28, 0.95),
        ("xsk", "raw sendmmsg", 28, 2.0),
        ("xsk", "raw sendmmsg", 1428, 1.2),
        # The fair comparison on a busy machine, because engines have real-time priority if they may.
        ("packet", "raw sendmmsg FIFO", 28, 1.5),
        ("xsk", "raw sendmmsg FIFO", 28, 2.0),
        ("xsk", "raw sendmmsg FIFO", 1428, 1.2),
    )
    for figure, word in (("rate_kpps", "flood"), ("train_kpps", "trains")):
        for engine, baseline, payload, target in targets:
            value = ratio(rows.value(engine, figure, payload=payload), rows.value(baseline, figure, payload=payload))
            line(f"{engine} against {baseline} at {payload} bytes, {word}", value, f">= {target:g}", lambda v, t=target: v >= t)  # type: ignore[misc]


def pairs(rows: Rows) -> None:
    baselines = {"raw sendto twice", "raw sendto twice FIFO", "udp sendto twice"}
    for figure, word in (("driver_median_us", "at the driver"), ("arrival_median_us", "on arrival")):
        gaps = [gap for engine in rows.engines(baselines) if (gap := rows.value(engine, figure)) is not None]
        best = min(gaps) if gaps else None
        value = ratio(best, rows.value("raw sendto twice", figure))
        line(f"best engine's pair gap against raw sendto's, {word}", value, "<= 1/2", lambda v: v <= 0.5)


def stamps(rows: Rows) -> None:
    line(
        "packet: median |reported gap - arrival gap| at 10 ms, us",
        rows.value("packet", "size_median_us", gap_us="10000.000"),
        "<= 1",
        lambda v: v <= 1,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benches", nargs="*", help=f"any of {', '.join(BENCHES)} (default: all)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the rows to this folder, one CSV file a bench")
    arguments = parser.parse_args()
    unknown = set(arguments.benches) - set(BENCHES)
    if unknown:
        parser.error(f"no bench {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    start, failed = time.monotonic(), False
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        tables = {"schedule": schedule, "rate": rate, "pairs": pairs, "stamps": stamps}
        for name in arguments.benches or BENCHES:
            table = folder / f"bench-{name}.csv"
            table.unlink(missing_ok=True)
            print(f"\n== ktrxer bench {name} {' '.join(BENCHES[name])}", flush=True)
            subprocess.run([str(ktrxer()), "bench", name, *BENCHES[name], "--csv", str(table)], timeout=600)
            if not table.exists():
                print(f"  no result of bench {name}")
                failed = True
                continue
            with table.open() as lines:
                tables[name](Rows(list(csv.DictReader(lines))))
            sys.stdout.flush()
    print(f"\n{time.monotonic() - start:.0f} s in all. Misses do not fail the bench: a machine may be busy (docs/howto/bench.md).")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
