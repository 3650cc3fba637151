# SPDX-License-Identifier: MIT OR Apache-2.0
"""Video as DASH players fetch it: segments by curl from a ladder of bit rates, as far ahead as the buffer allows. The next segment has the
highest bit rate below four fifths of the last one's throughput."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ktrxer.runners import http, tools
from ktrxer.runners.playback import playback
from ktrxer.runners.runner import MS, Options, Parameters, Runner, RunnerError, S, Times, between, ends_well
from ktrxer.runners.samples import Line, Samples, by_line
from ktrxer.store.meta import Series

LADDER = (300_000, 750_000, 1_500_000, 3_000_000, 6_000_000, 12_000_000, 25_000_000)
# A failed segment is fetched again after a second. `play` is when the buffer will be empty. `got`: status code, bytes a second.
SCRIPT = (
    "length=$1 segment=$2 buffer=$3 url=$4; shift 4; rate=$1 n=1 play=0 now=$(date +%s%N); until=$((now + length)); "
    'while [ "$now" -lt "$until" ]; do page=$(printf %s "$url" | sed "s/{{bitrate}}/$rate/g; s/{{segment}}/$n/g"); '
    'case $url in *"{{bitrate}}"*) range=;; *) range="-r 0-$((rate * (segment / 1000000) / 8000 - 1))";; esac; '
    "got=$({curl} $range -w '%{{http_code}} %{{speed_download}}' --url \"$page\") || got='0 0'; end=$(date +%s%N); "
    'echo "$now $end $n $rate $got"; case $got in 2*) n=$((n + 1)); [ "$play" -gt "$end" ] || play=$end; play=$((play + segment)); '
    'speed=$((${{got#* }} * 64 / 10)); rate=$1; for one; do [ "$one" -gt "$speed" ] || rate=$one; done; '
    "wait_until $((play - buffer));; *) wait_until $((end + 1000000000));; esac; now=$(date +%s%N); done"
)


@dataclass(frozen=True, kw_only=True)
class Video(Parameters):
    url: str = ""  # {bitrate} and {segment} are replaced; without {bitrate} a segment is the beginning of this one file
    ladder_bps: tuple[int, ...] = LADDER
    segment_ns: int = 2 * S
    buffer_ns: int = 20 * S
    timeout_ns: int = 30 * S  # of a segment
    group: str = "Video"


def validate(p: Video) -> None:
    http.url(p.url)
    tools.no_interval(p, "segment_ns")
    between("the segment", p.segment_ns / MS, 100, 60_000, " ms")
    between("the buffer", p.buffer_ns / S, p.segment_ns / S, 600, " s")
    between("the time-out", p.timeout_ns / S, 0.1, 300, " s")
    between("bit rates", len(p.ladder_bps), 1, 30)
    for rate in p.ladder_bps:
        between("a bit rate", rate, 10_000, 10**9, " bit/s")
    if list(p.ladder_bps) != sorted(set(p.ladder_bps)):
        raise RunnerError("the bit rates must be in rising order")


def command(p: Video, o: Options, times: Times) -> list[str]:
    script = tools.WAIT_UNTIL + SCRIPT.format(curl=http.curl(o, p.timeout_ns))
    return ["sh", "-c", script, "sh", *map(str, (times.length_ns, p.segment_ns, p.buffer_ns)), p.url, *map(str, p.ladder_bps)]


def series(p: Video, name: str) -> Mapping[Hashable, Series]:
    units = {"bitrate": "Mbit/s", "throughput": "Mbit/s", "buffer": "s", "stall": "ms"}
    return {what: Series(0, f"{name} {what}", "value", unit, group=f"{p.group} {what}") for what, unit in units.items()}


def line(p: Video, samples: Samples, line: Line) -> None:
    begin, end, number, rate, status, speed = map(int, line.text.split())
    begin_ns, end_ns = samples.clock.real(begin), samples.clock.real(end)
    if not 200 <= status < 300:
        samples.memory["failed"] = samples.memory.get("failed", 0) + 1
        why = f"segment {number} at {rate} bit/s: {f'status {status}' if status else 'no answer'}"
        samples.memory.setdefault("first", why)
        samples.event(end_ns, "segment_failed", why)
        return
    samples.memory.setdefault("arrivals", []).append((end_ns, p.segment_ns))
    samples.value("bitrate", begin_ns, rate / 1e6)
    samples.value("throughput", end_ns, speed * 8 / 1e6)


def end(_: Video, samples: Samples) -> None:
    arrivals, failed = samples.memory.get("arrivals", []), samples.memory.get("failed", 0)
    made = playback(arrivals, samples.to_ns)
    for what, unit, rows in (("buffer", S, made.buffer), ("stall", MS, made.stalls)):
        for at, value in rows:
            samples.value(what, at, value / unit)
    startup = None if made.begins_ns is None else made.begins_ns - samples.from_ns
    samples.result = {"segments": len(arrivals), "failed": failed, "startup_ns": startup, "stalls": len(made.stalls)}
    samples.result["stalled_ns"] = sum(length for _, length in made.stalls)
    if failed:
        samples.reason("fetches_failed", failed=failed, fetches=failed + len(arrivals), error=str(samples.memory["first"]))


RUNNER = Runner(
    "video", "segments of a video by curl", Video, validate, command, series, by_line(line, end), ends_well, tool=http.TOOL,
    listeners=lambda p, _: tools.web_servers([p.url]),
)  # fmt: skip
