# SPDX-License-Identifier: MIT OR Apache-2.0
"""A statement that contradicts a figure of the same run is withdrawn, and the summary names both. Each case plants one contradiction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ktrxer.figures.bound import Bound
from ktrxer.figures.throughput import Throughput
from ktrxer.run.egress import OwnDrops
from ktrxer.store import Host, Meta, Phase, Run, Runner, RunWriter, Series, Zero, open_run
from ktrxer.store.columns import ANSWERED, LOST
from ktrxer.summary import text
from ktrxer.summary.byte_outages import ByteOutage
from ktrxer.summary.changes import Change, Held
from ktrxer.summary.consistent import RELATIONS, consistent
from ktrxer.summary.figures import summarise
from ktrxer.summary.losses import Loss
from ktrxer.summary.methods import Estimate, Hop
from ktrxer.summary.model import Summary
from ktrxer.summary.outages import Outage
from ktrxer.summary.policer import Policed
from ktrxer.summary.steps import Step
from ktrxer.summary.voice import Voice
from ktrxer.summary.where import DOWN, UP, Part

S, MS = 10**9, 10**6
IDLE_MS, LOADED_MS = 20, 60
VOICE = Voice("VoIP", "up", "all", 4.0, 3.9, 4.1, 80.0, 60.0, 0.1, 0.1, 500, 0, "G.711", 40.0)
POLICED = Policed("up", 10.0, 0.05, 0.1, 1.2)
BOUND = Bound("loaded_p50", "UDP", "us", LOADED_MS * 1e3, 10.0, 3000.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """20 ms for 5 s, then 60 ms under load for 5 s, and an outage of a second."""
    phases = [Phase("idle_before", 0, 5 * S), Phase("load", 5 * S, 10 * S)]
    runner = Runner(0, "UDP", "stamp", ["ktrxer", "stamp"], "far", "ended", 0, interval_ns=10 * MS, protocol="UDP")
    meta = Meta(
        id="5f1c0de0-0000-4000-8000-000000000078", test="t", created="2026-11-28T00:00:00.000000Z", host=Host("near"), zero=Zero(0, 0),
        length_ns=10 * S, phases=phases, runners=[runner], series=[Series(0, "UDP", "latency", "ms", 0)], verdict="valid",
    )
    dead = [600 <= seq < 700 for seq in range(1000)]
    trips = np.where(np.arange(1000) < 500, IDLE_MS, LOADED_MS) * MS + np.arange(1000) % 7 * 1000
    writer = RunWriter(tmp_path_factory.mktemp("consistent"), meta, "run")
    writer.append("latency", {
        "series": [0] * 1000, "t_ns": [seq * 10 * MS for seq in range(1000)], "seq": list(range(1000)), "lateness_ns": [0] * 1000,
        "state": [LOST if one else ANSWERED for one in dead], "rtt_ns": [None if one else int(trips[seq]) for seq, one in enumerate(dead)],
    })  # fmt: skip
    return open_run(writer.finish())


@pytest.fixture(scope="module")
def summary(run: Run) -> Summary:
    made = summarise(run)
    assert made.grade is not None and made.responsiveness is not None and len(made.outages) == 1 and not made.contradicted, made.contradicted
    return made


def trip(summary: Summary, **figures: Any) -> dict[str, Any]:
    (one,) = [one for one in summary.latency if one.name == "round trip"]
    assert one.loaded is not None
    return {"latency": [replace(one, loaded=replace(one.loaded, **figures))]}


PLANTED: dict[str, tuple[Any, str]] = {  # changes of the summary; a part of the text
    "a p50 above the p99": (lambda s: trip(s, p50=99.0), "not in ascending order"),
    "a p50 outside of its interval": (lambda s: trip(s, p50_low=70.0), "interval of the p50"),
    "a round trip below zero": (lambda s: trip(s, min=-1.0), "a round trip of -1"),
    "half of the probes are lost, says the p50": (lambda s: trip(s, p50=np.inf, p50_low=None, p50_high=None), "that of a lost probe"),
    "a grade better than its delay": (lambda s: {"grade": replace(s.grade, added_ms=1.0)}, "it is of 1.0"),
    "a grade better than its outage": (lambda s: {"grade": replace(s.grade, letter="A")}, "the figures give"),
    "a grade of other probes": (lambda s: {"grade": replace(s.grade, probes="ICMP")}, "no round trips"),
    "round trips a minute beyond the probes'": (lambda s: {"responsiveness": replace(s.responsiveness, foreign_rpm=9e4)}, "ascending order"),
    "good, and the flows' own are bad": (lambda s: {"responsiveness": replace(s.responsiveness, rating="good")}, "round trips a minute are"),
    "more lost than sent": (lambda s: {"loss": [Loss("load", 100, 120, 0, 0)]}, "lost, sent"),
    "more lost in a phase than in the run": (lambda s: {"loss": [Loss("load", 900, 400, 0, 0)]}, "lost in the phases"),
    "no answer, and answers are recorded": (lambda s: {"outages": [Outage(5.0, 1000.0, 1020.0, "", 100, ["UDP"])]}, "were answered"),
    "an outage of flows below its least length": (lambda s: {"byte_outages": [ByteOutage(6.0, 900.0, 800.0, "up", 1, 1)]}, "outage of flows"),
    "places with more than the whole delay": (lambda s: {"where": [Part(UP, 40.0, 0.9), Part(DOWN, 20.0, 0.5)]}, "140%"),
    "a policer without losses": (lambda s: {"policed": [replace(POLICED, lost_share=0.0)]}, "no segment was lost"),
    "a policer with a queue": (lambda s: {"policed": [POLICED], "where": [Part(UP, 40.0, 1.0)]}, "the load adds 40.0"),
    "a policer below the rate": (lambda s: {"policed": [POLICED], "throughput": [Throughput("up", "up", 1, 30.0, 5.0)]}, "were received"),
    "levels in the wrong order": (lambda s: {"changes": [Change("up", "Mbit/s", [Held(3, 5, 9.0), Held(1, 3, 2.0)])]}, "times of the levels"),
    "two levels that are one": (lambda s: {"changes": [Change("up", "Mbit/s", [Held(0, 1, 9.0), Held(1, 3, 9.0)])]}, "two levels of 9"),
    "a step that ends before it begins": (lambda s: {"steps": [Step("a", 3.0, 2.0, None, {})]}, "begin and end"),
    "a MOS outside of its range": (lambda s: {"voice": [replace(VOICE, mos=4.3)]}, "MOS"),
    "more packets late and lost than sent": (lambda s: {"voice": [replace(VOICE, loss=0.7, late=0.7)]}, "70% lost"),
    "an estimate outside of its range": (lambda s: {"estimates": [Estimate("capacity", "Mbit/s", 9.0, 10.0, 11.0)]}, "ascending order"),
    "a router without an answer and with a time": (lambda s: {"hops": [Hop("t", 1, "10.0.0.1", 0, 1.0, 2.0)]}, "no answer"),
    "the verdict is of another figure": (lambda s: {"bounds": [replace(BOUND, value=20e3)]}, "the verdict is of 20.0"),
    "valid, and a bound is too wide": (lambda s: {"bounds": [replace(BOUND, value=None, bound=9e3)]}, "exceeds"),
    "a negative count of drops": (lambda s: {"own_drops": OwnDrops("eth0", "fq_codel", -1, 10)}, "-1 packets"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_contradiction_is_withdrawn(name: str, run: Run, summary: Summary) -> None:
    change, words = PLANTED[name]
    planted = replace(summary, **change(summary))
    made = consistent(planted, run)
    assert any(words in text for text in made.contradicted), made.contradicted
    field = next(text.partition(":")[0] for text in made.contradicted if words in text)
    before, after = getattr(planted, field), getattr(made, field)
    assert after is None if not isinstance(before, list) else len(after) < len(before)
    (shown,) = [line for line in text.lines(made) if line.startswith("withdrawn")]
    assert all(one in shown for one in made.contradicted)


def test_true_statements_stay(run: Run, summary: Summary) -> None:
    true: dict[str, Any] = {
        "policed": [POLICED], "throughput": [Throughput("up", "up", 2, 19.0, 5.0), Throughput("down", "down", 1, 90.0, 5.0)], "voice": [VOICE],
        "where": [Part(UP, 0.5, 1.08), Part(DOWN, -0.04, -0.08)], "steps": [Step("a", 1.0, 2.0, None, {})], "bounds": [],
        "changes": [Change("up", "Mbit/s", [Held(0, 1, 20.0), Held(1, 3, 9.0)])], "estimates": [Estimate("c", "Mbit/s", None, 10.0, None)],
    }  # fmt: skip
    made = consistent(replace(summary, **true), run)
    assert not made.contradicted and made == replace(summary, **true)


def test_each_relation_has_a_planted_contradiction(run: Run, summary: Summary) -> None:
    fields = {
        text.partition(":")[0]
        for change, _ in PLANTED.values()
        for text in consistent(replace(summary, **change(summary)), run).contradicted
    }
    assert fields >= RELATIONS.keys() - {"loss_of_run", "lateness_us"}, "these two share the relation of another field"
