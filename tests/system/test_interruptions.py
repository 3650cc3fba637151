# SPDX-License-Identifier: MIT OR Apache-2.0
"""Interruptions: signals, stalled readers, clock steps; and memory, which must not grow.

In each case the counts add up (requested = sent + failed + skipped + cancelled) and no command hangs.
"""

import csv
import itertools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
from accounts import closed, finish
from far_end import flowing
from noise import least
from shims import shim
from waiting import event, read_until, until

# --------------------------------------------------------------------------------------------------------------- signals


def commands_to_stop(b):
    return [
        ["send", b.address, "-i", "1ms"],
        ["send", b.address, "-i", "1ms", "-c", "100000"],
        ["send", b.address, "-r", "20k", "-e", "udp"],
        ["send", b.address, "--for", "60s", "-e", "raw"],
        ["send", b.address, "-i", "10s", "-c", "5"],
        ["send", b.address, "--train", "1000", "-i", "50ms", "-c", "50000"],
        ["send", "10.77.0.99", "-i", "1ms"],
        ["ping", b.address, "-i", "1ms"],
        ["ping", b.address, "-i", "2ms", "--precise", "-c", "100000"],
        ["ping", b.address, "-i", "5ms", "-e", "packet"],
        ["ping", "10.77.0.99", "-i", "10ms", "-W", "60s"],
    ]


def catches(pid, number):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return int(line.split()[1], 16) >> (number - 1) & 1
    return False


@pytest.mark.parametrize("turn", range(20))
def test_signals_at_any_moment(shared_pair, ktrxer, turn):
    a, b = shared_pair
    words = commands_to_stop(b)[turn % 11]
    number = (signal.SIGINT, signal.SIGTERM)[turn % 2]
    rng = random.Random(turn)
    child = a.popen([ktrxer, *words, "--jsonl"])
    # From the moment at which its handlers stand; before, there is nothing to stop and nothing to tell.
    until(lambda: catches(child.pid, number), f"the handler of signal {number} is installed", every_s=0.0005)
    time.sleep(rng.random() ** 2)
    child.send_signal(number)
    status, objects, errors = finish(child, 3)
    if status == -signal.SIGINT:  # before it had begun
        assert number == signal.SIGINT and not objects and not errors
        return
    assert status in (0, 1, 3), f"{status} {errors}"
    end = objects[-1]
    assert end["type"] == "end", "the accounts so far"
    if "requested" not in end:
        assert "10.77.0.99" in words, end  # stopped during neighbour resolution
        return
    closed(end)
    if "-c" in words:
        assert end["requested"] == int(words[words.index("-c") + 1])
        assert end["cancelled"] > 0 and end["verdict"] != "valid"
    if words[0] == "send":
        assert sum(one["type"] == "sample" and one["status"] == "sent" for one in objects) + end["output"]["dropped"] >= min(end["sent"], 1)
        assert end["output"]["dropped"] or sum(one["type"] == "sample" and one["status"] == "sent" for one in objects) == end["sent"]


def test_second_signal_kills(shared_pair, ktrxer):
    a, b = shared_pair
    child = a.popen([ktrxer, "send", b.address, "-i", "1ms"])
    flowing(a, 20)
    for _ in range(2):
        child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)
    assert child.returncode in (0, -signal.SIGINT, 1)


# ---------------------------------------------------------------------------------------------------------------- output


@pytest.mark.plain_build
def test_a_stalled_reader_delays_no_probe(shared_pair, ktrxer):
    """The test reads nothing until all probes are sent: the pipe fills, samples are dropped and counted, and probes leave on time."""
    a, b = shared_pair

    def lateness_us():
        child = a.popen([ktrxer, "send", b.address, "-r", "10k", "-c", "20000", "--jsonl"])
        flowing(a, 19_000)
        status, objects, _ = finish(child, 5)
        end = closed(objects[-1])
        assert end["sent"] == 20000 and status == 3
        assert end["output"]["dropped"] > 5000 and any("reader" in reason["text"] or "output" in reason["text"] for reason in end["reasons"]), end["reasons"]
        assert sum(one["type"] == "sample" for one in objects) + end["output"]["dropped"] == 20000
        return end["lateness_us"]["p50"]

    assert least(lateness_us, enough=100) <= 100


@pytest.mark.plain_build
def test_a_reader_that_never_comes_is_left(shared_pair, ktrxer):
    a, b = shared_pair
    child = a.popen([ktrxer, "send", b.address, "-r", "5k", "-c", "5000", "--jsonl"])
    assert child.wait(timeout=20) == 1
    child.communicate()


