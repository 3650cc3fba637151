# SPDX-License-Identifier: MIT OR Apache-2.0
"""Images: layers of Debian packages, and a kernel with its modules. They are cached, and rebuilt when an input changes."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ktrxer_lab import cpio, device, elf, malta, modules, packages, places, source
from ktrxer_lab.cache import Show, digest, fresh_file, fresh_folder, locked, no_space, syntax, touch
from ktrxer_lab.errors import LabError
from ktrxer_lab.packages import Archive
from ktrxer_lab.recipe import Recipe

FOLDERS = ("dev", "proc", "sys", "run", "tmp", "root", "mnt", "usr/bin", "usr/sbin",
           "usr/lib", "usr/libexec/ktrxer", "var/run", "var/tmp")
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # Debian's merged /usr


@dataclass(frozen=True)
class Kernel:
    image: Path
    modules: Path
    version: str


@dataclass(frozen=True)
class Images:
    kernel: Kernel
    layers: tuple[Path, ...]


def prepare(chosen: device.Device, kernel: str, extra_layers: tuple[str, ...], show: Show) -> Images:
    """The images for a boot, from the cache or built now."""
    recipe = Recipe.load()
    with no_space(places.cache()):
        layers = [*chosen.layers, *(name for name in extra_layers if name not in chosen.layers)]
        return Images(
            kernel=kernel_of(recipe, chosen.arch, kernel, show),
            layers=tuple(layer(recipe, chosen.arch, name, show) for name in layers),
        )


def kernel_of(recipe: Recipe, arch: str, kernel: str, show: Show) -> Kernel:
    if "source" in recipe.get("kernels", kernel):
        return _kernel_in(source.prepared(recipe, arch, kernel, show))
    archive = Archive(recipe.get("kernels", kernel, "suite"), arch)
    flavour = recipe.get("flavours", arch)
    with locked(f"apt-{archive.suite}-{arch}"):
        package = archive.latest(rf"linux-image-{re.escape(kernel)}\.\d[^-]*(-\d+)?-{flavour}")
        # Debian's package of the image is empty from 7.0 on, and depends on these.
        parts = [package.name.replace("linux-image-", part) for part in ("linux-binary-", "linux-modules-", "linux-base-")]
        found = [package] if parts[0] not in archive.index else archive.packages(parts)
    include = recipe.get("modules", "include")
    rewrite = recipe.table.get("rewrite", {}).get(arch)
    emulator = _emulator_version(rewrite) if rewrite else None
    code = syntax(Path(str(malta.__file__))) if rewrite else ""
    key = digest("kernel", [part.sha256 for part in found], include, rewrite, emulator, code)
    folder = places.cache() / "kernels" / f"{arch}-{kernel}-{key}"
    with locked(folder.name):
        if not (folder / "version").is_file():
            show(f"preparing {package.name} for {arch} ...")
            with locked(f"apt-{archive.suite}-{arch}"):
                debs = archive.fetch(found)
            with fresh_folder(folder) as new:
                _unpack_kernel(debs, include, new)
                if rewrite:
                    _rewrite_malta(new / "vmlinuz", emulator, show)
            for deb in debs:
                deb.unlink()
    touch(folder)
    return _kernel_in(folder)

def _kernel_in(folder: Path) -> Kernel:
    return Kernel(folder / "vmlinuz", folder / "modules.cpio", (folder / "version").read_text())


def layer(recipe: Recipe, arch: str, name: str, show: Show) -> Path:
    archive = Archive(recipe.get("userland"), arch)
    spec, drop = recipe.get("layers", name), recipe.get("drop", "paths")
    below = [] if name == "base" else [recipe.get("layers", "base")]
    with locked(f"apt-{archive.suite}-{arch}"):
        found = archive.packages(spec["packages"])
    key = digest("layer", [package.sha256 for package in found], spec, below, drop)
    path = places.cache() / "layers" / f"{arch}-{name}-{key}.cpio"
    with locked(path.name):
        if not path.is_file():
            show(f"preparing the layer {name} for {arch} ...")
            with locked(f"apt-{archive.suite}-{arch}"):
                debs = archive.fetch(found)
            tree = _layer_tree(debs, [*drop, *spec.get("drop", [])])
            if name == "base":
                _finish_base(tree)
            if name == "python":
                _compile_python(tree)
            _check_programs(tree, spec["programs"], _sonames(recipe, arch, name, show), f"layer {name} for {arch}")
            with fresh_file(path) as new, new.open("wb") as out:
                tree.write(out)
            names = sorted({PurePosixPath(item).name for item in tree.entries if ".so" in item})
            path.with_suffix(".sonames").write_text("\n".join(names))
    touch(path)
    return path


def _sonames(recipe: Recipe, arch: str, name: str, show: Show) -> set[str]:
    """The sonames of the libraries in the base layer."""
    if name == "base":
        return set()
    return set(layer(recipe, arch, "base", show).with_suffix(".sonames").read_text().split())


def _unpack_kernel(debs: list[Path], include: list[str], folder: Path) -> None:
    compressed: dict[str, bytes] = {}
    version = None
    for path, _, data in (file for deb in debs for file in packages.files(deb)):
        path = path.removeprefix("usr/")
        if path.startswith("boot/vmlinuz-"):
            version = path.removeprefix("boot/vmlinuz-")
            (folder / "vmlinuz").write_bytes(data)
        elif re.fullmatch(r"lib/modules/[^/]+/vmlinuz", path):
            version = path.split("/")[2]
            (folder / "vmlinuz").write_bytes(data)
        elif path.startswith("lib/modules/") and ".ko" in path:
            compressed["/".join(path.split("/")[3:])] = data
        elif path.startswith("lib/modules/") and path.endswith(("/modules.builtin", "/modules.order")):
            (folder / PurePosixPath(path).name).write_bytes(data)
    if version is None:
        raise LabError(f"{' '.join(map(str, debs))}: this package contains no kernel")
    chosen = modules.select(compressed, include)
    tree = cpio.Tree()
    base = f"usr/lib/modules/{version}"
    for module in chosen:
        tree.file(f"{base}/{module.path}", module.data)
    for name, text in modules.index_files(chosen).items():
        tree.file(f"{base}/{name}", text.encode())
    builtin = folder / "modules.builtin"
    if builtin.is_file():
        tree.file(f"{base}/modules.builtin", builtin.read_bytes())
    with (folder / "modules.cpio").open("wb") as out:
        tree.write(out)
    (folder / "version").write_text(version)


def _emulator_version(program: str) -> str | None:
    try:
        message = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"version (\d+\.\d+)", message)
    return match[1] if match else None


def _rewrite_malta(path: Path, emulator: str | None, show: Show) -> None:
    """Patch the MIPS kernel for a fast start, if the clock rate of this emulator is known."""
    if emulator is None or not emulator.startswith("7."):
        show(f"the rate of the MIPS clock is not known for QEMU {emulator}: the router measures it at each boot (20 s)")
        return
    fast = malta.prepare(path.read_bytes())
    if fast is None:
        show("this MIPS kernel differs from the known ones: the router boots slowly (20 s)")
        return
    path.write_bytes(fast)


def _layer_tree(debs: list[Path], drop: list[str]) -> cpio.Tree:
    tree = cpio.Tree()
    for deb in debs:
        for path, member, data in packages.files(deb):
            first, _, rest = path.partition("/")
            if first in MERGED:
                path = f"usr/{first}/{rest}".rstrip("/")
            if not path or packages.matches(path, drop) or (first in MERGED and not rest):
                continue
            if member.isdir():
                continue  # folders are created with their files
            if member.issym():
                tree.link(path, member.linkname)
            elif member.islnk():
                source = member.linkname.removeprefix("./")
                source = f"usr/{source}" if source.split("/")[0] in MERGED else source
                tree.entries[path] = tree.entries[source]
            elif member.isreg():
                tree.file(path, data, member.mode & 0o777)
    return tree


def _finish_base(tree: cpio.Tree) -> None:
    for name in FOLDERS:
        tree.directory(name, 0o1777 if name.endswith("tmp") else 0o755)
    for name in MERGED:
        if name in ("bin", "sbin", "lib") or any(path.startswith(f"usr/{name}/") for path in tree.entries):
            tree.link(name, f"usr/{name}")
    tree.link("usr/bin/sh", "dash")
    tree.link("usr/sbin/modprobe", "../bin/busybox")  # the kernel calls it by this path
    tree.link("etc/mtab", "/proc/mounts")
    tree.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n")
    tree.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    tree.file("etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n")
    tree.file("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    tree.file("etc/protocols", b"ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\n")
    tree.file("etc/services", b"")


def _compile_python(tree: cpio.Tree) -> None:
    """Add byte code beside the sources, if this Python has the guest's version. Slow devices then start much faster."""
    if sys.version_info[:2] != (3, 11):
        return
    for path in [path for path in tree.entries if path.endswith(".py") and "/python3" in path]:
        compile_into(tree, path)


def compile_into(tree: cpio.Tree, path: str) -> None:
    entry = tree.entries[path]
    try:
        code = compile(entry.data, f"/{path}", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return
    import marshal

    header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(entry.data)
    folder, _, name = path.rpartition("/")
    tree.file(f"{folder}/__pycache__/{name.removesuffix('.py')}.cpython-311.pyc", header + marshal.dumps(code))


def _check_programs(tree: cpio.Tree, programs: list[str], below: set[str], where: str) -> None:
    """Check that each program is present, and every library that it and its libraries need."""
    libraries = {PurePosixPath(path).name for path in tree.entries if ".so" in path} | below
    for program in programs:
        path = program if program.startswith("usr/") else f"usr/{program}"
        if path not in tree.entries:
            raise LabError(f"{where}: no {program} in its packages (lab/ktrxer_lab/data/images.toml)")
    for path, entry in tree.entries.items():
        if entry.mode & 0o170000 == 0o100000 and elf.is_elf(entry.data):
            for name in elf.needed(entry.data):
                if name not in libraries:
                    raise LabError(f"{where}: {name}, which /{path} needs, is in none of its packages (lab/ktrxer_lab/data/images.toml)")
