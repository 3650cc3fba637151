# SPDX-License-Identifier: MIT OR Apache-2.0
"""The next hop of a UDP flow vanishes in mid-run: its packets stay in this host, and no router has answered. Reference: the router's ARP is switched off."""

import json
import time

from noise import before_others
from waiting import read_until


def test_the_next_hop_of_a_udp_flow_vanishes(path, serve):
    serve(path.b, "--token-file", path.token)
    words = ["flow", "up", "10.78.0.2", "--udp", "-b", "2M", "--for", "8s", "--token-file", path.token, "--jsonl"]
    child = path.a.popen(list(map(str, [*before_others(), path.ktrxer, *words])))
    read_until(child, lambda one: one["type"] == "sample")
    path.r.run(["ip", "link", "set", "ra", "arp", "off"])
    path.a.run(["ip", "neigh", "flush", "dev", "a0"])
    time.sleep(6)
    path.r.run(["ip", "link", "set", "ra", "arp", "on"])
    out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    print(f"figure: {end['reasons']}")
    assert end["verdict"] != "valid"
    assert any("limited by this host: the next hop did not answer" in reason["text"] for reason in end["reasons"])
    assert not any("the network answered" in reason["text"] for reason in end["reasons"])
