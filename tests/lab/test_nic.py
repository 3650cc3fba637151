# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stamps of a NIC: on igb of QEMU 10, with its clock, in virtual time. QEMU comes from Debian's backports, unpacked and not installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import full_kernel
import pytest
from ktrxer_lab import cache, cpio, packages, places
from ktrxer_lab.errors import LabError
from ktrxer_lab.packages import Archive

HERE = Path(__file__).parent
QEMU = ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"]
MODULES = ["drivers/net/ethernet/intel/igb/*", "net/sched/sch_fq.*", "net/packet/*"]
INIT = """#!/bin/sh
/bin/busybox mkdir -p /bb /proc /sys /dev
/bin/busybox --install -s /bb
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/bb
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
modprobe igb; modprobe sch_fq
python3 /job.py
poweroff -f
"""


def emulator() -> Path:
    archive = Archive("bookworm-backports", "amd64")
    with cache.locked(f"apt-{archive.suite}-{archive.arch}"):
        wanted = archive.packages(QEMU)
        folder = places.cache() / "emulators" / cache.digest("qemu", [package.sha256 for package in wanted])
        if not (folder / "usr").is_dir():
            with cache.fresh_folder(folder) as new:
                for deb in archive.fetch(wanted):
                    subprocess.run(["dpkg-deb", "-x", deb, new], check=True)
    return folder


def machine(folder: Path, program: Path) -> tuple[Path, Path]:
    """Debian's full kernel, because that of the other devices lacks this NIC, and its initramfs."""
    job = cpio.Tree()
    job.file("init", INIT.encode(), 0o755)
    job.file("job.py", (HERE / "nic_job.py").read_bytes())
    job.file("usr/bin/ktrxer", program.read_bytes(), 0o755)
    return full_kernel.with_initramfs(folder, "nic", MODULES, job)


@pytest.mark.slow
def test_a_nic_s_stamps(tmp_path: Path) -> None:
    program = places.program("x86_64")
    if program is None:
        pytest.skip("no static build for the emulated machine (make lab-builds)")
    if packages.host_architecture() != "amd64":
        pytest.skip("QEMU 10 of Debian's backports is fetched for amd64 hosts only")
    try:
        qemu = emulator()
        kernel, initrd = machine(tmp_path, program)
    except LabError as error:
        pytest.skip(f"QEMU 10 or its kernel is not available: {error}")
    wires = [f"hubport,id=n{i},hubid=0" for i in range(2)]
    nics = [f"igb,bus=port{i},netdev=n{i},mac=52:54:00:00:00:0{i + 1},romfile=" for i in range(2)]
    words: list[str | Path] = [qemu / "usr/bin/qemu-system-x86_64", "-L", qemu / "usr/share/seabios", "-L", qemu / "usr/share/qemu"]
    devices = list[str]()
    for i in range(2):
        devices += ["-device", f"pcie-root-port,id=port{i},chassis={i + 1}", "-netdev", wires[i], "-device", nics[i]]
    told = full_kernel.result(tmp_path, words, kernel, initrd, devices, 200)

    assert told["before"] == [0, 0] and told["doctor"] == ["packet"]  # txtime: its qdisc comes later
    assert told["packet"]["sent"] == 100 and told["packet"]["departure_stamp"]["nic"] >= 95, told
    assert told["packet"]["bound_ns"] < 5000 and abs(told["packet"]["lateness_us"]["p50"]) < 20, told
    assert told["packet"]["after"] == told["fast"]["after"] == [0, 0], "its setting is put back"
    # The NIC has one stamp register: other packets have the driver's stamp, and none is missing.
    assert told["fast"]["departure_stamp"]["nic"] > 1000 and told["fast"]["departure_stamp"]["nic"] + told["fast"]["departure_stamp"]["driver"] == 2000, told
    # Two transmitters on one NIC: when the first closes, the setting of the other stays. The receiver's part ends with the receiver.
    both = told["shared"]
    assert both["settings"] == [[1, 12], [1, 12], [1, 0], [0, 0]], both
    assert both["last"]["nic"] > 110 and both["first"]["nic"] > 40, both

    # Arrivals. This NIC stamps only PTP packets, and reports that. Both clocks are converted to one, and the wire has no delay.
    got = told["received"]
    assert got["during"] == [0, 12] and got["after"] == [0, 0] and got["note"] == "NIC stamps for PTP's packets alone, eth0 makes no others", got
    assert ["nic", "phc"] in got["ptp"] and got["udp"] == [["kernel", "realtime"]] and got["count"][0] == 50 and got["count"][1] >= 45, got
    assert got["stamps"]["nic"] >= 35 and got["stamps"]["user"] == 0 and got["departures"] == ["nic"], got
    assert abs(got["flight_ns"][1]) < got["bound_ns"] + 1000 and got["bound_ns"] < 1000, got
    off = told["off"]
    assert off["during"] == [0, 0] and off["stamps"]["kernel"] == 100 and off["note"] is None, "nothing is switched on without a request"
    assert off["flight_ns"][1] > got["flight_ns"][1] + 1000, "the kernel's stamp comes later"
    assert told["set"] == told["on"]["during"] == told["on"]["after"] == [1, 12]
    assert told["on"]["stamps"]["nic"] >= 35 and abs(told["on"]["flight_ns"][1]) < told["on"]["bound_ns"] + 1000, told["on"]
    assert told["txtime"]["departure_stamp"]["nic"] >= 95 and abs(told["txtime"]["lateness_us"]["p50"]) < 20, told
    assert told["txtime"]["after"] == [1, 12], "the setting of another program stays"
