# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer ping` against the host's own stack, a UDP echo service, and a scripted far end that loses, repeats and reorders."""

import json
import os
import signal
import sys
from pathlib import Path

import peer
import pytest
from noise import before_others

# Median lateness of a sleep, in microseconds: 100 a second for 3 s, with the smallest timer slack.
SLEEPER = """
import ctypes, statistics, time
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)
at, late = time.monotonic_ns(), []
for _ in range(300):
    at += 10_000_000
    time.sleep(max(0, at - time.monotonic_ns()) / 1e9)
    late.append(time.monotonic_ns() - at)
print(statistics.median(late) / 1000)
"""
ENGINES = ["udp", "raw", "packet"]
PROTOCOLS = ["icmp", "icmp6", "udp", "udp6"]


def command(b, protocol):
    return [b.address6 if protocol.endswith("6") else b.address, *(["--udp"] if protocol.startswith("udp") else [])]


def closed(result):
    assert result["requested"] == result["sent"] + result["failed"] + result["skipped"] + result["cancelled"]
    assert result["sent"] == result["received"] + result["lost"] + result["too_late"] + result["unanswered_at_end"]
    return result


@pytest.fixture
def ping(ktrxer):
    """(end object, samples by kind)"""

    def go(a, *options, status=None, timeout=60):
        done = a.run([ktrxer, "ping", *map(str, options), "--jsonl"], check=False, timeout=timeout)
        assert status is None or done.returncode == status, f"{done.stdout}{done.stderr}"
        objects = [json.loads(line) for line in done.stdout.splitlines()]
        kinds = {}
        for one in objects[1:-1]:
            kinds.setdefault(one.get("kind") or one["name"], []).append(one)
        return closed(objects[-1]), kinds

    return go


# ---------------------------------------------------------------------------------------------- on time


@pytest.mark.plain_build  # the processor time of a sanitizer is not the program's
def test_probes_leave_on_time_for_a_small_share_of_a_processor(shared_pair, ktrxer):
    """In turns with a sleep without spinning: lateness is a tenth of the sleep's, or some microseconds, for at most 3 % more of a processor.
    Both have real-time priority, because a wait for a processor is no property of a sleep."""
    a, b = shared_pair
    sleeping, first = [sys.executable, "-c", SLEEPER], before_others()

    def cost_of(words):
        child = a.popen([*first, *words])
        out, _, used = child.stdout.read(), child.stderr.read(), os.wait4(child.pid, 0)[2]
        child.returncode = 0
        return out, (used.ru_utime + used.ru_stime) / 3

    lateness, shares, plain = [], [], []
    for _ in range(5):
        out, share = cost_of([ktrxer, "ping", b.address, "-i", "10ms", "--for", "3s", "--json"])
        lateness.append(json.loads(out)["lateness_us"]["p50"])
        shares.append(share)
        plain.append(float(cost_of(sleeping)[0]))
        if lateness[-1] < max(10, plain[-1] / 10):
            break
    print(f"figure: ping leaves {min(lateness):.1f} us late, a sleep ends {min(plain):.1f} us late; {min(shares):.1%} of a processor")
    assert min(lateness) < max(20, min(plain) / 4), (lateness, plain)
    assert min(shares) < 0.04, shares


@pytest.mark.parametrize("nice", [0, 5])
def test_real_time_priority_where_it_is_permitted(shared_pair, ktrxer, nice):
    """Field 41 of stat is the policy. A process that was started with a low priority keeps it."""
    a, b = shared_pair
    code = "import os\ntry:\n os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); print(1)\nexcept PermissionError:\n print(0)"
    permitted = int(a.run([sys.executable, "-c", code]).stdout)
    child = a.popen(["nice", "-n", str(nice), ktrxer, "ping", b.address, "-i", "100ms", "--jsonl"])
    child.stdout.readline()
    child.stdout.readline()  # the first sample
    policy = int(Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[38])
    child.terminate()
    child.communicate(timeout=20)
    assert policy == (os.SCHED_FIFO if permitted and not nice else os.SCHED_OTHER)


def slice_of(status: str) -> int:
    return int(next(line.split(":")[1] for line in status.splitlines() if line.startswith("se.slice")))


