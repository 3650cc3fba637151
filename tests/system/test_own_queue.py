# SPDX-License-Identifier: MIT OR Apache-2.0
"""
The queues of the two hosts' own devices are part of the delay, and reported separately. References: iputils' ping through the same queue, and tc.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A measures, B serves; one of the two sends more than its own device's tbf allows
"""

import contextlib
import json
import re
import statistics
import threading

import pytest
from noise import before_others
from stamps import parse

RATE_MBIT, LIMIT_BYTES = 10, 60_000
FULL_MS = LIMIT_BYTES * 8 / RATE_MBIT / 1000
BLAST = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("sends", flush=True)
due = time.monotonic()
while True:
    try:
        s.sendto(bytes(1200), (sys.argv[1], 9))
    except OSError:
        pass  # the queue is full, as the test requires
    due += 1242 * 8 / (float(sys.argv[2]) * 1e6)
    time.sleep(max(0, due - time.monotonic()))
"""


@contextlib.contextmanager
def full_queue(host, device, to):
    """The host's own device is limited to 10 Mbit/s, and a flow of the host fills its queue, also beside other work of this machine."""
    host.run(["tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{RATE_MBIT}mbit", "burst", "3000", "limit", str(LIMIT_BYTES)])
    child = host.popen([*before_others(), "python3", "-c", BLAST, to, str(RATE_MBIT * 1.5)])
    try:
        assert child.stdout.readline().strip() == "sends"
        while backlog(host, device) < LIMIT_BYTES * 0.8:
            assert child.poll() is None
        yield
    finally:
        child.kill()
        child.communicate()
        host.run(["tc", "qdisc", "del", "dev", device, "root"])


def backlog(host, device):
    found = re.search(r"backlog (\d+)(K?)b", host.run(["tc", "-s", "qdisc", "show", "dev", device]).stdout)
    return int(found[1]) * (1024 if found[2] else 1)


def beside_ping(a, to, measure, seconds):
    """The result of measure(), and the median of ping's round trips in the same seconds, in ms."""
    told = {}

    def ping():
        told["ping"] = a.run(["ping", "-n", "-i", "0.1", "-c", str(int(seconds * 10)), to], check=False, timeout=60).stdout

    thread = threading.Thread(target=ping)
    thread.start()
    made = measure()
    thread.join()
    return made, statistics.median(float(ms) for ms in re.findall(r" time=([0-9.]+) ms", told["ping"]))


@pytest.mark.plain_build
@pytest.mark.parametrize("interval", ["10ms", "100ms"])
@pytest.mark.parametrize("far", [False, True])
def test_stamp_has_the_queue_of_either_host(pair, ktrxer, serve, far, interval):
    a, b = pair
    serve(b)
    sender, device, to = (b, "b0", a.address) if far else (a, "a0", b.address)

    def measure():
        return parse(a.run([ktrxer, "stamp", b.address, "-i", interval, "--for", "3s", "--jsonl"], check=False, timeout=60).stdout)

    with full_queue(sender, device, to):
        (end, kinds), reference = beside_ping(a, b.address, measure, 3)
    assert reference > FULL_MS / 2, "the queue of the reference is no queue"
    trip, own, queue = (end[name]["p50"] / 1000 for name in ("rtt_us", "own_queue_us", "far_queue_us"))
    way = end["down_us" if far else "up_us"]["p50"] / 1000
    full, empty = (queue, own) if far else (own, queue)
    print(f"figure: round trip {trip:.2f} ms, by ping {reference:.2f} ms; own queue {own:.3f} ms, far queue {queue:.3f} ms")
    assert trip == pytest.approx(reference, rel=0.1) and way == pytest.approx(reference, rel=0.1)
    assert full == pytest.approx(reference, rel=0.1) and empty < reference / 20
    assert end["own_qdisc"] == ("noqueue" if far else "tbf")
    # This host's queue does not count as lateness, and the far queue delay of each answer is known at any interval; a busy machine may lose some.
    assert end["lateness_us"]["min"] < 5000
    trips = kinds["round_trip"]
    assert sum("far_queue_ns" in one and "own_queue_ns" in one for one in trips) > 0.7 * len(trips)
    assert {one["sent_stamp"] for one in trips} == {"sched"}
    assert end["untimed"] * 100 <= end["received"]


@pytest.mark.plain_build
@pytest.mark.parametrize(("engine", "address"), [("raw", "address"), ("raw", "address6"), ("udp", "address6")])
def test_every_engine_of_the_stack_has_it(pair, ktrxer, serve, engine, address):
    a, b = pair
    serve(b)
    # A probe that waits for neighbour resolution enters the packet scheduler after its call, and has no send time if others are refused.
    a.run(["ping", "-n", "-c", "1", getattr(b, address)])
    with full_queue(a, "a0", b.address):
        done = a.run([ktrxer, "stamp", getattr(b, address), "-e", engine, "-i", "20ms", "-c", "100", "--json"], check=False, timeout=60)
    end = json.loads(done.stdout)
    trip, own = end["rtt_us"]["p50"] / 1000, end["own_queue_us"]["p50"] / 1000
    assert trip > FULL_MS * 0.7 and own == pytest.approx(trip, rel=0.02) and end["untimed"] * 100 <= end["received"]


