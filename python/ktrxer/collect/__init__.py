# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of this host, read from the kernel without another program: for the metadata of a run, and for the runners of auxiliary
series."""

from __future__ import annotations

import contextlib
from typing import Any

from ktrxer.collect.answers import Ask
from ktrxer.collect.errors import StateError

__all__ = ["Ask", "StateError", "gather", "gather_elsewhere", "own_address"]


def gather(target: str | None = None, *, port: int = 0, full: bool = False, source: str | None = None) -> dict[str, Any]:
    """The state of this host, as JSON values. Private data only with `full`. `port`: of the target, for routes by port. `source`: the
    address that sends, for routes by source."""
    from ktrxer.collect import metadata

    return metadata.gather(target, port=port, full=full, source=source)


def gather_elsewhere(ask: Ask, target: str | None, *, full: bool = False) -> dict[str, Any]:
    """The same of a host in which `ask` runs commands."""
    from ktrxer.collect import elsewhere

    return elsewhere.gather(ask, target, full=full)


def own_address(target: str) -> str | None:
    """The source address of this host towards an address."""
    from ktrxer.collect.netlink import Netlink

    with contextlib.suppress(StateError, OSError), contextlib.closing(Netlink()) as netlink:
        return netlink.way_to(target).source
    return None
