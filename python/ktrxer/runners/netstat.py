# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counters of the network stack of a host: TcpExt and IpExt (/proc/net/netstat), and the older Tcp, Udp, Ip (/proc/net/snmp). A counter
that does not change during the run has no series."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass

from ktrxer.runners import state
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, Times, ends_well
from ktrxer.runners.samples import NotUnderstood, Samples
from ktrxer.runners.state import Frame

# The files of /proc/self are those of the process that opens them: its network namespace.
PATHS = ("/proc/self/net/netstat", "/proc/self/net/snmp")
COUNTERS_MOST = 1000
GAUGES = ("CurrEstab",)  # RFC 4022: the others are counters
PATTERNS_MOST = 100


@dataclass(frozen=True, kw_only=True)
class Counters(Parameters):
    interval_ns: int = 200 * MS
    counters: tuple[str, ...] = ("TcpExt.*", "IpExt.*", "Tcp.*", "Udp.*")  # names PROTOCOL.COUNTER, in which * stands for any text


def validate(p: Counters) -> None:
    state.check_interval(p)
    if not p.counters or len(p.counters) > PATTERNS_MOST:
        raise RunnerError(f"{len(p.counters)} names of counters; 1 to {PATTERNS_MOST} are possible, such as TcpExt.*")


def command(p: Counters, _: Options, times: Times) -> list[str]:
    return state.loop('cat "$@"', p.interval_ns, times, *PATHS)


def pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Protocol, counter, value: each protocol has a line of names and a line of values."""
    names: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if not words or not words[0].endswith(":"):
            names = []
        elif names and words[0] == names[0] and len(words) == len(names):
            yield from ((words[0][:-1], name, value) for name, value in zip(names[1:], words[1:], strict=True))
            names = []
        else:
            names = words


def read(p: Counters, samples: Samples, frame: Frame) -> None:
    wanted: dict[tuple[str, str], bool] = samples.memory.setdefault("wanted", {})
    count = 0
    for protocol, counter, text in pairs(frame.text):
        value, key = state.whole(text), (protocol, counter)
        count += 1
        if value is None or count > COUNTERS_MOST:
            continue
        if key not in wanted and len(wanted) < COUNTERS_MOST:
            wanted[key] = any(fnmatch.fnmatchcase(f"{protocol}.{counter}", pattern) for pattern in p.counters)
        if wanted.get(key):
            name, group = f"{samples.name} {protocol}.{counter}", f"{samples.name} {protocol}"
            samples.changing(key, frame.at_ns, value, name, group=group, count=counter not in GAUGES)
    if not count:
        raise NotUnderstood("no counters of /proc/net/netstat")


RUNNER = Runner(
    "netstat", "counters of the network stack (TcpExt, IpExt, Tcp, Udp)", Counters, validate, command, state.no_series,
    state.by_frame(read), ends_well, auxiliary=True, here=lambda p, _: state.Files(p, read, PATHS),
)  # fmt: skip
