# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hostile files: links, devices, control characters, false sizes, damage at any byte. The program writes nothing outside the run and does not
hang, and each error message is one line."""

import io
import itertools
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flent_files
import pytest
from ktrxer.commands import export, importing, runs, summary
from ktrxer.commands import recover as recover_command
from ktrxer.flent import container as flent_container
from ktrxer.store import (
    Meta,
    Runner,
    RunWriter,
    StoreError,
    columns,
    limits,
    open_run,
    recover,
)
from ktrxer.store import run as store_run
from test_store import rows, small

LIMIT_S = 240  # of one test
POOLS: list[Any] = []  # they live as long as what was allocated from them
UNPRINTABLE = [chr(c) for c in (0, 7, 8, 13, 27, 127, 0x9B, 0x202E, 0x2028)] + ["\ud800"]


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """A reader that hangs fails the test."""

    def late(*_: object) -> None:
        pytest.fail(f"not done after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def sound(said: str) -> bool:
    """Each error comes from a specific rule. The catch-all for one file of many would be a defect of ktrxer."""
    return "Traceback" not in said and "defect of ktrxer" not in said


def left(tmp_path: Path, **more: Any) -> Path:
    """A run that a kill has left."""
    writer = RunWriter(tmp_path, small(**more))
    for start in (0, 100, 200):
        writer.append("latency", rows(10, start))
        writer.sync()
    writer.event(7, "note", "seven", 0)
    writer.sync()
    writer.abandon()
    return writer.part


# -------------------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize("name", [".finished", "lock", "latency.arrows", "meta.json"])
def test_recover_follows_no_link(tmp_path: Path, name: str) -> None:
    part = left(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("another's")
    (part / name).unlink(missing_ok=True)
    (part / name).symlink_to(victim)
    try:
        path = recover(part)
    except StoreError as error:
        assert name == "meta.json" and "link" in str(error)
    else:
        assert not path.is_symlink() and open_run(path).table("latency").num_rows == (0 if name == "latency.arrows" else 30)
    assert victim.read_text() == "another's"


def test_recover_of_a_link_to_a_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    part = left(tmp_path / "elsewhere")
    link = tmp_path / part.name
    link.symlink_to(part)
    with pytest.raises(StoreError, match="symbolic link"):
        recover(link)
    assert part.is_dir()


def test_a_name_beside_an_import_follows_no_link(tmp_path: Path) -> None:
    source = flent_files.write(tmp_path / "a.flent.gz", flent_files.four())
    victim = tmp_path / "victim"
    victim.write_text("another's")
    (tmp_path / ".a.ktrxer.tmp").symlink_to(victim)
    assert importing.main(["-D", str(tmp_path), str(source)]) == 0
    assert victim.read_text() == "another's" and open_run(tmp_path / "a.ktrxer").meta.series


# ------------------------------------------------------------------------------------------------------- what is not a regular file


@pytest.mark.parametrize("name", ["run.ktrxer", "run.flent.gz", "run.flent"])
@pytest.mark.parametrize("kind", ["fifo", "zero"])
def test_only_regular_files_are_read(tmp_path: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(StoreError, match="not a regular file"):
        open_run(path)
    assert summary.main([str(path)]) == 1 and importing.main(["-D", str(tmp_path), str(path)]) == 1
    assert runs.main([str(tmp_path)]) in (0, 1)
    for line in capsys.readouterr().err.splitlines():
        assert "not a regular file" in line


def test_devices_inside_a_directory_are_not_read(tmp_path: Path) -> None:
    part = left(tmp_path)
    (part / "latency.arrows").unlink()
    os.mkfifo(part / "latency.arrows")
    assert open_run(recover(part)).table("events").num_rows == 1


# ------------------------------------------------------------------------------------------------------------- terminal and text


@pytest.mark.slow
@pytest.mark.parametrize("bad", UNPRINTABLE, ids=lambda c: f"{ord(c):x}")
def test_no_text_of_a_file_reaches_the_terminal_raw(tmp_path: Path, bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"a{bad}[31mb"
    meta = json.loads(Path(left(tmp_path) / "meta.json").read_text())
    meta |= {"test": text, "title": text, "targets": [text], "reasons": [text], "verdict": "degraded", "version": text, "created": text}
    meta["series"][0] |= {"name": text, "unit": text, "klass": text, "group": text}
    meta["runners"][0] |= {"name": text, "argv": [text], "host": text, "stderr_tail": text, "end": {"verdict": text, "reasons": [text]}}
    (part,) = tmp_path.glob("*.part")
    (part / "meta.json").write_bytes(json.dumps(meta).encode())
    summary.main([str(part), "--series"])
    runs.main([str(tmp_path)])
    recover_command.main([str(part)])
    summary.main([str(tmp_path), "--series"])
    summary.main([str(tmp_path), "--json"])
    export.main([*map(str, tmp_path.glob("*.ktrxer")), "-D", str(tmp_path)])
    said = capsys.readouterr()
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    out.write(said.out + said.err)  # a lone surrogate does not fit any encoding
    shown = {c for c in said.out + said.err if not c.isprintable()} - {"\n"}
    assert not shown, shown


# --------------------------------------------------------------------------------------------------------------------- budgets


def test_a_small_file_is_a_small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's claims are checked before any allocation: 5.5 MB once became 88 million rows and 9 GB."""
    monkeypatch.setattr(limits, "RUN_BYTES", 8 << 30)  # the limit of a machine with 48 GiB: a small machine refuses the run below
    size = 5_500_000
    most = max(n for n in (10**k for k in range(10)) if admitted(n, size))
    assert most * store_run.row_bytes("latency") < 3 << 30
    assert not admitted(80_000_000, size)
    # An hour of ten thousand probes a second, at the minimum of 8 bytes each.
    assert admitted(36_000_000, 36_000_000 * 8)


