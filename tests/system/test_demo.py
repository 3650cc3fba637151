# SPDX-License-Identifier: MIT OR Apache-2.0
"""`scripts/demo` beside an earlier one: its run and report stay until the new ones are complete."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.plain_build


@pytest.fixture
def demo(ktrxer: Path, needs_command: Any, tmp_path: Path) -> Any:
    needs_command("flow")
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "earlier.ktrxer").write_text("an earlier run")
    (folder / "report.html").write_text("an earlier report")

    def start(seconds: int) -> subprocess.Popen[str]:
        environment = os.environ | {"DEMO_SECONDS": str(seconds), "DEMO_IDLE": "1", "DEMO_DIR": str(folder), "DEMO_KTRXER": str(ktrxer)}
        return subprocess.Popen(
            [ROOT / "scripts" / "demo"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True, bufsize=1,
        )  # fmt: skip

    start.folder, start.ktrxer = folder, ktrxer  # type: ignore[attr-defined]
    return start


def until(child: subprocess.Popen[str], words: str) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if words in line:
            return
    raise AssertionError(f"{words!r} was not printed")


@pytest.mark.parametrize("moment", ["A network:", "listening"])
def test_ctrl_c_leaves_the_earlier_run_and_says_so(demo: Any, moment: str) -> None:
    child = demo(60)
    until(child, moment)
    os.killpg(child.pid, signal.SIGINT)
    said = child.communicate(timeout=60)[0]
    assert child.returncode == 130 and "demo: stopped before its end" in said, said
    assert f"still there: {demo.folder}/earlier.ktrxer, {demo.folder}/report.html" in said
    assert {one.name: one.read_text() for one in demo.folder.iterdir()} == {"earlier.ktrxer": "an earlier run", "report.html": "an earlier report"}


def test_the_new_run_replaces_the_earlier_one_and_a_second_demo_waits(demo: Any) -> None:
    child = demo(1)
    until(child, "A network:")
    second = demo(1)
    said = second.communicate(timeout=60)[0]
    assert second.returncode == 1 and f"demo: another demo uses {demo.folder}; wait for its end" in said, said
    said = child.communicate(timeout=120)[0]
    assert child.returncode == 0, said
    (run,) = demo.folder.glob("*.ktrxer")
    assert run.name.startswith("rrul-") and sorted(one.name for one in demo.folder.iterdir()) == ["report.html", run.name]
    assert "<script" in (demo.folder / "report.html").read_text()
    for line in said.partition("What next\n")[2].splitlines():
        command = line.strip().partition("     ")[0]
        if command.startswith("ktrxer summary"):
            path = f'export PATH="{demo.ktrxer.parent}:$PATH"'
            assert path in said
            done = subprocess.run(["sh", "-c", f"{path}; {command}"], capture_output=True, text=True, timeout=60, cwd="/")
            assert done.returncode == 0 and "throughput" in done.stdout, done.stderr
            return
    raise AssertionError(said)
