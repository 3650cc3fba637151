# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check` on the access line of `ktrxer lab run access`: client, modem, isp, server; 10 Mbit/s up and 50 down, each with a FIFO of
250,000 bytes between modem and isp. That is 200 ms up and 40 ms down."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the Python part's packages are not installed: `make .venv/.ok`")
jsonschema = pytest.importorskip("jsonschema", reason="a test package is not installed: python/requirements-test.txt")

from ktrxer.store import open_run  # noqa: E402
from noise import busy  # noqa: E402

pytestmark = pytest.mark.plain_build
ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/check.schema.json").read_text())
WEB = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'tests/system/web.py'))} 8080"
QUICK = ("--for", "6", "--delay", "4")


def check(folder: Path, ktrxer: Path, beside: str, *words: object, topology: tuple[str, ...] = ()) -> tuple[int, dict[str, Any], str]:
    """The status, the object, and standard error."""
    command = [sys.executable, "-m", "ktrxer", "lab", "run", "access", *topology, "--beside", f"server={beside}", "--",
               sys.executable, "-m", "ktrxer", "check", *QUICK, *map(str, words), "--json", "-D", str(folder)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]), "KTRXER_BIN": str(ktrxer)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    made = json.loads(done.stdout) if done.stdout.strip() else {}
    if made:
        jsonschema.validate(made, SCHEMA)
        assert len(made["answer"]) == 3 and Path(made["file"]).is_file()
    return done.returncode, made, done.stderr


@pytest.fixture
def serving(tmp_path, ktrxer):
    token = tmp_path / "token"
    token.write_text("a-secret-of-the-tests-of-ktrxer\n")
    token.chmod(0o600)
    serve = f"{shlex.quote(str(ktrxer))} serve --token-file {shlex.quote(str(token))} | {{ read -r _ && echo listening; cat >/dev/null; }}"
    return serve, token


def known(folder: Path, ktrxer: Path, beside: str, interval_ms: int, *words: object, **more: Any) -> tuple[int, dict[str, Any]]:
    """A check that has an answer, also on a busy machine: the send times of late probes are known."""
    status, made, error = check(folder, ktrxer, beside, *words, "-i", f"{interval_ms}ms", **more)
    assert made and made["verdict"] != "invalid", (error, made and made["reasons"])
    return status, made


def loads(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {load["direction"]: load for load in made["loads"]}


def is_the_access_line(made: dict[str, Any]) -> None:
    """The queue of the modem and that of the provider, between the same two routers."""
    found = loads(made)
    assert 40 < found["up"]["added_ms"] < 230 and found["up"]["low_ms"] <= found["up"]["added_ms"] <= found["up"]["high_ms"], made
    assert 8 < found["down"]["added_ms"] < 50, made
    # Hosts without a processor send less, and count late.
    least, most = (0.5, 1.1) if busy(made) else (1, 1)
    assert least * 8.5e6 < found["up"]["rate_bps"] < most * 10e6 and least * 35e6 < found["down"]["rate_bps"] < most * 50e6, made
    for way, load in found.items():
        assert (load["queue"]["place"], load["queue"]["before_hop"]) == (way, 2), made
        assert [hop["hop"] for hop in load["hops"]] == [1, 2]
        assert load["hops"][0]["added_ms"] < 5, "the modem's answers wait in no queue"
    assert made["bloated"] in ("somewhat", "yes") and "between router 1" in made["answer"][1]
    assert least * 7.6e6 < found["up"]["shaper_bps"] < most * 9e6


def test_against_our_server(requires_namespaces, needs_command, tmp_path, ktrxer, serving):
    serve, token = serving
    status, made = known(tmp_path, ktrxer, serve, 50, "--server", "server", "--token-file", token)
    assert made["probes"] == "UDP" and status == (0 if made["verdict"] == "valid" else 3)
    is_the_access_line(made)
    run = open_run(made["file"])
    assert run.meta.test == "check" and run.meta.command[:2] == ["ktrxer", "check"] and run.meta.settings["parameters"]["hops"]


def test_a_short_queue_is_not_bloated(requires_namespaces, needs_command, tmp_path, ktrxer, serving):
    serve, token = serving
    short = ("--set", "queue=bfifo limit 15000")
    status, made = known(tmp_path, ktrxer, serve, 50, "--server", "server", "--token-file", token, topology=short)
    assert made["bloated"] == "no" and "There is nothing to repair" in made["answer"][2], made


def test_against_a_web_server(requires_namespaces, needs_command, tmp_path, ktrxer):
    words = ("--download", "http://server:8080/large", "--upload", "http://server:8080/upload")
    status, made = known(tmp_path, ktrxer, WEB, 200, *words)
    assert made["probes"] == "ICMP" and status == (0 if made["verdict"] == "valid" else 3)
    is_the_access_line(made)


def test_the_gateway_alone(requires_namespaces, needs_command, tmp_path, ktrxer):
    status, made = known(tmp_path, ktrxer, WEB, 200, "--download", "http://server:8080/large", "--gateway")
    (load,) = made["loads"]
    assert load["direction"] == "down" and load["added_ms"] < 8 and load["hops"] == [] and made["bloated"] == "unknown", "no all-clear for the upload"


def test_predictable_failures(requires_namespaces, needs_command, tmp_path, ktrxer):
    """Nothing is measured, and one line says why."""
    for words, complaint in (
        (("--download", "http://server:8080/none"), "HTTP download: http://server:8080/none: the server answers with status 404"),
        (("--download", "http://server:8081/large"), "no connection: Connection refused"),
        (("--download", "http://192.0.2.77/large"), "192.0.2.77"),
    ):
        status, made, error = check(tmp_path, ktrxer, WEB, *words)
        assert (status, made) == (1, {}) and complaint in error, error
    assert not list(tmp_path.glob("*.ktrxer*"))


def test_the_responsiveness_test(requires_namespaces, needs_command, tmp_path, ktrxer, serving):
    pytest.importorskip("h2", reason="the Python package h2 is not installed (python/requirements.txt)")
    if shutil.which("openssl") is None:
        pytest.fail("openssl is missing: scripts/setup installs it")
    _, token = serving
    ca = tmp_path / "far.pem"
    words = [sys.executable, "-m", "ktrxer", "serve-http", "--name", "server", "--token-file", str(token), "--cert-out", str(ca)]
    status, made, error = check(tmp_path, ktrxer, shlex.join(words), "--nq", "https://server:8443", "--token-file", token, "--ca-file", ca, "--for", "15")
    assert made, error
    found = loads(made)
    assert found["up"]["added_ms"] > 40 and found["up"]["queue"]["before_hop"] == 2, made
    assert {one["direction"] for one in made["responsiveness"]} == {"up", "down"}
    for one in made["responsiveness"]:
        assert one["rpm"] > 0 and one["goodput_bps"] > 5e6, made
    up = next(one for one in made["responsiveness"] if one["direction"] == "up")
    assert 100 < up["rpm"] < 1500, "a round trip of about 200 ms: 300 a minute"
    assert "a-secret" not in Path(made["file"]).read_bytes().decode("latin-1"), "the token is not stored"
