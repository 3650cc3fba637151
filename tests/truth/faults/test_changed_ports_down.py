# SPDX-License-Identifier: MIT OR Apache-2.0
"""A NAT that gives a UDP flow down another port in mid-run. References: the counter of the datagrams that reached a's device, and the sources of b's port."""

import json

import pytest
from waiting import read_until

NAT = """
table {family} n {{
 chain p {{
  type nat hook postrouting priority 100
  oifname rb meta l4proto udp snat to {to}:20000-20099
 }}
}}
"""
COUNTER = """
table inet own {
 counter down {}
 chain i {
  type filter hook input priority 0
  meta l4proto udp udp length > 1000 udp dport != 20000-20099 counter name down
 }
}
"""


@pytest.mark.parametrize("family", ["ip", "ip6"])
def test_a_flow_down_goes_on_to_another_port(path, serve, family):
    """The server sent to the port that the NAT no longer maps: all later datagrams were lost."""
    server = {"ip": "10.78.0.2", "ip6": "fd00:78::2"}[family]
    outside = {"ip": "10.77.0.1", "ip6": "[fd00:77::1]"}[family]
    if family == "ip6":
        path.r.sysctl("ipv6/conf/all/forwarding", 1)
        path.a.ip("-6", "route", "add", "fd00:78::/64", "via", "fd00:77::2")
        path.b.ip("-6", "route", "add", "fd00:77::/64", "via", "fd00:78::1")
    path.r.run(["nft", "-f", "-"], input=NAT.format(family=family, to=outside))
    path.a.run(["nft", "-f", "-"], input=COUNTER)
    serve(path.b, "--token-file", path.token)
    words = [path.ktrxer, "flow", "-u", "down", server, "-b", "1M", "--for", "4s", "--token-file", path.token, "--jsonl"]
    child = path.a.popen(list(map(str, words)))
    read_until(child, lambda one: one.get("end") == "local" and one.get("packets", 0) >= 100)
    path.r.run(["nft", "delete", "table", family, "n"])
    out, err = child.communicate(timeout=30)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    (arrived,) = [one["counter"]["packets"] for one in json.loads(path.a.run(["nft", "-j", "list", "counters"]).stdout)["nftables"] if "counter" in one]
    (one,) = end["flows"]
    print(f"figure: {arrived} arrived; {one}; {end['reasons']}")
    assert one["received_packets"] == arrived, "the reference"
    assert one["source_changes"] == 1
    assert 0 < one["lost"] < one["sent_packets"] / 5, "until the server has the new port"
    assert one["lost"] == one["sent_packets"] - arrived
    assert not one["error"], "an error of the last port is none of the flow"
