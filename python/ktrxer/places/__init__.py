# SPDX-License-Identifier: MIT OR Apache-2.0
"""Places: where a process of a run is started. `open_place(TEXT)` opens one by the text of a recipe.

    local            this host
    netns:NAME       a network namespace of this host
    ssh:[USER@]HOST  a host that `ssh` reaches without a question ($KTRXER_SSH: another command than `ssh`)
"""

from __future__ import annotations

from ktrxer.places.place import ClockOffset, Done, Place, PlaceError, run
from ktrxer.places.process import Process

LOCAL = "local"
KINDS = "local, netns:NAME, ssh:[USER@]HOST"


def check_name(text: str) -> None:
    kind, _, rest = text.partition(":")
    if text != LOCAL and not (kind in ("netns", "ssh") and rest):
        raise PlaceError(f"{text[:60]!r} is not a place; there are {KINDS}")


def is_here(text: str) -> bool:
    """The place has the files of this host."""
    return text.partition(":")[0] != "ssh"


def open_place(text: str) -> Place:
    """Connects where the place needs a connection. PlaceError when it cannot be used."""
    check_name(text)
    kind, _, rest = text.partition(":")
    if kind == "ssh":
        from ktrxer.places.ssh import Ssh

        return Ssh(rest)
    from ktrxer.places.local import Local, namespace

    return namespace(rest) if kind == "netns" else Local()


__all__ = ["LOCAL", "ClockOffset", "Done", "Place", "PlaceError", "Process", "check_name", "is_here", "open_place", "run"]
