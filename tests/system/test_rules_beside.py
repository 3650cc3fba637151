# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Rules beside somebody else's XDP program: by libxdp's dispatcher where the other one shares the device, with a heartbeat, and what is left
behind is found and taken out. The scenario is beside.sh.
"""

import subprocess
from pathlib import Path

import pytest
from beside import judge, read
from receivers import KTRXER, Net, Recv, sh

pytestmark = pytest.mark.usefixtures("requires_namespaces", "requires_real_root")

NEIGHBOUR = KTRXER.parents[1] / "tests" / "system" / "xdp_neighbour"


@pytest.fixture(scope="module", autouse=True)
def built():
    if not NEIGHBOUR.exists():
        pytest.skip("built without libxdp (libxdp-dev), or without BPF programs")


def test_beside_another_program(tmp_path):
    done = subprocess.run([str(Path(__file__).with_name("beside.sh")), str(KTRXER), str(NEIGHBOUR), str(tmp_path)], capture_output=True, text=True,
                          timeout=60)
    said = read(done.stdout)
    if "refused" in said:
        pytest.skip(f"this kernel does not take libxdp's dispatcher (tests/lab/test_beside.py has one that does): {said['refused']}")
    assert done.returncode == 0, done.stdout + done.stderr
    judge(said)


def test_a_program_that_shares_nothing_is_left_alone():
    net = Net()
    other = None
    try:
        net.up()
        other = subprocess.Popen(["ip", "netns", "exec", net.b, str(NEIGHBOUR), "b0", "alone"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout.readline() == "ready\n"
        done = subprocess.run(["ip", "netns", "exec", net.b, str(KTRXER), "recv", "--device", "b0", "--backend", "xdp", "--rule", "drop udp from any to any"],
                              capture_output=True, text=True, timeout=20)
        assert done.returncode == 1 and "another XDP program, 'neighbour' (number " in done.stderr and "the back end 'nftables'" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        with Recv(net, "--rule", "drop udp from any to any:2000") as recv:  # auto finds another way
            net.send([net.frame(b"x")] * 3)
            end = recv.stop()
        assert end["backend"] == "nftables" and end["rules"][0]["dropped"] == 3
        assert "'neighbour'" in end["backend_why"]
        other.stdin.write("\n")
        other.stdin.flush()
        assert int(other.stdout.readline()) >= 3
        cleaned = subprocess.run(["ip", "netns", "exec", net.b, str(KTRXER), "doctor", "--clean", "--device", "b0"], capture_output=True, text=True, timeout=20)
        assert cleaned.returncode == 0 and "nothing was left behind" in cleaned.stdout
        assert "neighbour" in sh(f"ip -n {net.b} link show b0"), "what is not ours stays"
    finally:
        if other:
            other.communicate("", timeout=10)
        net.down()
