# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stations of WiFi devices: signal, bit rates, retries, airtime. By nl80211 here, by `iw DEVICE station dump` elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ktrxer.collect.wifi import STATIONS_MOST, Station, Stations
from ktrxer.runners import state
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, Times, Tool, ends_well
from ktrxer.runners.samples import Samples
from ktrxer.runners.state import Frame

RECORDED_MOST = 64  # stations of one process: the first ones
UNITS = {
    "signal": "dBm", "signal_avg": "dBm", "tx_bitrate": "Mbit/s", "rx_bitrate": "Mbit/s", "expected_throughput": "Mbit/s",
    "rx_bytes": "bytes", "tx_bytes": "bytes", "rx_duration": "us", "tx_duration": "us",
}  # fmt: skip
GAUGES = ("signal", "signal_avg", "tx_bitrate", "rx_bitrate", "expected_throughput")
# $1: the device, or empty for all.
BODY = (
    'if [ -n "$1" ]; then iw dev "$1" station dump; '
    'else for at in /sys/class/net/*/phy80211; do at=${at%/phy80211}; iw dev "${at##*/}" station dump || exit; done; fi'
)  # fmt: skip
_STATION = re.compile(r"Station ([0-9a-f:]{17}) \(on (\S{1,15})\)")
# The lines of iw by the names of the kernel. A signal is followed by those of the antennas.
_LINES = {
    "signal": "signal", "signal avg": "signal_avg", "tx bitrate": "tx_bitrate", "rx bitrate": "rx_bitrate",
    "expected throughput": "expected_throughput", "rx bytes": "rx_bytes", "tx bytes": "tx_bytes", "rx packets": "rx_packets",
    "tx packets": "tx_packets", "tx retries": "tx_retries", "tx failed": "tx_failed", "beacon loss": "beacon_loss",
    "rx drop misc": "rx_drop_misc", "rx duration": "rx_duration", "tx duration": "tx_duration",
}  # fmt: skip
_VALUE = re.compile(r"\s*(-?\d{1,19}(?:\.\d{1,9})?)(?![\d.])")


@dataclass(frozen=True, kw_only=True)
class Wifi(Parameters):
    interval_ns: int = 200 * MS
    device: str = ""  # empty: all WiFi devices
    addresses: bool = False  # name the stations by their link addresses, not by numbers


def validate(p: Wifi) -> None:
    state.check_interval(p)
    state.check_device(p.device)


def command(p: Wifi, _: Options, times: Times) -> list[str]:
    return state.loop(BODY, p.interval_ns, times, p.device)


def add(p: Wifi, samples: Samples, at_ns: int, found: Iterable[Station]) -> None:
    for one in found:
        key = (one.device, one.mac)
        number = samples.number_of(key, RECORDED_MOST, at_ns, "stations")
        if not number:
            continue
        title = f"{samples.name} {one.device} station {one.mac if p.addresses else number}"
        for name, value in one.values.items():
            row = samples.gauge if name in GAUGES else samples.changing
            row((key, name), at_ns, value, f"{title} {name}", UNITS.get(name, ""), f"{samples.name} {one.device}")


def parse(text: str) -> list[Station]:
    """The output of `iw dev DEVICE station dump`. Lines that are not read are left out."""
    found: list[Station] = []
    for line in text.splitlines():
        begin = _STATION.match(line)
        if begin is not None:
            if len(found) >= STATIONS_MOST:
                break
            found.append(Station(begin[2], begin[1]))
            continue
        label, colon, rest = line.strip().partition(":")
        value = _VALUE.match(rest)
        if found and colon and label in _LINES and value is not None:
            found[-1].values[_LINES[label]] = _throughput(value[1]) if label == "expected throughput" else float(value[1])
    return found


def _throughput(text: str) -> float:
    """iw divides the kernel's kbit/s by 1.024, and prints the thousandths without leading zeros: 33 kbit/s are `0.32Mbps`."""
    whole, _, thousandths = text.partition(".")
    return math.ceil((int(whole) * 1000 + int(thousandths or 0)) * 1.024) / 1000


def read(p: Wifi, samples: Samples, frame: Frame) -> None:
    add(p, samples, frame.at_ns, parse(frame.text))


class Here:
    def __init__(self, p: Wifi) -> None:
        self._p = p
        with state.refusals():
            self._stations = Stations()
        there = self._stations.devices
        if not there or (p.device and p.device not in there):
            self._stations.close()
            what = f"{p.device} is not a WiFi device of this host" if p.device else "this host has no WiFi device"
            raise RunnerError(what + (f"; there are {', '.join(list(there)[:10])}" if there else ""))

    def sample(self, samples: Samples, at_ns: int) -> None:
        with state.refusals():
            for device in [self._p.device] if self._p.device else self._stations.devices:
                add(self._p, samples, at_ns, self._stations.stations(device))

    def close(self) -> None:
        self._stations.close()


RUNNER = Runner(
    "wifi", "stations of WiFi devices: signal, rates, retries, airtime", Wifi, validate, command, state.no_series,
    state.by_frame(read), ends_well, tool=Tool("iw", "iw", ("--version",), r"iw version (\d+(?:\.\d+)*)"), auxiliary=True,
    here=lambda p, _: Here(p),
)  # fmt: skip
