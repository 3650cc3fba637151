# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the tests of `ktrxer flow`; conftest.py also uses its fixtures."""

import json
import math
from pathlib import Path

import noise
import pytest
from ktrxer_lab.bench.contest import stolen_ms

MS = 1_000_000
S = 1_000_000_000


@pytest.fixture(scope="module")
def token(tmp_path_factory):
    return secret(tmp_path_factory.mktemp("flow") / "token")


def secret(path, text="a token for tests, long enough"):
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path


class Run:
    """The output of one `ktrxer flow --jsonl`."""

    def __init__(self, text, status=None, err="", stolen_ms=0):
        self.objects = [json.loads(line) for line in text.splitlines()]
        assert self.objects and self.objects[-1]["type"] == "end", (text[-2000:], err)
        self.start, self.end, self.status, self.err = self.objects[0], self.objects[-1], status, err
        assert "flows" in self.end, (self.end, err)
        self.flows, self.stolen_ms = self.end["flows"], stolen_ms

    def samples(self, kind="bytes", **fields):
        return [one for one in self.objects if one.get("kind") == kind and all(one[name] == value for name, value in fields.items())]

    def events(self, name):
        return [one for one in self.objects if one["type"] == "event" and one["name"] == name]

    @property
    def reasons(self):
        return noise.reasons(self.end, "are missing (one is flow")

    def starved_ns(self, one, *ends):
        """For so long the ends ("here", "server") of a flow had no processor: their run delays, which tests/truth/faults/test_starved_processor.py
        compares with the kernel's, and the time that the hypervisor took from this machine."""
        waits = [self.end["processor_wait_percent"][end] or 0 for end in ends]
        return math.ceil(sum(waits) / 100 * one["duration_ns"]) + self.stolen_ms * MS

    def check_sent(self, one):
        """All due packets of a UDP flow were sent, but for those of the time in which the sender had no processor."""
        starved = self.starved_ns(one, "here" if one["direction"] == "up" else "server") / one["duration_ns"]
        assert one["due_packets"] * (1 - starved) <= one["sent_packets"] <= one["due_packets"], (one, self.end["reasons"])


def command(ktrxer, token, direction, host, *options):
    return [ktrxer, "flow", direction, host, "--token-file", token, *map(str, options)]


@pytest.fixture
def flow(ktrxer, token):
    def go(a, direction, host, *options, timeout=60, token=token, prefix=()):
        before = stolen_ms()
        done = a.run([*prefix, *command(ktrxer, token, direction, host, *options), "--jsonl"], check=False, timeout=timeout)
        return Run(done.stdout, done.returncode, done.stderr, stolen_ms() - before)

    return go


@pytest.fixture
def refusal(ktrxer, token):
    """The single line of a client's error message."""

    def go(a, host, *options, token=token, direction="down", timeout=20):
        done = a.run(command(ktrxer, token, direction, host, *options), check=False, timeout=timeout)
        assert done.returncode == 1, done.stdout + done.stderr
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("ktrxer flow: "), done.stderr
        return lines[0]

    return go


def controls():
    """Congestion controls that a server without privileges may use; and those that it may not."""
    base = Path("/proc/sys/net/ipv4")
    allowed, available = ((base / f"tcp_{which}_congestion_control").read_text().split() for which in ("allowed", "available"))
    return allowed, [name for name in available if name not in allowed]


def narrow(host, device, rate="10mbit", latency="50ms"):
    host.run(["tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "16kb", "latency", latency])


@pytest.fixture(scope="module")
def narrow_pair(requires_namespaces):
    from ktrxer_lab import hosts

    with hosts.pair() as (a, b):
        narrow(a, "a0")
        narrow(b, "b0")
        yield a, b


def check_series(run, sample_ns, missing=0.1, kind="bytes"):
    """Each flow has samples at both ends, from its start to its end, and their counts never decrease. `missing`: the share of samples
    that a busy machine may miss, beside those of the time in which an end had no processor."""
    all_series = {}
    for one in run.samples(kind):
        all_series.setdefault((one["flow"], one["end"]), []).append(one)
    for one in run.flows:
        due, starved_ns, count = one["duration_ns"] // sample_ns, run.starved_ns(one, "here", "server"), 0
        for end in ("local", "remote"):
            series = all_series[one["flow"], end]
            times, counts = [s["time_ns"] for s in series], [s["bytes"] for s in series]
            assert counts == sorted(counts) and times == sorted(times) and (kind == "udp" or counts[0] == 0), (one, end)
            assert all(s["direction"] == one["direction"] for s in series)
            count += len(series)
            assert abs(times[0] - one["start_ns"]) < sample_ns + starved_ns, (one, end, times)
            # The last samples may be among the missing ones.
            assert times[-1] - one["start_ns"] > one["duration_ns"] - (1 + one["samples_missing"]) * sample_ns, (one, end, times)
        # The command reports missing samples.
        assert 2 * due <= count + one["samples_missing"] <= 2 * due + 8, (one, count)
        assert one["samples_missing"] <= 1 + due * missing + starved_ns / sample_ns, (one, run.stolen_ms, run.end["processor_wait_percent"])


def stop(server):
    server.stop()
    return server.end["flows"]
