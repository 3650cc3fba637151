# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command lines in Python: their errors are the sentences of the C half (cli/options/opt.c, lib/base/units.c).

python/ktrxer/arguments.py is a link to this file, because each distribution is installed without the other one, too."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NoReturn

WRONG_USE = 2
_REQUIRED, _ONE_OF, _EXCLUDED, _NO_VALUE = (  # argparse's words
    "the following arguments are required: ", "one of the arguments ", "not allowed with argument ", "ignored explicit argument ",
)  # fmt: skip
_COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_DURATIONS = {"ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "": 10**9, "s": 10**9}
_DURATIONS |= {"m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_BITRATES = {size + tail: factor for size, factor in (*_COUNTS.items(), ("T", 10**12)) for tail in ("", "bit", "bit/s", "bps", "b/s")}


def _quoted(text: str) -> str:
    return f"'{text[:48]}{'...' if len(text) > 48 else ''}'"


def _hint(unit: str, durations: bool) -> str:
    if unit[0] in "eE":
        return " (exponents are not read)"
    if durations:
        return " (units are small letters)" if unit[0] in "MSH" else " (one unit only)" if unit[1:2].isdigit() else ""
    return " (a small k is 1000)" if unit in ("K", "KB") else " (a capital M is a million)" if unit[0] == "m" else ""


def _whole(text: str, noun: str, forms: str, finer: str, units: dict[str, int]) -> int:
    """Returns the value in the smallest unit."""

    def refused(why: str) -> argparse.ArgumentTypeError:
        return argparse.ArgumentTypeError(f"{_quoted(text)} is not a {noun}: {why}; write for example {forms}")

    match = re.match(r"([0-9]+)(?:\.([0-9]*))?", text)
    if match is None:
        raise refused("it is negative" if text.startswith("-") else "no digits at its beginning" if text else "it is empty")
    fraction = match[2] or ""
    if match[2] == "":
        raise refused("no digits after the point")
    unit = text[match.end() :]
    factor = units.get(unit[1:] if unit[:1] == " " and unit[1:] else unit)
    if factor is None:
        raise refused(f"unknown unit '{unit.removeprefix(' ')[:16]}'{_hint(unit.strip() or ' ', units is _DURATIONS)}")
    value, rest = divmod(int(match[1] + fraction) * factor, int("1" + "0" * len(fraction)))
    if value >= 1 << 64:
        raise argparse.ArgumentTypeError(f"{_quoted(text)} is too large for a {noun}: it does not fit 64 bits")
    if rest:
        raise argparse.ArgumentTypeError(f"{_quoted(text)} is not a whole {noun}: it is finer than {finer}")
    return value


def number(text: str) -> int:
    """`10`, `10k`, `1.5M`, `0x10`."""
    if re.fullmatch("0[xX][0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    return _whole(text, "number", "10, 10k, 1.5M or 0x10", "1", _COUNTS)


def outside(text: str, small: bool, bounds: str) -> str:
    """The message on a value outside of `bounds`: 1 to 9."""
    return f"{_quoted(text)} is too {'small' if small else 'large'}: from {bounds} is possible"


def between(low: int, high: int) -> Callable[[str], int]:
    """The type of a number with bounds."""

    def read(text: str) -> int:
        value = number(text)
        if low <= value <= high:
            return value
        raise argparse.ArgumentTypeError(outside(text, value < low, f"{low} to {high}"))

    return read


port, any_port = between(1, 65535), between(0, 65535)


def duration(text: str) -> float:
    """`10ms`, `1.5s`, `2m`, or plain seconds."""
    return _whole(text, "duration", "10ms, 1.5s, 250us, 2m or 1h", "a nanosecond", _DURATIONS) / 10**9


def bitrate(text: str) -> int:
    """Bits a second: `100M`, `6Mbit`, `64k`, `1.5G`, or a plain number."""
    return _whole(text, "bit rate", "10M, 1G, 9.5Mbit or 500kbit/s", "a bit per second", _BITRATES)


def _distance(a: str, b: str) -> int:
    """Edits between two words, a swap of neighbours counting as one."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def nearest(typed: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, as opt_nearest() finds it: the shortest that begins so, else one of few edits."""
    known = list(names)
    if not typed or len(typed) > 40:
        return None
    if longer := [name for name in known if name.startswith(typed)]:
        return min(longer, key=len)
    most = min(1 if len(typed) < 3 else 2 if len(typed) < 8 else 3, len(typed) - 1)
    near = min(((_distance(typed, name), name) for name in known), key=lambda one: one[0], default=(most + 1, ""))
    return near[1] if near[0] <= most else None


def choice_fault(text: str, names: Sequence[str]) -> str:
    """The message on a word that is none of `names`."""
    near, listed = nearest(text, names), ", ".join(names)
    return f"'{text[:48]}' is not known; " + (f"did you mean '{near}'? ({listed})" if near else f"it is one of: {listed}")


def command_fault(text: str, program: str, names: Sequence[str]) -> str:
    """The message on a word that is no command of `program`."""
    near = nearest(text, names)
    return f"'{text[:64]}': no such command" + (f"; did you mean `{program} {near}`?" if near else "")


def host_fault(host: str, error: Exception | None, family: str = "") -> str:
    """The message on a host that cannot be looked up (cli/runtime/resolve.c)."""
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        return f"'{host[:64]}': the name server does not answer; try again, or give an address"
    kind = {"-4": " with an address of IPv4", "-6": " with an address of IPv6"}.get(family, "")
    return f"'{host[:64]}': no such host{kind}; check the spelling, or give an address"


def _width() -> int:
    """The width of the help text. argparse makes a formatter for each option, and without a width each of them looks at the terminal."""
    columns = 0
    with contextlib.suppress(OSError, ValueError):
        columns = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(1).columns
    return (columns if columns > 0 else 80) - 2


def _named(options: Sequence[str]) -> str:
    return next((name for name in options if name.startswith("--")), options[0])


class Parser(argparse.ArgumentParser):
    """An error is one line, with the way to help. `prepare` is called before the words are read, unless they ask for help."""

    prepare: Callable[[Parser], None] | None = None
    words: Sequence[str] = ()

    def __init__(self, prog: str, **more: Any) -> None:
        raw = partial(argparse.RawDescriptionHelpFormatter, width=_width())
        super().__init__(prog, formatter_class=raw, allow_abbrev=False, exit_on_error=False, **more)
        self.register("type", int, number)
        self._negative_number_matcher = re.compile("(?!)")  # -3 after an option is no value, as in the C half

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        given, rest = self.parse_known_args(args, namespace)
        if rest:
            self.refuse(rest[0])
        return given

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.words = [str(word) for word in (sys.argv[1:] if args is None else args)]
        if self.prepare is not None and not {"-h", "--help"} & set(self.words):
            self.prepare(self)
        try:
            return super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            self._wrong(_named((error.argument_name or "").split("/")), error.message)

    def _wrong(self, name: str, message: str) -> NoReturn:
        if message.startswith(_NO_VALUE):
            self.error(f"{name} takes no value, but {message.removeprefix(_NO_VALUE)} was given")
        if message.startswith(_EXCLUDED):
            both = {name, _named(message.removeprefix(_EXCLUDED).split("/"))}
            in_order = [one for action in self._actions for one in action.option_strings if one in both]
            self.error(f"{' and '.join(in_order)} exclude each other")
        self.error(f"{name} {message}" if message == "is empty" else f"{name}: {message}" if name else message)

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            name, value = _named(action.option_strings), action.metavar or action.dest.upper()
            text = f"a value is missing: {name} {value}"
            if arg_strings_pattern:
                follows = self.words[-len(arg_strings_pattern)][:48]
                text = f"a value is missing, '{follows}' follows; if that is it, write {name}={follows}"
            raise argparse.ArgumentError(action, text) from None

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if not arg_string and action.default != "":
            raise argparse.ArgumentError(action, "its value is empty" if action.option_strings else "is empty")
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            self.error(command_fault(str(value), self.prog, names))
        raise argparse.ArgumentError(action, choice_fault(str(value), names))

    def refuse(self, word: str) -> NoReturn:
        """`word` belongs to no option and to no argument."""
        if word[:1] != "-" or word == "-":
            self.error(f"'{word[:64]}' is one word too many")
        shown = [name for action in self._actions if action.help != argparse.SUPPRESS for name in action.option_strings]
        name = word.partition("=")[0]
        if name[1] != "-" and f"-{word}" in shown:
            self.error(f"{word[:48]}: no such option; did you mean -{word[:48]}?")
        if name[1] != "-":
            self.error(f"{name[:2]}: no such option" + ("; `ktrxer version` prints the version" if name[1] in "vV" else ""))
        near = nearest(name[2:], [one[2:] for one in shown if one[:2] == "--" and one != "--help"])
        self.error(f"{name[:66]}: no such option" + (f"; did you mean --{near}?" if near else ""))

    def _missing(self, names: Sequence[str]) -> str:
        """Returns the message on required arguments. An option that does not exist comes first: it may be a misspelt one of these."""
        options = [word for word in takewhile(lambda word: word != "--", self.words) if word[:1] == "-" and word.strip("-")]
        known = self._option_string_actions
        for word in options:
            if word.partition("=")[0] not in known and (word[1] == "-" or word[:2] not in known):
                self.refuse(word)
        found = next(a for a in self._actions if names[0] in ("/".join(a.option_strings), a.metavar, a.dest))
        about = ", ".join(map(str, found.choices)) if isinstance(found, argparse._SubParsersAction) and found.choices else found.help
        return f"{_named(names[0].split('/'))} is missing" + (f": {about}" if about else "")

    def error(self, message: str) -> NoReturn:
        if message.startswith(_REQUIRED):
            message = self._missing(message.removeprefix(_REQUIRED).split(", "))
        elif message.startswith(_ONE_OF):
            message = " or ".join(_named(name.split("/")) for name in message.removeprefix(_ONE_OF).split()[:-2]) + " is missing"
        clean = message if message.isprintable() else "".join(c if c.isprintable() else "?" for c in message)
        self.exit(WRONG_USE, f"{self.prog}: {clean[:1000]} (see `{self.prog} --help`)\n")
