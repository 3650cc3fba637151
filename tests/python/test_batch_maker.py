# SPDX-License-Identifier: MIT OR Apache-2.0
"""The process that forks for each run of a batch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ktrxer.batch.maker import Maker

ROOT = Path(__file__).resolve().parents[2]


def test_the_real_run_forks_before_it_has_threads_and_logs_its_message(tmp_path):
    started = []

    def start(errors: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "ktrxer", "run", "--requests"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OPENBLAS_NUM_THREADS": "1"}  # as python/ktrxer-py has it
        started.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment))
        return started[-1]

    maker = Maker(start)
    for number, test in enumerate(("nonesuch", "rrul")):
        log = tmp_path / f"{number}.log"
        made = maker.make([test, "-H", "127.0.0.1", "--set", "nothing=1"], tmp_path, log)
        assert made.communicate(20) == (b"", None)
        assert (made.returncode, log.read_text().count("\n")) == (2, 1)
        assert "nothing" in log.read_text() or "nonesuch" in log.read_text()
    (one,) = started
    threads = {(task / "comm").read_text().strip() for task in Path(f"/proc/{one.pid}/task").iterdir() if task.name != str(one.pid)}
    assert threads <= {"jemalloc_bg_thd"}  # of pyarrow; it has handlers of its own for fork(2)
    maker.close()
    assert one.returncode == 0


def test_a_maker_that_cannot_start_is_a_run_without_a_file(tmp_path):
    words = ["sh", "-c", "echo no python >&2; exit 3"]
    maker = Maker(lambda errors: subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors))
    made = maker.make(["rrul"], tmp_path, tmp_path / "log")
    assert made.communicate(20) == (b"", None)
    assert (made.pid, made.returncode, (tmp_path / "log").read_text()) == (0, 3, "no python\n")
    maker.close()
