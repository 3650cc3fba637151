# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runners of other projects' tools: iperf3, iperf and netperf, by what they printed, cut off and changed."""

import json
import re
import shlex

import pytest
from tool_output import MS, S, command, outcome, rows

# ------------------------------------------------------------------------------------------------------------------ iperf3


def stream(socket, start, count, sender=True, length=1.0, **more):
    return {"socket": socket, "start": start, "end": start + length, "seconds": length, "bytes": count, "bits_per_second": 8.0 * count,
            "omitted": False, "sender": sender, **more}  # fmt: skip


def interval(*streams):
    return {"streams": list(streams), "sum": {}}


TCP = {"retransmits": 2, "snd_cwnd": 87_040, "rtt": 21_000, "rttvar": 900, "pmtu": 1500}
SERVER_TEXT = """-----------------------------------------------------------
Server listening on 5201 (test #1)
-----------------------------------------------------------
Accepted connection from 10.0.0.1, port 40000
[  5] local 10.0.0.2 port 5201 connected to 10.0.0.1 port 40002
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  1.11 MBytes  9.33 Mbits/sec
[  5]   1.00-2.00   sec  1.14 MBytes  9.56 Mbits/sec
[  5]   2.00-2.06   sec  68.2 KBytes  9.31 Mbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-2.06   sec  2.32 MBytes  9.44 Mbits/sec                  receiver
"""
UPLOAD = {
    "start": {"version": "iperf 3.12", "timestamp": {"timesecs": 1795411612}},
    "intervals": [interval(stream(5, 0, 1_400_000, **TCP)), interval(stream(5, 1, 1_200_000, **TCP))],
    "end": {"streams": [{"sender": stream(5, 0, 2_600_000, length=2.0), "receiver": stream(5, 0, 2_430_000, length=2.06)}]},
    "server_output_text": SERVER_TEXT,
}


