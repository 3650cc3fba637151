# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer ppt direct` between two hosts: its layers, messages for missing stamps, refused options; and `stamp --host-delay`,
which subtracts these times.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves; a veth pair stamps at the packet scheduler and in the driver
   fd00:77::1                    fd00:77::2
"""

import json
import signal
import time

import pytest
from clients import client
from recorded import wrong
from shims import shim
from stamps import parse


def slow_device(host, device, kbit, limit):
    """A device that takes longer for a probe than the probe interval: each probe waits in its queue, without other traffic."""
    host.run(["tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{kbit}kbit", "burst", "200", "limit", str(limit)])


@pytest.fixture
def direct(ktrxer):
    return client(ktrxer, "ppt", "direct")


KNOWN = (("here", "sending", "user_to_sched_us"), ("here", "sending", "sched_to_driver_us"), ("here", "receiving", "kernel_to_user_us"),
         ("far", "receiving", "kernel_to_user_us"), ("far", "sending", "user_to_driver_us"))
NIC = (("here", "sending", "driver_to_nic_us"), ("here", "receiving", "nic_to_kernel_us"))


def layer(phase, names):
    for name in names:
        phase = phase[name]
    return phase


@pytest.mark.parametrize("address", ["address", "address6"])
def test_each_layer_in_both_phases(shared_pair, direct, serve, address):
    a, b = shared_pair
    serve(b)
    done = direct(a, getattr(b, address), "--count", 40, "--interval", "2ms", "--busy-threads", 2, "--jsonl")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong(objects)
    end = objects[-1]
    assert end["stamps"] == {"sched": True, "driver": True, "nic_sent": False, "nic_received": False, "far_driver": True}, end
    assert [(phase["name"], phase["busy_threads"]) for phase in end["phases"]] == [("idle", 0), ("busy", 2)]
    for phase in end["phases"]:
        assert phase["sent"] == 40 == phase["answered"] + phase["lost"]
        assert phase["failed"] == phase["contradicted"] == phase["foreign"] == 0
        for names in KNOWN:
            assert 0 < layer(phase, names)["min"] <= layer(phase, names)["p50"] <= layer(phase, names)["max"] < 1e6, (names, phase)
        for names in NIC:
            assert layer(phase, names)["p50"] is None
    assert done.returncode == (0 if end["verdict"] == "valid" else 3)


@pytest.mark.plain_build
def test_a_queue_is_in_the_layer_behind_the_packet_scheduler(pair, direct, serve):
    """tbf delays packets between two stamps of this host: only the layer between them grows by that much."""
    a, b = pair
    serve(b)
    slow_device(a, "a0", 8, 10_000)  # 106 bytes take 106 ms, less the time by which this host sends late
    end = json.loads(direct(a, b.address, "--count", 20, "--interval", "1ms", "--busy-threads", 0, "--json").stdout)
    (phase,) = end["phases"]
    queue = phase["here"]["sending"]["sched_to_driver_us"]["p50"] / 1000
    assert 20 < queue < 150, phase
    for names in KNOWN:
        assert names[2] == "sched_to_driver_us" or layer(phase, names)["p50"] / 1000 < queue / 2, (names, phase)


def test_text_names_what_is_not_known(shared_pair, direct, serve):
    a, b = shared_pair
    serve(b, "--stateless")
    out = direct(a, b.address, "--count", 10, "--interval", "1ms", "--busy-threads", 0).stdout
    assert "idle: this host, sending: driver to NIC: not known: the device has no stamps of a NIC" in out
    assert "idle: this host, receiving: NIC to kernel: not known: the device has no stamps of a NIC" in out
    assert "idle: far host, sending: program to driver: not known: the far host reports no stamps of its driver" in out
    assert "far host, receiving: kernel to program: min" in out and "busy:" not in out and "verdict: " in out


def test_what_is_refused(shared_pair, direct, serve):
    a, b = shared_pair
    assert "nothing listens on UDP port 8620" in direct(a, b.address, "--count", 5, status=1).stderr
    for options, reason in (
        (("--count", 0), "--count"),
        (("--interval", "0"), "--interval"),
        (("--interval", "-5ms"), "--interval"),
        (("--payload", 63), "--payload"),
        (("--payload", 1473), "a payload of 1473 bytes does not fit the MTU of 1500 on 'a0': give 1472 at most"),
        (("--busy-threads", -2), "--busy-threads"),
        (("--busy-threads", 100_000), "--busy-threads"),
        (("-4", "-6"), "exclude each other"),
        (("--from", "fd00:77::1"), "not of the same family"),
    ):
        assert reason in direct(a, b.address, *options).stderr, options
    serve(b)
    for payload in (64, 65, 67, 68, 1472):  # a padding TLV needs four bytes
        options = ("--count", 3, "--interval", "1ms", "--busy-threads", 0, "--payload", payload, "--json")
        end = json.loads(direct(a, b.address, *options).stdout)
        assert end["phases"][0]["answered"] == 3, (payload, end)


def test_one_probe(shared_pair, direct, serve):
    a, b = shared_pair
    serve(b)
    end = json.loads(direct(a, b.address, "--count", 1, "--busy-threads", 0, "--json").stdout)
    assert end["phases"][0]["sent"] == 1 and end["phases"][0]["here"]["receiving"]["kernel_to_user_us"]["p50"] > 0


# Answers like a reflector, but with one byte of the sequence number changed (strange), or not at all.
PEER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", 8700)); print("ready", flush=True)
while True:
    data, peer = s.recvfrom(2000)
    if sys.argv[1] == "strange": s.sendto(bytes(24) + b"\\xff" * 16 + data[40:], peer)
    if sys.argv[1] == "short": s.sendto(b"x", peer)
"""


