# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Routes: ktrxer_path_resolve() in network namespaces, through path_probe.

      A                      B (router)                    C
    a0 10.77.1.1/24 ------ b0 10.77.1.2/24
       fd77:1::1              fd77:1::2
                           b1 10.77.2.2/24 ------------- c0 10.77.2.3/24
                              fd77:2::2                     fd77:2::3
    a1 10.77.3.1/24 ------ b2 10.77.3.2/24
"""

import json
import os
import socket
import struct
import subprocess

import pytest
from path_here import EINVAL, ENETDOWN, ENETUNREACH, EOPNOTSUPP, PROBE, base_net, forget, internet_checksum, refused, same, sh

pytestmark = pytest.mark.usefixtures("requires_namespaces")


@pytest.fixture(scope="module")
def base():
    yield from base_net()


@pytest.fixture
def net(base):
    return forget(base)


# ------------------------------------------------------------------------------------------------------- good ways


def test_on_link(net):
    path = same(net.good("10.77.1.2"), source="10.77.1.1", next_hop="10.77.1.2", mac=net.mac["b0"], mtu=1500)
    assert path["took_ms"] < 200
    same(path["device"], name="a0", link=1, mac=net.mac["a0"], mtu=1500, up=1, running=1, loopback=0, needs_neighbour=1,
         kind="veth", driver="veth")
    assert path["device"]["tx_queues"] >= 1
    # and again, from the table
    same(net.good("10.77.1.2"), mac=net.mac["b0"])


def test_on_link_ipv6(net):
    same(net.good("fd77:1::2"), source="fd77:1::1", next_hop="fd77:1::2", mac=net.mac["b0"], mtu=1500)


def test_by_gateway(net):
    same(net.good("10.77.2.3"), source="10.77.1.1", to="10.77.2.3", next_hop="10.77.1.2", mac=net.mac["b0"])


def test_by_gateway_ipv6(net):
    same(net.good("fd77:2::3"), source="fd77:1::1", to="fd77:2::3", next_hop="fd77:1::2", mac=net.mac["b0"])


def test_ipv6_gateway_is_link_local(net):
    gateway = net.link_local(net.b, "b0")
    net.ip(f"-6 route add fd77:aaaa::/64 via {gateway} dev a0")
    try:
        same(net.good("fd77:aaaa::1"), next_hop=f"{gateway}%a0", mac=net.mac["b0"])
    finally:
        net.ip("-6 route del fd77:aaaa::/64")


def test_ipv4_by_ipv6_gateway(net):
    gateway = net.link_local(net.b, "b0")
    net.ip(f"route add 10.99.0.0/24 via inet6 {gateway} dev a0")
    try:
        same(net.good("10.99.0.1"), next_hop=f"{gateway}%a0", mac=net.mac["b0"], source="10.77.1.1")
    finally:
        net.ip("route del 10.99.0.0/24")


def test_link_local_with_scope(net):
    there, here = net.link_local(net.b, "b0"), net.link_local(net.a, "a0")
    same(net.good(f"{there}%a0"), source=f"{here}%a0", to=f"{there}%a0", mac=net.mac["b0"])
    same(net.good(there, "dev=a0"), source=f"{here}%a0", to=f"{there}%a0", mac=net.mac["b0"])


def test_link_local_of_this_host(net):
    here = net.link_local(net.a, "a0")
    assert net.good(f"{here}%a0")["device"]["name"] == "lo"


def test_static_neighbour(net):
    net.ip("neigh replace 10.77.1.50 lladdr 02:00:00:00:00:50 nud permanent dev a0")
    try:
        path = same(net.good("10.77.1.50"), mac="02:00:00:00:00:50")
        assert path["took_ms"] < 100
    finally:
        net.ip("neigh del 10.77.1.50 dev a0")


def test_stale_neighbour_is_good_enough(net):
    net.ip("neigh replace 10.77.1.51 lladdr 02:00:00:00:00:51 nud stale dev a0")
    same(net.good("10.77.1.51"), mac="02:00:00:00:00:51")


def test_next_hop_mac_asks_nobody(net):
    path = same(net.good("10.77.1.200", "mac=02:aa:bb:cc:dd:ee"), mac="02:aa:bb:cc:dd:ee")
    assert path["took_ms"] < 100
    assert "10.77.1.200" not in net.ip("neigh show")


def test_frame_without_route_or_address(net):
    """With device, source and link address given, the route tables do not matter."""
    net.ip("link add d0 type veth peer name d1")
    net.ip("link set d0 up")
    net.ip("link set d1 up")
    try:
        same(net.good("198.51.100.1", "dev=d0", "from=203.0.113.5", "mac=02:00:00:00:00:09"), source="203.0.113.5",
             next_hop="198.51.100.1", mac="02:00:00:00:00:09", mtu=1500)
        # even to an address of this host
        same(net.good("10.77.1.1", "dev=d0", "from=203.0.113.5", "mac=02:00:00:00:00:09"), mac="02:00:00:00:00:09")
        refused(net.probe("198.51.100.1", "dev=d0", "from=203.0.113.5"), ENETUNREACH, "no route", "d0")
        refused(net.probe("198.51.100.1", "dev=d0", "mac=02:00:00:00:00:09"), ENETUNREACH, "no route", "MAC address")
    finally:
        net.ip("link del d0")


def test_no_link_address_wanted(net):
    path = same(net.good("10.77.1.201", "no-link-address"), mac="00:00:00:00:00:00", source="10.77.1.1")
    assert path["took_ms"] < 100


def test_spoofed_source(net):
    same(net.good("10.77.2.3", "from=203.0.113.9"), source="203.0.113.9", next_hop="10.77.1.2", mac=net.mac["b0"])
    same(net.good("fd77:2::3", "from=2001:db8::9"), source="2001:db8::9", next_hop="fd77:1::2", mac=net.mac["b0"])
    same(net.good("10.77.1.2", "from=0.0.0.0"), source="0.0.0.0", mac=net.mac["b0"])


def test_policy_by_source(net):
    net.ip("route add default via 10.77.3.2 table 77")
    net.ip("rule add from 10.77.3.1 table 77")
    net.ip("-6 route add default via fd77:3::2 table 77")
    net.ip("-6 rule add from fd77:3::1 table 77")
    try:
        same(net.good("10.77.2.3"), next_hop="10.77.1.2", source="10.77.1.1")
        path = net.good("10.77.2.3", "from=10.77.3.1")
        same(path, next_hop="10.77.3.2", source="10.77.3.1", mac=net.mac["b2"])
        assert path["device"]["name"] == "a1"
        path = net.good("fd77:2::3", "from=fd77:3::1")
        same(path, next_hop="fd77:3::2", source="fd77:3::1", mac=net.mac["b2"])
        assert path["device"]["name"] == "a1"
    finally:
        net.ip("rule del from 10.77.3.1 table 77")
        net.ip("route flush table 77")
        net.ip("-6 rule del from fd77:3::1 table 77")
        net.ip("-6 route flush table 77")


def test_mtu_of_route(net):
    net.ip("route add 10.88.0.0/24 via 10.77.1.2 mtu 1280")
    net.ip("route add 10.89.0.0/24 via 10.77.1.2 mtu 9000")
    net.ip("-6 route add fd88::/64 via fd77:1::2 mtu 1300")
    try:
        assert net.good("10.88.0.1")["mtu"] == 1280
        assert net.good("10.89.0.1")["mtu"] == 1500, "never more than the device"
        assert net.good("fd88::1")["mtu"] == 1300
    finally:
        net.ip("route del 10.88.0.0/24")
        net.ip("route del 10.89.0.0/24")
        net.ip("-6 route del fd88::/64")


def test_mtu_of_ipv6_on_the_device(net):
    sh(f"ip netns exec {net.a} sh -c 'echo 1400 > /proc/sys/net/ipv6/conf/a0/mtu'")
    try:
        assert net.good("fd77:1::2")["mtu"] == 1400
        assert net.good("10.77.1.2")["mtu"] == 1500
    finally:
        sh(f"ip netns exec {net.a} sh -c 'echo 1500 > /proc/sys/net/ipv6/conf/a0/mtu'")


def test_loopback(net):
    for to in ("127.0.0.1", "::1"):
        path = same(net.good(to), source=to, next_hop=to, mac="00:00:00:00:00:00")
        same(path["device"], name="lo", loopback=1, link=1, needs_neighbour=0)
        net.good(to, "dev=lo")
    # packets to an own address use loopback, too
    for to in ("10.77.1.1", "fd77:1::1"):
        assert net.good(to)["device"]["name"] == "lo"
    same(net.good("127.0.0.1", "from=127.0.0.7"), source="127.0.0.7", needs_stack=1)


LOOPBACK_SENDER = """
import json, socket, sys
to, family = sys.argv[1], int(sys.argv[2])
hear = socket.socket(family, socket.SOCK_DGRAM)
hear.bind((to, 4242))
hear.settimeout(0.3)
tell = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
tell.bind(("lo", 0))
tell.send(bytes.fromhex(sys.argv[3]))
try:
    hear.recv(100)
    print("heard")
