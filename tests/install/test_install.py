# SPDX-License-Identifier: MIT OR Apache-2.0
"""The steps of a packager and of a user of the library: install into a DESTDIR, build the examples against it, run them."""

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KTRXER_BUILD") or ROOT / "build").resolve()
# Only in .ci/run, like in the build, because a newer compiler may have new warnings.
WARNINGS = ["-Wall", "-Wextra", *(["-Werror"] if os.environ.get("WERROR") == "true" else [])]
VERSION = """#include <ktrxer.h>
#include <stdio.h>
#include <string.h>
int main(void) { puts(ktrxer_version()); return ktrxer_now_ns() == 0; }
"""


def run(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=os.environ | (environment or {}), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"$ {shlex.join(map(str, command))}\n{done.stdout}{done.stderr}\nexit status {done.returncode}"
    return done.stdout


@dataclass(frozen=True)
class Installed:
    place: Path
    options: dict[str, str]  # of the build, by name

    def path(self, folder: str) -> Path:
        """A folder from the build's options, for example bindir, below the DESTDIR."""
        return Path(f"{self.place}{self.options['prefix']}") / self.options[folder]

    @property
    def environment(self) -> dict[str, str]:
        library = str(self.path("libdir"))
        return {"PKG_CONFIG_SYSROOT_DIR": str(self.place), "PKG_CONFIG_PATH": f"{library}/pkgconfig", "LD_LIBRARY_PATH": library}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("destdir")
    options = json.loads(run(["meson", "introspect", "--buildoptions", BUILD]))
    run(["meson", "install", "-C", BUILD, "--destdir", place])
    return Installed(place, {option["name"]: option["value"] for option in options})


def test_no_setuid_bit(installed: Installed) -> None:
    files = [path for path in installed.place.rglob("*") if path.is_file() and not path.is_symlink()]
    assert files and not [path for path in files if path.stat().st_mode & 0o6000]


def test_the_command_runs(installed: Installed) -> None:
    run([installed.path("bindir") / "ktrxer", "--version"], installed.environment)


def test_the_python_part_finds_its_package_and_data(installed: Installed) -> None:
    if not installed.options["python"]:
        pytest.skip("this build installs no Python part (-Dpython=false)")
    run([installed.path("libexecdir") / "ktrxer" / "ktrxer-py", "lab", "devices"])


@pytest.mark.parametrize("kind", ["shared", "static"])
@pytest.mark.parametrize("source", ["version.c", *sorted(path.name for path in (ROOT / "examples").glob("*.c"))])
def test_a_program_builds_against_the_library(installed: Installed, tmp_path: Path, source: str, kind: str) -> None:
    path = ROOT / "examples" / source
    if source == "version.c":
        path = tmp_path / source
        path.write_text(VERSION)
    static = kind == "static"
    flags = run(["pkg-config", "--cflags", "libktrxer"], installed.environment).split()
    libraries = run(["pkg-config", "--libs", *(["--static"] if static else []), "libktrxer"], installed.environment).split()
    if static:
        libraries = ["-Wl,-Bstatic", *libraries, "-Wl,-Bdynamic"]
    program = tmp_path / "program"
    run([*shlex.split(os.environ.get("CC", "cc")), *WARNINGS, "-o", program, path, *flags, *libraries])
    if source == "version.c":
        run([program], installed.environment)
