# SPDX-License-Identifier: MIT OR Apache-2.0
"""Places, with a real sshd of this test's own on the loopback device: processes start, stop and are killed there, files are copied, clocks are
compared; a lost connection leaves no process on the far host, and the verdict of a run names the place.

The test needs sshd (Debian: openssh-server). That sshd has the user of the test, and keys made for it.
"""

import getpass
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from ktrxer.catalogue.recipe import Setting, combine, icmp
from ktrxer.catalogue.recipe import run as invoke
from ktrxer.places import PlaceError, open_place, run
from ktrxer.run import checks
from ktrxer.run import session as session_module
from ktrxer.run.schedule import make
from ktrxer.run.session import Session
from ktrxer.runners import Options
from ktrxer.store import Host, Meta, Zero, open_run
from test_runners import counter

pytestmark = pytest.mark.slow

__all__ = ["counter"]
S, MS = 10**9, 10**6
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def key(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


class Server:
    """sshd, and the command by which the client reaches it as `far`."""

    def __init__(self, folder, extra="", before=""):
        self.folder = folder
        host, user = key(folder / "host"), key(folder / "user")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        (folder / "authorized").write_text(f"{before}{user.with_suffix('.pub').read_text()}")
        (folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {host}\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\n"
            f"UsePAM no\nPidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n{extra}")
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {host.with_suffix('.pub').read_text()}")
        (folder / "ssh_config").write_text(
            f"Host far\n  HostName 127.0.0.1\n  Port {self.port}\n  User {getpass.getuser()}\n  IdentityFile {user}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile none\n")
        self.child = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.PIPE, text=True)
        for line in self.child.stderr:
            if "listening on" in line:
                break
        else:
            raise AssertionError(f"sshd ended with {self.child.wait()}")
        self.command = shlex.join(["ssh", "-F", str(folder / "ssh_config")])

    def connections(self):
        """The processes of sshd that serve a connection."""
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.child.pid)], capture_output=True, text=True, check=False).stdout
        return [int(word) for word in listed.split()]

    def stop(self):
        for pid in [*self.connections(), self.child.pid]:
            os.kill(pid, signal.SIGKILL)
        self.child.wait()
        self.child.stderr.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if SSHD is None:
        pytest.fail("sshd is missing: `scripts/setup test` installs it (Debian: openssh-server)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    made = Server(tmp_path_factory.mktemp("sshd"))
    yield made
    made.stop()


@pytest.fixture
def far(server, monkeypatch):
    """far(): the place `ssh:far`, closed at the end."""
    monkeypatch.setenv("KTRXER_SSH", server.command)
    opened = []

    def connect():
        opened.append(open_place("ssh:far"))
        return opened[-1]

    yield connect
    for place in opened:
        place.close()


def alive(mark):
    return subprocess.run(["pgrep", "-fx", f"sleep {mark}"], capture_output=True, text=True, check=False).stdout.split()


def until(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not within its time"
        time.sleep(0.02)


@pytest.fixture(params=["local", "ssh"])
def place(request, far):
    made = open_place("local") if request.param == "local" else far()
    yield made
    made.close()


# --------------------------------------------------------------------------------------------------------- every place


def test_a_short_command(place):
    done = run(place, ["sh", "-c", 'printf "%s|" "$@"; echo no >&2; exit 3', "sh", "a b", "$HOME", "it's", ""])
    assert (done.status, done.out, done.error) == (3, b"a b|$HOME|it's||", "no\n")
    assert run(place, ["sh", "-c", "kill -9 $$"]).status == -9
    missing = run(place, ["ktrxer-no-such-tool"])
    assert missing.status == 127 and "ktrxer-no-such-tool" in missing.error
    with pytest.raises(PlaceError, match=r"`sleep 31` did not end within 0.5 s"):
        run(place, ["sleep", "31"], 0.5)
    until(lambda: not alive(31))
    with pytest.raises(PlaceError, match="printed more than"):
        run(place, ["cat", "/dev/zero"])


def test_asked_to_stop_and_killed(place):
    process = place.start(["sh", "-c", "trap 'echo bye; exit 0' INT; echo up; while :; do sleep 0.05; done"])
    assert process.ready(5) and b"".join(process.read(process.out)) == b"up\n"
    process.ask_to_stop()
    text = b""
    while process.open:
        for descriptor in process.ready(5):
            text += b"".join(process.read(descriptor))
    assert (text, process.close()) == (b"bye\n", 0)
    process = place.start(["sh", "-c", "trap '' INT; sleep 32 & sleep 32"])
    until(lambda: len(alive(32)) == 2)
    process.kill()
    assert process.close() == -9
    until(lambda: not alive(32))


def test_the_end_of_standard_input_ends_the_whole_group(place):
    process = place.start(["sh", "-c", "trap '' INT; sleep 33 & sleep 33"])
    until(lambda: len(alive(33)) == 2)
    process.child.stdin.close()
    until(lambda: not alive(33))
    process.close()


def test_a_process_begins_at_its_time(place):
    offset = place.clock()
    at = time.time_ns() + offset.offset_ns + 700 * MS + 2 * place.start_ns
    process = place.start(["date", "+%s%N"], at_real_ns=at)
    text = b""
    while process.open:
        for descriptor in process.ready(5):
            text += b"".join(process.read(descriptor))
    process.close()
    print(f"figure: {(int(text) - at) / 1e6:.1f} ms late")
    assert -1 * MS - offset.bound_ns <= int(text) - at < 2 * S, "late on a busy machine, never early"
    process = place.start(["echo", "this must not be printed"], at_real_ns=at + 100 * S)
    time.sleep(0.2)
    process.ask_to_stop()
    until(lambda: process.ready(0) and not list(process.read(process.out)) and process.out not in process.open)
    assert process.close() in (-2, -9)


def test_files(place, tmp_path):
    (tmp_path / "a b").write_bytes(bytes(range(256)) * 4000)
    place.copy_in(tmp_path / "a b", str(tmp_path / "in it's"))
    place.copy_out(str(tmp_path / "in it's"), tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "a b").read_bytes()
    for wrong in (lambda: place.copy_out("/nowhere/x", tmp_path / "y"), lambda: place.copy_in(tmp_path / "a b", "/nowhere/x")):
        with pytest.raises(PlaceError, match=r"cannot be copied to .*: .*[Nn]o such file"):
            wrong()


def test_the_clocks_are_compared(place):
    offset = place.clock()
    print(f"figure: {offset}")
    assert abs(offset.offset_ns) <= offset.bound_ns < 500 * MS, "it is the clock of this host"


# ----------------------------------------------------------------------------------------------------------------- ssh


def test_a_secret_is_private_and_does_not_stay(far, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    place = far()
    there = Path(place.copy_secret(tmp_path / "token"))
    assert there.read_text() == "secret\n" and there.stat().st_mode & 0o077 == 0 and str(there) == place.copy_secret(tmp_path / "token")
    place.close()
    assert not there.exists()


def test_one_connection_for_all_processes(far, server):
    until(lambda: not server.connections())
    place = far()
    processes = [place.start(["sleep", "34"]) for _ in range(5)]
    until(lambda: len(alive(34)) == 5)
    assert len(server.connections()) == 1
    place.close()
    until(lambda: not alive(34) and not server.connections())
    assert all(process.child.returncode is not None for process in processes)


def test_a_clock_that_is_an_hour_off(server, tmp_path, monkeypatch):
    """A `date` of the far host's own: an hour ahead, or without nanoseconds."""
    script = 'case "$1" in *%N) echo $(($(/bin/date +%s) + 3600))END;; esac'
    for end, bound in ((".$(/bin/date +%N)", 0.4), ("", 0.9), (".%N", 0.9)):
        (tmp_path / "date").write_text(f"#!/bin/sh\n{script.replace('END', end)}\n")
        (tmp_path / "date").chmod(0o755)
        monkeypatch.setenv("KTRXER_SSH", f"{server.command} -o SetEnv=none=none")
        place = open_place("ssh:far")
        try:
            place._shell.child.stdin.write(f"PATH={tmp_path}:$PATH\n".encode())
            offset = place.clock()
        finally:
            place.close()
        assert abs(offset.offset_ns - 3600 * S) <= offset.bound_ns + S // 100 and offset.bound_ns < bound * S + S // 2, offset


@pytest.mark.parametrize("destination, options, reason", [
    ("far", "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes", "Host key verification failed"),
    ("far", "-o PubkeyAuthentication=no", "Permission denied"),
    ("far", "-o Port=1", "Connection refused"),
    ("no.such.host.invalid", "", "Could not resolve hostname"),
])
def test_a_host_that_cannot_be_reached(server, monkeypatch, destination, options, reason):
    monkeypatch.setenv("KTRXER_SSH", f"{server.command} {options}")
    with pytest.raises(PlaceError) as caught:
        open_place(f"ssh:{destination}")
    text = str(caught.value)
    assert re.match(rf"ssh:{re.escape(destination)}: the ssh connection was lost: .*{reason}", text) and "must work without a question" in text, text


@pytest.mark.parametrize("text, reason", [
    ("ssh:-oProxyCommand=x", "not a destination"), ("ssh:", "is not a place"), ("ssh:a b", "not a destination"), ("ssh:far:2222", r"set the port in ~/.ssh/config"), ("moon", "is not a place"),
    ("netns:../../etc", "not a name"), ("netns:ktrxer-no-such", "no such network namespace"), ("netns:..", "not a name"),
])
def test_names_that_are_none(text, reason):
    with pytest.raises(PlaceError, match=reason):
        open_place(text)


def test_a_client_that_is_missing(monkeypatch):
    monkeypatch.setenv("KTRXER_SSH", "ktrxer-no-such-client")
    with pytest.raises(PlaceError, match=r"ktrxer-no-such-client.* is missing"):
        open_place("ssh:far")


def test_a_login_shell_that_talks(server, tmp_path, monkeypatch):
    talking = Server(tmp_path, 'ForceCommand echo "Welcome, and mind the step"; eval "$SSH_ORIGINAL_COMMAND"\n')
    monkeypatch.setenv("KTRXER_SSH", talking.command)
    try:
        with pytest.raises(PlaceError, match="printed something before the first command"):
            open_place("ssh:far")
    finally:
        talking.stop()


@pytest.mark.parametrize("killed", ["server", "client", "program"])
def test_a_lost_connection_leaves_no_process(server, far, killed):
    """It is cut at either end, or this program dies by SIGKILL."""
    if killed == "program":
        code = "import sys\nfrom ktrxer.places import open_place\np = open_place('ssh:far')\np.start(['sleep', '35'])\nprint('up', flush=True)\nsys.stdin.read()"
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
        assert child.stdout.readline() == b"up\n"
        until(lambda: alive(35))
        child.kill()
        child.communicate()
    else:
        place = far()
        process = place.start(["sh", "-c", "trap '' INT; sleep 35"])
        until(lambda: alive(35))
        if killed == "server":
            for pid in server.connections():
                os.kill(pid, signal.SIGKILL)
                for grandchild in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split():
                    os.kill(int(grandchild), signal.SIGKILL)
        else:
            os.kill(place._shell.child.pid, signal.SIGKILL)
        until(lambda: place.loss() is not None)
        assert "the ssh connection was lost" in place.loss()
        until(lambda: process.ready(0) and not list(process.read(process.out)) and process.out not in process.open)
        assert process.close() == 255
        with pytest.raises(PlaceError, match="connection was lost"):
            place.clock()
    until(lambda: not alive(35) and not server.connections())


PYTHON = str(Path(__file__).resolve().parents[2] / "python")
HOLDS = "import sys, time; from ktrxer.places import open_place; p = open_place('ssh:far'); print(p._socket, flush=True); time.sleep(60)"


def test_a_killed_run_leaves_no_folder(server, far):
    """The next connection removes the folder of the socket, and no folder of a run that goes on."""
    killed, living = (
        subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": PYTHON})
        for _ in range(2)
    )
    folders = [Path(child.stdout.readline().strip()).parent for child in (killed, living)]
    try:
        killed.kill()
        killed.wait()
        until(lambda: not any(folders[0].iterdir()))  # the client of ssh has ended
        assert folders[0].is_dir()
        far()
        assert not folders[0].exists() and (folders[1] / "s").is_socket()
    finally:
        for child in (killed, living):
            child.kill()
            child.wait()
            child.stdout.close()
        far()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_full_disk(place, tmp_path):
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        (tmp_path / "large").write_bytes(bytes(200_000))
        with pytest.raises(PlaceError, match=rf"^{re.escape(place.name)}: .*large cannot be copied to .*: .*No space left on device"):
            place.copy_in(tmp_path / "large", str(disk / "copy"))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


# ---------------------------------------------------------------------------------------------------------------- runs


def measure(tmp_path, plan, setting, during=None, **places):
    schedule = make(plan, setting, Options())
    meta = Meta("5f1c0de0-0000-4000-8000-000000000003", "mine", "2026-11-21T15:30:00.000000Z", Host("near"), Zero(0, 0), 0)
    (tmp_path / "runs").mkdir(exist_ok=True)
    with checks.places_of(schedule) as opened:
        checks.tools(schedule, opened)
        session = Session(schedule, meta, tmp_path / "runs", places=opened)
        if during is not None:
            session.view = during(session)
        return open_run(session.run())


def test_a_run_in_two_places(counter, far, tmp_path):
    counter()
    setting = Setting("H", 1.0, 0)
    run_ = measure(tmp_path, combine(invoke("counter", "here"), invoke("counter", "there", place="ssh:far")), setting)
    here, there = (run_.arrays(run_.series(name))["t_ns"] for name in ("here", "there"))
    assert run_.meta.verdict == "valid", run_.meta.sentences
    assert len(there) > 5 and there.min() >= 0 and abs(int(there.min()) - int(here.min())) < 500 * MS
    assert [runner.place for runner in run_.meta.runners] == ["local", "ssh:far"]
    clock = run_.meta.settings["places"]["ssh:far"]
    assert clock.keys() == {"offset_ns", "bound_ns", "at_real_ns", "after"} and abs(clock["offset_ns"]) <= clock["bound_ns"]
    stored = run_.meta.runners[1]
    assert stored.tool_version is None and stored.argv[0] == sys.executable, "any version will do"


def test_a_run_survives_the_loss_of_a_place(counter, far, server, tmp_path):
    counter()

    class Cut(session_module.NoView):
        def __init__(self, session):
            self.session, self.done = session, False
            session._watched = True

        def show(self, session):
            if session.now_ns > 500 * MS and not self.done:
                self.done = True
                for pid in server.connections():
                    os.kill(pid, signal.SIGKILL)
                    for grandchild in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split():
                        os.kill(int(grandchild), signal.SIGKILL)

    setting = Setting("H", 5, 0)
    run_ = measure(tmp_path, combine(invoke("counter", "here"), invoke("counter", "there", place="ssh:far")), setting, Cut)
    print(run_.meta.sentences)
    assert any(re.match(r"there: the place ssh:far was lost \d\.\d s into the run: the ssh connection was lost: ", reason) for reason in run_.meta.sentences)
    assert not any(reason.startswith("here") for reason in run_.meta.sentences)
    here, there = (run_.arrays(run_.series(name))["t_ns"] for name in ("here", "there"))
    assert len(here) > len(there) > 0 and here.max() > there.max(), "it goes on here"


def test_a_run_in_a_place_whose_clock_is_an_hour_ahead(tmp_path, monkeypatch):
    """Its processes begin at the same time as all others, and the times that they print are converted."""
    (tmp_path / "date").write_text('#!/bin/sh\nnow=$(/bin/date +%s%N); now=$((now + 3600000000000))\n'
                                   'case $1 in +%s%N) echo $now;; *) echo $((now / 1000000000)).$(printf %09d $((now % 1000000000)));; esac\n')
    (tmp_path / "date").chmod(0o755)
    (tmp_path / "ssh").mkdir()
    ahead = Server(tmp_path / "ssh", f"SetEnv PATH={tmp_path}:{os.environ['PATH']}\n")
    monkeypatch.setenv("KTRXER_SSH", ahead.command)
    try:
        plan = invoke("number", "far", words=("cut", "-d ", "-f1", "/proc/uptime"), interval_ns=200 * MS, place="ssh:far")
        run_ = measure(tmp_path, plan, Setting("H", 1.5, 0))
    finally:
        ahead.stop()
    offset = run_.meta.settings["places"]["ssh:far"]
    assert abs(offset["offset_ns"] - 3600 * S) <= offset["bound_ns"] + 10 * MS
    values = run_.arrays(run_.series("far"))
    assert run_.meta.verdict == "valid", run_.meta.sentences
    # The uptime was read within the time that `cut` needs after `date`.
    boot_ns = values["value"] * S - values["t_ns"]
    assert len(values["t_ns"]) >= 3 and -offset["bound_ns"] <= values["t_ns"].min() and np.ptp(boot_ns) < S


def test_our_own_tool_is_looked_for_there(far, tmp_path, monkeypatch):
    with pytest.raises(checks.CheckError, match=r"ping, in place ssh:far: ktrxer is not installed"):
        measure(tmp_path, icmp(Setting("H", 1, 0), "ping", place="ssh:far"), Setting("H", 1, 0))
