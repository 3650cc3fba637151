# SPDX-License-Identifier: MIT OR Apache-2.0
"""The path witness: the devices by which probes leave and answers arrive, beside the counters of the devices (docs/decisions/0078-path-witness.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Json
from flows import secret
from ktrxer_lab import hosts
from two_lines import FAR, FIRST, SECOND, mark, return_by_second, sent, two_lines

COUNT = 20


@pytest.fixture
def lines(requires_namespaces: None) -> Iterator[tuple[hosts.Netns, hosts.Netns]]:
    with two_lines() as both:
        yield both


def ping(ktrxer_json: Json, host: hosts.Netns, to: str, *options: str) -> dict[str, Any]:
    """The exit status is of no interest: on a busy machine probes are late."""
    return ktrxer_json(host, "ping", to, "-c", str(COUNT), "-i", "10ms", "-W", "1s", *options, status=None)


def left(end: dict[str, Any]) -> dict[str, int]:
    return {way["device"]: way["probes"] for way in end["path"]["left"]}


def arrived(end: dict[str, Any]) -> dict[str, int]:
    return {way["device"]: way["answers"] for way in end["path"]["arrived"]}


def reasons(end: dict[str, Any]) -> list[str]:
    return [one["id"] for one in end["reasons"] if one["id"].startswith("path_")]


@pytest.mark.parametrize("engine", ["udp", "raw", "packet"])
@pytest.mark.parametrize("version", [4, 6])
def test_the_source_address_chooses_the_line(lines, ktrxer_json, version, engine):
    """A rule by source applies to each engine: what the first line says is what happens. The raw engine took the route of any source."""
    a, _ = lines
    before = a.counters("w2")["tx"]["packets"]
    end = ping(ktrxer_json, a, FAR[version], "-e", engine, "--from", SECOND[version])
    assert end["device"] == "w2" and left(end) == {"w2": COUNT} and not reasons(end), end
    assert a.counters("w2")["tx"]["packets"] - before >= COUNT
    assert end["path"]["left"][0]["from"] == SECOND[version]
    assert end["path"]["left"][0]["next_hop"] == ("10.78.0.2" if version == 4 else "fd00:78::2")
    assert end["received"] == COUNT and arrived(end) == {"w2": COUNT}


@pytest.mark.parametrize("engine", ["udp", "raw"])
@pytest.mark.parametrize("version", [4, 6])
def test_a_mark_of_the_firewall_is_a_reason(lines, ktrxer_json, ktrxer, version, engine):
    """No look-up of the route sees the mark. The probes leave by the second line; the figures are of that one."""
    a, _ = lines
    mark(a)
    before = a.counters("w2")["tx"]["packets"]
    end = ping(ktrxer_json, a, FAR[version], "-e", engine)
    assert end["device"] == "w1" and left(end) == {"w2": COUNT}, end
    assert a.counters("w2")["tx"]["packets"] - before >= COUNT
    (reason,) = [one for one in end["reasons"] if one["id"] == "path_device"]
    assert reason["elsewhere"] == reason["probes"] == COUNT and (reason["device"], reason["claimed"]) == ("w2", "w1")
    assert reason["severity"] == "degraded"
    text = a.run([ktrxer, "ping", FAR[version], "-e", engine, "-c", "3", "-i", "10ms"], check=False).stdout
    assert "path: packets left 3 by w2 from" in text and "not by 'w1'" in text, text


def test_a_named_source_that_a_mark_overrides_has_no_valid_figure(lines, ktrxer_json):
    a, _ = lines
    mark(a)
    end = ping(ktrxer_json, a, FAR[4], "-e", "raw", "--from", FIRST[4])
    assert end["verdict"] == "invalid" and reasons(end) == ["path_device"], end


@pytest.mark.parametrize("engine", ["raw", "packet", "udp"])
@pytest.mark.parametrize("version", [4, 6])
def test_answers_by_another_device_are_received(lines, ktrxer_json, ktrxer, version, engine):
    """That answers take another path is a fact, and no reason: the first line claims nothing about that path. It looked like a loss of 100 %."""
    a, b = lines
    return_by_second(b)
    end = ping(ktrxer_json, a, FAR[version], "-e", engine)
    assert end["received"] == COUNT and left(end) == {"w1": COUNT} and arrived(end) == {"w2": COUNT} and not reasons(end), end
    text = a.run([ktrxer, "ping", FAR[version], "-e", engine, "-c", "3", "-i", "10ms"], check=False).stdout
    assert "answers arrived 3 by w2" in text, text


@pytest.mark.parametrize("engine", ["raw", "packet", "udp"])
@pytest.mark.parametrize("version", [4, 6])
def test_the_ordinary_path_has_no_reason(lines, ktrxer_json, ktrxer, version, engine):
    a, _ = lines
    end = ping(ktrxer_json, a, "10.77.0.2" if version == 4 else "fd00:77::2", "-e", engine)
    assert left(end) == arrived(end) == {"w1": COUNT} and not reasons(end), end
    text = a.run([ktrxer, "ping", "10.77.0.2", "-c", "3", "-i", "10ms"], check=False).stdout
    assert "path:" not in text, text


def added(host: hosts.Netns, kind: str, *words: str) -> None:
    """A device of this kind, if this kernel has the kind."""
    try:
        host.ip("link", "add", *words)
    except RuntimeError as error:
        if "Unknown device type" in str(error):
            pytest.skip(f"this kernel has no devices of the kind {kind}")
        raise


@pytest.mark.parametrize("kind", ["bridge", "macvlan", "vxlan", "vlan", "bond"])
@pytest.mark.parametrize("engine", ["raw", "packet", "udp"])
@pytest.mark.parametrize("version", [4, 6])
def test_stacked_devices_are_one_path(pair, ktrxer_json, version, engine, kind):
    """A tap sees an answer at each device of a stack: it is one answer, by the device that has the address."""
    a, b = pair
    far = "10.88.0.2" if version == 4 else "fd00:88::2"
    for host, other, device, number in ((a, b, "a0", 1), (b, a, "b0", 2)):
        match kind:
            case "bridge":
                host.ip("address", "flush", "dev", device)
                host.ip("link", "add", "top", "type", "bridge")
                host.ip("link", "set", device, "master", "top")
            case "macvlan":
                host.ip("link", "add", "link", device, "top", "type", "macvlan")
            case "vxlan":
                host.ip(*f"link add top type vxlan id 7 dev {device} local {host.address} remote {other.address} dstport 4789".split())
            case "vlan":
                added(host, kind, *f"link {device} name top type vlan id 7".split())
            case "bond":
                host.ip("address", "flush", "dev", device)
                host.ip("link", "set", device, "down")
                added(host, kind, "top", "type", "bond", "mode", "active-backup")
                host.ip("link", "set", device, "master", "top")
        host.ip("link", "set", "top", "up")
        host.ip("address", "add", f"10.88.0.{number}/24", "dev", "top")
        host.ip("address", "add", f"fd00:88::{number}/64", "dev", "top", "nodad")
    a.run(["ping", "-c", "1", "-w", "10", far])  # the first packets of a new device wait for its carrier and for the neighbour
    end = ping(ktrxer_json, a, far, "-e", engine)
    assert end["received"] == COUNT and end["duplicates"] == 0 and not reasons(end), end
    assert left(end) == {"top": COUNT} and arrived(end) == {"top": COUNT}, end


@pytest.mark.parametrize("device", ["a0", "red"])
@pytest.mark.parametrize("engine", ["raw", "packet", "udp"])
@pytest.mark.parametrize("version", [4, 6])
def test_a_routing_domain_of_its_own(pair, ktrxer_json, version, engine, device):
    """A VRF's device has the probe before the device by which it leaves: that is no other path."""
    a, b = pair
    added(a, "vrf", "red", "type", "vrf", "table", "99")
    a.ip("link", "set", "red", "up")
    a.ip("link", "set", "a0", "master", "red")
    a.ip("address", "add", "fd00:77::1/64", "dev", "a0", "nodad")
    end = ping(ktrxer_json, a, b.address if version == 4 else b.address6, "-e", engine, "-d", device)
    assert end["received"] == COUNT and end["duplicates"] == 0 and not reasons(end), end
    assert set(left(end)) <= {"red", "a0"} and set(arrived(end)) <= {"red", "a0"}, end


