# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of this host, read from the kernel without another program: for the metadata of a run, and for the runners of auxiliary
series."""

from __future__ import annotations

from typing import Any

from ktrxer.collect.errors import StateError

__all__ = ["StateError", "gather"]


def gather(target: str | None = None, *, port: int = 0, full: bool = False) -> dict[str, Any]:
    """The state of this host, as JSON values. Private data only with `full`. `port`: of the target, for routes by port."""
    from ktrxer.collect import metadata

    return metadata.gather(target, port=port, full=full)
