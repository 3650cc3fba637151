# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stations of the WiFi devices of this host by nl80211 (generic netlink). Numbers are those of <linux/nl80211.h>."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field

from ktrxer.collect.errors import StateError
from ktrxer.collect.netlink import NLM_F_DUMP, Netlink
from ktrxer.collect.queue_stats import ATTRIBUTE, attributes

NETLINK_GENERIC = 16
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
CMD_GET_INTERFACE, CMD_GET_STATION = 5, 17
ATTR_IFINDEX, ATTR_IFNAME, ATTR_MAC, ATTR_STA_INFO = 3, 4, 6, 21
RATE_BITRATE, RATE_BITRATE32 = 1, 5  # in 100 kbit/s
GENERIC = struct.Struct("=BBxx")
STATIONS_MOST = 256

# Numbers of enum nl80211_sta_info: name, signed.
_NUMBERS: dict[int, tuple[str, bool]] = {
    7: ("signal", True), 13: ("signal_avg", True), 9: ("rx_packets", False), 10: ("tx_packets", False), 11: ("tx_retries", False),
    12: ("tx_failed", False), 18: ("beacon_loss", False), 23: ("rx_bytes", False), 24: ("tx_bytes", False),
    28: ("rx_drop_misc", False), 32: ("rx_duration", False), 39: ("tx_duration", False),
}  # fmt: skip
_SHORT = {2: "rx_bytes", 3: "tx_bytes"}  # of 32 bits, where the driver has no other
_RATES = {8: "tx_bitrate", 14: "rx_bitrate"}
EXPECTED_THROUGHPUT = 27  # in kbit/s


@dataclass(frozen=True)
class Station:
    """`values`: signals in dBm, rates in Mbit/s, durations (airtime) in microseconds; the others are counts."""

    device: str
    mac: str
    values: dict[str, float] = field(default_factory=dict)


class Stations:
    def __init__(self) -> None:
        self._netlink = Netlink(NETLINK_GENERIC)
        try:
            self._family = self._find("nl80211")
            self.devices = self._interfaces()
        except StateError:
            self._netlink.close()
            raise

    def close(self) -> None:
        self._netlink.close()

    def _find(self, name: str) -> int:
        text = name.encode() + b"\0"
        body = GENERIC.pack(CTRL_CMD_GETFAMILY, 1) + _attribute(CTRL_ATTR_FAMILY_NAME, text)
        try:
            for _, message in self._netlink.ask(GENL_ID_CTRL, 0, body):
                value = dict(attributes(message[GENERIC.size :])).get(CTRL_ATTR_FAMILY_ID)
                if value is not None and len(value) == 2:
                    return int.from_bytes(value, sys.byteorder)
        except StateError:
            pass
        raise StateError("this kernel has no WiFi (nl80211)")

    def _interfaces(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for _, message in self._netlink.ask(self._family, NLM_F_DUMP, GENERIC.pack(CMD_GET_INTERFACE, 0)):
            values = dict(attributes(message[GENERIC.size :]))
            name, index = values.get(ATTR_IFNAME), values.get(ATTR_IFINDEX)
            if name is not None and index is not None and len(index) == 4:
                found[bytes(name).rstrip(b"\0").decode("utf-8", "replace")] = int.from_bytes(index, sys.byteorder)
        return found

    def stations(self, device: str) -> list[Station]:
        found: list[Station] = []
        body = GENERIC.pack(CMD_GET_STATION, 0) + _attribute(ATTR_IFINDEX, struct.pack("=I", self.devices[device]))
        for _, message in self._netlink.ask(self._family, NLM_F_DUMP, body):
            station = parse(device, message[GENERIC.size :])
            if station is not None and len(found) < STATIONS_MOST:
                found.append(station)
        return found


def _attribute(kind: int, value: bytes) -> bytes:
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def parse(device: str, data: memoryview) -> Station | None:
    """The attributes of one station; None if they have no link address."""
    top = dict(attributes(data))
    mac, info = top.get(ATTR_MAC), dict(attributes(top.get(ATTR_STA_INFO, memoryview(b""))))
    if mac is None or len(mac) != 6:
        return None
    values: dict[str, float] = {}
    for number, value in info.items():
        if number in _NUMBERS and len(value) in (1, 2, 4, 8):
            name, signed = _NUMBERS[number]
            values[name] = int.from_bytes(value, sys.byteorder, signed=signed)
        elif number in _RATES and (rate := _rate(value)) is not None:
            values[_RATES[number]] = rate
        elif number == EXPECTED_THROUGHPUT and len(value) == 4:
            values["expected_throughput"] = int.from_bytes(value, sys.byteorder) / 1000
    for number, name in _SHORT.items():
        if name not in values and len(info.get(number, b"")) == 4:
            values[name] = int.from_bytes(info[number], sys.byteorder)
    return Station(device, bytes(mac).hex(":"), values)


def _rate(data: memoryview) -> float | None:
    values = dict(attributes(data))
    for number, size in ((RATE_BITRATE32, 4), (RATE_BITRATE, 2)):
        value = values.get(number)
        if value is not None and len(value) == size:
            return int.from_bytes(value, sys.byteorder) / 10
    return None