except TimeoutError:
    print("lost")
"""


@pytest.mark.parametrize("source, to, needs_stack", [
    ("127.0.0.1", "127.0.0.1", 1),
    ("10.77.1.1", "10.77.1.1", 1),
    ("203.0.113.1", "10.77.1.1", 0),
    ("::1", "::1", 0),
])
def test_whole_frames_on_loopback(net, source, to, needs_stack):
    """needs_stack agrees with this kernel's treatment of a complete frame."""
    same(net.good(to, f"from={source}"), needs_stack=needs_stack)
    udp = struct.pack("!HHHH", 4000, 4242, 12, 0) + b"ktrx"
    if ":" in to:
        family, ethertype = socket.AF_INET6, b"\x86\xdd"
        ends = socket.inet_pton(family, source) + socket.inet_pton(family, to)
        udp = udp[:6] + internet_checksum(ends + struct.pack("!II", 12, 17) + udp) + udp[8:]
        packet = struct.pack("!IHBB", 6 << 28, 12, 17, 64) + ends + udp
    else:
        family, ethertype = socket.AF_INET, b"\x08\x00"
        ends = socket.inet_aton(source) + socket.inet_aton(to)
        head = struct.pack("!BBHHHBBH", 0x45, 0, 32, 0, 0x4000, 64, 17, 0) + ends  # and no UDP checksum: 0
        packet = head[:10] + internet_checksum(head) + head[12:] + udp
    done = subprocess.run(["ip", "netns", "exec", net.a, "python3", "-c", LOOPBACK_SENDER, to, str(int(family)),
                           (bytes(12) + ethertype + packet).hex()], capture_output=True, text=True)
    assert done.stdout.strip() == ("lost" if needs_stack else "heard"), done.stderr


