# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `ktrxer run` looks at before it starts: room on the disk, and the trial of each kind of process."""

import json
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from ktrxer.run import checks
from ktrxer.runners.runner import Options, Trial


def test_room_on_the_disk_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: type("U", (), {"free": 1000})())
    with pytest.raises(checks.CheckError, match=r"0.0 MB are free there, and this run may need 1.1 MB"):
        checks.directory(tmp_path, 100)


def tried(end):
    child = subprocess.Popen([sys.executable, "-c", f"print({json.dumps(json.dumps(end))})"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return checks._trial(child, Trial(["ktrxer", "ping"], server=False), checks._Trip(time.monotonic()), [])


def test_the_reason_of_a_trial_without_an_answer_is_the_silence():
    """Its lateness, on a busy host the first reason, is none."""
    end = {"received": 0, "verdict": "invalid", "reasons": [{"id": "late", "text": "3 of 3 probes left late"}, {"id": "silent", "text": "h answered nothing within 1 s"}]}
    assert (tried(end).line.endswith(": h answered nothing within 1 s"), tried(end).reason) == (True, "silent")


@pytest.mark.parametrize("answered", ["received", "bytes", "known"])
def test_lateness_is_no_reason_against_a_trial_with_an_answer(answered):
    """`known`: pairs of `ktrxer tcp` with a result."""
    assert tried({answered: 1, "verdict": "invalid", "reasons": ["2 of 2 probes left more than 5.000 ms late"]}) is None


def test_a_failure_of_a_newer_version_is_shown():
    end = {"verdict": "invalid", "reasons": [{"id": "of_a_newer_version", "text": "the moon was full"}]}
    assert tried(end).line.endswith(": the moon was full")
    assert tried(end | {"reasons": ["a sentence of an older version"]}) == checks.Failure("ktrxer ping: a sentence of an older version", "text", "a sentence of an older version")
    assert tried(end | {"reasons": [5, None]}).reason == "text"


def schedule_of(one):
    runner = SimpleNamespace(trial=lambda *_: one, loads=False, name="stamp")
    job = SimpleNamespace(runner=runner, invocation=SimpleNamespace(place="local", parameters=None), options=Options(host="h", ktrxer="ktrxer"),
                          stored=SimpleNamespace(host="h", name="Ping"))  # fmt: skip
    return SimpleNamespace(jobs=[job], set_trip=lambda _: None)


@pytest.mark.parametrize("silent, works", [(1, True), (2, False)])
def test_a_silent_trial_is_repeated_once(monkeypatch, tmp_path, silent, works):
    """A burst of losses or an outage of 0.1 s takes its three probes."""
    monkeypatch.setattr(checks, "_listen", lambda _: [])
    ends = [json.dumps({"verdict": "invalid", "reasons": [{"id": "silent", "text": "xyzzy"}]}), json.dumps({"verdict": "valid", "received": 3})]
    program = f"import pathlib; p = pathlib.Path('{tmp_path}/count'); p.open('a').write('x'); print({ends!r}[len(p.read_text()) > {silent}])"
    given = schedule_of(Trial([sys.executable, "-c", program], server=True, label="x"))
    if works:
        checks.far_end(given)
    else:
        with pytest.raises(checks.CheckError, match="x: xyzzy"):
            checks.far_end(given)
    assert (tmp_path / "count").read_text() == "xx"


@pytest.mark.parametrize("identifier, server, advice", [
    ("refused", True, True), ("token_missing", True, True), ("silent", True, True), ("silent", False, False),
    ("unreachable", True, False), ("of_a_newer_version", True, False), ("token_wrong", True, False),
])  # fmt: skip
def test_how_to_start_the_server_is_said_by_the_identifier(monkeypatch, identifier, server, advice):
    """Not by the words of the sentence, which is one that nothing looks for."""
    monkeypatch.setattr(checks, "_listen", lambda _: [])
    end = json.dumps({"verdict": "invalid", "reasons": [{"id": identifier, "text": "xyzzy"}]})
    one = Trial([sys.executable, "-c", f"print({end!r})"], server=server, label="x")
    with pytest.raises(checks.CheckError) as found:
        checks.far_end(schedule_of(one))
    assert "x: xyzzy" in str(found.value) and ("start it on that host" in str(found.value)) == advice
