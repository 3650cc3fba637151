# SPDX-License-Identifier: MIT OR Apache-2.0
"""Paths with known properties: their topology files, their known figures, and the adapters. The runs are in tests/truth/paths."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from ktrxer_lab import topology
from ktrxer_lab.errors import LabError
from ktrxer_lab.truth import adapters, command, judge, own, report, table
from ktrxer_lab.truth.figure import Figure, Output, Unreadable, binomial_interval
from ktrxer_lab.truth.measure import Result
from ktrxer_lab.truth.path import Path as TruePath
from ktrxer_lab.truth.path import Truth, Way

QUIET = {"counted": {way: {"sent": 100, "packets": 100, "bytes": 0, "frames": 0} for way in ("up", "down")}, "reference": None, "out": ""}

PING = """PING server (10.64.3.2) 56(84) bytes of data.

--- server ping statistics ---
20 packets transmitted, 16 received, 20% packet loss, time 416ms
rtt min/avg/max/mdev = 20.000/20.010/20.101/0.000 ms
"""
IRTT = """
                        Min    Mean  Median      Max  Stddev
                        ---    ----  ------      ---  ------
                RTT    20ms    20ms  20.1ms  1.01s   1.8µs
         send delay   900µs    10ms   9.5ms     10ms   344ns
      receive delay    10ms    10ms -3.25ms  10.01ms  1.76µs

   packets sent/received: 100/80 (20.00% loss)
 server packets received: 90/100 (10.00%/11.11% loss up/down)
"""
FLENT = """Summary of ping test run from 2026-11-22 21:17:54.623531

                           avg       median       99th %     # data pts
 Ping (ms) ICMP :        20.50        20.00        20.00 ms          15
 Ping (ms) UDP  :        20.00        20.00        20.00 ms          15
"""
FLENT_LOADED = FLENT + " TCP upload     :         9.41         9.50         9.60 Mbits/s   50\n"
NETPERF = """MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to server () port 0 AF_INET : demo
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    10^6bits/sec

