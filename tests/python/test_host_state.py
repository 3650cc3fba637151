# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runners of host state: recorded netlink messages and the output of tools give the same rows; damaged and hostile ones give no wrong rows.
test_queues.py has the runner `qdisc`.

The messages follow the kernel's UAPI headers, the texts the sources of iproute2 and iw.
"""

import itertools
import json
import os
import struct
import subprocess
import time

import pytest
from ktrxer import runners
from ktrxer.collect import sockets, wifi
from ktrxer.panels.makers import others
from ktrxer.runners import Options, RunnerError, Times, ss_text, state
from ktrxer.runners import wifi as wifi_runner
from ktrxer.runners.samples import Clock, Samples
from ktrxer.store import Host, Meta, RunWriter, Zero, open_run
from ktrxer.summary import figures
from state_output import MS, START, S, fed, frame, values
from test_collect import attribute, inside

U32, U64 = struct.Struct("=I").pack, struct.Struct("=Q").pack

# ----------------------------------------------------------------------------------------------------------------- sockets


def tcp_info(**fields):
    data = bytearray(232)
    for name, value in fields.items():
        at, letter = sockets._INFO[name]
        struct.pack_into(f"={letter}", data, at, value)
    return bytes(data)


INFO = {"unacked": 5, "lost": 1, "rtt_us": 12345, "rttvar_us": 678, "ssthresh_segments": 7, "cwnd_segments": 10, "retransmits": 3,
        "pacing_rate": 1_000_000, "bytes_acked": 5000, "bytes_received": 600, "min_rtt_us": 11000, "delivery_rate": 250_000, "delivered_ce": 4}
BBR = attribute(16, struct.pack("=5I", 1_000_000, 0, 11_500, 739, 512))


def socket_message(info=INFO, more=b"", family=2, source=b"\x0a\x00\x00\x01", peer=b"\x0a\x00\x00\x02"):
    head = struct.pack("=BBBB", family, 1, 0, 0) + struct.pack("!HH", 40000, 443) + source.ljust(16, b"\0") + peer.ljust(16, b"\0")
    head += struct.pack("=I8s", 0, b"cookie12") + bytes(20)
    return memoryview(head + attribute(2, tcp_info(**info)) + attribute(4, b"bbr\0") + more)


SS = ("ESTAB 0      0      10.0.0.1:40000  10.0.0.2:443   ts sack bbr wscale:7,7 rto:204 rtt:12.345/0.678 ato:40 mss:1448 pmtu:1500 rcvmss:536 "
      "advmss:1448 cwnd:10 ssthresh:7 bytes_sent:6000 bytes_acked:5000 bytes_received:600 segs_out:9 segs_in:8 data_segs_out:7 "
      "bbr:(bw:8000000bps,mrtt:11.5,pacing_gain:2.88672,cwnd_gain:2) send 9383000bps lastsnd:4 pacing_rate 8000000bps delivery_rate 2000000bps "
      "delivered:7 delivered_ce:4 app_limited busy:100ms unacked:5 retrans:0/3 lost:1 rcv_space:14480 rcv_ssthresh:64088 minrtt:11\n")


def test_sock_diag_and_ss_give_the_same():
    one = sockets.parse(socket_message(more=BBR))
    (other,) = ss_text.sockets(SS)
    assert (one.source, one.source_port, one.peer, one.peer_port, one.cc) == ("10.0.0.1", 40000, "10.0.0.2", 443, "bbr")
    assert (other.source, other.source_port, other.peer, other.peer_port, other.cc) == ("10.0.0.1", 40000, "10.0.0.2", 443, "bbr")
    assert one.info == other.info and one.info["pacing_rate_bps"] == 8_000_000 and one.info["retransmits"] == 3
    assert one.bbr == pytest.approx(other.bbr, rel=1e-5) and one.bbr["pacing_gain"] == 739 / 256


@pytest.mark.parametrize(("text", "source"), [
    ("ESTAB 0 0 [2001:db8::1]:40000 [2001:db8::2]:443 cubic cwnd:10", "2001:db8::1"),
    ("ESTAB 0 0 [::ffff:10.0.0.1]:40000 [::ffff:10.0.0.2]:443 cubic cwnd:10", "10.0.0.1"),
    ("0 0 10.0.0.1%eth0:40000 10.0.0.2:443\n\t cubic rto:204 cwnd:10", "10.0.0.1"),
    ("ESTAB 0 0 [fe80::1]%eth0:40000 [fe80::2]%eth0:443 cubic wscale:7,7 cwnd:10", "fe80::1"),
])
def test_spellings_of_ss(text, source):
    (one,) = ss_text.sockets(text)
    assert (one.source, one.source_port, one.peer_port, one.cc) == (source, 40000, 443, "cubic")
    assert one.info == {"cwnd_segments": 10, "unacked": 0, "lost": 0, "retransmits": 0} and one.bbr == {}


@pytest.mark.parametrize("text", [
    "", "State Recv-Q Send-Q Local Address:Port Peer Address:Port", "LISTEN 0 128 0.0.0.0:22 0.0.0.0:*", "ESTAB 0 0 999.1.1.1:1 10.0.0.2:443 cubic cwnd:1",
    "ESTAB 0 0 10.0.0.1:x 10.0.0.2:443", "\x00", "a:b c:d",
])
def test_lines_that_are_no_sockets(text):
    assert list(ss_text.sockets(text)) == []


def test_a_socket_that_closes_has_no_details():
    closing, other = ss_text.sockets("LAST-ACK 0 1 10.0.0.1:40000 10.0.0.2:443\n" + SS)
    assert (closing.source_port, closing.info, closing.cc) == (40000, {}, "") and other.info["cwnd_segments"] == 10


def test_numbers_of_ss_that_cannot_be():
    hostile = "E 0 0 1.2.3.4:1 5.6.7.8:2 cubic cwnd:1e9 rtt:-5/x minrtt:1.2.3 pacing_rate 99999999999999999999Tbps bbr:(bw:x,mrtt:nan,pacing_gain:) cwnd:"
    (one,) = ss_text.sockets(hostile)
    assert one.info == {} and one.bbr == {} and one.cc == "cubic"


def test_socket_messages_that_are_cut_off():
    whole = socket_message(more=BBR)
    everything = sockets.parse(whole)
    for cut in range(len(whole)):
        one = sockets.parse(whole[:cut])
        assert one is None or (one.info.items() <= everything.info.items() and one.bbr.items() <= everything.bbr.items())
    old = sockets.parse(memoryview(bytes(whole[:72]) + attribute(2, tcp_info(**INFO)[:104])))
    assert old.info["retransmits"] == 3 and "pacing_rate_bps" not in old.info, "Linux before 3.15"
    never = sockets.parse(socket_message(INFO | {"ssthresh_segments": 0x7FFFFFFF, "pacing_rate": (1 << 64) - 1}))
    assert "ssthresh_segments" not in never.info and "pacing_rate_bps" not in never.info
    assert sockets.parse(socket_message(family=1)) is None


def test_rows_of_sockets():
    other = SS.replace("cwnd:10", "cwnd:12").replace("bytes_acked:5000", "bytes_acked:7000")
    samples = fed("sockets", frame(SS), frame(other, 200 * MS), frame("", 400 * MS))
    assert samples.garbage == 0
    names = {series.name: series for series in samples.series.values()}
    assert {"sockets 40000 to 443", "sockets 40000 to 443 bytes_acked", "sockets 40000 to 443 BBR bw"} <= set(names)
    assert names["sockets 40000 to 443"].kind == "tcp_info" and names["sockets 40000 to 443"].direction is None
    assert samples._rows["tcp_info"][6] == [10, 12] and samples._rows["tcp_info"][1] == [0, 200 * MS]
    assert values(samples)["sockets 40000 to 443 BBR bw"] == [(0, 8.0), (200 * MS, 8.0)]
    assert list(values(fed("sockets", frame(SS), addresses=True), "tcp_info")) == ["sockets 10.0.0.1:40000 to 10.0.0.2:443"]
    assert values(fed("sockets", frame(SS), port=80), "tcp_info") == {}
    many = "".join(SS.replace(":40000", f":{port}") for port in range(1000, 1300))
    crowd = fed("sockets", frame(many))
    assert sum(series.kind == "tcp_info" for series in crowd.series.values()) == 64 and len(crowd.events) == 1


def test_peers_that_are_none():
    kind = runners.find("sockets").parameters
    for peer in ("far", "10.0.0.0/33", "10.0.0.1; true"):
        with pytest.raises(RunnerError, match="is not an IP address"):
            runners.find("sockets").validate(kind(peer=peer))
    with pytest.raises(RunnerError, match="port 70000"):
        runners.find("sockets").validate(kind(port=70000))


# -------------------------------------------------------------------------------------------------------------------- WiFi

RATE = attribute(1, struct.pack("=H", 1444)) + attribute(5, U32(8666)) + attribute(6, b"\x09")
STATION = attribute(3, U32(3)) + attribute(6, b"\x02\0\0\0\0\x07") + attribute(21, b"".join([
    attribute(2, U32(5)), attribute(23, U64(5123)), attribute(24, U64(777)), attribute(7, b"\xd8"), attribute(13, b"\xd7"), attribute(8, RATE),
    attribute(14, attribute(1, struct.pack("=H", 60))), attribute(9, U32(30)), attribute(10, U32(31)), attribute(11, U32(2)), attribute(12, U32(1)),
    attribute(18, U32(0)), attribute(27, U32(33_400)), attribute(28, U64(9)), attribute(32, U64(1234)), attribute(39, U64(5678))]))
IW = """Station 02:00:00:00:00:07 (on wlan0)
\tinactive time:\t10 ms
\trx bytes:\t5123
\trx packets:\t30
\ttx bytes:\t777
\ttx packets:\t31
\ttx retries:\t2
\ttx failed:\t1
\tbeacon loss:\t0
\trx drop misc:\t9
\tsignal:  \t-40 [-43, -42] dBm
\tsignal avg:\t-41 [-44, -43] dBm
\ttx bitrate:\t866.6 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 2
\ttx duration:\t5678 us
\trx bitrate:\t6.0 MBit/s
\trx duration:\t1234 us
\texpected throughput:\t32.617Mbps
\tauthorized:\tyes
\tconnected time:\t29 seconds
"""


def test_nl80211_and_iw_give_the_same():
    one = wifi.parse("wlan0", memoryview(STATION))
    assert wifi_runner.parse(IW) == [one] and one.values["signal"] == -40 and one.values["tx_bitrate"] == 866.6


@pytest.mark.parametrize("kbps", [0, 33, 1000, 19593, 33400, 1_000_050])
def test_expected_throughput_as_iw_prints_it(kbps):
    """By the source of iw (station.c): `thr = thr * 1000 / 1024; printf("%u.%uMbps", thr / 1000, thr % 1000)`."""
    printed = kbps * 1000 // 1024
    text = IW.replace("32.617Mbps", f"{printed // 1000}.{printed % 1000}Mbps")
    assert wifi_runner.parse(text)[0].values["expected_throughput"] == pytest.approx(kbps / 1000, abs=0.0011)


def test_stations_that_are_damaged():
    whole = wifi.parse("wlan0", memoryview(STATION))
    for cut in range(len(STATION)):
        one = wifi.parse("wlan0", memoryview(STATION[:cut]))
        assert one is None or one.values.items() <= whole.values.items()
    assert wifi_runner.parse("rx bytes: 5\n" + IW.replace("-40 [", "x [").replace("866.6", "8.6.6"))[0].values.keys() == whole.values.keys() - {
        "signal", "tx_bitrate"}
    assert len(wifi_runner.parse("Station 02:00:00:00:00:07 (on wlan0)\n" * 5000)) == wifi.STATIONS_MOST


def test_rows_of_stations_have_no_link_addresses_unless_asked():
    samples = fed("wifi", frame(IW), frame(IW.replace("tx retries:\t2", "tx retries:\t8"), 200 * MS))
    made = values(samples)
    assert made["wifi wlan0 station 1 tx_retries"] == [(0, 2.0), (200 * MS, 8.0)] and made["wifi wlan0 station 1 signal"][0] == (0, -40.0)
    assert not any("02:00" in name for name in made) and "wifi wlan0 station 1 rx_bytes" not in made, "it has not changed"
    assert any("02:00:00:00:00:07" in name for name in values(fed("wifi", frame(IW), addresses=True)))


# ------------------------------------------------------------------------------------------- processors, netstat, devices

STAT = "cpu  100 0 100 800 50 0 10 0 0 0\ncpu0 50 0 50 400 25 0 10 0 0 0\ncpu1 50 0 50 400 25 0 0 0 0 0\nintr 1 2 3\n"
LATER = "cpu  130 0 110 830 60 0 20 10 0 0\ncpu0 80 0 60 400 25 0 20 0 0 0\ncpu1 50 0 50 430 35 0 0 10 0 0\nintr 1 2 3\n"
SOFTIRQS = "                    CPU0       CPU1\n          HI:          0          0\n      NET_RX:       {}         70\n"


def test_busy_stolen_and_softirq_time():
    samples = fed("processor", frame(STAT), frame(STAT, 100 * MS), frame(LATER, 200 * MS))
    assert samples._rows["host"] == ([0], [200 * MS], [pytest.approx(60.0)], [pytest.approx(10.0)]), "no tick has passed at 100 ms"
    samples = fed("processor", frame(STAT + SOFTIRQS.format(10)), frame(LATER + SOFTIRQS.format(25), 200 * MS), cores=True)
    made = values(samples)
    assert made["processor core 0 busy"] == [(200 * MS, 100.0)] and made["processor core 0 softirq"] == [(200 * MS, 20.0)]
    assert made["processor core 1 steal"] == [(200 * MS, 20.0)]
    assert made["processor core 0 softirqs NET_RX"] == [(0, 10.0), (200 * MS, 25.0)] and "processor core 1 softirqs NET_RX" not in made


@pytest.mark.parametrize("text", ["", "cpu nonsense", "cpu  1 2", "cpu0 1 2 3 4", "cpu  1 2 3 99999999999999999999"])
def test_other_content_of_proc_stat(text):
    assert fed("processor", frame(text)).garbage == 1


NETSTAT = "TcpExt: SyncookiesSent TCPLostRetransmit\nTcpExt: 0 {}\nIpExt: InNoRoutes InOctets\nIpExt: 0 {}\n"


def test_counters_that_change_have_a_series():
    samples = fed("netstat", *(frame(NETSTAT.format(5 + max(0, n - 1), 7), n * MS) for n in range(4)))
    assert values(samples) == {"netstat TcpExt.TCPLostRetransmit": [(1 * MS, 5.0), (2 * MS, 6.0), (3 * MS, 7.0)]}, "from the last row before the change"
    assert values(fed("netstat", frame(NETSTAT.format(1, 1)), frame(NETSTAT.format(2, 2), MS), counters=("IpExt.*",))).keys() == {"netstat IpExt.InOctets"}


@pytest.mark.parametrize("text", ["", "TcpExt: A B\n", "TcpExt: A B\nIpExt: 1 2\n", "TcpExt: A B\nTcpExt: 1\n", "no colon"])
def test_other_content_of_proc_netstat(text):
    samples = fed("netstat", frame(text))
    assert samples.garbage == 1 and samples.take() == {}


DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1000      10    0    0    0     0          0         0     1000      10    0    0    0     0       0          0
  eth0:{}  20    1    2    3     0          0         4     5000      50    0    6    0     0       0          0
"""


