# SPDX-License-Identifier: MIT OR Apache-2.0
"""The built public interface: symbols of the libraries, and forbidden calls in the library's sources."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KTRXER_BUILD", ROOT / "build"))
HEADERS = [ROOT / "include/ktrxer.h", *sorted((ROOT / "include/ktrxer").glob("*.h"))]
LIBRARY = [*HEADERS, *sorted((ROOT / "lib").rglob("*.[ch]"))]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def declared() -> set[str]:
    """The functions that the public headers declare."""
    text = "".join(re.sub(r"^#.*", "", COMMENT.sub("", header.read_text()), flags=re.M) for header in HEADERS)
    return set(re.findall(r"KTRXER_API[^;(]*?(\w+)\(", text))


def recorded() -> set[str]:
    text = COMMENT.sub("", (ROOT / "lib/libktrxer.map").read_text())
    return set(re.findall(r"^\t(\w+);$", text, re.M))


def built(name: str) -> Path:
    """A file of the build. A configured build that did not make it is a failure."""
    path = BUILD / "lib" / name
    if not (BUILD / "build.ninja").exists():
        pytest.skip(f"no build in {BUILD}: `make build` makes it")
    assert path.exists(), f"{BUILD} was configured, but has no {path.name}"
    return path


def interface_version() -> tuple[str, str]:
    """MAJOR and MINOR of the public headers."""
    text = (ROOT / "include/ktrxer/base.h").read_text()
    major, minor = (re.findall(rf"^#define KTRXER_INTERFACE_{part} (\d+)$", text, re.M)[0] for part in ("MAJOR", "MINOR"))
    return major, minor


def symbols(*words: str | Path) -> list[str]:
    return subprocess.run(["nm", "--defined-only", *words], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_map_names_what_the_headers_declare() -> None:
    assert recorded() == declared()


def test_the_shared_library_exports_the_declared_functions_with_their_version() -> None:
    exported = {line.split()[-1] for line in symbols("-D", built("libktrxer.so"))} - {"KTRXER_1.0"}
    assert exported == {f"{name}@@KTRXER_1.0" for name in declared()}


def test_one_version_of_the_interface() -> None:
    """The headers, the SONAME, the file, the symbols, the pkg-config file and the Debian packages agree."""
    major, minor = interface_version()
    library = built("libktrxer.so")
    dynamic = subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"SONAME +(\S+)", dynamic) == [f"libktrxer.so.{major}"]
    assert library.resolve().name == f"libktrxer.so.{major}.{minor}"
    assert re.findall(r"^(\w+\.\d+\.?\d*) \{", (ROOT / "lib/libktrxer.map").read_text(), re.M) == [f"KTRXER_{major}.{minor}"]
    assert f"interface={major}.{minor}\n" in (BUILD / "meson-private/libktrxer.pc").read_text()
    packages = set(re.findall(r"^Package: (libktrxer\d.*)$", (ROOT / "debian/control").read_text(), re.M))
    assert packages == {f"libktrxer{major}"}
    assert (ROOT / f"debian/libktrxer{major}.install").exists()


def test_results_carry_the_size_of_the_callers_struct() -> None:
    """A parameter that points to a struct of the public headers is constant, is opaque, has a size beside it, or never grows."""
    text = "".join(COMMENT.sub("", header.read_text()) for header in HEADERS)
    opaque = set(re.findall(r"^struct (\w+);", text, re.M))
    # Never grow, or begin with `size`.
    known = opaque | {"ktrxer_error", "ktrxer_addr", "ktx_range"}
    missing = [
        f"{name}: {struct}"
        for name, parameters in re.findall(r"^KTRXER_API[^;(]*?(\w+)\(([^;]*)\);", text, re.M)
        for struct in re.findall(r"(?<!const )struct (\w+) \*(?!\w+, size_t \w*size)", " ".join(parameters.split()))
        if struct not in known
    ]
    assert missing == []


def test_each_sized_function_has_an_inline_function() -> None:
    text = "".join(COMMENT.sub("", header.read_text()) for header in HEADERS)
    sized = {name.removesuffix("_sized") for name in declared() if name.endswith("_sized")}
    assert set(re.findall(r"^static inline [^;{(]*?(\w+)\(", text, re.M)) == sized
    assert len(sized) > 15


def test_each_global_symbol_of_the_static_library_has_a_prefix() -> None:
    """libktrxer.a defines no global name without its prefix, so that a program may use any other name."""
    lines = [line.split() for line in symbols("--extern-only", built("libktrxer.a"))]
    # Names with two leading underscores belong to the compiler (sanitizers and coverage).
    names = {line[2] for line in lines if len(line) == 3}
    assert len(names) > 250  # 287 without BPF
    assert sorted(name for name in names if not re.match(r"ktrxer_|ktx_|krx_|__", name)) == []


def test_each_function_has_a_contract() -> None:
    """Each declaration has a comment directly above it."""
    missing = [
        re.sub(r".*?(\w+)\(.*", r"\1", line)
        for header in HEADERS
        for before, line in itertools.pairwise(header.read_text().splitlines())
        if line.startswith("KTRXER_API") and not before.endswith("*/")
    ]
    assert missing == []


def uncommented(path: Path) -> str:
    """The text without comments and with the same line numbers."""
    return COMMENT.sub(lambda found: "\n" * found.group().count("\n"), path.read_text())


def findings(pattern: str, paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(uncommented(path).splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_no_option_of_the_command_in_the_library() -> None:
    """A message of the library contains no option names, because it cannot know the command line."""
    assert findings(r'"[^"]*--[a-z]', LIBRARY) == []


def test_the_library_does_not_read_the_environment() -> None:
    assert findings(r"getenv|\benviron\b", LIBRARY) == []


def compared(place: Path, header: str, before: str, after: str) -> tuple[int, str]:
    """The output of tests/interface for a copy of the headers with one replaced text."""
    shutil.copytree(ROOT / "include", place / "include")
    (place / "tests").mkdir()
    for name in ("interface", "interface.txt"):
        shutil.copy(ROOT / "tests" / name, place / "tests" / name)
    path = place / "include" / "ktrxer" / header
    text = path.read_text()
    assert text.count(before) == 1, f"{header}: `{before}` is there {text.count(before)} times"
    path.write_text(text.replace(before, after))
    done = subprocess.run([sys.executable, "tests/interface"], cwd=place, capture_output=True, text=True, timeout=60)
    if "32 bits" in done.stdout:
        pytest.skip("the record is for 64-bit pointers")
    return done.returncode, done.stdout + done.stderr


# Each change of an interface that breaks programs, or has to be recorded: header, text, replacement, a line of the difference.
CHANGES = {
    "nothing": ("tx.h", "struct ktx_slot {", "struct ktx_slot {", ""),
    "a comment": ("base.h", "/* negative errno, 0 when nothing went wrong */", "/* another */", ""),
    "a struct grows": ("base.h", "\tuint32_t scope_id;", "\tuint32_t scope_id, zone;", "+struct ktrxer_addr 28"),
    "a field of a result in its padding": (
        "schedule.h",
        "\tbool train_goes_on;",
        "\tbool train_goes_on;\n\tuint8_t more;",
        "interface: struct ktrxer_deadline: uint8_t more: begins in front of the recorded end of the struct, so the size does not show the field",
    ),
    "an inline function goes": ("tx.h", "static inline int ktx_reserve(", "static inline int ktx_reserve_now(", "-inline int ktx_reserve(struct ktx *tx, struct ktx_slot *slot)"),
    "a field goes": ("rx.h", "\tuint32_t priority;", "\t", "-\t64 4 uint32_t priority"),
    "two fields change places": ("rx.h", "from_prefix, to_prefix", "to_prefix, from_prefix", "+\t56 1 uint8_t to_prefix"),
    "a type of the same size": ("rx.h", "\tuint32_t snap_length;", "\tint32_t snap_length;", "+\t24 4 int32_t snap_length"),
    "an array grows into the padding": ("path.h", "\tuint8_t mac[6];", "\tuint8_t mac[8];", "+\t24 8 uint8_t mac[8]"),
    "an enumerator changes": ("tx.h", "KTX_LATE_SHIFT = 2,", "KTX_LATE_SHIFT = 3,", "+\tKTX_LATE_SHIFT 3"),
    "a constant changes": ("base.h", "#define KTRXER_ADDR_TEXT 64", "#define KTRXER_ADDR_TEXT 65", "+define KTRXER_ADDR_TEXT 65"),
    "an initial value changes": ("tx.h", ".cpu = -1 }", ".cpu = 0 }", "+define KTX_OPTIONS_INIT { .size = sizeof(struct ktx_options), .cpu = 0 }"),
    "a parameter changes": ("tx.h", "int ktx_fd(const struct ktx *tx)", "int ktx_fd(struct ktx *tx)", "+int ktx_fd(struct ktx *tx)"),
    "a function goes": ("base.h", "KTRXER_API uint64_t ktrxer_now_ns(void);", "", "-uint64_t ktrxer_now_ns(void)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_the_recorded_interface(change: str, tmp_path: Path) -> None:
    header, before, after, line = CHANGES[change]
    status, output = compared(tmp_path, header, before, after)
    assert (status, line in output.splitlines() or not line) == (1 if line else 0, True), output


def test_no_atomic_has_64_bits() -> None:
    """32-bit MIPS has no 64-bit atomics: a program with one does not link."""
    floors = [path for floor in ("lib", "methods", "capture", "cli", "bench") for path in sorted((ROOT / floor).rglob("*.[ch]"))]
    assert findings(r"_Atomic\(? ?u?int64_t|atomic_u?llong|_Atomic (unsigned )?long long|_Atomic (double|size_t)", floors) == []
