# SPDX-License-Identifier: MIT OR Apache-2.0
"""A process of the run while it lives: its output goes through its runner, whatever the runner or the tool does wrong."""

from __future__ import annotations

from ktrxer import runners
from ktrxer.places import Process
from ktrxer.run.schedule import Job
from ktrxer.runners.samples import GARBAGE_MOST, Chunk, Samples


class Active:
    def __init__(self, job: Job, process: Process, samples: Samples, until_ns: int, grace_ns: int) -> None:
        self.job, self.process, self.samples = job, process, samples
        self.endless = job.runner.endless(job.invocation.parameters)
        self.until_ns = until_ns + (0 if self.endless else grace_ns)  # CLOCK_MONOTONIC: then it should have ended
        self.kill_at_ns: int | None = None  # it was asked to stop, and is killed then
        self.has_times = job.runner.own and not job.runner.ends_itself  # each sample in the output has its time
        self._reading = job.runner.read(job.invocation.parameters, samples)
        self._reads = self._step(None)

    def _step(self, chunk: Chunk | None) -> bool:
        """Gives a piece of output to the runner. False: the runner takes no more. A runner with a defect loses its output, not the run."""
        try:
            self._reading.send(chunk)
        except StopIteration:
            return False
        except (Exception, SystemExit) as error:
            self.samples.note("degraded", runners.defect(self.job.runner, error))
            return False
        return True

    def read(self, descriptor: int, now_ns: int) -> bool:
        """Takes the output that waits in a pipe. True: the output is not this tool's, and the process must be stopped."""
        for data in self.process.read(descriptor):
            self._reads = self._reads and self._step(Chunk(data, now_ns))
        return self.samples.garbage > GARBAGE_MOST

    def finish(self) -> None:
        """The output has ended."""
        self._reads = self._reads and self._step(None)
        self._reading.close()
