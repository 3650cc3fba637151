# SPDX-License-Identifier: MIT OR Apache-2.0
"""TCP sockets of other programs: the fields of TCP_INFO, and the state of BBR, of each connection. By sock_diag netlink here, by `ss`
elsewhere. The flows of ktrxer have these figures already."""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ktrxer.collect.sockets import Sockets, Tcp
from ktrxer.runners import ss_text, state
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, Times, Tool, ends_well
from ktrxer.runners.samples import Samples
from ktrxer.runners.state import Frame
from ktrxer.store.columns import LOCAL
from ktrxer.store.meta import Series

FLOWS_MOST = 64  # of one process: the first ones
COLUMNS = (
    "rtt_us", "rttvar_us", "min_rtt_us", "cwnd_segments", "ssthresh_segments", "unacked", "lost", "retransmits", "delivery_rate_bps",
    "pacing_rate_bps", "delivered_ce",
)  # fmt: skip
BYTES = ("bytes_acked", "bytes_received")
BBR = {"bw": (1e6, "Mbit/s"), "min_rtt": (1.0, "ms"), "pacing_gain": (1.0, ""), "cwnd_gain": (1.0, "")}
# Sockets that have no connection yet have no far end that they could be found by.
BODY = 'ss -tinOH ${1:+dst "$1"}'


@dataclass(frozen=True, kw_only=True)
class Connections(Parameters):
    interval_ns: int = 200 * MS
    peer: str = ""  # address or ADDRESS/PREFIX of the far end; empty: here the run's host, elsewhere any
    port: int = 0  # of either end; 0: any
    addresses: bool = False  # name the series by addresses and ports, not by ports alone


def validate(p: Connections) -> None:
    state.check_interval(p)
    try:
        if p.peer:
            ipaddress.ip_network(p.peer, strict=False)
    except ValueError:
        raise RunnerError(f"peer {p.peer[:60]!r} is not an IP address, and not ADDRESS/PREFIX") from None
    if not 0 <= p.port <= 65535:
        raise RunnerError(f"port {p.port}; 1 to 65535 are possible, and 0 for any")


def command(p: Connections, _: Options, times: Times) -> list[str]:
    return state.loop(BODY, p.interval_ns, times, p.peer)


def add(p: Connections, samples: Samples, at_ns: int, found: Iterable[Tcp], own_port: int = 0) -> None:
    """`own_port`: connections of ktrxer's own flows, which are left out."""
    for one in found:
        ports = (one.source_port, one.peer_port)
        if (p.port and p.port not in ports) or (own_port and own_port in ports and own_port != p.port) or not one.info:
            continue
        key = (one.source, one.source_port, one.peer, one.peer_port)
        if samples.number_of(key, FLOWS_MOST, at_ns, "sockets"):
            _socket(p, samples, at_ns, key, one)


def _socket(p: Connections, samples: Samples, at_ns: int, key: Hashable, one: Tcp) -> None:
    ends = [f"{f'[{address}]' if ':' in address else address}:" if p.addresses else "" for address in (one.source, one.peer)]
    title = f"{samples.name} {ends[0]}{one.source_port} to {ends[1]}{one.peer_port}"
    if not samples.new(key, Series(0, title, "tcp_info", "", group=samples.name)):
        return
    samples.add(key, at_ns, end=LOCAL, **{name: one.info[name] for name in COLUMNS if name in one.info})
    for name in BYTES:
        if name in one.info:
            samples.changing((key, name), at_ns, one.info[name], f"{title} {name}", "bytes", f"{samples.name} bytes")
    for name, value in one.bbr.items():
        scale, unit = BBR[name]
        samples.gauge((key, "bbr", name), at_ns, value / scale, f"{title} BBR {name}", unit, f"{samples.name} BBR {name}")


def read(p: Connections, samples: Samples, frame: Frame) -> None:
    add(p, samples, frame.at_ns, ss_text.sockets(frame.text))


class Here:
    def __init__(self, p: Connections, o: Options) -> None:
        self._p, self._own_port = p, o.port
        self._peer = p.peer or state.address_of(o)
        with state.refusals():
            self._sockets = Sockets()

    def sample(self, samples: Samples, at_ns: int) -> None:
        with state.refusals():
            add(self._p, samples, at_ns, self._sockets.tcp(self._peer), self._own_port)

    def close(self) -> None:
        self._sockets.close()


RUNNER = Runner(
    "sockets", "TCP sockets of other programs: TCP_INFO and the state of BBR", Connections, validate, command, state.no_series,
    state.by_frame(read), ends_well, tool=Tool("ss", "iproute2", ("-V",), r"iproute2-(?:ss)?(\d+(?:\.\d+)*)"), auxiliary=True, here=Here,
)  # fmt: skip
