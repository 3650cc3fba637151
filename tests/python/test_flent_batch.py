# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batch files of Flent: `ktrxer batch import`."""

import itertools
import json
import tomllib
from pathlib import Path

import pytest
from ktrxer.batch import plan, spec
from ktrxer.batch.flent_batch import converted
from ktrxer.commands import batch as command


def written(folder: Path, text: str, name: str = "b.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


FLENT = """\
[Batch::common]
abstract = yes
hosts = server1, server2
length = 60
pause = 10
output_path = ./data

[Batch::rrul]
inherits = common
test_name = rrul
repetitions = 3
for_qdisc = fifo, fq*
for_cc = cubic
title = ${qdisc}-${cc}-${repetition} {x}
commands = setup
remote_metadata = root@r1

[Batch::off]
inherits = rrul
disabled = yes

[Arg::fifo]
qdisc_cmd = pfifo limit 1000
[Arg::fq_codel]
qdisc_cmd = fq_codel
[Arg::cubic]
test_parameter_tcp_cong_control = cubic

[Command::setup]
exec = tc qdisc replace dev eth0 root ${qdisc_cmd}
type = pre
essential = yes
extra_commands = dump
[Command::dump]
exec = tcpdump -w "x.pcap"
type = monitor
"""


def test_a_batch_file_of_flent(tmp_path):
    text, notes = converted(written(tmp_path, FLENT, "old.batch"))
    assert any("remote_metadata" in note for note in notes)
    (made,) = spec.read(written(tmp_path, text))
    assert (made.name, made.repetitions, made.pause, made.order, made.directory) == ("rrul", 3, 10.0, "shuffled", "./data")
    runs = list(plan.planned(made, 1, "id"))
    assert len(runs) == 6
    assert {run.options[run.options.index("--title") + 1] for run in runs} >= {"fifo-cubic-1 {x}", "fq_codel-cubic-3 {x}"}
    assert {run.hooks[0].command for run in runs} == {"tc qdisc replace dev eth0 root pfifo limit 1000", "tc qdisc replace dev eth0 root fq_codel"}
    hosts = [value for option, value in itertools.pairwise(runs[0].options) if option == "--host"]
    assert hosts == ["server1", "server2"]
    assert runs[0].hooks[0].essential
    assert runs[0].hooks[1].when == "beside"
    assert runs[0].options[runs[0].options.index("--set") + 1] == "tcp_cong_control=cubic"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no [Batch::NAME]"),
        ("[Batsh::x]\na = 1", "not a section of a batch file"),
        ("no section", "File contains no section headers"),
        ("[Batch::a]\ninherits = a\n", "inherits from itself"),
        ("[Batch::a]\ninherits = b\n", "is named, and is not in the file"),
        ("[Batch::a]\nfor_x = y\n", "no [Arg::y]"),
        ("[Batch::a]\nabstract = yes\n", "abstract or disabled"),
        ("[Batch::a]\ntest_name = x\nrepetitions = many\n", "not a whole number"),
    ],
)
def test_a_batch_file_of_flent_with_a_mistake(tmp_path, text, said, capsys):
    assert command.main(["import", str(written(tmp_path, text, "old.batch"))]) == 2
    assert said in capsys.readouterr().err


def test_an_imported_batch_cannot_break_out_of_its_texts(tmp_path):
    hostile = 'x"\n] [run] \\u0000 \x7f \u2028'
    text = f"[Batch::a]\ntest_name = ping\nhost = {json.dumps(hostile)}\nvar[x]\"y = 1\n"
    made = tomllib.loads(converted(written(tmp_path, text, "old.batch"))[0])
    assert list(made) == ["batches"]
