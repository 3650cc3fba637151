# SPDX-License-Identifier: MIT OR Apache-2.0
"""The suite of lints, formats, types, words and walls."""

from __future__ import annotations

import concurrent.futures
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from runner.suite import BUILD, CORES, ROOT, VENV, Suite

PROGRAMS = ["tests/run", "tests/walls", "tests/paths", "tests/words", "tests/interface", "scripts/test-fresh"]


def sources() -> list[Path]:
    """The files of the project: those in git, or in an unpacked release all except build results."""
    try:
        told = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
        names = told.stdout.split("\0") if told.returncode == 0 else []
    except FileNotFoundError:
        names = []
    if names:
        return [ROOT / name for name in names if name]
    return [path for path in ROOT.rglob("*") if not re.match(r"build|\.venv|\.git$", path.relative_to(ROOT).parts[0])]


def scripts() -> Iterator[str]:
    for path in sorted(sources()):
        if path.is_file() and (path.suffix in (".sh", ".bash") or (path.suffix == "" and os.access(path, os.X_OK))):
            with path.open("rb") as file:
                if re.match(rb"#!\s*\S*(/|env )(sh|bash|dash)\b", file.readline(100)):
                    yield str(path.relative_to(ROOT))


def lint(suite: Suite) -> None:
    """The steps side by side. The largest ones begin first."""
    Step = tuple[str, list[str], float, dict[str, str] | None]
    steps: list[Step] = [
        ("folders and files without circles and forbidden arrows", ["tests/walls", "--build", str(BUILD)], 60, None),
        ("shellcheck", ["shellcheck", "-x", *scripts()], 120, None),
        ("words that the project does not use", ["tests/words"], 60, None),
        ("the public headers have the recorded interface", ["tests/interface"], 60, None),
        ("files that comments and documents name exist", ["tests/paths"], 30, None),
        ("the generated files match the tables of the fields", ["contract/generate.py", "check"], 30, {"PYTHONDONTWRITEBYTECODE": "1"}),
    ]
    pages = sorted(path for path in BUILD.rglob("ktrxer*.1") if path.is_file())
    if pages:
        # `base` would complain of a section, or an operating system, that mandoc does not know.
        steps.append(("mandoc", ["mandoc", "-T", "lint", "-W", "warning", *map(str, pages)], 60, None))
    else:
        suite.skipped("manual pages", "the build made none (-Dman=false)")

    types: list[Step] = []
    if (VENV / "ruff").exists():
        steps.append(("C files have the format of .clang-format", ["scripts/format", "--check"], 120, None))
        folders = [name for name in ("python", "lab", "tests", "bench", "contract") if any((ROOT / name).rglob("*.py"))]
        ruff = [str(VENV / "ruff"), "check", "--no-cache", "--config", "pyproject.toml", *folders, *PROGRAMS, "scripts/docs-gallery"]
        steps.append(("ruff", ruff, 60, None))
        mypy = [str(VENV / "mypy"), "--config-file", "pyproject.toml", "--cache-dir", str(BUILD / "mypy")]
        types = [
            ("mypy", [*mypy, "--scripts-are-modules", "python/ktrxer", "lab/ktrxer_lab", "tests/counts.py", "tests/runner", *PROGRAMS], 300, {"MYPYPATH": "python:lab:tests"}),
            # A folder of its own: its modules import each other by their bare names, as pytest has it.
            ("mypy of the tables", [*mypy, "contract"], 60, {"MYPYPATH": "contract"}),
            ("mypy of the lab's tests", [*mypy, "tests/lab"], 300, {"MYPYPATH": "python:lab:tests/lab"}),
            ("mypy of the tests of virtual time", [*mypy, "tests/virtual"], 300, {"MYPYPATH": "python:lab:tests/virtual"}),
        ]
    else:
        suite.failed("clang-format, ruff and mypy", "there is no .venv: `make .venv/.tests` makes it (and `make test` does)")

    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        # One after the other, because they share a cache.
        typed = pool.submit(lambda: [suite.step(*step) for step in types])
        for done in [pool.submit(suite.step, *step) for step in steps]:
            done.result()
        typed.result()
