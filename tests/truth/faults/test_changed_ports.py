# SPDX-License-Identifier: MIT OR Apache-2.0
"""A NAT that gives the prober another port in mid-run, and a router that drops one class. References: a set of nftables in b, and the counter of the rule."""

import json

from waiting import read_until

NAT = """
table ip n {
 chain p {
  type nat hook postrouting priority 100
  oifname rb udp dport 8620 snat to 10.78.0.1:20000
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
FILTER = """
table ip p {
 counter dropped {}
 chain f {
  type filter hook forward priority 0
  ip dscp ef udp dport 8620 counter name dropped drop
 }
}
"""


def test_a_nat_that_changes_the_port(path, serve):
    path.r.run(["nft", "-f", "-"], input=NAT)
    path.b.run(["nft", "-f", "-"], input=SOURCES)
    serve(path.b)
    child = path.a.popen(list(map(str, [path.ktrxer, "stamp", "10.78.0.2", "-i", "20ms", "-c", "150", "--jsonl"])))
    read_until(child, lambda one: one.get("number") == 50)
    path.r.run(["nft", "delete", "table", "ip", "n"])
    out, err = child.communicate(timeout=30)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    (sources,) = [one["set"]["elem"] for one in json.loads(path.b.run(["nft", "-j", "list", "set", "ip", "own", "sources"]).stdout)["nftables"] if "set" in one]
    print(f"figure: {sources}; {end['reasons']}")
    assert len(sources) == 2, "the reference: the port changed"
    assert end["reflector_restarts"] == 1 and end["verdict"] != "valid"
    assert any("a NAT changed the port" in reason["text"] for reason in end["reasons"])


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
