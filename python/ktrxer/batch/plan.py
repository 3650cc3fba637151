# SPDX-License-Identifier: MIT OR Apache-2.0
"""A batch expanded: its combinations, the command of each run, and the order of the runs."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ktrxer.batch.spec import Batch, BatchError, Hook
from ktrxer.store import names

HOLE = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_.-]*)(:02)?\}")  # {{ and }} stand for { and }; :02: two digits
NESTED_MOST = 10
FILE = "\x02"  # in the command of a hook: the file of the run, which is known when the run begins
PATHS = ("token-file",)  # options of `ktrxer run` whose value is a path


@dataclass(frozen=True)
class Combination:
    """One combination of the matrix."""

    group: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Planned:
    """One run of a batch. `key` stays the same when the batch is planned again."""

    key: str
    number: int
    repetition: int  # from 1
    combination: Combination
    options: list[str]  # of `ktrxer run`, without labels
    labels: list[str]  # NAME=VALUE
    lab: list[str]  # of `ktrxer lab run`; empty: on this host
    hooks: list[Hook]
    name: str = ""  # of the file, without its suffix; it may be in a folder; empty: that of `ktrxer run`

    @property
    def arguments(self) -> list[str]:
        return [*self.options, *(word for label in self.labels for word in ("--label", label))]


def combinations(batch: Batch) -> list[Combination]:
    """All combinations that no exclusion names. A combination's group is the values of the dimensions that have several."""
    made = []
    for exclusion in batch.exclude:
        for key, value in exclusion.items():
            if key not in batch.matrix:
                raise BatchError(f"{batch.name}: exclude: no dimension {key!r} in the matrix; it has {', '.join(batch.matrix) or 'none'}")
            values = [point[key] for point in batch.matrix[key]]
            if value not in values:
                raise BatchError(f"{batch.name}: exclude: the dimension {key!r} has no value {value!r}; it has {', '.join(values)}")
    for points in itertools.product(*batch.matrix.values()):
        own = {key: value for point in points for key, value in point.items()}
        if any(all(own[key] == value for key, value in exclusion.items()) for exclusion in batch.exclude):
            continue
        names = [own[key] for key, values in batch.matrix.items() if len(values) > 1]
        made.append(Combination(" ".join(names) or batch.name, {**batch.variables, **own}))
    if not made:
        raise BatchError(f"{batch.name}: the exclusions leave no combination of the matrix")
    return made


def repetitions(batch: Batch) -> int:
    """The largest number of repetitions of a combination."""
    return batch.until.most if batch.until is not None else batch.repetitions


def ordered(batch: Batch, seed: int) -> Iterator[tuple[int, Combination]]:
    """Pairs of a repetition and a combination. Interleaved: each repetition has all combinations, in an order drawn from the seed that
    turns around each time (ABBA), so that a drift of the path meets all of them alike. Shuffled: all runs in an order drawn from the
    seed."""
    found = combinations(batch)
    rng = random.Random(seed)
    if batch.order == "shuffled" and batch.until is None:
        runs = [(repetition, combination) for repetition in range(1, batch.repetitions + 1) for combination in found]
        rng.shuffle(runs)
        yield from runs
        return
    if batch.order != "given":
        rng.shuffle(found)
    for repetition in range(1, repetitions(batch) + 1):
        again = list(found)
        if batch.order == "shuffled":
            rng.shuffle(again)
        elif batch.order == "interleaved" and repetition % 2 == 0:
            again.reverse()
        yield from ((repetition, combination) for combination in again)


def planned(batch: Batch, seed: int, identity: str) -> Iterator[Planned]:
    """`identity` is that of the batch, and stands in each run file."""
    for number, (repetition, combination) in enumerate(ordered(batch, seed), 1):
        yield _planned(batch, seed, identity, number, repetition, combination)


def _planned(batch: Batch, seed: int, identity: str, number: int, repetition: int, combination: Combination) -> Planned:
    own = {"batch": batch.name, "group": combination.group, "repetition": str(repetition), "number": str(number)}
    filled = _Filler(batch, {**combination.values, **own})
    values = {name: value for name, value in combination.values.items() if name != "batch_time"}
    key = hashlib.sha256(json.dumps([combination.group, values, repetition], sort_keys=True).encode()).hexdigest()[:16]
    labels = {**{name: combination.values[name] for name in batch.matrix}, **own, "batch_id": identity, "batch_seed": str(seed)}
    named = [f"{name}={value}" for name, value in labels.items()]
    hooked = _Filler(batch, {**filled.values, "file": FILE})
    hooks = [_filled_hook(hook, hooked) for hook in batch.hooks if hook.when in ("before", "beside", "after")]
    run_seed = int.from_bytes(hashlib.sha256(f"{seed} {key}".encode()).digest()[:4], "big") >> 1
    lab = _lab(batch, filled, run_seed)
    return Planned(key, number, repetition, combination, _arguments(batch, filled), named, lab, hooks, _name(batch, filled))


