# SPDX-License-Identifier: MIT OR Apache-2.0
"""The server of a flow dies just before the end: its connections close as at a regular end, but it sent no end message.
Reference: the time of the kill, which virtual time makes exact."""

from __future__ import annotations

import json

import pytest
from guests import KTRXER, Lab
from shaped import FILE

# argv: the command, and by how many ms before the end the server is killed. Prints the exit status and the last object of the flow.
JOB = """
import json, subprocess, sys, time
command, before_ms = sys.argv[1], int(sys.argv[2])
server = subprocess.Popen(["ip", "netns", "exec", "far", command, "serve", "--token-file", "token"], stdout=subprocess.PIPE)
server.stdout.readline()
words = ["flow", "both", "far", "--token-file", "token", "--bitrate", "5M", "--for", "1s", "--jsonl"]
child = subprocess.Popen([command, *words], stdout=subprocess.PIPE, text=True)
start_ns = next(one["start_ns"] for one in map(json.loads, child.stdout) if one.get("name") == "flows_started")
time.sleep((start_ns + 10**9 - before_ms * 10**6 - time.monotonic_ns()) / 1e9)
server.kill()
end = child.communicate()[0].splitlines()[-1]
print(json.dumps([child.returncode, json.loads(end)]))
"""


@pytest.mark.parametrize("before_ms", [100, 20, 5])
def test_the_server_dies_just_before_the_end(lab: Lab, before_ms: int) -> None:
    (lab.folder / "net.toml").write_text(FILE)
    (lab.folder / "job.py").write_text(JOB)
    lab.write_token()
    done = lab("run", "./net.toml", "--time", "virtual", "--", "python3", "-I", "-S", "job.py", KTRXER, before_ms)
    assert done.returncode == 0, done.stderr
    status, end = json.loads(done.stdout)
    reasons = [one["text"] for one in end["reasons"]]
    assert status == 3 and end["verdict"] == "degraded"
    assert any("the server was stopped" in text for text in reasons), reasons
    named = [text for text in reasons if text.startswith("flow ")]
    assert named and all("early, after" in text for text in named), reasons
    if before_ms == 100:  # bytes down that arrive 20 ms before the end are as planned
        assert len(named) == 2 and "flow 1 (down)" in named[1], reasons
