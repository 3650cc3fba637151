# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run: processes begin at one instant, their output is stored as it comes, and the file is closed whatever happens.

One thread does all of it, so nothing needs a lock; only the disk has a thread of its own. A process that is slow or silent, prints garbage
or dies does not disturb the others, and the verdict names it.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from ktrxer.imports import without_pandas
from ktrxer.places import LOCAL, Place, PlaceError, open_place
from ktrxer.run import timers
from ktrxer.run.active import Active, Output
from ktrxer.run.closing import closed
from ktrxer.run.inside import Inside
from ktrxer.run.own_clock import OwnClock, as_stored, boot_id, clocks
from ktrxer.run.pipes import Pipes
from ktrxer.run.recent import Newest
from ktrxer.run.schedule import Job, Schedule
from ktrxer.run.watching import NoView, View
from ktrxer.runners import defect
from ktrxer.runners.runner import RunnerError
from ktrxer.runners.samples import Clock, NotUnderstood, Samples
from ktrxer.store import RunWriter, StoreError, Zero, limits, one_line
from ktrxer.store.arrays import in_order
from ktrxer.store.checked import free
from ktrxer.store.meta import Meta, Series
from ktrxer.store.reasons import Reason, reason
from ktrxer.store.run import Run

S, MS = 10**9, 10**6

LEAD_NS = 400 * MS  # from the start of the processes to the start of the measurement; and for each of them:
LEAD_EACH_NS = 25 * MS
SYNC_NS = S
VIEW_NS = 250 * MS
PATIENCE_NS = 4 * S  # from SIGINT to SIGKILL
EVENTS_MOST = 20_000
NAME_MOST = 100  # characters of the name of a series
DRIFT = 500e-6  # of a clock in a place, at most: more during a run is a step


class DiskError(Exception):
    """The run could not be stored in full."""


