# SPDX-License-Identifier: MIT OR Apache-2.0
"""Truth by chance: draws from seeds, the truth about them, and a judge that finds planted false claims. The runs are in tests/truth/paths."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from ktrxer_lab import topology
from ktrxer_lab.errors import LabError
from ktrxer_lab.truth import measure
from ktrxer_lab.truth.chance import claims, command, rates, text
from ktrxer_lab.truth.chance.draw import BOXES, Draw, Outage, build, drawn
from ktrxer_lab.truth.chance.expect import truth
from ktrxer_lab.truth.chance.judge import FALSE_ALARM, FALSE_CAUSE, FALSE_VALID, judge
from ktrxer_lab.truth.chance.run import Run, Tried
from ktrxer_lab.truth.chance.shrink import shrink
from ktrxer_lab.truth.path import Way

PING = "ping server -i 10ms -c 300"
FLOW = "flow up server --for 3s"
PLAIN = Draw(0, Way(10.0), Way(10.0), (PING,))
DEAD = replace(PLAIN, outage=Outage("up", 1.0, 0.5))


def counted(first: int, last: int) -> dict[str, int]:
    return {"first": first, "sent": first, "packets": last, "last": last, "bytes": 0, "frames": 0}


def pinged(lost: int = 0, verdict: str = "valid", p50_us: float = 20000.0, reasons: tuple[str, ...] = (), truly_lost: int | None = None):
    said = {
        "verdict": verdict, "reasons": [{"id": one, "text": one} for one in reasons], "sent": 300, "lost": lost,
        "rtt_us": {"min": p50_us, "p50": p50_us, "max": p50_us},
    }  # fmt: skip
    there = 300 - (lost if truly_lost is None else truly_lost)
    ways = {"up": counted(300, there), "down": counted(there, there)}
    return {"status": 0, "out": json.dumps(said), "err": "", "counted": ways, "arrived": {way: {"rows": [], "copies": 0} for way in ways}, "events": []}


def flowed(bps: float, true_bps: float = 8e6, verdict: str = "valid"):
    said = {"verdict": verdict, "reasons": [], "protocol": "tcp", "up_bps": bps, "flows": [{"direction": "up", "received_bytes": 3e6}]}
    rows = [(at * 10_000_000, *2 * (int(true_bps * at / 800),)) for at in range(301)]
    return {"status": 0, "out": json.dumps(said), "err": "", "counted": {}, "arrived": {"up": {"rows": rows, "copies": 0}}, "events": []}


def found(draw: Draw, words: str, done):
    said = claims.read(words, done)
    return [(one.kind, one.name) for one in judge(said, truth(draw, said, done))]


def test_a_seed_makes_one_draw():
    assert [drawn(seed) for seed in range(200)] == [drawn(seed) for seed in range(200)]
    assert len({replace(drawn(seed), seed=0) for seed in range(200)}) == 200


def test_the_draws_have_every_fault_and_none():
    draws = [drawn(seed) for seed in range(300)]
    faults = {name for draw in draws for name in draw.faults}
    assert {"rate", "loss", "reorder", "duplicate", "jitter", "outage", "nat", "clock", "policer", "marks", "bleach", *BOXES} <= faults
    assert 40 < sum(not draw.faults - {"rate"} for draw in draws) < 150
    assert {one.split()[0] for draw in draws for one in draw.commands} >= {"ping", "stamp", "flow", "trace", "run"}


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_each_draw_is_a_topology(first):
    for seed in range(first, first + 50):
        path = build(drawn(seed))
        made = topology.parse(path.topology().encode(), Path("a.toml"))
        assert any(link.wire == "wire-3" for link in made.links), "the outage and the counters need it"


@pytest.mark.parametrize("seed", range(40))
def test_a_draw_as_text_is_the_draw(seed):
    assert text.to_draw(text.of_draw(drawn(seed))) == drawn(seed)


@pytest.mark.parametrize("wrong", ["", "[]", "{}", '{"up": {"no": 1}, "down": {}, "commands": []}', '{"up": {}, "down": {}, "commands": [], "x": 1}'])
def test_a_text_that_is_no_draw(wrong):
    with pytest.raises(LabError, match="not a draw"):
        text.to_draw(wrong)


def test_true_claims_have_no_finding():
    assert found(PLAIN, PING, pinged()) == []
    assert found(replace(PLAIN, up=Way(10.0, loss=5)), PING, pinged(lost=14)) == []
    assert found(PLAIN, PING, pinged(p50_us=20900.0)) == [], "within the tolerance of 5 %"
    assert found(replace(PLAIN, commands=(FLOW,)), FLOW, flowed(8e6)) == []


def test_a_planted_wrong_delay_is_a_false_valid():
    assert (FALSE_VALID, "round trip p50") in found(PLAIN, PING, pinged(p50_us=21500.0))
    assert found(PLAIN, PING, pinged(p50_us=21500.0, verdict="degraded")) == [(FALSE_ALARM, "degraded")], "it does not claim to be valid"


def test_a_planted_wrong_rate_is_a_false_valid():
    assert found(PLAIN, FLOW, flowed(9e6)) == [(FALSE_VALID, "rate up")]
    assert found(PLAIN, FLOW, flowed(7e6)) == [(FALSE_VALID, "rate up")]


def test_an_outage_that_is_missing_in_the_losses_is_a_false_valid():
    assert found(DEAD, PING, pinged(lost=50)) == []
    assert found(DEAD, PING, pinged(lost=0, truly_lost=50)) == [(FALSE_VALID, "loss round trip")]


def test_a_planted_cause_is_false():
    assert found(PLAIN, PING, pinged(verdict="degraded", reasons=("host_busy",))) == [(FALSE_ALARM, "host_busy")]
    assert found(DEAD, PING, pinged(lost=50, verdict="degraded", reasons=("host_busy",))) == [(FALSE_CAUSE, "host_busy")]


def test_a_sentence_that_names_the_wrong_direction_is_a_false_cause():
    done = pinged(lost=50, verdict="degraded", reasons=("flow_ends_missing",))
    assert found(DEAD, PING, done) == []
    there = {**done, "out": done["out"].replace('"text": "flow_ends_missing"', '"text": "the path up is lost"')}
    assert found(DEAD, PING, there) == []
    assert found(DEAD, PING, {**there, "out": there["out"].replace("path up", "path down")}) == [(FALSE_CAUSE, "flow_ends_missing")]


def test_removed_marks_are_named_with_their_direction():
    def flowed_up(verdict: str, *reasons: tuple[str, str]):
        done = flowed(8e6, verdict=verdict)
        said = json.loads(done["out"]) | {"reasons": [{"id": name, "text": text} for name, text in reasons]}
        return {**done, "out": json.dumps(said)}

    command, bleached = "flow -u up server -b 8000k --for 3s --ecn ect0", replace(PLAIN, bleach="up")
    named = ("ecn_bleached", "the path up cleared the ECN mark of 9 of 9 datagrams")
    assert found(bleached, command, flowed_up("degraded", named)) == []
    assert found(bleached, command, flowed_up("valid")) == [(FALSE_VALID, "marks")]
    assert found(replace(bleached, bleach="down"), command, flowed_up("degraded", named)) == [(FALSE_CAUSE, "ecn_bleached")]
    assert found(PLAIN, command, flowed_up("degraded", named)) == [(FALSE_ALARM, "ecn_bleached")]


def test_a_command_without_an_object_is_an_alarm():
    assert found(PLAIN, PING, {**pinged(), "out": "", "err": "Aborted", "status": 134}) == [(FALSE_ALARM, "no result")]


def test_a_segment_counts_once_and_is_read_in_order(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(measure.__file__).parent))  # the guest's programs import each other by their bare names
    flow = importlib.import_module("arrivals").Flow()
    for at, (sequence, length) in enumerate([(2**32 - 100, 0), (2**32 - 100, 100), (200, 100), (100, 50), (0, 100), (150, 100), (200, 100)]):
        flow.add(at, flow.segment(sequence % 2**32, length))
    assert flow.rows[-1][1:] == [400, 400] and flow.holes == []
    assert flow.segment(1000, 10) == 10 and flow.holes == [(2**32 + 300, 2**32 + 1000)]


def test_the_smallest_draw_keeps_what_the_fault_needs():
    whole = Draw(
        7, Way(33.0, 4.4, "pie", loss=2.2, burst=3.0), Way(5.1, 9.0, "codel", reorder=3.0), (PING, FLOW), Outage("both", 1.0, 0.5), True, 3.0, 20.0
    )
    calls = []

    def failing(draw: Draw) -> bool:
        calls.append(draw)
        return draw.up.loss > 0 and draw.outage is not None and FLOW in draw.commands

    small = shrink(whole, failing)
    assert small == Draw(7, Way(10.0, loss=2.2), Way(10.0), (FLOW,), Outage("up", 1.0, 0.5))
    assert len(calls) < 60


def tried(seed: int, kinds=(), faulty: bool = False) -> Tried:
    draw = replace(PLAIN, seed=seed)
    return Tried(draw, (Run(PING, "valid", faulty, 4, ()),), tuple(command.Finding(kind, PING, "a", "b") for kind in kinds), 1.0)


def test_the_rates_and_their_intervals():
    log = [rates.record(tried(seed)) for seed in range(600)] + [rates.record(tried(1000, (FALSE_CAUSE, FALSE_CAUSE), True))]
    valid, cause, alarm = rates.rates(log)
    assert (valid.false, valid.trials) == (0, 601) and 0.004 < valid.between[1] < 0.0063
    assert (cause.false, cause.trials) == (1, 1) and not cause.reached, "a draw counts once"
    assert (alarm.false, alarm.trials) == (0, 600) and alarm.reached
    assert rates.rates([])[0].between == (0.0, 1.0)


def test_a_log_is_continued(tmp_path, monkeypatch, capsys):
    log = tmp_path / "log"
    log.write_text(json.dumps(rates.record(tried(1))) + "\n" + '{"seed": 2, "cut')
    ran = []
    monkeypatch.setattr(command, "tried", lambda draw: ran.append(draw.seed) or tried(draw.seed))
    monkeypatch.setattr(command.uml, "prepare", lambda *_: None)
    assert command.main(["--draws", "3", "--log", str(log)]) == 0
    assert sorted(ran) == [2, 3]
    assert command.main(["--rates", str(log)]) == 0
    assert "3 draws, 3 runs (3 valid)" in capsys.readouterr().out


def test_a_false_claim_gives_status_3_and_the_smallest_draw(monkeypatch, capsys):
    whole = replace(drawn(5), nat=True)
    monkeypatch.setattr(command, "drawn", lambda _: whole)
    monkeypatch.setattr(command, "tried", lambda draw: replace(tried(5, (FALSE_CAUSE,) if draw.nat else ()), draw=draw))
    monkeypatch.setattr(command.uml, "prepare", lambda *_: None)
    assert command.main(["--seed", "5", "--shrink"]) == 3
    out = capsys.readouterr().out
    assert "false cause: ktrxer ping" in out and "again: {" in out
    small = text.to_draw(next(line for line in out.splitlines() if line.startswith("smallest: ")).removeprefix("smallest: "))
    assert small.nat and not small.faults - {"nat"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--draw", "{}"], "not a draw"),
        (["--draws", "0"], "--draws"),
        (["5"], "one word too many"),
        (["--sed", "4"], "did you mean --seed?"),
    ],
)
def test_wrong_use(words, message, capsys):
    with pytest.raises(SystemExit) as end:
        command.main(words)
    assert end.value.code == 2 and message in capsys.readouterr().err
