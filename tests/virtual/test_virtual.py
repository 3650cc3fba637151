# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer lab run --time virtual`: input and output of a command, its clock, and its end in each case."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from guests import Lab, members, until

RUN = ("run", "flent", "--time", "virtual")
VM = ("vm", "--device", "uml")

PTRACE, UNSHARE, SECCOMP, SCHED_SETAFFINITY = 101, 272, 317, 203
# Forbids system calls to its children, like the default seccomp filters of container engines.
FORBID = """
import ctypes, os, struct, sys
def code(op, jt, jf, k): return struct.pack("HBBI", op, jt, jf, k)
calls, words = [int(word) for word in sys.argv[1].split(",")], sys.argv[2:]
program = code(0x20, 0, 0, 0) + b"".join(code(0x15, 0, 1, call) + code(0x06, 0, 0, 0x00050001) for call in calls) + code(0x06, 0, 0, 0x7FFF0000)
held = ctypes.create_string_buffer(program, len(program))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(held)), 0, 0) == 0, ctypes.get_errno()
os.execv(words[0], words)
"""


def test_status_output_and_files_are_those_of_the_command(lab: Lab) -> None:
    (lab.folder / "in").write_text("given\n")
    job = "cat in; echo wrong >&2; printf made >made; mkdir -p deep/er; cp in deep/er; echo x >/etc/ktrxer-lab-trace; cat /etc/ktrxer-lab-trace; exit 7"
    done = lab(*VM, "--", "sh", "-c", job)
    assert (done.returncode, done.stdout, done.stderr) == (7, "given\nx\n", "wrong\n")
    assert (lab.folder / "made").read_text() == "made" and (lab.folder / "deep/er/in").read_text() == "given\n"
    assert not Path("/etc/ktrxer-lab-trace").exists(), "what is written elsewhere stays in the guest"
    assert list(lab.scratch.iterdir()) == [], "nothing is left of the guest"


def test_bytes_come_as_they_are_and_all_of_them(lab: Lab) -> None:
    program = "import os, sys\nfor i in range(300): os.write(1, bytes(range(256)) * 16)\nsys.exit(3)"
    done = lab(*VM, "--", "sh", "-c", f"{sys.executable} -c '{program}' | md5sum; {sys.executable} -c '{program}' >out; md5sum <out; false")
    first, second = done.stdout.splitlines()
    assert done.returncode == 1 and first == second
    assert (lab.folder / "out").read_bytes() == bytes(range(256)) * 16 * 300


def test_the_delay_of_a_topology_and_time_that_passes_by_itself(lab: Lab) -> None:
    before = time.time()
    job = "date +%s; ping -q -c 300 server; sleep 3600; date +%s"
    done = lab(*RUN, "--", "sh", "-c", job)
    assert done.returncode == 0, done.stderr
    begun, *message, ended = done.stdout.splitlines()
    times = re.search(r"= ([0-9.]+)/([0-9.]+)/([0-9.]+)/", "\n".join(message))
    assert times, done.stdout
    assert [float(value) for value in times.groups()] == pytest.approx([50.0, 50.0, 50.0], abs=0.02), "netem's 25 ms, twice"
    assert 3899 <= int(ended) - int(begun) <= 3901
    assert abs(int(begun) - before) < 60, "the clock begins at the host's time"
    assert time.time() - before < 200


def test_files_of_the_host_are_not_of_the_guests_future(lab: Lab) -> None:
    """make warns of files that are newer than its clock, and may build too much or too little."""
    assert until(lambda: time.time() % 1 < 0.1)
    (lab.folder / "new").touch()
    job = f"{sys.executable} -c 'import os, time; print(time.time() - os.stat(\"new\").st_mtime)'"
    done = lab(*VM, "--", "sh", "-c", job)
    assert 0 <= float(done.stdout) < 60, done.stdout + done.stderr


def test_what_is_random_begins_from_the_seed(lab: Lab) -> None:
    runs = [lab(*VM, "--seed", seed, "--", "sh", "-c", "head -c 8 /dev/urandom | od -An -tx1") for seed in (1, 1, 2)]
    assert [done.returncode for done in runs] == [0, 0, 0], runs[0].stderr
    assert runs[0].stdout == runs[1].stdout != runs[2].stdout