class Session:
    def __init__(
        self,
        schedule: Schedule,
        meta: Meta,
        directory: Path,
        view: View | None = None,
        places: Mapping[str, Place] | None = None,
        name: str | None = None,
    ) -> None:
        """`places`: opened by the caller, by the names that the plan uses; this host needs no entry. `name`: of the file."""
        without_pandas()  # an import while the run goes on would delay the reads of its pipes
        self.schedule = schedule
        self.meta = meta
        self.view = view or NoView()
        self.newest = Newest()
        self.notes: list[Reason] = []
        self.stopping: str | None = None  # the reason
        self.after: Callable[[], dict[str, object]] | None = None  # metadata of the end
        self.places: dict[str, Place] = {LOCAL: open_place(LOCAL), **(places or {})}
        self.closed: Run | None = None  # after run(): what the file contains
        self._waiting = [job for job in schedule.jobs if not job.rides]
        self._active: list[Active] = []
        self._inside: list[Inside] = []
        self._pipes = Pipes()
        self._signals = 0
        self._disk: OSError | None = None
        self._events = 0
        self._ended_at: dict[str, int] = {}  # by name of the invocation
        self._watched = not isinstance(self.view, NoView)
        self._news = True  # the run's meta has changed since it was written
        # A plan without anything that measures, such as a recipe of host state alone, measures the state itself.
        self._measures = any(not job.runner.auxiliary for job in schedule.jobs)
        meta.series = list(schedule.series)
        self._names = {(series.name, series.kind) for series in meta.series}
        self._offsets = {name: place.clock() for name, place in self.places.items()}
        slowest = max(self.places[job.invocation.place].start_ns for job in schedule.jobs)
        lead = LEAD_NS + LEAD_EACH_NS * len(schedule.jobs) + 2 * slowest + schedule.connect_ns
        self._set_zero(lead)
        meta.phases = schedule.phases
        meta.length_ns = schedule.length_ns
        meta.runners = [job.stored for job in schedule.jobs]
        meta.settings["places"] = {name: as_stored(self._offsets[name]) for name, place in self.places.items() if not place.shares_clock}
        try:
            self.writer = RunWriter(directory, meta, name)
        except OSError as error:
            raise StoreError(f"{directory}: no run can be stored there: {error.strerror}") from None
        self._set_zero(lead)  # again: a busy disk may have taken seconds

    def _set_zero(self, lead_ns: int) -> None:
        mono, real, bound = clocks()
        self.zero_ns, self.start_real_ns = mono + lead_ns, real + lead_ns
        self.own_clock = OwnClock(mono, real)
        self.meta.zero = Zero(self.zero_ns, self.start_real_ns, bound, boot_id())

    # ------------------------------------------------------------------------------------------------------------ outside

    @property
    def now_ns(self) -> int:
        """Since the run's zero; negative before it."""
        return time.monotonic_ns() - self.zero_ns

    def run(self) -> Path:
        """Measure, and return the finished file. DiskError when the samples could not be stored in full: then the directory stays."""
        with self._signals_taken():
            try:
                self.view.begin()
                self._launch_due()
                self._loop()
            finally:
                self._end_all()
                self.view.end()
        return self._finish()

    @contextlib.contextmanager
    def _signals_taken(self) -> Iterator[None]:
        def received(number: int, _: object) -> None:
            self._signals += 1
            self.stopping = self.stopping or ("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)

        # A signal that was ignored before (nohup) stays ignored.
        taken = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
        before = {number: signal.signal(number, received) for number in taken}
        try:
            with self._pipes.woken_by_signals():
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # --------------------------------------------------------------------------------------------------------------- loop

    def _loop(self) -> None:
        next_sync, next_view = time.monotonic_ns() + SYNC_NS, 0
        while self._active or self._inside or (self._waiting and not self.stopping):
            now = time.monotonic_ns()
            self.own_clock.look()
            if now >= min(next_sync, self._pipes.next_ns):
                for active, descriptor in self._pipes.ready():
                    self._read(active, descriptor)
                self._pipes.were_read(now, self._active, watched=self._watched)
            if self._watched and now >= next_view:
                self._look()
                self._show()
                next_view = now + VIEW_NS
            if now >= next_sync:
                self._sync()
                next_sync = now + SYNC_NS
            for inside in list(self._inside):
                reason = inside.sample()
                if self.stopping:
                    self._cut_short(inside)
                elif reason is not None or now >= inside.until_ns:
                    self._inside_ended(inside, reason)
            self._watch(now)
            if not self._active and not self._inside and self._waiting and not self._can_begin():
                break
            due = [next_sync, *([next_view] if self._watched else []), *(inside.next_ns for inside in self._inside)]
            self._pipes.wait(min(due), time.monotonic_ns())

    def _show(self) -> None:
        try:
            self.view.show(self)
        except OSError as error:  # the caller finds the same error when it prints the summary
            self.view = NoView()
            self.stopping = self.stopping or f"an output that cannot be written ({error.strerror})"

    def _watch(self, now: int) -> None:
        """Processes that should have ended, that were asked to stop, and that wait for others."""
        if self.stopping:
            self._waiting.clear()
        if self._measures and not any(not one.job.runner.auxiliary for one in self._active) and self._begun_all():
            self._end_auxiliaries(now)
        for active in list(self._active):
            if self.stopping:  # a reason of the verdict, of which an early end is none
                self._ends_now(active.job)
            if self._signals > 1:
                active.process.kill()
            elif active.kill_at_ns is not None:
                if now >= active.kill_at_ns:
                    active.process.kill()
            elif self.stopping or now >= active.until_ns:
                if not (self.stopping or active.endless):
                    self.notes.append(reason("not_ended", name=active.job.stored.name))
                self._ask_to_stop(active, now)
        self._launch_due()

    def _begun_all(self) -> bool:
        """Nothing that measures is still to begin."""
        return all(job.runner.auxiliary for job in self._waiting)

    def _end_auxiliaries(self, now: int) -> None:
        """The measurement has ended: the state of the hosts is recorded no longer than that, which is the plan and no fault."""
        self._waiting.clear()
        for inside in list(self._inside):
            self._cut_short(inside)
        for active in self._active:
            if active.kill_at_ns is None:
                self._ends_now(active.job)
                self._ask_to_stop(active, now)

    def _ends_now(self, job: Job) -> None:
        for one in (job, *job.riders):
            now = max(one.stored.from_ns or 0, self.now_ns)
            one.stored.to_ns = min(one.stored.to_ns or now, now)

    def _cut_short(self, inside: Inside) -> None:
        """It ends before its time for a reason that the verdict has already, or for none."""
        self._ends_now(inside.job)
        self._inside_ended(inside)

    def _ask_to_stop(self, active: Active, now: int) -> None:
        active.process.ask_to_stop()
        active.kill_at_ns = now + PATIENCE_NS

    def _can_begin(self) -> bool:
        names = {job.invocation.name for job in self._waiting}
        return any(job.invocation.when.start_after not in names for job in self._waiting)

    def _launch_due(self) -> None:
        """Starts all jobs that have a time; later those whose predecessors have ended."""
        for job in list(self._waiting):
            after = job.invocation.when.start_after
            if after is not None:
                ended = self._ended_at.get(after)
                if ended is None:
                    continue
                begin = ended + round(job.invocation.when.delay_s * S)
                job.from_ns = max(begin, self.now_ns + LEAD_NS)
                job.length_ns = min(job.length_ns, self.schedule.length_ns - job.from_ns)
                job.stored.from_ns, job.stored.to_ns = job.from_ns, job.from_ns + job.length_ns
                if job.length_ns <= 0:
                    self._waiting.remove(job)
                    self.notes.append(reason("no_time_left", name=job.stored.name, other=str(after)))
                    continue
            self._waiting.remove(job)
            self._launch(job)

    def _launch(self, job: Job) -> None:
        self._news = True
        assert job.from_ns is not None
        if job.inside:
            self._begin_inside(job)
            return
        place, offset = self.places[job.invocation.place], self._offsets[job.invocation.place]
        start_real_ns = self.start_real_ns + job.from_ns + offset.offset_ns + (self.own_clock.moved_ns if place.shares_clock else 0)
        jobs = [job, *job.riders]
        try:
            argv = job.command(start_real_ns)
            for one in jobs:
                one.stored.started_ns, one.stored.argv = self.now_ns, argv
            # A command of ktrxer waits for its time by itself, and ends with its standard input.
            process = place.start(argv, guarded=not job.runner.own, at_real_ns=None if job.runner.own else start_real_ns)
        except (OSError, RunnerError) as error:
            why = f"{job.stored.argv[0]}: cannot be started: {error.strerror}" if isinstance(error, OSError) else str(error)
            for one in jobs:
                one.stored.status, one.stored.stderr_tail = "failed", why
                self._has_ended(one)
            return
        until = self.zero_ns + job.from_ns + job.length_ns
        clock = Clock(self.start_real_ns + offset.offset_ns, None, offset.bound_ns)
        if place.shares_clock:
            clock = Clock(self.start_real_ns, self.zero_ns, steps=self.own_clock.steps)
        for one in jobs:
            one.stored.status = "running"
        grace = job.timeout_ns + timers.grace_ns(self.schedule.trip_ns)
        active = Active(process, [Output(one, self._samples(one, clock)) for one in jobs], until, grace)
        self._active.append(active)
        self._pipes.add(active)

    def _samples(self, job: Job, clock: Clock) -> Samples:
        assert job.from_ns is not None
        return Samples(
            job.series, clock, interval_ns=job.stored.interval_ns, from_ns=job.from_ns, to_ns=job.from_ns + job.length_ns,
            name=job.invocation.name, register=partial(self._register, job),
        )  # fmt: skip

    def _register(self, job: Job, series: Series) -> None:
        """A series that a process has found. Names come from the host that is observed, so they are made plain, and unique."""
        if len(self.meta.series) >= limits.SERIES - 1:
            raise NotUnderstood(f"the run has {len(self.meta.series)} series already")
        plain = series.name = one_line(series.name, NAME_MOST) or job.invocation.name
        number = 1
        while (series.name, series.kind) in self._names:
            number += 1
            series.name = f"{plain} ({number})"
        series.id, series.runner = len(self.meta.series), job.stored.id
        self._names.add((series.name, series.kind))
        self.meta.series.append(series)
        self._news = True

    def _begin_inside(self, job: Job) -> None:
        assert job.runner.here is not None
        job.stored.started_ns = self.now_ns
        try:
            source = job.runner.here(job.invocation.parameters, job.options)
        except RunnerError as error:
            self._inside_failed(job, str(error))
        except (Exception, SystemExit) as error:  # a defect of a runner must not lose the run
            self._inside_failed(job, defect(job.runner, error))
        else:
            job.stored.status = "running"
            clock = Clock(self.start_real_ns, self.zero_ns, steps=self.own_clock.steps)
            self._inside.append(Inside(job, source, self._samples(job, clock), self.zero_ns))

    def _inside_failed(self, job: Job, reason: str) -> None:
        job.stored.status, job.stored.stderr_tail = "failed", reason
        self._has_ended(job)

    def _inside_ended(self, inside: Inside, failure: str | None = None) -> None:
        self._inside.remove(inside)
        stored = inside.job.stored
        with contextlib.suppress(Exception):
            inside.close()
        stored.ended_ns, stored.status = self.now_ns, "ended"
        self._news = True
        self._store(inside)
        self.notes += [one.named(stored.name) for one in inside.samples.notes]
        if failure is not None:
            self._inside_failed(inside.job, failure)
            return
        if inside.samples.garbage:
            garbage, first = inside.samples.garbage, inside.samples.first_garbage
            self.notes.append(reason("unreadable_samples", name=stored.name, samples=garbage, first_line=first))
        self._has_ended(inside.job)

    def _read(self, active: Active, descriptor: int) -> None:
        process = active.process
        if active.read(descriptor, self.now_ns) and active.kill_at_ns is None:
            self._ask_to_stop(active, time.monotonic_ns())
        if descriptor not in process.open:
            self._pipes.remove(descriptor)
        if not process.open:
            self._ended(active)

    def _ended(self, active: Active) -> None:
        self._active.remove(active)
        self.own_clock.look()
        active.finish(self.now_ns)
        exit_status = active.process.close()
        active.job.stored.processor_ns = active.process.processor_ns
        for output in active.outputs:
            self._output_ended(active, output, exit_status)

    def _output_ended(self, active: Active, output: Output, exit_status: int) -> None:
        stored, process, samples = output.job.stored, active.process, output.samples
        if samples.clock.corrected:
            samples.reason("own_clock_stepped", step_list=self.own_clock.sentence(self.start_real_ns))
        stored.exit_status = exit_status
        stored.ended_ns = self.now_ns
        stored.stderr_tail = process.stderr_tail
        stored.unknown = list(samples.unknown)
        if samples.result is not None:
            try:
                stored.end = free(samples.result, stored.name)
            except StoreError as error:
                samples.not_understood(str(error))
        self._news = True
        own = output.job.runner.own  # a command of ktrxer that ended well has printed its end object
        requested = active.kill_at_ns is not None and stored.exit_status == -signal.SIGINT
        killed = stored.exit_status < 0 and not requested
        stored.status = "killed" if killed else "ended" if stored.end is not None or not own else "failed"
        loss = self.places[output.job.invocation.place].loss()
        if loss is not None:
            at_s = max(0, self.now_ns) / S
            self.notes.append(reason("place_lost", name=stored.name, place=stored.place, at_s=at_s, error=str(loss)))
        if samples.garbage:
            self.notes.append(reason("unreadable_lines", name=stored.name, lines=samples.garbage, first_line=samples.first_garbage))
        self._store(output)
        self.notes += [one.named(stored.name) for one in samples.notes]
        self.writer.event(self.now_ns, "runner_ended", f"{stored.status}, exit status {stored.exit_status}", stored.id)
        self._has_ended(output.job)

    def _has_ended(self, job: Job) -> None:
        name = job.invocation.name
        self._ended_at[name] = self.now_ns
        for part in list(self._inside):
            if part.job.invocation.when.stop_after == name:
                self._cut_short(part)
        for other in self._active:
            if other.job.invocation.when.stop_after == name and other.kill_at_ns is None:
                # The plan ends it here: its end is not an early one.
                other.job.stored.to_ns = self.now_ns
                self._ask_to_stop(other, time.monotonic_ns())

    # -------------------------------------------------------------------------------------------------------------- storing

    def _store(self, part: Output | Inside) -> None:
        if self._watched:
            self.newest.update(part.job.stored.id, part.samples, self.meta.series, taken=True)
        for kind, rows in part.samples.take().items():
            self.writer.append(kind, rows)
        events, part.samples.events = part.samples.events, []
        for at, name, text in events:
            self._events += 1
            if self._events <= EVENTS_MOST:
                self.writer.event(at, name, text, part.job.stored.id)

    def _sync(self) -> None:
        for active in self._active:
            for output in active.outputs:
                self._store(output)
        for inside in self._inside:
            self._store(inside)
        if self._disk is not None:
            return
        try:
            self.writer.sync(background=True, meta=self._news)
            self._news = False
        except OSError as error:
            self._disk = error
            self.stopping = self.stopping or "the disk"

    def _look(self) -> None:
        for active in self._active if self._watched else ():
            for output in active.outputs:
                self.newest.update(output.job.stored.id, output.samples, self.meta.series, taken=False)

    def _end_all(self) -> None:
        """No process stays behind, whatever happened."""
        for active in list(self._active):
            with contextlib.suppress(Exception):
                self._ended(active)
        for inside in list(self._inside):
            with contextlib.suppress(Exception):
                self._inside_ended(inside)

    def _look_again(self, after: Callable[[], dict[str, object]]) -> None:
        try:
            self.meta.metadata["after"] = free(after(), "metadata")
        except Exception as error:  # the measurement stands without it
            self.meta.metadata["after"] = {"missing": one_line(str(error))}

    def _compare_clocks(self) -> None:
        """The clocks of the places at the end: one that was stepped makes the times of its samples wrong."""
        for name, place in self.places.items():
            if place.shares_clock or place.loss() is not None:
                continue
            before = self._offsets[name]
            try:
                after = place.clock()
            except PlaceError as error:
                self.notes.append(reason("clocks_not_compared", name=name, error=str(error)))
                continue
            self.meta.settings["places"][name]["after"] = as_stored(after)
            # A step of this host's clock moves the offset, too.
            moved = abs(after.offset_ns - before.offset_ns + self.own_clock.moved_ns)
            allowed = before.bound_ns + after.bound_ns + DRIFT * self.meta.length_ns
            if moved > allowed:
                self.notes.append(reason("place_clock_stepped", name=name, moved_ns=moved, allowed_ns=round(allowed)))

    def _finish(self) -> Path:
        if self.stopping and self._disk is None:
            at = max(0.0, self.now_ns / S)
            whole = self.schedule.length_ns / S
            self.notes.append(reason("run_stopped", stopped_by=str(self.stopping), after_s=at, planned_s=whole))
        try:
            if self._disk is not None:
                raise self._disk
            if self.after is not None:
                self._look_again(self.after)
            self._compare_clocks()
            self.writer.sync()
            tables = {kind: in_order(table) for kind, table in self.writer.tables().items()}
            run = Run(self.writer.part, self.meta, {kind: partial(tables.__getitem__, kind) for kind in tables})
            self.closed, replaced = closed(run, self.notes, {job.runner.name: job.runner for job in self.schedule.jobs})
            self.closed.path = path = self.writer.finish(tables | replaced)
            return path
        except KeyboardInterrupt:
            self.writer.abandon()
            part = self.writer.part
            message = [f"{part}: stopped before the file was closed; `ktrxer recover {part}` closes it"] if part.exists() else []
            raise KeyboardInterrupt(*message) from None
        except OSError as error:
            self.writer.abandon()
            part = self.writer.part
            remedy = f"make room, then `ktrxer recover {part}` keeps what was measured until then"
            raise DiskError(f"{part}: {error.strerror}; {remedy}") from None


__all__ = ["DiskError", "NoView", "Session", "View", "clocks"]
