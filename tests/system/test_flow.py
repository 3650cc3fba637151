# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer flow` against `ktrxer serve`, with real connections between two hosts: figures, and refused requests.

a0 10.77.0.1/24 ------------- b0 10.77.0.2/24      A asks, B serves; tc narrows the link where a test says so
   fd00:77::1                    fd00:77::2
"""

import json
import shutil
import signal
import time

import pytest
from flows import (
    MS,
    Run,
    S,
    check_series,
    command,
    controls,
    narrow,
    secret,
    stop,
)
from noise import ahead, least
from recorded import wrong
from waiting import received

# ----------------------------------------------------------------------------------------------------------- it measures


@pytest.mark.parametrize("address", ["address", "address6"])
def test_every_byte_is_counted(shared_pair, flow, serve, token, address):
    a, b = shared_pair
    server = serve(b, "--token-file", token)
    run = flow(a, "both", getattr(b, address), "--flows", 3, "--bytes", "5M", "--sample-interval", "10ms")
    assert run.end["verdict"] == "valid" or not run.reasons, run.end["reasons"]
    assert [one["direction"] for one in run.flows] == ["up"] * 3 + ["down"] * 3
    for one in run.flows:
        assert one["bytes"] == one["received_bytes"] == one["acked_bytes"] == 5_000_000 and one["error"] is None, one
        assert one["rate_bps"] == pytest.approx(5_000_000 * 8e9 / one["duration_ns"], rel=1e-6)
        for end in ("local", "remote"):
            assert run.samples(flow=one["flow"], end=end)[-1]["bytes"] == 5_000_000
        # The sending end has fields of TCP_INFO, the receiving end only its received bytes.
        sender = "local" if one["direction"] == "up" else "remote"
        info = run.samples("tcp_info", flow=one["flow"])
        assert info and {i["end"] for i in info} == {sender} and all(i["mss_bytes"] > 500 and i["cwnd_segments"] > 0 for i in info)
    assert len(run.events("flow_connected")) == 6 and len(run.events("flow_ended")) == 12
    assert run.end["bytes"] == 30_000_000
    assert not wrong(run.objects)
    counts = stop(server)
    assert counts["bytes_in"] == counts["bytes_out"] == 15_000_000 and counts["started"] == 6 and counts["clients"] == 1


@pytest.mark.plain_build
def test_one_timeline(shared_pair, flow, serve, token):
    """Both ends are on one machine, so the true clock offset is 0. It lies within the reported interval."""
    a, b = shared_pair
    serve(b, "--token-file", token)
    run = flow(a, "both", b.address, "--for", "1s", "--sample-interval", "100ms")
    clock = run.end["clock"]
    assert abs(clock["offset_ns"]) <= clock["bound_ns"] < 20 * MS and clock["exchanges"] >= 8
    remote = run.samples(end="remote")
    assert len(remote) + sum(one["samples_missing"] for one in run.flows) >= 20 and len(remote) >= 4
    for one in remote:
        assert abs(one["time_ns"] - one["remote_ns"]) <= one["bound_ns"], one
    # Both ends sample at the same times.
    check_series(run, 100 * MS)
    starts = [one["start_ns"] for one in run.flows]
    assert starts == [run.end["start_ns"]] * 2


@pytest.mark.plain_build
def test_sixteen_flows_on_ten_megabit(narrow_pair, flow, serve, token):
    """A slow flow has as many samples as the others, and the sum of all flows does not exceed the link's rate."""
    a, b = narrow_pair
    serve(b, "--token-file", token)
    run = flow(a, "down", b.address, "--flows", 16, "--for", "2s", "--sample-interval", "200ms")
    assert not run.reasons, run.reasons
    check_series(run, 200 * MS)
    counts = {len(run.samples(flow=one["flow"], end="local")) for one in run.flows}
    assert counts == {11}, counts
    assert 5e6 < run.end["rate_bps"] < 10.2e6
    assert sum(one["bytes"] for one in run.flows) == run.end["bytes"]
    assert all(one["samples_missing"] == 0 for one in run.flows) and not any("missing" in r["text"] for r in run.end["reasons"])


