# SPDX-License-Identifier: MIT OR Apache-2.0
"""Feeds recorded output to the runners of host state."""

import contextlib

from ktrxer import runners
from ktrxer.runners.samples import Chunk, Clock, Samples

S, MS = 10**9, 10**6
START = 1_700_000_000 * S


def frame(text, at_ns=0, status=0):
    return f"@state {START + at_ns}\n{text}\n@end {status}\n".encode()


def fed(name, *chunks, **parameters):
    """What a runner makes of the output of its loop; it comes in pieces of 1000 bytes."""
    runner = runners.find(name)
    p = runner.parameters(**parameters)
    runner.validate(p)
    samples = Samples(runner.series(p, name), Clock(START, None), to_ns=60 * S, name=name)
    reading = runner.read(p, samples)
    next(reading)
    with contextlib.suppress(StopIteration):
        for chunk in chunks:
            for begin in range(0, len(chunk), 1000):
                reading.send(Chunk(chunk[begin : begin + 1000], 5))
        reading.send(None)
    return samples


def values(samples, kind="value"):
    """Rows by the name of the series."""
    tables = samples.take()
    if kind not in tables:
        return {}
    names = {series.id: series.name for series in samples.series.values()}
    table = tables[kind]
    columns = [column for column in table if column not in ("series", "t_ns")]
    made = {}
    for row in zip(table["series"], table["t_ns"], *(table[column] for column in columns), strict=True):
        made.setdefault(names[row[0]], []).append((row[1], *row[2:]))
    return made
