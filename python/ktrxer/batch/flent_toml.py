# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batch files of Flent as batch files of ktrxer (TOML). A value that depends on one loop is a variable of its arguments. A setting of Flent
that has no counterpart and would change a result is refused with its line; any other one is a note."""

from __future__ import annotations

import itertools
import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ktrxer.batch.flent_batch import HOLE, Combination, FlentFile, parameters, truthy
from ktrxer.batch.spec import RESERVED, BatchError

HOOKS = {"pre": "before", "post": "after", "monitor": "beside"}
DEFAULTS = {"length": "60", "delay": "5", "step_size": "0.2", "title": "", "note": ""}  # of Flent, where a text refers to them
# These stand for the repetition and for the time of the batch until the TOML is written.
REPETITION, BEGAN = "\x01", "\x02"
FILE = "batch-${batch_name}-${batch_time}-${filename_extra}"
# Flent replaces these characters in the names of files and of folders.
CLEANED, CLEANED_PATH = (partial(re.sub, f"[^A-Za-z0-9_{more}{REPETITION}{BEGAN}-]", "_") for more in ("", "/"))
PLAIN = {"test_name": "test", "title": "title", "local_bind": "from"}
SECONDS = {"length": "length", "delay": "delay", "step_size": "sample-interval"}
REFUSED = {
    "send_size": "the size of a sender's writes cannot be set",
    "remote_hosts": "flows between other hosts need `ktrxer run` on these hosts",
    "swap_updown": "a test cannot exchange its directions; use the test of the other direction",
    "marking_names": "DSCP names are those of the standards",
    "http_getter_urllist": "the test http has the address of its server as a parameter",
    "irtt_interval": "use `interval` in [run]",
}
NOTED = (
    "debug_log", "debug_error", "log_file", "log_level", "cache_file", "socket_timeout", "test_payload", "control_host",
    "control_local_bind", "netperf_control_port", "ditg_control_port", "ditg_control_secret", "http_getter_dns", "http_getter_timeout",
    "http_getter_workers", "note", "batch_verbose", "swap_up_down",
)  # fmt: skip


@dataclass
class _Made:
    file: FlentFile
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def converted(path: Path) -> tuple[str, list[str]]:
    """The TOML text, and notes about what it lacks."""
    made = _Made(FlentFile(path))
    tables = [(_word(name), _Batch(name, made).table()) for name in made.file.batches()]
    if not tables:
        raise BatchError(f"{path}: each of its batches is abstract or disabled")
    head = [f"# Made from {json.dumps(path.name)}, a batch file of Flent.", *(f"# Note: {note}" for note in made.notes), ""]
    return "\n".join([*head, *(line for name, table in tables for line in _lines(f"batches.{_key(name)}", table)), ""]), made.notes


class _Batch:
    def __init__(self, name: str, made: _Made) -> None:
        self.name, self.made, self.file = name, made, made.file
        self.loops = {_dimension(key.removeprefix("for_")): args for key, args in self.file.loops(name).items()}
        self.found = list(self.file.combinations(name))
        self.points: list[dict[str, dict[str, str]]] = [{} for _ in self.loops]  # of a loop: variables of each argument
        own = {"repetition": REPETITION, "batch_name": name, "batch_time": BEGAN}
        # Arguments have keys that a file cannot have.
        extra = "-".join((*(f"${{[{n}]}}" for n in range(len(self.loops))), REPETITION))
        self.values = [
            {**DEFAULTS, "filename_extra": extra, **one.raw, **own} | {f"[{n}]": arg for n, arg in enumerate(one.args)}
            for one in self.found
        ]
        for values in self.values:
            values["data_filename"] = CLEANED(self.file.fill(name, "filename_extra", FILE, values))

    def table(self) -> dict[str, Any]:
        keys = [key for key in self.values[0] if any(key in one.raw for one in self.found)]
        keys += [key for one in self.found for key in one.raw if key not in keys]
        self._check(list(dict.fromkeys(keys)))
        table: dict[str, Any] = {"order": "shuffled", "repetitions": self.file.whole(self.name, "repetitions", 1)}
        table["pause"] = f"{self.file.whole(self.name, 'pause', 0)}s"
        directory, inner = self._folders()
        if directory:
            table["directory"] = directory
        table["run"] = self._run()
        if inner or self._named():
            table["run"]["name"] = inner + self._file()
        hooks = self._hooks()
        if self.loops:
            table["matrix"] = {
                loop: [{"name": _again(args, i)} | self.points[n].get(str(i), {}) for i in range(len(args))]
                for n, (loop, args) in enumerate(self.loops.items())
            }
        if hooks:
            table["hooks"] = hooks
        return table

    def _check(self, keys: list[str]) -> None:
        for key in keys:
            given = [one for one in self.found if truthy(one.raw, key)]
            if key in REFUSED and given:
                raise self._fail(key, given[0], REFUSED[key])
            if key in NOTED and given:
                self.made.note(f"{key}: without effect here")
            if key.startswith("test_parameter_"):
                self.made.note(f"{key}: Flent reads it as a variable; its key of parameters is test_parameters")
        used = self._used()
        for one in sorted(used - {key for values in self.values for key in values} - {"type", "exec"}):
            self.made.note(f"${{{one}}} is not defined, and stays as it is")

    def _used(self) -> set[str]:
        """The variables in the keys of all runs and of their commands."""
        texts = [text for one in self.found for keys in (one.raw, *(keys for _, keys in one.commands)) for text in keys.values()]
        return {hole[1] for text in texts for hole in HOLE.finditer(text)}

    def _named(self) -> bool:
        """Whether the names of the files are those of Flent."""
        return "data_filename" in self._used() or any("filename_extra" in one.raw for one in self.found)

    def _file(self) -> str:
        """The name of the file of each run, as in Flent."""
        return self._placed("file", self._texts("data_filename"), [FILE] * len(self.found), cleaned=CLEANED)

    def _folders(self) -> tuple[str, str]:
        """The folder of the batch, and the further one of each run, which ends with a slash."""
        texts = [posixpath.normpath(CLEANED_PATH(text)) if text else "." for text in self._texts("output_path")]
        if len(set(texts)) == 1 and not {REPETITION, BEGAN} & {*texts[0]}:
            return ("", "") if texts[0] == "." else (texts[0], "")
        if len({text.startswith("/") for text in texts}) > 1:
            raise self.file.fail("batch", self.name, "output_path", "some of its runs have a path from /, and others have not")
        # The parts that all runs share, without a variable.
        shared = posixpath.commonpath(texts).split("/")
        same = list(itertools.takewhile(lambda part: not {REPETITION, BEGAN} & {*part}, shared))
        directory = "/".join(same) or ("/" if texts[0].startswith("/") else "")
        inner = [posixpath.relpath(text, directory or ".") for text in texts]
        raw = [values.get("output_path", "") for values in self.values]
        if len(set(inner)) > 1 and directory not in ("", "."):
            raw = [text if text.startswith(f"{directory}/") else "" for text in raw]
            raw = [text.removeprefix(f"{directory}/") for text in raw]
        return directory, self._placed("folder", inner, raw if all(raw) else None, cleaned=CLEANED_PATH) + "/"

    def _fail(self, key: str, one: Combination, what: str) -> BatchError:
        for arg in reversed(one.args):
            if key in self.file.sections["arg"][arg]:
                return self.file.fail("arg", arg, key, what)
        return self.file.fail("batch", self.name, key, what)

    def _texts(self, key: str) -> list[str]:
        return [self.file.fill(self.name, key, values.get(key, ""), values) for values in self.values]

    def _one(self, key: str) -> str:
        """A value that all runs share."""
        texts = self._texts(key)
        if REPETITION in texts[0] or len(set(texts)) > 1:
            where = next(one for one, text in zip(self.found, texts, strict=True) if text != texts[0] or REPETITION in text)
            raise self._fail(key, where, f"{key} differs between the runs of a batch; here a batch has one")
        return texts[0]

    def _run(self) -> dict[str, Any]:
        run: dict[str, Any] = {}
        for key, option in PLAIN.items():
            run[option] = self._placed(option, self._texts(key), [values.get(key, "") for values in self.values])
        if not all(self._texts("test_name")):
            raise self.file.fail("batch", self.name, "", "no test_name in it")
        for key, option in SECONDS.items():
            if any(key in one.raw for one in self.found):
                run[option] = self._placed(f"run_{option}", [f"{text}s" for text in self._texts(key)])
        hosts = [[host.strip() for host in self.file.split("batch", self.name, "hosts", text)] for text in self._texts("hosts")]
        most = max(map(len, hosts))
        run["host"] = [self._placed(f"run_host{n + 1}", [one[n] if n < len(one) else "" for one in hosts]) for n in range(most)]
        if not most:
            raise self.file.fail("batch", self.name, "", "no hosts in it: Flent refuses such a run")
        version = self._one("ip_version")
        if version:
            run[f"ipv{version.strip()}"] = True
        if self._one("extended_metadata") == "True":
            run["metadata"] = "full"
        if remote := self._one("remote_metadata"):
            places = self.file.split("batch", self.name, "remote_metadata", remote)
            run["metadata-from"] = [f"ssh:{_escaped(place.strip())}" for place in places]
        if self._one("socket_stats") == "True":
            run["with"] = ["sockets"]
        if chosen := self._parameters():
            run["set"] = chosen
        return {key: value for key, value in run.items() if value != ""}

    def _parameters(self) -> dict[str, str]:
        given = []
        for one, text in zip(self.found, self._texts("test_parameters"), strict=True):
            try:
                given.append(parameters(text))
            except ValueError as error:
                raise self._fail("test_parameters", one, str(error)) from None
        return {_word(name): self._placed(f"set_{name}", [one.get(name, "") for one in given]) for one in given for name in one}

    def _hooks(self) -> list[dict[str, Any]]:
        hooks = []
        for name in dict.fromkeys(name for one in self.found for name, _ in one.commands):
            of = [dict(one.commands).get(name) for one in self.found]
            own = next(one for one in of if one is not None)
            kind = own.get("type", "")
            if kind not in HOOKS or "exec" not in own:
                raise self.file.fail("command", name, "type" if "type" in own else "", "it needs exec, and the type pre, post or monitor")
            texts = [
                self.file.fill(self.name, "exec", one["exec"], {**one, **values}) if one is not None else ""
                for one, values in zip(of, self.values, strict=True)
            ]
            raw = [one["exec"] for one in of if one is not None] if None not in of else None
            more = {key: value for key, value in own.items() if key not in self.values[0]}
            command = self._placed(f"hook_{name}", texts, raw, more)
            hooks.append({"when": HOOKS[kind], "command": command.strip()} | ({"essential": True} if truthy(own, "essential") else {}))
            if "wait" in own:
                self.made.note(f"[Command::{name}] wait: Flent has no such key; a command before the run ends before the run begins")
            if kind == "monitor" and not truthy(own, "kill"):
                self.made.note(f"[Command::{name}] ends with the run; Flent waits for its end")
        return hooks

    def _placed(
        self, name: str, texts: Sequence[str], raw: Sequence[str] | None = None, more: Mapping[str, str] | None = None,
        cleaned: Callable[[str], str] = str,
    ) -> str:  # fmt: skip
        """The text of each combination, as one text with variables of the matrix. `raw`: the texts before their variables were filled in.
        `more`: values of a command. `cleaned`: what becomes of each part of the text."""
        if len(set(texts)) == 1:
            return _escaped(texts[0])
        indices = [_index(n, [len(args) for args in self.loops.values()]) for n in range(len(texts))]
        for loop in range(len(self.points)):
            by: dict[int, set[str]] = {}
            for index, text in zip(indices, texts, strict=True):
                by.setdefault(index[loop], set()).add(text)
            if all(len(some) == 1 for some in by.values()):
                variable = self._variable(name, loop, {str(i): _escaped(next(iter(some))) for i, some in by.items()})
                return "{" + variable + "}"
        if raw is None or len(set(raw)) != 1:
            raise self.file.fail("batch", self.name, "", f"{name} depends on several loops, each of which replaces it")
        made, at, source = "", 0, raw[0]
        scopes = [{**(more or {}), **values} for values in self.values]
        for hole in HOLE.finditer(source):
            made += _escaped(cleaned(source[at : hole.start()].replace("$$", "$")))
            at, key = hole.end(), hole[1]
            if key == "data_filename":
                made += self._file()
            elif all(key in scope for scope in scopes):
                filled = [cleaned(self.file.fill(self.name, key, scope[key], scope)) for scope in scopes]
                made += self._placed(key, filled, [scope[key] for scope in scopes], more, cleaned)
            else:
                made += _escaped(cleaned(hole[0]))
        return made + _escaped(cleaned(source[at:].replace("$$", "$")))


    def _variable(self, name: str, loop: int, values: Mapping[str, str]) -> str:
        """A variable of the arguments of a loop that has these values."""
        word = _word(name)
        for variable in itertools.chain([word, f"{word}_value"], (f"{word}_{n}" for n in itertools.count(2))):
            there = [point[variable] for points in self.points for point in points.values() if variable in point]
            same = bool(there) and all(self.points[loop].get(i, {}).get(variable) == value for i, value in values.items())
            if same or not (there or variable in self.loops or variable in RESERVED):
                break
        for i, value in values.items():
            self.points[loop].setdefault(i, {})[variable] = value
        return variable


def _index(number: int, sizes: Sequence[int]) -> list[int]:
    made: list[int] = []
    for size in reversed(sizes):
        number, one = divmod(number, size)
        made.insert(0, one)
    return made


def _again(args: Sequence[str], place: int) -> str:
    """Values of a dimension differ."""
    count = args[: place + 1].count(args[place])
    return args[place] if count == 1 else f"{args[place]} ({count})"


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:60] or "unnamed"


def _dimension(name: str) -> str:
    """The name of a dimension. Names of variables that each run has, as `file`, get an underscore."""
    return f"{word}_" if (word := _word(name)) in RESERVED else word


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}").replace(REPETITION, "{repetition:02}").replace(BEGAN, "{batch_time}")


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
