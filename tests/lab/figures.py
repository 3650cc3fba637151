# SPDX-License-Identifier: MIT OR Apache-2.0
"""Figures of the module and of the senders that it is compared with, in the devices: `make lab-figures`.

    python tests/lab/figures.py run --device router --out figures/ [-- options of figures_job.py]
    python tests/lab/figures.py tables figures/*.json                     the tables of docs/measurements/2026-11-22-module.md

Boots each device once, with the module, the source of cross traffic and the frozen baseline programs (`make lab-builds lab-benches`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from figures_job import HONEST, PAPERS, PROGRAMS
from ktrxer_lab import device, kbuild, places, vm
from ktrxer_lab.errors import LabError, Unavailable
from module_help import COMPLAINTS

HERE = Path(__file__).parent
DEVICES = ("pc", "phone", "router")
Row = dict[str, Any]


def bench_tree(build: str) -> Path:
    """A build with `ktrxer bench` and its baseline programs, as `make lab-benches` makes it."""
    return places.root() / "build-cross" / f"bench-{build}"


def baselines(build: str) -> list[tuple[Path, str]]:
    folder = bench_tree(build) / "bench" / "baseline"
    programs = sorted(path for path in folder.glob("*") if path.is_file() and os.access(path, os.X_OK)) if folder.is_dir() else []
    if not programs:
        raise Unavailable(f"no baseline programs for {build}: `make lab-benches` builds them")
    return [(path, f"{PROGRAMS}/{path.name}") for path in programs]


def put_of(name: str, kernel: str | None, scratch: Path) -> tuple[tuple[Path, str], ...]:
    """The files for the device: the job, the modules, the baselines."""
    chosen = device.load(name)
    put = [(HERE / "figures_job.py", "/figures_job.py"), *baselines(chosen.build)]
    for source in (places.root() / "module", HERE / "traffic"):
        put += [(path, f"/root/{path.name}") for path in kbuild.build(chosen, chosen.kernel(kernel), source, scratch, vm.quiet)]
    return tuple(put)


def measure(name: str, kernel: str | None, words: Sequence[str], limit_s: float, show: bool = False) -> list[Row]:
    """The rows of one device. Raises if the job or one figure of its tables fails."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="ktrxer-figures-") as scratch:
        job = vm.Job(("python3", "/figures_job.py", *words), put=put_of(name, kernel, Path(scratch)), layers=("python",), limit_s=limit_s)
        answer = vm.boot(vm.Machine.named(name, kernel), job, on_output=(lambda out, _: (sys.stderr.write(out.decode()), None)[1]) if show else None)
    rows = [json.loads(line) for line in answer.stdout.decode().splitlines() if line.startswith("{")]
    if answer.status:
        raise LabError(f"{name}: {answer.stderr.decode()[-2000:]} {[row for row in rows if 'failed' in row]}")
    bad = [words for words in answer.warnings if COMPLAINTS.search(words)]
    if bad:
        raise LabError(f"{name}: the kernel complained: {bad}")
    return rows


# -------------------------------------------------------------------------------------------------------------- tables


def line(words: Sequence[object]) -> str:
    return f"| {' | '.join(str(word) for word in words)} |"


def ordered(values: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def table_e2(by_device: dict[str, list[Row]]) -> list[str]:
    """A column for each device and load: median / p95 in us."""
    lines = []
    for name, rows in by_device.items():
        mine = [row for row in rows if row.get("what") == "E2"]
        if not mine:
            continue
        loads = ordered([row["load"] for row in mine])
        cross = {load: max(row["cross_pps"] for row in mine if row["load"] == load) for load in loads}
        lines += ["", line([name, *(load if load == "idle" else f"{cross[load]} pps" for load in loads)]), line(["---"] * (len(loads) + 1))]
        for sender in ordered([row["sender"] for row in mine]):
            cell = {row["load"]: row for row in mine if row["sender"] == sender}
            words = [f"{cell[load]['median']:.2f} / {cell[load]['p95']:.2f}" + (f" ({cell[load]['lost']} lost)" if cell[load]["lost"] else "")
                     if load in cell else "" for load in loads]
            lines.append(line([sender, *words]))
    return lines


def verdicts(by_device: dict[str, list[Row]]) -> list[str]:
    """A line for each missed goal: the goal, the device, the difference."""
    lines = []
    for name, rows in by_device.items():
        at = {(row["load"], row["sender"]): row for row in rows if row.get("what") == "E2"}
        for (load, sender), row in at.items():
            mine = at.get((load, "module"))
            if mine is None or sender not in (*PAPERS, *HONEST):
                continue
            for figure in ("median", "p95"):
                if sender in PAPERS:
                    bound, words = row[figure] / (10 if figure == "median" else 5), "the papers'"
                elif load == "idle":
                    bound, words = row[figure] + 0.1, "worse by more than 0.1 us"
                else:
                    bound, words = row[figure] / 2, "half"
                if mine[figure] > bound:
                    lines.append(f"missed: {name}, {load}: {figure} {mine[figure]} against {sender} {row[figure]} ({words}: at most {bound:.3f})")
    return lines


def table_rest(by_device: dict[str, list[Row]]) -> list[str]:
    lines = []
    for what, keys, value in (("E1", ("load", "payload"), "kpps"), ("O3", ("load",), "median")):
        for name, rows in by_device.items():
            mine = [row for row in rows if row.get("what") == what]
            if not mine:
                continue
            columns = ordered([tuple(row[key] for key in keys) for row in mine])
            lines += ["", line([f"{what} {name}", *(", ".join(map(str, column)) for column in columns)]), line(["---"] * (len(columns) + 1))]
            for sender in ordered([row["sender"] for row in mine]):
                cell = {tuple(row[key] for key in keys): row for row in mine if row["sender"] == sender}
                lines.append(line([sender, *(cell[column][value] if column in cell else "" for column in columns)]))
    for name, rows in by_device.items():
        mine = [row for row in rows if row.get("what") == "E6"]
        if mine:
            lines += ["", line([f"E6 {name}", "gap us", "median", "size median / p95 / max"]), line(["---"] * 4)]
            lines += [line([row["load"], row["gap_us"], row.get("median", ""), f"{row.get('size_median')} / {row.get('size_p95')} / {row.get('size_max')}"])
                      for row in mine]
    return lines


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    runs = parts.add_parser("run")
    runs.add_argument("--device", action="append", choices=DEVICES)
    runs.add_argument("--kernel")
    runs.add_argument("--out", type=Path, required=True, help="a folder for DEVICE.json")
    runs.add_argument("--timeout", type=float, default=1800.0)
    runs.add_argument("job", nargs="*", help="after --: what figures_job.py takes")
    tables = parts.add_parser("tables")
    tables.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args(words)
    if arguments.part == "run":
        arguments.out.mkdir(parents=True, exist_ok=True)
        for name in arguments.device or DEVICES:
            rows = measure(name, arguments.kernel, arguments.job, arguments.timeout, show=True)
            (arguments.out / f"{name}.json").write_text(json.dumps(rows, indent=1))
        return 0
    by_device = {path.stem: json.loads(path.read_text()) for path in arguments.files}
    print("\n".join([*table_e2(by_device), *table_rest(by_device), "", *verdicts(by_device)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