@pytest.mark.parametrize("to", ["127.0.0.1", "::1", "10.77.0.1", "fd00:77::1"])
def test_this_host_itself(pair, ktrxer_json, to):
    end = ping(ktrxer_json, pair[0], to)
    assert left(end) == {"lo": COUNT} and not reasons(end), end


@pytest.mark.parametrize("version", [4, 6])
def test_nat_of_this_host_changes_the_source(lines, ktrxer_json, version):
    a, _ = lines
    other = "10.77.0.9" if version == 4 else "fd00:77::9"
    a.ip("address", "add", f"{other}/{24 if version == 4 else 64}", "dev", "w1", *(("nodad",) if version == 6 else ()))
    ip = "ip" if version == 4 else "ip6"
    a.run(["nft", "add", "table", ip, "n"])
    a.run(["nft", f"add chain {ip} n p {{ type nat hook postrouting priority 100; }}"])
    a.run(["nft", f"add rule {ip} n p {ip} daddr {FAR[version]} snat to {other}"])
    end = ping(ktrxer_json, a, FAR[version], "-e", "udp", "--from", FIRST[version])
    assert reasons(end) == ["path_source"] and end["path"]["left"][0]["from"] == other, end


@pytest.mark.parametrize("version", [4, 6])
def test_a_route_that_changes_is_a_reason(lines, ktrxer, version):
    """To another device half-way, and to another next hop of the same device."""
    a, _ = lines
    via = {4: "10.78.0.2", 6: "fd00:78::2"}[version]
    child = a.popen([ktrxer, "ping", FAR[version], "-c", "40", "-i", "25ms", "-e", "raw", "--jsonl"])
    assert child.stdout is not None
    seen = 0
    for line in child.stdout:
        seen += '"kind":"round_trip"' in line.replace(" ", "")
        if seen == 5:
            a.ip(f"-{version}", "route", "replace", FAR[version], "via", via)
            break
    out = child.communicate(timeout=30)[0]
    end = json.loads(out.splitlines()[-1])
    # The source stays that of the first device: there, the rule by source does not apply.
    assert reasons(end) == ["path_device"] and set(left(end)) == {"w1", "w2"}, end


