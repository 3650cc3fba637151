# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts that the runners of other projects' tools have in common: limits of parameters, words of command lines, times of a tool."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from ktrxer.runners import marks
from ktrxer.runners.runner import MS, Ended, Listener, Options, Parameters, RunnerError, S, between, ends_well
from ktrxer.runners.samples import Samples
from ktrxer.store.meta import Series
from ktrxer.store.reasons import Reason

FLOWS_MOST = 128  # the limit of iperf3
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # of iperf and iperf3, for bytes

# `wait_until TIME`: in nanoseconds of `date +%s%N`. Some shells have a `sleep` without fractions.
WAIT_UNTIL = (
    'wait_until() { left=$(($1 - $(date +%s%N))); [ "$left" -le 0 ] || '
    'sleep "$((left / 1000000000)).$(printf %09d $((left % 1000000000)))" 2>/dev/null || sleep $((left / 1000000000)); }; '
)


def repeat(body: str) -> str:
    """A shell script that runs `body` at equal intervals; a `body` that lasts longer delays those after it. Its arguments: the interval and
    the length in nanoseconds, then those of `body`. $now is the time at which `body` starts."""
    return (
        f"{WAIT_UNTIL}interval=$1 due=$(date +%s%N); until=$((due + $2)); shift 2; "
        f'while now=$(date +%s%N); [ "$now" -lt "$until" ]; do {body}; due=$((due + interval)); now=$(date +%s%N); '
        '[ "$due" -gt "$now" ] || due=$now; [ "$due" -lt "$until" ] || break; wait_until "$due"; done'
    )


def interval(ns: int, low_ms: float, high_s: float = 60) -> None:
    between("the interval", ns / MS, low_ms, high_s * 1000, " ms")


def no_interval(p: Parameters, instead: str) -> None:
    if p.interval_ns is not None:
        raise RunnerError(f"this runner has no interval_ns; it has {instead}")


def word(what: str, text: str) -> None:
    """A text that becomes a word of a command line."""
    if not text or text.startswith("-") or not text.isprintable() or " " in text:
        raise RunnerError(f"{what}: {text[:60]!r} is no name: it must not be empty, begin with a dash, or have spaces")


@dataclass(frozen=True, kw_only=True)
class Echoes(Parameters):
    """The parameters of fping and of the `ping` of iputils."""

    interval_ns: int = 100 * MS
    timeout_ns: int = 2 * S
    payload_bytes: int = 56
    mark: str | None = None
    group: str = "Ping (ms)"


def echo_series(p: Echoes, name: str) -> Mapping[Hashable, Series]:
    return {"rtt": Series(0, name, "latency", "ms", klass=p.mark, group=p.group)}


def echo_health(ended: Ended) -> Iterable[Reason]:
    """The exit status 1 means that no probe was answered: a result, not a fault."""
    return () if ended.process.exit_status == 1 else ends_well(ended)


@dataclass(frozen=True, kw_only=True)
class Flows(Parameters):
    """The parameters that iperf and iperf3 have in common."""

    flows: int = 1  # in each direction
    interval_ns: int = S
    protocol: Literal["tcp", "udp"] = "tcp"
    bitrate_bps: int | None = None  # of each flow; UDP needs one, TCP is limited to it
    payload_bytes: int | None = None  # of a write, which is a packet of UDP
    cc: str = ""  # congestion control of TCP; empty: the host's own
    mark: str | None = None
    port: int = 0


def flows(p: Flows, interval_low_ms: float) -> None:
    between("flows", p.flows, 1, FLOWS_MOST)
    between("the bit rate", p.bitrate_bps, 1000, 10**12, " bit/s")
    flow(p.interval_ns, interval_low_ms, p.port, p.mark, p.cc, p.payload_bytes)
    if p.protocol == "udp" and p.bitrate_bps is None:
        raise RunnerError("UDP flows need a bit rate")
    if p.protocol == "udp" and p.cc:
        raise RunnerError("a congestion control is for TCP flows")


def flow(interval_ns: int, interval_low_ms: float, port: int, mark: str | None, cc: str = "", payload_bytes: int | None = None) -> None:
    interval(interval_ns, interval_low_ms)
    between("the port", port, 1, 65_535)
    between("the payload", payload_bytes, 16, 65_000, " bytes")
    marks.check([mark])
    if cc:
        word("the congestion control", cc)


def listens(server: str) -> Callable[[Any, Options], list[Listener]]:
    """A server at the far end that listens on the TCP port of the parameters."""
    return lambda p, o: [Listener(p.host or o.host, p.port, server.format(p.port))]


def web_servers(urls: Sequence[str]) -> list[Listener]:
    with contextlib.suppress(ValueError):  # of a text that is no URL: curl says so
        parts = [urlsplit(url) for url in urls]
        return [Listener(one.hostname or "", one.port or (443 if one.scheme == "https" else 80), "a web server") for one in parts]
    return []


def numbered(name: str, count: int) -> list[str]:
    """Flent's names of like series."""
    return [name] if count == 1 else [f"{name}::{n}" for n in range(1, count + 1)]


def option(name: str, value: object) -> list[str]:
    """An option with its value, where there is one."""
    return [] if value is None or value == "" else [name, str(value)]


def tos(mark: str | None) -> int | None:
    """The byte that holds the DSCP."""
    return None if mark is None else marks.DSCP[mark] << 2


def family(o: Options) -> list[str]:
    return [o.family] if o.family else []


def bytes_of(text: str) -> float:
    """Bytes from `112 MBytes`, as precise as the text."""
    found = re.fullmatch(r"([\d.]+) ?([KMGT]?)Bytes?", text)
    if found is None:
        raise ValueError(text)
    return float(found[1]) * _UNITS[found[2]]


def scaled(rows: list[dict[str, Any]], sums: list[int]) -> list[dict[str, Any]]:
    """Rows with rounded `bytes`, scaled to exact `sums`: one for each socket, in the order in which the sockets appear."""
    for socket, exact in zip(dict.fromkeys(row["socket"] for row in rows), sums, strict=False):
        mine = [row for row in rows if row["socket"] == socket]
        rounded = sum(row["bytes"] for row in mine)
        for row in mine:
            row["bytes"] *= exact / rounded if rounded else 0
    return rows


def part(made: Any, *names: str) -> Any:
    """A part of a JSON value; None where there is none."""
    for name in names:
        made = made.get(name) if isinstance(made, dict) else None
    return made


def begins(samples: Samples, at_ns: int, length_ns: int) -> tuple[int, int]:
    """The begin of a tool whose times count from its own begin, and the uncertainty: after the run started the tool, and at least
    `length_ns` before `at_ns`, when its output with that time was read."""
    low, high = samples.from_ns, max(samples.from_ns, at_ns - length_ns)
    return (low + high) // 2, (high - low + 1) // 2 + samples.clock.bound_ns
