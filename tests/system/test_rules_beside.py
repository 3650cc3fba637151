# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rules on a device that already has an XDP program: the message names the program, which stays, and `auto` selects another back end."""

import subprocess

import pytest
from receivers import KTRXER, Net, Recv, sh

pytestmark = pytest.mark.usefixtures("requires_namespaces", "requires_real_root")

NEIGHBOUR = KTRXER.parents[1] / "tests" / "system" / "xdp_neighbour"


@pytest.fixture(scope="module", autouse=True)
def built():
    if not NEIGHBOUR.exists():
        pytest.skip("built without BPF programs")


def test_another_program_is_named_and_stays():
    net = Net()
    other = None
    try:
        net.up()
        other = subprocess.Popen(["ip", "netns", "exec", net.b, str(NEIGHBOUR), "b0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout.readline() == "ready\n"
        done = subprocess.run(["ip", "netns", "exec", net.b, str(KTRXER), "recv", "--device", "b0", "--backend", "xdp", "--rule", "drop udp from any to any"],
                              capture_output=True, text=True, timeout=20)
        assert done.returncode == 1 and "another XDP program, 'neighbour' (number " in done.stderr and "the back end 'nftables'" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        with Recv(net, "--rule", "drop udp from any to any:2000") as recv:  # auto selects another back end
            net.send([net.frame(b"x")] * 3)
            end = recv.stop()
        assert end["backend"] == "nftables" and end["rules"][0]["dropped"] == 3
        assert "'neighbour'" in end["backend_why"]
        other.stdin.write("\n")
        other.stdin.flush()
        assert int(other.stdout.readline()) >= 3
        assert "neighbour" in sh(f"ip -n {net.b} link show b0"), "what is not ours stays"
    finally:
        if other:
            other.communicate("", timeout=10)
        net.down()


def test_a_second_receiver_takes_another_back_end():
    net = Net()
    try:
        net.up()
        with Recv(net, "--rule", "drop udp from any to any:2000") as first, Recv(net, "--rule", "drop udp from any to any:2001") as second:
            net.send([net.frame(b"x", ports=(1000, port)) for port in (2000, 2001) for _ in range(3)])
            ends = [receiver.stop() for receiver in (first, second)]
        assert [(end["backend"], end["rules"][0]["dropped"]) for end in ends] == [("xdp", 3), ("nftables", 3)]
        assert "another XDP program, 'rules' (number " in ends[1]["backend_why"]
        assert "xdp" not in sh(f"ip -n {net.b} link show b0"), "nothing is left when both have ended"
    finally:
        net.down()
