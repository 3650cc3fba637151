# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runners of the methods that estimate: command lines, their output as rows, output that is cut off or wrong, and figures of the summary."""

import contextlib
import json

import pytest
from ktrxer import runners
from ktrxer.catalogue.recipe import PlanError, Setting, When, combine
from ktrxer.catalogue.recipe import run as invoke
from ktrxer.run.judge import judge
from ktrxer.run.schedule import make
from ktrxer.runners import Options, RunnerError, Times
from ktrxer.runners.runner import Ended
from ktrxer.runners.samples import Chunk, Clock, Samples
from ktrxer.store import Host, Meta, Phase, RunWriter, Zero, open_run
from ktrxer.store.meta import Runner as Process
from ktrxer.summary import figures, text

MS, S = 10**6, 10**9
ZERO = 5000 * S  # CLOCK_MONOTONIC of the run's zero
METHODS = ("abw", "capacity", "pair", "ppt", "tcp", "trace")


def lines(*objects):
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


def end(**more):
    return {"type": "end", "end_ns": ZERO + 4 * S, "verdict": "valid", "reasons": [], **more}


def outcome(name, output, parameters=None, cut=11):
    runner = runners.find(name)
    p = runner.parameters(**(parameters or {}))
    runner.validate(p)
    made = runner.series(p, "x")
    for number, series in enumerate(made.values()):
        series.id = number
    samples = Samples(made, Clock(1_795_000_000 * S, ZERO), from_ns=S, to_ns=5 * S)
    reading = runner.read(p, samples)
    next(reading)
    with contextlib.suppress(StopIteration):
        for begin in range(0, len(output), cut):
            reading.send(Chunk(output[begin : begin + cut], 3 * S))
        reading.send(None)
    return samples, made


def rows_of(samples, made, key):
    table = samples.take().get(made[key].kind, {})
    which = [i for i, series in enumerate(table.get("series", [])) if series == made[key].id]
    return {name: [values[i] for i in which] for name, values in table.items()}


def pair(kind, size, way, number, sent, arrived):
    names = ("first_sent_ns", "second_sent_ns", "first_arrived_ns", "second_arrived_ns")
    return {"type": "sample", "kind": kind, "direction": way, "number": number, size: 1500, **dict(zip(names, [*sent, *arrived], strict=True))}


FAR = 1_700_000_000 * S  # the far host's clock


def pairs_of(kind, size):
    """Two pairs up, of which the second is lost, and one down."""
    return [
        pair(kind, size, "up", 0, [ZERO + S, ZERO + S + 1000], [FAR + 20 * MS, FAR + 20 * MS + 1_200_000]),
        pair(kind, size, "up", 1, [ZERO + S + 20 * MS, None], [None, None]),
        pair(kind, size, "up", 2, [ZERO + S + 40 * MS, ZERO + S + 40 * MS + 900], [FAR + 61 * MS, FAR + 62 * MS]),
        pair(kind, size, "down", 0, [FAR, FAR + 5], [ZERO + 2 * S, ZERO + 2 * S + 7]),
        pair(kind, size, "down", 1, [FAR + 9, FAR + 15], [None, None]),
    ]


BOUNDS = {"value": 9.9e6, "low": 9.8e6, "high": 10.1e6}
PAIR = lines(
    {"type": "start", "schema": 1}, *pairs_of("pair", "ip_bytes"),
    end(up={"reading": "resolved", "capacity_bit_s": BOUNDS}, down={"reading": "coalesced", "capacity_bit_s": None}),
)  # fmt: skip
PPT = lines(
    *pairs_of("compound_probe", "trailing_wire_bytes"),
    end(up={"reading": "resolved", "capacity_bit_s": BOUNDS, "delta_ns": {"value": -2000, "low": -2500, "high": -1500.5}}),
)
ABW = lines(
    {"type": "sample", "kind": "abw_step", "direction": "up", "step": "small_probes", "sent": 400, "arrived": 400},
    end(up={"reading": "resolved", "available_bit_s": {"low": 6e6, "high": 7e6}}, down={"reading": "not_converged", "available_bit_s": {"low": 1, "high": 9}}),
)
INTERVAL = {"type": "sample", "kind": "ip_capacity", "direction": "down", "number": 0, "time_ns": ZERO + 2 * S, "lasts_ns": S, "datagrams": 900,
            "ip_bytes": 1_125_000, "bit_s": 9_000_000, "lost": 3, "reordered": 0, "duplicates": 0, "delay_variation_min_ns": 0,
            "delay_variation_max_ns": 5 * MS, "rtt_variation_min_ns": None, "rtt_variation_max_ns": None}  # fmt: skip
