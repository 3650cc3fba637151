# SPDX-License-Identifier: MIT OR Apache-2.0
"""A 32-bit program on the 64-bit kernel: the layout of <linux/ktrxer.h> is the same for both, and the module accepts commands of both."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ktrxer_lab import device, kbuild, vm
from ktrxer_lab.errors import Unavailable

HERE = Path(__file__).resolve().parent
MODULE = HERE.parents[1] / "module"
# No C library: the compiler alone makes 32-bit programs on any x86-64 host.
FLAGS = [
    "-m32", "-march=i686", "-mno-sse", "-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector", "-fcf-protection=none",
    "-O1", "-Wall", "-Wextra", "-Werror", f"-I{MODULE / 'uapi'}", "-I/usr/include/x86_64-linux-gnu",
]
IN_THE_DEVICE = """
insmod /root/ktrxer.ko &&
ip link add name wire0 type veth peer name wire1 &&
for name in wire0 wire1; do echo 1 >/proc/sys/net/ipv6/conf/$name/disable_ipv6; ip link set $name up; done &&
/root/compat32 $(cat /sys/class/net/wire0/ifindex) $(cat /sys/class/net/wire1/ifindex)
status=$?
rmmod ktrxer || exit 200
exit $status
"""


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["5.10", "6.1", "6.12", "7.3"])
def test_a_32_bit_program_sends_and_captures(tmp_path: Path, kernel: str) -> None:
    compiler = shutil.which("x86_64-linux-gnu-gcc")
    if compiler is None:
        pytest.skip("x86_64-linux-gnu-gcc is not installed; install it with: apt-get install --no-install-recommends gcc")
    program = tmp_path / "compat32"
    subprocess.run([compiler, *FLAGS, "-o", str(program), str(HERE / "compat32.c")], check=True)
    chosen = device.load("pc")
    try:
        (module,) = kbuild.build(chosen, kernel, MODULE, tmp_path, vm.quiet)
        job = vm.Job(("sh", "-c", IN_THE_DEVICE), put=((module, "/root/ktrxer.ko"), (program, "/root/compat32")), limit_s=120.0)
        answer = vm.boot(vm.Machine(chosen, kernel), job)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert answer.status == 0, f"tests/lab/compat32.c, line {answer.status} (mod 256): {answer.stderr.decode()}"
    assert not any("BUG" in line or "WARNING" in line for line in answer.kernel_log)
