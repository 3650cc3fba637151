# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer send`, checked at the far end: the packets, their times and contents, and their agreement with the reports."""

import csv
import json
import signal
import statistics
import subprocess
import time
from itertools import islice, pairwise

import peer
import pytest
from far_end import flowing
from noise import ahead, least
from recorded import wrong

ENGINES = ["packet", "raw", "udp"]
ACCOUNTS = ("requested", "sent", "failed", "skipped", "cancelled")
SEED = "2872979303ab47eeac028dab3829dab2"  # of RFC 4656, appendix B


def closed(result):
    assert result["requested"] == sum(result[name] for name in ACCOUNTS[1:]), {name: result[name] for name in ACCOUNTS}
    assert result["sent"] == sum(result["departure_stamp"].values())
    return result


def read_reports(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def agree(result, rows):
    """Reports and counts agree, line by line."""
    for name in ACCOUNTS[1:]:
        assert sum(row["status"] == name for row in rows) == result[name], name
    for name, count in result["departure_stamp"].items():
        assert sum(row["departure_stamp"] == name for row in rows) == count, name
    assert sum(int(row["tries"]) for row in rows) == result["tries"]
    assert [int(row["id"]) for row in rows] == list(range(len(rows)))
    for row in rows:
        assert (row["sent_ns"] != "") == (row["status"] == "sent") == (row["departure_stamp"] != "")
        assert (row["error"] != "") == (row["status"] == "failed")
        if row["sent_ns"] and row["scheduled_ns"]:
            assert int(row["lateness_ns"]) == int(row["sent_ns"]) - int(row["scheduled_ns"])


@pytest.fixture
def send(shared_pair, ktrxer, tmp_path):
    """Sends from a to b under a capture: (result, reports, packets at the far end)."""
    a, b = shared_pair

    def go(*options, to=None, status=0, port=9, timeout=60):
        path = tmp_path / "reports.csv"
        to = to or b.address
        with peer.capturing(b) as packets:
            done = a.run([ktrxer, "send", to, "--port", str(port), *map(str, options), "--reports", path, "--json"], check=False, timeout=timeout)
        assert status is None or done.returncode == status, f"{done.stdout}{done.stderr}"
        result, rows = closed(json.loads(done.stdout)), read_reports(path)
        if result["requested"] == len(rows):
            agree(result, rows)
        return result, rows, [packet for packet in packets if packet.proto == 17]

    return go


def gaps(values):
    return [later - earlier for earlier, later in pairwise(values)]


# ------------------------------------------------------------------------------------------------------ what arrives


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_probe_arrives_once_and_whole(send, shared_pair, engine, version):
    a, b = shared_pair
    to = b.address if version == 4 else b.address6
    result, rows, packets = send("--engine", engine, "--count", 200, "--interval", "1ms", "--from-port", 5555, to=to, port=4321, status=None)
    assert result["engine"] == engine and result["sent"] == 200
    assert not [note for note in result["waiter"]["notes"] if "NIC" in note], "veth has no stamps of its own to miss"
    assert [packet.number for packet in packets] == list(range(200)), "each once, in order"
    for packet in packets:
        assert packet.version == version and not packet.vlan
        assert (packet.source, packet.destination) == ((a.address, b.address) if version == 4 else (a.address6, b.address6))
        assert (packet.from_port, packet.to_port) == (5555, 4321)
        assert len(packet.payload) == 28 and packet.payload[8:] == bytes(20)
        assert packet.ttl == 64 and packet.tos == 0 and packet.dont_fragment
        assert packet.header_right
        # The kernel leaves the checksums of its own datagrams to the device; those that ktrxer writes must be correct.
        assert packet.transport_right or (engine == "udp" and packet.offloaded)
    assert result["frame_bytes"] == (14 if engine == "packet" else 0) + (20 if version == 4 else 40) + 8 + 28


@pytest.mark.parametrize("payload", [0, 1, 7, 8, 9, 1471, 1472])
@pytest.mark.parametrize("engine", ENGINES)
def test_payloads_of_all_sizes(send, engine, payload):
    _, _, packets = send("--engine", engine, "--count", 5, "--interval", "1ms", "--payload", payload, status=None)
    assert [len(packet.payload) for packet in packets] == [payload] * 5
    assert all(packet.header_right and (packet.transport_right or packet.offloaded) for packet in packets)
    assert [packet.number for packet in packets] == (list(range(5)) if payload >= 8 else [0] * 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_header_fields_on_the_wire(send, engine):
    _, _, packets = send("--engine", engine, "--count", 3, "--interval", "1ms", "--ttl", 7, "--dscp", "ef", "--may-fragment", status=None)
    assert [(packet.ttl, packet.tos, packet.dont_fragment) for packet in packets] == [(7, 0xB8, False)] * 3


def test_header_fields_on_the_wire_ipv6(send, shared_pair):
    for engine in ENGINES:
        _, _, packets = send("--engine", engine, "--count", 3, "--interval", "1ms", "--ttl", 9, "--dscp", 11, "--ecn", "ect0", to=shared_pair[1].address6, status=None)
        assert [(packet.ttl, packet.tos) for packet in packets] == [(9, 0x2E)] * 3


@pytest.mark.parametrize("engine", ["packet", "raw"])
@pytest.mark.parametrize("source,version", [("192.0.2.77", 4), ("2001:db8::77", 6)])
def test_source_address_of_others(send, shared_pair, engine, source, version):
    to = shared_pair[1].address if version == 4 else shared_pair[1].address6
    _, _, packets = send("--engine", engine, "--count", 3, "--interval", "1ms", "--from", source, to=to, status=None)
    assert [packet.source for packet in packets] == [source] * 3
    assert all(packet.transport_right for packet in packets)


def test_source_address_of_others_is_refused_by_udp_before_anything_is_sent(shared_pair, ktrxer):
    a, b = shared_pair
    done = a.run([ktrxer, "send", b.address, "-c", "3", "-i", "1ms", "--from", "192.0.2.77", "-e", "udp"], check=False)
    assert done.returncode == 1 and "udp engine can send from no other: use the raw or packet engine" in done.stderr
    assert "sent" not in done.stdout


# ------------------------------------------------------------------------------------------------------- when it left


@pytest.mark.plain_build
def test_reported_gaps_are_those_of_the_receiver(send):
    def difference_ns():
        _, rows, packets = send("--engine", "packet", "--count", 500, "--interval", "2ms", status=None)
        arrived = {packet.number: packet.at_ns for packet in packets}
        assert len(arrived) == 500
        sent = [int(row["sent_ns"]) for row in rows]
        assert all(row["departure_stamp"] == "driver" for row in rows)
        return statistics.median(abs(s - r) for s, r in zip(gaps(sent), gaps([arrived[n] for n in range(500)]), strict=True))

    assert least(difference_ns, enough=1000) <= 1000


@pytest.mark.parametrize("engine", ENGINES)
def test_sent_times_come_before_arrival(send, engine):
    """With one clock: a packet leaves after its call, and arrives after it left."""
    offset = time.time_ns() - time.monotonic_ns()
    _, rows, packets = send("--engine", engine, "--count", 100, "--interval", "1ms", status=None)
    for row, packet in zip(rows, packets, strict=True):
        assert -50_000 < packet.at_ns - offset - int(row["sent_ns"]) < 5_000_000


def test_rate_is_exact(send):
    """36,000 probes a second have a fractional interval in nanoseconds: the last deadline is exact to the nanosecond."""
    _, rows, _ = send("--rate", "36k", "--count", 3600, status=None)
    at = [int(row["scheduled_ns"]) for row in rows]
    assert [t - at[0] for t in at] == [n * 10**9 // 36000 for n in range(3600)]


def test_list_from_a_file(send, tmp_path):
    (tmp_path / "list").write_text("# offsets\n0\n1500000\n1500000\n4ms\n0.005s\n\n7000us # the last\n")
    _, rows, packets = send("--schedule", tmp_path / "list", status=None)
    at = [int(row["scheduled_ns"]) for row in rows]
    assert [t - at[0] for t in at] == [0, 1_500_000, 1_500_000, 4_000_000, 5_000_000, 7_000_000]
    assert len(packets) == 6


def test_poisson_is_the_published_generator(send):
    result, rows, packets = send("--model", "poisson", "--seed", SEED, "--interval", "300us", "--count", 400, status=None)
    assert result["sent"] == 400 == len(packets)
    sums, total = [], 0
    for deviate in islice(peer.deviates(bytes.fromhex(SEED)), 400):
        total += deviate
        sums.append(total * 300_000 >> 32)
    at = [int(row["scheduled_ns"]) for row in rows]
    assert [t - at[0] for t in at] == [s - sums[0] for s in sums]


def test_seed_without_poisson_is_a_mistake(shared_pair, ktrxer):
    done = shared_pair[0].run([ktrxer, "send", shared_pair[1].address, "-c", "1", "-i", "1ms", "--seed", "00"], check=False)
    assert done.returncode == 2 and "--model poisson" in done.stderr


def test_trains_with_gaps(send):
    def error_ns():
        _, rows, packets = send("--train", 4, "--gap", "200us", "--interval", "5ms", "--count", 40, status=None)
        at = [int(row["scheduled_ns"]) for row in rows]
        assert [t - at[0] for t in at] == [n // 4 * 5_000_000 + n % 4 * 200_000 for n in range(40)]
        assert len(packets) == 40
        sent = [int(row["sent_ns"]) for row in rows]
        return abs(statistics.median(gap for n, gap in enumerate(gaps(sent)) if n % 4 != 3) - 200_000)

    assert least(error_ns, enough=20_000) <= 20_000


@pytest.mark.parametrize("engine", ENGINES)
def test_trains_back_to_back(send, engine):
    _, rows, packets = send("--engine", engine, "--train", 8, "--interval", "5ms", "--count", 80, status=None)
    assert all(len({row["scheduled_ns"] for row in rows[n : n + 8]}) == 1 for n in range(0, 80, 8)), "one deadline for a train"
    arrived = [packet.at_ns for packet in packets]
    assert [packet.number for packet in packets] == list(range(80))
    scheduled, sent = ([int(row[column]) for row in rows] for column in ("scheduled_ns", "sent_ns"))
    assert [gap for n, gap in enumerate(gaps(scheduled)) if n % 8 == 7] == [5_000_000] * 9
    # Packets of a train are close. Between trains the gaps of the arrivals equal those of the reports: a machine that stalled for
    # longer than the whole schedule catches up, which both show.
    assert statistics.median(gap for n, gap in enumerate(gaps(arrived)) if n % 8 != 7) < 50_000
    apart = zip(gaps(arrived)[7::8], gaps(sent)[7::8], strict=True)
    assert statistics.median(abs(arrival - said) for arrival, said in apart) < 500_000


@pytest.mark.plain_build
def test_start_at(send):
    def go(lead_ns):
        start = time.time_ns() + lead_ns
        return start, *send("--start-at", start, "--count", 5, "--interval", "10ms", status=None)

    start, result, rows, packets = ahead(go, lambda made: any("--start-at" in reason["text"] for reason in made[1]["reasons"]))
    pair = result["start"]["clock"]
    at, sent = (int(rows[0][column]) + pair["real_ns"] - pair["mono_ns"] for column in ("scheduled_ns", "sent_ns"))
    assert abs(at - start) < 1_000_000
    assert sent > at - 1_000_000 and abs(packets[0].at_ns - sent) < 50_000_000


def test_a_start_that_has_passed_is_now_and_said(send):
    result, _, packets = send("--start-at", time.time_ns() - 10**9, "--count", 3, "--interval", "1ms", status=3)
    assert len(packets) == 3 and any("had passed" in reason["text"] for reason in result["reasons"])


@pytest.mark.parametrize("late", ["catch-up", "skip", "shift"])
def test_late_policies(shared_pair, ktrxer, tmp_path, late):
    """The process is stopped for some time, so that some probes are late."""
    a, b = shared_pair
    path = tmp_path / "reports.csv"
    child = a.popen([ktrxer, "send", b.address, "-c", "3000", "-i", "1ms", "--late", late, "--reports", path, "--json"])
    flowing(a, 20)
    child.send_signal(signal.SIGSTOP)
    time.sleep(0.08)
    child.send_signal(signal.SIGCONT)
    output, errors = child.communicate(timeout=30)
    result, rows = closed(json.loads(output)), read_reports(path)
    assert result["requested"] == 3000, errors
    agree(result, rows)
    # With the policy shift the first probe is late and moves the others, which are on time in the new schedule.
    assert result["late"] >= (1 if late == "shift" else 40)
    assert (result["verdict"] == "degraded") == (result["skipped"] > 30), "a packet that leaves late leaves; its lateness is a figure"
    if late == "skip":
        assert result["skipped"] >= 40 and result["sent"] + result["skipped"] == 3000
        # A busy machine may stop the process between its look at the clock and its call.
        assert sum(int(row["lateness_ns"]) > 10_000_000 for row in rows if row["sent_ns"]) <= 30
    else:
        assert result["sent"] == 3000
    planned = gaps([int(row["planned_ns"]) for row in rows])
    if late == "shift":
        assert max(int(row["planned_ns"]) - int(row["scheduled_ns"]) for row in rows) > 40_000_000
        assert min(planned) >= 1_000_000 - 1, "what follows keeps its distance"
    else:
        assert set(planned) == {1_000_000}


# ---------------------------------------------------------------------------------------------------- rate, no schedule


@pytest.mark.parametrize("engine", ENGINES)
def test_as_fast_as_it_goes(send, engine):
    result, rows, packets = send("--engine", engine, "--count", 5000)
    assert result["sent"] == 5000 and result["verdict"] == "valid"
    assert sorted(packet.number for packet in packets) == list(range(5000))
    assert all(row["scheduled_ns"] == "" and row["lateness_ns"] == "" for row in rows)
    assert result["lateness_us"]["p50"] is None


def test_for_a_time(send):
    result, rows, _ = send("--rate", "1k", "--for", "300ms", status=None)
    assert result["requested"] == 300 == len(rows)


def test_no_stamps(send):
    result, _, _ = send("--no-stamps", "--count", 20, "--interval", "1ms", status=None)
    assert result["departure_stamp"] == {"nic": 0, "driver": 0, "queued": 20}


# -------------------------------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("command", ["send", "ping", "doctor"])
def test_objects_match_their_schemas(shared_pair, ktrxer, command):
    a, b = shared_pair
    if command == "doctor":
        assert not wrong([json.loads(a.run([ktrxer, "doctor", "--json"]).stdout)])
        return
    lines = a.run([ktrxer, command, b.address, "-c", "20", "-i", "2ms", "--jsonl"], check=False).stdout.splitlines()
    objects = [json.loads(line) for line in lines]
    assert not wrong(objects)
    assert [one["type"] for one in objects] == ["start", *["sample"] * 20, "end"]
    assert not wrong([json.loads(a.run([ktrxer, command, b.address, "-c", "2", "-i", "2ms", "--json"], check=False).stdout)])


def test_fields_that_scripts_rely_on(shared_pair, ktrxer):
    a, b = shared_pair
    result = json.loads(a.run([ktrxer, "send", b.address, "-c", "20", "-i", "2ms", "--json"], check=False).stdout)
    for name in ("requested", "sent", "failed", "skipped", "cancelled", "late", "tries", "duration_ns", "rate_pps", "lateness_us", "departure_stamp", "verdict", "reasons"):
        assert name in result, name
    assert {"p50", "iqr", "p95", "p99", "max"} <= set(result["lateness_us"])
    assert set(result["departure_stamp"]) == {"nic", "driver", "queued"}


def test_samples_are_the_reports(send, shared_pair, ktrxer, tmp_path):
    a, b = shared_pair
    path = tmp_path / "both.csv"
    done = a.run([ktrxer, "send", b.address, "-c", "50", "-i", "1ms", "--jsonl", "--reports", path], check=False)
    samples = [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] == "sample"]
    rows = read_reports(path)
    assert len(samples) == len(rows) == 50
    for sample, row in zip(samples, rows, strict=True):
        for name in ("id", "scheduled_ns", "sent_ns", "lateness_ns", "tries", "bound_ns"):
            assert sample[name] == int(row[name])
        assert (sample["status"], sample["departure_stamp"]) == (row["status"], row["departure_stamp"])


def test_stop_on_eof(shared_pair, ktrxer):
    a, b = shared_pair
    child = a.popen([ktrxer, "send", b.address, "-r", "1k", "--json", "--stop-on-eof"], stdin=subprocess.PIPE)
    flowing(a, 150)
    child.stdin.close()
    child.stdin = None
    start = time.monotonic()
    output, _ = child.communicate(timeout=10)
    assert time.monotonic() - start < 2
    assert closed(json.loads(output))["sent"] >= 150


def test_stopped_before_the_start(shared_pair, ktrxer):
    a, b = shared_pair
    at = time.time_ns() + 60 * 10**9
    child = a.popen([ktrxer, "send", b.address, "-r", "1k", "-c", "10", "--jsonl", "--start-at", str(at)])
    assert json.loads(child.stdout.readline())["type"] == "start"
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=10)
    result = closed(json.loads(output.splitlines()[-1]))
    assert (result["requested"], result["cancelled"], result["verdict"]) == (10, 10, "degraded")


def test_a_list_that_cannot_be_kept_is_sent_late(shared_pair, ktrxer, tmp_path):
    a, b = shared_pair
    times = tmp_path / "list"
    times.write_text("".join(f"{i}\n" for i in range(3000)))
    done = a.run([ktrxer, "send", b.address, "--schedule", times, "--json"], check=False)
    result = closed(json.loads(done.stdout))
    assert result["late"] > 1000 and result["lateness_us"]["p50"] > 0
    assert (result["verdict"] == "valid") == (result["skipped"] + result["failed"] <= 30)
