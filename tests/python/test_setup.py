# SPDX-License-Identifier: MIT OR Apache-2.0
"""scripts/setup: the packages of each target, and the sizes that are printed before anything is fetched."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Hundreds of megabytes, and the tools of other projects.
NOT_CHECKED = {"chromium", "nodejs", "npm", "wireshark-common", "d-itg", "clang", "iperf", "iperf3", "irtt", "mosquitto-clients", "openssh-server", "curl"}


def listed(*targets: str) -> set[str]:
    return set(subprocess.run([ROOT / "scripts/setup", "--list", *targets], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.slow
def test_a_check_installs_only_what_it_checks() -> None:
    check = listed("build", "check")
    assert not check & NOT_CHECKED
    assert {"gcc", "meson", "libcmocka-dev", "python3-venv", "shellcheck", "mandoc", "iproute2"} <= check


@pytest.mark.slow
def test_a_demo_installs_no_tests() -> None:
    assert listed("build", "demo") == {
        "gcc", "libc6-dev", "linux-libc-dev", "meson", "ninja-build", "pkg-config",
        "python3", "python3-venv", "iproute2", "util-linux", "iputils-ping", "ethtool",
    }  # fmt: skip


@pytest.mark.slow
def test_the_whole_test_includes_the_check() -> None:
    assert listed("check") | NOT_CHECKED <= listed("test")


def bare(folder: Path, apt: str) -> dict[str, str]:
    """A PATH with nothing that `build` needs, whose apt-get is this script."""
    for name in ("dirname", "id", "awk", "sh"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name in ("apt-get", "apt-cache", "sudo"):
        (folder / name).write_text(f"#!/bin/sh\n{apt if name != 'apt-cache' else ':'}\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def test_sizes_come_before_the_packages(tmp_path: Path) -> None:
    apt = """case $* in
*--print-uris*) echo "Reading package lists..."
	echo "'http://mirror.invalid/g/gcc-12_12.2_amd64.deb' gcc-12_12.2_amd64.deb 19268852 SHA256:0"
	echo "'http://mirror.invalid/m/meson_1.0_all.deb' meson_1.0_all.deb 548060 SHA256:0" ;;
*) echo "apt-get: $*" ;;
esac"""
    done = subprocess.run(["/bin/sh", ROOT / "scripts/setup", "build"], capture_output=True, text=True, env=bare(tmp_path, apt))
    lines = done.stdout.splitlines()
    sizes = next(at for at, line in enumerate(lines) if line.startswith("setup: 19.8 MB will be fetched, in 2 packages; the largest in MB: gcc-12 19.3, meson 0.5"))
    first = next(at for at, line in enumerate(lines) if re.match("apt-get: (apt-get )?install", line))
    assert sizes < first, done.stdout
    assert done.returncode == 1 and "still missing" in done.stderr  # this apt-get installs nothing


@pytest.mark.parametrize("apt", ["exit 100", "case $* in *--print-uris*) exit 100 ;; esac"])
def test_sizes_that_apt_does_not_know_are_not_printed(tmp_path: Path, apt: str) -> None:
    done = subprocess.run(["/bin/sh", ROOT / "scripts/setup", "build"], capture_output=True, text=True, env=bare(tmp_path, apt))
    assert done.returncode == 1 and "will be fetched" not in done.stdout


def test_packages_that_a_killed_apt_left_are_configured_first(tmp_path: Path) -> None:
    environment = bare(tmp_path, 'echo "apt-get: $*"')
    (tmp_path / "dpkg").write_text('#!/bin/sh\necho "dpkg: $*"\n')
    (tmp_path / "dpkg").chmod(0o755)
    updates = tmp_path / "admin" / "updates"
    updates.mkdir(parents=True)
    (updates / "0000").touch()
    command = ["/bin/sh", ROOT / "scripts/setup", "build"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment | {"DPKG_ADMINDIR": str(updates.parent)})
    assert re.search(r"^(setup|apt-get): .*dpkg --configure -a$(.|\n)*install -y", done.stdout, re.M), done.stdout


def test_a_second_setup_waits_for_the_first(tmp_path: Path) -> None:
    environment = bare(tmp_path, 'echo "apt-get: $*"') | {"DPKG_ADMINDIR": str(tmp_path)}
    for name in ("env", "flock"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    with subprocess.Popen(["flock", tmp_path, "sh", "-c", "echo; read -r _"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdin and first.stdout and first.stdout.readline()
        with subprocess.Popen([ROOT / "scripts/setup", "build"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as second:
            assert second.stdout and second.stdout.readline() == "setup: waiting for another make that installs packages\n"
            first.stdin.close()
            assert "apt-get: " in second.stdout.read()


def test_a_python_that_no_package_mends_is_named(tmp_path: Path) -> None:
    environment = bare(tmp_path, ":")
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    done = subprocess.run(["/bin/sh", ROOT / "scripts/setup", "install"], capture_output=True, text=True, env=environment)
    assert f"setup: {tmp_path}/python3 cannot make virtual environments" in done.stderr and "make PYTHON=/usr/bin/python3" in done.stderr


@pytest.mark.parametrize("part", ["build", "install"])
def test_a_folder_that_cannot_be_written_is_named_with_its_cause(tmp_path: Path, part: str) -> None:
    """A mount that is read only, because modes do not bind root."""
    assert not subprocess.run([ROOT / "scripts/writable", part, tmp_path / "none"]).returncode
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces: a read-only mount cannot be made")
    enter = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" "$3" "$1/none/of/these"'
    command = ["unshare", "-rm", "sh", "-ec", enter, "sh", tmp_path, ROOT / "scripts/writable", part]
    done = subprocess.run(command, capture_output=True, text=True)
    remedy = "make install prefix=" if part == "install" else "copy the source tree"
    assert done.returncode == 1 and done.stderr.startswith(f"{part}: {tmp_path} is on a read-only file system: {remedy}"), done.stderr


LOCKS = [ROOT / f"python/requirements{name}.txt" for name in ("", "-plot", "-query", "-test")]


def sizes(folder: Path, *locks: Path) -> str:
    command = [ROOT / "scripts/venv-sizes", folder, *(str(lock.relative_to(ROOT)) for lock in locks)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_each_locked_package_has_its_size() -> None:
    """scripts/venv-sizes --record has run after the last change of a lock file."""
    locked = {
        f"{name.replace('-', '_')}-{version}"
        for lock in LOCKS
        for name, version in re.findall(r"^([a-z][a-z0-9-]*)(?:\[.*\])?==(\S+)", lock.read_text(), re.M)
    }
    recorded = {line.split()[0] for line in (ROOT / "python/sizes.txt").read_text().splitlines() if not line.startswith("#")}
    assert recorded == locked


def test_sizes_of_a_demo_and_of_what_is_missing(tmp_path: Path) -> None:
    told = re.fullmatch(r"venv: ([\d.]+) MB on x86-64, in (\d+) packages, less .* in MB: pyarrow-.*\n", sizes(tmp_path / "none", LOCKS[0]))
    assert told and float(told[1]) < 80, "the packages of `make demo`"
    place = tmp_path / "lib/python3.11/site-packages"
    place.mkdir(parents=True)
    for lock in LOCKS[:1]:
        for name, version in re.findall(r"^([a-z][a-z0-9-]*)==(\S+)", lock.read_text(), re.M):
            (place / f"{name.replace('-', '_').title()}-{version}.dist-info").mkdir()
    assert sizes(tmp_path, LOCKS[0]) == ""
    more = sizes(tmp_path, *LOCKS[:2])
    assert "matplotlib" in more and "numpy" not in more
