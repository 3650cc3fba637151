# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `ktrxer run` looks at before it starts: room on the disk, and the trial of each kind of process."""

import json
import subprocess
import sys
import time

import pytest
from ktrxer.run import checks
from ktrxer.runners.runner import Trial


def test_room_on_the_disk_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: type("U", (), {"free": 1000})())
    with pytest.raises(checks.CheckError, match=r"0.0 MB are free there, and this run may need 1.1 MB"):
        checks.directory(tmp_path, 100)


def tried(end):
    child = subprocess.Popen([sys.executable, "-c", f"print({json.dumps(json.dumps(end))})"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return checks._trial(child, Trial(["ktrxer", "ping"], server=False), time.monotonic() + 60, [])


def test_the_reason_of_a_trial_without_an_answer_is_the_silence():
    """Its lateness, on a busy host the first reason, is none."""
    end = {"received": 0, "verdict": "invalid", "reasons": [{"id": "late", "text": "3 of 3 probes left late"}, {"id": "silent", "text": "h answered nothing at all"}]}
    assert tried(end).endswith(": h answered nothing at all")


@pytest.mark.parametrize("answered", ["received", "bytes", "known"])
def test_lateness_is_no_reason_against_a_trial_with_an_answer(answered):
    """`known`: pairs of `ktrxer tcp` with a result."""
    assert tried({answered: 1, "verdict": "invalid", "reasons": ["2 of 2 probes left more than 5.000 ms late"]}) is None
