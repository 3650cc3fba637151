# SPDX-License-Identifier: MIT OR Apache-2.0
"""Data of a driver, by the ethtool ioctl: its name and its offloads."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946
GDRVINFO, GFLAGS = 0x3, 0x25
# ethtool_value commands of include/uapi/linux/ethtool.h.
OFFLOADS = {"rx-checksum": 0x14, "tx-checksum": 0x16, "scatter-gather": 0x18, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}
LRO_FLAG = 1 << 15


def _ioctl(device: str, data: bytearray) -> bytearray | None:
    """The answer; None if the driver does not support the request."""
    buffer = ctypes.create_string_buffer(bytes(data), len(data))
    request = struct.pack("16sP16x", device.encode()[:15], ctypes.addressof(buffer))
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket.fileno(), SIOCETHTOOL, request)
        return bytearray(buffer.raw)
    return None


def _value(device: str, command: int) -> int | None:
    answer = _ioctl(device, bytearray(struct.pack("=II", command, 0)))
    return None if answer is None else int(struct.unpack_from("=I", answer, 4)[0])


def driver(device: str) -> dict[str, str]:
    answer = _ioctl(device, bytearray(struct.pack("=I", GDRVINFO)) + bytearray(192))
    if answer is None:
        return {}
    words = {"driver": answer[4:36], "version": answer[36:68], "firmware": answer[68:100]}
    return {key: text for key, raw in words.items() if (text := raw.partition(b"\0")[0].decode(errors="replace").strip())}


def offloads(device: str) -> dict[str, bool]:
    found = {name: bool(value) for name, command in OFFLOADS.items() if (value := _value(device, command)) is not None}
    flags = _value(device, GFLAGS)
    return found | ({"lro": bool(flags & LRO_FLAG)} if flags is not None else {})