def test_groups(net):
    same(net.good("239.129.2.3", "dev=a0"), mac="01:00:5e:01:02:03", next_hop="239.129.2.3")
    same(net.good("224.0.0.251", "dev=a0"), mac="01:00:5e:00:00:fb")
    same(net.good("ff02::1:ff00:7%a0"), mac="33:33:ff:00:00:07")
    same(net.good("ff02::fb", "dev=a0"), mac="33:33:00:00:00:fb", to="ff02::fb%a0")
    same(net.good("255.255.255.255", "dev=a0"), mac="ff:ff:ff:ff:ff:ff", source="10.77.1.1")
    same(net.good("10.77.1.255"), mac="ff:ff:ff:ff:ff:ff", next_hop="10.77.1.255")
    same(net.good("10.77.1.255", "mac=02:00:00:00:00:01"), mac="02:00:00:00:00:01")


TUN_RUNNER = """
import fcntl, struct, subprocess, sys
tun = open('/dev/net/tun', 'rb+', buffering=0)
fcntl.ioctl(tun, 0x800454ca if %r else 0x400454ca, struct.pack('16sH22x', b't0', 0x1001))
sys.exit(subprocess.run(sys.argv[1:]).returncode)
""" % os.uname().machine.startswith(("mips", "ppc", "sparc"))


