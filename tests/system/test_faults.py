# SPDX-License-Identifier: MIT OR Apache-2.0
"""Faults: invalid input, removed devices, full queues, missing privileges.

In each case the counts add up (requested = sent + failed + skipped + cancelled) and no command hangs.
"""

import csv
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peer
import pytest
from accounts import closed, finish
from far_end import flowing
from noise import degraded

ENGINES = ["packet", "raw", "udp"]
NOBODY = 65534


# ----------------------------------------------------------------------------------------------------------- typed wrong


@pytest.mark.parametrize(
    "args,status,text",
    [
        ([], 2, "HOST is missing"),
        (["10.77.0.2", "again", "-c", "1"], 2, "one word too many"),
        (["@", "-e", "teleport", "-c", "1"], 2, "there is no such engine; there are auto, "),
        (["@", "-d", "nosuch", "-c", "1"], 1, "device 'nosuch': there is none of that name here; there are "),
        (["@", "-d", "a" * 300, "-c", "1"], 1, "device 'aaa"),
        (["@", "-d", "", "-c", "1"], 2, "--device: its value is empty"),
        (["@"], 2, "--count N or --for D"),
        (["@", "-c", "0"], 2, "--count: '0' is too small"),
        (["@", "--count=-1"], 2, "it is negative"),
        (["@", "-c", "1e3"], 2, "is not a number"),
        (["@", "-c", "99999999999999999999"], 2, "too large"),
        (["@", "-c", "1", "-i", "0"], 2, "--interval: '0' is too small"),
        (["@", "-c", "1", "--interval=-1ms"], 2, "it is negative"),
        (["@", "-c", "1", "-i", "2d"], 2, "--interval"),
        (["@", "-c", "1", "-r", "0"], 2, "at a rate of 0 nothing is ever sent"),
        (["@", "-c", "1", "--rate=-5"], 2, "it is negative"),
        (["@", "-c", "1", "-r", "1e99"], 2, "exponents are not read"),
        (["@", "-c", "1", "-r", "100G"], 2, "at most 1G a second"),
        (["@", "-c", "1", "-r", "nan"], 2, "is not a rate"),
        (["@", "-c", "1", "-r", "1k", "-i", "1ms"], 2, "give one of them"),
        (["@", "-c", "1", "--payload=-1"], 2, "it is negative"),
        (["@", "-c", "1", "--payload", "65508"], 2, "from 0 to 65507"),
        (["@", "-c", "1", "--payload", "1473"], 1, "more than the MTU of 1500 on 'a0': at most 1472 bytes fit"),
        (["@", "-c", "1", "--ttl", "0"], 2, "--ttl: '0' is too small"),
        (["@", "-c", "1", "--ttl", "256"], 2, "from 1 to 255"),
        (["@", "-c", "1", "--dscp", "64"], 2, "--dscp: '64' is not a DSCP"),
        (["@", "-c", "1", "--train", "0"], 2, "--train: '0' is too small"),
        (["@", "-c", "1", "--gap", "1ms"], 2, "give --train N"),
        (["@", "-c", "9", "-i", "1ms", "--train", "4", "--gap", "1ms"], 2, "the next one begins after"),
        (["@", "-c", "1", "--model", "poisson"], 2, "--model poisson needs a mean"),
        (["@", "-c", "1", "--for", "0"], 2, "--for: '0' is too small"),
        (["@", "-c", "1", "--retry", "0"], 2, "--retry: '0' is too small"),
        (["@", "-c", "1", "--late", "never"], 2, "--late"),
        (["@", "-c", "1", "--cpu", "5000"], 2, "--cpu: '5000' is too large"),
        (["@", "-c", "1", "--next-hop-mac", "zz"], 2, "--next-hop-mac"),
        (["@", "-c", "1", "--start-at", "12345"], 1, "more than a day ago"),
        (["@", "-c", "1", "--schedule", "/nonexistent"], 1, "No such file"),
        (["@", "-c", "1", "--schedule", "/"], 1, "Is a directory"),
        (["@", "-c", "1", "-i", "1ms", "--reports", "/nonexistent/x"], 1, "No such file"),
        (["nohost", "-c", "1"], 1, "'nohost'"),
        (["10.77.0.2", "--port", "0", "-c", "1"], 2, "--port: '0'"),
        (["10.77.0.2", "--port", "65536", "-c", "1"], 2, "--port: '65536'"),
        (["fe80::1", "-c", "1"], 2, "say on which"),
        (["fe80::1%nosuch", "-c", "1"], None, "nosuch"),
        (["10.99.0.1", "-c", "1"], 1, "no route to 10.99.0.1"),
        (["10.77.0.99", "-c", "1"], 1, "does not answer ARP on 'a0'"),
        (["fd00:77::99", "-c", "1"], 1, "does not answer"),
        (["8.8.8.8", "-c", "1"], 1, "--flood if its owner agrees"),
        (["8.8.8.8", "-r", "10001", "-c", "1"], 1, "--flood"),
        (["@", "-c", "1", "-i", "1ms", "--from", "fd00::1"], 2, "--from is not of the same family as"),
    ],
)
def test_send_typed_wrong(shared_pair, ktrxer, args, status, text):
    a, b = shared_pair
    words = [word for arg in args for word in ([b.address] if arg == "@" else [arg])]
    done = a.run([ktrxer, "send", *words], check=False, timeout=20)
    assert done.returncode == status or (status is None and done.returncode in (1, 2)), done.stdout + done.stderr
    assert text in done.stderr
    assert done.stderr.startswith("ktrxer send: ")
    assert "verdict" not in done.stdout and len(done.stderr.splitlines()) <= 2, "one line says it, and once"
    if done.returncode == 1:
        end = json.loads(a.run([ktrxer, "send", *words, "--json"], check=False, timeout=20).stdout)
        assert end["verdict"] == "invalid" and text in end["reasons"][0]["text"] and len(end["reasons"]) == 1, "for programs the same"


