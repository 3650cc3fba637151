# SPDX-License-Identifier: MIT OR Apache-2.0
"""Topologies: a TOML file of hosts, routers and links, read and checked (docs/reference/topology-files.md).

A shell script (`wiring.py`) creates a topology: the same script in a device of the lab, in namespaces of this host, and by hand. No text of
a file is executed: each value is checked against its allowed form and then quoted.
"""

from __future__ import annotations

import difflib
import ipaddress
import itertools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ktrxer_lab import places, trace
from ktrxer_lab.errors import LabError
from ktrxer_lab.toml_faults import fault
from ktrxer_lab.topology_model import DEFAULT_QUEUE, RATE_LIMIT_PPM, Aggregate, Bucket, Clock, Link, Shape, Topology, Trace, Way
from ktrxer_lab.topology_text import SCALE, TIME, Text, one_line, show
from ktrxer_lab.wiring import BLEACHED, FRAME_HEADER

NAME = re.compile(r"[a-z][a-z0-9]{0,9}")  # the device `to-NAME` has at most 15 characters
PARAMETER = re.compile(r"[a-z][a-z0-9_]{0,31}")
WORD = re.compile(r"[A-Za-z0-9_.:%/-]{1,32}")

FILE_LIMIT = 256 * 1024
NODES_LIMIT, LINKS_LIMIT, ROUTES_LIMIT, CLOCKS_LIMIT = 64, 250, 1000, 1000  # addresses contain the number of the link
DOWN_LIMIT_NS = 24 * 3_600_000_000_000
MTU_BOUNDS = (576, 65535)  # 576: IPv4 requires it of each host
BURST_LIMIT = 1000.0  # packets lost in a row, on average
DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal")  # of netem; uniform is netem's default
# Keys of one direction.
KEYS = (
    *("rate", "bucket", "peak", "trace", "queue", "police", "bleach", "nat"),
    *("delay", "jitter", "distribution", "loss", "burst", "reorder", "duplicate", "aggregate"),
)
NO_TEXT = ("burst", "nat")  # keys whose value is not text: a number, true or false
AGGREGATE = re.compile(r"([^,]+?)(?:, ?(\d{1,4}) packets)?")
AGGREGATE_PACKETS = 64  # of an A-MPDU of IEEE 802.11n
TAIL_DROP = re.compile(r"([pb])fifo(?: limit (\d{1,9}))?")
# A similar name gets a hint; the kernel may have others.
QUEUES = ("bfifo", "cake", "codel", "drr", "dualpi2", "fq", "fq_codel", "fq_pie", "hhf", "pfifo", "pie", "qfq", "red", "sfq", "tbf")


def names() -> list[str]:
    return sorted(path.stem for path in (places.data() / "topologies").glob("*.toml"))


def find(name: str) -> Path:
    """The file of a topology, by its path or by the name of an included one."""
    if "/" in name or name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            why = "a folder" if path.is_dir() else "No such file or directory"
            raise LabError(f"{name}: {why}; the lab's own are: {', '.join(names())}")
        return path
    if name not in names():
        cure = f", or ./{name} for that file" if Path(name).is_file() else ""
        raise LabError(f"no topology {name[:64]!r}; choose one of: {', '.join(names())}{cure}")
    return places.data() / "topologies" / f"{name}.toml"


def load(name: str, settings: Mapping[str, str] | None = None) -> Topology:
    """A topology by name or path, with some of its parameters set."""
    path = find(name)
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    return parse(data, path, settings)


def parse(data: bytes, path: Path, settings: Mapping[str, str] | None = None) -> Topology:
    if len(data) > FILE_LIMIT:
        raise LabError(f"{path}: larger than {FILE_LIMIT // 1024} KiB")
    try:
        table = tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise LabError(f"{path}: not UTF-8 text") from None
    except ValueError as error:
        raise LabError(f"{path}: not TOML: {fault(error, data.decode())}") from None
    except RecursionError:
        raise LabError(f"{path}: not TOML: nested too deeply") from None
    return _Reader(path, settings or {}, data.decode().splitlines()).topology(table)


