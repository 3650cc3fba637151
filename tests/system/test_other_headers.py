# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Programs that were compiled with older or newer headers than the library: their structs of results end earlier, or later. The source code and the
results of the three programs are the same. other_headers.c also checks that no byte behind its structs is written.
"""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from ktrxer_lab.bench import contest

ROOT = Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Structs that the library fills. An older header lacks the last field of each; a newer header has further fields after it.
RESULTS = [
    *("ktrxer_clock_pair", "ktrxer_qdiscs", "ktrxer_frame_view", "ktrxer_deadline", "krx_packet", "krx_rule_stats", "krx_stats"),
    *("ktx_info", "ktx_report", "ktx_accounts", "ktx_network_error", "ktx_engine_info"),
]
# The library reads these as well: with all fields of the first version.
READ = ["ktrxer_path", "krx_rule", "krx_session", "ktx_slot"]


def shorter(body: str) -> str:
    declarations = body.split(";")[:-1]
    if "," in declarations[-1]:
        return ";".join([*declarations[:-1], declarations[-1].rpartition(",")[0]]) + ";\n"
    return ";".join(declarations[:-1]) + ";\n"


def longer(body: str) -> str:
    return body + "\tuint64_t of_a_newer_version[5];\n"


CHANGES = {"today": (lambda body: body, []), "older": (shorter, RESULTS), "newer": (longer, [*RESULTS, *READ])}


def compiled(place: Path, kind: str) -> Path:
    change, structs = CHANGES[kind]
    changed = []
    for header in sorted((ROOT / "include").rglob("*.h")):
        text = COMMENT.sub("", header.read_text())
        for struct in structs:
            pattern = rf"^(struct {struct} \{{\n)(.*?)(^\}};)"
            text, count = re.subn(pattern, lambda found: found[1] + change(found[2]) + found[3], text, flags=re.M | re.S)
            changed += [struct] * count
        copy = place / header.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
    assert sorted(changed) == sorted(structs)
    program = place / "program"
    library = contest.build() / "lib"
    compiler = [*shlex.split(os.environ.get("CC", "cc")), "-std=c17", "-D_GNU_SOURCE", "-Wall", f"-I{place / 'include'}"]
    command = [*compiler, ROOT / "tests/system/other_headers.c", "-o", program, f"-L{library}", "-lktrxer", f"-Wl,-rpath,{library}"]
    subprocess.run(command, check=True, timeout=60)
    return program


@pytest.mark.parametrize("kind", CHANGES)
def test_a_program_of_other_headers(pair, tmp_path, kind):
    if not (contest.build() / "lib/libktrxer.so").exists() or "sanitized" in contest.build().name:
        pytest.skip("this build has no shared library that a program can load without the sanitizers")
    done = pair[0].run([str(compiled(tmp_path, kind))], check=False, timeout=60)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    device = 1  # lo
    assert lines[:9] == [
        "engine udp slots 1024 margin 1",
        *(f"report {70 + i} status 1 tries 1 error 0" for i in range(3)),
        "requested 3 sent 3 failed 0 bytes 84",
        *["network error 111 origin 2 type 3 code 3 from family 2"] * 2,
        *[f"packet rule 1 length 42 of 42 clock 1 device {device}: 0 proto 17 port 40000 to 9"] * 2,
    ], done.stdout
    assert lines[10:13] == ["backend packet lost 0 why 1", "rule 0 matched 0 captured 0", "rule 1 matched 3 captured 3"]
    assert lines[13] == "clocks 1 1"
    assert [line.split()[1] for line in lines[14:18]] == ["packet:", "xsk:", "live:", "module:"]
    assert lines[18:] == ["device lo 1 qdisc noqueue", "deadline 0 77", "deadline 1 82"]
