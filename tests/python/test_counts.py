# SPDX-License-Identifier: MIT OR Apache-2.0
"""tests/counts.py: each test of a log counts once, and a program that ends without a test result counts as a failure."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import counts

CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] a
skip: no privilege
[  SKIPPED ] a
[ RUN      ] b
[  FAILED  ] b
[ RUN      ] c
[       OK ] c
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] a
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] b
"""
PASSED = "[ RUN      ] c\n[       OK ] c\n"


def outcomes(place: Path, result: str, output: str) -> list[tuple[str, str]]:
    log = place / "testlog.json"
    log.write_text(json.dumps({"name": "ktrxer:unit / test_x", "result": result, "returncode": 1, "stdout": output}) + "\n")
    return [(case.name, case.outcome) for case in counts.meson(log)]


@pytest.mark.parametrize(
    ("result", "output", "cases"),
    [
        ("FAIL", CMOCKA, [("test_x: c", "passed"), ("test_x: a", "skipped"), ("test_x: b", "failed")]),
        ("OK", PASSED, [("test_x: c", "passed")]),
        ("FAIL", PASSED + "[ RUN      ] d\n", [("test_x: c", "passed"), ("test_x", "failed")]),  # it crashed
        ("TIMEOUT", PASSED, [("test_x: c", "passed"), ("test_x", "failed")]),
        ("OK", "", [("test_x", "failed")]),  # it ran no test
        ("SKIP", "not on this machine", [("test_x", "skipped")]),
        ("OK", "stat::number_of_executed_units: 512\n", [("test_x: 512 runs", "passed")]),
        ("OK", "stat::number_of_executed_units: 0\n", [("test_x", "failed")]),
        ("FAIL", "==1==ERROR: AddressSanitizer\nBase64: AAA=\nstat::number_of_executed_units: 5\n", [("test_x: found an input", "failed")]),
    ],
)
def test_programs_that_meson_ran(tmp_path: Path, result: str, output: str, cases: list[tuple[str, str]]) -> None:
    assert outcomes(tmp_path, result, output) == cases


def test_a_skip_has_its_reason() -> None:
    assert [case.text for case in counts.cmocka(CMOCKA) if case.outcome == "skipped"] == ["no privilege"]


def test_the_list_of_a_newer_cmocka_names_no_test() -> None:
    """Version 1.1.8, of Debian 13."""
    output = "[ RUN      ] one\n[  FAILED  ] one\n[  PASSED  ] 0 test(s).\n[  FAILED  ] tests: 1 test(s), listed below:\n[  FAILED  ] one\n"
    assert [(case.name, case.outcome) for case in counts.cmocka(output)] == [("one", "failed")]


def test_no_log_is_no_test(tmp_path: Path) -> None:
    assert counts.meson(tmp_path / "none.json") == []


def test_a_junit_file(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_text(
        '<testsuites><testsuite><testcase classname="m" name="good"/><testcase classname="m" name="bad"><failure message="f">why</failure></testcase>'
        '<testcase classname="m" name="broken"><error message="setup"/></testcase>'
        '<testcase classname="m" name="left"><skipped message="no root"/></testcase></testsuite></testsuites>'
    )
    assert [(case.name, case.outcome, case.text) for case in counts.junit(file)] == [
        ("m::good", "passed", ""), ("m::bad", "failed", "why"), ("m::broken", "failed", "setup"), ("m::left", "skipped", "no root"),
    ]


def test_a_failed_test_is_named_for_a_second_run(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").touch()
    assert counts.node("tests.test_a::test_x[1.5-a::b]", tmp_path) == "tests/test_a.py::test_x[1.5-a::b]"
    assert counts.node("tests.test_a::test_x[1.5]", tmp_path) == "tests/test_a.py::test_x[1.5]"
    assert [counts.node(name, tmp_path) for name in ("tests.test_b::test_x", "pytest system", "tests.test_a::Of::test_x")] == [None] * 3


def test_failed_tests_run_again_alone() -> None:
    runs: list[list[str]] = []
    outcomes = [{"a": "failed", "b": "passed"}, {"a": "passed"}]

    def run(selected: list[str]) -> list[counts.Case]:
        runs.append(selected)
        return [counts.Case(f"x: {name}", outcome) for name, outcome in outcomes[len(runs) - 1].items()]

    first = [counts.Case(f"x: {name}", outcome, f"E {name} is late") for name, outcome in (("a", "failed"), ("b", "failed"), ("c", "passed"), ("d", "skipped"))]
    cases, late = counts.again(first, run, lambda name: name[-1])
    assert runs == [["a", "b"], ["a"]]
    assert [case.outcome for case in cases] == ["passed", "passed", "passed", "skipped"]
    assert late == ["x: b: passed the second time, alone; at first: E b is late", "x: a: passed the third time, alone; at first: E a is late"]


def test_tests_that_fail_each_time_stay_failed() -> None:
    broken = [counts.Case("x: a", "failed", "E no"), counts.Case("build", "failed", "no compiler")]
    assert counts.again(broken, lambda selected: broken[:1], lambda name: "x" if name.startswith("x") else None) == (broken, [])


def test_many_failures_are_no_effect_of_a_busy_machine() -> None:
    def run(selected: list[str]) -> list[counts.Case]:
        raise AssertionError(selected)

    many = [counts.Case(f"t: {number}", "failed") for number in range(counts.AGAIN_MAX + 1)]
    assert counts.again(many, run, lambda name: name) == (many, [])
