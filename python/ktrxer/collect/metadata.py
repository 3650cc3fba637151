# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of this host, before and after a run: what a reader of the result must know to believe it.

A small set always. Addresses, routes and link addresses, which tell who and where somebody is, only when they are asked for (`full`).
Whatever cannot be had is left out; gathering never fails.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import platform
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

from ktrxer.collect import ethtool
from ktrxer.collect.collector import CollectorError
from ktrxer.collect.netlink import Link, Netlink, Qdisc

SYSCTLS = (
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_*",
    "net.ipv4.udp_mem",
)
SECRETS = {"net.ipv4.tcp_fastopen_key"}
SYSCTLS_LIMIT, VALUE_LIMIT = 200, 300
QDISCS_LIMIT = 64
GIT_TIMEOUT_S = 2.0


def gather(target: str | None = None, *, full: bool = False) -> dict[str, Any]:
    """What holds for this host, and for the device through which packets to an address leave."""
    found: dict[str, Any] = {
        "kernel": _kernel(),
        "cpu": _cpu(),
        "clock": _clock(),
        "ktrxer": _ourselves(),
        "sysctls": _sysctls(),
    }
    if target is not None:
        egress = _egress(target, full)
        if egress:
            found["egress"] = egress
    if full:
        found["host"] = platform.node()
        found["addresses"] = _addresses()
        found["routes"] = _routes()
    return {key: value for key, value in found.items() if value}


def _read(path: str | Path) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        return Path(path).read_text(errors="replace").strip()[:VALUE_LIMIT]
    return None


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in (None, "", {}, [])}


def _kernel() -> dict[str, Any]:
    name = os.uname()
    virtual = _read("/sys/hypervisor/type") or ("hypervisor" if _flag("hypervisor") else None)
    return _present(name=name.sysname, release=name.release, version=name.version, machine=name.machine, virtual=virtual)


def _cpuinfo() -> str:
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(errors="replace") as file:
        return file.read(8192)
    return ""


def _flag(name: str) -> bool:
    return re.search(rf"^(?:flags|Features)\s*:.*\b{name}\b", _cpuinfo(), re.MULTILINE) is not None


