# SPDX-License-Identifier: MIT OR Apache-2.0
"""Topologies: a TOML file of nodes and links, made into namespaces, veth pairs, routes and queues by a shell script.

The script needs only `ip`, `tc` and `ethtool`: it runs in a device of the lab, or as root on a host.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections import deque
from dataclasses import dataclass
from typing import Any

from ktrxer.lab import places
from ktrxer.lab.device import field, read_toml
from ktrxer.lab.errors import LabError

NAME = re.compile(r"[a-z][a-z0-9]{0,9}")
NETEM_LIMIT = "100000"  # packets: never the bottleneck
HTB_BURST = "1514"  # one frame: a bucket that is larger would let bursts pass the bottleneck


@dataclass(frozen=True)
class Shape:
    """What one end of a link does to packets that leave through it."""

    rate: str | None
    leaf: str | None
    delay: str | None


@dataclass(frozen=True)
class Link:
    ends: tuple[str, str]
    subnet: ipaddress.IPv4Network
    shapes: dict[str, Shape]

    def device(self, node: str) -> str:
        other = self.ends[1] if node == self.ends[0] else self.ends[0]
        return f"to-{other}"

    def address(self, node: str) -> ipaddress.IPv4Address:
        return self.subnet[1] if node == self.ends[0] else self.subnet[2]


@dataclass(frozen=True)
class Topology:
    title: str
    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    client: str
    server: str
    parameters: dict[str, str]

    def address(self, node: str) -> ipaddress.IPv4Address:
        """A node's address on its first link."""
        return next(link.address(node) for link in self.links if node in link.ends)

    def script(self) -> str:
        """Shell commands that make the topology."""
        lines = ["set -e", *(f"ip netns add {node}" for node in self.nodes)]
        lines += [f"ip -n {node} link set lo up" for node in self.nodes]
        lines += [f"ip netns exec {node} sysctl -qw net.ipv4.ip_forward=1" for node in self.nodes]
        for link in self.links:
            left, right = link.ends
            lines.append(f"ip link add name {link.device(left)} netns {left} type veth peer name {link.device(right)} netns {right}")
            for node in link.ends:
                name = link.device(node)
                lines.append(f"ip -n {node} address add {link.address(node)}/{link.subnet.prefixlen} dev {name}")
                lines.append(f"ip -n {node} link set {name} up")
                lines.append(f"ip netns exec {node} ethtool -K {name} tso off gso off gro off >/dev/null")
        for link in self.links:
            for node, shape in link.shapes.items():
                where = f"dev {link.device(node)}"
                lines += _shape_lines(f"tc -n {node} qdisc add {where}", f"tc -n {node} class add {where}", shape)
        for node in self.nodes:
            for subnet, gateway in self._routes(node):
                lines.append(f"ip -n {node} route add {subnet} via {gateway}")
        return "\n".join(lines) + "\n"

    def teardown(self) -> str:
        return "\n".join(f"ip netns del {node}" for node in self.nodes) + "\n"

    def _routes(self, node: str) -> list[tuple[ipaddress.IPv4Network, ipaddress.IPv4Address]]:
        first_hop: dict[str, ipaddress.IPv4Address | None] = {node: None}
        queue = deque([node])
        while queue:
            here = queue.popleft()
            for link in self.links:
                if here not in link.ends:
                    continue
                there = link.ends[1] if here == link.ends[0] else link.ends[0]
                if there not in first_hop:
                    first_hop[there] = first_hop[here] or link.address(there)
                    queue.append(there)
        routes = []
        for link in self.links:
            nearest = next((end for end in first_hop if end in link.ends), None)
            gateway = first_hop[nearest] if nearest is not None else None
            if gateway is not None:
                routes.append((link.subnet, gateway))
        return routes


def _shape_lines(qdisc: str, group: str, shape: Shape) -> list[str]:
    if shape.rate is not None:
        rate = shlex.quote(shape.rate)
        leaf = shlex.join(shlex.split(shape.leaf or "pfifo limit 1000"))
        return [
            f"{qdisc} root handle 1: htb default 1",
            f"{group} parent 1: classid 1:1 htb rate {rate} burst {HTB_BURST} cburst {HTB_BURST}",
            f"{qdisc} parent 1:1 handle 10: {leaf}",
        ]
    if shape.delay is not None:
        return [f"{qdisc} root netem delay {shlex.join(shlex.split(shape.delay))} limit {NETEM_LIMIT}"]
    return []


def names() -> list[str]:
    return sorted(path.stem for path in (places.data() / "topologies").glob("*.toml"))


def load(name: str, settings: dict[str, str] | None = None) -> Topology:
    """A topology by name, with some of its parameters set."""
    if name not in names():
        raise LabError(f"no topology {name!r}; choose one of: {', '.join(names())}")
    path = places.data() / "topologies" / f"{name}.toml"
    table = read_toml(path)
    parameters = {key: str(value) for key, value in field(table, "parameters", dict, path).items()}
    for key, value in (settings or {}).items():
        if key not in parameters:
            raise LabError(f"topology {name} has no parameter {key!r}; choose one of: {', '.join(sorted(parameters))}")
        parameters[key] = value
    nodes = tuple(map(str, field(table, "nodes", list, path)))
    for node in nodes:
        if not NAME.fullmatch(node):
            raise LabError(f"{path}: {node!r} is no name for a node (a-z, 0-9, at most 10)")

    def shape(raw: dict[str, Any]) -> Shape:
        unknown = set(raw) - {"rate", "leaf", "delay"}
        if unknown:
            raise LabError(f"{path}: unknown shape {', '.join(sorted(unknown))}")
        values = {key: str(value).format(**parameters) for key, value in raw.items()}
        return Shape(values.get("rate"), values.get("leaf"), values.get("delay"))

    links = []
    for raw in field(table, "links", list, path):
        ends = field(raw, "ends", list, path)
        if len(ends) != 2 or any(end not in nodes for end in ends):
            raise LabError(f"{path}: a link needs two of the nodes as its ends, found {ends}")
        shapes = {str(node): shape(value) for node, value in raw.get("shape", {}).items()}
        if set(shapes) - set(ends):
            raise LabError(f"{path}: the link {ends} shapes a node that is not its end")
        links.append(Link((str(ends[0]), str(ends[1])), ipaddress.IPv4Network(field(raw, "subnet", str, path)), shapes))
    client, server = field(table, "client", str, path), field(table, "server", str, path)
    for node in (client, server):
        if not any(node in link.ends for link in links):
            raise LabError(f"{path}: {node!r} has no link")
    return Topology(field(table, "title", str, path), nodes, tuple(links), client, server, parameters)
