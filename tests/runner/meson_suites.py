# SPDX-License-Identifier: MIT OR Apache-2.0
"""The suites of test programs of C: the build, unit tests, sanitizers, fuzz targets."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import counts

from runner.pytest_suites import ADVERSARY, FIGURES, NOT_THREADED, PAGES, POOL, SYSTEM, THREADED, system_tests
from runner.suite import BUILD, CORES, LOGS, ROOT, Suite
from runner.trees import SANITIZERS, TREES, Tree, built

CRASHES = ROOT / "tests" / "fuzz" / "crashes"


def build(suite: Suite) -> None:
    suite.step("build", ["scripts/build", BUILD.name, "tests"], 720)


def meson(
    suite: Suite, where: Path, kind: str, timeout: float, environment: dict[str, str] | None = None, *options: str
) -> None:
    log = where / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    command = ["meson", "test", "-C", str(where), "--no-rebuild", "--suite", kind, *options]
    status, output = suite.run(command, timeout, environment)
    suite.add(f"meson test {where.name}", counts.meson(log), status, output)


def unit(suite: Suite) -> None:
    programs(suite, BUILD, "unit", 300, None)
    if not any((BUILD / "bpf").glob("*.bpf.o")):
        suite.skipped("programs of BPF and their tests", "not built: clang or libbpf is not installed; `make test` installs them")


def programs(suite: Suite, where: Path, kind: str, timeout: float, environment: dict[str, str] | None, *options: str) -> None:
    """Test programs of C. A failed test is run again with its whole program."""
    meson(suite, where, kind, timeout, environment, *options)
    again = ("--num-processes", "1", *options)
    suite.again(lambda names, later: meson(later, where, kind, timeout, environment, *again, *names), counts.program)


def sanitized(suite: Suite) -> None:
    where = built(suite, TREES["sanitized"])
    if where:
        programs(suite, where, "unit", 300, SANITIZERS)
        # The command too, with real packets; no figures, they would be those of the sanitizers. What the pages run, other system tests run too.
        system_tests(suite, where, SANITIZERS, (SYSTEM, "-m", "not plain_build", *(f"--ignore={file}" for file in (FIGURES, ADVERSARY, *PAGES)), *POOL))


def threads(suite: Suite) -> None:
    """ThreadSanitizer: the unit tests that start threads, and system tests of the commands that have threads. Each different report is a
    failure. Of these system tests only the reports count: their programs are ten times slower here, so their time limits do not hold."""
    where = built(suite, TREES["threads"])
    if not where:
        return
    reports = LOGS / "tsan"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    options = f"log_path={reports}/report:second_deadlock_stack=1:exitcode=0"
    programs(suite, where, "threads", 600, {"TSAN_OPTIONS": options}, "-t", "5")
    suite.run_again()  # before the reports are read
    timed = Suite(suite.name, suite.log)
    without = (word for name in NOT_THREADED for word in ("--deselect", f"{SYSTEM}/test_live.py::{name}"))
    system_tests(timed, where, {"TSAN_OPTIONS": options}, (*THREADED, *without, *POOL))
    timed.run_again()
    if timed.count("passed") < timed.count("failed"):
        suite.failed("system tests", "\n".join(case.text for case in timed.cases if case.outcome == "failed")[-20_000:])
    found: dict[str, str] = {}
    for report in sorted(reports.iterdir()):
        for text in report.read_text(errors="replace").split("=" * 18 + "\n"):
            summary = re.search(r"^SUMMARY: ThreadSanitizer: (.*)$", text, re.MULTILINE)
            if summary:
                found.setdefault(summary[1], text)
    for title, text in found.items():
        suite.failed(title, text)
    if not found:
        suite.passed("no report of ThreadSanitizer")


FUZZ_JOBS = min(2, CORES)


def fuzz_tree(seconds: float) -> Tree:
    targets = len([*ROOT.glob("tests/fuzz/fuzz_*.c"), *ROOT.glob("methods/*/test/fuzz_*.c")])
    each = max(2, round(seconds * FUZZ_JOBS / targets))
    return Tree("build-fuzz", ("-Dfuzz=true", "-Dman=false", f"-Dfuzz_seconds={each}"), "fuzz")


def fuzz(suite: Suite, seconds: float) -> None:
    where = built(suite, TREES["fuzz"])
    if not where:
        return
    before = set(CRASHES.glob("*"))
    meson(suite, where, "fuzz", seconds + 300, SANITIZERS, "--num-processes", str(FUZZ_JOBS))
    for path in sorted(set(CRASHES.glob("*")) - before):
        print(f"kept: {path.relative_to(ROOT)}; again: build-fuzz/tests/fuzz/fuzz_{path.name.split('-')[0]} {path.relative_to(ROOT)}")
