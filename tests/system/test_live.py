# SPDX-License-Identifier: MIT OR Apache-2.0
"""The live engine on veth: its packets arrive, each probe gets a result, and the engine leaves nothing behind.

a0 10.77.0.1 ---- b0 10.77.0.2
"""

import ast
import contextlib
import ctypes
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from far_end import Listener, closes, flowing, gro
from ktrxer_lab.bench import contest
from waiting import has_run, read_until, until

pytestmark = pytest.mark.usefixtures("live")


def programs():
    """Ids and names of ktrxer's programs in the kernel, also those of other tests, by a walk with BPF_PROG_GET_NEXT_ID, because a process's fdinfo does not have all of them."""
    code = (
        "import ctypes, struct\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "n, at = [], 0\n"
        "while True:\n"
        "    attr = ctypes.create_string_buffer(struct.pack('<IIII', at, 0, 0, 0) + bytes(112))\n"
        "    if libc.syscall(321, 11, attr, 16): break\n"
        "    at = struct.unpack_from('<I', attr.raw, 4)[0]\n"
        "    get = ctypes.create_string_buffer(struct.pack('<III', at, 0, 0) + bytes(116))\n"
        "    fd = libc.syscall(321, 13, get, 12)\n"
        "    if fd < 0: continue\n"
        "    info = ctypes.create_string_buffer(232)\n"
        "    ask = ctypes.create_string_buffer(struct.pack('<IIQ', fd, 232, ctypes.addressof(info)) + bytes(112))\n"
        "    if not libc.syscall(321, 15, ask, 16): n.append((at, info.raw[64:80].split(b'\\0')[0].decode()))\n"
        "    libc.close(fd)\n"
        "print({at: name for at, name in n if name.startswith(('live_', 'stream_'))})\n"
    )
    return ast.literal_eval(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def begun_since(before):
    return {number: name for number, name in programs().items() if number not in before}


def wait_until_gone(these):
    """Programs of an engine of another test that began meanwhile are among them, and end within seconds, too."""
    until(lambda: not these.keys() & programs().keys(), "the kernel has freed the programs", within_s=30, every_s=0.05)


def live_threads(pid):
    names = []
    for task in Path(f"/proc/{pid}/task").glob("*/comm"):
        names.append(task.read_text().strip())
    return names.count("ktx-live")


def test_doctor_says_what_it_can(live, pair):
    said = live.doctor(pair[0])
    assert said["available"]
    assert {"whole-frame", "mapped", "train", "kernel-wait", "driver-stamp", "qdisc-bypass", "template", "poll"} <= set(said["features"])


@pytest.mark.parametrize("payload", [8, 28, 470, 1472])
def test_frames_arrive_whole_and_in_order(live, pair, payload):
    a, b = pair
    count = 5000
    listener = Listener(b)
    result = live.send(a, b, "--count", count, "--rate", "20k", "--payload", payload)
    assert result["sent"] == count
    assert result["departure_stamp"] == {"nic": 0, "driver": count, "queued": 0}
    arrived = listener.probes()
    assert arrived == [(payload, number) for number in range(arrived[0][1], arrived[0][1] + count)]


def test_as_fast_as_it_goes_each_one_is_accounted_for(live, pair):
    a, b = pair
    b.ip("link", "set", b.device, "mtu", "1500")
    before = b.counters()["rx"]
    result = live.send(a, b, "--count", 500_000, timeout=60)
    assert result["sent"] == 500_000
    rx = b.counters()["rx"]
    came = rx["packets"] - before["packets"] + rx["dropped"] - before["dropped"]
    assert 500_000 <= came <= 500_000 + 50


def test_trains_and_pairs(live, pair):
    for train in (2, 16, 100):
        result = live.send(*pair, "--count", train * 20, "--train", train, "--interval", "5ms")
        assert result["sent"] == train * 20
        assert result["departure_stamp"]["driver"] == train * 20


def test_a_pair_is_one_call_of_the_driver(live, pair, tmp_path):
    reports = tmp_path / "reports.csv"
    live.send(*pair, "--count", 400, "--train", 2, "--interval", "2ms", "--reports", reports)
    lines = [line.split(",") for line in reports.read_text().splitlines()]
    sent = lines[0].index("sent_ns")
    stamps = [int(line[sent]) for line in lines[1:]]
    same = sum(x == y for x, y in zip(stamps[::2], stamps[1::2], strict=True))
    # the first probes may leave before the call with the longer batch begins
    assert same >= 150


@pytest.mark.plain_build
def test_times_are_met(live, pair):
    """Only the quartiles, with wide limits, because of other load on the machine."""
    result = live.send(*pair, "--count", 2000, "--interval", "1ms")
    assert result["sent"] == 2000
    assert abs(result["lateness_us"]["p50"]) < 1000


def test_a_rate_past_what_calls_can_do(live, pair):
    """Half a million probes a second on time: the ring never becomes empty. One of three runs must succeed, because it needs both processors of a small machine."""
    seen = []
    for _ in range(3):
        result = live.send(*pair, "--count", 100_000, "--rate", "500k")
        assert result["sent"] == 100_000
        seen.append((abs(result["lateness_us"]["p50"]), result["duration_ns"]))
        if seen[-1][0] < 1000 and seen[-1][1] < 400_000_000:
            return
        time.sleep(1)
    # With the slots of the other engines this took 700 ms and more.
    assert min(duration for _, duration in seen) < 600_000_000, seen


def test_hand_over_leaves_no_hole(live, pair):
    """With few repeats a call, several calls alternate during the run; each probe is sent once, in order and on time."""
    a, b = pair
    listener = Listener(b)
    count = 10_000
    before = b.counters()["rx"]["packets"]
    done = a.run([str(contest.build() / "tests/system/live_calls"), a.device, b.address, str(count), "2000000"], check=False, timeout=60)
    assert done.stdout == f"{count}\n", done.stderr
    # A busy receiver may miss packets; the device's counter does not.
    numbers = [number for _, number in listener.probes()]
    assert all(x < y for x, y in itertools.pairwise(numbers))
    assert count <= b.counters()["rx"]["packets"] - before <= count + 50


@pytest.mark.plain_build
def test_idle_ends_the_polling(live, pair):
    """Between two probes 3 s apart the engine uses no processor."""
    a, b = pair
    child = a.popen(live.words(a, b.address, "--count", "2", "--interval", "4s", "--json"))
    flowing(a, 1)
    pid = child_of(child.pid)
    assert live_threads(pid) == 2

    def busy():
        return sum(
            int((task / "stat").read_text().rsplit(")", 1)[1].split()[12])
            for task in Path(f"/proc/{pid}/task").iterdir()
            if (task / "comm").read_text().strip() == "ktx-live"
        )

    # The next probe is due 4 s after the first one.
    end, ticks = time.monotonic() + 3, [busy()]
    while len(ticks) < 2 or ticks[-1] - ticks[-2] > 3:  # hundredths of a second
        assert time.monotonic() < end, ticks
        time.sleep(0.5)
        ticks.append(busy())
    out, _ = child.communicate(timeout=30)
    assert json.loads(out)["sent"] == 2


MEMBARRIER, GLOBAL = 324, 1  # waits for a grace period of RCU; x86-64's number


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of the system call is that of x86-64")
@pytest.mark.parametrize("how", [("--interval", "1ms"), ("--rate", "200k")])
def test_grace_periods_of_rcu_end_beside_it(live, pair, how):
    """The program repeats for minutes in one call: each batch must be a quiescent state."""
    a, b = pair
    child = a.popen(live.words(a, b.address, "--for", "60s", *how))
    flowing(a)
    libc, took = ctypes.CDLL(None, use_errno=True), []
    try:
        for _ in range(10):
            before = time.monotonic()
            assert libc.syscall(MEMBARRIER, GLOBAL, 0, 0) == 0, os.strerror(ctypes.get_errno())
            took.append(time.monotonic() - before)
        assert child.poll() is None
    finally:
        os.kill(child_of(child.pid), signal.SIGKILL)
        child.communicate(timeout=10)
    assert sorted(took)[5] < 0.2 and max(took) < 2, took


def device_changes(host, count=20):
    """A device that is taken down waits for an expedited grace period, with the lock of all devices (synchronize_net())."""
    took = {"up": [], "down": []}
    for _ in range(count):
        for state, times in took.items():
            before = time.monotonic()
            host.ip("link", "set", "other0", state)
            times.append(time.monotonic() - before)
    return sorted(took["down"]), sorted(took["up"])


@pytest.mark.plain_build  # the words of the test above
@pytest.mark.parametrize("how", [("--rate", "10k"), ("--rate", "200k")])
def test_expedited_grace_periods_end_beside_it(live, pair, how):
    """On a busy machine `ip` itself waits for a processor, some hundreds of milliseconds with two processors; the same when it sets the device up,
    without a grace period. A grace period that does not end takes minutes."""
    a, b = pair
    a.ip("link", "add", "other0", "type", "veth", "peer", "name", "other1")
    alone, _ = device_changes(a)
    child = a.popen(live.words(a, b.address, "--for", "60s", *how))
    flowing(a)
    try:
        beside, without = device_changes(a)
        assert child.poll() is None
    finally:
        os.kill(child_of(child.pid), signal.SIGKILL)
        child.communicate(timeout=10)
    print(
        f"{' '.join(how)}: a device goes down in {beside[10] * 1000:.1f} ms (p50), {beside[-1] * 1000:.1f} ms at most;"
        f" without the engine {alone[10] * 1000:.1f}, {alone[-1] * 1000:.1f} ms; without a grace period {without[10] * 1000:.1f}, {without[-1] * 1000:.1f} ms"
    )
    assert beside[10] < 0.2 + 2 * without[10] and beside[-1] < 8 + 2 * without[-1], (beside, without)


def child_of(pid):
    """The command itself behind `ip netns exec` (which execs: the same process)."""
    children = subprocess.run(["pgrep", "-P", str(pid)], check=False, capture_output=True, text=True).stdout.split()
    return int(children[0]) if children else pid


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_in_mid_run_nothing_stays(live, pair, how):
    a, b = pair
    before = programs()
    child = a.popen(live.words(a, b.address, "--for", "60s", "--interval", "1ms"))
    flowing(a)
    pid = child_of(child.pid)
    assert live_threads(pid) == 2
    made = begun_since(before)
    assert {"live_worker0", "live_worker1", "live_taken"} <= set(made.values())
    os.kill(pid, how)
    child.communicate(timeout=10)
    wait_until_gone(made)
    assert not Path(f"/proc/{pid}").exists()


def test_device_removed_in_mid_run(live, pair):
    a, b = pair
    child = a.popen(live.words(a, b.address, "--count", "30000", "--interval", "1ms", "--json"))
    flowing(a)
    a.ip("link", "del", a.device)
    out, _ = child.communicate(timeout=30)
    result = json.loads(out)
    closes(result)
    assert 0 < result["sent"] < 30000
    assert result["failed"] + result["cancelled"] == 30000 - result["sent"]


def test_device_down_in_mid_run(live, pair):
    a, b = pair
    child = a.popen(live.words(a, b.address, "--count", "30000", "--interval", "1ms", "--json"))
    flowing(a)
    a.ip("link", "set", a.device, "down")
    out, _ = child.communicate(timeout=30)
    result = json.loads(out)
    closes(result)
    assert 0 < result["sent"] < 30000


def test_a_peer_that_stops_polling_fails_each_probe(live, pair):
    """The driver refuses packets from then on; each loss is reported."""
    a, b = pair
    child = a.popen(live.words(a, b.address, "--for", "20s", "--interval", "1ms", "--jsonl"))
    flowing(a)
    gro(b, False)
    for _ in range(60):
        read_until(child, lambda one: one.get("status") == "failed")
    os.kill(child_of(child.pid), signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    result = json.loads(out.splitlines()[-1])
    closes(result)
    assert result["failed"] > 50
    assert 0 <= b.counters()["rx"]["packets"] - result["sent"] <= 50


def test_peer_that_does_not_poll_is_refused_in_one_line(live, pair, ktrxer_json):
    a, b = pair
    gro(b, False)
    line = live.refusal(a, "--count", "1")
    assert "ethtool -K PEER gro on" in line
    assert not live.doctor(a)["available"]
    # auto selects another engine
    result = ktrxer_json(a, "send", "--device", a.device, b.address, "--count", "1000", status=None)
    assert result["sent"] == 1000


def test_one_processor_is_refused(live, pair):
    assert "whole processor" in live.refusal(pair[0], "--count", "1", wrap=("taskset", "-c", "0"))


def pin(pid, processors):
    """Threads may begin and end meanwhile. A thread that begins has the processors of the thread that began it, so there is no other one
    once a walk has found none."""
    for _ in range(100):
        others = 0
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            with contextlib.suppress(ProcessLookupError):
                if os.sched_getaffinity(thread) != processors:
                    others += 1
                    os.sched_setaffinity(thread, processors)
        if not others:
            return
    raise AssertionError(f"process {pid} begins threads faster than they are pinned")


@pytest.mark.parametrize("how", [("--interval", "1ms"), ("--rate", "10k"), ()])
def test_one_processor_that_is_left_ends_the_run(live, pair, how):
    """Otherwise the polling thread takes all of the last processor from other tasks, for as long as the run lasts."""
    a, b = pair
    child = a.popen(live.words(a, b.address, "--for", "60s", *how, "--json"))
    flowing(a)
    pid = child_of(child.pid)
    pin(pid, {min(os.sched_getaffinity(0))})
    try:
        out, _ = child.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        os.kill(pid, signal.SIGKILL)
        child.communicate(timeout=10)
        raise
    result = json.loads(out)
    closes(result)
    assert result["sent"] > 0
    assert result["verdict"] != "valid"
    assert "sending ended early: the engine polls a whole processor, and only one is left" in [one["text"] for one in result["reasons"]]


def test_no_privilege_is_refused(live, pair):
    line = live.refusal(pair[0], "--count", "1", wrap=("setpriv", "--bounding-set=-all", "--inh-caps=-all"))
    assert "CAP_BPF" in line


def test_link_without_ethernet_is_refused(live, pair):
    a, _ = pair
    a.ip("tuntap", "add", "dev", "tun9", "mode", "tun")
    a.ip("link", "set", "tun9", "up")
    assert "no Ethernet header" in live.doctor(a, "tun9")["reason"]


def chosen(host, ktrxer, to, *options, wrap=()):
    told = host.run([*wrap, ktrxer, "send", "--device", host.device, to, *options], check=False).stdout.splitlines()
    return next(line for line in told if not line.startswith("note:"))


def test_auto_takes_it_for_rate_not_for_timing(pair, ktrxer, tmp_path):
    """The command sees a machine on which nothing else runs."""
    a, b = pair
    (tmp_path / "loadavg").write_text("0.20 0.18 0.12 1/80 11206\n")
    # `ip netns exec` has made a mount namespace of its own.
    idle = ["sh", "-c", 'mount --bind "$0" /proc/loadavg && exec "$@"', tmp_path / "loadavg"]
    for options in ([], ["--rate", "300k"]):
        said = chosen(a, ktrxer, b.address, "--count", "1000", *options, wrap=idle)
        assert "by live" in said and "whole processor" in said
    assert "by packet" in chosen(a, ktrxer, b.address, "--count", "10", "--interval", "1ms", wrap=idle)


def test_auto_leaves_a_busy_machine_alone(live, pair, ktrxer):
    """Without a free processor a polling engine would be the slowest: auto avoids it, and --engine still selects it."""
    a, b = pair
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        for loop in loops:
            has_run(loop.pid, 0.05)
        said = chosen(a, ktrxer, b.address, "--count", "1000")
        assert "by live" not in said and "live: it polls a whole processor, and all are busy now" in said
        assert live.send(a, b, "--count", 10)["sent"] == 10
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.parametrize("policy", ["catch-up", "skip", "shift"])
def test_late_policies_close_their_accounts(live, pair, policy):
    """The first call takes tens of milliseconds, so the first of immediate deadlines are always late."""
    result = live.send(*pair, "--count", 5000, "--rate", "100k", "--late", policy, "--flood")
    assert result["requested"] == 5000
    if policy == "skip":
        assert result["sent"] + result["skipped"] == 5000
    else:
        assert result["sent"] == 5000


def test_cancel_ends_at_once(live, pair):
    a, b = pair
    child = a.popen(live.words(a, b.address, "--for", "60s", "--interval", "10ms", "--json"))
    flowing(a, 20)
    os.kill(child_of(child.pid), signal.SIGINT)
    began = time.monotonic()
    out, _ = child.communicate(timeout=10)
    assert time.monotonic() - began < 3
    result = json.loads(out)
    closes(result)
    assert result["cancelled"] > 0 or result["sent"] == result["requested"]
