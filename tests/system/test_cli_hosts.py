# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line's HOST: names, addresses and ports, and the guard of addresses of other networks."""

import pytest
from programs import KTRXER, run, selftest


@pytest.mark.parametrize(
    "args,out",
    [
        (["192.0.2.1"], "192.0.2.1 port 7"),
        (["192.0.2.1", "--port", "99"], "192.0.2.1 port 99"),
        (["2001:db8::1", "-p", "99"], "2001:db8::1 port 99"),
        (["2001:db8::1"], "2001:db8::1 port 7"),
        (["-4", "localhost"], "127.0.0.1 port 7"),
        (["-4", "localhost", "-p0x10"], "127.0.0.1 port 16"),
        (["8.8.8.8", "--rate=10k"], "8.8.8.8 port 7"),
        (["8.8.8.8", "--rate=600k/m"], "8.8.8.8 port 7"),
        (["8.8.8.8", "--flood"], "8.8.8.8 port 7"),
        (["10.1.2.3", "--rate=1M"], "10.1.2.3 port 7"),
    ],
)
def test_hosts(args, out):
    done = selftest("look", "up", *args)
    assert done.stdout == out + "\n" and done.returncode == 0


@pytest.mark.parametrize("host", ["127.0.0.1:80", "far.example:8620"])
def test_a_host_has_no_port(host):
    done = run(KTRXER, "ping", host, "--count", "1")
    assert done.returncode in (1, 2) and f"'{host}': a host has no port; where a command has one, it is given by --port" in done.stderr


@pytest.mark.parametrize(
    "args,text",
    [
        (["--", "-oProxyCommand=x"], "begins with '-'"),
        (["a b"], "a blank, a slash or a control character"),
        (["../etc"], "a blank, a slash or a control character"),
        (["x" * 300], "longer than"),
        (["999.1.1.1"], "'999.1.1.1' is no address of IPv4: four numbers of 0 to 255"),
        (["10.0.1.2.3"], "is no address of IPv4"),
        (["192.0.2.1:7"], "a host has no port"),
        (["[2001:db8::1]:7"], "write an address of IPv6 without brackets, and its port after --port"),
        (["-6", "192.0.2.1"], "is an address of IPv4, but -6 was asked for"),
        (["-4", "::1"], "is an address of IPv6, but -4 was asked for"),
        (["8.8.8.8"], "give a rate of at most 10000 a second, or --flood"),
        (["8.8.8.8", "--rate=10001"], "give a rate of at most 10000 a second, or --flood"),
        (["8.8.8.8", "--rate=600001/m"], "or --flood if its owner agrees"),
        (["2606:4700::1111"], "give a rate of at most 10000 a second, or --flood"),
    ],
)
def test_hosts_refused(args, text):
    done = selftest("look", "up", *args)
    assert done.returncode == 1 and text in done.stderr and done.stderr.count("\n") == 1
