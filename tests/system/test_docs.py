# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the command lines of README and of the pages in docs/ unchanged.

A fenced block `sh` is command lines. In a block `console` they follow a prompt: `$` and `near$` stand for the measuring host, `far$` for the far host;
the rest is output. A block whose first line is `# NAME` is a file for the commands after it. A page's commands run one after another in
the two hosts of docs.toml. The lines are not changed: a `ktrxer` at the front of PATH shortens long runs. NOT_RUN lists lines that cannot run here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import docs_inside
import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md") if path.parts[-2] not in ("decisions", "schema", "measurements"))]
TIMEOUT_S = 40

# Page, beginning of the line, and the reason why this test does not run it. Each entry must match a line.
NOT_RUN = [
    *((f"docs/howto/add-{what}.md", "", "test_how_to_add.py follows it") for what in ("column", "engine", "field", "host-state", "method", "plot", "rule-back-end", "runner")),
    ("docs/howto/add-recipe.md", "ktrxer tests tcp_two_uploads", "test_how_to_add.py follows it"),
    ("docs/howto/add-recipe.md", "ktrxer lab run access", "test_how_to_add.py follows it"),
    ("README.md", "make demo", "test_lab_run.py runs scripts/demo"),
    ("README.md", "make test", "runs this test"),
    ("docs/howto/firewalls.md", "ufw ", "changes the firewall of this machine"),
    ("docs/howto/firewalls.md", "firewall-cmd ", "changes the firewall of this machine"),
    ("docs/howto/monitoring.md", "install -", "writes into this machine's /usr/local, /var/lib, /etc"),
    ("docs/howto/monitoring.md", "useradd ", "makes a user of this machine"),
    ("docs/howto/monitoring.md", "systemctl ", "changes this machine's systemd; the units are verified below"),
    ("docs/reference/server.md", "systemctl ", "changes this machine's systemd; test_service_unit.py verifies the units"),
    ("docs/howto/explore-runs.md", "ktrxer view ", "serves until it is ended; test_explore.py and web/browser/explorer.test.ts run it"),
    ("docs/howto/explore-runs.md", "ssh -L ", "another machine"),
    ("docs/index.md", "make demo", "test_lab_run.py runs scripts/demo"),
    ("docs/index.md", "make test", "runs this test"),
    ("docs/index.md", "make install", "make test-fresh runs it"),
    ("docs/howto/cross-builds.md", "", "make test-cross builds for other machines; OpenWrt's tree is on no registry"),
    ("docs/howto/experiments.md", "ktrxer run --again ", "needs a stored run: tests/python/test_again.py"),
    ("docs/howto/experiments.md", "unzip -p theirs", "needs a stored run of another person"),
    ("docs/howto/capacity.md", "ktrxer capacity udpst.example.net", "a server of others: test_capacity.py measures against one"),
    ("docs/howto/ci.md", "", "tests/virtual/test_ci_example.py runs examples/ci"),
    ("docs/howto/regression.md", "", "tests/virtual/test_regression_example.py runs examples/regression"),
    ("docs/howto/reports.md", "ktrxer report -o groups.html", "needs groups of runs: tests/python/test_report_groups.py"),
    ("docs/howto/bloated.md", "ktrxer check --download", "a web server of others: test_http_load.py measures against one"),
    ("docs/howto/truth.md", "", "minutes of virtual time: tests/truth/paths"),
    ("docs/howto/contributing.md", "", "the suites themselves, and hours of fuzzing and soaking"),
    ("docs/howto/batches.md", "", "minutes of virtual time: tests/virtual/test_series.py makes a batch"),
    ("docs/howto/compare-runs.md", "", "needs groups of runs: tests/virtual/test_series.py, tests/python/test_compare.py"),
    ("docs/howto/data-sets.md", "", "needs many runs and DuckDB: test_listing.py, test_query.py, test_exchange.py, test_frames.py of tests/python"),
    ("docs/howto/flent-files.md", "flent ", "test_flent_real.py draws an exported file with the real Flent"),
    ("docs/howto/installing.md", "", "make test-fresh runs them on bare Debian 12 and 13"),
    ("docs/howto/lab.md", "", "needs QEMU and minutes: tests/lab runs `ktrxer lab vm` and `module`"),
    ("docs/howto/live.md", "ktrxer doctor", "XDP programs need root outside a user namespace: test_live.py, test_doctor.py"),
    ("docs/howto/live.md", "ktrxer send --engine live", "XDP programs need root outside a user namespace: test_live.py"),
    ("docs/howto/live.md", "ktrxer send 192.0.2.1 --for 10s", "two threads need a device with two queues: test_live.py"),
    ("docs/howto/module.md", "", "needs the headers of the running kernel: tests/lab builds and loads the module"),
    ("docs/reference/store.md", "unzip -o", "DuckDB is not a part of this project's environment"),
    ("docs/howto/topologies.md", "ktrxer lab vm", "needs QEMU: tests/lab"),
    ("docs/tutorial/flent-paper.md", "", "hours of virtual time: tests/virtual/test_flent_paper.py makes a short batch, and the pictures"),
    ("docs/howto/virtual-time.md", "", "builds a kernel, for minutes: tests/virtual runs `ktrxer lab vm --device uml`"),
]  # fmt: skip