@pytest.mark.parametrize("kind", ["strange", "short", "silent"])
def test_answers_that_are_none(shared_pair, direct, kind):
    a, b = shared_pair
    with b.popen(["python3", "-c", PEER, kind]) as peer:
        try:
            assert peer.stdout.readline() == "ready\n"
            options = ("--port", 8700, "--count", 3, "--interval", "1ms", "--timeout", "20ms", "--busy-threads", 0, "--json")
            done = direct(a, b.address, *options, status=1)
        finally:
            peer.kill()
    end = json.loads(done.stdout)
    (phase,) = end["phases"]
    assert end["verdict"] == "invalid" and "no answer to 3 probes to UDP port 8700" in end["reasons"][0]["text"], end
    assert phase["lost"] == 3 and phase["foreign"] >= (3 if kind != "silent" else 0)


def test_probes_that_are_lost(pair, direct, serve):
    a, b = pair
    serve(b)
    a.run(["nft", "add", "table", "inet", "loss"])
    a.run(["nft", "add", "chain", "inet", "loss", "in", "{ type filter hook input priority 0; policy accept; }"])
    a.run(["nft", "add", "rule", "inet", "loss", "in", "udp", "sport", "8620", "numgen", "inc", "mod", "3", "==", "1", "drop"])
    options = ("--count", 60, "--interval", "1ms", "--timeout", "30ms", "--busy-threads", 0, "--json")
    end = json.loads(direct(a, b.address, *options, status=3).stdout)
    (phase,) = end["phases"]
    assert 18 <= phase["lost"] <= 22 and phase["answered"] + phase["lost"] == 60 and phase["contradicted"] == 0, phase
    assert any("probes were lost" in reason["text"] for reason in end["reasons"])


def test_it_is_stopped(pair, ktrxer, serve):
    a, b = pair
    serve(b)
    child = a.popen([ktrxer, "ppt", "direct", b.address, "--count", 100_000, "--jsonl"])
    assert json.loads(child.stdout.readline())["type"] == "start"
    child.send_signal(signal.SIGINT)
    end = json.loads(child.communicate(timeout=20)[0].splitlines()[-1])
    assert len(end["phases"]) == 1 and any("it was stopped after" in reason["text"] for reason in end["reasons"]), end
    # Without an answer it has no result.
    b.run(["nft", "add", "table", "inet", "silent"])
    b.run(["nft", "add", "chain", "inet", "silent", "in", "{ type filter hook input priority 0; }"])
    b.run(["nft", "add", "rule", "inet", "silent", "in", "udp", "dport", "8620", "drop"])
    child = a.popen([ktrxer, "ppt", "direct", b.address, "--count", 100_000, "--jsonl"])
    child.stdout.readline()
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    end = json.loads(child.communicate(timeout=20)[0].splitlines()[-1])
    assert end["phases"][0]["answered"] == 0 and end["verdict"] == "invalid", end


