# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer trace` through networks of routers behind a tun device (fake_routes.c), whose routes, labels and defects are known."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from ktrxer_lab import hosts
from noise import reasons
from programs import BUILD

TARGET, TARGET6 = "198.18.0.9", "2001:db8:9::9"
LINE = """
r1 10.0.1.1 -> r2
r2 10.0.2.1 -> r3
r3 10.0.3.1 -> h
h 198.18.0.9
"""


@contextlib.contextmanager
def network(routers: str) -> Iterator[hosts.Netns]:
    """A host with default routes into a network of these routers."""
    with hosts.Netns("trace") as host:
        child = host.popen([BUILD / "tests/system/fake_routes", "tun0"], stdin=subprocess.PIPE)
        child.stdin.write(routers.strip() + "\n\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n", child.stderr.read()
        host.ip("link", "set", "tun0", "up")
        for address, everywhere in (("10.99.0.1/24", "default"), ("fd00:99::1/64", "2000::/3")):
            host.ip("address", "add", address, "dev", "tun0", *(["nodad"] if ":" in address else []))
            host.ip("route", "add", everywhere, "dev", "tun0")
        yield host


@pytest.fixture
def trace(ktrxer, requires_namespaces):
    def go(routers: str, *options: str, to: str = TARGET, status: int | None = None) -> dict[str, Any]:
        with network(routers) as host:
            done = host.run([ktrxer, "trace", to, "--json", "--repeat", "2", "--interval", "5ms", "--rate", "10k", *options], check=False)
        assert done.stdout, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        assert status is None or done.returncode == status, (done.stderr, result["reasons"])
        return result

    return go


def addresses(result: dict[str, Any]) -> list[list[str | None]]:
    return [sorted((node["address"] or "" for node in hop["nodes"]), key=str) for hop in result["hops"]]


def node(result: dict[str, Any], address: str | None) -> dict[str, Any]:
    (found,) = [one for hop in result["hops"] for one in hop["nodes"] if one["address"] == address]
    return found


def diamond(width: int, length: int, words: str = "") -> str:
    lines = ["a 10.0.1.1 -> b", "b 10.0.2.1 -> " + " ".join(f"c3_{i}" for i in range(width))]
    for hop in range(3, 3 + length):
        lines += [f"c{hop}_{i} 10.{hop}.0.{i + 1} {words} -> " + (f"c{hop + 1}_{i}" if hop < 2 + length else "y") for i in range(width)]
    return "\n".join([*lines, f"y 10.{3 + length}.0.1 -> z", f"z {TARGET}"])


@pytest.mark.parametrize("protocol", ["udp", "tcp", "icmp"])
@pytest.mark.parametrize("engine", ["packet", "raw"])
def test_all_routes_by_each_protocol(trace, protocol, engine):
    result = trace(diamond(4, 2), "--protocol", protocol, "--confidence", "99.99", "--engine", engine)
    assert not reasons(result), result["reasons"]
    assert addresses(result) == [
        ["10.0.1.1"],
        ["10.0.2.1"],
        [f"10.3.0.{i}" for i in range(1, 5)],
        [f"10.4.0.{i}" for i in range(1, 5)],
        ["10.5.0.1"],
        [TARGET],
    ]
    assert result["routes"] == 4 and result["balancers"] == 1 and result["complete"] and result["arrived"]
    # Each router of the first rank leads to one of the second.
    assert sorted(node(result, f"10.3.0.{i}")["next"][0] for i in range(1, 5)) == ["4.1", "4.2", "4.3", "4.4"]
    assert node(result, TARGET)["end"] == "destination" and result["privileges_dropped"]
    assert result["answered"] + result["unanswered"] <= result["sent"] and not result["duplicates"]
    for hop in result["hops"]:
        for one in hop["nodes"]:
            assert 0 < one["rtt_us"]["min"] <= one["rtt_us"]["p50"] <= one["rtt_us"]["max"] < 200_000


def test_sixty_four_routes_of_twelve_hops_within_two_seconds(trace):
    seconds = []
    for _ in range(3):
        result = trace(diamond(64, 8), "--rate", "20k", "--confidence", "99.9", "--repeat", "0")
        assert result["routes"] == 64 and len(result["hops"]) == 12 and result["complete"]
        seconds.append(result["elapsed_ns"] / 1e9)
        if seconds[-1] < 2:
            break
    print(f"figure: 64 routes of 12 hops with {result['sent']} probes in {min(seconds):.2f} s")
    assert min(seconds) < 2


def test_ipv6_with_labels(trace):
    routers = f"""
r1 2001:db8:1::1 -> a b
a 2001:db8:2::1 mpls=16005:0:1 mpls=24001:2:254 -> r3
b 2001:db8:2::2 -> r3
r3 2001:db8:3::1 quote=48 -> h
h {TARGET6} open
"""
    for protocol in ("udp", "tcp", "icmp"):
        result = trace(routers, "--protocol", protocol, "--confidence", "99.99", to=TARGET6)
        assert not reasons(result), result["reasons"]
        assert result["routes"] == 2 and addresses(result)[1] == ["2001:db8:2::1", "2001:db8:2::2"]
        labels = node(result, "2001:db8:2::1")["mpls"]
        assert [(one["label"], one["traffic_class"], one["ttl"], one["bottom"]) for one in labels] == [
            (16005, 0, 1, False),
            (24001, 2, 254, True),
        ]


def test_translated_addresses_and_a_changed_dscp(trace):
    routers = LINE.replace("r2 10.0.2.1", "r2 10.0.2.1 nat=10.5.5.5 tos=0")
    result = trace(routers, "--dscp", "EF")
    assert [node(result, f"10.0.{i}.1")["translated"] for i in (1, 2, 3)] == [False, False, True]
    assert [node(result, f"10.0.{i}.1")["changed"]["tos"] for i in (1, 2, 3)] == [False, False, True]
    assert result["arrived"] and not reasons(result)


@pytest.mark.parametrize("protocol", ["udp", "tcp", "icmp"])
@pytest.mark.parametrize("port", ["", " natport=7000"])
def test_translated_addresses_in_short_quotes(trace, protocol, port):
    """The translator does not restore the quotes of routers behind it, and they have eight bytes of the probe: no payload."""
    short = "nat=10.5.5.5 keeps" + port
    routers = LINE.replace("r1 10.0.1.1", f"r1 10.0.1.1 {short}").replace("10.0.2.1", "10.0.2.1 quote=28")
    result = trace(routers.replace("10.0.3.1", "10.0.3.1 quote=28"), "--protocol", protocol)
    assert addresses(result) == [["10.0.1.1"], ["10.0.2.1"], ["10.0.3.1"], [TARGET]] and not reasons(result), result
    assert [node(result, f"10.0.{i}.1")["translated"] for i in (1, 2, 3)] == [False, True, True]
    assert [node(result, f"10.0.{i}.1")["changed"]["address"] for i in (1, 2, 3)] == [False, True, True]
    if port and protocol == "udp":  # the number of the probe is in the checksum alone
        return
    routers = six(LINE).replace("2001:db8:1::1", f"2001:db8:1::1 nat=2001:db8:5::5 keeps{port}").replace("2001:db8:2::1", "2001:db8:2::1 quote=48")
    result = trace(routers, "--protocol", protocol, to=TARGET6)
    assert addresses(result) == [["2001:db8:1::1"], ["2001:db8:2::1"], ["2001:db8:3::1"], [TARGET6]] and not reasons(result), result
    assert node(result, "2001:db8:2::1")["changed"]["address"]


def test_routers_that_do_not_answer(trace):
    result = trace(LINE.replace("r2 10.0.2.1", "r2 10.0.2.1 silent"), "--timeout", "300ms")
    assert addresses(result) == [["10.0.1.1"], [""], ["10.0.3.1"], [TARGET]] and result["arrived"] and not reasons(result)
    assert result["hops"][1]["answered"] == 0
    # No answers from hop 3 on: the trace ends after the requested number of silent hops.
    result = trace(
        "\n".join(f"r{i} 10.0.{i}.1 {'silent' if i > 2 else ''} -> r{i + 1}" for i in range(1, 30)) + f"\nr30 {TARGET} silent",
        "--timeout",
        "200ms",
        "--silent-hops",
        "3",
        status=3,
    )
    assert not result["arrived"] and len(result["hops"]) <= 6
    assert any("did not answer within 200.000 ms: the route is known up to hop 2" in reason["text"] for reason in result["reasons"])


def test_answers_from_another_address_limits_and_short_quotes(trace):
    routers = (
        LINE.replace("10.0.1.1", "10.0.1.1 source=10.9.9.9")
        .replace("10.0.2.1", "10.0.2.1 quote=28")
        .replace("10.0.3.1", "10.0.3.1 quote=28 pad128 every=2")
    )
    for protocol in ("udp", "tcp", "icmp"):
        result = trace(routers, "--protocol", protocol, "--tries", "8", "--timeout", "300ms")
        assert addresses(result)[:2] == [["10.9.9.9"], ["10.0.2.1"]] and "10.0.3.1" in addresses(result)[2] and result["arrived"], result
        assert result["hops"][2]["sent"] > result["hops"][2]["answered"] >= 6


def test_routers_that_limit_their_answers_are_no_further_routes(trace):
    """Each router answers four times, then once a second, like Linux after six answers. Two routes are found, without false ones."""
    routers = "\n".join(
        ["r1 10.0.1.1 bucket=4:1000 -> r2", "r2 10.0.2.1 bucket=20:1000 -> r31 r32"]
        + [f"r3{i} 10.0.3.{i} bucket=4:1000 -> r4" for i in (1, 2)]
        + ["r4 10.0.4.1 bucket=20:1000 -> h", f"h {TARGET} bucket=20:1000"]
    )
    for _ in range(3):
        result = trace(routers, "--timeout", "300ms", "--tries", "1", "--repeat", "0", "--min-share", "40")
        found = addresses(result)
        assert found[2] and set(found[2]) <= {"10.0.3.1", "10.0.3.2"} and result["routes"] == len(found[2]), result
        if len(found[2]) == 2:
            break
    assert found == [["10.0.1.1"], ["10.0.2.1"], ["10.0.3.1", "10.0.3.2"], ["10.0.4.1"], [TARGET]], result
    assert result["routes"] == 2 and result["complete"] and not reasons(result)


def test_truncated_answers_are_no_answers(trace):
    result = trace(LINE.replace("10.0.2.1", "10.0.2.1 quote=27"), "--timeout", "300ms")
    assert addresses(result)[1] == [""] and result["foreign"] >= 6 and result["arrived"]


def test_forged_answers(trace):
    """Forged answers of a host that knows the addresses and ports, and guesses the probe's number."""
    result = trace(LINE.replace("10.0.2.1", "10.0.2.1 forge"))
    assert addresses(result) == [["10.0.1.1"], ["10.0.2.1"], ["10.0.3.1"], [TARGET]] and result["foreign"] >= 6


def test_duplicates_and_late_answers(trace):
    result = trace(
        LINE.replace("10.0.1.1", "10.0.1.1 twice").replace("10.0.3.1", "10.0.3.1 delay=400000"), "--timeout", "250ms", "--tries", "1"
    )
    assert result["duplicates"] >= result["hops"][0]["answered"] - 1 > 5
    assert addresses(result)[2] == [""] and result["late"] >= 1
    # A time-out that is long enough.
    result = trace(LINE.replace("10.0.3.1", "10.0.3.1 delay=400000"), "--timeout", "1s", "--repeat", "0")
    assert node(result, "10.0.3.1")["rtt_us"]["min"] >= 400_000


@pytest.mark.parametrize(
    "code,name",
    [
        (0, "network unreachable"),
        (1, "host unreachable"),
        (10, "host prohibited"),
        (13, "administratively prohibited"),
        (99, "unreachable, of an unknown code"),
    ],
)
def test_destination_unreachable(trace, code, name):
    result = trace(LINE.replace("r2 10.0.2.1", f"r2 10.0.2.1 refuse={code}"), status=3)
    refused = [
        one
        for one in result["hops"][1]["nodes"] + (result["hops"][2]["nodes"] if len(result["hops"]) > 2 else [])
        if one["end"] == "unreachable"
    ]
    assert refused and {one["unreachable"] for one in refused} == {name}
    assert not result["arrived"] and len(result["hops"]) <= 3


def six(routers: str) -> str:
    return routers.replace("10.0.", "2001:db8:").replace(".1 ", "::1 ").replace(TARGET, TARGET6)


@pytest.mark.parametrize("protocol", ["udp", "tcp", "icmp"])
@pytest.mark.parametrize("code", [3, 1, 13])
@pytest.mark.parametrize("at", ["1", "2", "3", "23"])
def test_an_expired_ttl_that_is_answered_by_unreachable_is_no_end(trace, protocol, code, at):
    routers = LINE
    for hop in at:
        routers = routers.replace(f"10.0.{hop}.1", f"10.0.{hop}.1 expire={code}")
    for words, target in ((routers, TARGET), (six(routers), TARGET6)) if code == 3 else ((routers, TARGET),):
        result = trace(words, f"--protocol={protocol}", to=target, status=0)
        assert result["arrived"] and addresses(result) == [[line.split()[1]] for line in words.strip().split("\n")]
        assert [one["nodes"][0]["end"] for one in result["hops"]] == [None, None, None, "destination"]


def test_an_expired_ttl_that_is_answered_by_unreachable_on_several_routes(trace):
    result = trace(diamond(6, 2, "expire=3"), status=0)
    assert result["arrived"] and [len(hop["nodes"]) for hop in result["hops"]] == [1, 1, 6, 6, 1, 1]


@pytest.mark.parametrize("silent", ["", " silent"])
def test_a_firewall_behind_a_router_that_answers_by_unreachable(trace, silent):
    """Packets whose TTL expires and all others are refused by the same code: the firewall is the end."""
    routers = LINE.replace("10.0.1.1", "10.0.1.1 expire=3").replace("10.0.3.1", "10.0.3.1 refuse=3 expire=3").replace("10.0.2.1", "10.0.2.1" + silent)
    result = trace(routers, status=3)
    assert not result["arrived"] and result["hops"][-1]["nodes"][0]["end"] == "unreachable"
    assert addresses(result)[0] == ["10.0.1.1"] and addresses(result)[-1] == ["10.0.3.1"] and len(result["hops"]) == 3


def test_a_loop(trace):
    result = trace(LINE.replace("r3 10.0.3.1 -> h", "r3 10.0.3.1 -> r2"), status=3)
    assert result["hops"][-1]["nodes"][0]["end"] == "loop" and len(result["hops"]) <= 7


def test_balancing_packet_by_packet_is_found(trace):
    result = trace(diamond(4, 1).replace("b 10.0.2.1", "b 10.0.2.1 packets"), "--repeat", "10", status=3)
    assert result["moved"] > 0 and any("packet by packet" in reason["text"] for reason in result["reasons"])


@pytest.mark.parametrize(
    "target,routers", [(TARGET, LINE), (TARGET6, LINE.replace("10.0.", "2001:db8:").replace(".1 ", "::1 ").replace(TARGET, TARGET6))]
)
def test_one_flow_without_privileges(ktrxer, requires_namespaces, target, routers):
    unprivileged = [
        "setpriv",
        "--reuid",
        "65534",
        "--clear-groups",
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
        ktrxer,
        "trace",
        "--engine",
        "udp",
        target,
    ]
    with network(routers) as host:
        done = host.run([*unprivileged, "--one-route", "--jsonl"], check=False)
        many = host.run(unprivileged, check=False)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [hop["nodes"][0]["address"] for hop in objects[-1]["hops"]] == [line.split()[1] for line in routers.split("\n") if line]
    assert objects[-1]["arrived"] and {one["received_stamp"] for one in objects if one.get("kind") == "hop_answer"} == {"user"}
    assert objects[-1]["user_stamped"] == objects[-1]["answered"]
    assert many.returncode == 2 and "it sends one flow of UDP, on one route" in many.stderr


def test_samples_and_text(ktrxer, requires_namespaces):
    with network(LINE) as host:
        lines = host.run(
            [ktrxer, "trace", TARGET, "--jsonl", "--one-route", "--repeat", "5", "--interval", "5ms"], check=False
        ).stdout.splitlines()
        text = host.run([ktrxer, "trace", TARGET], check=False).stdout
        raised = host.run([ktrxer, "trace", "10.99.0.1"], check=False)
        wrong = host.run([ktrxer, "trace", TARGET, "--protocol", "icmp", "--port", "9"], check=False)
    objects = [json.loads(line) for line in lines]
    samples = [one for one in objects if one.get("kind") == "hop_answer"]
    assert len(samples) == objects[-1]["answered"]
    # The first flow probes eight hops at once: the destination also answers the probes for later hops.
    assert len([one for one in samples if one["hop"] <= 4]) == 4 * 6
    assert all(one["received_ns"] - one["sent_ns"] == one["rtt_ns"] > 0 and one["received_stamp"] == "kernel" for one in samples)
    assert {one["stage"] for one in samples} == {"search", "repeat"}
    rows = [line.split() for line in text.splitlines()]
    assert rows[1][:3] == ["hop", "address", "answers"] and [row[:2] for row in rows[2:6]] == [
        ["1", "10.0.1.1"],
        ["2", "10.0.2.1"],
        ["3", "10.0.3.1"],
        ["4", TARGET],
    ]
    assert raised.returncode == 1 and "is this host itself" in raised.stderr
    assert wrong.returncode == 2 and "ICMP has no ports" in wrong.stderr


@pytest.mark.parametrize("group", ["239.1.2.3", "ff05::2"])
def test_a_group_is_no_destination(shared_pair, ktrxer, group):
    """No router answers (RFC 1812, 4.3.2.7; RFC 4443, 2.4), and each probe would go to every member."""
    near, far = shared_pair
    near.run(["ip", "route", "add", group, "dev", near.device])
    before = far.counters()["rx"]["packets"]
    done = near.run([ktrxer, "trace", group], check=False)
    assert done.returncode != 0 and "routers do not answer probes to a multicast group" in done.stderr and not done.stdout
    assert far.counters()["rx"]["packets"] - before < 6, "no probe left"


def test_where_no_router_answers_no_routes_are_claimed(shared_pair, ktrxer):
    near, far = shared_pair
    words = ["--timeout", "200ms", "--tries", "1", "--silent-hops", "2"]
    far.run(["nft", "add table inet quiet; add chain inet quiet i { type filter hook input priority 0; udp dport 33434 drop; }"])
    try:
        done = near.run([ktrxer, "trace", far.address, *words], check=False)
    finally:
        far.run(["nft", "delete table inet quiet"])
    assert "no router and no host answered" in done.stdout and "probability" not in done.stdout and "1 route" not in done.stdout


@pytest.mark.skipif(not shutil.which("traceroute"), reason="traceroute is not installed: scripts/setup test")
def test_the_same_route_as_traceroute(trace, requires_namespaces):
    """traceroute finds the same routers. It varies the port, so both find the same path only without load balancing."""
    with network(LINE) as host:
        shown = host.run(["traceroute", "-n", "-q", "1", TARGET]).stdout.splitlines()[1:]
    assert [[line.split()[1]] for line in shown] == addresses(trace(LINE))


def test_an_address_of_others_is_traced_at_the_usual_rate(ktrxer, requires_namespaces):
    """All other tests trace addresses of private use, or give a rate."""
    with network(LINE.replace(TARGET, "9.9.9.9")) as host:
        done = host.run([ktrxer, "trace", "9.9.9.9", "--one-route", "--json"], check=False)
        refused = host.run([ktrxer, "trace", "9.9.9.9", "--rate", "20k"], check=False)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert addresses(result)[-1] == ["9.9.9.9"] and len(result["hops"]) == 4
    assert refused.returncode == 1 and "give a rate of at most 10000 a second, or --flood" in refused.stderr, refused.stderr
