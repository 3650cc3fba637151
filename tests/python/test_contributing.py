# SPDX-License-Identifier: MIT OR Apache-2.0
"""CONTRIBUTING.md: its commands name tests that exist, and run one unit test."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KTRXER_BUILD") or ROOT / "build")
PAGES = ["CONTRIBUTING.md", "docs/howto/contributing.md"]


def one_test_commands(page: str) -> list[str]:
    block = re.search(r"\bOne test\b.*?```sh\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert block
    return [line.partition(" # ")[0].strip() for line in block[1].splitlines()]


def test_both_pages_have_the_same_commands() -> None:
    assert one_test_commands(PAGES[0]) == one_test_commands(PAGES[1])
    assert len(one_test_commands(PAGES[0])) == 4


def test_the_named_tests_exist() -> None:
    unit, *others = one_test_commands(PAGES[0])
    found = re.search(r"build/tests/unit/(\w+) (\w+)", unit)
    assert found and found[2] in (ROOT / f"tests/unit/{found[1]}.c").read_text()
    for line in others:
        file = re.search(r"tests/(python|system|virtual)/\w+\.py", line)
        assert file
        for name in re.findall(r"\btest_\w+$", line):
            assert f"def {name}(" in (ROOT / file[0]).read_text()


@pytest.mark.parametrize("name, status", [("reasons_to_stay_silent", 0), ("nonsense", 2)])
def test_a_unit_test_runs_alone(name: str, status: int) -> None:
    program = BUILD / "tests/unit/test_reflector"
    if not program.exists():
        pytest.skip(f"no unit tests in {BUILD}: `make check` builds them")
    done = subprocess.run([program, name], capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert ("1 test(s) run" in done.stderr + done.stdout) if status == 0 else ("it has no test nonsense" in done.stderr)
