# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of this host before and after a run, which a reader needs to assess the result.

A small set is always recorded. Addresses, routes and link addresses identify people and places, so they are recorded only on request
(`full`). Unavailable data are left out; `gather` never fails.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

from ktrxer.collect import ethtool
from ktrxer.collect.answers import VALUE_LIMIT, here, present, wifi
from ktrxer.collect.errors import StateError
from ktrxer.collect.netlink import Link, Netlink, Qdisc, handle_text

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
SYSCTLS_LIMIT = 200
QDISCS_LIMIT = 64
DSCPS = 64
GIT_TIMEOUT_S = 2.0


def gather(target: str | None = None, *, port: int = 0, full: bool = False, source: str | None = None) -> dict[str, Any]:
    """The state of this host, and of the egress device towards an address. `port`: of the target. `source`: the address that sends."""
    found: dict[str, Any] = {
        "kernel": _kernel(),
        "cpu": _cpu(),
        "clock": _clock(),
        "ktrxer": _ourselves(),
        "sysctls": _sysctls(),
        "softirq_wait_ns": softirq_waits(),
    }
    if target is not None:
        egress = _egress(target, full, source)
        if egress:
            found["egress"] = egress
        found["other_routes"] = _other_routes(target, port, source)
    if full:
        found["host"] = platform.node()
        found["addresses"] = _addresses()
        found["routes"] = _routes()
    return {key: value for key, value in found.items() if value}


def _read(path: str | Path) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        return Path(path).read_text(errors="replace").strip()[:VALUE_LIMIT]
    return None


def _quick(path: str) -> str | None:
    """Reads a file that the kernel makes in a fifth of the time of _read: a run reads hundreds of them before and after."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return os.read(file, VALUE_LIMIT).decode("utf-8", "replace").strip()
    except OSError:
        return None
    finally:
        os.close(file)


def _kernel() -> dict[str, Any]:
    name = os.uname()
    virtual = _read("/sys/hypervisor/type") or ("hypervisor" if _flag("hypervisor") else None)
    return present(name=name.sysname, release=name.release, version=name.version, machine=name.machine, virtual=virtual)


def _cpuinfo() -> str:
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(errors="replace") as file:
        return file.read(8192)
    return ""


def _flag(name: str) -> bool:
    return re.search(rf"^(?:flags|Features)\s*:.*\b{name}\b", _cpuinfo(), re.MULTILINE) is not None


def _cpu() -> dict[str, Any]:
    model = re.search(r"^(?:model name|cpu model|Processor|Hardware)\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    base = Path("/sys/devices/system/cpu/cpu0/cpufreq")
    return present(
        model=model[1].strip() if model else None,
        online=os.cpu_count(),
        usable=len(os.sched_getaffinity(0)),
        governor=_read(base / "scaling_governor"),
        khz_max=_read(base / "scaling_max_freq"),
        load=[round(one, 2) for one in os.getloadavg()],
    )


def _clock() -> dict[str, Any]:
    base = Path("/sys/devices/system/clocksource/clocksource0")
    return present(
        source=_read(base / "current_clocksource"),
        available=_read(base / "available_clocksource"),
        boot_id=_read("/proc/sys/kernel/random/boot_id"),
    )


def softirq_waits(proc: Path = Path("/proc")) -> dict[str, int]:
    """The time in nanoseconds since boot that each processor's softirq thread was runnable and waited for it (sched-stats.rst).
    Empty if the threads of the kernel are not visible, as in a container."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for number in [place.name for place in proc.iterdir()]:
            name = (_quick(f"{proc}/{number}/comm") or "") if number.isdigit() else ""
            if not name.startswith("ksoftirqd/"):
                continue
            fields = (_quick(f"{proc}/{number}/schedstat") or "").split()
            if len(fields) >= 2 and fields[1].isdigit():
                found[name.removeprefix("ksoftirqd/")] = int(fields[1])
    return found


def _ourselves() -> dict[str, Any]:
    from ktrxer import __version__

    return present(version=__version__, git=_git(), python=platform.python_version())


@functools.cache
def _git() -> str | None:
    """The git commit of the source tree of this program, if it runs from one: its modules are loaded already, so one look is enough."""
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
        group, _, last = pattern.rpartition(".")
        folder = "/proc/sys/" + group.replace(".", "/")
        names = [last]
        if last.endswith("*"):
            with contextlib.suppress(OSError):
                names = sorted(path.name for path in Path(folder).iterdir() if path.name.startswith(last[:-1]))
        for one in names:
            name = f"{group}.{one}"
            if name in SECRETS or len(found) >= SYSCTLS_LIMIT:
                continue
            value = _quick(f"{folder}/{one}")
            if value is not None:
                found[name] = " ".join(value.split())
    return found


