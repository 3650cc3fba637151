# SPDX-License-Identifier: MIT OR Apache-2.0
"""The systemd unit of `ktrxer serve`: what systemd itself says of its exposure, without a running systemd."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[2] / "packaging/systemd/ktrxer-serve.service.in"
EXPOSURE = 1.6  # of 10. What remains is the network itself, and the state of the clock, which ProtectClock= would refuse to report


def test_the_unit_is_hardened(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        pytest.skip("no systemd-analyze on this host")
    unit = tmp_path / "ktrxer-serve.service"
    unit.write_text(UNIT.read_text().replace("@BINDIR@", "/usr/bin"))
    done = subprocess.run([analyze, "security", "--offline=true", "--no-pager", str(unit)], check=False, capture_output=True, text=True, timeout=60)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    assert float(found[1]) <= EXPOSURE, done.stdout
