# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Rules before the network stack: they are removed at the end, and the chosen back end.

      A                              B
    a0 10.78.1.1/24 ------------- b0 10.78.1.2/24      the rules in B apply to packets from A
       fd78:1::1                     fd78:1::2
"""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from receivers import Recv, sh
from rules_here import BY, counts, judged, rules, run, stack, tables, xdp_on
from waiting import until

pytestmark = pytest.mark.usefixtures("requires_namespaces", "requires_real_root")


net = pytest.fixture(judged, scope="module")


# -------------------------------------------------------------------------------------------------- nothing stays behind


@pytest.mark.parametrize("by", BY)
def test_all_is_gone_with_the_process(net, by):
    recv = Recv(net, "--backend", by, *rules("drop udp from any to any:2000"))
    with recv:
        assert bool(xdp_on(net)) is (by == "xdp")
        assert any("ktrxer-" in word for word in tables(net)) is (by == "nftables" and bool(shutil.which("nft")))
        with stack(net) as got:
            net.send([net.frame(b"dropped")] * 3)
        assert got == []
        recv.process.kill()
        recv.process.wait()
    until(lambda: not xdp_on(net) and not tables(net), "the rules are gone from the device and from nftables")
    with stack(net) as got:
        net.send([net.frame(b"passes")] * 3)
    assert got == [b"passes"] * 3


def test_stopped_rules_still_hold(net):
    """A stopped process keeps its rules."""
    with Recv(net, "--backend", "xdp", *rules("drop udp from any to any:2000")) as recv, stack(net) as got:
        recv.process.send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{recv.process.pid}/stat")
        until(lambda: status.read_text().rsplit(")", 1)[1].split()[0] == "T", "the receiver is stopped")
        net.send([net.frame(b"dropped")] * 3)
        recv.process.send_signal(signal.SIGCONT)
        end = recv.stop()
    assert got == [] and counts(end) == [(3, 0, 3)]


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("fault", ["del", "down"])
def test_the_device_goes_in_mid_run(net, fault, by):
    sh(f"ip -n {net.b} link add gone0 type veth peer name gone1 netns {net.a}")
    try:
        sh(f"ip -n {net.b} link set gone0 up && ip -n {net.a} link set gone1 up")
        with Recv(net, "--backend", by, *rules("drop udp from any to any"), device="gone0") as recv:
            sh(f"ip -n {net.b} link " + ("del gone0" if fault == "del" else "set gone0 down"))
            end = recv.end()
        word = "was removed" if fault == "del" else "went down"
        assert recv.process.returncode == 1 and word in recv.errors and any(word in r["text"] for r in end["reasons"])
    finally:
        sh(f"ip -n {net.b} link del gone0", check=False)


# -------------------------------------------------------------------------------------------------------- which back end


def test_auto_takes_what_the_rules_need(net):
    for texts, backend, why in ((["capture udp from any to any"], "packet", "no rule drops"), (["drop udp from any to any"], "xdp", "a rule drops")):
        with Recv(net, *rules(*texts)) as recv:
            end = recv.stop()
        assert end["backend"] == backend and why in end["backend_why"]
    assert end["backend_mode"] == "native"


def test_another_program_is_there(net):
    with Recv(net, "--backend", "xdp", *rules("drop udp from any to any:2000")):
        done = run(net, "--device", "b0", "--backend", "xdp", *rules("drop udp from any to any:2001"))
        assert done.returncode == 1
        assert re.search(r"another XDP program, 'rules' \(number \d+\), is on 'b0' already.*`ip link set dev b0 xdp off`.*the back end 'nftables'", done.stderr)
        assert len(done.stderr.splitlines()) == 1
        # auto selects the next one, and prints the reason
        with Recv(net, *rules("drop udp from any to any:2001")) as recv, stack(net, 2001) as got:
            net.send([net.frame(b"x", ports=(1, 2001))] * 2)
            end = recv.stop()
        assert got == [] and counts(end) == [(2, 0, 2)]
        assert end["backend"] == "nftables" and "another XDP program" in end["backend_why"]


def test_a_queue_that_is_taken_comes_by_the_ring_buffer(net):
    code = ("import ctypes, socket, struct, time, sys\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "s = socket.socket(44, 3, 0)\n"
            "memory = ctypes.create_string_buffer(1 << 17)\n"
            "at = (ctypes.addressof(memory) + 4095) & ~4095\n"
            "s.setsockopt(283, 4, struct.pack('=QQII', at, 65536, 2048, 0))\n"
            "for name in (5, 6, 2): s.setsockopt(283, name, struct.pack('=I', 16))\n"
            "a = struct.pack('=HHIII', 44, 2, int(sys.argv[1]), 0, 0)\n"
            "assert libc.bind(s.fileno(), a, len(a)) == 0, ctypes.get_errno()\n"
            "print('ready', flush=True)\n"
            "sys.stdin.read()\n")
    index = json.loads(sh(f"ip -n {net.b} -j link show b0"))[0]["ifindex"]
    other = subprocess.Popen(["ip", "netns", "exec", net.b, sys.executable, "-c", code, str(index)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "ready\n"
        with Recv(net, *rules("capture+drop udp from any to any:2000")) as recv:
            note = recv.lines[-1]["backend_note"]
            net.send([net.frame(b"x")] * 5)
            end = recv.stop()
        assert "capture+drop by the ring buffer" in note and "queue 0 belongs to another AF_XDP socket" in note
        assert counts(end) == [(5, 5, 5)] and end["lost"] == 0
    finally:
        other.kill()
        other.communicate()
