# SPDX-License-Identifier: MIT OR Apache-2.0
"""The example tools work unchanged: built by meson against the public interface, and run between hosts."""

import re

import peer
import pytest
from ktrxer_lab import hosts


@pytest.fixture(scope="module")
def example(ktrxer):
    def path(name):
        program = ktrxer.parents[1] / "examples" / f"example_{name}"
        assert program.exists(), f"{program} is not built, and each build makes it"
        return program

    return path


@pytest.mark.parametrize("version", [4, 6])
def test_on_time(shared_pair, example, version):
    a, b = shared_pair
    to = b.address if version == 4 else b.address6
    with peer.capturing(b) as packets:
        done = a.run([example("on_time"), to])
    assert done.stdout.endswith("20 sent, 0 failed\n") and done.stdout.count("the device's driver") == 20
    arrived = [packet for packet in packets if packet.proto == 17 and packet.to_port == 9]
    assert len(arrived) == 20 and all(packet.transport_right for packet in arrived)


def test_listen(shared_pair, example):
    a, b = shared_pair
    child = b.popen([example("listen"), b.device, "3", f"capture icmp from {a.address} to any"])
    assert child.stdout.readline() == "listening\n"
    a.run(["ping", "-n", "-c", "3", "-i", "0.05", "-s", "100", b.address])
    output, errors = child.communicate(timeout=10)
    assert child.returncode == 0, errors
    assert re.findall(r"^(\d+) bytes, ", output, re.MULTILINE) == ["142"] * 3 and "0 lost" in output


@pytest.mark.parametrize("version", [4, 6])
def test_path_mtu(pair, example, version):
    """a - b - c, with a smaller MTU on the second link: each size depends on the previous answer."""
    a, b = pair
    with hosts.Netns("c") as c:
        hosts.join(b, c, net=78, devices=("c0", "d0"), mtu=1387)
        b.sysctl("ipv4/ip_forward", 1)
        b.sysctl("ipv6/conf/all/forwarding", 1)
        for host, via, via6 in ((a, b.address, b.address6), (c, "10.78.0.1", "fd00:78::1")):
            host.ip("route", "add", "default", "via", via)
            host.ip("-6", "route", "add", "default", "via", via6)
        to = "10.78.0.2" if version == 4 else "fd00:78::2"
        done = a.run([example("path_mtu"), to])
        assert done.stdout.endswith(f"path MTU to {to}: 1387\n")
        assert "no" in done.stdout and "answered" in done.stdout
        direct = a.run([example("path_mtu"), b.address if version == 4 else b.address6])
        assert direct.stdout.endswith(": 1500\n")


@pytest.mark.parametrize("name,args", [("on_time", []), ("on_time", ["nohost"]), ("path_mtu", ["x"]), ("listen", ["lo"]), ("listen", ["lo", "0", "x"])])
def test_usage(shared_pair, example, name, args):
    done = shared_pair[0].run([example(name), *args], check=False)
    assert done.returncode == 2 and done.stderr.startswith(f"usage: {name} ")


def test_errors(shared_pair, example):
    a, _ = shared_pair
    for name, args, text in (
        ("on_time", ["10.99.0.1"], "no route to 10.99.0.1"),
        ("on_time", ["10.77.0.99"], "does not answer ARP"),
        ("listen", ["nosuch", "1", "capture udp from any to any"], "nosuch"),
        ("listen", ["lo", "1", "capture"], ""),
        ("path_mtu", ["10.77.0.99"], "does not even answer"),
    ):
        done = a.run([example(name), *args], check=False)
        assert done.returncode == 1 and done.stderr.startswith(f"{name}: ") and text in done.stderr
