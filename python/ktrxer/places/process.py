# SPDX-License-Identifier: MIT OR Apache-2.0
"""One started process: its two pipes, its signals, its end. It never blocks its caller."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
from collections.abc import Iterator, Sequence

TAIL = 4000  # bytes of standard error that are kept
PIPE_BYTES = 1 << 20
READ_BYTES = 1 << 16

# A POSIX shell script that runs "$@" in its own process group, at a time of CLOCK_REALTIME if one is given, and ends the group at the end
# of standard input: INT, and KILL two seconds later. A line of standard input is a signal for the group. "$@" reads from a pipe that stays
# open as long as standard input, so that `--stop-on-eof` works below it. The exit status is that of "$@". A shell that leads no process
# group (some ssh servers make none) starts again in one of its own. A `date` without nanoseconds and a `sleep` without fractions cost
# precision. By an empty line and by USR1 the two parts of the pipeline wait until both have set their traps: a signal before that would be
# lost. The script is one line, because csh as a login shell accepts no other.
GUARD = (
    "script=$1 at=$2; shift 2; read -r _ _ _ _ group _ </proc/$$/stat; "
    '[ "$group" = $$ ] || [ -n "$KTRXER_GUARD" ] || KTRXER_GUARD=1 exec setsid sh -c "$script" sh "$script" "$at" "$@"; '
    "trap : INT TERM USR1; exec 3<&0 4>&2 2>/dev/null; "
    '{ trap "" INT; trap - TERM; go=; trap go=1 USR1; echo; while [ -z "$go" ]; do sleep 1 & wait $!; done; '
    'while read -r word; do kill -s "$word" 0; done; kill -s INT 0; sleep 2; kill -s KILL 0; } <&3 4>&- | '
    '{ stop=; trap stop=1 INT; trap : TERM USR1; exec 3<&-; read -r ready; kill -s USR1 0; status=0; if [ "$at" != 0 ]; then '
    'now=$(date +%s%N); case $now in *[!0-9]*) now=$(date +%s)000000000;; esac; left=$((at - now)); [ "$left" -le 0 ] || [ -n "$stop" ] || '
    '{ sleep "$((left / 1000000000)).$(printf %09d $((left % 1000000000)))"; status=$?; '
    '[ $status = 0 ] || [ $status -gt 128 ] || sleep $((left / 1000000000)); }; fi; '
    'if [ -n "$stop" ]; then status=130; elif [ $status -le 128 ]; then "$@" 2>&4 4>&-; status=$?; fi; '
    'trap "" TERM; kill -s TERM 0; exit $status; }'
)


def guard(argv: Sequence[str], at_real_ns: int | None = None) -> list[str]:
    """The command line that runs `argv` below the guard."""
    return ["sh", "-c", GUARD, "sh", GUARD, str(at_real_ns or 0), *argv]


class Process:
    """Started at once, in a session of its own, so that Ctrl-C in the terminal reaches this program only."""

    def __init__(self, argv: Sequence[str], *, guarded: bool = False, at_real_ns: int | None = None) -> None:
        self.guarded = guarded
        self.child = subprocess.Popen(
            guard(argv, at_real_ns) if guarded else argv,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, bufsize=0,
        )  # fmt: skip
        assert self.child.stdout is not None and self.child.stderr is not None
        self.out, self.err = self.child.stdout.fileno(), self.child.stderr.fileno()
        for descriptor in (self.out, self.err):
            os.set_blocking(descriptor, False)
        # The session reads the pipes a few times a second: the output of many probes must fit in between.
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.out, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.much = False  # the last read found a full buffer: read again soon
        self.some = False  # or half of one: do not read later than now
        self.open = {self.out, self.err}
        self.processor_ns: int | None = None  # known after close()
        self._stderr = b""

    @property
    def stderr_tail(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    def ready(self, timeout_s: float) -> list[int]:
        """Its pipes with output, after waiting for some."""
        return select.select(list(self.open), [], [], timeout_s)[0]

    def read(self, descriptor: int) -> Iterator[bytes]:
        """The output that waits in a pipe; nothing for standard error, whose tail is kept. A pipe that has ended leaves `open`."""
        came, self.much, self.some = 0, False, False
        while True:
            try:
                data = os.read(descriptor, READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.open.discard(descriptor)
                return
            if descriptor == self.err:
                self._stderr = (self._stderr + data)[-TAIL:]
            else:
                yield data
            came += len(data)
            self.much, self.some = came >= READ_BYTES, came >= READ_BYTES // 2
            # A full pipe is read to its end, but a process that writes without pause must not keep the others waiting.
            if len(data) < READ_BYTES or came >= PIPE_BYTES:
                return

    def ask_to_stop(self) -> None:
        """SIGINT to its group: a measuring program ends its measurement and prints its result."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.child.returncode is None:  # not reaped: the number is still its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, number)

    def _reap(self) -> int:
        """wait() does not return the resource usage. A process that still runs is killed."""
        if self.child.returncode is None:
            number = self.child.pid
            if os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                self.kill()
            _, status, usage = os.wait4(number, 0)
            self.child.returncode = os.waitstatus_to_exitcode(status)
            self.processor_ns = round((usage.ru_utime + usage.ru_stime) * 1e9)
        return self.child.returncode

    def close(self) -> int:
        """End it if it has not ended, and return its exit status, negative for a signal."""
        status = self._reap()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self.open.clear()
        return 128 - status if self.guarded and 128 < status <= 192 else status  # a shell's status of a command that a signal killed
