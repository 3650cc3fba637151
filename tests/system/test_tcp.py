# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer tcp`: its results from a web server's answers, compared with a middlebox that loses and reorders the segments.

a ---10.79.0.0/24, fd00:79::/64--- m ---the same--- b      A measures, B has web servers, M is a bridge in user space
"""

from __future__ import annotations

import fcntl
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import recorded
from ktrxer_lab import hosts
from noise import before_others, busy, reasons
from waiting import stand_still

HERE = Path(__file__).resolve().parent
UNDISTURBED = 4  # the last number of the web server's second address
PIPE_BYTES = 1 << 20  # some 10,000 records
PORTS = {"whole": 80, "closing": 8010, "at once": 8011, "silent": 8012, "ssh": 8013, "narrow": 8014, "resets": 8015}
# Servers that do not suit this method, each on its port.
BAD = f"""
import socket, struct, threading
def serve(port, talk, room=None):
    listening = socket.socket(socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if room:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    listening.bind(("0.0.0.0", port))
    listening.listen(50)
    kept = []
    def loop():
        while True:
            one = listening.accept()[0]
            kept.append(one)
            talk(one)
    threading.Thread(target=loop).start()
def at_once(one):
    one.close()
def resets(one):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()
def ssh(one):
    one.send(b"SSH-2.0-OpenSSH_9.2\\r\\n")
serve({PORTS["at once"]}, at_once)
serve({PORTS["silent"]}, lambda one: None)
serve({PORTS["ssh"]}, ssh)
serve({PORTS["narrow"]}, lambda one: None, 1024)
serve({PORTS["resets"]}, resets)
print("ready", flush=True)
"""


@dataclass
class Line:
    a: hosts.Netns
    m: hosts.Netns
    b: hosts.Netns


def started(host: hosts.Netns, command: list[str]) -> Any:
    process = host.popen(command)
    assert process.stdout
    while "ready" not in (said := process.stdout.readline()):
        assert said, process.communicate()[1]
    return process


@pytest.fixture(scope="module")
def line(requires_namespaces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    files = tmp_path_factory.mktemp("files")
    (files / "large").write_bytes(bytes(20000))
    (files / "small").write_bytes(bytes(300))
    (files / "folder").mkdir()
    with (files / "long").open("wb") as long:
        long.truncate(100_000_000)
    with hosts.Netns("a") as a, hosts.Netns("m") as m, hosts.Netns("b") as b:
        hosts.join(a, m, net=71, devices=("a0", "m0"))
        hosts.join(m, b, net=72, devices=("m1", "b0"))
        for host, device in ((a, "a0"), (m, "m0"), (m, "m1"), (b, "b0")):
            # No offloads, because the middlebox does not segment and does not compute checksums.
            host.run(["ethtool", "-K", device, "tx", "off", "tso", "off", "gso", "off", "gro", "off"])
        for host, number in ((a, 1), (b, 2), (b, UNDISTURBED)):
            host.ip("address", "add", f"10.79.0.{number}/24", "dev", host.device)
            host.ip("address", "add", f"fd00:79::{number}/64", "dev", host.device, "nodad")
        m.sysctl("ipv4/ip_forward", 0)
        for port, protocol in ((PORTS["whole"], "HTTP/1.1"), (PORTS["closing"], "HTTP/1.0")):
            serve = [*before_others(), sys.executable, "-u", "-m", "http.server", "--bind", "::", "--directory", files, "--protocol", protocol, port]
            process = b.popen([str(word) for word in serve], stderr=subprocess.DEVNULL)
            assert process.stdout and "Serving" in process.stdout.readline()
        started(b, [sys.executable, "-c", BAD])
        yield Line(a, m, b)


def with_room(process: Any) -> Any:
    """A full pipe must not stop a program whose output is read after the measurement."""
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return process


def middlebox(line: Line, *shares: float) -> Any:
    """It is the path, which other work of this machine must not delay."""
    return with_room(started(line.m, [*before_others(), sys.executable, str(HERE / "middlebox.py"), "m0", "m1", "7", *map(str, shares)]))


Measure = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def measure(line: Line, ktrxer: Path) -> Iterator[Measure]:
    """The objects of `ktrxer tcp --jsonl`, and the middlebox's records of the segments."""
    boxes = list[Any]()
    notes = list[dict[str, Any]]()

    def go(*options: str, to: str = "10.79.0.2", shares: tuple[float, ...] = (0, 0, 0, 0)) -> list[dict[str, Any]]:
        box = middlebox(line, *shares)
        boxes.append(box)
        done = line.a.run([ktrxer, "tcp", to, "--jsonl", *options], check=False, timeout=100)
        box.send_signal(signal.SIGKILL)
        notes.extend(json.loads(one) for one in box.communicate()[0].splitlines() if one.endswith("}"))
        assert done.stdout, done.stderr
        return [json.loads(one) for one in done.stdout.splitlines()]

    go.notes = notes  # type: ignore[attr-defined]
    yield go
    for box in boxes:
        box.kill()


NO_RESULT = ("pairs have no result: the server's answers fit no event",)


def whole(end: dict[str, Any]) -> bool:
    """Each sent pair has a result, but for those that a busy machine sends too late. It also opens some connections too late."""
    sent = end["pairs"] - end["busy"] - end["unprimed"]
    results = end["known"] + (end["no_conclusion"] if busy(end) else 0)
    return results == sent and end["known"] >= end["pairs"] / 2 and not reasons(end, "late", "were not sent because", *(NO_RESULT if busy(end) else ()))


def measured(measure: Measure, *options: str, **more: Any) -> list[dict[str, Any]]:
    """A machine that is busy for most of a measurement gets further ones."""
    for _ in range(3):
        objects = measure(*options, **more)
        if whole(objects[-1]) or not busy(objects[-1]):
            break
    return objects


Passed = dict[tuple[str, int, int], int | None]
# A first segment that comes 100 ms later than expected counts as a retransmission (docs/decisions/0058-http.md).
STALL_NS = 50_000_000


def fate(passed: Passed, way: str, port: int, sequences: tuple[int, int]) -> str:
    """Counts of the first transmissions."""
    first, second = (passed.get((way, port, one % 2**32), None) for one in sequences)
    if first is None:
        return "both_lost" if second is None else "first_lost"
    if second is None:
        return "second_lost"
    return "in_order" if first < second else "reordered"


def truth(passed: Passed, sample: dict[str, Any], payload: int, mss: int) -> tuple[str, str]:
    port, sequence, elicited = sample["from_port"], sample["sequence"], sample["elicited_sequence"]
    up = fate(passed, "up", port, (sequence, sequence + payload))
    down = fate(passed, "down", port, (elicited, elicited + mss))
    if up == "both_lost":
        down = "unknown"
    elif up == "second_lost":  # the server has sent one segment
        down = "first_lost" if down in ("first_lost", "both_lost") else "in_order"
    return up, down


def read_otherwise(notes: list[dict[str, Any]], samples: list[dict[str, Any]], end: dict[str, Any]) -> list[Any]:
    """The pairs that had another fate in the middlebox."""
    passed = Passed()
    for note in notes:
        passed.setdefault((note["way"], note["port"], note["sequence"]), note["order"])
    wrong = list[Any]()
    for one in samples:
        up, down = truth(passed, one, end["payload_bytes"], end["mss_bytes"])
        right = up == one["up"] or (one["up"] == "complete" and up in ("in_order", "reordered"))
        if not right or down != one["down"]:
            wrong.append((up, down, one["up"], one["down"], one))
    return wrong


@pytest.mark.parametrize(
    "shares",
    [(0.1, 0, 0, 0), (0, 0.1, 0, 0), (0, 0, 0.15, 0), (0, 0, 0, 0.15), (0.05, 0.05, 0.1, 0.1)],
    ids=["loss up", "loss down", "reordering up", "reordering down", "all"],
)
def test_each_pair_is_read_as_the_middlebox_treated_it(measure, shares):
    # On a busy machine the server may send too late for most pairs, and the middlebox may stand still.
    for _ in range(3):
        objects = measure("--path", "/large", "--count", "80", "--interval", "40ms", "--connections", "16", shares=shares)
        end = objects[-1]
        stalled = {note["port"] for note in measure.notes if note["waited_ns"] > STALL_NS}
        pairs = [one for one in objects if one.get("kind") == "tcp_pair"]
        known = [one for one in pairs if one["doubt"] is None]
        # A late segment also lengthens the round trip that a connection expects for later pairs.
        timely = [one for one in known if one["from_port"] not in stalled]
        if len(timely) >= 20:
            break
    assert not recorded.wrong(objects)
    assert len(pairs) == end["pairs"] - end["busy"] - end["unprimed"] and len(known) == end["known"]
    # Where a host has no processor at times, some pairs are not sent, and the answers to some come too late; the verdict names it.
    share, least = (0.7, 20) if busy(end) or stalled else (0.95, 40)
    assert len(known) >= share * len(pairs) and len(pairs) >= least, end
    assert len(timely) >= least / 2, (stalled, end)
    wrong = read_otherwise(measure.notes, timely, end)
    assert not wrong, wrong
    lost = {way: end[way]["lost"]["count"] for way in ("up", "down")}
    reordered = {way: end[way]["reordered"]["count"] for way in ("up", "down")}
    for which, found in enumerate((lost["up"], lost["down"], reordered["up"], reordered["down"])):
        assert found == 0 if not shares[which] else found > 0 or busy(end), end


def test_each_pair_has_a_sample(measure):
    """Also where the server's timer ends several times before a pair has a result, while other connections send the next hundred pairs."""
    objects = measure("--path", "/large", "--count", "400", "--interval", "10ms", "--connections", "16", "--timeout", "10s", shares=(0, 0.2, 0, 0))
    end = objects[-1]
    samples = [one for one in objects if one.get("kind") == "tcp_pair"]
    assert len(samples) == end["pairs"] - end["busy"] - end["unprimed"] > 0, end
    assert sum(one["doubt"] is None for one in samples) == end["known"], end


def stopped_again_and_again(line, ktrxer, stopped_s, going_most_s, *words):
    """The objects of a measurement whose process stands still for `stopped_s`, after each 0.1 s to `going_most_s`: at any place of an interval."""
    child = with_room(line.a.popen([str(ktrxer), "tcp", "10.79.0.2", "--jsonl", "--path", "/large", "--connections", "16", *words]))
    while child.poll() is None:
        stand_still(child, stopped_s)
        time.sleep(random.uniform(0.1, going_most_s))
    return [json.loads(one) for one in child.communicate()[0].splitlines()]


@pytest.mark.plain_build
def test_pairs_that_left_late_are_read_as_the_middlebox_treated_them(line, ktrxer):
    """The program stands still for less than the server's retransmission timer, and for longer than the room of a late segment."""
    box = middlebox(line, 0, 0.1, 0, 0)
    objects = stopped_again_and_again(line, ktrxer, 0.14, 0.3, "--count", "400", "--interval", "20ms")
    box.send_signal(signal.SIGKILL)
    notes = [json.loads(one) for one in box.communicate()[0].splitlines() if one.endswith("}")]
    stalled = {note["port"] for note in notes if note["waited_ns"] > STALL_NS}
    known = [one for one in objects if one.get("kind") == "tcp_pair" and one["doubt"] is None and one["from_port"] not in stalled]
    late = [one for one in known if one["sent_ns"] - one["scheduled_ns"] > 100_000_000]
    assert late, "no pair left late enough"
    wrong = read_otherwise(notes, known, objects[-1])
    assert not wrong, (len(late), len(known), wrong)


@pytest.mark.plain_build
def test_a_program_that_stands_still_claims_no_loss(line, ktrxer):
    """It stands still for longer than the server's retransmission timer: every fifth time between the commit of a pair and its send time."""
    box = middlebox(line, 0, 0, 0, 0)
    end = stopped_again_and_again(line, ktrxer, 0.5, 0.4, "--count", "1000", "--interval", "10ms")[-1]
    box.kill()
    box.communicate()
    counts = {way: end[way]["lost"]["count"] + end[way]["reordered"]["count"] for way in ("up", "down")}
    assert end["known"] and counts == {"up": 0, "down": 0}, (counts, end)


def test_precise(measure):
    """A thread that spins hands the segments over: the pairs have the same results, and both probes of a pair their stamps."""
    objects = measured(measure, "--path", "/large", "--count", "20", "--interval", "50ms", "--precise")
    end, pairs = objects[-1], [one for one in objects if one.get("kind") == "tcp_pair"]
    assert whole(end), end
    assert end["sent"] == end["requested"] == 2 * len(pairs) > 0 and end["failed"] == end["skipped"] == end["cancelled"] == 0
    assert all(0 < one["sent_ns"] <= one["second_sent_ns"] for one in pairs)
    assert end["up"]["lost"]["count"] == end["down"]["lost"]["count"] == 0


@pytest.mark.parametrize("to", [f"10.79.0.{UNDISTURBED}", f"fd00:79::{UNDISTURBED}"])
def test_an_undisturbed_path(measure, line, to):
    """To an address of its own: a server whose connection lost its end in an earlier test repeats its segments, which this host's TCP answers."""
    chain = "add table inet count; add chain inet count out { type filter hook output priority 0; }; "
    rule = f"{chain} add rule inet count out {'ip6' if ':' in to else 'ip'} daddr {to} tcp flags & rst == rst counter name resets"
    line.a.run(["nft", "add table inet count; add counter inet count resets; " + rule])

    def counted(*options: str, **more: Any) -> list[dict[str, Any]]:
        line.a.run(["nft", "reset", "counter", "inet", "count", "resets"])
        return measure(*options, **more)

    end = measured(counted, "--path", "/large", "--count", "20", "--interval", "50ms", to=to)[-1]
    resets = line.a.run(["nft", "list", "counter", "inet", "count", "resets"]).stdout
    line.a.run(["nft", "delete", "table", "inet", "count"])
    assert whole(end), end
    assert all(end[way]["events"]["in_order"] == end["known"] for way in ("up", "down")), end
    assert end["connections"] == 4 and 0 < end["rtt_us"]["min"] <= end["rtt_us"]["p50"]
    assert "packets 0 " in resets, "this host's own TCP answered the server"


SMALL = ("--path", "/small", "--count", "20", "--interval", "50ms", "--payload", "300", "--mss", "1000")


def test_requests_for_a_small_file(measure):
    """How many pairs a slow machine (or a sanitizer) primes in time is not asked here."""
    end = measure(*SMALL)[-1]
    assert end["payload_bytes"] == 300 and 0 < end["known"] == end["pairs"] - end["busy"] - end["unprimed"], end


@pytest.mark.plain_build
def test_requests_for_a_small_file_come_often_enough(measure):
    end = measured(measure, *SMALL)[-1]
    assert whole(end), end


def test_a_server_that_closes_after_each_response_is_used_during_a_long_one(measure):
    end = measured(measure, "--path", "/long", "--count", "20", "--interval", "50ms", "--port", str(PORTS["closing"]))[-1]
    assert whole(end), end


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--port", "81"), "no program listens on TCP port 81"),
        (("--port", str(PORTS["at once"])), "closed 3 connections in a row before a pair"),
        (("--port", str(PORTS["closing"]), "--path", "/large"), "closed 3 connections in a row before a pair"),
        (("--port", str(PORTS["resets"])), "closed 3 connections in a row before a pair"),
        (("--port", str(PORTS["silent"]), "--timeout", "300ms"), "stopped answering"),
        (("--port", str(PORTS["ssh"])), "does not answer with HTTP/1"),
        (("--port", str(PORTS["narrow"]), "--payload", "1400"), "have no room for two requests of 1400 bytes"),
        (("--path", "/absent"), "answered 404"),
        (("--path", "/folder"), "answered 301 Moved Permanently to GET /folder, and refers to /folder/"),
    ],
)
def test_servers_that_are_no_good(measure, options, reason):
    end = measure(*options, "--count", "5")[-1]
    assert end["verdict"] == "invalid" and any(reason in one["text"] for one in end["reasons"]), end["reasons"]
    assert end["known"] == 0