class _Reader(Text):
    """Converts the tables of one file to a Topology."""

    routers: frozenset[str] = frozenset()

    def topology(self, table: dict[str, Any]) -> Topology:
        self.only(table, ("title", "hosts", "routers", "client", "server", "parameters", "links", "routes", "clocks"), "")
        title = self.text(table, "title", "") or self.path.stem
        hosts, routers = self.node_names(table, "hosts"), self.node_names(table, "routers")
        nodes = (*hosts, *routers)
        self.routers = frozenset(routers)
        if len(hosts) < 2:
            raise self.fail("", f'`hosts` must name two or more, e.g. hosts = ["client", "server"]; found {show(table.get("hosts"))}')
        if len(nodes) > NODES_LIMIT:
            raise self.fail("", f"{len(nodes)} hosts and routers: at most {NODES_LIMIT}")
        for node in nodes:
            if nodes.count(node) > 1:
                raise self.fail("", f"{node!r} is named twice among hosts and routers")
        self.parameters = self.read_parameters(table)
        links = self.links(table, nodes)
        ends = {end for link in links for end in link.ends}
        for node in nodes:
            if node not in ends:
                raise self.fail("", f"{node!r} has no link")
        client, server = self.text(table, "client", "") or hosts[0], self.text(table, "server", "") or hosts[-1]
        for key, node in (("client", client), ("server", server)):
            if node not in hosts:
                raise self.fail("", f"`{key}` must be one of the hosts ({', '.join(hosts)}), found {show(node)}")
        if client == server:
            raise self.fail("", f"`client` and `server` are both {client!r}: name two hosts")
        # The order is that of the links: a list of nodes reads along the path.
        order = tuple(dict.fromkeys(end for link in links for end in link.ends))
        changes = self.ways(table, links), self.clocks(table, nodes)
        made = Topology(self.path.stem, title, order, frozenset(routers), links, client, server, self.parameters, self.path, *changes)
        for number, way in enumerate(made.ways, start=1):
            if circle := made.circle(way):
                cure = f"write a route to {way.to} for {circle[-2]}, too"
                raise self.fail(f"route {number}", f"packets to {way.to!r} loop: {', '.join(circle)}; {cure}")
        for host in hosts:
            lost = set(hosts) - {host} - made.reaches(host)
            if lost:
                raise self.fail("", f"no path from {host!r} to {min(lost)!r}: only routers forward; link them through `routers`")
        return made

    def node_names(self, table: dict[str, Any], key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list):
            raise self.fail("", f"`{key}` must be a list of names, found {show(value)}")
        for name in value:
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise self.fail("", f"`{key}`: {show(name)} is not a name (a-z, then a-z and 0-9, at most 10)")
        return tuple(value)

    def read_parameters(self, table: dict[str, Any]) -> dict[str, str]:
        raw = table.get("parameters", {})
        if not isinstance(raw, dict):
            raise self.fail("", f"[parameters] must be a table, found {show(raw)}")
        found: dict[str, str] = {}
        for key in raw:
            if not PARAMETER.fullmatch(key):
                raise self.fail("[parameters]", f"{show(key)} is not a name (a-z, then a-z, 0-9 and _, at most 32)")
            value = raw[key]
            if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                raise self.fail("[parameters]", f"`{key}` must be text or a number, found {show(value)}")
            if isinstance(value, int) and abs(value) >= 1 << 63:
                raise self.fail("[parameters]", f"`{key}` is too large")
            found[key] = str(value)
        for key, value in self.settings.items():
            if key not in found:
                known = f"choose one of: {', '.join(sorted(found))}" if found else "it has none"
                raise LabError(f"topology {self.path.stem} has no parameter {key[:64]!r}; {known}")
            found[key] = value
        for key, value in found.items():
            if len(value) > 200 or not value.isprintable():
                raise self.fail("[parameters]", f"`{key}` must be one printable line of at most 200 characters")
        return found

    def links(self, table: dict[str, Any], nodes: tuple[str, ...]) -> tuple[Link, ...]:
        raw = table.get("links")
        if not isinstance(raw, list) or not raw or not all(isinstance(one, dict) for one in raw):
            raise self.fail("", "no links; write [[links]] and ends = [...] for each")
        if len(raw) > LINKS_LIMIT:
            raise self.fail("", f"{len(raw)} links: at most {LINKS_LIMIT}")
        links = [self.link(one, number, nodes) for number, one in enumerate(raw, start=1)]
        for left, right in itertools.combinations(links, 2):
            if set(left.ends) == set(right.ends):
                raise self.fail(f"link {right.number}", f"{right.ends[0]} and {right.ends[1]} are linked already, by link {left.number}")
            if left.subnet.overlaps(right.subnet):
                raise self.fail(f"link {right.number}", f"subnet {right.subnet} overlaps that of link {left.number}, {left.subnet}")
        return tuple(links)

    def link(self, raw: dict[str, Any], number: int, nodes: tuple[str, ...]) -> Link:
        ends = raw.get("ends")
        where = f"link {number}"
        if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, str) for end in ends):
            raise self.fail(where, f'`ends` must be two names, e.g. ends = ["client", "router"]; found {show(ends)}')
        for end in ends:
            if end not in nodes:
                raise self.fail(where, f"`ends`: {show(end)} is not among hosts and routers ({', '.join(nodes)})")
        if ends[0] == ends[1]:
            raise self.fail(where, f"`ends`: both are {ends[0]!r}")
        where = f"link {number} ({ends[0]} - {ends[1]})"
        self.only(raw, ("ends", *KEYS, "from", "down", "subnet", "mtu", "offload"), where)
        apart = raw.get("from", {})
        if not isinstance(apart, dict) or not all(isinstance(one, dict) for one in apart.values()):
            raise self.fail(where, f'`from` holds one table for an end, e.g. from.{ends[0]} = {{ rate = "10mbit" }}')
        for node in apart:
            if node not in ends:
                raise self.fail(where, f"`from.{show(node)[1:-1]}`: not an end of this link")
        shapes = {}
        for node in ends:
            side = f"{where}, from {node}"
            self.only(apart.get(node, {}), KEYS, side)
            merged = {key: raw[key] for key in KEYS if key in raw} | apart.get(node, {})
            shapes[node] = self.shape(merged, side if node in apart else where)
            if shapes[node].nat and node not in self.routers:
                raise self.fail(side if node in apart else where, f"`nat`: {node!r} is a host; only routers forward packets of others")
        mtu = raw.get("mtu", 1500)
        if isinstance(mtu, bool) or not isinstance(mtu, int) or not MTU_BOUNDS[0] <= mtu <= MTU_BOUNDS[1]:
            raise self.fail(where, f"`mtu` must be a number from {MTU_BOUNDS[0]} to {MTU_BOUNDS[1]}, found {show(mtu)}")
        offload = raw.get("offload", False)
        if not isinstance(offload, bool):
            raise self.fail(where, f"`offload` must be true or false, found {show(offload)}")
        if offload and any(shape.rate_bps or shape.trace for shape in shapes.values()):
            raise self.fail(where, "`offload` and `rate` exclude each other: a rate is only true for packets of the size of the wire")
        for shape in shapes.values():
            if shape.bucket is not None and shape.bucket.size_bytes < mtu + FRAME_HEADER:
                raise self.fail(where, f"`bucket` must hold a packet of the link: {mtu + FRAME_HEADER} bytes or more")
        hosts = frozenset(end for end in ends if end not in self.routers)
        return Link((ends[0], ends[1]), number, self.subnet(raw, number, where), shapes, mtu, offload, hosts, self.down(raw, where))

    def tables(self, table: dict[str, Any], key: str, limit: int) -> list[dict[str, Any]]:
        raw = table.get(key, [])
        if not isinstance(raw, list) or not all(isinstance(one, dict) for one in raw) or len(raw) > limit:
            raise self.fail("", f"`{key}` must be at most {limit} tables; write [[{key}]] for each")
        return raw

    def ways(self, table: dict[str, Any], links: tuple[Link, ...]) -> tuple[Way, ...]:
        raw = self.tables(table, "routes", ROUTES_LIMIT)
        return tuple(self.way(one, f"route {number}", links) for number, one in enumerate(raw, start=1))

    def clocks(self, table: dict[str, Any], nodes: tuple[str, ...]) -> tuple[Clock, ...]:
        found: list[Clock] = []
        for number, raw in enumerate(self.tables(table, "clocks", CLOCKS_LIMIT), start=1):
            where = f"clock {number}"
            self.only(raw, ("at", "node", "offset", "rate_ppm", "slew"), where)
            name = self.text(raw, "node", where)
            if name is None:
                raise self.fail(where, "`node` is missing; a clock has `node`, `offset`, `rate_ppm` or `slew`, and perhaps `at`")
            node = self.choice("node", name, nodes, where)
            before = next((clock for clock in reversed(found) if clock.node == node), None)
            at_ns, step_ns, slew_ns = self.at(raw, where), self.offset(raw, "offset", where), self.offset(raw, "slew", where)
            if before is not None and at_ns <= before.at_ns:
                raise self.fail(where, f"`at`: must be later than that of the clock of {node!r} before, {before.at_ns / 1e9:g} s")
            rate = raw.get("rate_ppm", before.rate_ppb / 1e3 if before else 0)
            if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not abs(rate) <= RATE_LIMIT_PPM:
                raise self.fail(where, f"`rate_ppm` must be a number from -{RATE_LIMIT_PPM} to {RATE_LIMIT_PPM}, found {show(rate)}")
            if not raw.keys() & {"offset", "rate_ppm", "slew"}:
                raise self.fail(where, f"the clock of {node!r} has no `offset`, `rate_ppm` or `slew`")
            clock = Clock(at_ns, node, step_ns, round(rate * 1000))
            if slew_ns and clock.rate_ppb == (RATE_LIMIT_PPM if slew_ns > 0 else -RATE_LIMIT_PPM) * 1000:
                raise self.fail(where, f"`slew`: the clock of {node!r} has the limit of {RATE_LIMIT_PPM} ppm already")
            found += clock.slewed(slew_ns)
        return tuple(found)

    def offset(self, raw: dict[str, Any], key: str, where: str) -> int:
        text = (self.filled(raw, key, where) or "0s").strip()
        match = TIME.fullmatch(text.removeprefix("-"))
        value = round(float(match[1]) * SCALE[match[2]]) if match else DOWN_LIMIT_NS + 1
        if value > DOWN_LIMIT_NS:
            raise self.fail(where, f'`{key}` must be a time up to 24 hours, e.g. "3ms" or "-3ms"; found {show(text)}')
        return -value if text.startswith("-") else value

    def way(self, raw: dict[str, Any], where: str, links: tuple[Link, ...]) -> Way:
        self.only(raw, ("at", "node", "to", "via"), where)
        ends = list(dict.fromkeys(end for link in links for end in link.ends))
        named = {}
        for key in ("node", "to", "via"):
            name = self.text(raw, key, where)
            if name is None:
                raise self.fail(where, f"`{key}` is missing; a route has `node`, `to`, `via` and perhaps `at`")
            named[key] = self.choice(key, name, ends, where)
        node, to, via = named["node"], named["to"], named["via"]
        neighbours = [link.other(node) for link in links if node in link.ends]
        if via not in neighbours:
            raise self.fail(where, f"`via`: {via!r} is not a neighbour of {node!r}; choose one of: {', '.join(neighbours)}")
        if via != to and via not in self.routers:
            raise self.fail(where, f"`via`: {via!r} is a host, which does not forward; make it a router")
        if node == to:
            raise self.fail(where, f"`to`: {to!r} is the node itself")
        return Way(self.at(raw, where), node, to, via)

    def at(self, raw: dict[str, Any], where: str) -> int:
        text = self.filled(raw, "at", where)
        match = TIME.fullmatch(text.strip()) if text is not None else None
        at_ns = round(float(match[1]) * SCALE[match[2]]) if match else 0
        if (text is not None and match is None) or at_ns > DOWN_LIMIT_NS:
            raise self.fail(where, f'`at` must be a time up to 24 hours, e.g. "10s"; found {show(text)}')
        return at_ns

    def down(self, raw: dict[str, Any], where: str) -> tuple[tuple[int, int], ...]:
        value = raw.get("down", [])
        example = 'e.g. down = ["10s to 12s"]'
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.fail(where, f"`down` must be a list of times, {example}; found {show(value)}")
        found: list[tuple[int, int]] = []
        for one in value:
            times = [TIME.fullmatch(part.strip()) for part in one.split(" to ")]
            if len(times) != 2 or not all(times):
                raise self.fail(where, f"`down`: {show(one)} must be two times, {example}")
            begin, end = (round(float(match[1]) * SCALE[match[2]]) for match in times if match)
            if not (found[-1][1] if found else 0) <= begin < end <= DOWN_LIMIT_NS:
                raise self.fail(where, f"`down`: {show(one)} must end after it begins, follow the one before, and be within 24 hours")
            found.append((begin, end))
        return tuple(found)

    def subnet(self, raw: dict[str, Any], number: int, where: str) -> ipaddress.IPv4Network:
        text = self.text(raw, "subnet", where) or f"10.64.{number}.0/24"
        try:
            subnet = ipaddress.IPv4Network(text)
        except ValueError as error:
            raise self.fail(where, f"`subnet`: {one_line(error)}") from None
        if subnet.prefixlen > 30:
            raise self.fail(where, f"`subnet` {subnet} has no room for two addresses; /30 is the smallest")
        if not subnet.is_private or subnet.is_loopback or subnet.is_link_local or subnet.prefixlen < 8:
            raise self.fail(where, f"`subnet` {subnet} must be of a private network, e.g. 10.64.{number}.0/24")
        return subnet

    def shape(self, raw: dict[str, Any], where: str) -> Shape:
        text = {key: self.filled(raw, key, where) for key in KEYS if key not in NO_TEXT}
        delay, jitter = ((self.time(key, value, where) if (value := text[key]) is not None else 0) for key in ("delay", "jitter"))
        loss, reorder, duplicate = (
            (self.percent(key, value, where) if (value := text[key]) is not None else 0) for key in ("loss", "reorder", "duplicate")
        )
        if jitter > delay:
            raise self.fail(where, f"`jitter` {text['jitter']} is more than `delay` {text['delay'] or '0'}")
        if reorder and not delay:
            raise self.fail(where, "`reorder` needs `delay`: packets are reordered because they skip it")
        distribution = text["distribution"] or "uniform"
        self.choice("distribution", distribution, DISTRIBUTIONS, where)
        if text["distribution"] and not jitter:
            raise self.fail(where, "`distribution` needs `jitter`")
        burst = self.burst(raw, loss, where)
        rate, police = ((self.rate(key, value, where) if (value := text[key]) is not None else None) for key in ("rate", "police"))
        if sum(text[key] is not None for key in ("rate", "police", "trace")) > 1:
            raise self.fail(where, "`police`, `rate` and `trace` exclude each other in a direction: use one of them")
        nat = raw.get("nat", False)
        if not isinstance(nat, bool):
            raise self.fail(where, f"`nat` must be true or false, found {show(nat)}")
        queue, followed = self.queue(raw, where), None
        if text["trace"] is not None:
            queue, followed = (), self.trace(text["trace"], queue, where)
        bucket, bleach = self.bucket(text, rate, where), self.bleach(text["bleach"], where)
        aggregate = self.aggregate(text["aggregate"], where)
        shaken = (delay, jitter, distribution, loss, burst, reorder, duplicate)
        return Shape(rate, queue, *shaken, police, followed, bucket, aggregate, bleach, nat, self.at_line(where, "queue"))

    def bucket(self, text: Mapping[str, str | None], rate: int | None, where: str) -> Bucket | None:
        size, peak = text["bucket"], text["peak"]
        if size is None:
            if peak is not None:
                raise self.fail(where, "`peak` needs `bucket`")
            return None
        if rate is None:
            raise self.fail(where, "`bucket` needs `rate`")
        peak_bps = self.rate("peak", peak, where) if peak is not None else None
        if peak_bps is not None and peak_bps <= rate:
            raise self.fail(where, f"`peak` must be above `rate`, {rate} bit/s; found {show(peak)}")
        return Bucket(self.size("bucket", size, where), peak_bps)

    def trace(self, name: str, queue: tuple[str, ...], where: str) -> Trace:
        path = self.path.parent / name
        try:
            trace.load(path)
        except ValueError as error:
            raise self.fail(where, f"`trace`: {one_line(error)}") from None
        match = TAIL_DROP.fullmatch(" ".join(queue) or DEFAULT_QUEUE)
        if match is None:
            raise self.fail(where, '`queue`: before a `trace` it is "pfifo limit PACKETS" or "bfifo limit BYTES"')
        packets = match[1] == "p"
        return Trace(path, "packets" if packets else "bytes", int(match[2] or (1000 if packets else 1_000_000)))

    def aggregate(self, text: str | None, where: str) -> Aggregate | None:
        if text is None:
            return None
        match = AGGREGATE.fullmatch(text.strip())
        packets = int(match[2] or AGGREGATE_PACKETS) if match else 0
        if match is None or packets < 1:
            raise self.fail(where, f'`aggregate` must be as "4ms" or "2ms to 8ms, 32 packets"; found {show(text)}')
        return Aggregate(self.span("aggregate", match[1], where), packets)

    def bleach(self, text: str | None, where: str) -> frozenset[str]:
        return frozenset(self.choice("bleach", word, BLEACHED, where) for word in (text or "").split())

    def burst(self, raw: dict[str, Any], loss_ppm: int, where: str) -> float:
        value = raw.get("burst", 1)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= BURST_LIMIT:
            raise self.fail(where, f"`burst` must be a number of packets from 1 to {BURST_LIMIT:g}, found {show(value)}")
        if value > 1 and not 0 < loss_ppm < 1_000_000:
            raise self.fail(where, "`burst` needs a `loss` between 0% and 100%")
        return float(value)

    def queue(self, raw: dict[str, Any], where: str) -> tuple[str, ...]:
        text = self.filled(raw, "queue", where)
        if text is None:
            return ()
        words = tuple(text.split())
        # The text goes to tc. The script checks whether the kernel has this queue, before it creates anything.
        if not words or len(words) > 32 or not all(WORD.fullmatch(word) for word in words) or not re.match("[a-z]", words[0]):
            raise self.fail(where, f'`queue` must be a queue as tc names it, e.g. "fq_codel" or "pfifo limit 1000"; found {show(text)}')
        near = difflib.get_close_matches(words[0], QUEUES, 1, 0.75)
        if words[0] not in QUEUES and near:
            raise self.fail(where, f"`queue`: unknown queue {words[0]!r}; do you mean `{near[0]}`?")
        return words
