# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the tests of rules: hosts with rules, sockets of the receiving host, and checks for leftovers."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
import time

import pytest
from receivers import KTRXER, Net, sh

STACK = """
import socket, sys, threading
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, int(sys.argv[1])))
    def loop(s=s):
        while True:
            print(s.recv(65536)[:32].hex(), flush=True)
    threading.Thread(target=loop, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""

BY = ["xdp", "nftables"]


def judged():
    """A Net whose host B supports rules by XDP; for a fixture of each file."""
    n = Net()
    try:
        n.up()
        done = run(n, "--device", "b0", "--backend", "xdp", "--rule", "forward udp from any to any", "--for", "10ms")
        if re.search("built without|Linux 5.9|CONFIG_BPF", done.stderr):
            pytest.skip(done.stderr.strip())
        yield n
    finally:
        n.down()


def run(net, *args, prefix=()):
    return subprocess.run(["ip", "netns", "exec", net.b, *prefix, str(KTRXER), "recv", *args], capture_output=True, text=True, timeout=20)


@contextlib.contextmanager
def stack(net, port=2000):
    """The payloads that B's own sockets receive in the body, as a list."""
    child = subprocess.Popen(["ip", "netns", "exec", net.b, sys.executable, "-c", STACK, str(port)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    got = []
    try:
        assert child.stdout.readline() == "ready\n"
        yield got
        time.sleep(0.1)
        child.stdin.close()
        got += [bytes.fromhex(line) for line in child.stdout]
        child.wait(10)
    finally:
        child.kill()
        child.wait()


def rules(*texts):
    return [x for text in texts for x in ("--rule", text)]


def counts(end):
    return [(r["matched"], r["captured"], r["dropped"]) for r in end["rules"]]


def xdp_on(net, device="b0"):
    return json.loads(sh(f"ip -n {net.b} -j link show {device}"))[0].get("xdp")


def tables(net):
    return sh(f"ip netns exec {net.b} nft list tables").split() if shutil.which("nft") else []
