# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of a batch: a file of JSON lines that only grows. The first line is the whole batch as it was resolved; each further line is an
event. A batch is resumed from this file alone."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ktrxer.batch.spec import Batch, BatchError, BatchFailure, Hook, Lab, Until

SUFFIX = ".batch.jsonl"
FORMAT = 1
LINES_MOST = 2_000_000
LINE_MOST = 4 << 20


@dataclass(frozen=True)
class Try:
    """One try of one run, ended."""

    batch: str
    key: str
    attempt: int  # from 1
    file: str | None  # of the run, without a folder
    verdict: str | None  # None: no run file came out
    status: int
    reason: str
    began: str  # RFC 3339
    seconds: float


@dataclass
class State:
    identity: str
    file: str  # the batch file's name
    batches: list[Batch]
    seeds: list[int]
    tries: list[Try] = field(default_factory=list)
    boot_ids: list[str] = field(default_factory=list)
    unfinished: list[tuple[str, str]] = field(default_factory=list)  # batch and key of tries that began and never ended

    def done(self) -> dict[tuple[str, str], list[Try]]:
        made: dict[tuple[str, str], list[Try]] = {}
        for one in self.tries:
            made.setdefault((one.batch, one.key), []).append(one)
        return made


class Journal:
    """Open for one process: a second one is refused."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def write(self, event: dict[str, Any]) -> None:
        line = json.dumps(event, ensure_ascii=False) + "\n"
        data = line.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fsync(self._descriptor)

    def began(self, batch: str, key: str, attempt: int, began: str) -> None:
        self.write({"type": "began", "batch": batch, "key": key, "attempt": attempt, "began": began})

    def ended(self, made: Try) -> None:
        self.write({"type": "ended", **dataclasses.asdict(made)})

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def _locked(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o666)
    except FileExistsError:
        raise BatchError(f"{path}: exists already: `ktrxer batch --resume {path}` continues that batch") from None
    except OSError as error:
        raise BatchFailure(f"{path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BatchError(f"{path}: another `ktrxer batch` uses this journal") from None
    return descriptor


def create(path: Path, state: State, boot_id: str) -> Journal:
    journal = Journal(path, _locked(path, os.O_CREAT | os.O_EXCL))
    batches = [dataclasses.asdict(one) | {"folder": str(one.folder)} for one in state.batches]
    try:
        journal.write(
            {"type": "batch", "format": FORMAT, "id": state.identity, "file": state.file, "seeds": state.seeds, "batches": batches}
        )
        journal.write({"type": "boot", "id": boot_id})
    except OSError as error:
        # No run was made. A journal without its first line could neither be begun nor resumed.
        journal.close()
        with contextlib.suppress(OSError):
            path.unlink()
        raise BatchError(f"{path}: {error.strerror}; no run was made") from None
    return journal


def reopen(path: Path, boot_id: str) -> tuple[Journal, State]:
    state = load(path)
    journal = Journal(path, _locked(path, 0))
    # A line that a crash has cut off is ended, so that the next one begins where a line begins.
    if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        os.write(journal._descriptor, b"\n")
    journal.write({"type": "boot", "id": boot_id})
    return journal, state


def load(path: Path) -> State:
    """BatchError where the first line is not that of a batch; damaged lines after it are left out: their runs are made again."""
    lines = _lines(path)
    first = next(lines, None)
    if first is None or first.get("type") != "batch":
        raise BatchError(f"{path}: not the journal of a batch (NAME{SUFFIX})")
    if first.get("format") != FORMAT:
        raise BatchError(f"{path}: of another version of ktrxer (format {first.get('format')!r}; this one reads {FORMAT})")
    try:
        state = State(str(first["id"]), str(first["file"]), [_batch(one) for one in first["batches"]], [int(one) for one in first["seeds"]])
        if len(state.batches) != len(state.seeds):
            raise ValueError("not one seed for each batch")
        if not state.batches:
            raise ValueError("no batch")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BatchError(f"{path}: damaged: {error}") from None
    begun: dict[tuple[str, str], int] = {}
    for line in lines:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if line["type"] == "boot":
                state.boot_ids.append(str(line["id"]))
            elif line["type"] == "began":
                begun[str(line["batch"]), str(line["key"])] = int(line["attempt"])
            elif line["type"] == "ended":
                made = _try(line)
                state.tries.append(made)
                begun.pop((made.batch, made.key), None)
    state.unfinished = list(begun)
    return state


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for _ in range(LINES_MOST):
                line = file.readline(LINE_MOST)
                if not line:
                    return
                try:
                    made = json.loads(line)
                except (ValueError, RecursionError):
                    made = {}
                yield made if isinstance(made, dict) else {}
    except OSError as error:
        raise BatchFailure(f"{path}: {error.strerror}") from None


def _try(line: dict[str, Any]) -> Try:
    file, verdict = line["file"], line["verdict"]
    return Try(
        str(line["batch"]), str(line["key"]), int(line["attempt"]), None if file is None else _inside(str(file)),
        None if verdict is None else str(verdict), int(line["status"]), str(line["reason"]), str(line["began"]), float(line["seconds"]),
    )  # fmt: skip


def _inside(text: str) -> str:
    """A file in the folder of the batch or below it, whatever the journal says."""
    path = Path(text)
    return path.name if path.is_absolute() or ".." in path.parts else str(path)


def _batch(made: dict[str, Any]) -> Batch:
    def tuples(value: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(value)

    lab, until = made["lab"], made["until"]
    changed = {
        "folder": Path(made["folder"]),
        "lab": Lab(**lab | {"beside": tuples(lab["beside"])}) if lab is not None else None,
        "until": Until(**until) if until is not None else None,
        "matrix": {key: tuples(values) for key, values in made["matrix"].items()},
        "exclude": tuples(made["exclude"]),
        "hooks": tuple(Hook(**one) for one in made["hooks"]),
    }
    return Batch(**made | changed)