def _cpu() -> dict[str, Any]:
    model = re.search(r"^(?:model name|cpu model|Processor|Hardware)\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    base = Path("/sys/devices/system/cpu/cpu0/cpufreq")
    return _present(
        model=model[1].strip() if model else None,
        online=os.cpu_count(),
        usable=len(os.sched_getaffinity(0)),
        governor=_read(base / "scaling_governor"),
        khz_max=_read(base / "scaling_max_freq"),
        load=[round(one, 2) for one in os.getloadavg()],
    )


def _clock() -> dict[str, Any]:
    base = Path("/sys/devices/system/clocksource/clocksource0")
    return _present(
        source=_read(base / "current_clocksource"),
        available=_read(base / "available_clocksource"),
        boot_id=_read("/proc/sys/kernel/random/boot_id"),
    )


def _ourselves() -> dict[str, Any]:
    from ktrxer import __version__

    return _present(version=__version__, git=_git(), python=platform.python_version())


def _git() -> str | None:
    """Of the source tree that this runs from, if it is one."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return done.stdout.strip()[:100]
    return None


def _sysctls() -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern in SYSCTLS:
        place = Path("/proc/sys") / pattern.replace(".", "/")
        paths = sorted(place.parent.glob(place.name)) if "*" in pattern else [place]
        for path in paths:
            name = str(path.relative_to("/proc/sys")).replace("/", ".")
            if name in SECRETS or not path.is_file() or len(found) >= SYSCTLS_LIMIT:
                continue
            value = _read(path)
            if value is not None:
                found[name] = " ".join(value.split())
    return found


# ------------------------------------------------------------------------------------------------------- the egress device


def _egress(target: str, full: bool) -> dict[str, Any]:
    netlink = None
    try:
        netlink = Netlink()
        way = netlink.way_to(target)
        device = socket.if_indextoname(way.index)
        link, qdiscs = netlink.link(way.index), netlink.qdiscs(way.index)
    except (CollectorError, OSError) as error:
        return {"error": str(error)}
    finally:
        if netlink is not None:
            netlink.close()
    base = Path("/sys/class/net") / device
    if _read(base / "ifindex") != str(way.index):
        base = Path("/nonexistent")  # this /sys shows another network namespace
    driver = ethtool.driver(device)
    found = _present(
        device=device,
        driver=driver.get("driver"),
        driver_version=driver.get("version"),
        firmware=driver.get("firmware"),
        link=_link(base, link),
        offloads=ethtool.offloads(device),
        bql=_bql(base),
        qdiscs=_qdiscs(way.index, qdiscs),
    )
    if full:
        found |= _present(source=way.source, nexthop=way.gateway, target=target, mac=link.address if link is not None else None)
    return found


def _link(base: Path, link: Link | None) -> dict[str, Any]:
    speed = _read(base / "speed")
    known = {} if link is None else {"mtu": link.mtu, "qlen": link.txqlen, "state": link.state, "queues": link.tx_queues}
    return _present(
        **known,
        speed_mbps=int(speed) if speed and re.fullmatch(r"\d{1,9}", speed) else None,  # -1: the driver does not know
        duplex=_read(base / "duplex"),
    )


def _bql(base: Path) -> dict[str, str]:
    queues = sorted(base.glob("queues/tx-*"), key=lambda path: int(path.name.removeprefix("tx-")))[:16]
    return {queue.name: text for queue in queues if (text := _read(queue / "byte_queue_limits" / "limit_max"))}


def _qdiscs(index: int, known: list[Qdisc]) -> list[dict[str, Any]]:
    if all(one.parameters is not None for one in known):
        return [
            _present(
                kind=one.kind,
                handle=_handle(one.handle),
                parent=_handle(one.parent),
                parameters=one.parameters,
                stats={
                    "bytes": one.bytes, "packets": one.packets, "qlen": one.backlog_packets, "backlog": one.backlog_bytes,
                    "drops": one.drops, "requeues": one.requeues, "overlimits": one.overlimits,
                },
            )
            for one in known[:QDISCS_LIMIT]
        ]  # fmt: skip
    from pyroute2 import IPRoute

    found: list[dict[str, Any]] = []
    # A foreign library over a foreign kernel: what it cannot read is left out.
    with contextlib.suppress(Exception), IPRoute() as route:
        for message in route.get_qdiscs(index=index):
            if message["index"] != index or len(found) >= QDISCS_LIMIT:
                continue
            found.append(
                _present(
                    kind=message.get_attr("TCA_KIND"),
                    handle=_handle(message["handle"]),
                    parent=_handle(message["parent"]),
                    parameters=_plain(message.get_attr("TCA_OPTIONS")),
                    stats=_stats(message),
                )
            )
    return found


def _handle(number: int) -> str | None:
    """As tc writes it: "1:", "1:10", "root"."""
    if number == 0xFFFFFFFF:
        return "root"
    major, minor = number >> 16, number & 0xFFFF
    return f"{major:x}:{minor:x}" if minor else f"{major:x}:" if major else None


def _stats(message: Any) -> dict[str, int]:
    """The counters that all kinds have."""
    stats = message.get_attr("TCA_STATS2")
    found: dict[str, int] = {}
    for name in ("TCA_STATS_BASIC", "TCA_STATS_QUEUE"):
        part = stats.get_attr(name) if stats is not None and hasattr(stats, "get_attr") else None
        if part is not None:
            found |= {key: value for key, value in part.items() if isinstance(value, int) and not key.startswith("_")}
    return found


def _plain(value: Any, depth: int = 0) -> Any:
    """A netlink attribute as JSON: names without their prefix, tables of bytes left out."""
    if depth > 4:
        return None
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    if isinstance(value, str):
        return value[:VALUE_LIMIT]
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, one in value.items():
            if key == "attrs":
                for name, inner in [pair[:2] for pair in one]:
                    short = re.sub(r"^TCA_(?:[A-Z0-9]+(?:_CODEL|_PIE)?_)?", "", str(name)).lower()
                    made = _plain(inner, depth + 1)
                    if made not in (None, "", {}, []) and len(found) < 64:
                        found[short] = made
            elif key not in ("header", "value", "event") and not str(key).startswith("_"):
                made = _plain(one, depth + 1)
                if made not in (None, "", {}, []):
                    found[str(key)] = made
        return found
    if isinstance(value, (list, tuple)) and len(value) <= 16:
        return [_plain(one, depth + 1) for one in value]
    return None


# ------------------------------------------------------------------------------------------------ who and where somebody is


def _addresses() -> dict[str, list[str]]:
    from pyroute2 import IPRoute

    found: dict[str, list[str]] = {}
    with contextlib.suppress(Exception), IPRoute() as route:
        for message in route.get_addr():
            address = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
            with contextlib.suppress(OSError):
                found.setdefault(socket.if_indextoname(message["index"]), []).append(f"{address}/{message['prefixlen']}")
    return found


def _routes() -> list[dict[str, Any]]:
    """The gateways: every route of the main table that has one."""
    from pyroute2 import IPRoute

    found: list[dict[str, Any]] = []
    with contextlib.suppress(Exception), IPRoute() as route:
        for message in route.get_routes(table=254):
            gateway, index = message.get_attr("RTA_GATEWAY"), message.get_attr("RTA_OIF")
            if gateway and index and len(found) < 100:
                to = message.get_attr("RTA_DST")
                with contextlib.suppress(OSError):
                    shown = f"{to}/{message['dst_len']}" if to else "default"
                    found.append({"to": shown, "gateway": str(ipaddress.ip_address(gateway)), "device": socket.if_indextoname(index)})
    return found


__all__ = ["gather"]