def test_counters_of_devices():
    samples = fed("interface", frame(DEV.format(7000)), frame(DEV.format(9000), MS))
    assert values(samples) == {"interface eth0 rx_bytes": [(0, 7000.0), (MS, 9000.0)]}
    assert fed("interface", frame(DEV.format(1)), device="eth7").first_garbage == "no device eth7"
    assert fed("interface", frame("nothing")).garbage == 1


def test_names_of_devices_that_are_none():
    for name in ("qdisc", "interface", "wifi"):
        runner = runners.find(name)
        for device in ("a/b", "x" * 16, "-j", "a b", ".."):
            with pytest.raises(RunnerError, match="not a name of a network device"):
                runner.validate(runner.parameters(device=device))
        with pytest.raises(RunnerError, match="10 ms to 60 s are possible"):
            runner.validate(runner.parameters(interval_ns=5 * MS))


# ------------------------------------------------------------------------------------------------------------------ frames


def test_frames_that_are_damaged():
    good = STAT
    assert fed("processor", frame(good, status=1)).garbage == 1, "the command failed"
    assert fed("processor", b"@end 0\n").garbage == 1
    assert fed("processor", b"@state x\n").garbage == 1
    assert fed("processor", b"a message of the shell\n" + frame(good)).garbage == 1
    assert fed("processor", f"@state {START}\n".encode() + frame(good)).garbage == 1, "a frame without an end"
    assert fed("processor", f"@state {START}\ncpu 1 2".encode()).garbage == 0, "the loop was stopped"
    assert fed("processor", frame(STAT), frame(LATER, 10**6 * S)).garbage == 1, "a time far outside of the run"


