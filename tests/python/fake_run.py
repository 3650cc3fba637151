#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A double of `ktrxer run`: stores a run without measuring. The title has its behaviour: valid, invalid, once (invalid the first time),
fails, killed (the first time), orphan (kills the process that forked it, the first time), slow (30 s), or spread (delays that differ by the repetition). $FAKE_RUNS has the runs that it copies."""

import json
import os
import signal
import sys
import time
import zipfile
from pathlib import Path

words = sys.argv[1:]
if words == ["run", "--requests"]:
    from ktrxer.batch.maker import requested

    asked = requested()
    if asked is None:
        sys.exit(0)
    words = ["run", *asked]
assert words[0] == "run", words
assert words[-1] == "-q", words


def option(name: str) -> str:
    return words[words.index(name) + 1]


labels = dict(words[i + 1].split("=", 1) for i, word in enumerate(words) if word == "--label")
title = option("--title")
with Path("calls.txt").open("a") as calls:
    calls.write(f"{labels['group']} {labels['repetition']} {labels['try']} {title}\n")
with Path("parents.txt").open("a") as parents:
    parents.write(f"{os.getppid()}\n")
if title == "fails":
    sys.exit("ktrxer run: the far end does not answer: start `ktrxer serve` there")
if title == "killed" and labels["try"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
if title == "orphan" and labels["try"] == "1":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(30)
if title == "slow":
    Path("slow.pid").write_text(str(os.getpid()))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    time.sleep(30)

repetition = int(labels["repetition"]) % 5 if title == "spread" else 0
verdict = "invalid" if title == "invalid" or (title == "once" and labels["try"] == "1") else "valid"
name = str(Path(option("-D") if "-D" in words else ".") / f"{option('--name')}.ktrxer")
with zipfile.ZipFile(Path(os.environ["FAKE_RUNS"]) / f"{repetition}.ktrxer") as like, zipfile.ZipFile(name, "w") as made:
    for entry in like.namelist():
        data = like.read(entry)
        if entry == "meta.json":
            meta = json.loads(data) | {"title": title, "verdict": verdict, "reasons": ["the processors were busy"] if verdict == "invalid" else []}
            meta["metadata"]["labels"] = labels
            data = json.dumps(meta).encode()
        made.writestr(entry, data)
print(Path(name).resolve())
sys.exit(0 if verdict == "valid" else 1)
