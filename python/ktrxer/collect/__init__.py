# SPDX-License-Identifier: MIT OR Apache-2.0
"""Data that are recorded beside a measurement: periodic counters (collectors), and the state of hosts before and after it (metadata)."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from ktrxer.collect.answers import Ask
from ktrxer.collect.collector import Collector, CollectorError, Sample

__all__ = ["Ask", "Collector", "CollectorError", "Sample", "default_collectors", "gather", "gather_elsewhere", "own_address"]


def default_collectors(target: str) -> list[Collector]:
    """The collectors of every run: the queues of the egress device towards an address, and this host's CPUs."""
    from ktrxer.collect.netlink import Netlink
    from ktrxer.collect.processor import ProcessorCollector
    from ktrxer.collect.qdisc import QdiscCollector

    found: list[Collector] = []
    with contextlib.suppress(CollectorError, OSError):
        netlink = Netlink()
        try:
            device = socket.if_indextoname(netlink.way_to(target).index)
            if any(one.kind not in ("", "noqueue") for one in netlink.qdiscs(socket.if_nametoindex(device))):
                found.append(QdiscCollector(device))
        finally:
            netlink.close()
    return [*found, ProcessorCollector()]


def gather(target: str | None = None, *, port: int = 0, full: bool = False) -> dict[str, Any]:
    """The state of this host, as JSON values. Private data only with `full`. `port`: of the target, for routes by port."""
    from ktrxer.collect import metadata

    return metadata.gather(target, port=port, full=full)


def gather_elsewhere(ask: Ask, target: str | None, *, full: bool = False) -> dict[str, Any]:
    """The same of a host in which `ask` runs commands."""
    from ktrxer.collect import elsewhere

    return elsewhere.gather(ask, target, full=full)


def own_address(target: str) -> str | None:
    """The source address of this host towards an address."""
    from ktrxer.collect.netlink import Netlink

    with contextlib.suppress(CollectorError, OSError), contextlib.closing(Netlink()) as netlink:
        return netlink.way_to(target).source
    return None
