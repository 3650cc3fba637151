# SPDX-License-Identifier: MIT OR Apache-2.0
"""This host's own qdisc and softirqs, before and after a run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ktrxer.collect.metadata import softirq_waits
from ktrxer.figures.bounds import softirq_wait_ns
from ktrxer.run.egress import OwnDrops, changed, own_drops, routed_apart
from ktrxer.run.judge import judge
from ktrxer.store import open_run
from ktrxer.store.reasons import sentences
from ktrxer.summary import figures
from ktrxer.summary.text import lines
from synthetic import synthetic

S = 10**9


def qdisc(kind="tbf", drops=0, packets=0, **more):
    return {"kind": kind, "handle": "1:", "parent": "root", "parameters": {"rate": 125_000, "limit": 10_000},
            "stats": {"drops": drops, "packets": packets}} | more  # fmt: skip


def looked(*qdiscs, device="eth0", **more):
    return {"egress": {"device": device, "qdiscs": list(qdiscs)}} | more


def made(before, after, seconds=10):
    return SimpleNamespace(meta=SimpleNamespace(metadata={"before": before, "after": after}, length_ns=seconds * S))


def test_drops_are_those_between_the_beginning_and_the_end():
    run = made(looked(qdisc(drops=7, packets=100)), looked(qdisc(drops=19, packets=1100)))
    assert own_drops(run) == OwnDrops("eth0", "tbf", 12, 1000)
    assert changed(run) is None


def test_the_qdiscs_below_a_root_are_not_counted_twice():
    child = {"handle": "10:", "parent": "1:1"}
    run = made(looked(qdisc("htb"), qdisc(**child)), looked(qdisc("htb", 5, 9), qdisc(drops=5, packets=9, **child)))
    assert own_drops(run) == OwnDrops("eth0", "htb", 5, 9)


def test_a_counter_among_the_parameters_of_htb_is_no_change():
    before, after = ({"defcls": 1, "direct_pkts": count} for count in (3, 9))
    run = made(looked(qdisc("htb", parameters=before)), looked(qdisc("htb", 2, parameters=after)))
    assert changed(run) is None and own_drops(run) == OwnDrops("eth0", "htb", 2, 0)


@pytest.mark.parametrize(("after", "said"), [
    (looked(qdisc("fq_codel")), "from tbf to fq_codel"),
    (looked(qdisc("noqueue")), "from tbf to noqueue"),
    (looked(qdisc(), qdisc("netem", parent="1:1")), "from tbf to tbf/netem"),
    (looked(qdisc(parameters={"rate": 250_000, "limit": 10_000})), "tbf has other parameters or another handle"),
    (looked(qdisc(handle="2:")), "tbf has other parameters or another handle"),
    (looked(qdisc(), device="wlan0"), "from device eth0 to wlan0"),
])
def test_a_qdisc_or_route_that_was_changed_is_a_reason(after, said):
    run = made(looked(qdisc(drops=7)), after)
    assert said in (found.text if (found := changed(run)) else "")
    if "device" not in said:
        assert own_drops(run) is None, "the counters are of two qdiscs"


@pytest.mark.parametrize("before", [
    None, [], {}, {"egress": 3}, {"egress": {"device": "eth0", "qdiscs": "x"}}, {"egress": {"error": "no route"}},
    looked(qdisc(stats=None)), looked(qdisc(drops="7", packets=[])), looked(3, None), looked(qdisc("noqueue")),
    {"softirq_wait_ns": [1]}, {"softirq_wait_ns": {"0": "1"}},
])
def test_metadata_of_a_foreign_file_is_no_trouble(before):
    for run in (made(before, looked(qdisc())), made(looked(qdisc()), before), made(before, before)):
        assert own_drops(run) in (None, OwnDrops("eth0", "tbf", 0, 0))
        changed(run)
        assert softirq_wait_ns(run)[1] in (0, 1)


def test_softirqs_that_waited_for_their_processor(tmp_path):
    for number, (name, fields) in enumerate({"ksoftirqd/0": "5 700 9", "ksoftirqd/1": "5 8000000000 9", "sshd": "5 900 9"}.items()):
        place = tmp_path / str(10 + number)
        place.mkdir()
        (place / "comm").write_text(name + "\n")
        (place / "schedstat").write_text(fields + "\n")
    (tmp_path / "self").mkdir()
    after = softirq_waits(tmp_path)
    assert after == {"0": 700, "1": 8 * S}
    assert softirq_wait_ns(made({"softirq_wait_ns": {"0": 0, "1": 2 * S}}, {"softirq_wait_ns": after})) == ("1", 6 * S)
    assert softirq_wait_ns(made({"softirq_wait_ns": {"0": 9 * S, "1": 9 * S}}, {"softirq_wait_ns": after}))[1] == 0
    assert softirq_waits(tmp_path / "none") == {}


def test_the_summary_and_the_verdict_of_a_run(tmp_path):
    run = open_run(synthetic(tmp_path, seconds=12, delay=3))
    run.meta.metadata = {"before": looked(qdisc()), "after": looked(qdisc(drops=12, packets=999))}
    summary = figures.summarise(run)
    assert summary.as_json()["own_drops"] == {"device": "eth0", "qdisc": "tbf", "dropped": 12, "left": 999}
    assert "this host's own qdisc  tbf of eth0 dropped 12 packets of all traffic, of TCP each of one or more segments (GSO); 999 left, counted in segments" in lines(summary)
    quiet = sentences(judge(run).reasons())
    assert not any("qdisc" in reason for reason in quiet), "a shaper that drops TCP by design is no fault"
    run.meta.metadata["after"] = looked(qdisc("fq_codel"))
    book = judge(run)
    assert book.verdict != "valid" and any("was changed during the run (from tbf to fq_codel)" in reason for reason in sentences(book.reasons()))


@pytest.mark.slow
@pytest.mark.parametrize(("other", "apart"), [
    ([], False),
    ([{"protocol": "tcp", "dscp": list(range(64)), "device": "wlan0", "route": 1}], True),
    ([{"protocol": "tcp", "dscp": [46], "device": "wlan0", "route": 1}], False),
    ([{"protocol": name, "dscp": list(range(64)), "device": "wlan0", "route": 1} for name in ("icmp", "udp", "tcp")], False),
    # Of a file of unknown origin.
    ("wlan0", False), ([None, 7, {}, {"protocol": "tcp", "dscp": 0, "route": 1}, {"protocol": "tcp", "dscp": [0], "route": "x"}], False),
])  # fmt: skip
def test_probes_of_another_route_than_the_flows_are_a_reason(other, apart, tmp_path):
    run = open_run(synthetic(tmp_path))
    for runner in run.meta.runners:
        if runner.kind == "flow":
            runner.end = (runner.end or {}) | {"protocol": "tcp"}
    run.meta.metadata = {"before": looked(qdisc()) | {"other_routes": other}, "after": looked(qdisc())}
    told = routed_apart(run)
    assert (told is not None) == apart
    if told is not None:
        assert "leave this host by another route than the flows" in told.text and "device eth0 and device wlan0" in told.text
        assert told in judge(run).reasons()
