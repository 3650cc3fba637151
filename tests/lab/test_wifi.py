# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stations of WiFi devices: the runner's two readers, of netlink and of the output of `iw`, on simulated radios of the kernel (mac80211_hwsim).
Reference: `iw` of Debian, and the frames that were sent."""

from __future__ import annotations

from pathlib import Path

import full_kernel
import pytest
from ktrxer.collect.wifi import Station
from ktrxer.runners import wifi
from ktrxer_lab import cache, cpio, packages
from ktrxer_lab.errors import LabError
from ktrxer_lab.packages import Archive

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / "python"
MODULES = ["drivers/net/wireless/*mac80211_hwsim.*", "net/packet/*", "crypto/*", "arch/x86/crypto/*", "lib/crypto/*"]
INIT = """#!/bin/sh
/bin/busybox mkdir -p /bb /proc /sys /dev
/bin/busybox --install -s /bb
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/bb
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
modprobe af_packet; modprobe mac80211_hwsim radios=2
python3 /job.py
poweroff -f
"""


def machine(folder: Path) -> tuple[Path, Path]:
    job = cpio.Tree()
    job.file("init", INIT.encode(), 0o755)
    job.file("job.py", (HERE / "wifi_job.py").read_bytes())
    for path in ["__init__.py", *(f"collect/{one.name}" for one in (PYTHON / "ktrxer/collect").glob("*.py"))]:
        job.file(f"ktrxer/ktrxer/{path}", (PYTHON / "ktrxer" / path).read_bytes())
    archive = Archive("bookworm", "amd64")
    with cache.locked(f"apt-{archive.suite}-{archive.arch}"):
        debs = archive.fetch(archive.packages(["iw", "libnl-3-200", "libnl-genl-3-200"]))
    for path, member, data in (file for deb in debs for file in packages.files(deb)):
        path = f"usr/{path.removeprefix('usr/')}"  # /lib and /sbin are links in the layers
        if path.startswith("usr/lib/") and member.issym():
            job.link(path, member.linkname)
        elif path.startswith("usr/lib/") or path.endswith("/iw"):
            job.file(path, data, member.mode & 0o777)
    return full_kernel.with_initramfs(folder, "wifi", MODULES, job)


@pytest.mark.slow
def test_both_readers_of_stations(tmp_path: Path) -> None:
    if packages.host_architecture() != "amd64":
        pytest.skip("this kernel is fetched for amd64 hosts only")
    try:
        kernel, initrd = machine(tmp_path)
    except LabError as error:
        pytest.skip(f"the kernel or iw is not available: {error}")
    told = full_kernel.result(tmp_path, ["qemu-system-x86_64"], kernel, initrd, [], 400)

    assert told["devices"] == ["wlan0", "wlan1"]
    for device in told["devices"]:
        assert told[device], "the counters changed between all pairs of readings"
        ours = [Station(*one) for one in told[device]["ours"]]
        assert [(one.device, one.mac) for one in ours] == [(one.device, one.mac) for one in wifi.parse(told[device]["iw"])]
        for one, other in zip(ours, wifi.parse(told[device]["iw"]), strict=True):
            assert {"signal", "signal_avg", "tx_bitrate", "tx_duration", "rx_bytes", "tx_bytes", "rx_packets", "tx_packets"} <= one.values.keys()
            assert one.values == pytest.approx(other.values, rel=1e-9), device
    (sender,), (receiver,) = (told[device]["ours"] for device in told["devices"])
    assert "expected_throughput" in sender[2] and "rx_bitrate" in receiver[2] and sender[1] != receiver[1]
    assert sender[2]["tx_packets"] >= 300 and receiver[2]["rx_packets"] >= 300
    assert receiver[2]["rx_bytes"] >= 300 * 1000 and sender[2]["tx_bytes"] >= 300 * 1000
