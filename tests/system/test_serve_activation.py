# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer serve` with sockets from a service manager (systemd's .socket units); activate.py replaces the manager.

a0 10.77.0.1, fd00:77::1 ------------- b0 10.77.0.2, fd00:77::2      clients in A, the server in B
"""

import json
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import event

ACTIVATE = [sys.executable, Path(__file__).with_name("activate.py")]
UNIT = Path(__file__).resolve().parents[2] / "packaging/systemd/ktrxer-serve.socket"
FOUR = ("udp=0.0.0.0=8620", "tcp=0.0.0.0=8620", "udp=::=8620", "tcp=::=8620")
NTP_EPOCH = 2_208_988_800


@pytest.fixture
def activated(ktrxer):
    """activated(host, sockets, *options) starts the server after a line on its input; all are stopped at the end."""
    started = []

    def start(host, sockets, *options, command=None):
        words = [
            *ACTIVATE,
            *sockets,
            "--",
            *(command or [ktrxer, "serve", "--jsonl"]),
            *options,
        ]
        child = host.popen([str(word) for word in words], stdin=subprocess.PIPE)
        started.append(child)
        assert child.stdout.readline() == "open\n", child.communicate()[1]
        return child

    yield start
    for child in started:
        if child.poll() is None:
            child.kill()
            child.communicate()


def begin(child):
    """The manager starts the server: its event `listening`."""
    child.stdin.write("\n")
    child.stdin.flush()
    return event(child, "listening")


def end(child):
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def sockets_of(host, port):
    """The inodes of all sockets of this port."""
    return {line.split("ino:")[1].split()[0] for line in host.run(["ss", "-Hlneut", f"sport = :{port}"]).stdout.splitlines()}


def test_the_unit_has_these_sockets():
    """The sockets of the other tests equal those of ktrxer-serve.socket."""
    lines = [line.partition("=")[::2] for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith("#")]
    kinds = {"ListenStream": "tcp", "ListenDatagram": "udp"}
    sockets = ["=".join((kinds[key], *value.rsplit(":", 1))) for key, value in lines if key in kinds]
    assert sorted(one.translate({ord(c): None for c in "[]"}) for one in sockets) == sorted(FOUR)
    assert {"Accept": "no", "BindIPv6Only": "ipv6-only", "Timestamping": "ns", "PassPacketInfo": "yes"}.items() <= dict(lines).items()


def test_it_serves_by_passed_sockets(shared_pair, activated, flow, stamp, token):
    a, b = shared_pair
    child = activated(b, FOUR, "--token-file", token)
    before = sockets_of(b, 8620)
    listening = begin(child)
    assert listening["passed_sockets"] == 4 and sorted(listening["addresses"]) == [
        "0.0.0.0",
        "::",
    ]
    assert len(before) == 4 and sockets_of(b, 8620) == before  # the server has opened no socket itself
    for address in (b.address, b.address6):
        done, kinds = stamp(a, address, "-c", 20, "-i", "5ms")
        assert done["received"] in (20, 21) and kinds["round_trip"]
        run = flow(a, "both", address, "--bytes", "100k")
        assert all(one["bytes"] == 100_000 for one in run.flows)
        assert flow(a, "both", address, "--udp", "--bitrate", "1M", "--for", "300ms").end["bytes"] > 10_000
    counts = end(child)
    assert counts["flows"]["clients"] == 4 and counts["stamp"]["without_kernel_stamp"] == 0


def test_a_second_port_below_1024_without_privileges(shared_pair, ktrxer, activated, stamp, token):
    """STAMP's port 862 needs passed sockets, because the service has no capabilities."""
    a, b = shared_pair
    bare = [
        "setpriv",
        "--bounding-set=-all",
        "--inh-caps=-all",
        str(ktrxer),
        "serve",
        "--jsonl",
    ]
    setpriv = b.run(["sh", "-c", "command -v setpriv"]).stdout.strip()
    child = activated(
        b,
        ("udp=10.77.0.2=8620", "tcp=10.77.0.2=8620", "udp=10.77.0.2=862"),
        "--stamp-port",
        862,
        "--token-file",
        token,
        command=[setpriv, *bare[1:]],
    )
    assert begin(child)["addresses"] == ["10.77.0.2"]
    for port in (8620, 862):
        assert stamp(a, b.address, "-c", 20, "-i", "5ms", "--port", port)[0]["received"] in (20, 21)
    end(child)


