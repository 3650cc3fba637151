# SPDX-License-Identifier: MIT OR Apache-2.0
"""Options, messages and durations that the subcommands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ktrxer import configured
from ktrxer.arguments import WRONG_USE, Parser, duration, port
from ktrxer.configured import SERVER_PORT
from ktrxer.store import StoreError, one_line

# 0: a result, and it is valid; 1: no result; 2: wrong use; 3: a result that is degraded or invalid, or misses a margin (decision 77).
VALID, NO_RESULT, USAGE, DOUBTFUL = 0, 1, WRONG_USE, 3


def command_line(name: str, description: str, epilog: str = "") -> Parser:
    made = Parser(f"ktrxer {name}", description=description, epilog=epilog)
    made.prepare = partial(_configure, name)
    return made


def _configure(command: str, parser: Parser) -> None:
    """Defaults from the configuration. `run` has the host, because a stored run has one, too."""
    for action in parser._actions:
        key = action.dest.replace("_", "-")
        found = configured.value(command, key) if key in ("directory", "port", "style", "token-file") else None
        if found is None or (action.default is None and key != "token-file"):
            continue
        if key == "port" and not found.of_command and action.default != SERVER_PORT:
            continue
        try:
            made = parser._get_value(action, found.text)
            parser._check_value(action, made)
        except argparse.ArgumentError as error:
            parser.error(f"{found.source}: {key}: {error.message}")
        action.default = made


def parse_groups(parser: Parser, arguments: list[str], runs: str) -> tuple[Any, list[Path], bool]:
    """Parses `A... -- B...`, with options on both sides: the namespace, whose `runs` holds A; B; and whether there is `--`."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    given, second = parser.parse_args(arguments[:cut]), []
    if arguments[cut + 1 :]:
        first = vars(given)[runs]
        setattr(given, runs, [])
        parser.parse_args(arguments[cut + 1 :], given)
        second = vars(given)[runs]
        setattr(given, runs, first)
    return given, second, cut < len(arguments)


def attempt(command: str, path: Path, work: Callable[[], None]) -> int:
    """The status of `work` on one of several files. A failure is one line that names the file, also one without a rule of its own. The next
    file is read all the same."""
    try:
        work()
    except StoreError as error:
        complain(command, str(error))
    except MemoryError:
        complain(command, f"{path}: it does not fit into this machine's memory")
    except (BrokenPipeError, ImportError):
        raise
    except OSError as error:
        complain(command, f"{error.filename or path}: {error.strerror or error}")
    except Exception as error:
        text = f"{type(error).__name__}: {error}; this is a defect of ktrxer, please report it with the file"
        complain(command, f"{path}: cannot be read: {text}")
    else:
        return VALID
    return NO_RESULT


def complain(name: str, text: str) -> None:
    for line in text.splitlines():
        print(f"ktrxer {name}: {one_line(line, 1000)}", file=sys.stderr)


def show(path: Path) -> None:
    """The name of a file that was made. A terminal gets no control characters; a program that reads the name gets its bytes."""
    if sys.stdout.isatty():
        print(one_line(str(path), 4096), flush=True)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(path) + b"\n")
    sys.stdout.buffer.flush()


def force_option(parser: argparse.ArgumentParser) -> None:
    """The same letter and name in every command that writes a file."""
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that exists already")


def for_option(parser: argparse.ArgumentParser, about: str, default: float | None = None) -> None:
    """The duration of a measurement, as in the C half. The older names stay accepted, and no help, manual or completion lists them."""
    parser.add_argument("--for", dest="length", type=duration, default=default, metavar="D", help=about)
    parser.add_argument("-l", "--length", dest="length", type=duration, default=default, metavar="D", help=argparse.SUPPRESS)


def stored_options(parser: argparse.ArgumentParser) -> None:
    """The options of commands that measure and store a run."""
    parser.add_argument("-t", "--title", default="", help="a few words that tell this run from others")
    parser.add_argument("-D", "--directory", type=Path, default=Path(), metavar="DIR", help="where the run is stored (here)")


def server_options(parser: argparse.ArgumentParser) -> None:
    """The options of clients of `ktrxer serve`."""
    parser.add_argument("--token-file", metavar="FILE", help="the server's token, in a file of mode 0600 ($KTRXER_TOKEN)")
    parser.add_argument("-p", "--port", type=port, default=SERVER_PORT, metavar="N",
                        help=f"port of `ktrxer serve`, for TCP and UDP ({SERVER_PORT})")
    family = parser.add_mutually_exclusive_group()
    family.add_argument("-4", "--ipv4", dest="family", action="store_const", const="-4", default="", help="IPv4 only")
    family.add_argument("-6", "--ipv6", dest="family", action="store_const", const="-6", help="IPv6 only")


def exists(path: Path) -> str:
    """The message of a command that would replace `path`."""
    return f"{path}: exists already; --force replaces it, -o or -D writes elsewhere"
