# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line for programs: output to slow or closed readers, start and end."""

import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
import recorded
from programs import (
    SELFTEST,
    objects,
    selftest,
    start,
)

# ---------------------------------------------------------------------------------------------------------------- output


def test_jsonl():
    done = selftest("tick", "--count", "5", "--jsonl")
    assert done.returncode == 0 and done.stderr == ""
    first, *samples, last = objects(done.stdout)
    assert first["type"] == "start" and first["command"] == "tick" and first["argv"][1:] == ["tick", "--count", "5", "--jsonl"]
    assert first["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert first["hostname"] == socket.gethostname()
    clock = first["clock"]
    assert abs(clock["real_ns"] - time.time_ns()) < 60e9 and abs(clock["mono_ns"] - time.monotonic_ns()) < 60e9
    assert 0 < clock["bound_ns"] < 1e9
    offset = time.time_ns() - time.monotonic_ns()
    assert abs(clock["real_ns"] - clock["mono_ns"] - offset) < 5e6
    assert [(s["type"], s["kind"], s["number"]) for s in samples] == [("sample", "tick", i) for i in range(5)]
    assert last["type"] == "end" and last["verdict"] == "valid" and last["reasons"] == [] and last["output"] == {"dropped": 0}
    assert set(last["host"]) == {"cpu_percent", "steal_percent", "clock_steps", "processor_wait_ms"}


def test_json_is_one_object():
    done = selftest("tick", "--count", "3", "--json")
    end = json.loads(done.stdout)
    assert end["verdict"] == "valid" and end["ticks"] == 3 and end["start"]["command"] == "tick"


def test_text_and_quiet():
    done = selftest("tick", "--count", "3")
    assert done.stdout.splitlines() == ["tick 0 ", "tick 1 ", "tick 2 ", "verdict: valid"]
    assert selftest("tick", "--count", "3", "--quiet").stdout == ""


@pytest.mark.parametrize("word", ["degraded", "invalid"])
def test_verdict_and_exit_status(word):
    text = selftest("say", "--verdict", word, "flow 3 ended early", 'a "quoted" \x01 ä')
    assert text.returncode == 3
    assert text.stdout.startswith(f"verdict: {word}\n  - flow 3 ended early\n") and "\x01" not in text.stdout
    end = json.loads(selftest("say", "--verdict", word, "flow 3 ended early", 'a "quoted" \x01 ä', "--json").stdout)
    assert end["verdict"] == word and [one["text"] for one in end["reasons"]] == ["flow 3 ended early", 'a "quoted" ? ä']


def test_a_valid_verdict_has_no_reason():
    text = selftest("say", "--verdict", "valid")
    assert (text.returncode, text.stdout) == (0, "verdict: valid\n")
    end = json.loads(selftest("say", "--verdict", "valid", "--json").stdout)
    assert (end["verdict"], end["reasons"]) == ("valid", [])


def test_arguments_that_are_no_text():
    done = subprocess.run([SELFTEST, "say", "--json", "--verdict=degraded", b"\xff\xfe", "\U0001f600"], capture_output=True, timeout=10)
    end = json.loads(done.stdout)
    assert [one["text"] for one in end["reasons"]] == ["\ufffd\ufffd", "\U0001f600"]
    assert end["start"]["argv"][-1] == "\U0001f600"


def test_strings_as_python_reads_them():
    """Arbitrary bytes are repaired like in Python. The random numbers have a seed, so that a failure can be repeated."""
    chance = random.Random(1)
    pieces = [b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x82", b'"', b"\\", b"\x01", b"/"]
    words = [b"w" + b"".join(chance.choice(pieces)[: chance.randint(1, 4)] for _ in range(8)) for _ in range(300)]
    words += [b"w" + bytes(chance.randint(1, 255) for _ in range(20)) for _ in range(300)]
    done = subprocess.run([SELFTEST, "say", "--json", "--verdict=degraded", *words], capture_output=True, timeout=20)
    assert json.loads(done.stdout)["start"]["argv"][4:] == [word.decode("utf-8", "replace") for word in words]


def test_numbers_as_python_reads_them():
    chance = random.Random(2)
    bits = [0, 1, 2**63, 2**63 - 1, 2**64 - 1, 0x3FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000, 0x0010000000000000, 0x3FB999999999999A]
    bits += [chance.getrandbits(64) for _ in range(2000)]
    done = selftest("numbers", "--json", *map(str, bits))
    for wanted, (unsigned, signed, fixed, double) in zip(bits, json.loads(done.stdout, parse_float=str)["numbers"], strict=True):
        assert unsigned == wanted and signed == struct.unpack("=q", struct.pack("=Q", wanted))[0]
        assert int(fixed.replace(".", "")) == signed and re.fullmatch(r"-?\d+\.\d{3}", fixed)
        number = struct.unpack("=d", struct.pack("=Q", wanted))[0]
        assert double is None if number != number or abs(number) == float("inf") else float(double) == number


@pytest.mark.parametrize(
    "args",
    [
        ["tick", "--count=5"],
        ["tick", "--count=1", "--start-at=NOW"],
        ["say", "--verdict", "degraded", "a reason"],
        ["say", "--verdict", "fail"],
        ["say"],
    ],
)
def test_objects_match_their_schemas(args):
    """Those of the test program have fields of their own; the others are those of each command."""
    args = [arg.replace("NOW", str(time.time_ns() + 100_000_000)) for arg in args]
    lines = objects(selftest(*args, "--jsonl").stdout)
    assert lines[0]["type"] == "start" and lines[-1]["type"] == "end" and len(lines) >= 2
    start = {**lines[0], "command": "ping"}
    end = {key: value for key, value in lines[-1].items() if key not in ("ticks", "stopped_by", "start_ns", "worst_put_ns")}
    assert not recorded.wrong([start, end])
    whole = json.loads(selftest(*args, "--json").stdout)
    assert not recorded.wrong([{**end, "start": {**whole["start"], "command": "ping"}}])
    # The schemas reject invalid objects.
    for spoilt in ({**end, "verdict": "fine"}, {**end, "end_ns": 1.5}, {**end, "more": 1}, {k: v for k, v in end.items() if k != "reasons"}):
        assert recorded.wrong([start, spoilt])
    assert recorded.wrong([{**start, "argv": "tick"}])


def test_a_command_that_fails_says_so_in_its_end():
    text = selftest("say", "--verdict", "fail")
    assert text.returncode == 1 and "ktrxer say: device 'eth9': no such device" in text.stderr
    first, last = objects(selftest("say", "--verdict", "fail", "--jsonl").stdout)
    assert first["type"] == "start"
    assert last["verdict"] == "invalid" and [one["text"] for one in last["reasons"]] == ["device 'eth9': no such device"]
    assert selftest("say", "--verdict", "usage", "--jsonl").returncode == 2
    assert selftest("say", "--verdict", "slip").returncode == 1  # a status of -22 * 256 must not become success


def test_commands_that_measure_nothing_have_no_verdict():
    done = selftest("look", "up", "127.0.0.1", "--json")
    end = json.loads(done.stdout)
    assert done.returncode == 0 and end["address"] == "127.0.0.1" and "verdict" not in end


def test_stalled_reader_hangs_nothing():
    # Without a reader: megabytes into a pipe of 64 KiB and a queue of 1 MiB.
    process = start("tick", "--interval=1ms", "--count=0", "--pad=4000", "--jsonl")
    try:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        assert process.wait(timeout=20) == 1
        took = time.monotonic() - asked
        assert b"stalled" in process.stderr.read()
    finally:
        process.kill()
        process.stdout.close()
        process.stderr.close()
    assert 1.5 < took < 2 + 8  # two seconds for the reader; the rest is a margin for a busy machine


def test_slow_reader_loses_objects_and_is_told():
    process = start("tick", "--interval=1ms", "--count=1500", "--pad=4000", "--jsonl")
    time.sleep(2.5)
    out, err = process.communicate(timeout=20)
    first, *samples, last = objects(out.decode())
    assert first["type"] == "start" and last["type"] == "end"
    assert last["output"]["dropped"] > 0 and len(samples) + last["output"]["dropped"] == 1500
    assert last["verdict"] == "degraded" and "too slow" in last["reasons"][0]["text"] and process.returncode == 3
    # No put waited for the reader. Half a second is a margin for a busy machine.
    assert last["worst_put_ns"] < 500e6
    numbers = [s["number"] for s in samples]
    assert numbers == sorted(set(numbers))


def test_steady_reader_of_much_gets_all():
    done = selftest("tick", "--interval=0", "--count=3000", "--pad=100", "--jsonl")
    first, *samples, last = objects(done.stdout)
    assert len(samples) + last["output"]["dropped"] == 3000


def test_reader_that_goes_away():
    process = start("tick", "--interval=1ms", "--count=0", "--jsonl")
    process.stdout.readline()
    process.stdout.close()
    stderr = process.stderr.read()
    assert process.wait(timeout=20) == 0 and stderr == b""
    process.stderr.close()


def test_pipe_into_head():
    done = subprocess.run(
        ["bash", "-c", f"'{SELFTEST}' tick -c 0 | head -n 2; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=10
    )
    assert done.stdout == "tick 0 \ntick 1 \n" and done.stderr == "" and done.returncode == 0


def test_full_disk_and_closed_output():
    with open("/dev/full", "w") as full:
        done = subprocess.run([SELFTEST, "tick", "-c", "3"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=10)
    assert done.returncode == 1 and "No space left" in done.stderr
    done = subprocess.run(["bash", "-c", f"'{SELFTEST}' tick -c 3 >&- <&-"], capture_output=True, text=True, timeout=10)
    assert done.returncode == 1 and "could not be written" in done.stderr
    assert subprocess.run(["bash", "-c", f"'{SELFTEST}' tick -c 3 --quiet >&- 2>&- <&-"], timeout=10).returncode == 0


# -------------------------------------------------------------------------------------------------------------- stopping


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_print_the_accounts_so_far(number):
    process = start("tick", "--count=0", "--jsonl", preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    process.stdout.readline()
    process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    last = objects(out.decode())[-1]
    assert process.returncode == 0 and err == b""
    assert last["type"] == "end" and last["stopped_by"] == number and last["ticks"] > 0


def test_second_interrupt_kills():
    # A stalled reader delays the end by two seconds: time for a second Ctrl-C.
    process = start("tick", "--interval=0", "--count=0", "--pad=4000", "--jsonl")
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == -signal.SIGINT, "it did not end by itself, with another status"
    process.stdout.close()
    process.stderr.close()


def test_ignored_signals_stay_ignored():
    process = start("tick", "--count=0", "--jsonl", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 0


def test_stop_on_eof():
    process = start("tick", "--count=0", "--jsonl", "--stop-on-eof", stdin=subprocess.PIPE)
    process.stdin.write(b"words do not stop it\n")
    process.stdin.flush()
    time.sleep(0.3)
    assert process.poll() is None
    out, _ = process.communicate(timeout=20)
    assert objects(out.decode())[-1]["stopped_by"] == -1 and process.returncode == 0
    assert selftest("tick", "--count=0", "--stop-on-eof", timeout=20).returncode == 0  # /dev/null ends at once


# ------------------------------------------------------------------------------------------------------------- beginning


@pytest.mark.plain_build
def test_start_at():
    at = time.time_ns() + 3_000_000_000
    began = time.monotonic()
    first, *_, last = objects(selftest("tick", "-c", "1", "--jsonl", f"--start-at={at}").stdout)
    assert time.monotonic() - began >= 2.9
    offset = first["clock"]["real_ns"] - first["clock"]["mono_ns"]
    assert first["start_at_real_ns"] == at and abs(last["start_ns"] + offset - at) < 1_000_000
    time.sleep(0.1)
    *_, last = objects(selftest("tick", "-c", "1", "--jsonl", f"--start-at={at}").stdout)
    assert last["verdict"] == "degraded" and "had passed" in last["reasons"][0]["text"]


def test_start_at_nonsense_and_stop_while_waiting():
    for at in ("1", str(int(time.time())), str(time.time_ns() + 3 * 86400 * 10**9), "18446744073709551615"):
        done = selftest("tick", "-c", "1", f"--start-at={at}", timeout=20)
        assert done.returncode == 1 and "nanoseconds since 1970" in done.stderr
    process = start("tick", "-c", "1", "--jsonl", f"--start-at={time.time_ns() + 60 * 10**9}")
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 1


# --------------------------------------------------------------------------------------------------------------- privacy


def test_clock_step_degrades():
    """A time namespace does not allow steps of the clock. This test steps the real clock, so it runs only on a machine that permits it."""
    if os.environ.get("KTRXER_TEST_STEP_CLOCK") != "1":
        pytest.skip("steps the machine's clock: KTRXER_TEST_STEP_CLOCK=1 allows it")
    process = start("tick", "--count=0", "--jsonl")
    process.stdout.readline()
    time.sleep(0.3)
    time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + 5_000_000)
    time.sleep(0.3)
    time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() - 5_000_000)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    lines = objects(out.decode())
    steps = [line["step_ns"] for line in lines if line.get("name") == "clock_step"]
    assert steps and abs(steps[0] - 5_000_000) < 500_000
    assert lines[-1]["host"]["clock_steps"] >= 1 and lines[-1]["verdict"] == "degraded"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
