# SPDX-License-Identifier: MIT OR Apache-2.0
"""The path witness of `send`, `flow`, `tcp`, `owamp`, `pair`, `abw` and `ppt`, beside the counters of the devices (docs/decisions/0078-path-witness.md)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flows import secret
from ktrxer_lab import hosts
from two_lines import FAR, FIRST, SECOND, mark, return_by_second, two_lines

Lines = tuple[hosts.Netns, hosts.Netns]


@pytest.fixture
def lines(requires_namespaces: None) -> Iterator[Lines]:
    with two_lines() as both:
        yield both


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return secret(tmp_path / "token")


def left(end: dict[str, Any]) -> set[str]:
    return {way["device"] for way in end["path"]["left"]}


def arrived(end: dict[str, Any]) -> set[str]:
    return {way["device"] for way in end["path"]["arrived"]}


def reasons(end: dict[str, Any]) -> list[str]:
    return [one["id"] for one in end["reasons"] if one["id"].startswith("path_")]


WITH_SERVER = {
    "flow up": ("--for", "2s", "--bitrate", "2M"),
    "flow down": ("--for", "1s", "--bitrate", "2M"),
    "flow up -u": ("--for", "2s", "--bitrate", "1M"),
    "flow up -u --precise": ("--for", "1s", "--bitrate", "1M"),
    "flow down -u": ("--for", "1s", "--bitrate", "1M"),
    "flow both": ("--for", "1s", "--bitrate", "1M", "--flows", "2"),
    "owamp": ("--count", "20", "--interval", "20ms", "--timeout", "300ms"),
    "pair": ("--count", "20", "--interval", "20ms"),
    "ppt measure": ("--count", "30", "--interval", "20ms"),
    "ppt direct": ("--count", "20", "--interval", "5ms"),
}


def measured(ktrxer: Path, a: hosts.Netns, token: Path, name: str, to: str, *options: str, form: str = "--json") -> str:
    """The exit status is of no interest: on a busy machine figures are in doubt."""
    known = [] if name in ("owamp", "ppt direct") else ["--token-file", str(token)]
    done = a.run([ktrxer, *name.split(), to, *known, *WITH_SERVER[name], *options, *([form] if form else [])], check=False, timeout=60)
    assert done.stdout, done.stderr
    return done.stdout


@pytest.fixture
def served(lines: Lines, serve: Any, token: Path) -> Lines:
    serve(lines[1], "--token-file", token, "--owamp-port", 861)
    return lines


@pytest.mark.parametrize("name", WITH_SERVER)
@pytest.mark.parametrize("version", [4, pytest.param(6, marks=pytest.mark.plain_build)])
def test_the_source_address_chooses_the_line(served, ktrxer, token, version, name):
    a, _ = served
    before = a.counters("w1")["tx"]["packets"]
    end = json.loads(measured(ktrxer, a, token, name, FAR[version], "--from", SECOND[version]))
    assert end["device"] == "w2" and end["from"] == SECOND[version] and left(end) == {"w2"} and not reasons(end), end
    assert {way["from"] for way in end["path"]["left"]} == {SECOND[version]}
    assert {way["next_hop"] for way in end["path"]["left"]} == {"10.78.0.2" if version == 4 else "fd00:78::2"}
    assert a.counters("w1")["tx"]["packets"] - before < 20  # neighbour discovery


@pytest.mark.parametrize("name", WITH_SERVER)
@pytest.mark.parametrize("version", [4, pytest.param(6, marks=pytest.mark.plain_build)])
def test_a_mark_of_the_firewall_is_a_reason(served, ktrxer, token, version, name):
    a, _ = served
    mark(a)
    end = json.loads(measured(ktrxer, a, token, name, FAR[version]))
    assert end["device"] == "w1" and left(end) == {"w2"} and reasons(end) == ["path_device"], end
    assert [one["severity"] for one in end["reasons"] if one["id"] == "path_device"] == ["degraded"]
    end = json.loads(measured(ktrxer, a, token, name, FAR[version], "--from", FIRST[version]))
    assert reasons(end) == ["path_device"] and end["verdict"] == "invalid", end


@pytest.mark.plain_build
@pytest.mark.parametrize("name", WITH_SERVER)
def test_the_ordinary_path_has_no_reason(served, ktrxer, token, name):
    a, _ = served
    end = json.loads(measured(ktrxer, a, token, name, "10.77.0.2"))
    assert left(end) == {"w1"} and not reasons(end), end
    assert arrived(end) == ({"w1"} if "down -u" in name or name in ("owamp", "pair", "ppt direct") else set()), end
    assert "path:" not in measured(ktrxer, a, token, name, "10.77.0.2", form="")


@pytest.mark.parametrize("name", ["flow down -u", "owamp", "pair"])
@pytest.mark.parametrize("version", [4, 6])
def test_packets_down_by_another_device_are_a_fact(served, ktrxer, token, version, name):
    a, b = served
    return_by_second(b)
    end = json.loads(measured(ktrxer, a, token, name, FAR[version]))
    assert left(end) == {"w1"} and arrived(end) == {"w2"} and not reasons(end), end
    assert "by w2" in measured(ktrxer, a, token, name, FAR[version], form="")


def test_many_flows_by_two_next_hops(served, ktrxer, token):
    """A route of this host with two next hops sends some of the connections by each: the first line names one device."""
    a, _ = served
    a.sysctl("ipv4/fib_multipath_hash_policy", 1)
    a.ip("route", "replace", FAR[4], "nexthop", "via", "10.77.0.2", "nexthop", "via", "10.78.0.2")
    end = json.loads(measured(ktrxer, a, token, "flow up", FAR[4], "--flows", "16"))
    assert left(end) == {"w1", "w2"} and reasons(end) == ["path_device"], end


@pytest.mark.parametrize("engine", ["udp", "raw", "packet"])
@pytest.mark.parametrize("version", [4, 6])
def test_send(lines, ktrxer_json, ktrxer, version, engine):
    a, _ = lines
    how = ("--count", "50", "--interval", "5ms", "-e", engine)
    before = a.counters("w2")["tx"]["packets"]
    end = ktrxer_json(a, "send", FAR[version], "--from", SECOND[version], *how, status=None)
    assert end["device"] == "w2" and left(end) == {"w2"} and not reasons(end), end
    assert a.counters("w2")["tx"]["packets"] - before >= 50
    assert end["path"]["left"][0] == {"device": "w2", "from": SECOND[version], "next_hop": "10.78.0.2" if version == 4 else "fd00:78::2", "probes": 50}
    if engine == "packet":  # it writes whole frames, which no rule of the firewall sees
        return
    mark(a)
    end = ktrxer_json(a, "send", FAR[version], *how, status=None)
    assert end["device"] == "w1" and left(end) == {"w2"} and reasons(end) == ["path_device"] and end["verdict"] == "degraded", end
    text = a.run([ktrxer, "send", FAR[version], *how], check=False).stdout
    assert "path: packets left 50 by w2 from" in text and "not by 'w1'" in text, text


def test_send_without_stamps_is_not_observed(lines, ktrxer_json, ktrxer):
    a, _ = lines
    how = ("send", FAR[4], "-e", "udp", "--count", "20", "--interval", "5ms", "--no-stamps")
    end = ktrxer_json(a, *how, status=None)
    assert end["path"]["left"] == [] and not reasons(end), end
    assert "path: not observed" in a.run([ktrxer, *how], check=False).stdout


def test_source_addresses_that_vary_are_no_reason(lines, ktrxer_json):
    a, _ = lines
    end = ktrxer_json(a, "send", FAR[4], "-e", "raw", "--count", "20", "--interval", "5ms", "--vary", "src=counter:10.77.0.10-10.77.0.13", status=None)
    assert left(end) == {"w1"} and not reasons(end), end


@pytest.fixture
def web(lines: Lines, tmp_path: Path) -> Iterator[Lines]:
    (tmp_path / "large").write_bytes(bytes(20000))
    words = [sys.executable, "-u", "-m", "http.server", "--bind", "::", "--directory", str(tmp_path), "--protocol", "HTTP/1.1", "80"]
    process = lines[1].popen(words, stderr=subprocess.DEVNULL)
    assert process.stdout and "Serving" in process.stdout.readline()
    yield lines
    process.kill()
    process.communicate()


TCP = ("--path", "/large", "--count", "10", "--interval", "30ms")


@pytest.mark.parametrize("engine", ["packet", "raw"])
@pytest.mark.parametrize("version", [4, 6])
def test_tcp(web, ktrxer_json, version, engine):
    a, _ = web
    end = ktrxer_json(a, "tcp", FAR[version], *TCP, "-e", engine, "--from", SECOND[version], status=None)
    assert end["device"] == "w2" and left(end) == {"w2"} and arrived(end) == {"w2"} and end["known"] and not reasons(end), end
    mark(a)  # no engine heeds it: both are bound to the device
    end = ktrxer_json(a, "tcp", FAR[version], *TCP, "-e", engine, status=None)
    assert end["device"] == "w1" and left(end) == {"w1"} and end["known"] and not reasons(end), end


@pytest.mark.parametrize("engine", ["packet", "raw"])
@pytest.mark.parametrize("version", [4, 6])
def test_segments_by_another_device_are_received(web, ktrxer_json, version, engine):
    """They reached this host's own TCP, which reset the connections: no pair had a result."""
    a, b = web
    return_by_second(b)
    end = ktrxer_json(a, "tcp", FAR[version], *TCP, "-e", engine, status=None)
    assert left(end) == {"w1"} and arrived(end) == {"w2"} and end["known"] >= 5 and not reasons(end), end
    assert end["connections_reset"] == 0
