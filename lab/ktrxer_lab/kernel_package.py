# SPDX-License-Identifier: MIT OR Apache-2.0
"""A package with a kernel that was built elsewhere: `make release` makes it, `ktrxer lab setup --from FILE` installs it.

A package is a tar.gz of a few files: manifest.json with the sums of the others, the kernel, its licence, and how to build it from Debian's
source package. A sum in the package shows damage; whether the package is the one of a release, SHA256SUMS of the release shows.

    python3 -m ktrxer_lab.kernel_package FOLDER      writes the package and its source package of Debian into FOLDER
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import struct
import sys
import tarfile
import zlib
from pathlib import Path
from typing import IO, Any

from ktrxer_lab import cache, kernel_build, packages, places, source, uml
from ktrxer_lab.errors import LabError
from ktrxer_lab.recipe import Recipe

FORMAT = 1
X86_64 = (b"\x7fELF\x02\x01", 62)  # the beginning of an ELF file of 64 bits, little-endian, and the number of the machine
MANIFEST = "manifest.json"
KERNEL = "vmlinuz"
COPYING = "COPYING"
# The files beside the manifest, and the largest size of each.
SIZES_MAX = {KERNEL: 64 << 20, COPYING: 1 << 20, "source/README": 1 << 20, "source/build.py": 1 << 20, "source/build.json": 1 << 20}
MANIFEST_MAX = 64 << 10
UNPACKED_MAX = sum(SIZES_MAX.values()) + (1 << 20)
PACKED_MAX = UNPACKED_MAX
FOLDER = re.compile(r"ktrxer-kernel-[\w.+~-]{1,64}")
README = """\
{kernel} is the kernel of virtual time of ktrxer: user-mode Linux {version}, made from the package {package} {package_version} of Debian
{suite} (SHA-256 of the package: {sha256}), which is beside this package in a release, and in Debian's archive and its snapshots.

To build it again, with gcc ({compiler} was used), make, flex, bison and bc:

    dpkg-deb -x {package}_*.deb . && tar -xf usr/src/{package}.tar.xz
    python3 build.py {package}

build.json has the changes of the source and the options of the kernel; build.py applies both and compiles. Then `strip linux`.
"""


def name_of(release: str, inputs: source.Inputs) -> str:
    return f"ktrxer-kernel-{inputs.name}-{release}-linux-x86_64"


def pack(folder: Path, inputs: source.Inputs, digest: str, licence: bytes, release: str) -> bytes:
    """The package of a kernel that was built here. The same kernel gives the same bytes."""
    package = inputs.package
    wanted = kernel_build.options(inputs.spec, inputs.options)
    plan = {"arch": inputs.spec.get("arch", uml.ARCH), "options": wanted, "edits": inputs.edits}
    version = (folder / "version").read_text()
    words = {"kernel": inputs.name, "version": version, "package": package.name, "package_version": package.version}
    readme = README.format(**words, suite=inputs.spec["suite"], sha256=package.sha256, compiler=inputs.compiler)
    files = {
        KERNEL: (folder / KERNEL).read_bytes(),
        COPYING: licence,
        "source/README": readme.encode(),
        "source/build.py": Path(str(kernel_build.__file__)).read_bytes(),
        "source/build.json": json.dumps(plan, indent=1).encode(),
    }
    manifest = {
        "format": FORMAT,
        "arch": inputs.arch,
        "recipe": digest,
        **words,
        "package_sha256": package.sha256,
        "compiler": inputs.compiler,
        "files": {name: {"bytes": len(data), "sha256": _sum(data)} for name, data in files.items()},
    }
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in {MANIFEST: json.dumps(manifest, indent=1).encode(), **files}.items():
            info = tarfile.TarInfo(f"{name_of(release, inputs)}/{name}")
            info.size, info.mode, info.uname, info.gname = len(data), 0o755 if name == KERNEL else 0o644, "root", "root"
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(whole.getvalue(), 9, mtime=0)


def install(path: Path, show: cache.Show) -> Path:
    """Check a package, and install its kernel into the cache. LabError, in one line, if it is not a whole package for this machine and this
    version of ktrxer. Nothing is written before all is checked."""
    try:
        if not path.is_file():
            raise LabError(f"{path}: No such file or directory" if not path.exists() else f"{path}: not a file")
        if path.stat().st_size > PACKED_MAX:
            raise LabError(f"{path}: more than {PACKED_MAX >> 20} MiB: no package with a kernel")
        with path.open("rb") as file:
            manifest, files = _read(path, file)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror or error}") from None
    _check_kernel(path, manifest, files[KERNEL])
    name = str(manifest["kernel"])
    folder = source.installed_folder(uml.ARCH, name)
    with (
        cache.no_space(places.cache()),
        cache.locked(folder.name, show=show, what=f"installs the kernel {name}"),
        cache.fresh_folder(folder) as new,
    ):
        for file_name, data in files.items():
            (new / file_name).parent.mkdir(exist_ok=True)
            (new / file_name).write_bytes(data)
        (new / KERNEL).chmod(0o755)
        (new / source.SUM).write_text(_sum(files[KERNEL]))
        (new / "version").write_text(str(manifest["version"]))
        (new / source.RECIPE).write_text(str(manifest["recipe"]))
    return folder


class _Bounded(io.RawIOBase):
    """The content of a compressed file, up to a limit: a small file can hold gigabytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self.inner, self.left = gzip.GzipFile(fileobj=file), UNPACKED_MAX

    def read(self, size: int = -1) -> bytes:
        data = self.inner.read(size if 0 <= size <= self.left else self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise ValueError("it holds too much")
        return data


def _read(path: Path, file: IO[bytes]) -> tuple[dict[str, Any], dict[str, bytes]]:
    files: dict[str, bytes] = {}
    manifest: dict[str, Any] = {}
    prefix = ""
    try:
        with tarfile.open(fileobj=_Bounded(file), mode="r|", format=tarfile.USTAR_FORMAT) as archive:
            for member in archive:
                folder, _, name = member.name.partition("/")
                if not member.isreg():
                    raise ValueError(f"{member.name[:100]!r} in it is no regular file")
                prefix = prefix or folder
                most = SIZES_MAX.get(name) if manifest else MANIFEST_MAX if name == MANIFEST else None
                if most is None or folder != prefix or not FOLDER.fullmatch(folder) or name in files:
                    raise ValueError(f"{member.name[:100]!r} does not belong there")
                if member.size > most:
                    raise ValueError(f"{name} has {member.size} bytes, {most} are the most")
                stream = archive.extractfile(member)
                data = stream.read() if stream else b""
                if manifest:
                    _check(manifest, name, data)
                    files[name] = data
                else:
                    manifest = _manifest(data)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, KeyError, TypeError, RecursionError) as error:
        raise LabError(f"{path}: no whole package with a kernel: {_reason(error)}") from None
    if missing := [name for name in (MANIFEST if not manifest else "", *SIZES_MAX) if name and name not in files]:
        raise LabError(f"{path}: no whole package with a kernel: {missing[0]} is missing")
    return manifest, files


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"its {MANIFEST} lacks {error}"
    if isinstance(error, RecursionError | json.JSONDecodeError | UnicodeDecodeError):
        return f"its {MANIFEST} is no JSON"
    return " ".join(str(error).split()) or type(error).__name__


