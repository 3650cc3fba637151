# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's full kernel for a machine that a test boots itself: that of the lab's devices lacks most drivers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ktrxer_lab import cache, cpio, image, places
from ktrxer_lab.packages import Archive
from ktrxer_lab.recipe import Recipe


def with_initramfs(folder: Path, name: str, modules: list[str], job: cpio.Tree) -> tuple[Path, Path]:
    """The kernel with these modules, and an initramfs of the job and of the lab's layers. `name` is that of the folder in the cache."""
    archive, recipe = Archive("bookworm", "amd64"), Recipe.load()
    with cache.locked(f"apt-{archive.suite}-{archive.arch}"):
        package = archive.latest(r"linux-image-6\.1\.\d[^-]*(-\d+)?-amd64")
        made = places.cache() / "kernels" / f"{name}-{cache.digest(name, package.sha256, modules)}"
        if not (made / "version").is_file():
            with cache.fresh_folder(made) as new:
                image._unpack_kernel(archive.fetch([package]), modules, new)
    initrd = folder / "initrd"
    with initrd.open("wb") as out:
        for layer in ("base", "net", "python"):
            out.write(image.layer(recipe, "amd64", layer, print).read_bytes())
        out.write((made / "modules.cpio").read_bytes())
        job.write(out)
    return made / "vmlinuz", initrd


def result(folder: Path, qemu: Sequence[str | Path], kernel: Path, initrd: Path, more: Sequence[str], seconds: float) -> Any:
    """The last line in JSON that the job prints, in virtual time. `qemu` and `more` begin and end the command; `seconds` are of wall time."""
    console = folder / "console"
    command: list[str | Path] = [*qemu, "-accel", "tcg", "-machine", "q35", "-cpu", "max,-cx16", "-smp", "1", "-m", "1024",
               "-kernel", kernel, "-initrd", initrd,
               "-append", "console=ttyS0 panic=-1 quiet tsc=reliable no_timer_check mitigations=off iomem=relaxed rdinit=/init",
               "-rtc", "base=2026-01-01T00:00:00,clock=vm", "-icount", "shift=0,sleep=off",
               "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none", "-serial", f"file:{console}", *more]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) as child:
        try:
            child.wait(seconds)
        finally:
            child.kill()  # SIGKILL, because a guest in virtual time may not handle another signal
    message = console.read_text(errors="replace") if console.exists() else ""
    lines = [line for line in message.splitlines() if line.startswith("{")]
    assert lines, message[-3000:]
    print(lines[-1])
    return json.loads(lines[-1])
