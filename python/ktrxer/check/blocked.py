# SPDX-License-Identifier: MIT OR Apache-2.0
"""The kinds of packets that a firewall blocks between this host and the target, and the measurement that is possible without them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Any

from ktrxer.check.path import ran
from ktrxer.run import timers
from ktrxer.runners.runner import Options, S
from ktrxer.store.reasons import read_all as read_reasons

STAMP_S, FLOW_S, CONNECT_S = 8.0, 10.0, 4.0
PROBE_NS = 2 * 10**9  # a probe without an answer for so long is lost
NOTHING_UP = "udp_blocked_up"  # a reason of `ktrxer flow`
NOT_SENT = "unsent"  # a reason of `ktrxer stamp`
ALLOW = "in the firewall of that host and in those before it (docs/howto/firewalls.md)"


@dataclass(frozen=True)
class Unconnected:
    """Why TCP accepts no connection."""

    why: str
    refused: bool = False


@dataclass(frozen=True)
class Blocked:
    traffic: tuple[str, ...] = ()  # for each kind: what is blocked, the consequence, and what to do
    load: bool = True  # a load is possible
    udp: bool = True  # probes of UDP are answered

    def with_icmp(self, host: str, unsent: str, server: bool) -> Blocked:
        """`unsent`: why this host sends none."""
        instead = f"the round trips are those of {'UDP' if server and self.udp else 'TCP handshakes'}"
        text = f"no ICMP echo request to {host} is answered, so {instead}: allow ICMP echo {ALLOW}"
        if unsent:
            text = f"this host itself sends no ICMP echo request, so {instead}: {unsent}"
        return Blocked((*self.traffic, text), self.load, self.udp)


def found(
    options: Options, host: str, port: int, server: bool, icmp: bool, icmp_unsent: str = "", trip_ns: int = 0
) -> Blocked | None:
    """The cause of a trial that failed. None: packets are not the cause, or a web server is not there. `icmp_unsent`: why this host sends
    no ICMP echo request. `trip_ns`: the round trip; 0: not known."""
    tcp = _tcp(options, host, port)
    end, unsent, why = _probes(options, host, trip_ns) if server else ({"received": 1}, False, "")
    udp = not end.get("received")
    if tcp and not udp and not server and (not icmp or tcp.refused):
        return None
    if tcp and udp and not unsent and (not icmp or tcp.refused):
        return Blocked((_no_server(options, host, tcp, bool(end.get("network_errors")), icmp, icmp_unsent),), load=False, udp=False)
    texts = []
    if udp:
        blocked = _udp(options, host, tcp is None, why if unsent else "", trip_ns)
        texts.append(f"{blocked}; the other probes have no delays of each direction")
    if tcp:
        texts.append(f"TCP port {port} of {host} is blocked ({tcp.why}), so no load is possible: allow TCP port {port} {ALLOW}")
    return Blocked(tuple(texts), load=not tcp, udp=not udp) if texts else None


def _no_server(options: Options, host: str, tcp: Unconnected, errors: bool, icmp: bool, icmp_unsent: str) -> str:
    """Neither kind of packets of `ktrxer serve` is answered. `errors`: ICMP errors answered the datagrams."""
    port = options.port
    if not tcp.refused:
        echo = "" if icmp_unsent else "no ICMP echo request, "
        seen = f"{host} answers nothing: {echo}no connection to TCP port {port} and no datagram to UDP port {port}"
        seen += f" ({tcp.why})"
        means = "the address is wrong, the host is down, or a firewall drops everything"
    else:
        seen = f"TCP port {port} of {host} refuses connections, and UDP port {port} "
        seen += "refuses datagrams (ICMP errors)" if errors else "gives no answer"
        up = "the host is up (it answers ICMP echo requests)" if icmp else "ICMP echo gives no answer, so that host or a firewall refuses"
        if icmp_unsent:
            up = "whether the host is up is not known, because this host sends no ICMP echo request"
        drops = "" if errors else " (then a firewall drops UDP or the ICMP errors)"
        does = "its TCP and UDP" if errors else "its TCP and drops its UDP"
        means = f"{up}, and no `ktrxer serve` runs there on this port{drops}, or a firewall refuses {does}"
    known = options.token_file or os.environ.get("KTRXER_TOKEN")
    token = " with the same token as here" if known else " (it names the file of its token: copy that, add --token-file FILE)"
    return f"{seen}: {means}: start `ktrxer serve` on that host{token}, and allow TCP and UDP port {port} {ALLOW}"


def _common(options: Options, host: str) -> list[str]:
    return [host, "--port", str(options.port), "--json", *([options.family] if options.family else [])]


def _probes(options: Options, host: str, trip_ns: int) -> tuple[dict[str, Any], bool, str]:
    """The end object, whether this host did not send the probes, and the reason."""
    words = [options.ktrxer, "stamp", *_common(options, host), "--count", "3", "--interval", "100ms"]
    words += ["--timeout", f"{max(PROBE_NS, 2 * trip_ns)}ns"]
    end, why = ran(words, max(STAMP_S, 4 * trip_ns / S))
    unsent = next((one.text for one in read_reasons(end.get("reasons")) if one.id == NOT_SENT), "")
    return end, bool(unsent), unsent or why


def _udp(options: Options, host: str, tcp: bool, unsent: str, trip_ns: int) -> str:
    """Probes were not answered. `unsent`: the reason, if this host did not send them. A UDP flow, which is controlled by TCP, shows the
    direction."""
    if unsent:
        return f"this host itself refuses to send UDP to port {options.port} ({unsent}): look at its own firewall (`nft list ruleset`)"
    token = ["--token-file", options.token_file] if options.token_file else []
    flow = [options.ktrxer, "flow", "up", *_common(options, host), "--udp", "--bitrate", "100k", "--for", "500ms", *token]
    end = ran(flow, timers.trial_s(trip_ns, FLOW_S))[0] if tcp else {}
    if end.get("bytes"):
        return (
            f"UDP is blocked down: datagrams arrive at port {options.port} of {host}, and its answers do not arrive here: "
            f"allow UDP from port {options.port} {ALLOW}, and in that of this host"
        )
    nothing_up = any(one.id == NOTHING_UP for one in read_reasons(end.get("reasons")))
    way = " up: no datagram arrives there" if nothing_up else ": no probe is answered"
    return f"UDP to port {options.port} of {host} is blocked{way}: allow UDP port {options.port} {ALLOW}"


def _tcp(options: Options, host: str, port: int) -> Unconnected | None:
    """None if a connection is accepted."""
    kind = {"-4": socket.AF_INET, "-6": socket.AF_INET6}.get(options.family, socket.AF_UNSPEC)
    try:
        where = socket.getaddrinfo(host, port, kind, socket.SOCK_STREAM)[0]
        with socket.socket(where[0], where[1]) as sock:
            sock.settimeout(CONNECT_S)
            sock.connect(where[4])
    except TimeoutError:
        return Unconnected(f"no answer within {CONNECT_S:g} s")
    except OSError as error:
        return Unconnected((error.strerror or str(error)).lower(), isinstance(error, ConnectionRefusedError))
    return None