def test_a_request_from_before_the_start_keeps_its_arrival_time(shared_pair, activated, token):
    """A probe that waited in the socket: T2 of its answer is its arrival time, not the time at which the server read it."""
    a, b = shared_pair
    child = activated(b, FOUR, "--token-file", token)
    program = "import socket, sys; s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(20); s.connect(('10.77.0.2', 8620)); s.send(bytes(44)); print(s.recv(100).hex())"
    client = a.popen([sys.executable, "-c", program])
    limit = time.monotonic() + 20
    while ":21AC" not in (table := b.run(["cat", "/proc/net/udp"]).stdout) or not any(
        ":21AC" in line and int(line.split()[4].split(":")[1], 16) for line in table.splitlines()
    ):
        assert time.monotonic() < limit, table
    queued = time.time()
    begin(child)
    answer = bytes.fromhex(client.communicate(timeout=30)[0])
    sent, received = (
        seconds - NTP_EPOCH + fraction / 2**32 for seconds, fraction in (struct.unpack(">II", answer[at : at + 8]) for at in (4, 16))
    )
    assert received <= queued <= sent, (received, queued, sent)
    assert end(child)["stamp"]["answered"] == 1


def test_variables_of_another_process_are_ignored(shared_pair, activated, stamp, token):
    """A socket-activated shell starts a server with --bind: the inherited variables are ignored."""
    a, b = shared_pair
    child = activated(b, ("PID=1", "file"), "--token-file", token, "--bind", b.address)
    assert begin(child)["passed_sockets"] == 0
    assert stamp(a, b.address, "-c", 5, "-i", "5ms")[0]["received"] in (5, 6)
    end(child)


@pytest.mark.parametrize(
    ("sockets", "options", "message"),
    [
        (
            ("file",),
            (),
            "passed descriptor 3 is no socket; ListenStream= and ListenDatagram=",
        ),
        (("unix",), (), "passed descriptor 3 is a socket of address family 1;"),
        (
            ("raw",),
            (),
            "passed descriptor 3 is a socket of type 3 and protocol 1, neither TCP nor UDP;",
        ),
        (("unbound",), (), "passed descriptor 3 is not bound to a port;"),
        (
            ("udp=0.0.0.0=8620", "tcp-silent=0.0.0.0=8620"),
            (),
            "passed descriptor 4: the socket of TCP port 8620 does not listen; set Accept=no",
        ),
        (
            ("udp-connected=127.0.0.1=8620",),
            (),
            "passed descriptor 3: the socket of UDP port 8620 is connected to one peer;",
        ),
        (
            ("udp-bare=0.0.0.0=8620",),
            (),
            "set Timestamping=ns and PassPacketInfo=yes in the .socket unit",
        ),
        (
            ("udp-unstamped=0.0.0.0=8620",),
            (),
            "set Timestamping=ns and PassPacketInfo=yes in the .socket unit",
        ),
        (("both=::=8620",), (), "takes IPv4 and IPv6; set BindIPv6Only=ipv6-only"),
        (
            ("udp=0.0.0.0=8621", "tcp=0.0.0.0=8621"),
            (),
            "UDP port 8621 of 0.0.0.0 is neither --port 8620 nor, for UDP, --stamp-port",
        ),
        (
            (*FOUR, "tcp=0.0.0.0=862"),
            ("--stamp-port", "862"),
            "TCP port 862 of 0.0.0.0 is neither --port 8620 nor",
        ),
        (("tcp=0.0.0.0=8620",), (), "not both TCP and UDP port 8620"),
        (
            ("udp=0.0.0.0=8620", "tcp=127.0.0.1=8620"),
            (),
            "not both TCP and UDP port 8620",
        ),
        (
            (*FOUR, "tcp=0.0.0.0=8620"),
            (),
            "passed descriptor 7: a second socket of TCP port 8620 of 0.0.0.0",
        ),
        (
            FOUR,
            ("--max-clients", "0"),
            "TCP port 8620 of 0.0.0.0 is for flows, which --max-clients 0 switches off",
        ),
        (
            FOUR,
            ("--bind", "10.77.0.2"),
            "--bind, -4 and -6 choose addresses, but the service manager has passed sockets (LISTEN_FDS=4)",
        ),
        (("FDS=5", *FOUR), (), "passed descriptor 7 is"),
        (("FDS=0", *FOUR), (), "LISTEN_FDS=0: not a number from 1 to 64"),
        (("FDS=-1", *FOUR), (), "LISTEN_FDS=-1: not a number from 1 to 64"),
        (("FDS=4x", *FOUR), (), "LISTEN_FDS=4x: not a number from 1 to 64"),
        (("FDS=99999999999999999999", *FOUR), (), "not a number from 1 to 64"),
    ],
)
def test_what_it_does_not_serve_is_one_line(shared_pair, activated, token, sockets, options, message):
    _, b = shared_pair
    child = activated(b, sockets, "--token-file", token, *options)
    _, err = child.communicate("\n", timeout=20)
    assert child.returncode == 2 and message in err and len(err.strip().splitlines()) <= 2, err
