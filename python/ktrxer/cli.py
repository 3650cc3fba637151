# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python part of the `ktrxer` command: finds a subcommand, loads its module and runs it."""

from __future__ import annotations

import errno
import os
import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import NamedTuple


class Subcommand(NamedTuple):
    module: str  # contains `main(arguments: list[str]) -> int`; imported only to run the subcommand
    summary: str


SUBCOMMANDS: dict[str, Subcommand] = {
    "batch": Subcommand("ktrxer.commands.batch", "make a series of runs from one file"),
    "check": Subcommand("ktrxer.commands.check", "check whether the line is bloated, and where"),
    "compare": Subcommand("ktrxer.commands.compare", "compare groups of runs: differences with intervals"),
    "export": Subcommand("ktrxer.commands.export", "convert runs to CSV, Parquet, OpenMetrics, Flent's files"),
    "import": Subcommand("ktrxer.commands.importing", "convert Flent's data files to runs"),
    "lab": Subcommand("ktrxer_lab.command", "run commands in networks of namespaces, and in emulated devices"),
    "new": Subcommand("ktrxer.commands.new", "write a working file to begin with: a test of your own"),
    "note": Subcommand("ktrxer.commands.note", "change the title and the note of a stored run"),
    "plot": Subcommand("ktrxer.view.plot_command", "draw stored runs: SVG, PDF, PNG"),
    "query": Subcommand("ktrxer.commands.query", "query all runs of a directory by SQL"),
    "recover": Subcommand("ktrxer.commands.recover", "close a run that a crash has interrupted"),
    "report": Subcommand("ktrxer.view.report_command", "make one page with interactive plots of stored runs"),
    "run": Subcommand("ktrxer.commands.run", "run a test of flows and probes, and store it"),
    "runs": Subcommand("ktrxer.commands.runs", "list stored runs, or write them as one data set"),
    "serve-http": Subcommand("ktrxer.commands.serve_http", "serve the responsiveness test by HTTP/2"),
    "summary": Subcommand("ktrxer.commands.summary", "summarise a run in figures"),
    "tests": Subcommand("ktrxer.commands.tests", "list and explain the tests of `ktrxer run`"),
    "truth": Subcommand("ktrxer_lab.truth.command", "check a measuring tool on paths with known properties"),
    "view": Subcommand("ktrxer.explore.command", "explore a directory of runs in the browser: table, plots, comparison"),
}

# Subcommands of the C part, which runs them in Python if they print tables.
OF_THE_LAB = {"bench": Subcommand("ktrxer_lab.bench.command", "compare senders: tables of the harness's results")}

LAB = "ktrxer_lab"  # a distribution of its own: networks, virtual time, devices, truth tables, bench

UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def usage() -> str:
    width = max(map(len, SUBCOMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in sorted(SUBCOMMANDS.items())]
    return "Usage: ktrxer SUBCOMMAND ...\n\n" + "\n".join(lines) + "\n\n`ktrxer SUBCOMMAND --help` prints the options of a subcommand."


def complete(words: list[str]) -> int:
    from ktrxer.complete import offered

    if len(words) > 1 and words[0] in SUBCOMMANDS and find_spec(SUBCOMMANDS[words[0]].module.partition(".")[0]) is not None:
        for line in offered(import_module(SUBCOMMANDS[words[0]].module).parser(), words[1:-1], words[-1]):
            print(line)
    return 0


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 2
    if words[0] == "--complete":
        return complete(words[1:])
    if words[0] in ("--version", "-V", "-v") or words == ["version"]:
        from ktrxer import __version__

        print(f"ktrxer {__version__}")
        return 0
    command = (SUBCOMMANDS | OF_THE_LAB).get(words[0])
    if command is None:
        from ktrxer.arguments import command_fault

        print(f"ktrxer: {command_fault(words[0], 'ktrxer', sorted(SUBCOMMANDS))} (see `ktrxer --help`)", file=sys.stderr)
        return 2
    # The import of numpy starts a thread of OpenBLAS for each processor, which takes 20 to 70 ms of processor time. No command needs them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        module = import_module(command.module)
        _allow_interrupts()
        status = int(module.main(words[1:]))
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except ModuleNotFoundError as error:
        if error.name == LAB:
            needs = "the Python distribution ktrxer-lab is missing; `pip install ./lab` in the source tree installs it"
            print(f"ktrxer {words[0]}: {needs}", file=sys.stderr)
            return 1
        if (error.name or "").startswith("ktrxer"):
            raise
        from ktrxer.imports import missing

        print(f"ktrxer {words[0]}: {missing(error.name or '')}", file=sys.stderr)
        return 1
    except ImportError as error:
        if type(error) is ImportError:
            raise
        print(f"ktrxer {words[0]}: {error}", file=sys.stderr)  # ktrxer.statistics.native.NoEstimatorsError
        return 1
    except KeyboardInterrupt as stop:
        if stop.args:
            print(f"ktrxer {words[0]}: {stop}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _drop_output()
        sys.stderr.close()
        return 141
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITTEN:
            raise
        print(f"ktrxer {words[0]}: standard output cannot be written: {error.strerror}", file=sys.stderr)
        _drop_output()
        return 1


def _allow_interrupts() -> None:
    """KeyboardInterrupt from now on. Until here SIGINT ends the process (python/ktrxer-py), or is blocked (cli/runtime/handover.c)."""
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(signal.SIGINT, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _interrupt(number: int, frame: FrameType | None) -> None:
    """KeyboardInterrupt. In an import, the end of the process: an exception in their initialisation aborts some compiled modules."""
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    if frame is not None:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    raise KeyboardInterrupt


def _drop_output() -> None:
    """The interpreter writes what is left of the output at its end, and would fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
