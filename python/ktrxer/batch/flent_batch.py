# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batch files of Flent (INI with sections Batch::, Arg:: and Command::) as batch files of ktrxer (TOML).

Inheritance is resolved. What has no counterpart is left out, with a note for each.
"""

from __future__ import annotations

import configparser
import fnmatch
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ktrxer.batch.spec import BatchError, BatchFailure

BYTES_MOST = 1 << 20
DEPTH_MOST = 20
TRUE = {"1", "yes", "true", "on"}
RUN = {"test_name": "test", "host": "host", "hosts": "host", "length": "length", "title": "title", "step_size": "sample-interval"}
RUN |= {"delay": "delay", "filename_extra": "title"}
SECONDS = ("length", "delay", "sample-interval")
CONTROL = {"inherits", "abstract", "disabled", "enabled", "repetitions", "pause", "output_path", "commands", "debug_log", "batch_title"}
BUILT_IN = {"repetition": "repetition", "batch_name": "batch"}
HOOKS = {"pre": "before", "post": "after", "monitor": "beside"}
WORD = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass
class _Made:
    notes: list[str] = field(default_factory=list)
    tables: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


class _File:
    def __init__(self, path: Path) -> None:
        parser = configparser.RawConfigParser(strict=True, delimiters=("=",), comment_prefixes=("#", ";"))
        try:
            with path.open("rb") as file:
                text = file.read(BYTES_MOST + 1)
            if len(text) > BYTES_MOST:
                raise BatchError(f"{path}: larger than {BYTES_MOST >> 20} MiB")
            parser.read_string(text.decode(), str(path))
        except OSError as error:
            raise BatchFailure(f"{path}: {error.strerror}") from None
        except (configparser.Error, ValueError) as error:
            raise BatchError(f"{path}: {' '.join(str(error).split())[:300]}") from None
        self.path = path
        self.sections: dict[str, dict[str, dict[str, str]]] = {"batch": {}, "arg": {}, "command": {}}
        for title in parser.sections():
            kind, found, name = title.partition("::")
            if not found or kind.lower() not in self.sections or not name:
                raise BatchError(f"{path}: [{title}]: not a section of a batch file; they are Batch::NAME, Arg::NAME and Command::NAME")
            self.sections[kind.lower()][name] = dict(parser.items(title))
        if not self.sections["batch"]:
            raise BatchError(f"{path}: no [Batch::NAME] in it")

    def resolved(self, kind: str, name: str, above: tuple[str, ...] = ()) -> dict[str, str]:
        if name in above or len(above) > DEPTH_MOST:
            raise BatchError(f"{self.path}: [{kind}::{name}]: inherits from itself")
        if name not in self.sections[kind]:
            raise BatchError(f"{self.path}: [{kind}::{name}] is named, and is not in the file")
        own = self.sections[kind][name]
        made: dict[str, str] = {}
        for parent in _names(own.get("inherits", "")):
            made |= self.resolved(kind, parent, (*above, name))
        made.pop("abstract", None)
        return made | own

    def matching(self, kind: str, patterns: Iterable[str]) -> list[str]:
        made: list[str] = []
        for pattern in patterns:
            found = [name for name in self.sections[kind] if fnmatch.fnmatchcase(name, pattern)]
            if not found:
                raise BatchError(f"{self.path}: no [{kind.title()}::{pattern}] in the file")
            made += [name for name in found if name not in made and not _true(self.resolved(kind, name), "abstract")]
        return made


def converted(path: Path) -> tuple[str, list[str]]:
    """The TOML text, and notes about what it lacks."""
    file = _File(path)
    made = _Made()
    for name in file.sections["batch"]:
        keys = file.resolved("batch", name)
        if _true(keys, "abstract") or _true(keys, "disabled") or keys.get("enabled", "true").lower() not in TRUE:
            continue
        made.tables.append((_word(name), _batch(file, name, keys, made)))
    if not made.tables:
        raise BatchError(f"{path}: each of its batches is abstract or disabled")
    head = [f"# Made from {json.dumps(path.name)}, a batch file of Flent.", *(f"# Left out: {note}" for note in made.notes), ""]
    lines = [line for name, table in made.tables for line in _lines(f"batches.{_key(name)}", table)]
    return "\n".join([*head, *lines, ""]), made.notes


def _names(text: str) -> list[str]:
    return [part for part in re.split(r"[\s,]+", text.strip()) if part]


def _true(keys: Mapping[str, str], name: str) -> bool:
    return keys.get(name, "false").strip().lower() in TRUE


def _word(name: str) -> str:
    return WORD.sub("_", name).strip("_") or "unnamed"


def _text(value: str) -> str:
    """`${x}` is `{x}` here, and a brace is doubled."""
    doubled = re.sub(r"\$\{([^{}]*)\}|([{}])", lambda m: "\0" + m[1] + "\1" if m[1] is not None else m[2] * 2, value)
    return re.sub("\0([^\1]*)\1", lambda m: "{" + BUILT_IN.get(m[1], _word(m[1])) + "}", doubled)


def _batch(file: _File, name: str, keys: Mapping[str, str], made: _Made) -> dict[str, Any]:
    table: dict[str, Any] = {"order": "shuffled"}
    run, variables = _settings(f"Batch::{name}", {key: value for key, value in keys.items() if not key.startswith("for_")}, made)
    if "repetitions" in keys:
        table["repetitions"] = _whole(file, name, "repetitions", keys["repetitions"])
    if "pause" in keys:
        table["pause"] = f"{_whole(file, name, 'pause', keys['pause'])}s"
    if "output_path" in keys:
        table["directory"] = _text(keys["output_path"])
    table["run"] = run
    if variables:
        table["variables"] = variables
    matrix = {}
    for key, value in keys.items():
        if key.startswith("for_"):
            dimension = _word(key.removeprefix("for_"))
            names = file.matching("arg", _names(value))
            matrix[dimension] = [_point(file, one, run, made) for one in names]
    if matrix:
        table["matrix"] = matrix
    hooks = _hooks(file, keys, made)
    if hooks:
        table["hooks"] = hooks
    if "test" not in run:
        made.note(f"[Batch::{name}] has no test_name: set run.test")
    return table


def _point(file: _File, name: str, run: dict[str, Any], made: _Made) -> dict[str, Any]:
    """The variables of one Arg. A setting in it becomes a variable, and the option refers to that."""
    settings, variables = _settings(f"Arg::{name}", file.resolved("arg", name), made)
    point: dict[str, Any] = {"name": name}
    for option, value in settings.items():
        if isinstance(value, dict):
            for parameter, text in value.items():
                run.setdefault("set", {})[parameter] = f"{{arg_{parameter}}}"
                point[f"arg_{parameter}"] = text
        elif isinstance(value, list):
            made.note(f"[Arg::{name}] {option} = {', '.join(value)}: a value of the matrix is one text; the first of them is used")
            run[option] = f"{{arg_{option}}}"
            point[f"arg_{option}"] = value[0]
        else:
            run[option] = f"{{arg_{option}}}"
            point[f"arg_{option}"] = value
    return point | variables


def _settings(where: str, keys: Mapping[str, str], made: _Made) -> tuple[dict[str, Any], dict[str, str]]:
    """Options of `ktrxer run`, and variables."""
    run: dict[str, Any] = {}
    variables: dict[str, str] = {}
    for key, value in keys.items():
        if key in CONTROL:
            if key in ("debug_log", "batch_title"):
                made.note(f"[{where}] {key}: runs are stored with logs and a batch's name anyway")
        elif key == "ip_version":
            run[f"ipv{value.strip()}"] = True
        elif option := RUN.get(key):
            hosts = _names(value) if key == "hosts" else []
            text = f"{_text(value)}s" if option in SECONDS else list(map(_text, hosts)) if len(hosts) > 1 else _text(value.strip())
            if key != "filename_extra" or "title" not in keys:
                run[option] = text
        elif key.startswith("test_parameter_"):
            run.setdefault("set", {})[_word(key.removeprefix("test_parameter_"))] = _text(value)
        elif key.startswith(("remote_metadata", "note", "extended_metadata", "gzip", "data_filename", "socket_stats", "local_bind")):
            made.note(f"[{where}] {key} = {value}: no counterpart in a batch file")
        else:
            variables[_word(key)] = _text(value)
    return run, variables


def _whole(file: _File, name: str, key: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,6}", value.strip()):
        raise BatchError(f"{file.path}: [Batch::{name}] {key} = {value}: not a whole number")
    return int(value)


def _hooks(file: _File, keys: Mapping[str, str], made: _Made) -> list[dict[str, Any]]:
    hooks: list[dict[str, Any]] = []
    waiting, seen = _names(keys.get("commands", "")), set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        command = file.resolved("command", name)
        waiting += _names(command.get("extra_commands", ""))
        if command.get("enabled", "true").lower() not in TRUE or _true(command, "disabled"):
            continue
        kind = command.get("type", "pre").strip().lower()
        if kind not in HOOKS or "exec" not in command:
            made.note(f"[Command::{name}] has no exec, or its type {kind!r} is not one of pre, post, monitor")
            continue
        hook: dict[str, Any] = {"when": HOOKS[kind], "command": _text(command["exec"])}
        if _true(command, "essential"):
            hook["essential"] = True
        hooks.append(hook)
    return hooks


# ------------------------------------------------------------------------------------------------------------------ TOML


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    """JSON's texts, numbers and truth values are TOML's."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f")


def _lines(title: str, table: Mapping[str, Any]) -> list[str]:
    made = [f"[{title}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items() if not isinstance(value, dict | list))]
    for key, value in table.items():
        if isinstance(value, dict):
            made += ["", f"[{title}.{_key(key)}]", *(f"{_key(name)} = {_value(one)}" for name, one in value.items())]
        elif isinstance(value, list):
            for one in value:
                made += ["", f"[[{title}.{_key(key)}]]", *(f"{_key(name)} = {_value(entry)}" for name, entry in one.items())]
    return [*made, ""]