def test_a_limit_of_virtual_time_ends_what_waits_for_ever(lab: Lab) -> None:
    done = lab(*RUN, "--timeout", "2h", "--", "sleep", "infinity")
    assert done.returncode == 124 and "has not ended within 7200 s (--timeout)" in done.stderr


def test_a_limit_of_virtual_time_ends_what_reads_the_clock_for_ever(lab: Lab) -> None:
    done = lab(*RUN, "--timeout", "100ms", "--", sys.executable, "-c", "import time\nwhile True: time.monotonic()")
    assert done.returncode == 124 and "has not ended within 0.1 s (--timeout)" in done.stderr


def test_a_limit_of_wall_time_ends_what_only_computes(lab: Lab) -> None:
    done = lab(*VM, "--timeout", "20s", "--", sys.executable, "-c", "print('begun', flush=True)\nwhile True: pass")
    assert done.returncode == 124 and done.stdout == "begun\n"
    assert "not done after 20 s of wall time (--wall-limit; of the device: --timeout)" in done.stderr
    assert list(lab.scratch.iterdir()) == []


def test_a_panic_is_a_failure_of_the_lab(lab: Lab) -> None:
    # Unmaps the code of process 1.
    program = """
import re
with open("/proc/1/maps") as maps, open("/proc/1/mem", "r+b", 0) as memory:
    for line in maps:
        begin, end, rights = re.match("(\\\\w+)-(\\\\w+) (....)", line).groups()
        if "x" in rights and "vdso" not in line and "vsyscall" not in line:
            memory.seek(int(begin, 16)); memory.write(bytes(int(end, 16) - int(begin, 16)))
"""
    done = lab(*VM, "--timeout", "60s", "--", sys.executable, "-c", program)
    assert done.returncode == 125, done.stderr
    assert "the kernel of virtual time died: Kernel panic - not syncing: Attempted to kill init!" in done.stderr
    assert list(lab.scratch.iterdir()) == []


@pytest.mark.parametrize("kernel", ["7.3", *(pytest.param(older, marks=pytest.mark.slow) for older in ("6.12", "6.1"))])
def test_a_guest_that_is_killed_is_named_and_leaves_nothing(lab: Lab, kernel: str) -> None:
    begun = "print('on', flush=True)\nwhile True: pass"
    running = lab.start(*RUN, "--kernel", kernel, "--beside", "server=sleep infinity", "--", sys.executable, "-c", begun)
    assert running.stdout is not None and running.stdout.readline() == "on\n"
    leader = lab.kernel()
    assert leader is not None and len(members(leader)) > 2, "the guest's programs are processes of its session"
    os.kill(leader, signal.SIGKILL)
    _, error = running.communicate(timeout=60)
    assert running.returncode == 125 and "the guest ended by signal 9 without an answer" in error
    assert until(lambda: members(leader) == []), members(leader)


def test_nothing_runs_on_when_the_host_side_is_killed(lab: Lab) -> None:
    running = lab.start(*RUN, "--beside", "server=sleep infinity", "--", sys.executable, "-c", "print('on', flush=True)\nwhile True: pass")
    assert running.stdout is not None and running.stdout.readline() == "on\n"
    kernel = lab.kernel()
    assert kernel is not None
    running.kill()
    running.communicate(timeout=60)
    assert until(lambda: members(kernel) == []), members(kernel)


def test_an_interrupt_ends_it_at_once(lab: Lab) -> None:
    running = lab.start(*VM, "--", sys.executable, "-c", "print('on', flush=True)\nwhile True: pass")
    assert running.stdout is not None and running.stdout.readline() == "on\n"
    kernel = lab.kernel()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130 and kernel is not None
    assert until(lambda: members(kernel) == []) and list(lab.scratch.iterdir()) == []


def test_a_full_overlay_is_named(lab: Lab) -> None:
    done = lab(*VM, "--memory", "128", "--", "dd", "if=/dev/zero", "of=/var/tmp/much", "bs=1M", "count=100")
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert "the guest's overlay is full" in done.stderr and "64 MiB of the guest's memory" in done.stderr and "--memory" in done.stderr
    assert not Path("/var/tmp/much").exists()


