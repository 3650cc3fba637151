# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runners of other projects' tools: irtt, ping, D-ITG, curl and any command, by what they printed, cut off and changed."""

import json
import shlex

import pytest
from ktrxer.runners.playback import Playback, playback
from ktrxer.store.columns import ANSWERED, DUPLICATE, LOST, LOST_DOWN, LOST_UP
from tool_output import MS, ZERO, S, command, outcome, rows

# ------------------------------------------------------------------------------------------------------------ irtt, iputils


def trip(number, lost=False, rtt=134_460):
    stamps = {"client": {"receive": {}, "send": {"wall": ZERO + number * 20 * MS, "monotonic": 2_776_704}}, "server": {"receive": {}, "send": {}}}
    if lost is not False:
        return {"seqno": number, "lost": lost, "timestamps": stamps, "delay": {}, "ipdv": {}}
    stamps["server"]["receive"] = {"wall": ZERO + number * 20 * MS + 89_283, "monotonic": 32_644_353_327}
    return {"seqno": number, "lost": lost, "timestamps": stamps, "delay": {"receive": 45_177, "rtt": rtt, "send": 89_283}, "ipdv": {}}


def irtt(**stats):
    counts = {"packets_sent": 5, "packets_received": 2, "duplicates": 0, "late_packets": 1, "timer_misses": 0, "server_packets_received": 3}
    trips = [trip(0), trip(1, True), trip(2, "true_up"), trip(3, "true_down"), trip(4)]
    config = {"remote_address": "[fd00::2]:2112", "params": {"length": 48}}
    return json.dumps({"config": config, "stats": counts | stats, "round_trips": trips}).encode()


def test_irtt():
    samples = outcome("irtt", irtt())
    assert samples.garbage == 0 and samples.notes == [] and samples.result["late_packets"] == 1
    assert (samples.result["payload_bytes"], samples.result["to"]) == (48, "fd00::2")
    made = rows(samples)["latency"]["x"]
    assert [row["state"] for row in made] == [ANSWERED, LOST, LOST_UP, LOST_DOWN, ANSWERED] and [row["seq"] for row in made] == [0, 1, 2, 3, 4]
    assert made[4] == {"t_ns": 80 * MS, "seq": 4, "rtt_ns": 134_460, "state": ANSWERED, "far_ns": ZERO + 80 * MS + 89_283}


@pytest.mark.parametrize("change", [
    lambda text: text[:-30], lambda text: text + b"{}", lambda text: text.replace(b'"true_up"', b'"perhaps"'),
    lambda text: text.replace(b"134460", b"134460.5"), lambda text: text.replace(b"179541", b"79541"),
])  # fmt: skip
def test_irtt_that_is_none(change):
    assert outcome("irtt", change(irtt())).garbage == 1


def test_irtt_command():
    words = command("irtt", 2, mark="EF", payload_bytes=172, host="fd00::2")
    assert words == shlex.split(
        "irtt client -Q -o - -d 2000000000ns -i 20000000ns --wait=3x4000000000ns -l 172 --dscp=184 --local=10.0.0.1 -4 [fd00::2]:2112"
    )


PING = b"""PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
[1795411612.021000] 64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=1.00 ms
[1795411612.122000] 64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=2.00 ms
[1795411612.123000] 64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=3.00 ms (DUP!)
[1795411612.250000] From 10.0.0.9 icmp_seq=3 Destination Host Unreachable
[1795411612.321500] 64 bytes from 10.0.0.2: icmp_seq=4 ttl=64 time=1.50 ms

--- 10.0.0.2 ping statistics ---
5 packets transmitted, 3 received, +1 duplicates, +1 errors, 40% packet loss, time 402ms
rtt min/avg/max/mdev = 1.000/1.875/3.000/0.739 ms
"""


def test_iputils():
    samples = outcome("iputils", PING)
    made = sorted((row["seq"], row["state"], row["t_ns"]) for row in rows(samples)["latency"]["x"])
    assert samples.result == {"payload_bytes": 56, "to": "10.0.0.2", "sent": 5}
    assert samples.garbage == 0 and made == [
        (1, ANSWERED, 20 * MS), (2, ANSWERED, 120 * MS), (2, DUPLICATE, 120 * MS), (3, LOST, 220 * MS), (4, ANSWERED, 320 * MS), (5, LOST, 420 * MS)
    ]  # fmt: skip