CAPACITY = lines(INTERVAL, end(down={"maximum": {"bit_s": 9_000_000}}, up={"maximum": None}))
HOP = {"type": "sample", "kind": "hop_answer", "number": 7, "stage": "repeat", "repetition": 0, "hop": 2, "flow": 0, "from": "10.0.2.1",
       "answer": "time_exceeded", "sent_ns": ZERO + S, "received_ns": ZERO + S + 2 * MS, "rtt_ns": 2 * MS, "own_queue_ns": None}
TRACE = lines(
    HOP, HOP | {"stage": "loaded", "rtt_ns": 32 * MS}, HOP | {"from": "fe80::1%eth0", "rtt_ns": None, "answer": "echo_reply", "hop": 3},
    end(load={"queue_before_hop": 2, "hops": [{"hop": 1, "queue_us": 1, "queue_uncertainty_us": 1},
                                             {"hop": 2, "queue_us": 30_000, "queue_uncertainty_us": 400}]}),
)  # fmt: skip


def tcp_pair(number, up, down, doubt=None, rtt=4 * MS, second=None):
    return {"type": "sample", "kind": "tcp_pair", "number": number, "scheduled_ns": ZERO + S + number * 500 * MS, "up": up, "down": down,
            "sent_ns": ZERO + S + number * 500 * MS + 2000, "second_sent_ns": ZERO + S + number * 500 * MS + 9000, "doubt": doubt,
            "rtt_ns": rtt, "second_rtt_ns": second, "from_port": 1, "sequence": 1, "elicited_sequence": 1}  # fmt: skip


SHARE = {"count": 1, "of": 8, "share": 0.125, "low": 0.02, "high": 0.47}
NONE = {"count": 0, "of": 0, "share": None, "low": 0, "high": 1}
TCP = lines(
    tcp_pair(0, "in_order", "in_order", second=5 * MS), tcp_pair(1, "first_lost", "in_order", rtt=None, second=None),
    tcp_pair(2, "reordered", "second_lost"), tcp_pair(3, "unknown", "unknown", "short_segments"),
    end(up={"lost": SHARE, "reordered": SHARE}, down={"lost": SHARE, "reordered": NONE}),
)  # fmt: skip
RECORDED = {"pair": (PAIR, {}), "ppt": (PPT, {"direction": "both"}), "abw": (ABW, {}), "capacity": (CAPACITY, {}),
            "trace": (TRACE, {"load": "up"}), "tcp": (TCP, {})}  # fmt: skip


# --------------------------------------------------------------------------------------------------------- output as rows


@pytest.mark.parametrize("name", ["pair", "ppt"])
def test_pairs_keep_gaps_and_no_difference_of_two_clocks(name):
    samples, made = outcome(name, *RECORDED[name])
    assert samples.garbage == 0, samples.first_garbage
    table = samples.take()["pair"]
    assert table["t_ns"] == [S, S + 20 * MS, S + 40 * MS, 2 * S, S + (20 if name == "pair" else 400) * MS], "of this host; else as scheduled"
    assert table["send_gap_ns"] == [1000, None, 900, 5, 6] and table["arrival_gap_ns"] == [1_200_000, None, MS, 7, None]
    assert table["delay_ns"] == [0, None, MS, 0, None], "above the delay of the first pair"
    assert table["series"] == [made["pair", "up"].id] * 3 + [made["pair", "down"].id] * 2


def test_estimates_have_their_bounds():
    samples, made = outcome("pair", *RECORDED["pair"])
    assert samples.take()["range"] == {"series": [made["range", "up"].id], "t_ns": [4 * S], "value": [9.9], "low": [9.8], "high": [10.1]}
    samples, made = outcome("ppt", *RECORDED["ppt"])
    found = samples.take()["range"]
    assert found["series"] == [made["capacity", "up"].id, made["dPPT", "up"].id] and found["value"] == [9.9, -2.0]
    assert found["low"] == [9.8, -2.5] and found["high"] == [10.1, -1.5005]