def test_a_frame_has_a_limit(monkeypatch):
    monkeypatch.setattr(state, "FRAME_MOST", 1000)
    samples = fed("netstat", frame("\n".join(["x" * 100] * 50)))
    assert samples.garbage >= 1 and "without an end" in samples.first_garbage


def test_series_without_end_have_a_limit(monkeypatch):
    monkeypatch.setattr("ktrxer.runners.samples.NEW_MOST", 3)
    samples = Samples({}, Clock(0, 0), to_ns=S, name="x")
    for n in range(10):
        samples.gauge(n, 0, 1.0, f"series {n}")
    assert len(samples.series) == 3 and len(samples.notes) == 1 and len(samples._rows["value"][0]) == 3


def looped(tmp_path, body, interval_ns, length_ns, shell="sh", **programs):
    """The loop itself, by a shell of this host; `programs` replace commands."""
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    words = state.loop(body, interval_ns, Times(length_ns))
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([shell, *words[1:]], capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("@state")], done


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_loop_keeps_its_interval_and_ends(tmp_path, shell):
    before = time.time_ns()
    times, done = looped(tmp_path, 'echo "$0 ran"; exit 3', 50 * MS, 2000 * MS, shell)
    steps = [b - a for a, b in itertools.pairwise(times)]
    assert 3 <= len(times) <= 41 and before <= times[0] < times[-1] < times[0] + 2000 * MS
    assert min(steps) > 50 * MS / 4, "after a late sample, too"
    assert done.stdout.count("@end 3\n") == len(times), "the body may end its own shell only"