def test_a_thousand_flows(narrow_pair, flow, serve, token):
    a, b = narrow_pair
    serve(b, "--token-file", token)
    narrow(b, "b0", "500mbit")
    try:
        run = flow(a, "down", b.address, "--flows", 1000, "--for", "2s", "--sample-interval", "500ms")
    finally:
        narrow(b, "b0")
    assert len(run.flows) == 1000 and not run.reasons, run.reasons
    assert all(one["error"] is None for one in run.flows)
    assert run.end["output"]["dropped"] == 0
    check_series(run, 500 * MS, missing=0.5)
    # In two seconds some clients are refused, each with a message.
    served = 1 - run.starved_ns(run.flows[0], "here", "server") / run.flows[0]["duration_ns"]
    assert sum(one["bytes"] > 0 for one in run.flows) > max(100, 500 * served)


@pytest.mark.plain_build
def test_as_fast_as_iperf3(shared_pair, flow, serve, token):
    """Alternates with the reference, so that other load on the machine affects both."""
    if not shutil.which("iperf3"):
        pytest.skip("no iperf3: `scripts/setup test` installs it")
    a, b = shared_pair
    serve(b, "--token-file", token)
    peer = b.popen(["iperf3", "--server", "--forceflush"])
    while "listening" not in peer.stdout.readline():
        assert peer.poll() is None

    def times_slower(way, *option):
        ours = max(flow(a, way, b.address, "--for", "500ms").end["rate_bps"] for _ in range(2))
        done = a.run(["iperf3", "--client", b.address, "--time", "1", "--json", *option])
        theirs = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
        print(f"{way}: ktrxer {ours / 1e9:.2f} Gbit/s, iperf3 {theirs / 1e9:.2f} Gbit/s, ratio {ours / theirs:.2f}")
        return theirs / ours

    assert least(lambda: times_slower("up"), enough=1 / 0.95) <= 1 / 0.95
    assert least(lambda: times_slower("down", "--reverse"), enough=1 / 0.95) <= 1 / 0.95


def test_marks_and_controls(shared_pair, flow, serve, token):
    a, b = shared_pair
    first, second = (controls()[0] * 2)[:2]
    serve(b, "--token-file", token)
    for host in (a, b):
        host.run(["nft", "add", "table", "inet", "marks"])
        host.run(["nft", "add", "chain", "inet", "marks", "in", "{ type filter hook input priority 0; }"])
        for name in ("cs1", "ef", "cs5"):
            host.run(["nft", "add", "rule", "inet", "marks", "in", "ip", "dscp", name, "tcp", "flags", "!=", "rst", "counter"])
    run = flow(a, "both", b.address, "--flows", 3, "--bytes", "1M", "--dscp", "BK,ef,40", "--cc", f"{first},{second}")
    assert not run.reasons, run.reasons
    assert [one["dscp"] for one in run.flows] == [8, 46, 40] * 2
    assert [one["cc"] for one in run.flows] == [first, second] * 3
    for host in (a, b):
        counted = json.loads(host.run(["nft", "-j", "list", "table", "inet", "marks"]).stdout)["nftables"]
        packets = [e["counter"]["packets"] for one in counted if "rule" in one for e in one["rule"]["expr"] if "counter" in e]
        assert len(packets) == 3 and min(packets) >= 10, packets  # data of one direction, acknowledgements of the other
        host.run(["nft", "delete", "table", "inet", "marks"])


@pytest.mark.plain_build
def test_stagger_and_rate(shared_pair, flow, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)
    run = flow(a, "up", b.address, "--flows", 3, "--stagger", "300ms", "--for", "1s", "--bitrate", "20M", "--sample-interval", "100ms")
    starts = [one["start_ns"] for one in run.flows]
    assert [start - starts[0] for start in starts] == [0, 300 * MS, 600 * MS]
    check_series(run, 100 * MS)
    for one in run.flows:
        assert 0.97 * S < one["duration_ns"] < 1.3 * S
        assert 10e6 < one["rate_bps"] < 22e6, one
        first = run.samples(flow=one["flow"], end="local")[0]["time_ns"]
        assert 0 <= first - one["start_ns"] < 100 * MS


