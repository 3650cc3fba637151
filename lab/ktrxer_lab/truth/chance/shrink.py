# SPDX-License-Identifier: MIT OR Apache-2.0
"""The smallest draw that is still faulty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ktrxer_lab.truth.chance.draw import BOTH, Draw
from ktrxer_lab.truth.path import DOWN, UP, Way

PLAIN = Way(10.0)
FIFO = "bfifo limit 62500"


def shrink(draw: Draw, failing: Callable[[Draw], bool]) -> Draw:
    """Take the first simpler draw that still fails, until none does."""
    while (smaller := next((one for one in simpler(draw) if failing(one)), None)) is not None:
        draw = smaller
    return draw


def simpler(draw: Draw) -> Iterator[Draw]:
    """Draws with one thing less, those that leave out most first. Each has fewer properties or rounder numbers, so the search ends."""
    if len(draw.commands) > 1:
        yield from (replace(draw, commands=(one,)) for one in draw.commands)
    if draw.outage is not None:
        yield replace(draw, outage=None)
    if draw.held is not None:
        yield replace(draw, held=None)
    if draw.step is not None:
        yield replace(draw, step=None)
    if draw.v6:
        yield replace(draw, v6=False, commands=tuple(one.replace("server-6", "server") for one in draw.commands))
    if draw.nat:
        yield replace(draw, nat=False)
    if draw.box:
        yield replace(draw, box="", box_at_s=0.0)
    if draw.bleach:
        yield replace(draw, bleach="")
    if draw.ahead_ms or draw.rate_ppm:
        yield replace(draw, ahead_ms=0.0, rate_ppm=0.0)
    for way in _ways(draw.up):
        yield replace(draw, up=way)
    for way in _ways(draw.down):
        yield replace(draw, down=way)
    if draw.outage is not None and draw.outage.way == BOTH:
        yield from (replace(draw, outage=replace(draw.outage, way=way)) for way in (UP, DOWN))
    if draw.rate_ppm and draw.ahead_ms:
        yield replace(draw, rate_ppm=0.0)
        yield replace(draw, ahead_ms=0.0)


def _ways(way: Way) -> Iterator[Way]:
    if way not in (PLAIN, Way(way.delay_ms)):
        yield Way(way.delay_ms)
    plain = Way()
    for name in ("loss", "burst", "reorder", "duplicate", "jitter_ms", "police_mbps", "marks"):
        if getattr(way, name) != getattr(plain, name):
            yield replace(way, **{name: getattr(plain, name)})
    if way.rate_mbps is not None:
        yield replace(way, rate_mbps=None, queue="")
        if way.queue != FIFO:
            yield replace(way, queue=FIFO)
        if way.rate_mbps != 10.0:
            yield replace(way, rate_mbps=10.0)
    if way.delay_ms != PLAIN.delay_ms and way.jitter_ms <= PLAIN.delay_ms:
        yield replace(way, delay_ms=PLAIN.delay_ms)