# Page, beginning of the line, and its requirement: a queueing discipline of the kernel, or root outside of user namespaces.
ROOT_OUTSIDE = "root outside of user namespaces"
NEEDS = [
    ("docs/howto/receiving.md", "ktrxer recv --device eth0 --rule 'drop", (ROOT_OUTSIDE,)),
    ("docs/howto/receiving.md", "ktrxer recv --device eth0 --rule 'capture+drop", (ROOT_OUTSIDE,)),
    ("docs/howto/receiving.md", "ktrxer recv --device eth0 --rule 'forward", (ROOT_OUTSIDE,)),
    ("docs/howto/topologies.md", "ktrxer lab run ./mine.toml", ("fq_codel", "netem")),
    ("docs/howto/launch-times.md", "", ("fq",)),
]

# A `ktrxer` at the front of PATH: it sends Ctrl-C after some time, like a reader, and shortens runs. Without --foreground `timeout` sends the signal twice, to its child
# and to the process group, and a second Ctrl-C ends a command at once with status 130.
SHIM = """#!/bin/sh
case $1 in
run) exec {ktrxer} "$@" --for 1 --delay 0.3 ;;
check) exec {ktrxer} "$@" --for 5 --delay 4 ;;
ping | stamp | flow | send | recv) exec timeout --foreground --preserve-status --signal INT 2 {ktrxer} "$@" ;;
*) exec {ktrxer} "$@" ;;
esac
"""
# `scp far:FILE .`, between the directories of the two hosts.
SCP = """#!/bin/sh
exec cp "../far/${1#far:}" "$2"
"""


@dataclass
class Block:
    language: str
    first: int  # number of its first line
    lines: list[str]


@dataclass
class Command:
    host: str
    line: str
    number: int


@dataclass
class Page:
    commands: list[Command] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def blocks(text: str) -> list[Block]:
    """Fenced blocks, and indented ones as language `indented`."""
    made: list[Block] = []
    fence: Block | None = None
    blank = True
    for number, line in enumerate(text.splitlines(), 1):
        if (mark := re.match(r"^ *```\s*(\S*)", line)) is not None:
            if fence is None:
                fence = Block(mark[1] or "none", number + 1, [])
                made.append(fence)
            else:
                fence = None
        elif fence is not None:
            fence.lines.append(line)
        elif line.startswith("    ") and line.strip():
            if blank:
                made.append(Block("indented", number, []))
            if made and made[-1].language == "indented" and made[-1].first + len(made[-1].lines) == number:
                made[-1].lines.append(line[4:])
        blank = not line.strip()
    return made


def read(name: str) -> Page:
    page = Page()
    for block in blocks((ROOT / name).read_text()):
        if block.lines and (named := re.fullmatch(r"# ([\w-]+\.\w+)", block.lines[0])):
            page.files[named[1]] = "\n".join(block.lines) + "\n"
        elif block.language in ("sh", "console"):
            page.commands += _commands(block)
    return page


def _commands(block: Block) -> list[Command]:
    made: list[Command] = []
    host, open_line = "near", False
    for number, line in enumerate(block.lines, block.first):
        if open_line:
            made[-1].line += "\n" + line
        elif block.language == "sh":
            if not line.strip() or line.startswith("#"):
                continue
            made.append(Command("near", line, number))
        elif prompt := re.match(r"(near|far)?[$#] +", line):
            host = prompt[1] or "near"
            made.append(Command(host, line[prompt.end() :], number))
        else:
            continue
        open_line = line.endswith("\\")
    return made


