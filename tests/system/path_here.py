# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the tests of routes: the network, and checks of an answer."""

import json
import struct
import subprocess
import time

import pytest
from ktrxer_lab import hosts
from ktrxer_lab.bench import contest

PROBE = contest.build() / "tests" / "system" / "path_probe"

ENODEV, EINVAL, EADDRNOTAVAIL, ENETDOWN, ENETUNREACH, EHOSTUNREACH, EOPNOTSUPP = -19, -22, -99, -100, -101, -113, -95


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
            # Without duplicate address detection addresses are valid at once.
            sh(f"ip netns exec {ns} sh -c 'for f in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 > $f; done'")
            # Undo settings that the namespace inherits from this host.
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
        assert done.returncode in (0, 1, 3), f"{arguments}: {done.returncode} {done.stderr}"
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
        """A device of a kind that some kernels lack."""
        done = subprocess.run(f"ip -n {self.a} {what}", shell=True, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this kernel cannot: ip {what}: {done.stderr.strip()}")
        self.ip(f"link set {name} up")


def base_net():
    net = Net()
    try:
        yield net.up()
    finally:
        net.down()


def forget(base):
    """The same network, with an empty neighbour table in A."""
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
