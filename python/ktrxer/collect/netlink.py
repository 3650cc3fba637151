# SPDX-License-Identifier: MIT OR Apache-2.0
"""The parts of rtnetlink that a run needs: qdiscs and classes with their counters and parameters, links, addresses, routes, the route to an
address; and the sockets of the other families of netlink.

pyroute2, a library for all of netlink, takes 0.1 s to import, longer than all other preparations of a run, and ten times as long for a
dump. A sample must not disturb the measurement. Every length is checked before its use.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ktrxer.collect import queue_stats
from ktrxer.collect.errors import StateError
from ktrxer.collect.queue_stats import ATTRIBUTE, Values, attributes

RTM_NEWLINK, RTM_GETLINK, RTM_NEWADDR, RTM_GETADDR = 16, 18, 20, 22
RTM_NEWROUTE, RTM_GETROUTE, RTM_NEWQDISC, RTM_GETQDISC, RTM_NEWTCLASS, RTM_GETTCLASS = 24, 26, 36, 38, 40, 42
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PREFSRC, RTA_TABLE, RTA_IP_PROTO, RTA_DPORT = 1, 2, 4, 5, 7, 15, 27, 29
RT_TABLE_MAIN, RTM_F_CLONED = 254, 0x200
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_TXQLEN, IFLA_OPERSTATE, IFLA_STATS64, IFLA_NUM_TX_QUEUES = 1, 3, 4, 13, 16, 23, 31
IFLA_LINK, IFLA_MASTER, IFLA_LINKINFO, IFLA_LINK_NETNSID, IFLA_INFO_KIND = 5, 10, 18, 37, 1
OPERSTATES = ("UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP")  # RFC 2863, in the kernel's order
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP, TCA_STATS_PKT64 = 1, 3, 4, 8

HEADER = struct.Struct("=IHHII")
TCMSG = struct.Struct("=B3xiIII")
IFINFOMSG = struct.Struct("=BxHiII")
IFADDRMSG = struct.Struct("=BBxxI")
RTMSG = struct.Struct("=8BI")
TOS_AT = 3  # its byte in that structure
BASIC = struct.Struct("=QI")
QUEUE = struct.Struct("=5I")  # qlen, backlog, drops, requeues, overlimits
TIMEOUT_S = 1.0
RECEIVE = 1 << 18
DEVICES_MOST = 16  # below one device, with it
QUEUES_MOST = 2000  # of one device; fq_codel alone may have 65,536 flows
LINK_COUNTERS = (  # struct rtnl_link_stats64, as far as a reader needs it
    "rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "multicast", "collisions",
    "rx_length_errors", "rx_over_errors", "rx_crc_errors", "rx_frame_errors", "rx_fifo_errors", "rx_missed_errors", "tx_aborted_errors",
    "tx_carrier_errors", "tx_fifo_errors",
)  # fmt: skip

# Parameters that are attributes of one number each, in the order of the enumeration in the kernel's pkt_sched.h. An empty name is an
# attribute that is not read.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "noqueue": (),
    "mq": (),
    "fq_codel": ("target", "limit", "interval", "ecn", "flows", "quantum", "ce_threshold", "drop_batch_size", "memory_limit"),
    "fq": (
        "plimit", "flow_plimit", "quantum", "initial_quantum", "rate_enable", "flow_default_rate", "flow_max_rate", "buckets_log",
        "flow_refill_delay", "orphan_mask", "low_rate_threshold", "ce_threshold", "timer_slack", "horizon", "horizon_drop",
    ),
    "codel": ("target", "limit", "interval", "ecn", "ce_threshold"),
    "pie": ("target", "limit", "tupdate", "alpha", "beta", "ecn", "bytemode", "dq_rate_estimator"),
    "fq_pie": (
        "limit", "flows", "target", "tupdate", "alpha", "beta", "quantum", "memory_limit", "ecn_prob", "ecn", "bytemode",
        "dq_rate_estimator",
    ),
    "cake": (
        "", "base_rate64", "diffserv_mode", "atm", "flow_mode", "overhead", "rtt", "target", "autorate", "memory", "nat", "raw", "wash",
        "mpu", "ingress", "ack_filter", "split_gso", "fwmark",
    ),
    "netem": ("", "", "", "", "", "", "ecn", "rate64", "", "latency64", "jitter64"),
    "htb": ("", "", "", "", "direct_qlen"),
    "tbf": ("", "", "", "rate64", "prate64", "burst", "pburst"),
    "red": (),
}  # fmt: skip
# Parameters in a structure of 32-bit numbers: the attribute with the structure, or None if it comes before the attributes.
STRUCTURES: dict[str, tuple[int | None, tuple[str, ...]]] = {
    "pfifo": (None, ("limit",)),
    "bfifo": (None, ("limit",)),
    "pfifo_fast": (None, ("bands",)),
    "prio": (None, ("bands",)),
    "sfq": (None, ("quantum", "perturb_period", "limit", "divisor", "flows")),
    "netem": (None, ("latency", "limit", "loss", "gap", "duplicate", "jitter")),
    "htb": (2, ("version", "rate2quantum", "defcls", "debug", "direct_pkts")),
    "tbf": (1, ("", "", "rate", "", "", "peakrate", "limit", "buffer", "mtu")),
    "red": (1, ("limit", "qth_min", "qth_max")),
}


@dataclass(frozen=True)
class Link:
    address: str | None
    mtu: int | None
    txqlen: int | None
    state: str | None
    tx_queues: int | None


@dataclass(frozen=True)
class Qdisc:
    """A qdisc, or a class of one: a class that was configured, or a flow that the qdisc itself has made."""

    index: int  # of the device
    kind: str
    handle: int
    parent: int
    bytes: int
    packets: int
    drops: int
    overlimits: int
    requeues: int
    backlog_bytes: int
    backlog_packets: int
    marks: int | None  # None: the kind does not mark, or is unknown here
    parameters: dict[str, int] | None = None  # None: the parameters of this kind are not read
    own: Values = field(default_factory=dict)  # statistics of its kind, by the names of tc
    tins: list[Values] = field(default_factory=list)  # of cake


@dataclass(frozen=True)
class Way:
    """The route of packets to an address."""

    index: int
    source: str | None
    gateway: str | None


class Netlink:
    def __init__(self, family: int = socket.NETLINK_ROUTE) -> None:
        try:
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family)
        except OSError as error:
            raise StateError(f"no netlink socket: {error.strerror}") from None
        self.socket.settimeout(TIMEOUT_S)
        self.serial = 0

    def close(self) -> None:
        self.socket.close()

    def ask(self, kind: int, flags: int, body: bytes) -> Iterator[tuple[int, memoryview]]:
        """Send a request. Type and body of each message of the answer."""
        self.serial += 1
        try:
            self.socket.send(HEADER.pack(HEADER.size + len(body), kind, NLM_F_REQUEST | flags, self.serial, 0) + body)
            while True:
                data = memoryview(self.socket.recv(RECEIVE))
                at = 0
                while at + HEADER.size <= len(data):
                    length, answer, _, serial, _ = HEADER.unpack_from(data, at)
                    if length < HEADER.size or at + length > len(data):
                        raise StateError("netlink: a damaged answer")
                    message = data[at + HEADER.size : at + length]
                    at += (length + 3) & ~3
                    if serial != self.serial:
                        continue  # the rest of an older answer
                    if answer == NLMSG_DONE:
                        return
                    if answer == NLMSG_ERROR:
                        number = -struct.unpack_from("=i", message)[0] if len(message) >= 4 else 0
                        if number:
                            raise StateError(f"netlink: {os.strerror(number)}")
                        return
                    yield answer, message
                    if not flags & NLM_F_DUMP:
                        return
        except TimeoutError:
            raise StateError(f"netlink: no answer in {TIMEOUT_S:g} s") from None
        except OSError as error:
            raise StateError(f"netlink: {error.strerror or error}") from None

    def qdiscs(self, index: int) -> list[Qdisc]:
        """The qdiscs of one device with their counters, in the kernel's order: the root first."""
        return self._queues(RTM_GETQDISC, RTM_NEWQDISC, index)

    def classes(self, index: int) -> list[Qdisc]:
        """The classes of one device: those of htb, hfsc, mq, and so on, and the flows with packets of fq_codel, cake and sfq."""
        return self._queues(RTM_GETTCLASS, RTM_NEWTCLASS, index)

    def _queues(self, question: int, kind: int, index: int) -> list[Qdisc]:
        found: list[Qdisc] = []
        for answer, message in self.ask(question, NLM_F_DUMP, TCMSG.pack(0, index, 0, 0, 0)):
            if answer == kind and len(message) >= TCMSG.size:
                _, device, handle, parent, _ = TCMSG.unpack_from(message)
                if device == index and len(found) < QUEUES_MOST:
                    found.append(_qdisc(device, handle, parent, message[TCMSG.size :], of_class=kind == RTM_NEWTCLASS))
        return found

    def counters(self) -> Iterator[tuple[str, dict[str, int]]]:
        """The counters of each device (rtnl_link_stats64)."""
        for answer, message in self.ask(RTM_GETLINK, NLM_F_DUMP, IFINFOMSG.pack(0, 0, 0, 0, 0)):
            if answer == RTM_NEWLINK and len(message) >= IFINFOMSG.size:
                values = dict(attributes(message[IFINFOMSG.size :]))
                stats, name = values.get(IFLA_STATS64, memoryview(b"")), values.get(IFLA_IFNAME, memoryview(b""))
                numbers = struct.unpack_from(f"={min(len(stats) // 8, len(LINK_COUNTERS))}Q", stats)
                if numbers and len(name):
                    yield bytes(name).rstrip(b"\0").decode("utf-8", "replace"), dict(zip(LINK_COUNTERS, numbers, strict=False))

    def link(self, index: int) -> Link | None:
        for answer, message in self.ask(RTM_GETLINK, 0, IFINFOMSG.pack(0, 0, index, 0, 0)):
            if answer == RTM_NEWLINK and len(message) >= IFINFOMSG.size:
                values = dict(attributes(message[IFINFOMSG.size :]))
                state = _number(values.get(IFLA_OPERSTATE))
                return Link(
                    bytes(values[IFLA_ADDRESS]).hex(":") if values.get(IFLA_ADDRESS) else None,
                    _number(values.get(IFLA_MTU)), _number(values.get(IFLA_TXQLEN)),
                    OPERSTATES[state] if state is not None and state < len(OPERSTATES) else None, _number(values.get(IFLA_NUM_TX_QUEUES)),
                )  # fmt: skip
        return None

    def below(self, index: int) -> list[int]:
        """The devices of this network namespace that send the packets of a virtual device: the ports of a bridge or a bond, the device
        below a macvlan or a VLAN, and theirs. Not those below a tunnel: a route chooses them."""
        lower: dict[int, list[int]] = {}
        for answer, message in self.ask(RTM_GETLINK, NLM_F_DUMP, IFINFOMSG.pack(0, 0, 0, 0, 0)):
            if answer == RTM_NEWLINK and len(message) >= IFINFOMSG.size:
                _, _, device, _, _ = IFINFOMSG.unpack_from(message)
                values = dict(attributes(message[IFINFOMSG.size :]))
                info = dict(attributes(values.get(IFLA_LINKINFO, memoryview(b""))))
                link, master = _number(values.get(IFLA_LINK)), _number(values.get(IFLA_MASTER))
                if master:
                    lower.setdefault(master, []).append(device)
                # The link of a veth is the other end of the cable.
                if link and IFLA_LINK_NETNSID not in values and bytes(info.get(IFLA_INFO_KIND, b"")).rstrip(b"\0") != b"veth":
                    lower.setdefault(device, []).append(link)
        found = [index]
        for device in found:
            found += [one for one in lower.get(device, ()) if one not in found][: DEVICES_MOST - len(found)]
        return found[1:]

    def addresses(self) -> Iterator[tuple[int, str]]:
        """Pairs of device index and address with prefix."""
        for answer, message in self.ask(RTM_GETADDR, NLM_F_DUMP, IFADDRMSG.pack(0, 0, 0)):
            if answer == RTM_NEWADDR and len(message) >= IFADDRMSG.size:
                _, prefix, index = IFADDRMSG.unpack_from(message)
                values = dict(attributes(message[IFADDRMSG.size :]))
                address = _address(values.get(IFA_LOCAL)) or _address(values.get(IFA_ADDRESS))
                if address is not None:
                    yield index, f"{address}/{prefix}"

    def gateways(self) -> Iterator[tuple[str, str, int]]:
        """The routes of the main table with a gateway: destination, gateway, index of the device."""
        for answer, message in self.ask(RTM_GETROUTE, NLM_F_DUMP, RTMSG.pack(0, 0, 0, 0, 0, 0, 0, 0, 0)):
            if answer != RTM_NEWROUTE or len(message) < RTMSG.size:
                continue
            _, prefix, _, _, table, _, _, _, flags = RTMSG.unpack_from(message)
            values = dict(attributes(message[RTMSG.size :]))
            gateway, index = _address(values.get(RTA_GATEWAY)), _number(values.get(RTA_OIF))
            if gateway and index and not flags & RTM_F_CLONED and (_number(values.get(RTA_TABLE)) or table) == RT_TABLE_MAIN:
                to = _address(values.get(RTA_DST))
                yield f"{to}/{prefix}" if to else "default", gateway, index

    def way_to(self, address: str, protocol: int = 0, dscp: int = 0, port: int = 0, source: str | None = None) -> Way:
        """The route for packets of this IP protocol, DSCP and destination port; 0: that of all packets. Linux before 4.18 ignores
        protocol and port. `source`: of this host's address; None: any."""
        return next(self.ways_to(address, [(protocol, dscp, port)], source))

    def ways_to(self, address: str, packets: Iterable[tuple[int, int, int]], source: str | None = None) -> Iterator[Way]:
        """The same of packets of several kinds: IP protocol, DSCP and port of each. Most answers are equal except for the DSCP that they
        repeat: these are read once."""
        target = _ip(address)
        sender = _ip(source) if source else None
        family = socket.AF_INET if target.version == 4 else socket.AF_INET6
        packed = target.packed
        to = ATTRIBUTE.pack(4 + len(packed), RTA_DST) + packed
        known: dict[bytes, Way] = {}
        for protocol, dscp, port in packets:
            body = RTMSG.pack(family, 8 * len(packed), 8 * len(sender.packed) if sender else 0, dscp << 2, 0, 0, 0, 0, 0) + to
            if sender:
                body += ATTRIBUTE.pack(4 + len(sender.packed), RTA_SRC) + sender.packed
            if protocol:
                body += ATTRIBUTE.pack(5, RTA_IP_PROTO) + struct.pack("=B3x", protocol)
            if port:
                body += ATTRIBUTE.pack(6, RTA_DPORT) + struct.pack("!H2x", port)
            found: Way | None = None
            for answer, message in self.ask(RTM_GETROUTE, 0, body):
                if answer != RTM_NEWROUTE or len(message) < RTMSG.size:
                    continue
                key = bytes(message[:TOS_AT]) + bytes(message[TOS_AT + 1 :])
                found = known.get(key)
                if found is None and (found := _way(message)) is not None:
                    known[key] = found
            if found is None:
                raise StateError(f"no route to {address}")
            yield found


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        raise StateError(f"{address!r} is not an IP address") from None