def forbidding(lab: Lab, calls: tuple[int, ...], *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", FORBID, ",".join(map(str, calls)), *lab.words(*arguments)],
        cwd=lab.folder,
        env=lab.full_environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_one_way_to_catch_system_calls_is_enough(lab: Lab) -> None:
    for forbidden in (PTRACE, SECCOMP):
        done = forbidding(lab, (forbidden,), *VM, "--", "echo", "ran")
        assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_a_guest_has_one_cpu_where_the_host_allows_it(lab: Lab) -> None:
    running = lab.start(*VM, "--", sys.executable, "-c", "print('on', flush=True)\nwhile True: pass")
    assert running.stdout is not None and running.stdout.readline() == "on\n"
    kernel = lab.kernel()
    assert kernel is not None
    places = {tuple(os.sched_getaffinity(int(process))) for process in members(kernel)}
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert len(places) == 1 and len(places.pop()) == 1
    done = forbidding(lab, (SCHED_SETAFFINITY,), *VM, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_without_seccomp_and_ptrace_qemu_is_offered(lab: Lab) -> None:
    done = forbidding(lab, (PTRACE, SECCOMP), *RUN, "--", "true")
    assert done.returncode == 125
    assert "this host forbids seccomp filters and ptrace" in done.stderr and "ktrxer lab vm --topology" in done.stderr


def test_no_user_namespaces_are_needed(lab: Lab) -> None:
    done = forbidding(lab, (UNSHARE,), *RUN, "--", "ip", "netns", "identify")
    assert (done.returncode, done.stdout) == (0, "client\n"), done.stderr
    done = forbidding(lab, (UNSHARE,), "run", "flent", "--", "true")
    assert done.returncode == 125 and "no namespaces can be made here" in done.stderr and "--time virtual" in done.stderr


def test_memory_is_where_programs_may_run(lab: Lab) -> None:
    for places, status in ((["/dev/shm"], 0), (["/dev/shm", lab.scratch], 125)):
        mounts = " && ".join(f"mount -t tmpfs -o noexec tmpfs {place}" for place in places)
        done = subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh", *lab.words(*VM, "--", "echo", "ran")],
            cwd=lab.folder,
            env=lab.full_environment(),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert (done.returncode, done.stdout) == (status, "ran\n" if status == 0 else ""), done.stderr
        assert status == 0 or f"/dev/shm and {lab.scratch} are mounted noexec or missing" in done.stderr


def test_a_deleted_folder_is_named(lab: Lab) -> None:
    words = ["sh", "-c", 'rmdir ../here && exec "$@"', "sh", *lab.words(*VM, "--", "true")]
    done = subprocess.run(words, cwd=lab.folder, env=lab.full_environment(), capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1][:53]) == (125, "ktrxer lab: the current folder has been deleted: chan")


def test_standard_input_is_empty(lab: Lab) -> None:
    done = subprocess.run(
        lab.words(*VM, "--", "sh", "-c", "cat; read line || echo none"),
        cwd=lab.folder,
        env=lab.full_environment(),
        input="not for the guest\n",
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "none\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*RUN,), "no command"),
        ((*RUN, "--time", "imaginary", "--", "true"), "--time: 'imaginary' is not known; it is one of"),
        ((*RUN, "--kernel", "2.4", "--", "true"), "--kernel 2.4: virtual time has"),
        ((*RUN, "--memory", "1", "--", "true"), "--memory: '1' is too small: from 128"),
        ((*RUN, "--wall-limit", "1ms", "--", "true"), "--wall-limit: '0.001s' is too small"),
        (("run", "flent", "--memory", "256", "--", "true"), "--memory needs --time virtual"),
        ((*VM, "--put", "/etc/hosts:/x", "--", "true"), "--put is not for the device uml"),
        ((*VM, "--time", "real", "--", "true"), "the device uml has virtual time only"),
        ((*VM, "--in", "client", "--", "true"), "--set and --in need --topology"),
    ],
)
def test_wrong_use(lab: Lab, arguments: tuple[str, ...], words: str) -> None:
    done = lab(*arguments)
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_what_is_missing_in_the_guest_is_said_before_anything_runs(lab: Lab) -> None:
    done = lab(*VM, "--", "no-such-program")
    assert done.returncode == 127 and "no-such-program: command not found" in done.stderr
    done = lab(*RUN, "--set", "leaf=blue", "--", "touch", "ran")
    assert done.returncode == 125 and "this kernel has no blue (the queue" in done.stderr and not (lab.folder / "ran").exists()
    done = lab(*RUN, "--set", "leaf=cakee", "--", "touch", "ran")
    assert done.returncode == 2 and re.search(r"flent\.toml:\d+: link 2 .*do you mean `cake`\?", done.stderr)
