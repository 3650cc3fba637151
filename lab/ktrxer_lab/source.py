# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels that no package contains, e.g. with KASAN and lockdep, built once from Debian's source package and a list of options."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from ktrxer_lab import cache, cpio, packages, places
from ktrxer_lab.errors import BuildFailure, LabError, Unavailable
from ktrxer_lab.packages import Archive
from ktrxer_lab.recipe import Recipe
from ktrxer_lab.toolchain import Tools, environment

# Programs that the build needs on the host beside make and the compiler: program, Debian package.
PROGRAMS = (("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("xz", "xz-utils"))
LIBELF = Path("/usr/include/libelf.h")
LIBELF_ARCHES = ("x86",)  # architectures whose build runs objtool
# The make target of each architecture, and the file that boots.
TARGETS = {"x86": ((), "arch/x86/boot/bzImage"), "um": (("linux",), "linux")}
SUM = "vmlinuz.sha256"
BUILD = "1"  # version of this code: increase it if the same inputs should give another kernel
BAR = 40  # characters
SILENCE_S = 600.0  # make prints a line for each file; without output for this time it hangs, also on a slow machine
# Files of the built tree that are needed to build modules; of arch/ only the folder of the architecture.
KEPT = ("Makefile", ".config", "Module.symvers", "System.map", "include", "scripts", "tools/objtool/objtool")
KEPT_OF_ARCH = ("Makefile*", "include")


def prepared(recipe: Recipe, arch: str, name: str, say: cache.Say) -> Path:
    """The folder of the kernel: `vmlinuz`, `modules.cpio`, `version`, and `build`, the tree for building modules."""
    spec = recipe.get("kernels", name)
    options = places.data() / "kernels" / str(spec["config"])
    archive = Archive(str(spec["suite"]), arch)
    with cache.locked(f"apt-{archive.suite}-{arch}"):
        (package,) = archive.packages([str(spec["source"])])
    tools = Tools.of(str(spec.get("arch", arch)))
    compiler = _compiler(f"{tools.prefix}gcc")
    # Not cache.digest(): the code of other images does not affect this build, which takes minutes.
    edits = _edits(spec, options.parent)
    inputs = (package.sha256, options.read_text(), compiler, json.dumps([spec, edits], sort_keys=True), BUILD)
    key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]
    folder = places.cache() / "kernels" / f"{arch}-{name}-{key}"
    with cache.locked(folder.name):
        if (folder / "version").is_file() and not _whole(folder):
            say(f"{folder} is damaged (its kernel has another checksum than when it was built): it is built again")
            shutil.rmtree(folder)
        if not (folder / "version").is_file():
            _sweep(folder)
            tools.check()
            _check_programs(tools.arch)
            with cache.locked(f"apt-{archive.suite}-{arch}"):
                try:
                    (deb,) = archive.fetch([package])
                except LabError as error:  # e.g. the archive has a newer version in place of this one
                    raise LabError(f"{error}; to read the archive's index again: ktrxer lab setup --update") from None
            say(f"building {name} from {package.name} {package.version} for {tools.arch}: some minutes, once ...")
            with cache.fresh_folder(folder) as new:
                tree = _unpack(deb, new / "source")
                _edit(tree, edits)
                progress = _Progress(name, int(spec.get("files", 0)), say, sys.stderr if sys.stderr.isatty() else None)
                try:
                    _build(tree, _options(spec, options.read_text()), tools, progress)
                finally:
                    progress.end()
                _keep(tree, new, tools.arch)
                shutil.rmtree(new / "source")
            deb.unlink()
    cache.touch(folder)
    return folder


def _sweep(folder: Path) -> None:
    """Remove what killed builds have left, of this kernel and of others. A held lock shows a build that runs."""
    for left in folder.parent.glob(".*.*"):
        name = left.name[1:].rpartition(".")[0]
        with contextlib.suppress(BlockingIOError), contextlib.nullcontext() if name == folder.name else cache.locked(name, wait=False):
            shutil.rmtree(left, ignore_errors=True)


def _whole(folder: Path) -> bool:
    """Whether the kernel has the checksum of the build."""
    try:
        return (folder / SUM).read_text() == _sum(folder / "vmlinuz")
    except OSError:
        return False


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class _Progress:
    """Progress of a build: a bar on a terminal, a line for every tenth part in a log. The number of files comes from earlier builds."""

    def __init__(self, name: str, files: int, say: cache.Say, terminal: TextIO | None = None) -> None:
        self.name, self.files, self.say, self.terminal = name, files, say, terminal
        self.compiled, self.shown = 0, 0

    def line(self, text: str) -> None:
        if not self.files or not re.match(r"\s+(CC|AS)\s", text):
            return
        self.compiled += 1
        percent = min(99, self.compiled * 100 // self.files)
        if self.terminal is not None:
            if percent > self.shown:
                self.shown = percent
                self._draw(percent)
        elif percent // 10 > self.shown:
            self.shown = percent // 10
            self.say(f"building {self.name}: {self.shown * 10} % ({self.compiled} of about {self.files} files)")

    def end(self) -> None:
        """Removes the bar."""
        if self.terminal is not None and self.shown:
            self.terminal.write("\r\x1b[K")
            self.terminal.flush()

    def _draw(self, percent: int) -> None:
        assert self.terminal is not None
        full = percent * BAR // 100
        self.terminal.write(f"\r\x1b[Kbuilding {self.name} [{'#' * full}{'.' * (BAR - full)}] {percent} %")
        self.terminal.flush()


def _edits(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The changes of a kernel's source: files and their text to `add`, then text to `replace`."""
    shared = tomllib.loads((folder / spec["edits"]).read_text()) if "edits" in spec else {}
    added = {path: (folder / name).read_text() for path, name in shared.get("add", {}).items()}
    return {"add": added, "replace": [*spec.get("replace", []), *shared.get("replace", [])]}


def _edit(tree: Path, edits: dict[str, Any]) -> None:
    for name, text in edits["add"].items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    for one in edits["replace"]:
        path = tree / one["file"]
        text = path.read_text() if path.is_file() else ""
        if one["old"] not in text:
            where = f"{one['file']} of {tree.name}"
            raise LabError(f"{where} has no {one['old']!r}: the source has changed; update `replace` in lab/ktrxer_lab/data/images.toml")
        path.write_text(text.replace(one["old"], one["new"]))


def _compiler(program: str) -> str:
    try:
        return subprocess.run([program, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise Unavailable(f"{program} is not installed; install it with: apt-get install --no-install-recommends gcc") from None


def _check_programs(arch: str) -> None:
    missing = [package for program, package in PROGRAMS if shutil.which(program) is None]
    missing += [] if arch not in LIBELF_ARCHES or LIBELF.is_file() else ["libelf-dev"]
    if missing:
        wanted = " ".join(missing)
        raise Unavailable(f"a kernel cannot be built without {wanted}; install it with: apt-get install --no-install-recommends {wanted}")


def _unpack(deb: Path, into: Path) -> Path:
    into.mkdir()
    for path, member, data in packages.files(deb):
        if member.isreg() and re.fullmatch(r"usr/src/linux-source-[\d.]+\.tar\.xz", path):
            packed = into / "source.tar.xz"
            packed.write_bytes(data)
            subprocess.run(["tar", "-xf", str(packed), "-C", str(into)], check=True)
            packed.unlink()
            (tree,) = into.iterdir()
            return tree
    raise LabError(f"{deb}: no kernel source in this package")


def _options(spec: dict[str, Any], text: str) -> str:
    """The options of a kernel: those of its file, without those that its source does not have, and its own ones."""
    kept = [line for line in text.splitlines() if line.partition("=")[0] not in spec.get("without", [])]
    return "\n".join([*kept, *spec.get("also", [])]) + "\n"


def _build(tree: Path, options: str, tools: Tools, progress: _Progress) -> None:
    make = ["make", "-C", str(tree), f"ARCH={tools.arch}", f"CROSS_COMPILE={tools.prefix}", f"CC={tools.prefix}gcc"]
    # No name of this host and no date in the kernel.
    fixed = ["KBUILD_BUILD_USER=ktrxer", "KBUILD_BUILD_HOST=lab", "KBUILD_BUILD_TIMESTAMP=2026-01-01"]
    wanted = tree / "wanted.config"
    wanted.write_text(options)
    _run([*make, f"KCONFIG_ALLCONFIG={wanted.resolve()}", "allnoconfig"])
    _check_options(options, tree / ".config")
    _run([*make, *fixed, f"-j{len(os.sched_getaffinity(0))}", *TARGETS[tools.arch][0]], progress)


def _check_options(options: str, config: Path) -> None:
    made = set(config.read_text().splitlines())
    lost = [line for line in options.splitlines() if line.startswith("CONFIG_") and line not in made]
    if lost:
        message = "an option has another name there, or needs one that is missing"
        raise LabError(f"the options of {config.parent.name}: this kernel does not accept {', '.join(lost)}: {message}")


def _run(command: list[str], progress: _Progress | None = None) -> None:
    lines: list[str] = []
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", *command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as make:
        assert make.stdout is not None
        try:
            for line in _lines(make.stdout.fileno()):
                lines.append(line)
                if progress is not None:
                    progress.line(line)
        except BaseException:
            make.terminate()  # make then stops its compilers
            raise
    if make.returncode:
        result = next((line.strip() for line in lines if "error:" in line or "Error " in line), "make failed")
        raise BuildFailure(f"the kernel does not build: {result}", "\n".join(lines[-60:]))


def _lines(pipe: int) -> Iterator[str]:
    """The output of make, line by line."""
    held = b""
    while select.select([pipe], [], [], SILENCE_S)[0]:
        data = os.read(pipe, 1 << 16)
        *whole, held = (held + data).split(b"\n") if data or not held else (held, b"")
        yield from (line.decode(errors="replace").rstrip() for line in whole)
        if not data:
            return
    raise BuildFailure(f"the kernel does not build: make has printed nothing for {SILENCE_S:g} s", held.decode(errors="replace"))


def _keep(tree: Path, folder: Path, arch: str) -> None:
    kernel = folder / "vmlinuz"
    shutil.copy(tree / TARGETS[arch][1], kernel)
    if arch == "um":
        subprocess.run(["strip", str(kernel)], check=True)
    else:
        _keep_for_modules(tree, folder, arch)
    (folder / SUM).write_text(_sum(kernel))
    (folder / "version").write_text(_version(tree))


def _version(tree: Path) -> str:
    return (tree / "include/config/kernel.release").read_text().strip()


def _keep_for_modules(tree: Path, folder: Path, arch: str) -> None:
    """Copy the files that an initramfs and a build of modules need beside the kernel."""
    version = _version(tree)
    modules = cpio.Tree()
    for name in ("modules.dep", "modules.alias"):  # empty: the kernel has no modules, only built-in code
        modules.file(f"usr/lib/modules/{version}/{name}", b"")
    modules.file(f"usr/lib/modules/{version}/modules.builtin", (tree / "modules.builtin").read_bytes())
    with (folder / "modules.cpio").open("wb") as out:
        modules.write(out)
    kept = [tree / name for name in KEPT]
    kept += [path for pattern in KEPT_OF_ARCH for path in sorted((tree / "arch" / arch).glob(pattern))]
    for path in kept:
        target = folder / "build" / path.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, symlinks=True)
        elif path.exists():
            shutil.copy(path, target)
