# SPDX-License-Identifier: MIT OR Apache-2.0
"""A kernel's modules: selection for an image, and the index files for modprobe."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import PurePosixPath

from ktrxer_lab import elf
from ktrxer_lab.errors import LabError
from ktrxer_lab.packages import matches


@dataclass(frozen=True)
class Module:
    path: str  # below lib/modules/VERSION
    data: bytes

    @property
    def name(self) -> str:
        return module_name(PurePosixPath(self.path).name)


def module_name(file: str) -> str:
    return file.split(".ko")[0].replace("-", "_")


def unpacked(path: str, data: bytes) -> Module:
    """A module without compression, as busybox's modprobe needs it."""
    if path.endswith(".xz"):
        return Module(path.removesuffix(".xz"), lzma.decompress(data))
    return Module(path, data)


def depends(module: Module) -> list[str]:
    values = [value for key, value in elf.module_info(module.data) if key == "depends"]
    return [module_name(name) for value in values for name in value.split(",") if name]


def soft_depends(module: Module) -> list[str]:
    """The modules in a module's `softdep`, for example a checksum that a file system or protocol selects at run time."""
    words = [value for key, value in elf.module_info(module.data) if key == "softdep"]
    return [module_name(word) for value in words for word in value.replace("pre:", "").replace("post:", "").split()]


def select(compressed: dict[str, bytes], include: list[str]) -> list[Module]:
    """The modules that match the patterns, and their dependencies, which come first."""
    by_name = {module_name(PurePosixPath(path).name): path for path in compressed}
    chosen: dict[str, Module] = {}

    def take(name: str, wanted_by: str | None) -> None:
        if name in chosen:
            return
        if name not in by_name:
            if wanted_by is not None:
                raise LabError(f"kernel module {name}, which {wanted_by} needs, is not in the kernel package")
            return
        module = unpacked(by_name[name], compressed[by_name[name]])
        for other in depends(module):
            take(other, name)
        for other in soft_depends(module):
            if other not in chosen and other != name:
                take(other, None)
        chosen[name] = module

    for path in sorted(compressed):
        if matches(path.removeprefix("kernel/"), include):
            take(module_name(PurePosixPath(path).name), None)
    return list(chosen.values())


def index_files(chosen: list[Module]) -> dict[str, str]:
    """modules.dep and modules.alias, in their text form. modprobe loads a line from its end, so a module stands before its dependencies."""
    by_name = {module.name: module for module in chosen}
    dep_lines, alias_lines = [], []
    for module in chosen:
        needed: dict[str, None] = {}  # dependencies first

        def walk(name: str, needed: dict[str, None] = needed) -> None:
            for other in depends(by_name[name]):
                path = by_name[other].path
                if path not in needed:
                    walk(other)
                    needed[path] = None

        walk(module.name)
        dep_lines.append(f"{module.path}: {' '.join(reversed(needed))}".rstrip())
        alias_lines += [f"alias {value} {module.name}" for key, value in elf.module_info(module.data) if key == "alias"]
    return {"modules.dep": "\n".join(dep_lines) + "\n", "modules.alias": "\n".join(alias_lines) + "\n"}
