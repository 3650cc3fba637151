# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer batch`: a series of runs from one file."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import secrets
import shlex
import signal
import subprocess
import tomllib
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer.arguments import Parser, outside
from ktrxer.commands.common import DOUBTFUL, NO_RESULT, USAGE, VALID, command_line, complain
from ktrxer.store import one_line
from ktrxer.units import near, span

if TYPE_CHECKING:
    from ktrxer.batch.execute import Executor, Outcome
    from ktrxer.batch.journal import Journal, State
    from ktrxer.batch.spec import Batch

INTERRUPTED = 130
OVERHEAD_S = 2.0  # of a run beyond its own time, for the estimate
EXAMPLES = """\
examples:
  ktrxer batch queues.toml --dry-run                   what would be run, and how long it takes
  ktrxer batch queues.toml
  ktrxer batch --resume runs/queues.batch.jsonl        continues a batch with the settings in its journal
  ktrxer batch queues.toml --set length=5s --set cc=bbr
  ktrxer batch queues.toml --until 'p95(rtt) ±5%'
  ktrxer batch import old.batch > new.toml             reads a batch file of Flent
docs/howto/batches.md shows a file. `ktrxer compare DIR --by group` compares what comes out.
Exit status: 0 all runs are valid; 1 no run made a file; 2 usage; 3 some runs are not valid, or made no file; 130 interrupted."""


def parser() -> Parser:
    p = command_line("batch", "Makes a series of runs from one file: a matrix of settings, repetitions, hooks, resumption.", EXAMPLES)
    p.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the batch (TOML), or `import`")
    p.add_argument("flent", nargs="?", type=Path, metavar="FLENT", help="with `import`: a batch file of Flent; it is printed as TOML")
    p.add_argument("--only", action="append", default=[], metavar="NAME", help="only this batch of the file; may be given several times")
    p.add_argument("--resume", type=Path, metavar="JOURNAL", help="go on with a batch: NAME.batch.jsonl")
    p.add_argument("--repetitions", type=int, metavar="N", help="repetitions of each combination, in place of those of the file")
    other = "another value of an option of [run], a dimension of the matrix or a variable; may be given several times"
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=other)
    p.add_argument("--until", metavar="FIGURE ±N%", help="repeat until the figure's mean is known to N %%: 'p95(rtt) ±5%%'")
    p.add_argument("--seed", type=int, metavar="N", help="seed of the order (and of virtual time); default: random, stored")
    p.add_argument("--dry-run", action="store_true", help="check everything, print the runs and an estimate of the time, and do nothing")
    p.add_argument("-q", "--quiet", action="store_true", help="print only faults and the last line")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    from ktrxer.batch.spec import BatchError, BatchFailure

    try:
        if given.file == Path("import"):
            return _import(given)
        if given.flent is not None:
            raise BatchError(f"{given.flent}: one FILE at a time; several batches stand in [batches] of one file")
        return _resume(given) if given.resume is not None else _start(given)
    except BatchFailure as error:
        complain("batch", str(error))
        return NO_RESULT
    except BatchError as error:
        complain("batch", str(error))
        return USAGE


def _import(given: argparse.Namespace) -> int:
    from ktrxer.batch.flent_toml import converted
    from ktrxer.batch.journal import State
    from ktrxer.batch.spec import BatchError, from_table

    if given.flent is None:
        raise BatchError("import: FLENT is missing: a batch file of Flent")
    text, notes = converted(given.flent)
    for note in notes:
        complain("batch", note)
    print(text, end="", flush=True)
    # A file that the batch would refuse is not imported.
    state = State(str(uuid.uuid4()), given.flent.name, from_table(tomllib.loads(text), given.flent, ""), [])
    state.seeds += [0] * len(state.batches)
    _checked(state)
    return VALID


def _start(given: argparse.Namespace) -> int:
    from ktrxer.batch import journal, plan
    from ktrxer.batch.execute import boot_id
    from ktrxer.batch.spec import BatchError

    batches = _chosen(given)
    seeds = [given.seed if given.seed is not None else one.seed if one.seed is not None else secrets.randbelow(2**31) for one in batches]
    state = journal.State(str(uuid.uuid4()), given.file.name, batches, seeds)
    seconds = _checked(state)
    _try_networks(state)
    _look_for_hooks(state)
    if given.dry_run:
        return _show_plan(state, seconds)
    _try_virtual_time(state)
    path = plan.results(batches[0]) / f"{given.file.stem}{journal.SUFFIX}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BatchError(f"{path.parent}: {error.strerror}") from None
    return _execute(given, state, journal.create(path, state, boot_id()), seconds)


