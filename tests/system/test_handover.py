# SPDX-License-Identifier: MIT OR Apache-2.0
"""The start of the Python part and of the bench by the command, and their output."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from programs import (
    KTRXER,
    run,
)


@pytest.fixture
def open_path():
    """Like tmp_path, but other users may enter it, so that the user 65534 can start programs in it."""
    path = Path(tempfile.mkdtemp(prefix="ktrxer-cli-")).resolve()
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def tree(open_path):
    """A build tree with an executable, and a Python part that prints its arguments."""
    tmp_path = open_path
    (tmp_path / "build" / "cli").mkdir(parents=True)
    (tmp_path / "build" / "build.ninja").touch()
    exe = tmp_path / "build" / "cli" / "ktrxer"
    shutil.copy(KTRXER, exe)
    (tmp_path / "python").mkdir(mode=0o755)
    part = tmp_path / "python" / "ktrxer-py"
    part.write_text('#!/bin/sh\necho "part: $0 $* [${PYTHONPATH-none}]"\nexit 7\n')
    part.chmod(0o755)
    return exe, part


def test_other_commands_go_to_the_python_part(tree):
    exe, part = tree
    done = run(exe, "run", "rrul", "--help")
    assert done.returncode == 7 and done.stdout.startswith(f"part: {part} run rrul --help")
    assert run(exe, "help", "run").stdout.startswith(f"part: {part} run --help")
    assert run(exe, "help", "lab", "vm").stdout.startswith(f"part: {part} lab vm --help [")
    assert run(exe, "nonsense").returncode == 7
    assert run(exe, "--help").returncode == 0


def test_the_bench_is_a_program_of_its_own(tree):
    exe, part = tree
    if "  bench " not in run(exe, "--help").stdout:
        pytest.skip("this build has no bench")
    folder = exe.parents[1] / "bench" / "harness"
    folder.mkdir(parents=True)
    absent = run(exe, "bench", "rate")
    assert absent.returncode == 1 and "ktrxer bench: the program ktrxer-bench is neither in this build" in absent.stderr
    program = folder / "ktrxer-bench"
    program.write_text('#!/bin/sh\necho "bench: $*"\nexit 7\n')
    program.chmod(0o755)
    done = run(exe, "bench", "rate", "--help")
    assert done.returncode == 7 and done.stdout == "bench: bench rate --help\n"
    assert run(exe, "help", "bench", "rate").stdout == "bench: help bench rate\n"
    part.write_text('#!/bin/sh\necho "part: $KTRXER_PROGRAM $*"\n')
    assert run(exe, "bench", "rate").stdout == f"part: {program} bench rate\n", "the Python part runs it, and makes the tables"
    hidden = part.rename(part.with_name("hidden"))
    assert run(exe, "bench", "rate").stdout == "bench: bench rate\n", "without the Python part"
    hidden.rename(part)
    folder.chmod(0o777)
    done = run(exe, "bench", "rate")
    assert done.returncode == 1 and f"{folder} has mode 0777" in done.stderr


def test_lab_in_the_build_tree():
    part = Path(__file__).resolve().parents[2] / "python" / "ktrxer-py"
    if any(path.stat().st_mode & 0o022 for path in (part, part.parent)) or KTRXER.resolve().parents[2] != part.parents[1]:
        pytest.skip("this source tree can be written by others, or the build is elsewhere: the Python part is not started from it")
    done = run(KTRXER, "lab", "devices")
    assert (done.returncode, done.stderr) == (0, "") and "router" in done.stdout
    assert run(KTRXER, "help", "lab").stdout.startswith("usage: ktrxer lab")
    done = run(KTRXER, "lab", "vm", "--device", "toaster", "--", "true")
    assert (done.returncode, done.stderr) == (2, "ktrxer lab: no device 'toaster'; choose one of: pc, phone, router, uml\n")
    done = run(KTRXER, "nonsense")
    assert done.returncode == 2 and done.stderr.startswith("ktrxer: 'nonsense': no such command")


def test_output_of_the_python_part_that_cannot_be_written(tmp_path):
    with open("/dev/full", "w") as full:
        for args in (["tests"], ["tests", "rrul"], ["runs", str(tmp_path)]):
            done = subprocess.run([KTRXER, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            assert (done.returncode, done.stderr) == (1, f"ktrxer {args[0]}: standard output cannot be written: No space left on device\n")
    done = subprocess.run(["bash", "-c", f"'{KTRXER}' tests | true; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_query_prints_nothing_but_its_answer(tmp_path):
    done = run(KTRXER, "query", "SELECT 1 AS one", str(tmp_path), env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\n  1\n", "")


def test_a_slip_of_the_finger_is_not_handed_over(tree):
    exe, _ = tree
    done = run(exe, "sned")
    assert done.returncode == 2 and "did you mean `ktrxer send`?" in done.stderr


def test_python_part_that_others_could_have_put_there_is_not_started(tree):
    exe, part = tree
    for path in (part.parent, part):
        path.chmod(0o775)
        done = run(exe, "run")
        said = f"ktrxer run: ktrxer-py is not started: {path} has mode 0775, so that others may change it: "
        assert done.stderr.startswith(said)
        subprocess.run(done.stderr.removeprefix(said).strip("`\n"), shell=True, check=True)
        assert "part:" in run(exe, "run").stdout
    (exe.parents[1] / "build.ninja").unlink()
    assert "part:" not in run(exe, "run").stdout


def test_privileges_and_environment(tree, open_path):
    exe, part = tree
    other = open_path / "other"
    other.write_text('#!/bin/sh\necho "other [${PYTHONPATH-none}]"\n')
    other.chmod(0o755)
    env = {**os.environ, "KTRXER_PY": str(other), "PYTHONPATH": "/tmp/evil", "PYTHONX": "1"}
    if os.environ.get("KTRXER_USER_NAMESPACE"):
        pytest.skip("root of a user namespace only: there is no other user here")
    if os.geteuid() == 0:
        assert "[none]" in run(exe, "run", env=env).stdout  # a privileged run ignores $KTRXER_PY and PYTHON*
        as_nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    else:
        as_nobody = {}
    assert run(exe, "run", env=env, **as_nobody).stdout == "other [/tmp/evil]\n"
    assert run(exe, "run", env={**env, "KTRXER_PY": "other"}, **as_nobody).stdout.startswith("part:")
    broken = run(exe, "run", env={**env, "KTRXER_PY": "/nonexistent/ktrxer-py"}, **as_nobody)
    assert broken.returncode == 1 and "cannot be started" in broken.stderr
