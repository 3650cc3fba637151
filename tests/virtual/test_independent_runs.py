# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in one guest do not influence each other by what the kernel keeps of former connections (`ip tcp_metrics`)."""

from __future__ import annotations

import shlex
import sys

from guests import Lab

SINK = "import socket\nwith socket.create_server(('', 9000)) as s:\n while True:\n  with s.accept()[0] as c:\n   while c.recv(65536): pass"
UPLOAD = "import socket\nwith socket.create_connection(('server', 9000)) as s: s.sendall(bytes(300_000))"


def test_no_host_keeps_metrics_of_a_connection(lab: Lab) -> None:
    sink, upload = (f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}" for program in (SINK, UPLOAD))
    shown = "; ".join(("ip tcp_metrics show", "ip netns exec server ip tcp_metrics show", "echo end"))
    done = lab("run", "flent", "--time", "virtual", "--beside", f"server={sink}", "--", "sh", "-c", f"sleep 1; {upload} && sleep 1 && {shown}")
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stdout + done.stderr
