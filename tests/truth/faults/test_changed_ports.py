# SPDX-License-Identifier: MIT OR Apache-2.0
"""A NAT that gives the prober another port in mid-run, and a router that drops one class. References: a set of nftables in b, and the counter of the rule."""

import json
import sys

import pytest
from waiting import read_until

NAT = """
table ip n {
 chain p {
  type nat hook postrouting priority 100
  oifname rb udp dport 8620 snat to 10.78.0.1:20000
 }
}
"""
EVERY_TENTH = """
table ip d {
 counter dropped {}
 chain f {
  type filter hook forward priority 0
  udp sport 8620 numgen inc mod 10 0 counter name dropped drop
 }
}
"""
SOURCES = """
table ip own {
 set sources { type ipv4_addr . inet_service; size 16; flags dynamic; }
 chain i {
  type filter hook input priority 0
  udp dport 8620 add @sources { ip saddr . udp sport }
 }
}
"""
# Repeats each datagram to port 8620 from a port of its own, a little later.
COPIER = """
import socket, sys, time
sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)); sniffer.bind(("ra", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
sniffer.settimeout(20)
copied, end = 0, None
while end is None or time.monotonic() < end:
    try:
        packet = sniffer.recv(2000)
    except TimeoutError:
        break
    if packet[9] == 17 and packet[22:24] == (8620).to_bytes(2, "big") and len(packet) > 1000:
        time.sleep(0.0005)
        sender.sendto(packet[28:], (sys.argv[1], 8620))
        copied, end = copied + 1, time.monotonic() + 3
        sniffer.settimeout(1)
print(copied)
"""
FILTER = """
table ip p {
 counter dropped {}
 chain f {
  type filter hook forward priority 0
  ip dscp ef udp dport 8620 counter name dropped drop
 }
}
"""


@pytest.mark.parametrize("loss", [False, True])
def test_a_nat_that_changes_the_port(path, serve, loss):
    """The reflector counts anew for the new port. That is an event: the directions of losses are known all the same."""
    if loss:
        path.r.run(["nft", "-f", "-"], input=EVERY_TENTH)
    path.r.run(["nft", "-f", "-"], input=NAT)
    path.b.run(["nft", "-f", "-"], input=SOURCES)
    serve(path.b)
    child = path.a.popen(list(map(str, [path.ktrxer, "stamp", "10.78.0.2", "-i", "20ms", "-c", "150", "--jsonl"])))
    read_until(child, lambda one: one.get("number") == 55)
    path.r.run(["nft", "delete", "table", "ip", "n"])
    out, err = child.communicate(timeout=30)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    (sources,) = [one["set"]["elem"] for one in json.loads(path.b.run(["nft", "-j", "list", "set", "ip", "own", "sources"]).stdout)["nftables"] if "set" in one]
    print(f"figure: {sources}; {end['reasons']}")
    assert len(sources) == 2, "the reference: the port changed"
    counters = json.loads(path.r.run(["nft", "-j", "list", "counters"]).stdout)["nftables"]
    dropped = sum(one["counter"]["packets"] for one in counters if "counter" in one)
    assert end["reflector_restarts"] == 1 and abs(end["lost"] - dropped) <= 3, "answers may be under way to the last port, and those to closing probes are dropped, too"
    assert end["lost_down"] <= end["lost"] and end["lost_up"] == 0 and end["lost_unknown"] <= 4
    assert [one["id"] for one in end["reasons"] if one["id"] == "reflector_restarted"] == ["reflector_restarted"] * bool(end["lost_unknown"])
    assert end["lost_unknown"] or end["verdict"] == "valid"


def test_a_flow_goes_on_from_another_port(path, serve):
    """Its packets have the flow's tag; those from the new port were lost, and the flow was "valid" with 60 % of loss."""
    path.r.run(["nft", "-f", "-"], input=NAT.replace("20000", "20000-20099"))
    path.b.run(["nft", "-f", "-"], input=SOURCES)
    serve(path.b, "--token-file", path.token)
    words = [path.ktrxer, "flow", "-u", "up", "10.78.0.2", "-b", "1M", "--for", "4s", "--flows", "2", "--token-file", path.token, "--jsonl"]
    child = path.a.popen(list(map(str, words)))
    read_until(child, lambda one: one.get("end") == "remote" and one.get("packets", 0) >= 100)
    path.r.run(["nft", "delete", "table", "ip", "n"])
    out, err = child.communicate(timeout=30)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    (sources,) = [one["set"]["elem"] for one in json.loads(path.b.run(["nft", "-j", "list", "set", "ip", "own", "sources"]).stdout)["nftables"] if "set" in one]
    print(f"figure: {sources}; {end['reasons']}")
    assert len(sources) >= 3, "the reference: ports changed"
    for one in end["flows"]:
        assert one["received_packets"] == one["sent_packets"] and one["lost"] == 0, one
    assert sum(one["source_changes"] for one in end["flows"]) == len(sources) - 2 and end["verdict"] == "valid"


def test_a_copy_from_elsewhere_moves_no_flow(path, serve):
    """A host on the path repeats recorded datagrams from its own address: their numbers are not new."""
    serve(path.b, "--token-file", path.token)
    copier = path.r.popen([sys.executable, "-c", COPIER, "10.78.0.2"])
    assert copier.stdout.readline()
    words = [path.ktrxer, "flow", "-u", "up", "10.78.0.2", "-b", "1M", "--for", "2s", "--token-file", path.token, "--json"]
    (one,) = json.loads(path.a.run(list(map(str, words))).stdout)["flows"]
    copied = int(copier.communicate()[0])
    print(f"figure: {copied} copies; {one}")
    assert copied > 150, "the reference"
    assert one["received_packets"] == one["sent_packets"] and not (one["lost"] or one["source_changes"] or one["duplicates"])


def test_a_router_that_drops_a_class(path, serve):
    """All probes of the other class are answered, with counts that equal their numbers: they do not show whether the reflector counts."""
    path.r.run(["nft", "-f", "-"], input=FILTER)
    serve(path.b)
    out = path.a.run(list(map(str, [path.ktrxer, "stamp", "10.78.0.2", "-i", "20ms", "-c", "50", "--dscp", "be,ef"])), check=False).stdout
    (dropped,) = [one["counter"]["packets"] for one in json.loads(path.r.run(["nft", "-j", "list", "counters"]).stdout)["nftables"] if "counter" in one]
    print(f"figure: dropped {dropped}; {out}")
    assert dropped >= 50, "the reference"
    assert "this reflector does not count" not in out
    assert "DSCP EF: no probe was answered; 50 lost (100.0 %)" in out and "DSCP BE: min" in out


def test_a_router_that_drops_the_flows_of_a_class(path, serve):
    """The server is there and answers: it must not be the only cause that the message names."""
    path.r.run(["nft", "-f", "-"], input=FILTER.replace("udp dport 8620", "tcp dport 8620"))
    serve(path.b, "--token-file", path.token)
    out, err = path.start("rrul", "--for", "5", "--delay", "1", "-i", "50ms", "--no-extras").communicate(timeout=90)
    (dropped,) = [one["counter"]["packets"] for one in json.loads(path.r.run(["nft", "-j", "list", "counters"]).stdout)["nftables"] if "counter" in one]
    print(f"figure: dropped {dropped}; {out}{err}")
    assert dropped, "the reference"
    assert "a router drops some of the connections, by their DSCP or their number" in out + err