@pytest.mark.parametrize("content,text", [("", "no offset"), ("5\n3\n", "list:2: offset 3 ns comes before"), ("x\n", "list:1: 'x'"), ("1\n-1\n", "list:2: '-1'"), ("1e9\n", "list:1: '1e9'")])
def test_bad_lists(shared_pair, ktrxer, tmp_path, content, text):
    a, b = shared_pair
    (tmp_path / "list").write_text(content)
    done = a.run([ktrxer, "send", b.address, "--schedule", tmp_path / "list"], check=False)
    assert done.returncode in (1, 2) and text in done.stderr


# -------------------------------------------------------------------------------------------------- devices that go away


@pytest.mark.parametrize("how", ["down", "gone"])
@pytest.mark.parametrize("engine", ENGINES)
def test_device_goes_in_mid_run(pair, ktrxer, tmp_path, engine, how):
    a, b = pair
    path = tmp_path / "reports.csv"
    child = a.popen([ktrxer, "send", b.address, "-c", "3000", "-i", "1ms", "-e", engine, "--jsonl", "--reports", path])
    flowing(a, 300)
    a.ip("link", *(["set", "a0", "down"] if how == "down" else ["del", "a0"]))
    status, objects, _ = finish(child, 8)
    end = closed(objects[-1])
    assert status == 3 and end["type"] == "end" and end["verdict"] in ("degraded", "invalid")
    assert end["requested"] == 3000 and 100 < end["sent"] < 3000 and end["failed"] + end["cancelled"] > 0
    assert any(word in " ".join(one["text"] for one in end["reasons"]) for word in ("went down", "is gone", "unreachable", "could not be sent", "No such device")), end["reasons"]
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert sum(row["status"] == "sent" for row in rows) == end["sent"], "what was sent is reported"
    assert sum(row["status"] == "failed" for row in rows) == end["failed"]
    assert all(row["error"] for row in rows if row["status"] == "failed")