def _way(route: memoryview) -> Way | None:
    values = dict(attributes(route[RTMSG.size :]))
    if RTA_OIF not in values or len(values[RTA_OIF]) != 4:
        return None
    (index,) = struct.unpack("=I", values[RTA_OIF])
    return Way(index, _address(values.get(RTA_PREFSRC)), _address(values.get(RTA_GATEWAY)))


def _number(value: memoryview | None) -> int | None:
    return int.from_bytes(value, sys.byteorder) if value is not None and len(value) in (1, 2, 4, 8) else None


def _parameters(kind: str, data: memoryview) -> dict[str, int] | None:
    """The parameters of a qdisc; None for an unknown kind."""
    names, (holder, fields) = PARAMETERS.get(kind, ()), STRUCTURES.get(kind, (None, ()))
    if kind not in PARAMETERS and not fields:
        return None
    head = 4 * len(fields) if holder is None else 0
    found = dict(attributes(data[head:]))
    words = data[:head] if holder is None else found.get(holder, data[:0])
    values = {name: _number(words[4 * at : 4 * at + 4]) for at, name in enumerate(fields)}
    values |= {name: _number(found.get(number)) for number, name in enumerate(names, 1)}
    return {name: value for name, value in values.items() if name and value is not None}


def _address(value: memoryview | None) -> str | None:
    return str(ipaddress.ip_address(bytes(value))) if value is not None and len(value) in (4, 16) else None


