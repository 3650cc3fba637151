# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runs of a batch, one after the other. Each is a process of its own; nothing of it is left when this process ends, by any signal."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, Protocol

from ktrxer.batch import plan
from ktrxer.batch.idle import wait_until_idle
from ktrxer.batch.journal import Journal, State, Try
from ktrxer.batch.maker import Maker, Making
from ktrxer.batch.plan import Planned
from ktrxer.batch.spec import Batch, BatchFailure, Hook
from ktrxer.statistics.sequential import Precision, precision
from ktrxer.store import StoreError, files, head, one_line
from ktrxer.store.names import PART, SUFFIX
from ktrxer.store.writer import file_name

GRACE_S = 15.0  # from the request to stop to the kill
FAILURES_MOST = 5  # runs that made no file, one after the other: the batch ends
WITHOUT_MOST = 5  # valid runs of a group, all without the figure of `until`: the batch ends
LOG_TAIL = 2000

Figures = Callable[[Path], dict[str, float]]


class Stopped(Exception):
    """The user stopped the batch."""


class View(Protocol):
    def begin(self, batch: Batch, run: Planned, attempt: int) -> None: ...
    def ended(self, made: Try) -> None: ...
    def show(self, text: str) -> None: ...


@dataclass
class Outcome:
    valid: int = 0
    invalid: int = 0  # in the end: degraded or invalid
    failed: int = 0
    tries: int = 0
    reached: dict[str, Precision] = field(default_factory=dict)  # of `until`, by group


def boot_id() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


