# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batch files of Flent 2.3 (INI with sections Batch::, Arg:: and Command::), expanded as Flent expands them.

Flent reads a key of a batch as a setting if an option has its name, and as a variable otherwise. Section names are in lower case.
A parent has the keys that it had when its child was read: its own parents count only if it stands before the child. `yes` and `no` become
True and False, also inside other texts. `repetitions` and `pause` are read before variables are filled in.
"""

from __future__ import annotations

import configparser
import fnmatch
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ktrxer.batch.spec import COMBINATIONS_MOST, BatchError, BatchFailure

BYTES_MOST = 1 << 20
STEPS_MOST = 1000  # of one text, as in Flent
TEXT_MOST = 1 << 16  # characters of one text
KINDS = {"batch": "Batch", "arg": "Arg", "command": "Command"}
TRUE, FALSE = ("yes", "true", "on"), ("no", "false", "off")
HOLE = re.compile(r"(?<!\$)\$\{([^}]+)\}")
HEADER = re.compile(r"\[(.+)\]")
KEY = re.compile(r"([^\s#;=:\[][^=:]*?)\s*[=:]")


@dataclass(frozen=True)
class Combination:
    """One argument of each loop, and the keys of the batch with them, filled in except for the repetition and the time."""

    args: tuple[str, ...]
    raw: Mapping[str, str]
    commands: tuple[tuple[str, Mapping[str, str]], ...]  # those that are run, with their raw keys


class FlentFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[tuple[str, str, str], int] = {}  # of a kind, a section and a key; the section's own key is empty
        self.sections: dict[str, dict[str, dict[str, str]]] = {kind: {} for kind in KINDS}
        parser = configparser.RawConfigParser()
        text = self._text()
        try:
            parser.read_string(text, str(path))
        except configparser.Error as error:
            raise BatchError(f"{path}: {' '.join(str(error).split())[:300]}") from None
        for title in parser.sections():
            kind, found, name = title.partition("::")
            if not found or kind.lower() not in KINDS or not name or "::" in name:
                raise BatchError(f"{path}: [{title}]: not a section of a batch file; they are Batch::NAME, Arg::NAME and Command::NAME")
            self.sections[kind.lower()][name.lower()] = dict(parser.items(title))
        self._number(text)
        if not self.sections["batch"]:
            raise BatchError(f"{path}: no [Batch::NAME] in it")
        self.own = {(kind, name): set(keys) for kind, of in self.sections.items() for name, keys in of.items()}
        for kind in KINDS:
            self._inherit(kind)

    def _text(self) -> str:
        try:
            with self.path.open("rb") as file:
                data = file.read(BYTES_MOST + 1)
        except OSError as error:
            raise BatchFailure(f"{self.path}: {error.strerror}") from None
        if len(data) > BYTES_MOST:
            raise BatchError(f"{self.path}: larger than {BYTES_MOST >> 20} MiB")
        try:
            return data.decode("utf-8-sig").replace("\r\n", "\n")
        except ValueError as error:
            raise BatchError(f"{self.path}: {error}") from None

    def _number(self, text: str) -> None:
        kind = name = ""
        for number, line in enumerate(text.split("\n"), 1):
            if header := HEADER.match(line):
                kind, _, name = header[1].lower().partition("::")
                self.lines.setdefault((kind, name, ""), number)
            elif key := KEY.match(line):
                self.lines.setdefault((kind, name, key[1].lower()), number)

    def fail(self, kind: str, name: str, key: str, what: str) -> BatchError:
        """The fault with the line of the key, which may stand in a section that this one inherits from."""
        at, seen = [name], set[str]()
        while at:
            one = at.pop(0)
            if key in self.own.get((kind, one), ()) or not key:
                line = self.lines.get((kind, one, key))
                stated = f"[{KINDS[kind]}::{one}]" + (f" {key}" if key else "")
                return BatchError(f"{self.path}:{line}: {stated}: {what}")
            seen.add(one)
            keys = self.sections[kind].get(one, {})
            at += [parent for parent in _names(keys.get("inherits", "")) if parent not in seen]
        return BatchError(f"{self.path}: [{KINDS[kind]}::{name}] {key}: {what}")

    def _inherit(self, kind: str) -> None:
        sections = self.sections[kind]
        parents = {name: _names(keys.get("inherits", "")) for name, keys in sections.items()}
        for name, named in parents.items():
            for parent in named:
                if parent not in sections:
                    raise self.fail(kind, name, "inherits", f"[{KINDS[kind]}::{parent}] is named, and is not in the file")
            if _in_circle(name, parents):
                raise self.fail(kind, name, "inherits", f"[{KINDS[kind]}::{name}] inherits from itself")
        for name, named in parents.items():
            for parent in reversed(named):
                above = {key: value for key, value in sections[parent].items() if key not in ("abstract", "inherits")}
                sections[name] = above | sections[name]
            sections[name] = {key: _truth(value) for key, value in sections[name].items()}

    def batches(self) -> list[str]:
        """Those that Flent runs."""
        return [name for name, keys in self.sections["batch"].items() if not truthy(keys, "abstract") and not _off(keys)]

    def whole(self, batch: str, key: str, default: int) -> int:
        value = self.sections["batch"][batch].get(key, str(default)).strip()
        if not re.fullmatch(r"\d{1,6}", value):
            raise self.fail("batch", batch, key, f"{value[:40]!r} is not a whole number of 0 to 999999")
        return int(value)

    def loops(self, batch: str) -> dict[str, list[str]]:
        """The arguments of each loop. Flent runs an argument that is named twice two times."""
        made = {}
        for key, value in self.sections["batch"][batch].items():
            if key.startswith("for_"):
                found: list[str] = []
                for pattern in self.split("batch", batch, key, value):
                    some = [arg for arg in self.sections["arg"] if fnmatch.fnmatch(arg, pattern.strip().lower())]
                    if not some:
                        raise self.fail("batch", batch, key, f"no [Arg::{pattern.strip()}] in the file")
                    found += some
                if not found:
                    raise self.fail("batch", batch, key, "no argument is named")
                made[key] = found
        return made

    def split(self, kind: str, name: str, key: str, value: str, tokens: str = ",;") -> list[str]:
        try:
            return split(value, tokens)
        except ValueError as error:
            raise self.fail(kind, name, key, str(error).lower()) from None

    def combinations(self, batch: str) -> Iterator[Combination]:
        loops = list(self.loops(batch).values())
        count = 1
        for one in loops:
            count *= len(one)
        if count > COMBINATIONS_MOST:
            raise self.fail("batch", batch, "", f"{count} combinations; at most {COMBINATIONS_MOST}")
        for args in itertools.product(*loops):
            raw = dict(self.sections["batch"][batch])
            for arg in args:
                raw |= self.sections["arg"][arg]
            yield Combination(args, raw, tuple(self._commands(batch, raw)))

    def _commands(self, batch: str, raw: dict[str, str]) -> Iterator[tuple[str, Mapping[str, str]]]:
        filled = self.fill(batch, "commands", raw.get("commands", ""), raw)
        waiting, seen = [one.strip() for one in self.split("batch", batch, "commands", filled)], set[str]()
        while waiting:
            name = waiting.pop(0)
            if not name or name in seen:
                continue
            if name not in self.sections["command"]:
                raise self.fail("batch", batch, "commands", f"[Command::{name}] is named, and is not in the file")
            # A key of the batch replaces the key of the command.
            command = self.sections["command"][name] | raw
            state = {key: self.fill(batch, key, command.get(key, ""), command) for key in ("disabled", "enabled", "extra_commands")}
            if _off({key: value for key, value in state.items() if key in command}):
                continue
            seen.add(name)
            waiting = [one.strip() for one in self.split("command", name, "extra_commands", state["extra_commands"])] + waiting
            yield name, command

    def fill(self, batch: str, key: str, text: str, values: Mapping[str, str]) -> str:
        """The text with the values of its variables. A variable that is not defined stays, as in Flent."""
        made, steps = text, 0
        while hole := next((one for one in HOLE.finditer(made) if one[1] in values), None):
            made = made.replace(hole[0], values[hole[1]])
            steps += 1
            if steps > STEPS_MOST or len(made) > TEXT_MOST:
                raise self.fail("batch", batch, key, f"its variables refer to each other in a circle, at ${{{hole[1]}}}")
        return made.replace("$$", "$")


def split(text: str, tokens: str = ",;") -> list[str]:
    """Splits a list with Flent's rules. A quotation mark without its partner raises ValueError."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.whitespace = tokens
    return list(lexer)


def parameters(text: str) -> dict[str, str]:
    """Reads `a=1; b="2,3"`. A part without `=` raises ValueError."""
    made: dict[str, str] = {}
    for part in split(text, ";"):
        if part.strip():
            pair = split(part.strip(), "=")
            if len(pair) != 2:
                raise ValueError(f"{part.strip()[:60]!r} is not NAME=VALUE")
            made[pair[0].strip().lower()] = pair[1].strip()
    return made


def truthy(keys: Mapping[str, str], name: str) -> bool:
    """Flent tests values by Python's rules: a text that is not empty, `0` too, is true."""
    return keys.get(name, "") not in ("", "False")


def _off(keys: Mapping[str, str]) -> bool:
    return truthy(keys, "disabled") or not truthy({"enabled": "True", **keys}, "enabled")


def _truth(value: str) -> str:
    lower = value.lower()
    return "True" if lower in TRUE else "False" if lower in FALSE else value


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text else []


def _in_circle(name: str, parents: Mapping[str, list[str]]) -> bool:
    seen, at = set[str](), list(parents[name])
    while at:
        one = at.pop()
        if one == name:
            return True
        if one not in seen:
            seen.add(one)
            at += parents.get(one, [])
    return False
