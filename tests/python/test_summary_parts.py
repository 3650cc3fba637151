# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of the summary that only some tests have: ratings of calls, and figures of each step of a load."""

import numpy as np
import pytest
from ktrxer.flent.writing import document
from ktrxer.run.contradictions import contradictions, idle_delayed
from ktrxer.run.judge import CHECKS, judge
from ktrxer.statistics.voice import call
from ktrxer.store import Host, Meta, Phase, Runner, RunWriter, Series, Zero, open_run
from ktrxer.store.columns import ANSWERED, DUPLICATE, LOST, LOST_DOWN, LOST_UP
from ktrxer.summary import figures, text
from ktrxer.summary.where import Part

S, MS = 10**9, 10**6


def meta_of(series, phases, settings=None, runners=()):
    runner = Runner(0, "x", "stamp", ["x"], "far", "ended", 0, interval_ns=20 * MS, protocol="UDP")
    return Meta(
        id="5f1c0de0-0000-4000-8000-000000000002", test="t", created="2026-11-23T00:00:00.000000Z", host=Host("near"), zero=Zero(0, 0),
        length_ns=10 * S, phases=phases, runners=list(runners) or [runner], series=series, verdict="valid", settings=settings or {},
    )


def stored(tmp_path, meta, **tables):
    writer = RunWriter(tmp_path, meta, "run")
    for kind, rows in tables.items():
        writer.append(kind, rows)
    return open_run(writer.finish())


def a_call(tmp_path, up_ms, down_ms, state, phases, group="VoIP"):
    n = len(state)
    there = [one == ANSWERED for one in state]

    def ns(values):
        return [round(value * MS) if ok else None for value, ok in zip(values, there, strict=True)]

    rows = {
        "series": [0] * n, "t_ns": [i * 20 * MS for i in range(n)], "seq": list(range(n)), "state": state,
        "rtt_ns": ns(np.add(up_ms, down_ms)), "up_ns": ns(up_ms), "down_ns": ns(down_ms),
        "up_bound_ns": ns(np.full(n, 2.0)), "down_bound_ns": ns(np.full(n, 2.0)), "lateness_ns": [0] * n,
    }
    return stored(tmp_path, meta_of([Series(0, "VoIP", "latency", "ms", 0, group=group)], phases), latency=rows)


def test_each_direction_of_a_call_is_rated(tmp_path):
    """500 packets: every tenth is lost up, every tenth down, one in an unknown direction; every fifth comes 50 ms late down."""
    state = [LOST_UP if i % 10 == 3 else LOST_DOWN if i % 10 == 6 else ANSWERED for i in range(500)]
    state[0] = LOST
    down = [80.0 if i % 5 == 0 else 30.0 for i in range(500)]
    run = a_call(tmp_path, np.full(500, 20.0), down, state, [])
    made = {one.direction: one for one in figures.summarise(run).voice}
    up, back = made["up"], made["down"]
    assert (up.packets, round(up.loss * up.packets), up.late, up.unknown, up.phase) == (450, 51, 0, 1, "all")
    assert (back.packets, round(back.loss * back.packets), round(back.late * back.packets)) == (450, 51, 99)
    assert up.delay_ms == 20 + 40 + 20 and back.delay_ms == 30 + 40 + 20
    assert up.mos_low < up.mos < up.mos_high and back.mos < up.mos < 4.41
    lines = [line for line in text.lines(figures.summarise(run)) if line.startswith("call VoIP")]
    assert len(lines) == 2 and "80.0 ms from mouth to ear" in lines[0] and "11.3% lost, 0.0% late for a jitter buffer of 40 ms (1 of unknown" in lines[0]


def test_a_call_idle_and_under_load(tmp_path):
    phases = [Phase("idle_before", 0, 4 * S), Phase("load", 4 * S, 10 * S)]
    up = [10.0 if i < 200 else 300.0 for i in range(500)]
    run = a_call(tmp_path, up, np.full(500, 10.0), [ANSWERED] * 500, phases)
    made = {(one.direction, one.phase): one for one in figures.summarise(run).voice}
    assert made["up", "idle"].mos > 4 > made["up", "load"].mos and made["down", "load"].mos > 4
    expected = call(np.full(300, 300.0))
    assert expected is not None and made["up", "load"].mos == pytest.approx(expected.rating.mos)


