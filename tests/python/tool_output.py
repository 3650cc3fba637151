# SPDX-License-Identifier: MIT OR Apache-2.0
"""Output of tools as they print it, read by their runners."""

import contextlib

from ktrxer import runners
from ktrxer.runners import Options, Times
from ktrxer.runners.samples import Chunk, Clock, Samples

MS, S = 10**6, 10**9
ZERO = 1795411612 * S  # of CLOCK_REALTIME, at the zero of the run
OTHERS = tuple(name for name in runners.NAMES if not runners.find(name).own and not runners.find(name).auxiliary)
GIVEN = {"number": {"words": ("uptime",)}, "video": {"url": "http://h/{bitrate}/{segment}"}}  # parameters without a usable default


def command(name, length_s=10.0, **parameters):
    runner = runners.find(name)
    p = runner.parameters(**(GIVEN.get(name, {}) | parameters))
    runner.validate(p)
    return runner.command(p, Options(host="far", source="10.0.0.1", family="-4"), Times(round(length_s * S)))


def outcome(name, output, zero_real_ns=ZERO, at_ns=5, **parameters):
    """The samples of a recorded output, which comes in pieces of 7 bytes."""
    runner = runners.find(name)
    p = runner.parameters(**parameters)
    series = runner.series(p, "x")
    for number, one in enumerate(series.values()):
        one.id = number
    samples = Samples(series, Clock(zero_real_ns, None), to_ns=60 * S)
    reading = runner.read(p, samples)
    next(reading)
    with contextlib.suppress(StopIteration):
        for begin in range(0, len(output), 7):
            reading.send(Chunk(output[begin : begin + 7], at_ns))
        reading.send(None)
    return samples


def rows(samples):
    """By table, then by name of the series: its rows as dictionaries without empty columns."""
    names = {series.id: series.name for series in samples.series.values()}
    made = {}
    for kind, columns in samples.take().items():
        for values in zip(*columns.values(), strict=True):
            row = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
            made.setdefault(kind, {}).setdefault(names[row.pop("series")], []).append(row)
    return made
