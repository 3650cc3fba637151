# SPDX-License-Identifier: MIT OR Apache-2.0
"""How the Python part of the command starts."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import ROOT

pytestmark = pytest.mark.plain_build


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """The start of the Python part in a source tree with a space in its name, whose main() prints its interpreter."""
    tree = tmp_path / "a tree"
    package = tree / "python" / "ktrxer"
    package.mkdir(parents=True)
    part = shutil.copy(ROOT / "python" / "ktrxer-py", package.parent)
    (package / "cli.py").write_text(
        "import json, sys\n"
        "def main():\n"
        "    print(json.dumps([sys.orig_argv[0], [sys.executable, sys.prefix, sys.path, sys.flags.dont_write_bytecode, sys.argv[1:]]]))"
    )
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", tree / ".venv"], check=True, umask=0o022)
    return Path(part)


def test_the_python_part_starts_one_interpreter(part: Path):
    """If the packages' environment has the interpreter of the first start. With variables for Python there is a second one, without them."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    once, again = (
        json.loads(subprocess.run([part, "a", "b"], env=plain | more, stdout=subprocess.PIPE, check=True).stdout)
        for more in ({}, {"PYTHONPATH": "/elsewhere", "PYTHONDONTWRITEBYTECODE": "1"})
    )
    python = str(part.parents[1] / ".venv" / "bin" / "python3")
    assert (once[0], again[0]) == ("/usr/bin/python3", python)
    assert once[1] == again[1] and once[1][0] == python and any(str(part.parents[1] / ".venv" / "lib") in path for path in once[1][2])


@pytest.mark.parametrize("folder", ["", "bin"])
def test_an_environment_that_others_may_change_is_named_with_its_remedy(part: Path, folder: str):
    venv = part.parents[1] / ".venv"
    wrong = venv / folder
    wrong.chmod(0o775)
    done = subprocess.run([part], capture_output=True, text=True)
    said = f"ktrxer: the packages of {venv} are not used: {wrong} has mode 0775, so that others may change it: "
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith(said)
    subprocess.run(done.stderr.removeprefix(said).strip("`\n"), shell=True, check=True)
    assert subprocess.run([part], capture_output=True).returncode == 0


def test_an_environment_of_another_user_is_named(part: Path):
    if os.geteuid() != 0 or "KTRXER_USER_NAMESPACE" in os.environ:
        pytest.skip("only root can give a folder to another user")
    venv = part.parents[1] / ".venv"
    os.chown(venv, 12345, -1)
    done = subprocess.run([part], capture_output=True, text=True)
    assert done.returncode == 1 and f"{venv} belongs to user 12345" in done.stderr and f"`sudo rm -r '{venv}'`" in done.stderr


def make_environment(folder: Path, umask: int) -> subprocess.CompletedProcess[str]:
    nothing = folder.parent / "lock.txt"
    nothing.write_text("")
    script = ROOT / "scripts" / "venv"
    return subprocess.run([script, folder, nothing], capture_output=True, text=True, umask=umask, env=os.environ | {"PYTHON": "/usr/bin/python3"})


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_an_environment_made_with_any_umask_is_used(part: Path, umask: int):
    venv = part.parents[1] / ".venv"
    shutil.rmtree(venv)
    done = make_environment(venv, umask)
    assert done.returncode == 0, done.stdout + done.stderr
    modes = [path.stat().st_mode & 0o777 for path in (venv, *venv.rglob("*"))]
    assert all(not mode & 0o022 and mode & 0o044 == 0o044 for mode in modes), "others can read it, and change nothing"
    done = subprocess.run([part], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and str(venv) in done.stdout


def test_an_environment_that_is_half_made_is_made_again(tmp_path: Path):
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "left").touch()
    (venv / "bin" / "python").symlink_to("/bin/true")  # it looks complete
    (tmp_path / "venv.unfinished").touch()  # as a killed scripts/venv leaves it
    assert make_environment(venv, 0o022).returncode == 0
    assert not (venv / "left").exists() and not (tmp_path / "venv.unfinished").exists()


def test_an_installed_environment_stays_without_a_network(tmp_path: Path):
    """`make install` removes pip; a second one fetches only what has changed."""
    venv = tmp_path / "venv"
    assert make_environment(venv, 0o022).returncode == 0
    packages = next(venv.glob("lib/python3*/site-packages"))
    (packages / "kept").touch()
    subprocess.run([venv / "bin" / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "pip"], check=True)
    assert make_environment(venv, 0o022).returncode == 0
    assert (packages / "kept").exists()
    packages.parent.rename(packages.parents[1] / "python3.1")  # another version of Python has replaced it
    assert make_environment(venv, 0o022).returncode == 0
    assert not (venv / "lib" / "python3.1").exists() and (packages / "pip").exists()


def test_an_environment_of_another_user_is_not_filled(tmp_path: Path):
    if os.geteuid() != 0 or "KTRXER_USER_NAMESPACE" in os.environ:
        pytest.skip("only root can give a folder to another user")
    venv = tmp_path / "venv"
    venv.mkdir()
    os.chown(venv, 12345, -1)
    done = make_environment(venv, 0o022)
    assert done.returncode == 1 and f"sudo rm -r '{venv}'" in done.stderr and not list(venv.iterdir())
