# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ping` names a limit of the rate of echo answers. Random losses and a full queue are none. References: the rule and its counter, and tc."""

import json

import pytest

ADDRESSES = {4: "10.77.0.2", 6: "fd77::2"}
REQUEST = {4: "icmp type echo-request", 6: "icmpv6 type echo-request"}


def losses_named(path, match, family=4, interval="5ms", count=800):
    for host, device, address in ((path.a, "a0", "fd77::1/64"), (path.r, "ra", "fd77::2/64")):
        host.ip("addr", "add", address, "dev", device, "nodad")
    if match:
        path.r.run(["nft", f"table inet far {{ chain c {{ type filter hook input priority 0; {REQUEST[family]} {match} counter drop; }}; }}"])
    words = ["ping", ADDRESSES[family], "-i", interval, "-c", str(count), "--timeout", "300ms", "--json"]
    end = json.loads(path.a.run([path.ktrxer, *words], check=False, timeout=60).stdout)
    print(f"figure: {end['lost']} of {end['sent']} lost, {end['rtt_us']}; {end['reasons']}")
    return end, [reason for reason in end["reasons"] if reason["id"] == "answers_limited"]


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("pps", [10, 40, 120])
def test_a_limit_of_the_target(path, pps, family):
    end, named = losses_named(path, f"limit rate over {pps}/second burst 5 packets", family)
    assert end["lost"] > 200 and end["verdict"] == "degraded"
    (reason,) = named
    assert reason["answered_pps"] == pytest.approx(pps, rel=0.05) and "limits ICMP echoes" in reason["text"]


def test_the_limit_of_a_linux_host(path):
    path.r.sysctl("ipv4/icmp_ratemask", 1)
    path.r.sysctl("ipv4/icmp_ratelimit", 50)
    end, (reason,) = losses_named(path, "")
    assert end["lost"] > 400 and reason["answered_pps"] == pytest.approx(20, rel=0.1)


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("permille", [30, 200, 500, 900])
def test_random_losses_are_no_limit(path, permille, family):
    end, named = losses_named(path, f"numgen random mod 1000 < {permille}", family)
    assert end["lost"] > 5 and not named


def test_a_full_queue_is_no_limit(path):
    """Three times the rate of a shaper of the router, which drops two of three probes at even intervals."""
    path.r.run(["tc", "qdisc", "add", "dev", "rb", "root", "tbf", "rate", "100kbit", "burst", "2k", "limit", "3000"])
    words = ["ping", "10.78.0.2", "-i", "10ms", "-c", "400", "--payload", "300", "--timeout", "1s", "--json"]
    end = json.loads(path.a.run([path.ktrxer, *words], check=False, timeout=60).stdout)
    print(f"figure: {end['lost']} of {end['sent']} lost, {end['rtt_us']}; {end['reasons']}")
    assert end["lost"] > 150 and not any(reason["id"] == "answers_limited" for reason in end["reasons"])


def test_an_outage_is_no_limit(path):
    child = path.a.popen([path.ktrxer, "ping", "10.77.0.2", "-i", "5ms", "-c", "800", "--timeout", "300ms", "--jsonl"])
    for line in child.stdout:
        if json.loads(line).get("number", 0) >= 200:
            break
    path.r.run(["nft", "table inet far { chain c { type filter hook input priority 0; icmp type echo-request drop; }; }"])
    for line in child.stdout:
        if json.loads(line).get("kind") == "lost" and json.loads(line)["number"] >= 300:
            break
    path.r.run(["nft", "flush", "ruleset"])
    end = json.loads(child.communicate(timeout=60)[0].splitlines()[-1])
    assert end["lost"] > 50 and not any(reason["id"] == "answers_limited" for reason in end["reasons"])
