# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Refused routes: ktrxer_path_resolve() in network namespaces, through path_probe: missing privileges and missing routes.

      A                      B (router)                    C
    a0 10.77.1.1/24 ------ b0 10.77.1.2/24
       fd77:1::1              fd77:1::2
                           b1 10.77.2.2/24 ------------- c0 10.77.2.3/24
                              fd77:2::2                     fd77:2::3
    a1 10.77.3.1/24 ------ b2 10.77.3.2/24
"""

import json
import os
import subprocess

import pytest
from path_here import (
    EADDRNOTAVAIL,
    EHOSTUNREACH,
    EINVAL,
    ENETDOWN,
    ENETUNREACH,
    ENODEV,
    EOPNOTSUPP,
    PROBE,
    base_net,
    forget,
    refused,
    same,
    sh,
)

pytestmark = pytest.mark.usefixtures("requires_namespaces")


@pytest.fixture(scope="module")
def base():
    yield from base_net()


@pytest.fixture
def net(base):
    return forget(base)


# ------------------------------------------------------------------------------------------------------- unprivileged


def test_unprivileged(net):
    same(net.good("10.77.1.2", user="65534"), mac=net.mac["b0"])
    same(net.good("fd77:2::3", user="65534"), mac=net.mac["b0"])
    there = net.link_local(net.b, "b0")
    same(net.good(f"{there}%a0", user="65534"), mac=net.mac["b0"])


def test_unprivileged_nobody_there(net):
    answer = refused(net.probe("10.77.1.99", user="65534"), EHOSTUNREACH, "10.77.1.99", "ARP")
    assert 950 <= answer["took_ms"] < 1200


# ------------------------------------------------------------------------------------------------------- no way


@pytest.mark.plain_build
@pytest.mark.parametrize("to, protocol", [("10.77.1.99", "ARP"), ("fd77:1::99", "neighbour discovery")])
def test_no_neighbour_takes_a_second(net, to, protocol):
    answer = refused(net.probe(to), EHOSTUNREACH, to, protocol, "a0", "MAC address")
    assert 950 <= answer["took_ms"] < 1200
    answer = refused(net.probe(to, "timeout=150"), EHOSTUNREACH)
    assert 140 <= answer["took_ms"] < 350


def test_failed_neighbour_is_asked_again(net):
    net.ip("neigh replace 10.77.1.2 nud failed dev a0")
    same(net.good("10.77.1.2"), mac=net.mac["b0"])


def test_no_route(net):
    for to in ("10.77.1.1", "fd77:1::1"):
        refused(net.probe(to, ns=net.c), ENETUNREACH, "no route", to)
    refused(net.probe("10.77.1.1", "dev=c0", ns=net.c), ENETUNREACH, "no route", "c0")
    refused(net.probe("fd77:1::1", "dev=c0", ns=net.c), ENETUNREACH, "no route", "c0")
    # a route exists, but not through that device
    refused(net.probe("10.77.2.3", "dev=a1"), ENETUNREACH, "no route", "a1")
    refused(net.probe("fd77:2::3", "dev=a1", "from=fd77:1::1"), ENETUNREACH, "no route", "a1")


@pytest.mark.parametrize("kind", ["prohibit", "blackhole", "unreachable", "throw"])
@pytest.mark.parametrize("family, to, prefix", [("-4", "10.90.0.1", "10.90.0.0/24"), ("-6", "fd90::1", "fd90::/64")])
def test_route_that_says_no(net, kind, family, to, prefix):
    net.ip(f"{family} route add {kind} {prefix}")
    try:
        word = "no route" if kind == "throw" else f"'{kind}'"
        refused(net.probe(to), ENETUNREACH, word, to)
        if family == "-4":
            # naming the device does not help, although IPv4 would assume that the destination is on the link
            refused(net.probe(to, "dev=a1"), ENETUNREACH, word)
    finally:
        net.ip(f"{family} route del {prefix}")


def test_rule_that_says_no(net):
    net.ip("rule add from 10.77.3.1 prohibit")
    try:
        refused(net.probe("10.77.2.3", "from=10.77.3.1"), ENETUNREACH, "'prohibit'", "from 10.77.3.1")
        net.good("10.77.2.3")
    finally:
        net.ip("rule del from 10.77.3.1 prohibit")


def test_device_down(net):
    net.ip("link add f0 type veth peer name f1")
    try:
        refused(net.probe("10.33.0.2", "dev=f0"), ENETDOWN, "'f0' is down", "ip link set f0 up")
        net.ip("link set f0 up")
        net.ip("addr add 10.33.0.1/24 dev f0")
        refused(net.probe("10.33.0.2", "dev=f0"), ENETDOWN, "f0", "carrier")
        refused(net.probe("10.33.0.2"), ENETDOWN, "f0", "carrier")
    finally:
        net.ip("link del f0")


def test_unknown_device(net):
    refused(net.probe("10.77.1.2", "dev=a00"), ENODEV, "'a00'", "did you mean 'a0'")
    refused(net.probe("10.77.1.2", "dev=something"), ENODEV, "'something'", "lo, ", "a0")
    for name in ("", "x" * 500, "a/b", "a b\n", "%s%n", "\u00e9"):
        refused(net.probe("10.77.1.2", f"dev={name}"), ENODEV)
    refused(net.probe("fe80::1%4242"), ENODEV)


def test_alternative_name(net):
    net.ip("link property add dev a0 altname uplink-of-the-big-router")
    try:
        assert net.good("10.77.1.2", "dev=uplink-of-the-big-router")["device"]["name"] == "a0"
    finally:
        net.ip("link property del dev a0 altname uplink-of-the-big-router")


def test_own_address_does_not_leave(net):
    for to in ("10.77.1.1", "10.77.3.1", "127.0.0.1", "fd77:1::1", "::1"):
        refused(net.probe(to, "dev=a0"), ENETUNREACH, "own address", "a0")


def test_contradictions(net):
    there = net.link_local(net.b, "b0")
    refused(net.probe(there), EINVAL, "which")
    refused(net.probe("ff02::1"), EINVAL, "which")
    refused(net.probe(f"{there}%a0", "dev=a1"), EINVAL, "a1")
    refused(net.probe(f"{there}%a0", f"from={there}%a1"), EINVAL, "different links")
    refused(net.probe("10.77.1.2", "from=fd77:1::1"), EINVAL, "versions")
    refused(net.probe("10.77.1.2", "from=224.0.0.1"), EINVAL, "multicast")
    refused(net.probe("0.0.0.0"), EINVAL, "0.0.0.0")
    refused(net.probe("::"), EINVAL)
    refused(net.probe("::ffff:10.77.1.2"), EINVAL, "IPv4")


def test_source_of_another_device(net):
    net.ip("link add g0 type veth peer name g1")
    for name in ("g0", "g1"):
        net.ip(f"link set {name} up")
    try:
        net.ip("route add 10.22.0.0/24 dev g0")
        same(net.good("10.22.0.1", "dev=g0", "mac=02:00:00:00:00:01"), source="10.77.1.1")
    finally:
        net.ip("link del g0")


def test_no_source_at_all():
    name = f"ktxpath{os.getpid()}n"
    sh(f"ip netns add {name}")
    try:
        sh(f"ip -n {name} link add g0 type veth peer name g1")
        sh(f"ip -n {name} link set g0 up")
        sh(f"ip -n {name} link set g1 up")
        sh(f"ip -n {name} route add 10.22.0.0/24 dev g0")
        done = subprocess.run(["ip", "netns", "exec", name, str(PROBE), "10.22.0.1", "dev=g0"], capture_output=True,
                              text=True)
        refused(json.loads(done.stdout), EADDRNOTAVAIL, "g0", "no IPv4 address", "source address")
    finally:
        sh(f"ip netns del {name}")


def test_route_that_encapsulates(net):
    done = subprocess.run(f"ip -n {net.a} -6 route add fd91::/64 encap seg6 mode encap segs fd77:2::3 dev a0",
                          shell=True, capture_output=True)
    if done.returncode:
        pytest.skip("this kernel has no segment routing")
    try:
        refused(net.probe("fd91::1"), EOPNOTSUPP, "wraps", "udp")
        net.good("fd91::1", "no-link-address")
    finally:
        net.ip("-6 route del fd91::/64")
