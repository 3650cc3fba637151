# SPDX-License-Identifier: MIT OR Apache-2.0
"""The single tests in the logs of `meson test`, pytest and vitest: tests/run and scripts/test-cross count them."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NO_REASON = "no reason given"
AGAIN_MAX = 24  # failed tests of a suite that run again; a larger number has another cause than a busy machine
TURNS = ("second", "third")


@dataclass(frozen=True)
class Case:
    name: str
    outcome: str  # passed, failed or skipped
    text: str = ""  # the output of a failure, or the reason of a skip


def last_word(text: str) -> str:
    """The most informative line of a failure: pytest's assertion, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("E ")]
    return " ".join((said or lines or [""])[-1 if not said else 0].split())[:300]


def again(cases: list[Case], run: Callable[[list[str]], list[Case]], argument: Callable[[str], str | None]) -> tuple[list[Case], list[str]]:
    """Run failed tests again, alone, because the tests run side by side and other users of a machine take processor time from them.

    `argument` makes the argument that selects a test of its name (None: it cannot be selected); `run` runs the selected tests. The results are the
    cases, and a line for each test that passed only at a later turn, with its first failure."""
    late = []
    for turn in TURNS:
        failed = {case.name: case for case in cases if case.outcome == "failed"}
        selected = list(dict.fromkeys(filter(None, map(argument, failed))))
        if not 0 < len(selected) <= AGAIN_MAX:
            break
        passed = {case.name for case in run(selected) if case.outcome == "passed"} & set(failed)
        late += [f"{name}: passed the {turn} time, alone; at first: {last_word(failed[name].text)}" for name in failed if name in passed]
        cases = [Case(case.name, "passed") if case.name in passed else case for case in cases]
    return cases, late


def meson(log: Path, output_max: int = 20_000) -> list[Case]:
    """The tests of each program of cmocka or libFuzzer in meson-logs/testlog.json. meson's JUnit file is not used, because it lists a program that reached its
    time limit as passed (meson 1.0), and contains no single tests."""
    cases: list[Case] = []
    for line in log.read_text().splitlines() if log.exists() else []:
        program = json.loads(line)
        name = program["name"].split(" / ")[-1].split(":")[-1]
        output = program.get("stdout", "") + "\n" + program.get("stderr", "")
        found = [Case(f"{name}: {case.name}", case.outcome, case.text) for case in (*cmocka(output), *libfuzzer(output))]
        if program["result"] == "SKIP" and not found:
            found = [Case(name, "skipped", output.strip() or NO_REASON)]
        elif program["result"] != "OK" and not any(case.outcome == "failed" for case in found):
            found.append(Case(name, "failed", f"meson: {program['result']}, status {program.get('returncode')}\n{output[-output_max:]}"))
        elif not found:
            found = [Case(name, "failed", f"ran no test\n{output[-output_max:]}")]
        cases += found
    return cases


def cmocka(output: str) -> list[Case]:
    """cmocka prints the names of failed and skipped tests twice, the second time in a list at the end."""
    cases: dict[str, Case] = {}
    reason, passed = NO_REASON, []
    for line in output.splitlines():
        found = re.match(r"\[ *(RUN|OK|FAILED|SKIPPED) *\] (?!(?:tests: )?\d+ test\(s\))(.*)", line)
        if line.startswith("skip: "):  # cm_skip() of tests/unit/cm.h
            reason = line.removeprefix("skip: ")
        elif found is None:
            continue
        elif found[1] == "RUN":
            reason = NO_REASON
        elif found[1] == "OK":
            passed.append(Case(found[2], "passed"))
        elif found[2] not in cases:
            cases[found[2]] = Case(found[2], "failed", output) if found[1] == "FAILED" else Case(found[2], "skipped", reason)
    return [*passed, *cases.values()]


def libfuzzer(output: str) -> list[Case]:
    """A fuzz target prints its number of runs, and an input that made it fail."""
    runs, found = re.search(r"number_of_executed_units: *([1-9]\d*)", output), re.search(r"^Base64: .*$", output, re.MULTILINE)
    if found:
        return [Case("found an input", "failed", f"{output[max(0, output.find(chr(10) + '=='), len(output) - 6000):]}\n{found[0]}")]
    return [Case(f"{runs[1]} runs", "passed")] if runs else []


def node(name: str, root: Path) -> str | None:
    """The argument of pytest that selects a test by its name in a JUnit file. None if the name is not that of a test function of a file."""
    module, _, function = name.partition("::")
    file = module.replace(".", "/") + ".py"
    return f"{file}::{function}" if function and "::" not in function.partition("[")[0] and (root / file).is_file() else None


def program(name: str) -> str | None:
    """The name of the program of a test in meson's log."""
    return name.partition(":")[0] or None


def junit(file: Path) -> list[Case]:
    """The tests in a JUnit file of pytest or vitest."""
    cases: list[Case] = []
    for case in xml.etree.ElementTree.parse(file).iter("testcase"):
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        bad = [child.text or child.get("message") or "" for child in case if child.tag in ("failure", "error")]
        skip = case.find("skipped")
        if bad:
            cases.append(Case(name, "failed", "\n".join([*bad, *(child.text or "" for child in case if child.tag.startswith("system-"))])))
        elif skip is not None:
            cases.append(Case(name, "skipped", skip.get("message") or NO_REASON))
        else:
            cases.append(Case(name, "passed"))
    return cases
