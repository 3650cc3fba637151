# SPDX-License-Identifier: MIT OR Apache-2.0
"""Probes whose route changes, or whose classes take routes of different lengths. References: the counters of the other route, and of the router's rule.

r 10.79.0.1 ---- 10.79.0.2 x 10.80.0.1 ---- 10.80.0.2 b: the longer route from r to b
"""

import json

import pytest
from ktrxer_lab import hosts


def stamp(path, *words):
    return path.a.popen(list(map(str, [path.ktrxer, "stamp", "10.78.0.2", "-i", "10ms", "-c", "150", *words])))


@pytest.fixture
def longer(path):
    """A function that moves the packets to b to the longer route; the host x is its result."""
    with hosts.Netns("x") as x:
        hosts.join(path.r, x, net=79, devices=("rx", "xr"))
        hosts.join(x, path.b, net=80, devices=("xb", "bx"))
        x.sysctl("ipv4/ip_forward", 1)
        x.ip("route", "add", "10.78.0.2/32", "via", "10.80.0.2")

        def move(*match):
            """All packets, or those that a rule of r selects."""
            table = ["table", "100"] if match else []
            path.r.ip("route", "add", "10.78.0.2/32", "via", "10.79.0.2", *table)
            if match:
                path.r.ip("rule", "add", *match, *table)
            return x

        yield move


def crossed(x):
    return x.counters("xb")["tx"]["packets"]


def test_a_route_that_changes(path, serve, longer):
    serve(path.b)
    with stamp(path, "--jsonl") as child:
        x = None
        for line in child.stdout:
            end = json.loads(line)
            if x is None and end.get("number") == 50:
                x = longer()
    print(f"figure: {crossed(x)} packets crossed x; {end['ttl_up']}; {end['reasons']}")
    assert crossed(x) > 50, "the reference: the route changed"
    assert end["ttl_up"] == {"min": 62, "max": 63, "changes": 1} and end["ttl_down"] == {"min": 63, "max": 63, "changes": 0}
    assert end["verdict"] != "valid"
    assert any("the TTL on arrival up changed between 62 and 63 (count: 1)" in reason["text"] for reason in end["reasons"])
    assert not any("TTL on arrival down" in reason["text"] for reason in end["reasons"])
    assert end["mark_changed_up"] is None, "no TLV was requested that reports marks"


@pytest.mark.parametrize("dscp", ["be,ef", "be,cs1"])
def test_classes_of_routes_of_different_lengths(path, serve, longer, dscp):
    """The router's rule selects EF. Probes of the other classes take the same route."""
    path.r.run(["nft", "-f", "-"], input="""
add table ip split
add chain ip split before { type filter hook prerouting priority mangle; }
add rule ip split before udp dport 8620 ip dscp ef meta mark set 1
""")
    serve(path.b)
    x = longer("fwmark", "1")
    before = crossed(x)
    out, err = stamp(path, "--dscp", dscp, "--json").communicate(timeout=60)
    assert out, err
    end = json.loads(out)
    best, other = end["classes"]
    there = crossed(x) - before
    print(f"figure: {there} packets crossed x; {best['ttl_up']}, {other['ttl_up']}; {end['reasons']}")
    apart = dscp == "be,ef"
    assert (there >= 150) == apart, "the reference: the rule of the router"
    assert best["ttl_up"] == {"min": 63, "max": 63, "changes": 0} and other["ttl_up"]["min"] == other["ttl_up"]["max"] == (62 if apart else 63)
    assert end["ttl_up"]["changes"] == 0
    assert any("the TTL on arrival up differs between classes (62 to 63)" in reason["text"] for reason in end["reasons"]) == apart
    assert not any("changed" in reason["text"] and "TTL" in reason["text"] for reason in end["reasons"])
    assert not apart or end["verdict"] != "valid"