def test_a_call_in_a_file_of_flent(tmp_path):
    """Flent's plots of the voip tests draw VoIP::delay, VoIP::jitter and VoIP::loss."""
    up = [20.0 if i % 2 else 24.0 for i in range(500)]
    run = a_call(tmp_path, up, np.full(500, 10.0), [LOST if i in (100, 101) else ANSWERED for i in range(500)], [])
    made = document(run)
    assert made.results.keys() == {"VoIP::delay", "VoIP::jitter", "VoIP::loss"} and list(made.raw) == ["VoIP"]
    assert made.results["VoIP::delay"][10] == pytest.approx(22) and made.results["VoIP::jitter"][20] == pytest.approx(4)
    assert sum(value for value in made.results["VoIP::loss"] if value is not None) == 2


def test_no_call(tmp_path):
    run = a_call(tmp_path, np.full(5, 1.0), np.full(5, 1.0), [ANSWERED] * 5, [], group="Ping (ms)")
    assert figures.summarise(run).voice == []


def test_a_call_without_an_answer(tmp_path):
    assert figures.summarise(a_call(tmp_path, np.full(5, 1.0), np.full(5, 1.0), [LOST] * 5, [])).voice == []


def flows(tmp_path, steps):
    """One flow from 0 to 10 s and another one from 4 to 8 s, which share 8 Mbit/s."""
    first = [(t, 1_000_000 * min(t, 4) + 500_000 * min(max(t - 4, 0), 4) + 1_000_000 * max(t - 8, 0)) for t in range(11)]
    second = [(t, 500_000 * (t - 4)) for t in range(4, 9)]
    rows = {
        "series": [0] * len(first) + [1] * len(second), "t_ns": [t * S for t, _ in first + second], "end": [1] * len(first + second),
        "bytes": [count for _, count in first + second],
    }
    series = [Series(n, f"TCP {n}", "bytes", "Mbit/s", 0, n, "up", group="TCP upload") for n in range(2)]
    meta = meta_of(series, [Phase("load", 0, 10 * S)], {"steps": steps})
    meta.runners[0].interval_ns = S
    return stored(tmp_path, meta, bytes=rows)


def test_each_step_has_the_rate_of_each_flow(tmp_path):
    named = [("one", 0, 4), ("both", 4, 8), ("one again", 8, 10)]
    run = flows(tmp_path, [{"name": name, "from_ns": a * S, "to_ns": b * S} for name, a, b in named])
    made = figures.summarise(run).steps
    rates = [{name: round(rate, 3) for name, rate in one.rates_mbps.items()} for one in made]
    assert rates == [{"TCP 0": 8}, {"TCP 0": 4, "TCP 1": 4}, {"TCP 0": 8}] and [one.rtt_p50_ms for one in made] == [None] * 3
    lines = text.lines(figures.summarise(run))
    assert any("both" in line and "4 to 8 s" in line and "TCP 0 4.00 Mbit/s, TCP 1 4.00 Mbit/s" in line for line in lines)


def test_flows_that_begin_and_end_microseconds_beside_their_steps(tmp_path):
    """The first interval of a flow counts, and a flow that only ends in a step is none of its flows."""
    at = [(4 + n / 5) * S + 100_000 for n in range(6)]
    counts = [0, 50_000, 200_000, 350_000, 500_000, 650_000]  # 650 kB in 1 s: 5.2 Mbit/s; without the first interval 6 Mbit/s
    series = [Series(0, "TCP", "bytes", "Mbit/s", 0, 0, "up")]
    steps = [{"name": "on", "from_ns": 4 * S, "to_ns": 5 * S}, {"name": "off", "from_ns": 5 * S, "to_ns": 6 * S}]
    meta = meta_of(series, [Phase("load", 0, 10 * S)], {"steps": steps})
    meta.runners[0].interval_ns = S // 5
    run = stored(tmp_path, meta, bytes={"series": [0] * 6, "t_ns": at, "end": [1] * 6, "bytes": counts})
    assert [one.rates_mbps for one in figures.summarise(run).steps] == [{"TCP": pytest.approx(5.2, rel=0.001)}, {}]


