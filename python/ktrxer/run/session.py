# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run: processes begin at one instant, what they say is stored as it comes, and the file is closed whatever happens.

One thread does it all, so nothing needs a lock; only the disk is waited for elsewhere. A process that is slow, silent, mad or dead
is that process' trouble: the others go on, and the verdict names it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from ktrxer.catalogue.recipe import Flows
from ktrxer.collect.collector import Collector, CollectorError
from ktrxer.run.closing import close
from ktrxer.run.judge import Severity
from ktrxer.run.process import GARBAGE_MAX, Object, Process
from ktrxer.run.schedule import Job, Schedule
from ktrxer.run.translate import Strange, Translator
from ktrxer.store import RunWriter, StoreError, Zero, one_line
from ktrxer.store.checked import free
from ktrxer.store.columns import ANSWERED
from ktrxer.store.meta import Meta, Series
from ktrxer.store.run import Run

S, MS = 10**9, 10**6

LEAD_NS = 400 * MS  # from the start of the processes to the start of the measurement; and for each of them:
LEAD_EACH_NS = 25 * MS
SYNC_NS = S
VIEW_NS = 250 * MS
# Between looks at the pipes, which hold much more than comes meanwhile: a wake-up for each line would cost more than its work.
PAUSE_S = 0.2
GRACE_NS = 8 * S  # beyond its time, for the last answers and the far end's figures
PATIENCE_NS = 4 * S  # between being asked to stop and being killed
EVENTS_MOST = 20_000


def clocks() -> tuple[int, int, int]:
    """CLOCK_MONOTONIC, CLOCK_REALTIME at the same instant, and to how much that is true: the best of a few tries."""
    best: tuple[int, int, int] | None = None
    for _ in range(5):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        real = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if best is None or after - before < 2 * best[2]:
            best = ((before + after) // 2, real, (after - before + 1) // 2)
    assert best is not None
    return best


@dataclass
class Recent:
    """The last figures of a series, for whoever looks on."""

    delays: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=400))  # time, round trip
    lost: int = 0
    answered: int = 0
    bytes: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=2))  # time, count; at the receiver

    def rate_bps(self) -> float | None:
        if len(self.bytes) < 2 or self.bytes[1][0] <= self.bytes[0][0]:
            return None
        return (self.bytes[1][1] - self.bytes[0][1]) * 8e9 / (self.bytes[1][0] - self.bytes[0][0])


class View(Protocol):
    def begin(self) -> None: ...
    def show(self, session: Session) -> None: ...
    def end(self) -> None: ...


class NoView:
    def begin(self) -> None: ...
    def show(self, session: Session) -> None: ...
    def end(self) -> None: ...


@dataclass
class Active:
    """A job whose process lives."""

    job: Job
    process: Process
    translator: Translator
    until_ns: int  # monotonic: then it should have ended
    kill_at_ns: int | None = None


class DiskError(Exception):
    """The run could not be stored in full."""


