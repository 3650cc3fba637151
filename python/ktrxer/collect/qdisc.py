# SPDX-License-Identifier: MIT OR Apache-2.0
"""The counters of a device's qdiscs, by netlink."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from ktrxer.collect.collector import CollectorError, Sample
from ktrxer.collect.netlink import Netlink, Qdisc
from ktrxer.store.meta import Series

INTERVAL_NS = 100_000_000
QDISCS_LIMIT = 16  # of one device; of more, as with a device of many queues, only the root is sampled
COUNTED = ("bytes", "packets", "drops", "overlimits", "requeues", "backlog_bytes", "backlog_packets", "marks")


class QdiscCollector:
    """The qdiscs of one device; each is a series. A qdisc that is removed gives no more samples; a new one is not sampled."""

    def __init__(self, device: str, interval_ns: int = INTERVAL_NS) -> None:
        self.device, self.interval_ns = device, interval_ns
        self.name = f"qdiscs of {device}"
        self._netlink: Netlink | None = None
        self._index = 0
        self._numbers: dict[tuple[int, int, str], int] = {}

    def open(self) -> Sequence[Series]:
        try:
            self._index = socket.if_nametoindex(self.device)
        except OSError:
            raise CollectorError(f"no device {self.device!r} here") from None
        self._netlink = Netlink()
        try:
            found = [one for one in self._netlink.qdiscs(self._index) if one.kind not in ("", "noqueue", "ingress", "clsact")]
            if not found:
                raise CollectorError(f"{self.device} has no queue (noqueue): there is nothing to count")
        except CollectorError:
            self.close()
            raise
        if len(found) > QDISCS_LIMIT:
            found = found[:1]
        self._numbers = {_key(one): number for number, one in enumerate(found)}
        return [self._series(one, found) for one in found]

    def _series(self, one: Qdisc, found: list[Qdisc]) -> Series:
        name = f"qdisc {self.device} {one.name}"
        if sum(other.name == one.name for other in found) > 1:  # a device with several queues: their qdiscs have no handles
            name += f" at {one.parent >> 16:x}:{one.parent & 0xFFFF:x}"
        return Series(0, name, "qdisc", "", group=f"qdisc {self.device}")

    def sample(self) -> Sequence[Sample]:
        if self._netlink is None:
            raise CollectorError(f"{self.name}: not open")
        now = time.monotonic_ns()
        found = self._netlink.qdiscs(self._index)
        numbered = ((self._numbers.get(_key(one)), one) for one in found)
        samples = [Sample(number, {key: getattr(one, key) for key in COUNTED}, now) for number, one in numbered if number is not None]
        if not samples:
            raise CollectorError(f"{self.name}: they were removed")
        return samples

    def close(self) -> None:
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None


def _key(one: Qdisc) -> tuple[int, int, str]:
    return one.handle, one.parent, one.kind
