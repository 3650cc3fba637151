# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run --from ADDR`: the words of the commands. tests/system/test_run_source.py has the packets."""

from __future__ import annotations

from pathlib import Path

import pytest
from ktrxer import catalogue
from ktrxer.batch import flent_toml
from ktrxer.catalogue.recipe import PlanError, Setting
from ktrxer.commands import run_options
from ktrxer.run.schedule import Options, make


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "far"], "--from: 'far' is no address of this host: a name or a device is none"),
        (["--from", "192.0.2.1", "-6"], "--from: 192.0.2.1 is an address of IPv4, and -6 was given"),
        (["--from", ""], "--from: its value is empty"),
    ],
)
def test_addresses_to_send_from_that_cannot_be(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_options.parsed(["ping", "-H", "127.0.0.1", *words])
    assert ended.value.code == 2 and said in capsys.readouterr().err


def test_an_address_to_send_from_sets_the_family() -> None:
    given = run_options.parsed(["rrul", "-H", "far", "--from", "2001:db8::1"])
    assert given.family == "-6"
    setting = Setting("::1")
    schedule = make(catalogue.find("rrul").make(setting, {}), setting, Options("k", family="-6", source="2001:db8::1"))
    commands = [job.command() for job in schedule.jobs if not job.runner.auxiliary]
    assert commands and all(one[one.index("--from") + 1] == "2001:db8::1" and "-6" in one for one in commands)
    with pytest.raises(PlanError, match="--from 2001:db8::1 is not an address of IPv4"):
        make(catalogue.find("rrul46").make(setting, {}), setting, Options("k", family="-6", source="2001:db8::1"))


def test_the_address_of_a_batch_file_of_flent(tmp_path: Path) -> None:
    path = tmp_path / "old.batch"
    path.write_text("[Batch::a]\ntest_name = ping\nhosts = h\nfor_x = y,z\n[Arg::y]\nlocal_bind = 10.0.0.1\n[Arg::z]\n")
    text, _ = flent_toml.converted(path)
    assert 'from = "{from}"' in text and '{ name = "y", from = "10.0.0.1" }, { name = "z", from = "" }' in text
