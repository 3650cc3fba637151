# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels built from source: the cache keeps only complete ones, and messages name missing parts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from ktrxer_lab import cache, places, source, toolchain, uml
from ktrxer_lab.errors import BuildFailure, LabError, Unavailable
from ktrxer_lab.packages import Archive, Package
from ktrxer_lab.recipe import Recipe

NAME = "6.1-virtual"


class Builds:
    """A stand-in for Debian's archive and for make."""

    def __init__(self) -> None:
        self.count = 0
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


def prepared(said: list[str] | None = None) -> Path:
    return source.prepared(Recipe.load(), "amd64", NAME, (said if said is not None else []).append)


def test_a_kernel_is_built_once(builds: Builds) -> None:
    first, second = prepared(), prepared()
    assert first == second and builds.count == 1
    assert (first / "vmlinuz").read_bytes() == b"kernel" and (first / "version").read_text() == "6.1.1"
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_a_damaged_kernel_is_built_again(builds: Builds) -> None:
    folder, said = prepared(), list[str]()
    (folder / "vmlinuz").write_bytes(b"kernal")
    assert prepared(said) == folder and builds.count == 2
    assert (folder / "vmlinuz").read_bytes() == b"kernel" and "is damaged" in said[0]
    (folder / "vmlinuz").unlink()
    prepared()
    assert builds.count == 3


def test_an_interrupted_build_leaves_nothing_and_the_next_one_starts_anew(builds: Builds) -> None:
    builds.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        prepared()
    assert list((places.cache() / "kernels").iterdir()) == []
    builds.fails = None
    folder = prepared()
    # The next build removes the files of a build that was killed by SIGKILL.
    (folder / "version").unlink()
    left, of_another, running = (folder.with_name(f".{name}.99999999") for name in (folder.name, "amd64-6.12-debug-1", "amd64-7.3-virtual-2"))
    for path in (left, of_another, running):
        path.mkdir()
    with cache.locked("amd64-7.3-virtual-2"):
        prepared()
    assert not left.exists() and not of_another.exists() and running.exists()


def test_a_source_of_another_version_is_named(builds: Builds) -> None:
    builds.other = "process.c"
    with pytest.raises(LabError, match=r"process\.c of .* has no .*the source has changed"):
        prepared()


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
    wanted = source._options(spec, "# Text.\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_BB=y\n")
    assert wanted.splitlines() == ["# Text.", "CONFIG_A=y", "CONFIG_BB=y", "CONFIG_C=y"]
    (tmp_path / ".config").write_text("CONFIG_A=y\n# CONFIG_BB is not set\nCONFIG_C=y\n")
    with pytest.raises(LabError, match="does not accept CONFIG_BB=y: an option"):
        source._check_options(wanted, tmp_path / ".config")


def test_a_slow_build_is_waited_for_and_one_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SILENCE_S", 0.5)
    made = source._Progress("slow", 10, (said := list[str]()).append)
    source._run(["sh", "-c", "for i in 1 2 3 4 5 6 7; do sleep 0.1; echo '  CC      a.o'; done; printf '  CC      last.o'"], made)
    assert made.compiled == 8 and said[-1] == "building slow: 80 % (8 of about 10 files)"
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
    assert caught.value.log == "one\ntwo" and tools.arch in source.TARGETS


def test_progress_is_said_each_tenth() -> None:
    said = list[str]()
    progress = source._Progress("6.1-virtual", 20, said.append)
    for number in range(30):
        progress.line(f"  CC      kernel/{number}.o")
        progress.line("  LD      something")
    assert len(said) == 9 and said[4] == "building 6.1-virtual: 50 % (10 of about 20 files)"


def test_progress_is_a_bar_on_a_terminal() -> None:
    said, terminal = list[str](), io.StringIO()
    progress = source._Progress("6.1-virtual", 200, said.append, terminal)
    for number in range(300):
        progress.line(f"  CC      kernel/{number}.o")
    progress.end()
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert said == [] and drawn[50] == "building 6.1-virtual [####################....................] 50 %"
    assert drawn[99].endswith(" 99 %") and drawn[100:] == [""], "each percent once, and no bar is left"


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
