# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels built from source: the cache keeps only complete ones, and messages name missing parts."""

from __future__ import annotations

import fcntl
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from ktrxer_lab import cache, kernel_build, places, source, toolchain, uml
from ktrxer_lab import progress as progress_module
from ktrxer_lab.errors import BuildFailure, LabError, Unavailable
from ktrxer_lab.packages import Archive, Package
from ktrxer_lab.progress import Progress
from ktrxer_lab.recipe import Recipe

NAME = "6.1-virtual"


class Builds:
    """A stand-in for Debian's archive and for make."""

    def __init__(self) -> None:
        self.count = 0
        self.found: list[bool] = []  # for each build: whether the tree is that of an interrupted one
        self.fails: BaseException | None = None
        self.other = ""  # a file of a different version of the source


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builds:
    made = Builds()
    monkeypatch.setenv("KTRXER_LAB_CACHE", str(tmp_path / "cache"))
    index = {"linux-source-6.1": Package("linux-source-6.1", "6.1.1-1", "", "", "0" * 64)}
    monkeypatch.setattr(Archive, "index", index)

    def fetch(_: Archive, __: list[Package]) -> list[Path]:
        deb = tmp_path / "source.deb"
        deb.touch()
        return [deb]

    def unpack(_: Path, into: Path) -> Path:
        (into / "include/config").mkdir(parents=True)
        for one in source._edits(Recipe.load().get("kernels", NAME), places.data() / "kernels")["replace"]:
            path = into / one["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(one["old"] if path.name != made.other else "another version")
        return into

    def build(tree: Path, *_: Any) -> None:
        made.count += 1
        made.found.append((tree / "begun").exists())
        (tree / "begun").touch()
        if made.fails is not None:
            raise made.fails
        (tree / "linux").write_bytes(b"kernel")
        (tree / "include/config/kernel.release").write_text("6.1.1\n")

    monkeypatch.setattr(Archive, "fetch", fetch)
    monkeypatch.setattr(source, "_unpack", unpack)
    monkeypatch.setattr(source, "_build", build)
    monkeypatch.setattr(source, "_check_programs", lambda _: None)
    monkeypatch.setattr(source.subprocess, "run", _no_strip(source.subprocess.run))
    return made


def _no_strip(run: Any) -> Any:
    return lambda command, **more: None if command[0] == "strip" else run(command, **more)


def prepared(message: list[str] | None = None) -> Path:
    return source.prepared(Recipe.load(), "amd64", NAME, (message if message is not None else []).append)


def test_a_kernel_is_built_once(builds: Builds) -> None:
    first, second = prepared(), prepared()
    assert first == second and builds.count == 1
    assert (first / "vmlinuz").read_bytes() == b"kernel" and (first / "version").read_text() == "6.1.1"
    assert [path.name for path in first.parent.iterdir()] == [first.name]


@pytest.mark.slow
def test_a_damaged_kernel_is_built_again(builds: Builds) -> None:
    folder, message = prepared(), list[str]()
    (folder / "vmlinuz").write_bytes(b"kernal")
    assert prepared(message) == folder and builds.count == 2
    assert (folder / "vmlinuz").read_bytes() == b"kernel" and "is damaged" in message[0]
    (folder / "vmlinuz").unlink()
    prepared()
    assert builds.count == 3


def test_an_interrupted_build_is_continued(builds: Builds) -> None:
    builds.fails, message = KeyboardInterrupt(), list[str]()
    with pytest.raises(KeyboardInterrupt):
        prepared(message)
    (tree,) = (places.cache() / "kernels").iterdir()
    assert message[-1].endswith(f"interrupted: the next command continues the build; what there is of it: {tree}")
    builds.fails = None
    folder = prepared(message)
    assert builds.found == [False, True] and any("the interrupted build of 6.1-virtual continues, from linux-source-6.1" in one for one in message)
    assert list(folder.parent.iterdir()) == [folder]


def test_an_interrupted_build_that_cannot_be_continued_starts_again(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    builds.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        prepared()
    builds.fails, build, message = None, source._build, list[str]()

    def broken(tree: Path, *more: Any) -> None:
        build(tree, *more)
        if builds.found[-1]:
            raise BuildFailure("the kernel does not build: a.o is empty", "")

    monkeypatch.setattr(source, "_build", broken)
    prepared(message)
    assert builds.found == [False, True, False] and any("cannot be continued (the kernel does not build: a.o is empty)" in one for one in message)


def test_a_failed_build_leaves_nothing(builds: Builds) -> None:
    builds.fails = BuildFailure("the kernel does not build: no", "")
    with pytest.raises(BuildFailure):
        prepared()
    assert list((places.cache() / "kernels").iterdir()) == []


@pytest.mark.slow
def test_what_killed_builds_have_left_is_removed(builds: Builds) -> None:
    folder = prepared()
    (folder / "version").unlink()
    names = (folder.name, "amd64-6.12-debug-1", "amd64-7.3-virtual-2")
    left, of_another, running = (folder.with_name(f".{name}.99999999") for name in names)
    older, interrupted, half = (folder.with_name(f".{name}.tree") for name in ("amd64-6.1-virtual-0", "amd64-7.3-virtual-3", folder.name))
    for path in (left, of_another, running, older, interrupted, half):
        path.mkdir()
    with cache.locked("amd64-7.3-virtual-2"):
        prepared()
    assert [path.name for path in (left, of_another, running, older, interrupted, half) if path.exists()] == [running.name, interrupted.name]


@pytest.mark.slow
def test_the_time_of_the_last_build_is_said_before_the_next(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(message := [])
    assert "the kernel 6.1-virtual is built first, once, from linux-source-6.1 6.1.1-1: usually 4 to 35 min; Ctrl-C stops it" in message[0]
    assert message[-1].startswith("the kernel 6.1-virtual is built, in ")
    for times, words in (('{"6.1-virtual": 372.4}', "6 min last time"), ("[1", "usually 4 to 35 min"), ('{"6.1-virtual": null}', "usually")):
        (places.cache() / "times.json").write_text(times)
        monkeypatch.setattr(source, "BUILD", times)
        prepared(message := [])
        assert words in message[0]


def test_a_source_of_another_version_is_named(builds: Builds) -> None:
    builds.other = "process.c"
    with pytest.raises(LabError, match=r"process\.c of .* has no .*the source has changed"):
        prepared()


@pytest.mark.slow
def test_a_kernel_is_built_again_when_its_inputs_change_and_only_then(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepared()
    monkeypatch.setattr(source, "__file__", __file__)  # the text of the builder is not an input
    assert prepared() == first
    for name, value in (("BUILD", "0"), ("_edits", lambda *_: {"add": {"net/new.c": "int new;"}, "replace": []})):
        monkeypatch.setattr(source, name, value)
        assert prepared() != first
    assert builds.count == 3


def test_a_source_that_is_not_in_the_archive_is_named(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Archive, "index", {})
    with pytest.raises(LabError, match=r"no package 'linux-source-6\.1' in Debian bookworm for amd64"):
        prepared()


def test_a_source_that_the_archive_has_replaced(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: Archive, __: list[Package]) -> list[Path]:
        raise LabError("apt-get -q download (Debian bookworm, amd64): E: Failed to fetch linux-source-6.1: 404  Not Found")

    monkeypatch.setattr(Archive, "fetch", gone)
    with pytest.raises(LabError, match=r"404  Not Found; to read the archive's index again: ktrxer lab setup --update"):
        prepared()


def test_the_other_kernel_is_offered_when_the_archive_has_another_version(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Archive, "index", {})
    with pytest.raises(LabError, match=r"no package 'linux-source-7\.3' in .*its current version differs; use --kernel 6\.1, --kernel 6\.12"):
        uml.prepare("7.3", print)


@pytest.mark.parametrize("kernel", ["6.1-virtual", "6.12-virtual"])
def test_the_timer_of_a_clock_keeps_its_function(kernel: str) -> None:
    """hrtimer_init() clears the timer, and hrtimer_start() does nothing without a function: slews would not end."""
    folder = places.data() / "kernels"
    edits = source._edits(Recipe.load().get("kernels", kernel), folder)
    (change,) = [one for one in edits["replace"] if one["file"] == "net/core/host_clock.c"]
    text = edits["add"]["net/core/host_clock.c"].replace(change["old"], change["new"])
    assert 0 < text.index("hrtimer_init(&of->second, CLOCK_MONOTONIC") < text.index("of->second.function = next_second;")
    assert "hrtimer_setup" not in text


def test_options_of_a_kernel(tmp_path: Path) -> None:
    spec = {"without": ["CONFIG_B"], "also": ["CONFIG_C=y"]}
    wanted = kernel_build.options(spec, "# Text.\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_BB=y\n")
    assert wanted.splitlines() == ["# Text.", "CONFIG_A=y", "CONFIG_BB=y", "CONFIG_C=y"]
    (tmp_path / ".config").write_text("CONFIG_A=y\n# CONFIG_BB is not set\nCONFIG_C=y\n")
    with pytest.raises(LabError, match="does not accept CONFIG_BB=y: an option"):
        source._check_options(wanted, tmp_path / ".config")


@pytest.mark.slow
def test_a_slow_build_is_waited_for_and_one_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SILENCE_S", 0.5)
    made = Progress("slow", 10, (message := list[str]()).append)
    source._run(["sh", "-c", "for i in 1 2 3 4 5 6 7; do sleep 0.1; echo '  CC      a.o'; done; printf '  CC      last.o'"], made)
    assert made.compiled == 8 and message == []
    with pytest.raises(BuildFailure, match=r"make has printed nothing for 0\.5 s"):
        source._run(["sh", "-c", "echo begun; exec sleep 1000"])
    with pytest.raises(BuildFailure, match=r"does not build: a\.c:1: error: no"):
        source._run(["sh", "-c", "echo 'a.c:1: error: no'; exit 2"])


def test_programs_that_a_build_needs_are_named(builds: Builds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"without make flex bison bc xz-utils; install it with: apt-get install"):
        source._check_programs("um")


def test_the_log_of_a_build_that_fails(builds: Builds) -> None:
    tools = toolchain.Tools("um", "", "gcc")
    with pytest.raises(BuildFailure, match="the kernel does not build: make failed") as caught:
        source._run(["sh", "-c", "echo one; echo two; exit 2"])
    assert caught.value.log == "one\ntwo" and tools.arch in kernel_build.TARGETS


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_progress_is_a_line_a_minute(builds: Builds) -> None:
    message, noted, clock = list[str](), list[str](), Clock()
    progress = Progress("6.1-virtual", 20, message.append, None, clock, noted.append)
    for second in range(250):
        clock.now = 1000.0 + second
        if second == 30:
            progress.begin("unpacking the source")
        if second == 100:
            progress.begin("compiling")
        if second >= 100 and second % 20 == 0:
            progress.line("  CC      kernel/a.o")
            progress.line("  LD      something")
        progress.tick()
    assert message == [
        "kernel 6.1-virtual: unpacking the source, 1 min so far, usually 4 to 35 min",
        "kernel 6.1-virtual: compiling, 2 of about 20 files (10 %), 2 min so far, usually 4 to 35 min",
        "kernel 6.1-virtual: compiling, 5 of about 20 files (25 %), 3 min so far, usually 4 to 35 min",
        "kernel 6.1-virtual: compiling, 8 of about 20 files (40 %), 4 min so far, usually 4 to 35 min",
    ]
    assert [f"kernel 6.1-virtual: {state}" for state in noted] == message


def test_progress_of_a_build_with_more_files_than_expected(builds: Builds) -> None:
    progress = Progress("6.1-virtual", 2, print, None, Clock())
    progress.begin("compiling")
    progress.compiled, progress.before_s = 3, 3600.0
    assert progress.state() == "compiling, 3 of about 2 files (99 %), 60 min so far, usually 4 to 35 min"


def test_progress_is_one_line_on_a_terminal(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    message, terminal, clock = list[str](), io.StringIO(), Clock()
    monkeypatch.setenv("COLUMNS", "40")
    with Progress("6.1-virtual", 200, message.append, terminal, clock) as progress:
        progress.begin("compiling")
        for _ in range(200):
            clock.now += 1
            progress.tick()
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert message == [] and drawn[1] == "kernel 6.1-virtual: compiling, 1 s so far, usually"[:39] and drawn[-1] == "", "no line is left"


def test_progress_ticks_by_itself_while_a_step_takes_long(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "DRAW_S", 0.001)
    monkeypatch.setattr(progress_module, "LINE_S", 0.001)
    message = Event()
    with Progress("6.1-virtual", 0, lambda _: message.set()) as progress:
        progress.begin("fetching linux-source-6.1")
        assert message.wait(20)


def test_a_process_that_waits_for_a_build_says_so_each_minute(builds: Builds) -> None:
    message, clock = list[str](), Clock()
    with cache.locked("one", what="builds the kernel 7.3-virtual") as lock, (places.cache() / "locks/one").open("a+") as file:

        def pause(seconds: float) -> None:
            clock.now += seconds
            if clock.now > 1090:
                lock.note("builds the kernel 7.3-virtual: compiling")
            if clock.now > 1150:
                fcntl.flock(lock.file, fcntl.LOCK_UN)

        cache._wait(file, message.append, clock, pause)
    begun = time.strftime("%H:%M", time.localtime(lock.since))
    assert message == [
        f"waiting for process {os.getpid()}, since {begun}: builds the kernel 7.3-virtual",
        f"waiting for process {os.getpid()}, since {begun}: builds the kernel 7.3-virtual",
        f"waiting for process {os.getpid()}, since {begun}: builds the kernel 7.3-virtual: compiling",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "since": 1e300, "what": ""}', '{"pid": "x", "since": 1, "what": 1}'])
def test_the_holder_of_a_lock_of_an_older_version(builds: Builds, text: str, tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(text)
    with (tmp_path / "lock").open("a+") as file:
        assert cache._holder(file) == f"another process, which holds {file.name}"


def test_a_free_lock_is_taken_without_a_word(builds: Builds) -> None:
    message = list[str]()
    with cache.locked("one", show=message.append), pytest.raises(BlockingIOError), cache.locked("one", wait=False):
        pass
    assert message == []


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_build_at_once(tmp_path: Path, signal_number: int) -> None:
    """The command itself, with a make that computes until a signal ends it."""
    program = tmp_path / "interrupted.py"
    program.write_text(
        "import sys\nfrom ktrxer_lab import __main__, command, source\n"
        "def prepare(*_):\n    print('ready', flush=True)\n    source._run(['sh', '-c', 'echo begun; exec sleep 1000'])\n"
        "command.stock.prepare = prepare\nsys.argv = ['lab', 'setup', '--device', 'uml']\nraise SystemExit(__main__.program())\n"
    )
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        began = time.monotonic()
        process.send_signal(signal_number)
        assert process.wait(60) == 130 and time.monotonic() - began < 30
        assert process.stderr.read() == b""


def test_guests_share_no_cpu_while_there_are_enough(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml.os, "sched_getaffinity", lambda _: {2, 5})
    with uml._cpu() as first:
        with uml._cpu() as second, uml._cpu() as third:
            assert (first, second) == (2, 5) and third in (2, 5)
        with uml._cpu() as again:
            assert again == 5


def test_virtual_time_names_its_kernels(builds: Builds) -> None:
    with pytest.raises(LabError, match=r"no kernel '2\.4' for virtual time; choose one of: 6\.1"):
        uml.prepare("2.4", lambda _: None)
