# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernel modules: built here for the devices' kernels, loaded there, and unloaded without leftovers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from inside import run
from ktrxer_lab.pytest_plugin import in_device

HELLO = Path(__file__).with_name("hello")
LAB = [sys.executable, "-m", "ktrxer_lab"]


def lab(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LAB, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, timeout=200, check=False)


def greets_and_goes() -> None:
    run("dmesg", "-c")
    run("insmod", "/root/hello.ko", "name=lab")
    time.sleep(0.05)
    assert "hello" in Path("/proc/modules").read_text()
    run("rmmod", "hello")
    message = [line.split("] ", 1)[-1] for line in run("dmesg", "-c").splitlines()]
    # An unsigned module taints the kernel, which logs one message. No other message is allowed.
    message = [line for line in message if "out-of-tree module" not in line and "module verification failed" not in line]
    assert [re.sub(r"\d+", "N", line) for line in message] == ["hello: hello lab", "hello: late by N ns", "hello: bye lab"]
    assert 0 <= int(message[1].split()[3]) < 100_000
    assert "hello" not in Path("/proc/modules").read_text()


@in_device("pc", "phone", "router", modules=("hello",))
def test_a_module_is_built_loaded_heard_and_unloaded() -> None:
    greets_and_goes()


@in_device("pc", "phone", kernel="5.10", modules=("hello",), slow=("pc", "phone"))
def test_a_module_for_5_10() -> None:
    greets_and_goes()


@in_device("pc", "phone", kernel="6.12", modules=("hello",), slow=("pc", "phone"))
def test_a_module_for_6_12() -> None:
    greets_and_goes()


def test_what_does_not_compile_is_told_with_its_line(tmp_path: Path) -> None:
    source = tmp_path / "broken"
    source.mkdir()
    (tmp_path / "shared.h").write_text("#define ANSWER forty_two\n")
    (source / "Kbuild").write_text("obj-m := broken.o\n")
    (source / "broken.c").write_text('#include <linux/module.h>\n#include "../shared.h"\nint answer = ANSWER;\nMODULE_LICENSE("GPL");\n')
    done = lab("module", str(source), "--out", str(tmp_path))
    if "is not installed" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 125
    told = done.stderr.splitlines()[-1]
    assert told.startswith("ktrxer lab: broken for the pc (6.1) does not build: ")
    assert "forty_two" in told
    assert sorted(path.name for path in source.iterdir()) == ["Kbuild", "broken.c"]
    (tmp_path / "shared.h").write_text("#define ANSWER 42\n")
    done = lab("module", str(source), "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/out/broken.ko\n")
    assert (tmp_path / "out" / "broken.ko").read_bytes()[:4] == b"\x7fELF"
    assert sorted(path.name for path in source.iterdir()) == ["Kbuild", "broken.c"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["module", "/nowhere"], 2, "/nowhere: No such file or directory"),
        (["module", "/proc", "--device", "toaster"], 2, "no device 'toaster'; choose one of: pc, phone, router"),
        (["module", "/proc", "--device", "router", "--kernel", "5.10"], 2, "no kernel '5.10' for the router; choose one of: 6.1"),
        (["module", "/proc"], 125, "/proc: this folder has no Kbuild file and no Makefile"),
    ],
)
def test_wrong_use_is_one_clear_line(arguments: list[str], status: int, message: str) -> None:
    done = lab(*arguments)
    assert (done.returncode, done.stderr) == (status, f"ktrxer lab: {message}\n")


def test_a_missing_compiler_is_one_line(tmp_path: Path) -> None:
    done = lab("module", str(HELLO), "--device", "router", PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (125, "ktrxer lab: make is not installed; install it with: apt-get install --no-install-recommends make\n")
