# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer lab run`: a topology has the properties of its file, and nothing of it remains after any end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.plain_build
ROOT = Path(__file__).resolve().parents[2]
SLOW = """
hosts = ["near", "far"]
routers = ["mid"]
[parameters]
loss = "0%"
[[links]]
ends = ["near", "mid"]
from.near = { rate = "4mbit", queue = "pfifo limit 50" }
loss = "{loss}"
[[links]]
ends = ["mid", "far"]
from.mid = { rate = "2mbit", queue = "bfifo limit 60000" }
"""
# Sends UDP from near to far for two seconds at the highest rate. Prints the received rate in bit/s of Ethernet frames, of all and of the fastest 20
# in a row, by the kernel's arrival stamps: a receiver that waits for a processor reads its first packet late.
PUSH = """
import socket, subprocess, sys, threading, time
inside = ["ip", "netns", "exec", "far", sys.executable, "-c", '''
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", 9999)); s.settimeout(2)
s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
print("ready", flush=True)
at = []
try:
    while True:
        data, ((_, _, stamp),), _, _ = s.recvmsg(2000, 100); seconds, ns = struct.unpack("@ll", stamp); at.append(seconds + ns / 1e9)
except TimeoutError:
    bits = (len(data) + 42) * 8
    print((len(at) - 1) * bits / (at[-1] - at[0]), max(20 * bits / (b - a) for a, b in zip(at, at[20:])), flush=True)
''']
far = subprocess.Popen(inside, stdout=subprocess.PIPE, text=True)
far.stdout.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("far", 9999))
end = time.monotonic() + 2
while time.monotonic() < end:
    s.send(bytes(958)); time.sleep(0.001)
print(far.communicate(timeout=60)[0])
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "slow.toml"
    path.write_text(SLOW)
    return path


def words(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "ktrxer", "lab", *map(str, arguments)]


def lab(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(words(*arguments), env=environment, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def has_netem() -> bool:
    done = subprocess.run(
        ["unshare", "-n", "tc", "qdisc", "replace", "dev", "lo", "root", "netem", "delay", "1ms"], capture_output=True, timeout=20
    )
    return done.returncode == 0


def processes(mark: str) -> list[str]:
    """The processes with this text in their command line or environment, which every child of the lab inherits."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes() + (process / "environ").read_bytes():
                found.append(process.name)
    return found


