# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line for people: help, manual pages, completion, usage errors."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import manual
import metrics
import pytest
import tables
from programs import (
    KTRXER,
    PROGRAMS,
    ROOT,
    SELFTEST,
    commands_of,
    every_command,
    run,
    selftest,
)

# ------------------------------------------------------------------------------------------------------------------ help


@pytest.mark.parametrize("program,name", every_command())
def test_help_of_each_command(program, name):
    help_ = run(program, *name.split(), "--help")
    assert help_.returncode == 0 and help_.stderr == ""
    assert help_.stdout.startswith(f"usage: ktrxer {name}")
    assert all(len(line) <= 100 for line in help_.stdout.splitlines())
    assert run(program, "help", *name.split()).stdout == help_.stdout
    # The page contains no option that the parser rejects.
    options = re.findall(r"^  (?:-(\w), |    )--(\[no-\])?([\w-]+)( \S+)?", help_.stdout, re.M)
    for letter, negatable, option, argument in options:
        words = [f"--{option}"] + ([f"-{letter}"] if letter else []) + ([f"--no-{option}"] if negatable else [])
        for word in words:
            tried = run(program, *name.split(), word + ("=" if argument and word.startswith("--") else ""), "--", "x", "x", "x", "x")
            assert "no such option" not in tried.stderr, (word, tried.stderr)


# Commands that neither measure nor serve.
NOT_MEASURING = {
    "batch", "compare", "config", "doctor", "export", "import", "lab", "new", "note", "plot", "ppt estimate", "ppt plan", "query", "recover", "report", "runs",
    "summary", "tests", "truth", "view",
}  # fmt: skip
# Options with the same letter and meaning but different names: a list of engines, and one engine.
SAME = {"engines": "engine"}
# A list of files descends with -r, as other programs do; it has no rate.
OTHERWISE = {("runs", "recursive")}


def test_a_letter_means_the_same_in_every_command():
    """The options of the commands in C and in Python, from their help."""
    from ktrxer.cli import SUBCOMMANDS

    found: dict[str, set[str]] = {}
    names = [name for program, name in every_command() if program == KTRXER]
    if "bench" in names:
        names += [f"bench {name}" for name in ("rate", "schedule", "pairs", "stamps", "receive")]
    shown = {name: run(KTRXER, *name.split(), "--help").stdout for name in names}
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "python")}
    for name in SUBCOMMANDS:
        done = subprocess.run([sys.executable, "-m", "ktrxer", name, "--help"], capture_output=True, text=True, env=environment)
        shown[name] = done.stdout
    for command, text in shown.items():
        assert text.startswith("usage: "), text
        assert not re.search(r"^  -\w(?: \S+)?(?:$|  )", text, re.M), f"{command}: a letter without a name"
        for letter, name in re.findall(r"^ +-(\w)(?: [A-Z=,\[\].]+)?, --(?:\[no-\])?([\w-]+)", text, re.M):
            if (command, name) not in OTHERWISE:
                found.setdefault(letter, set()).add(SAME.get(name, name))
        if command not in NOT_MEASURING and not command.startswith("bench"):
            assert all(f"--{name}" in text for name in ("json", "jsonl", "quiet")), f"{command} has no --json, --jsonl or -q"
    assert {"p", "i", "r", "b", "s", "c", "q"} <= found.keys()
    assert {letter: names for letter, names in found.items() if len(names) > 1} == {}


# Options of one name whose values differ in kind: links or packets a second; a mark or a list of words; digits or a number. Those of the
# bench's tables are refused in two places.
OF_TWO_KINDS = {"compare", "cross", "csv", "ecn", "seed"}


def test_an_option_has_one_row_in_the_sources():
    """Commands that share an option use its row in cli/options/shared_options.h."""
    found: dict[str, list[str]] = {}
    for folder in ("cli", "bench/harness"):
        for path in sorted(ROOT.glob(f"{folder}/**/*.[ch]")):
            for name in re.findall(r'\{\s*(?:\.name = )?"([a-z0-9-]+)",[^{}]*?OPT_[A-Z]+', path.read_text()):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert found["port"] == ["cli/options/shared_options.h"] and len(found) > 80
    several = {name: places for name, places in found.items() if len(places) > 1 and name not in OF_TWO_KINDS}
    assert several == {"dscp": ["cli/options/shared_options.h"] * 2}  # one mark, or a list


