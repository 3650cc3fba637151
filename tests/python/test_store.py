# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs on disk: stored data are read back, the rest of a crash can be read, and no file does harm."""

import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ktrxer.store import Host, Meta, Phase, Runner, RunWriter, Series, StoreError, Zero, columns, limits, open_run, recover
from ktrxer.store import meta as meta_file
from ktrxer.store.errors import printable
from ktrxer.store.reasons import Reason
from ktrxer.store.tables import Column
from synthetic import synthetic

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def small(**more):
    base = {
        "id": "5f1c0de0-0000-4000-8000-000000000002", "test": "ping", "created": "2026-11-21T15:30:00.000000Z", "host": Host("near"),
        "zero": Zero(1, 2), "length_ns": 10**9, "runners": [Runner(0, "ping", "ping", ["ktrxer", "ping", "far"])],
        "series": [Series(0, "Ping (ms) ICMP", "latency", "ms", 0)],
    }
    return Meta(**(base | more))


def rows(count, start=0):
    return {"series": [0] * count, "t_ns": [start + 10 * i for i in range(count)], "seq": list(range(count)), "state": [0] * count,
            "rtt_ns": [1000 + i for i in range(count)]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return synthetic(tmp_path_factory.mktemp("whole"))


# ----------------------------------------------------------------------------------------------------------------- written and read


def test_a_file_of_an_older_version_lacks_a_column(tmp_path, monkeypatch):
    """The column is empty there. A file of a newer version has one more, which is not read."""
    for name in ("older", "newer"):
        (tmp_path / name).mkdir()
    older = RunWriter(tmp_path / "older", small())
    older.append("latency", rows(5))
    paths = [older.finish()]
    more = (*columns.TABLES["latency"], Column("ttl_down", "int64", True))
    with monkeypatch.context() as newer_version:
        newer_version.setitem(columns.TABLES, "latency", more)
        columns.schema.cache_clear()
        assert open_run(paths[0]).table("latency").column("ttl_down").null_count == 5
        newer = RunWriter(tmp_path / "newer", small())
        newer.append("latency", {**rows(5), "ttl_down": [64] * 5})
        paths.append(newer.finish())
    columns.schema.cache_clear()
    table = open_run(paths[1]).table("latency")
    assert table.num_rows == 5 and "ttl_down" not in table.column_names


def test_a_run_comes_back_as_it_was(tmp_path):
    meta = small(title="größer ✓", phases=[Phase("load", 0, 10**9)], settings={"cc": None, "list": [1, 2.5, "x", {"a": True}]}, reasons=[Reason("degraded", "because")])
    writer = RunWriter(tmp_path, meta)
    assert writer.part.is_dir()
    writer.append("latency", rows(5))
    writer.sync()
    writer.append("latency", rows(5, 50))
    writer.event(7, "clock_step", "5 s", 0)
    path = writer.finish()
    assert path.name == "ping-2026-11-21T153000.gr_er.ktrxer" and not writer.part.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name], "nothing else is left"
    run = open_run(path)
    assert run.meta == meta and run.finished
    table = run.table("latency")
    assert table.schema == columns.schema("latency")
    assert table.column("t_ns").to_pylist() == [*range(0, 50, 10), *range(50, 100, 10)]
    assert table.column("up_ns").null_count == 10
    assert run.table("events").to_pylist() == [{"t_ns": 7, "runner": 0, "name": "clock_step", "text": "5 s"}]
    assert run.table("tcp_info").num_rows == 0 and run.kinds() == ["latency", "events"]
    arrays = run.arrays(run.series("Ping (ms) ICMP"))
    assert arrays["rtt_ns"].tolist() == [*range(1000, 1005)] * 2 and np.isnan(arrays["up_ns"]).all()


def test_other_tools_read_it(whole):
    with zipfile.ZipFile(whole) as zipped:
        assert zipped.testzip() is None
        assert {info.compress_type for info in zipped.infolist()} == {zipfile.ZIP_STORED}
        assert json.loads(zipped.read("meta.json"))["schema"] == "ktrxer-run/1"
        with zipped.open("latency.parquet") as member:
            assert pq.read_table(member).num_rows == 4 * 7000


def test_the_same_run_is_the_same_file(tmp_path):
    assert synthetic(tmp_path, seconds=12, name="a").read_bytes() == synthetic(tmp_path, seconds=12, name="b").read_bytes()


