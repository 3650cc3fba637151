# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer send --pcap`: the frames of the file leave unchanged, at the file's times."""

import csv
import json
import signal
import socket
import statistics
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ktrxer_lab import hosts
from noise import late, least
from waiting import event, until

Hosts = tuple[hosts.Netns, hosts.Netns]


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(number: int, payload: int = 40, to: str = "10.77.0.2") -> bytes:
    """Ethernet broadcast, IPv4, UDP to port 9 (checksum zero), the number in the payload."""
    data = struct.pack("!Q", number).ljust(payload, b"x")
    udp = struct.pack("!HHHH", 4000, 9, 8 + len(data), 0) + data
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0,
                       socket.inet_aton("10.77.0.1"), socket.inet_aton(to))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return b"\xff" * 6 + b"\x02" + b"\0" * 5 + b"\x08\x00" + head + udp


def write_pcap(path: Path, packets: list[tuple[int, bytes]], *, linktype: int = 1, cut: dict[int, int] | None = None) -> Path:
    """A nanosecond pcap file; packet i in `cut` is truncated to so many bytes."""
    out = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, linktype)]
    for i, (time_ns, data) in enumerate(packets):
        stored = data[: (cut or {}).get(i, len(data))]
        out.append(struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(stored), len(data)) + stored)
    path.write_bytes(b"".join(out))
    return path


def reports(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))


def replay(run: Any, host: hosts.Netns, file: Path, *more: str, status: int | None = None) -> dict[str, Any]:
    result: dict[str, Any] = run(host, "send", "--pcap", str(file), "--device", "a0", *more, status=status)
    assert result["requested"] == sum(result[k] for k in ("sent", "failed", "skipped", "cancelled"))
    return result


