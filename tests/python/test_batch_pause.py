# SPDX-License-Identifier: MIT OR Apache-2.0
"""Between the runs of a batch: the pause that ends when the path is idle again, and the time that is left."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ktrxer.batch import idle, view
from ktrxer.batch.journal import Try
from ktrxer.batch.plan import planned
from ktrxer.batch.spec import Batch, from_table
from ktrxer.store import RunWriter
from ktrxer.store.columns import ANSWERED
from rich.console import Console
from rich.progress import Progress, TextColumn
from synthetic import describe

IDLE_MS = 10  # of the runs of this file; under load they have three times as much
# A double of `ktrxer ping`: it prints the next line of a file. tests/system/test_experiments.py reads the real one.
PING = """#!{python}
import sys
from pathlib import Path
folder = Path(__file__).parent
with (folder / "calls.txt").open("a") as calls:
    print(*sys.argv[1:], file=calls)
first, _, rest = (folder / "answers.txt").read_text().partition("\\n")
(folder / "answers.txt").write_text(rest or first)
print(first)
"""


def run_file(folder: Path, *, delay: int = 1) -> Path:
    meta = describe(3, delay, "")
    series = meta.of_kind("latency")[1]
    writer = RunWriter(folder, meta, "last")
    writer.append("latency", {
        "series": [series.id] * 300, "t_ns": [10**7 * i for i in range(300)], "seq": list(range(300)), "state": [ANSWERED] * 300,
        "rtt_ns": [IDLE_MS * 10**6 * (3 if 100 <= i < 200 else 1) for i in range(300)], "lateness_ns": [1000] * 300,
    })  # fmt: skip
    return writer.finish()


def answer(p50_ms: float) -> str:
    return json.dumps({"type": "end", "rtt_us": {"p50": p50_ms * 1e3}})


@pytest.fixture
def ping(tmp_path: Path) -> Callable[..., str]:
    def made(*answers: str) -> str:
        program = tmp_path / "ping.py"
        program.write_text(PING.format(python=sys.executable))
        program.chmod(0o755)
        (tmp_path / "answers.txt").write_text("\n".join(answers))
        return str(program)

    return made


def calls(folder: Path) -> list[str]:
    path = folder / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_a_pause_ends_when_the_round_trip_is_that_before_the_load(tmp_path, ping) -> None:
    """13.0 ms is the limit: a quarter and half a millisecond more than before the load."""
    program = ping(answer(45), "no object", answer(13.2), answer(12.9), answer(1))
    assert idle.wait_until_idle(program, run_file(tmp_path), 60, lambda: False) == ""
    assert len(calls(tmp_path)) == 4
    assert all(line.startswith(f"ping {describe(3, 1, '').targets[0]} ") for line in calls(tmp_path))


@pytest.mark.parametrize(
    ("answers", "seen"), [([answer(45)], "round trip 45.0 ms"), (["no object"], "round trip not answered"), (["{}"], "round trip not answered")]
)
def test_a_path_that_stays_busy_or_silent_is_named_at_the_limit(tmp_path, ping, answers, seen) -> None:
    for limit_s in (0.5, 5):  # a busy machine needs longer than 0.5 s to start two programs
        (tmp_path / "calls.txt").unlink(missing_ok=True)
        said = idle.wait_until_idle(ping(*answers), run_file(tmp_path), limit_s, lambda: False)
        assert f"was not idle again after {limit_s} s" in said
        assert said.endswith(f"{seen}, before the last load 10.0 ms")
        if len(calls(tmp_path)) >= 2:
            break
    assert len(calls(tmp_path)) >= 2


def test_without_an_idle_phase_there_is_no_pause(tmp_path, ping) -> None:
    said = idle.wait_until_idle(ping(answer(1)), run_file(tmp_path, delay=0), 60, lambda: False)
    assert said == "last.ktrxer has no idle phase before its load, so there was no pause"
    (tmp_path / "damaged.ktrxer").write_bytes(b"PK")
    assert "damaged.ktrxer has no idle phase" in idle.wait_until_idle(ping(answer(1)), tmp_path / "damaged.ktrxer", 60, lambda: False)
    assert calls(tmp_path) == []


def test_ctrl_c_ends_a_pause(tmp_path, ping) -> None:
    asked: list[bool] = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 2

    assert idle.wait_until_idle(ping(answer(45)), run_file(tmp_path), 60, stopped) == ""
    assert len(calls(tmp_path)) == 2


# ---------------------------------------------------------------- the time that is left


def batch(tmp_path: Path) -> Batch:
    (made,) = from_table({"repetitions": 4, "run": {"test": "ping", "host": "far", "length": "1s"}}, tmp_path / "b.toml", "")
    return made


def ended(seconds: float, verdict: str = "valid") -> Try:
    fields = dict.fromkeys(Try.__dataclass_fields__, "")
    return Try(**(fields | {"seconds": seconds, "verdict": verdict, "reason": "late" if verdict != "valid" else "", "status": 0}))


@pytest.mark.parametrize("bar", [False, True])
def test_the_time_left_is_that_of_the_runs_so_far(tmp_path, monkeypatch, capsys, bar) -> None:
    """Four runs that were planned for 10 s each take 30 s each. A run that is made again counts once."""
    now = [1000.0]
    monkeypatch.setattr(view.time, "monotonic", lambda: now[0])
    one = batch(tmp_path)
    runs = list(planned(one, 1, "id"))
    left = view.Left(len(runs), 40)
    assert left.text() == "about 40 s left"
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=120)
    shown = Progress(TextColumn("{task.description}", markup=False), TextColumn("{task.fields[left]}", markup=False), console=console, auto_refresh=False)
    task = shown.add_task("", total=len(runs), left=left.text())
    made: view.Lines = view.Bar(left, shown, task) if bar else view.Lines(left)
    texts = []
    for run, attempts in zip(runs, (1, 2, 1, 1), strict=True):
        for attempt in range(1, attempts + 1):
            made.begin(one, run, attempt)
            now[0] += 30 / attempts
            made.ended(ended(30 / attempts, "valid" if attempt == attempts else "invalid"))
            texts.append(left.text())
    assert [texts[0], texts[2], texts[3], texts[4]] == ["about 2 min left", "about 60 s left", "about 30 s left", "about 0 s left"]
    if bar:
        assert shown.tasks[0].completed == shown.tasks[0].total == 4
        assert shown.tasks[0].fields["left"] == "about 0 s left"
        assert "invalid: late" in terminal.getvalue()
    else:
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 5
        assert lines[0].startswith("ktrxer batch: 1 of 4: ")
        assert lines[0].endswith("valid in 30.0 s; about 2 min left")
        assert "repetition 2, try 2: valid in 15.0 s" in lines[2]
