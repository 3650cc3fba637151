# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds of their own for the sanitizers and for the fuzz targets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from runner.suite import IDLE, LOGS, ROOT, Suite, run_logged, stop_idle

SANITIZERS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
}


@dataclass(frozen=True)
class Tree:
    """A build by clang in a folder of its own, for one suite."""

    name: str
    options: tuple[str, ...]
    targets: str = ""  # nothing: all

    def command(self) -> list[str]:
        return ["scripts/build", self.name, "tests", *self.options]

    def environment(self) -> dict[str, str]:
        return {"CC": "clang", "TARGETS": self.targets}


TREES = {
    "sanitized": Tree("build-sanitized", ("-Db_sanitize=address,undefined", "-Db_lundef=false")),
    "threads": Tree("build-tsan", ("-Db_sanitize=thread", "-Db_lundef=false", "-Dman=false"), "threads"),
}


def built(suite: Suite, tree: Tree) -> Path | None:
    """None if the build failed. Waits for another build of this source tree, but for one ahead, which it stops: ninja goes on with what is left."""
    stop_idle()
    return ROOT / tree.name if suite.step(f"build {tree.name}", tree.command(), 720, tree.environment()) else None


def build_ahead(names: list[str]) -> None:
    """The trees of later suites, with the processor time that others leave. A failure is reported by the suite, which builds again."""
    for name in names:
        run_logged(LOGS / "trees.log", [*IDLE, *TREES[name].command()], 1200, TREES[name].environment())
