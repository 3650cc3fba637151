# SPDX-License-Identifier: MIT OR Apache-2.0
"""Truth by chance: draws from seeds, the truth about them, and a judge that finds planted false claims. The runs are in tests/truth/paths."""

from __future__ import annotations

import importlib
import json
import socket
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from ktrxer_lab import topology
from ktrxer_lab.errors import LabError
from ktrxer_lab.truth import boxes, measure
from ktrxer_lab.truth.chance import claims, command, rates, text
from ktrxer_lab.truth.chance.draw import BOX_WAYS, Draw, Outage, Step, build, drawn
from ktrxer_lab.truth.chance.expect import SHAPED, truth
from ktrxer_lab.truth.chance.judge import FALSE_ALARM, FALSE_CAUSE, FALSE_VALID, judge
from ktrxer_lab.truth.chance.run import Run, Tried
from ktrxer_lab.truth.chance.shrink import shrink
from ktrxer_lab.truth.path import Way

MS = 1_000_000
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


def flowed(bps: float, true_bps: float = 8e6, verdict: str = "valid", dead_ms=(0, 0), outages=(), levels=(), bounds=()):
    said = {"verdict": verdict, "reasons": [], "protocol": "tcp", "up_bps": bps, "flows": [{"direction": "up", "received_bytes": 3e6}], "start_ns": 0}
    said |= {"outages": list(outages), "levels": list(levels), "bounds": list(bounds)}
    rows = [(at * MS, *2 * (int(true_bps * at / 8000),)) for at in range(0, 3001, 10) if not dead_ms[0] < at < dead_ms[1]]
    arrived = {"up": {"rows": rows, "copies": 0}}
    dead = [{"at_ns": at * MS, "out": "", "outage": True} for at in dead_ms if dead_ms[1]]
    return {"status": 0, "out": json.dumps(said), "err": "", "counted": {}, "arrived": arrived, "events": dead, "offset_ns": 0}


def found(draw: Draw, words: str, done):
    said = claims.read(words, done)
    return [(one.kind, one.name) for one in judge(said, truth(draw, said, done))]


def test_a_seed_makes_one_draw():
    assert [drawn(seed) for seed in range(200)] == [drawn(seed) for seed in range(200)]
    assert len({replace(drawn(seed), seed=0) for seed in range(200)}) == 200


def test_the_draws_have_every_fault_and_none():
    draws = [drawn(seed) for seed in range(400)]
    faults = {name for draw in draws for name in draw.faults}
    assert {"rate", "loss", "reorder", "duplicate", "jitter", "outage", "nat", "clock", "policer", "marks", "bleach", "held", "step", *BOX_WAYS} <= faults
    assert 50 < sum(not draw.faults - SHAPED for draw in draws) < 200
    assert {one.split()[0] for draw in draws for one in draw.commands} >= {"ping", "stamp", "flow", "trace", "run", "check"}
    assert {draw.v6 for draw in draws} == {False, True}


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


def stopped(from_ms: int, low_ms: int, high_ms: int, way: str = "up"):
    return {"direction": way, "flow": None, "from_ns": from_ms * MS, "low_ns": low_ms * MS, "high_ns": high_ms * MS}


def test_an_outage_of_bytes_is_one_of_the_packets_that_arrived():
    dead = replace(PLAIN, commands=(FLOW,), outage=Outage("up", 1.0, 1.0))
    right = {"dead_ms": (1000, 2000), "outages": [stopped(1010, 980, 1200)]}
    assert found(dead, FLOW, flowed(8e6, **right)) == []
    assert found(dead, FLOW, flowed(8e6, **right | {"outages": []})) == [(FALSE_VALID, "byte outage")], "it is not named"
    assert found(dead, FLOW, flowed(8e6, **right | {"outages": [stopped(1010, 1400, 1600)]})) == [(FALSE_VALID, "byte outage")], "too long"
    assert found(dead, FLOW, flowed(8e6, **right | {"outages": [stopped(1010, 700, 900)]})) == [(FALSE_VALID, "byte outage")], "its bound is too short"
    assert found(PLAIN, FLOW, flowed(8e6, **right)) == [(FALSE_ALARM, "byte outage")], "nothing stops packets"


def test_a_level_is_a_rate_of_the_packets_that_arrived():
    stepped = replace(PLAIN, commands=(FLOW,), step=Step("up", 1.5, 0.5))
    held = [{"direction": "up", "from_ns": 0, "to_ns": 3000 * MS, "rate_bps": 8e6}]
    assert found(stepped, FLOW, flowed(8e6, levels=held)) == []
    assert found(stepped, FLOW, flowed(8e6, levels=[held[0] | {"rate_bps": 6e6}])) == [(FALSE_VALID, "level")]
    assert found(PLAIN, FLOW, flowed(8e6, levels=held)) == [(FALSE_ALARM, "level")]


def test_the_true_value_is_within_the_bound():
    bound = {"figure": "rate_up", "value": 7.7, "unit": "Mbit/s", "bound": 0.4, "tolerance": 0.5}
    assert found(PLAIN, FLOW, flowed(7.7e6, bounds=[bound])) == []
    assert found(PLAIN, FLOW, flowed(7.7e6, bounds=[bound | {"bound": 0.05}])) == [(FALSE_VALID, "bound")]


def test_an_answer_of_another_host_is_no_result_of_the_server():
    portal = replace(PLAIN, commands=(FLOW,), box="portal")
    assert found(portal, FLOW, {**flowed(8e6), "out": "", "err": "no server", "status": 1}) == []
    assert (FALSE_VALID, "answers") in found(portal, FLOW, flowed(8e6))


def test_a_middlebox_resets_the_connection_of_the_sender():
    for family, addresses, header in ((socket.AF_INET, ("10.0.0.1", "10.0.0.2"), 20), (socket.AF_INET6, ("fd00::1", "fd00::2"), 40)):
        source, target = (socket.inet_pton(family, one) for one in addresses)
        segment = struct.pack("!HHIIBBHHH", 4000, 8620, 1000, 77, 0x50, 16, 100, 0, 0) + b"data"
        v4 = struct.pack("!BBHHHBBH", 0x45, 0, 44, 0, 0, 64, 6, 0)
        packet = (v4 if header == 20 else struct.pack("!IHBB", 6 << 28, 24, 6, 64)) + source + target + segment
        to, made = boxes.answer(packet)
        assert to == addresses[0]
        assert struct.unpack_from("!HHIIBB", made, header) == (8620, 4000, 77, 1004, 0x50, 4 | 16)
        assert boxes.answer(made) is None, "it does not answer a reset"
        pseudo = target + source + (struct.pack("!BBH", 0, 6, 20) if header == 20 else struct.pack("!II", 20, 6))
        assert boxes.checksum(pseudo + made[header:]) == 0


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
    assert small.nat and not small.faults - SHAPED - {"nat"}


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