@pytest.mark.slow
def test_the_loop_leaves_a_slow_host_time_for_other_work(tmp_path):
    """Commands that take longer than the interval: a quarter of it passes before they run again."""
    times, _ = looped(tmp_path, "exec sleep 0.06", 50 * MS, 1000 * MS)
    assert len(times) > 1 and min(b - a for a, b in itertools.pairwise(times)) >= 60 * MS + 50 * MS / 4


@pytest.mark.slow
def test_the_loop_on_a_host_with_few_tools(tmp_path):
    """A date without nanoseconds, as in BusyBox, and a sleep without fractions."""
    times, _ = looped(tmp_path, "true", 50 * MS, 3 * S, date="case $1 in +%s%N) exec /bin/date +%sN;; esac; exec /bin/date \"$@\"",
                      sleep="case $1 in *.*) exit 1;; esac; exec /bin/sleep 0.05")
    assert len(times) > 1 and times[-1] > times[0] and all(at % S == 0 for at in times)


@pytest.mark.slow
def test_the_loop_of_a_host_whose_clock_is_set_back(tmp_path):
    clock = tmp_path / "clock"
    clock.write_text("1700000000")
    date = f"read -r s <{clock}; s=$((s - 3600)); echo $s >{clock}; echo ${{s}}000000000"
    times, _ = looped(tmp_path, "true", 50 * MS, 500 * MS, date=date)
    assert 2 <= len(times) <= 11, "the number of samples is bounded, too"


