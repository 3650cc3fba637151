# SPDX-License-Identifier: MIT OR Apache-2.0
"""The live engine on veth: what it sends arrives, each probe ends and says how, and nothing of it stays behind.

a0 10.77.0.1 ---- b0 10.77.0.2
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Prints the numbers that the probes carry, in the order of arrival, until none comes for a second.
LISTEN = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
s.bind((sys.argv[1], 9))
print("ready", flush=True)
s.settimeout(10)
try:
    while True:
        data = s.recv(65536)
        assert not any(data[8:]), "the rest of the payload is zero"
        print(len(data), struct.unpack_from("!Q", data)[0])
        s.settimeout(1)
except TimeoutError:
    pass
"""


def gro(host, on):
    host.run(["ethtool", "-K", host.device, "gro", "on" if on else "off"])


@pytest.fixture(autouse=True)
def live(requires_real_root, pair, ktrxer_json):
    """Skips, with the engine's own reason, where kernel, build or machine have no such thing."""
    gro(pair[1], True)
    engine = engine_of(ktrxer_json, pair[0])
    if not engine["available"] and re.search("built without|Linux 5.18|one for all|CONFIG_BPF", engine["reason"]):
        pytest.skip(engine["reason"])
    return engine


def engine_of(ktrxer_json, host, device=None):
    engines = ktrxer_json(host, "doctor", "--device", device or host.device, status=None)["engines"]
    return next(engine for engine in engines if engine["name"] == "live")


def send(ktrxer_json, a, b, *options, **more):
    more = {"status": None, **more}
    result = ktrxer_json(a, "send", "--engine", "live", "--device", a.device, "--to", b.address, *map(str, options), **more)
    closes(result)
    return result


def closes(result):
    assert result["sent"] + result["failed"] + result["skipped"] + result["cancelled"] == result["requested"]
    assert sum(result["proof"].values()) == result["sent"]


def refusal(ktrxer, host, *options, wrap=()):
    command = [*wrap, ktrxer, "send", "--engine", "live", "--device", host.device, "--to", "10.77.0.2", *map(str, options)]
    done = host.run(command, check=False)
    assert done.returncode != 0
    return next(line for line in done.stderr.splitlines() if line.startswith("ktrxer send:"))


