# SPDX-License-Identifier: MIT OR Apache-2.0
"""A part of a run that has no process: this program reads the state of its own host, whatever the runner does wrong."""

from __future__ import annotations

import time

from ktrxer.run.schedule import Job
from ktrxer.runners.runner import Source
from ktrxer.runners.samples import GARBAGE_MOST, NotUnderstood, Samples
from ktrxer.store import one_line


class Inside:
    def __init__(self, job: Job, source: Source, samples: Samples, zero_ns: int) -> None:
        assert job.from_ns is not None
        self.job, self.samples = job, samples
        self._source, self._zero_ns = source, zero_ns
        self.until_ns = zero_ns + job.from_ns + job.length_ns  # CLOCK_MONOTONIC
        self.next_ns = zero_ns + job.from_ns

    def sample(self) -> str | None:
        """Read the state if it is time. The reason why there will be no more samples."""
        now = time.monotonic_ns()
        if now < self.next_ns or now >= self.until_ns:
            return None
        # Missed samples are not repeated.
        step = self.job.stored.interval_ns or 10**9
        self.next_ns += ((now - self.next_ns) // step + 1) * step
        try:
            self._source.sample(self.samples, now - self._zero_ns)
        except NotUnderstood as error:
            self.samples.not_understood(str(error))
        except (Exception, SystemExit) as error:  # a defect of a runner must not lose the run
            return one_line(str(error) or type(error).__name__)
        return self.samples.first_garbage if self.samples.garbage > GARBAGE_MOST else None

    def close(self) -> None:
        self._source.close()