def test_ecn_is_checked(pair, flow, serve, token):
    a, b = pair
    serve(b, "--token-file", token)
    for host in (a, b):
        host.sysctl("ipv4/tcp_ecn", 0)
    run = flow(a, "up", b.address, "--flows", 2, "--bytes", "100k", "--ecn", "off,on", "--cc", "reno")
    assert [one["ecn"] for one in run.flows] == ["off", "off"]
    assert run.status == 3 and ["flow 1 (up) has no ECN" in r for r in run.reasons] == [True]
    for host in (a, b):
        host.sysctl("ipv4/tcp_ecn", 1)
    run = flow(a, "both", b.address, "--bytes", "100k", "--ecn", "on", "--cc", "reno")
    assert [one["ecn"] for one in run.flows] == ["on", "on"] and not run.reasons, run.reasons


def test_start_together(shared_pair, ktrxer, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)

    def go(lead_ns):
        at = time.time_ns() + lead_ns
        words = ["--bytes", 1000, "--start-at", at]
        children = [a.popen([*command(ktrxer, token, way, b.address, *words), "--jsonl"]) for way in ("up", "down")]
        return at, [Run(child.communicate(timeout=30)[0], child.returncode) for child in children]

    at, runs = ahead(go, lambda made: any("--start-at" in reason for run in made[1] for reason in run.reasons))
    for run in runs:
        real = run.end["start_ns"] - run.start["clock"]["mono_ns"] + run.start["clock"]["real_ns"]
        assert abs(real - at) < MS, real - at
        assert not run.reasons, run.reasons
    late = time.time_ns() - S
    out = a.run([*command(ktrxer, token, "up", b.address, "--bytes", 1000, "--start-at", late), "--json"], check=False).stdout
    assert any("had passed" in r["text"] for r in json.loads(out)["reasons"])


def test_words_for_people(shared_pair, ktrxer, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token)
    done = a.run(command(ktrxer, token, "both", b.address, "--flows", 2, "--for", "1200ms", "--bitrate", "10M"), check=False)
    lines = done.stdout.splitlines()
    assert "2 TCP flows each way, 1200ms each" in lines[0]
    assert any(line.strip().startswith("1.0 s   up ") and "down" in line for line in lines)
    assert sum(line.split()[1:2] in (["up"], ["down"]) for line in lines if line[:4].strip().isdigit()) == 4
    assert any(line.startswith("up: ") for line in lines) and any(line.startswith("down: ") for line in lines)
    assert any(line.startswith("verdict: ") for line in lines)


# --------------------------------------------------------------------------------------------------- what is not granted


def test_one_clear_line_for_each_refusal(shared_pair, refusal, serve, token, tmp_path, ktrxer):
    a, b = shared_pair
    assert "nothing listens on TCP port 8620" in refusal(a, b.address)
    limited = ["--max-flows", 3, "--max-duration", "5s", "--max-bitrate", "100M"]
    server = serve(b, "--token-file", token, *limited)
    other = secret(tmp_path / "other", "quite another token, as long as the first")
    assert "token is not the one of that server" in refusal(a, b.address, token=other)
    assert "4 flows are more than its limit of 3" in refusal(a, b.address, "--flows", 4, "--for", "1s")
    assert "limits the duration to 5s" in refusal(a, b.address, "--for", "6s")
    assert "limits the duration to 5s" in refusal(a, b.address, "--for", "4s", "--flows", 3, "--stagger", "1s")
    assert "limit of 100.000 Mbit/s" in refusal(a, b.address, "--flows", 3, "--bitrate", "40M", "--for", "1s")
    assert "'nonesuch'" in refusal(a, b.address, "--cc", "nonesuch", "--for", "1s")
    locked = controls()[1]
    if locked:
        assert f"'{locked[0]}' is not allowed to the server" in refusal(a, b.address, "--cc", locked[0], "--for", "1s")
    assert "refuses: it does not allow DSCP 48 (--dscp-allow there)" in refusal(a, b.address, "--dscp", "CS6", "--for", "1s")
    counts = stop(server)["refused"]
    assert counts["wrong_token"] == 1 and counts["too_many_flows"] == 1 and counts["too_long"] == 2 and counts["too_fast"] == 1
    assert counts["unknown_congestion_control"] == 1 and counts["dscp_not_granted"] == 1
    # 20,000 samples a second are those of one flow at 50 us; the limit applies to all flows together.
    server = serve(b, "--token-file", token)
    assert "sampled there each 20ms at most" in refusal(a, b.address, "--flows", 1000, "--sample-interval", "1ms")
    stop(server)


