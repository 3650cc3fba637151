# SPDX-License-Identifier: MIT OR Apache-2.0
"""The meaning of a Flent series: unit, direction, class, far end and parts, from its name and its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ktrxer.flent.document import Document

CLASSES = re.compile(r"\b(BE|BK|EF|CS[0-7]|AF[1-4][1-3]|LE)(?=\d*\b)")
PROTOCOLS = re.compile(r"\b(UDP|ICMP|TCP|HTTP|DNS)(?=6?\d*\b)")
COMPUTED = re.compile(r".* (sum|avg|total|totals|fairness)|.*induced delay")
EXTRA = re.compile(r"Ping \(ms\) \S+ (\S+) \(extra\)")
GROUPS = ("TCP upload", "TCP download", "Ping (ms)", "VoIP")
CALL_UNITS = {"delay": "ms", "jitter": "ms", "induced_delay": "ms", "rtt": "ms", "loss": "packets", "bitrate": "kbit/s"}
SUMS = {  # Flent's name of a sum: the names of its parts
    "TCP upload sum": r"TCP upload\b.*",
    "TCP upload avg": r"TCP upload\b.*",
    "TCP upload fairness": r"TCP upload\b.*",
    "TCP download sum": r"TCP download\b.*",
    "TCP download avg": r"TCP download\b.*",
    "TCP download fairness": r"TCP download\b.*",
    "TCP totals": r"TCP (up|down)load\b.*",
    "TCP total": r"TCP (up|down)load\b.*",
}


def is_computed(name: str) -> bool:
    return COMPUTED.fullmatch(name) is not None


def is_call(name: str, keys: Iterable[str]) -> bool:
    """Whether its samples are those of D-ITG: one-way delays of numbered packets with their size."""
    return name.startswith("VoIP") and {"val", "size"} <= set(keys)


def unit_of(document: Document, name: str) -> str:
    """The names of Flent's tests are more reliable than UNITS, which is "Kbps" for the delays of D-ITG and missing in old files."""
    parent, _, key = name.rpartition("::")
    if (parent or name).startswith("VoIP"):
        return CALL_UNITS.get(key, "ms" if not parent else "")
    if name.endswith("fairness"):
        return ""
    if name.startswith(("Ping (ms)", "HTTP latency")) or name.endswith("induced delay"):
        return "ms"
    unit = document.series_meta(name).get("UNITS")
    if isinstance(unit, str) and unit:
        return unit[:40]
    return "ms" if name.startswith(("Ping", "UDP RTT")) else "Mbits/s" if name.startswith(("TCP", "UDP ")) else ""


def direction_of(document: Document, name: str, unit: str) -> Any:
    low = name.lower()
    if re.search(r"\bupload\b", low):
        return "up"
    if re.search(r"\bdownload\b", low):
        return "down"
    if not name.startswith("TCP ") or unit != "Mbits/s" or is_computed(name):
        return None
    command = document.series_meta(name).get("COMMAND")  # `TCP cubic` of ledbat_cubic_1, and others
    return "down" if isinstance(command, str) and "TCP_MAERTS" in command else "up"


def class_of(name: str) -> str | None:
    found = CLASSES.search(name)
    return found[1] if found else None


def group_of(name: str) -> str | None:
    return next((one for one in GROUPS if name.startswith(one)), None)


def protocol_of(name: str) -> str | None:
    """The protocol of the probes of a series. None for a series of other values."""
    found = PROTOCOLS.search(name.removeprefix("Ping (ms)")) if name.startswith("Ping") else None
    return found[1] if found else None


def _hosts(document: Document) -> list[str]:
    hosts = document.metadata.get("HOSTS")
    named = [one for one in hosts if isinstance(one, str) and one] if isinstance(hosts, list) else []
    host = document.text("HOST")
    return list(dict.fromkeys(named or ([host] if host else [])))


def targets_of(document: Document) -> list[str]:
    """The hosts of the test, and those of its additional pings."""
    extra = [found[1] for name in document.raw if (found := EXTRA.fullmatch(name))]
    return list(dict.fromkeys([*_hosts(document), *extra]))


def host_of(document: Document, name: str) -> str | None:
    """The far end of a series; None where there are several and neither its name nor its command has one of them."""
    if found := EXTRA.fullmatch(name):
        return found[1]
    hosts = _hosts(document)
    if len(hosts) < 2:
        return hosts[0] if hosts else None
    words = name.split()
    command = document.series_meta(name).get("COMMAND")
    for text in (words[-1:], words, command.split() if isinstance(command, str) else []):
        for host in sorted(hosts, key=len, reverse=True):
            if host in text:
                return host
    return None


def complete(document: Document, name: str, pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a sum at which each part has a value. Flent adds those parts that have one, so its sum is too
    small where reports are rare."""
    pattern = SUMS.get(name)
    if pattern is None:
        return pairs
    parts = [
        grid for part, grid in document.results.items()
        if re.fullmatch(pattern, part) and not is_computed(part) and "::tcp_" not in part
    ]  # fmt: skip
    known = {x for i, x in enumerate(document.x) if all(grid[i] is not None for grid in parts)}
    kept = [(x, y) for x, y in pairs if x in known]
    if len(kept) < len(pairs):
        document.notes.append(f"{name}: {len(pairs) - len(kept)} of {len(pairs)} points left out, because a part has no value there")
    return kept
