# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the Flent paper (VALUETOOLS 2017, section 4) shows of CUBIC and BBR over a long FIFO: 10 Mbit/s, 50 ms, pfifo of 1000 packets. The
reference are its figures: goodput 9.55 and 9.35 Mbit/s; latency of about one second, and low latency with an event every ten seconds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from guests import FOR_RUNS, Lab
from ktrxer.store import open_run

HERE = Path(__file__).parent
TIMES = ("-H", "server", "-l", "30", "--delay", "3", "-i", "100ms", "--no-extras", "--json")


def test_cubic_fills_a_fifo_and_bbr_does_not(tmp_path: Path) -> None:
    lab = Lab(tmp_path, FOR_RUNS)
    for cc in ("cubic", "bbr"):
        (lab.folder / cc).mkdir()
    (lab.folder / "words").write_text(json.dumps([("run", "tcp_1up", *TIMES, "--cc", cc, "-D", cc) for cc in ("cubic", "bbr")]))
    settings = ("--set", "rate=10mbit", "--set", "delay=25ms", "--set", "leaf=pfifo limit 1000")
    done = lab("run", "flent", "--time", "virtual", *settings, "--beside", "server=exec ktrxer serve", "--",
               sys.executable, HERE / "several.py", "words", timeout=400)  # fmt: skip
    assert done.returncode == 0, done.stderr
    rtt, rate = {}, {}
    for number, cc in enumerate(("cubic", "bbr")):
        one = json.loads((lab.folder / f"{number}.out").read_text())
        assert one["verdict"] == "valid", one["reasons"]
        rate[cc] = one["summary"]["throughput"][0]["mean_mbps"]
        run = open_run(next((lab.folder / cc).glob("*.ktrxer")))
        arrays = run.arrays(run.meta.of_kind("latency")[0])
        rtt[cc] = arrays["t_ns"] / 1e9 - 3, arrays["rtt_ns"] / 1e6
    assert rate == {"cubic": pytest.approx(9.55, rel=0.01), "bbr": pytest.approx(9.35, rel=0.01)}

    (at, ms) = rtt["cubic"]
    loaded = ms[(at > 15) & (at < 30)]
    assert np.nanmedian(loaded) > 900 and 1000 < np.nanmax(loaded) < 1400, "the queue of 1000 packets takes 1.2 s"
    (at, ms) = rtt["bbr"]
    later = (at > 3) & (at < 30)
    assert np.nanmedian(ms[later]) < 65 and np.nanmax(ms[later]) < 100, "50 ms, and little more"
    empty = at[later & (ms < 51)]  # every ten seconds BBR lets the queue run empty, to measure the round trip of the path
    begins = empty[np.diff(empty, prepend=-10) > 2]
    assert len(begins) >= 2 and np.diff(begins) == pytest.approx(10, abs=1)
