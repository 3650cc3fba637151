# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer serve` under attack: what it discloses, where it sends, and the share of resources for a greedy source.

a0 10.77.0.1, .9, 10.78.0.1 ------------- b0 10.77.0.2, 10.78.0.2      attackers and an honest client in A, the server in B
"""

import json
import os
import re
import signal
import struct
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import ANY

import pytest
from flows import MS, command, secret, stop
from test_flow_faults import HOSTILE
from waiting import event


def hostile(mode, body):
    """The program of test_flow_faults with an additional mode."""
    return HOSTILE + f"if mode == {mode!r}:\n" + "".join(f"    {line}\n" for line in body.splitlines())


ORACLE = """
c = Control(token=b"wrong"); c.send(1, request()); answer = rest(c.s)
assert REFUSE(1) in answer and answer.endswith(bytes(16)), answer[-40:]
c = Control(); c.s.sendall(struct.pack(">I", 1 << 24 | 513)); answer = rest(c.s)
assert REFUSE(3) in answer and answer.endswith(bytes(16)), answer[-40:]
"""

# Opens as many silent connections as the system allows, until its parent ends.
SILENT = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000))
many = []
while True:
    s = socket.socket(); s.setblocking(False); s.bind((sys.argv[2], 0))
    try: s.connect((sys.argv[1], 8620))
    except BlockingIOError: pass
    many.append(s)
    if len(many) == 600: print(flush=True)
    if len(many) > 2000: many.pop(0).close()
    time.sleep(0.0003)
"""


# Prints the lengths of the answers to one request.
ECHOED = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((sys.argv[1], 8620)); s.settimeout(5)
s.send(bytes.fromhex(sys.argv[2])); print(len(s.recv(65536)))
s.settimeout(0.05)
try: print(len(s.recv(65536)))
except TimeoutError: pass
"""


@pytest.fixture
def hosts_of_two_networks(pair):
    a, b = pair
    a.ip("addr", "add", "10.77.0.9/24", "dev", "a0")
    a.ip("addr", "add", "10.78.0.1/24", "dev", "a0")
    b.ip("addr", "add", "10.78.0.2/24", "dev", "b0")
    return a, b


def test_a_refusal_carries_nothing_of_the_token(shared_pair, serve, token):
    """An HMAC with the token's key would allow offline guessing of the token."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = a.run([sys.executable, "-c", hostile("oracle", ORACLE), b.address, "oracle", token], check=False, timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options", [("--jsonl",), ()])
def test_a_made_token_is_in_its_file_alone(shared_pair, ktrxer, open_folder, options):
    """Not in the output, which a journal keeps, and not in a command line: the output has the name of the file."""
    _, b = shared_pair
    server = b.popen(["env", f"RUNTIME_DIRECTORY={open_folder}", ktrxer, "serve", "--port", "8621", *options])
    try:
        file, said = open_folder / "ktrxer-8621.token", ""
        while str(file) not in said:
            line = server.stdout.readline()
            assert line, said
            said += line
        made = file.read_text().strip()
        assert file.stat().st_mode & 0o777 == 0o600
        assert re.fullmatch("[0-9a-f]{32}", made), "128 bits"
        assert made not in Path(f"/proc/{server.pid}/cmdline").read_text()
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
        assert made not in said + out + err
    finally:
        server.kill()
        server.communicate()


def test_a_made_token_is_written_to_no_other_file(shared_pair, ktrxer, open_folder):
    """A link that another user has put there is not followed."""
    _, b = shared_pair
    target = open_folder / "of another user"
    (open_folder / "ktrxer-8621.token").symlink_to(target)
    done = b.run(["env", f"RUNTIME_DIRECTORY={open_folder}", ktrxer, "serve", "--port", "8621"], check=False, timeout=20)
    assert done.returncode in (1, 2) and "ktrxer-8621.token" in done.stderr and not target.exists()


