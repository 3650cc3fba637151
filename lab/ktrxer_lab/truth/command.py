# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer truth`: compares the figures of a measuring tool with known properties of paths."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

from ktrxer_lab import uml
from ktrxer_lab.arguments import WRONG_USE, Parser, between, duration, nearest
from ktrxer_lab.errors import LabError
from ktrxer_lab.truth import adapters, own, report, table
from ktrxer_lab.truth.chance import command as chance
from ktrxer_lab.truth.measure import Limits, Result, measure
from ktrxer_lab.truth.path import Path

ALL_TRUE, NO_RESULT, NOT_ALL_TRUE = 0, 1, 3
EXAMPLES = """\
examples:
  ktrxer truth -- ping -q -c 300 -i 0.01 server           # over all paths
  ktrxer truth --quick -- irtt client -d 5s -i 10ms -q server
  ktrxer truth --path rate-10-10 -- iperf3 -J -t 5 -c server
  ktrxer truth --adapter ./mine.py -- ./mine server
  ktrxer truth                                            # this project's own methods
  ktrxer truth --list
  ktrxer truth chance --draws 50                          # paths and faults by chance
The far host is `server`; the adapter starts the tool's server there. Exit status: 0: all figures are true;
3: a figure is false, or there is no figure; 2: wrong use; 1: the command failed.
"""


def parser() -> Parser:
    what = (
        "Runs a measuring tool in virtual time over paths whose capacity, delays, losses and queues are known. "
        "Compares the figures of the tool with them."
    )
    p = Parser("ktrxer truth", description=what, usage="ktrxer truth [OPTION ...] [-- COMMAND ...]", epilog=EXAMPLES)
    add = p.add_argument
    add("--path", action="append", default=[], metavar="NAME", help="use only this path; may be given several times")
    add("--quick", action="store_true", help="use only ten of the paths")
    add("--list", action="store_true", help="list the paths, and the tools with an adapter")
    add("--adapter", metavar="NAME", help="adapter for the tool's output: a name of --list, or a Python file (default: by the program)")
    add("--beside", metavar="SHELL", help="run this shell command in the server meanwhile (default: the adapter's)")
    add("--no-check", action="store_true", help="do not check the paths by plain sockets first")
    add("--timeout", type=duration, default=600.0, metavar="D", help="limit of virtual time of each command (default 10min)")
    add("--wall-limit", type=duration, default=600.0, metavar="D", help="limit of wall time of each path (default 10min)")
    add("--seed", type=int, default=1, metavar="N", help="seed of the guests' random numbers (default 1)")
    add("--jobs", type=between(1, 64), default=2, metavar="N", help="paths at a time (default 2)")
    add("--json", action="store_true", help="print one JSON object")
    add("--markdown", action="store_true", help="print tables for a document")
    return p


def _wrong(message: str) -> NoReturn:
    print(f"ktrxer truth: {message}", file=sys.stderr)
    raise SystemExit(WRONG_USE)


def _show(message: str) -> None:
    print(f"ktrxer truth: {message}", file=sys.stderr)


def _interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _interrupted)
    if arguments[:1] == ["chance"]:
        return chance.main(arguments[1:])
    command: list[str] = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1 :]
        if not command:
            _wrong("no command after --")
    made = parser()
    options, rest = made.parse_known_args(arguments)
    if rest and not rest[0].startswith("-"):
        made.error(f"'{rest[0][:64]}' is one word too many; the command comes after --: ktrxer truth -- {' '.join(rest)}")
    if rest:
        made.refuse(rest[0])
    if options.list:
        return _list()
    chosen = _paths(options)
    if not command and (options.adapter or options.beside):
        _wrong("--adapter and --beside need a command after --")
    try:
        given = [_given(command, options)] if command else None
    except LabError as error:
        _wrong(str(error))
    limits = Limits(options.timeout, options.wall_limit, options.seed)
    try:
        uml.prepare(uml.KERNEL, _show)  # before the paths, which are measured beside each other
    except LabError as error:
        _show(str(error))
        return NO_RESULT
    results = _all(chosen, given, limits, not options.no_check, options.jobs)
    if options.json:
        print(json.dumps(report.as_json(results), indent=2))
    elif options.markdown:
        print(report.markdown(results))
    else:
        print("\n".join(report.text(results)))
    return ALL_TRUE if report.all_true(results) else NOT_ALL_TRUE


def _list() -> int:
    for path in table.paths():
        print(f"{path.name:<20} {path.words()}{' (--quick)' if path.quick else ''}")
    print(f"tools with an adapter:  {', '.join(adapters.load(name).program for name in adapters.names())}")
    return ALL_TRUE


def _paths(options: argparse.Namespace) -> list[Path]:
    known = {path.name: path for path in table.paths()}
    for name in options.path:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean '{near}'?" if near else "`ktrxer truth --list` lists them"
            _wrong(f"--path: '{name[:48]}' is not known; {hint}")
    if options.path:
        return [known[name] for name in dict.fromkeys(options.path)]
    return [path for path in known.values() if path.quick or not options.quick]


def _given(command: Sequence[str], options: argparse.Namespace) -> own.Command:
    adapter = options.adapter or adapters.of_command(command).name
    adapters.load(adapter)
    return own.Command(tuple(command), adapter, beside=options.beside)


def _all(chosen: Sequence[Path], given: list[own.Command] | None, limits: Limits, check: bool, jobs: int) -> list[Result]:
    def one(path: Path) -> Result:
        try:
            made = measure(path, given or own.commands(path), limits, check)
        except LabError as error:
            made = Result(path, problems=[str(error)])
        print(f"ktrxer truth: {path.name}: {made.wall_s:.0f} s", file=sys.stderr)
        return made

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(one, path) for path in chosen]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