def test_available_bandwidth_is_a_range_and_an_open_search_has_none():
    samples, made = outcome("abw", *RECORDED["abw"])
    ((at, event, words),) = samples.events
    assert at == 3 * S and event == "abw_step" and json.loads(words)["step"] == "small_probes"
    assert samples.take() == {"range": {"series": [made["range", "up"].id], "t_ns": [4 * S], "value": [None], "low": [6.0], "high": [7.0]}}


def test_capacity_by_sub_interval():
    samples, made = outcome("capacity", *RECORDED["capacity"])
    table = samples.take()
    assert table["ip_capacity"]["t_ns"] == [2 * S] and table["ip_capacity"]["ip_bytes"] == [1_125_000]
    assert table["ip_capacity"]["delay_variation_max_ns"] == [5 * MS] and table["ip_capacity"]["rtt_variation_max_ns"] == [None]
    assert table["range"]["value"] == [9.0] and table["range"]["low"] == [None] and table["range"]["series"] == [made["range", "down"].id]


def test_answers_of_routers():
    samples, _ = outcome("trace", *RECORDED["trace"])
    table = samples.take()
    assert table["hop"]["address"] == ["10.0.2.1", "10.0.2.1", "fe80::1"] and table["hop"]["stage"] == [1, 2, 1]
    assert table["hop"]["rtt_ns"] == [2 * MS, 32 * MS, None] and table["hop"]["answer"] == [0, 0, 2] and table["hop"]["t_ns"] == [S] * 3
    assert (table["range"]["value"], table["range"]["low"], table["range"]["high"]) == ([30.0], [29.6], [30.4])
    without, _ = outcome("trace", TRACE)
    assert "range" not in without.take() and without.garbage == 0


def test_pairs_of_tcp_probes():
    samples, made = outcome("tcp", *RECORDED["tcp"])
    assert samples.garbage == 0, samples.first_garbage
    table = samples.take()
    assert table["tcp_pair"]["up"] == [1, 4, 2, 0] and table["tcp_pair"]["down"] == [1, 1, 5, 0] and table["tcp_pair"]["doubt"] == [0, 0, 0, 2]
    latency = table["latency"]
    assert latency["seq"] == [0, 1, 2, 3, 4, 5], "the fourth pair has no result"
    assert latency["state"] == [0, 0, 2, 0, 0, 3], "answered, lost up, lost down"
    assert latency["rtt_ns"] == [4 * MS, 5 * MS, None, None, 4 * MS, None] and latency["lateness_ns"] == [2000, None] * 3
    found = table["range"]
    assert found["value"] == [12.5] * 3 and found["low"] == [2.0] * 3
    assert found["series"] == [made[key].id for key in (("lost", "up"), ("reordered", "up"), ("lost", "down"))]


@pytest.mark.parametrize("name", METHODS)
def test_output_that_is_cut_off_at_any_byte(name):
    """What was whole counts; nothing raises."""
    output, parameters = RECORDED[name]
    whole = sum(len(table["series"]) for table in outcome(name, output, parameters)[0].take().values())
    for length in range(0, len(output), 7):
        samples, _ = outcome(name, output[:length], parameters, cut=4096)
        assert samples.garbage <= 1 and sum(len(table["series"]) for table in samples.take().values()) <= whole


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("bad", [None, True, "x", 1.5, -1, 2**63, -(2**63), [], {}, [[1]], {"value": 1}])
def test_any_field_with_another_value_is_refused_or_stored_as_it_is(name, bad):
    """Each field of each object, once; a row that is stored fits its columns."""
    output, parameters = RECORDED[name]
    objects = [json.loads(line) for line in output.splitlines()]
    for place, one in enumerate(objects):
        for field in one:
            if field != "type":
                changed = [*objects[:place], one | {field: bad}, *objects[place + 1 :]]
                samples, _ = outcome(name, lines(*changed), parameters, cut=1 << 16)
                assert samples.garbage <= 1
                samples.take()


@pytest.mark.parametrize("found", [{"low": 9, "high": 8}, {"value": "9"}, {"value": True}, 5, "x", [1]])
def test_estimates_that_cannot_be(found):
    samples, _ = outcome("pair", lines(end(up={"capacity_bit_s": found})))
    assert samples.garbage == 1 and samples.take() == {}