@pytest.mark.parametrize("how", ["down", "gone"])
@pytest.mark.parametrize("engine", ENGINES)
def test_device_goes_while_flooding(pair, ktrxer, engine, how):
    a, b = pair
    child = a.popen([ktrxer, "send", b.address, "--for", "20s", "-e", engine, "--jsonl"])
    flowing(a, 1000)
    time.sleep(0.4)  # the duration is checked below
    a.ip("link", *(["set", "a0", "down"] if how == "down" else ["del", "a0"]))
    if engine != "packet":
        # Without --device the host's stack refuses each probe until the end of the run.
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
    status, objects, _ = finish(child, 5)
    end = closed(objects[-1])
    assert status == 3 and end["sent"] > 100 and end["failed"] > 0
    assert end["duration_ns"] > 300_000_000, "it went on until then"


@pytest.mark.parametrize("how", ["down", "gone"])
@pytest.mark.parametrize("engine", ["packet", "raw", "udp"])
def test_device_goes_during_ping(pair, ktrxer, engine, how):
    a, b = pair
    child = a.popen([ktrxer, "ping", b.address, "-c", "400", "-i", "5ms", "-W", "200ms", "-e", engine, "--jsonl"])
    flowing(a, 50)
    a.ip("link", *(["set", "a0", "down"] if how == "down" else ["del", "a0"]))
    status, objects, _ = finish(child, 8)
    end = closed(objects[-1])
    assert status == 3 and end["verdict"] != "valid" and 0 < end["received"] < 400 and end["requested"] == 400


def test_far_end_without_carrier(pair, ktrxer):
    """The peer device goes down: the local device is up and cannot send. No command hangs, and every probe is accounted for."""
    a, b = pair
    child = a.popen([ktrxer, "send", b.address, "-c", "600", "-i", "1ms", "--jsonl"])
    flowing(a, 100)
    b.ip("link", "set", "b0", "down")
    status, objects, _ = finish(child, 12)
    assert closed(objects[-1])["requested"] == 600 and objects[-1]["sent"] > 50 and status in (0, 3)


def test_device_is_down_from_the_start(pair, ktrxer):
    a, b = pair
    a.ip("link", "set", "a0", "down")
    for words in (["send", b.address, "-c", "1", "-d", "a0"], ["ping", b.address, "-c", "1", "-d", "a0"]):
        done = a.run([ktrxer, *words], check=False)
        assert done.returncode == 1 and "ip link set a0 up" in done.stderr


# ---------------------------------------------------------------------------------------------------- a full device (K5)


def test_refusals_are_retried_and_then_failed(pair, ktrxer, tmp_path):
    """A tun device without a reader accepts 500 packets and refuses the rest."""
    a, _ = pair
    if not Path("/dev/net/tun").exists():
        pytest.skip("no /dev/net/tun here")
    a.ip("tuntap", "add", "dev", "tun0", "mode", "tun")
    a.ip("link", "set", "tun0", "up")
    a.ip("addr", "add", "10.88.0.1/24", "dev", "tun0")
    holder = a.popen([sys.executable, peer.ME, "tun", "tun0"], stdin=subprocess.PIPE)
    assert holder.stdout.readline() == "ready\n", holder.communicate()[1]
    path = tmp_path / "reports.csv"
    began = time.monotonic()
    done = a.run([ktrxer, "send", "10.88.0.2", "-c", "530", "-i", "100us", "-e", "packet", "--retry", "5ms", "--reports", path, "--json"], check=False)
    took = time.monotonic() - began
    end = degraded(closed(json.loads(done.stdout)))
    assert done.returncode == 3
    assert 490 <= end["sent"] <= 500 and end["failed"] == 530 - end["sent"]
    assert took < 3, "bounded: 30 probes of 5 ms each at most"
    rows = list(csv.DictReader(path.open()))
    assert len(rows) == 530
    for row in rows:
        if row["status"] == "failed":
            assert row["error"] == "No buffer space available" and row["sent_ns"] == row["departure_stamp"] == ""
        else:
            assert row["status"] == "sent" and row["tries"] == "1" and row["departure_stamp"] == "driver"
    # Retries are limited by time; their number depends on the load of the machine.
    assert max(int(row["tries"]) for row in rows) > 3
    assert sum(int(row["tries"]) for row in rows) == end["tries"]
    assert any("own queue was full" in reason["text"] for reason in end["reasons"])


