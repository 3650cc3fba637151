# SPDX-License-Identifier: MIT OR Apache-2.0
"""`pip install .`: the wheel of the Python half, in a clean environment, away from the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from synthetic import synthetic

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


def done(*command: str | Path, **more: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KTRXER", "PIP"))} | more
    result = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, check=False)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel, and with the packages of this environment in the place of pip's."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "python", source / "python", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    done(*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", place, source)
    (wheel,) = place.glob("ktrxer-*.whl")
    assert not (source / "build").exists(), "meson's folder"
    done(sys.executable, "-m", "venv", "--without-pip", place / "venv")
    python = place / "venv/bin/python"
    done(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel)
    packages = done(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip()
    Path(packages, "packages.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return place / "venv/bin"


def test_its_program_runs_alone(programs: Path, tmp_path: Path) -> None:
    assert done(programs / "ktrxer-py", "--version").startswith("ktrxer ")
    told = done(programs / "python", "-c", "import ktrxer; print(ktrxer.__file__)")
    assert told.startswith(str(programs.parent)), "not the source tree's"
    assert "rrul" in done(programs / "ktrxer-py", "tests")
    synthetic(tmp_path, seconds=4, delay=1, name="rrul")
    assert "verdict" in done(programs / "ktrxer-py", "summary", tmp_path / "rrul.ktrxer")
    done(programs / "ktrxer-py", "report", tmp_path / "rrul.ktrxer", "-o", tmp_path / "x.html")
    done(programs / "ktrxer-py", "plot", tmp_path / "rrul.ktrxer", "-o", tmp_path / "x.svg")
    assert (tmp_path / "x.html").stat().st_size > 50_000 and (tmp_path / "x.svg").exists()


def test_the_lab_is_named_where_it_is_missing(programs: Path) -> None:
    result = subprocess.run([programs / "ktrxer-py", "lab", "topology", "access"], capture_output=True, text=True, cwd="/", check=False)
    assert result.returncode == 1 and "ktrxer-lab is missing" in result.stderr
