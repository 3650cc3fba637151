# SPDX-License-Identifier: MIT OR Apache-2.0
"""The file of a batch (TOML): docs/reference/batch-files.md lists its keys."""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from ktrxer.arguments import duration
from ktrxer.toml_faults import fault

Order = Literal["interleaved", "shuffled", "given"]
When = Literal["first", "before", "beside", "after", "last"]
Value = str | bool | int | float

REPETITIONS_MOST = 10_000
LEAST, MOST = 30, 100  # runs of `until`: in 30, one of a kind that is one run of ten is seen with 95 %
COMBINATIONS_MOST = 100_000
DEPTH_MOST = 10  # of batches that inherit
TEXT_MOST = 1 << 20  # bytes of the file
# Variables and labels that each run has.
RESERVED = ("batch", "group", "repetition", "number", "batch_id", "batch_seed", "batch_time", "file", "try")
IDLE: Literal["idle"] = "idle"
FIGURE = re.compile(  # keys of analyse/figures.py
    r"added|rpm|(rate|loss|estimate|value)\.[a-z0-9_]+(\.(low|high))?|[a-z0-9_]+\.(rtt|up|down|own_queue|far_queue)\.(idle|load)\.(p50|p95|p99)"
)
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class BatchError(Exception):
    """One line: the file, the key, the fault, and the remedy."""


class BatchFailure(BatchError):
    """The batch file cannot be read, or it is correct, and the batch failed."""


@dataclass(frozen=True)
class Hook:
    """A shell command of the batch. `essential`: its failure ends the run (before, beside, after) or the batch (first)."""

    when: When
    command: str
    essential: bool = False
    timeout_s: float = 60.0


@dataclass(frozen=True)
class Lab:
    """Each run is made in a topology of its own by `ktrxer lab run`."""

    file: str
    time: str = "real"
    set: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Until:
    """Repetitions of a combination end when the 95 % interval of a figure's mean is at most this share of it on either side."""

    figure: str  # a key, as `ktrxer compare --json` names it
    share: float
    least: int = LEAST
    most: int = MOST


@dataclass(frozen=True)
class Batch:
    name: str
    folder: Path  # of the file: what paths in it are relative to
    sha256: str  # of the file
    run: Mapping[str, Any]
    repetitions: int = 1
    order: Order = "interleaved"
    seed: int | None = None
    directory: str = "."
    pause: float | Literal["idle"] = 0.0
    pause_limit_s: float = 60.0
    retries: int = 2  # of a run whose verdict is invalid, or that failed
    lab: Lab | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    matrix: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)  # of each dimension: the variables of each value
    exclude: tuple[Mapping[str, str], ...] = ()
    hooks: tuple[Hook, ...] = ()
    until: Until | None = None


KEYS = (
    "repetitions", "order", "seed", "directory", "pause", "pause_limit", "retries", "run", "lab", "variables", "matrix", "exclude", "hooks",
    "until", "inherits", "abstract",
)  # fmt: skip