131072  16384  16384    10.02       9.41
"""


def read(name: str, out: str = "", err: str = "") -> dict[str, Figure]:
    return {one.name: one for one in adapters.load(name).read(Output([name], 0, out, err))}


def test_there_are_sixty_paths_with_names_of_their_own():
    names = [path.name for path in table.paths()]
    assert len(names) >= 60 and len(set(names)) == len(names)
    assert sum(path.quick for path in table.paths()) == len(table.QUICK) == 10


@pytest.mark.parametrize("path", table.paths(), ids=lambda path: path.name)
def test_each_path_is_a_topology_with_what_it_says(path):
    made = topology.parse(path.topology().encode(), Path(path.name + ".toml"))
    links = {link.ends: link for link in made.links}
    queue, wire = links["left", "right"], links["right", "server"]
    assert wire.wire == "wire-3" or not (wire.shapes["right"].impaired or wire.shapes["server"].impaired), "guest.py reads its counters"
    for way, at_the_queue, on_the_wire in (
        (path.up, queue.shapes["left"], wire.shapes["right"]),
        (path.down, queue.shapes["right"], wire.shapes["server"]),
    ):
        assert (at_the_queue.rate_bps or 0) == round((way.rate_mbps or 0) * 1e6)
        assert on_the_wire.delay_ns == round(way.delay_ms * 1e6) and on_the_wire.loss_ppm == round(way.loss * 1e4)
    assert path.truths() and path.words()


def test_what_is_known_of_a_path():
    plain = TruePath("x", Way(5, loss=10), Way(45, loss=10)).truths()
    assert plain["delay up p50"].low == 5 and plain["delay down p50"].low == 45 and plain["round trip p50"].low == 50
    assert plain["loss round trip"].low == pytest.approx(0.19)
    full = TruePath("x", Way(10, 10, "bfifo limit 62500", cross_mbps=12), Way(10)).truths()["round trip p50"]
    assert full.low < 70 < full.high < 72, "10 + 50 + 10 ms"
    assert "TCP up" not in TruePath("x", Way(10, 10, loss=1), Way(10)).truths(), "TCP does not fill a lossy path"


def test_a_binomial_interval():
    assert binomial_interval(0, 100) == pytest.approx((0, 0.03622), abs=1e-4)  # 1 - 0.025 ** (1 / 100)
    assert binomial_interval(5, 100) == pytest.approx((0.01643, 0.11283), abs=1e-4)  # tables of Clopper and Pearson
    assert binomial_interval(100, 100)[1] == 1


def test_ping_and_fping():
    found = read("ping", PING)
    assert found["loss round trip"].events == 4 and found["round trip mean"].value == 20.01
    found = read("fping", err="server : xmt/rcv/%loss = 50/40/20%, min/avg/max = 20.1/20.2/20.3\n")
    assert found["loss round trip"].value == pytest.approx(0.2) and found["round trip max"].value == 20.3
    assert "round trip min" not in read("fping", err="server : xmt/rcv/%loss = 50/0/100%\n"), "nothing came"


def test_irtt():
    found = read("irtt", IRTT)
    assert found["round trip p50"].value == 20.1 and found["round trip max"].value == 1010
    assert found["delay up p50"].value == 9.5 and found["delay down p50"].value == -3.25


def test_irtt_counts_by_direction():
    found = read("irtt", IRTT.replace("90/100 (", "90/80 ("))
    assert found["loss up"].events == 10 and found["loss down"].events == 10 and found["loss down"].trials == 90


def test_flent_and_netperf():
    found = read("flent", FLENT)
    assert found["round trip mean"].value == 20.5 and found["round trip p50"].value == 20
    assert set(read("flent", FLENT_LOADED)) == {"TCP up"}, "its pings are of a loaded path"
    assert read("netperf", NETPERF)["TCP up"].value == 9.41
    assert read("netperf", NETPERF.replace("STREAM", "MAERTS"))["TCP down"].value == 9.41


def test_iperf3():
    start = {"test_start": {"protocol": "UDP", "reverse": 1, "blksize": 1448}}
    whole = {"packets": 1000, "lost_packets": 250, "seconds": 2.0}
    found = read("iperf3", json.dumps({"start": start, "end": {"sum": whole}}))
    assert found["loss down"].events == 250 and found["UDP down"].value == pytest.approx(750 * 1490 * 8 / 2e6)
    whole["lost_packets"] = 0
    assert "UDP down" not in read("iperf3", json.dumps({"start": start, "end": {"sum": whole}})), "the path was not full"


@pytest.mark.parametrize("name", adapters.names())
@pytest.mark.parametrize("text", ["", "no figures here\n", "{}", "[1, 2]", '{"error": "by intent"}'])
def test_output_that_cannot_be_read_is_said(name, text):
    with pytest.raises((Unreadable, KeyError)):
        adapters.load(name).read(Output([name], 1, text, text))


def test_a_flow_without_the_counts_of_the_server_has_no_figures():
    flow = {"direction": "down", "sent_packets": None, "received_packets": 10, "lost": None, "duplicates": 0, "ecn": "off"}
    for told, words in (({"protocol": "udp", "flows": [flow]}, "no counts of the server"), ({"protocol": "udp"}, "no flows")):
        with pytest.raises(Unreadable, match=words):
            read("ktrxer_flow", json.dumps(told))


def test_a_figure_that_is_false_is_said():
    path = TruePath("mine", Way(10), Way(10))
    right, wrong = judge.rows(path, "x", [Figure("round trip p50", 20.0), Figure("round trip max", 21.0)], QUIET)
    assert right.good and not wrong.good and wrong.error == pytest.approx(0.98)
    result = Result(path, [right, wrong])
    assert not report.all_true([result]) and report.all_true([Result(path, [right])])
    assert any(line.startswith("false: mine: x: round trip max: 21.000 ms, truth 20.000") for line in report.text([result]))


def test_a_clock_that_differs():
    path = TruePath("mine", Way(5), Way(45), ahead_ms=-3, rate_ppm=40)
    assert "server's clock -3 ms, +40 ppm" in path.words()
    (clock,) = topology.parse(path.topology().encode(), Path("mine.toml")).clocks
    assert (clock.node, clock.step_ns, clock.rate_ppb) == ("server", -3_000_000, 40_000)
    done = QUIET | {"clock": (60_000_000_000, -600_000)}  # read 50 s after the tool's time, in which the clock gained 2 ms
    stamp = {"rtt_us": {}, "sent": 0, "lost": 0, "lost_up": 0, "lost_down": 0, "lost_unknown": 0, "duplicates_up": 0, "duplicates_down": 0}
    stamp |= {"offset_us": -22000, "offset_bound_us": 20000, "offset_at_ns": 10_000_000_000, "skew_ppm": 39, "skew_bound_ppm": 0.5}
    offset, rate = judge.rows(path, "x", adapters.load("ktrxer_stamp").read(Output(["x"], 0, json.dumps(stamp), "")), done)
    assert offset.good and offset.holds and offset.error == pytest.approx(-22 + 2.6 + 0.001)
    assert not rate.good and rate.holds is False and (rate.value, rate.truth_low) == (39, 40)


def test_a_tool_that_gives_an_interval_claims_no_more():
    path = TruePath("mine", Way(5), Way(45))
    wide, narrow = judge.rows(path, "x", [Figure("delay up p50", 25, 0, 50), Figure("delay up p50", 25, 24, 26)], QUIET)
    assert wide.good and wide.holds and not narrow.good and narrow.holds is False
    assert report.coverage([wide, narrow]) == (1, 2)


def test_losses_are_compared_with_the_counters():
    path = TruePath("mine", Way(10, loss=5), Way(10))
    done = QUIET | {"counted": {"up": {"sent": 500, "packets": 450}, "down": {"sent": 450, "packets": 450}}}
    right, wrong = judge.rows(path, "x", [Figure("loss up", 0.1, None, None, 50, 500), Figure("loss up", 0.05, None, None, 25, 500)], done)
    assert right.good and right.source == judge.COUNTERS and not wrong.good
    assert right.holds is False and wrong.holds, "the intervals are compared with the construction"


def test_a_value_that_is_no_number_is_false():
    row, = judge.rows(TruePath("mine", Way(10), Way(10)), "x", [Figure("round trip max", math.inf)], QUIET)
    assert not row.good and json.loads(json.dumps(row.as_json(), allow_nan=False))["value"] is None


def test_the_path_itself_is_judged():
    path = TruePath("mine", Way(10, 10, loss=1), Way(20))
    seen = {"sent": 100, "received": 100, "duplicates": 0}
    shown = {"rates": {"up": 9.0}, "probes": {"up": seen | {"delays": [[0, 10_000_000]]}, "down": seen | {"delays": [[0, 10_000_000]]}}}
    assert {(row.figure, row.good) for row in judge.check(path, shown)} == {
        ("UDP up", False), ("delay up p50", True), ("loss up", True), ("delay down p50", False), ("loss down", True),
    }  # fmt: skip


@pytest.mark.slow
def test_the_current_directory_is_no_place_of_modules(tmp_path):
    """`python -m` alone would import from it first."""
    folder = tmp_path / "ktrxer"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text("open('executed', 'w')")
    done = subprocess.run([sys.executable, "-P", own.LOADED, "up"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert not (tmp_path / "executed").exists() and done.returncode, done


def test_wrong_use(capsys):
    for words, message in (
        (["--path", "own-quue"], "did you mean 'own-queue'?"),
        (["ping", "server"], "the command comes after --"),
        (["--"], "no command after --"),
        (["--jobs", "0"], "'0' is too small: from 1 to 64 is possible"),
        (["--adapter", "ping"], "need a command after --"),
        (["--", "mytool", "server"], "no adapter reads the output of mytool"),
        (["--adapter", "none", "--", "mytool"], "no adapter 'none'"),
    ):
        with pytest.raises(SystemExit) as ended:
            command.main(words)
        assert ended.value.code == 2 and message in capsys.readouterr().err


def test_a_kernel_that_cannot_be_built_is_said_once_and_before_the_paths(capsys, monkeypatch):
    def prepare(kernel, show):
        show(f"the kernel {kernel} is built first")
        raise LabError("the kernel does not build: no")

    monkeypatch.setattr(command.uml, "prepare", prepare)
    monkeypatch.setattr(command, "measure", lambda *_: pytest.fail("a path was measured"))
    assert command.main(["--", "ping", "-c", "1", "server"]) == command.NO_RESULT
    assert capsys.readouterr().err == "ktrxer truth: the kernel 7.3 is built first\nktrxer truth: the kernel does not build: no\n"


def test_an_adapter_of_ones_own(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("from ktrxer_lab.truth.figure import Figure\nPROGRAM, BESIDE = 'mine', ''\ndef read(output): return [Figure('round trip p50', 1.0)]\n")
    assert adapters.load(str(mine)).read(Output([], 0, "", ""))[0].value == 1.0
    mine.write_text("PROGRAM = 'mine'\n")
    with pytest.raises(LabError, match=r"no attribute|has no BESIDE"):
        adapters.load(str(mine))


def test_the_list_names_paths_and_tools(capsys):
    assert command.main(["--list"]) == 0
    out = capsys.readouterr().out
    assert "delay-5-45" in out and "iperf3" in out and "ktrxer stamp" in out


def test_a_table_for_the_docs():
    path = TruePath("mine", Way(10), Way(10))
    results = [Result(path, judge.rows(path, "x", [Figure("round trip p50", 20.0), Figure("loss up", 0.0, None, None, 0, 100)], QUIET))]
    text = report.markdown(results)
    assert "| x | round trip p50 | 1 | 1 of 1 |" in text and "1 of 1 intervals hold the truth" in text and "| mine | 10 ms, both ways |" in text
    assert Truth(1, 2).distance(2.5) == 0.5 and Truth(1, 2).distance(0.5) == -0.5 and Truth(1, 2).distance(1.5) == 0