def test_counts_of_a_sender_that_come_after_the_load(tmp_path):
    """iperf's last interval lasts until the far end has all bytes."""
    series = [Series(0, "TCP", "bytes", "Mbit/s", 0, 0, "up")]
    meta = meta_of(series, [Phase("load", 0, 2 * S)])
    meta.runners[0].interval_ns, meta.runners[0].from_ns, meta.runners[0].to_ns = S // 5, 0, 2 * S
    at = [n * S // 5 for n in range(11)]
    run = stored(tmp_path, meta, bytes={"series": [0] * 12, "t_ns": [*at, 4 * S], "end": [0] * 12, "bytes": [t // 1000 for t in at] + [2_100_000]})
    (row,) = figures.summarise(run).throughput
    assert (row.mean_mbps, row.seconds, row.note) == (pytest.approx(8), 2, "bytes that the sender counted")


def test_flows_without_a_byte_are_counted(tmp_path):
    """A receiver counts bytes in order: CoDel may drop the first segment of a flow again and again."""
    series = [Series(i, f"TCP {i}", "bytes", "Mbit/s", 0, 0, "down", group="TCP") for i in range(5)]
    at = [n * S // 5 for n in range(6)]
    rows = {"series": [i for i in range(5) for _ in at], "t_ns": at * 5, "end": [0] * 30, "bytes": [t // 1000 if i < 3 else 0 for i in range(5) for t in at]}
    made = figures.summarise(stored(tmp_path, meta_of(series, [Phase("load", 0, S)]), bytes=rows))
    (row,) = made.throughput
    assert (row.mean_mbps, row.flows, row.note) == (pytest.approx(24), 5, "2 of 5 flows got no byte")
    assert any("over 1.0 s; 2 of 5 flows got no byte" in line for line in text.lines(made))


@pytest.mark.parametrize("steps", [
    None, 3, "x", [3, None], [{"name": "x"}], [{"name": 3, "from_ns": 0, "to_ns": 1}], [{"name": "x", "from_ns": 5, "to_ns": 2}],
    [{"name": "x", "from_ns": 0.5, "to_ns": 2}], [{"name": "x", "from_ns": 0, "to_ns": 11 * S}], [{"name": "x", "from_ns": True, "to_ns": 2}],
])
def test_steps_of_a_file_that_are_none(tmp_path, steps):
    assert figures.summarise(flows(tmp_path, steps)).steps == []


# --------------------------------------------------------------------------------------------------- several paths in one run


def two_probes(tmp_path, hosts, families=("", ""), classes=(None, None), trips_ms=(10.0, 100.0), targets=()):
    """UDP probes and ICMP probes with different round trips, each to its far end."""
    runners = [
        Runner(n, "x", "x", ["x"], host, "ended", 0, interval_ns=100 * MS, protocol=protocol, parameters={"family": family})
        for n, (host, family, protocol) in enumerate(zip(hosts, families, ("UDP", "ICMP"), strict=True))
    ]
    series = [Series(n, f"p{n}", "latency", "ms", n, klass=klass, group="Ping (ms)") for n, klass in enumerate(classes)]
    meta = meta_of(series, [Phase("idle_before", 0, 10 * S)], runners=runners)
    meta.targets = list(targets or dict.fromkeys(hosts))
    n = 100
    rows = {
        "series": [0] * n + [1] * n, "t_ns": [i * 100 * MS for i in range(n)] * 2, "seq": list(range(n)) * 2, "state": [ANSWERED] * 2 * n,
        "rtt_ns": [round(trips_ms[0] * MS)] * n + [round(trips_ms[1] * MS)] * n, "lateness_ns": [0] * 2 * n,
    }
    return stored(tmp_path, meta, latency=rows)


@pytest.mark.parametrize("more, found", [
    ({"hosts": ("a", "a")}, 1),
    ({"hosts": ("a", "b")}, 0),
    ({"hosts": ("a", "a"), "families": ("-4", "-6")}, 0),
    ({"hosts": ("a", "a"), "classes": ("L4S", None)}, 0),
    ({"hosts": ("a", "a"), "trips_ms": (10.0, 10.5)}, 0),
])
def test_round_trips_of_two_paths_do_not_contradict_each_other(tmp_path, more, found):
    made = list(contradictions(two_probes(tmp_path, **more)))
    assert len(made) == found and all(one.text.startswith("UDP and ICMP round trips of the same class contradict") for one in made)


def test_pings_to_another_host_stay_apart(tmp_path):
    """`run --ping-host b`: the far end is a."""
    run = two_probes(tmp_path, ("a", "b"), targets=["a"])
    s = figures.summarise(run)
    assert [(one.probes, round(one.idle.p50)) for one in s.latency if one.name == "round trip" and one.idle] == [("UDP", 10), ("ICMP to b", 100)]
    assert s.loss_of_run and s.loss_of_run.sent == 100 and not list(contradictions(run))


@pytest.mark.parametrize("second_us, copies, first_us", [(20, 0, 2.0), (20, 5, 2.0), (None, 5, None)])
def test_the_first_of_each_train_is_stated_where_trains_have_several(tmp_path, second_us, copies, first_us):
    """Two classes of one process at the same planned times. Each is the first in half of the trains. Copies of answers are no trains."""
    n = 100
    runners = [Runner(0, "x", "x", ["x"], "b", "ended", 0, interval_ns=100 * MS, protocol="UDP")]
    series = [Series(0, "p", "latency", "ms", 0, klass="BE", group="Ping (ms)"), Series(1, "q", "latency", "ms", 0, klass="EF", group="Ping (ms)")]
    late_us = [(2, second_us), (second_us, 2)] * (n // 2) if second_us else [(2, None)] * n
    rows = [(which, i * 100 * MS + us * 1000, i, ANSWERED, us * 1000) for i, both in enumerate(late_us) for which, us in enumerate(both) if us]
    rows += [(which, t, seq, DUPLICATE, late) for which, t, seq, _, late in rows[:copies]]
    rows.sort()
    names = ("series", "t_ns", "seq", "state", "lateness_ns")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) | {"rtt_ns": [10 * MS] * len(rows)}
    s = figures.summarise(stored(tmp_path, meta_of(series, [Phase("idle_before", 0, 10 * S)], runners=runners), latency=columns))
    assert (s.first_lateness_us.p50 if s.first_lateness_us else None) == first_us
    assert any("first of each train  p50 2.0 us" in line for line in text.lines(s)) == (first_us is not None)


def graded(tmp_path, idle_ms, load_ms):
    """UDP probes of 20 ms with these round trips in a time of 5 s before the load and of 10 s under it."""
    trips = np.concatenate([idle_ms, load_ms])
    n = len(trips)
    runners = [Runner(0, "x", "x", ["x"], "b", "ended", 0, interval_ns=20 * MS, protocol="UDP")]
    meta = meta_of([Series(0, "p", "latency", "ms", 0, group="Ping (ms)")], [Phase("idle_before", 0, 5 * S), Phase("load", 5 * S, 15 * S)], runners=runners)
    rows = {
        "series": [0] * n, "t_ns": [i * 20 * MS for i in range(n)], "seq": list(range(n)), "state": [ANSWERED] * n,
        "rtt_ns": [round(one * MS) for one in trips], "lateness_ns": [0] * n,
    }  # fmt: skip
    return stored(tmp_path, meta, latency=rows)


IDLE_T, LOAD_T = np.arange(250) * 0.02, np.arange(500) * 0.02


@pytest.mark.parametrize("idle, load, found", [
    (IDLE_T * 0 + 80, LOAD_T * 0 + 82, False),  # a long path, or a queue without a pause
    (40 + 40 * (IDLE_T % 4) / 4, 75 + 5 * (LOAD_T % 4) / 4, True),  # a sawtooth of another sender
    (IDLE_T * 0 + 80, 20 + 70 * (LOAD_T > 4), True),  # another sender that pauses under the load
    (50 + 10 * np.random.default_rng(1).standard_normal(250), 52 + 10 * np.random.default_rng(2).standard_normal(500), False),  # jitter
    (IDLE_T * 0 + 20, 15 + 300 * (LOAD_T > 1), False),  # the path became shorter; the grade is the same
])  # fmt: skip
def test_a_queue_before_the_load_takes_the_grade(tmp_path, idle, load, found):
    run = graded(tmp_path, idle, load)
    made = list(idle_delayed(run))
    assert len(made) == found and (figures.summarise(run).grade is None) == found, made
    assert all(one.text.startswith("the idle UDP round trips were not those of an idle path: median ") for one in made)


def test_two_far_ends_have_a_row_each(tmp_path):
    made = figures.summarise(two_probes(tmp_path, ("a", "b")))
    assert {(one.name, one.probes): one.idle or one.loaded for one in made.latency}.keys() == {("round trip", "UDP to a"), ("round trip", "ICMP to b")}
    (tmp_path / "run.ktrxer").unlink()
    made = figures.summarise(two_probes(tmp_path, ("a", "a"), ("-4", "-6")))
    assert [one.probes for one in made.latency] == ["UDP over IPv4", "ICMP over IPv6"]


@pytest.mark.parametrize(("added", "words"), [
    (107.31, "107.3 ms"), (1.04, "1.04 ms"), (0.96, "960 us"), (0.04, "40.0 us"), (0.0123, "12.3 us"), (0.004, "4.00 us"),
    (0.0002, "200 ns"),
])
def test_a_place_with_a_share_of_the_delay_is_not_zero(added, words):
    assert text.places([Part("up", 90.0, 0.99), Part("down", added, 0.01)]).endswith(f", {words} down (1%)")


def test_the_handshakes_of_the_flows_are_no_responsiveness_under_load(tmp_path):
    """The kernel's first estimate of the round trip is that of the path before the flow loads it."""
    series = [Series(0, "TCP upload", "tcp_info", "", 0, direction="up")]
    rows = {"series": [0] * 6, "end": [0] * 6, "t_ns": [1, 200 * MS, 400 * MS, 600 * MS, 800 * MS, S], "rtt_us": [20.0, *[20_000.0] * 5]}
    made = figures.summarise(stored(tmp_path, meta_of(series, [Phase("load", 0, S)]), tcp_info=rows)).responsiveness
    assert made.self_rpm == made.rpm == 3000


def test_a_flow_with_its_handshake_alone_has_no_responsiveness(tmp_path):
    series = [Series(0, "TCP upload", "tcp_info", "", 0, direction="up")]
    rows = {"series": [0, 0], "end": [0, 0], "t_ns": [1, 240 * MS], "rtt_us": [20.0, 20_000.0]}
    assert figures.summarise(stored(tmp_path, meta_of(series, [Phase("load", 0, 200 * MS)]), tcp_info=rows)).responsiveness is None


FINDINGS = [
    ("ktrxer.summary.changes.changes", "levels"), ("ktrxer.summary.policer.policed", "policer"), ("ktrxer.run.own_load.own_loads", "measurement load"),
    ("ktrxer.summary.figures._grade", "grade"), ("ktrxer.summary.figures.hops", "routers"), ("ktrxer.summary.figures.estimates", "estimates"),
    ("ktrxer.summary.losses.of_run", "loss"), ("ktrxer.summary.losses.of_phases", "loss"), ("ktrxer.summary.figures.throughput", "throughput"),
    ("ktrxer.summary.figures.phase_times", "phases"), ("ktrxer.summary.figures.processor_times", "processor time"),
    ("ktrxer.summary.figures._late", "late probes"), ("ktrxer.summary.figures._left_out", "answers in no figure"),
    ("ktrxer.summary.figures.outages", "outages"), ("ktrxer.summary.figures.byte_outages", "outages of flows"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "name"), FINDINGS, ids=[where.rpartition(".")[2] for where, _ in FINDINGS])
def test_a_finding_that_fails_costs_that_finding_alone(tmp_path, monkeypatch, where, name):
    run = graded(tmp_path, IDLE_T * 0 + 10, LOAD_T * 0 + 30)
    whole = figures.summarise(run)
    assert not whole.failed and whole.grade is not None

    def defect(*_):
        raise IndexError("index 0 is out of bounds")

    monkeypatch.setattr(where, defect)
    made = figures.summarise(run)
    assert made.failed == [f"{name} (IndexError: index 0 is out of bounds)"]
    assert f"not computed  {name} (IndexError: index 0 is out of bounds)" in text.lines(made)
    assert made.as_json()["failed"] == made.failed and made.latency == whole.latency
    # Outages limit the grade: without them there is none.
    assert made.grade is None if name in ("grade", "outages", "outages of flows") else made.grade == whole.grade


@pytest.mark.parametrize("check", range(len(CHECKS)), ids=[name for name, _ in CHECKS])
def test_a_check_that_fails_costs_that_check_alone(tmp_path, monkeypatch, check):
    run = graded(tmp_path, IDLE_T * 0 + 10, LOAD_T * 0 + 30)
    whole = judge(run).reasons()

    def defect(_):
        raise ValueError("no such column")

    checks = [(name, defect if n == check else one) for n, (name, one) in enumerate(CHECKS)]
    monkeypatch.setattr("ktrxer.run.judge.CHECKS", checks)
    found = judge(run).reasons()
    assert [one.text for one in found if one.id == "check_failed"] == [f"the check of {CHECKS[check][0]} failed: ValueError: no such column"]
    assert [one for one in whole if one not in found] == []