def excused(name: str, line: str) -> bool:
    return any(page == name and line.startswith(begin) for page, begin, _ in NOT_RUN)


@cache
def there_is(kind: str) -> bool:
    if kind == ROOT_OUTSIDE:
        return os.geteuid() == 0 and not os.environ.get("KTRXER_USER_NAMESPACE")
    words = ["unshare", "--net", "tc", "qdisc", "replace", "dev", "lo", "root", kind, *(["delay", "1ms"] if kind == "netem" else [])]
    return subprocess.run(words, capture_output=True, timeout=20).returncode == 0


def lacking(name: str, line: str) -> list[str]:
    return [kind for page, begin, kinds in NEEDS if page == name and line.startswith(begin) for kind in kinds if not there_is(kind)]


def given(name: str, place: Path) -> None:
    """Creates the runs that a page assumes to be stored."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from synthetic import synthetic

    if name == "docs/reference/store.md":
        synthetic(place, seconds=5, delay=1, name="rrul")
    if name == "docs/howto/reports.md":
        for run in ("rrul", "fifo", "fq_codel"):
            synthetic(place, seconds=5, delay=1, name=run, title=run)
    if name == "docs/howto/flent-files.md":
        import flent_files

        (place / "archive").mkdir()
        flent_files.write(place / "rrul.flent.gz", flent_files.four())
        shutil.copy(place / "rrul.flent.gz", place / "archive")
        synthetic(place, seconds=5, delay=1, name="rrul-2026-11-21T153000")
        (place / "runs").mkdir()


@pytest.mark.parametrize("name", [name for name in PAGES if any(not excused(name, one.line) for one in read(name).commands)])
def test_the_commands_of_a_page(name: str, ktrxer: Path, tmp_path: Path) -> None:
    page = read(name)
    for host in ("near", "far"):
        (tmp_path / host).mkdir()
    for file, text in page.files.items():
        (tmp_path / "near" / file).write_text(text)
    given(name, tmp_path / "near")
    programs = tmp_path / "bin"
    programs.mkdir()
    for program, text in (("ktrxer", SHIM.format(ktrxer=ktrxer)), ("scp", SCP)):
        (programs / program).write_text(text)
        (programs / program).chmod(0o755)
    commands = [one for one in page.commands if not excused(name, one.line)]
    lacked = sorted({kind for one in commands for kind in lacking(name, one.line)})
    commands = [one for one in commands if not lacking(name, one.line)]
    (tmp_path / "plan").write_text(json.dumps([[one.host, one.line, TIMEOUT_S] for one in commands]))
    done = subprocess.run(
        [ktrxer, "lab", "run", HERE / "docs.toml", "--", sys.executable, HERE / "docs_inside.py", tmp_path / "plan"],
        cwd=tmp_path, env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=TIMEOUT_S * 6,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(answers) == len(commands), done.stderr
    wrong = [
        f"{name}:{one.number}: {one.host}$ {one.line}\n{answer['output']}exit status {answer['status']}"
        for one, answer in zip(commands, answers, strict=True)
        if not good(answer)
    ]
    assert not wrong, "\n\n".join(wrong)
    assert not (older := other_forms(samples(name), "".join(answer["output"] for answer in answers))), "\n".join(older)
    if name == "docs/howto/monitoring.md":
        check_prometheus((tmp_path / "near" / "figures" / "far.prom").read_text())
    if lacked:
        pytest.skip(f"all of this page was run but what needs {', '.join(lacked)}, which is not here")


def samples(name: str) -> list[str]:
    """Lines of a page's output: blocks `text` and without a language, and the lines below a prompt."""
    made = blocks((ROOT / name).read_text())
    return [line for one in made if one.language in ("text", "none", "console") for line in one.lines if not re.match(r"(near|far)?[$#] ", line)]


def form(line: str) -> str:
    """A line without its figures and their units."""
    return re.sub(r"(?<![\w.])-?\d[\d.]*( ?([num]?s|[kMG]?bit/s)\b)?", "N", line).strip()


