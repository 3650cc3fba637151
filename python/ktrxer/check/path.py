# SPDX-License-Identifier: MIT OR Apache-2.0
"""The first routers on the path to a target that the user has named, and which hosts answer ICMP echo requests."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ktrxer.check.answer import Here
from ktrxer.collect.errors import StateError
from ktrxer.collect.netlink import Netlink
from ktrxer.run.timers import Handshake
from ktrxer.runners.runner import Options
from ktrxer.store.reasons import read_all as read_reasons

TRACE_S = 15.0
PING_S, PING_MOST_S = 3.0, 8.0  # the second one on a path with a long round trip
PINGS = ("--count", "3", "--interval", "200ms", "--timeout", "6s", "--json")
LONG_NS = 1_000_000_000


def route(address: str) -> tuple[Here, str | None]:
    """The device of the route to an address, and its first router; None where the address is on the same network."""
    netlink = Netlink()
    try:
        way = netlink.way_to(address)
        device = socket.if_indextoname(way.index)
    finally:
        netlink.close()
    return Here(device, Path(f"/sys/class/net/{device}/wireless").exists()), way.gateway


def traced(options: Options, target: str, hops: int) -> tuple[list[str], str]:
    """The addresses of the first routers, and a note if they are not known. Three probes to each of them."""
    if not hops:
        return [], ""
    words = [options.ktrxer, "trace", "--one-route", "--repeat", "1", "--timeout", "1s", "--hops", str(hops), "--json"]
    family = [options.family] if options.family else []
    why = ""
    for engine in ([], ["--engine", "udp"]):  # the second one needs no privilege
        done = ran([*words, *engine, *family, target], TRACE_S)
        found = addresses_of(done[0], target)
        if found is not None:
            return found, ""
        why = done[1]
    return [], f"the first routers are not known: {why or '`ktrxer trace` printed no result'}"


def addresses_of(made: Any, target: str) -> list[str] | None:
    """The path of the object that `ktrxer trace --json` prints; None if it is none. A router that does not answer is left out."""
    rows = made.get("hops") if isinstance(made, dict) else None
    if not isinstance(rows, list):
        return None
    found: list[str] = []
    for row in rows:
        nodes = row.get("nodes") if isinstance(row, dict) else None
        for node in nodes if isinstance(nodes, list) else []:
            address = node.get("address") if isinstance(node, dict) else None
            if address == target or address == (made.get("to") or target):
                return found
            if isinstance(address, str) and address not in found:
                found.append(address[:45])
                break
    return found


def answering(options: Options, hosts: Sequence[str], path: Handshake | None = None) -> tuple[dict[str, bool], str]:
    """The hosts that answer three ICMP echo requests, all probed at once, and the reason why none could be sent to the first one. `path`:
    to the first one. Where it has no answer either, the round trip may be a long one."""
    begun = time.monotonic()
    family = [options.family] if options.family else []
    children = {
        host: subprocess.Popen(
            [options.ktrxer, "ping", host, *PINGS, *family], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for host in dict.fromkeys(hosts)
    }
    made: dict[str, bool] = {}
    why = ""
    for host, child in children.items():
        output, errors = _within(child, begun + PING_S)
        if child.returncode is None and path is not None and (not path.trip_ns or path.trip_ns > LONG_NS):
            output, errors = _within(child, begun + PING_MOST_S)
        if child.returncode is None:
            child.kill()
            child.communicate()
        end = _object(output)
        made[host] = bool(end.get("received"))
        if host == hosts[0] and "received" not in end:
            reasons = read_reasons(end.get("reasons"))
            why = reasons[0].text if reasons else _last_line(errors)
    return made, why


def _within(child: subprocess.Popen[bytes], until_s: float) -> tuple[bytes, bytes]:
    """Its output, if it ends in time."""
    try:
        return child.communicate(timeout=max(0.0, until_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        return b"", b""


def ran(words: list[str], seconds: float) -> tuple[dict[str, Any], str]:
    """The object that a command prints, and the last line of its standard error."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {}, f"no result within {seconds:g} s"
    except OSError as error:
        return {}, f"{words[0]}: {error.strerror}"
    return _object(done.stdout), _last_line(done.stderr)


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("ktrxer: ") if lines else ""


def _object(text: bytes) -> dict[str, Any]:
    try:
        made = json.loads(text)
    except ValueError:
        return {}
    return made if isinstance(made, dict) else {}


__all__ = ["StateError", "addresses_of", "answering", "ran", "route", "traced"]