def test_allowed_marks_are_beside_best_effort(shared_pair, flow, refusal, serve, token):
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--dscp-allow", "EF,CS6")
    for marks in (), ("--dscp", "EF"), ("--dscp", "CS6"):
        assert flow(a, "up", b.address, "--bytes", "1k", *marks).end["bytes"] == 1000
    assert "refuses: it does not allow DSCP 8 (--dscp-allow there)" in refusal(a, b.address, "--dscp", "CS1", "--for", "1s")
    stop(server)


def test_no_room_for_another_client(shared_pair, refusal, ktrxer, serve, token):
    a, b = shared_pair
    server = serve(b, "--token-file", token, "--max-clients", 1)
    first = a.popen([*command(ktrxer, token, "down", b.address, "--bitrate", "1M", "--for", "20s"), "--jsonl"])
    received(first, flows=1)
    assert "as many clients as it serves at once, 1 (--max-clients there)" in refusal(a, b.address)
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate(timeout=10)
    end = json.loads(out.splitlines()[-1])
    assert end["verdict"] == "degraded" and any("it was stopped: 1 of 1 flows" in r["text"] for r in end["reasons"]), end["reasons"]
    assert stop(server)["refused"]["too_many_clients"] == 1


def test_usage(shared_pair, ktrxer, token, tmp_path):
    a, b = shared_pair

    def says(*arguments):
        done = a.run([ktrxer, "flow", *map(str, arguments)], check=False)
        assert done.returncode == 2 and not done.stdout, (arguments, done.stderr)
        return done.stderr

    assert "--token-file is missing" in says("down", b.address)
    assert "sideways" in says("sideways", b.address)
    assert "--dscp: 'XX' is not a DSCP" in says("up", b.address, "--token-file", token, "--dscp", "EF,XX")
    assert "--ecn maybe" in says("up", b.address, "--token-file", token, "--ecn", "maybe")
    assert "exclude each other" in says("up", b.address, "--token-file", token, "-4", "-6")
    readable = tmp_path / "readable"
    readable.write_text("a token for all\n")
    readable.chmod(0o644)
    done = a.run(command(ktrxer, readable, "up", b.address), check=False)
    assert done.returncode == 1 and "chmod 600" in done.stderr
    done = a.run(command(ktrxer, token, "up", b.address, "--cc", "nonesuch"), check=False)
    assert done.returncode == 1 and "this kernel has no congestion control 'nonesuch'" in done.stderr


def test_the_server_makes_a_token(shared_pair, ktrxer, serve, tmp_path, monkeypatch):
    """The printed command line for clients needs only the token's file. The token is not in output that a journal stores."""
    a, b = shared_pair
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("KTRXER_TOKEN", raising=False)
    server = serve(b, "--port", 8700)
    made = tmp_path / "ktrxer-8700.token"
    line = server.listening["flow_client"].replace("HOST", b.address).replace("FILE", str(made))
    assert "--port 8700" in line and server.listening["token_file"] == str(made)
    assert made.stat().st_mode & 0o777 == 0o600 and len(made.read_text()) == 32 and made.read_text() not in json.dumps(server.listening)
    done = a.run(["sh", "-c", line.replace("ktrxer flow", f"{ktrxer} flow") + " --bytes 1000 --json"], cwd=tmp_path, check=False)
    assert json.loads(done.stdout)["bytes"] == 1000, done.stderr
    stop(server)
    # The next server on this port has the same token.
    child = b.popen([ktrxer, "serve", "--port", "8700"])
    lines = [child.stdout.readline() for _ in range(6)]
    child.terminate()
    child.communicate(timeout=10)
    assert any(str(made) in one for one in lines) and not any(made.read_text() in one for one in lines), lines


def test_the_port_is_taken(pair, ktrxer, token):
    _, b = pair
    other = b.popen(["python3", "-c", "import socket,time; s=socket.socket(); s.bind(('0.0.0.0',8620)); s.listen(); print(flush=True); time.sleep(60)"])
    other.stdout.readline()
    done = b.run([ktrxer, "serve", "--token-file", token], check=False)
    assert done.returncode == 1 and "TCP port 8620 of 0.0.0.0 is taken" in done.stderr and "ss -tlpn" in done.stderr
