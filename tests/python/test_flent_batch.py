# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batch files of Flent: `ktrxer batch import`."""

import itertools
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from ktrxer.batch import plan, spec
from ktrxer.batch.flent_toml import converted
from ktrxer.commands import batch as command


def written(folder: Path, text: str, name: str = "b.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


FLENT = """\
[Batch::common]
abstract = yes
hosts = server1, server2
length = 20
pause = 10
output_path = ./data

[Batch::rrul]
inherits = common
test_name = rtt_fair
repetitions = 3
for_qdisc = fifo, fq*
for_cc = cubic, far
title = ${qdisc}-${cc}-${missing} {x}
test_parameters = cc=no; "note=a,b"
commands = setup
ecn = on

[Batch::off]
inherits = rrul
disabled = yes

[Arg::fifo]
qdisc_cmd = pfifo limit 1000 ${ecn}
qdisc = fifo
[Arg::fq_codel]
qdisc_cmd = fq_codel
qdisc = fq
commands = setup, dump
[Arg::cubic]
cc = cubic
test_parameters = tcp_cong_control=${cc};
[Arg::far]
cc = reno
hosts = far, "b"
length = 30
test_parameters = tcp_cong_control=${cc}

[Command::setup]
exec = tc qdisc replace dev ${dev} root ${qdisc_cmd}
dev = eth0
type = pre
essential = yes
[Command::dump]
exec = tcpdump -w "${batch_name}.pcap"
type = monitor
"""
# Each has what Flent expands in a way of its own.
SMALL = {
    "swapped": "[Batch::Up]\ntest_name=tcp_1up\nhosts=a\nswap_updown=no\ndelay: 3\nstep_size = 0.5\nip_version=6\n",
    "late parent": "[Batch::a]\ninherits=b\ntest_name=ping\n[Batch::b]\nabstract=yes\ninherits=c\nhosts=h\ntitle=${x}\n[Batch::c]\nabstract=yes\nx=1\n",
    "twice": "[Batch::a]\ntest_name=ping\nhosts=h\nfor_x=one,one\ntitle=${x}$${y}\n[Arg::one]\nx=7\n",
    "dos": "[Batch::a]\r\ntest_name=${t}\r\nt=ping\r\nhosts=h\r\nrepetitions=2\r\nenabled=0\r\ntitle=yes ${on}\r\non=yes\r\n",
    "nested": "[Batch::g]\nabstract=yes\nhosts=h\ntest_name=tcp_1up\n[Batch::a]\ninherits=g\nfor_a=a*\nfor_b=b1;b2\nfor_c=c1\n"
    "title=${all}-${length}\nall=${a}/${b}/${c}\n[Arg::a1]\na=1\n[Arg::a2]\na=2\nc=never\n[Arg::b1]\nb=x\n[Arg::b2]\ninherits=b1\nlength=9\n"
    "[Arg::c1]\nc=${batch_name}\n",
}
# Flent's own dry run: the settings of each run, and the commands.
OF_FLENT = """
import json, sys
from flent import batch, settings
from flent.util import keyval
made = settings.new()
made.BATCH_FILES, made.BATCH_SHUFFLE, made.BATCH_DRY = [sys.argv[1]], False, True
runner, found = batch.BatchRunner(made), []
for name, keys in runner.batches.items():
    if keys.get("abstract", False) or keys.get("disabled", False) or not keys.get("enabled", True):
        continue
    for b, s in runner.expand_argsets(keys.copy(), runner.get_argsets(keys), made.TIME, name, print_status=False):
        commands = [c["exec"].strip() for c in runner.commands_for(b, s)]
        found.append([name, s.NAME, s.HOSTS, s.LENGTH, int(b.get("delay", 5)), s.STEP_SIZE, s.TITLE, s.IP_VERSION, keyval(b.get("test_parameters", "")), commands])
print(json.dumps(found))
"""
FLENT_PYTHON = Path(__file__).parents[2] / ".venv-flent/bin/python"
PUBLIC = sorted(Path(os.environ.get("KTRXER_SHARED", "/nowhere"), "data/flent/batch").glob("*"))
FLENT_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}")


