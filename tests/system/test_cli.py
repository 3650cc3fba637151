# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line as people and programs meet it: what is typed wrong, help and pages, output under bad readers, the end.

Two programs are tested: ktrxer itself, and cli_selftest, which has the same floor under commands that do nothing.
"""

import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KTRXER_BUILD", ROOT / "build"))
KTRXER = BUILD / "cli" / "ktrxer"
SELFTEST = BUILD / "tests" / "system" / "cli_selftest"
PROGRAMS = [KTRXER, SELFTEST]

if not KTRXER.exists() or not SELFTEST.exists():
    pytest.skip(f"no build in {BUILD}: set KTRXER_BUILD", allow_module_level=True)


def run(program, *args, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("timeout", 30)
    return subprocess.run([str(program), *args], capture_output=True, text=True, **options)


def selftest(*args, **options):
    return run(SELFTEST, *args, **options)


def start(*args, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([str(SELFTEST), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def commands_of(program):
    """The names in `--help`, nested ones included."""
    section = run(program, "--help").stdout.split("Commands:\n")[1].split("\nExperiments")[0]
    return [re.match(r"  (\S+(?: \S+)?)  ", line).group(1) for line in section.splitlines() if line.strip()]


def every_command():
    return [(program, name) for program in PROGRAMS for name in commands_of(program)]


# ------------------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("program,name", every_command())
def test_help_of_each_command(program, name):
    help_ = run(program, *name.split(), "--help")
    assert help_.returncode == 0 and help_.stderr == ""
    assert help_.stdout.startswith(f"usage: ktrxer {name}")
    assert all(len(line) <= 100 for line in help_.stdout.splitlines())
    assert run(program, "help", *name.split()).stdout == help_.stdout
    # No option stands there that the parser does not know.
    options = re.findall(r"^  (?:-(\w), |    )--(\[no-\])?([\w-]+)( \S+)?", help_.stdout, re.M)
    for letter, negatable, option, argument in options:
        words = [f"--{option}"] + ([f"-{letter}"] if letter else []) + ([f"--no-{option}"] if negatable else [])
        for word in words:
            tried = run(program, *name.split(), word + ("=" if argument and word.startswith("--") else ""), "--", "x", "x", "x", "x")
            assert "no such option" not in tried.stderr, (word, tried.stderr)


def test_help_lists_the_commands_of_the_python_part():
    """Each that there is, and no other."""
    from ktrxer.cli import SUBCOMMANDS

    listed = run(KTRXER, "--help").stdout.split("\nExperiments")[1]
    told = dict(re.findall(r"^  (\w+) +(.*)$", listed, re.M))
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


def test_help_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        for args in (["--help"], ["tick", "--help"], ["--version"]):
            done = subprocess.run([SELFTEST, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=10)
            assert done.returncode == 1
            assert "standard output cannot be written" in done.stderr


def test_hidden_command_works_and_is_not_spoken_of(tmp_path):
    assert selftest("secret").returncode == 0
    for kind in ("man", "bash", "zsh", "fish"):
        assert selftest("--generate", kind, str(tmp_path)).returncode == 0
    for made in tmp_path.iterdir():
        assert "secret" not in made.name and "unspoken" not in made.read_text()


# ---------------------------------------------------------------------------------------------------- pages, completion


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


def complete(program, tmp_path, *words):
    """What bash would offer for the last of `words`."""
    assert run(program, "--generate", "bash", str(tmp_path)).returncode == 0
    script = 'source "$1/ktrxer"; shift; COMP_WORDS=(ktrxer "$@"); COMP_CWORD=$#; _ktrxer; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-uc", script, "-", str(tmp_path), *words], capture_output=True, text=True, timeout=10)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("program", PROGRAMS)
def test_bash_completion_loads(program, tmp_path):
    assert run(program, "--generate", "bash", str(tmp_path)).returncode == 0
    done = subprocess.run(["bash", "-c", f"source {tmp_path}/ktrxer && complete -p ktrxer"], capture_output=True, text=True)
    assert done.stdout == "complete -F _ktrxer ktrxer\n" and done.stderr == ""
    offered = complete(program, tmp_path, "")
    assert {name.split()[0] for name in commands_of(program)} | {"run", "help", "--version"} <= set(offered)


def test_bash_completion_offers(tmp_path):
    assert complete(SELFTEST, tmp_path, "ti") == ["tick"]
    assert complete(SELFTEST, tmp_path, "look", "") == ["every", "up"]
    assert complete(SELFTEST, tmp_path, "look", "up", "--fl") == ["--flood"]
    assert complete(SELFTEST, tmp_path, "look", "every", "--no-") == ["--no-color"]
    assert complete(SELFTEST, tmp_path, "look", "every", "--device", "l") == ["lo"]
    assert complete(SELFTEST, tmp_path, "look", "every", "-d", "l") == ["lo"]
    assert complete(SELFTEST, tmp_path, "say", "--verdict", "inv") == ["invalid"]
    assert complete(SELFTEST, tmp_path, "say", "--verdict", "=", "inv") == ["invalid"]
    assert complete(SELFTEST, tmp_path, "say", "--verdict", "=") == ["valid", "degraded", "invalid", "fail", "usage", "slip"]
    assert complete(SELFTEST, tmp_path, "tick", "--count", "") == []
    assert complete(SELFTEST, tmp_path, "help", "ti") == ["tick"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("shell,name,check", [("zsh", "_ktrxer", ["-n"]), ("fish", "ktrxer.fish", ["--no-execute"])])
def test_other_completions_are_made(program, shell, name, check, tmp_path):
    assert run(program, "--generate", shell, str(tmp_path)).returncode == 0
    assert (tmp_path / name).stat().st_size > 500
    if shutil.which(shell):
        assert subprocess.run([shell, *check, tmp_path / name], capture_output=True).returncode == 0


def test_generate_says_what_it_cannot(tmp_path):
    assert selftest("--generate").returncode == 2
    assert selftest("--generate", "ksh", str(tmp_path)).returncode == 2
    assert selftest("--generate", "bash", str(tmp_path / "nowhere")).returncode == 1
    assert selftest("--generate", "man", "/dev/null/x").returncode == 1


# ------------------------------------------------------------------------------------------------------ typed wrong


@pytest.mark.parametrize(
    "args,text",
    [
        (["tcik"], "ktrxer: 'tcik': no such command; did you mean `ktrxer tick`?"),
        (["tic"], "did you mean `ktrxer tick`?"),
        (["xyzzyx"], "`ktrxer --help` lists them"),
        (["secre"], "`ktrxer --help` lists them"),
        (["--count"], "options stand after the command"),
        (["tick", "--cuont=3"], "ktrxer tick: --cuont: no such option; did you mean --count?\nusage: ktrxer tick [options]\n"),
        (["tick", "--cou", "3"], "--cou: options are written in full; did you mean --count?"),
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
        (["look"], "usage: ktrxer look COMMAND"),
        (["look", "sideways"], "usage: ktrxer look COMMAND"),
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


# ----------------------------------------------------------------------------------------------------- the hand-over


@pytest.fixture
def open_path():
    """Like tmp_path, but others may enter it: nobody shall be able to start what is in it."""
    path = Path(tempfile.mkdtemp(prefix="ktrxer-cli-")).resolve()
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def tree(open_path):
    """A build tree with an executable of ours and a Python part that says how it was called."""
    tmp_path = open_path
    (tmp_path / "build" / "cli").mkdir(parents=True)
    (tmp_path / "build" / "build.ninja").touch()
    exe = tmp_path / "build" / "cli" / "ktrxer"
    shutil.copy(KTRXER, exe)
    (tmp_path / "python").mkdir(mode=0o755)
    part = tmp_path / "python" / "ktrxer-py"
    part.write_text('#!/bin/sh\necho "part: $0 $* [${PYTHONPATH-none}]"\nexit 7\n')
    part.chmod(0o755)
    return exe, part


def test_other_commands_go_to_the_python_part(tree):
    exe, part = tree
    done = run(exe, "run", "rrul", "--help")
    assert done.returncode == 7 and done.stdout.startswith(f"part: {part} run rrul --help")
    assert run(exe, "help", "run").stdout.startswith(f"part: {part} run --help")
    assert run(exe, "nonsense").returncode == 7
    assert run(exe, "--help").returncode == 0


def test_lab_in_the_build_tree():
    part = Path(__file__).resolve().parents[2] / "python" / "ktrxer-py"
    if any(path.stat().st_mode & 0o022 for path in (part, part.parent)) or KTRXER.resolve().parents[2] != part.parents[1]:
        pytest.skip("this source tree can be written by others, or the build is elsewhere: the Python part is not started from it")
    done = run(KTRXER, "lab", "devices")
    assert (done.returncode, done.stderr) == (0, "") and "router" in done.stdout
    assert run(KTRXER, "help", "lab").stdout.startswith("usage: ktrxer lab")
    done = run(KTRXER, "lab", "vm", "--device", "toaster", "--", "true")
    assert (done.returncode, done.stderr) == (2, "ktrxer lab: no device 'toaster'; choose one of: pc, phone, router\n")
    done = run(KTRXER, "nonsense")
    assert done.returncode == 2 and done.stderr.startswith("ktrxer: 'nonsense': no such command")


def test_a_slip_of_the_finger_is_not_handed_over(tree):
    exe, _ = tree
    done = run(exe, "sned")
    assert done.returncode == 2 and "did you mean `ktrxer send`?" in done.stderr


def test_python_part_that_others_could_have_put_there_is_not_started(tree):
    exe, part = tree
    part.parent.chmod(0o777)
    assert "part:" not in run(exe, "run").stdout
    part.parent.chmod(0o755)
    part.chmod(0o775)
    assert "part:" not in run(exe, "run").stdout
    part.chmod(0o755)
    (exe.parents[1] / "build.ninja").unlink()
    assert "part:" not in run(exe, "run").stdout


def test_privileges_and_environment(tree, open_path):
    exe, part = tree
    other = open_path / "other"
    other.write_text('#!/bin/sh\necho "other [${PYTHONPATH-none}]"\n')
    other.chmod(0o755)
    env = {**os.environ, "KTRXER_PY": str(other), "PYTHONPATH": "/tmp/evil", "PYTHONX": "1"}
    if os.environ.get("KTRXER_USER_NAMESPACE"):
        pytest.skip("root of a user namespace only: there is no other user here")
    if os.geteuid() == 0:
        assert "[none]" in run(exe, "run", env=env).stdout  # neither $KTRXER_PY nor PYTHON* reach a privileged run
        as_nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    else:
        as_nobody = {}
    assert run(exe, "run", env=env, **as_nobody).stdout == "other [/tmp/evil]\n"
    assert run(exe, "run", env={**env, "KTRXER_PY": "other"}, **as_nobody).stdout.startswith("part:")
    broken = run(exe, "run", env={**env, "KTRXER_PY": "/nonexistent/ktrxer-py"}, **as_nobody)
    assert broken.returncode == 1 and "cannot be started" in broken.stderr


# ------------------------------------------------------------------------------------------------------------ output


def test_jsonl():
    done = selftest("tick", "--count", "5", "--busy", "--jsonl")
    assert done.returncode == 0 and done.stderr == ""
    first, *samples, last = objects(done.stdout)
    assert first["type"] == "start" and first["command"] == "tick" and first["argv"][1:] == ["tick", "--count", "5", "--busy", "--jsonl"]
    assert first["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert first["hostname"] == socket.gethostname()
    clock = first["clock"]
    assert abs(clock["real_ns"] - time.time_ns()) < 60e9 and abs(clock["mono_ns"] - time.monotonic_ns()) < 60e9
    assert 0 < clock["bound_ns"] < 1e9
    offset = time.time_ns() - time.monotonic_ns()
    assert abs(clock["real_ns"] - clock["mono_ns"] - offset) < 5e6
    assert [(s["type"], s["kind"], s["number"]) for s in samples] == [("sample", "tick", i) for i in range(5)]
    assert last["type"] == "end" and last["verdict"] == "valid" and last["reasons"] == [] and last["output"] == {"dropped": 0}
    assert set(last["host"]) == {"cpu_percent", "steal_percent", "clock_steps"}


def test_json_is_one_object():
    done = selftest("tick", "--count", "3", "--busy", "--json")
    end = json.loads(done.stdout)
    assert end["verdict"] == "valid" and end["ticks"] == 3 and end["start"]["command"] == "tick"


def test_text_and_quiet():
    done = selftest("tick", "--count", "3", "--busy")
    assert done.stdout.splitlines() == ["tick 0 ", "tick 1 ", "tick 2 ", "verdict: valid"]
    assert selftest("tick", "--count", "3", "--busy", "--quiet").stdout == ""


@pytest.mark.parametrize("word,status", [("valid", 0), ("degraded", 1), ("invalid", 1)])
def test_verdict_and_exit_status(word, status):
    text = selftest("say", "--verdict", word, "flow 3 ended early", 'a "quoted" \x01 ä')
    assert text.returncode == status
    assert text.stdout.startswith(f"verdict: {word}\n  - flow 3 ended early\n") and "\x01" not in text.stdout
    end = json.loads(selftest("say", "--verdict", word, "flow 3 ended early", 'a "quoted" \x01 ä', "--json").stdout)
    assert end["verdict"] == word and end["reasons"] == ["flow 3 ended early", 'a "quoted" \x01 ä']


def test_arguments_that_are_no_text():
    done = subprocess.run([SELFTEST, "say", "--json", "--verdict=degraded", b"\xff\xfe", "\U0001f600"], capture_output=True, timeout=10)
    end = json.loads(done.stdout)
    assert end["reasons"] == ["\ufffd\ufffd", "\U0001f600"]
    assert end["start"]["argv"][-1] == "\U0001f600"


def test_strings_as_python_reads_them():
    """Bytes of every kind, repaired as Python repairs them. Seeded: a failure can be repeated."""
    chance = random.Random(1)
    pieces = [b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x82", b'"', b"\\", b"\x01", b"/"]
    words = [b"w" + b"".join(chance.choice(pieces)[: chance.randint(1, 4)] for _ in range(8)) for _ in range(300)]
    words += [b"w" + bytes(chance.randint(1, 255) for _ in range(20)) for _ in range(300)]
    done = subprocess.run([SELFTEST, "say", "--json", *words], capture_output=True, timeout=20)
    assert json.loads(done.stdout)["start"]["argv"][3:] == [word.decode("utf-8", "replace") for word in words]


def test_numbers_as_python_reads_them():
    chance = random.Random(2)
    bits = [0, 1, 2**63, 2**63 - 1, 2**64 - 1, 0x3FF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000, 0x0010000000000000, 0x3FB999999999999A]
    bits += [chance.getrandbits(64) for _ in range(2000)]
    done = selftest("numbers", "--json", *map(str, bits))
    for wanted, (unsigned, signed, fixed, double) in zip(bits, json.loads(done.stdout, parse_float=str)["numbers"], strict=True):
        assert unsigned == wanted and signed == struct.unpack("=q", struct.pack("=Q", wanted))[0]
        assert int(fixed.replace(".", "")) == signed and re.fullmatch(r"-?\d+\.\d{3}", fixed)
        number = struct.unpack("=d", struct.pack("=Q", wanted))[0]
        assert double is None if number != number or abs(number) == float("inf") else float(double) == number


@pytest.mark.parametrize(
    "args",
    [
        ["tick", "--count=5", "--busy"],
        ["tick", "--count=1", "--busy", "--start-at=NOW"],
        ["say", "--verdict", "degraded", "a reason"],
        ["say", "--verdict", "fail"],
        ["say"],
    ],
)
def test_objects_match_their_schemas(args):
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    schemas = {name: json.loads((ROOT / "docs/schema" / f"{name}.schema.json").read_text()) for name in ("start", "sample", "event", "end")}
    registry = referencing.Registry().with_contents([(schema["$id"], schema) for schema in schemas.values()])
    check = {name: jsonschema.Draft202012Validator(schema, registry=registry) for name, schema in schemas.items()}
    for validator in check.values():
        validator.check_schema(validator.schema)
    args = [arg.replace("NOW", str(time.time_ns() + 100_000_000)) for arg in args]
    lines = objects(selftest(*args, "--jsonl").stdout)
    assert lines[0]["type"] == "start" and lines[-1]["type"] == "end" and len(lines) >= 2
    for line in lines:
        check[line["type"]].validate(line)
    whole = json.loads(selftest(*args, "--json").stdout)
    check["end"].validate(whole)
    check["start"].validate(whole["start"])
    # And they can refuse.
    for spoilt in ({**lines[-1], "verdict": "fine"}, {**lines[-1], "end_ns": 1.5}, {k: v for k, v in lines[-1].items() if k != "reasons"}):
        assert not check["end"].is_valid(spoilt)
    assert not check["start"].is_valid({**lines[0], "argv": "tick"})


def test_a_command_that_fails_says_so_in_its_end():
    text = selftest("say", "--verdict", "fail")
    assert text.returncode == 1 and "ktrxer say: device 'eth9': no such device" in text.stderr
    first, last = objects(selftest("say", "--verdict", "fail", "--jsonl").stdout)
    assert first["type"] == "start"
    assert last["verdict"] == "invalid" and last["reasons"] == ["device 'eth9': no such device"]
    assert selftest("say", "--verdict", "usage", "--jsonl").returncode == 2
    assert selftest("say", "--verdict", "slip").returncode == 1  # -22 * 256 must not look like success


def test_commands_that_measure_nothing_have_no_verdict():
    done = selftest("look", "up", "127.0.0.1", "--json")
    end = json.loads(done.stdout)
    assert done.returncode == 0 and end["address"] == "127.0.0.1" and "verdict" not in end


def test_stalled_reader_hangs_nothing():
    # Nobody reads: megabytes into a pipe of 64 KiB and a queue of 1 MiB.
    process = start("tick", "--interval=1ms", "--count=0", "--pad=4000", "--busy", "--jsonl")
    try:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        assert process.wait(timeout=20) == 1
        took = time.monotonic() - asked
        assert b"stalled" in process.stderr.read()
    finally:
        process.kill()
        process.stdout.close()
        process.stderr.close()
    assert 1.5 < took < 2 + 2  # two seconds for the reader; the rest is for a machine on which others build


def test_slow_reader_loses_objects_and_is_told():
    process = start("tick", "--interval=1ms", "--count=1500", "--pad=4000", "--busy", "--jsonl")
    time.sleep(2.5)
    out, err = process.communicate(timeout=20)
    first, *samples, last = objects(out.decode())
    assert first["type"] == "start" and last["type"] == "end"
    assert last["output"]["dropped"] > 0 and len(samples) + last["output"]["dropped"] == 1500
    assert last["verdict"] == "degraded" and "too slow" in last["reasons"][0] and process.returncode == 1
    # Not a single put waited for the reader. (Half a second: other people build on this machine.)
    assert last["worst_put_ns"] < 500e6
    numbers = [s["number"] for s in samples]
    assert numbers == sorted(set(numbers))


def test_steady_reader_of_much_gets_all():
    done = selftest("tick", "--interval=0", "--count=3000", "--pad=100", "--busy", "--jsonl")
    first, *samples, last = objects(done.stdout)
    assert len(samples) + last["output"]["dropped"] == 3000


def test_reader_that_goes_away():
    process = start("tick", "--interval=1ms", "--count=0", "--busy", "--jsonl")
    process.stdout.readline()
    process.stdout.close()
    stderr = process.stderr.read()
    assert process.wait(timeout=5) == 0 and stderr == b""
    process.stderr.close()


def test_pipe_into_head():
    done = subprocess.run(
        ["bash", "-c", f"'{SELFTEST}' tick -c 0 --busy | head -n 2; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=10
    )
    assert done.stdout == "tick 0 \ntick 1 \n" and done.stderr == "" and done.returncode == 0


def test_full_disk_and_closed_output():
    with open("/dev/full", "w") as full:
        done = subprocess.run([SELFTEST, "tick", "-c", "3", "--busy"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=10)
    assert done.returncode == 1 and "No space left" in done.stderr
    done = subprocess.run(["bash", "-c", f"'{SELFTEST}' tick -c 3 --busy >&- <&-"], capture_output=True, text=True, timeout=10)
    assert done.returncode == 1 and "could not be written" in done.stderr
    assert subprocess.run(["bash", "-c", f"'{SELFTEST}' tick -c 3 --busy --quiet >&- 2>&- <&-"], timeout=10).returncode == 0


# ----------------------------------------------------------------------------------------------------------- stopping


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_print_the_accounts_so_far(number):
    process = start("tick", "--count=0", "--busy", "--jsonl", preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    process.stdout.readline()
    process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=5)
    last = objects(out.decode())[-1]
    assert process.returncode == 0 and err == b""
    assert last["type"] == "end" and last["stopped_by"] == number and last["ticks"] > 0


def test_second_interrupt_kills():
    # A reader that takes nothing keeps the end waiting for two seconds: time for a second Ctrl-C.
    process = start("tick", "--interval=0", "--count=0", "--pad=4000", "--busy", "--jsonl")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=1) == -signal.SIGINT
    process.stdout.close()
    process.stderr.close()


def test_ignored_signals_stay_ignored():
    process = start("tick", "--count=0", "--busy", "--jsonl", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=5)
    assert process.returncode == 0


def test_stop_on_eof():
    process = start("tick", "--count=0", "--busy", "--jsonl", "--stop-on-eof", stdin=subprocess.PIPE)
    process.stdin.write(b"words do not stop it\n")
    process.stdin.flush()
    time.sleep(0.3)
    assert process.poll() is None
    out, _ = process.communicate(timeout=5)
    assert objects(out.decode())[-1]["stopped_by"] == -1 and process.returncode == 0
    assert selftest("tick", "--count=0", "--busy", "--stop-on-eof", timeout=5).returncode == 0  # /dev/null ends at once


# ------------------------------------------------------------------------------------------------------- beginning


def test_start_at():
    at = time.time_ns() + 700_000_000
    began = time.monotonic()
    first, *_, last = objects(selftest("tick", "-c", "1", "--busy", "--jsonl", f"--start-at={at}").stdout)
    assert time.monotonic() - began >= 0.6
    offset = first["clock"]["real_ns"] - first["clock"]["mono_ns"]
    assert first["start_at_real_ns"] == at and abs(last["start_ns"] + offset - at) < 1_000_000
    time.sleep(0.1)
    *_, last = objects(selftest("tick", "-c", "1", "--busy", "--jsonl", f"--start-at={at}").stdout)
    assert last["verdict"] == "degraded" and "had passed" in last["reasons"][0]


def test_start_at_nonsense_and_stop_while_waiting():
    for at in ("1", str(int(time.time())), str(time.time_ns() + 3 * 86400 * 10**9), "18446744073709551615"):
        done = selftest("tick", "-c", "1", f"--start-at={at}", timeout=5)
        assert done.returncode == 1 and "nanoseconds since 1970" in done.stderr
    process = start("tick", "-c", "1", "--jsonl", f"--start-at={time.time_ns() + 60 * 10**9}")
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=5)
    assert process.returncode == 1


# ------------------------------------------------------------------------------------------------------------ hosts


@pytest.mark.parametrize(
    "args,out",
    [
        (["192.0.2.1"], "192.0.2.1 port 7"),
        (["192.0.2.1:99"], "192.0.2.1 port 99"),
        (["[2001:db8::1]:99"], "2001:db8::1 port 99"),
        (["[2001:db8::1]"], "2001:db8::1 port 7"),
        (["2001:db8::1"], "2001:db8::1 port 7"),
        (["-4", "localhost"], "127.0.0.1 port 7"),
        (["-4", "localhost:0x10"], "127.0.0.1 port 16"),
        (["8.8.8.8", "--rate=10k"], "8.8.8.8 port 7"),
        (["8.8.8.8", "--rate=600k/m"], "8.8.8.8 port 7"),
        (["8.8.8.8", "--flood"], "8.8.8.8 port 7"),
        (["10.1.2.3", "--rate=1M"], "10.1.2.3 port 7"),
    ],
)
def test_hosts(args, out):
    done = selftest("look", "up", *args)
    assert done.stdout == out + "\n" and done.returncode == 0


@pytest.mark.parametrize(
    "args,text",
    [
        (["--", "-oProxyCommand=x"], "begins with '-'"),
        (["a b"], "a blank, a slash or a control character"),
        (["../etc"], "a blank, a slash or a control character"),
        (["x" * 300], "longer than"),
        (["192.0.2.1:0"], "is not a port"),
        (["192.0.2.1:65536"], "is not a port"),
        (["192.0.2.1:"], "is not a port"),
        (["[2001:db8::1"], "[2001:db8::1]:7"),
        (["[2001:db8::1]7"], "[2001:db8::1]:7"),
        (["[]:7"], "empty"),
        (["-6", "192.0.2.1"], "is an address of IPv4, but -6 was asked for"),
        (["-4", "::1"], "is an address of IPv6, but -4 was asked for"),
        (["8.8.8.8"], "without a rate"),
        (["8.8.8.8", "--rate=10001"], "10.001 kpps is more than 10000 a second: give --flood"),
        (["8.8.8.8", "--rate=600001/m"], "give --flood"),
        (["2606:4700::1111"], "without a rate"),
    ],
)
def test_hosts_refused(args, text):
    done = selftest("look", "up", *args)
    assert done.returncode == 1 and text in done.stderr and done.stderr.count("\n") == 1


# ------------------------------------------------------------------------------------------------------------ privacy


def test_clock_step_degrades():
    """In a time namespace the clock cannot be stepped; this needs the real one, so only where a test machine says that it may."""
    if os.environ.get("KTRXER_TEST_STEP_CLOCK") != "1":
        pytest.skip("steps the machine's clock: KTRXER_TEST_STEP_CLOCK=1 allows it")
    process = start("tick", "--count=0", "--busy", "--jsonl")
    process.stdout.readline()
    time.sleep(0.3)
    time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + 5_000_000)
    time.sleep(0.3)
    time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() - 5_000_000)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=5)
    lines = objects(out.decode())
    steps = [line["step_ns"] for line in lines if line.get("name") == "clock_step"]
    assert steps and abs(steps[0] - 5_000_000) < 500_000
    assert lines[-1]["host"]["clock_steps"] >= 1 and lines[-1]["verdict"] == "degraded"


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
