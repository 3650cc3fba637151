# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packages with a kernel: what was packed is installed and used, and a hostile or foreign package is refused in one line."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ktrxer_lab import command, kernel_build, kernel_package, places, source, uml
from ktrxer_lab.errors import LabError
from ktrxer_lab.packages import Archive, Package
from ktrxer_lab.recipe import Recipe

NAME = "7.3-virtual"
KERNEL = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x3e\x00" + b"a kernel" * 1000
PLACE = f"ktrxer-kernel-{NAME}-1.0-linux-x86_64"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRXER_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Archive, "index", {})  # nothing is fetched
    monkeypatch.setattr(uml.platform, "machine", lambda: "x86_64")


def packed(folder: Path) -> bytes:
    folder.mkdir(exist_ok=True)
    (folder / "vmlinuz").write_bytes(KERNEL)
    (folder / "version").write_text("7.3.4")
    spec, options, edits, digest = source.recipe_of(Recipe.load(), NAME)
    package = Package("linux-source-7.3", "7.3.4-1", "", "", "0" * 64)
    inputs = source.Inputs("amd64", NAME, spec, options, edits, package, "14.2.0")
    return kernel_package.pack(folder, inputs, digest, b"GPL", "1.0")


def files_of(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = {member.name: archive.extractfile(member) for member in archive}
        return {name: stream.read() for name, stream in found.items() if stream is not None}


def archive_of(files: dict[str, bytes], *more: tarfile.TarInfo, form: int = tarfile.USTAR_FORMAT) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in more:
            archive.addfile(info)
    return gzip.compress(whole.getvalue())


def changed(files: dict[str, bytes], **manifest: Any) -> dict[str, bytes]:
    """The same files with another manifest, whose sums are right."""
    found = json.loads(files[f"{PLACE}/manifest.json"]) | manifest
    for name in found["files"]:
        data = files.get(f"{PLACE}/{name}", b"")
        found["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return files | {f"{PLACE}/manifest.json": json.dumps(found).encode()}


def test_what_is_packed_is_installed_and_used(tmp_path: Path) -> None:
    path = tmp_path / "kernel.tar.gz"
    path.write_bytes(packed(tmp_path / "built"))
    assert path.read_bytes() == packed(tmp_path / "built"), "the same kernel gives the same bytes"
    folder, message = kernel_package.install(path, print), list[str]()
    # Without an index, a compiler or a network.
    assert uml.prepare("7.3", message.append) == folder / "vmlinuz" and message == []
    assert (folder / "vmlinuz").read_bytes() == KERNEL and os.access(folder / "vmlinuz", os.X_OK)
    assert (folder / "COPYING").read_bytes() == b"GPL" and "linux-source-7.3 7.3.4-1" in (folder / "source/README").read_text().replace(" of Debian", "")
    kernel_package.install(path, print)  # once more
    assert [one.name for one in folder.parent.iterdir()] == [folder.name]


@pytest.mark.slow
def test_the_package_builds_its_kernel_again(tmp_path: Path) -> None:
    """build.py and build.json of a package, on a tree with the texts that they replace, and with a make that only says its name."""
    files = files_of(packed(tmp_path / "built"))
    for name in ("build.py", "build.json"):
        (tmp_path / name).write_bytes(files[f"{PLACE}/source/{name}"])
    edits, tree = json.loads((tmp_path / "build.json").read_text())["edits"], tmp_path / "tree"
    for one in edits["replace"]:
        (tree / one["file"]).parent.mkdir(parents=True, exist_ok=True)
        with (tree / one["file"]).open("a") as file:
            file.write(one["old"])
    (tree / "Kconfig").touch()
    (tmp_path / "make").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "make").chmod(0o755)
    again = [sys.executable, "-I", "build.py", "tree"]
    done = subprocess.run(
        again, cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    config, compile_, result = done.stdout.splitlines()
    assert "allnoconfig" in config and compile_.endswith(" linux") and "KBUILD_BUILD_HOST=lab" in compile_ and result == "tree/linux"
    assert "CONFIG_" in (tree / "wanted.config").read_text()
    assert all((tree / name).read_text() for name in edits["add"])
    (tree / edits["replace"][0]["file"]).write_text("another version")
    done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("build.py: ") and "the source has changed" in done.stderr


def _link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def _renamed(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {(name if one.endswith("COPYING") else one): data for one, data in files.items()}


HOSTILE: dict[str, tuple[Callable[[bytes, dict[str, bytes]], bytes], str]] = {
    "empty": (lambda data, _: b"", "manifest.json is missing|empty"),
    "no archive": (lambda data, _: b"#!/bin/sh\nexit 0\n", "Not a gzipped file"),
    "truncated": (lambda data, _: data[: len(data) // 2], "no whole package with a kernel"),
    "truncated in the tar": (lambda data, _: gzip.compress(gzip.decompress(data)[:3000]), "no whole package with a kernel"),
    "garbage in gzip": (lambda data, _: gzip.compress(b"x" * 2000), "no whole package with a kernel"),
    "upwards": (lambda _, files: archive_of(_renamed(files, "../../evil")), "'../../evil' does not belong there"),
    "upwards within": (lambda _, files: archive_of(_renamed(files, f"{PLACE}/../../evil")), "does not belong there"),
    "absolute": (lambda _, files: archive_of(_renamed(files, "/etc/evil")), "'/etc/evil' does not belong there"),
    "another folder": (lambda _, files: archive_of(_renamed(files, f"{PLACE}-2/COPYING")), "does not belong there"),
    "a file too many": (lambda _, files: archive_of(files | {f"{PLACE}/more": b""}), "/more' does not belong there"),
    "a file twice": (lambda _, files: archive_of(files, tarfile.TarInfo(f"{PLACE}/vmlinuz")), "does not belong there"),
    "the manifest twice": (lambda _, files: archive_of(files, tarfile.TarInfo(f"{PLACE}/manifest.json")), "does not belong there"),
    "symbolic link": (lambda _, files: archive_of(files, _link(f"{PLACE}/link", "/etc/passwd", tarfile.SYMTYPE)), "is no regular file"),
    "hard link": (lambda _, files: archive_of(files, _link(f"{PLACE}/vmlinuz", "/etc/passwd", tarfile.LNKTYPE)), "is no regular file"),
    "device": (lambda _, files: archive_of(files, _link(f"{PLACE}/null", "", tarfile.CHRTYPE)), "is no regular file"),
    "without a kernel": (
        lambda _, files: archive_of({name: data for name, data in files.items() if not name.endswith("vmlinuz")}), "vmlinuz is missing"),
    "without a manifest": (
        lambda _, files: archive_of({name: data for name, data in files.items() if not name.endswith("json")}), "does not belong there"),
    "another kernel": (lambda _, files: archive_of(files | {f"{PLACE}/vmlinuz": KERNEL[:-1] + b"!"}), "vmlinuz is not what its manifest.json says"),
    "manifest is no JSON": (lambda _, files: archive_of(files | {f"{PLACE}/manifest.json": b"{"}), "manifest.json is no JSON"),
    "manifest is deep": (lambda _, files: archive_of(files | {f"{PLACE}/manifest.json": b"[" * 60000}), "manifest.json is no JSON"),
    "manifest is a list": (lambda _, files: archive_of(files | {f"{PLACE}/manifest.json": b"[]"}), "manifest.json is none"),
    "manifest lacks files": (lambda _, files: archive_of(changed(files) | {f"{PLACE}/manifest.json": b'{"files": {}, "format": 1}'}), "has no kernel"),
    "manifest is large": (lambda _, files: archive_of(files | {f"{PLACE}/manifest.json": b" " * 70000}), "65536 are the most"),
    "newer format": (lambda _, files: archive_of(changed(files, format=2)), "it has format '2', this version of ktrxer reads 1"),
    "a name with a slash": (lambda _, files: archive_of(changed(files, kernel="../../evil")), "manifest.json has no kernel"),
    "unknown kernel": (lambda _, files: archive_of(changed(files, kernel="9.9-virtual")), "9.9-virtual is none of virtual time: 6.1, 6.12, 7.3"),
    "a kernel of devices": (lambda _, files: archive_of(changed(files, kernel="6.12-debug")), "6.12-debug is none of virtual time"),
    "another version": (lambda _, files: archive_of(changed(files, recipe="0" * 64)), "for another version of ktrxer"),
    "another architecture": (lambda _, files: archive_of(changed(files, arch="arm64")), "the kernel is for arm64 or is none"),
    "an ELF of another machine": (
        lambda _, files: archive_of(changed(files | {f"{PLACE}/vmlinuz": KERNEL.replace(b"\x3e\x00", b"\xb7\x00", 1)})), "needs one for x86-64"),
    "no ELF": (lambda _, files: archive_of(changed(files | {f"{PLACE}/vmlinuz": b""})), "needs one for x86-64"),
    "pax header": (
        lambda _, files: archive_of({"p" * 300 + "/manifest.json": b""}, form=tarfile.PAX_FORMAT), "does not belong there"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_package_is_refused_in_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, words = HOSTILE[name]
    good, path = packed(tmp_path / "built"), tmp_path / "kernel.tar.gz"
    path.write_bytes(make(good, files_of(good)))
    with pytest.raises(LabError, match=words):
        kernel_package.install(path, print)
    assert command.main(["setup", "--from", str(path)]) == 125
    message = capsys.readouterr().err
    assert message.startswith(f"ktrxer lab: {path}: ") and message.count("\n") == 1 and len(message) < 400
    assert not list((tmp_path / "cache").rglob("*kernels*/*")), "nothing is installed"


def test_a_small_file_that_holds_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_package, "UNPACKED_MAX", 1 << 20)
    path = tmp_path / "bomb.tar.gz"
    info = tarfile.TarInfo(f"{PLACE}/manifest.json")
    info.size, info.type = 1 << 33, tarfile.XHDTYPE  # a header that tarfile reads as a whole
    path.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(4 << 20)))
    assert path.stat().st_size < 10000
    with pytest.raises(LabError, match="it holds too much"):
        kernel_package.install(path, print)


def test_a_file_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in ((tmp_path / "pipe", "not a file"), (tmp_path, "not a file"), (tmp_path / "none", "No such file")):
        with pytest.raises(LabError, match=words):
            kernel_package.install(path, print)
    (tmp_path / "large").write_bytes(b"1234")
    monkeypatch.setattr(kernel_package, "PACKED_MAX", 3)
    with pytest.raises(LabError, match="no package with a kernel"):
        kernel_package.install(tmp_path / "large", print)


@pytest.mark.parametrize("fault", ["damaged", "another version"])
def test_an_installed_kernel_that_cannot_be_used_is_named(fault: str, tmp_path: Path) -> None:
    path, message = tmp_path / "kernel.tar.gz", list[str]()
    path.write_bytes(packed(tmp_path / "built"))
    folder = kernel_package.install(path, print)
    (folder / ("vmlinuz" if fault == "damaged" else source.RECIPE)).write_bytes(b"other")
    with pytest.raises(LabError, match=r"no package 'linux-source-7\.3'"):  # it goes on to build one
        uml.prepare("7.3", message.append)
    assert len(message) == 1 and fault in message[0] and str(folder) in message[0]
    assert places.cache() in folder.parents and kernel_build.TARGETS["um"][1] == "linux"


@pytest.mark.parametrize("more", [["--device", "uml"], ["--kernel", "7.3"], ["--update"], ["--headers"]])
def test_other_options_do_not_go_with_a_package(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["setup", "--from", "x.tar.gz", *more])
    assert ended.value.code == 2 and "--from FILE installs what FILE holds" in capsys.readouterr().err
