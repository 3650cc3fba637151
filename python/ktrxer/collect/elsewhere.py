# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of a host on which only commands can be run: another host over ssh, or a network namespace.

The commands are those of the system (`ip`, `tc`, `ethtool`, `iw`, `uname`, `cat`, `grep`). Each of them may be missing. Their output is of
another host, so each value is bounded, and a value of another kind is left out. The two tiers of privacy are those of metadata.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from ktrxer.collect.answers import VALUE_LIMIT, Ask, fields, present, wifi
from ktrxer.collect.metadata import QDISCS_LIMIT, SECRETS, SYSCTLS_LIMIT

MEMBERS, DEPTH = 64, 10  # of what a command prints, at most
VALUES_MOST = 10_000  # of a host; a text counts as one value for each TEXT_OF_VALUE characters
TEXT_OF_VALUE = 60
DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,15}")
ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}")
# grep prints the names with the values. The patterns leave out tcp_fastopen_key, which is a secret.
SYSCTLS = (
    "cd /proc/sys && grep -H '' net/core/default_qdisc net/core/netdev_budget net/core/netdev_max_backlog net/core/optmem_max "
    "net/core/[rw]mem_default net/core/[rw]mem_max net/ipv4/tcp_[!f]* net/ipv4/tcp_f[!a]* net/ipv4/tcp_fastopen net/ipv4/tcp_fack "
    "net/ipv4/udp_mem 2>/dev/null; true"
)
# Names of ethtool -k, and those of collect/ethtool.py.
OFFLOADS = {
    "rx-checksumming": "rx-checksum", "tx-checksumming": "tx-checksum", "scatter-gather": "scatter-gather",
    "tcp-segmentation-offload": "tso", "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro", "large-receive-offload": "lro",
}  # fmt: skip
COALESCING = ("rx-usecs", "rx-frames", "tx-usecs", "tx-frames")
TOOLS = {"iproute2": ("ip", "-V"), "ethtool": ("ethtool", "--version"), "iw": ("iw", "--version"), "ktrxer": ("ktrxer", "--version")}
COUNTERS = ("bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen")
NO_PARAMETERS = {"kind", "handle", "parent", "root", "refcnt", "options", "dev", "ingress", "deleted", *COUNTERS}


def gather(ask: Ask, target: str | None, *, full: bool = False) -> dict[str, Any]:
    """The state of the host, and of its egress device towards an address; without an address, towards the default gateway."""
    found: dict[str, Any] = {
        "kernel": _kernel(ask), "cpu": _cpu(ask), "clock": _clock(ask), "tools": _tools(ask), "sysctls": _sysctls(ask),
    }  # fmt: skip
    route = _route(ask, target)
    device = route.get("dev")
    if isinstance(device, str) and DEVICE.fullmatch(device):
        found["egress"] = _egress(ask, device, full) | (
            present(source=route.get("prefsrc"), nexthop=route.get("gateway"), target=target) if full else {}
        )
    if full:
        found["host"] = _line(ask, ["uname", "-n"])
        found["addresses"] = _addresses(ask)
        found["routes"] = _routes(ask)
    made: dict[str, Any] = bounded({key: value for key, value in found.items() if value})
    return made


def bounded(value: Any) -> Any:
    """JSON of another host, in a size and with numbers that can be stored. A value that does not fit is replaced by None."""
    return _bounded(value, DEPTH, [VALUES_MOST])


