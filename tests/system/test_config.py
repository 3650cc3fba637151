# SPDX-License-Identifier: MIT OR Apache-2.0
"""The configuration: which value counts, of which source, in both halves; files that are refused."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]


class Home:
    """A home with a configuration, and commands in it."""

    def __init__(self, ktrxer: Path, place: Path) -> None:
        self.ktrxer, self.place = ktrxer, place
        self.file = place / ".config" / "ktrxer" / "config.toml"
        self.file.parent.mkdir(parents=True)

    def run(self, *words: str, **environment: str) -> Done:
        base = {"PATH": os.environ["PATH"], "HOME": str(self.place)} | environment
        return subprocess.run([self.ktrxer, *words], env=base, cwd=self.place, capture_output=True, text=True, timeout=60, check=False)

    def values(self, **environment: str) -> dict[str, tuple[str | None, str]]:
        made = json.loads(self.run("config", "--json", **environment).stdout)
        return {one["key"]: (one["value"], one["source"]) for one in made["values"]}


@pytest.fixture
def home(ktrxer: Path, tmp_path: Path) -> Home:
    return Home(ktrxer, tmp_path)


NONE = (None, "none: the default of each command")
KEYS = ("host", "port", "token-file", "directory", "style", "nq")
NQ = "https://mensura.cdn-apple.com/api/v1/gm/config"


def test_each_value_has_its_source(home: Home) -> None:
    assert home.values() == dict.fromkeys(KEYS, NONE) | {"check.nq": (NQ, "shipped with ktrxer")}
    home.file.write_text('host = "far"\nport = 9000\ntoken-file = "token"\n[run]\ndirectory = "~/runs"\n[ppt.direct]\nport = 7\n')
    found = home.values()
    assert found["host"] == ("far", f"{home.file}:1")
    assert found["port"] == ("9000", f"{home.file}:2")
    assert found["token-file"] == (str(home.file.parent / "token"), f"{home.file}:3")
    assert found["run.directory"] == (str(home.place / "runs"), f"{home.file}:5")
    assert found["ppt direct.port"] == ("7", f"{home.file}:7")
    assert found["style"] == NONE
    assert home.values(KTRXER_TOKEN="0123456789abcdef")["token-file"] == (None, "the environment: KTRXER_TOKEN")
    assert home.values(KTRXER_CONFIG="off")["host"] == NONE
    assert home.values(XDG_CONFIG_HOME=str(home.place / "other"))["host"] == NONE
    assert home.values(XDG_CONFIG_HOME=str(home.file.parents[1]))["host"][0] == "far"
    assert home.values(XDG_CONFIG_HOME=".config")["host"][0] == "far"  # a relative path is invalid there


def test_the_command_line_wins_and_other_ports_stay(home: Home) -> None:
    home.file.write_text('host = "127.0.0.1"\nport = 99999\n')
    # The port of `ping` is not that of `ktrxer serve`, so the wrong value is not read.
    assert home.run("ping", "-c", "1", "-q").returncode == 0
    done = home.run("stamp", "-c", "1")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2, f"ktrxer stamp: {home.file}:2: port: '99999' is too large: from 1 to 65535 is possible (see `ktrxer stamp --help`)")
    home.file.write_text('host = "no.such.host.invalid"\n')
    assert home.run("ping", "-c", "1", "-q", "127.0.0.1").returncode == 0
    done = home.run("ping", "-c", "1")
    assert done.returncode != 0 and "no.such.host.invalid" in done.stderr
    assert home.run("flow", "up", "--help").returncode == 0
    assert "DIRECTION is missing" in home.run("flow").stderr


@pytest.mark.plain_build
def test_the_python_half_has_the_same_values(home: Home) -> None:
    home.file.write_text('host = "127.0.0.1"\nport = 8637\n[run]\ndirectory = "~/runs"\n[plot]\nstyle = "wrong"\n')
    (home.place / "runs").mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home.place)}
    with subprocess.Popen([home.ktrxer, "serve"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None and "8637" in server.stdout.readline()
        done = home.run("run", "ping", "-l", "1")
        assert len(list((home.place / "runs").glob("*.ktrxer"))) == 1, done.stderr
        done = home.run("run", "ping", "-l", "1", "-D", str(home.place))
        assert len(list(home.place.glob("*.ktrxer"))) == 1, done.stderr
        done = home.run("run", "ping", "-l", "1", "-p", "8638")
        assert "UDP port 8638" in done.stderr
        server.terminate()
    done = home.run("plot", "x.ktrxer")
    assert done.returncode == 2 and f"{home.file}:6: style: 'wrong' is not known; it is one of: " in done.stderr
    assert home.run("plot", "--help").returncode == 0


def test_in_a_network_of_the_lab_no_file_counts(home: Home) -> None:
    home.file.write_text('host = "far"\n')
    done = home.run("lab", "run", "access", "--", str(home.ktrxer), "config", "--json")
    assert done.returncode == 0, done.stderr
    assert {one["source"] for one in json.loads(done.stdout)["values"]} == {NONE[1], "the environment: KTRXER_TOKEN"}


@pytest.mark.parametrize(("text", "said"), [
    ('hots = "far"', ":1: 'hots': no such key; did you mean host?"),
    ("\nport = [1]", ":2: port: one string or number is wanted"),
    ('host = "a"\nhost = "b"', ":2: host: given twice, first in line 1"),
    ('host = "a', ": line 1: the string does not end on its line"),
    ("host = ''", ":1: host: one string or number is wanted"),
    ("#" * 70_000, ": it has more than 65536 bytes"),
    ("\0", ": line 1: the file contains a zero byte"),
])
def test_a_wrong_file_is_one_line(home: Home, text: str, said: str) -> None:
    home.file.write_text(text)
    for words in (("config",), ("ping", "127.0.0.1"), ("runs",)):
        done = home.run(*words)
        assert done.returncode == 2 and f"{home.file}{said}" in done.stderr.splitlines()[0]
        assert done.stdout == ""
    assert home.run("ping", "--help").returncode == 0 and home.run("runs", "--help").returncode == 0


def test_a_file_that_another_user_can_write_is_refused_with_the_remedy(home: Home) -> None:
    home.file.write_text('host = "far"\n')
    home.file.chmod(0o666)
    done = home.run("config")
    assert done.returncode == 2
    assert f"{home.file}: other users may write it (mode 0666); `chmod go-w` changes that" in done.stderr
    home.file.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(home.file, 12345, -1)
        done = home.run("config")
        assert f"{home.file}: its owner is user 12345, not user 0; `chown 0` changes that" in done.stderr


def test_no_home_is_no_fault(ktrxer: Path) -> None:
    done = subprocess.run([ktrxer, "config"], env={}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stderr == ""


def test_an_empty_value_takes_the_shipped_server_away(home: Home) -> None:
    """Nothing is sent in this test: each command ends before it looks up a name."""
    done = home.run("check")
    assert done.returncode == 2 and "mensura.cdn-apple.com is the server that Apple runs" in done.stderr and "--yes" in done.stderr
    assert "no load: name a server" in home.run("check", "--yes", KTRXER_CONFIG="off").stderr
    home.file.write_text('[check]\nnq = ""\n')
    assert home.values()["check.nq"] == ("", f"{home.file}:2")
    done = home.run("check", "--yes")
    assert done.returncode == 2 and "no load: name a server" in done.stderr
    home.file.write_text('nq = ""\n')
    assert "no load: name a server" in home.run("check", "--yes").stderr
    home.file.write_text('style = ""\n')
    assert f"{home.file}:1: style: one string or number is wanted" in home.run("check").stderr


def test_a_server_of_the_configuration_is_not_asked_for(home: Home) -> None:
    home.file.write_text('[check]\nnq = "https://nowhere.invalid/nq"\n')
    done = home.run("check")
    assert done.returncode == 1 and "nowhere.invalid" in done.stderr and "--yes" not in done.stderr
    home.file.write_text('host = "far.invalid"\n')
    done = home.run("check", "--yes")
    assert done.returncode == 1 and "far.invalid" in done.stderr, "a host of the configuration comes before the shipped server"
    assert "not an URL" in home.run("check", "--nq", "ftp://x").stderr, "and the command line before both"