def test_a_loop_is_one_line():
    for name in ("qdisc", "processor", "sockets", "netstat", "interface", "wifi"):
        runner = runners.find(name)
        words = runner.command(runner.parameters(), Options(), Times(S))
        assert words[0] == "sh" and not any("\n" in word for word in words) and runner.auxiliary and runner.here is not None


# --------------------------------------------------------------------------------------------------- against this kernel


def test_sockets_equal_those_of_ss():
    out = inside("""
import json, socket, subprocess
from ktrxer.collect.sockets import Sockets
from ktrxer.runners import ss_text
server = socket.create_server(("127.0.0.1", 0))
client = socket.socket()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
client.connect(server.getsockname())
other, _ = server.accept()
six = socket.create_server(("::1", 0), family=socket.AF_INET6)
near = socket.create_connection(six.getsockname()[:2])
client.sendall(bytes(50_000))
got = 0
while got < 50_000:
    got += len(other.recv(65536))
diag = Sockets()
def key(one):
    return one.source, one.source_port
while True:
    ours = sorted(diag.tcp(), key=key)
    text = subprocess.run(["ss", "-tinOH"], capture_output=True, text=True).stdout
    if sorted(diag.tcp(), key=key) == ours:
        break
theirs = sorted(ss_text.sockets(text), key=key)
shown = lambda found: [[one.source, one.source_port, one.peer, one.peer_port, one.cc, one.info, one.bbr] for one in found]
one = client.getsockname()[1], server.getsockname()[1]
print(json.dumps([shown(ours), shown(theirs), one, shown(diag.tcp("127.0.0.0/8")), shown(diag.tcp("::1")), shown(diag.tcp("10.0.0.1"))]))
""")
    ours, theirs, (port, server), four, six, none = json.loads(out)
    assert [one[:5] for one in ours] == [one[:5] for one in theirs] and len(ours) >= 3
    for one, other in zip(ours, theirs, strict=True):
        for name, value in other[5].items():
            assert one[5][name] == pytest.approx(value, rel=1e-3, abs=1), (name, one)
        assert {name: one[6][name] for name in other[6]} == pytest.approx(other[6], rel=1e-3), "ss leaves out gains of 0"
    (client,) = [one for one in ours if one[1] == port]
    assert client[3] == server and client[4] == "bbr" and client[5]["bytes_acked"] >= 50_000 and client[6]["cwnd_gain"] > 0
    assert {one[0] for one in four} == {"127.0.0.1"} and {one[0] for one in six} == {"::1"} and none == []


