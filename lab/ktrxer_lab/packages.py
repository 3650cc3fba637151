# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian packages through a private package root. The host's own package state is not changed, and only its mirror is read."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ktrxer_lab import places
from ktrxer_lab.errors import LabError, MissingPackage

APT_CONF = """\
Dir "{root}";
Dir::State "{root}/state";
Dir::State::status "{root}/state/status";
Dir::State::Lists "{root}/state/lists";
Dir::Cache "{root}/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc "{root}/etc";
Dir::Etc::trustedparts "/etc/apt/trusted.gpg.d";
APT::Architecture "{arch}";
APT::Architectures {{"{arch}";}};
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
"""
INDEX = "index-2.json"  # the number is the version of its format
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True)
class Package:
    """One package in its current version in the archive."""

    name: str
    version: str
    address: str
    file: str
    sha256: str
    depends: str = ""

    @property
    def needs(self) -> list[str]:
        """The names of the packages that it depends on; of alternatives the first."""
        return [re.split(r"[\s(:|]", wish.strip())[0] for wish in self.depends.split(",") if wish.strip()]


@dataclass(frozen=True)
class Archive:
    """One suite of Debian for one architecture."""

    suite: str
    arch: str

    @property
    def root(self) -> Path:
        return places.cache() / "apt" / f"{self.suite}-{self.arch}"

    def packages(self, names: list[str]) -> list[Package]:
        """Find packages in the index, which is fetched at the first use. MissingPackage if one does not exist."""
        found = []
        for name in names:
            package = self.index.get(name)
            if package is None:
                raise MissingPackage(f"no package {name!r} in Debian {self.suite} for {self.arch}")
            found.append(package)
        return found

    def latest(self, pattern: str) -> Package:
        """The newest package whose name matches a regular expression."""
        matching = [package for name, package in self.index.items() if re.fullmatch(pattern, name)]
        if not matching:
            raise LabError(f"no package like {pattern!r} in Debian {self.suite} for {self.arch}")
        return max(matching, key=lambda package: [int(part) for part in re.findall(r"\d+", package.name)])

    @cached_property
    def index(self) -> dict[str, Package]:
        try:
            return self._kept()
        except (OSError, ValueError, TypeError, AttributeError):  # there is none, or it is damaged
            self.update()
            return self._kept()

    def _kept(self) -> dict[str, Package]:
        return {name: Package(**fields) for name, fields in json.loads((self.root / INDEX).read_text()).items()}

    def update(self) -> None:
        """Fetch the archive's index, check its signature, and keep the parts that the lab needs."""
        for folder in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "state/status").touch()
        (self.root / "apt.conf").write_text(APT_CONF.format(root=self.root, arch=self.arch))
        signed = f"signed-by={KEYRING} " if KEYRING.is_file() else ""
        source = f"deb [{signed}arch={self.arch}] {mirror()} {self.suite} main\n"
        (self.root / "etc/sources.list").write_text(source)
        self._apt("apt-get", "-q", "update")
        lines = self._apt("apt-cache", "dumpavail")
        index = {}
        for stanza in lines.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[0] != " ")
            if fields.get("Package") and fields.get("Filename") and fields.get("SHA256"):
                index[fields["Package"]] = {
                    "name": fields["Package"],
                    "version": fields["Version"],
                    "address": fields["Filename"],
                    "file": Path(fields["Filename"]).name,
                    "sha256": fields["SHA256"],
                    "depends": fields.get("Depends", "") if fields["Package"].startswith("linux-headers-") else "",
                }
        if not index:
            raise LabError(f"Debian {self.suite} for {self.arch}: the index is empty; does the mirror carry this architecture?")
        temporary = self.root / "index.new"
        temporary.write_text(json.dumps(index))
        temporary.replace(self.root / INDEX)
        self.__dict__.pop("index", None)

    def fetch(self, packages: list[Package]) -> list[Path]:
        """Download packages that are missing or damaged. apt checks each file against the signed index."""
        folder = self.root / "cache" / "archives"
        wanted = {package.name: folder / f"{package.sha256[:16]}.deb" for package in packages}
        missing = [package for package in packages if not _intact(wanted[package.name], package.sha256)]
        if missing:
            partial = folder / "partial"
            self._apt("apt-get", "-q", "download", *(f"{item.name}={item.version}" for item in missing), cwd=partial)
            for package in missing:
                arrived = list(partial.glob(f"{package.name}_*.deb"))
                if len(arrived) != 1:
                    raise LabError(f"the download of {package.name} left {len(arrived)} files in {partial}; delete them and try again")
                arrived[0].replace(wanted[package.name])
        return [wanted[package.name] for package in packages]

    def _apt(self, *command: str, cwd: Path | None = None) -> str:
        environment = dict(os.environ, APT_CONFIG=str(self.root / "apt.conf"), LC_ALL="C.UTF-8")
        try:
            done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise LabError(f"{command[0]} is not installed; the lab needs a Debian-like host") from None
        problems = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W: Failed"))]
        if done.returncode != 0 or any(line.startswith("W: Failed") for line in problems):
            message = "; ".join(problems) or done.stderr.strip() or f"exit status {done.returncode}"
            raise LabError(f"{' '.join(command[:3])} (Debian {self.suite}, {self.arch}): {message}")
        return done.stdout


def _intact(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except FileNotFoundError:
        return False


def host_architecture() -> str:
    """Debian's name of this machine's architecture."""
    try:
        return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise LabError("dpkg is not installed; the lab needs a Debian-like host") from None


def mirror() -> str:
    """The Debian mirror: KTRXER_LAB_MIRROR, or the one in this host's apt sources."""
    named = os.environ.get("KTRXER_LAB_MIRROR")
    if named:
        return named
    folder = Path("/etc/apt")
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        if not path.is_file():
            continue
        text = path.read_text(errors="replace")
        if path.suffix == ".sources":
            for stanza in re.split(r"\n\s*\n", text):
                address = re.search(r"^URIs:\s*(\S+)", stanza, re.M | re.I)
                suites = re.search(r"^Suites:\s*(.+)", stanza, re.M | re.I)
                if address and suites and _is_debian(address[1], suites[1].split()):
                    return address[1]
        else:
            for match in re.finditer(r"^\s*deb\s+(?:\[[^]]*\]\s*)?(\S+)\s+(\S+)", text, re.M):
                if _is_debian(match[1], [match[2]]):
                    return match[1]
    raise LabError("this host's apt sources name no Debian mirror; set KTRXER_LAB_MIRROR to the address of one")


def _is_debian(address: str, suites: list[str]) -> bool:
    releases = ("bullseye", "bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable", "oldstable")
    return address.startswith(("http://", "https://", "file:")) and any(suite in releases for suite in suites)


def files(deb: Path) -> Iterator[tuple[str, tarfile.TarInfo, bytes]]:
    """The files of a package, in order: path without a leading slash, tar header, and the data of regular files."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as unpack:
        assert unpack.stdout is not None
        with tarfile.open(fileobj=unpack.stdout, mode="r|") as archive:
            for member in archive:
                data = b""
                if member.isreg():
                    stream = archive.extractfile(member)
                    data = stream.read() if stream else b""
                yield member.name.removeprefix("./").strip("/"), member, data
    if unpack.returncode != 0:
        raise LabError(f"{deb}: dpkg-deb could not read it; delete it and try again")


def matches(path: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
