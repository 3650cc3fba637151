# SPDX-License-Identifier: MIT OR Apache-2.0
"""Devices and kernels, read from the lab's TOML files and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ktrxer_lab import places
from ktrxer_lab.errors import LabError

T = TypeVar("T")


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise LabError(f"{path}: {error}") from None


def field(table: dict[str, Any], name: str, kind: type[T], path: Path) -> T:
    value = table.get(name)
    if not isinstance(value, kind):
        raise LabError(f"{path}: `{name}` must be a {kind.__name__}, found {value!r}")
    return value


@dataclass(frozen=True)
class Emulator:
    """How QEMU emulates the device."""

    program: str
    package: str
    machine: str
    cpu: str
    bus: str
    console: str
    memory_mib: int
    shift: int
    cpus: int
    append: str
    append_virtual: str  # added in virtual time


@dataclass(frozen=True)
class Device:
    name: str
    title: str
    arch: str
    build: str
    kernels: tuple[str, ...]
    more_kernels: tuple[str, ...]  # prepared only on request
    layers: tuple[str, ...]
    emulator: Emulator

    def kernel(self, wanted: str | None) -> str:
        """The kernel to boot: the wanted one, or the device's default."""
        if wanted is None:
            return self.kernels[0]
        known = (*self.kernels, *self.more_kernels)
        if wanted not in known:
            raise LabError(f"no kernel {wanted!r} for the {self.name}; choose one of: {', '.join(sorted(known))}")
        return wanted


def names() -> list[str]:
    return sorted(path.stem for path in (places.data() / "devices").glob("*.toml"))


def load(name: str) -> Device:
    if name not in names():
        raise LabError(f"no device {name!r}; choose one of: {', '.join(names())}")
    path = places.data() / "devices" / f"{name}.toml"
    table = read_toml(path)
    qemu = field(table, "qemu", dict, path)
    emulator = Emulator(
        program=field(qemu, "program", str, path),
        package=field(qemu, "package", str, path),
        machine=field(qemu, "machine", str, path),
        cpu=field(qemu, "cpu", str, path),
        bus=field(qemu, "bus", str, path),
        console=field(qemu, "console", str, path),
        memory_mib=field(qemu, "memory_mib", int, path),
        shift=field(qemu, "shift", int, path),
        cpus=field(qemu, "cpus", int, path),
        append=field(qemu, "append", str, path),
        append_virtual=field(qemu, "append_virtual", str, path) if "append_virtual" in qemu else "",
    )
    kernels = tuple(map(str, field(table, "kernels", list, path)))
    if not kernels:
        raise LabError(f"{path}: `kernels` is empty")
    return Device(
        name=name,
        title=field(table, "title", str, path),
        arch=field(table, "arch", str, path),
        build=field(table, "build", str, path),
        kernels=kernels,
        more_kernels=tuple(map(str, field(table, "more_kernels", list, path))) if "more_kernels" in table else (),
        layers=tuple(map(str, field(table, "layers", list, path))),
        emulator=emulator,
    )