def of_flent(path: Path) -> list[str]:
    done = subprocess.run([FLENT_PYTHON, "-c", OF_FLENT, path], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    made = []
    for *rest, commands in json.loads(done.stdout):
        made.append(json.dumps([*rest, [FLENT_TIME.sub("TIME", one) for one in commands]], sort_keys=True))
    return sorted(made)


def of_ktrxer(path: Path, folder: Path) -> list[str]:
    made = []
    for batch in spec.read(written(folder, converted(path)[0])):
        for run in plan.planned(batch, 1, "id"):
            options: dict[str, list[str]] = {}
            words = [one for one in run.options[1:] if one not in ("--ipv4", "--ipv6")]
            for option, value in itertools.pairwise(words):
                if option.startswith("--"):
                    options.setdefault(option, []).append(value)
            version = next((int(one[-1]) for one in ("--ipv4", "--ipv6") if one in run.options), None)
            length, delay, step = (
                options.get(name, [default])[0] for name, default in (("--length", "60s"), ("--delay", "5s"), ("--sample-interval", "0.2s"))
            )
            chosen = dict(one.split("=", 1) for one in options.get("--set", []))
            commands = [FLENT_TIME.sub("TIME", hook.command) for hook in run.hooks if hook.command]
            title = options.get("--title", [""])[0]
            of = [batch.name, run.options[0], options["--host"], int(length[:-1]), int(delay[:-1]), float(step[:-1]), title, version, chosen]
            made.append(json.dumps([*of, commands], sort_keys=True))
    return sorted(made)


@pytest.mark.slow
@pytest.mark.skipif(not FLENT_PYTHON.exists(), reason="Flent is not installed in .venv-flent")
@pytest.mark.parametrize("text", [FLENT.replace('cc=no; "note=a,b"', "a=1"), *SMALL.values()], ids=["large", *SMALL])
def test_runs_are_those_of_flent(tmp_path, text):
    path = tmp_path / "old.batch"
    path.write_bytes(text.encode())
    found = of_ktrxer(path, tmp_path)
    assert found
    assert found == of_flent(path)


@pytest.mark.slow
@pytest.mark.skipif(not FLENT_PYTHON.exists() or not PUBLIC, reason="Flent is not installed, or KTRXER_SHARED has no batch files")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_runs_of_public_files_are_those_of_flent(tmp_path, path):
    assert of_ktrxer(path, tmp_path) == of_flent(path)


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
        ("[Batch::a]\ntest_name = x\nhosts = h\nrepetitions = many\n", "not a whole number"),
        ("[Batch::a]\ntest_name = x\nhosts = h\ntitle = ${b}\nb = ${title}\n", "refer to each other in a circle"),
        ("[Batch::a]\ntest_name = x\nhosts = h\nrepetitions = -3\n", "'-3' is not a whole number of 0 to 999999"),
        ("[Batch::a]\ninherits = b\n[Batch::b]\ninherits = a\n", "inherits from itself"),
        ("[Batch::a]\ntest_name = x\nhosts = h\n[Batch::a]\n", "already exists"),
        ("[Batch::a]\ntest_name = ping\nhosts = h\nlength = forever\n", "'forevers' is not a duration"),
        ("[Batch::a]\ntest_name = ping\nhosts = h\nsend_size = 1000\n", ":4: [Batch::a] send_size: the size of a sender"),
        ("[Batch::a]\ntest_name = ping\nhosts = h\nfor_x = y\n[Arg::y]\nswap_updown = True\n", ":6: [Arg::y] swap_updown: a test cannot"),
        ("[Batch::a]\ntest_name = ping\nhosts = h\ntest_parameters = a\n", "'a' is not NAME=VALUE"),
        ("[Batch::a]\ntest_name = ping\nhosts = h\ntest_parameters = nothing=1\n", "ping has no parameter 'nothing'"),
    ],
)
def test_a_batch_file_of_flent_with_a_mistake(tmp_path, text, said, capsys):
    assert command.main(["import", str(written(tmp_path, text, "old.batch"))]) == 2
    assert said in capsys.readouterr().err


