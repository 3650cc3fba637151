# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's full kernel for a machine that a test boots itself: that of the lab's devices lacks most drivers."""

from __future__ import annotations

from pathlib import Path

from ktrxer.lab import cache, cpio, image, places
from ktrxer.lab.packages import Archive
from ktrxer.lab.recipe import Recipe


def with_initramfs(folder: Path, name: str, modules: list[str], job: cpio.Tree) -> tuple[Path, Path]:
    """The kernel with these modules, and an initramfs of the job and of the lab's layers. `name` is that of the folder in the cache."""
    archive, recipe = Archive("bookworm", "amd64"), Recipe.load()
    with cache.locked(f"apt-{archive.suite}-{archive.arch}"):
        package = archive.latest(r"linux-image-6\.1\.\d[^-]*(-\d+)?-amd64")
        made = places.cache() / "kernels" / f"{name}-{cache.digest(name, package.sha256, modules)}"
        if not (made / "version").is_file():
            with cache.fresh_folder(made) as new:
                image._unpack_kernel(archive.fetch([package]), modules, new)
    initrd = folder / "initrd"
    with initrd.open("wb") as out:
        for layer in ("base", "net", "python"):
            out.write(image.layer(recipe, "amd64", layer, print).read_bytes())
        out.write((made / "modules.cpio").read_bytes())
        job.write(out)
    return made / "vmlinuz", initrd