def other_forms(shown: list[str], printed: str) -> list[str]:
    """Lines `NAME: figures` of a page that the commands of this page print with the same words up to the first parenthesis, and with others
    after them. The words of a sentence depend on what was measured."""
    forms: dict[str, set[str]] = {}
    for line in printed.splitlines():
        forms.setdefault(form(line).split(" (")[0], set()).add(form(line))
    return [
        f"{line}\nis printed as\n{sorted(found)}"
        for line in shown
        if len(begin := form(line).split(" (")[0]) > 20 and ":" in begin and (found := forms.get(begin, set())) and form(line) not in found
    ]


def test_a_sample_of_another_form_is_found() -> None:
    shown = ["up: delay above the least one: min 0 ns, p50 8.011 us (100 packets)", "up: 100 packets sent, 3 lost"]
    printed = "up: delay above the least one: min 7 ns, p50 1.2 ms (quantiles +- 0.1 %), 9 packets\nup: 7 packets sent, 0 lost\n"
    assert len(found := other_forms(shown, printed)) == 1 and "up: delay above the least one: min N, p50 N (quantiles +- N %), N packets" in found[0]
    assert not other_forms([shown[0].replace("(", "(quantiles +- 0.1 %), ").rstrip(")"), shown[1]], printed)


def check_prometheus(text: str) -> None:
    """Prometheus' text format, version 0.0.4: one HELP and TYPE for each name, then its samples."""
    lines = text.splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert names == ["ktrxer_delay_seconds", "ktrxer_probes_sent", "ktrxer_probes_lost", "ktrxer_run_valid", "ktrxer_up"]
    samples = [line for line in lines if not line.startswith("#")]
    number = r"-?[0-9.]+(e-?[0-9]+)?"
    assert all(re.fullmatch(rf'({"|".join(names)})\{{target="far"(,\w+="[\w ]+")*\}} {number}', line, re.IGNORECASE) for line in samples), text
    assert len({line.rpartition(" ")[0] for line in samples}) == len(samples), "a series twice"
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in samples}
    assert values['ktrxer_up{target="far"}'] == 1 and values['ktrxer_probes_sent{target="far"}'] >= 50
    assert 0 < values['ktrxer_delay_seconds{target="far",direction="up",probes="UDP",statistic="p50"}'] < 1


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq on this machine")
def test_a_far_end_that_does_not_answer_is_a_figure_too(ktrxer: Path, tmp_path: Path) -> None:
    for file, text in read("docs/howto/monitoring.md").files.items():
        (tmp_path / file).write_text(text)
    environment = os.environ | {"PATH": f"{ktrxer.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "monitor.sh", "localhost", "."], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "start it on that host" in done.stderr
    assert (tmp_path / "localhost.prom").read_text().endswith('# TYPE ktrxer_up gauge\nktrxer_up{target="localhost"} 0\n')
    assert not list(tmp_path.glob(".*"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze on this machine")
def test_units_for_systemd(tmp_path: Path) -> None:
    files = {file: text for file, text in read("docs/howto/monitoring.md").files.items() if file.endswith((".service", ".timer"))}
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    assert len(files) == 2
    done = subprocess.run(["systemd-analyze", "verify", *(tmp_path / file for file in files)], capture_output=True, text=True, timeout=60)
    said = [line for line in done.stderr.splitlines() if "ktrxer-monitor" in line]
    assert not said, said


def good(answer: dict[str, Any]) -> bool:
    """Whether a command succeeded, or measured with a verdict other than `valid` because of a busy machine or Ctrl-C after two seconds."""
    measured = re.search(r"\bverdict\b\W+(degraded|invalid)", answer["output"]) and "answered nothing" not in answer["output"]
    return answer["status"] == 0 or (answer["status"] in (1, 3) and measured is not None)


def test_a_command_line_ends_at_its_time_limit_with_all_that_it_started() -> None:
    began = time.monotonic()
    status, output = docs_inside.finished(docs_inside.started(["bash", "-c", "echo begun; sleep 60 & wait"]), 1)
    assert status == 124 and output == "begun\n\nkilled after 1 s" and time.monotonic() - began < 30


def test_every_excuse_is_used() -> None:
    lines = {name: [one.line for one in read(name).commands] for name in PAGES}
    assert not [entry for entry in NOT_RUN if not any(line.startswith(entry[1]) for line in lines.get(entry[0], []))]
    assert all(reason for _, _, reason in NOT_RUN)


def test_every_page_is_in_the_menu_and_linked_from_the_index() -> None:
    menu, index = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "index.md").read_text()
    pages = [name.removeprefix("docs/") for name in PAGES if name not in ("README.md", "docs/index.md")]
    assert [page for page in pages if f" {page}\n" not in menu] == []
    assert [page for page in pages if f"({page})" not in index] == []


KINDS = ("tutorial", "howto", "reference", "explanation")  # the kinds of pages, beside decisions and measurements


def test_every_page_is_of_one_kind_and_begins_with_what_its_reader_gets() -> None:
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").glob("**/*.md")]
    assert sorted(map(str, pages)) and [str(page) for page in pages if page.parts[0] not in (*KINDS, "decisions", "measurements", "index.md")] == []
    opened = {str(page): (ROOT / "docs" / page).read_text().split("\n\n")[1] for page in pages if page.parts[0] != "decisions" or page.name == "README.md"}
    assert {name: text for name, text in opened.items() if not text.startswith("You ")} == {}


def test_the_index_names_every_folder_that_has_a_rule() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    packages = tomllib.loads((ROOT / "tests" / "walls.toml").read_text())["packages"]
    folders = [f"lab/ktrxer_{name.replace('.', '/')}" if name.split(".")[0] == "lab" else f"python/ktrxer/{name}" for name in packages]
    rules = re.search(r"^lib_uses = \{\n(.*?)^\}", (ROOT / "lib" / "meson.build").read_text(), re.M | re.S)
    assert rules is not None
    folders += [f"lib/{name}" for name in re.findall(r"^  '(\w+)':", rules[1], re.M)]
    folders += [f"methods/{path.parent.name}" for path in (ROOT / "methods").glob("*/meson.build")]
    assert len(folders) > 20 and [folder for folder in folders if f"`{folder}`" not in index] == []


OURS = re.compile(r"\s*((near|far)?[$#] +)?(sudo )?(ktrxer [a-z]|make [a-z]|meson |ninja |scripts/\w|tests/run|apt(-get)? |systemctl )")


def test_no_command_line_stands_outside_of_the_blocks_that_are_run() -> None:
    """Blocks `sh` and `console` are run, `text` is output, and files have their own languages."""
    stray = []
    for name in PAGES:
        for block in blocks((ROOT / name).read_text()):
            if block.language in ("none", "indented"):
                stray += [f"{name}:{n}: {line}" for n, line in enumerate(block.lines, block.first) if OURS.match(line)]
    assert not stray, "\n".join(stray)


@cache
def help_of(ktrxer: Path, *words: str) -> str:
    done = subprocess.run([ktrxer, *words, "--help"], capture_output=True, text=True, timeout=60)
    return done.stdout if done.returncode == 0 else ""


def test_what_is_not_run_exists(ktrxer: Path) -> None:
    """Checks commands in running text and lines in NOT_RUN: the command, its options, the target of make."""
    database = subprocess.run(["make", "-pRrq", "-C", ROOT, "help"], capture_output=True, text=True, timeout=60).stdout
    targets = {word for line in re.findall(r"^([\w./ -]+):(?!=)", database, re.M) for word in line.split()}
    wrong = []
    for name in PAGES:
        text = (ROOT / name).read_text()
        prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
        for said in [*re.findall(r"`([^`\n]+)`", prose), *(one.line for one in read(name).commands if excused(name, one.line))]:
            said = said.replace("\\\n", " ").split(" -- ")[0].split("#")[0]
            words = re.findall(r"(?:'[^']*'|\S)+", said)
            if words[:1] == ["make"] and len(words) > 1 and re.fullmatch(r"[a-z][\w-]*", words[1]) and words[1] not in targets:
                wrong.append(f"{name}: `{said}`: no such target")
            if words[:2] == ["ktrxer", "udpecho"]:
                continue  # the example of add-method.md
            if words[:1] == ["ktrxer"] and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) and words[1] != "help":
                shown = help_of(ktrxer, *words[1 : 3 if words[1] in ("lab", "bench", "ppt", "truth") and len(words) > 2 and words[2].isalpha() else 2])
                options = [word.split("=")[0] for word in words if re.match(r"--[a-z]", word) and word != "--help"]
                options = [option for option in options if not re.search(rf"{option}\b|--\[no-\]{option[5:] if option.startswith('--no-') else option[2:]}\b", shown)]
                if not shown or options:
                    wrong.append(f"{name}: `{said}`: {', '.join(options) or 'no such command'}")
    assert not wrong, "\n".join(wrong)