def test_no_thread_keeps_a_privilege(shared_pair, serve, token):
    _, b = shared_pair
    server = serve(b, "--token-file", token)
    tasks = list(Path(f"/proc/{server.process.pid}/task").iterdir())
    assert len(tasks) >= 2
    for task in tasks:
        fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        assert all(int(fields[name], 16) == 0 for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")), (task, fields)
        assert fields["NoNewPrivs"] == "1", (task, fields["Name"])
        assert fields["Seccomp"] == ("2" if server.listening["system_call_filter"] else "0"), (task, fields["Name"])


def test_system_calls_are_filtered(shared_pair, serve, token, ktrxer):
    """Builds with a sanitizer have no filter, because their reports fork and trace."""
    _, b = shared_pair
    program = ktrxer.read_bytes()
    server = serve(b, "--token-file", token)
    assert server.listening["system_call_filter"] is (b"__asan_init" not in program and b"__tsan_init" not in program)


def test_udp_goes_to_the_address_of_the_control_connection_only(hosts_of_two_networks, flow, serve, token, ktrxer):
    a, b = hosts_of_two_networks
    serve(b, "--token-file", token)
    udp = ("--udp", "--bitrate", "1M", "--for", "300ms")
    assert flow(a, "down", b.address, *udp).end["bytes"] > 10_000
    a.run(["nft", "add table ip nat; add chain ip nat post { type nat hook postrouting priority 100; }"])
    a.run(["nft", "add rule ip nat post udp dport 8620 snat to 10.77.0.9"])
    before = b.counters()["tx"]["bytes"]
    done = a.run(command(ktrxer, token, "down", b.address, *udp), check=False, timeout=20)
    assert done.returncode == 1 and "from another address than the control connection" in done.stderr, done.stderr
    assert b.counters()["tx"]["bytes"] - before < 10_000


def test_a_greedy_source_shuts_out_only_itself(hosts_of_two_networks, flow, serve, token):
    """With thousands of silent connections from one network, a client of another network still connects."""
    a, b = hosts_of_two_networks
    server = serve(b, "--token-file", token)
    flood = a.popen([sys.executable, "-c", SILENT, "10.78.0.2", "10.78.0.1"])
    try:
        flood.stdout.readline()
        for _ in range(3):
            begin = time.monotonic()
            run = flow(a, "both", b.address, "--flows", 4, "--bytes", "100k")
            assert all(one["bytes"] == 100_000 for one in run.flows)
            assert time.monotonic() - begin < 5
    finally:
        flood.kill()
        flood.communicate()
    assert stop(server)["pending_displaced"] > 100


@pytest.mark.parametrize("sample_ns", [2**64 - 1, 2**63])
def test_an_interval_of_centuries_is_refused(shared_pair, serve, token, sample_ns):
    """This once made the server sample in an endless loop."""
    a, b = shared_pair
    server = serve(b, "--token-file", token)
    body = f"""
c = Control(); c.send(1, struct.pack(">IQQQQQB", 1, 10**9, 0, 10**9, {sample_ns}, 0, 0)); assert REFUSE(3) in rest(c.s)
"""
    done = a.run([sys.executable, "-c", hostile("interval", body), b.address, "interval", token], check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    assert stop(server)["started"] == 0


def test_speech_at_one_bit_a_second_is_refused(shared_pair, refusal, serve, token, ktrxer):
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = a.run(command(ktrxer, token, "down", b.address, "--udp", "--model", "voip", "--payload", "1400", "--bitrate", "1k", "--for", "1s"), check=False)
    assert done.returncode == 2 and "takes longer than a second" in done.stderr, done.stderr
    body = """
c = Control(); c.send(1, struct.pack(">IQQQQQB", 1, 10**9, 0, 10**9, 10**8, 0, 0)); c.s.recv(4096)
c.send(3, struct.pack(">IH", 0, 1) + struct.pack(">BBBBQQHHQQ", 3, 0, 2, 0, 0, 1, 9000, 9000, 0, 0)); assert REFUSE(3) in rest(c.s)
"""
    done = a.run([sys.executable, "-c", hostile("speech", body), b.address, "speech", token], check=False, timeout=30)
    assert done.returncode == 0, done.stderr


def test_memory_of_udp_flows_is_bounded(shared_pair, flow, serve, token, ktrxer):
    """64 flows of jumbo packets once allocated 2.3 GB."""
    a, b = shared_pair
    server = serve(b, "--token-file", token)
    child = a.popen([*command(ktrxer, token, "down", b.address, "--udp", "--flows", 64, "--payload", "1400", "--bitrate", "1G", "--for", "1s"), "--jsonl"])
    worst = 0
    while child.poll() is None:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        worst = max(worst, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")))
        time.sleep(20 * MS / 1e9)
    child.communicate(timeout=10)
    assert worst < (900 << 10 if b"__asan_init" in ktrxer.read_bytes() else 160 << 10), f"{worst} KiB"


def test_answers_are_as_long_as_their_requests(shared_pair, serve):
    """Of all lengths, and also for a request that claims in its TLVs to have more bytes than it has."""
    a, b = shared_pair
    serve(b)
    for length in (44, 45, 64, 127, 512, 1400):
        for tlv in (b"", b"\x80\x01\xff\xff", b"\x80\x02\x00\xff"):  # extra padding, location (RFC 8972) of 65535 and 255 bytes
            packet = (struct.pack(">I", 7) + bytes(40) + tlv).ljust(length, b"\0")
            done = a.run([sys.executable, "-c", ECHOED, b.address, packet.hex()], check=False, timeout=20)
            assert (done.stdout.split(), done.stderr) == ([str(len(packet))], ""), (length, tlv)


def test_answers_carry_allowed_marks_only(shared_pair, serve, stamp):
    a, b = shared_pair
    serve(b, "--dscp-allow", "CS1")
    for name, marked in (("EF", 0), ("CS1", 8)):
        watch = b.popen(["tcpdump", "-i", "b0", "-n", "-v", "-l", "-c", "5", "udp and src port 8620"])
        while "listening on" not in (line := watch.stderr.readline()):
            assert line
        stamp(a, b.address, "-c", 10, "-i", "20ms", "--dscp", name)
        out, _ = watch.communicate(timeout=20)
        assert out.count(f"tos 0x{marked << 2:x}") == 5, out
    assert answers_marked(a, b, stamp, "EF", "--tlv", "cos") == {"0,"}, "not the DSCP that arrived"


def answers_marked(a, b, stamp, dscp, *options):
    """The marks of the answers on the wire."""
    watch = b.popen(["tcpdump", "-i", "b0", "-n", "-v", "-l", "-c", "5", "udp and src port 8620"])
    while "listening on" not in (line := watch.stderr.readline()):
        assert line
    stamp(a, b.address, "-c", 10, "-i", "20ms", "--dscp", dscp, *options)
    out, _ = watch.communicate(timeout=20)
    return {line.split("tos 0x")[1][:2] for line in out.splitlines() if "tos 0x" in line}


@pytest.fixture
def open_folder():
    """A folder that the server's user may read, unlike the folders of pytest."""
    with tempfile.TemporaryDirectory(prefix="ktrxer-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_the_token_is_read_again_on_sighup(shared_pair, flow, serve, refusal, open_folder):
    a, b = shared_pair
    old, new, kept = (secret(open_folder / name, f"the token called {name} of this test") for name in ("old", "new", "kept"))
    server = serve(b, "--token-file", kept)
    for path in (old, new):
        kept.chmod(0o600)
        kept.write_text(path.read_text())
        os.chown(kept, server.listening["uid"], -1)
        server.process.send_signal(signal.SIGHUP)
        assert event(server.process, "token_reloaded") == {"type": "event", "name": "token_reloaded", "time_ns": ANY, "done": True}
        assert flow(a, "down", b.address, "--bytes", "10k", token=path).flows[0]["bytes"] == 10_000
    assert "token" in refusal(a, b.address, "--bytes", "10k", token=old)
    kept.chmod(0o644)  # other users may read it: the server refuses it, and the token does not change
    server.process.send_signal(signal.SIGHUP)
    assert event(server.process, "token_reloaded")["done"] is False
    assert flow(a, "down", b.address, "--bytes", "10k", token=new).flows[0]["bytes"] == 10_000
    stop(server)


def test_marks_need_the_token(pair, serve, stamp, flow, token):
    """By default an unauthenticated peer gets best-effort answers. After its flows have authenticated, answers have the marks of its probes."""
    a, b = pair
    serve(b, "--token-file", token)
    assert answers_marked(a, b, stamp, "EF") == {"0,"}
    assert flow(a, "down", b.address, "--bytes", "100k").flows[0]["bytes"] == 100_000
    assert answers_marked(a, b, stamp, "EF") == {"b8"}
    assert answers_marked(a, b, stamp, "CS6") == {"0,"}  # no client gets network control


def test_sixteen_addresses_are_one_valid_line(pair, serve):
    _, b = pair
    addresses = [f"fd00:77:1234:5678:9abc:def0:1234:{i + 1:x}" for i in range(16)]
    for address in addresses:
        b.ip("addr", "add", f"{address}/64", "dev", "b0", "nodad")
    server = serve(b, *(word for address in addresses for word in ("--bind", address)))
    assert json.loads(json.dumps(server.listening))["addresses"] == addresses
