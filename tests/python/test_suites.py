# SPDX-License-Identifier: MIT OR Apache-2.0
"""tests/runner/suite.py: suites side by side, failed tests again when all of them have ended, and commands with the time that others leave."""

import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import counts
from runner import suite


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "LOGS", tmp_path)


def test_failed_tests_run_again_when_the_other_suites_have_ended(capsys: pytest.CaptureFixture[str]) -> None:
    begun, order = threading.Barrier(2, timeout=20), list[str]()

    def quick(one: suite.Suite) -> None:
        one.failed("t: a", "E late")
        one.again(again, lambda name: name[-1])
        one.failed("t: b", "E no argument selects it")
        begun.wait()

    def slow(one: suite.Suite) -> None:
        begun.wait()
        one.passed("t: c")
        order.append("slow")

    def again(names: list[str], later: suite.Suite) -> None:
        order.append(f"again {names}")
        later.passed("t: a")

    first, second = suite.side_by_side({"quick": quick, "slow": slow})
    assert order == ["slow", "again ['a']"]
    assert first.cases == [counts.Case("t: b", "failed", "E no argument selects it"), counts.Case("t: a", "passed")]
    assert first.late == ["quick: t: a: passed the second time, alone; at first: E late"]
    assert second.count("passed") == 1
    assert "1 passed, 1 failed" in capsys.readouterr().out


def test_a_failure_runs_again_with_the_runner_that_found_it() -> None:
    selected = list[tuple[str, list[str]]]()

    def body(one: suite.Suite) -> None:
        for runner in ("x", "y"):
            one.failed(f"{runner}: a", "E no")
            one.again(lambda names, later, runner=runner: selected.append((runner, names)), lambda name: name)

    suite.side_by_side({"one": body})
    assert selected == [("x", ["x: a"]), ("x", ["x: a"]), ("y", ["y: a"]), ("y", ["y: a"])]


def test_what_is_idle_yields_to_other_sessions(tmp_path: Path) -> None:
    status, output = suite.run_logged(tmp_path / "log", [*suite.IDLE, "sh", "-c", "cat /proc/self/autogroup; chrt --pid $$"], 20)
    assert status == 0 and "SCHED_IDLE" in output
    if not Path("/proc/self/autogroup").exists():
        pytest.skip("this kernel does not group tasks by session")
    assert "nice 19" in output


def test_what_is_idle_is_stopped(tmp_path: Path) -> None:
    done = list[int]()

    def run(*before: str) -> threading.Thread:
        thread = threading.Thread(target=lambda: done.append(suite.run_logged(tmp_path / "log", [*before, "sleep", "60"], 90)[0]))
        thread.start()
        return thread

    idle, other = run(*suite.IDLE), run()
    while len(suite.RUNNING) < 2:
        time.sleep(0.01)
    suite.stop_idle()
    idle.join(20)
    assert len(done) == 1 and done[0] < 0 and other.is_alive()
    for child in list(suite.RUNNING):
        suite.stop_group(child)
    other.join(20)
    assert not other.is_alive()
