# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rules of draft-ietf-ippm-responsiveness: ramp, stability, trimmed means, formula, limits of the probes, confidence."""

import math

import pytest
from ktrxer.statistics.rpm import FIRST_PAIRS, Parameters, Probes, Ramp, pairs_each_second, rpm, stable, tls_round_trips

MBIT = 125_000  # bytes of a second
SECOND = Parameters(id_ns=10**9)  # the interval of the draft's versions before 09
STEADY = Probes([20.0] * 10, [20.0] * 10, [20.0] * 10, [40.0] * 10)


def test_the_defaults_are_the_drafts():
    p = Parameters()
    assert (p.mad, p.id_ns, p.tmp, p.sdt, p.inp, p.inc, p.mnp, p.mps, p.ptc) == (4, 5 * 10**9, 0.95, 0.05, 1, 1, 16, 100, 0.05)


def test_the_formula_with_tls():
    found = rpm([Probes([10], [20], [30], [40])])
    assert found is not None
    assert found.foreign == pytest.approx(60_000 / ((10 + 20 + 30) / 3))
    assert found.own == pytest.approx(60_000 / 40)
    assert found.rpm == pytest.approx((3000 + 1500) / 2) and found.rating == "good"


def test_the_formula_without_tls_has_no_zero_for_it():
    found = rpm([Probes([10], [], [30], [40])])
    assert found is not None and found.tls_ms is None
    assert found.foreign == pytest.approx(60_000 / ((10 + 30) / 2))


@pytest.mark.parametrize("missing", ["tcp_ms", "http_ms", "self_ms"])
def test_no_figure_without_a_kind_of_probe(missing):
    given = {name: [10.0] for name in ("tcp_ms", "tls_ms", "http_ms", "self_ms") if name != missing}
    assert rpm([Probes(**given)]) is None
    assert rpm([]) is None


def test_the_trimmed_mean_leaves_the_highest_twentieth_out():
    twenty = [10.0] * 19 + [1000.0]
    found = rpm([Probes(twenty, twenty, twenty, twenty)])
    assert found is not None and found.rpm == pytest.approx(6000)
    two = [10.0] * 18 + [1000.0] * 2
    worse = rpm([Probes(two, two, two, two)])
    assert worse is not None and worse.tcp_ms == pytest.approx((18 * 10 + 1000) / 19), "the lowest values stay: it is trimmed on one side"


def test_lost_probes_are_infinite():
    few, many = [10.0] * 19 + [math.inf], [10.0] * 17 + [math.inf] * 3
    kept, lost = rpm([Probes(few, few, few, few)]), rpm([Probes(few, few, few, many)])
    assert kept is not None and kept.rpm == pytest.approx(6000)
    assert lost is not None and lost.own == 0 and lost.rpm == pytest.approx(3000)


def test_only_the_last_four_intervals_count():
    slow, fast = Probes([100], [100], [100], [100]), Probes([10], [10], [10], [10])
    found = rpm([slow] * 10 + [fast] * 4)
    assert found is not None and found.rpm == pytest.approx(6000)
    mixed = rpm([slow] * 10 + [fast] * 3)
    assert mixed is not None and mixed.rpm < 6000


@pytest.mark.parametrize(("values", "expected"), [
    ([100.0] * 4, True),
    ([100.0] * 3, False),  # fewer than MAD
    ([96, 100, 104, 100], True),  # a standard deviation of 2.8 %
    ([90, 100, 110, 100], False),  # 7.1 %
    ([50, 90, 110, 80, 100, 100, 100], False),
    ([1, 1, 1, 100, 100, 100, 100], True),  # only the last MAD values count
    ([0.0] * 4, False),  # nothing moved: no stability
    ([100, 100, 100, math.inf], False),
])
def test_stability(values, expected):
    assert stable(values) is expected


def test_the_ramp_of_a_path_that_is_full_at_once():
    ramp = Ramp(SECOND)
    assert ramp.connections == 1
    connections = [ramp.interval(10 * MBIT, STEADY) for _ in range(7)]
    assert connections == [2, 3, 4, 5, 6, 7, 8], "each interval adds one connection, also when the goodput is stable"
    # Moving averages: 2.5, 5, 7.5, 10, 10, 10, 10 Mbit/s.
    assert [round(value / 1e6, 1) for value in ramp.averages] == [2.5, 5, 7.5, 10, 10, 10, 10]
    assert ramp.stage == "responsiveness" and ramp.full_connections == 7
    assert ramp.confidence("goodput") == "high" and ramp.confidence("responsiveness") == "low"
    for _ in range(3):
        ramp.interval(10 * MBIT, STEADY)
    assert ramp.stage == "responsiveness"
    assert ramp.interval(10 * MBIT, STEADY) == 11, "no connection is added at the end"
    assert ramp.stage == "done" and ramp.confidence("responsiveness") == "high"
    assert ramp.result is not None and ramp.result.rpm == pytest.approx((3000 + 1500) / 2)
    assert ramp.spread == (pytest.approx(2250), pytest.approx(2250)) and ramp.rate_bps == pytest.approx(10e6)


def test_the_ramp_goes_on_while_the_goodput_grows():
    ramp = Ramp(SECOND)
    for i in range(12):
        ramp.interval((i + 1) * 10 * MBIT, STEADY)
    assert ramp.stage == "goodput" and ramp.confidence("goodput") == "medium" and not ramp.results
    assert ramp.connections == 13 and ramp.result is not None, "a test that ended early has the result of its last intervals"


def test_the_number_of_connections_has_an_end():
    ramp = Ramp(Parameters(id_ns=10**9, inc=5))
    assert [ramp.interval(i * MBIT, Probes()) for i in range(1, 6)] == [6, 11, 16, 16, 16]
    assert ramp.result is None and ramp.spread is None


def test_the_ramp_waits_for_the_responsiveness():
    ramp = Ramp(SECOND)
    for _ in range(7):
        ramp.interval(10 * MBIT, STEADY)
    for i in range(8):
        ramp.interval(10 * MBIT, Probes(*[[10.0 * 2**i]] * 4))
    assert ramp.stage == "responsiveness" and ramp.confidence("responsiveness") == "medium"


def test_few_intervals_have_a_low_confidence():
    ramp = Ramp(SECOND)
    for _ in range(3):
        ramp.interval(MBIT, STEADY)
    assert ramp.confidence("goodput") == "low"


@pytest.mark.parametrize(("rate_bps", "pairs"), [
    (None, FIRST_PAIRS),
    (1e9, 50),  # MPS: 100 of both kinds
    (10e6, 10),  # 5 % of 10 Mbit/s are 62,500 bytes a second: ten times 6000
    (0.1e6, 1),
    (0.0, 1),
])
def test_probes_take_a_twentieth_of_the_path_at_most(rate_bps, pairs):
    assert pairs_each_second(rate_bps) == pairs
    if rate_bps and pairs > 1:
        assert pairs * 6000 * 8 <= 0.05 * rate_bps


def test_the_rate_counts_the_interval():
    ramp = Ramp()
    for _ in range(4):
        ramp.interval(5 * 10 * MBIT, STEADY)
    assert ramp.rate_bps == pytest.approx(10e6) and ramp.averages[-1] == pytest.approx(10e6)


def test_round_trips_of_a_handshake():
    assert [tls_round_trips(version) for version in ("TLSv1.3", "TLSv1.2")] == [1, 2]