def _chosen(given: argparse.Namespace) -> list[Batch]:
    from ktrxer.batch import spec

    if given.file is None:
        raise spec.BatchError("FILE is missing: the batch to run, or --resume JOURNAL")
    found = spec.read(given.file)
    if unknown := [name for name in given.only if name not in [one.name for one in found]]:
        raise spec.BatchError(f"--only {unknown[0]}: {given.file} has no such batch; it has {', '.join(one.name for one in found)}")
    found = [one for one in found if not given.only or one.name in given.only]
    changes: dict[str, Any] = {}
    if given.repetitions is not None:
        if not 1 <= given.repetitions <= spec.REPETITIONS_MOST:
            bounds = f"1 to {spec.REPETITIONS_MOST}"
            raise spec.BatchError(f"--repetitions: {outside(str(given.repetitions), given.repetitions < 1, bounds)}")
        changes["repetitions"] = given.repetitions
    if given.until is not None:
        try:
            changes["until"] = spec.until_of(given.until)
        except ValueError as error:
            raise spec.BatchError(f"--until {error}") from None
    return [spec.overridden(replace(one, **changes), given.set) for one in found]


def _resume(given: argparse.Namespace) -> int:
    from ktrxer.batch import journal, plan, spec
    from ktrxer.batch.execute import boot_id

    if given.file is not None or given.only or given.set or (given.until, given.seed, given.repetitions) != (None, None, None):
        raise spec.BatchError("--resume takes everything from the journal: give no FILE and no other setting with it")
    state = journal.load(given.resume)
    seconds = _checked(state)
    if given.dry_run:
        return _show_plan(state, seconds)
    source = state.batches[0].folder / state.file
    with contextlib.suppress(spec.BatchError):
        if spec.read(source)[0].sha256 != state.batches[0].sha256:
            complain("batch", f"{source} has changed since the batch began; the batch continues with the settings in the journal")
    if state.boot_ids and boot_id() not in state.boot_ids:
        complain("batch", "this host was restarted since the last run; the further runs are of another boot (boot_id in each run file)")
    for batch, _ in state.unfinished:
        complain("batch", f"{batch}: a run was cut off; its samples stay in NAME.ktrxer.part, and the run is made again")
    _try_virtual_time(state)
    opened, state = journal.reopen(given.resume, boot_id())
    if state.batches and not plan.results(state.batches[0]).is_dir():
        raise spec.BatchError(f"{plan.results(state.batches[0])}: No such file or directory")
    return _execute(given, state, opened, seconds)


def _checked(state: State) -> dict[tuple[str, str], float]:
    """The planned seconds of each combination. All are checked before the first run: test, parameters, options, recipe, network."""
    from ktrxer.batch import plan

    made: dict[tuple[str, str], float] = {}
    networks: set[tuple[str, ...]] = set()
    for batch, seed in zip(state.batches, state.seeds, strict=True):
        plan.once(batch, "first")
        plan.once(batch, "last")
        _check_keys(batch)
        for run in plan.planned(batch, seed, state.identity):
            key = batch.name, run.combination.group
            if key not in made:
                made[key] = _seconds(batch, run.arguments)
                if run.lab and (network := plan.network(run)) not in networks:
                    _check_lab(batch.name, network)
                    networks.add(network)
            elif len(made) == len(plan.combinations(batch)):
                break
    return made


def _check_keys(batch: Batch) -> None:
    """A key of [run] is the long option of its name, but for the duration, whose key is `length`."""
    from ktrxer.batch.spec import BatchError
    from ktrxer.commands import run

    names = {name for action in run.parser()._actions for name in action.option_strings if name.startswith("--")} - {"--for", "--help"}
    known = sorted({"test"} | {name[2:] for name in names})
    for key in batch.run:
        option = key.replace("_", "-")
        if option not in known:
            hint = near("length" if option == "for" else option, known, f"known are {', '.join(known)}")
            raise BatchError(f"{batch.name}: run.{key}: no such key; {hint}")


