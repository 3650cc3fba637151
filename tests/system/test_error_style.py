# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same mistake in a command in C and in commands in Python: the same sentence on standard error, with the same exit status."""

import re

import pytest
from programs import KTRXER, run

DURATION = "10ms, 1.5s, 250us, 2m or 1h"
# The sentence of both, {} for the part that differs, the status, and pairs of a command line and that part.
PAIRS = {
    "unknown option": ("--{}: no such option; did you mean --{}?", 2, [
        ("ping localhost --cuont 3", "cuont", "count"), ("run rrul --hots far", "hots", "host"), ("lab run access --timout 3s", "timout", "timeout"),
        ("truth --quik", "quik", "quick"), ("lab setup --updat", "updat", "update"),
    ]),
    "unknown option, unlike all": ("--zzyzzx: no such option", 2, [
        ("ping localhost --zzyzzx", ), ("run rrul --zzyzzx",), ("lab vm --zzyzzx=3",), ("truth --zzyzzx",), ("bench rate --zzyzzx",),
    ]),
    "unknown letter": ("-Z: no such option", 2, [("ping -Zx localhost",), ("summary -Zx x",), ("lab run access -Z",), ("truth -Z",)]),
    "a letter that other programs have": ("-{}: no such option; `ktrxer version` prints the version", 2, [
        ("ping -v localhost", "v"), ("ping -qV localhost", "V"), ("run -V", "V"), ("summary -v x", "v"), ("lab run access -V", "V"),
    ]),
    "one dash": ("-{}: no such option; did you mean --{}?", 2, [
        ("ping localhost -count 3", "count", "count"), ("summary x -json", "json", "json"), ("truth -list", "list", "list"),
    ]),
    "value missing": ("--{}: a value is missing: --{} {}", 2, [
        ("ping localhost -c", "count", "count", "N"), ("run rrul -H", "host", "host", "HOST"), ("lab vm --device", "device", "device", "NAME"),
        ("truth --jobs", "jobs", "jobs", "N"),
    ]),
    "an option in the place of the value": ("--{}: a value is missing, '-q' follows; if that is it, write --{}=-q", 2, [
        ("ping localhost -c -q", "count", "count"), ("run rrul -H -q", "host", "host"), ("truth --jobs -q", "jobs", "jobs"),
        ("bench rate --csv -q", "csv", "csv"),
    ]),
    "empty value": ("--{}: its value is empty", 2, [
        ("ping localhost --interval=", "interval"), ("run rrul --for=", "for"), ("lab vm --timeout=", "timeout"), ("truth --jobs=", "jobs"),
    ]),
    "value of a flag": ("--{} takes no value, but 'x' was given", 2, [("ping localhost --json=x", "json"), ("runs --json=x", "json"), ("truth --quick=x", "quick")]),
    "number": ("--{}: '1e3' is not a number: unknown unit 'e3' (exponents are not read); write for example 10, 10k, 1.5M or 0x10", 2, [
        ("ping localhost -c 1e3", "count"), ("check -p 1e3", "port"), ("lab vm --memory 1e3", "memory"), ("truth --seed 1e3", "seed"),
    ]),
    "no number": ("--{}: 'x' is not a number: no digits at its beginning; write for example 10, 10k, 1.5M or 0x10", 2, [
        ("serve --port x", "port"), ("serve-http --port x", "port"), ("view --port x", "port"), ("lab run access --seed x", "seed"),
    ]),
    "number out of bounds": ("--port: '70000' is too large: from {} to 65535 is possible", 2, [
        ("serve --port 70000", "1"), ("check --port 70000", "1"), ("serve-http --port 70000", "0"), ("view -p 70000", "0"),
    ]),
    "duration": (f"--{{}}: 'soon' is not a duration: no digits at its beginning; write for example {DURATION}", 2, [
        ("ping localhost --for soon", "for"), ("run rrul --for soon", "for"), ("lab vm --timeout soon", "timeout"), ("truth --wall-limit soon", "wall-limit"),
    ]),
    "negative duration": (f"--{{}}: '-1ms' is not a duration: it is negative; write for example {DURATION}", 2, [
        ("ping localhost --interval=-1ms", "interval"), ("run rrul --interval=-1ms", "interval"), ("lab vm --timeout=-1ms", "timeout"),
    ]),
    "unit": (f"--{{}}: '1M' is not a duration: unknown unit 'M' (units are small letters); write for example {DURATION}", 2, [
        ("ping localhost --interval 1M", "interval"), ("run rrul --interval 1M", "interval"), ("truth --timeout 1M", "timeout"),
    ]),
    "choice": ("{}: '{}' is not known; did you mean '{}'? ({})", 2, [
        ("flow dwon localhost", "DIRECTION", "dwon", "down", "[^)]*"), ("plot x --style scren", "--style", "scren", "screen", "screen, column, page"),
    ]),
    "argument missing": ("{} is missing: {}", 2, [
        ("ping", "HOST", ".*"), ("summary", "RUN", ".*"), ("lab topology", "FILE", ".*"), ("run rrul", "--host", ".*"),
    ]),
    "command missing": ("COMMAND is missing: {}", 2, [("ppt", "direct, estimate, measure, plan"), ("lab", "run, vm, devices, setup, module, topology")]),
    "unknown command": ("'{}': no such command; did you mean `ktrxer {}`?", 2, [
        ("pign", "pign", "ping"), ("ppt dirct", "dirct", "ppt direct"), ("lab rnu", "rnu", "lab run"), ("rprt", "rprt", "report"),
    ]),
    "unlike all commands": ("'zzyzzx': no such command", 2, [("zzyzzx",), ("ppt zzyzzx",), ("lab zzyzzx",), ("help zzyzzx",)]),
    "too many": ("'{}' is one word too many{}", 2, [
        ("ping localhost far", "far", ""), ("query x . y", "y", ""), ("lab topology access x", "x", ""),
        ("truth ping", "ping", "; the command comes after --: ktrxer truth -- ping"),
    ]),
    "json and jsonl": ("--json and --jsonl exclude each other", 2, [
        ("ping localhost --json --jsonl",), ("query x --jsonl --json",), ("bench rate --json --jsonl",),
    ]),
    "families": ("--ipv4 and --ipv6 exclude each other", 2, [("ping localhost -4 -6",), ("run rrul -H localhost -6 -4",), ("check -4 -6",)]),
}  # fmt: skip
# Mistakes that no command line shows: nothing on help.
FAILURES = {
    "no file": ("{}: No such file or directory", 1, [
        ("ppt estimate none", "none"), ("stamp localhost --auth-key-file none", "none"), ("send 127.0.0.1 -c 1 --schedule none", "none"),
        ("summary none", "none"), ("report none.ktrxer", "none.ktrxer"), ("export none", "none"), ("import none", "none"), ("batch none", "none"),
        ("view none", "none"), ("runs none", "none"), ("bench rate --compare none", "none"), ("run ping -H localhost --again none", "none"),
    ]),
    "no file, where the status 1 means something else": ("{}: No such file or directory{}", 2, [
        ("lab topology ./none.toml", "./none.toml", ".*"), ("lab module none", "none", ""), ("truth --adapter ./none.py -- x", "./none.py", ""),
    ]),
    "no host": ("'none.invalid': no such host; check the spelling, or give an address", 1, [
        ("ping none.invalid",), ("stamp none.invalid",), ("run ping -H none.invalid",), ("check --server none.invalid",),
    ]),
    "not a host": ("'1.2.3.4.5' is no address of IPv4: four numbers of 0 to 255", 2, [("ping 1.2.3.4.5",)]),
}  # fmt: skip