def test_samples_of_a_series_come_sorted(tmp_path):
    writer = RunWriter(tmp_path, small(series=[Series(0, "a", "latency", "ms"), Series(1, "b", "latency", "ms")]))
    for series, at in ((1, 30), (0, 20), (1, 10), (0, 5)):
        writer.append("latency", {"series": [series], "t_ns": [at], "seq": [at], "state": [0]})
    for run in (open_run(writer.part), open_run(writer.finish())):
        # The directory has only synced data: none yet.
        assert run.finished == bool(run.arrays(run.series("a"))["t_ns"].size)
    assert run.arrays(run.series("a"))["t_ns"].tolist() == [5, 20]
    assert run.arrays(run.series("b"))["t_ns"].tolist() == [10, 30]


def test_a_name_that_is_taken_gets_a_number(tmp_path):
    first, second = RunWriter(tmp_path, small()), RunWriter(tmp_path, small())
    assert first.part != second.part
    assert {first.finish().name, second.finish().name} == {"ping-2026-11-21T153000.ktrxer", "ping-2026-11-21T153000-2.ktrxer"}
    assert RunWriter(tmp_path, small()).part.name.startswith("ping-2026-11-21T153000-3")


def test_wrong_columns_are_a_bug_of_the_caller(tmp_path):
    writer = RunWriter(tmp_path, small())
    with pytest.raises(ValueError, match="no column nonsense"):
        writer.append("latency", rows(1) | {"nonsense": [1]})
    with pytest.raises(ValueError, match="different lengths"):
        writer.append("latency", rows(2) | {"seq": [1]})
    with pytest.raises(ValueError, match="needs the column state"):
        writer.append("latency", {k: v for k, v in rows(1).items() if k != "state"})


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(StoreError, match="cannot create a run in this directory: No such file"):
        RunWriter(tmp_path / "nowhere", small())


@pytest.mark.slow
@settings(QUICK, max_examples=20)
@given(
    times=st.lists(st.integers(-(10**15), 10**15), max_size=50),
    delays=st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), min_size=50, max_size=50),
    value=st.lists(st.one_of(st.none(), st.floats()), min_size=50, max_size=50),
    title=st.text(max_size=80),
)
def test_any_samples_come_back(tmp_path, times, delays, value, title):
    count = len(times)
    meta = small(title=title, series=[Series(0, "a", "latency", "ms"), Series(1, "v", "value", "")])
    writer = RunWriter(tmp_path, meta)
    writer.append("latency", {"series": [0] * count, "t_ns": times, "seq": list(range(count)), "state": [1] * count, "rtt_ns": delays[:count]})
    writer.append("value", {"series": [1] * count, "t_ns": times, "value": value[:count]})
    path = writer.finish()
    run = open_run(path)
    assert run.meta.title == printable(title)
    assert sorted(zip(run.table("latency")["seq"].to_pylist(), run.table("latency")["rtt_ns"].to_pylist(), strict=True)) == list(
        enumerate(delays[:count])
    )
    stored = [v for v in run.table("value")["value"].to_pylist() if v is not None]
    assert sorted(stored) == sorted(v for v in value[:count] if v is not None and math.isfinite(v)), "a NaN becomes an empty entry"
    path.unlink()


# --------------------------------------------------------------------------------------------------------- crashes and full disks