@pytest.mark.parametrize(("path", "known"), [("/absent", False), ("/large", True)])
def test_intervals_are_explained_where_they_are_printed(line, ktrxer, path, known):
    box = middlebox(line, 0, 0, 0, 0)
    done = line.a.run([ktrxer, "tcp", "10.79.0.2", "--path", path, "--count", "5"], check=False)
    box.send_signal(signal.SIGKILL)
    box.communicate()
    assert " not sent; " in done.stdout, (done.stdout, done.stderr)
    assert ("% (" in done.stdout) == ("intervals of Wilson" in done.stdout) == known, done.stdout


def test_a_host_that_does_not_answer(measure, line):
    line.b.run(
        ["nft", "add table ip deaf; add chain ip deaf in { type filter hook input priority 0; }; add rule ip deaf in tcp dport 80 drop"]
    )
    end = measure("--timeout", "300ms", "--count", "5")[-1]
    line.b.run(["nft", "delete", "table", "ip", "deaf"])
    assert end["verdict"] == "invalid" and "did not answer on TCP port 80" in end["reasons"][0]["text"], end["reasons"]


@pytest.mark.parametrize(
    "options", [("--path", "x"), ("--path", "/a b"), ("--payload", "20"), ("--mss", "100"), ("--from", "fd00:79::1"), ("--count", "0")]
)
def test_wrong_use(line, ktrxer, options):
    done = line.a.run([ktrxer, "tcp", "10.79.0.2", *options], check=False)
    assert done.returncode == 2 and done.stderr.strip(), done
