# SPDX-License-Identifier: MIT OR Apache-2.0
"""The E-model against figures of ITU-T G.107 and G.113, and the jitter buffer against packets whose fate is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ktrxer.statistics import voice
from ktrxer.statistics.voice import Circuit, burst_ratio, call, mos, playout, rating


def test_the_defaults_of_table_2():
    """Section 7.7: with all default values R is 93.2. Its parts follow from the equations of sections 7.2 to 7.4."""
    made = rating(Circuit())
    assert made.r == pytest.approx(93.2, abs=0.05) and made.mos == pytest.approx(4.41, abs=0.005)
    assert (made.ro, made.is_, made.id_, made.ie_eff) == (pytest.approx(94.77, abs=0.01), pytest.approx(1.41, abs=0.01), pytest.approx(0.149, abs=0.001), 0)
    assert made.r == pytest.approx(made.ro - made.is_ - made.id_ - made.ie_eff)


@pytest.mark.parametrize("r, score", [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)])
def test_scores_of_table_b1(r, score):
    """The table gives 4.03 for R = 80, where the equation B-4 of the same annex gives 4.024."""
    assert mos(r) == pytest.approx(score, abs=0.0065)


def test_the_ends_of_the_scale():
    assert (mos(-5), mos(0), mos(100), mos(120)) == (1, 1, 4.5, 4.5) and mos(3) == 1
    scores = [mos(r / 10) for r in range(-10, 1100)]
    assert scores == sorted(scores) and min(scores) == 1 and max(scores) == 4.5


def test_equipment_impairment():
    """Equation 7-29 by hand: G.711 without concealment (Ie 0, Bpl 4.3) at 2 % random loss, G.729A (11, 19) without loss and at 3 %."""
    assert rating(Circuit(ppl=2)).ie_eff == pytest.approx(95 * 2 / 6.3)
    g729 = replace(Circuit(), ie=11, bpl=19)
    assert rating(g729).r == pytest.approx(82.2, abs=0.05)
    assert rating(replace(g729, ppl=3)).ie_eff == pytest.approx(11 + 84 * 3 / 22)
    assert rating(replace(g729, ppl=3, burst_r=2)).ie_eff == pytest.approx(11 + 84 * 3 / 20.5), "bursts are worse than random loss"


def test_delay_without_echo():
    """Equation 7-27: nothing up to 100 ms; at 200 ms X is 1, so Idd = 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2)."""
    base = rating(Circuit()).id_
    assert rating(Circuit(ta=100)).id_ == base and rating(Circuit(ta=99)).id_ == base
    assert rating(Circuit(ta=200)).id_ - base == pytest.approx(25 * (2 ** (1 / 6) - 3 * (1 + 3**-6) ** (1 / 6) + 2))
    assert rating(Circuit(ta=200)).id_ - base == pytest.approx(3.04, abs=0.01)
    # Users of the class with a sensitivity of 0.55 and 120 ms (Table 1) suffer less.
    assert rating(Circuit(ta=300, st=0.55, mt=120)).id_ < rating(Circuit(ta=300)).id_


def test_echo():
    """A weaker echo (a higher TELR) is better, a longer delay of it worse; without a delay there is none."""
    def made(telr, t):
        return rating(Circuit(telr=telr, t=t, tr=2 * t, ta=t)).r

    assert made(65, 0) == pytest.approx(93.2, abs=0.05) and made(40, 0) == pytest.approx(made(65, 0), abs=0.2)
    for t in (25, 50, 100, 200):
        assert made(45, t) < made(55, t) < made(65, t) < made(75, t)
    assert made(65, 25) > made(65, 100) > made(65, 200) > made(65, 400)
    assert rating(Circuit(stmr=25, t=100)).id_ > rating(Circuit(t=100)).id_, "equation 7-24 adds the lack of sidetone"
    assert rating(Circuit(stmr=5, t=100)).id_ < math.inf


@pytest.mark.parametrize("wrong", [{"ppl": 101}, {"ppl": -1}, {"burst_r": 0}, {"bpl": 0}, {"ta": -1}, {"t": math.nan}, {"slr": math.inf}])
def test_circuits_that_cannot_be(wrong):
    with pytest.raises(ValueError):
        rating(replace(Circuit(), **wrong))


@given(st.floats(0, 2000), st.floats(0, 100), st.floats(1, 8), st.sampled_from([voice.G711, voice.G711_PLC, voice.G729A, voice.G723_63, voice.GSM_EFR]))
def test_more_delay_and_loss_are_never_better(ta, ppl, burst_r, codec):
    one = Circuit(ta=ta, ppl=ppl, burst_r=burst_r, ie=codec.ie, bpl=codec.bpl)
    best = rating(one)
    assert 1 <= best.mos <= 4.5 and math.isfinite(best.r)
    assert rating(replace(one, ta=ta + 50)).r <= best.r + 1e-9
    assert rating(replace(one, ppl=min(100, ppl + 5))).r <= best.r + 1e-9
    assert rating(replace(one, burst_r=burst_r + 1)).r <= best.r + 1e-9


# ------------------------------------------------------------------------------------------------------------ jitter buffer

LOST = math.nan


def test_a_buffer_drops_what_comes_too_late():
    made = playout(np.array([10.0, 12, LOST, 50, 50.1, 30, 200]), 40)
    assert made is not None
    assert (made.delay_ms, made.lost, made.late, made.count) == (50, 1, 2, 7) and made.ppl == pytest.approx(300 / 7)
    larger, none = playout(np.array([10.0, 12, LOST, 50, 50.1, 30, 200]), 190), playout(np.array([LOST, LOST]), 40)
    assert larger is not None and (larger.late, larger.delay_ms) == (0, 200) and none is None
    exact = playout(np.array([10.0, 10.0]), 0)
    assert exact is not None and exact.late == 0
    with pytest.raises(ValueError):
        playout(np.array([1.0]), -1)


def test_bursts_of_loss():
    def ratio(text):
        return burst_ratio(np.array([one == "x" for one in text], bool))

    assert ratio("....") == ratio("xxxx") == ratio("") == 1
    assert ratio("xx..xx..") == 1, "half of the packets lost at random have a mean run of two"
    assert ratio("xxxx....") == 2
    assert ratio("x.x.x.x.") == 1, "less clustered than random counts as random"
    assert ratio("xxxxx" + "." * 95) == pytest.approx(5 * 0.95)


def test_random_loss_has_a_ratio_of_one():
    rng = np.random.default_rng(7)
    assert burst_ratio(rng.random(100_000) < 0.1) == pytest.approx(1, abs=0.02)


def test_a_call():
    """20 ms of G.711, 30 ms on the path and 40 ms in the buffer: 90 ms from mouth to ear."""
    made = call(np.full(1000, 30.0))
    assert made is not None and made.delay_ms == 90 and made.playout.ppl == 0
    assert made.rating.r == pytest.approx(rating(Circuit(t=90, tr=180, ta=90, bpl=25.1)).r)
    slow = call(np.full(1000, 400.0))
    worse = call(np.where(np.arange(1000) % 20 == 0, np.nan, 30.0))
    assert slow is not None and worse is not None and call(np.array([LOST])) is None
    assert slow.rating.mos < 3 < made.rating.mos and worse.rating.mos < made.rating.mos
    assert worse.playout.ppl == 5 and worse.rating.ie_eff == pytest.approx(95 * 5 / (5 + 25.1))
    negative = call(np.full(10, -0.5))  # within the uncertainty of the clock offset
    assert negative is not None and negative.delay_ms == pytest.approx(59.5)