class Executor:
    def __init__(self, ktrxer: str, state: State, journal: Journal, view: View, figures: Figures) -> None:
        """`figures` reads the figures of a run file, by key."""
        self.ktrxer = ktrxer
        self.state = state
        self.journal = journal
        self.view = view
        self.figures = figures
        self.stop = False
        self.outcome = Outcome()
        self._known = state.done()
        self._failures = 0  # in a row
        self._values: dict[tuple[str, str], list[float]] = {}  # of `until`, by batch and group
        self._without: dict[tuple[str, str], int] = {}  # valid runs without that figure
        self._last: Path | None = None
        self._maker = Maker(self._standing)
        # Commands of the batch file (`server=ktrxer serve`) find the `ktrxer` that makes the runs.
        self._path = os.pathsep.join(filter(None, [str(Path(ktrxer).parent), os.environ.get("PATH", os.defpath)]))

    def run(self) -> Outcome:
        try:
            for batch, seed in zip(self.state.batches, self.state.seeds, strict=True):
                self._batch(batch, seed)
        finally:
            self._maker.close()
        return self.outcome

    def _standing(self, errors: int) -> subprocess.Popen[bytes]:
        return _start([self.ktrxer, "run", "--requests"], Path("/"), subprocess.PIPE, errors, self._path, subprocess.PIPE)

    def _batch(self, batch: Batch, seed: int) -> None:
        folder = plan.results(batch)
        folder.mkdir(parents=True, exist_ok=True)
        for hook in plan.once(batch, "first"):
            if (fault := self._hook(hook, batch.folder, folder / f"{batch.name}.log")) and hook.essential:
                raise BatchFailure(f"{batch.name}: {fault}; the hook is essential, so the batch ends")
        try:
            for run in plan.planned(batch, seed, self.state.identity):
                if not self._enough(batch, run):
                    self._one(batch, run, folder)
        finally:
            for hook in plan.once(batch, "last"):
                self._hook(hook, batch.folder, folder / f"{batch.name}.log")

    def _enough(self, batch: Batch, run: Planned) -> bool:
        if batch.until is None:
            return False
        values = self._values.get((batch.name, run.combination.group), [])
        found = precision(values, batch.until.share, batch.until.least)
        self.outcome.reached[f"{batch.name}: {run.combination.group}"] = found
        return found.reached

    def _one(self, batch: Batch, run: Planned, folder: Path) -> None:
        tries = list(self._known.get((batch.name, run.key), []))
        while not (tries and tries[-1].verdict == "valid") and len(tries) <= batch.retries:
            self._check_stop()
            self._pause(batch)
            made = self._try(batch, run, len(tries) + 1, folder)
            tries.append(made)
            self._failures = self._failures + 1 if made.verdict is None else 0
            if self._failures >= FAILURES_MOST:
                raise BatchFailure(f"{batch.name}: {FAILURES_MOST} runs in a row made no file, the last one: {made.reason}; the batch ends")
        self.outcome.tries += len(tries)
        best = tries[-1] if tries else None
        if best is None or best.verdict is None:
            self.outcome.failed += 1
            return
        if best.verdict == "valid":
            self.outcome.valid += 1
        else:
            self.outcome.invalid += 1
        self._count(batch, run, folder, best)

    def _count(self, batch: Batch, run: Planned, folder: Path, made: Try) -> None:
        """The figure of `until`, of valid runs."""
        if batch.until is None or made.file is None or made.verdict != "valid":
            return
        try:
            known = self.figures(folder / made.file)
        except (StoreError, OSError):
            return
        group, figure = (batch.name, run.combination.group), batch.until.figure
        value = next((one for key, one in known.items() if fnmatch.fnmatchcase(key, figure)), None)
        if value is not None:
            self._values.setdefault(group, []).append(value)
            return
        self._without[group] = self._without.get(group, 0) + 1
        if group not in self._values and self._without[group] >= WITHOUT_MOST:
            stated = f"{batch.name}: until: {WITHOUT_MOST} valid runs of {run.combination.group} do not have the figure {figure}"
            raise BatchFailure(f"{stated}; the batch ends; these runs have: {', '.join(known) or 'no figure'}")

    def _check_stop(self) -> None:
        if self.stop:
            raise Stopped

    def _pause(self, batch: Batch) -> None:
        if self._last is None or not batch.pause:
            return
        if batch.pause == "idle":
            stated = wait_until_idle(self.ktrxer, self._last, batch.pause_limit_s, lambda: self.stop)
            if stated:
                self.view.show(stated)
        else:
            end = time.monotonic() + float(batch.pause)
            while (left := end - time.monotonic()) > 0 and not self.stop:
                time.sleep(min(left, 0.2))
        self._check_stop()

    def _try(self, batch: Batch, run: Planned, attempt: int, folder: Path) -> Try:
        began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        start = time.monotonic()
        self.view.begin(batch, run, attempt)
        self.journal.began(batch.name, run.key, attempt, began)
        logs = folder / f"{batch.name}.logs"
        logs.mkdir(exist_ok=True)
        log = logs / f"{run.number:05}-{run.repetition:04}-try{attempt}.log"
        file = _unused(folder / (run.name or default_name(run.options)))
        status, path, reason = self._with_hooks(batch, run, attempt, folder, log, file)
        verdict = None
        if path is not None:
            try:
                stored = head.read(path)
                verdict, reason = stored.verdict, reason or (stored.reasons[0].text if stored.reasons else "")
                if verdict == "valid" and reason:
                    verdict = "invalid"  # a hook failed
            except StoreError as error:
                reason = str(error)
        if self.stop and verdict is None:
            raise Stopped  # a try that the user stopped does not count
        name, seconds = str(path.relative_to(folder)) if path is not None else None, round(time.monotonic() - start, 3)
        if not reason and status < -1:
            reason = f"killed by signal {-status}"
        made = Try(batch.name, run.key, attempt, name, verdict, status, one_line(reason or _tail(log), 300), began, seconds)
        self.journal.ended(made)
        self.view.ended(made)
        self._last = path or self._last
        return made

    def _with_hooks(self, batch: Batch, run: Planned, attempt: int, folder: Path, log: Path, file: Path) -> tuple[int, Path | None, str]:
        """Exit status, the run's file, and the fault of an essential hook. `file`: the one that the run will have."""
        fault = ""
        for hook in (one for one in run.hooks if one.when == "before"):
            if (stated := self._hook(hook, batch.folder, log, file)) and hook.essential:
                fault = stated
                break
        status, path = -1, None
        if not fault:
            hooks = [one for one in run.hooks if one.when == "beside"]
            with self._beside(hooks, batch.folder, log, file) as beside:
                status, path = self._ktrxer(run, attempt, folder, log, file)
                fault = next((f"{_shown(hook)}: ended before the run" for hook, child in beside if hook.essential and child.poll()), "")
                if path is None and status >= -1:
                    fault = fault or _tail(log)  # before hooks that run after it write to the log
        for hook in (one for one in run.hooks if one.when == "after"):
            if (stated := self._hook(hook, batch.folder, log, path or file)) and hook.essential:
                fault = fault or stated
        return status, path, fault

    def _ktrxer(self, run: Planned, attempt: int, folder: Path, log: Path, file: Path) -> tuple[int, Path | None]:
        words = [*run.arguments, "--label", f"try={attempt}", "--name", file.stem]
        words += [*(["-D", str(file.parent.relative_to(folder))] if file.parent != folder else []), "-q"]
        child: Making | subprocess.Popen[bytes]
        if run.lab:  # in other namespaces, or in a machine of its own
            with os.fdopen(files.append(log), "ab") as errors:
                lab = [self.ktrxer, "lab", "run", *run.lab, "--", self.ktrxer, "run", *words]
                child = _start(lab, folder, subprocess.PIPE, errors, self._path)
        else:
            child = self._maker.make(words, folder, log)
        out = self._wait(child, None)
        lines = [line.strip() for line in out.decode("utf-8", "replace").splitlines() if line.strip()]
        path = file.parent / Path(lines[-1]).name if lines and lines[-1].endswith(".ktrxer") else None
        return child.returncode, path if path is not None and path.is_file() else None

    def _wait(self, child: Making | subprocess.Popen[bytes], limit_s: float | None) -> bytes:
        """Its output. A stop is passed on as SIGINT; a child that does not end is killed with all of its group."""
        end = time.monotonic() + limit_s if limit_s is not None else None
        requested: float | None = None
        while True:
            try:
                return child.communicate(timeout=0.2)[0] or b""
            except subprocess.TimeoutExpired:
                now = time.monotonic()
                if requested is None and (self.stop or (end is not None and now > end)):
                    requested = now
                    _signal(child, signal.SIGINT)
                elif requested is not None and now > requested + GRACE_S:
                    _signal(child, signal.SIGKILL)

    def _hook(self, hook: Hook, folder: Path, log: Path, file: Path | None = None) -> str:
        """Runs a hook to its end. An empty text, or its fault."""
        with os.fdopen(files.append(log), "ab") as out:
            child = self._shell(hook, folder, out, file)
            begun = time.monotonic()
            self._wait(child, hook.timeout_s)
        if time.monotonic() - begun > hook.timeout_s:
            fault = f"hook `{_shown(hook)}` did not end within {hook.timeout_s:g} s"
        elif child.returncode:
            fault = f"hook `{_shown(hook)}` ended with {child.returncode}"
        else:
            return ""
        self.view.show(fault)
        return fault

    def _shell(self, hook: Hook, folder: Path, out: IO[bytes], file: Path | None) -> subprocess.Popen[bytes]:
        """Starts the command of a hook in the folder of the batch file, with the file of its run."""
        command = hook.command.replace(plan.FILE, str(file)) if file is not None else hook.command
        more = {"KTRXER_FILE": str(file)} if file is not None else {}
        return _start(["sh", "-c", command], folder, out, out, self._path, more=more)

    @contextlib.contextmanager
    def _beside(self, hooks: Sequence[Hook], folder: Path, log: Path, file: Path) -> Iterator[list[tuple[Hook, subprocess.Popen[bytes]]]]:
        made: list[tuple[Hook, subprocess.Popen[bytes]]] = []
        with os.fdopen(files.append(log), "ab") as out:
            try:
                made.extend((hook, self._shell(hook, folder, out, file)) for hook in hooks)
                yield made
            finally:
                for _, child in made:
                    _signal(child, signal.SIGTERM)
                for _, child in made:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(timeout=2)
                    _signal(child, signal.SIGKILL)
                    child.wait()


