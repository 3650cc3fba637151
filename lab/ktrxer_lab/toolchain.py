# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compilers for devices: the host's own, or those of a later Debian, which run here with that Debian's C library."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ktrxer_lab import cache, device, elf, places
from ktrxer_lab.errors import LabError, Unavailable
from ktrxer_lab.packages import Archive, host_architecture
from ktrxer_lab.recipe import Recipe

BEHIND = ".elf"  # suffix of a program that is started by a script of its name
# The names by which compilers start their helpers, and the kernel's build starts its compiler.
HELPERS = ("as", "ld", "nm", "ar", "objcopy", "strip", "readelf")


@dataclass(frozen=True)
class Tools:
    """The compiler and its tools for one architecture."""

    arch: str  # the kernel's name of the architecture
    prefix: str
    package: str

    @staticmethod
    def of(arch: str) -> Tools:
        path = places.data() / "images.toml"
        table = Recipe.load().get("kbuild", arch)
        return Tools(*(device.field(table, name, str, path) for name in ("arch", "prefix", "package")))

    def check(self) -> None:
        for program, package in (("make", "make"), (f"{self.prefix}gcc", self.package)):
            if shutil.which(program) is None:
                raise Unavailable(f"{program} is not installed; install it with: apt-get install --no-install-recommends {package}")


def environment(later: Path | None = None) -> dict[str, str]:
    """The environment without the variables of an outer make, and with a later Debian's programs first in PATH."""
    left_out = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES")
    kept = {name: value for name, value in os.environ.items() if name not in left_out} | {"LC_ALL": "C.UTF-8"}
    if later is not None:
        kept["PATH"] = f"{later / 'usr/bin'}:{kept.get('PATH', os.defpath)}"
    return kept


def folder(recipe: Recipe, name: str, show: cache.Show) -> Path:
    """The folder of the compiler of [tools.NAME], from the cache or unpacked now; its programs are in usr/bin."""
    spec = recipe.get("tools", name)
    archive = Archive(name, host_architecture())
    with cache.locked(f"apt-{archive.suite}-{archive.arch}"):
        wanted = archive.packages(spec["packages"])
    # The scripts contain the path of the folder.
    key = cache.digest("tools", [package.sha256 for package in wanted], str(places.cache()), cache.syntax(Path(__file__)))
    made = places.cache() / "tools" / f"{archive.arch}-{name}-{key}"
    with cache.locked(made.name):
        if not made.is_dir():
            show(f"preparing {spec['compiler']} of Debian {name} ...")
            with cache.fresh_folder(made) as new:
                with cache.locked(f"apt-{archive.suite}-{archive.arch}"):
                    for deb in archive.fetch(wanted):
                        subprocess.run(["dpkg-deb", "-x", str(deb), str(new)], check=True)
                        deb.unlink()
                wrap(new, new, made, made)
                _name(new / "usr/bin", str(spec["compiler"]))
    cache.touch(made)
    return made


def wrap(tree: Path, tools: Path, tree_later: Path, tools_later: Path) -> None:
    """Replace each program of a tree by a script. The tree is moved to its final place later."""
    loaders = sorted(tools.glob("usr/lib/*/ld-linux*.so.*"))
    if len(loaders) != 1:
        raise LabError(f"{tools}: {len(loaders)} program loaders, one was expected")
    loader = tools_later / loaders[0].relative_to(tools)
    for path in [path for path in sorted(tree.rglob("*")) if _is_program(path)]:
        behind = path.with_name(path.name + BEHIND)
        path.rename(behind)
        target = tree_later / behind.relative_to(tree)
        path.write_text(f'#!/bin/sh\nexec "{loader}" --argv0 "$0" --library-path "{loader.parent}" "{target}" "$@"\n')
        path.chmod(0o755)


def _is_program(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or not path.stat().st_mode & 0o100 or ".so" in path.name:
        return False
    return elf.is_program(path.read_bytes())


def _name(programs: Path, compiler: str) -> None:
    """Create links for the short names and for the names without a version."""
    for path in sorted(programs.glob(f"*-{compiler}")):
        prefix = path.name.removesuffix(compiler)
        (programs / f"{prefix}gcc").symlink_to(path.name)
        for helper in HELPERS:
            if (programs / f"{prefix}{helper}").exists():
                (programs / helper).symlink_to(f"{prefix}{helper}")