def _bounded(value: Any, depth: int, left: list[int]) -> Any:
    """`left`: the number of values that still fit."""
    left[0] -= 1 + (len(value) // TEXT_OF_VALUE if isinstance(value, str) else 0)
    if left[0] < 0 or (depth == 0 and isinstance(value, dict | list)):
        return None
    if isinstance(value, dict):
        return {str(key)[:60]: _bounded(one, depth - 1, left) for key, one in list(value.items())[:SYSCTLS_LIMIT]}
    if isinstance(value, list):
        return [_bounded(one, depth - 1, left) for one in value[:QDISCS_LIMIT]]
    if isinstance(value, str):
        return value[:VALUE_LIMIT]
    if isinstance(value, int):  # a truth value, too
        return value if -(2**63) <= value < 2**63 else None
    return value if isinstance(value, float) and math.isfinite(value) else None


# ------------------------------------------------------------------------------------------------------------ the host


def _line(ask: Ask, argv: Sequence[str]) -> str | None:
    stated = ask(argv)
    return stated.strip()[:VALUE_LIMIT] if stated is not None else None


def _json(ask: Ask, argv: Sequence[str]) -> list[dict[str, Any]]:
    """The objects that a command prints; none if it prints anything else, as an old iproute2 without -j does."""
    stated = ask(argv)
    try:
        made = json.loads(stated) if stated else []
    except (ValueError, RecursionError):
        return []
    return [one for one in made[:QDISCS_LIMIT] if isinstance(one, dict)] if isinstance(made, list) else []


def _kernel(ask: Ask) -> dict[str, Any]:
    words = (_line(ask, ["uname", "-srm"]) or "").split()
    name, release, machine = words if len(words) == 3 else (None, None, None)
    return present(name=name, release=release, machine=machine, version=_line(ask, ["uname", "-v"]))


def _cpu(ask: Ask) -> dict[str, Any]:
    info = (ask(["cat", "/proc/cpuinfo"]) or "")[:65536]
    model = re.search(r"^(?:model name|cpu model|Processor|Hardware)[ \t]*:[ \t]*(.{1,200})$", info, re.MULTILINE)
    load = re.match(r"([\d.]+) ([\d.]+) ([\d.]+) ", _line(ask, ["cat", "/proc/loadavg"]) or "")
    governor = _line(ask, ["cat", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"])
    return present(
        model=model[1].strip() if model else None, usable=_whole(_line(ask, ["nproc"])), governor=governor,
        load=[float(one) for one in load.groups() if one.count(".") == 1] if load else None,
    )  # fmt: skip


def _clock(ask: Ask) -> dict[str, Any]:
    return present(source=_line(ask, ["cat", "/sys/devices/system/clocksource/clocksource0/current_clocksource"]))


def _tools(ask: Ask) -> dict[str, str]:
    found = {name: re.search(r"\d+(?:\.\d+)+", _line(ask, argv) or "") for name, argv in TOOLS.items()}
    return {name: version[0] for name, version in found.items() if version}


def _sysctls(ask: Ask) -> dict[str, str]:
    lines = fields(ask(["sh", "-c", SYSCTLS]))
    named = {name.replace("/", "."): " ".join(value.split()) for name, value in lines.items()}
    return {name: value for name, value in list(named.items())[:SYSCTLS_LIMIT] if name.startswith("net.") and name not in SECRETS}


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None


# --------------------------------------------------------------------------------------------------- the egress device


def _route(ask: Ask, target: str | None) -> dict[str, Any]:
    if target is None or not ADDRESS.fullmatch(target):
        found = _json(ask, ["ip", "-j", "route", "show", "default"])
    else:
        found = _json(ask, ["ip", "-j", "route", "get", target])
    return found[0] if found else {}


def _egress(ask: Ask, device: str, full: bool) -> dict[str, Any]:
    driver = fields(ask(["ethtool", "-i", device]))
    links = _json(ask, ["ip", "-j", "-d", "link", "show", "dev", device])
    link = links[0] if links else {}
    speed, duplex = (_line(ask, ["cat", f"/sys/class/net/{device}/{name}"]) for name in ("speed", "duplex"))
    kind = link.get("linkinfo")
    return present(
        device=device,
        driver=driver.get("driver") or (kind.get("info_kind") if isinstance(kind, dict) else None),
        driver_version=driver.get("version"),
        firmware=driver.get("firmware-version"),
        link=present(
            mtu=link.get("mtu"), qlen=link.get("txqlen"), state=link.get("operstate"), queues=link.get("num_tx_queues"),
            speed_mbps=_whole(speed), duplex=duplex,
        ),
        offloads=_offloads(ask(["ethtool", "-k", device])),
        coalescing=_coalescing(ask(["ethtool", "-c", device])),
        qdiscs=[_qdisc(one) for one in _json(ask, ["tc", "-j", "-s", "-d", "qdisc", "show", "dev", device])],
        wifi=wifi(ask, device, full),
        mac=link.get("address") if full else None,
    )  # fmt: skip


def _offloads(text: str | None) -> dict[str, bool]:
    """`tcp-segmentation-offload: off [fixed]`"""
    lines = fields(text)
    return {short: lines[name].split()[0] == "on" for name, short in OFFLOADS.items() if lines.get(name)}


def _coalescing(text: str | None) -> dict[str, int]:
    lines = fields(text)
    return {name: value for name in COALESCING if (value := _whole(lines.get(name))) is not None}


def _qdisc(one: dict[str, Any]) -> dict[str, Any]:
    """The queues as metadata.py has them. The counters that not all kinds have are statistics of this kind."""
    more = {name: value for name, value in one.items() if name not in NO_PARAMETERS}
    return present(
        kind=one.get("kind"), handle=one.get("handle"), parent="root" if one.get("root") is True else one.get("parent"),
        parameters=one.get("options"), stats={name: one[name] for name in COUNTERS if name in one}, more=more,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ private data


def _addresses(ask: Ask) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    for link in _json(ask, ["ip", "-j", "address", "show"]):
        infos = link.get("addr_info")
        known = [one.get("local") for one in infos[:MEMBERS] if isinstance(one, dict)] if isinstance(infos, list) else []
        made[str(link.get("ifname"))] = [one for one in known if isinstance(one, str)]
    return {name: addresses for name, addresses in made.items() if addresses}


def _routes(ask: Ask) -> list[dict[str, Any]]:
    return [
        present(to=one.get("dst"), gateway=one.get("gateway"), device=one.get("dev"))
        for one in _json(ask, ["ip", "-j", "route", "show"]) if one.get("gateway")
    ]  # fmt: skip