def test_iputils_after_65536_probes():
    output = b"".join(b"[1795411612.%06d] 64 bytes from h: icmp_seq=%d ttl=1 time=1 ms\n" % (n, seq) for n, seq in enumerate((65_534, 65_535, 1, 0, 2)))
    answered = [row["seq"] for row in rows(outcome("iputils", output))["latency"]["x"] if row["state"] == ANSWERED]
    assert answered[:1] == [65_534 - 65_536] or answered == [65_534, 65_535, 65_537, 65_536, 65_538]


@pytest.mark.parametrize("output, garbage", [
    (PING[:60], 1), (PING.replace(b"time=1.00", b"time=1..0"), 1), (PING.replace(b"[1795411612", b"[17954"), 4),
    (b"[1795411612.41870] 127.0.0.1 : [0], 64 bytes, 0.032 ms (0.032 avg, 0% loss)\n" * 30, 30),
])  # fmt: skip
def test_iputils_that_is_none(output, garbage):
    assert outcome("iputils", output).garbage == garbage


# -------------------------------------------------------------------------------------------------------------------- D-ITG

def packet(flow, seq, sent, received):
    """A line as ITGDec prints it."""
    return f"Flow>{flow:04d} Seq>{seq:7d} Src>{'10.0.0.1':>46s}/33000 Dest>{'10.0.0.2':>46s}/8999 txTime>{sent} rxTime>{received} Size>  512\n".encode()


DITG = packet(1, 1, "5:26:52.100000", "5:26:52.121000") + packet(2, 1, "5:26:52.100500", "5:26:52.131500") + packet(1, 4, "5:26:52.130000", "5:26:52.150000")


def test_ditg():
    samples = outcome("ditg", DITG, flows=2)
    made = rows(samples)["latency"]
    assert samples.garbage == 0 and [(row["t_ns"], row["rtt_ns"]) for row in made["x::2"]] == [(100_500_000, 31 * MS)]
    assert [(row["seq"], row["state"], row["t_ns"]) for row in made["x::1"]] == [
        (1, ANSWERED, 100 * MS), (4, ANSWERED, 130 * MS), (2, LOST, 110 * MS), (3, LOST, 120 * MS)
    ]  # fmt: skip


