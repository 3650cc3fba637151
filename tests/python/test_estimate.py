# SPDX-License-Identifier: MIT OR Apache-2.0
"""The estimators, compared with brute force and with properties that hold for any samples."""

import numpy as np
import pytest
from built_estimators import built
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ktrxer.statistics import latency, loss
from ktrxer.statistics.one_way import one_way
from ktrxer.statistics.throughput import Windows, bytes_rate, edges, receiver_end, sum_of_flows
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP

__all__ = ["built"]  # a fixture of all tests here

QUICK = settings(max_examples=60, deadline=None)
S, MS = 10**9, 10**6


# -------------------------------------------------------------------------------------------------------------------- throughput

counters = st.lists(st.tuples(st.integers(1, 400 * MS), st.integers(0, 10**7)), min_size=2, max_size=60).map(
    lambda steps: (np.cumsum([0, *[dt for dt, _ in steps]]), np.cumsum([0, *[b for _, b in steps]]))
)


@QUICK
@given(counters, st.integers(10 * MS, S))
def test_windows_side_by_side_add_up_to_what_was_counted(flow, window):
    t, counts = flow
    at = edges(int(t[0]), int(t[-1]) + window, window)
    made = bytes_rate(t, counts, at, gap_ns=S)
    inner = ~np.isnan(made.bytes)
    assert np.all(made.coverage[inner] > 0.999) and np.all(made.coverage <= 1 + 1e-9)
    whole = int((~np.isnan(made.bytes)).sum())
    assert whole == (t[-1] - t[0] + window // 10**6) // window, "all windows but the last are seen in full"
    passed = np.interp(at[whole], t, counts) - counts[0]
    assert made.bytes[:whole].sum() == pytest.approx(passed, rel=1e-9, abs=1e-3)


@QUICK
@given(counters, st.integers(50 * MS, 300 * MS), st.integers(10 * MS, S))
def test_coverage_is_that_of_the_steps_that_are_no_gaps(flow, gap, window):
    t, counts = flow
    at = edges(int(t[0]) - window // 2, int(t[-1]) + window, window)
    made = bytes_rate(t, counts, at, gap_ns=gap)
    for i in range(len(at) - 1):
        seen = sum(max(0, min(b, at[i + 1]) - max(a, at[i])) for a, b in zip(t[:-1], t[1:], strict=True) if b - a <= gap)
        assert made.coverage[i] == pytest.approx(seen / window, abs=1e-9)
        assert np.isnan(made.bytes[i]) == (seen / window < 0.999999)


def test_nothing_is_added_over_a_gap():
    t = np.arange(0, 10 * S + 1, S // 5)
    full = bytes_rate(t, t // 1000, edges(0, 10 * S, S), gap_ns=S)
    holed = t[(t <= 3 * S) | (t >= 6 * S)]
    hole = bytes_rate(holed, holed // 1000, edges(0, 10 * S, S), gap_ns=S)
    both = sum_of_flows([full, hole])
    assert np.isnan(both.bytes).tolist() == [False] * 3 + [True] * 3 + [False] * 4
    assert both.bytes[0] == 2 * 10**6 and both.coverage[4] == 0
    assert both.total_rate_bps() is None and full.total_rate_bps() == pytest.approx(8e6)
    with pytest.raises(ValueError, match="different windows"):
        sum_of_flows([full, bytes_rate(t, t, edges(1, 10 * S, S), gap_ns=S)])
    with pytest.raises(ValueError, match="no flows"):
        sum_of_flows([])


def test_a_counter_that_began_anew_tells_nothing_there():
    t = np.arange(0, 5 * S + 1, S // 5)
    counts = np.where(t < 2 * S + S // 2, t // 1000, (t - 3 * S) // 1000 + 10**6)
    made = bytes_rate(t, counts, edges(0, 5 * S, S), gap_ns=S)
    assert np.isnan(made.bytes).tolist() == [False, False, True, False, False] and made.coverage[2] == 0


@pytest.mark.parametrize("t", [[], [5], [5, 5]])
def test_too_few_samples(t):
    made = bytes_rate(np.asarray(t, "int64"), np.asarray(t), edges(0, 3 * S, S), gap_ns=S)
    assert np.isnan(made.bytes).all() and made.coverage.tolist() == [0, 0, 0]


def test_the_receiver_counts():
    assert [receiver_end(d) for d in ("up", "down")] == [1, 0]
    assert isinstance(bytes_rate(np.asarray([0, S]), np.asarray([0, 1]), edges(0, 0, S), gap_ns=S), Windows)


# ----------------------------------------------------------------------------------------------------------------------- one way


@pytest.mark.slow
@QUICK
@given(
    st.integers(0, 2**32), st.integers(2, 400), st.integers(-(10**18), 10**18), st.floats(-200, 200), st.integers(0, 40 * MS), st.integers(0, 40 * MS),
    st.integers(1, 30 * MS),
)
@example(0, 5, 0, 1.0, 0, 0, 1)  # delays as small as the rounding of the stamps
def test_the_truth_is_within_the_bound(seed, count, offset, skew_ppm, up_base, down_base, spread):
    rng = np.random.default_rng(seed)
    sent = np.sort(rng.integers(0, 60 * S, count))
    up = up_base + rng.exponential(spread, count).astype("int64")
    down = down_base + rng.exponential(spread, count).astype("int64")
    theirs = sent + up + offset + np.rint((sent + up) * skew_ppm * 1e-6).astype("int64")
    made = one_way(sent, up + down, theirs)
    assert made is not None
    slack = 3
    assert np.all(np.abs(made.up_ns - up) <= made.bound_ns + slack)
    assert np.all(np.abs(made.up_ns + made.down_ns - (up + down)) <= 600e-6 * (up + down) + 3), "the offset may change under way"
    assert np.all(made.up_ns >= -made.bound_ns) and np.all(made.down_ns >= -made.bound_ns)
    assert made.steps == 0
    assert np.all(made.bound_ns <= (up + down) * 1.01 + 1000), "a delay is at most its own round trip"


def simulated(rng: np.random.Generator, length_s: int, slews: int, ramp_ppm: float) -> tuple[np.ndarray, np.ndarray]:
    """The true offset of a far clock over time: a slowly rising rate, and slews of a time daemon."""
    t = np.arange(0, length_s * S, MS // 10, dtype=np.int64)
    rate = 20e-6 + ramp_ppm * 1e-6 * t / t[-1]
    for _ in range(slews):
        start, stop = np.sort(rng.integers(0, t[-1], 2))
        stop = min(stop, start + 6 * S)
        rate[(t >= start) & (t < stop)] += rng.uniform(-250e-6, 250e-6)
    return t, np.cumsum(np.clip(rate, -560e-6, 560e-6)) * (MS // 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_the_bound_holds_for_clocks_that_a_daemon_adjusts(seed):
    rng = np.random.default_rng(seed)
    t, ahead = simulated(rng, 60, seed % 3 * 2, [0.0, 0.6, 5.0][seed % 3])
    sent = np.arange(S, 58 * S, [20 * MS, 100 * MS][seed % 2])
    up = 25_000 + rng.exponential(5000 if seed % 4 else 0, len(sent)).astype("int64")
    down = (25_000 if seed % 5 else 400_000) + rng.exponential(5000 if seed % 4 else 0, len(sent)).astype("int64")
    busy = (sent > 20 * S) & (sent < 40 * S)
    if seed % 2:
        up[busy] += rng.integers(5 * MS, 200 * MS, busy.sum())
    arrives = sent + up
    far = arrives + 10**18 + np.rint(np.interp(arrives, t, ahead)).astype("int64")
    made = one_way(sent, up + down, far)
    assert made.steps == 0 and not np.isnan(made.up_ns).any()
    assert np.all(np.abs(made.up_ns - up) <= made.bound_ns + 3)
    assert np.all(made.bound_ns < (up + down) * 1.01 + 1000)
    assert np.all(made.bound_ns < 25_000 + 200_000 + 30_000 + 600e-6 * 11 * S), "what a load of 20 s hides, from both of its ends"


def test_a_step_begins_a_new_segment():
    sent = np.arange(0, 10 * S, 10 * MS)
    far = sent + 5 * MS + np.where(sent > 5 * S, 3 * S, 0)
    made = one_way(sent, np.full(len(sent), 10 * MS), far)
    assert made.steps == 1
    assert np.all(np.abs(made.up_ns - 5 * MS) <= made.bound_ns) and np.all(made.bound_ns < 5.1 * MS)
    assert one_way(sent[:1], sent[:1], far[:1]) is None


@pytest.mark.parametrize("adjusted", [False, True])
def test_a_reported_step_within_the_round_trip_leaves_no_error(adjusted):
    """A step that is not reported shows between neighbours; then each round trip bounds its own delays."""
    sent = np.arange(0, 10 * S, 10 * MS)
    step = np.where(sent > 5 * S, 8 * MS, 0)
    made = one_way(sent, np.full(len(sent), 20 * MS), sent + 2 * MS + step, None, None, step if adjusted else None, adjusted)
    assert made.steps == 0, "no round trip contradicts another one"
    assert np.all(np.abs(made.up_ns - 2 * MS) <= made.bound_ns + 3)
    assert np.all(made.bound_ns < 10.2 * MS)


def test_oscillators_are_known_better_than_clocks_under_a_daemon():
    """A load of 20 s hides the short round trips."""
    sent = np.arange(0, 40 * S, 10 * MS)
    rng = np.random.default_rng(3)
    up = np.where((sent > 10 * S) & (sent < 30 * S), rng.integers(20 * MS, 90 * MS, len(sent)), 50_000)
    slewed = np.rint(np.interp(sent, [15 * S, 20 * S], [0, 2_500_000])).astype("int64")
    bounds = []
    for free in (False, True):
        made = one_way(sent, up + 50_000, sent + up + slewed, None, None, slewed if free else None, free)
        assert made.steps == 0 and np.all(np.abs(made.up_ns - up) <= made.bound_ns + 3)
        bounds.append(float(made.bound_ns.max()))
    print(f"figure: within {bounds[0] / 1000:.0f} us by clocks under a daemon, within {bounds[1] / 1000:.0f} us by oscillators")
    assert bounds[1] < bounds[0] / 20


def test_a_wrong_stamp_is_left_out():
    sent = np.arange(0, 10 * S, 10 * MS)
    far = sent + 5 * MS
    far[[300, 301, 700]] += [S, -S, 20 * MS]
    made = one_way(sent, np.full(len(sent), 10 * MS), far)
    assert made.steps == 0
    assert np.nonzero(np.isnan(made.up_ns))[0].tolist() == [300, 301, 700]


def test_a_long_run_is_quick():
    rng = np.random.default_rng(1)
    sent = np.arange(0, 100_000) * MS
    up = 5 * MS + rng.exponential(MS, len(sent)).astype("int64")
    made = one_way(sent, up + 5 * MS, sent + up + 10**18)
    assert abs(np.median(made.bound_ns) - 5 * MS) < MS


# -------------------------------------------------------------------------------------------------------------------------- loss


@QUICK
@given(st.lists(st.sampled_from(["ok", "up", "down"]), min_size=1, max_size=80), st.randoms())
def test_losses_get_the_direction_that_they_had(fates, random):
    count, rows = 0, []
    for number, fate in enumerate(fates):
        far = np.nan
        if fate != "up":
            if fate == "ok":
                far = count
            count += 1
        rows.append((number, ANSWERED if fate == "ok" else LOST, far))
    random.shuffle(rows)
    seq, state, far = (np.asarray(column) for column in zip(*rows, strict=True))
    made = loss.directions(seq, state, far, True)
    assert np.array_equal(loss.directions(seq, state, far, False), state), "one that does not count tells nothing"
    truth = {"ok": {ANSWERED}, "up": {LOST, LOST_UP}, "down": {LOST, LOST_DOWN}}
    for number, new in zip(seq, made, strict=True):
        assert new in truth[fates[number]]
    # If all probes between two answers were lost in one direction, the direction of each is known.
    answered = [i for i, fate in enumerate(fates) if fate == "ok"]
    for way, one in (("up", LOST_UP), ("down", LOST_DOWN)):
        if len(answered) > 1 and {"up", "down"} & set(fates) == {way}:
            inside = [new for number, new in zip(seq, made, strict=True) if answered[0] < number < answered[-1] and fates[number] == way]
            assert all(new == one for new in inside)


@QUICK
@given(st.lists(st.sampled_from(["ok", "ok", "ok", "up", "down", "twice", "overtaken"]), min_size=1, max_size=60))
def test_copies_and_overtaking_give_no_false_direction(fates):
    """`overtaken`: the probe arrives after the next one. `twice`: it arrives twice, and the answer to the copy is lost. If the answer to the
    next probe is lost, no count shows the reordering: such a case cannot be detected, and is left out."""
    behind = [*fates[1:], ""]
    fates = ["ok" if fate == "overtaken" and after != "ok" else fate for fate, after in zip(fates, behind, strict=True)]
    arrivals = [(number + (1.5 if fate == "overtaken" else 0), number) for number, fate in enumerate(fates) if fate != "up"]
    arrivals += [(number, number) for number, fate in enumerate(fates) if fate == "twice"]
    far = np.full(len(fates), np.nan)
    for count, (_, number) in enumerate(sorted(arrivals)):
        if fates[number] != "down" and np.isnan(far[number]):
            far[number] = count
    state = np.where(np.isnan(far), LOST, ANSWERED)
    made = loss.directions(np.arange(len(fates)), state, far, True, "twice" in fates)
    truth = {"up": (LOST, LOST_UP), "down": (LOST, LOST_DOWN)}
    assert all(new in truth.get(fate, (ANSWERED,)) for new, fate in zip(made, fates, strict=True)), (fates, made)


def test_a_probe_that_overtook_the_lost_ones_does_not_stand_for_them():
    # 1 was lost up; 3 arrived before 2, so that the counts between 0 and 2 look as if 1 had arrived.
    far = np.asarray([0, np.nan, 2, 1, 3, *range(4, 300), np.nan, *range(300, 400)])
    state = np.where(np.isnan(far), LOST, ANSWERED)
    made = loss.directions(np.arange(len(far)), state, far, True)
    assert made[1] == LOST and made[301] == LOST_UP, "unknown near the place of overtaking, known far from it"


# ------------------------------------------------------------------------------------------------------------------------ figures


@QUICK
@given(st.lists(st.one_of(st.just(float("nan")), st.floats(0, 1e9)), max_size=50))
def test_quantiles_are_values_that_there_were(values):
    made, known = latency.delays(np.asarray(values)), sorted(v for v in values if v == v)
    if not known:
        assert made is None
        return
    assert made.count == len(known) and {made.min, made.p50, made.p95, made.p99, made.max} <= set(known)
    assert sum(v <= made.p99 for v in known) >= 0.99 * len(known)


def test_lost_ones_are_infinite_in_quantiles():
    made = latency.delays(np.arange(1, 61.0), lost=40)
    assert (made.count, made.lost, made.p50, made.max, made.mean) == (60, 40, 50, 60, 30.5) and made.p95 == made.p99 == np.inf
    assert latency.delays(np.arange(10.0), lost=11).p50 == np.inf
    assert latency.delays(np.empty(0), lost=3) is None


def test_the_interval_of_a_median_is_of_blocks():
    """A slowly rising value: a thousand neighbours in one block are not independent samples."""
    at = np.arange(0, 10 * 10**9, 10**6)
    values = at // (500 * MS) * 1.0  # 0 to 19
    low, high = latency.p50_interval(at, values)
    assert 2 <= low <= 6 and 13 <= high <= 17, "about 9.5 +- 2.262 * 10 / sqrt(9) / 2"
    assert latency.p50_interval(at[at < 2.5e9], values[at < 2.5e9]) is None, "five half seconds are too few"
    low, high = latency.p50_interval(at, np.where(at > 4e9, np.inf, values))
    assert low <= 5 and high == np.inf
    assert latency.p50_interval(at, values * 0 + 7) == (7, 7)
    assert latency.p50_interval(at[:0], values[:0]) is None


@pytest.mark.slow
@pytest.mark.parametrize("interval_s", [0.02, 0.125, 0.3, 1])
@pytest.mark.parametrize("shape", [lambda x: np.exp(2 * x), lambda x: np.floor(2 * np.exp(x)), lambda x: np.where(x > 0.5, np.inf, x)])
def test_the_interval_of_a_median_holds_with_its_level(interval_s, shape):
    """AR(1) with a memory of 50 ms, through skewed, stepped and lossy shapes. The p50 itself always lies inside."""
    rng, count = np.random.default_rng(5), int(12 / interval_s)
    at, phi, held = (np.arange(count) * interval_s * 1e9).astype(np.int64), np.exp(-interval_s / 0.05), 0
    walk = np.zeros(400)
    steps = [walk := phi * walk + np.sqrt(1 - phi * phi) * rng.normal(size=400) for _ in range(count)]
    for series in np.array(steps).T:
        values = shape(series)
        low, high = latency.p50_interval(at, values)
        assert low <= np.sort(values)[(count - 1) // 2] <= high
        held += low <= shape(np.zeros(1))[0] <= high
    print(f"figure: {held / 400:.1%} hold the median")
    assert held >= 0.92 * 400


def test_responsiveness_and_grade():
    foreign, own = np.full(100, 20.0), np.full(10, 40.0)
    assert latency.responsiveness_rpm(foreign, own) == (2250, 3000, 1500), "the mean of the two rates, not of the times"
    # The five largest of a hundred values are left out.
    assert latency.responsiveness_rpm(np.concatenate([np.full(95, 20.0), np.full(5, 9000.0)]), own)[1] == 3000
    assert latency.responsiveness_rpm(foreign, np.empty(0)) == (3000, 3000, None)
    assert latency.responsiveness_rpm(np.empty(0), np.asarray([np.nan])) is None
    assert [latency.responsiveness_class(x) for x in (0, 299, 300, 999, 1000, 5999, 6000, 1e6)] == [
        word for word in ("poor", "fair", "good", "excellent") for _ in range(2)
    ]
    assert [latency.grade(x) for x in (0, 4.9, 5, 30, 60, 200, 400, 9e9)] == ["A+", "A+", "A", "B", "C", "D", "F", "F"]
    assert latency.scale_text() == "A+ < 5 ms, A < 30 ms, B < 60 ms, C < 200 ms, D < 400 ms, else F"
