# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run` with the methods that estimate, over the path of test_experiments.py: rows in their tables, times of the run, figures of the
summary; a stored run again; the state of other hosts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the Python part's packages are not installed: `make .venv/.ok`")

from flows import secret
from ktrxer.store import open_run
from ktrxer.summary import figures, text
from noise import busy
from test_experiments import bottleneck

ROOT = Path(__file__).resolve().parents[2]
MS, S = 10**6, 10**9
WEB = 8080

RECIPE = f"""
from ktrxer.catalogue.recipe import *
def plan(setting, _):
    return combine(
        run("pair", "Pairs", count=20, interval_ns=20 * MS, when=When(0.2, 2)),
        run("ppt", "Compound", count=20, interval_ns=10 * MS, when=When(1.5, 2)),
        run("trace", "Routes", repeat=2, tries=1, timeout_ns=300 * MS, when=When(0.5, 2)),
        run("tcp", "Web", port={WEB}, path="/large", interval_ns=50 * MS, when=When(0.5, 2)),
        run("capacity", "Maximum", direction="down", interval_ns=500 * MS, when=When(4, 2)),
        run("abw", "Available", direction="up", when=When(7, 13)),
        total_s=20,
    )
TEST = Test("methods", "each method once", plan)
"""


@pytest.fixture
def measured(ktrxer, serve, tmp_path, requires_namespaces):
    """go(*words) is `ktrxer run` in host a: exit status, the object that it prints, and its complaints."""
    token = secret(tmp_path / "token")
    (tmp_path / "own.py").write_text(RECIPE)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "large").write_bytes(bytes(20000))
    environment = os.environ | {"KTRXER_BIN": str(ktrxer), "PYTHONPATH": str(ROOT / "python")}
    with bottleneck() as (a, r, b):
        serve(b, "--token-file", token, "--udpstp-port", "24601")
        words = [sys.executable, "-u", "-m", "http.server", "--directory", str(tmp_path / "web"), "--protocol", "HTTP/1.1", str(WEB)]
        web = b.popen(words, stderr=subprocess.DEVNULL)
        assert web.stdout is not None and "Serving" in web.stdout.readline()

        def go(*more, host="10.78.0.2"):
            command = [sys.executable, "-m", "ktrxer", "run", *more, "-D", tmp_path, "--token-file", token, "--json", *(["-H", host] if host else [])]
            done = a.run(list(map(str, command)), env=environment, check=False, timeout=110)
            return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

        go.router = r
        yield go
        web.kill()
        web.wait()


@pytest.mark.plain_build
def test_each_method_once_and_again(measured, tmp_path):
    status, told, err = measured(tmp_path / "own.py")
    assert status in (0, 3) and not err, err
    run = open_run(told["file"])
    assert not [one for one in run.meta.sentences if "cannot be read as results" in one or "has a defect" in one or "before its time" in one], run.meta.sentences
    assert {one.kind: one.status for one in run.meta.runners if not one.auxiliary} == dict.fromkeys(("abw", "capacity", "pair", "ppt", "tcp", "trace"), "ended")
    by_name = {(one.name, one.kind): run.arrays(one) for one in run.meta.series}

    pairs = by_name["Pairs up", "pair"]
    assert len(pairs["t_ns"]) == len(by_name["Pairs down", "pair"]["t_ns"]) == 40 and (pairs["t_ns"] >= 200 * MS).all()
    assert (pairs["send_gap_ns"] >= 0).all() and set(pairs["bytes"].tolist()) == {1500, 764}
    assert len(by_name["Compound", "pair"]["t_ns"]) == 80  # of four kinds

    hops = by_name["Routes", "hop"]
    assert set(zip(hops["hop"].tolist(), hops["address"].tolist(), strict=True)) >= {(1, "10.77.0.2"), (2, "10.78.0.2")}
    assert 500 * MS <= hops["t_ns"].min() < 2500 * MS and (hops["rtt_ns"] > 0).all()

    # Where the server's segments come too late for a pair, the pair is not sent, and is counted.
    ends = {one.kind: one.end for one in run.meta.runners}
    web, ended = by_name["Web", "latency"], ends["tcp"]
    sent = ended["pairs"] - ended["busy"] - ended["unprimed"]
    assert ended["pairs"] == 40 and len(by_name["Web", "tcp_pair"]["t_ns"]) == sent > 0
    assert ended["known"] <= len(web["t_ns"]) <= 2 * sent and (web["state"] == 0).mean() > 0.9
    assert by_name["Web lost up", "range"]["low"][-1] <= by_name["Web lost up", "range"]["value"][-1] <= by_name["Web lost up", "range"]["high"][-1]

    load, ended = by_name["Maximum", "ip_capacity"], ends["capacity"]
    assert load["t_ns"].min() > 4 * S and load["t_ns"].max() < 20 * S
    # A receiver without a processor ends a sub-interval late, and so counts fewer of them in the 2.5 s in which the server sends.
    assert load["lasts_ns"].sum() > 1.9 * S and (len(load["t_ns"]) == 4 or (busy(ended) and len(load["t_ns"]) < 4)), ended["reasons"]
    # A server without a processor sends less, and the verdict names the busy processors.
    assert (0 if busy(ended) else 10) < by_name["Maximum", "range"]["value"][-1] < 21, f"of 20 Mbit/s; {ended['reasons']}"

    made = figures.summarise(run)
    shown = "\n".join(text.lines(made))
    print(shown)
    assert "10.77.0.2" in shown and "Maximum" in shown and "round trip, TCP" in shown

    status, again, err = measured("--again", told["file"], "--trust-recipe", host=None)
    assert status in (0, 3) and "the recipe own.py is executed, because --trust-recipe was given" in err, err
    assert again, err
    assert again["again"]["id"] == run.meta.id and again["again"]["different"] == []
    second = open_run(again["file"])
    assert [(one.name, one.kind) for one in second.meta.series] == [(one.name, one.kind) for one in run.meta.series]


def test_the_state_of_another_namespace(measured, tmp_path):
    """The router is a place of this host: its own devices, and not those of the measuring host."""
    status, told, err = measured("ping", "--for", "0.5", "--metadata-from", f"netns:{measured.router.name}")
    assert status in (0, 3) and not err, err
    run = open_run(told["file"])
    for when in ("before", "after"):
        state = run.meta.metadata[when]["places"][f"netns:{measured.router.name}"]
        assert state["egress"]["device"] == "ra" and [one["kind"] for one in state["egress"]["qdiscs"]] == ["tbf"]
        assert state["egress"]["offloads"]["gro"] is False and "10.77.0.2" not in json.dumps(state)
    assert run.meta.metadata["before"]["egress"]["device"] == "a0"
