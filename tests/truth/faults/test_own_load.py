# SPDX-License-Identifier: MIT OR Apache-2.0
"""The probes' own load on a slow path. Reference: nftables counts the bytes of the probes in the router."""

import json

import pytest

COUNT = """
add table ip own
add counter ip own datagrams
add counter ip own echoes
add chain ip own forward { type filter hook forward priority 0; }
add rule ip own forward ip saddr 10.77.0.1 udp dport 8620 counter name datagrams
add rule ip own forward ip saddr 10.77.0.1 icmp type echo-request counter name echoes
"""


def counted(host):
    told = json.loads(host.run(["nft", "-j", "list", "counters"]).stdout)["nftables"]
    return {one["counter"]["name"]: one["counter"]["bytes"] for one in told if "counter" in one}


@pytest.mark.parametrize(("interval", "heavy"), [("10ms", True), ("400ms", False)])
def test_the_share_of_the_probes(path, serve, interval, heavy):
    path.shape("rb", 1, 20_000)
    path.r.run(["nft", "-f", "-"], input=COUNT)
    serve(path.b, "--token-file", path.token)
    made = path.measure("rrul", "--for", "5", "--delay", "1", "-i", interval, "--no-extras")
    reference = sum(counted(path.r).values()) * 8 / 7
    up = next(one for one in made.summary.own_load if one.direction == "up")
    print(f"figure: probes up {up.probes_bps:.0f} bit/s, by nftables {reference:.0f} bit/s; {up.share:.1%} of {up.run_bps / 1e6:.2f} Mbit/s")
    # nftables counts packets behind the router's queue, with the trial before the run and the closing probes.
    assert up.probes_bps == pytest.approx(reference, rel=0.1 if heavy else 0.3)
    # The acknowledgements of downloads without a shaper take up to half of the upload's rate: it depends on this machine's processor time.
    assert 0.5e6 < up.run_bps < 1.02e6, "the shaped rate, less the acknowledgements of the downloads"
    assert made.says("the delay probes of the run take", "of the rate that the run got up", "--interval") == heavy
    assert any(line.startswith("measurement load") and "% of the rate that the run got" in line for line in made.lines)
    assert (up.share > 0.2) == heavy and up.control_bps > 0
    assert not heavy or made.verdict != "valid"


ALL = """
add table ip own
add counter ip own ours
add chain ip own forward { type filter hook forward priority 0; }
add rule ip own forward ip saddr 10.77.0.1 counter name ours
"""


def test_a_path_that_others_fill(path, serve):
    """The share is of the rate that the run got, and the sentence says so: the path has ten times as much."""
    path.shape("rb", 2, 25_000)
    path.r.run(["nft", "-f", "-"], input=ALL)
    serve(path.b, "--token-file", path.token)
    # A tenth more than the path carries. With 4 Mbit/s half of all packets are lost, and at times all those that look whether the target answers.
    with path.filled(path.r, mbit=2.2):
        before = path.counted("rb")["bytes"]
        made = path.measure("tcp_upload", "--for", "6", "--delay", "1", "-i", "20ms", "--no-extras")
        rate = (path.counted("rb")["bytes"] - before) * 8 / 8
    up = next(one for one in made.summary.own_load if one.direction == "up")
    ours = counted(path.r)["ours"] * 8 / 8
    print(f"figure: the run got {up.run_bps / 1e6:.3f} Mbit/s, by nftables {ours / 1e6:.3f}; the path {rate / 1e6:.2f}; {made.reasons}")
    assert rate > 1.5e6 > 5 * up.run_bps, "the reference: others fill the path"
    assert made.says("the delay probes of the run take", f"of the rate that the run got up ({up.probes_bps / 1e3:.0f} kbit/s of ")
    assert made.says("the path has more if other traffic was on it")
    assert not any("of the path up" in reason for reason in made.reasons)


def test_the_interval_that_is_chosen(path, serve):
    """Without --interval the probes take about 1 % of the path's rate, which comes from the trial before the run."""
    path.shape("rb", 4, 40_000)
    serve(path.b, "--token-file", path.token)
    made = path.measure("tcp_upload", "--for", "4", "--delay", "1", "--no-extras")
    up = next(one for one in made.summary.own_load if one.direction == "up")
    print(f"figure: first estimate {made.run.meta.settings['rate_estimate_bps'] / 1e6:.2f} Mbit/s; probes {up.probes_bps / up.run_bps:.2%} of the path")
    assert 0.004 < up.probes_bps / up.run_bps <= 0.0125
    assert not made.says("the delay probes of the run take")


# The set has room for one port: that of the first connection, which is the control connection. Those of the flows follow.
CONTROL = """
add table ip own
add set ip own first { type inet_service; size 1; flags dynamic; }
add counter ip own up
add counter ip own down
add chain ip own forward { type filter hook forward priority 0; }
add rule ip own forward tcp dport 8620 tcp flags & (syn|ack) == syn add @first { tcp sport }
add rule ip own forward tcp sport @first counter name up
add rule ip own forward tcp dport @first counter name down
"""


def test_the_control_traffic_of_many_flows(path, serve):
    path.shape("rb", 40, 200_000)
    path.r.run(["nft", "-f", "-"], input=CONTROL)
    serve(path.b, "--token-file", path.token)
    words = [path.ktrxer, "flow", "up", "10.78.0.2", "--flows", "100", "--for", "3s", "--token-file", path.token, "--json"]
    end = json.loads(path.a.run(words, check=False).stdout)
    reference = counted(path.r)
    print(f"figure: control traffic up {end['control_up_bytes']}, down {end['control_down_bytes']}; by nftables {reference}")
    for way in ("up", "down"):
        assert reference[way] > 10_000, "the reference: samples of 100 flows"
        # The counts are read before the last segments, which end the connection.
        assert end[f"control_{way}_bytes"] == pytest.approx(reference[way], rel=0.05)