def programs():
    """Ids of our programs in the kernel, by walking them (bpf(BPF_PROG_GET_NEXT_ID) through the process's own fdinfo is not enough)."""
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
        "    if not libc.syscall(321, 15, ask, 16): n.append(info.raw[64:80].split(b'\\0')[0].decode())\n"
        "    libc.close(fd)\n"
        "print(*[name for name in n if name.startswith('live_')])\n"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def gone_within(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not programs():
            return True
        time.sleep(0.05)
    return False


def live_threads(pid):
    names = []
    for task in Path(f"/proc/{pid}/task").glob("*/comm"):
        names.append(task.read_text().strip())
    return names.count("ktx-live")


def test_doctor_says_what_it_can(live):
    assert live["available"]
    assert {"whole-frame", "mapped", "train", "kernel-wait", "driver-stamp", "qdisc-bypass"} <= set(live["features"])


@pytest.mark.parametrize("payload", [8, 28, 470, 1472])
def test_frames_arrive_whole_and_in_order(pair, ktrxer_json, payload):
    a, b = pair
    count = 5000
    listener = b.popen([sys.executable, "-c", LISTEN, b.address])
    assert listener.stdout.readline() == "ready\n"
    result = send(ktrxer_json, a, b, "--count", count, "--rate", "20k", "--payload", payload)
    assert result["sent"] == count
    assert result["proof"] == {"wire": 0, "driver": count, "queued": 0}
    out, errors = listener.communicate(timeout=30)
    assert not errors
    arrived = [tuple(map(int, line.split())) for line in out.splitlines()]
    assert arrived == [(payload, number) for number in range(arrived[0][1], arrived[0][1] + count)]


def test_as_fast_as_it_goes_each_one_is_accounted_for(pair, ktrxer_json):
    a, b = pair
    b.ip("link", "set", b.device, "mtu", "1500")
    before = b.counters()["rx"]
    result = send(ktrxer_json, a, b, "--count", 500_000, timeout=60)
    assert result["sent"] == 500_000
    rx = b.counters()["rx"]
    came = rx["packets"] - before["packets"] + rx["dropped"] - before["dropped"]
    assert 500_000 <= came <= 500_000 + 50


def test_trains_and_pairs(pair, ktrxer_json):
    for train in (2, 16, 100):
        result = send(ktrxer_json, *pair, "--count", train * 20, "--train", train, "--interval", "5ms")
        assert result["sent"] == train * 20
        assert result["proof"]["driver"] == train * 20


def test_a_pair_is_one_call_of_the_driver(pair, ktrxer_json, tmp_path):
    reports = tmp_path / "reports.csv"
    send(ktrxer_json, *pair, "--count", 400, "--train", 2, "--interval", "2ms", "--reports", reports)
    lines = [line.split(",") for line in reports.read_text().splitlines()]
    sent = lines[0].index("sent_ns")
    stamps = [int(line[sent]) for line in lines[1:]]
    same = sum(x == y for x, y in zip(stamps[::2], stamps[1::2], strict=True))
    # the first ones may leave before the call with the longer batch has taken over
    assert same >= 150


def test_times_are_met(pair, ktrxer_json):
    """On a machine that others use, too: the middle half, and only roughly."""
    result = send(ktrxer_json, *pair, "--count", 2000, "--interval", "1ms")
    assert result["sent"] == 2000
    assert abs(result["lateness_us"]["median"]) < 1000


def test_hand_over_leaves_no_hole(pair, ktrxer, ktrxer_json, tmp_path):
    """With few repeats a call, several calls take turns within the run; each probe is sent once, in order, and none waits for a call."""
    a, b = pair
    listener = b.popen([sys.executable, "-c", LISTEN, b.address])
    assert listener.stdout.readline() == "ready\n"
    count = 40_000
    before = b.counters()["rx"]["packets"]
    command = ["env", "KTRXER_LIVE_REPEAT=8000000", ktrxer, "send", "--engine", "live", "--device", a.device, "--to", b.address]
    done = a.run([*command, "--count", str(count), "--rate", "10k", "--json"], check=False, timeout=60)
    result = json.loads(done.stdout)
    closes(result)
    assert result["sent"] == count
    out, _ = listener.communicate(timeout=60)
    # A busy listener may miss some, the device does not.
    numbers = [int(line.split()[1]) for line in out.splitlines()]
    assert all(x < y for x, y in zip(numbers, numbers[1:], strict=False))
    assert count <= b.counters()["rx"]["packets"] - before <= count + 50


def test_idle_ends_the_polling(pair, ktrxer, ktrxer_json):
    """Two probes 3 s apart: in between no processor is taken."""
    a, b = pair
    child = a.popen([ktrxer, "send", "--engine", "live", "--device", a.device, "--to", b.address, "--count", "2", "--interval", "4s", "--json"])
    time.sleep(2)
    pid = child_of(child.pid)
    assert live_threads(pid) == 2

    def busy():
        return sum(
            int((task / "stat").read_text().rsplit(")", 1)[1].split()[12])
            for task in Path(f"/proc/{pid}/task").iterdir()
            if (task / "comm").read_text().strip() == "ktx-live"
        )

    before = busy()
    time.sleep(1)
    assert busy() - before <= 5  # hundredths of a second
    out, _ = child.communicate(timeout=30)
    assert json.loads(out)["sent"] == 2


def child_of(pid):
    """The command itself behind `ip netns exec` (which execs: the same process)."""
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return int(children[0]) if children else pid


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_in_mid_run_nothing_stays(pair, ktrxer, how):
    a, b = pair
    if not gone_within(5):  # those of `doctor` are freed a moment later
        pytest.skip("another live engine runs on this machine")
    child = a.popen([ktrxer, "send", "--engine", "live", "--device", a.device, "--to", b.address, "--for", "60s", "--interval", "1ms"])
    time.sleep(1.5)
    pid = child_of(child.pid)
    assert live_threads(pid) == 2
    assert {"live_lane0", "live_lane1", "live_taken"} <= set(programs())
    os.kill(pid, how)
    child.communicate(timeout=10)
    assert gone_within(5)
    assert not Path(f"/proc/{pid}").exists()


def test_device_removed_in_mid_run(pair, ktrxer):
    a, b = pair
    child = a.popen(
        [ktrxer, "send", "--engine", "live", "--device", a.device, "--to", b.address, "--count", "3000", "--interval", "1ms", "--json"]
    )
    time.sleep(1.2)
    a.ip("link", "del", a.device)
    out, _ = child.communicate(timeout=30)
    result = json.loads(out)
    closes(result)
    assert 0 < result["sent"] < 3000
    assert result["failed"] + result["cancelled"] == 3000 - result["sent"]


def test_device_down_in_mid_run(pair, ktrxer):
    a, b = pair
    child = a.popen(
        [ktrxer, "send", "--engine", "live", "--device", a.device, "--to", b.address, "--count", "3000", "--interval", "1ms", "--json"]
    )
    time.sleep(1.2)
    a.ip("link", "set", a.device, "down")
    out, _ = child.communicate(timeout=30)
    result = json.loads(out)
    closes(result)
    assert 0 < result["sent"] < 3000


def test_a_peer_that_stops_polling_fails_each_probe(pair, ktrxer):
    """Its driver refuses from then on; nothing is lost in silence."""
    a, b = pair
    child = a.popen(
        [ktrxer, "send", "--engine", "live", "--device", a.device, "--to", b.address, "--count", "3000", "--interval", "1ms", "--json"]
    )
    time.sleep(1.2)
    gro(b, False)
    out, _ = child.communicate(timeout=30)
    result = json.loads(out)
    closes(result)
    assert result["sent"] < 3000 and result["failed"] > 50


def test_peer_that_does_not_poll_is_refused_in_one_line(pair, ktrxer, ktrxer_json):
    a, b = pair
    gro(b, False)
    line = refusal(ktrxer, a, "--count", "1")
    assert "ethtool -K PEER gro on" in line
    assert not engine_of(ktrxer_json, a)["available"]
    # auto takes another one
    result = ktrxer_json(a, "send", "--device", a.device, "--to", b.address, "--count", "1000", status=None)
    assert result["sent"] == 1000


def test_one_processor_is_refused(pair, ktrxer):
    assert "whole processor" in refusal(ktrxer, pair[0], "--count", "1", wrap=["taskset", "-c", "0"])


def test_no_privilege_is_refused(pair, ktrxer):
    line = refusal(ktrxer, pair[0], "--count", "1", wrap=["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
    assert "CAP_BPF" in line


def test_link_without_ethernet_is_refused(pair, ktrxer_json):
    a, _ = pair
    a.ip("tuntap", "add", "dev", "tun9", "mode", "tun")
    a.ip("link", "set", "tun9", "up")
    assert "no Ethernet header" in engine_of(ktrxer_json, a, "tun9")["reason"]


def test_auto_takes_it_for_rate_not_for_timing(pair, ktrxer):
    a, b = pair
    said = a.run([ktrxer, "send", "--device", a.device, "--to", b.address, "--count", "1000"], check=False).stdout
    assert "by live" in said and "whole processor" in said
    said = a.run([ktrxer, "send", "--device", a.device, "--to", b.address, "--count", "10", "--interval", "1ms"], check=False).stdout
    assert "by packet" in said


@pytest.mark.parametrize("policy", ["catch-up", "skip", "shift"])
def test_late_policies_close_their_accounts(pair, ktrxer_json, policy):
    """The first call needs tens of milliseconds: with deadlines at once the first ones are late for certain."""
    result = send(ktrxer_json, *pair, "--count", 5000, "--rate", "100k", "--late", policy, "--flood")
    assert result["requested"] == 5000
    if policy == "skip":
        assert result["sent"] + result["skipped"] == 5000
    else:
        assert result["sent"] == 5000


def test_cancel_ends_at_once(pair, ktrxer):
    a, b = pair
    child = a.popen([ktrxer, "send", "--engine", "live", "--device", a.device, "--to", b.address, "--for", "60s", "--interval", "10ms", "--json"])
    time.sleep(1.5)
    os.kill(child_of(child.pid), signal.SIGINT)
    began = time.monotonic()
    out, _ = child.communicate(timeout=10)
    assert time.monotonic() - began < 3
    result = json.loads(out)
    closes(result)
    assert result["cancelled"] > 0 or result["sent"] == result["requested"]