def test_tun(net):
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("there is no /dev/net/tun")
    net.link_add("t0", "tuntap add dev t0 mode tun")
    net.ip("addr add 10.67.0.1/24 dev t0")
    try:
        # a tun device that no program has opened has no carrier
        refused(net.probe("10.67.0.2"), ENETDOWN, "t0", "carrier")
        done = subprocess.run(["ip", "netns", "exec", net.a, "python3", "-c", TUN_RUNNER, str(PROBE), "10.67.0.2"],
                              capture_output=True, text=True)
        path = same(json.loads(done.stdout), code=0, source="10.67.0.1", mac="00:00:00:00:00:00", mtu=1500)
        same(path["device"], name="t0", link=2, needs_neighbour=0, kind="tun", driver="tun")
    finally:
        net.ip("tuntap del dev t0 mode tun")


@pytest.mark.parametrize("kind, options", [
    ("ipip", "local 10.77.1.1 remote 10.77.1.2"),
    ("sit", "local 10.77.1.1 remote 10.77.1.2 mode any"),
    ("gre", "local 10.77.1.1 remote 10.77.1.2"),
    ("wireguard", ""),
])
def test_tunnels(net, kind, options):
    net.link_add("tn0", f"link add tn0 type {kind} {options}")
    try:
        net.ip("addr add 10.66.0.1/24 dev tn0")
        path = same(net.good("10.66.0.2"), source="10.66.0.1", mac="00:00:00:00:00:00")
        same(path["device"], name="tn0", link=2, needs_neighbour=0, kind=kind)
        assert path["mtu"] == path["device"]["mtu"] < 1500
        refused(net.probe("10.66.0.2", "mac=02:00:00:00:00:01"), EINVAL, "tn0", "no link addresses")
    finally:
        net.ip("link del tn0")


def test_gre_without_far_end(net):
    net.link_add("tn0", "link add tn0 type gre local 10.77.1.1")
    try:
        net.ip("addr add 10.66.0.1/24 dev tn0")
        refused(net.probe("10.66.0.2"), EOPNOTSUPP, "tn0", "gre", "udp")
        net.good("10.66.0.2", "no-link-address")
    finally:
        net.ip("link del tn0")


def test_device_without_arp(net):
    net.ip("link add dum0 type veth peer name dum1")
    net.ip("link set dum0 arp off up")
    net.ip("link set dum1 up")
    net.ip("addr add 10.55.0.1/24 dev dum0")
    try:
        path = net.good("10.55.0.9")
        assert path["device"]["needs_neighbour"] == 0
        assert path["mac"] == path["device"]["mac"]
        net.ip("neigh replace 10.55.0.8 lladdr 02:00:00:00:00:08 nud permanent dev dum0")
        same(net.good("10.55.0.8"), mac="02:00:00:00:00:08")
    finally:
        net.ip("link del dum0")


def test_vrf(net):
    net.link_add("vrf0", "link add vrf0 type vrf table 90")
    net.ip("link add e0 type veth peer name e1")
    net.ip("link set e0 master vrf0")
    net.ip("link set e0 up")
    net.ip("link set e1 up")
    net.ip("addr add 10.44.0.1/24 dev e0")
    net.ip("neigh replace 10.44.0.2 lladdr 02:00:00:00:00:44 nud permanent dev e0")
    try:
        path = same(net.good("10.44.0.2", "dev=vrf0"), source="10.44.0.1", mac="02:00:00:00:00:44")
        assert path["device"]["name"] == "e0"
        assert net.good("10.44.0.2", "dev=vrf0", "from=10.44.0.1")["device"]["name"] == "e0"
    finally:
        net.ip("link del e0")
        net.ip("link del vrf0")


# ------------------------------------------------------------------------------------------------------- devices


def test_device_list(net):
    listed = net.probe("devices")
    assert listed["count"] == len(listed["devices"])
    names = {device["name"]: device for device in listed["devices"]}
    assert {"lo", "a0", "a1"} <= set(names)
    assert names["a0"]["driver"] == "veth" and names["a0"]["kind"] == "veth"
    same(net.probe("device", "a0"), name="a0", link=1, mac=net.mac["a0"])
    assert net.probe("device", "a0")["qdisc"] != ""


def test_odd_device(net):
    done = subprocess.run(f"ip -n {net.a} link add vcan0 type vcan", shell=True, capture_output=True)
    if done.returncode:
        pytest.skip("this kernel has no vcan, the odd link of this test")
    try:
        refused(net.probe("device", "vcan0"), EOPNOTSUPP, "vcan0")
    finally:
        net.ip("link del vcan0")