def admitted(count: int, size: int) -> bool:
    try:
        store_run.bounded(count, size, "latency", "here")
    except StoreError:
        return False
    return True


@pytest.mark.slow
def test_flent_text_is_bounded_by_the_packed_size() -> None:
    """138 KB once became 1.6 GB in memory."""
    import gzip

    text = b'{"x_values":[' + b",".join([b"1"] * 12_000_000) + b'],"results":{}}'
    packed = gzip.compress(text, 9)
    assert len(packed) < 138_000
    with pytest.raises(StoreError, match="more than"):
        flent_container.parse(packed)


@pytest.mark.parametrize(("name", "most"), [("runners", limits.RUNNERS), ("series", limits.SERIES), ("phases", limits.PHASES)])
def test_too_many_objects_are_refused_before_they_are_read(tmp_path: Path, name: str, most: int) -> None:
    """The number of runners is checked before the runners, of which the first is invalid: 100,000 once took 20 s of CPU time."""
    part = left(tmp_path)
    meta = json.loads((part / "meta.json").read_bytes())
    (part / "meta.json").write_text(json.dumps(meta | {name: [1] * (most + 1)}))
    with pytest.raises(StoreError, match=f"{name}: {most + 1} items; at most {most} are read"):
        open_run(part)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["0", "[]", '{"a":0}', '""'])
