# SPDX-License-Identifier: MIT OR Apache-2.0
"""This host, and its network namespaces."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from ktrxer.places.place import ClockOffset, PlaceError
from ktrxer.places.process import Process

NAMESPACES = Path("/run/netns")


class Local:
    shares_clock = True
    start_ns = 0  # a process starts within the time that each run has for it

    def __init__(self, name: str = "local", prefix: Sequence[str] = ()) -> None:
        self.name = name
        self._prefix = list(prefix)
        self._processes: list[Process] = []

    def start(self, argv: Sequence[str], *, guarded: bool = True, at_real_ns: int | None = None) -> Process:
        process = Process([*self._prefix, *argv], guarded=guarded, at_real_ns=at_real_ns)
        self._processes.append(process)
        return process

    def copy_in(self, source: Path, target: str) -> None:
        self._copy(source, Path(target))

    def copy_secret(self, source: Path) -> str:
        return str(source)

    def copy_out(self, source: str, target: Path) -> None:
        self._copy(Path(source), target)

    def _copy(self, source: Path, target: Path) -> None:
        try:
            shutil.copyfile(source, target)
        except OSError as error:
            raise PlaceError(f"{self.name}: {source} cannot be copied to {target}: {error.strerror}") from None

    def clock(self) -> ClockOffset:
        return ClockOffset(0, 0, time.time_ns())

    def loss(self) -> str | None:
        return None

    def close(self) -> None:
        for process in self._processes:
            with contextlib.suppress(OSError):
                process.close()


def namespace(name: str) -> Local:
    """A network namespace that has a name (`ip netns`). Its processes have the file system and the clocks of this host."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", name) or name in (".", ".."):
        raise PlaceError(f"netns:{name[:40]}: not a name of a network namespace")
    if not (NAMESPACES / name).exists():
        known = sorted(path.name for path in NAMESPACES.iterdir())[:10] if NAMESPACES.is_dir() else []
        raise PlaceError(f"netns:{name}: no such network namespace; {'there are ' + ', '.join(known) if known else 'there is none'}")
    if shutil.which("ip") is None:
        raise PlaceError(f"netns:{name}: the command `ip` (Debian: iproute2) is missing")
    return Local(f"netns:{name}", ["ip", "netns", "exec", name])