@pytest.mark.parametrize("found", [None, {}, {"value": None, "low": None, "high": None}, {"value": 1e300}])
def test_estimates_without_a_figure(found):
    samples, _ = outcome("pair", lines(end(up={"capacity_bit_s": found})))
    assert samples.garbage == 0 and samples.take() == {}


@pytest.mark.parametrize("change", [{"from": "no address"}, {"from": "10.0.0.1; rm"}, {"from": "x" * 10_000}, {"stage": "other"}, {"answer": ""}, {"hop": "2"}])
def test_answers_that_no_router_gives(change):
    samples, _ = outcome("trace", lines(HOP | change))
    assert samples.garbage == 1 and samples.take() == {}


# ---------------------------------------------------------------------------------------------------------- command lines


@pytest.mark.parametrize("name, parameters, words", [
    ("pair", {}, ["pair", "H", "--count", "200", "--interval", "20000000ns", "--direction", "both"]),
    ("pair", {"count": 30, "direction": "up", "payload_bytes": 1000}, ["--count", "30", "--payload", "1000", "--direction", "up"]),
    ("pair", {"echo": True}, ["--echo"]),
    ("ppt", {}, ["ppt", "measure", "H", "--direction", "up", "--count", "10", "--interval", "100000000ns"]),
    ("abw", {"max_load_bps": 500_000}, ["abw", "H", "--direction", "both", "--method", "auto", "--max-load", "500000"]),
    ("capacity", {}, ["capacity", "H", "--port", "24601", "--direction", "both", "--for", "2s"]),
    ("capacity", {"direction": "down", "mark": "EF"}, ["--dscp", "46", "--for", "4s", "--sample-interval", "1000000000ns"]),
    ("trace", {}, ["trace", "H", "--protocol", "udp", "--hops", "30", "--repeat", "3"]),
    ("trace", {"load": "up", "one_route": True}, ["--one-route", "--load", "up", "--load-flows", "4", "--token-file", "T"]),
    ("tcp", {"path": "/a"}, ["tcp", "H", "--port", "80", "--path", "/a", "--count", "8", "--interval", "500000000ns"]),
])
def test_command_lines(name, parameters, words):
    runner = runners.find(name)
    p = runner.parameters(**parameters)
    runner.validate(p)
    made = runner.command(p, Options("/k", token_file="T", host="H", family="-6", source="fd00::1"), Times(4 * S, 77))
    rest = iter(made)
    assert made[0] == "/k" and all(word in rest for word in words), made
    assert made[-4:] == ["--start-at", "77", "--jsonl", "--stop-on-eof"] and [made[i] for i in range(made.index("-6"), made.index("-6") + 3)] == ["-6", "--from", "fd00::1"]
    assert ("T" in made) == (not parameters.get("echo") and (name not in ("trace", "tcp") or "load" in parameters)), "a token goes only to a server"
    assert runner.trial(p, Options("/k", host="H"), False).command[0] == "/k"


@pytest.mark.parametrize("name, parameters, message", [
    ("pair", {"count": 5}, "pairs of each size: 5; 10 to 1000"), ("pair", {"direction": "left"}, "direction: 'left'; it may be up, down, both"),
    ("pair", {"interval_ns": 5}, "time between pairs"), ("pair", {"echo": True, "direction": "up"}, "no direction"),
    ("ppt", {"size1_bytes": 100, "size2_bytes": 107}, "8 bytes apart"), ("ppt", {"heading_bytes": 9}, "packet on the wire: 9 bytes"),
    ("abw", {"method": "guess"}, "method: 'guess'"), ("abw", {"max_load_bps": 1}, "load of the probes"),
    ("capacity", {"port": 0}, "port: 0"), ("capacity", {"mark": "??"}, "no marking"), ("capacity", {"algorithm": "D"}, "algorithm"),
    ("trace", {"protocol": "icmp", "port": 5}, "ICMP has no ports"), ("trace", {"load": "up", "load_ns": 100 * MS}, "repeated probes under load"),
    ("trace", {"hops": 65}, "hops: 65"), ("tcp", {"path": "a"}, "path 'a'"), ("tcp", {"path": "/a b\n"}, "path"), ("tcp", {"mss": 9}, "segment"),
])
def test_parameters_that_cannot_be(name, parameters, message):
    runner = runners.find(name)
    with pytest.raises(RunnerError, match=message):
        runner.validate(runner.parameters(**parameters))


