# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the tests of `ktrxer flow`; conftest.py also uses its fixtures."""

import json
from pathlib import Path

import noise
import pytest

MS = 1_000_000
S = 1_000_000_000


@pytest.fixture(scope="module")
def token(tmp_path_factory):
    return secret(tmp_path_factory.mktemp("flow") / "token")


def secret(path, text="a token for tests, long enough"):
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="session")
def validators():
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    folder = Path(__file__).resolve().parents[2] / "docs" / "schema"
    read = {name: json.loads((folder / f"{name}.schema.json").read_text()) for name in ("start", "sample", "event", "end")}
    registry = referencing.Registry().with_contents([(schema["$id"], schema) for schema in read.values()])
    return {name: jsonschema.Draft202012Validator(schema, registry=registry) for name, schema in read.items()}


class Run:
    """The output of one `ktrxer flow --jsonl`."""

    def __init__(self, text, status=None, err=""):
        self.objects = [json.loads(line) for line in text.splitlines()]
        assert self.objects and self.objects[-1]["type"] == "end", (text[-2000:], err)
        self.start, self.end, self.status, self.err = self.objects[0], self.objects[-1], status, err
        assert "flows" in self.end, (self.end, err)
        self.flows = self.end["flows"]

    def samples(self, kind="bytes", **fields):
        return [one for one in self.objects if one.get("kind") == kind and all(one[name] == value for name, value in fields.items())]

    def events(self, name):
        return [one for one in self.objects if one["type"] == "event" and one["name"] == name]

    @property
    def reasons(self):
        return noise.reasons(self.end, "samples are missing")


def command(ktrxer, token, direction, host, *options):
    return [ktrxer, "flow", direction, host, "--token-file", token, *map(str, options)]


@pytest.fixture
def flow(ktrxer, token):
    def go(a, direction, host, *options, timeout=60, token=token):
        done = a.run([*command(ktrxer, token, direction, host, *options), "--jsonl"], check=False, timeout=timeout)
        return Run(done.stdout, done.returncode, done.stderr)

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
    from ktrxer.lab import hosts

    with hosts.pair() as (a, b):
        narrow(a, "a0")
        narrow(b, "b0")
        yield a, b


def check_series(run, sample_ns, missing=0.1):
    """Each flow has samples at both ends, from its start to its end, and their counts never decrease. `missing`: the share of samples
    that a busy machine may miss."""
    all_series = {}
    for one in run.samples():
        all_series.setdefault((one["flow"], one["end"]), []).append(one)
    for one in run.flows:
        due = one["duration_ns"] // sample_ns
        for end in ("local", "remote"):
            series = all_series[one["flow"], end]
            times, counts = [s["time_ns"] for s in series], [s["bytes"] for s in series]
            assert counts == sorted(counts) and times == sorted(times) and counts[0] == 0, (one, end)
            assert all(s["direction"] == one["direction"] for s in series)
            # A busy machine may miss samples; the command reports missing ones.
            assert due <= len(series) + one["samples_missing"] <= due + 4 and one["samples_missing"] <= 1 + due * missing, (one, end, times)
            assert abs(times[0] - one["start_ns"]) < sample_ns
            # The last samples may be among the missing ones.
            assert times[-1] - one["start_ns"] > one["duration_ns"] - (1 + one["samples_missing"]) * sample_ns


def stop(server):
    server.stop()
    return server.end["flows"]
