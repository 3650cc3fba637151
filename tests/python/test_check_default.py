# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check` without a server: the server of the configuration, the question before the first use of the shipped one, and the kept answer."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from ktrxer import configured
from ktrxer.check import default

URL = "https://nowhere.invalid/nq"  # no host has this name (RFC 6761)
SHIPPED = {"key": "check.nq", "value": URL, "source": default.SHIPPED}


def given(monkeypatch: pytest.MonkeyPatch, *values: dict[str, str]) -> default.Default | None:
    monkeypatch.setenv(configured.VARIABLE, json.dumps(values))
    monkeypatch.setattr(configured, "_values", None)
    return default.default()


def test_the_host_of_the_configuration_comes_before_its_nq(monkeypatch: pytest.MonkeyPatch) -> None:
    host = {"key": "host", "value": "far", "source": "/etc/ktrxer/config.toml:1"}
    found = given(monkeypatch, host, SHIPPED)
    assert found == default.Default("far", "", "/etc/ktrxer/config.toml:1") and found.stated == "Server: far, from /etc/ktrxer/config.toml:1."
    shipped = given(monkeypatch, SHIPPED)
    assert shipped is not None and shipped.nq == URL
    assert shipped.stated.startswith("Server: nowhere.invalid, the server that Apple runs") and "--server HOST" in shipped.stated
    assert given(monkeypatch, SHIPPED | {"value": ""}) is None and given(monkeypatch) is None


def check(home: Path, answer: str | None, *words: str) -> tuple[int, str]:
    """The status and all that is printed. `answer`: on a terminal; None: without one."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), configured.VARIABLE: json.dumps([SHIPPED])}
    line = [sys.executable, "-m", "ktrxer", "check", *words]
    if answer is None:
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
        return done.returncode, done.stderr
    master, slave = pty.openpty()
    with subprocess.Popen(line, env=environment, stdin=slave, stdout=slave, stderr=slave) as child:
        os.close(slave)
        os.write(master, answer.encode())
        said = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # its end of the terminal is closed
                break
            said += part
        return child.wait(60), said.decode()


@pytest.mark.slow
def test_a_terminal_asks_once(tmp_path: Path) -> None:
    kept = tmp_path / ".local" / "state" / "ktrxer" / "check-server"
    status, said = check(tmp_path, None)
    assert status == 2 and "give --yes" in said and not kept.exists()
    status, said = check(tmp_path, "n\n")
    assert status == 2 and "[y/N]" in said and "not measured" in said and not kept.exists()
    status, said = check(tmp_path, "y\n")
    assert status == 1 and "[y/N]" in said and kept.read_text() == f"{URL}\n", "the name of the server is looked up, and does not exist"
    status, said = check(tmp_path, "")
    assert status == 1 and "[y/N]" not in said, said
    status, said = check(tmp_path, None)
    assert status == 1 and "--yes" not in said, "nor is --yes needed then"
    kept.write_text("https://other.invalid/nq\n")
    assert check(tmp_path, None)[0] == 2, "the answer was for another server"


def test_an_answer_that_cannot_be_kept_counts_for_this_run(tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("no folder")
    status, said = check(tmp_path, "y\n")
    assert status == 1 and "The answer is not kept" in said and "Traceback" not in said
    assert check(tmp_path, None, "--yes")[0] == 1