def test_an_imported_batch_cannot_break_out_of_its_texts(tmp_path):
    hostile = 'x"\n] [run] \\u0000 \x7f \u2028'
    text = f"[Batch::a]\ntest_name = ping\nhosts = h\ntitle = {json.dumps(hostile)}\nvar[x]\"y = 1\n"
    made = tomllib.loads(converted(written(tmp_path, text, "old.batch"))[0])
    assert list(made) == ["batches"]


NAMED = """\
[Batch::up]
test_name = tcp_1up
hosts = far
for_q = fifo,fq
for_b = b1,b2
repetitions = 2
output_path = res/${batch_time}/${q}.x/${batch_name}
filename_extra = ${q}-${bw}mbit.${repetition}
commands = dump
[Arg::fifo]
q = pfifo fast
[Arg::fq]
q = fq
[Arg::b1]
bw = 1
[Arg::b2]
bw = 2
[Command::dump]
type = pre
exec = dump ${output_path}/${data_filename}.pcap ${batch_time}
"""
OF_FLENT_FILES = """
import json, sys
from flent import batch, settings
from flent.util import clean_path
made = settings.new()
made.BATCH_FILES, made.BATCH_SHUFFLE, made.BATCH_DRY = [sys.argv[1]], False, True
runner, found = batch.BatchRunner(made), []
for name, keys in runner.batches.items():
    for b, s in runner.expand_argsets(keys.copy(), runner.get_argsets(keys), made.TIME, name, print_status=False):
        where = clean_path(b["output_path"], allow_dirs=True)
        found.append([f"{where}/{s.DATA_FILENAME}", [c["exec"].strip() for c in runner.commands_for(b, s)]])
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.skipif(not FLENT_PYTHON.exists(), reason="Flent is not installed in .venv-flent")
@pytest.mark.parametrize("path", ["res/${batch_time}/${q}.x/${batch_name}", "res", "/tmp/${bw}/${q}", "res/${q}/../${bw}", "${repetition}", "a.b/${batch_name}"])
def test_files_and_their_folders_are_those_of_flent(tmp_path, path):
    old = written(tmp_path, re.sub("output_path = .*", f"output_path = {path}", NAMED), "old.batch")
    done = subprocess.run([FLENT_PYTHON, "-c", OF_FLENT_FILES, old], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    expected = sorted([FLENT_TIME.sub("TIME", os.path.normpath(file)), [FLENT_TIME.sub("TIME", one) for one in commands]] for file, commands in json.loads(done.stdout))
    found = []
    for batch in spec.read(written(tmp_path, converted(old)[0])):
        for run in plan.planned(batch, 1, "id"):
            file = os.path.normpath(Path(batch.directory, run.name))
            found.append([FLENT_TIME.sub("TIME", file), [FLENT_TIME.sub("TIME", hook.command) for hook in run.hooks]])
    assert len(found) == 8 and sorted(found) == expected


@pytest.mark.parametrize("name", ["dos", "mark", "dimension", "percent"])
def test_ordinary_files_of_other_systems(tmp_path, name, capsys):
    """Line ends of DOS, a byte order mark, a dimension with the name of a variable of its own or of ours, a percent sign."""
    path = tmp_path / "old.batch"
    body = "[Batch::a]\ntest_name = ping\nhosts = h\nlength = 5\n"
    dimensions = "for_title = x,y\nfor_file = x,y\ntitle = ${title}\n[Arg::x]\ntitle = one\n[Arg::y]\ntitle = two\n"
    text = {"dos": body.replace("\n", "\r\n"), "mark": "\ufeff" + body, "dimension": body + dimensions, "percent": body + "title = 100%\n"}[name]
    path.write_bytes(text.encode())
    assert command.main(["import", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    written(tmp_path, out, "new.toml")
    assert command.main([str(tmp_path / "new.toml"), "--dry-run"]) == 0
    plan = capsys.readouterr().out
    assert plan.count("ktrxer run ping") == (4 if name == "dimension" else 1) and "\r" not in plan
    assert name != "dimension" or ("--title one" in plan and "--title two" in plan)
    assert name != "percent" or "100%" in plan