def handle_text(number: int) -> str:
    """A handle in tc's format: "1:", "1:10", "root"; empty: none."""
    if number == 0xFFFFFFFF:
        return "root"
    major, minor = number >> 16, number & 0xFFFF
    return f"{major:x}:{minor:x}" if minor else f"{major:x}:" if major else ""


def _qdisc(index: int, handle: int, parent: int, data: memoryview, *, of_class: bool = False) -> Qdisc:
    top = dict(attributes(data))
    kind = bytes(top.get(TCA_KIND, memoryview(b""))).rstrip(b"\0").decode("ascii", "replace")
    stats = dict(attributes(top.get(TCA_STATS2, memoryview(b""))))
    count, packets = BASIC.unpack_from(stats[TCA_STATS_BASIC]) if len(stats.get(TCA_STATS_BASIC, b"")) >= BASIC.size else (0, 0)
    if len(stats.get(TCA_STATS_PKT64, b"")) >= 8:  # present if 32 bits are too few
        (packets,) = struct.unpack_from("=Q", stats[TCA_STATS_PKT64])
    queue = stats.get(TCA_STATS_QUEUE, memoryview(b""))
    length, backlog, drops, requeues, overlimits = QUEUE.unpack_from(queue) if len(queue) >= QUEUE.size else (0, 0, 0, 0, 0)
    own, tins = queue_stats.parse(kind, stats.get(TCA_STATS_APP, memoryview(b"")), of_class=of_class)
    marks = queue_stats.marks(kind, own, tins)
    parameters = None if of_class else _parameters(kind, top.get(TCA_OPTIONS, memoryview(b"")))
    return Qdisc(index, kind, handle, parent, count, packets, drops, overlimits, requeues, backlog, length, marks, parameters, own, tins)