# ------------------------------------------------------------------------------------------------------------ privileges


@pytest.fixture
def unprivileged(requires_real_root, ktrxer):
    """The command at a path that every user can execute, and the command prefix that runs it as the user 65534 without capabilities."""
    folder = Path(tempfile.mkdtemp(prefix="ktrxer-unprivileged-"))
    folder.chmod(0o755)
    copy = Path(shutil.copy(ktrxer, folder))
    copy.chmod(0o755)
    yield ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", copy]
    shutil.rmtree(folder)


def test_doctor_without_privileges(shared_pair, unprivileged):
    a, _ = shared_pair
    result = json.loads(a.run([*unprivileged, "doctor", "--device", "a0", "--json"]).stdout)
    engines = {engine["name"]: engine for engine in result["engines"]}
    assert engines["udp"]["available"]
    for name in ("packet", "raw"):
        assert not engines[name]["available"] and "CAP_NET_RAW" in engines[name]["reason"]
    assert result["privileges"]["uid"] == NOBODY
    assert not any(value for name, value in result["privileges"].items() if name.startswith("CAP_"))
    text = a.run([*unprivileged, "doctor"]).stdout
    assert "privilege CAP_NET_RAW is missing; without it: " in text and "privilege CAP_SYS_NICE is missing; without it: " in text


@pytest.mark.parametrize("version", [4, 6])
def test_send_without_privileges(shared_pair, unprivileged, version):
    a, b = shared_pair
    to = b.address if version == 4 else b.address6
    with peer.capturing(b) as packets:
        done = a.run([*unprivileged, "send", to, "--precise", "-c", "50", "-i", "2ms", "--json"], check=False)
    result = closed(json.loads(done.stdout))
    assert result["sent"] == 50 and result["engine"] == "udp" and result["departure_stamp"]["driver"] == 50
    assert "needs no privilege" in result["engine_reason"] and "CAP_NET_RAW" in result["engine_reason"]
    assert not result["waiter"]["realtime"] and any("real-time" in note for note in result["waiter"]["notes"])
    assert [packet.number for packet in packets if packet.proto == 17] == list(range(50))


def test_what_privileges_forbid_is_said(shared_pair, unprivileged):
    a, b = shared_pair
    for engine in ("packet", "raw"):
        for words in (["send", b.address, "-c", "1", "-e", engine], ["ping", b.address, "-c", "1", "-e", engine]):
            done = a.run([*unprivileged, *words], check=False)
            assert done.returncode == 1 and f"the {engine} engine does not work here: " in done.stderr and "CAP_NET_RAW" in done.stderr


@pytest.mark.parametrize("command", ["tcp", "trace"])
def test_no_engine_is_advised_that_a_command_does_not_have(shared_pair, ktrxer, command):
    """`tcp` has no engine udp, and that of `trace` needs --one-route."""
    a, b = shared_pair
    done = a.run(["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", ktrxer, command, b.address], check=False)
    assert done.returncode == 1 and "CAP_NET_RAW: run as root\n" in done.stderr, done.stderr


def test_ping_without_privileges(pair, unprivileged):
    a, b = pair
    a.sysctl("ipv4/ping_group_range", "'1 0'")
    done = a.run([*unprivileged, "ping", b.address, "-c", "1"], check=False)
    assert done.returncode == 1 and "sudo tee /proc/sys/net/ipv4/ping_group_range" in done.stderr
    assert f"run `sudo {unprivileged[-1]} ping {b.address}`; without ICMP, `ktrxer stamp {b.address}`" in done.stderr, done.stderr
    a.sysctl("ipv4/ping_group_range", "'0 2147483647'")
    with peer.echoing(b):
        for words in ([b.address], [b.address6], [b.address, "--udp"], [b.address6, "--udp"], [b.address, "--precise"]):
            done = a.run([*unprivileged, "ping", *words, "-c", "10", "-i", "5ms", "--json"], check=False)
            result = closed(json.loads(done.stdout))
            assert result["received"] == 10, words
            assert result["stamps"]["sent_driver"] == result["stamps"]["received_kernel"] == 10, words