def test_iperf3_upload():
    samples = outcome("iperf3", json.dumps(UPLOAD).encode(), at_ns=3 * S)
    made = rows(samples)
    assert samples.garbage == 0 and samples.notes == []
    here = [row for row in made["bytes"]["x"] if row["end"] == 0]
    there = [row for row in made["bytes"]["x"] if row["end"] == 1]
    # It was started at 0, and its last interval ended before 3 s: it began at 0.5 s, +- 0.5 s.
    assert [(row["t_ns"], row["bytes"]) for row in here] == [(S // 2, 0), (3 * S // 2, 1_400_000), (5 * S // 2, 2_600_000)]
    assert all(row["bound_ns"] == S // 2 for row in here + there)
    assert [row["t_ns"] for row in there] == [S // 2, 3 * S // 2, 5 * S // 2, 2_560_000_000]
    assert there[-1]["bytes"] == 2_430_000, "the text has three digits, the sum is exact"
    assert there[1]["bytes"] == pytest.approx(2_430_000 * 1.11 / (1.11 + 1.14 + 68.2 / 1024), rel=1e-6)
    assert [(row["rtt_us"], row["retransmits"]) for row in made["tcp_info"]["x"]] == [(21_000, 2), (21_000, 4)]


def test_iperf3_with_the_json_of_the_server():
    far = {"intervals": [interval(stream(7, 0, 1_300_000, sender=False)), interval(stream(7, 1, 1_130_001, sender=False))]}
    made = rows(outcome("iperf3", json.dumps(UPLOAD | {"server_output_json": far}).encode()))
    assert [row["bytes"] for row in made["bytes"]["x"] if row["end"] == 1] == [0, 1_300_000, 2_430_001]


def test_iperf3_both_directions_and_several_flows():
    both = [stream(5, 0, 10, **TCP), stream(7, 0, 20, **TCP), stream(9, 0, 30, sender=False), stream(11, 0, 40, sender=False)]
    text = "[  6][RX-S]   0.00-1.00   sec  10.0 Bytes  80.0 bits/sec\n[ 10][TX-S]   0.00-1.00   sec  31.0 Bytes  248 bits/sec    0   93 KBytes\n"
    text += "[SUM][RX-S]   0.00-1.00   sec  10.0 Bytes  80.0 bits/sec\n"
    output = {"intervals": [interval(*both)], "end": {}, "server_output_text": text}
    made = rows(outcome("iperf3", json.dumps(output).encode(), direction="both", flows=2))["bytes"]
    assert {name: (values[-1]["end"], values[-1]["bytes"]) for name, values in made.items()} == {
        "x up::1": (1, 10), "x up::2": (0, 20), "x down::1": (0, 30), "x down::2": (0, 40)
    }  # fmt: skip


def test_iperf3_udp_down():
    udp = [stream(5, n, 125_000, sender=False, jitter_ms=0.02, lost_packets=lost, packets=100, lost_percent=lost) for n, lost in enumerate((0, 3))]
    made = rows(outcome("iperf3", json.dumps({"intervals": [interval(one) for one in udp], "end": {}}).encode(),
                        direction="down", protocol="udp", bitrate_bps=10**6))  # fmt: skip
    assert [row["value"] for row in made["value"]["x loss"]] == [0, 3] and made["bytes"]["x"][-1]["bytes"] == 250_000


def test_iperf3_that_failed():
    samples = outcome("iperf3", b'{"start": {}, "intervals": [], "end": {}, "error": "unable to connect to server: Connection refused"}')
    assert [one.text for one in samples.notes] == ["iperf3: unable to connect to server: Connection refused"]


@pytest.mark.parametrize("change", [
    lambda text: text[:-30], lambda text: text + b"[ ID] Interval\n", lambda text: text.replace(b'"socket": 5', b'"socket": []'),
    lambda text: text.replace(b"1400000", b"-1e999"), lambda text: text.replace(b'"intervals"', b'"interval"'),
    lambda text: text.replace(b'"sender": true', b'"sender": false'),
])  # fmt: skip
def test_iperf3_that_is_none(change):
    assert outcome("iperf3", change(json.dumps(UPLOAD).encode())).garbage == 1


def test_iperf3_command():
    words = command("iperf3", 10.7, direction="both", flows=4, protocol="udp", bitrate_bps=10**6, payload_bytes=1200, mark="EF")
    assert words == shlex.split("iperf3 -c far -p 5201 -J --get-server-output -t 10 -P 4 -i 1 --bidir -u -b 1000000 -l 1200 -S 184 -4 -B 10.0.0.1")
    assert "-R" in command("iperf3", direction="down") and "-C" in command("iperf3", cc="reno")


# ----------------------------------------------------------------------------------------------------------- netperf, iperf

NETPERF = b"""Interim result:    9.41 10^6bits/s over 0.201 seconds ending at 1795411612.501
Interim result:   10.00 10^6bits/s over 0.20 seconds ending at 1795411612.701
Interim result:    0.00 10^6bits/s over 0.400 seconds ending at 1795411613.101
THROUGHPUT=9.41
THROUGHPUT_UNITS=10^6bits/s
ELAPSED_TIME=10.03
LOCAL_BYTES_SENT=11797504
REMOTE_BYTES_RECVD=11796480
LOCAL_CONG_CONTROL=cubic
"""


def test_netperf():
    samples = outcome("netperf", NETPERF)
    assert samples.garbage == 0 and samples.result["REMOTE_BYTES_RECVD"] == "11796480" and samples.result["LOCAL_CONG_CONTROL"] == "cubic"
    first = round(9.41e6 / 8 * 0.201)
    assert [(row["t_ns"], row["end"], row["bytes"]) for row in rows(samples)["bytes"]["x"]] == [
        (300 * MS, 0, 0), (501 * MS, 0, first), (701 * MS, 0, pytest.approx(first + 250_000, abs=1)), (1101 * MS, 0, pytest.approx(first + 250_000, abs=1)),
    ]  # fmt: skip


@pytest.mark.parametrize("output, garbage", [
    (NETPERF[:70], 1), (NETPERF.replace(b"ending at 1795", b"ending at 95"), 3), (NETPERF.replace(b"10^6bits", b"Trans"), 3),
    (NETPERF + b"catcher: timer popped with times_up != 0\n", 1), (NETPERF.replace(b"9.41 10", b"9..41 10"), 1),
])  # fmt: skip
def test_netperf_that_is_none(output, garbage):
    assert outcome("netperf", output).garbage == garbage


def test_netperf_round_trips():
    output = b"".join(b"Interim result: 500.00 Trans/s over 0.200 seconds ending at %d.%03d\n" % (1795411612 + n // 5, n % 5 * 200) for n in range(1, 300))
    samples = outcome("netperf_rr", output)
    assert samples.notes == [] and {row["value"] for row in rows(samples)["value"]["x"]} == {2.0}
    assert re.search(r"nothing in its last 50.2 s: UDP_RR stops measuring after a lost packet", outcome("netperf_rr", b"".join(output.splitlines(True)[:49])).notes[0].text)


def test_netperf_commands():
    up = command("netperf", 10.7, cc="reno", mark="EF", payload_bytes=16384)
    assert up[: up.index("--")] == shlex.split(
        "netperf -P 0 -v 0 -D -0.2 -f m -t TCP_STREAM -l 10 -Y 184,184 -4 -L 10.0.0.1 -H far -p 12865"
    )
    assert up[-4:] == ["-m", "16384", "-K", "reno"]
    assert "TCP_MAERTS" in command("netperf", direction="down") and "UDP_RR" in command("netperf_rr")


IPERF = b"""------------------------------------------------------------
Client connecting to 10.0.0.2, TCP port 5001 with pid 4242 (1 flows)
Write buffer size: 131072 Byte
TOS set to 0x0 (Nagle on)
TCP window size: 87040 Byte (default)
------------------------------------------------------------
[  1] local 10.0.0.1%eth0 port 40002 connected with 10.0.0.2 port 5001 (sock=3) (icwnd/mss/irtt=14/1448/20000) (ct=20.10 ms) on 2026-11-23 06:00 (UTC)
[ ID] Interval        Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr
[  1] 0.0000-0.2000 sec  262144 Bytes  10485760 bits/sec  2/0         0       14K/20012(10) us  65.5
[  1] 0.2000-0.4000 sec  393216 Bytes  15728640 bits/sec  3/0         1       28K/20112(12) us  97.7
[  1] 0.0000-0.4321 sec  655360 Bytes  12133490 bits/sec  5/0         1       NA/20112(12)us    75.4
"""
IPERF_UDP = b"""------------------------------------------------------------
Client connecting to 10.0.0.2, UDP port 5001 with pid 4243 (1 flows)
TOS set to 0x0 (Nagle on)
Sending 1470 byte datagrams, IPG target: 11215.21 us (kalman adjust)
UDP buffer size: 212992 Byte (default)
------------------------------------------------------------
[  1] local 10.0.0.1 port 40003 connected with 10.0.0.2 port 5001
[ ID] Interval        Transfer     Bandwidth      Write/Err  PPS
[  1] 0.0000-1.0000 sec  132300 Bytes  1058400 bits/sec  90/0       90 pps
[  1] 0.0000-1.0211 sec  133770 Bytes  1048046 bits/sec  91/0       89 pps
[  1] Sent 92 datagrams
[  1] Server Report:
[ ID] Interval        Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS Read/Timeo/Trunc NetPwr
[  1] 0.0000-1.0210 sec  130830 Bytes  1025112 bits/sec   0.012 ms 2/91 (2.2%) 0.061/0.033/0.155/0.018 ms 89 pps 90/0/0 2098
"""


def test_iperf():
    samples = outcome("iperf", IPERF, at_ns=S)
    assert samples.garbage == 0
    assert [(row["t_ns"], row["bytes"], row["bound_ns"]) for row in rows(samples)["bytes"]["x"]] == [
        (400 * MS, 0, 400 * MS), (600 * MS, 262_144, 400 * MS), (800 * MS, 655_360, 400 * MS)
    ]  # fmt: skip


IPERF_DOWN = b"""[  1] local 127.0.0.1%lo port 41636 connected with 127.0.0.1 port 5998 (reverse) (sock=3) (icwnd/mss/irtt=319/32741/20) (ct=0.42 ms) on 2026-11-23
[  2] local 127.0.0.1%lo port 41652 connected with 127.0.0.1 port 5998 (reverse) (sock=4) (icwnd/mss/irtt=319/32741/11) (ct=0.03 ms) on 2026-11-23
[ ID] Interval            Transfer    Bandwidth       Reads=Dist
[ *1] 0.0000-0.2000 sec  128000 Bytes  5119974 bits/sec  1=0:0:0:0:0:0:0:1
[ *2] 0.0000-0.2000 sec  3072 Bytes  122879 bits/sec  1=0:0:0:0:0:0:0:1
[SUM] 0.0000-0.2000 sec  131072 Bytes  10239949 bits/sec  2=0:0:0:0:0:0:0:2
[ *1] 0.2000-0.4000 sec  0.000 Bytes  0.000 bits/sec  0=0:0:0:0:0:0:0:0
[ *1] 0.0000-0.4748 sec  128000 Bytes  1997563 bits/sec  4=1:0:0:0:0:0:0:3
[ CT] final connect times (min/avg/max/stdev) = 0.028/0.226/0.423/279.307 ms (tot/err) = 2/0
"""


def test_iperf_down():
    samples = outcome("iperf", IPERF_DOWN, direction="down", flows=2)
    made = rows(samples)["bytes"]
    assert samples.garbage == 0 and {name: [row["bytes"] for row in made[name]] for name in made} == {"x::1": [0, 128_000, 128_000], "x::2": [0, 3072]}


def test_iperf_udp():
    samples = outcome("iperf", IPERF_UDP, protocol="udp", bitrate_bps=10**6)
    assert samples.garbage == 0 and samples.result == {"receiver": [{"flow": 0, "bytes": 130_830, "lost": 2, "packets": 91}]}
    assert [row["bytes"] for row in rows(samples)["bytes"]["x"]] == [0, 132_300]
    down = IPERF_UDP.replace(b"90/0       90 pps\n", b"0.012 ms 9/90 (10%)\n")
    assert [row["value"] for row in rows(outcome("iperf", down, direction="down", protocol="udp", bitrate_bps=10**6))["value"]["x loss"]] == [10]


@pytest.mark.parametrize("output, garbage", [
    (IPERF[:-60], 0), (IPERF + b"connect failed: Connection refused\n", 1), (IPERF + b"[  2] 0.0-1.0 sec 5 Bytes 40 bits/sec\n", 1),
    (IPERF.replace(b"262144 B", b"2.6.2 B"), 1), (b"iperf3: error - unable to connect\n" * 30, 30),
])  # fmt: skip
def test_iperf_that_is_none(output, garbage):
    assert outcome("iperf", output).garbage == garbage


def test_iperf_command():
    words = command("iperf", 10.5, direction="down", flows=2, mark="CS1", cc="reno")
    assert words == shlex.split("iperf -c far -p 5001 -e -f b -i 0.2 -P 2 -t 10.5 -R -Z reno -S 32 -B 10.0.0.1")
