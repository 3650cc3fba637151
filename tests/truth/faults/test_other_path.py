# SPDX-License-Identifier: MIT OR Apache-2.0
"""This host's rules send the packets of flows and those of probes by different routes. Reference: the counters of the devices.

a0 10.77.0.1 ---- 10.77.0.2 ra, and a1 10.76.0.1 ---- 10.76.0.2 ra2: both lead to the same router
"""

import pytest
from ktrxer_lab import hosts

UPLOAD = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, udp, uploads
def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(udp(setting, "Ping (ms) UDP"), uploads(setting, ["TCP upload"]))
TEST = Test("mine", "an upload and UDP probes", plan)
"""
RULES = {"the flows": ["ipproto", "tcp"], "the UDP probes": ["ipproto", "udp"], "no packet of the run": ["ipproto", "sctp"]}


@pytest.mark.parametrize("moved", RULES)
def test_probes_and_flows_of_different_routes(path, serve, tmp_path, moved):
    (tmp_path / "own.py").write_text(UPLOAD)
    hosts.join(path.a, path.r, net=76, devices=("a1", "ra2"))
    path.a.ip("route", "add", "10.78.0.0/24", "via", "10.76.0.2", "table", "100")
    path.b.ip("route", "add", "10.76.0.0/24", "via", "10.78.0.1")
    path.a.ip("rule", "add", *RULES[moved], "table", "100")
    serve(path.b, "--token-file", path.token)
    path.shape("rb", 20, 50_000)
    before = path.a.counters("a1")["tx"]["packets"]
    made = path.measure(tmp_path / "own.py", "--for", "3", "--delay", "0.2", "-i", "20ms")
    there = path.a.counters("a1")["tx"]["packets"] - before
    print(f"figure: {there} packets left through a1; {made.reasons}")
    assert (there > 100) == (moved != "no packet of the run"), "the reference: that rule moves packets"
    assert made.says("leave this host by another route than the flows", "device a1" if moved == "the UDP probes" else "device a0") == (there > 100)
    assert there <= 100 or made.verdict != "valid"
