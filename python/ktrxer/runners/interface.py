# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counters of network devices: by netlink (rtnl_link_stats64) here, from /proc/net/dev elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ktrxer.collect.netlink import Netlink
from ktrxer.runners import state
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, Times, ends_well
from ktrxer.runners.samples import NotUnderstood, Samples
from ktrxer.runners.state import Frame

PATH = "/proc/self/net/dev"
DEVICES_MOST = 64
# The columns of /proc/net/dev, by the names of rtnl_link_stats64; a column that sums several of them has none.
COLUMNS = (
    "rx_bytes", "rx_packets", "rx_errors", "", "rx_fifo_errors", "", "", "multicast",
    "tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo_errors", "collisions", "", "",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Devices(Parameters):
    interval_ns: int = 200 * MS
    device: str = ""  # empty: all


def validate(p: Devices) -> None:
    state.check_interval(p)
    state.check_device(p.device)


def command(p: Devices, _: Options, times: Times) -> list[str]:
    return state.loop('cat "$1"', p.interval_ns, times, PATH)


def add(p: Devices, samples: Samples, at_ns: int, found: Iterable[tuple[str, Mapping[str, int]]]) -> None:
    there = False
    for number, (device, counters) in enumerate(found):
        if number >= DEVICES_MOST or (p.device and device != p.device):
            continue
        there = True
        for name, value in counters.items():
            unit = "bytes" if name.endswith("_bytes") else ""
            samples.changing((device, name), at_ns, value, f"{samples.name} {device} {name}", unit, f"{samples.name} {device}")
    if not there:
        raise NotUnderstood(f"no device {p.device}" if p.device else "no device")


def parse(text: str) -> Iterable[tuple[str, dict[str, int]]]:
    """The lines of /proc/net/dev below its two lines of titles."""
    for line in text.splitlines():
        device, colon, rest = line.rpartition(":") if line.count(":") == 1 else line.partition(": ")
        numbers = [state.whole(word) for word in rest.split()]
        if not colon or not device.strip() or len(numbers) < len(COLUMNS) or None in numbers:
            continue
        yield device.strip(), {name: value for name, value in zip(COLUMNS, numbers, strict=False) if name and value is not None}


def read(p: Devices, samples: Samples, frame: Frame) -> None:
    add(p, samples, frame.at_ns, parse(frame.text))


class Links:
    def __init__(self, p: Devices) -> None:
        self._p = p
        with state.refusals():
            self._netlink = Netlink()
            devices = [name for name, _ in self._netlink.counters()]
        if p.device and p.device not in devices:
            self._netlink.close()
            raise RunnerError(f"no device {p.device!r} here; there are {', '.join(devices[:10])}")

    def sample(self, samples: Samples, at_ns: int) -> None:
        with state.refusals():
            add(self._p, samples, at_ns, self._netlink.counters())

    def close(self) -> None:
        self._netlink.close()


RUNNER = Runner(
    "interface", "counters of network devices", Devices, validate, command, state.no_series, state.by_frame(read), ends_well,
    auxiliary=True, here=lambda p, _: Links(p),
)  # fmt: skip