class TestReplay:
    def test_frames_and_gaps_are_the_file_s(self, pair: Hosts, ktrxer_json: Any, ktrxer: Path, tmp_path: Path) -> None:
        gaps = [0, 1_000_000, 250_000, 3_333_333, 40_001] * 20
        times, now = [], 1_700_000_000_123_456_789
        for gap in gaps:
            now += gap
            times.append(now)
        file = write_pcap(tmp_path / "in.pcap", [(t, frame(i, 20 + 7 * i)) for i, t in enumerate(times)])
        far = pair[1].popen([ktrxer, "recv", "--device", "b0", "--rule", "capture udp from any to any:9", "--count", "100",
                             "--for", "15s", "--write", tmp_path / "out.pcapng", "--jsonl"])
        try:
            event(far, "listening")
            result = replay(ktrxer_json, pair[0], file, "--reports", str(tmp_path / "r.csv"))
            far.communicate(timeout=20)
        finally:
            far.kill()
        assert result["sent"] == 100
        sent = reports(tmp_path / "r.csv")
        for (before, row), gap in zip(zip(sent, sent[1:], strict=False), gaps[1:], strict=True):
            assert int(row["scheduled_ns"]) - int(before["scheduled_ns"]) == gap
        # byte for byte and in order: a replay of the far end's capture gives the same file
        assert self.frames_of(tmp_path / "out.pcapng") == [frame(i, 20 + 7 * i) for i in range(100)]

        def lateness_ns() -> float:
            replay(ktrxer_json, pair[0], file, "--reports", str(tmp_path / "r.csv"))
            return statistics.median(abs(int(row["lateness_ns"])) for row in reports(tmp_path / "r.csv"))

        assert least(lateness_ns, enough=50_000) <= 50_000

    @staticmethod
    def frames_of(path: Path) -> list[bytes]:
        """Enhanced packet blocks of a little-endian pcapng."""
        data, at, frames = path.read_bytes(), 0, []
        while at < len(data):
            kind, length = struct.unpack_from("<II", data, at)
            if kind == 6:
                captured = struct.unpack_from("<I", data, at + 20)[0]
                frames.append(data[at + 28 : at + 28 + captured])
            at += length
        return frames

    def test_speed_and_rate_put_other_times_in_their_place(self, shared_pair: Hosts, ktrxer_json: Any, tmp_path: Path) -> None:
        file = write_pcap(tmp_path / "f.pcap", [(i * 1_000_000, frame(i)) for i in range(50)])
        for options, gap in (("--speed=4",), 250_000), (("--speed=0.5",), 2_000_000), (("--interval=3ms",), 3_000_000):
            replay(ktrxer_json, shared_pair[0], file, *options, "--reports", str(tmp_path / "r.csv"))
            due = [int(row["scheduled_ns"]) for row in reports(tmp_path / "r.csv")]
            assert len(due) == 50
            assert {b - a for a, b in zip(due, due[1:], strict=False)} == {gap}

    def test_repeat_plays_it_again(self, shared_pair: Hosts, ktrxer_json: Any, tmp_path: Path) -> None:
        file = write_pcap(tmp_path / "f.pcap", [(i * 1_000_000, frame(i)) for i in range(7)])
        assert replay(ktrxer_json, shared_pair[0], file, "--repeat=3")["sent"] == 21

    def test_times_that_go_back_do_not_stop_it(self, shared_pair: Hosts, ktrxer_json: Any, tmp_path: Path) -> None:
        times = [5_000_000_000, 5_001_000_000, 4_000_000_000, 4_002_000_000]
        file = write_pcap(tmp_path / "f.pcap", [(t, frame(i)) for i, t in enumerate(times)])
        result = replay(ktrxer_json, shared_pair[0], file, "--reports", str(tmp_path / "r.csv"))
        due = [int(row["scheduled_ns"]) for row in reports(tmp_path / "r.csv")]
        assert [b - a for a, b in zip(due, due[1:], strict=False)] == [1_000_000, 0, 2_000_000]
        assert result["replay"]["backwards"] == 1

    def test_swapped_times_do_not_take_longer(self, shared_pair: Hosts, ktrxer_json: Any, tmp_path: Path) -> None:
        times = [1_700_000_000_000_000_000 + (i ^ 1) * 1_000_000 for i in range(200)]
        file = write_pcap(tmp_path / "f.pcap", [(t, frame(i)) for i, t in enumerate(times)])
        result = replay(ktrxer_json, shared_pair[0], file, "--reports", str(tmp_path / "r.csv"))
        due = [int(row["scheduled_ns"]) for row in reports(tmp_path / "r.csv")]
        assert max(due) - min(due) == 198_000_000 and result["replay"]["backwards"] == 100

    def test_years_are_cut_by_max_gap_and_can_be_interrupted_without(self, pair: Hosts, ktrxer: Path, ktrxer_json: Any,
                                                                     tmp_path: Path) -> None:
        file = write_pcap(tmp_path / "f.pcap", [(0, frame(0)), (4_000_000_000 * 10**9, frame(1))])
        assert replay(ktrxer_json, pair[0], file, "--max-gap=10ms")["sent"] == 2
        waiting = pair[0].popen([ktrxer, "send", "--pcap", file, "--device", "a0", "--json"])
        try:
            with pytest.raises(Exception, match="timed out"):
                waiting.communicate(timeout=1.5)
            waiting.terminate()
            out = waiting.communicate(timeout=20)[0]
        finally:
            waiting.kill()
        assert '"sent": 1' in (out if isinstance(out, str) else out.decode())

    def test_what_cannot_be_sent_is_counted_and_said(self, shared_pair: Hosts, ktrxer_json: Any, tmp_path: Path) -> None:
        packets = [(i * 10**6, frame(i, 2000 if i == 3 else 40)) for i in range(10)]
        file = write_pcap(tmp_path / "f.pcap", packets, cut={5: 60, 6: 10})
        result = replay(ktrxer_json, shared_pair[0], file, status=3)
        assert (result["sent"], result["failed"]) == (7, 3)
        assert (result["replay"]["cut_short"], result["replay"]["oversized"]) == (2, 1)
        assert any("MTU" in reason["text"] for reason in result["reasons"])

    def test_a_damaged_file_sends_what_is_whole_and_says_so(self, shared_pair: Hosts, ktrxer_json: Any, tmp_path: Path) -> None:
        file = write_pcap(tmp_path / "f.pcap", [(i * 10**6, frame(i)) for i in range(10)])
        file.write_bytes(file.read_bytes()[:-20])
        result = replay(ktrxer_json, shared_pair[0], file, status=3)
        assert result["sent"] == 9
        assert result["verdict"] != "valid"
        assert any("cut short" in reason["text"] or "damaged" in reason["text"] or "early" in reason["text"] for reason in result["reasons"])

    @pytest.mark.parametrize("content", [b"", b"no capture", b"\xd4\xc3\xb2\xa1" + b"\0" * 20])
    def test_no_capture_is_one_line(self, shared_pair: Hosts, ktrxer: Path, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "bad"
        file.write_bytes(content)
        done = shared_pair[0].run([ktrxer, "send", "--pcap", file, "--device", "a0", "--quiet"], check=False, timeout=10)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert str(file) in done.stderr

    def test_a_pipe_that_falls_silent_can_be_stopped(self, shared_pair: Hosts, ktrxer: Path, tmp_path: Path) -> None:
        file = write_pcap(tmp_path / "f.pcap", [(0, frame(0)), (1000, frame(1))])
        both = shared_pair[0].counters()["tx"]["packets"] + 2
        child = shared_pair[0].popen([ktrxer, "send", "--pcap", "-", "--device", "a0", "--json"], stdin=subprocess.PIPE)
        assert child.stdin is not None
        child.stdin.buffer.write(file.read_bytes())
        child.stdin.flush()
        until(lambda: shared_pair[0].counters()["tx"]["packets"] >= both, "both frames have left")
        child.send_signal(signal.SIGINT)
        status = child.wait(timeout=20)
        assert child.stdout is not None
        result = json.loads(child.stdout.read())
        assert result["sent"] == 2 and (status == 0 or late(result))

    def test_public_addresses_need_flood(self, shared_pair: Hosts, ktrxer: Path, tmp_path: Path) -> None:
        file = write_pcap(tmp_path / "f.pcap", [(0, frame(0, to="8.8.8.8"))])
        done = shared_pair[0].run([ktrxer, "send", "--pcap", file, "--device", "a0"], check=False, timeout=10)
        assert done.returncode == 1
        assert "--flood" in done.stderr

    @pytest.mark.parametrize("wrong", [
        ["--pcap", "x"], ["--pcap", "x", "--device", "a0", "10.77.0.2"], ["--speed", "2", "10.77.0.2", "-c", "1"],
        ["--pcap", "x", "--device", "a0", "--speed", "2", "--rate", "10"], ["--pcap", "x", "--device", "a0", "--speed", "0"],
    ])
    def test_contradictions_are_usage_errors(self, shared_pair: Hosts, ktrxer: Path, wrong: list[str]) -> None:
        done = shared_pair[0].run([ktrxer, "send", *wrong], check=False, timeout=10)
        assert done.returncode == 2
        assert done.stderr.startswith("ktrxer send: ")
        assert "--" in done.stderr.splitlines()[0]

    def test_engines_of_the_stack_refuse(self, shared_pair: Hosts, ktrxer: Path, tmp_path: Path) -> None:
        file = write_pcap(tmp_path / "f.pcap", [(0, frame(0))])
        for engine in ("udp", "raw"):
            done = shared_pair[0].run([ktrxer, "send", "--pcap", file, "--device", "a0", "-e", engine], check=False, timeout=10)
            assert done.returncode == 1
            assert "whole frames" in done.stderr