def gone(mark: str, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while processes(mark):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def nothing_left(requires_namespaces: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that no process and no name holds a namespace of the test. Other programs may use this machine meanwhile."""
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("KTRXER_TEST_MARK", mark)
    yield
    assert gone(mark), f"processes were left behind: {processes(mark)}"
    names = {path.name for path in Path("/run/netns").glob("*")} | {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}
    assert not names & {"near", "mid", "far", "wire-1", "/etc/hosts"}, "names or mounts were left behind"


def test_hosts_know_each_other_by_name_and_routers_forward(nothing_left: None, file: Path) -> None:
    done = lab("run", file, "--", "sh", "-c", "ping -c 2 -i 0.05 -W 2 far && ping -6 -c 2 -i 0.05 -W 2 far-6 && ip netns list | sort | tr '\\n' ' '")
    assert done.returncode == 0, done.stderr
    assert "2 packets transmitted, 2 received" in done.stdout and "from far-6 (fd00:64:2::2)" in done.stdout
    assert "ttl=63" in done.stdout, "one router is between them"
    assert re.search(r"far (\(id: \d+\) )?mid (\(id: \d+\) )?near", done.stdout)
    assert done.stderr == ""


def test_names_without_a_file_of_hosts_on_the_system(nothing_left: None, file: Path) -> None:
    """A root from debootstrap has none. Here /etc is hidden by a copy that lacks it, in a mount namespace."""
    hide = (
        'set -e; d=$(mktemp -d); trap "rm -rf $d" EXIT; cp -a /etc/nsswitch.conf /etc/ld.so.cache /etc/passwd /etc/group /etc/alternatives "$d"; '
        'mkdir "$d/folder"; echo here >"$d/folder/file"; mount --bind "$d" /etc; "$@"; [ ! -e /etc/hosts ]; umount -l /etc'
    )
    inner = words("run", file, "--", "sh", "-c", "getent hosts far; ping -c 1 -W 2 far; cat /etc/folder/file; ip netns list | wc -l; ls /etc")
    inside = ["unshare", "-m" if os.geteuid() == 0 else "-Urm", "sh", "-c", hide, "hide", *inner]
    done = subprocess.run(inside, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert re.search(r"10\.\S+ +far ", done.stdout) and "1 packets transmitted, 1 received" in done.stdout
    assert "here\n4\nalternatives\nfolder\ngroup\nhosts\n" in done.stdout


def test_a_lab_inside_a_lab_has_names_of_its_own(nothing_left: None, file: Path) -> None:
    inner = words("run", "access", "--", "getent", "hosts", "server", "client", "far")
    done = lab("run", file, "--", *inner)
    assert (done.returncode, done.stderr) == (2, ""), done.stderr  # `far` is a host of the outer lab
    assert [line.split() for line in done.stdout.splitlines()] == [["10.64.3.2", "server", "server-46"], ["10.64.1.1", "client", "client-46"]]


def test_the_narrowest_link_decides(nothing_left: None, file: Path) -> None:
    done = lab("run", file, "--", sys.executable, "-c", PUSH)
    assert done.returncode == 0, done.stderr
    # A sender that waits for a processor for longer than the queue holds sends less in all.
    mean, fastest = map(float, done.stdout.split())
    assert mean < 2.06e6 and fastest > 1.9e6, "8 Mbit/s were sent, the second link has 2"
    print(f"figure: {mean / 1e6:.3f} Mbit/s of 2, the fastest 20 packets {fastest / 1e6:.3f}")


def test_a_command_runs_where_it_is_told_and_its_status_comes_back(nothing_left: None, file: Path) -> None:
    done = lab("run", file, "--in", "mid", "--", "sh", "-c", "ip -br address show to 10.64.0.0/16; tc qdisc show dev to-far; exit 7")
    assert done.returncode == 7
    assert "10.64.1.2/24" in done.stdout and "10.64.2.1/24" in done.stdout
    assert "qdisc htb 1: root" in done.stdout and "qdisc bfifo 10: parent 1:1 limit 60000b" in done.stdout
    assert lab("run", file, "--", "sh", "-c", "kill -9 $$").returncode == 137
    missing = lab("run", file, "--", "no-such-program")
    assert (missing.returncode, missing.stderr) == (127, "ktrxer lab: no-such-program: command not found\n")


def test_what_runs_beside_ends_with_the_command(nothing_left: None, file: Path) -> None:
    mark = f"sleep 54{os.getpid()}"
    done = lab("run", file, "--beside", f"far=echo listening; {mark} & {mark}", "--", "echo", "done")
    assert done.returncode == 0
    assert done.stdout == "done\n" and "far| listening\n" in done.stderr
    assert gone(mark)
    failed = lab("run", file, "--beside", "far=exit 3", "--", "echo", "done")
    assert (failed.returncode, failed.stdout) == (125, "")
    assert failed.stderr == "ktrxer lab: the command beside in far ended at once, with exit status 3\n"


def test_commands_beside_start_one_after_the_other(nothing_left: None, file: Path, tmp_path: Path) -> None:
    up = tmp_path / "up"
    first, second = f"far=sleep 0.3; touch {up}; echo up; exec sleep 60", f"mid=test -e {up} && echo up && exec sleep 60"
    done = lab("run", file, "--beside", first, "--beside", second, "--", "echo", "done")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize(("end", "own", "status"), [("exit 3", 0, 3), ("kill -9 $$", 0, 137), ("exit 3", 7, 7), ("exit 0", 0, 0)])
def test_the_failure_of_a_command_beside_is_that_of_the_lab(nothing_left: None, file: Path, tmp_path: Path, end: str, own: int, status: int) -> None:
    beside = f"far=echo $$ >{tmp_path}/pid; echo up; until [ -e {tmp_path}/go ]; do sleep 0.01; done; {end}"
    command = f"touch {tmp_path}/go; while [ -d /proc/$(cat {tmp_path}/pid) ]; do sleep 0.01; done; exit {own}"
    done = lab("run", file, "--beside", beside, "--", "sh", "-c", command)
    assert done.returncode == status, done.stderr
    failed = 137 if "kill" in end else int(end.split()[1])
    assert ("the command beside in far ended with exit status" in done.stderr) == bool(failed)
    assert f"with exit status {failed}, before the command" in done.stderr or not failed


def test_a_time_limit(nothing_left: None, file: Path) -> None:
    began = time.monotonic()
    done = lab("run", file, "--timeout", "0.5", "--", "sleep", "60")
    assert (done.returncode, done.stdout) == (124, "")
    assert done.stderr == "ktrxer lab: the command has not ended within 0.5 s (--timeout) and is ended\n"
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["run", "access", "true"], "ktrxer lab run: 'true' is one word too many; the command comes after --: ktrxer lab run access -- true (see `ktrxer lab run --help`)"),
        (["vm", "uname", "-a"], "ktrxer lab vm: 'uname' is one word too many; the command comes after --: ktrxer lab vm -- uname -a (see `ktrxer lab vm --help`)"),
        (["run", "access", "--nonsense", "--", "true"], "ktrxer lab run: --nonsense: no such option (see `ktrxer lab run --help`)"),
        (["rnu"], "ktrxer lab: 'rnu': no such command; did you mean `ktrxer lab run`? (see `ktrxer lab --help`)"),
        (["xyz"], "ktrxer lab: 'xyz': no such command (see `ktrxer lab --help`)"),
        (["--bogus"], "ktrxer lab: --bogus: no such option (see `ktrxer lab --help`)"),
        ([], "ktrxer lab: COMMAND is missing: run, vm, devices, setup, module, topology (see `ktrxer lab --help`)"),
        (["run", "access", "--timeout", "0", "--", "true"], "ktrxer lab: --timeout: '0s' is too small: from 100ms to 168h is possible"),
    ],
)
def test_wrong_words(given: list[str], expected: str) -> None:
    done = lab(*given)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{expected}\n")


def test_a_server_and_its_client_share_a_token(nothing_left: None, ktrxer: Path, tmp_path: Path) -> None:
    """The commands of README and of the page on topologies work without a token file."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "PATH": f"{ktrxer.parent}:{os.environ['PATH']}"}
    command = words("run", "access", "--beside", "server=ktrxer serve", "--", "ktrxer", "flow", "up", "server", "--for", "300ms", "--json")
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert json.loads(done.stdout)["bytes"] > 10_000, done.stderr
    assert "token of clients" not in done.stderr and list(tmp_path.iterdir()) == []


def test_loss_is_what_was_asked_for(nothing_left: None, file: Path) -> None:
    if not has_netem() and shutil.which("nft") is None:
        pytest.skip("neither netem in this kernel nor nft on this machine: nothing can lose packets")
    done = lab("run", file, "--set", "loss=30%", "--", "ping", "-c", "300", "-i", "0.002", "-W", "1", "-q", "far")
    received = int(re.search(r"(\d+) received", done.stdout)[1])
    # 30 % loss in each direction: 49 % return; five standard deviations of 300 trials.
    assert received == pytest.approx(300 * 0.49, abs=5 * (300 * 0.49 * 0.51) ** 0.5), done.stdout + done.stderr


def test_what_the_kernel_lacks_is_said_in_one_line(nothing_left: None, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    link = 'hosts = ["a", "b"]\n[[links]]\nends = ["a", "b"]\n'
    wrong.write_text(link + 'queue = "nosuch"\n')
    done = lab("run", wrong, "--", "true")
    assert done.returncode == 125 and done.stderr.count("\n") == 1
    assert "this kernel has no nosuch (the queue from a to b, wrong.toml:4); the kernel of virtual time has more: ktrxer lab run " in done.stderr
    wrong.write_text(link + 'queue = "pfifo limit many"\n')
    done = lab("run", wrong, "--", "true")
    assert done.returncode == 125 and done.stderr.startswith("ktrxer lab: pfifo (the queue from a to b, wrong.toml:4): ")
    assert "limit" in done.stderr and "device lab" not in done.stderr and done.stderr.count("\n") == 1
    if not has_netem():
        wrong.write_text(link + 'delay = "5ms"\n')
        done = lab("run", wrong, "--", "true")
        assert done.returncode == 125 and done.stderr.startswith("ktrxer lab: this kernel has no netem (the delay from a to b)")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_whatever_ends_it(nothing_left: None, file: Path, number: int) -> None:
    mark = f"sleep 98{os.getpid()}{int(number)}"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    child = subprocess.Popen(
        words("run", file, "--beside", f"far=echo up; {mark}", "--", "sh", "-c", f"echo begun; trap '' INT; {mark} & {mark}"),
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "begun\n"
        assert not gone(mark, 0.1)
        child.send_signal(number)
        if number == signal.SIGINT:  # the command ignores it: the lab waits for the command, like a shell
            time.sleep(0.3)
            assert child.poll() is None
            child.send_signal(signal.SIGTERM)
        child.wait(20)
        assert gone(mark), "processes were left behind"
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("victim", ["unshare", "inside.py"])
def test_nothing_is_left_when_its_middle_is_killed(nothing_left: None, file: Path, victim: str) -> None:
    mark = f"sleep 97{os.getpid()}{len(victim)}"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    child = subprocess.Popen(
        words("run", file, "--", "sh", "-c", f"echo begun; {mark}"),
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    assert child.stdout is not None and child.stdout.readline() == "begun\n"
    family = [child.pid]
    for _ in range(3):
        family += [int(word) for pid in family for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if int(word) not in family]
    at = next(pid for pid in family[1:] if Path(f"/proc/{pid}/comm").read_text().strip() == "unshare")
    if victim == "inside.py":
        at = int(Path(f"/proc/{at}/task/{at}/children").read_text().split()[0])
    os.kill(at, signal.SIGKILL)
    _, said = child.communicate(timeout=20)
    assert child.returncode == 125 and "was killed" in said.splitlines()[-1]  # some versions of `unshare` print a message first
    assert gone(mark)


@pytest.fixture
def nobody(nothing_left: None) -> Iterator[list[str]]:
    """The command line of `ktrxer lab run slow.toml` by a user without any privilege."""
    if os.geteuid() != 0 or os.environ.get("KTRXER_USER_NAMESPACE"):
        pytest.skip("the other tests have shown it: they are not run by the machine's root")
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--"]

    def can(*command: str) -> bool:
        # By a shell, because setpriv itself can still read every folder.
        return subprocess.run([*drop, "sh", "-c", 'exec "$@"', "sh", *command], env=environment, capture_output=True, timeout=20, cwd="/").returncode == 0

    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "python"), "HOME": "/nonexistent"}
    if not can("unshare", "-Urnm", "true"):
        pytest.skip("this kernel lets only root make user namespaces")
    check = "import ktrxer_lab.command, sys; assert sys.version_info >= (3, 11)"
    python = next((one for one in (sys.executable, "/usr/bin/python3") if can(one, "-c", check)), None)
    if python is None:
        pytest.skip(f"the user 65534 may not read {ROOT}, or run a Python of 3.11 or newer")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "slow.toml"
        path.write_text(SLOW)
        mark = f"KTRXER_TEST_MARK={os.environ['KTRXER_TEST_MARK']}"
        yield ["env", "-C", "/", "-i", mark, *(f"{key}={value}" for key, value in environment.items()), *drop, python, "-m", "ktrxer", "lab", "run", str(path)]


def test_it_needs_no_root(nobody: list[str]) -> None:
    done = subprocess.run([*nobody, "--", "sh", "-c", "ping -c 1 -W 2 far; id -u"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "1 received" in done.stdout and done.stdout.endswith("\n0\n"), "root of its own namespace"


def test_killed_without_root_nothing_is_left_either(nobody: list[str]) -> None:
    """The parent-death signal works in a user namespace, although a change of credentials clears it."""
    mark = f"sleep 96{os.getpid()}"
    child = subprocess.Popen([*nobody, "--", "sh", "-c", f"echo begun; {mark}"], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None and child.stdout.readline() == "begun\n"
        assert processes(mark)
        child.kill()
        child.wait(20)
        assert gone(mark)
    finally:
        child.kill()
        child.communicate()


@pytest.mark.plain_build
def test_the_demo(nothing_left: None, ktrxer: Path, needs_command: Any, tmp_path: Path) -> None:
    """From the topology to the report, by the first command of the tutorial."""
    needs_command("flow")
    environment = os.environ | {"DEMO_SECONDS": "1", "DEMO_IDLE": "1", "DEMO_DIR": str(tmp_path), "DEMO_KTRXER": str(ktrxer)}
    done = subprocess.run([ROOT / "scripts" / "demo"], env=environment, capture_output=True, text=True, timeout=120, cwd="/", stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("client -> modem", "throughput", "TCP totals", "round trip", "responsiveness", "grade", "verdict: ", str(tmp_path / "report.html")):
        assert words in done.stdout
    (run,) = tmp_path.glob("*.ktrxer")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["report.html", run.name]), "the secret is gone"
    assert "<script" in (tmp_path / "report.html").read_text()

    from ktrxer.store import open_run

    meta = open_run(run).meta
    series = {(one.name, one.kind) for one in meta.series}
    assert {("TCP upload BE", "bytes"), ("TCP download EF", "tcp_info"), ("Ping (ms) UDP BK", "latency"), ("CPU", "host")} <= series
    before, after = meta.metadata["before"], meta.metadata["after"]
    assert before["egress"]["device"] == after["egress"]["device"] == "to-modem" and before["kernel"]["release"] == os.uname().release
    assert "10.64." not in json.dumps([before, after]) and "02:64:" not in json.dumps([before, after]), "private values are recorded on request only"
    exported = subprocess.run([ktrxer, "export", run, "-D", tmp_path], capture_output=True, text=True, timeout=60)
    assert exported.returncode == 0 and (tmp_path / f"{run.name.removesuffix('.ktrxer')}.flent.gz").is_file(), exported.stderr


def test_a_run_in_a_lab_names_its_topology(nothing_left: None, file: Path, tmp_path: Path, ktrxer: Path) -> None:
    """The stored file, parameters and node distinguish two runs in different topologies."""
    pytest.importorskip("pyarrow", reason="the Python part's packages are not installed: `make .venv/.ok`")
    from ktrxer.store import open_run

    command = [sys.executable, "-m", "ktrxer", "run", "tcp_upload", "-H", "far", "--for", "1", "--delay", "0.2", "--no-extras", "-q", "-D", tmp_path]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KTRXER_BIN", str(ktrxer))
        done = lab("run", file, "--set", "loss=0%", "--beside", f"far={ktrxer} serve", "--", *map(str, command))
    assert done.returncode in (0, 3), done.stderr
    run = open_run(done.stdout.strip())
    made = run.meta.metadata["topology"]
    assert (made["name"], made["node"], made["place"], made["parameters"], made["file"]) == ("slow", "near", "namespaces", {"loss": "0%"}, SLOW)
    assert "TEST = Test(" in run.meta.metadata["recipe"]["source"]
    assert run.meta.settings["timeout_ns"] == 10 * 10**9 and run.meta.settings["parameters"] == {"directions": "up", "ping": True, "marking": ""}
    sysctl = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    assert run.meta.settings["congestion_control"] == {"TCP upload": sysctl}
