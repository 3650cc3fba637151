# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rates by trace, token buckets, aggregation, routes, translation of addresses, bleaching and MTUs, compared with the file, by
plain sockets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from flows import Flow, Flows, run_flows

FILE = """
hosts = ["client", "lte", "small", "bulk", "wifi", "inner", "nodscp", "noecn", "nomarks", "server"]
routers = ["hub", "far", "home"]
[[links]]
ends = ["client", "hub"]
[[links]]
ends = ["lte", "hub"]
from.lte = { trace = "lte.trace", queue = "pfifo limit 50", delay = "5ms" }
[[links]]
ends = ["small", "hub"]
from.small = { trace = "lte.trace", queue = "bfifo limit 100000" }
down = ["1s to 2s"]
[[links]]
ends = ["bulk", "hub"]
from.bulk = { rate = "5mbit", bucket = "50kB", peak = "20mbit" }
[[links]]
ends = ["wifi", "hub"]
from.wifi = { aggregate = "2ms to 6ms, 16 packets" }
[[links]]
ends = ["inner", "home"]
[[links]]
ends = ["home", "hub"]
from.home = { nat = true }
[[links]]
ends = ["nodscp", "hub"]
from.nodscp = { bleach = "dscp" }
[[links]]
ends = ["noecn", "hub"]
from.noecn = { bleach = "ecn" }
[[links]]
ends = ["nomarks", "hub"]
from.nomarks = { bleach = "ecn dscp" }
[[links]]
ends = ["hub", "server"]
[[links]]
ends = ["hub", "far"]
mtu = 1400
[[links]]
ends = ["far", "server"]
delay = "20ms"
[[routes]]
at = "2s"
node = "hub"
to = "server"
via = "far"
[[routes]]
node = "far"
to = "server"
via = "server"
[[routes]]
at = "4s"
node = "hub"
to = "server"
via = "server"
"""
TRACE = (1, 2, 2, 10)
TOS = 0xB9  # EF and ECT(1)
LATER = 6.0  # when the routes have changed back
FLOWS = (
    Flow("client", 500, 0.01, 100, TOS),
    Flow("client", 50, 0.01, 100, TOS, "six", "server-6"),
    Flow("lte", 200, 0, 1472, wait_s=LATER),
    Flow("small", 300, 0.01, 715),
    Flow("bulk", 500, 0, 1000, wait_s=LATER + 4),
    Flow("wifi", 2000, 0.0005, 100, wait_s=LATER),
    Flow("wifi", 2000, 0.00015, 100, name="crowd", wait_s=LATER + 2),
    Flow("inner", 10, 0.01, 100, TOS),
    Flow("nodscp", 10, 0.01, 100, TOS),
    Flow("nodscp", 10, 0.01, 100, TOS, "nodscp6", "server-6"),
    Flow("noecn", 10, 0.01, 100, TOS),
    Flow("noecn", 10, 0.01, 100, TOS, "noecn6", "server-6"),
    Flow("nomarks", 10, 0.01, 100, TOS),
    Flow("nomarks", 10, 0.01, 100, TOS, "nomarks6", "server-6"),
)
AFTER = """
ping -q -c 1 -W 1 inner | grep received
ip netns exec inner ping -q -c 1 -W 1 server | grep received
ip netns exec server ping -q -c 1 -W 1 inner | grep received
ip netns exec hub ping -M do -s 1372 -q -c 1 -W 1 far | grep received
ip netns exec hub ping -M do -s 1373 -q -c 1 -W 1 far | grep received
"""


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Flows:
    return run_flows(tmp_path_factory.mktemp("paths"), FILE, FLOWS, AFTER, {"lte.trace": "".join(f"{at}\n" for at in TRACE)})


def test_a_trace_gives_each_full_packet_an_opportunity(flows: Flows) -> None:
    came = flows.arrived["lte"]
    # 200 packets came at once to a queue of 50; one group of opportunities may have come meanwhile.
    assert [number for number, *_ in came[:50]] == list(range(50)) and len(came) <= 53
    gaps = [(after[2] - before[2]) / 1e6 for before, after in pairwise(came)]
    pattern = [1, 0, 8, 1]
    turn = next(turn for turn in range(4) if gaps[:4] == pytest.approx(pattern[turn:] + pattern[:turn], abs=0.02))
    assert gaps == pytest.approx([pattern[(turn + i) % 4] for i in range(len(gaps))], abs=0.02)
    assert 5 <= came[0][1] / 1e6 <= 5 + 8.02, "the wait for the first opportunity, and the delay"


