# SPDX-License-Identifier: MIT OR Apache-2.0
"""The images of all devices: their names and kernels, and their preparation before the first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ktrxer_lab import cache, device, image, kbuild, places, uml
from ktrxer_lab.errors import LabError
from ktrxer_lab.recipe import Recipe

UML = "uml"  # the device without an emulator: a guest of user-mode Linux with this host's files


def kernels(name: str) -> list[str]:
    """The kernels of a device. LabError if there is no such device."""
    if name == UML:
        return uml.kernels()
    if name not in device.names():
        raise LabError(f"no device {name!r}; choose one of: {', '.join([*device.names(), UML])}")
    one = device.load(name)
    return [*one.kernels, *one.more_kernels]


def wanted(names: Sequence[str], kernel: str | None) -> dict[str, list[str]]:
    """The kernels to prepare for each device. Without `names`: for all devices that have the kernel."""
    known = {name: kernels(name) for name in names or [*device.names(), UML]}
    if kernel is None:
        return {name: [uml.KERNEL] if name == UML else list(device.load(name).kernels) for name in known}
    lacking = [name for name in known if kernel not in known[name]]
    if names and lacking:
        raise LabError(f"--kernel {kernel}: the device {lacking[0]} has {', '.join(known[lacking[0]])}")
    if len(lacking) == len(known):
        there = sorted({one for each in known.values() for one in each})
        raise LabError(f"--kernel {kernel}: no device has it; choose one of: {', '.join(there)}")
    return {name: [kernel] for name in known if name not in lacking}


def prepare(chosen: Mapping[str, Sequence[str]], update: bool, headers: bool, show: cache.Show) -> None:
    """Fetch and build the images of these devices with these kernels."""
    devices = [device.load(name) for name in chosen if name != UML]
    with cache.no_space(places.cache()):
        if update:
            recipe = Recipe.load()
            archives = {item for one in devices for item in recipe.archives(one)} | {uml.archive(kernel) for kernel in chosen.get(UML, ())}
            for archive in sorted(archives, key=str):
                show(f"looking for packages of Debian {archive.suite} for {archive.arch} ...")
                archive.update()
        for one in devices:
            for kernel in chosen[one.name]:
                image.prepare(one, kernel, ("python",), show)
                if headers:
                    kbuild.headers(one, kernel, show)
        for kernel in chosen.get(UML, ()):
            uml.prepare(kernel, show)
