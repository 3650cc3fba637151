# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the tests of `ktrxer stamp`; conftest.py also uses its fixture."""

import json

import pytest

PORT = 8620


@pytest.fixture
def stamp(ktrxer):
    """(end object, objects by kind)"""

    def go(a, *options, status=None, timeout=60):
        done = a.run([ktrxer, "stamp", *map(str, options), "--jsonl"], check=False, timeout=timeout)
        assert status is None or done.returncode == status, f"{done.stdout[-2000:]}{done.stderr}"
        return parse(done.stdout)

    return go


def parse(text):
    objects = [json.loads(line) for line in text.splitlines()]
    assert objects and objects[-1]["type"] == "end", text
    kinds = {}
    for one in objects[1:-1]:
        kinds.setdefault(one.get("kind") or one["name"], []).append(one)
    end = objects[-1]
    assert end["requested"] == end["sent"] + end["failed"] + end["skipped"] + end["cancelled"]
    assert end["sent"] == end["received"] + end["lost"] + end["too_late"] + end["unanswered_at_end"]
    if end["lost_up"] is not None:
        assert end["lost"] == end["lost_up"] + end["lost_down"] + end["lost_unknown"]
    timed = len(kinds.get("round_trip", [])) + sum(len(one["number"]) for one in kinds.get("round_trips", []))
    assert timed + end["untimed"] == end["received"], end
    return end, kinds


def requests(end):
    """The packets that a client sent. After its probes come closing ones, until the answer to one has the server's counts: a second one where the
    server has no processor at once."""
    return end["sent"] + end["closing_probes"]


def secret(path, text="a key for tests"):
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path
