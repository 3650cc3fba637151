# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Rules before the network stack: refused rules, and kernels and users without the needed features and rights.

      A                              B
    a0 10.78.1.1/24 ------------- b0 10.78.1.2/24      the rules in B apply to packets from A
       fd78:1::1                     fd78:1::2
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
from receivers import KTRXER, Recv
from rules_here import counts, judged, rules, run, stack, xdp_on
from waiting import until

pytestmark = pytest.mark.usefixtures("requires_namespaces", "requires_real_root")


net = pytest.fixture(judged, scope="module")


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("args, status, says", [
    (["--rule", "drop any from any to any"], 1, "drops everything"),
    (["--backend", "nftables", "--rule", "capture+drop any from 0.0.0.0/0 to any"], 1, "`force`"),
    (["--backend", "xdp", "--outgoing", "--rule", "capture udp from any to any"], 1, "do without outgoing packets"),
])
def test_refusals(net, args, status, says):
    done = run(net, "--device", "b0", *args)
    assert done.returncode == status, done.stderr
    assert says in done.stderr and len(done.stderr.splitlines()) == 1


def test_force_means_it(net):
    with stack(net) as got, Recv(net, "--force", *rules("drop any from any to any")) as recv:
        net.send([net.frame(b"x")] * 3)
        end = recv.stop()
    assert got == [] and end["rules"][0]["dropped"] >= 3


def test_the_session_that_it_was_typed_over(net):
    """Also under sudo, which removes the variable: it is found in an ancestor's environment."""
    session = os.environ | {"SSH_CONNECTION": "10.78.1.1 50022 10.78.1.2 22"}
    command = f"ip netns exec {net.b} $0 {KTRXER} recv --device b0 --rule 'drop tcp from any to any:22'; exit $?"
    for wrap in ("", "env -u SSH_CONNECTION"):
        done = subprocess.run(["sh", "-c", command.replace("$0", wrap)], capture_output=True, text=True, timeout=20, env=session)
        assert done.returncode == 1
        assert "this session's own connection (from 10.78.1.1 port 50022)" in done.stderr and "`force`" in done.stderr
    with Recv(net, *rules("drop tcp from any to any:23")) as recv:
        recv.stop()


@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv (util-linux) is not installed")
def test_without_privileges_it_says_what_is_missing(net):
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
    raw = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+net_raw", "--ambient-caps=+net_raw", "--bounding-set=+net_raw")
    if subprocess.run([*nobody, str(KTRXER), "--help"], capture_output=True).returncode:
        pytest.skip("the user 65534 cannot reach the build directory")
    for prefix, backend, capability in ((nobody, "xdp", "CAP_NET_RAW"), (raw, "xdp", "CAP_BPF"), (raw, "nftables", "CAP_NET_ADMIN")):
        done = run(net, "--device", "b0", "--backend", backend, "--rule", "drop udp from any to any", prefix=prefix)
        assert done.returncode == 1 and capability in done.stderr and "root" in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1


# Simulates a kernel without a feature: the system call fails. argv: call number, errno, first argument (or -1), command.
REFUSE = """
import ctypes, os, struct, sys
number, error, first = map(int, sys.argv[1:4])
libc = ctypes.CDLL(None, use_errno=True)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)]
if first >= 0:
    code = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, first), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)]
program = b"".join(struct.pack("=HBBI", *c) for c in code)
buffer = ctypes.create_string_buffer(program)
class Fprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
fprog = Fprog(len(code), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(fprog), 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[4], sys.argv[4:])
"""
BPF, LINK_CREATE, PROG_LOAD, ENOSYS, EINVAL = 321, 28, 5, 38, 22


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of system calls are x86-64's")
@pytest.mark.parametrize("refused, says", [
    ((BPF, ENOSYS, -1), "this kernel has no bpf() call"),
    ((BPF, EINVAL, PROG_LOAD), "XDP rules need Linux 5.9"),
    ((BPF, EINVAL, LINK_CREATE), "Linux 5.9 does"),
])
def test_a_kernel_that_is_too_old(net, refused, says):
    prefix = (sys.executable, "-c", REFUSE, *map(str, refused))
    done = run(net, "--device", "b0", "--backend", "xdp", "--rule", "drop udp from any to any:2000", prefix=prefix)
    assert done.returncode == 1 and says in done.stderr and len(done.stderr.splitlines()) == 1
    # auto selects another back end, and prints the reason
    done = run(net, "--device", "b0", "--rule", "drop udp from any to any:2000", "--for", "50ms", "--json", prefix=prefix)
    end = json.loads(done.stdout)
    assert end["backend"] == "nftables" and says in end["backend_why"]


@pytest.mark.skipif(not os.path.exists("/sys/kernel/btf/vmlinux"), reason="this kernel has no BTF: all the other tests show it")
def test_without_kernel_btf(net):
    hide = ("unshare", "-m", "sh", "-c", "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"", "sh")
    done = run(net, "--device", "b0", "--backend", "xdp", "--rule", "drop udp from any to any:2000", "--for", "50ms", "--json", prefix=hide)
    end = json.loads(done.stdout)
    assert end["backend"] == "xdp" and end["backend_mode"] == "native" and end["backend_note"] is None, done.stderr


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of system calls are x86-64's")
def test_without_af_xdp_it_is_the_ring_buffer(net):
    """A kernel without AF_XDP: socket(44, ...) fails."""
    prefix = (sys.executable, "-c", REFUSE, "41", "97", "44")
    command = ["ip", "netns", "exec", net.b, *prefix, str(KTRXER), "recv", "--device", "b0", "--rule", "capture+drop udp from any to any:2000", "--for", "1s", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: xdp_on(net), "the XDP program is on the device")
        net.send([net.frame(b"x")] * 5)
        out, errors = child.communicate(timeout=20)
    finally:
        child.kill()
        child.communicate()
    end = json.loads(out)
    assert counts(end) == [(5, 5, 5)], errors
    assert "capture+drop by the ring buffer" in end["backend_note"] and "this kernel has none" in end["backend_note"]
