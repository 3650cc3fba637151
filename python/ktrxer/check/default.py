# SPDX-License-Identifier: MIT OR Apache-2.0
"""The server of `ktrxer check` where the command line names none: the configuration's `host`, else its `nq`. The shipped `nq` is the server
of other people: a person agrees to it once, on a terminal, or by --yes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ktrxer import configured

SHIPPED = "shipped with ktrxer"  # CONFIG_SHIPPED_WORD in cli/runtime/config.h
OWNER = "the server that Apple runs for networkQuality"
OWN = "for a server of your own, start `ktrxer serve` there and give --server HOST, or set `nq` in the configuration"
NONE = "no load: name a server (--server HOST, --nq URL), or an URL of a web server (--download URL, --upload URL)"


class NotAgreed(Exception):
    """The use of this server needs an agreement, which is missing."""


@dataclass(frozen=True)
class Default:
    """One of the two is empty."""

    server: str  # HOST of `ktrxer serve`
    nq: str  # URL of a responsiveness server
    source: str  # file and line, or SHIPPED

    @property
    def stated(self) -> str:
        """The first line of the result."""
        name = self.server or urlsplit(self.nq).hostname or self.nq
        whose = f"{OWNER}; {OWN}" if self.source == SHIPPED else f"from {self.source}"
        return f"Server: {name}, {whose}."


def default() -> Default | None:
    """None: the configuration names no server, or its `nq` is empty."""
    host, nq = configured.value("check", "host"), configured.value("check", "nq")
    if host is not None:
        return Default(host.text, "", host.source)
    return Default("", nq.text, nq.source) if nq is not None and nq.text else None


def agree(found: Default, yes: bool) -> None:
    """NotAgreed if a person has to decide, and has not, or refuses."""
    if found.source != SHIPPED or yes or _remembered(found.nq):
        return
    host = urlsplit(found.nq).hostname
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotAgreed(f"no server is named, and {host} is {OWNER}: give --yes to use it; {OWN}")
    print(f"No server is named. {host} is {OWNER}.", file=sys.stderr)
    print("The loads send and receive as much as the line carries in 20 s a direction.", file=sys.stderr)
    print("The operator of the server gets the address of this host.", file=sys.stderr)
    print("Use the server, now and later? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotAgreed(f"not measured; {OWN}")
    _remember(found.nq)


def _file() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ktrxer" / "check-server"


def _remembered(url: str) -> bool:
    try:
        return _file().read_text(encoding="utf-8") == f"{url}\n"
    except (OSError, ValueError, RuntimeError):
        return False


def _remember(url: str) -> None:
    """A home that cannot be written is asked again."""
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        _file().write_text(f"{url}\n", encoding="utf-8")
    except (OSError, RuntimeError) as error:
        print(f"The answer is not kept: {error}", file=sys.stderr)
