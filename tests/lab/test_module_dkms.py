# SPDX-License-Identifier: MIT OR Apache-2.0
"""The package ktrxer-dkms: dpkg-buildpackage makes it, dpkg installs it, DKMS builds the module, and a device loads that module."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ktrxer_lab import device, kbuild, vm
from ktrxer_lab.errors import LabError

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "6.1"
PROGRAMS = {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "dh_dkms": "dh-dkms", "dh_python3": "dh-python", "dkms": "dkms"}
MISSING = sorted(package for program, package in PROGRAMS.items() if not shutil.which(program))

# In a mount namespace, above the host's own files, which do not change. Arguments: an empty folder, the release of the kernel, the folder with
# its headers, the package, the folder for the module.
INSTALL = """
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mkdir -p "$1/root/usr/lib/modules/$2"
ln -s "$3" "$1/root/usr/lib/modules/$2/build"
cp "$4" "$1/root/package.deb"
chroot "$1/root" env DEBIAN_FRONTEND=noninteractive dpkg -i /package.deb
chroot "$1/root" dkms status
cp "$1/root/usr/lib/modules/$2/updates/dkms/"ktrxer.ko* "$5/"
"""


def package(place: Path) -> Path:
    """The package of the files that git has or would add."""
    source = place / "source"
    source.mkdir()
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in names:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    # --no-check-builddeps: the other packages need compilers and libraries that this one does not.
    words = ["dpkg-buildpackage", "--build=all", "--no-sign", "--no-check-builddeps"]
    done = subprocess.run(words, cwd=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    (made,) = place.glob("*.deb")
    assert made.name.startswith("ktrxer-dkms_"), made
    return made


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: apt-get install --no-install-recommends {' '.join(MISSING)}")
def test_the_package_builds_the_module_and_a_device_loads_it(tmp_path: Path) -> None:
    chosen = device.load("pc")
    try:
        headers = kbuild.headers(chosen, KERNEL, vm.quiet)
    except LabError as reason:
        pytest.skip(f"no headers of {KERNEL} for the pc: {reason}")
    release = (headers / "include/config/kernel.release").read_text().strip()
    for name in ("root", "out"):
        (tmp_path / name).mkdir()
    words: list[str | Path] = ["unshare", "--mount", "sh", "-euc", INSTALL, "sh"]
    words += [tmp_path / "root", release, headers, package(tmp_path), tmp_path / "out"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{release}, x86_64: installed" in done.stdout, done.stdout
    (built,) = (tmp_path / "out").iterdir()
    if built.suffix == ".xz":
        subprocess.run(["unxz", built], check=True)
        built = built.with_suffix("")
    job = vm.Job(command=("sh", "-c", "insmod /root/ktrxer.ko && ls /dev/ktx /dev/krx && rmmod ktrxer"), put=((built, "/root/ktrxer.ko"),), limit_s=300)
    answer = vm.boot(vm.Machine(chosen, chosen.kernel(KERNEL), "virtual"), job)
    assert (answer.status, answer.stdout.split()) == (0, [b"/dev/krx", b"/dev/ktx"]), answer.stderr
