# SPDX-License-Identifier: MIT OR Apache-2.0
"""Templates and threads on veth: the same bytes by every engine, and each number exactly once.

a0 10.77.0.1 ---- b0 10.77.0.2
"""

import json
import re

import pytest
from far_end import Capture, Engine, Listener, gro
from noise import least

LIVE = "live"


@pytest.fixture(params=[LIVE, "packet", "xsk"])
def engine(request, requires_real_root, pair, ktrxer, ktrxer_json):
    gro(pair[1], True)
    return ready(Engine(request.param, ktrxer, ktrxer_json), pair[0])


@pytest.fixture
def live(requires_real_root, pair, ktrxer, ktrxer_json):
    gro(pair[1], True)
    return ready(Engine(LIVE, ktrxer, ktrxer_json), pair[0])


def ready(engine, host):
    said = engine.doctor(host)
    if not said["available"]:
        if not re.search("built without|Linux 5|one for all|CONFIG_", said["reason"]):
            pytest.fail(said["reason"])
        pytest.skip(said["reason"])
    return engine


def wire(engine, a, b, count, payload, *options, head=42):
    """The received frames, by number."""
    capture = Capture(b, a, payload + head)
    result = engine.send(a, b, "--count", count, "--payload", payload, "--from-port", 4000, *options)
    assert result["sent"] == count
    frames = capture.frames()
    at = head
    return sorted(frames, key=lambda frame: frame[at : at + 8])


FIELDS = {
    "none": [],
    "ports": ["--vary", "src-port=random:1024-65535", "--vary", "dst-port=counter:1000-2000/7"],
    "addresses": ["--vary", "src=random:10.9.0.0/16@5", "--vary", "dst=counter:10.77.0.2-10.77.0.9*3"],
    "header": ["--vary", "ip-id=counter", "--vary", "ttl=counter:1-64", "--vary", "tos=table:0,32,184"],
    "payload": ["--vary", "payload+9.4=random:5-100000", "--vary", "payload+15.1=counter", "--vary", "payload+8.1=table:9,8,7"],
    "combined": ["--combine", "--vary", "dst-port=random:1000-1010", "--vary", "dst=table:10.77.0.2,10.77.0.3,10.77.0.7"],
    "large order": ["--vary", "payload+8.8=random:0-0xffffffffffff@9", "--vary", "payload+16.4=random:3-4000000000/3"],
}


@pytest.mark.parametrize(
    ("fields", "payload"),
    [
        ("none", 8),
        ("ports", 24),
        ("ports", 500),
        ("addresses", 9),
        ("header", 24),
        ("payload", 24),
        ("payload", 87),
        ("combined", 10),
        ("large order", 31),
        ("large order", 1472),
    ],
)
def test_live_and_packet_send_the_same_bytes(live, pair, ktrxer, ktrxer_json, fields, payload):
    """In the kernel and in user space, field by field and checksum by checksum; the unit test finds a checksum that is wrong in both."""
    packet = Engine("packet", ktrxer, ktrxer_json)
    count = 2500
    by_kernel = wire(live, *pair, count, payload, *FIELDS[fields])
    assert len(by_kernel) == count
    assert by_kernel == wire(packet, *pair, count, payload, *FIELDS[fields])


def test_ipv6_too(live, pair, ktrxer, ktrxer_json):
    a, b = pair
    packet = Engine("packet", ktrxer, ktrxer_json)
    fields = ["--vary", "flow-label=counter:0xffff0", "--vary", "src=random:fd00:77::/64*2", "--vary", "ttl=counter:9-11"]
    fields[3] = "src=random:fd00:77::1-fd00:77::ffff:ffff*2"
    fields += ["--vary", "dst=table:fd00:77::2,fd00:88::5"]
    b_six = type(b)(**{**b.__dict__, "address": b.address6})
    by_kernel = wire(live, a, b_six, 2000, 21, *fields, head=62)
    assert len(by_kernel) == 2000
    assert by_kernel == wire(packet, a, b_six, 2000, 21, *fields, head=62)


def test_the_host_s_own_stack_takes_them(live, pair):
    """The receiving kernel drops packets with a wrong checksum."""
    a, b = pair
    listener = Listener(b)
    result = live.send(a, b, "--count", 3000, "--payload", 8, "--vary", "src-port=random:1-65535", "--vary", "ip-id=counter")
    assert result["sent"] == 3000
    assert sorted(number for _, number in listener.probes()) == list(range(3000))


def test_an_order_uses_up_its_space_first(live, pair):
    a, b = pair
    frames = wire(live, a, b, 5000, 8, "--vary", "src-port=random:10000-14999")
    ports = [int.from_bytes(frame[34:36]) for frame in frames]
    assert sorted(ports) == list(range(10000, 15000))
    assert ports != sorted(ports)


