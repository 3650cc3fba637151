# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command `ktrxer bench`: makes two hosts in the lab, starts the harness, which prints JSON lines, and prints tables of its samples.

The harness (bench/harness) checks its own options and prints their help. This module has the options for hosts and output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ktrxer_lab import local, topology, topology_model
from ktrxer_lab.arguments import Parser
from ktrxer_lab.bench import kinds
from ktrxer_lab.bench.compare import Damaged, Saved, arguments, compare, read
from ktrxer_lab.bench.table import Table
from ktrxer_lab.errors import LabError

VALID, BAD, USAGE, DOUBTFUL = 0, 1, 2, 3
SAMPLE, END = b'{"type":"sample"', b'{"type":"end"'
SAMPLES_LIMIT = 64 << 20  # limit of stored lines, in bytes
VERDICTS = ("valid", "degraded", "invalid")
NEAR, FAR = "near", "far"
HOSTS = f"""\
title = "two hosts, joined by a veth pair"
hosts = ["{NEAR}", "{FAR}"]
[[links]]
ends = ["{NEAR}", "{FAR}"]
subnet = "10.99.0.0/24"
offload = true
"""
FQ = """\
tc qdisc replace dev "$0" root fq timer_slack 0 && exec "$@"
echo "ktrxer bench: --fq: $0 cannot have the fq qdisc (CONFIG_NET_SCH_FQ, module sch_fq)" >&2
exit 1
"""


class Failed(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def hosts() -> topology_model.Topology:
    return topology.parse(HOSTS.encode(), Path("bench"))


def parser() -> Parser:
    """The options of this module; all others go to the harness."""
    made = Parser("ktrxer bench", add_help=False)
    add = made.add_argument
    add("--csv", type=Path)
    add("--compare", type=Path)
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--jsonl", action="store_true")
    add("-q", "--quiet", action="store_true")
    add("--fq", action="store_true")
    add("-d", "--device")
    add("--to")
    add("--far-device")
    add("--far-netns")
    return made


@dataclass
class Run:
    """The output of one bench, and its evaluation."""

    reader: kinds.Senders | kinds.Receivers
    name: str
    json: bool = False
    jsonl: bool = False
    quiet: bool = False
    csv: Path | None = None
    old: Saved | None = None
    own_hosts: bool = False
    fq: bool = False
    start: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    samples: list[bytes] = field(default_factory=list)  # lines that are evaluated later
    broken: Exception | None = None

    def show(self, text: str) -> None:
        if not (self.json or self.jsonl or self.quiet):
            print(text.translate(dict.fromkeys((*range(32), 127), "?")), flush=True)

    def take(self, line: bytes) -> None:
        result = json.loads(line)
        if result["type"] == "start":
            self.start = result
        elif result["type"] == "sample":
            self.reader.add(result)
        elif result["type"] == "end":
            self.end = result
        elif result["name"] == "left_out":
            self.show(f"left out: {result['engine']}: {result['reason']}")
        elif result["name"] == "note":
            self.notes.append(result["text"])

    def drain(self, descriptor: int) -> None:
        """Read all lines, in its own thread, because the harness waits for a slow reader. The samples are evaluated after the measurement,
        so that this process uses little CPU time during it."""
        size = 0
        with os.fdopen(descriptor, "rb") as lines:
            for line in lines:
                if self.jsonl and not line.startswith(END):
                    self.pass_on(line)
                if line.startswith(SAMPLE):
                    self.samples.append(line)
                    size += len(line)
                else:
                    self.attempt([line])
                if size > SAMPLES_LIMIT:
                    self.compute()
                    size = 0

    def pass_on(self, line: bytes) -> None:
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except OSError as error:
            if self.broken is None:
                self.broken = error
                os.kill(os.getpid(), signal.SIGTERM)  # this ends the harness

    def compute(self) -> None:
        self.attempt(self.samples)
        self.samples = []

    def attempt(self, lines: list[bytes]) -> None:
        try:
            for line in lines:
                self.take(line)
        except (ValueError, KeyError, TypeError, OSError) as error:
            self.broken = self.broken or error

    def worsen(self, reason: str) -> None:
        self.end["verdict"] = VERDICTS[max(1, VERDICTS.index(self.end["verdict"]))]
        self.end["reasons"].append({"id": "bench", "text": reason, "severity": "degraded", "cause": "tool"})

    def finish(self, status: int) -> int:
        """Print table, comparison and verdict. Returns the exit status."""
        self.compute()
        if isinstance(self.broken, OSError):
            raise self.broken
        if self.broken is not None:
            raise Failed(BAD, f"the harness's output is invalid: {type(self.broken).__name__} {self.broken}")
        if "bench" not in self.end:  # the harness printed an error and measured nothing
            self.print_end()
            return status or BAD
        table = self.reader.table()
        if self.name != "receive":
            self.end["settings"]["fq"] = int(self.fq)
        self.end |= {"own_hosts": self.own_hosts, "rows": table.json()}
        for reason in self.reader.reasons:
            self.worsen(reason)
        for line in (*table.lines(), self.reader.explains.format(**self.end["settings"])):
            self.show(line)
        self.show_judge()
        if self.csv is not None:
            try:
                table.write_csv(self.csv)
            except OSError as error:
                self.worsen(f"--csv {self.csv}: it cannot be written: {error.strerror}")
        if self.old is not None:
            self.compare(table)
        self.show(f"verdict: {self.end['verdict']}")
        for reason in self.end["reasons"]:
            self.show(f"  - {reason['text']}")
        self.print_end()
        return VALID if self.end["verdict"] == "valid" else DOUBTFUL

    def show_judge(self) -> None:
        end = self.end
        if "judge" in end:
            blind = "" if end["sees_stalls"] else " (by steal time only, because this process has no real-time priority)"
            self.show(f"judged at the far end by {end['judge']}; {end['stalled_turns']} of {end['turns']} turns had a stall{blind}")
            self.notes += [end["judge_note"]] if end["judge_note"] else []
        for note in self.notes:
            self.show(f"note: {note}")

    def compare(self, table: Table) -> None:
        assert self.old is not None
        found = compare(table, self.old.rows)
        self.show("against the older run:")
        for change in found.changes:
            self.show(f"  {change.line(table.columns)}")
        more = f"{found.alone} rows have no counterpart in it"
        self.show(f"  {found.compared} figures compared, {len(found.changes)} changed by more than their rounds' spread and by 5 %; {more}")
        self.end |= {"changes": [change.json(table.columns) for change in found.changes], "compared": found.compared}

    def print_end(self) -> None:
        if self.json and self.end:
            start = {key: value for key, value in self.start.items() if key != "type"}
            print(json.dumps({"type": "end", "start": start} | self.end, indent=2))
        elif self.jsonl and self.end:
            print(json.dumps(self.end, separators=(",", ":")))


# --------------------------------------------------------------------------------------------------------------- processes


def in_lab(command: Sequence[str], run: Run, write: int) -> int:
    """Run the harness between two hosts of the lab. They are removed in any case."""
    made = hosts()
    (link,) = made.links
    path = ["--device", link.device(NEAR), "--to", str(link.address(FAR)), "--far-device", link.device(FAR), "--far-netns", FAR]
    words = [*command, *path]
    if run.fq:
        words = ["sh", "-c", FQ, link.device(NEAR), *words]
    return local.run(made, local.Job(tuple(words), NEAR, stdout=write))


def here(command: Sequence[str], write: int) -> int:
    """Run the harness on the user's path. It ends with this process, when its standard input closes."""
    child = subprocess.Popen([*command, "--stop-on-eof"], stdin=subprocess.PIPE, stdout=write, start_new_session=True)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, _: child.send_signal(number)) for number in numbers}
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        assert child.stdin is not None
        child.stdin.close()


