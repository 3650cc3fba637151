# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check` where a firewall blocks a kind of packets: it measures by the others, and names the blocked traffic and its direction.
Reference: the rule of nftables, by construction, and its counter; the queue of the shaper."""

import json
import re
import sys

import pytest
from conftest import ROOT

QUICK = ("--for", "5", "--delay", "4", "-i", "200ms")
DOWNLOAD = ("--download", "http://10.78.0.2:8080/large")
WEB = ["tcp dport 8080 accept", "tcp sport 8080 accept"]
FULL_MS = 48  # 60,000 bytes at 10 Mbit/s
# The path has no delay: its round trip is below 1 ms on a busy machine too.
IDLE = r"the p50 of the idle round trip is (\d{1,3}(\.\d+)? us|0\.\d+ ms)"


def blocks(host, hook, *rules):
    host.run(["nft", f"table ip t {{ chain c {{ type filter hook {hook} priority 0; {'; '.join(rules)}; }}; }}"])


def dropped(host):
    rules = json.loads(host.run(["nft", "-j", "list", "table", "ip", "t"]).stdout)["nftables"]
    return sum(part["counter"]["packets"] for one in rules for part in one.get("rule", {}).get("expr", []) if "counter" in part)


@pytest.mark.parametrize(
    ("rules", "words", "probes", "says"),
    [
        (["iif ra meta l4proto udp counter drop"], (), "ICMP", "UDP to port 8620 of 10.78.0.2 is blocked up: no datagram arrives there: allow UDP"),
        (["iif rb meta l4proto udp counter drop"], (), "ICMP", "UDP is blocked down: datagrams arrive at port 8620 of 10.78.0.2, and its answers do not"),
        (["udp dport 8620 counter reject"], (), "ICMP", "UDP to port 8620 of 10.78.0.2 is blocked up"),
        (["meta l4proto { udp, icmp } counter drop"], (), "TCP", "no ICMP echo request to 10.78.0.2 is answered, so the round trips are those of TCP"),
        (["meta l4proto icmp counter drop"], (), "UDP", "no ICMP echo request to 10.78.0.2 is answered, so the round trips are those of UDP"),
        ([*WEB, "counter drop"], DOWNLOAD, "TCP", "no ICMP echo request to 10.78.0.2 is answered, so the round trips are those of TCP"),
    ],
    ids=["udp-up", "udp-down", "udp-port-rejected", "udp-and-icmp", "icmp", "all-but-http"],
)  # fmt: skip
def test_the_round_trip_is_measured_by_other_packets(path, serve, rules, words, probes, says):
    for device in ("rb", "ra"):
        path.shape(device, 10, 60_000)
    blocks(path.r, "forward", *rules)
    with path.b.popen([sys.executable, str(ROOT / "tests/system/web.py"), "8080"]) as web:
        try:
            assert web.stdout.readline() == "listening\n"
            made = path.check(serve, *QUICK, *words)
        finally:
            web.kill()
    assert dropped(path.r) > 0
    assert made["probes"] == probes and made["bloated"] != "unknown", made
    assert [one["direction"] for one in made["loads"]] == (["down"] if words else ["up", "down"])
    assert all(0.5 * FULL_MS < one["added_ms"] < 1.1 * FULL_MS for one in made["loads"]), made["loads"]
    assert says in made["answer"][2] and any(says in one for one in made["blocked"])
    assert not any("UDP to port" in one for one in made["blocked"]) or "udp" in str(rules)


@pytest.mark.parametrize(
    ("rules", "words", "port"),
    [
        (["meta l4proto tcp counter drop"], (), 8620),
        (["meta l4proto tcp counter reject with tcp reset"], (), 8620),
        (["meta l4proto { tcp, udp } counter drop"], (), 8620),
        (["meta l4proto tcp counter drop"], DOWNLOAD, 8080),
    ],
    ids=["tcp", "tcp-rejected", "tcp-and-udp", "http"],
)
def test_without_tcp_the_idle_line_is_measured(path, serve, rules, words, port):
    blocks(path.r, "forward", *rules)
    made = path.check(serve, *QUICK, *words)
    first, _, third = made["answer"]
    assert made["bloated"] == "unknown" and made["loads"] == []
    assert re.search(IDLE, first) and "no load is possible" in first and "(ICMP)" in first, first
    assert f"TCP port {port} of 10.78.0.2 is blocked (" in third and f"allow TCP port {port} in the firewall" in third
    assert ("UDP to port 8620 of 10.78.0.2 is blocked: no probe" in third) == ("udp" in rules[0])


def test_this_hosts_own_firewall(path, serve):
    blocks(path.a, "output", "udp dport 8620 counter drop")
    made = path.check(serve, *QUICK)
    assert made["probes"] == "ICMP" and "this host itself refuses to send UDP to port 8620" in made["answer"][2], made["answer"]
    assert "a packet filter of this host rejected it" in made["answer"][2]


@pytest.mark.parametrize(
    ("rules", "says", "measured"),
    [
        ((), "TCP port 8620 of 10.78.0.2 refuses connections, and UDP port 8620 refuses datagrams (ICMP errors): the host is up", True),
        (["meta l4proto udp counter drop"], "and UDP port 8620 gives no answer: the host is up (it answers ICMP echo requests), and", True),
        (["meta l4proto { udp, icmp } counter drop"], "UDP port 8620 gives no answer: ICMP echo gives no answer, so that host or a firewall refuses", False),
        (["counter drop"], "10.78.0.2 answers nothing: no ICMP echo request, no connection to TCP port 8620 and no datagram", False),
    ],
    ids=["no-firewall", "udp", "udp-and-icmp", "all"],
)  # fmt: skip
def test_without_a_server_the_check_says_so(path, rules, says, measured):
    if rules:
        blocks(path.r, "forward", *rules)
    done = path.checked("--server", "10.78.0.2", *QUICK)
    told = " ".join((json.loads(done.stdout)["answer"][2] if measured else done.stderr).replace("ktrxer check: ", "").split())
    print(f"figure: {told}")
    assert done.returncode == 1 and says in told
    assert "start `ktrxer serve` on that host" in told and "allow TCP and UDP port 8620 in the firewall of that host" in told
    assert not rules or dropped(path.r) > 0
    if measured:
        made = json.loads(done.stdout)
        assert made["bloated"] == "unknown" and re.search(IDLE, made["answer"][0]) and "(ICMP)" in made["answer"][0]


def test_a_firewall_that_refuses_tcp_and_drops_udp(path, serve):
    blocks(path.r, "forward", "meta l4proto tcp counter reject with tcp reset", "meta l4proto udp counter drop")
    made = path.check(serve, *QUICK)
    assert "TCP port 8620 of 10.78.0.2 refuses connections, and UDP port 8620 gives no answer" in made["answer"][2], made
    assert "or a firewall refuses its TCP and drops its UDP" in made["answer"][2] and "(ICMP)" in made["answer"][0]