def test_small_packets_share_an_opportunity(flows: Flows) -> None:
    # One packet of half an opportunity each 10 ms: each leaves at the next opportunity, and none is lost but those of the second when the
    # link is down.
    numbers = [number for number, *_ in flows.arrived["small"]]
    assert len(numbers) == pytest.approx(200, abs=2) and numbers == sorted(numbers)
    assert all(delay / 1e6 <= 8.02 for number, delay, *_ in flows.arrived["small"] if number < 100)
    gaps = [after - before for before, after in pairwise(numbers)]
    assert max(gaps) == pytest.approx(100, abs=2) and sorted(gaps)[-2] == 1


def test_a_token_bucket_passes_its_size_at_the_peak_rate_and_the_rest_at_the_rate(flows: Flows) -> None:
    came = flows.arrived["bulk"]
    frame = 1000 + 28 + 14
    assert len(came) == 500
    at_peak, at_rate = frame * 8 / 20, frame * 8 / 5  # us
    for number in (1, 10, 30, 60, 70, 100, 300, 499):
        # The passed bytes, with this packet, are at most the bucket plus the rate times the time.
        expected = max(number * at_peak, (number + 1) * at_rate - 50_000 * 8 / 5)
        assert (came[number][2] - came[0][2]) / 1e3 == pytest.approx(expected, abs=at_rate / 4), number


def aggregates(came: list[list[int]]) -> list[list[list[int]]]:
    made = [[came[0]]]
    for before, after in pairwise(came):
        if after[2] - before[2] > 100_000:
            made.append([])
        made[-1].append(after)
    return made


def test_packets_leave_in_aggregates(flows: Flows) -> None:
    came = flows.arrived["wifi"]
    assert [number for number, *_ in came] == list(range(2000))
    made = aggregates(came)
    waits = [one[0][1] / 1e6 for one in made]  # of the first packet of each
    assert min(waits) >= 2 and max(waits) < 6.1
    assert sum(waits) / len(waits) == pytest.approx(4, abs=5 * 1.155 / len(waits) ** 0.5)
    # All packets that arrive during the wait of the first one are in its aggregate.
    assert all(len(one) == pytest.approx(wait / 0.5 + 0.5, abs=1) for one, wait in list(zip(made, waits, strict=True))[:-1])


def test_an_aggregate_has_a_limit(flows: Flows) -> None:
    sizes = [len(one) for one in aggregates(flows.arrived["crowd"])]
    assert sum(sizes) == 2000 and max(sizes) == 16
    assert sizes.count(16) > 0.9 * len(sizes), "27 packets come in a wait, so each aggregate is full and the others wait once more"


def test_a_route_changes_at_its_time_and_back(flows: Flows) -> None:
    came = flows.arrived["client"]
    assert len(came) == 500
    slow = [number for number, delay, *_ in came if delay / 1e6 == pytest.approx(20, abs=1)]
    fast = [number for number, delay, *_ in came if delay < 1_000_000]
    assert len(slow) + len(fast) == 500
    assert slow == list(range(slow[0], slow[-1] + 1))
    assert slow[0] == pytest.approx(200, abs=3) and slow[-1] == pytest.approx(400, abs=3), "10 ms between packets: from 2 to 4 s"


def test_a_translated_address_and_nothing_from_outside(flows: Flows) -> None:
    assert {sender for *_, sender in flows.arrived["inner"]} == {"::ffff:10.64.7.1"}
    assert {sender for *_, sender in flows.arrived["client"]} == {"::ffff:10.64.1.1"}
    received = [line.split(", ")[1] for line in flows.message.splitlines()]
    assert received[:3] == ["0 received", "1 received", "0 received"], "client to inner, inner to server, server to inner"


def test_marks_are_bleached_in_one_field_and_no_other(flows: Flows) -> None:
    marks = {name: {mark for *_, mark, _ in came} for name, came in flows.arrived.items()}
    assert marks["client"] == marks["six"] == marks["inner"] == {TOS}
    assert marks["nodscp"] == marks["nodscp6"] == {TOS & 3}
    assert marks["noecn"] == marks["noecn6"] == {TOS & ~3}
    assert marks["nomarks"] == marks["nomarks6"] == {0}


def test_an_mtu(flows: Flows) -> None:
    received = [line.split(", ")[1] for line in flows.message.splitlines()]
    assert received[3:] == ["1 received", "0 received"] or received[3:] == ["1 received", "+1 errors"], flows.message