def test_counters_of_devices_equal_those_of_proc():
    out = inside("""
import json
from pathlib import Path
from ktrxer.collect.netlink import Netlink
from ktrxer.runners.interface import parse
netlink = Netlink()
while True:
    ours = dict(netlink.counters())
    text = Path("/proc/self/net/dev").read_text()
    if dict(netlink.counters()) == ours:
        break
print(json.dumps([ours, dict(parse(text))]))
""")
    ours, theirs = json.loads(out)
    assert set(ours) == set(theirs) and "v0" in ours
    for device, counters in theirs.items():
        assert counters.items() <= ours[device].items()


def test_sources_of_this_host():
    """Two samples of each source; what this host does not have is an error of one line."""
    here = Options(host="127.0.0.1", port=8620)
    for name, parameters in (("processor", {"cores": True}), ("netstat", {}), ("interface", {"device": "lo"}), ("sockets", {})):
        runner = runners.find(name)
        p = runner.parameters(**parameters)
        source = runner.here(p, here)
        samples = Samples(runner.series(p, name), Clock(0, 0), to_ns=S, name=name)
        source.sample(samples, 0)
        source.sample(samples, MS)
        source.close()
        assert samples.garbage == 0, (name, samples.first_garbage)
    for name, parameters, words in (("qdisc", {"device": "nosuch0"}, "no device 'nosuch0' here"), ("qdisc", {"device": "lo"}, "nothing to count"),
                                    ("interface", {"device": "nosuch0"}, "no device 'nosuch0' here"), ("wifi", {"device": "nosuch0"}, "WiFi")):
        runner = runners.find(name)
        with pytest.raises(RunnerError, match=words):
            runner.here(runner.parameters(**parameters), here)


def test_files_of_proc_that_are_missing(tmp_path):
    with pytest.raises(RunnerError, match="No such file"):
        state.ProcFile(str(tmp_path / "nowhere"))
    path = tmp_path / "stat"
    path.write_text("x" * 100_000)
    file = state.ProcFile(str(path))
    assert len(file.read()) == 100_000
    file.close()
    with pytest.raises(OSError):
        file.read()


def test_work_of_this_processor_is_seen():
    runner = runners.find("processor")
    p = runner.parameters()
    source = runner.here(p, Options())
    samples = Samples(runner.series(p, "CPU"), Clock(0, 0), to_ns=S, name="CPU")
    source.sample(samples, 0)
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    source.sample(samples, MS)
    source.close()
    assert 0 < samples._rows["host"][2][0] <= 100


def test_counts_are_marked_and_drawn_as_growth(tmp_path):
    samples = fed("netstat", frame(NETSTAT.format(5, 10**12)), frame(NETSTAT.format(5, 10**12 + 3), MS))
    (series,) = samples.series.values()
    assert series.count
    processor = fed("processor", frame(STAT), frame(LATER, MS), cores=True)
    assert not any(one.count for one in processor.series.values())
    meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), S, series=[series])
    writer = RunWriter(tmp_path, meta)
    for kind, rows in samples.take().items():
        writer.append(kind, rows)
    run = open_run(writer.finish())
    (panel,) = others(run)
    (found,) = figures.summarise(run).series
    assert (found.mean, found.unit, found.count) == (3000.0, "1/s", 1)
    assert panel.series[0].y.tolist() == [0, 3] and "growth" in panel.notes[0]