@pytest.mark.parametrize("version", [4, 6])
def test_a_device_gets_another_name(lines, ktrxer, version):
    """The index counts: the same device by its new name."""
    a, _ = lines
    child = a.popen([ktrxer, "ping", FAR[version], "-c", "40", "-i", "25ms", "-e", "raw", "--jsonl"])
    assert child.stdout is not None
    for line in child.stdout:
        if "round_trip" in line:
            a.ip("link", "property", "add", "dev", "w1", "altname", "other")
            break
    end = json.loads(child.communicate(timeout=30)[0].splitlines()[-1])
    assert left(end) == {"w1": 40} and not reasons(end), end


def without_limit(host: hosts.Netns) -> None:
    """Each probe has an ICMP error. With Linux's default limit there is one a second, and a trace takes 6 s."""
    host.sysctl("ipv4/icmp_ratelimit", 0)
    host.sysctl("ipv6/icmp/ratelimit", 0)


@pytest.mark.parametrize("version", [4, pytest.param(6, marks=pytest.mark.plain_build)])
def test_trace_and_its_line(lines, ktrxer_json, version):
    a, b = lines
    without_limit(b)
    end = ktrxer_json(a, "trace", FAR[version], "-e", "raw", "--from", SECOND[version], status=None)
    assert end["device"] == "w2" and set(left(end)) == {"w2"} and not reasons(end), end
    mark(a)
    end = ktrxer_json(a, "trace", FAR[version], "-e", "raw", status=None)
    assert end["device"] == "w1" and set(left(end)) == {"w2"} and reasons(end) == ["path_device"], end


