# SPDX-License-Identifier: MIT OR Apache-2.0
"""The xsk engine on veth (copy mode): its packets arrive, its reports are correct, and each fault gives one line with a remedy.

a0 10.77.0.1 ---- b0 10.77.0.2
"""

import json
import time

import pytest
from far_end import Engine, Listener, closes, flowing


@pytest.fixture(autouse=True)
def xsk(requires_real_root, pair, ktrxer, ktrxer_json):
    """The engine. The test is skipped with the engine's own reason if there is no AF_XDP."""
    engine = Engine("xsk", ktrxer, ktrxer_json)
    said = engine.doctor(pair[0])
    if not said["available"] and ("CONFIG_XDP_SOCKETS" in said["reason"] or "if_xdp.h" in said["reason"]):
        pytest.skip(said["reason"])
    return engine


def test_doctor_says_what_it_can(xsk, pair):
    said = xsk.doctor(pair[0])
    assert said["available"]
    assert {"whole-frame", "mapped", "train", "qdisc-bypass"} <= set(said["features"])
    # veth has no zero copy, and a completion is not a time stamp
    assert not {"zero-copy", "driver-stamp", "nic-stamp"} & set(said["features"])


@pytest.mark.parametrize("payload", [8, 28, 470, 1472])
def test_frames_arrive_whole_and_in_order(xsk, pair, payload):
    a, b = pair
    count = 5000  # several times round the ring
    listener = Listener(b)
    result = xsk.send(a, b, "--count", count, "--rate", "20k", "--payload", payload)
    closes(result)
    assert result["sent"] == count
    assert result["departure_stamp"] == {"nic": 0, "driver": 0, "queued": count}
    arrived = listener.probes()
    assert arrived == [(payload, number) for number in range(arrived[0][1], arrived[0][1] + count)]


def test_as_fast_as_it_goes_nothing_is_lost_or_doubled(xsk, pair):
    a, b = pair
    before = b.counters()["rx"]["packets"]
    result = xsk.send(a, b, "--count", 300_000, timeout=60)
    closes(result)
    assert result["sent"] == 300_000
    # veth counts packets that it drops at a full receive queue
    rx = b.counters()["rx"]
    assert 300_000 <= rx["packets"] - before + rx["dropped"] + a.counters()["tx"]["dropped"] <= 300_000 + 50


def test_trains_leave_in_one_piece(xsk, pair):
    result = xsk.send(*pair, "--count", 320, "--train", 32, "--interval", "5ms")
    closes(result)
    assert result["sent"] == 320


def test_no_program_is_attached(xsk, pair):
    a, b = pair
    child = a.popen(xsk.words(a, b.address, "--for", "20s", "--interval", "10ms"))
    flowing(a, 10)
    assert child.poll() is None
    assert "xdp" not in a.ip_json("-d", "link", "show", "dev", a.device)[0]
    child.kill()


def test_another_socket_on_the_queue(xsk, pair):
    a, b = pair
    child = a.popen(xsk.words(a, b.address, "--for", "20s", "--interval", "10ms"))
    flowing(a, 10)
    line = xsk.refusal(a, "--count", 1)
    assert "queue 0 of 'a0' belongs to another AF_XDP socket" in line
    assert "packet engine" in line
    child.terminate()
    child.communicate(timeout=10)
    # the kernel frees the queue by deferred work; the next socket must not fail because of that
    assert xsk.send(a, b, "--count", 10, "--interval", "1ms")["sent"] == 10


@pytest.mark.parametrize(
    ("fault", "words"),
    # a device goes down before it is removed, so a probe may get either error
    [(("link", "set", "a0", "down"), ["went down"]), (("link", "del", "a0"), ["is gone", "went down"])],
    ids=["down", "removed"],
)
@pytest.mark.parametrize("rate", ["1k", "100k"])
def test_the_device_goes_in_mid_run(xsk, pair, fault, words, rate):
    a, b = pair
    child = a.popen(xsk.words(a, b.address, "--for", "4s", "--rate", rate, "--json"))
    flowing(a)
    a.ip(*fault)
    begin = time.monotonic()
    out, _ = child.communicate(timeout=15)
    assert time.monotonic() - begin < 2
    assert child.returncode == 3
    result = json.loads(out)
    closes(result)
    assert result["sent"] > 100
    assert any(word in reason["text"] for reason in result["reasons"] for word in words)