def test_a_large_meta_is_refused_before_it_is_parsed(tmp_path: Path, value: str) -> None:
    """18 MB of small values had taken six seconds of processor time."""
    part = left(tmp_path)
    meta = (part / "meta.json").read_text().rstrip()
    row = "[" + ",".join([value] * 90_000) + "]"
    rows = ",".join([row] * (18_000_000 // len(row)))
    (part / "meta.json").write_text(f'{meta[:-1]},"more":[{rows}]}}')
    before = time.process_time()
    with pytest.raises(StoreError, match="values; at most 500000 are read"):
        open_run(part)
    assert time.process_time() - before < 1


def test_rows_of_all_tables_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recover(left(tmp_path))
    monkeypatch.setattr(limits, "RUN_BYTES", 30 * store_run.row_bytes("latency") + 10)
    run = open_run(path)
    run.table("latency")
    with pytest.raises(StoreError, match="memory"):
        run.table("events")


def most_allocated(call: Any) -> tuple[Any, int]:
    """The result or the exception of a call, and the maximum of the bytes that Arrow had allocated during it."""
    import pyarrow as pa

    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        result = call()
    except StoreError as error:
        result = error
    finally:
        pa.set_memory_pool(before)
    POOLS.append(pool)
    return result, pool.max_memory()


def bomb(kind: str, count: int) -> Any:
    """A batch of zeros; its columns share their memory."""
    import pyarrow as pa

    schema = columns.schema(kind)
    zeros = pa.py_buffer(bytes(8 * count))
    arrays = [pa.Array.from_buffers(field.type, count, [None, zeros]) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_stream_is_not_unpacked(tmp_path: Path, codec: str) -> None:
    """A compressed stream is refused, because no writer makes one. 2 MB once became 500 MB before its rows were counted."""
    import pyarrow as pa

    part = left(tmp_path)
    batch = bomb("latency", 4_000_000)
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with (part / "latency.arrows").open("wb") as file, pa.ipc.new_stream(file, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    assert (part / "latency.arrows").stat().st_size < 4 << 20
    run = open_run(part)
    table, most = most_allocated(lambda: run.table("latency"))
    assert most < 16 << 20, f"{most >> 20} MiB"
    assert table.num_rows == 0 and open_run(recover(part)).table("events").num_rows == 1


def parquet_of(table: Any, **more: Any) -> memoryview:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False, **more)
    return memoryview(sink.getvalue())


@pytest.mark.slow
def test_a_page_of_parquet_is_not_larger_than_it_needs(tmp_path: Path) -> None:
    """A page of a few kilobytes was once unpacked to the size in its header."""
    import pyarrow as pa

    rows_free = limits.ROWS_FREE
    text = "x" * (1 << 20)
    table = pa.table({"t_ns": [0] * 200, "runner": [0] * 200, "name": ["n"] * 200, "text": [text] * 200}, schema=columns.schema("events"))
    packed = parquet_of(table, use_dictionary=False, data_page_size=1 << 30, write_batch_size=1 << 20)
    assert len(packed) < 1 << 20 and table.num_rows < rows_free
    result, most = most_allocated(lambda: store_run.read_parquet(packed, "events", tmp_path))
    assert isinstance(result, StoreError) and "claims" in str(result) and "\n" not in str(result)
    assert most < 16 << 20, f"{most >> 20} MiB"


def test_one_string_in_many_rows_of_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dictionary column: 100,000 rows with the same string of 64 KiB are 6.5 GB of text."""
    import pyarrow as pa

    monkeypatch.setattr(limits, "RUN_BYTES", 256 << 20)
    count = limits.ROWS_FREE
    indices = pa.array([0] * count, pa.int32())
    texts = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 65536]))
    names = pa.DictionaryArray.from_arrays(indices, pa.array(["n"]))
    table = pa.table({"t_ns": pa.array([0] * count, pa.int64()), "runner": indices, "name": names, "text": texts})
    packed = parquet_of(table)
    assert len(packed) < 1 << 20
    result, most = most_allocated(lambda: store_run.read_parquet(packed, "events", tmp_path))
    assert isinstance(result, StoreError) and "MiB of text" in str(result), result
    assert most < 64 << 20, f"{most >> 20} MiB"


# ---------------------------------------------------------------------------------------------------------------------- damage


def damaged(data: bytes, chance: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made))
        if chance.random() < 0.7:
            made[at] = chance.randrange(256)
        else:
            made[at : at + chance.randint(1, 9)] = bytes(chance.randrange(256) for _ in range(chance.randint(0, 12)))
    return bytes(made)


@pytest.mark.parametrize("batch", [None, 0, 1, 2])
def test_damage_costs_the_batch_that_it_hits(tmp_path: Path, batch: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage of the stream's header (None) loses no sample, because the schema of each kind is known."""
    part = left(tmp_path)
    data = (part / "latency.arrows").read_bytes()
    marks = [at for at in range(0, len(data), 8) if data[at : at + 4] == b"\xff\xff\xff\xff"]
    at = 40 if batch is None else marks[1 + batch] + 16
    (part / "latency.arrows").write_bytes(data[:at] + bytes(60) + data[at + 60 :])
    assert recover_command.main([str(part)]) == 0, capsys.readouterr().err
    (path,) = tmp_path.glob("*.ktrxer")
    run = open_run(path)
    kept = [start + 10 * i for start in (0, 100, 200) if batch is None or start != 100 * batch for i in range(10)]
    assert run.table("latency").column("t_ns").to_pylist() == kept and run.table("events").num_rows == 1
    # Damage of the last batch cannot be distinguished from a truncated stream.
    assert any("latency.arrows are damaged" in reason for reason in run.meta.sentences) == (batch != 2)


@pytest.mark.parametrize("name", ["t_ns", "text"])
def test_a_damaged_name_of_a_column(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The batches behind a damaged one are read, because the schema of each kind is known."""
    part = left(tmp_path)
    path = part / "events.arrows"
    data = path.read_bytes()
    assert data.count(name.encode() + b"\0") == 1
    path.write_bytes(data.replace(name.encode() + b"\0", name[:-1].encode() + b"X\0"))
    assert recover_command.main([str(part)]) == 0 and sound(capsys.readouterr().err)
    (whole,) = tmp_path.glob("*.ktrxer")
    table = open_run(whole).table("events")
    assert table.column("t_ns").to_pylist() == [7] and table.column_names == columns.schema("events").names


@pytest.mark.slow
def test_damage_at_any_byte_of_what_a_kill_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(9)
    (tmp_path / "whole").mkdir()
    whole = left(tmp_path / "whole")
    files = [path.name for path in whole.iterdir() if path.stat().st_size]
    recovered = 0
    for turn in range(200):
        folder = tmp_path / str(turn)
        part = folder / whole.name
        shutil.copytree(whole, part)
        name = files[turn % len(files)]
        (part / name).write_bytes(damaged((whole / name).read_bytes(), chance))
        status = recover_command.main([str(part)])
        assert status in (0, 1)
        recovered += status == 0
        for path in folder.iterdir():
            summary.main([str(path), "--series"])
    # A damaged meta.json may make the run unreadable; a damaged stream does not.
    assert recovered > 100
    assert sound(capsys.readouterr().err)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["value", "latency", "bytes"])
@pytest.mark.parametrize("worst", [-1e308, 1e308, 5e-324, -(2.0**62)])
def test_huge_numbers(tmp_path: Path, kind: str, worst: float, capsys: pytest.CaptureFixture[str]) -> None:
    meta: Meta = small(length_ns=20 * 10**9, verdict="valid")
    meta.series[0].kind, meta.series[0].unit = kind, "Mbit/s"  # type: ignore[assignment]
    writer = RunWriter(tmp_path, meta)
    times = [n * 10**9 for n in range(10)]
    whole = int(max(-(2.0**62), min(2.0**62, worst)))
    table: dict[str, dict[str, Any]] = {
        "value": {"series": [0] * 10, "t_ns": times, "value": [worst, 1.0] * 5},
        "latency": rows(10) | {"rtt_ns": [whole, 1] * 5, "far_ns": [whole, 2**62] * 5},
        "bytes": {"series": [0] * 10, "t_ns": times, "end": [0] * 10, "bytes": [abs(whole), 0] * 5},
    }
    writer.append(kind, table[kind])
    path = writer.finish()
    assert summary.main([str(path), "--series"]) == 0
    assert summary.main([str(path), "--json"]) == 0
    assert export.main([str(path), "-D", str(tmp_path)]) in (0, 1)
    assert sound(capsys.readouterr().err)


@pytest.mark.slow
def test_flent_files_with_huge_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A special number in each place for a number."""

    def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, entry in itertools.islice(pairs, 6):
            yield from places(entry, (*at, key))
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield at

    seed = flent_files.four()
    for number, at in enumerate(places(seed)):
        value = json.loads(json.dumps(seed))
        inner = value
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] = (-1e308, 1e308)[number % 2]
        path = tmp_path / f"{number}.flent"
        path.write_text(json.dumps(value))
        summary.main([str(path)])
        importing.main(["-D", str(tmp_path), str(path)])
    assert sound(capsys.readouterr().err)


def test_an_unforeseen_failure_stops_no_series_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An unexpected failure gives one line that names the file, and the next file is read."""
    import ktrxer.flent

    one, two = (flent_files.write(tmp_path / f"{name}.flent.gz", flent_files.four()) for name in ("one", "two"))
    opened = ktrxer.flent.open_run

    def first_fails(path: Path) -> Any:
        if path == one:
            raise OverflowError("cannot convert float infinity to integer")
        return opened(path)

    monkeypatch.setattr(ktrxer.flent, "open_run", first_fails)
    assert importing.main(["-D", str(tmp_path), str(one), str(two)]) == 1
    assert (tmp_path / "two.ktrxer").is_file()
    assert summary.main([str(one), str(two)]) == 1
    said = capsys.readouterr()
    assert said.err.count("one.flent.gz") == 2 and "two" not in said.err


def test_a_runner_is_killed_in_the_recovered_run(tmp_path: Path) -> None:
    part = left(tmp_path, runners=[Runner(0, "ping", "ping", [], status="running")])
    assert open_run(recover(part)).meta.runners[0].status == "killed"