def default_name(options: Sequence[str]) -> str:
    """The name that `ktrxer run` would give to the file."""
    title = options[options.index("--title") + 1] if "--title" in options else ""
    return file_name(Path(options[0]).stem, datetime.now(UTC).isoformat(), title)


def _unused(path: Path) -> Path:
    """The path with the suffix of a run, and with a number if a run has it. Its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        made = path.with_name(f"{path.name}{f'-{number}' if number > 1 else ''}{SUFFIX}")
        if not made.exists() and not made.with_name(made.name + PART).exists():
            return made
    raise AssertionError


def _start(
    words: list[str], folder: Path, out: int | IO[bytes], errors: int | IO[bytes], path: str | None = None, stdin: int = subprocess.DEVNULL,
    more: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:  # fmt: skip
    """Starts a process that ends when this process ends, by any signal. `path`: its $PATH. `more`: further variables."""
    bound = ["setpriv", "--pdeathsig", "TERM", "--", *words]
    environment = os.environ | ({"PATH": path} if path is not None else {}) | dict(more)
    return subprocess.Popen(bound, stdin=stdin, stdout=out, stderr=errors, cwd=folder, env=environment, start_new_session=True)


def _shown(hook: Hook) -> str:
    return hook.command.replace(plan.FILE, "{file}")


def _signal(child: Making | subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if child.pid:  # 0: it never began; to killpg, 0 is the group of this process
            os.killpg(child.pid, number)


def _tail(log: Path) -> str:
    """The last line that the run wrote for people."""
    with contextlib.suppress(OSError):
        lines = log.read_bytes()[-LOG_TAIL:].decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    return ""
