# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer summary`: runs in figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from ktrxer import printed
from ktrxer.arguments import Parser
from ktrxer.commands.common import NO_RESULT, VALID, attempt, command_line, complain

WHERE = "`ktrxer run` stores a run in the directory in which it is started, or in that of -D"


def parser() -> Parser:
    p = command_line(
        "summary", "Runs in figures: throughput, delay when idle and under load by direction, loss, responsiveness, grade, verdict."
    )
    p.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="a run, finished or not; a file of Flent's; a directory of them")
    p.add_argument("--series", action="store_true", help="also a line for each series")
    p.add_argument("--json", action="store_true", help="print one JSON object; of several runs, one a line")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    from ktrxer.store.listing import ENDS, find

    status = VALID
    paths = [path for given_path in given.runs for path in find(given_path)]
    if not paths:
        complain("summary", f"{given.runs[0]}: no runs there ({', '.join(f'*{end}' for end in ENDS)}); {WHERE}")
        return NO_RESULT
    for number, path in enumerate(paths):
        status = max(status, attempt("summary", path, partial(_summary, path, given, number, len(paths))))
    return status


def _summary(path: Path, given: Any, number: int, count: int) -> None:
    from ktrxer.commands.opening import open_any
    from ktrxer.summary import figures, text

    made = figures.summarise(open_any(path))
    if given.json:
        printed.show({"file": str(path)} | made.as_json(), line=count > 1)
        return
    print("\n" if number else "", end="")
    text.show(made)
    if given.series:
        print("", *text.series_lines(made), sep="\n")