def test_a_reader_that_goes_stops_it(shared_pair, ktrxer):
    a, b = shared_pair
    child = a.popen([ktrxer, "send", b.address, "-r", "1k", "--jsonl"])
    read_until(child, lambda one: one["type"] == "sample")
    child.stdout.close()
    assert child.wait(timeout=20) in (0, 3)
    child.stderr.close()


def test_a_full_disk_is_said(shared_pair, ktrxer):
    a, b = shared_pair
    done = a.run([ktrxer, "send", b.address, "-c", "2000", "-i", "100us", "--reports", "/dev/full", "--json"], check=False)
    end = closed(json.loads(done.stdout))
    assert done.returncode == 3 and end["sent"] == 2000 and any("/dev/full" in reason["text"] for reason in end["reasons"])


LONG = {  # words behind the far address, with more than a minute of work; no word: no address
    "ping": ["--for", "90s"],
    "stamp": ["--for", "90s"],
    "send": ["-i", "10ms"],
    "recv": [],
    "serve": [],
    "pair": ["--count", "1000", "--interval", "1s"],
    "ppt measure": ["--count", "1000"],
    "ppt direct": ["--count", "100000"],
    "trace": ["--rate", "1"],
    "tcp": ["--count", "1000"],
    "owamp": ["--count", "10000"],
    "capacity": ["--for", "90s"],
}
WITH_TOKEN = ("pair", "ppt measure", "capacity")


@pytest.fixture(scope="module")
def far_server(shared_pair, ktrxer, token):
    server = shared_pair[1].popen([ktrxer, "serve", "--token-file", str(token), "--owamp-port", "861", "--udpstp-port", "24601", "--jsonl"])
    event(server, "listening")
    web = shared_pair[1].popen([sys.executable, str(Path(__file__).with_name("web.py")), "80"])
    web.stdout.readline()
    yield
    for one in (server, web):
        one.kill()
        one.communicate()


@pytest.mark.usefixtures("far_server")
@pytest.mark.parametrize("full", [True, False], ids=["full", "closed"])
@pytest.mark.parametrize("name", LONG)
def test_output_that_cannot_be_written_ends_the_command(shared_pair, ktrxer, token, name, full):
    """At its first object, long before the minute for which it has work."""
    near, far = shared_pair
    words = [*name.split(), *([far.address] if LONG[name] else []), *LONG[name]]
    words += ["--token-file", token] * (name in WITH_TOKEN)
    source, pipe = os.pipe()
    os.close(source)
    with open("/dev/full", "wb") if full else os.fdopen(pipe, "wb") as out:
        child = near.popen([ktrxer, *map(str, words), "--jsonl"], stdout=out)
    _, errors = child.communicate(timeout=15)
    if full:
        os.close(pipe)
        assert child.returncode == 1 and "could not be written to standard output: No space left on device" in errors
    else:
        assert "could not be written" not in errors and child.returncode in (0, 1, 3)


# ----------------------------------------------------------------------------------------------------------- clock steps


@pytest.fixture
def stepping(ktrxer):
    """All processes share the machine's clock, so the step is made for one process only (clock_shim.c)."""
    path = shim(ktrxer)

    def words(step_ns, back_ms=150):
        return ["env", f"LD_PRELOAD={path}", f"CLOCK_SHIM_STEP_NS={step_ns}", "CLOCK_SHIM_AFTER_MS=250", f"CLOCK_SHIM_BACK_MS={back_ms}", ktrxer]

    return words


