# SPDX-License-Identifier: MIT OR Apache-2.0
"""The systemd units of `ktrxer serve`, checked by systemd-analyze, without a running systemd."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SOCKET = Path(__file__).resolve().parents[2] / "packaging/systemd/ktrxer-serve.socket"
UNIT = Path(__file__).resolve().parents[2] / "packaging/systemd/ktrxer-serve.service.in"
PAGE = Path(__file__).resolve().parents[2] / "docs/howto/installing.md"
Analyze = Callable[..., subprocess.CompletedProcess[str]]
EXPOSURE = 1.6  # of 10. What remains is the network itself, and the state of the clock, which ProtectClock= would refuse to report


@pytest.fixture
def analyze(tmp_path: Path) -> Analyze:
    """systemd-analyze, in a folder with the two units; /bin/true stands in for the program."""
    program = shutil.which("systemd-analyze")
    if not program:
        pytest.skip("no systemd-analyze on this host")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ktrxer").symlink_to("/bin/true")
    (tmp_path / "ktrxer-serve.service").write_text(UNIT.read_text().replace("@BINDIR@", str(tmp_path / "bin")))
    shutil.copy(SOCKET, tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *words], check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path)

    return run


def test_systemd_accepts_the_units(analyze: Analyze, tmp_path: Path) -> None:
    units = ["./ktrxer-serve.socket", "./ktrxer-serve.service"]
    assert not faults(analyze("verify", "--man=no", *units))
    # systemd-analyze finds a fault in a changed unit.
    path = tmp_path / "ktrxer-serve.socket"
    path.write_text(path.read_text().replace("BindIPv6Only=ipv6-only", "BindIPv6Only=never").replace("Accept=no", "Acept=no"))
    assert len(faults(analyze("verify", "--man=no", *units))) == 2


def test_systemd_accepts_the_options_of_the_page(analyze: Analyze, tmp_path: Path) -> None:
    (edit,) = re.findall(r"```ini\n(\[Service\].*?)```", PAGE.read_text(), re.S)
    path = tmp_path / "ktrxer-serve.service.d/override.conf"
    path.parent.mkdir()
    path.write_text(edit.replace("/usr/bin/ktrxer", str(tmp_path / "bin/ktrxer")))
    assert not faults(analyze("verify", "--man=no", "./ktrxer-serve.service"))
    path.write_text(path.read_text().replace("ExecStart=\n", ""))
    assert faults(analyze("verify", "--man=no", "./ktrxer-serve.service")), "two commands"


def faults(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "ktrxer-serve" in line]


def test_the_unit_is_hardened(analyze: Analyze) -> None:
    done = analyze("security", "--offline=true", "--no-pager", "./ktrxer-serve.service")
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    assert float(found[1]) <= EXPOSURE, done.stdout
