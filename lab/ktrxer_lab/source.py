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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrxer_lab import cache, cpio, kernel_build, packages, places
from ktrxer_lab.errors import BuildFailure, LabError, Unavailable
from ktrxer_lab.packages import Archive, Package
from ktrxer_lab.progress import Progress, remember, span
from ktrxer_lab.recipe import Recipe
from ktrxer_lab.toolchain import Tools, environment

# Programs that the build needs on the host beside make and the compiler: program, Debian package.
PROGRAMS = (("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("xz", "xz-utils"))
LIBELF = Path("/usr/include/libelf.h")
LIBELF_ARCHES = ("x86",)  # architectures whose build runs objtool
SUM = "vmlinuz.sha256"
RECIPE = "recipe"  # of an installed kernel: the sum of its recipe
BUILD = "1"  # version of this code: increase it if the same inputs should give another kernel
SILENCE_S = 600.0  # make prints a line for each file; without output for this time it hangs, also on a slow machine
# Files of the built tree that are needed to build modules; of arch/ only the folder of the architecture.
KEPT = ("Makefile", ".config", "Module.symvers", "System.map", "include", "scripts", "tools/objtool/objtool")
KEPT_OF_ARCH = ("Makefile*", "include")


@dataclass(frozen=True)
class Inputs:
    """The source, configuration and patches of a kernel."""

    arch: str
    name: str
    spec: dict[str, Any]
    options: str
    edits: dict[str, Any]
    package: Package
    compiler: str

    @property
    def folder(self) -> Path:
        # cache.digest() would contain the code of other images, which does not affect this build of minutes.
        inputs = (self.package.sha256, self.options, self.compiler, json.dumps([self.spec, self.edits], sort_keys=True), BUILD)
        key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]
        return places.cache() / "kernels" / f"{self.arch}-{self.name}-{key}"


@dataclass
class _Tree:
    """A source tree between two parts of a build, also of an interrupted one."""

    folder: Path
    path: Path
    seconds: float  # of the parts so far

    def save(self, seconds: float) -> None:
        with cache.fresh_file(self.folder / "ready") as new:
            new.write_text(json.dumps({"tree": str(self.path.relative_to(self.folder)), "seconds": round(seconds, 1)}))

    @staticmethod
    def load(folder: Path) -> _Tree | None:
        try:
            found = json.loads((folder / "ready").read_text())
            return _Tree(folder, folder / str(found["tree"]), float(found["seconds"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None


def recipe_of(recipe: Recipe, name: str) -> tuple[dict[str, Any], str, dict[str, Any], str]:
    """The description of a kernel in images.toml, its options, the edits of its source, and the sum of these. A kernel that was built
    elsewhere is of this version of the lab if it has the same sum."""
    spec = recipe.get("kernels", name)
    options = places.data() / "kernels" / str(spec["config"])
    text, edits = options.read_text(), _edits(spec, options.parent)
    return spec, text, edits, hashlib.sha256("\0".join((text, json.dumps([spec, edits], sort_keys=True), BUILD)).encode()).hexdigest()


def installed(recipe: Recipe, arch: str, name: str, show: cache.Show) -> Path | None:
    """The folder of a kernel that was installed from a package (kernel_package.py), if it is whole and of this version."""
    folder = installed_folder(arch, name)
    if not (folder / RECIPE).is_file():
        return None
    if (folder / RECIPE).read_text() != recipe_of(recipe, name)[3]:
        show(f"{folder} is the kernel of another version of ktrxer, and is not used: install the package of this version, or delete it")
        return None
    if not _whole(folder):
        show(f"{folder} is damaged, and is not used: install its package again, or delete it")
        return None
    return folder


def installed_folder(arch: str, name: str) -> Path:
    return places.cache() / "kernels" / f"{arch}-{name}-installed"


def prepared(recipe: Recipe, arch: str, name: str, show: cache.Show) -> Path:
    """The folder of the kernel: `vmlinuz`, `modules.cpio`, `version`, and `build`, the tree for building modules."""
    return installed(recipe, arch, name, show) or built(recipe, arch, name, show)[0]


def built(recipe: Recipe, arch: str, name: str, show: cache.Show) -> tuple[Path, Inputs]:
    """The folder of the kernel that was built here, now or earlier, and what it was built from."""
    spec, options, edits, _ = recipe_of(recipe, name)
    archive = Archive(str(spec["suite"]), arch)
    terminal = sys.stderr if sys.stderr.isatty() else None
    with Progress(name, int(spec.get("files", 0)), show, terminal) as progress:
        with _archive_lock(archive, show):
            progress.begin(f"reading the index of Debian {archive.suite}")
            (package,) = archive.packages([str(spec["source"])])
        progress.begin("")
        tools = Tools.of(str(spec.get("arch", arch)))
        inputs = Inputs(arch, name, spec, options, edits, package, _compiler(f"{tools.prefix}gcc"))
        folder = inputs.folder
        with cache.locked(folder.name, show=show, what=f"builds the kernel {name}") as lock:
            if (folder / "version").is_file() and not _whole(folder):
                show(f"{folder} is damaged (its kernel has another checksum than when it was built): it is built again")
                shutil.rmtree(folder)
            if not (folder / "version").is_file():
                progress.changed = lambda state: lock.note(f"builds the kernel {name}: {state}")
                _make(inputs, archive, tools, progress, show)
    cache.touch(folder)
    return folder, inputs


def _archive_lock(archive: Archive, show: cache.Show) -> contextlib.AbstractContextManager[cache.Lock]:
    return cache.locked(f"apt-{archive.suite}-{archive.arch}", show=show, what=f"fetches packages of Debian {archive.suite}")


def _make(inputs: Inputs, archive: Archive, tools: Tools, progress: Progress, show: cache.Show) -> None:
    """Build a kernel, or continue its build. Ctrl-C leaves the tree, so that the next call continues."""
    _sweep(inputs.folder)
    tools.check()
    _check_programs(tools.arch)
    place = inputs.folder.with_name(f".{inputs.folder.name}.tree")
    tree = _Tree.load(place)
    package = inputs.package
    what = f"the kernel {inputs.name} is built first, once" if tree is None else f"the interrupted build of {inputs.name} continues"
    show(f"{what}, from {package.name} {package.version}: {progress.usual}; Ctrl-C stops it, and the next command continues it")
    progress.started, progress.before_s = progress.clock(), tree.seconds if tree else 0.0
    try:
        if tree is not None:
            try:
                _compile(inputs, tools, tree, progress)
            except BuildFailure as failure:
                show(f"the interrupted build cannot be continued ({failure}): it starts again")
                tree = None
        if tree is None:
            tree = _fresh_tree(inputs, archive, place, progress, show)
            _compile(inputs, tools, tree, progress)
        with cache.fresh_folder(inputs.folder) as new:
            _keep(tree.path, new, tools.arch)
    except KeyboardInterrupt:
        if (interrupted := _Tree.load(place)) is not None:
            interrupted.save(progress.seconds)
            show(f"interrupted: the next command continues the build; what there is of it: {place}")
        raise
    except Exception:
        shutil.rmtree(place, ignore_errors=True)
        raise
    remember(inputs.name, progress.seconds)
    show(f"the kernel {inputs.name} is built, in {span(progress.seconds)}")
    progress.begin("removing the source")
    shutil.rmtree(place, ignore_errors=True)
    progress.begin("")


def _fresh_tree(inputs: Inputs, archive: Archive, place: Path, progress: Progress, show: cache.Show) -> _Tree:
    progress.compiled = 0
    progress.begin("removing an old tree")
    shutil.rmtree(place, ignore_errors=True)
    progress.begin("")
    with _archive_lock(archive, show):
        progress.begin(f"fetching {inputs.package.name}")
        try:
            (deb,) = archive.fetch([inputs.package])
        except LabError as error:  # e.g. the archive has a newer version in place of this one
            raise LabError(f"{error}; to read the archive's index again: ktrxer lab setup --update") from None
    progress.begin("unpacking the source")
    place.mkdir(parents=True)
    path = _unpack(deb, place / "source")
    deb.unlink(missing_ok=True)
    try:
        kernel_build.edit(path, inputs.edits)
    except ValueError as error:
        raise LabError(f"{error}; update `replace` in lab/ktrxer_lab/data/images.toml") from None
    tree = _Tree(place, path, 0.0)
    tree.save(progress.seconds)
    return tree


def _compile(inputs: Inputs, tools: Tools, tree: _Tree, progress: Progress) -> None:
    progress.begin("compiling")
    hosts = ("scripts", "tools")  # what make compiles there is not counted: it prints HOSTCC
    progress.compiled = sum(1 for one in tree.path.rglob(".*.o.cmd") if one.relative_to(tree.path).parts[0] not in hosts)
    noted = progress.changed

    def changed(state: str) -> None:
        tree.save(progress.seconds)
        if noted is not None:
            noted(state)

    progress.changed = changed
    try:
        _build(tree.path, kernel_build.options(inputs.spec, inputs.options), tools, progress)
    finally:
        progress.changed = noted


def _sweep(folder: Path) -> None:
    """Remove what killed builds have left: of this kernel and of others, and the trees of older versions of this kernel. The tree of an
    interrupted build stays. A held lock shows a build that runs."""
    for left in folder.parent.glob(".*.*"):
        name, _, end = left.name[1:].rpartition(".")
        if end == "tree" and (name == folder.name or name.rpartition("-")[0] != folder.name.rpartition("-")[0]):
            continue
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


def _edits(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The changes of a kernel's source: files and their text to `add`, then text to `replace`."""
    shared = tomllib.loads((folder / spec["edits"]).read_text()) if "edits" in spec else {}
    added = {path: (folder / name).read_text() for path, name in shared.get("add", {}).items()}
    return {"add": added, "replace": [*spec.get("replace", []), *shared.get("replace", [])]}


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


def _build(tree: Path, options: str, tools: Tools, progress: Progress) -> None:
    make = kernel_build.make_of(tree, tools.arch, tools.prefix)
    if not (tree / ".config").is_file() or not (tree / "wanted.config").is_file():
        _run(kernel_build.configure(tree, options, make))
        _check_options(options, tree / ".config")
    _run(kernel_build.compile_command(make, tools.arch), progress)


def _check_options(options: str, config: Path) -> None:
    made = set(config.read_text().splitlines())
    lost = [line for line in options.splitlines() if line.startswith("CONFIG_") and line not in made]
    if lost:
        message = "an option has another name there, or needs one that is missing"
        raise LabError(f"the options of {config.parent.name}: this kernel does not accept {', '.join(lost)}: {message}")


def _run(command: list[str], progress: Progress | None = None) -> None:
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
    shutil.copy(tree / kernel_build.TARGETS[arch][1], kernel)
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