@pytest.mark.parametrize("nice", [0, 5])
def test_a_short_slice_without_privilege(shared_pair, ktrxer, nice):
    """An ordinary user has no real-time priority: since Linux 6.12 a shorter slice lets the prober preempt flows when it wakes up."""
    a, b = shared_pair
    if tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2]) < (6, 12) or not Path("/proc/self/sched").exists():
        pytest.skip("Linux 6.12 with CONFIG_SCHED_DEBUG shows the slice of a thread")
    usual = slice_of(Path("/proc/self/sched").read_text())
    unprivileged = ["prlimit", "--rtprio=0", "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
    child = a.popen([*unprivileged, "nice", "-n", str(nice), ktrxer, "ping", b.address, "-i", "100ms", "--jsonl"])
    child.stdout.readline()
    child.stdout.readline()  # the first sample
    policy = int(Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[38])
    has = slice_of(Path(f"/proc/{child.pid}/sched").read_text())
    child.terminate()
    child.communicate(timeout=20)
    assert policy == os.SCHED_OTHER
    assert has == (usual if nice else 100_000)


@pytest.mark.parametrize("version", [4, 6])
def test_answers_to_others_stay_out_of_the_queue_of_a_raw_socket(pair, ktrxer, version):
    """A host that forbids ping sockets: the kernel gives each raw socket a copy of each answer. The first prober is stopped, so that it reads none."""
    a, b = pair
    to = b.address if version == 4 else b.address6
    a.run(["sysctl", "-qw", "net.ipv4.ping_group_range=1 0"])
    first = a.popen([ktrxer, "ping", to, "-i", "1h", "--jsonl"])
    first.stdout.readline()
    first.send_signal(signal.SIGSTOP)
    second = json.loads(a.run([ktrxer, "ping", to, "-i", "2ms", "-c", "100", "--json"], check=False).stdout)
    table = Path(f"/proc/{first.pid}/net/raw{'6' if version == 6 else ''}").read_text().splitlines()[1:]
    first.send_signal(signal.SIGCONT)
    first.terminate()
    first.communicate(timeout=20)
    assert second["received"] == 100
    waiting = [int(line.split()[4].split(":")[1], 16) for line in table]
    assert len(waiting) == 1 and waiting[0] < 5000, waiting


# ---------------------------------------------------------------------------------------------- every way round trip


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("engine", ENGINES)
def test_round_trips(shared_pair, ping, engine, protocol, precise):
    a, b = shared_pair
    with peer.echoing(b):
        result, kinds = ping(a, *command(b, protocol), "-e", engine, "-c", 50, "-i", "2ms", *(["--precise"] if precise else []))
    assert result["sent"] == result["received"] == 50 and result["lost"] == result["duplicates"] == result["reordered"] == 0
    assert result["engine"] == engine and result["protocol"] == protocol.rstrip("6")
    assert result["stamps"]["sent_driver"] == result["stamps"]["received_kernel"] == 50, "kernel stamps at both ends"
    trips = kinds["round_trip"]
    assert [trip["number"] for trip in trips] == list(range(50))
    for trip in trips:
        assert trip["rtt_ns"] == trip["received_ns"] - trip["sent_ns"] > 0
        assert trip["lateness_ns"] == trip["sent_ns"] - trip["scheduled_ns"]
        assert trip["ttl"] == 64 and trip["from"] == (b.address6 if protocol.endswith("6") else b.address)
    assert 0 < result["rtt_us"]["min"] <= result["rtt_us"]["p50"] <= result["rtt_us"]["p99"] <= result["rtt_us"]["max"]


@pytest.mark.parametrize("payload", [0, 1, 7, 8, 15, 16, 1472])
def test_payloads(shared_pair, ping, payload):
    a, b = shared_pair
    with peer.capturing(b) as packets:
        result, _ = ping(a, b.address, "-c", 5, "-i", "2ms", "-s", payload)
    assert result["received"] == 5
    requests = [packet for packet in packets if packet.proto == 1]
    assert [len(packet.payload) for packet in requests] == [payload] * 5 and all(packet.transport_right for packet in requests)


@pytest.mark.parametrize("engine", ENGINES)
def test_header_fields(shared_pair, ping, engine):
    a, b = shared_pair
    with peer.capturing(b) as packets:
        ping(a, b.address, "-e", engine, "-c", 3, "-i", "2ms", "--ttl", 5, "--dscp", "af41")
    assert [(packet.ttl, packet.tos) for packet in packets if packet.proto == 1] == [(5, 0x88)] * 3


def test_to_itself(shared_pair, ping):
    a, _ = shared_pair
    for address in (a.address, a.address6, "127.0.0.1", "::1"):
        result, _ = ping(a, address, "-c", 5, "-i", "2ms")
        assert result["received"] == 5, address


# ------------------------------------------------------------------------------------- loss, duplicates, reordering


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("engine", ENGINES)
def test_counts_are_exact(pair, ping, engine, protocol):
    """Every fifth answer is dropped, every seventh duplicated, every third arrives after its successor."""
    a, b = pair
    count = 210
    with peer.responding(b, "udp" if protocol == "udp6" else protocol):
        result, kinds = ping(a, *command(b, protocol), "-e", engine, "-c", count, "-i", "3ms", "-W", "700ms")
    order = peer.script(count)
    lost = set(range(count)) - set(order)
    seen, repeated, out_of_order, next_expected = set(), [], set(), 0
    for number in order:
        if number in seen:
            repeated.append(number)
            continue
        seen.add(number)
        if number < next_expected:  # RFC 4737
            out_of_order.add(number)
        next_expected = max(next_expected, number + 1)
    assert (result["sent"], result["received"], result["lost"]) == (count, len(seen), len(lost))
    assert (result["duplicates"], result["reordered"], result["too_late"]) == (len(repeated), len(out_of_order), 0)
    assert result["stamps"]["received_kernel"] == len(seen), "of round trips; what else comes in counts for none"
    assert {one["number"] for one in kinds["lost"]} == lost
    assert sorted(one["number"] for one in kinds["duplicate"]) == sorted(repeated)
    assert {one["number"] for one in kinds["round_trip"] if one["reordered"]} == out_of_order
    assert {one["number"] for one in kinds["round_trip"]} == seen


def test_later_than_the_timeout_is_not_lost_and_counted_apart(pair, ping):
    a, b = pair
    with peer.responding(b, "icmp"):
        result, kinds = ping(a, b.address, "-c", 60, "-i", "20ms", "-W", "5ms")
    assert result["lost"] + result["too_late"] + result["received"] == 60
    assert result["too_late"] >= 10, "the held ones come 20 ms late"
    held = {number for number in range(60) if peer.fate(number)[2]}
    too_late = {one["number"] for one in kinds["too_late"]}
    assert len(too_late & held) >= 10, "others are too late only where the machine is slow"
    assert not too_late & {one["number"] for one in kinds["round_trip"]}


# --------------------------------------------------------------------------------------------------------- no answer


@pytest.mark.parametrize("version", [4, 6])
def test_port_unreachable_is_shown(pair, ktrxer, ping, version):
    a, b = pair
    b.sysctl("ipv4/icmp_ratelimit", 0)
    b.sysctl("ipv6/icmp/ratelimit", 0)
    to = b.address if version == 4 else b.address6
    result, kinds = ping(a, to, "--udp", "-c", 5, "-i", "50ms", "-W", "300ms", status=1)
    assert result["lost"] == 5 and result["network_errors"] == 5 and result["verdict"] == "invalid"
    assert [(one["from"], one["error"]) for one in kinds["network_error"]] == [(to, "port unreachable")] * 5
    text = a.run([ktrxer, "ping", to, "--udp", "-c", "1", "-W", "200ms"], check=False).stdout
    assert f"{to}: port unreachable" in text and "answered nothing within" in text


@pytest.mark.parametrize("precise", [False, True])
def test_errors_that_come_late_are_shown_and_cost_nothing(pair, ktrxer, precise):
    """An ICMP error 30 ms after its probe, after all stamps: it still wakes the reader, once."""
    a, b = pair
    with peer.responding(b, "udp", "30"):
        words = [ktrxer, "ping", b.address, "--udp", "-c", "4", "-i", "300ms", "-W", "250ms", "--jsonl", *(["--precise"] if precise else [])]
        child = a.popen(words)
        output, _ = child.communicate(timeout=20)
    before = [json.loads(line) for line in output.splitlines()]
    end = closed(before[-1])
    assert end["network_errors"] == 4
    losses = {one["number"]: at for at, one in enumerate(before) if one.get("kind") == "lost"}
    errors = [at for at, one in enumerate(before) if one.get("name") == "network_error"]
    assert all(error < losses[number] for number, error in enumerate(errors)), "each is reported when it comes"


def test_errors_in_send(pair, ktrxer):
    a, b = pair
    with peer.responding(b, "udp", "20"):
        done = a.run([ktrxer, "send", b.address, "--port", "7", "-e", "udp", "-c", "5", "-i", "100ms", "--jsonl"], check=False)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert objects[-1]["sent"] == 5 and objects[-1]["network_errors"] >= 4, "the last one's may come after the end"


def test_too_big_for_the_way_fails_no_other_probe(pair, ktrxer):
    """A router's ICMP error for earlier probes: the next call of the sending socket returns it."""
    from ktrxer_lab import hosts

    a, b = pair
    with hosts.Netns("c") as c:
        hosts.join(b, c, net=78, devices=("c0", "d0"))
        for host, device in ((b, "c0"), (c, "d0")):
            host.ip("link", "set", device, "mtu", "700")
        b.sysctl("ipv4/ip_forward", 1)
        b.sysctl("ipv4/icmp_ratelimit", 0)
        a.ip("route", "add", "default", "via", b.address)
        c.ip("route", "add", "default", "via", "10.78.0.1")
        words = [ktrxer, "send", "-e", "udp", "10.78.0.2", "--payload", "1200", "-r", "20k", "-c", "20000", "--json"]
        result = json.loads(a.run(words, check=False).stdout)
        assert result["network_errors"] > 50
        assert (result["sent"], result["failed"]) == (20000, 0)


def test_time_exceeded_is_shown(pair, ping):
    """a - b - c, and a probe with a hop limit of one."""
    from ktrxer_lab import hosts

    a, b = pair
    with hosts.Netns("c") as c:
        hosts.join(b, c, net=78, devices=("c0", "d0"))
        b.sysctl("ipv4/ip_forward", 1)
        a.ip("route", "add", "default", "via", b.address)
        c.ip("route", "add", "default", "via", "10.78.0.1")
        good, _ = ping(a, "10.78.0.2", "-c", 3, "-i", "10ms")
        assert good["received"] == 3
        bad, kinds = ping(a, "10.78.0.2", "-c", 1, "--ttl", 1, "-W", "300ms", status=1)
    assert bad["lost"] == 1
    assert [(one["from"], one["error"]) for one in kinds["network_error"]] == [("10.77.0.2", "time to live exceeded in transit")]


def test_nobody_there(shared_pair, ping, ktrxer):
    a, b = shared_pair
    result, _ = ping(a, "10.77.0.99", "-c", 2, "-i", "10ms", "-W", "300ms", status=1)
    assert result["lost"] == 2 and any(one["text"].startswith("10.77.0.99 answered nothing within ") for one in result["reasons"])
    done = a.run([ktrxer, "ping", "10.77.0.99", "-e", "packet", "-c", "1"], check=False)
    assert done.returncode == 1 and "does not answer ARP" in done.stderr


def test_a_name_with_addresses_of_both_families(shared_pair, ktrxer, tmp_path):
    """The address has the family of `--from`; before, the first address of the name was the only one."""
    a, b = shared_pair
    names = tmp_path / "hosts"
    names.write_text(f"{b.address6} twin\n{b.address} twin\n")
    named = ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', names]
    for source, to in ((a.address, b.address), (a.address6, b.address6)):
        done = a.run([*named, ktrxer, "ping", "twin", "--from", source, "-c", "3", "-i", "10ms", "--json"], check=False)
        assert done.stdout and json.loads(done.stdout)["to"] == to, done.stderr
    done = a.run([*named, ktrxer, "ping", "twin", "--from", a.address, "-6", "-c", "1"], check=False)
    assert done.returncode == 2 and "--from is not of the same family as twin" in done.stderr


@pytest.mark.parametrize(
    "args,status,text",
    [
        ([], 2, "HOST is missing"),
        (["@", "-i", "0"], 2, "--interval: '0' is too small"),
        (["@", "-c", "0"], 2, "--count: '0' is too small"),
        (["@", "-s", "65508"], 2, "--payload: '65508' is too large"),
        (["@", "-s", "1473", "-c", "1"], 1, "MTU of 1500 on 'a0'"),
        (["@", "-s", "7", "--udp"], 2, "at least --payload 8"),
        (["@", "--port", "9"], 2, "--port goes with --udp"),
        (["@", "-4", "-6"], 2, "--ipv4 and --ipv6 exclude each other"),
        (["@", "-6", "-c", "1"], 1, "is an address of IPv4"),
        (["@", "-W", "0"], 2, "--timeout: '0' is too small"),
        (["@", "-e", "teleport"], 2, "no such engine"),
        (["@", "-d", "nosuch"], 1, "device 'nosuch'"),
        (["@", "--from", "fd00::9"], 2, "--from is not of the same family as"),
        (["@", "--from", "192.0.2.9", "-c", "1"], 1, "no address of this host"),
        (["fe80::1", "-c", "1"], 2, "say on which"),
        (["-x"], 2, "no such option"),
        (["10.99.0.1", "-c", "1"], 1, "no route to 10.99.0.1"),
        (["127.0.0.1", "-e", "packet", "-c", "1"], 1, "use the engine udp"),
        (["--", "-host"], None, "-host"),
    ],
)
def test_typed_wrong(shared_pair, ktrxer, args, status, text):
    a, b = shared_pair
    done = a.run([ktrxer, "ping", *[b.address if word == "@" else word for word in args]], check=False, timeout=20)
    assert done.returncode == status or (status is None and done.returncode in (1, 2)), done.stdout + done.stderr
    assert text in done.stderr