@pytest.mark.plain_build
@pytest.mark.parametrize("back_ms", [150, 1])
@pytest.mark.parametrize("step_ns", [3_000_000_000, -3_000_000_000, 200_000_000, -200_000_000])
def test_clock_steps(shared_pair, stepping, tmp_path, step_ns, back_ms):
    """A step forward and back again. After only 1 ms the clock check may have missed both, and stamps of that time must not be used."""
    a, b = shared_pair
    path = tmp_path / "reports.csv"
    done = a.run([*stepping(step_ns, back_ms), "send", b.address, "-r", "10k", "-c", "6000", "--jsonl", "--reports", path], check=False)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    end = closed(objects[-1])
    # On a busy machine the check may run only once in that time, and find the original clock.
    assert done.returncode == 3 and 1 <= end["host"]["clock_steps"] <= 2
    assert any("CLOCK_REALTIME was stepped" in reason["text"] for reason in end["reasons"])
    steps = [round(one["step_ns"] / step_ns) for one in objects if one["type"] == "event" and one["name"] == "clock_step"]
    assert len(steps) == end["host"]["clock_steps"] and steps in ([1, -1], [0], [0, 0], [1], [-1]), steps
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "sent"]
    # A stall of the machine delays probes but never reorders them; stamps of the wrong clock do, at its beginning or end.
    sent = [100_000 * i + int(row["lateness_ns"]) for i, row in enumerate(rows)]
    back = [(i, after - before) for i, (before, after) in enumerate(itertools.pairwise(sent)) if after - before < -1_000_000]
    assert len(sent) == 6000 and not back, f"lateness that never was: {back}"
    # Only the stamps of that millisecond are not used; all others are.
    assert end["departure_stamp"]["driver"] >= 6000 - 10 - (60 if back_ms == 1 else 0), end["departure_stamp"]


@pytest.mark.plain_build
@pytest.mark.parametrize("step_ns", [3_000_000_000, -3_000_000_000, 200_000_000, -200_000_000])
def test_clock_steps_in_ping(shared_pair, stepping, step_ns):
    a, b = shared_pair
    done = a.run([*stepping(step_ns), "ping", b.address, "-i", "1ms", "-c", "600", "--json"], check=False)
    end = closed(json.loads(done.stdout))
    assert end["received"] == 600 and 1 <= end["host"]["clock_steps"] <= 2
    assert end["rtt_us"]["min"] > 0 and end["rtt_us"]["max"] < 150_000


@pytest.mark.parametrize("step_ns", [1_500_000, -1_500_000])
def test_small_clock_steps_are_no_delay(shared_pair, stepping, step_ns):
    """Both conversions of a stamp next to such a step give a possible time. It is left out, and the stamps before and after it are correct."""
    a, b = shared_pair
    done = a.run([*stepping(step_ns), "ping", b.address, "-i", "1ms", "-c", "600", "--jsonl"], check=False)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    end = closed(objects[-1])
    trips = [one for one in objects if one.get("kind") == "round_trip"]
    assert len(trips) + end["untimed"] == end["received"] == 600 and end["untimed"] < 400
    # Count round trips that are too long by the size of the step; a busy machine may delay one in a hundred.
    like_it = [one["rtt_ns"] for one in trips if 0.97 * abs(step_ns) < one["rtt_ns"] < abs(step_ns) + 30_000]
    assert len(like_it) <= 6, like_it
    shifted = [one["lateness_ns"] for one in trips if abs(one["lateness_ns"] - abs(step_ns)) < 100_000]
    assert len(shifted) < 0.3 * len(trips), "the step is not this host's lateness"


# ---------------------------------------------------------------------------------------------------------------- memory


def resident_kib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


@pytest.mark.plain_build
def test_memory_does_not_grow(shared_pair, ktrxer):
    """Of two commands side by side, while they send 60,000 and 6000 probes after 100,000 and 10,000; `make soak` looks for an hour."""
    a, b = shared_pair
    commands = (["send", b.address, "-r", "20k"], ["ping", b.address, "-i", "500us", "--timeout", "2s"])
    children = [a.popen([ktrxer, *words, "--for", "60s", "--json"]) for words in commands]
    flowing(a, 110_000)  # the windows of both have been filled once
    early = [resident_kib(child.pid) for child in children]
    flowing(a, 66_000)
    late = [resident_kib(child.pid) for child in children]
    for child in children:
        child.send_signal(signal.SIGTERM)
    for child in children:
        closed(json.loads(child.communicate(timeout=10)[0]))
    room = 160  # a histogram's pages come into use as its values spread: some, at first
    grown = [after - before for before, after in zip(early, late, strict=True)]
    assert all(early) and max(grown) <= room, f"{early} KiB, then {late} KiB"


def test_environment_is_not_trusted(shared_pair, ktrxer):
    """An unusual terminal size, locale or home directory changes nothing."""
    a, b = shared_pair
    odd = {**os.environ, "COLUMNS": "-1", "LC_ALL": "tr_TR.UTF-8", "HOME": "/nonexistent", "TZ": "Nowhere/At_All"}
    done = a.run([ktrxer, "send", b.address, "-c", "3", "-i", "1ms", "--json"], env=odd, check=False)
    assert closed(json.loads(done.stdout))["sent"] == 3