class Session:
    def __init__(
        self, schedule: Schedule, meta: Meta, directory: Path, collectors: Sequence[Collector] = (), view: View | None = None
    ) -> None:
        self.schedule = schedule
        self.meta = meta
        self.view = view or NoView()
        self.recent: dict[int, Recent] = {}
        self.notes: list[tuple[Severity, str, str]] = []
        self.stopping: str | None = None  # why
        self.after: Callable[[], dict[str, object]] | None = None  # metadata of the end
        self._waiting = list(schedule.jobs)
        self._active: list[Active] = []
        self._selector = selectors.DefaultSelector()
        self._signals = 0
        self._disk: OSError | None = None
        self._events = 0
        self._ended_at: dict[str, list[int]] = {}  # when what was waited for has ended, by name
        self._collectors: list[tuple[Collector, list[Series]]] = []
        self._given_up: set[str] = set()
        self._watched = not isinstance(self.view, NoView)
        self._news = True  # what the run's meta says has changed
        self._open_collectors(collectors)
        lead = LEAD_NS + LEAD_EACH_NS * len(schedule.jobs)
        mono, real, bound = clocks()
        self.zero_ns, self.start_real_ns = mono + lead, real + lead
        meta.zero = Zero(self.zero_ns, self.start_real_ns, bound, boot_id())
        meta.phases = schedule.phases
        meta.length_ns = schedule.length_ns
        meta.runners = [job.runner for job in schedule.jobs]
        try:
            self.writer = RunWriter(directory, meta)
        except OSError as error:
            raise StoreError(f"{directory}: no run can be stored there: {error.strerror}") from None

    # ------------------------------------------------------------------------------------------------------------ outside

    @property
    def now_ns(self) -> int:
        """Since the run's zero; negative before it."""
        return time.monotonic_ns() - self.zero_ns

    def run(self) -> Path:
        """Measures; the finished file. DiskError when what was measured could not be stored in full: then the directory stays."""
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
        def told(number: int, _: object) -> None:
            self._signals += 1
            self.stopping = self.stopping or ("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)

        # One that was ignored (nohup) stays so.
        taken = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
        before = {number: signal.signal(number, told) for number in taken}
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        old = signal.set_wakeup_fd(wake_write)
        self._selector.register(wake_read, selectors.EVENT_READ, None)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            os.close(wake_read)
            os.close(wake_write)

    # --------------------------------------------------------------------------------------------------------------- loop

    def _loop(self) -> None:
        next_sync, next_view = time.monotonic_ns() + SYNC_NS, 0
        next_samples = [max(self.zero_ns, time.monotonic_ns()) for _ in self._collectors]
        while self._active or (self._waiting and not self.stopping):
            now = time.monotonic_ns()
            if now >= next_view:
                self.view.show(self)
                next_view = now + VIEW_NS
            if now >= next_sync:
                self._sync()
                next_sync = now + SYNC_NS
            for i, (collector, _) in enumerate(self._collectors):
                if now >= next_samples[i] and collector.name not in self._given_up:
                    self._collect(i)
                    next_samples[i] = max(next_samples[i] + collector.interval_ns, now)
            self._watch(now)
            if not self._active and self._waiting and not self._can_begin():
                break
            until = min([next_view, next_sync, *next_samples])
            for key, _ in self._selector.select(max(0.0, (until - time.monotonic_ns()) / S)):
                if key.data is None:
                    with contextlib.suppress(BlockingIOError):
                        os.read(key.fd, 4096)
                else:
                    self._read(key.data, key.fd)
            # One that has filled what a pipe holds by default may be about to fill what this one holds.
            time.sleep(PAUSE_S / 10 if any(active.process.much for active in self._active) else PAUSE_S)

    def _watch(self, now: int) -> None:
        """Those that were to have ended, those that were asked to, and those that wait for others."""
        if self.stopping:
            self._waiting.clear()
        for active in list(self._active):
            if self._signals > 1:
                active.process.kill()
            elif active.kill_at_ns is not None:
                if now >= active.kill_at_ns:
                    active.process.kill()
            elif self.stopping or now >= active.until_ns:
                if not self.stopping:
                    self.notes.append(("degraded", "it did not end by itself, and was stopped", active.job.runner.name))
                self._ask_to_stop(active, now)
        self._launch_due()

    def _ask_to_stop(self, active: Active, now: int) -> None:
        active.process.ask_to_stop()
        active.kill_at_ns = now + PATIENCE_NS

    def _can_begin(self) -> bool:
        names = {job.item.name for job in self._waiting}
        return any(job.item.when.start_after not in names for job in self._waiting)

    def _launch_due(self) -> None:
        """At the beginning all that have a time; later those whose predecessors have ended."""
        for job in list(self._waiting):
            after = job.item.when.start_after
            if after is not None:
                ended = self._ended_at.get(after)
                if ended is None:
                    continue
                begin = max(ended) + round(job.item.when.delay_s * S)
                job.from_ns = max(begin, self.now_ns + LEAD_NS)
                job.length_ns = min(job.length_ns, self.schedule.length_ns - job.from_ns)
                job.runner.from_ns, job.runner.to_ns = job.from_ns, job.from_ns + job.length_ns
                if job.length_ns <= 0:
                    self._waiting.remove(job)
                    self.notes.append(("degraded", f"no time was left for it after {after}", job.runner.name))
                    continue
            self._waiting.remove(job)
            self._launch(job)

    def _launch(self, job: Job) -> None:
        self._news = True
        assert job.from_ns is not None
        argv = job.argv(self.start_real_ns + job.from_ns)
        job.runner.argv = argv
        job.runner.started_ns = self.now_ns
        try:
            process = Process(argv)
        except OSError as error:
            job.runner.status = "failed"
            job.runner.stderr_tail = f"{argv[0]}: cannot be started: {error.strerror}"
            self._has_ended(job)
            return
        job.runner.status = "running"
        until = self.zero_ns + job.from_ns + job.length_ns + job.timeout_ns + GRACE_NS
        active = Active(job, process, Translator(job, self.zero_ns), until)
        self._active.append(active)
        for descriptor in process.open:
            self._selector.register(descriptor, selectors.EVENT_READ, active)

    def _read(self, active: Active, descriptor: int) -> None:
        process = active.process
        for made in process.read(descriptor):
            try:
                if made["type"] == "sample":
                    active.translator.add(made)
                    if self._watched:
                        self._look(active, made)
                elif made["type"] == "event":
                    self._event(active, made)
            except Strange as error:
                process.garbage += 1
                process.first_garbage = process.first_garbage or str(error)
        if descriptor not in process.open:
            self._selector.unregister(descriptor)
        if process.garbage > GARBAGE_MAX and active.kill_at_ns is None:
            self._ask_to_stop(active, time.monotonic_ns())
        if not process.open:
            self._ended(active)

    def _event(self, active: Active, made: Object) -> None:
        self._events += 1
        if self._events <= EVENTS_MOST:
            self.writer.event(*active.translator.event(made), active.job.runner.id)
        if made.get("name") == "flow_failed" and isinstance(active.job.item, Flows):
            flow = made.get("flow")
            series = active.job.series.get(("bytes", flow if isinstance(flow, int) else None))
            name = series.name if series is not None else active.job.runner.name
            at = (made["time_ns"] - self.zero_ns) / S
            why = one_line(str(made.get("error") or made.get("reason") or "no reason given"), 200)
            self.notes.append(("degraded", f"the flow failed {at:.1f} s into the run: {why}", name))

    def _look(self, active: Active, made: Object) -> None:
        """Keeps the newest figures for the view."""
        if active.job.kind != "flow":
            if made.get("kind") == "round_trips":
                classes = made.get("class") or [None] * len(made["number"])
                for which, sent, rtt in zip(classes, made["sent_ns"], made["rtt_ns"], strict=True):
                    recent = self._recent(active.job.series["latency", which].id)
                    recent.answered += 1
                    recent.delays.append((sent - self.zero_ns, rtt))
                return
            if made.get("kind") not in ("round_trip", "lost"):
                return
            recent = self._recent(active.job.series["latency", made.get("class")].id)
            if made.get("kind") == "round_trip":
                recent.answered += 1
                recent.delays.append((made["sent_ns"] - self.zero_ns, made["rtt_ns"]))
            else:
                recent.lost += 1
        elif made.get("kind") == "bytes":
            series = active.job.series["bytes", made["flow"]]
            if made["end"] == ("local" if series.direction == "down" else "remote"):
                self._recent(series.id).bytes.append((made["time_ns"], made["bytes"]))

    def _recent(self, series: int) -> Recent:
        found = self.recent.get(series)
        if found is None:
            found = self.recent[series] = Recent()
        return found

    def _ended(self, active: Active) -> None:
        self._active.remove(active)
        runner, process = active.job.runner, active.process
        runner.exit_status = process.close()
        runner.processor_ns = process.processor_ns
        runner.ended_ns = self.now_ns
        runner.stderr_tail = process.stderr_tail
        if process.end is not None:
            try:
                runner.end = free(process.end, runner.name)
            except StoreError as error:
                process.garbage += 1
                process.first_garbage = process.first_garbage or str(error)
        self._news = True
        runner.status = "ended" if runner.end is not None and runner.exit_status >= 0 else "killed" if runner.exit_status < 0 else "failed"
        if process.garbage:
            what = "a line that is" if process.garbage == 1 else f"{process.garbage} lines that are"
            self.notes.append(("degraded", f"it printed {what} not of its kind; the first: {process.first_garbage}", runner.name))
        self._store(active)
        self.writer.event(self.now_ns, "runner_ended", f"{runner.status}, exit status {runner.exit_status}", runner.id)
        self._has_ended(active.job)

    def _has_ended(self, job: Job) -> None:
        name = job.item.name
        self._ended_at.setdefault(name, []).append(self.now_ns)
        for other in self._active:
            if other.job.item.when.stop_after == name and other.kill_at_ns is None:
                # It was planned so: its end is no early one.
                other.job.runner.to_ns = self.now_ns
                self._ask_to_stop(other, time.monotonic_ns())

    # -------------------------------------------------------------------------------------------------------------- storing

    def _store(self, active: Active) -> None:
        for kind in active.translator.kinds():
            self.writer.append(kind, active.translator.take(kind))

    def _sync(self) -> None:
        for active in self._active:
            self._store(active)
        if self._disk is not None:
            return
        try:
            self.writer.sync(background=True, meta=self._news)
            self._news = False
        except OSError as error:
            self._disk = error
            self.stopping = self.stopping or "the disk"

    def _open_collectors(self, collectors: Sequence[Collector]) -> None:
        number = max((series.id for series in self.schedule.series), default=-1) + 1
        self.meta.series = list(self.schedule.series)
        for collector in collectors:
            try:
                series = list(collector.open())
            except (CollectorError, OSError) as error:
                self.meta.metadata.setdefault("not_collected", []).append(f"{collector.name}: {error}")
                continue
            for one in series:
                one.id, number = number, number + 1
            self.meta.series += series
            self._collectors.append((collector, series))

    def _collect(self, i: int) -> None:
        collector, series = self._collectors[i]
        try:
            samples = collector.sample()
        except Exception as error:  # a bug of a collector is no reason to lose a run, either
            self.notes.append(("degraded", f"it was no longer recorded: {error}", collector.name))
            self._given_up.add(collector.name)
            return
        at = time.monotonic_ns()
        for sample in samples:
            kind = series[sample.series].kind
            when = (at if sample.monotonic_ns is None else sample.monotonic_ns) - self.zero_ns
            self.writer.append(kind, {"series": [series[sample.series].id], "t_ns": [when], **{k: [v] for k, v in sample.values.items()}})

    def _end_all(self) -> None:
        """Whatever happened: no process stays behind."""
        for active in list(self._active):
            with contextlib.suppress(Exception):
                self._ended(active)
        for collector, _ in self._collectors:
            with contextlib.suppress(Exception):
                collector.close()

    def _look_again(self, after: Callable[[], dict[str, object]]) -> None:
        try:
            self.meta.metadata["after"] = free(after(), "metadata")
        except Exception as error:  # the measurement stands without it
            self.meta.metadata["after"] = {"missing": one_line(str(error))}

    def _finish(self) -> Path:
        if self.stopping and self._disk is None:
            at = max(0.0, self.now_ns / S)
            whole = self.schedule.length_ns / S
            self.notes.append(("degraded", f"it was stopped by {self.stopping} after {at:.1f} s of {whole:.1f} s", ""))
        try:
            if self._disk is not None:
                raise self._disk
            if self.after is not None:
                self._look_again(self.after)
            self.writer.sync()
            tables = self.writer.tables()
            run = Run(self.writer.part, self.meta, {kind: partial(tables.__getitem__, kind) for kind in tables})
            return self.writer.finish(close(run, self.notes))
        except OSError as error:
            self.writer.abandon()
            part = self.writer.part
            remedy = f"make room, then `ktrxer recover {part}` keeps what was measured until then"
            raise DiskError(f"{part}: {error.strerror}; {remedy}") from None


def boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


__all__ = ["ANSWERED", "DiskError", "NoView", "Recent", "Session", "View", "clocks"]