def table(kinds):
    return [pytest.param(words, sentence, parts, status, id=f"{kind}: {words}") for kind, (sentence, status, rows) in kinds.items() for words, *parts in rows]


def shown(words, tmp_path):
    if words.split()[0] not in ("ping", "ppt", "flow", "serve", "stamp", "send", "pign", "zzyzzx", "help") and "  run " not in run(KTRXER, "--help").stdout:
        pytest.skip("this build has no Python part")
    done = run(KTRXER, *words.split(" "), cwd=tmp_path)
    assert done.stdout == ""
    return done


def filled(sentence, parts):
    """As a regular expression: the parts are ones."""
    left = iter(parts)
    return re.sub(r"\\\{\\\}", lambda _: next(left), re.escape(sentence))


@pytest.mark.parametrize("words,sentence,parts,status", table(PAIRS))
def test_wrong_use_is_one_line(words, sentence, parts, status, tmp_path):
    done = shown(words, tmp_path)
    name = re.match(r"ktrxer([ a-z-]*): ", done.stderr)
    assert name and words.startswith(name[1].strip()), done.stderr
    expected = f"ktrxer{name[1]}: {filled(sentence, parts)} \\(see `ktrxer{name[1]} --help`\\)\n"
    assert re.fullmatch(expected, done.stderr), done.stderr
    assert done.returncode == status


@pytest.mark.parametrize("words,sentence,parts,status", table(FAILURES))
def test_a_failure_is_one_line(words, sentence, parts, status, tmp_path):
    done = shown(words, tmp_path)
    assert re.fullmatch(f"ktrxer [ a-z-]+: {filled(sentence, parts)}\n", done.stderr), done.stderr
    assert done.returncode == status


def test_a_port_that_needs_privilege():
    """In the user namespace of an ordinary user, whose capabilities are dropped."""
    for words, kind in (("serve --port 80", "UDP"), ("serve-http --port 80 --open", "TCP")):
        done = run("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", KTRXER, *words.split())
        name = words.split()[0]
        assert done.stderr == f"ktrxer {name}: {kind} port 80 needs root or CAP_NET_BIND_SERVICE, as all below 1024 do\n" and done.returncode == 1