def test_a_time_that_a_method_cannot_have_is_refused_before_the_run():
    with pytest.raises(PlanError, match=r"ip: a test of 1.5 s; each direction needs 1 to 65535 whole seconds"):
        make(invoke("capacity", "ip", when=When(length_s=1.5)), Setting("H", 4, 0), Options())


# ------------------------------------------------------------------------------------------------------------- whole runs


def stored(tmp_path, *names):
    """A run of recorded output."""
    meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(ZERO, 0), 5 * S, phases=[Phase("idle_before", 0, 5 * S)])
    made = []
    for place, name in enumerate(names):
        samples, series = outcome(name, *RECORDED[name])
        for one in series.values():
            one.id += 100 * place
            one.runner, one.name = place, f"{name} {one.name}"
        meta.series += list(series.values())
        process = Process(place, name, name, ["ktrxer"], status="ended", exit_status=0, end=samples.result, from_ns=0, to_ns=5 * S,
                          ended_ns=S, interval_ns=None, protocol=runners.find(name).protocol)  # fmt: skip
        meta.runners.append(process)
        made.append((place, samples.take()))
    writer = RunWriter(tmp_path, meta)
    for place, tables in made:
        for kind, rows in tables.items():
            writer.append(kind, rows | {"series": [number + 100 * place for number in rows["series"]]})
    writer.sync()
    return open_run(writer.finish())


def test_each_row_is_read_again(tmp_path):
    run = stored(tmp_path, *METHODS)
    assert run.kinds() == ["latency", "range", "pair", "tcp_pair", "ip_capacity", "hop"]
    assert [len(run.table(kind)) for kind in run.kinds()] == [6, 9, 10, 4, 1, 3]
    hop = next(series for series in run.meta.series if series.kind == "hop")
    assert run.arrays(hop)["address"].tolist() == ["10.0.2.1", "10.0.2.1", "fe80::1"]


def test_the_summary_prints_estimates_and_routers(tmp_path):
    made = figures.summarise(stored(tmp_path, *METHODS))
    by_name = {one.name: (one.value, one.low, one.high, one.unit) for one in made.estimates}
    assert by_name["pair x up"] == (9.9, 9.8, 10.1, "Mbit/s") and by_name["abw x up"] == (None, 6.0, 7.0, "Mbit/s")
    assert by_name["trace x queue that fills"] == (30.0, 29.6, 30.4, "ms") and by_name["tcp x lost up"][0] == 12.5
    assert [(hop.hop, hop.address, hop.answers, hop.p50_ms, hop.loaded_p50_ms) for hop in made.hops] == [
        (2, "10.0.2.1", 2, 2.0, 32.0), (3, "fe80::1", 1, None, None)]  # fmt: skip
    shown = "\n".join(text.lines(made))
    assert "pair x up" in shown and "9.9 Mbit/s" in shown and "10.0.2.1" in shown and "round trip, TCP" in shown
    json.dumps(made.as_json(), allow_nan=False)


def test_the_page_has_tables_of_them(tmp_path):
    from ktrxer.view.report import summary

    tables = {table["title"]: table["rows"] for table in summary(figures.summarise(stored(tmp_path, *METHODS)))[1]}
    assert ["abw x up", "\u2013", "6.00", "7.00", "Mbit/s"] in tables["Estimates, with the bounds of their methods"]
    assert [row[1:4] for row in tables["Routers"]] == [["2", "10.0.2.1", "2"], ["3", "fe80::1", "1"]]


def test_a_method_that_has_its_result_early_has_not_ended_early(tmp_path):
    book = judge(stored(tmp_path, "pair", "trace", "abw"))
    assert book.verdict == "valid", book.reasons()


def test_a_method_without_a_result_is_named(tmp_path):
    for name in METHODS:
        process = Process(0, "x", name, [], end={"verdict": "invalid", "reasons": ["up: arrivals in groups"]})
        (reason,) = runners.find(name).health(Ended(process, 3))
        assert (reason.severity, reason.text) == ("degraded", "up: arrivals in groups")


def test_all_of_them_in_one_plan():
    setting = Setting("H", 10, 0)
    plan = combine(*(invoke(name, name) for name in METHODS))
    schedule = make(plan, setting, Options())
    assert [job.runner.name for job in schedule.jobs][-1] == "capacity", "what loads the path begins last"
    assert len({(series.name, series.kind) for series in schedule.series}) == len(schedule.series)
