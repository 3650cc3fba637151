# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer recv` over the module.

      near                           far
    wire 10.9.0.1/24 ----------- wire 10.9.0.2/24      the rules in far apply to packets from near
         fd09::1                      fd09::2
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import Self

import pytest
from inside import run
from krx import (
    Link,
)
from krx_link import EVERYWHERE, stack

# ------------------------------------------------------------------------------------------------- `ktrxer recv` over it


class Recv:
    """ktrxer recv --jsonl in far, which receives when the constructor returns."""

    def __init__(self, command: str, *arguments: str) -> None:
        words = ["ip", "netns", "exec", "far", command, "recv", "--jsonl", "--device", "wire", *arguments]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        assert self.process.stdout is not None and self.process.stderr is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            if self.lines[-1].get("name") == "listening":
                return
        raise AssertionError(self.process.stderr.read())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self, signal_number: int | None = signal.SIGINT) -> dict[str, object]:
        if signal_number is not None:
            time.sleep(0.05)
            self.process.send_signal(signal_number)
        out, self.errors = self.process.communicate(timeout=20)
        self.lines += [json.loads(line) for line in out.splitlines()]
        self.samples = [line for line in self.lines if line["type"] == "sample"]
        return self.lines[-1]  # type: ignore[no-any-return]


@EVERYWHERE
@pytest.mark.parametrize(("by", "mode"), [("module", "ingress"), ("module-prerouting", "prerouting")])
def test_recv_by_the_module(link: Link, command: str, by: str, mode: str) -> None:
    texts = ["drop udp from any:4 to any:2000 prio 9", "capture udp from any:1 to any:2000", "drop udp from any:2 to any:2000",
             "capture+drop udp from any:3 to any:2000", "forward udp from any:4 to any:2000 prio 8"]
    with stack(4) as heard, stack(6) as heard6, Recv(command, "--backend", by, *(word for text in texts for word in ("--rule", text))) as recv:
        for version in (4, 6):
            link.send(*(link.frame(b"from %d" % port, (port, 2000), version) for port in (1, 2, 3, 4, 5)))
        end = recv.end()
        assert (end["backend"], end["backend_mode"], end["before_taps"], end["after_gro"], end["lost"]) == (by, mode, False, True, 0)
        assert "tcpdump sees it" in str(end["backend_note"])
        assert [(r["matched"], r["captured"], r["dropped"]) for r in end["rules"]] == [(0, 0, 0), (2, 2, 0), (2, 0, 2), (2, 2, 2), (2, 0, 0)]  # type: ignore[attr-defined]
        assert [(s["from_port"], s["rule"], s["source"], s["clock"], s["bound_ns"]) for s in recv.samples] == [(1, 1, "kernel", "realtime", 0), (3, 3, "kernel", "realtime", 0)] * 2
        assert heard() == heard6() == [b"from 1", b"from 4", b"from 5"]


@EVERYWHERE
def test_auto_takes_the_module_where_xdp_cannot_be_had(link: Link, command: str) -> None:
    """The static build has no XDP; without the module it uses nftables."""
    with Recv(command, "--rule", "drop udp from any to any:2000") as recv:
        link.send(link.frame())
        end = recv.end()
        assert end["backend"] == "module" and str(end["backend_why"]).startswith("a rule drops, and XDP cannot be had: ")
    with Recv(command, "--rule", "capture udp from any to any:2000") as recv:
        link.send(link.frame())
        assert recv.end()["backend"] == "packet"
    assert json.loads(run(command, "doctor", "--json"))["receive_module"] == {"available": True, "reason": None}
    # Root of only a user namespace may not open the device, and gets nftables.
    script = f"ip link set lo up; exec {command} recv --json --device lo --for 10ms --rule 'drop udp from any to any:9'"
    own = subprocess.run(["busybox", "unshare", "-Urn", "sh", "-c", script], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, check=False)
    if os.uname().release.startswith("5.10."):  # its nftables does not have tables that end with their process
        assert "Linux 5.12" in own.stderr or "XDP" in own.stderr
    else:
        assert json.loads(own.stdout)["backend"] == "nftables", own.stderr
    run("rmmod", "ktrxer")
    assert "modprobe ktrxer" in json.loads(run(command, "doctor", "--json"))["receive_module"]["reason"]
    done = subprocess.run(["ip", "netns", "exec", "far", command, "recv", "--device", "wire", "--backend", "module", "--rule", "drop udp from any to any:1"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "modprobe ktrxer" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    run("insmod", "/root/ktrxer.ko")


@EVERYWHERE
def test_what_recv_refuses_and_survives(link: Link, command: str) -> None:
    def recv(*arguments: str, device: tuple[str, ...] = ("--device", "wire")) -> tuple[int, str]:
        done = subprocess.run(["ip", "netns", "exec", "far", command, "recv", *device, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    for arguments, device, says in (
        (("--backend", "module", "--rule", "drop any from any to any"), ("--device", "wire"), "`force`"),
        (("--backend", "module", "--outgoing", "--rule", "drop udp from any to any:1"), ("--device", "wire"), "the back end 'packet'"),
        (("--backend", "module", "--rule", "drop udp from any to any:1"), (), "name the device"),
    ):
        status, stderr = recv(*arguments, device=device)
        assert status == 1 and says in stderr and stderr.count("\n") == 1, stderr
    with Recv(command, "--backend", "module", "--force", "--ring", "1Gi", "--rule", "drop any from any to any", "--rule", "capture udp from any to any:1") as process:
        link.send(link.frame())
        process.process.kill()
        process.process.communicate()
    with stack(4) as heard:
        link.send(link.frame(b"free"))
        assert heard() == [b"free"], "killed, its rules are gone"
    with Recv(command, "--backend", "module", "--rule", "capture udp from any to any") as process:
        link.send(link.frame())
        run("ip", "-n", "far", "link", "set", "dev", "wire", "down")
        end = process.end(None)
        assert "went down" in process.errors and end["captured"] == 1 and end["verdict"] == "degraded"
    run("ip", "-n", "far", "link", "set", "dev", "wire", "up")
    with Recv(command, "--backend", "module", "--rule", "capture udp from any to any") as process:
        link.send(link.frame())
        run("ip", "-n", "far", "link", "del", "dev", "wire")
        end = process.end(None)
        assert "was removed" in process.errors and end["captured"] == 1
    link.socket = None
