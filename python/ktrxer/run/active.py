# SPDX-License-Identifier: MIT OR Apache-2.0
"""A process of the run while it lives: its output goes through its runner, whatever the runner or the tool does wrong."""

from __future__ import annotations

from ktrxer import runners
from ktrxer.places import Process
from ktrxer.run.schedule import Job
from ktrxer.runners.samples import GARBAGE_MOST, LINE_MOST, Chunk, Samples


class Output:

    def __init__(self, job: Job, samples: Samples) -> None:
        self.job, self.samples = job, samples
        self._reading = job.runner.read(job.invocation.parameters, samples)
        self._reads = self._step(None)

    def _step(self, chunk: Chunk | None) -> bool:
        """Gives a piece of output to the runner. False: the runner takes no more. A runner with a defect loses its output, not the run."""
        try:
            self._reading.send(chunk)
        except StopIteration:
            return False
        except (Exception, SystemExit) as error:
            self.samples.reason("runner_defect", error=runners.defect(self.job.runner, error))
            return False
        return True

    def take(self, chunk: Chunk | None) -> None:
        """None: the output has ended."""
        self._reads = self._reads and self._step(chunk)
        if chunk is None:
            self._reading.close()


class Active:
    def __init__(self, process: Process, outputs: list[Output], until_ns: int, grace_ns: int) -> None:
        """`outputs`: of the job, and of the jobs that its process does as well (Job.riders)."""
        self.process, self.outputs = process, outputs
        self.job, self.samples = outputs[0].job, outputs[0].samples
        self.endless = self.job.runner.endless(self.job.invocation.parameters)
        self.until_ns = until_ns + (0 if self.endless else grace_ns)  # CLOCK_MONOTONIC: then it should have ended
        self.kill_at_ns: int | None = None  # it was asked to stop, and is killed then
        self.has_times = self.job.runner.own and not self.job.runner.ends_itself  # each sample in the output has its time
        self._rest = b""
        self._marks = [f'"of":"{output.job.runner.name}",'.encode() for output in outputs[1:]]

    def read(self, descriptor: int, now_ns: int) -> bool:
        """Takes the output that waits in a pipe. True: the output is not this tool's, and the process must be stopped."""
        for data in self.process.read(descriptor):
            for output, part in zip(self.outputs, self._parts(data), strict=True):
                if part:
                    output.take(Chunk(part, now_ns))
        return any(output.samples.garbage > GARBAGE_MOST for output in self.outputs)

    def _parts(self, data: bytes) -> list[bytes]:
        """The lines of each job: those of a rider have its name behind their type."""
        if not self._marks:
            return [data]
        *lines, self._rest = (self._rest + data).split(b"\n")
        parts: list[list[bytes]] = [[] for _ in self.outputs]
        for line in lines:
            head = line[:60]
            parts[next((number for number, mark in enumerate(self._marks, 1) if mark in head), 0)].append(line + b"\n")
        if len(self._rest) > LINE_MOST:
            parts[0].append(self._rest)
            self._rest = b""
        return [b"".join(part) for part in parts]

    def finish(self, now_ns: int) -> None:
        """The output has ended."""
        if self._rest:
            self.outputs[0].take(Chunk(self._rest, now_ns))
        for output in self.outputs:
            output.take(None)
