# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two hosts in network namespaces, joined by a veth pair. They are removed in any case; the next process removes those of a killed process.

a0 10.K.0.1/24 -------- b0 10.K.0.2/24
   fd00:K::1               fd00:K::2
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from ktrxer_lab import namespaces

PREFIX = "ktx"
_NAME = re.compile(rf"{PREFIX}-(\d+)-\d+-[a-z0-9]+")
_serial = count()


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _sh(lines: Iterable[str]) -> None:
    done = subprocess.run(["sh", "-c", namespaces.script(lines)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().removeprefix("topology: "))


def new_name(label: str) -> str:
    """A name for a namespace. It contains the number of this process, from which sweep() finds the owner."""
    return f"{PREFIX}-{os.getpid()}-{next(_serial)}-{label}"


def why_not() -> str | None:
    """The reason why no namespace can be created here; None if it can."""
    name = new_name("try")
    try:
        _ip("netns", "add", name)
    except (RuntimeError, OSError) as error:
        return f"no network namespaces ({error}): run under scripts/netns-root"
    _ip("netns", "del", name)
    return None


def sweep() -> list[str]:
    """Remove the namespaces of processes that have ended."""
    stale = []
    for line in _ip("netns", "list").splitlines():
        match = _NAME.match(line)
        if match and not Path(f"/proc/{match[1]}").exists():
            stale.append(match[0])
            _ip("netns", "del", match[0])
    return stale


@dataclass
class Netns:
    """One host."""

    label: str
    name: str = ""
    address: str = ""
    address6: str = ""
    device: str = ""
    mac: str = ""
    _children: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = self.name or new_name(self.label)

    def __enter__(self) -> Netns:
        try:
            _sh([namespaces.host(self.name), *namespaces.settle(self.name)])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
            with contextlib.suppress(ValueError):  # the pipes are already closed
                child.communicate()
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True)

    def sysctl(self, path: str, value: object) -> None:
        """Set a value; `path` is relative to /proc/sys/net. A kernel without IPv6 does not have its files."""
        self.run(["sh", "-c", f"[ ! -e /proc/sys/net/{path} ] || echo {value} > /proc/sys/net/{path}"])

    def ip(self, *arguments: str) -> str:
        return _ip("-n", self.name, *arguments)

    def ip_json(self, *arguments: str) -> Any:
        return json.loads(self.ip("-j", *arguments) or "[]")

    def command(self, command: Sequence[str | Path]) -> list[str]:
        return ["ip", "netns", "exec", self.name, *map(str, command)]

    def run(
        self, command: Sequence[str | Path], *, timeout: float = 60, check: bool = True, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self.command(command), capture_output=True, text=True, timeout=timeout, **more)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def popen(self, command: Sequence[str | Path], **more: Any) -> subprocess.Popen[str]:
        """Start a command. It is killed with the namespace at the latest. The pid is the command's own, because `ip netns exec` execs the
        command."""
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        child: subprocess.Popen[str] = subprocess.Popen(self.command(command), text=True, **pipes)
        self._children.append(child)
        return child

    def counters(self, device: str = "") -> dict[str, dict[str, int]]:
        """{"rx": {"packets": ...}, "tx": ...} of a device, from its driver's counters."""
        (link,) = self.ip_json("-s", "link", "show", "dev", device or self.device)
        counters: dict[str, dict[str, int]] = link["stats64"]
        return counters


def join(a: Netns, b: Netns, *, net: int = 77, devices: tuple[str, str] = ("a0", "b0"), mtu: int = 1500) -> None:
    """Connect two hosts by a veth pair. Their fields hold the names and addresses of the first pair."""
    lines = [namespaces.cable("the veth pair", (a.name, devices[0]), (b.name, devices[1]))]
    for host, device, number in ((a, devices[0], 1), (b, devices[1], 2)):
        address, address6 = f"10.{net}.0.{number}", f"fd00:{net}::{number}"
        lines += namespaces.batch(device, host.name, (f"link set {device} mtu {mtu} up", f"address add {address}/24 dev {device}"))
        lines += namespaces.batch6(device, host.name, (f"address add {address6}/64 dev {device} nodad",))
        if not host.device:
            host.device, host.address, host.address6 = device, address, address6
    _sh(lines)
    for host in (a, b):
        host.mac = host.mac or host.ip_json("link", "show", "dev", host.device)[0]["address"]


@contextlib.contextmanager
def pair(**more: Any) -> Iterator[tuple[Netns, Netns]]:
    with Netns("a") as a, Netns("b") as b:
        join(a, b, **more)
        yield a, b
