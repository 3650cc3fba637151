# SPDX-License-Identifier: MIT OR Apache-2.0
"""Times as text: no time that was measured reads 0.0 ms."""

from __future__ import annotations

import math
import re

import pytest
from ktrxer.panels.headline import shown
from ktrxer.units import delay, nanoseconds


@pytest.mark.parametrize(("ms", "text"), [
    (1234.56, "1234.6 ms"), (107.31, "107.3 ms"), (9.996, "10.0 ms"), (9.994, "9.99 ms"), (1.0, "1.00 ms"), (0.9996, "1.00 ms"), (0.9994, "999 us"),
    (0.0999, "99.9 us"), (0.09996, "100 us"), (0.00999, "9.99 us"), (0.001, "1.00 us"), (0.0009994, "999 ns"), (0.00025, "250 ns"), (1e-7, "0.1 ns"),
    (0.0, "0 ns"), (-0.03, "-30.0 us"), (-12.0, "-12.0 ms"), (math.inf, "lost"),
])  # fmt: skip
def test_a_delay(ms: float, text: str) -> None:
    assert delay(ms) == text


def test_no_delay_but_zero_has_only_zeros() -> None:
    for power in range(-60, 70):
        for part in (1.0, 1.5, 4.99, 9.994, 9.9951, 9.99999):
            assert re.search("[1-9]", delay(part * 10 ** (power / 10))), part * 10 ** (power / 10)


@pytest.mark.parametrize(("ns", "text"), [
    (0, "0 ns"), (999, "999 ns"), (1000, "1.000 us"), (1234567, "1.235 ms"), (999999, "999.999 us"), (999999499, "999.999 ms"), (999999500, "1.000 s"),
    (-2500, "-2.500 us"), (83 * 10**9, "83.000 s"), (-(2**63), "-9223372036.855 s"), (2**63 - 1, "9223372036.855 s"),
])  # fmt: skip
def test_nanoseconds_as_the_c_half_prints_them(ns: int, text: str) -> None:
    """tests/unit/test_units.c has the same values for ktrxer_format_ns()."""
    assert nanoseconds(ns) == text


def test_a_headline_has_a_digit_that_is_not_zero() -> None:
    assert (shown(0.04, 5.0), shown(0.0004, 0.5), shown(107.31, 0.5), shown(0.0, 0.5)) == ("0.04", "0.0004", "107", "0")
