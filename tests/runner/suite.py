# SPDX-License-Identifier: MIT OR Apache-2.0
"""A suite: its log, the counts of its tests, and the processes that it starts."""

from __future__ import annotations

import concurrent.futures
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import counts

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LOGS = ROOT / "build-logs"
VENV = ROOT / ".venv" / "bin"
CORES = len(os.sched_getaffinity(0))
# Where the environment forbids bytecode, as in many containers, each worker of pytest compiles all tests again (5 s), and each program of Python itself.
BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
# Words before a command that gets only the processor time that others leave. Each command begins a session, and where the kernel groups tasks by session,
# a priority counts within the session alone; the group has a priority of its own (sched(7), "The autogroup feature").
IDLE = ("sh", "-c", '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec chrt --idle 0 "$@"', "idle")


@dataclass
class Suite:
    name: str
    log: Path
    cases: list[counts.Case] = field(default_factory=list)
    late: list[str] = field(default_factory=list)  # tests that failed at first and passed later, with the first failure
    failures: list[tuple[set[str], Callable[[list[str], Suite], None], Callable[[str], str | None]]] = field(default_factory=list)  # to run again

    def passed(self, name: str) -> None:
        self.cases.append(counts.Case(name, "passed"))

    def failed(self, name: str, text: str) -> None:
        self.cases.append(counts.Case(name, "failed", text.strip()))

    def skipped(self, name: str, reason: str) -> None:
        self.cases.append(counts.Case(name, "skipped", reason.strip()))

    def again(self, run: Callable[[list[str], Suite], None], argument: Callable[[str], str | None]) -> None:
        """The tests that have failed will run again, when no other suite runs. `run` takes the arguments that select them, and the suite for their counts."""
        known = {name for names, _, _ in self.failures for name in names}
        failed = {case.name for case in self.cases if case.outcome == "failed"} - known
        if failed:
            self.failures.append((failed, run, argument))

    def run_again(self) -> None:
        """See counts.again."""
        for failed, run, argument in self.failures:

            def cases(selected: list[str], run: Callable[[list[str], Suite], None] = run) -> list[counts.Case]:
                later = Suite(self.name, self.log)
                run(selected, later)
                return later.cases

            found, late = counts.again([case for case in self.cases if case.name in failed], cases, argument)
            self.cases = [case for case in self.cases if case.name not in failed] + found
            self.late += [f"{self.name}: {words}" for words in late]
        self.failures = []

    def count(self, outcome: str) -> int:
        return sum(case.outcome == outcome for case in self.cases)

    def run(self, command: list[str], timeout: float, environment: dict[str, str] | None = None) -> tuple[int, str]:
        """Run a command. Returns its status and output, which also goes to the log. At the time limit it is killed with all its children."""
        return run_logged(self.log, command, timeout, environment)

    def step(self, name: str, command: list[str], timeout: float, environment: dict[str, str] | None = None) -> bool:
        """Run a command that counts as one test."""
        status, output = self.run(command, timeout, environment)
        if status == 0:
            self.passed(name)
        else:
            self.failed(name, f"$ {' '.join(command)}\n{output}\nexit status {status}")
        return status == 0

    def add(self, runner: str, cases: list[counts.Case], status: int, output: str) -> None:
        """Count the tests in the log of `runner`. A failure of the runner without a failed test counts as one failure, as does a run without tests."""
        self.cases += cases
        if not cases or (status != 0 and not any(case.outcome == "failed" for case in cases)):
            self.failed(runner, f"{output}\nexit status {status}, {len(cases)} tests run")
        for line in re.findall(r"^figure: .*$", output, re.MULTILINE):
            print(f"    {line}")


RUNNING: list[subprocess.Popen[bytes]] = []  # of all threads


def stop_all(*_: object) -> None:
    """SIGTERM and Ctrl-C also stop the children of all threads."""
    for child in list(RUNNING):
        stop_group(child)
    os._exit(143)


def stop_idle() -> None:
    """Stops the commands that begin with IDLE. On a busy machine they last for ever."""
    for child in list(RUNNING):
        if tuple(child.args[: len(IDLE)]) == IDLE:  # type: ignore[index]
            stop_group(child)


def run_logged(log: Path, command: list[str], timeout: float, environment: dict[str, str] | None = None) -> tuple[int, str]:
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | BYTECODE | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        late = ""
        RUNNING.append(child)
        try:
            status = child.wait(timeout)
        except subprocess.TimeoutExpired:
            late = f"\nkilled: not done after {timeout:.0f} s\n"
            status = 124
        except BaseException:
            stop_group(child)
            raise
        finally:
            RUNNING.remove(child)
        stop_group(child)
        output.seek(0)
        text = output.read().decode(errors="replace") + late
    with log.open("a") as file:
        file.write(f"$ {' '.join(command)}\n{text}\nexit status {status}\n")
    return status, text


def stop_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children. pytest gets a moment to remove its namespaces."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        if child.poll() is None:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                continue
    child.wait()


def part(suite: Suite, body: Callable[[Suite], None]) -> float:
    """Its seconds."""
    start = time.monotonic()
    try:
        body(suite)
    except Exception as error:  # the runner must reach its last line
        suite.failed(f"tests/run {suite.name}", f"{type(error).__name__}: {error}")
    return time.monotonic() - start


def side_by_side(suites: dict[str, Callable[[Suite], None]]) -> list[Suite]:
    """Runs suites at the same time, and then their failed tests again, alone."""
    done = [Suite(name, LOGS / f"{name}.log") for name in suites]
    for suite in done:
        suite.log.unlink(missing_ok=True)
    with concurrent.futures.ThreadPoolExecutor(max(1, len(suites))) as pool:
        spent = list(pool.map(part, done, suites.values()))
    for suite, seconds in zip(done, spent, strict=True):
        report(suite, seconds + part(suite, Suite.run_again))
    return done


def report(suite: Suite, seconds: float) -> None:
    counts = [f"{suite.count(outcome)} {outcome}" for outcome in ("passed", "failed", "skipped") if suite.count(outcome)]
    print(f"{suite.name:<10} {', '.join(counts) or 'nothing to do':<40} {seconds:7.1f} s", flush=True)
    for case in suite.cases:
        if case.outcome == "failed":
            print(f"\n--- failed: {suite.name}: {case.name}\n{case.text}\n---\n", flush=True)