def once(batch: Batch, when: str) -> list[Hook]:
    """Hooks of the whole batch."""
    filled = _Filler(batch, {**batch.variables, "batch": batch.name})
    return [_filled_hook(one, filled) for one in batch.hooks if one.when == when]


def _filled_hook(hook: Hook, filled: _Filler) -> Hook:
    return replace(hook, command=filled.text(hook.command, "hooks.command"))


class _Filler:
    """Puts values in place of {names}."""

    def __init__(self, batch: Batch, values: Mapping[str, str]) -> None:
        self.batch = batch
        self.values = values

    def text(self, value: str, where: str, depth: int = 0) -> str:
        if depth > NESTED_MOST:
            raise BatchError(f"{self.batch.name}: {where}: variables refer to each other over more than {NESTED_MOST} levels")

        def one(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0][0]
            if match[1] not in self.values:
                known = ", ".join(sorted(self.values))
                raise BatchError(f"{self.batch.name}: {where}: no variable {match[1]!r}; known are: {known}")
            made = self.text(self.values[match[1]], f"variables.{match[1]}", depth + 1)
            return made.zfill(2) if match[2] else made

        return HOLE.sub(one, value)


def _arguments(batch: Batch, filled: _Filler) -> list[str]:
    """[run] as words: `test` first, each other key as the long option of its name, a table as NAME=VALUE pairs."""
    test = filled.text(str(batch.run["test"]), "run.test")
    made = [str(batch.folder / test) if "/" in test or test.endswith(".py") else test]
    for name, value in batch.run.items():
        option = name.replace("_", "-")
        if option in ("test", "name"):
            continue
        made += _option(option, value, batch, filled)
    return made


def _name(batch: Batch, filled: _Filler) -> str:
    name = filled.text(_plain(batch.run.get("name", ""), "run.name", batch), "run.name")
    for part in name.split("/") if name else []:
        try:
            names.checked(part)
        except ValueError as error:
            raise BatchError(f"{batch.name}: run.name: {error}") from None
    return name


def _option(option: str, value: Any, batch: Batch, filled: _Filler) -> list[str]:
    where = f"run.{option}"
    if option == "again":
        raise BatchError(f"{batch.name}: {where}: not in a batch; `ktrxer run --again FILE` repeats a stored run")
    if option in ("label", "directory", "json", "jsonl", "quiet", "dry-run"):
        raise BatchError(f"{batch.name}: {where}: the batch sets this option itself")
    if isinstance(value, bool):
        return [f"--{option}"] if value else []
    if isinstance(value, dict):
        texts = {name: filled.text(_plain(one, where, batch), where) for name, one in value.items()}
        return [word for name, text in texts.items() if text for word in (f"--{option}", f"{name}={text}")]
    if isinstance(value, list):
        filled_in = [filled.text(_plain(one, where, batch), where) for one in value]
        return [word for text in filled_in if text for word in (f"--{option}", text)]
    text = filled.text(_plain(value, where, batch), where)
    if not text:
        return []  # an empty value: the option's default
    return [f"--{option}", str(batch.folder / text) if option in PATHS else text]


def _plain(value: Any, where: str, batch: Batch) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BatchError(f"{batch.name}: {where}: expected a text or a number")
    return str(value)


def _lab(batch: Batch, filled: _Filler, seed: int) -> list[str]:
    lab = batch.lab
    if lab is None:
        return []
    file = filled.text(lab.file, "lab.topology")
    made = [str(batch.folder / file) if file.endswith(".toml") else file]
    if lab.time == "virtual":
        made += ["--time", "virtual", "--seed", str(seed)]
    for name, value in lab.set.items():
        made += ["--set", f"{name}={filled.text(value, f'lab.set.{name}')}"]
    for one in lab.beside:
        made += ["--beside", filled.text(one, "lab.beside")]
    return made


def network(run: Planned) -> tuple[str, ...]:
    """The words of `ktrxer lab run` without the seed, in which all runs differ."""
    at = run.lab.index("--seed") if "--seed" in run.lab else len(run.lab)
    return (*run.lab[:at], *run.lab[at + 2 :])


def without_programs(run: Planned) -> tuple[str, ...]:
    """The words of network() without the programs beside the run."""
    words = network(run)
    return tuple(word for i, word in enumerate(words) if "--beside" not in words[max(0, i - 1) : i + 1])


def all_of(batches: Sequence[Batch], seeds: Sequence[int], identity: str) -> Iterator[tuple[Batch, Planned]]:
    for batch, seed in zip(batches, seeds, strict=True):
        for one in planned(batch, seed, identity):
            yield batch, one


def results(batch: Batch) -> Path:
    return batch.folder / batch.directory
