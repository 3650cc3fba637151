# SPDX-License-Identifier: MIT OR Apache-2.0
"""The runner of the responsiveness test: its parameters, and the objects that its program prints."""

import json
import re

import pytest
from ktrxer import runners
from ktrxer.runners import Options, RunnerError, Times
from ktrxer.runners.http_rpm import Responsiveness
from ktrxer.runners.samples import Chunk, Clock, Samples

S = 10**9


@pytest.mark.parametrize(("given", "complaint"), [
    ({"url": "http://far"}, "https://HOST"), ({"url": "https://far", "connections_most": 0}, "connections: 0"),
    ({"url": "https://far", "interval_ns": 1}, "time between samples"),
])
def test_parameters_that_are_refused(given, complaint):
    with pytest.raises(RunnerError, match=complaint):
        runners.find("http_rpm").validate(Responsiveness(**given))


def test_the_runner_reads_its_program():
    runner = runners.find("http_rpm")
    p = Responsiveness(url="https://far", direction="up")
    words = runner.command(p, Options(token_file="token"), Times(S))
    assert "--token-file" in words and re.search(r"rpm\.py$", words[2])
    series = runner.series(p, "RPM upload")
    for number, one in enumerate(series.values()):
        one.id = number
    samples = Samples(series, Clock(0, 0), to_ns=10 * S)
    reading = runner.read(p, samples)
    next(reading)
    lines = [
        {"type": "start"}, {"type": "sample", "kind": "bytes", "flow": 0, "time_ns": S, "bytes": 7, "end": "remote", "bound_ns": 9},
        {"type": "sample", "kind": "rpm_probe", "probe": "self", "time_ns": S, "ms": 12.5},
        {"type": "sample", "kind": "rpm_probe", "probe": "tcp", "time_ns": S, "ms": None},
        {"type": "sample", "kind": "rpm_probe", "probe": "other", "time_ns": S, "ms": 1}, {"type": "end", "verdict": "valid"},
    ]
    reading.send(Chunk(b"".join(json.dumps(line).encode() + b"\n" for line in lines), 0))
    rows = samples.take()
    assert rows["bytes"]["end"] == [1] and rows["value"]["value"] == [12.5] and samples.garbage == 1
