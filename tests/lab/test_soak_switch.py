# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ports of a switch: the kernel's own dsa_loop, on the debug kernel, because Debian builds no such driver for the lab's kernels.

dsa_enqueue_skb() takes a call with interrupts off for one of netpoll, and drops the frame without an error.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from inside import run
from ktrxer.lab.pytest_plugin import in_device
from ktx_raw import GUARD, MS, SENT, SLOW, SOFTIRQ, THREAD, TRAIN, Ear, Ktx, frame, now
from module_help import MODULE, module
from test_soak import KERNEL, LIMIT_S

__all__ = ["module"]
pytestmark = pytest.mark.soak
DRIVER = Path("/sys/bus/mdio_bus/drivers/dsa-loop")
SWITCH = "fixed-0:1f"
PARAMETER = Path("/sys/module/ktrxer/parameters/guard_drivers")


@contextlib.contextmanager
def switch() -> Iterator[Ear]:
    """The port `lan1` of a switch whose processor side is `eth0`; yields the frames that leave eth0."""
    run("ip", "link", "add", "name", "eth0", "type", "veth", "peer", "name", "far0")
    try:
        for name in ("eth0", "far0"):
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
            run("ip", "link", "set", name, "up")
        (DRIVER / "bind").write_text(SWITCH)
        try:
            Path("/proc/sys/net/ipv6/conf/lan1/disable_ipv6").write_text("1")
            run("ip", "link", "set", "lan1", "up")
            end = time.monotonic() + 5 * SLOW
            while Path("/sys/class/net/lan1/carrier").read_text() != "1\n":  # the PHY is polled
                assert time.monotonic() < end, "lan1 has no carrier"
                time.sleep(0.05)
            ear = Ear("far0")
            yield ear
            ear.close()
        finally:
            (DRIVER / "unbind").write_text(SWITCH)
    finally:
        run("ip", "link", "del", "eth0")


@in_device("pc", kernel=KERNEL, modules=MODULE, timeout=LIMIT_S)
@pytest.mark.parametrize("kind", [SOFTIRQ, THREAD])
def test_a_port_of_a_switch_loses_no_probe(module: None, kind: int) -> None:
    """Interrupts are on, also when the administrator has named the drivers."""
    with switch() as ear:
        assert "dsa" in Path("/sys/class/net/lan1/uevent").read_text()
        for allowed in ("\n", "dsa-loop,dsa,veth"):
            PARAMETER.write_text(allowed)
            try:
                with Ktx("lan1", timer=kind) as ktx:
                    begin = now() + 5 * MS
                    ktx.send([frame(i) for i in range(20)], [begin + i * MS for i in range(20)])
                    ktx.send([frame(i) for i in range(20, 24)], [begin + 25 * MS] * 4, TRAIN)
                    assert [report.status for report in ktx.reports(24)] == [SENT] * 24
                    assert ktx.word(GUARD) == 0
            finally:
                PARAMETER.write_text("\n")
            assert ear.numbers(0.05) == list(range(24)), f"guard_drivers {allowed!r}"
