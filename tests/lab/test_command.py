# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer lab vm`: its results, and each of its failures."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

needs_qemu = pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="qemu-system-x86_64 is not installed (make lab-setup)")
needs_small_disk = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode != 0,
    reason="no user namespaces here (unshare -Urm), so no small disk can be made",
)
LAB = [sys.executable, "-m", "ktrxer_lab"]
ROUTER = ("--device", "router")  # boots fastest
DATA = Path(__file__).resolve().parents[2] / "lab" / "ktrxer_lab" / "data"


def lab(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LAB, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False)


def on_small_disk(folder: Path, megabytes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = 'mount -t tmpfs -o "size=$1m" none "$2" && shift 2 && exec "$@"'
    command = ["unshare", "-Urm", "sh", "-c", script, "sh", str(megabytes), str(folder), *LAB, *arguments]
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def marked() -> tuple[str, dict[str, str]]:
    value = os.urandom(8).hex()
    return value, {"KTRXER_TEST_MARK": value}


def processes_of(mark: str) -> list[str]:
    """The processes whose environment carries the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "comm").read_text().strip())
        except OSError:
            continue
    return found


def gone_within(mark: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while processes_of(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@needs_qemu
@pytest.mark.slow  # test_boots_in_ten_seconds has the same without the command line
def test_output_status_and_files_come_back(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b.txt").write_text("hello\n")
    script = "cat '/data/a b.txt'; echo wrong >/dev/stderr; mkdir -p /out/deep; head -c 3000000 /dev/zero >/out/deep/zeros; echo $WORD >/out/word; exit 7"
    done = lab(
        *("vm", "--put", f"{tmp_path}/in:/data", "--get", f"/out:{tmp_path}/out", "--get", f"/out/word:{tmp_path}/word"),
        *("--env", "WORD=it's $HOME", "--", "sh", "-c", script),
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "hello\n", "wrong\n")
    assert (tmp_path / "out" / "deep" / "zeros").stat().st_size == 3_000_000
    assert (tmp_path / "word").read_text() == "it's $HOME\n"


@needs_qemu
def test_much_output_arrives_whole_and_a_missing_file_is_told(tmp_path: Path) -> None:
    done = lab("vm", *ROUTER, "--get", f"/nowhere:{tmp_path}/x", "--timeout", "200", "--", "seq", "1", "60000")
    assert done.stdout == "".join(f"{number}\n" for number in range(1, 60001))
    assert (done.returncode, done.stderr) == (125, "ktrxer lab: --get /nowhere: the device has no such file\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vm", "--device", "toaster", "--", "true"], "no device 'toaster'; choose one of: pc, phone, router, uml"),
        (["vm", "--kernel", "2.4", "--", "true"], "no kernel '2.4' for the pc; choose one of: 5.10, 6.1, 6.12, 6.12-debug, 7.2, 7.3"),
        (["vm", "--device", "router", "--kernel", "6.12", "--", "true"], "no kernel '6.12' for the router; choose one of: 6.1"),
        (["vm", "--time", "soon", "--", "true"], "--time: 'soon' is not known; it is one of: real, virtual"),
        (["vm"], "no command; give it after --, e.g. ktrxer lab vm -- uname -a"),
        (["vm", "--topology", "ring", "--", "true"], "no topology 'ring'; choose one of: access, flent"),
        (["vm", "--topology", "flent", "--set", "speed=1", "--", "true"], "topology flent has no parameter 'speed'; choose one of: delay, leaf, rate"),
        (["vm", "--topology", "flent", "--in", "moon", "--", "true"], "no node 'moon' in flent; choose one of: client, left, middle, right, server"),
        (["vm", "--put", "/nowhere:/x", "--", "true"], "--put /nowhere: No such file or directory"),
        (["vm", "--timeout", "0", "--", "true"], "--timeout: '0s' is too small: from 1s to 24h is possible"),
        (["vm", "--cpus", "4", "--", "true"], "virtual time has one CPU; --cpus needs --time real"),
        (["vm", "--peer", "true", "--", "true"], "--peer needs --time real: in virtual time each machine has its own clock"),
    ],
)
def test_wrong_use_is_one_clear_line(arguments: list[str], message: str) -> None:
    done = lab(*arguments)
    assert (done.returncode, done.stderr) == (2, f"ktrxer lab: {message}\n")


@needs_qemu
def test_a_panic_is_reported_as_failure() -> None:
    done = lab("vm", *ROUTER, "--timeout", "150", "--", "sh", "-c", "echo before; sleep 1; echo c >/proc/sysrq-trigger")
    assert (done.returncode, done.stdout) == (125, "before\n")
    told = done.stderr.splitlines()[-1]
    assert told.startswith("ktrxer lab: router (6.1, virtual time): its kernel died during the command: Kernel panic - not syncing")


@needs_qemu
def test_json_tells_all_and_so_are_kernel_warnings() -> None:
    done = lab("vm", *ROUTER, "--timeout", "150", "--json", "--", "sh", "-c", "echo out; echo err >&2; sleep 2; echo '<4>something smells' >/dev/kmsg")
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["stdout"], answer["stderr"]) == (0, "out\n", "err\n")
    assert 2 <= answer["guest_s"] < 2.1
    assert answer["kernel_warnings"] == ["something smells"]
    import_module("jsonschema").validate(answer, json.loads((DATA.parents[2] / "docs/schema/lab.schema.json").read_text()))


@needs_qemu
@pytest.mark.parametrize("mode", ["virtual", pytest.param("real", marks=pytest.mark.slow)])
def test_a_hang_ends_at_the_limit(mode: str) -> None:
    mark, environment = marked()
    start = time.monotonic()
    done = lab("vm", *ROUTER, "--time", mode, "--timeout", "8", "--", "sh", "-c", "while :; do :; done", **environment)
    assert done.returncode == 124
    assert "not done after 8 s" in done.stderr.splitlines()[-1]
    assert time.monotonic() - start < 40
    assert processes_of(mark) == []


@needs_qemu
@pytest.mark.parametrize("sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL])
def test_an_interrupt_leaves_nothing_running(sent: signal.Signals, tmp_path: Path) -> None:
    mark, environment = marked()
    environment = {**os.environ, **environment, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*LAB, "vm", *ROUTER, "--", "sh", "-c", "while :; do :; done"], env=environment) as process:
        deadline = time.monotonic() + 60
        while not any(name.startswith("qemu-system") for name in processes_of(mark)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(sent)
        assert process.wait(10) == (-signal.SIGKILL if sent == signal.SIGKILL else 130)
    assert gone_within(mark, 5)
    if sent != signal.SIGKILL:
        assert list(tmp_path.iterdir()) == []


@needs_qemu
@needs_small_disk
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    done = on_small_disk(tmp_path, 8, "vm", *ROUTER, "--", "true")
    assert done.returncode == 125
    assert done.stderr.startswith(f"ktrxer lab: the disk of {tmp_path}")
    assert " is full; " in done.stderr
    done = on_small_disk(tmp_path, 64, "vm", *ROUTER, "--timeout", "150", "--json", "--", "head", "-c", "100000000", "/dev/zero")
    assert done.returncode == 125
    assert "is full: the output of the router is truncated" in done.stderr


@needs_qemu
def test_a_missing_package_is_one_line(tmp_path: Path) -> None:
    data = tmp_path / "lab"
    shutil.copytree(DATA, data)
    images = (data / "images.toml").read_text()
    (data / "images.toml").write_text(images.replace('"iperf3", "libiperf0"', '"iperf77", "libiperf0"'))
    done = lab("vm", "--", "true", KTRXER_LAB_DATA=str(data))
    assert (done.returncode, done.stderr) == (125, "ktrxer lab: no package 'iperf77' in Debian bookworm for amd64\n")
    (data / "images.toml").write_text(images.replace('"iperf3", "libiperf0", ', '"iperf3", '))
    done = lab("vm", "--", "true", KTRXER_LAB_DATA=str(data))
    assert done.returncode == 125
    told = done.stderr.splitlines()[-1]
    assert told.startswith("ktrxer lab: layer net for amd64: libiperf.so.0, which /usr/bin/iperf3 needs, is in none of its packages")


def test_a_missing_emulator_is_one_line(tmp_path: Path) -> None:
    done = lab("vm", "--", "true", PATH=str(tmp_path))
    install = "apt-get install --no-install-recommends qemu-system-x86"
    assert (done.returncode, done.stderr) == (125, f"ktrxer lab: qemu-system-x86_64 is not installed; install it with: {install}\n")


@needs_qemu
@pytest.mark.slow
def test_images_are_built_once_and_again_when_their_inputs_change(tmp_path: Path) -> None:
    data = tmp_path / "lab"
    shutil.copytree(DATA, data)
    images = data / "images.toml"
    images.write_text(images.read_text().replace('"usr/share/lintian/*",', f'"usr/share/lintian/*", "no/such/{os.urandom(4).hex()}",'))
    first = lab("vm", "--", "true", KTRXER_LAB_DATA=str(data))
    assert (first.returncode, first.stdout) == (0, "")
    assert "preparing the layer base for amd64 ..." in first.stderr
    second = lab("vm", "--", "true", KTRXER_LAB_DATA=str(data))
    assert (second.returncode, second.stderr) == (0, "")


@needs_qemu
@pytest.mark.slow
def test_two_machines_share_a_network() -> None:
    script = "sleep 2; ping -c 3 -q 10.65.0.2 && iperf3 -c 10.65.0.2 -n 1M"
    done = lab("vm", "--time", "real", "--timeout", "100", "--peer", "iperf3 -s", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert "3 packets received" in done.stdout or "3 received" in done.stdout
    assert "receiver" in done.stdout
