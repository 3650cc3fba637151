# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds kernel modules for the devices, against Debian's headers of the same kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ktrxer_lab import cache, device, image, places, scratch, source, toolchain
from ktrxer_lab.errors import BuildFailure, LabError
from ktrxer_lab.packages import Archive, host_architecture
from ktrxer_lab.recipe import Recipe

DERIVED = ("*.ko", "*.o", "*.mod", "*.mod.c", "*.cmd", ".*.cmd", "modules.order", "Module.symvers", ".tmp_versions")


def headers(chosen: device.Device, kernel: str, show: cache.Show) -> Path:
    """The folder with the headers of this device's kernel, from the cache or unpacked now."""
    recipe = Recipe.load()
    if "source" in recipe.get("kernels", kernel):
        return source.prepared(recipe, chosen.arch, kernel, show) / "build"
    version = image.kernel_of(recipe, chosen.arch, kernel, show).version
    tools = later_tools(recipe, kernel, show)
    suite = recipe.get("kernels", kernel, "suite")
    theirs, ours = Archive(suite, chosen.arch), Archive(suite, host_architecture())
    with cache.locked(f"apt-{suite}-{theirs.arch}"):
        (flavour,) = theirs.packages([f"linux-headers-{version}"])
        foreign = [flavour, *theirs.packages([name for name in flavour.needs if name.endswith("-common")])]
    with cache.locked(f"apt-{suite}-{ours.arch}"):  # for programs that run on this host
        native = ours.packages([name for name in flavour.needs if name.startswith("linux-kbuild-")])
    if len(foreign) != 2 or len(native) != 1:
        raise LabError(f"{flavour.name} needs {', '.join(flavour.needs)}: one -common and one linux-kbuild were expected")
    # The unpacked files contain the path of the folder.
    code = [cache.syntax(Path(path)) for path in (__file__, str(toolchain.__file__))]
    key = cache.digest("headers", [package.sha256 for package in (*foreign, *native)], str(places.cache()), str(tools), code)
    folder = places.cache() / "headers" / f"{chosen.arch}-{kernel}-{key}"
    with cache.locked(folder.name):
        if not folder.is_dir():
            show(f"preparing {flavour.name} for {chosen.arch} ...")
            with cache.fresh_folder(folder) as new:
                for archive, wanted in ((theirs, foreign), (ours, native)):
                    with cache.locked(f"apt-{suite}-{archive.arch}"):  # keep the lock: other builders fetch and delete the same file
                        for deb in archive.fetch(wanted):
                            subprocess.run(["dpkg-deb", "-x", str(deb), str(new)], check=True)
                            deb.unlink()
                if tools is not None:
                    toolchain.wrap(new, tools, folder, tools)
                makefile = new / "usr" / "src" / flavour.name / "Makefile"
                makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/usr/src/"))
    cache.touch(folder)
    return folder / "usr" / "src" / flavour.name


def later_tools(recipe: Recipe, kernel: str, show: cache.Show) -> Path | None:
    """The folder of the compiler for a kernel of a later Debian; None if the host's own compiler suffices."""
    name = recipe.get("kernels", kernel).get("tools")
    return None if name is None else toolchain.folder(recipe, str(name), show)


def build(chosen: device.Device, kernel: str, folder: Path, out: Path, show: cache.Show) -> list[Path]:
    """Build the modules of a folder with a Kbuild file. They go to `out`, without debug sections. The folder is not changed."""
    folder = folder.resolve()
    if not any((folder / name).is_file() for name in ("Kbuild", "Makefile")):
        raise LabError(f"{folder}: this folder has no Kbuild file and no Makefile")
    tools = toolchain.Tools.of(chosen.arch)
    tools.check()
    with cache.no_space(places.cache()):
        against = headers(chosen, kernel, show)
        later = later_tools(Recipe.load(), kernel, show)
    with cache.no_space(Path(tempfile.gettempdir())), scratch.folder() as place:
        copy = _shadow(folder, place)
        command = ["make", "-C", str(against), f"M={copy}", f"ARCH={tools.arch}", f"CROSS_COMPILE={tools.prefix}", f"CC={tools.prefix}gcc"]
        command += ["CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]  # BTF of modules would need vmlinux
        environment = toolchain.environment(later)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        made = sorted(copy.rglob("*.ko"))
        if done.returncode != 0 or not made:
            log = done.stdout.replace(str(copy), str(folder))
            raise BuildFailure(_reason(log, f"{folder.name} for the {chosen.name} ({kernel})"), log)
        out.mkdir(parents=True, exist_ok=True)
        for path in made:
            subprocess.run([f"{tools.prefix}strip", "--strip-debug", str(path)], env=environment, check=True)
            shutil.copy(path, out / path.name)
    return [out / path.name for path in made]


def _shadow(folder: Path, place: Path) -> Path:
    """A copy of the folder made of links, so that builds for several kernels do not collide. Its neighbours are linked too, for includes
    from `../`."""
    for neighbour in folder.parent.iterdir():
        if neighbour.name != folder.name:
            (place / neighbour.name).symlink_to(neighbour)
    copy = place / folder.name
    shutil.copytree(folder, copy, copy_function=os.symlink, ignore=shutil.ignore_patterns(*DERIVED))
    return copy


def _reason(log: str, what: str) -> str:
    lines = [line.strip() for line in log.splitlines()]
    result = next((line for line in lines if "error:" in line or "ERROR:" in line), None)
    return f"{what} does not build: {result or (lines[-1] if lines else 'make printed nothing')}"
