# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check`: figures and sentences from stored runs whose queue is known, and command lines that are refused."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from ktrxer.catalogue.recipe import PlanError, Setting
from ktrxer.check import answer, figures
from ktrxer.check.answer import Here
from ktrxer.check.blocked import Blocked
from ktrxer.check.path import addresses_of, answering
from ktrxer.check.plan import TEST
from ktrxer.cli import main
from ktrxer.commands import check as command
from ktrxer.run.schedule import make
from ktrxer.runners.runner import Options
from ktrxer.store import Host, Meta, Phase, Runner, RunWriter, Series, Zero, open_run
from ktrxer.store.columns import ANSWERED, LOST

MS, S = 10**6, 10**9
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs/schema/check.schema.json").read_text())
IDLE, LOAD, PAUSE = 5 * S, 10 * S, 3 * S
UP, DOWN = (IDLE, IDLE + LOAD), (IDLE + LOAD + PAUSE, IDLE + 2 * LOAD + PAUSE)
TOTAL = DOWN[1] + S


def stored(folder, *, up_ms=0.0, down_ms=0.0, own_ms=0.0, far_ms=0.0, stamps=True, hops=(), up_mbit=10.0, down_mbit=50.0, lost=0.0,
           idle_lost=0.0, burst_mbit=None, ends_s=None, verdict="valid", seed=1, every_ms=20):
    """A run of a path with an idle round trip of 10 ms. `ends_s`: the server ends after so much of the load up. `burst_mbit`: the rate up in the first half of the load, which adds no delay then. `hops`: for each router, whether the queue is before it. `own_ms` and `far_ms` are
    parts of `up_ms` and `down_ms`. With `stamps` the probes are of UDP and have one-way delays."""
    rng = np.random.default_rng(seed)
    kind = "stamp" if stamps else "ping"
    end = {"type": "end", "verdict": "valid", "reasons": [], "own_qdisc": "pfifo_fast"}
    runners = [Runner(0, "probes", kind, [], "far", "ended", 0, 0, TOTAL, dict(end), interval_ns=every_ms * MS, from_ns=0, to_ns=TOTAL)]
    series = [Series(0, "Ping (ms)", "latency", "ms", 0)]
    for n, _ in enumerate(hops, 1):
        runners.append(Runner(n, f"hop {n}", "hop", [], f"10.0.{n}.1", "ended", 0, 0, TOTAL, dict(end), interval_ns=200 * MS, from_ns=0, to_ns=TOTAL))
        series.append(Series(n, f"hop {n}", "value", "ms", n))
    for way, (begin, to), rate in (("up", UP, up_mbit), ("down", DOWN, down_mbit)):
        if rate is None:
            continue
        number = len(runners)
        runners.append(Runner(number, way, "flow", [], "far", "ended", 0, begin, to, dict(end), interval_ns=200 * MS, from_ns=begin, to_ns=to))
        series.append(Series(number, f"TCP {way}load::1", "bytes", "Mbit/s", number, 0, way))
    meta = Meta(id="5f1c0de0-0000-4000-8000-000000000002", test="check", command=["ktrxer", "check", "--server", "far"], created="2026-11-23T06:00:00.000000Z", host=Host("near"), zero=Zero(0, 0),
                length_ns=TOTAL, targets=["far"], phases=[Phase("idle_before", 0, IDLE), Phase("load", IDLE, DOWN[1])], runners=runners, series=series,
                verdict=verdict, reasons=[] if verdict == "valid" else ["the processors were busy"])
    writer = RunWriter(folder, meta)

    def at_load(t, span, ms):
        """The queue fills in half a second."""
        begin = span[0] + (LOAD // 2 if span is UP and burst_mbit else 0)
        return np.where((t >= begin) & (t < span[1]), ms * np.minimum(1, (t - begin) / (S / 2)), 0.0)

    t = np.arange(0, TOTAL, every_ms * MS)
    noise = rng.normal(0, 0.1, len(t))
    more_up, more_down = at_load(t, UP, up_ms), at_load(t, DOWN, down_ms)
    own, far = (at_load(t, UP, own_ms), at_load(t, DOWN, far_ms))
    gone = (rng.random(len(t)) < np.where(t > IDLE, lost, idle_lost))
    if ends_s is not None:
        gone |= t > UP[0] + ends_s * S
    up, down = 5 + more_up + noise, 5 + more_down

    def column(ms, there=True):
        return [round(value * MS) if there and not missing else None for value, missing in zip(ms, gone, strict=True)]

    writer.append("latency", {"series": [0] * len(t), "t_ns": t.tolist(), "seq": list(range(len(t))),
                              "state": np.where(gone, LOST, ANSWERED).tolist(), "rtt_ns": column(up + down), "up_ns": column(up, stamps),
                              "down_ns": column(down, stamps), "own_queue_ns": column(own), "far_queue_ns": column(far, stamps)})
    t = np.arange(0, TOTAL, 200 * MS)
    for n, behind in enumerate(hops, 1):
        delay = n + (at_load(t, UP, up_ms) + at_load(t, DOWN, down_ms)) * (1 if behind is True else float(behind))
        writer.append("value", {"series": [n] * len(t), "t_ns": t.tolist(), "value": delay.tolist()})
    for one in meta.of_kind("bytes"):
        span, rate = (UP, up_mbit) if one.direction == "up" else (DOWN, down_mbit)
        t = np.arange(span[0], span[1] + 1, 200 * MS)
        if ends_s is not None:
            t = t[t <= UP[0] + ends_s * S]
        if not len(t):
            continue
        counts = ((t - span[0]) / S * rate * 125_000).astype(int)
        if span is UP and burst_mbit:
            counts += (np.minimum(t - span[0], LOAD // 2) / S * (burst_mbit - rate) * 125_000).astype(int)
        writer.append("bytes", {"series": [one.id] * len(t), "t_ns": t.tolist(), "end": [1 if one.direction == "up" else 0] * len(t),
                                "bytes": counts.tolist()})
    return open_run(writer.finish())


def test_figures_of_a_known_queue(tmp_path):
    check = figures.of(stored(tmp_path, up_ms=200, down_ms=40))
    assert check is not None and check.probes == "UDP" and check.idle.p50 == pytest.approx(10, abs=0.1)
    up, down = check.loads
    assert (up.direction, down.direction) == ("up", "down")
    assert up.added_ms == pytest.approx(200, abs=0.3) and down.added_ms == pytest.approx(40, abs=0.3)
    assert up.low_ms is not None and up.low_ms <= up.added_ms <= up.high_ms < up.low_ms + 1
    assert up.rate_mbps == pytest.approx(10, rel=0.01) and down.rate_mbps == pytest.approx(50, rel=0.01)
    assert check.added_ms == pytest.approx(200, abs=0.3) and check.grades[0] == "D", "that of the worse direction"


def test_the_figure_lies_in_its_interval(tmp_path, monkeypatch):
    """In a run with five probes a second the interval ended 0.1 ms below the median, because half seconds with two probes count their lower
    one."""
    whole = figures.p50_interval

    def below(t, values):
        found = whole(t, values)
        return tuple(bound - 1.0 for bound in found) if found and found[0] > 100 else found

    monkeypatch.setattr(figures, "p50_interval", below)
    check = figures.of(stored(tmp_path, up_ms=200, stamps=False, every_ms=200))
    assert check is not None
    assert all(load.low_ms <= load.added_ms <= load.high_ms for load in check.loads)


@pytest.mark.parametrize(("given", "bloated"), [
    ({"up_ms": 3, "down_ms": 2}, "no"), ({"up_ms": 50}, "somewhat"), ({"down_ms": 150}, "yes"),
])
def test_is_the_line_bloated(tmp_path, given, bloated):
    check = figures.of(stored(tmp_path, **given))
    assert check is not None
    made = answer.of(check)
    assert made.bloated == bloated and len(made.sentences) == 3 and all(sentence.endswith(".") for sentence in made.sentences)


@pytest.mark.slow
@pytest.mark.parametrize(("given", "place", "hop", "says"), [
    ({"up_ms": 100, "own_ms": 98}, "this host's own queue", None, "in this host's own device (pfifo_fast) (98% of the delay)"),
    ({"down_ms": 100, "far_ms": 99}, "the far host's own queue", None, "in the far host's own device"),
    ({"up_ms": 100, "hops": (False, True, True)}, "up", 2, "between router 1 (10.0.1.1) and router 2 (10.0.2.1)"),
    ({"up_ms": 100, "hops": (True, True)}, "up", 1, "between this host and router 1 (10.0.1.1)"),
    ({"down_ms": 100, "hops": (False, False)}, "down", 0, "behind router 2 (10.0.2.1)"),
    ({"down_ms": 100}, "down", None, "that the answers of the routers do not show"),
    ({"up_ms": 100, "own_ms": 98, "stamps": False}, "this host's own queue", None, "in this host's own device"),
    ({"up_ms": 100, "stamps": False, "hops": (False, True)}, "up", 2, "Under an upload the queue is on the path up, between router 1"),
])
def test_where_the_queue_is(tmp_path, given, place, hop, says):
    check = figures.of(stored(tmp_path, **given))
    assert check is not None
    queue = check.worst.queue
    assert queue is not None and (queue.place, queue.hop) == (place, hop)
    assert says in answer.of(check).sentences[1]


def test_a_router_that_answers_slowly_is_not_the_queue(tmp_path):
    """Router 1 adds 300 ms to its own answers only: those of router 2 come without."""
    check = figures.of(stored(tmp_path, up_ms=100, hops=(3.0, False, True)))
    assert check is not None and check.worst.queue is not None and check.worst.queue.hop == 3


@pytest.mark.parametrize("up_ms", [0.0, 0.08])
def test_no_queue_is_named_where_nothing_is_added(tmp_path, up_ms):
    """A load over the loopback added 0.001 ms (0.000 to 0.003): "the queue is in the far host's own device (145% of the delay)"."""
    check = figures.of(stored(tmp_path, up_ms=up_ms))
    assert check is not None and [load.queue for load in check.loads] == [None, None]
    assert answer.of(check).sentences[1] == "No queue on the path adds a delay above the uncertainty."


@pytest.mark.parametrize(("given", "here", "advice"), [
    ({"up_ms": 100, "down_ms": 100, "hops": (False, True)}, Here("eth0"), "90% of the measured rate, 9.00 Mbit/s up and 45.00 Mbit/s down; then measure"),
    ({"up_ms": 100, "down_ms": 10}, Here("eth0"), "90% of the measured rate, 9.00 Mbit/s up; then measure"),
    ({"up_ms": 100, "own_ms": 98}, Here("eth0"), "`tc qdisc replace dev eth0 root fq_codel`"),
    ({"down_ms": 100, "far_ms": 99}, Here("eth0"), "Take another server"),
    ({"down_ms": 100, "hops": (True, True)}, Here("wlan0", True), "the queue is in the WiFi"),
    ({}, Here("eth0"), "There is nothing to repair, as far as a load of 10.00 Mbit/s up and 50.00 Mbit/s down shows"),
])
def test_what_to_do(tmp_path, given, here, advice):
    check = figures.of(stored(tmp_path, **given))
    assert check is not None and advice in answer.of(check, here).sentences[2]


@pytest.mark.parametrize(("given", "says"), [
    ({"idle_lost": 0.1}, "on the idle line: look for a bad cable"), ({"lost": 0.1}, "under an upload, and not on the idle line: look for a short queue"),
    ({"idle_lost": 0.1, "up_ms": 150}, "on the idle line: look for a bad cable"),
    ({"lost": 0.1, "up_ms": 150}, "under an upload, and not on the idle line: the full queue drops packets"),
    ({"lost": 0.3, "idle_lost": 0.02, "up_ms": 150}, "under an upload, more than on the idle line: the full queue drops packets"),
    ({"lost": 0.1, "idle_lost": 0.1}, "under an upload, no more than on the idle line"),
    ({"idle_lost": 0.005, "lost": 0.02}, None),
])  # fmt: skip
def test_a_path_that_loses_packets_needs_repair(tmp_path, given, says):
    check = figures.of(stored(tmp_path, **given))
    assert check is not None
    third = answer.of(check).sentences[2]
    assert (says or "There is nothing to repair") in third and ("probes were lost" in third) == (says is not None)
    assert says is None or "nothing to repair" not in third
    assert third.startswith("Set a shaper") == ("up_ms" in given) and ("bad cable" in third) == bool(says and given.get("idle_lost"))


def test_a_rate_that_changes_under_the_load(tmp_path):
    """The bucket of a shaper of 10 Mbit/s lets 40 Mbit/s pass for 5 s. Then the queue has 150 ms."""
    check = figures.of(stored(tmp_path, up_ms=150, burst_mbit=40))
    assert check is not None
    up, down = check.loads
    assert up.rate_mbps == pytest.approx(10, rel=0.02) and up.added_ms == pytest.approx(150, abs=1) and not down.levels
    made = answer.of(check)
    assert made.bloated == "yes" and made.shapers_mbps["up"] == pytest.approx(9, rel=0.02)
    assert "the rate up changed: 40.00, then 10.00 Mbit/s" in made.sentences[2] and all(one.endswith(".") for one in made.sentences)


def test_half_of_the_probes_lost(tmp_path):
    check = figures.of(stored(tmp_path, up_ms=50, lost=0.7, hops=(True,)))
    assert check is not None and check.grades[0] == "F"
    made = answer.of(check)
    assert made.bloated == "yes" and "half of the probes are lost" in made.sentences[0] and "inf" not in " ".join(made.sentences)


@pytest.mark.parametrize("ends_s", [1.5, 2.5, 6])
def test_a_server_that_ends_under_the_load(tmp_path, ends_s):
    """It was killed after 1.5 s of a load: "The line is bloated", "the queue is in the far host's own device (133% of the delay)"."""
    check = figures.of(stored(tmp_path, up_ms=50, ends_s=ends_s))
    if ends_s < 3:
        assert check is None, "2 s to fill the queue, and one second at least"
        return
    assert check is not None and check.grades == ("B", "B", "B") and check.worst.loaded.lost == 0
    assert [load.direction for load in check.loads] == ["up"] and check.worst.rate_mbps == pytest.approx(10, rel=0.01)
    assert "probes were lost" not in answer.of(check).sentences[2]


def test_one_direction(tmp_path):
    check = figures.of(stored(tmp_path, down_ms=150, up_mbit=None))
    assert check is not None and [load.direction for load in check.loads] == ["down"] and check.added_ms == pytest.approx(150, abs=1)
    assert answer.of(check).sentences[0].startswith("The upload was not measured, and the line is bloated: a download adds ")
    assert answer.of(check).bloated == "yes"


def test_a_direction_without_a_load_gets_no_all_clear(tmp_path, capsys):
    """`check --download URL` said "not bloated, grade A" on a line whose upload added 109 ms."""
    run = stored(tmp_path, down_ms=2, up_mbit=None)
    check = figures.of(run)
    assert check is not None
    made = answer.of(check)
    first, _, third = made.sentences
    assert made.bloated == "unknown" and first.startswith("The upload was not measured: a download adds ")
    assert "grade A+ for the download" in first and "not bloated" not in first
    assert "to measure the upload, name a server by --server, or an URL by --upload" in third
    words = command.parser().parse_args(["--download", "http://far/x", "--json"])
    assert command.report(run.path, words, Here("eth0")) == 0, "a result was printed, and it is valid"
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert found["bloated"] == "unknown" and found["grade"]["letter"] == "A+" and len(found["loads"]) == 1


def test_a_load_that_did_not_get_through(tmp_path):
    assert figures.of(stored(tmp_path, up_mbit=0.001, down_mbit=None)) is None
    check = figures.of(stored(tmp_path, up_mbit=0.001, down_ms=50))
    assert check is not None and [load.direction for load in check.loads] == ["down"], "no claim about the direction without a load"


@pytest.mark.slow
@pytest.mark.parametrize(("given", "status"), [({"up_ms": 200}, 0), ({"up_ms": 200, "verdict": "degraded"}, 3), ({"verdict": "invalid"}, 3)])
def test_the_report_and_its_schema(tmp_path, capsys, given, status):
    run = stored(tmp_path, hops=(False, True), **given)
    words = command.parser().parse_args(["--server", "far", "--json"])
    assert command.report(run.path, words, Here("eth0")) == status
    made = json.loads(capsys.readouterr().out)
    jsonschema.validate(made, SCHEMA)
    assert command.report(run.path, command.parser().parse_args(["--server", "far", "--jsonl"]), Here("eth0")) == status
    (line,) = capsys.readouterr().out.splitlines()
    same = made.keys() - {"start", "end_ns"}
    assert {name: json.loads(line).get(name) for name in same} == {name: made[name] for name in same} and "start" not in json.loads(line)
    assert len(made["answer"]) == 3 and (made["bloated"] == "unknown") == (given.get("verdict") == "invalid")
    assert command.report(run.path, command.parser().parse_args(["--server", "far"]), Here("eth0")) == status
    printed = capsys.readouterr().out
    assert str(run.path) in printed and ("verdict: " in printed) == (status == 3)
    assert ("the measurement is invalid, for the reasons below." in printed) == (given.get("verdict") == "invalid")
    if status == 0:
        assert made["loads"][0]["shaper_bps"] == pytest.approx(9_000_000, rel=0.01) and made["grade"]["letter"] == "D"


@pytest.mark.parametrize(("words", "complaint"), [
    ([], "no load: name a server"),
    (["--server", "far", "--download", "http://far/"], "give one of them"),
    (["--download", "http://far/x", "--length", "1s"], "--for: '1s' is too small: from 5s to 5m"),
    (["--download", "http://far/x", "--for", "0"], "--for: '0s' is too small: from 5s to 5m"),
    (["--server", "far", "--gateway"], "--gateway goes with --nq"),
    (["--download", "large.iso"], "not an URL of a server"),
    (["--download", "http://[::1/x"], "not an URL of a server"),
    (["--download", "ftp://far/x"], "no URL of a web server|not an URL"),
])
def test_command_lines_that_are_refused(capsys, monkeypatch, words, complaint):
    import re

    assert main(["check", *words]) in (1, 2)
    assert re.search(complaint, capsys.readouterr().err)


def test_a_refused_connection_is_reported_before_the_measurement(capsys):
    schedule = make(TEST.make(Setting("far", 10, 5), {"server": "yes", "load": "no"}), Setting("far", 10, 5), Options())
    command._announce(command.parser().parse_args(["--server", "far"]), schedule, Blocked(("TCP port 8620 of far refuses connections",), load=False))
    first, second = capsys.readouterr().out.splitlines()
    assert first == "No load is possible: TCP port 8620 of far refuses connections." and second.startswith("Measuring for")


def test_the_plan(tmp_path):
    plan = TEST.make(Setting("far", 10, 5), {"server": "yes", "hops": "10.0.0.1,10.0.1.1"})
    assert [(one.runner, one.when.delay_s) for one in plan.runs] == [("stamp", 0), ("ping", 0), ("hop", 0), ("hop", 0), ("flow", 5), ("flow", 18)]
    assert plan.total_s == 29 and [one.parameters.host for one in plan.runs][2:4] == ["10.0.0.1", "10.0.1.1"]
    web = TEST.make(Setting("far", 10, 5), {"download": "http://far/x"})
    assert [one.runner for one in web.runs] == ["ping", "http_load"] and web.total_s == 16
    with pytest.raises(PlanError, match="no load"):
        TEST.make(Setting("far", 10, 5), {})


def test_routers_of_a_trace():
    def hops(*addresses):
        return {"to": "10.9.9.9", "hops": [{"hop": n, "nodes": [{"address": one}]} for n, one in enumerate(addresses, 1)]}

    assert addresses_of(hops("10.0.0.1", None, "10.0.2.1"), "10.9.9.9") == ["10.0.0.1", "10.0.2.1"]
    assert addresses_of(hops("10.0.0.1", "10.9.9.9"), "10.9.9.9") == ["10.0.0.1"]
    assert addresses_of(hops("10.0.0.1", "10.9.9.9"), "far") == ["10.0.0.1"]
    assert addresses_of({}, "far") is None and addresses_of([], "far") is None
    assert addresses_of({"hops": [5, {"nodes": 7}, {"nodes": [None]}]}, "far") == []


def test_a_host_that_may_not_ping_is_not_a_silent_target(tmp_path):
    program = tmp_path / "ktrxer"
    closed = """echo '{"type": "end", "verdict": "invalid"}'; echo 'ktrxer ping: ping sockets are closed' >&2; exit 1"""
    advised = """echo '{"type": "end", "reasons": [{"id": "not_permitted", "text": "closed"}]}'; echo 'closed; run sudo' >&2; exit 1"""
    silent = """echo '{"type": "end", "received": 0}'; echo 'ktrxer ping: no answer' >&2; exit 1"""
    for script, why in ((closed, "ktrxer ping: ping sockets are closed"), (advised, "closed"), (silent, "")):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        assert answering(Options(host="far", ktrxer=str(program)), ["192.0.2.1"]) == ({"192.0.2.1": False}, why)
