# SPDX-License-Identifier: MIT OR Apache-2.0
"""TCP handshakes with a port of any server (http/handshakes.py): round trips where a firewall lets neither ICMP nor UDP pass."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ktrxer import http
from ktrxer.runners import own, probes
from ktrxer.runners.runner import MS, Options, Parameters, Runner, Times, between
from ktrxer.store.meta import Series

PROGRAM = Path(http.__file__).with_name("handshakes.py")


@dataclass(frozen=True, kw_only=True)
class Handshakes(Parameters):
    interval_ns: int = 200 * MS  # the server may belong to another person
    port: int = 80
    group: str = "Ping (ms)"


def validate(p: Handshakes) -> None:
    between("time between handshakes", p.interval_ns / MS, 50, 60_000, " ms")
    between("port", p.port, 1, 65535)


def command(p: Handshakes, o: Options, times: Times) -> list[str]:
    words = [sys.executable, "-I", str(PROGRAM), p.host or o.host, str(p.port), "--interval", f"{p.interval_ns}ns"]
    return own.words([*words, "--timeout", f"{o.timeout_ns}ns", *own.sockets(o)], times)


def series(p: Handshakes, name: str) -> Mapping[Hashable, Series]:
    return {None: Series(0, name, "latency", "ms", group=p.group)}


RUNNER = Runner(
    "handshake", "TCP handshakes with a port", Handshakes, validate, command, series, probes.read, own.health,
    protocol="TCP", own=True, timeout_ns=lambda _, o: o.timeout_ns, probes=lambda _: 1,
)  # fmt: skip
