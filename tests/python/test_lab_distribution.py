# SPDX-License-Identifier: MIT OR Apache-2.0
"""The border between the experiments and the distribution ktrxer-lab, which does not import them."""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from ktrxer import arguments, cli, toml_faults
from ktrxer_lab import arguments as lab_arguments
from ktrxer_lab import toml_faults as lab_toml_faults

ROOT = Path(__file__).resolve().parents[2]


def test_both_distributions_read_arguments_and_toml_faults_alike() -> None:
    """Neither can import the other's: the lab has no experiments, and the experiments may lack the lab."""
    assert inspect.getsource(arguments) == inspect.getsource(lab_arguments)
    assert inspect.getsource(toml_faults) == inspect.getsource(lab_toml_faults)


@pytest.mark.parametrize("command", ["lab", "truth", "bench"])
def test_without_the_distribution_a_command_names_it(command: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); from ktrxer.cli import main; sys.exit(main([{command!r}, '--help']))"
    done = subprocess.run([sys.executable, "-S", "-P", "-c", code], capture_output=True, text=True, check=False, cwd="/", env={})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"ktrxer {command}: the Python distribution ktrxer-lab is missing")


def test_without_the_distribution_completion_offers_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert cli.main(["--complete", "lab", ""]) == 0 and capsys.readouterr().out == ""


def test_the_command_beside_flent_is_one_of_ktrxer(tmp_path: Path) -> None:
    """The comparison takes minutes and needs netperf, so that no suite runs it. Its options must exist all the same."""
    from ktrxer.commands import run
    from ktrxer_lab.bench import flent

    for load in ("rrul", "uploads"):
        given = argparse.Namespace(load=load, server="far", seconds=20, ktrxer="ktrxer", flent="flent")
        _, ours = flent.commands(given, tmp_path)
        assert ours[:2] == ["ktrxer", "run"] and run.parser().parse_args(ours[2:]).delay == flent.IDLE