def _manifest(data: bytes) -> dict[str, Any]:
    found = json.loads(data)
    if not isinstance(found, dict) or not isinstance(found.get("files"), dict):
        raise ValueError(f"its {MANIFEST} is none")
    if found.get("format") != FORMAT:
        raise ValueError(f"it has format {str(found.get('format'))[:20]!r}, this version of ktrxer reads {FORMAT}")
    for name in ("kernel", "version", "arch", "recipe"):
        if not isinstance(found.get(name), str) or not re.fullmatch(r"[\w.+~-]{1,100}", found[name]):
            raise ValueError(f"its {MANIFEST} has no {name}")
    return found


def _check(manifest: dict[str, Any], name: str, data: bytes) -> None:
    wanted = manifest["files"][name]
    if len(data) != wanted["bytes"] or _sum(data) != wanted["sha256"]:
        raise ValueError(f"{name} is not what its {MANIFEST} says")


def _check_kernel(path: Path, manifest: dict[str, Any], kernel: bytes) -> None:
    """Whether this machine and this version of the lab can use the kernel."""
    begin, machine = X86_64
    if manifest["arch"] != uml.ARCH or kernel[: len(begin)] != begin or struct.unpack_from("<H", kernel.ljust(20, b"\0"), 18)[0] != machine:
        raise LabError(f"{path}: the kernel is for {manifest['arch']} or is none; virtual time needs one for x86-64")
    recipe, name = Recipe.load(), str(manifest["kernel"])
    if name.removesuffix(uml.SUFFIX) not in uml.kernels() or not name.endswith(uml.SUFFIX):
        raise LabError(f"{path}: the kernel {name} is none of virtual time: {', '.join(uml.kernels())}")
    if source.recipe_of(recipe, name)[3] != manifest["recipe"]:
        raise LabError(f"{path}: the kernel {name} is for another version of ktrxer: take the package of this version's release")


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _licence() -> bytes:
    """The notice of the kernel's own COPYING, with the text of the licence."""
    note = "The Linux kernel is under the GNU General Public License version 2 only, with the Linux system call note:\n"
    note += "SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note\n\n"
    return note.encode() + (places.root() / "LICENSE-GPL-2.0").read_bytes()


def main() -> int:
    """Write the package of the kernel of virtual time, and the source package, into a folder."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(sys.argv[1])
    found = re.search(r"^\s*version: '([^']+)'", (places.root() / "meson.build").read_text(), re.M)
    assert found

    def show(text: str) -> None:
        print(f"release: {text}", file=sys.stderr)

    try:
        recipe = Recipe.load()
        name = uml.KERNEL + uml.SUFFIX
        folder, inputs = source.built(recipe, uml.ARCH, name, show)
        archive = packages.Archive(str(inputs.spec["suite"]), uml.ARCH)
        with cache.locked(f"apt-{archive.suite}-{archive.arch}", show=show, what=f"fetches {inputs.package.name}"):
            (deb,) = archive.fetch([inputs.package])
            shutil.copyfile(deb, out / f"{inputs.package.name}_{inputs.package.version}_all.deb")
        data = pack(folder, inputs, source.recipe_of(recipe, name)[3], _licence(), found[1])
        (out / f"{name_of(found[1], inputs)}.tar.gz").write_bytes(data)
    except LabError as error:
        show(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
