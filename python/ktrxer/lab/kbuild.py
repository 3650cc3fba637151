# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernel modules for the devices: built here, against Debian's headers of the very kernel that boots there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ktrxer.lab import device, image, places
from ktrxer.lab.errors import BuildFailure, LabError, Unavailable
from ktrxer.lab.packages import Archive, host_architecture

DERIVED = ("*.ko", "*.o", "*.mod", "*.mod.c", "*.cmd", ".*.cmd", "modules.order", "Module.symvers", ".tmp_versions")


@dataclass(frozen=True)
class Tools:
    """What makes code for one architecture."""

    arch: str  # as the kernel calls it
    prefix: str
    package: str

    @staticmethod
    def of(arch: str) -> Tools:
        path = places.data() / "images.toml"
        table = image.Recipe.load().get("kbuild", arch)
        return Tools(*(device.field(table, name, str, path) for name in ("arch", "prefix", "package")))

    def check(self) -> None:
        for program, package in (("make", "make"), (f"{self.prefix}gcc", self.package)):
            if shutil.which(program) is None:
                raise Unavailable(f"{program} is not installed; install it with: apt-get install --no-install-recommends {package}")


def headers(chosen: device.Device, kernel: str, say: image.Say) -> Path:
    """The folder that modules for this device's kernel are built against, from the cache or unpacked now."""
    recipe = image.Recipe.load()
    version = recipe.kernel(chosen.arch, kernel, say).version
    suite = recipe.get("kernels", kernel, "suite")
    theirs, ours = Archive(suite, chosen.arch), Archive(suite, host_architecture())
    with image.locked(f"apt-{suite}-{theirs.arch}"):
        (flavour,) = theirs.packages([f"linux-headers-{version}"])
        foreign = [flavour, *theirs.packages([name for name in flavour.needs if name.endswith("-common")])]
    with image.locked(f"apt-{suite}-{ours.arch}"):  # programs that run here
        native = ours.packages([name for name in flavour.needs if name.startswith("linux-kbuild-")])
    if len(foreign) != 2 or len(native) != 1:
        raise LabError(f"{flavour.name} needs {', '.join(flavour.needs)}: one -common and one linux-kbuild were expected")
    # The folder's own path is written into it.
    key = image.digest("headers", [package.sha256 for package in (*foreign, *native)], str(places.cache()), Path(__file__).read_text())
    folder = places.cache() / "headers" / f"{chosen.arch}-{kernel}-{key}"
    with image.locked(folder.name):
        if not folder.is_dir():
            say(f"preparing {flavour.name} for {chosen.arch} ...")
            with image.fresh_folder(folder) as new:
                for archive, wanted in ((theirs, foreign), (ours, native)):
                    with image.locked(f"apt-{suite}-{archive.arch}"):  # to the end: other builders fetch and delete the same file
                        for deb in archive.fetch(wanted):
                            subprocess.run(["dpkg-deb", "-x", str(deb), str(new)], check=True)
                            deb.unlink()
                makefile = new / "usr" / "src" / flavour.name / "Makefile"
                makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/usr/src/"))
    image.touch(folder)
    return folder / "usr" / "src" / flavour.name


def build(chosen: device.Device, kernel: str, source: Path, out: Path, say: image.Say) -> list[Path]:
    """Build the modules of a folder with a Kbuild file; they go to `out`, without debug sections. The folder stays as it is."""
    source = source.resolve()
    if not any((source / name).is_file() for name in ("Kbuild", "Makefile")):
        raise LabError(f"{source}: no Kbuild and no Makefile there")
    tools = Tools.of(chosen.arch)
    tools.check()
    with image.no_space(places.cache()):
        against = headers(chosen, kernel, say)
    with image.no_space(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ktrxer-lab-") as scratch:
        copy = _shadow(source, Path(scratch))
        command = ["make", "-C", str(against), f"M={copy}", f"ARCH={tools.arch}", f"CROSS_COMPILE={tools.prefix}", f"CC={tools.prefix}gcc"]
        command += ["CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]  # BTF of modules needs the whole vmlinux
        done = subprocess.run(command, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        made = sorted(copy.rglob("*.ko"))
        if done.returncode != 0 or not made:
            log = done.stdout.replace(str(copy), str(source))
            raise BuildFailure(_reason(log, f"{source.name} for the {chosen.name} ({kernel})"), log)
        out.mkdir(parents=True, exist_ok=True)
        for path in made:
            subprocess.run([f"{tools.prefix}strip", "--strip-debug", str(path)], check=True)
            shutil.copy(path, out / path.name)
    return [out / path.name for path in made]


def _shadow(source: Path, scratch: Path) -> Path:
    """The folder again, in links, so that builds for several kernels do not meet; its neighbours too, for what is included from `../`."""
    for neighbour in source.parent.iterdir():
        if neighbour.name != source.name:
            (scratch / neighbour.name).symlink_to(neighbour)
    copy = scratch / source.name
    shutil.copytree(source, copy, copy_function=os.symlink, ignore=shutil.ignore_patterns(*DERIVED))
    return copy


def _environment() -> dict[str, str]:
    """Without what a make above us, of other things, has left for its children."""
    left_out = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES")
    return {name: value for name, value in os.environ.items() if name not in left_out} | {"LC_ALL": "C.UTF-8"}


def _reason(log: str, what: str) -> str:
    lines = [line.strip() for line in log.splitlines()]
    told = next((line for line in lines if "error:" in line or "ERROR:" in line), None)
    return f"{what} does not build: {told or (lines[-1] if lines else 'make said nothing')}"
