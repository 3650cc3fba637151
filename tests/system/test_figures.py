# SPDX-License-Identifier: MIT OR Apache-2.0
"""
The promised figures of ktrxer, with a margin for the noise of a shared machine; `make bench` checks the goals themselves.
Rounds are interleaved, and fewer than there, because the bounds are wider; the figures are ratios to frozen baselines. A miss is measured once more,
because other load on the same processor may cause it; a real regression shows again.
"""

import contextlib

import pytest
from ktrxer_lab.bench import figures


@pytest.fixture(scope="module", autouse=True)
def timing_engine(needs_command):
    needs_command("send")


def hold(measure, capsys):
    try:
        result = measure()
    except figures.Busy as busy:
        pytest.skip(str(busy))
    if not all(figure.holds(False) for figure in result.figures):
        with contextlib.suppress(figures.Busy):
            result = measure()
    with capsys.disabled():
        print()
        for line in (*result.details, *result.figures):
            print(f"figure: {line}")
        print(f"figure: (stolen from this machine meanwhile: {result.stolen_ms} ms)")
    missed = [str(figure) for figure in result.figures if not figure.holds(False)]
    assert not missed, missed


def test_timing(shared_pair, capsys):
    hold(lambda: figures.timing(*shared_pair, rounds=3), capsys)


def test_timing_under_cross_traffic(shared_pair, capsys):
    hold(lambda: figures.timing(*shared_pair, rounds=3, count=100, cross=36_000), capsys)


def test_rate(shared_pair, capsys):
    hold(lambda: figures.rate(*shared_pair, rounds=3), capsys)


def test_reported_gaps_are_true(shared_pair, capsys):
    hold(lambda: figures.gaps(*shared_pair), capsys)


def test_ping_against_iputils(shared_pair, needs_command, capsys):
    needs_command("ping")
    hold(lambda: figures.ping(*shared_pair, rounds=3), capsys)