# ------------------------------------------------------------------------------------------------------- the egress device


def _egress(target: str, full: bool, source: str | None) -> dict[str, Any]:
    netlink = None
    try:
        netlink = Netlink()
        way = netlink.way_to(target, source=source)
        device = socket.if_indextoname(way.index)
        link, qdiscs = netlink.link(way.index), netlink.qdiscs(way.index)
        lower = [(socket.if_indextoname(index), netlink.qdiscs(index)) for index in netlink.below(way.index)]
    except (StateError, OSError) as error:
        return {"error": str(error)}
    finally:
        if netlink is not None:
            netlink.close()
    base = Path("/sys/class/net") / device
    if _read(base / "ifindex") != str(way.index):
        base = Path("/nonexistent")  # /sys belongs to another network namespace
    driver = ethtool.driver(device)
    found = present(
        device=device,
        driver=driver.get("driver"),
        driver_version=driver.get("version"),
        firmware=driver.get("firmware"),
        link=_link(base, link),
        offloads=ethtool.offloads(device),
        bql=_bql(base),
        qdiscs=_qdiscs(qdiscs),
        lower=[{"device": name, "qdiscs": _qdiscs(known)} for name, known in lower],
        wifi=wifi(here, device, full) if (base / "phy80211").exists() else None,
    )
    if full:
        found |= present(source=way.source, nexthop=way.gateway, target=target, mac=link.address if link is not None else None)
    return found


def _other_routes(target: str, port: int, source: str | None) -> list[dict[str, Any]]:
    """Protocols and DSCPs whose packets to the target leave by another route than packets without a rule of their own. Without the
    gateways, which are addresses; `route` tells apart those of one device."""
    icmp = socket.IPPROTO_ICMPV6 if ":" in target else socket.IPPROTO_ICMP
    protocols = {"icmp": icmp, "udp": socket.IPPROTO_UDP, "tcp": socket.IPPROTO_TCP}
    found: dict[tuple[str, int], list[int]] = {}
    netlink = None
    try:
        netlink = Netlink()
        routes = [netlink.way_to(target, source=source)]
        kinds = [(name, dscp) for name in protocols for dscp in range(DSCPS)]
        ways = netlink.ways_to(target, [(protocols[name], dscp, 0 if name == "icmp" else port) for name, dscp in kinds], source)
        for (name, dscp), way in zip(kinds, ways, strict=True):
            if way == routes[0]:
                continue
            if way not in routes:
                routes.append(way)
            found.setdefault((name, routes.index(way)), []).append(dscp)
        return [
            {"protocol": name, "dscp": dscps, "device": socket.if_indextoname(routes[route].index), "route": route}
            for (name, route), dscps in found.items()
        ]
    except (StateError, OSError):
        return []
    finally:
        if netlink is not None:
            netlink.close()


def _link(base: Path, link: Link | None) -> dict[str, Any]:
    speed = _read(base / "speed")
    known = {} if link is None else {"mtu": link.mtu, "qlen": link.txqlen, "state": link.state, "queues": link.tx_queues}
    return present(
        **known,
        speed_mbps=int(speed) if speed and re.fullmatch(r"\d{1,9}", speed) else None,  # -1: unknown to the driver
        duplex=_read(base / "duplex"),
    )


def _bql(base: Path) -> dict[str, str]:
    queues = sorted(base.glob("queues/tx-*"), key=lambda path: int(path.name.removeprefix("tx-")))[:16]
    return {queue.name: text for queue in queues if (text := _read(queue / "byte_queue_limits" / "limit_max"))}


def _qdiscs(known: list[Qdisc]) -> list[dict[str, Any]]:
    return [
        present(
            kind=one.kind,
            handle=handle_text(one.handle),
            parent=handle_text(one.parent),
            parameters=one.parameters,
            stats={
                "bytes": one.bytes, "packets": one.packets, "qlen": one.backlog_packets, "backlog": one.backlog_bytes,
                "drops": one.drops, "requeues": one.requeues, "overlimits": one.overlimits,
            },
        )
        for one in known[:QDISCS_LIMIT]
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ private data


def _addresses() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with contextlib.suppress(StateError), contextlib.closing(Netlink()) as netlink:
        for index, address in netlink.addresses():
            with contextlib.suppress(OSError):
                found.setdefault(socket.if_indextoname(index), []).append(address)
    return found


def _routes() -> list[dict[str, Any]]:
    """The routes of the main table that have a gateway."""
    found: list[dict[str, Any]] = []
    with contextlib.suppress(StateError), contextlib.closing(Netlink()) as netlink:
        for to, gateway, index in netlink.gateways():
            with contextlib.suppress(OSError):
                found.append({"to": to, "gateway": gateway, "device": socket.if_indextoname(index)})
    return found[:100]


__all__ = ["gather"]