@pytest.mark.parametrize("schedule", [[], ["--rate", "20k"], ["--interval", "500us", "--train", "16"]], ids=["flood", "rate", "trains"])
def test_threads_share_the_numbers(engine, pair, schedule):
    """Each number is sent exactly once, by any of the threads."""
    a, b = pair
    if engine.name == "xsk":
        a.run(["ethtool", "-L", a.device, "tx", "2"])
    count = 12_000
    options = ["--count", count, "--payload", 8, "--threads", 2, *schedule]
    if engine.name == LIVE and schedule:
        line = engine.refusal(a, *options)
        assert "must be left to fill its slots" in line
        return

    def in_order():
        capture = Capture(b, a, 50)
        result = engine.send(a, b, *options, timeout=60)
        assert result["threads"] == 2
        assert result["sent"] == result["requested"] == count
        numbers = [int.from_bytes(frame[42:50]) for frame in capture.frames()]
        assert sorted(numbers) == list(range(count))
        return numbers == sorted(numbers)

    # The threads alternate, unless the machine delays one until the other has sent all.
    take_turns = not schedule and engine.name != LIVE
    assert least(in_order, enough=not take_turns) <= (not take_turns), "in order each time: one thread sent all"


def test_what_is_stopped_by_the_clock_has_no_gap(live, pair, ktrxer, ktrxer_json):
    a, b = pair
    a.ip("link", "set", a.device, "txqueuelen", "100")
    for name in (LIVE, "packet"):
        capture = Capture(b, a, 50)
        result = Engine(name, ktrxer, ktrxer_json).send(a, b, "--for", "60ms", "--payload", 8, "--threads", 2)
        assert result["cancelled"] == 0
        # Packets are lost if the driver's queue stays full during all retries; they are reported.
        assert result["sent"] + result["failed"] == result["requested"] > 0
        assert result["failed"] < result["requested"] / 50
        numbers = sorted(int.from_bytes(frame[42:50]) for frame in capture.frames())
        # a busy receiver may miss some
        assert numbers[-1] < result["requested"]
        assert len(set(numbers)) == len(numbers) > result["sent"] // 2 or result["sent"] > 300_000


def test_a_driver_that_is_full_gets_them_again(live, pair, ktrxer):
    """The peer stops polling at times: refused packets are retried or counted as failed, and none is sent twice."""
    a, b = pair
    child = a.popen(live.words(a, b.address, "--for", "2s", "--payload", 8, "--json"))
    for _ in range(3):
        a.run(["sleep", "0.3"])
        gro(b, False)
        a.run(["sleep", "0.1"])
        gro(b, True)
    out, _ = child.communicate(timeout=30)
    result = json.loads(out)
    assert result["sent"] > 0 and result["failed"] > 0
    assert result["requested"] == result["sent"] + result["failed"] + result["cancelled"]
    rx = b.counters()["rx"]
    assert abs(rx["packets"] + rx["dropped"] - result["sent"]) <= 50


def test_what_cannot_vary_is_refused_in_one_line(requires_namespaces, shared_pair, ktrxer, ktrxer_json, tmp_path):
    """The grammar has a unit test; here is one message of each place that rejects a template."""
    a, _ = shared_pair
    packet, udp = Engine("packet", ktrxer, ktrxer_json), Engine("udp", ktrxer, ktrxer_json)
    assert "FIELD=counter:FROM-TO" in packet.refusal(a, "--count", 1, "--vary", "dst-port")
    assert "--flood" in packet.refusal(a, "--count", 1, "--vary", "dst=random:8.8.8.0/24")
    assert "no flow label" in packet.refusal(a, "--count", 1, "--vary", "flow-label=counter")
    assert "cannot vary" in packet.refusal(a, "--count", 1, "--vary", "frame+12.2=counter")
    assert "two fields or more" in packet.refusal(a, "--count", 1, "--combine", "--vary", "ttl=counter")
    assert "--threads 1" in packet.refusal(a, "--count", 9, "--interval", "1ms", "--threads", 2, "--late", "shift")
    assert "source address and port" in udp.refusal(a, "--count", 1, "--vary", "src-port=counter")
    assert "port of its own" in udp.refusal(a, "--count", 1, "--threads", 2, "--from-port", 4000)
    table = tmp_path / "ports"
    table.write_text("80\n# the other one\n443 # https\n\n70000\n")
    assert "70000 does not fit" in packet.refusal(a, "--count", 1, "--vary", f"dst-port=table:@{table}")


def test_a_table_from_a_file_and_udp_threads(requires_namespaces, shared_pair, ktrxer, ktrxer_json, tmp_path):
    a, b = shared_pair
    table = tmp_path / "sizes"
    table.write_text("# numbers\n258\n\t772 # two\n")
    frames = wire(Engine("packet", ktrxer, ktrxer_json), a, b, 4, 12, "--vary", f"payload+8.2=table:@{table}")
    assert [frame[50:52] for frame in frames] == [b"\1\2", b"\3\4"] * 2
    listener = Listener(b)
    result = Engine("udp", ktrxer, ktrxer_json).send(a, b, "--count", 2000, "--threads", 3, "--rate", "10k")
    assert result["sent"] == 2000
    assert sorted(number for _, number in listener.probes()) == list(range(2000))
