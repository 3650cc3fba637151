# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Where frames go: ktrxer_path_resolve() in network namespaces, through path_probe.

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
import time

import pytest
from ktrxer.bench import contest, hosts

PROBE = contest.build() / "tests" / "system" / "path_probe"

ENODEV, EINVAL, EADDRNOTAVAIL, ENETDOWN, ENETUNREACH, EHOSTUNREACH, EOPNOTSUPP = -19, -22, -99, -100, -101, -113, -95

pytestmark = pytest.mark.usefixtures("requires_namespaces")


def sh(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def internet_checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


class Net:
    def __init__(self):
        self.a, self.b, self.c = (hosts.new_name(x) for x in "abc")

    def up(self):
        for ns in (self.a, self.b, self.c):
            sh(f"ip netns add {ns}")
            # No duplicate address detection: addresses count at once.
            sh(f"ip netns exec {ns} sh -c 'for f in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 > $f; done'")
            # What this host's settings may have handed down.
            for name, value in (("rp_filter", 0), ("accept_local", 0), ("route_localnet", 0)):
                sh(f"ip netns exec {ns} sh -c 'for f in /proc/sys/net/ipv4/conf/*/{name}; do echo {value} > $f; done'")
            sh(f"ip -n {ns} link set lo up")
        self.veth(self.a, "a0", self.b, "b0", 1)
        self.veth(self.b, "b1", self.c, "c0", 2, first=2)
        self.veth(self.a, "a1", self.b, "b2", 3)
        sh(f"ip netns exec {self.b} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'")
        sh(f"ip netns exec {self.b} sh -c 'echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'")
        sh(f"ip -n {self.a} route add default via 10.77.1.2")
        sh(f"ip -n {self.a} -6 route add default via fd77:1::2")
        self.mac = {}
        for ns, names in ((self.a, ("a0", "a1")), (self.b, ("b0", "b1", "b2")), (self.c, ("c0",))):
            for name in names:
                self.mac[name] = json.loads(sh(f"ip -j -n {ns} link show dev {name}"))[0]["address"]
        return self

    def veth(self, ns1, name1, ns2, name2, net, first=1):
        sh(f"ip -n {ns1} link add {name1} type veth peer name {name2} netns {ns2}")
        for ns, name, host in ((ns1, name1, first), (ns2, name2, first + 1)):
            sh(f"ip netns exec {ns} sh -c 'echo 0 > /proc/sys/net/ipv6/conf/{name}/accept_dad'")
            sh(f"ip -n {ns} link set {name} up")
            sh(f"ip -n {ns} addr add 10.77.{net}.{host}/24 dev {name}")
            sh(f"ip -n {ns} -6 addr add fd77:{net}::{host}/64 dev {name} nodad")

    def down(self):
        for ns in (self.a, self.b, self.c):
            subprocess.run(["ip", "netns", "del", ns], capture_output=True)

    def ip(self, what, ns=None):
        return sh(f"ip -n {ns or self.a} {what}")

    def probe(self, *arguments, ns=None, user=None):
        command = ["ip", "netns", "exec", ns or self.a]
        if user:
            if subprocess.run(["setpriv", "--reuid", user, "--clear-groups", "true"], capture_output=True).returncode:
                pytest.skip("no second user here (user namespace), or no setpriv")
            command += ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--bounding-set=-all",
                        "--inh-caps=-all"]
        done = subprocess.run(command + [str(PROBE), *arguments], capture_output=True, text=True, timeout=20)
        assert done.returncode in (0, 1), f"{arguments}: {done.returncode} {done.stderr}"
        return json.loads(done.stdout)

    def good(self, *arguments, **more):
        path = self.probe(*arguments, **more)
        assert path["code"] == 0, path
        return path

    def link_local(self, ns, name):
        for _ in range(50):
            for entry in json.loads(sh(f"ip -j -n {ns} -6 addr show dev {name} scope link -tentative")):
                for address in entry.get("addr_info", []):
                    if "local" in address:
                        return address["local"]
            time.sleep(0.1)
        pytest.fail(f"{name} got no link-local address")

    def link_add(self, name, what):
        """A device of a kind that not every kernel has."""
        done = subprocess.run(f"ip -n {self.a} {what}", shell=True, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this kernel cannot: ip {what}: {done.stderr.strip()}")
        self.ip(f"link set {name} up")


@pytest.fixture(scope="module")
def base():
    net = Net()
    try:
        yield net.up()
    finally:
        net.down()


@pytest.fixture
def net(base):
    """The same net, with the neighbours of A forgotten."""
    base.ip("neigh flush all")
    base.ip("-6 neigh flush all")
    return base


def same(path, **fields):
    assert {name: path[name] for name in fields} == fields
    return path


def refused(answer, code, *words):
    assert answer["code"] == code, answer
    for word in words:
        assert word in answer["error"], answer
    assert len(answer["error"]) < 255, "the line is cut"
    return answer


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
    """Device, source and link address are enough, whatever the tables hold."""
    net.ip("link add d0 type veth peer name d1")
    net.ip("link set d0 up")
    net.ip("link set d1 up")
    try:
        same(net.good("198.51.100.1", "dev=d0", "from=203.0.113.5", "mac=02:00:00:00:00:09"), source="203.0.113.5",
             next_hop="198.51.100.1", mac="02:00:00:00:00:09", mtu=1500)
        # even to an address of this host
        same(net.good("10.77.1.1", "dev=d0", "from=203.0.113.5", "mac=02:00:00:00:00:09"), mac="02:00:00:00:00:09")
        refused(net.probe("198.51.100.1", "dev=d0", "from=203.0.113.5"), ENETUNREACH, "no route", "d0")
        refused(net.probe("198.51.100.1", "dev=d0", "mac=02:00:00:00:00:09"), ENETUNREACH, "no route", "--next-hop-mac")
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
    # an own address goes by loopback too
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
    """What needs_stack says is what this kernel does with a whole frame."""
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
        # a tun that no program has opened is a cable that hangs loose
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


@pytest.mark.parametrize("to, protocol", [("10.77.1.99", "ARP"), ("fd77:1::99", "neighbour discovery")])
def test_no_neighbour_takes_a_second(net, to, protocol):
    answer = refused(net.probe(to), EHOSTUNREACH, to, protocol, "a0", "--next-hop-mac")
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
    # there is one, but not by that device
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
            # naming the device is no way around it, though IPv4 itself would guess "on the link"
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
        refused(json.loads(done.stdout), EADDRNOTAVAIL, "g0", "no IPv4 address", "--from")
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