def test_the_loopback_is_both_hosts_own(pair, ktrxer, serve):
    """One queue delays both the probe and its answer."""
    a, _ = pair
    serve(a)
    with full_queue(a, "lo", "127.0.0.1"):
        (end, _), reference = beside_ping(a, "127.0.0.1", lambda: parse(
            a.run([ktrxer, "stamp", "127.0.0.1", "-i", "20ms", "--for", "3s", "--jsonl"], check=False, timeout=60).stdout), 3)
    trip, own, far = (end[name]["p50"] / 1000 for name in ("rtt_us", "own_queue_us", "far_queue_us"))
    assert trip == pytest.approx(reference, rel=0.1) and own + far == pytest.approx(trip, rel=0.1)
    assert own > FULL_MS / 2 and far > FULL_MS / 2


@pytest.mark.parametrize("interval", ["50ms", "1s"])
def test_ping_has_this_hosts_queue(pair, ktrxer, interval):
    a, b = pair

    def measure():
        done = a.run([ktrxer, "ping", b.address, "-i", interval, "--for", "3s", "--json"], check=False, timeout=60)
        return json.loads(done.stdout)

    with full_queue(a, "a0", b.address):
        end, reference = beside_ping(a, b.address, measure, 3)
    assert reference > FULL_MS / 2
    assert end["rtt_us"]["p50"] / 1000 == pytest.approx(reference, rel=0.1)
    assert end["own_queue_us"]["p50"] / 1000 == pytest.approx(reference, rel=0.1)
    assert end["own_qdisc"] == "tbf" and end["lateness_us"]["min"] < 5000


def bridge(a, b):
    a.ip("link", "add", "v0", "type", "bridge")
    a.ip("addr", "flush", "dev", "a0")
    a.ip("link", "set", "a0", "master", "v0")
    a.ip("addr", "add", f"{a.address}/24", "dev", "v0")
    return b.address


def macvlan(a, b):
    a.ip("link", "add", "v0", "link", "a0", "type", "macvlan", "mode", "bridge")
    a.ip("addr", "flush", "dev", "a0")
    a.ip("addr", "add", f"{a.address}/24", "dev", "v0")
    return b.address


def vxlan(a, b):
    """A tunnel, as GRE is one."""
    for host, other, address in ((a, b, "10.99.0.1"), (b, a, "10.99.0.2")):
        host.ip("link", "add", "v0", "type", "vxlan", "id", "7", "local", host.address, "remote", other.address, "dstport", "4789")
        host.ip("addr", "add", f"{address}/24", "dev", "v0")
    b.ip("link", "set", "v0", "up")
    return "10.99.0.2"


@pytest.mark.parametrize("shaped", ["a0", "v0"])
@pytest.mark.parametrize("virtual", [bridge, macvlan, vxlan])
def test_a_queue_below_or_above_a_virtual_device(pair, ktrxer, virtual, shaped):
    """The route of this host leads to v0, whose packets a0 sends. The packet scheduler of the first device stamps, and the driver of the last."""
    a, b = pair
    try:
        to = virtual(a, b)
    except RuntimeError as error:
        pytest.skip(f"this kernel has no {virtual.__name__}: {error}")
    a.ip("link", "set", "v0", "up")

    def measure():
        return json.loads(a.run([ktrxer, "ping", to, "-i", "50ms", "--for", "3s", "--json"], check=False, timeout=60).stdout)

    with full_queue(a, shaped, to):
        (end, reference) = beside_ping(a, to, measure, 3)
    print(f"figure: round trip {end['rtt_us']['p50'] / 1000:.2f} ms, by ping {reference:.2f} ms; own queue {end['own_queue_us']['p50'] / 1000:.2f} ms")
    assert reference > FULL_MS / 2 and end["device"] == "v0"
    assert end["rtt_us"]["p50"] / 1000 == pytest.approx(reference, rel=0.1)
    assert end["own_queue_us"]["p50"] / 1000 == pytest.approx(reference, rel=0.1)


def test_an_engine_that_bypasses_the_shaper_says_so(pair, ktrxer, serve):
    a, b = pair
    serve(b)
    with full_queue(a, "a0", b.address):
        for command in (["stamp", b.address], ["ping", b.address]):
            done = a.run([ktrxer, *command, "-e", "packet", "-i", "20ms", "-c", "30", "--json"], check=False, timeout=60)
            end = json.loads(done.stdout)
            assert end["qdisc_bypassed"] is True and end["own_queue_us"]["p50"] is None
            assert end["verdict"] != "valid" and any("engine packet bypasses the qdisc tbf" in reason["text"] for reason in end["reasons"]), end["reasons"]


@pytest.mark.plain_build
def test_probes_that_wait_in_the_queue_cost_no_processor(pair, ktrxer):
    a, b = pair
    with full_queue(a, "a0", b.address):
        waits = json.loads(a.run([ktrxer, "ping", b.address, "-i", "10ms", "--for", "3s", "--json"], check=False, timeout=60).stdout)
        child = a.popen(["bash", "-c", f"time {ktrxer} ping {b.address} -i 10ms --for 3s --json >/dev/null"], env={"TIMEFORMAT": "%U %S"})
        _, said = child.communicate(timeout=60)
    used = sum(map(float, said.strip().splitlines()[-1].split())) / 3
    print(f"figure: a prober at 100 a second through a queue of {waits['own_queue_us']['p50'] / 1000:.0f} ms takes {used:.1%} of a processor")
    assert used < 0.08
