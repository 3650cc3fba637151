# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer flow --udp`: packets at a rate, counted at both ends.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves; tc narrows the link where a test says so
   fd00:77::1                    fd00:77::2
"""

import json

import pytest
from flows import MS, check_series, command, narrow, stop
from noise import busy
from recorded import wrong
from waiting import until

# ------------------------------------------------------------------------------------------------------------------- UDP


def udp_ends(run, one):
    """The last samples of sender and receiver."""
    ends = {end: run.samples("udp", flow=one["flow"], end=end)[-1] for end in ("local", "remote")}
    return (ends["local"], ends["remote"]) if one["direction"] == "up" else (ends["remote"], ends["local"])


@pytest.mark.parametrize("address", ["address", "address6"])
def test_udp(shared_pair, flow, serve, token, address):
    a, b = shared_pair
    server = serve(b, "--token-file", token)
    options = ["--flows", 2, "--bitrate", "4M", "--payload", "200..1200", "--for", "1s", "--ecn", "ect0,ect1", "--sample-interval", "100ms"]
    run = flow(a, "both", getattr(b, address), "--udp", *options)
    assert not [r for r in run.reasons if "late" not in r], run.reasons
    check_series(run, 100 * MS, kind="udp")
    for one in run.flows:
        run.check_sent(one)
        sent, received = udp_ends(run, one)
        assert one["sent_packets"] == one["received_packets"] == sent["packets"] == received["packets"]
        assert one["lost"] == one["reordered"] == one["duplicates"] == 0
        assert one["bytes"] == sent["bytes"] == received["bytes"]
        # In this second; the last packets of a busy machine leave later.
        due_bps = one["due_packets"] * 8 * one["bytes"] / one["sent_packets"]
        assert one["rate_bps"] < 4.3e6 and 3.5e6 < due_bps < 4.3e6 and 200 <= one["bytes"] / one["received_packets"] <= 1200
        mark, other = ("ect0", "ect1") if one["flow"] % 2 == 0 else ("ect1", "ect0")
        assert one["ecn"] == mark and one[mark] == one["received_packets"] and one[other] == one["ce"] == 0
        assert (one["lateness_us"] is None) == (one["direction"] == "down")
    assert not wrong(run.objects)
    counts = stop(server)
    assert counts["packets_in"] == sum(one["received_packets"] for one in run.flows[:2])
    assert counts["packets_out"] == sum(one["sent_packets"] for one in run.flows[2:])


def test_udp_laws(shared_pair, flow, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)
    run = flow(a, "both", b.address, "--udp", "--model", "poisson", "--bitrate", "8M", "--payload", 500, "--for", "1s")
    for one in run.flows:
        # 2000 packets on average: six standard deviations to each side.
        assert 1730 < one["due_packets"] < 2270 and one["received_packets"] == one["sent_packets"], one
        run.check_sent(one)
    run = flow(a, "down", b.address, "--udp", "--model", "voip", "--flows", 8, "--for", "1s")
    assert all(0 < one["due_packets"] <= 51 and one["bytes"] == 172 * one["received_packets"] for one in run.flows)
    for one in run.flows:
        run.check_sent(one)
    run = flow(a, "down", b.address, "--udp", "--bitrate", "20M", "--payload", 1000, "--bytes", "100k")
    assert run.flows[0]["received_packets"] == 100 and run.flows[0]["error"] is None


def test_what_happens_on_the_way_is_counted(pair, flow, serve, token):
    """A known share is dropped and another marked, in both directions; each packet is accounted for."""
    a, b = pair
    serve(b, "--token-file", token)
    for host in (a, b):
        host.run(["nft", "add", "table", "ip", "way"])
        host.run(["nft", "add", "chain", "ip", "way", "in", "{ type filter hook prerouting priority -300; }"])
        rule = ["nft", "add", "rule", "ip", "way", "in", "udp", "length", "1008"]
        host.run([*rule, "numgen", "inc", "mod", "10", "==", "3", "drop"])
        host.run([*rule, "numgen", "inc", "mod", "9", "==", "4", "ip", "ecn", "set", "ce"])
    run = flow(a, "both", b.address, "--udp", "--bitrate", "8M", "--payload", 1000, "--for", "1s", "--ecn", "ect1")
    for one in run.flows:
        sent = one["sent_packets"]
        # A thread without a processor leaves some out, and the verdict says so.
        assert sent <= 1001 and (sent > 990 or (sent > 500 and busy(run.end))), (sent, run.reasons)
        lost = len([i for i in range(sent) if i % 10 == 3])
        assert one["lost"] == lost and one["received_packets"] == sent - lost, one
        assert one["ce"] == len([i for i in range(sent - lost) if i % 9 == 4]) and one["ect1"] == one["received_packets"] - one["ce"]


def test_udp_at_the_limits(pair, flow, refusal, serve, token, ktrxer):
    a, b = pair
    server = serve(b, "--token-file", token, "--max-bitrate", "10M")
    assert "limit of 10.000 Mbit/s" in refusal(a, b.address, "--udp", "--bitrate", "6M", "--flows", 2)
    # Larger than the MTU of this host's route, or of the server's.
    for way in ("up", "down"):
        assert "1473 bytes" in refusal(a, b.address, "--udp", "--bitrate", "1M", "--payload", 1473, direction=way)
    # Only TCP passes.
    b.run(["nft", "add", "table", "inet", "wall"])
    b.run(["nft", "add", "chain", "inet", "wall", "in", "{ type filter hook input priority 0; }"])
    b.run(["nft", "add", "rule", "inet", "wall", "in", "meta", "l4proto", "udp", "drop"])
    assert "no datagram from here gets through to UDP port 8620" in refusal(a, b.address, "--udp", "--bitrate", "1M", direction="up")
    b.run(["nft", "delete", "table", "inet", "wall"])
    # A bottleneck on the sending host: packets that its queue drops are not lost on the path, and do not make later ones late.
    narrow(a, "a0", "2mbit")
    run = flow(a, "up", b.address, "--udp", "--bitrate", "4M", "--payload", 1000, "--for", "1s")
    (one,) = run.flows
    assert one["received_packets"] == one["sent_packets"] < 0.8 * one["due_packets"] and one["lost"] == 0 and one["rate_bps"] < 2.3e6
    assert any("could not be sent" in r for r in run.reasons), run.reasons
    stop(server)
    done = a.run([*command(ktrxer, token, "up", b.address, "--udp")], check=False)
    assert done.returncode == 2 and "--udp needs --bitrate" in done.stderr


def test_the_path_grows_narrow(pair, flow, serve, token):
    """A router on the path has a smaller MTU: its ICMP error is reported for the flow."""
    from ktrxer_lab import hosts

    a, b = pair
    with hosts.Netns("c") as c:
        hosts.join(b, c, net=79, devices=("b1", "c0"), mtu=1280)
        b.sysctl("ipv4/ip_forward", 1)
        a.ip("route", "add", "10.79.0.0/24", "via", b.address)
        c.ip("route", "add", "10.77.0.0/24", "via", "10.79.0.1")
        serve(c, "--token-file", token)
        run = flow(a, "up", "10.79.0.2", "--udp", "--bitrate", "1M", "--payload", 1400, "--for", "1s")
        assert run.end["verdict"] == "invalid" and run.flows[0]["received_packets"] == 0
        assert any("packets are larger than the path takes (MTU)" in r for r in run.reasons), run.reasons
        # TCP adapts its segment size.
        run = flow(a, "both", "10.79.0.2", "--bytes", "1M")
        assert [one["bytes"] for one in run.flows] == [1_000_000] * 2 and not run.reasons, run.reasons


def link_local(host, device):
    def found():
        entries = json.loads(host.run(["ip", "-j", "-6", "addr", "show", "dev", device, "scope", "link", "-tentative"]).stdout)
        return [one["local"] for entry in entries for one in entry.get("addr_info", []) if "local" in one]

    return until(found, f"a link-local address of {device}")[0]


@pytest.mark.parametrize("direction", ["up", "down", "both"])
def test_udp_to_an_address_of_one_link(pair, flow, serve, token, direction):
    a, b = pair
    far = f"{link_local(b, 'b0')}%a0"
    serve(b, "--token-file", token)
    run = flow(a, direction, far, "--udp", "--bitrate", "1M", "--for", "500ms")
    assert run.flows and all(one["received_packets"] == one["sent_packets"] > 0 for one in run.flows)


def test_pairs_to_an_address_of_one_link(pair, ktrxer, serve, token):
    a, b = pair
    far = f"{link_local(b, 'b0')}%a0"
    serve(b, "--token-file", token)
    done = a.run([ktrxer, "pair", far, "--token-file", token, "--json"], check=False)
    assert done.stdout, done.stderr
    end = json.loads(done.stdout)
    assert end["type"] == "end" and "refuses" not in done.stderr
