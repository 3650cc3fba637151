# SPDX-License-Identifier: MIT OR Apache-2.0
"""The init script of OpenWrt, in a shell with stand-ins for the functions of procd and UCI: the command that it starts."""

import re
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "packaging/openwrt"

# The functions of /lib/functions.sh and procd.sh. Options come from the variables cfg_NAME, listen addresses from `binds`.
STAND_INS = """
config_load() { [ "$1" = ktrxer ]; }
config_get() { eval "$1=\\${cfg_$3:-${4:-}}"; }
config_get_bool() { config_get "$@"; }
config_list_foreach() { for one in $binds; do "$3" "$one"; done; }
procd_open_instance() { echo open; }
procd_close_instance() { echo close; }
procd_set_param() { echo "set $*"; }
procd_append_param() { echo "append $*"; }
procd_add_reload_trigger() { echo "trigger $*"; }
logger() { echo "log $*"; }
hexdump() { od -An -v -tx1 | tr -d ' \\n'; }
"""


def run(function: str, **variables: object) -> list[str]:
    settings = "\n".join(f"{name}='{value}'" for name, value in ({"binds": ""} | variables).items())
    done = subprocess.run(
        ["sh", "-euc", f"{STAND_INS}\n{settings}\n. {FOLDER / 'ktrxer-serve.init'}\n{function}"], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_it_is_off_by_default() -> None:
    assert run("start_service") == []
    assert "option enabled '0'" in (FOLDER / "ktrxer.config").read_text()


def test_the_command(tmp_path: Path) -> None:
    token = tmp_path / "new" / "token"
    said = run("start_service", cfg_enabled=1, cfg_token_file=token, cfg_port=8700, cfg_stamp_port=862, binds="192.0.2.1 2001:db8::1")
    assert said[0] == f"log -t ktrxer new token of the server's clients in {token}"
    assert said[1:7] == [
        "open",
        f"set command /usr/bin/ktrxer serve --token-file {token}",
        "append command --bind 192.0.2.1",
        "append command --bind 2001:db8::1",
        "append command --port 8700",
        "append command --stamp-port 862",
    ]
    assert said[-1] == "close" and "set no_new_privs 1" in said and "set respawn" in said
    assert token.stat().st_mode & 0o777 == 0o600 and len(token.read_text()) == 32 and token.read_text() not in "\n".join(said)


def test_settings_become_options_of_the_same_name(tmp_path: Path) -> None:
    settings = {"max_clients": 4, "max_duration": "10m", "max_bitrate": "100M", "max_answer_bitrate": "50M", "max_answer_rate": 0, "dscp_allow": "EF,AF41"}
    said = run("start_service", cfg_enabled=1, cfg_token_file=tmp_path / "token", **{f"cfg_{name}": value for name, value in settings.items()})
    appended = {line.removeprefix("append command ") for line in said if line.startswith("append command ")}
    assert appended == {f"--{name.replace('_', '-')} {value}" for name, value in settings.items()}


def test_the_command_and_the_page_have_each_option_of_the_script() -> None:
    (names,) = re.findall(r"for name in (.*?); do", (FOLDER / "ktrxer-serve.init").read_text())
    sources = "".join(path.read_text() for path in (FOLDER.parents[1] / "cli").rglob("*.[ch]"))
    assert [name for name in names.split() if f'"{name}"' not in sources] == []
    page = (FOLDER.parents[1] / "docs/howto/cross-builds.md").read_text()
    assert [name for name in names.split() if f"`{name.replace('-', '_')}`" not in page] == []


def test_a_token_is_made_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a token that is there")
    assert not any(line.startswith("log") for line in run("start_service", cfg_enabled=1, cfg_token_file=token))
    assert token.read_text() == "a token that is there"


def test_a_change_of_settings_restarts_it() -> None:
    assert run("service_triggers") == ["trigger ktrxer"]


@pytest.mark.parametrize("name", ["ktrxer-serve.init", "ktrxer.config"])
def test_the_package_installs_it(name: str) -> None:
    assert f"packaging/openwrt/{name}" in (FOLDER / "Makefile").read_text()
