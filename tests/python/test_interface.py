# SPDX-License-Identifier: MIT OR Apache-2.0
"""The public interface as it is built: symbols of the libraries, and what the library's sources may not do."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KTRXER_BUILD", ROOT / "build"))
HEADERS = [ROOT / "include/ktrxer.h", *sorted((ROOT / "include/ktrxer").glob("*.h"))]
LIBRARY = [*HEADERS, *sorted((ROOT / "lib").rglob("*.[ch]"))]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def declared() -> set[str]:
    """The functions that the public headers declare."""
    text = "".join(re.sub(r"^#.*", "", COMMENT.sub("", header.read_text()), flags=re.M) for header in HEADERS)
    return set(re.findall(r"KTRXER_API[^;(]*?(\w+)\(", text))


def recorded() -> set[str]:
    text = COMMENT.sub("", (ROOT / "lib/libktrxer.map").read_text())
    return set(re.findall(r"^\t(\w+);$", text, re.M))


def built(name: str) -> Path:
    path = BUILD / "lib" / name
    if not path.exists():
        pytest.skip(f"no {path}: `make build` makes it")
    return path


def symbols(*words: str | Path) -> list[str]:
    return subprocess.run(["nm", "--defined-only", *words], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_map_names_what_the_headers_declare() -> None:
    assert recorded() == declared()


def test_the_shared_library_exports_the_declared_functions_with_their_version() -> None:
    exported = {line.split()[-1] for line in symbols("-D", built("libktrxer.so"))} - {"KTRXER_1.0"}
    assert exported == {f"{name}@@KTRXER_1.0" for name in declared()}


def uncommented(path: Path) -> str:
    """The text without comments, each line at its number."""
    return COMMENT.sub(lambda found: "\n" * found.group().count("\n"), path.read_text())


def findings(pattern: str, paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(uncommented(path).splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_no_option_of_the_command_in_the_library() -> None:
    """A message of the library names things, since it does not know the command line."""
    assert findings(r'"[^"]*--[a-z]', LIBRARY) == []


def test_the_library_does_not_read_the_environment() -> None:
    assert findings(r"getenv|\benviron\b", LIBRARY) == []
