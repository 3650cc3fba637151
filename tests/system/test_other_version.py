# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python half beside a command of another version: `ktrxer run` starts a program that changes the objects of the command of this build."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the Python part's packages are not installed: `make .venv/.ok`")

from flows import secret
from ktrxer.store import open_run
from test_experiments import bottleneck

ROOT = Path(__file__).resolve().parents[2]
NEWER = """
    made["colour"] = "red"
    if made["type"] == "sample" and made.get("kind") in ("bytes", "round_trips"):
        print(json.dumps({"type": "sample", "kind": "jump", "height_ns": 5}))
    if made["type"] == "end":
        made["reasons"] = [{"id": "too_sunny", "text": "the sun shines", "severity": "degraded", "cause": "sky", "lux": 5}]
        made["verdict"] = "degraded"
"""
OLDER = """
    for name in ("own_queue_ns", "far_queue_ns", "adjusted_ns", "own_qdisc", "own_queue_us", "late_after_us", "host", "output"):
        made.pop(name, None)
    if made["type"] == "end":
        made["reasons"], made["verdict"] = ["the path was slow"], "degraded"
"""


def program(folder, ktrxer, change):
    path = folder / "ktrxer"
    path.write_text(
        f"#!{sys.executable}\nimport json, subprocess, sys\nif '--jsonl' not in sys.argv:\n    sys.exit(subprocess.run([{str(ktrxer)!r}, *sys.argv[1:]]).returncode)\n"
        f"child = subprocess.Popen([{str(ktrxer)!r}, *sys.argv[1:]], stdout=subprocess.PIPE)\nfor line in child.stdout:\n    made = json.loads(line){change}"
        "    print(json.dumps(made), flush=True)\nsys.exit(child.wait())\n"
    )
    path.chmod(0o755)
    return path


@pytest.mark.plain_build
@pytest.mark.parametrize(("change", "sentence", "unknown"), [(NEWER, "the sun shines", {"bytes colour", "sample jump"}), (OLDER, "the path was slow", set())])
def test_run_beside_a_command_of_another_version(ktrxer, serve, requires_namespaces, tmp_path, change, sentence, unknown):
    """Its samples are stored, its reasons are shown, and one line names the fields that this version does not have."""
    token = secret(tmp_path / "token")
    environment = os.environ | {"KTRXER_BIN": str(program(tmp_path, ktrxer, change)), "PYTHONPATH": f"{ROOT}/python"}
    with bottleneck() as (a, _, b):
        serve(b, "--token-file", token)
        words = ["run", "tcp_upload", "--for", "2", "--delay", "0.5", "--no-extras", "-H", "10.78.0.2", "-D", tmp_path, "--token-file", token]
        done = a.run([sys.executable, "-m", "ktrxer", *map(str, words)], env=environment, check=False, timeout=110)
    assert done.returncode == 3 and "Traceback" not in done.stdout + done.stderr, done.stderr
    assert sentence in done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("not read")]
    assert len(said) == (1 if unknown else 0)
    (file,) = tmp_path.glob("*.ktrxer")
    run = open_run(file)
    assert not [one for one in run.meta.sentences if "cannot be read as results" in one or "defect" in one], run.meta.sentences
    assert all(len(run.arrays(series)["t_ns"]) for series in run.meta.series if series.kind in ("latency", "bytes"))
    assert unknown <= set(run.meta.unknown)
    summary = subprocess.run([sys.executable, "-m", "ktrxer", "summary", str(file), "--json"], env=environment, capture_output=True, text=True, check=True)
    assert bool(json.loads(summary.stdout)["unknown"]) == bool(unknown)
