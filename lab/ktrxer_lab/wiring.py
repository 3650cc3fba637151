# SPDX-License-Identifier: MIT OR Apache-2.0
"""Converts a topology to a shell script: namespaces, veth pairs, addresses, routes and queues.

The script needs only `ip`, `tc`, `ethtool` and a POSIX shell, and `nft` for loss on a kernel without netem. It ends at the first feature
that the kernel lacks, with one line that names the feature. The same script runs in a device of the lab, in `ktrxer lab run`, and by hand.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ktrxer_lab.namespaces import QUIET, batch, batch6, cable, host, settle
from ktrxer_lab.namespaces import script as shell
from ktrxer_lab.topology_model import DEFAULT_QUEUE, POLICE_NS, Link, Shape, Topology

NETEM_LIMIT = 100_000  # packets: so large that it never drops
BURST_S = 250e-6  # a time at the rate: the lateness of the shaper's wake-up that costs no throughput
TBF_LIMIT = 1 << 30  # bytes: never reached, because the queue below it has a lower limit
BLEACHED = {"dscp": 0xFC, "ecn": 0x03}  # bits of the former type-of-service byte
FRAME_HEADER = 14  # bytes of Ethernet before the IP packet


def script(topology: Topology) -> str:
    return shell(_lines(topology))


def teardown(topology: Topology) -> str:
    lines = [f"ip netns del {node}" for node in (*topology.nodes, *_wires(topology))]
    return "\n".join([*lines, *(f"rm -rf /etc/netns/{node}" for node in topology.nodes)]) + "\n"


def _wires(topology: Topology) -> list[str]:
    return [link.wire for link in topology.links if link.wire]


def _lines(topology: Topology) -> Iterator[str]:
    for node in (*topology.nodes, *_wires(topology)):
        yield host(node)
    for node in topology.nodes:
        forward = int(node in topology.routers)
        yield from settle(node, f"ipv4/ip_forward={forward}", f"ipv6/conf/all/forwarding={forward}")
    yield from _tries(topology)
    for link in topology.links:
        yield from _link(link)
    for link in topology.links:
        for node in link.ends:
            yield from _shape(link, node, link.shapes[node])
    for node in topology.nodes:
        found = topology.routes(node)
        if found:
            yield from batch(f"routes of {node}", node, (f"route add {to.subnet} via {by.address(gate)}" for to, by, gate in found))
            yield from batch6(f"routes of {node}", node, (f"route add {to.subnet6} via {by.address6(gate)}" for to, by, gate in found))
    for way in topology.ways:
        if way.at_ns == 0:
            yield f"step 'the way from {way.node} to {way.to}' sh -c {shlex.quote('; '.join(topology.route(way)))}"
    if topology.clocks:
        yield "[ -e /proc/net/host_clock ] || fail 'this kernel has one clock for all hosts; use ktrxer lab run --time virtual'"
    for clock in topology.clocks:
        if clock.at_ns == 0:
            yield f"step 'the clock of {clock.node}' {shlex.join(clock.words())}"
    yield from _names(topology)
    for words in topology.helpers():
        yield f"# runs as long as the network: {shlex.join(words)}"
    for at, words in topology.events():
        yield f"# {at:g} s after the command's start: {shlex.join(words)}"


def _tries(topology: Topology) -> Iterator[str]:
    """Commands that try each kind of queue in the file once."""
    node, seen = topology.nodes[0], set[tuple[str, ...]]()
    for link in topology.links:
        for end in link.ends:
            shape, way = link.shapes[end], f"from {end} to {link.other(end)}"
            wanted: list[tuple[str, tuple[str, ...]]] = []
            if shape.rate_bps is not None and shape.bucket is None:
                wanted.append((f"htb (the rate {way})", ("handle", "1:", "htb", "default", "1")))
            if shape.queue:
                wanted.append((f"{shape.queue[0]} (the queue {way}, {shape.queue_at})", shape.queue))
            if shape.needs_netem:
                wanted.append((f"netem (the {'delay' if shape.delay_ns else 'impairment'} {way})", _netem(shape)))
            for label, words in wanted:
                if words not in seen:
                    seen.add(words)
                    yield f"try {node} {shlex.quote(label)} {shlex.join(words)}"
    if any(shape.loss_ppm for link in topology.links for shape in link.shapes.values()):
        yield f"netem=0; tc -n {node} qdisc replace dev lo root netem 2>/dev/null && netem=1 && tc -n {node} qdisc del dev lo root"


def _link(link: Link) -> Iterator[str]:
    left, right = link.ends
    words = f"the link {left} - {right}"
    what = shlex.quote(words)
    if link.wire:
        # A namespace between the two ends with a bridge of two ports, or with two bridges if it also holds the queue of a host.
        w = link.wire
        bridges = {node: link.bridge(node) for node in link.ends}
        yield f"tune {w} ipv6/conf/all/disable_ipv6=1 ipv6/conf/default/disable_ipv6=1 {' '.join(QUIET)}"
        for bridge in dict.fromkeys(bridges.values()):
            yield f"step {what} ip -n {w} link add name {bridge} mtu {link.mtu} type bridge stp_state 0 mcast_snooping 0"
        for node in link.ends:
            yield cable(words, (node, link.device(node)), (w, f"to-{node}"))
            if not link.offload:
                yield f"bare {w} to-{node}"
            yield f"step {what} ip -n {w} link set to-{node} mtu {link.mtu} master {bridges[node]} up"
        if link.halves:
            yield f"step {what} ip -n {w} link add name from-{left} type veth peer name from-{right}"
            for node in link.ends:
                if not link.offload:
                    yield f"bare {w} from-{node}"
                yield f"step {what} ip -n {w} link set from-{node} mtu {link.mtu} master {bridges[node]} up"
        for bridge in dict.fromkeys(bridges.values()):
            yield f"step {what} ip -n {w} link set {bridge} up"
    else:
        yield cable(words, (left, link.device(left)), (right, link.device(right)))
    for node in link.ends:
        device, other = link.device(node), link.other(node)
        if not link.offload:
            yield f"bare {node} {device}"
        # Static neighbour entries: no probe waits for ARP, and no ARP packet is lost by the lab's own loss.
        lines = (
            f"link set {device} address {_mac(link, node)} mtu {link.mtu} up",
            f"address add {link.address(node)}/{link.subnet.prefixlen} dev {device}",
            f"neighbour add {link.address(other)} lladdr {_mac(link, other)} dev {device} nud permanent",
        )
        yield from batch(f"the address of {node} on {device}", node, lines)
        six = (
            f"address add {link.address6(node)}/64 dev {device} nodad",
            f"neighbour add {link.address6(other)} lladdr {_mac(link, other)} dev {device} nud permanent",
        )
        yield from batch6(f"the address of {node} on {device}", node, six)


def _mac(link: Link, node: str) -> str:
    """A locally administered address, as its second bit shows."""
    return f"02:64:00:00:{link.number:02x}:{link.ends.index(node) + 1:02x}"


def _netem(shape: Shape) -> tuple[str, ...]:
    words = ["netem", "limit", str(NETEM_LIMIT)]
    if shape.delay_ns:
        words += ["delay", f"{max(1, round(shape.delay_ns / 1000))}us"]  # tc counts in microseconds
        if shape.jitter_ns:
            words.append(f"{max(1, round(shape.jitter_ns / 1000))}us")
            words += ["distribution", shape.distribution] if shape.distribution != "uniform" else []
    if shape.loss_ppm and shape.burst > 1:
        # Gilbert's model: in the bad state each packet is lost. `leave` and `enter` are the transition probabilities at each packet.
        leave, share = 1 / shape.burst, shape.loss_ppm / 1e6
        enter = leave * share / (1 - share)
        words += ["loss", "gemodel", f"{100 * enter:.6f}%", f"{100 * leave:.6f}%"]
    elif shape.loss_ppm:
        words += ["loss", f"{shape.loss_ppm / 1e4:.4f}%"]
    if shape.duplicate_ppm:
        words += ["duplicate", f"{shape.duplicate_ppm / 1e4:.4f}%"]
    if shape.aggregate:
        low, high = shape.aggregate.wait_ns
        words += ["slot", f"{low}ns", f"{high}ns", "packets", str(shape.aggregate.packets)]
    if shape.reorder_ppm:
        words += ["reorder", f"{shape.reorder_ppm / 1e4:.4f}%"]
    return tuple(words)


def _shape(link: Link, node: str, shape: Shape) -> Iterator[str]:
    way = f"from {node} to {link.other(node)}"
    place, device = link.queue_place(node)
    at, queue = f"tc -n {place} qdisc add dev {device}", shlex.join(shape.queue or DEFAULT_QUEUE.split())
    if shape.rate_bps is not None:
        what = shlex.quote(f"the rate {way}")
        yield from (f"step {what} {words}" for words in _rate(link, shape, shape.rate_bps, at, f"tc -n {place} class add dev {device}"))
        yield f"step {shlex.quote(f'the queue {way}')} {at} parent 1:1 handle 10: {queue}"
    elif shape.queue:
        yield f"step {shlex.quote(f'the queue {way}')} {at} root handle 10: {queue}"
    if shape.entry:
        yield from _entry(link, node, shape, way)
    if shape.nat:
        yield from _nat(link, node, way)
    if not shape.impaired:
        return
    if link.wire is None:
        yield f"step {shlex.quote(f'the delay {way}')} {at} root handle 20: {shlex.join(_netem(shape))}"
        return
    port, entry = f"to-{link.other(node)}", f"to-{node}"
    netem = f"step {shlex.quote(f'the wire {way}')} tc -n {link.wire} qdisc add dev {port} root handle 20: {shlex.join(_netem(shape))}"
    if shape.needs_netem or not shape.loss_ppm:
        yield netem
        return
    yield f"if [ $netem = 1 ]; then {netem}"
    what = shlex.quote(f"the loss {way}, by nftables because this kernel has no netem")
    yield f"else step {what} ip netns exec {link.wire} nft -f - <<'END'"
    yield f"table netdev from_{node} {{"
    yield "chain loss {"
    yield f'type filter hook ingress device "{entry}" priority 0; policy accept;'
    yield f"numgen random mod 1000000 < {shape.loss_ppm} counter drop"
    yield "}"
    yield "}"
    yield "END"
    yield "fi"  # with a delay, netem exists: the script has tried it above


def _rate(link: Link, shape: Shape, rate_bps: int, at: str, add: str) -> Iterator[str]:
    frame = link.mtu + FRAME_HEADER
    if shape.bucket is None:
        # A bucket larger than one frame, and larger than a late wake-up requires, would let bursts pass the bottleneck.
        burst = max(frame, round(rate_bps * BURST_S / 8))
        yield f"{at} root handle 1: htb default 1"
        yield f"{add} parent 1: classid 1:1 htb rate {rate_bps}bit burst {burst} cburst {burst} quantum {frame}"
        return
    peak = f" peakrate {shape.bucket.peak_bps}bit mtu {frame}" if shape.bucket.peak_bps else ""
    yield f"{at} root handle 1: tbf rate {rate_bps}bit burst {shape.bucket.size_bytes} limit {TBF_LIMIT}{peak}"


def _entry(link: Link, node: str, shape: Shape, way: str) -> Iterator[str]:
    """Clears markings where a node's packets enter the wire, then polices, or redirects to the program of a trace."""
    port = f"to-{node}"
    add = f"tc -n {link.wire} filter add dev {port} ingress"
    yield f"step {shlex.quote(f'the ingress {way}')} tc -n {link.wire} qdisc add dev {port} clsact"
    if shape.bleach:
        what = shlex.quote(f"bleaching {way}")
        bits = sum(bits for name, bits in BLEACHED.items() if name in shape.bleach)
        # IPv6's traffic class begins in the middle of a byte.
        four, six = _clear(1, bits), _clear(0, bits >> 4) + _clear(1, bits << 4 & 0xF0)
        yield f"step {what} {add} protocol ip prio 1 matchall action pedit{four} pipe action csum ip4h continue"
        yield f"step {what} {add} protocol ipv6 prio 2 matchall action pedit{six} continue"
    if shape.police_bps is not None:
        # Packets above the rate are dropped.
        burst = max(2 * (link.mtu + FRAME_HEADER), shape.police_bps * POLICE_NS // 8_000_000_000)
        what = shlex.quote(f"the policer {way}")
        yield f"step {what} {add} prio 3 matchall action police rate {shape.police_bps}bit burst {burst} conform-exceed drop/ok"
    if shape.trace is not None:
        what, device, other = shlex.quote(f"the trace {way}"), f"rate-{node}", link.other(node)
        yield f"step {what} ip -n {link.wire} link add name {device} mtu {link.mtu} up type dummy"
        # `trace.py` reads from this device and sends through the bridge, which must not send a frame back to its source port.
        yield f"step {what} bridge -n {link.wire} fdb replace {_mac(link, other)} dev to-{other} master static"
        yield f"step {what} {add} prio 3 matchall action mirred egress redirect dev {device}"


def _clear(offset: int, bits: int) -> str:
    """Arguments of tc's pedit that clear bits; `retain` names the bits that change."""
    return f" munge offset {offset} u8 set 0 retain {bits}" if bits else ""


def _nat(link: Link, node: str, way: str) -> Iterator[str]:
    device = link.device(node)
    yield f"step {shlex.quote(f'the address translation {way}, which needs nftables')} ip netns exec {node} nft -f - <<'END'"
    yield f"table ip nat_{link.number} {{"
    yield "chain out {"
    yield "type nat hook postrouting priority srcnat; policy accept;"
    yield f'oifname "{device}" counter masquerade'
    yield "}"
    yield "chain in {"
    yield "type filter hook forward priority filter; policy accept;"
    yield f'iifname "{device}" ct state new counter drop'
    yield "}"
    yield "}"
    yield "END"


def _names(topology: Topology) -> Iterator[str]:
    """Write a hosts file with each node's names: to the file in $KTRXER_LAB_HOSTS, or to the place where `ip netns exec` reads it."""
    yield "hosts() {"
    yield "cat <<'END'"
    yield "127.0.0.1 localhost"
    yield "::1 localhost"
    yield from (f"{address} {name}" for address, name in topology.hosts())
    yield "END"
    yield "}"
    yield 'if [ -n "${KTRXER_LAB_HOSTS:-}" ]; then hosts >"$KTRXER_LAB_HOSTS"; else'
    missing = "no /etc/hosts here, so `ip netns exec` cannot give the names to programs: `touch /etc/hosts`, or use addresses"
    yield f"[ -e /etc/hosts ] || echo 'topology: {missing}' >&2"
    yield f"for node in {' '.join(topology.nodes)}; do mkdir -p \"/etc/netns/$node\"; hosts >\"/etc/netns/$node/hosts\"; done"
    yield "fi"