def measure(program: str, name: str, words: Sequence[str], run: Run) -> int:
    ends = os.pipe()
    reader = threading.Thread(target=run.drain, args=(ends[0],))
    reader.start()
    command = [program, "bench", name, *words]
    try:
        return in_lab(command, run, ends[1]) if run.own_hosts else here(command, ends[1])
    finally:
        os.close(ends[1])
        reader.join()


# ------------------------------------------------------------------------------------------------------------- command line


def older(path: Path) -> tuple[Saved, list[str]]:
    """An older run, and its settings as options."""
    try:
        saved = read(path)
        return saved, arguments(saved)
    except OSError as error:
        raise Failed(BAD, f"{path}: {error.strerror}") from None
    except Damaged as error:
        raise Failed(BAD, f"{path}: not a result of `ktrxer bench ... --json`: {error}") from None


def bench(words: list[str]) -> int:
    program = os.environ.get("KTRXER_PROGRAM", "")
    if not program.startswith("/"):
        raise Failed(BAD, "start it as `ktrxer bench`, which finds the harness")
    name = words[0] if words and words[0] in kinds.NAMES else ""
    options, rest = parser().parse_known_args(words[1:] if name else words)
    if not name and (rest or options.compare is None):
        os.execv(program, [program, "bench", *words])  # the harness prints the error
    old, again = older(options.compare) if options.compare is not None else (None, [])
    if old is not None and name and old.name != name:
        raise Failed(USAGE, f"--compare {options.compare}: this result is of `bench {old.name}`, not of `bench {name}`")
    if old is not None and not name:
        name = old.name
        rest, options.fq = [word for word in again if word != "--fq"], "--fq" in again
    path = {"--device": options.device, "--to": options.to, "--far-device": options.far_device, "--far-netns": options.far_netns}
    given = [word for option, value in path.items() if value is not None for word in (option, value)]
    if options.fq and given:
        device = options.device or "DEV"
        raise Failed(USAGE, f"--fq is for the bench's own hosts: for your own device, run `tc qdisc replace dev {device} root fq`")
    methods = any(word.startswith(("--methods", "-m")) for word in rest)
    run = Run(
        kinds.reader(name, methods), name, json=options.json, jsonl=options.jsonl, quiet=options.quiet, csv=options.csv, old=old,
        own_hosts=not given, fq=options.fq,
    )  # fmt: skip
    quiet = ["--quiet"] if options.quiet else []
    return run.finish(measure(program, name, [*rest, *given, *quiet], run))


def main(words: list[str]) -> int:
    try:
        return bench(words)
    except Failed as failed:
        print(f"ktrxer bench: {failed}", file=sys.stderr)
        return failed.status
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"ktrxer bench: standard output cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discard the rest of the buffer
        return BAD
    except LabError as error:
        print(f"ktrxer bench: {error}", file=sys.stderr)
        return BAD