CRASHING = """
import sys
sys.path.insert(0, sys.argv[1])
from test_store import RunWriter, rows, small
writer = RunWriter(sys.argv[2], small())
for n in range(3):
    writer.append("latency", rows(10, 100 * n))
    writer.sync(background=n == 1)
writer.sync()
writer.append("latency", rows(10, 900))
print("synced", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("killed")
    child = subprocess.Popen([sys.executable, "-c", CRASHING, str(Path(__file__).parent), str(tmp_path)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert child.stdout.readline() == "synced\n"
    (part,) = tmp_path.iterdir()
    with pytest.raises(StoreError, match="a `ktrxer run` still writes to it"):
        recover(part)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return part


@pytest.fixture
def killed(killed_once, tmp_path):
    return Path(shutil.copytree(killed_once, tmp_path / killed_once.name))


@pytest.mark.slow
def test_what_was_synced_survives_a_kill(killed):
    path = recover(killed)
    run = open_run(path)
    assert run.table("latency").num_rows == 30
    assert run.meta.verdict == "degraded" and "cut off" in run.meta.sentences[0] and run.meta.runners[0].status == "killed"
    assert not killed.exists()
    with pytest.raises(StoreError, match="nothing to recover"):
        recover(path)


@pytest.mark.slow
def test_a_stream_that_is_cut_anywhere(killed):
    stream = killed / "latency.arrows"
    data = stream.read_bytes()
    counts = set()
    for length in (*range(0, len(data), 37), len(data)):
        stream.write_bytes(data[:length])
        counts.add(open_run(killed).table("latency").num_rows)
    assert counts == {0, 10, 20, 30}, "whole batches, and never an error"


@pytest.mark.slow
def test_rubbish_behind_a_stream(killed):
    with (killed / "latency.arrows").open("ab") as file:
        file.write(os.urandom(5000))
    assert open_run(killed).table("latency").num_rows == 30


def test_not_over_a_file_that_is_there(killed):
    killed.with_name(killed.name.removesuffix(".part")).write_text("another's")
    with pytest.raises(StoreError, match="exists already"):
        recover(killed)


@pytest.fixture
def tiny_disk(tmp_path):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", tmp_path], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_full_disk(tiny_disk):
    other = tiny_disk / "other"  # deleted later, to make room
    other.write_bytes(bytes(120_000))
    writer = RunWriter(tiny_disk, small())
    synced = 0
    with pytest.raises(OSError, match="No space left"):
        for n in range(1000):
            writer.append("latency", rows(100, 1000 * n))
            writer.sync(background=n % 2 == 1)
            synced = n
    with pytest.raises(StoreError, match="an earlier write has failed"):
        writer.sync()
    writer.abandon()
    assert open_run(writer.part).table("latency").num_rows >= 100 * (synced - 1)
    with pytest.raises(StoreError, match="cannot be written: No space left"):
        recover(writer.part)
    assert {entry.name for entry in tiny_disk.iterdir()} == {writer.part.name, other.name}
    other.unlink()
    assert open_run(recover(writer.part)).table("latency").num_rows >= 100 * (synced - 1)


# ------------------------------------------------------------------------------------------------------------------ hostile files


def zip_of(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as zipped:
        for name, data in members:
            zipped.writestr(name, data)
    return path


def meta_json(**more):
    return json.dumps(json.loads(meta_file.write(small())) | more)


def table_of(**more):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"series": pa.array([0], "int32"), "t_ns": pa.array([1]), "seq": pa.array([1]), "state": pa.array([0], "uint8")} | more), sink)
    return sink.getvalue().to_pybytes()


def refused(path, text):
    with pytest.raises(StoreError, match=text) as caught:
        run = open_run(path)
        for kind in columns.KINDS:
            run.table(kind)
    assert "\n" not in str(caught.value) and len(str(caught.value)) <= 400 and str(caught.value).isprintable()


@pytest.mark.parametrize("members, text", [
    ([("../../etc/passwd", "x"), ("meta.json", meta_json())], "a member has the forbidden name '../../etc/passwd'"),
    ([("/etc/passwd", "x"), ("meta.json", meta_json())], "a member has the forbidden name"),
    ([("meta.json", meta_json()), ("a\x1b[2Jb.parquet", "x")], "a member has the forbidden name"),
    ([("latency.parquet", "x")], "meta.json is missing"),
    ([(f"a{n}.parquet", "") for n in range(69)] + [("meta.json", meta_json())], "70 members"),
    ([("meta.json", meta_json()), ("latency.parquet", b"PAR1 or so")], "damaged"),
    ([("meta.json", meta_json()), ("latency.parquet", b"")], "damaged"),
])
def test_zips_that_are_no_runs(tmp_path, members, text):
    refused(zip_of(tmp_path / "bad.ktrxer", members), text)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice(tmp_path):
    refused(zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json())] * 2), "occurs twice")


@pytest.mark.slow
def test_a_zip_bomb(tmp_path):
    path = zip_of(tmp_path / "bad.ktrxer", [("meta.json", b" " * 100_000_000)], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    refused(path, "compressed or encrypted")


def test_members_that_overlap(tmp_path):
    path = zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json()), ("latency.parquet", table_of())])
    data = bytearray(path.read_bytes())
    entry = data.rfind(b"PK\1\2")
    struct.pack_into("<L", data, entry + 42, 0)
    path.write_bytes(data)
    refused(path, "not at the offset that the directory has|overlap")


@pytest.mark.parametrize("data", [b"", b"x", b"PK\5\6" + bytes(18), os.urandom(1000), b"PK\5\6" + b"\xff" * 18, b"{}"])
def test_files_that_are_no_zips(tmp_path, data):
    (tmp_path / "bad.ktrxer").write_bytes(data)
    refused(tmp_path / "bad.ktrxer", "not a run|meta.json is missing")


def test_no_file(tmp_path):
    refused(tmp_path / "none.ktrxer", "No such file")
    refused(tmp_path, "a directory without meta.json")


@pytest.mark.parametrize("change, text", [
    ({"schema": "ktrxer-run/9"}, "a newer one is needed"),
    ({"series": [{"id": 0, "name": "a", "kind": "latency", "unit": "ms"}] * 2}, "same id"),
    ({"series": [{"id": "0", "name": "a", "kind": "latency", "unit": "ms"}]}, r"series\[0\].id: should be a whole number"),
    ({"series": [{"id": True, "name": "a", "kind": "latency", "unit": "ms"}]}, "whole number"),
    ({"series": [{"id": 0, "name": "a", "kind": "virus", "unit": "ms"}]}, "should be one of"),
    ({"series": [{"id": 0, "name": "a", "kind": "latency", "unit": "ms", "runner": 9}]}, "refers to a runner that does not exist"),
    ({"series": [{"id": n, "name": "a", "kind": "latency", "unit": "ms"} for n in range(2)]}, "same name"),
    ({"series": {"a": 1}}, "should be a list"),
    ({"title": 5}, "title: should be text"),
    ({"title": "x" * 2_000_000}, "a text of 2000000 characters"),
    ({"length_ns": -1}, "length_ns is out of range"),
    ({"length_ns": 2**63 - 1}, "length_ns is out of range"),
    ({"length_ns": 1.5}, "whole number"),
    ({"reasons": [["x"]]}, "should be text"),
    ({"zero": None}, "should be an object"),
    ({"phases": [{"name": "load", "from_ns": 2, "to_ns": 1}]}, "ends before it begins"),
])
def test_meta_of_wrong_types(tmp_path, change, text):
    refused(zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json(**change))]), text)


@pytest.mark.parametrize("text, message", [
    ("NaN", "NaN is not a number"),
    ('{"id": 1e999}', "too large"),
    ('{"id": 1' + "0" * 5000 + "}", "does not fit 64 bits"),
    ('{"a": 1, "a": 2}', "twice"),
    ("[" * 100_000, "nested too deeply"),
    ("\xff\xfe", "invalid JSON"),
    ("[]", "should be an object"),
    ("{}", "missing"),
    (meta_json()[:-1], "invalid JSON"),
])
def test_json_with_dark_corners(tmp_path, text, message):
    refused(zip_of(tmp_path / "bad.ktrxer", [("meta.json", text.encode("latin-1"))]), message)


def test_free_json_is_bounded(tmp_path):
    deep = {}
    for _ in range(60):
        deep = {"a": deep}
    refused(zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json(metadata=deep))]), "nested more than 32 deep")
    refused(zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json(metadata={"x": [0] * 200_000}))]), "200000 items")


@pytest.mark.parametrize("more, text", [
    ({"seq": pa.array(["one"])}, "seq has the type string"),
    ({"seq": pa.array([None], "int64")}, "seq is empty in 1 rows"),
    ({"state": pa.array([77], "uint8")}, "state has the value 77"),
    ({"series": pa.array([5], "int32")}, "samples of series 5, which is not in meta.json"),
    ({"t_ns": pa.array([2**62])}, "days from the run's zero"),
    ({"rtt_ns": pa.array([1.5])}, "rtt_ns has the type double"),
])
def test_tables_of_wrong_types(tmp_path, more, text):
    refused(zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json()), ("latency.parquet", table_of(**more))]), text)


def test_a_column_that_is_missing_and_one_too_many(tmp_path):
    path = zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json()), ("latency.parquet", table_of(extra=pa.array(["of a newer version"])))])
    assert open_run(path).table("latency").column_names == columns.schema("latency").names
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"series": pa.array([0], "int32")}), sink)
    refused(zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json()), ("latency.parquet", sink.getvalue().to_pybytes())]), "t_ns is missing")


def test_a_table_bomb(tmp_path):
    """A few kilobytes that would become gigabytes in memory: one value four million times."""
    count = 4_000_000
    same = pa.array(np.zeros(count, "int64"))
    table = pa.table({"series": same.cast("int32"), "t_ns": same, "seq": same, "state": same.cast("uint8")})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    body = sink.getvalue().to_pybytes()
    assert len(body) < count / limits.ROWS_A_BYTE / 2
    refused(zip_of(tmp_path / "bad.ktrxer", [("meta.json", meta_json()), ("latency.parquet", body)]), "which is not possible")


def test_numbers_that_are_none_are_not_there(tmp_path):
    meta = small(series=[Series(0, "v", "value", "")])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"series": pa.array([0] * 3, "int32"), "t_ns": pa.array([1, 2, 3]), "value": pa.array([math.nan, math.inf, 1.0])}), sink)
    path = zip_of(tmp_path / "x.ktrxer", [("meta.json", meta_file.write(meta)), ("value.parquet", sink.getvalue().to_pybytes())])
    assert open_run(path).table("value").column("value").to_pylist() == [None, None, 1.0]


@QUICK
@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_seen_or_does_not_matter(tmp_path, whole, at, bit):
    data = bytearray(whole.read_bytes())
    data[int(at * len(data))] ^= 1 << bit
    path = tmp_path / "flipped.ktrxer"
    path.write_bytes(data)
    try:
        run = open_run(path)
        tables = {kind: run.table(kind) for kind in columns.KINDS}
    except StoreError:
        return
    good = open_run(whole)
    assert all(tables[kind].equals(good.table(kind)) for kind in columns.KINDS), "a flip that no check found changed the data"


@pytest.mark.slow
@settings(QUICK, max_examples=25)
@given(st.data())
def test_parquet_rewritten_by_an_enemy_is_refused_or_read(tmp_path, whole, data):
    """An attacker writes correct checksums: any content must be harmless."""
    with zipfile.ZipFile(whole) as zipped:
        members = {info.filename: zipped.read(info) for info in zipped.infolist()}
    kind = data.draw(st.sampled_from(["host.parquet", "events.parquet", "qdisc.parquet"]))
    body = bytearray(members[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        # Damage the footer in particular, because it has all lengths and types.
        start = data.draw(st.sampled_from([0, max(0, len(body) - 1200)]))
        body[data.draw(st.integers(start, len(body) - 1))] = data.draw(st.integers(0, 255))
    members[kind] = bytes(body)
    path = zip_of(tmp_path / "enemy.ktrxer", members.items())
    try:
        run = open_run(path)
        for name in columns.KINDS:
            run.table(name)
    except StoreError as error:
        assert "\n" not in str(error)


def test_parquet_whose_sizes_contradict_their_types_is_refused(tmp_path, whole):
    """pyarrow 26 ends the process if it is asked for such a column of the footer: its schema says `required`, its size statistics `optional`."""
    with zipfile.ZipFile(whole) as zipped:
        members = {info.filename: zipped.read(info) for info in zipped.infolist()}
    body = members["host.parquet"]
    optional, required = b"\x25\x02\x18", b"\x25\x00\x18"  # SchemaElement, before the column's name
    assert optional in body
    path = zip_of(tmp_path / "enemy.ktrxer", (members | {"host.parquet": body.replace(optional, required, 1)}).items())
    with pytest.raises(StoreError, match="damaged: Definition level histogram"):
        open_run(path).table("host")


@QUICK
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "series", "zero", "host", "name", "x"]), inner, max_size=5),
                    max_leaves=20))
@pytest.mark.slow
def test_any_json_is_a_meta_or_refused(value):
    text = json.dumps(value if not isinstance(value, dict) else json.loads(meta_json()) | value).encode()
    try:
        meta = meta_file.read(text, "x")
    except StoreError:
        return
    assert meta_file.read(meta_file.write(meta), "x") == meta


def test_reading_is_quick(whole):
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        run = open_run(whole)
        for series in run.meta.series:
            run.arrays(series)
        best = min(best, time.process_time() - start)
    print(f"figure: a 70-second rrul of {whole.stat().st_size / 1e6:.2f} MB is read in {best * 1000:.0f} ms of processor time")
    assert whole.stat().st_size < 3_000_000 and best < 1


def test_crc_is_looked_at(tmp_path, whole):
    data = bytearray(whole.read_bytes())
    at = data.find(b'"title":"synthetic"') + 10
    data[at] ^= 1
    (tmp_path / "x.ktrxer").write_bytes(data)
    assert zlib.crc32(data) != zlib.crc32(whole.read_bytes())
    refused(tmp_path / "x.ktrxer", "checksum is wrong")