def test_help_lists_the_commands_of_the_python_part():
    """The index lists each command and no other."""
    from ktrxer.cli import SUBCOMMANDS

    listed = run(KTRXER, "--help").stdout.split("\nExperiments")[1]
    told = dict(re.findall(r"^  ([\w-]+) +(.*)$", listed, re.M))
    assert told.keys() == SUBCOMMANDS.keys()


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_version(program):
    assert run(program).returncode == 2
    for word in ("--help", "-h", "help"):
        shown = run(program, word)
        assert shown.returncode == 0 and shown.stdout.startswith("usage: ktrxer COMMAND")
        assert all(len(line) <= 100 for line in shown.stdout.splitlines())
        assert "secret" not in shown.stdout
    assert re.fullmatch(r"ktrxer \d+\.\d+\.\d+\n", run(program, "--version").stdout)
    assert run(program, "version").stdout == run(program, "--version").stdout


def test_help_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        for args in (["--help"], ["tick", "--help"], ["--version"]):
            done = subprocess.run([SELFTEST, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=10)
            assert done.returncode == 1
            assert "standard output cannot be written" in done.stderr


def test_hidden_command_works_and_is_not_spoken_of(tmp_path):
    assert selftest("secret").returncode == 0
    assert selftest("--generate", "man", str(tmp_path)).returncode == 0
    for made in tmp_path.iterdir():
        assert "secret" not in made.name and "unspoken" not in made.read_text()
    for words in ([""], ["s"], ["help", ""], ["tick", "--"]):
        offered = selftest("--complete", *words).stdout
        assert offered and "secret" not in offered and "unspoken" not in offered


# ----------------------------------------------------------------------------------------------------- pages, completion


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
@pytest.mark.parametrize("program", PROGRAMS)
def test_man_pages_are_clean(program, tmp_path):
    assert run(program, "--generate", "man", str(tmp_path / "man1")).returncode == 0
    pages = sorted((tmp_path / "man1").iterdir())
    assert {page.name for page in pages} == {"ktrxer.1"} | {f"ktrxer-{name.replace(' ', '-')}.1" for name in commands_of(program)}
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
    assert lint.stdout + lint.stderr == "" and lint.returncode == 0
    if program == SELFTEST:
        shown = subprocess.run(["mandoc", "-T", "utf8", tmp_path / "man1" / "ktrxer-tick.1"], capture_output=True, text=True).stdout
        assert ".So it is a 'test' of \\f escapes - and dashes." in re.sub(".\b", "", shown)


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_man_pages_of_the_python_part(tmp_path):
    """Each subcommand has a page from its argument parser with each option of its help, without a warning of mandoc, installed beside the others."""
    from importlib import import_module

    from ktrxer.cli import SUBCOMMANDS
    from ktrxer.manual import main

    assert main([str(tmp_path)]) == 0
    pages = sorted(tmp_path.iterdir())
    assert [page.name for page in pages] == sorted(f"ktrxer-{name}.1" for name in SUBCOMMANDS)
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
    assert lint.stdout + lint.stderr == "" and lint.returncode == 0
    for name, command in SUBCOMMANDS.items():
        shown = subprocess.run(["mandoc", "-T", "ascii", tmp_path / f"ktrxer-{name}.1"], capture_output=True, text=True).stdout
        shown = re.sub(".\b", "", shown)
        parsers = [import_module(command.module).parser()]
        while parsers:
            for action in parsers.pop()._actions:
                names = action.option_strings if action.help != argparse.SUPPRESS else []
                assert all(re.search(rf"^ +([-\w]+, )*{option}\b", shown, re.M) for option in names), (name, names)
                if not action.option_strings and isinstance(action.choices, dict):
                    parsers += action.choices.values()
    index = subprocess.run(["mandoc", "-T", "ascii", KTRXER.parent / "generated" / "man1" / "ktrxer.1"], capture_output=True, text=True).stdout
    assert all(f"ktrxer-{name}(1)" in re.sub(".\b", "", index) for name in SUBCOMMANDS)
    told = subprocess.run(["meson", "introspect", "--installed", KTRXER.parents[1]], capture_output=True, text=True, check=True).stdout
    places = {Path(place).name: Path(place).parent for place in json.loads(told).values()}
    assert {places[f"ktrxer-{name}.1"] for name in SUBCOMMANDS} == {places["man1"] / "man1"}


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
@pytest.mark.parametrize("page", sorted(manual.sections(tables.load())))
def test_man_pages_have_each_field_of_the_tables(page):
    """Section OUTPUT of the page that the build made, in the order of the table; the program does not carry its sentences."""
    known, command = tables.load(), page.removeprefix("ktrxer-")
    pages = [path for path in KTRXER.parents[1].rglob(f"{page}.1") if path.is_file()]
    shown = subprocess.run(["mandoc", "-T", "utf8", *pages], capture_output=True, text=True, check=True).stdout
    output = re.sub(".\b", "", shown).partition("\nOUTPUT\n")[2].partition("\nEXIT STATUS\n")[0]
    groups = [one.has for one in known.objects if one.command.replace(" ", "-") == command] if page != "ktrxer" else [groups for _, groups in manual.COMMON]
    fields = [(name, one) for has in groups for name, one, _ in known.rows(has)]
    more = [one.sample for one in metrics.load()] if page == "ktrxer-serve" else []
    assert [name for name, _ in fields] + more == re.findall(r"^ {5}([A-Za-z]\S*) \(", output, re.M)
    assert not [one.text for _, one in fields if len(one.text) > 30 and one.text.encode() in KTRXER.read_bytes()]


SNIPPETS = ROOT / "cli" / "completion"


def complete(program, *words):
    """The completions of bash for the last of `words`."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ktrxer; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-uc", script, "-", SNIPPETS / "ktrxer.bash", program, *words], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("program", PROGRAMS)
def test_bash_completion_loads(program):
    done = subprocess.run(["bash", "-c", f"source {SNIPPETS}/ktrxer.bash && complete -p ktrxer"], capture_output=True, text=True)
    assert done.stdout == "complete -F _ktrxer ktrxer\n" and done.stderr == ""
    offered = complete(program, "")
    assert {name.split()[0] for name in commands_of(program)} | {"run", "help", "--version"} <= set(offered)


def test_bash_completion_offers():
    assert complete(SELFTEST, "ti") == ["tick"]
    assert complete(SELFTEST, "look", "") == ["every", "up"]
    assert complete(SELFTEST, "look", "up", "--fl") == ["--flood"]
    assert complete(SELFTEST, "look", "every", "--no-") == ["--no-color", "--no-precise"]
    assert complete(SELFTEST, "look", "every", "--device", "l") == ["lo"]
    assert complete(SELFTEST, "look", "every", "-d", "l") == ["lo"]
    assert complete(SELFTEST, "say", "--verdict", "inv") == ["invalid"]
    assert complete(SELFTEST, "say", "--verdict", "=", "inv") == ["invalid"]
    assert complete(SELFTEST, "say", "--verdict", "=") == ["valid", "degraded", "invalid", "fail", "usage", "slip"]
    assert complete(SELFTEST, "tick", "--count", "") == []
    assert complete(SELFTEST, "help", "ti") == ["tick"]


def test_tests_of_run_are_offered_before_files(tmp_path, monkeypatch):
    """The names of the catalogue, those of the user's own tests, then files, which may be tests, too."""
    own = tmp_path / "ktrxer" / "tests"
    own.mkdir(parents=True)
    (own / "tcp_mine.py").write_text('"""Mine."""\nraise SystemExit("completion must not execute it")\n')
    (tmp_path / "tcp_file.py").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for command in ("run", "tests"):
        offered = complete(KTRXER, command, "tcp_")
        assert {"tcp_upload", "tcp_download", "tcp_mine", "tcp_file.py"} <= set(offered) and offered[-1] == "tcp_file.py"
        assert all(one.startswith("tcp_") for one in offered)
    assert complete(KTRXER, "run", "tcp_upload", "--again", "tcp_") == ["tcp_file.py"]


def test_the_value_in_the_word_of_its_option_is_completed_with_it():
    """A completion as zsh and fish give it, in one word."""
    assert selftest("--complete", "say", "--verdict=inv").stdout == "--verdict=invalid\n"
    assert selftest("--complete", "say", "--nonsense=inv").stdout == ""
    assert run(KTRXER, "--complete", "recv", "--write=").stdout == ":files\n"


def test_options_of_the_bench_come_from_its_program():
    if "  bench " not in run(KTRXER, "--help").stdout:
        pytest.skip("this build has no bench")
    assert {"rate", "schedule", "pairs", "stamps"} <= set(complete(KTRXER, "bench", ""))
    assert complete(KTRXER, "bench", "rate", "--thr") == ["--threads"] and complete(KTRXER, "bench", "pairs", "--thr") == []


def test_options_of_the_python_part_are_offered(tmp_path):
    """Completions of a Python command, from its parsers; for `lab` from the subcommand's."""
    (tmp_path / "rrul.ktrxer").touch()
    assert complete(KTRXER, "run", "--fo") == ["--for"] and complete(KTRXER, "run", "--len") == []
    assert complete(KTRXER, "report", "rrul.ktrxer", "-") == ["--help", "--output", "--points", "--names", "--force", "--json"]
    assert complete(KTRXER, "lab", "run", "--be") == ["--beside"] and complete(KTRXER, "lab", "vm", "--be") == []
    assert complete(KTRXER, "lab", "to") == ["topology"]
    assert complete(KTRXER, "summary", f"{tmp_path}/rr") == [f"{tmp_path}/rrul.ktrxer"]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completion_offers(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{KTRXER.parent}:{os.environ['PATH']}")
    (tmp_path / "rrul.ktrxer").touch()

    def offered(line):
        script = f"source {SNIPPETS}/ktrxer.fish; complete -C '{line}'"
        done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, timeout=30)
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    assert offered("ktrxer run --fo") == ["--for"] and offered("ktrxer lab run --be") == ["--beside"]
    assert offered("ktrxer pi") == ["ping"] and offered("ktrxer ping --device=l") == ["--device=lo"] and offered("ktrxer ping -d l") == ["lo"]
    assert offered(f"ktrxer summary {tmp_path}/rr") == [f"{tmp_path}/rrul.ktrxer"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_completion_offers(monkeypatch):
    """The completion function of zsh, with the calls of zsh's completion system replaced by functions that print."""
    monkeypatch.setenv("PATH", f"{KTRXER.parent}:{os.environ['PATH']}")
    script = """
        _describe() { print -l -- $offered }
        _files() { print -- files $* }
        compset() { PREFIX=${PREFIX#*=} }
        words=("$@"); CURRENT=$#; PREFIX=$words[-1]
        source "$SNIPPET"
    """
    environment = os.environ | {"SNIPPET": str(SNIPPETS / "_ktrxer")}

    def offered(*words):
        done = subprocess.run(["zsh", "-f", "-c", script, "zsh", "ktrxer", *words], capture_output=True, text=True, timeout=30, env=environment)
        assert done.stderr == ""
        return done.stdout.splitlines()

    assert [line.split(":")[0] for line in offered("pi")] == ["ping"]
    assert offered("ping", "--device=l") == ["--device=lo:--device=lo"]
    assert offered("recv", "--write", "x") == ["files"]


def test_generate_says_what_it_cannot(tmp_path):
    assert selftest("--generate").returncode == 2
    assert selftest("--generate", "bash", str(tmp_path)).returncode == 2
    assert selftest("--generate", "man", "/dev/null/x").returncode == 1


# ----------------------------------------------------------------------------------------------------------- typed wrong


@pytest.mark.parametrize(
    "args,text",
    [
        (["tcik"], "ktrxer: 'tcik': no such command; did you mean `ktrxer tick`?"),
        (["tic"], "did you mean `ktrxer tick`?"),
        (["xyzzyx"], "no such command (see `ktrxer --help`)\n"),
        (["secre"], "no such command (see `ktrxer --help`)\n"),
        (["--count"], "options stand after the command"),
        (["tick", "--cuont=3"], "ktrxer tick: --cuont: no such option; did you mean --count? (see `ktrxer tick --help`)\n"),
        (["tick", "--cou", "3"], "--cou: no such option; did you mean --count?"),
        (["tick", "--start"], "did you mean --start-at?"),
        (["tick", "-c"], "--count: a value is missing: --count N"),
        (["tick", "-c", "-i", "1ms"], "--count: a value is missing, '-i' follows"),
        (["tick", "-c", "1e3"], "--count: '1e3' is not a number"),
        (["tick", "-c", "18446744073709551616"], "too large"),
        (["tick", "-c", ""], "--count: its value is empty"),
        (["tick", "-i", "-1ms"], "--interval=-1ms"),
        (["tick", "--interval=-1ms"], "it is negative"),
        (["tick", "--interval=1M"], "units are small letters"),
        (["tick", "--pad", "4097"], "from 0 to 4096 is possible"),
        (["tick", "extra"], "'extra' is one word too many"),
        (["tick", "--json", "--jsonl"], "exclude each other"),
        (["tick", "-x"], "-x: no such option"),
        (["say", "--verdict", "dgraded"], "did you mean 'degraded'?"),
        (["look"], "ktrxer look: COMMAND is missing: every, up (see `ktrxer look --help`)\n"),
        (["look", "sideways"], "ktrxer look: 'sideways': no such command (see `ktrxer look --help`)\n"),
        (["look", "\x1b[31m"], "ktrxer look: '?[31m': no such command (see `ktrxer look --help`)\n"),
        (["look", "up"], "HOST is missing"),
        (["look", "up", "x", "--jsonl"], "--jsonl: no such option"),
        (["look", "every", "--json"], "--json: no such option"),
        (["help", "xyzzyx"], "no such command"),
        (["tick", "\x1b[31m\n"], "'?[31m?' is one word too many"),
    ],
)
def test_typed_wrong(args, text):
    done = selftest(*args)
    assert done.returncode == 2 and done.stdout == "" and text in done.stderr


def test_python_part_is_named_when_missing(tmp_path):
    copy = tmp_path / "ktrxer"
    shutil.copy(KTRXER, copy)
    done = run(copy, "run", "rrul")
    if "cannot be started" not in done.stderr and done.returncode == 2:
        assert "belongs to the Python part, which is not installed" in done.stderr
