# SPDX-License-Identifier: MIT OR Apache-2.0
"""DSCP by name: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE). BE and BK are Flent's names of CS0 and CS1.
The numbers 0 to 63 are names, too."""

from __future__ import annotations

from collections.abc import Iterable

from ktrxer.runners.runner import RunnerError

NAMED: dict[str, int] = {
    "BE": 0, "BK": 8, "LE": 1, "EF": 46, "VA": 44,
    **{f"CS{n}": 8 * n for n in range(8)},
    **{f"AF{c}{d}": 8 * c + 2 * d for c in range(1, 5) for d in range(1, 4)},
}  # fmt: skip
DSCP = NAMED | {str(number): number for number in range(64)}
ECN = ("off", "ect0", "ect1")


def check(marks: Iterable[str | None]) -> None:
    unknown = sorted({mark for mark in marks if mark is not None and mark not in DSCP})
    if unknown:
        raise RunnerError(f"no marking is called {unknown[0]!r}; there are {', '.join(NAMED)}, and 0 to 63")


def check_ecn(words: Iterable[str], known: tuple[str, ...] = ECN) -> None:
    unknown = sorted(set(words) - set(known))
    if unknown:
        raise RunnerError(f"no ECN mark is called {unknown[0]!r}; there are {', '.join(known)}")
