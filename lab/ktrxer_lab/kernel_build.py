#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How a kernel is made from the unpacked source of Debian: edits of the source, options, and the commands of make.

The lab uses these functions. A package with a kernel has this file beside build.json, and it works alone:

    python3 build.py TREE       edits the source in TREE (linux-source-VERSION, unpacked) and builds the kernel there
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# The make target of each architecture, and the file that boots.
TARGETS = {"x86": ((), "arch/x86/boot/bzImage"), "um": (("linux",), "linux")}
# No name of this host and no date in the kernel.
FIXED = ("KBUILD_BUILD_USER=ktrxer", "KBUILD_BUILD_HOST=lab", "KBUILD_BUILD_TIMESTAMP=2026-01-01")


def edit(tree: Path, edits: dict[str, Any]) -> None:
    """Add files and replace text. ValueError: the source has another text there."""
    for name, text in edits["add"].items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    for one in edits["replace"]:
        path = tree / one["file"]
        text = path.read_text() if path.is_file() else ""
        if one["old"] not in text:
            raise ValueError(f"{one['file']} of {tree.name} has no {one['old']!r}: the source has changed")
        path.write_text(text.replace(one["old"], one["new"]))


def options(spec: dict[str, Any], text: str) -> str:
    """The options of a kernel: those of its file, without those that its source does not have, and its own ones."""
    kept = [line for line in text.splitlines() if line.partition("=")[0] not in spec.get("without", [])]
    return "\n".join([*kept, *spec.get("also", [])]) + "\n"


def configure(tree: Path, wanted: str, make: list[str]) -> list[str]:
    """Write the wanted options; the command that makes .config from them."""
    path = tree / "wanted.config"
    path.write_text(wanted)
    return [*make, f"KCONFIG_ALLCONFIG={path.resolve()}", "allnoconfig"]


def compile_command(make: list[str], arch: str) -> list[str]:
    return [*make, *FIXED, f"-j{len(os.sched_getaffinity(0))}", *TARGETS[arch][0]]


def make_of(tree: Path, arch: str, prefix: str) -> list[str]:
    return ["make", "-C", str(tree), f"ARCH={arch}", f"CROSS_COMPILE={prefix}", f"CC={prefix}gcc"]


def main() -> int:
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "Kconfig").is_file():
        print(__doc__, file=sys.stderr)
        return 2
    tree = Path(sys.argv[1])
    plan = json.loads(Path(__file__).with_name("build.json").read_text())
    try:
        edit(tree, plan["edits"])
    except ValueError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    make = make_of(tree, plan["arch"], "")
    for command in (configure(tree, plan["options"], make), compile_command(make, plan["arch"])):
        if status := subprocess.run(command, check=False).returncode:
            return status
    print(tree / TARGETS[plan["arch"]][1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