def test_ditg_at_midnight():
    made = rows(outcome("ditg", DITG.replace(b"5:26:52", b"23:59:59").replace(b"rxTime>23:59:59", b"rxTime>0:00:00"), (ZERO // (86_400 * S)) * 86_400 * S))
    assert [(row["t_ns"], row["rtt_ns"]) for row in made["latency"]["x"] if row["seq"] == 1] == [(-900 * MS, 1021 * MS)]


@pytest.mark.parametrize("output, garbage", [(DITG[:-30], 1), (DITG + b"** ERROR **\n", 1), (DITG.replace(b"5:26", b"17:26"), 3), (DITG + packet(3, 1, "5:26:52.1", "5:26:52.2"), 1)])
def test_ditg_that_is_none(output, garbage):
    assert outcome("ditg", output, flows=2).garbage == garbage


def test_ditg_command():
    assert command("ditg", 2, flows=2, mark="EF")[4:] == [
        f"-a far -sa 10.0.0.1 -m rttm -t 2000 -b 184 -rp {port} -T UDP -c 512 -C 100" for port in (8999, 9000)
    ]
    assert command("ditg", model="voip")[-1].endswith("-rp 8999 VoIP -x G.711.2 -h RTP") and "-E 100" in command("ditg", model="poisson")[-1]


# --------------------------------------------------------------------------------------------------------------- http, video


def page(at_ns, exitcode=0, http_code=200, tls=0.0):
    made = {"content_type": "text/html", "errormsg": "Could not resolve host: h" if exitcode else None, "exitcode": exitcode, "http_code": http_code,
            "http_version": "1.1", "num_connects": 1, "size_download": 5000, "time_namelookup": 0.010, "time_connect": 0.030, "time_appconnect": tls,
            "time_pretransfer": 0.031, "time_starttransfer": 0.090, "time_total": 0.100, "url_effective": "http://h/"}  # fmt: skip
    return f"{ZERO + at_ns} {json.dumps(made)}\n".encode()


def test_http():
    samples = outcome("http", page(0) + page(S))
    made = {name: [round(row["value"], 6) for row in values] for name, values in rows(samples)["value"].items()}
    assert samples.notes == [] and samples.result == {"fetches": 2, "failed": 0}
    assert made == {"x dns": [10, 10], "x connect": [20, 20], "x first byte": [60, 60], "x load": [100, 100]}
    made = rows(outcome("http", page(0, tls=0.07), pages=("https://h/",)))["value"]
    assert made["x tls"][0]["value"] == pytest.approx(40) and made["x first byte"][0]["value"] == pytest.approx(20)


def test_http_pages_that_fail():
    samples = outcome("http", page(0) + page(S, exitcode=6, http_code=0) + page(2 * S, http_code=404))
    assert [text for _, _, text in samples.events] == ["http://h/: Could not resolve host: h", "http://h/: 404"]
    assert [one.text for one in samples.notes] == ["2 of 3 fetches failed; the first: http://h/: Could not resolve host: h"] and samples.garbage == 0


@pytest.mark.parametrize("output", [page(0)[:-30], page(0)[11:], page(0).replace(b"0.01,", b'"x",'), page(0) + b"curl: (6) Could not resolve\n"])
def test_http_that_is_none(output):
    assert outcome("http", output).garbage == 1


def test_http_command():
    words = command("http", 2, version="2")
    assert words[:2] == ["sh", "-c"] and words[3:] == ["sh", "1000000000", "2000000000", "http://far/"]
    assert "curl -q -s -g --noproxy '*' -o /dev/null --proto =http,https --max-time 10 -4 --interface 10.0.0.1 --http2 -w '%{json}\\n' --url" in words[2]


@pytest.mark.parametrize("arrivals, ends, made", [
    ([], 100, Playback()),
    ([(10, 20)], None, Playback(10, 30, [], [(10, 20)])),
    ([(10, 20), (25, 20)], None, Playback(10, 50, [], [(10, 20), (25, 25)])),
    ([(10, 20), (30, 20)], None, Playback(10, 50, [], [(10, 20), (30, 20)])),
    ([(10, 20), (45, 20), (50, 20)], None, Playback(10, 85, [(30, 15)], [(10, 20), (45, 20), (50, 35)])),
    ([(10, 20), (45, 20)], 100, Playback(10, 65, [(30, 15), (65, 35)], [(10, 20), (45, 20)])),
    ([(10, 20)], 30, Playback(10, 30, [], [(10, 20)])),
])  # fmt: skip
def test_when_a_video_stops(arrivals, ends, made):
    assert playback(arrivals, ends) == made


def segment(begin_ms, end_ms, number, rate, status=200):
    return f"{ZERO + begin_ms * MS} {ZERO + end_ms * MS} {number} {rate} {status} {rate * 250 // (end_ms - begin_ms)}\n".encode()


def test_video():
    output = segment(0, 500, 1, 300_000) + segment(500, 3000, 2, 750_000) + segment(3000, 3100, 3, 300_000, 404) + segment(4100, 4600, 3, 300_000)
    samples = outcome("video", output, url="http://h/{bitrate}/{segment}")
    made = {name: [(row["t_ns"] // MS, row["value"]) for row in values] for name, values in rows(samples)["value"].items()}
    assert made["x bitrate"] == [(0, 0.3), (500, 0.75), (4100, 0.3)] and made["x throughput"][0] == (500, 1.2)
    assert made["x buffer"] == [(500, 2), (3000, 2), (4600, 2.4)] and made["x stall"] == [(2500, 500), (7000, 53_000)]
    assert samples.result == {"segments": 3, "failed": 1, "startup_ns": 500 * MS, "stalls": 2, "stalled_ns": 53_500 * MS}
    assert [one.text for one in samples.notes] == ["1 of 4 fetches failed; the first: segment 3 at 300000 bit/s: status 404"]


@pytest.mark.parametrize("output", [segment(0, 500, 1, 300_000)[:-9], b"1 2 3\n", segment(0, 500, 1, 300_000)[1:]])
def test_video_that_is_none(output):
    assert outcome("video", output, url="http://h/").garbage == 1


# ------------------------------------------------------------------------------------------------------------------- number


def test_numbers():
    output = f"{ZERO} load average: 0.52 \n{ZERO + S} -1.5e3 \n{ZERO + 2 * S} \n".encode()
    samples = outcome("number", output, words=("uptime",))
    assert [(row["t_ns"], row["value"]) for row in rows(samples)["value"]["x"]] == [(0, 0.52), (S, -1500)] and samples.garbage == 1
    samples = outcome("number", b"cwnd:10 rtt:5\n\ncwnd:12\nnone\n", at_ns=7, words=("ss",), repeat=False, pattern=r"cwnd:(\d+)", unit="segments")
    assert [(row["t_ns"], row["value"]) for row in rows(samples)["value"]["x"]] == [(7, 10), (7, 12)] and samples.garbage == 1


def test_number_commands():
    assert command("number", words=("tc", "-s", "qdisc"), repeat=False) == ["tc", "-s", "qdisc"]
    assert command("number", 2, words=("tc", "-s"))[3:] == ["sh", "1000000000", "2000000000", "tc", "-s"]