@pytest.mark.parametrize("engine", ["raw", "packet"])
@pytest.mark.parametrize("version", [4, 6])
def test_trace_of_a_route_with_two_next_hops(lines, ktrxer_json, ktrxer, version, engine):
    """The own kernel balances: "1 route, all next hops known" was false. By one named device there is one next hop."""
    a, b = lines
    without_limit(b)
    vias = {4: ("10.77.0.2", "10.78.0.2"), 6: ("fd00:77::2", "fd00:78::2")}[version]

    def trace(*options: str) -> tuple[dict[str, Any], bool]:
        end = ktrxer_json(a, "trace", FAR[version], "-e", engine, *options, status=None)
        return end, "trace_own_next_hops" in [one["id"] for one in end["reasons"]]

    end, named = trace()
    assert end["own_next_hops"] == 1 and end["complete"] and not named, end
    a.ip(f"-{version}", "route", "replace", FAR[version], *(f"nexthop via {vias[0]} nexthop via {vias[1]}".split()))
    end, named = trace()
    assert end["own_next_hops"] == 2 and end["routes"] == 1 and not end["complete"] and named and end["verdict"] != "valid", end
    text = a.run([ktrxer, "trace", FAR[version], "-e", engine], check=False).stdout
    assert f"this host's own route to {FAR[version]} has 2 next hops" in text and "is missed" not in text, text
    end, named = trace("--from", SECOND[version])  # a rule leads packets from there to a route with one next hop
    assert end["own_next_hops"] == 1 and not named and set(left(end)) == {"w2"}, end
    end, named = trace("-d", "w2")
    assert end["own_next_hops"] == 1 and not named and set(left(end)) == {"w2"}, end
    end, named = trace("--one-route")
    assert end["own_next_hops"] == 2 and not named, end


@pytest.mark.parametrize("version", [4, 6])
def test_the_load_of_trace_takes_the_line_of_its_source(lines, ktrxer, serve, tmp_path, version):
    """Probes and flows of `trace --load --from` leave by the line of that source."""
    a, b = lines
    without_limit(b)
    token = secret(tmp_path / "token")
    serve(b, "--token-file", token)
    before = sent(a)
    words = [ktrxer, "trace", FAR[version], "-e", "raw", "--from", SECOND[version], "--load", "up", "--load-for", "500ms", "-i", "20ms"]
    done = a.run([*words, "--token-file", token, "--json"], check=False)
    assert done.stdout, done.stderr
    end, after = json.loads(done.stdout), sent(a)
    by = {device: after[device] - before[device] for device in after}
    assert end["device"] == "w2" and set(left(end)) == {"w2"} and not reasons(end), end
    assert end["load"] is not None and by["w2"] > 100 and by["w1"] < 10, by


@pytest.mark.parametrize("options", [("-d", "w1"), ("-e", "raw"), ("-e", "udp")])
@pytest.mark.parametrize("version", [4, 6])
def test_icmp_errors_of_all_engines(lines, ktrxer_json, version, options):
    """A closed port, and a route that ends at the far host: with -d these errors were not seen."""
    a, b = lines
    without_limit(b)
    end = ping(ktrxer_json, a, FAR[version], "-u", "-p", "9", *options)
    assert end["network_errors"] >= 1 and end["received"] == 0, end
    b.sysctl("ipv4/ip_forward", 1)
    b.sysctl("ipv6/conf/all/forwarding", 1)
    to = {4: "10.99.0.1", 6: "fd99::1"}[version]
    a.ip(f"-{version}", "route", "add", to, "via", {4: "10.77.0.2", 6: "fd00:77::2"}[version])
    b.ip(f"-{version}", "route", "add", "unreachable", to)
    end = ping(ktrxer_json, a, to, *options)
    assert end["network_errors"] >= 1 and end["received"] == 0, end


def test_errors_about_other_packets_are_not_ours(lines, ktrxer_json, ktrxer):
    """Two pings to one closed port at once: the errors of each are its own."""
    a, _ = lines
    other = a.popen([ktrxer, "ping", FAR[4], "-u", "-p", "9", "-c", "200", "-i", "5ms", "-e", "udp", "--json"])
    end = ping(ktrxer_json, a, "10.77.0.2", "-d", "w1")
    other.communicate(timeout=30)
    assert end["network_errors"] == 0 and end["received"] == COUNT, end