def test_the_clock_is_stepped(pair, ktrxer, serve):
    """Each probe waits most of its time in the queue, so the steps, forward and back, come between two stamps of a probe."""
    a, b = pair
    serve(b)
    slow_device(a, "a0", 32, 10_000)
    # The shim counts from the start of the program, which a busy machine delays: the first probe may leave after both steps.
    for after_ms in (700, 1500, 3000):
        stepped = ["env", f"LD_PRELOAD={shim(ktrxer)}", f"CLOCK_SHIM_STEP_NS={3600 * 10**9}", f"CLOCK_SHIM_AFTER_MS={after_ms}", "CLOCK_SHIM_BACK_MS=500"]
        words = [*stepped, ktrxer, "ppt", "direct", b.address, "--count", "60", "--interval", "1ms", "--busy-threads", "0", "--json"]
        done = a.run(words, check=False, timeout=60)
        end = json.loads(done.stdout)
        (phase,) = end["phases"]
        if phase["contradicted"]:
            break
    assert phase["contradicted"] > 0 and any("the clock of a host was stepped" in reason["text"] for reason in end["reasons"]), end
    for names in KNOWN:
        assert not layer(phase, names)["max"] or layer(phase, names)["max"] < 1e6, phase


# ---------------------------------------------------------------------------------------------------------------- stamp --host-delay


def test_host_delay_subtracts_what_both_hosts_have_measured(shared_pair, ktrxer, serve):
    a, b = shared_pair
    serve(b)
    end, kinds = parse(a.run([ktrxer, "stamp", b.address, "-c", "60", "-i", "5ms", "--host-delay", "--jsonl"], check=False).stdout)
    assert len(kinds["round_trip"]) == 60 - end["host_delay"]["left_out"] - end["untimed"] >= 50
    for one in kinds["round_trip"]:
        raw = one["received_ns"] - one["sent_ns"] - one["dwell_ns"]
        assert one["rtt_ns"] == raw - one["own_queue_ns"] - one["far_queue_ns"], one
    assert end["host_delay"]["residual_max_us"] == end["rtt_us"]["min"]


@pytest.mark.plain_build
@pytest.mark.parametrize("far", [False, True])
def test_host_delay_takes_the_queue_of_either_host_out(pair, ktrxer, serve, far):
    """The link has no delay: the remaining time is far less than the queue's."""
    a, b = pair
    serve(b)
    slow_device(*((b, "b0") if far else (a, "a0")), 90, 1300)  # 126 bytes each 10 ms are 100.8 kbit/s: ten of them wait, 112 ms
    done = a.run([ktrxer, "stamp", b.address, "-i", "10ms", "-c", "200", "--host-delay", "--json"], check=False, timeout=60)
    end = json.loads(done.stdout)
    assert end["far_queue_us" if far else "own_queue_us"]["p50"] / 1000 > 40, end["own_queue_us"]
    assert end["rtt_us"]["p50"] / 1000 < 10, end["rtt_us"]


def test_host_delay_without_the_far_hosts_stamps(shared_pair, ktrxer, serve):
    a, b = shared_pair
    serve(b, "--stateless")
    done = a.run([ktrxer, "stamp", b.address, "-c", "10", "-i", "5ms", "--host-delay", "--json"], check=False)
    end = json.loads(done.stdout)
    assert end["verdict"] == "invalid" and any("reports no driver stamps" in reason["text"] for reason in end["reasons"]), end
    assert end["host_delay"] == {"left_out": 10, "residual_max_us": None} and end["rtt_us"]["p50"] is None
    refused = a.run([ktrxer, "stamp", b.address, "-c", "1", "--host-delay", "--no-follow-up"], check=False)
    assert refused.returncode == 2 and "not with --no-follow-up" in refused.stderr