def test_without_carrier_the_schedule_still_ends(xsk, pair):
    a, b = pair
    child = a.popen(xsk.words(a, b.address, "--for", "2s", "--rate", "20k", "--json"))
    flowing(a)
    b.ip("link", "set", b.device, "down")
    out, _ = child.communicate(timeout=20)
    result = json.loads(out)
    closes(result)
    assert result["requested"] == 40_000
    assert 0 < result["failed"] < 40_000
    # besides only a few packets of the kernel arrived (ARP, group membership reports)
    assert 0 <= b.counters()["rx"]["packets"] - result["sent"] <= 20


def test_a_carrier_that_comes_and_goes(xsk, pair):
    """Also in the middle of a batch: the packets that the kernel accepted are completed."""
    a, b = pair
    words = xsk.words(a, b.address, "--for", "4s", "--json")
    child = a.popen(words)
    flowing(a)
    for _ in range(100):
        b.ip("link", "set", b.device, "down")
        b.ip("link", "set", b.device, "up")
        time.sleep(0.01)
    output, _ = child.communicate(timeout=20)
    closes(json.loads(output))


def test_missing_privileges_are_named(xsk, pair, ktrxer):
    a, b = pair
    target = ("--count", 1)
    assert "CAP_NET_RAW" in xsk.refusal(a, *target, wrap=("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"))
    line = xsk.refusal(
        a, *target, wrap=("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", "prlimit", "--memlock=0")
    )
    assert "ulimit -l" in line
    assert "CAP_IPC_LOCK" in line
    # it needs no CAP_NET_ADMIN
    a.run(
        ["setpriv", "--bounding-set=-net_admin,-bpf", "--inh-caps=-net_admin,-bpf", ktrxer, "send", "--engine", "xsk"]
        + ["--device", a.device, b.address, "--count", "1"]
    )


def test_auto_takes_the_next_engine_when_memory_may_not_be_locked(pair, ktrxer):
    a, b = pair
    done = a.run(
        ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", "prlimit", "--memlock=4000000", ktrxer, "send"]
        + ["--device", a.device, b.address, "--count", "2000", "--rate", "200k", "--json"],
        check=False,
    )
    result = json.loads(done.stdout)
    assert result["engine"] == "packet"
    assert "ulimit -l" in result["engine_reason"]
    assert result["sent"] == 2000


def test_auto_takes_it_for_rate_and_not_for_timing(pair, ktrxer_json):
    a, b = pair
    options = ("--device", a.device, b.address, "--count", "1000")
    assert ktrxer_json(a, "send", *options, status=None)["engine"] == "xsk"
    assert ktrxer_json(a, "send", *options, "--interval", "1ms", status=None)["engine"] == "packet"


def test_frames_longer_than_a_chunk(xsk, pair):
    a, b = pair
    for host in pair:
        host.ip("link", "set", host.device, "mtu", "9000")
    line = xsk.refusal(a, "--payload", 8000, "--count", 1)
    assert "8042" in line or "8062" in line
    assert "packet engine" in line
    # shorter frames can be sent, in chunks of the larger size, too
    for payload in (28, 1400, 3900):
        assert xsk.send(a, b, "--payload", payload, "--count", 100, "--interval", "100us")["sent"] == 100


def test_a_device_without_ethernet_header(xsk, pair):
    a, _ = pair
    try:
        a.run(["ip", "tuntap", "add", "t0", "mode", "tun"])
    except RuntimeError as error:
        pytest.skip(f"no tun device: {error}")
    a.ip("link", "set", "t0", "up")
    engine = xsk.doctor(a, "t0")
    assert not engine["available"]
    assert "'t0' has no Ethernet header" in engine["reason"]