def read(path: Path) -> list[Batch]:
    """The batches of a file, without abstract ones."""
    try:
        with path.open("rb") as file:
            text = file.read(TEXT_MOST + 1)
        if len(text) > TEXT_MOST:
            raise BatchError(f"{path}: larger than {TEXT_MOST >> 20} MiB")
        made = tomllib.loads(text.decode())
    except tomllib.TOMLDecodeError as error:
        raise BatchError(f"{path}: {fault(error, text.decode())}") from None
    except OSError as error:
        raise BatchFailure(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BatchError(f"{path}: {' '.join(str(error).split())[:300]}") from None
    return from_table(made, path, hashlib.sha256(text).hexdigest())


def from_table(made: dict[str, Any], path: Path, sha256: str) -> list[Batch]:
    """The top of the file is what all of its batches inherit. A file without [batches] is one batch with the file's name."""
    tables = made.pop("batches", {})
    reader = _Reader(path)
    reader.known(made, KEYS, "")
    if not tables:
        return [reader.batch(path.stem, made, sha256)]
    reader.table(tables, "batches")
    found = []
    for name, table in tables.items():
        reader.table(table, f"batches.{name}")
        if not reader.truth(table.get("abstract", False), f"batches.{name}.abstract"):
            found.append(reader.batch(name, _merged(made, reader.inherited(name, tables, ())), sha256))
    if not found:
        raise reader.fail("batches", "all of them are abstract: nothing to run")
    return found


def _merged(base: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key; any other value replaces the one below it."""
    made = dict(base)
    for key, value in above.items():
        made[key] = _merged(made[key], value) if isinstance(value, dict) and isinstance(made.get(key), dict) else value
    return made


class _Reader:
    """Values of one file. Each complaint names the file and the key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.began = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%S")

    def fail(self, where: str, what: str) -> BatchError:
        return BatchError(f"{self.path}: {where}: {what}" if where else f"{self.path}: {what}")

    def known(self, table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
        for key in table:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, 1)
                hint = f"do you mean `{near[0]}`?" if near else f"known are: {', '.join(keys)}"
                raise self.fail(where, f"unknown key `{key}`; {hint}")

    def table(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(where, "expected a table")
        return value

    def text(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or not value:
            raise self.fail(where, "expected a text that is not empty")
        return value

    def plain(self, value: Any, where: str) -> str:
        """A text, number or truth value, as the text that stands for it on a command line."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int) or (isinstance(value, float) and abs(value) < 1e300):
            return str(value)
        raise self.fail(where, "expected a text or a number")

    def whole(self, value: Any, where: str, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.fail(where, f"expected a whole number of {low} to {high}")
        return value

    def truth(self, value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise self.fail(where, "expected true or false")
        return value

    def seconds(self, value: Any, where: str, high: float = 86_400) -> float:
        try:
            made = duration(value if isinstance(value, str) else self.plain(value, where))
        except ArgumentTypeError as error:
            raise self.fail(where, str(error)) from None
        if not 0 <= made <= high:
            raise self.fail(where, f"expected 0s to {high:g}s")
        return made

    def choice(self, value: Any, where: str, known: tuple[str, ...]) -> Any:
        if value not in known:
            near = difflib.get_close_matches(str(value), known, 1)
            hint = f"; do you mean {near[0]!r}?" if near else ""
            raise self.fail(where, f"expected one of {', '.join(known)}{hint}")
        return value

    def texts(self, value: Any, where: str) -> dict[str, str]:
        return {self.name(key, where): self.plain(one, f"{where}.{key}") for key, one in self.table(value, where).items()}

    def variables(self, value: Any, where: str) -> dict[str, str]:
        return {self.variable(key, where): text for key, text in self.texts(value, where).items()}

    def variable(self, value: str, where: str) -> str:
        if value in RESERVED:
            raise self.fail(where, f"`{value}` is reserved: each run has its own {', '.join(RESERVED)}; choose another name")
        return self.name(value, where)

    def name(self, value: str, where: str) -> str:
        if not NAME.fullmatch(value):
            raise self.fail(where, f"{value[:40]!r} is not a name: letters, digits, `_`, `.` and `-`, at most 64")
        return value

    def inherited(self, name: str, tables: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        if name in above:
            raise self.fail(f"batches.{name}", f"inherits from itself ({' from '.join((*above, name))})")
        if len(above) > DEPTH_MOST:
            raise self.fail(f"batches.{name}", f"inherits over more than {DEPTH_MOST} levels")
        table = self.table(tables[name], f"batches.{name}")
        parents = table.get("inherits", [])
        parents = [parents] if isinstance(parents, str) else parents
        if not isinstance(parents, list) or not all(isinstance(one, str) for one in parents):
            raise self.fail(f"batches.{name}.inherits", "expected the name of a batch, or a list of names")
        made: dict[str, Any] = {}
        for parent in parents:
            if parent not in tables:
                near = difflib.get_close_matches(parent, list(tables), 1)
                raise self.fail(f"batches.{name}.inherits", f"no batch {parent!r}" + (f"; do you mean {near[0]!r}?" if near else ""))
            made = _merged(made, self.inherited(parent, tables, (*above, name)))
        made.pop("abstract", None)
        return _merged(made, {key: value for key, value in table.items() if key not in ("inherits", "abstract")})

    def batch(self, name: str, table: dict[str, Any], sha256: str) -> Batch:
        where = f"batches.{name}" if name != self.path.stem else ""
        self.known(table, KEYS, where)
        self.name(name, "batches")
        run = self.table(table.get("run", {}), "run")
        if "test" not in run:
            for key, value in run.items():
                if isinstance(value, dict) and "test" in value:
                    raise self.fail("run", f"`{key}` is a table: settings stand in [run] itself; several batches are [batches.NAME.run]")
            raise self.fail("run", "`test` is missing: the name of a test that `ktrxer tests` lists")
        pause: float | Literal["idle"] = IDLE if table.get("pause") == IDLE else self.seconds(table.get("pause", 0), "pause")
        return Batch(
            name, self.path.resolve().parent, sha256, run,
            self.whole(table.get("repetitions", 1), "repetitions", 1, REPETITIONS_MOST),
            self.choice(table.get("order", "interleaved"), "order", get_args(Order)),
            self.whole(table["seed"], "seed", 0, 2**31 - 1) if "seed" in table else None,
            self.text(table.get("directory", "."), "directory"),
            pause,
            self.seconds(table.get("pause_limit", 60), "pause_limit"),
            self.whole(table.get("retries", 2), "retries", 0, 100),
            self._lab(table["lab"]) if "lab" in table else None,
            {"batch_time": self.began} | self.variables(table.get("variables", {}), "variables"),
            self._matrix(table.get("matrix", {})),
            tuple(self.texts(one, f"exclude[{i}]") for i, one in enumerate(self._list(table.get("exclude", []), "exclude"))),
            tuple(self._hook(one, f"hooks[{i}]") for i, one in enumerate(self._list(table.get("hooks", []), "hooks"))),
            self._until(table["until"]) if "until" in table else None,
        )  # fmt: skip

    def _list(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.fail(where, f"expected a list of tables: [[{where}]]")
        return value

    def _matrix(self, value: Any) -> dict[str, tuple[Mapping[str, str], ...]]:
        made: dict[str, tuple[Mapping[str, str], ...]] = {}
        combinations = 1
        for key, values in self.table(value, "matrix").items():
            where = f"matrix.{self.variable(key, 'matrix')}"
            if not isinstance(values, list) or not values:
                raise self.fail(where, "expected a list of values")
            found = tuple(self._point(key, one, f"{where}[{i}]") for i, one in enumerate(values))
            if len({one[key] for one in found}) != len(found):
                raise self.fail(where, "a value occurs twice")
            made[key] = found
            combinations *= len(found)
        if combinations > COMBINATIONS_MOST:
            raise self.fail("matrix", f"{combinations} combinations; at most {COMBINATIONS_MOST}")
        return made

    def _point(self, key: str, value: Any, where: str) -> dict[str, str]:
        """A value, or a table of a name and of further variables that belong to it."""
        if not isinstance(value, dict):
            return {key: self.plain(value, where)}
        if "name" not in value:
            raise self.fail(where, "`name` is missing: the value's own name")
        further = self.variables({name: one for name, one in value.items() if name != "name"}, where)
        return {key: self.plain(value["name"], where)} | further

    def _hook(self, value: Any, where: str) -> Hook:
        table = self.table(value, where)
        self.known(table, ("when", "command", "essential", "timeout"), where)
        return Hook(
            self.choice(table.get("when", "before"), f"{where}.when", get_args(When)),
            self.text(table.get("command", ""), f"{where}.command"),
            self.truth(table.get("essential", False), f"{where}.essential"),
            self.seconds(table.get("timeout", 60), f"{where}.timeout"),
        )

    def _lab(self, value: Any) -> Lab:
        table = self.table(value, "lab")
        self.known(table, ("topology", "time", "set", "beside"), "lab")
        beside = table.get("beside", [])
        beside = [beside] if isinstance(beside, str) else beside
        if not isinstance(beside, list):
            raise self.fail("lab.beside", "expected a list of texts: NODE=COMMAND")
        return Lab(
            self.text(table.get("topology", ""), "lab.topology"),
            self.choice(table.get("time", "real"), "lab.time", ("real", "virtual")),
            self.texts(table.get("set", {}), "lab.set"),
            tuple(self.text(one, "lab.beside") for one in beside),
        )

    def _until(self, value: Any) -> Until:
        table = self.table(value, "until")
        self.known(table, ("figure", "within", "least", "most"), "until")
        try:
            share = share_of(str(table.get("within", "")))
        except ValueError as error:
            raise self.fail("until.within", str(error)) from None
        least = self.whole(table.get("least", LEAST), "until.least", 3, REPETITIONS_MOST)
        most = self.whole(table.get("most", max(least, MOST)), "until.most", least, REPETITIONS_MOST)
        try:
            figure = figure_of(self.text(table.get("figure", ""), "until.figure"))
        except ValueError as error:
            raise self.fail("until.figure", str(error)) from None
        return Until(figure, share, least, most)


def overridden(batch: Batch, settings: Sequence[str]) -> Batch:
    """The batch with other values (`--set NAME=VALUE`): of a dimension of the matrix, of a variable, else of an option of [run]. A value is
    read as TOML where it can be, so that `true` is no text."""
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BatchError(f"--set {text}: expected NAME=VALUE")
        if name in KEYS or name in RESERVED:
            raise BatchError(f"--set {name}: not an option of [run], a dimension or a variable: change it in the file")
        if name in batch.matrix:
            points = [one for one in batch.matrix[name] if one[name] == value]
            if not points and any(len(one) > 1 for one in batch.matrix[name]):
                known = ", ".join(one[name] for one in batch.matrix[name])
                raise BatchError(f"--set {text}: a value of {name} has variables of its own; the file has {known}")
            batch = replace(batch, matrix={**batch.matrix, name: tuple(points) or ({name: value},)})
        elif name in batch.variables:
            batch = replace(batch, variables={**batch.variables, name: value})
        else:
            own = next((key for key in batch.run if key.replace("_", "-") == name.replace("_", "-")), name)
            batch = replace(batch, run={**batch.run, own: _typed(value)})
    return batch


def _typed(value: str) -> Any:
    try:
        made = tomllib.loads(f"x = {value}")
    except tomllib.TOMLDecodeError:
        return value
    return made["x"] if len(made) == 1 else value


def share_of(text: str) -> float:
    """`5%`, `+-5 %`, `±5%`."""
    match = re.fullmatch(r"(?:±|\+-|\+/-)? ?(\d+(?:\.\d+)?) ?%", text.strip())
    if match is None or not 0 < float(match[1]) <= 100:
        raise ValueError(f"{text!r}: expected a share of the mean, as in 5%")
    return float(match[1]) / 100


def figure_of(text: str) -> str:
    """A pattern of figure keys. `p95(rtt)` is that quantile under load of the first kind of probes. ValueError: no run has one."""
    match = re.fullmatch(r"(p50|p95|p99)\((rtt|up|down)\)", text)
    if match is not None:
        return f"*.{match[2]}.load.{match[1]}"
    if not FIGURE.fullmatch(text) and not re.fullmatch(r"[a-z0-9_.]*[*?\[][a-z0-9_.*?\[\]!-]*", text):
        known = "p50, p95 or p99 of rtt, up or down, as p95(rtt), or a key of `ktrxer compare --json`"
        raise ValueError(f"{text!r} is no figure: expected {known}")
    return text


def until_of(text: str) -> Until:
    """`p95(rtt) ±5%` or `rate.tcp_upload=2%`. ValueError: neither."""
    figure, found, share = re.sub(r"\s*(±|\+-|\+/-|=)\s*", "=", text.strip(), count=1).rpartition("=")
    if not found or not figure:
        raise ValueError(f"{text!r}: expected FIGURE ±N%, as in p95(rtt) ±5%")
    return Until(figure_of(figure.strip()), share_of(share))
