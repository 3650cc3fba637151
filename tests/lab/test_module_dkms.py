# SPDX-License-Identifier: MIT OR Apache-2.0
"""The package ktrxer-dkms: DKMS itself builds the files that the package installs, and a device loads what it built."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ktrxer.lab import device, kbuild, vm
from ktrxer.lab.errors import LabError

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "6.1"


def installed(root: Path) -> Path:
    """What debian/ktrxer-dkms.install puts below a root."""
    for line in (ROOT / "debian/ktrxer-dkms.install").read_text().splitlines():
        words = line.split()
        if len(words) < 2:
            continue
        for pattern in words[:-1]:
            for path in sorted(ROOT.glob(pattern)):
                to = root / words[-1] / path.name
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(path, to) if path.is_dir() else shutil.copy(path, to)
    (source,) = (root / "usr/src").iterdir()
    shutil.copy(ROOT / "module/dkms.conf", source)  # dh_dkms installs this one
    return source


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("dkms"), reason="dkms is not installed: apt-get install --no-install-recommends dkms")
def test_dkms_builds_it_and_a_device_loads_it(tmp_path: Path) -> None:
    chosen = device.load("pc")
    try:
        headers = kbuild.headers(chosen, KERNEL, vm.quiet)
    except LabError as reason:
        pytest.skip(f"no headers of {KERNEL} for the pc: {reason}")
    release = (headers / "include/config/kernel.release").read_text().strip()
    source = installed(tmp_path)
    name, version = source.name.rsplit("-", 1)
    trees = ["--dkmstree", str(tmp_path / "tree"), "--sourcetree", str(tmp_path / "usr/src")]
    (tmp_path / "tree").mkdir()
    for step in ("add", "build"):
        words = ["dkms", step, "-m", name, "-v", version, *trees]
        words += ["-k", release, "-a", "x86_64", "--kernelsourcedir", str(headers)] if step == "build" else []
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        logs = "\n".join(path.read_text() for path in (tmp_path / "tree").rglob("make.log"))
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{logs[-3000:]}"
    (built,) = (tmp_path / "tree" / name / version / release).rglob("ktrxer.ko*")
    if built.suffix == ".xz":
        subprocess.run(["unxz", built], check=True)
        built = built.with_suffix("")
    job = vm.Job(command=("sh", "-c", "insmod /root/ktrxer.ko && ls /dev/ktx /dev/krx && rmmod ktrxer"), put=((built, "/root/ktrxer.ko"),), limit_s=300)
    answer = vm.boot(vm.Machine(chosen, chosen.kernel(KERNEL), "virtual"), job)
    assert (answer.status, answer.stdout.split()) == (0, [b"/dev/krx", b"/dev/ktx"]), answer.stderr
