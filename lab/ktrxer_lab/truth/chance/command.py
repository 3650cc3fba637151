# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer truth chance`: draws paths with faults, and judges this project's own commands over them."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ktrxer_lab import uml
from ktrxer_lab.arguments import Parser, between
from ktrxer_lab.errors import LabError
from ktrxer_lab.truth.chance import rates, text
from ktrxer_lab.truth.chance.draw import Draw, drawn
from ktrxer_lab.truth.chance.judge import Finding
from ktrxer_lab.truth.chance.run import Tried, tried
from ktrxer_lab.truth.chance.shrink import shrink

NOTHING_FALSE, NO_RESULT, FALSE = 0, 1, 3
EXAMPLES = """\
examples:
  ktrxer truth chance --draws 50                      # seeds 1 to 50
  ktrxer truth chance --seed 712 --shrink             # one draw again; the smallest draw that has the same fault
  ktrxer truth chance --seed 1001 --draws 1000 --log soak.jsonl
  ktrxer truth chance --rates soak.jsonl              # the rates of all draws in the log
Exit status: 0: no claim is false; 1: no result; 2: wrong use; 3: a claim is false.
"""


def parser() -> Parser:
    what = (
        "Draws paths, faults and their times by chance, runs commands of ktrxer over them in virtual time, "
        "and compares figures, verdicts and causes with the truth."
    )
    p = Parser("ktrxer truth chance", description=what, usage="ktrxer truth chance [OPTION ...]", epilog=EXAMPLES)
    add = p.add_argument
    add("--seed", type=between(0, 1 << 48), default=1, metavar="N", help="seed of the first draw (default 1)")
    add("--draws", type=between(1, 1_000_000), default=1, metavar="N", help="number of draws, with the seeds that follow (default 1)")
    add("--draw", metavar="JSON", help="this draw instead: the text after `again:`")
    add("--shrink", action="store_true", help="search the smallest draw that has the same finding")
    add("--jobs", type=between(1, 64), default=2, metavar="N", help="draws at a time (default 2)")
    add("--log", metavar="FILE", help="append a line of JSON about each draw; draws that are in the file are left out")
    add("--rates", metavar="FILE", help="print the rates of the draws in this log, and run none")
    add("--list", action="store_true", help="show the draws, and run none")
    add("--json", action="store_true", help="print one JSON object for each draw")
    return p


def _show(message: str) -> None:
    print(f"ktrxer truth chance: {message}", file=sys.stderr)


def main(arguments: list[str]) -> int:
    p = parser()
    options = p.parse_args(arguments)
    if options.rates:
        if not Path(options.rates).is_file():
            _show(f"{options.rates}: No such file or directory")
            return NO_RESULT
        print("\n".join(rates.lines(list(_log(Path(options.rates))))))
        return NOTHING_FALSE
    try:
        draws = [text.to_draw(options.draw)] if options.draw else [drawn(options.seed + number) for number in range(options.draws)]
    except LabError as error:
        p.error(f"--draw: {error}")
    if options.list:
        for draw in draws:
            print(f"{draw.seed}: {draw.words()}\n    {'; '.join(draw.commands)}")
        return NOTHING_FALSE
    log = Path(options.log) if options.log else None
    if log is not None and log.exists():
        known = {one["seed"] for one in _log(log)}
        draws = [draw for draw in draws if draw.seed not in known]
    try:
        uml.prepare(uml.KERNEL, _show)
        return _run(draws, options.jobs, log, options.json, options.shrink)
    except LabError as error:
        _show(str(error))
        return NO_RESULT


def _log(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open() as file:
        for line in file:
            with contextlib.suppress(ValueError):  # the last line of a run that was killed may be cut off
                yield json.loads(line)


def _append(log: Path, line: str) -> None:
    with log.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else "\n" + line
        file.write(line.encode() + b"\n")


def _run(draws: list[Draw], jobs: int, log: Path | None, as_json: bool, smallest: bool) -> int:
    made: list[Mapping[str, Any]] = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for one in pool.map(tried, draws):
                made.append(rates.record(one))
                if log is not None:
                    _append(log, json.dumps(made[-1]))
                if as_json:
                    print(json.dumps(made[-1]), flush=True)
                else:
                    for line in lines(one):
                        print(line, flush=True)
                if smallest and one.findings:
                    print(f"smallest: {text.of_draw(_smallest(one))}", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for line in rates.lines(made):
        print(line, file=sys.stderr if as_json else sys.stdout)
    if not any(one["runs"] for one in made):
        return NO_RESULT
    return FALSE if any(one["findings"] or one["problem"] for one in made) else NOTHING_FALSE


def lines(one: Tried) -> Iterator[str]:
    if one.problem:
        yield f"seed {one.draw.seed}: the guest failed: {one.problem}"
    if one.findings:
        yield f"seed {one.draw.seed}: {one.draw.words()}"
        yield from (f"  {finding.kind}: ktrxer {finding.command}: {finding.name}: {finding.text}" for finding in one.findings)
        yield f"  again: {text.of_draw(one.draw)}"


def _smallest(one: Tried) -> Draw:
    wanted = {_kind(finding) for finding in one.findings}

    def failing(draw: Draw) -> bool:
        return bool(wanted & {_kind(finding) for finding in tried(draw).findings})

    return shrink(one.draw, failing)


def _kind(finding: Finding) -> tuple[str, str, str]:
    return finding.kind, finding.command.split()[0], finding.name


