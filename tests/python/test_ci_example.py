# SPDX-License-Identifier: MIT OR Apache-2.0
"""examples/ci and docs/howto/ci.md show the same network and the same commands; tests/virtual/test_ci_example.py runs them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from ktrxer_lab import command, places, source

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "ci"
PAGE = (ROOT / "docs" / "howto" / "ci.md").read_text()
WORKFLOW = (FOLDER / "workflow.yml").read_text()


def words(text: str) -> list[str]:
    return shlex.split(text.replace("\\\n", " "))


def block(text: str, kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)
    assert found
    return found[1]


def test_the_page_shows_the_files() -> None:
    assert block(PAGE, "toml") in (FOLDER / "net.toml").read_text()
    step = re.search(r"- name: test\n +run: \|\n((?: {10}.*\n)+)", WORKFLOW)
    assert step and words(block(PAGE, "sh")) == words(step[1])
    short = words(block((FOLDER / "README.md").read_text(), "sh"))
    assert set(short) <= set(words(step[1])) and short[-2:] == ["make", "test"]


def test_the_workflow_has_what_the_kernel_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = re.search(r"apt-get install -y (.*)", WORKFLOW)
    assert installed and {package for _, package in source.PROGRAMS} | {"gcc"} <= set(installed[1].split())
    for name in ("KTRXER_LAB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/runner")
    assert f"path: ~/{places.cache().relative_to('/home/runner')}\n" in WORKFLOW


def test_the_commands_are_understood() -> None:
    parser = command.parser()
    for line in ("ktrxer lab setup --device uml", block(PAGE, "sh")):
        known = words(line)[2:]
        options, rest = parser.parse_known_args(known[: known.index("--")] if "--" in known else known)
        assert rest == [] and (line in WORKFLOW or options.time == "virtual")
