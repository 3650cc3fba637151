# SPDX-License-Identifier: MIT OR Apache-2.0
"""Options, messages and durations that the subcommands share."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ktrxer import configured
from ktrxer.store import StoreError, one_line
from ktrxer.units import duration, near

VALID, BAD, USAGE = 0, 1, 2
_REQUIRED = "the following arguments are required: "  # argparse's words


def _width() -> int:
    """The width of the help text. argparse makes a formatter for each option, and without a width each of them looks at the terminal."""
    columns = 0
    with contextlib.suppress(OSError, ValueError):
        columns = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(1).columns
    return (columns if columns > 0 else 80) - 2


class Parser(argparse.ArgumentParser):
    """One line and the way to help, instead of the whole usage."""

    def __init__(self, name: str, description: str, epilog: str = "") -> None:
        raw = partial(argparse.RawDescriptionHelpFormatter, width=_width())
        super().__init__(f"ktrxer {name}", description=description, epilog=epilog, formatter_class=raw, allow_abbrev=False)
        self.command = name

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """An option that does not exist is named with the one that it resembles."""
        given, rest = self.parse_known_args(args, namespace)
        if rest:
            self._refuse(rest)
        return given

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = [str(word) for word in (sys.argv[1:] if args is None else args)]
        if not {"-h", "--help"} & set(self._words):
            self._configure()
        return super().parse_known_args(args, namespace)

    def _configure(self) -> None:
        """Defaults from the configuration. `run` has the host, because a stored run has one, too."""
        for action in self._actions:
            key = action.dest.replace("_", "-")
            found = configured.value(self.command, key) if key in ("directory", "port", "style", "token-file") else None
            if found is None or (action.default is None and key != "token-file"):
                continue
            if key == "port" and not found.of_command and action.default != configured.SERVER_PORT:
                continue
            try:
                made = action.type(found.text) if callable(action.type) else found.text
            except (argparse.ArgumentTypeError, ValueError, TypeError):
                self.error(f"{found.source}: {key}: {found.text!r} is not possible")
            if action.choices is not None and made not in action.choices:
                self.error(f"{found.source}: {key}: {found.text!r} is none of {', '.join(map(str, action.choices))}")
            action.default = made

    def _refuse(self, words: list[str]) -> NoReturn:
        shown = [name for action in self._actions if action.help != argparse.SUPPRESS for name in action.option_strings]
        hint = near(words[0].partition("=")[0], shown, "")
        self.error("; ".join(filter(None, (f"unrecognized arguments: {' '.join(words)}", hint))))

    def parse_groups(self, arguments: list[str], runs: str) -> tuple[Any, list[Path], bool]:
        """Parses `A... -- B...`, with options on both sides: the namespace, whose `runs` holds A; B; and whether there is `--`."""
        cut = arguments.index("--") if "--" in arguments else len(arguments)
        given, second = self.parse_args(arguments[:cut]), []
        if arguments[cut + 1 :]:
            first = vars(given)[runs]
            setattr(given, runs, [])
            self.parse_args(arguments[cut + 1 :], given)
            second = vars(given)[runs]
            setattr(given, runs, first)
        return given, second, cut < len(arguments)

    def error(self, message: str) -> NoReturn:
        if message.startswith(_REQUIRED):
            words = itertools.takewhile(lambda word: word != "--", self._words)
            options = [word for word in words if word.startswith("-") and word.strip("-") and not word[1].isdigit()]
            known = self._option_string_actions
            if unknown := [word for word in options if word.partition("=")[0] not in known and (word[1] == "-" or word[:2] not in known)]:
                self._refuse(unknown)
            first = message.removeprefix(_REQUIRED).split(", ")[0]
            about = next(a.help for a in self._actions if first in ("/".join(a.option_strings), a.metavar))
            message = f"{first} is missing" + (f": {about}" if about else "")
        self.exit(USAGE, f"{self.prog}: {one_line(message)} (see `{self.prog} --help`)\n")


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
    return BAD


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
    parser.add_argument("-p", "--port", type=int, default=8620, metavar="N", help="port of `ktrxer serve`, for TCP and UDP (8620)")
    family = parser.add_mutually_exclusive_group()
    family.add_argument("-4", "--ipv4", dest="family", action="store_const", const="-4", default="", help="IPv4 only")
    family.add_argument("-6", "--ipv6", dest="family", action="store_const", const="-6", help="IPv6 only")


def exists(path: Path) -> str:
    """The message of a command that would replace `path`."""
    return f"{path}: exists already; --force replaces it, -o or -D writes elsewhere"