def _check_lab(name: str, words: tuple[str, ...]) -> None:
    """A process of its own, as that of each run: the lab is no library of this command."""
    from ktrxer.batch.spec import BatchError

    command = [_ktrxer(), "lab", "run", *words, "--dry-run", "--", "ktrxer"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise BatchError(f"{name}: lab: {' '.join(done.stderr.split()).removeprefix('ktrxer lab: ')}")


def _try_networks(state: State) -> None:
    """Makes each network of real time once, with nothing in it: this kernel may lack netem or a queue, or this user the right."""
    from ktrxer.batch import plan
    from ktrxer.batch.spec import BatchFailure

    tried: set[tuple[str, ...]] = set()
    for batch, seed in zip(state.batches, state.seeds, strict=True):
        if batch.lab is None or batch.lab.time == "virtual":
            continue
        for run in plan.planned(batch, seed, state.identity):
            if (words := plan.without_programs(run)) in tried:
                continue
            tried.add(words)
            command = [_ktrxer(), "lab", "run", *words, "--", "true"]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode:
                raise BatchFailure(f"{batch.name}: {run.combination.group}: {' '.join(done.stderr.split()).removeprefix('ktrxer lab: ')}")


def _look_for_hooks(state: State) -> None:
    """Names the programs of hooks that this host does not have. The batch begins all the same, because an earlier hook may install them."""
    for batch in state.batches:
        for hook in batch.hooks:
            word = hook.command.split(maxsplit=1)[0] if hook.command.split() else ""
            if not re.fullmatch(r"[\w./+-]+", word):
                continue  # more than a program: a variable, an assignment, a group
            found = subprocess.run(["sh", "-c", 'command -v "$1"', "sh", word], cwd=batch.folder, capture_output=True)
            if found.returncode:
                complain("batch", f"{batch.name}: hook, {hook.when}: this host has no {word}")


def _try_virtual_time(state: State) -> None:
    """Builds the kernel of virtual time, if it is not there, and starts one guest: a host without either would fail each run."""
    from ktrxer.batch import plan
    from ktrxer.batch.spec import BatchFailure

    for batch, seed in zip(state.batches, state.seeds, strict=True):
        if batch.lab is not None and batch.lab.time == "virtual":
            run = next(iter(plan.planned(batch, seed, state.identity)))
            done = subprocess.run([_ktrxer(), "lab", "run", run.lab[0], "--time", "virtual", "--", "true"], stdin=subprocess.DEVNULL)
            if done.returncode:
                raise BatchFailure(f"{batch.name}: no run is made, because virtual time does not work here (see above)")
            return


def _ktrxer() -> str:
    from ktrxer.batch.spec import BatchFailure
    from ktrxer.run import binary

    try:
        return binary.find()
    except binary.NotFound as error:
        raise BatchFailure(str(error)) from None


def _seconds(batch: Batch, arguments: list[str]) -> float:
    from ktrxer import catalogue
    from ktrxer.batch.spec import BatchError
    from ktrxer.catalogue.recipe import PlanError
    from ktrxer.commands import run

    stated = io.StringIO()
    try:
        with contextlib.redirect_stderr(stated):
            given = run.parsed(arguments)
        setting = run.setting_of(given)
        made = catalogue.find(given.test).make(setting, run.parameters_of(given))
    except SystemExit:
        raise BatchError(f"{batch.name}: run: {' '.join(stated.getvalue().split())}") from None
    except PlanError as error:
        raise BatchError(f"{batch.name}: run: {error}") from None
    return made.total_s if made.total_s is not None else setting.total_s


def _estimate(state: State, seconds: dict[tuple[str, str], float]) -> tuple[int, float]:
    """Number of runs that are not yet valid, and their seconds."""
    from ktrxer.batch import plan

    done, count, total = state.done(), 0, 0.0
    for batch, run in plan.all_of(state.batches, state.seeds, state.identity):
        if batch.until is not None and run.repetition > batch.until.least:
            continue
        tries = done.get((batch.name, run.key), [])
        if not tries or (tries[-1].verdict != "valid" and len(tries) <= batch.retries):
            count += 1
            total += seconds[batch.name, run.combination.group] + OVERHEAD_S + (batch.pause if isinstance(batch.pause, float) else 0)
    return count, total


def _show_plan(state: State, seconds: dict[tuple[str, str], float]) -> int:
    from ktrxer.batch import plan

    count, total = _estimate(state, seconds)
    for batch, seed in zip(state.batches, state.seeds, strict=True):
        combinations = plan.combinations(batch)
        times = (
            f"{batch.repetitions} repetition{'' if batch.repetitions == 1 else 's'}"
            if batch.until is None
            else f"{batch.until.least} to {batch.until.most} repetitions"
        )
        count_of = f"{len(combinations)} combination{'' if len(combinations) == 1 else 's'}, {times}"
        print(one_line(f"{batch.name}: {count_of}, {batch.order}, seed {seed}, in {plan.results(batch)}", 300))
        for hook in batch.hooks:
            print(one_line(f"  hook, {hook.when}: sh -c {shlex.quote(hook.command)}", 600))
        for run in plan.planned(batch, seed, state.identity):
            if run.number > 2 * len(combinations) and run.number > 20:
                print("  ...")
                break
            words = (["lab", "run", *run.lab, "--", "ktrxer"] if run.lab else []) + ["run", *run.options]
            print(one_line(f"  {run.number:>4}  {run.combination.group}, repetition {run.repetition}: ktrxer {shlex.join(words)}", 600))
    least = " at least" if any(one.until is not None for one in state.batches) else ""
    virtual = any(one.lab is not None and one.lab.time == "virtual" for one in state.batches)
    clock = " of virtual time (measured batches took a seventh to a half of it)" if virtual else ""
    print(f"Nothing was measured. {count} runs take{least} about {span(total)}{clock}, without retries.")
    return VALID


def _execute(given: argparse.Namespace, state: State, opened: Journal, seconds: dict[tuple[str, str], float]) -> int:
    from ktrxer.batch import plan
    from ktrxer.batch.execute import Executor, Stopped
    from ktrxer.batch.spec import BatchFailure
    from ktrxer.batch.view import view_of

    ktrxer = _ktrxer()
    count, total = _estimate(state, seconds)
    with contextlib.closing(opened), view_of(given.quiet, count, total) as view:
        executor = Executor(ktrxer, state, opened, view, _figures)
        before = [(number, signal.signal(number, lambda *_: _stop(executor))) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            outcome = executor.run()
        except Stopped:
            complain("batch", f"stopped; `ktrxer batch --resume {opened.path}` continues the batch")
            return INTERRUPTED
        except OSError as error:  # of the journal, a log or a folder: a full disk, a folder that has vanished
            stated = f"{error.filename or opened.path}: {error.strerror or error}"
            remedy = f"remove the cause, then `ktrxer batch --resume {opened.path}` continues it"
            raise BatchFailure(f"{stated}; the batch ends; {remedy}") from None
        finally:
            for number, handler in before:
                signal.signal(number, handler)
    several = sum(len(plan.combinations(one)) for one in state.batches) > 1
    return _summary(outcome, opened.path.parent, several)


def _stop(executor: Executor) -> None:
    executor.stop = True


def _figures(path: Path) -> dict[str, float]:
    from ktrxer.analyse.figures import of_run
    from ktrxer.store import open_run

    return {one.key: one.value for one in of_run(open_run(path))}


def _summary(outcome: Outcome, folder: Path, several: bool) -> int:
    """`several`: the batch has groups to compare."""
    for name, found in outcome.reached.items():
        if found.mean is None or found.low is None or found.high is None:
            print(one_line(f"{name}: {found.count} runs, no interval", 300))
        else:
            stated = "reached" if found.reached else "NOT reached"
            print(one_line(f"{name}: {stated} after {found.count} runs: {found.mean:.5g} (95 %: {found.low:.5g} to {found.high:.5g})", 300))
    runs = outcome.valid + outcome.invalid + outcome.failed
    ended = f"{outcome.valid} valid, {outcome.invalid} degraded or invalid, {outcome.failed} without a file"
    print(f"{runs} run{'' if runs == 1 else 's'} in {outcome.tries} {'try' if outcome.tries == 1 else 'tries'}: {ended}")
    print(
        f"stored in {folder}; "
        + (f"`ktrxer compare {folder} --by group` compares them" if several else f"`ktrxer runs {folder}` lists them")
    )
    if outcome.valid == runs:
        return VALID
    return DOUBTFUL if outcome.valid + outcome.invalid else NO_RESULT
