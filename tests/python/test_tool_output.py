# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runners of other projects' tools: the contract, wrong parameters, output that is garbage, and the page about them."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from ktrxer import runners
from ktrxer.runners import RunnerError
from tool_output import GIVEN, MS, OTHERS, S, command, outcome

# ------------------------------------------------------------------------------------------------------------ all of them


@pytest.mark.parametrize("name", OTHERS)
def test_the_contract(name):
    runner = runners.find(name)
    assert runner.name == name and runner.tool is not None and not runner.own
    p = runner.parameters(**GIVEN.get(name, {}))
    runner.validate(p)
    assert all(isinstance(word, str) and word for word in command(name))
    series = list(runner.series(p, "x").values())
    assert series and len({(one.name, one.kind) for one in series}) == len(series)


@pytest.mark.parametrize("name", OTHERS)
def test_a_new_adapter_is_a_small_file(name):
    path = Path(runners.__file__).with_name(f"{name}.py")
    assert len(path.read_text().splitlines()) < 100


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("output", [b"\xff\xfe\x00\n", b"Segmentation fault\n", b"[1, 2]\n", b'{"intervals": [3]}\n', b"null\n"], ids=repr)
def test_garbage(name, output):
    samples = outcome(name, output * 30, **GIVEN.get(name, {}))
    assert samples.garbage >= 1 and samples.take() == {}


@pytest.mark.parametrize("name", OTHERS)
def test_no_output_is_no_defect(name):
    assert outcome(name, b"", **GIVEN.get(name, {})).take() == {}


@pytest.mark.parametrize("name, parameters, complaint", [
    ("iperf3", {"flows": 0}, "flows: 0; 1 to 128 are possible"),
    ("iperf3", {"interval_ns": 100 * MS}, "the interval: 100 ms; 200 ms to 60000 ms"),
    ("iperf3", {"protocol": "udp"}, "UDP flows need a bit rate"),
    ("iperf3", {"protocol": "udp", "bitrate_bps": 10**6, "cc": "bbr"}, "a congestion control is for TCP flows"),
    ("iperf3", {"cc": "-h"}, "the congestion control: '-h' is no name"),
    ("iperf", {"bitrate_bps": 1}, "the bit rate: 1 bit/s; 1000 bit/s to 1000000000000 bit/s"),
    ("iperf", {"port": 0}, "the port: 0; 1 to 65535"),
    ("netperf", {"mark": "QQ"}, "no marking is called 'QQ'"),
    ("netperf_rr", {"interval_ns": 1}, "the interval: 1e-06 ms; 10 ms"),
    ("irtt", {"timeout_ns": 0}, "the time-out: 0 s; 0.1 s to 60 s"),
    ("iputils", {"payload_bytes": 8}, "the payload: 8 bytes; 16 bytes"),
    ("ditg", {"interval_ns": S}, "this runner has no interval_ns; it has rate_hz"),
    ("ditg", {"host": "a -h"}, "the host: 'a -h' is no name"),
    ("http", {"pages": ("file:///etc/passwd",)}, "is no URL: it must begin with http"),
    ("http", {"pages": ("http://a/ b",)}, "the page: 'http://a/ b' is no name"),
    ("video", {"url": ""}, "the page: '' is no name"),
    ("video", {"ladder_bps": (2_000_000, 1_000_000)}, "the bit rates must be in rising order"),
    ("video", {"buffer_ns": S}, "the buffer: 1 s; 2 s to 600 s"),
    ("video", {"interval_ns": S}, "this runner has no interval_ns; it has segment_ns"),
    ("number", {"words": ()}, "words of the command: 0; 1 to 100"),
    ("number", {"pattern": "("}, "is no regular expression"),
    ("number", {"pattern": "(a)(b)"}, "has 2 groups; at most one is possible"),
])
def test_wrong_parameters(name, parameters, complaint):
    with pytest.raises(RunnerError, match=re.escape(complaint)):
        command(name, **parameters)


# --------------------------------------------------------------------------------------------------------------------- docs


def test_the_page_of_runners():
    """docs/reference/runners.md has each runner with its tool and its parameters."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "runners.md").read_text()
    for name in runners.NAMES:
        runner = runners.find(name)
        tool = "ktrxer" if runner.tool is None else f"`{runner.tool.program}` {runner.tool.least}".rstrip() + f" ({runner.tool.package})"
        own = {one.name for one in fields(runner.parameters)} - {"host", "interval_ns", "family"}
        row = re.search(rf"^\| `{name}` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
        assert row is not None, name
        assert row[2].strip() == tool and set(re.findall(r"`(\w+)`", row[3])) == own, name
