# SPDX-License-Identifier: MIT OR Apache-2.0
"""A command that fails has a reason with an identifier in its end object (`errors` in contract/reasons.toml), so no program reads its words."""

import json

from recorded import wrong


def failed(a, ktrxer, *arguments, status=1):
    done = a.run(["env", "-u", "KTRXER_TOKEN", ktrxer, *map(str, arguments), "--json"], check=False)
    end = json.loads(done.stdout)
    assert done.returncode == status and end["verdict"] == "invalid" and not wrong([end]), (done.stdout, done.stderr)
    for one in end["reasons"]:
        assert one["error"] == one["text"] and one["text"] in done.stderr and one["severity"] == "invalid"
    return [(one["id"], one["cause"]) for one in end["reasons"]]


def test_without_a_server(pair, ktrxer, token):
    a, b = pair
    assert failed(a, ktrxer, "flow", "up", b.address, "--token-file", token) == [("refused", "far")]
    assert failed(a, ktrxer, "flow", "up", b.address, status=2) == [("token_missing", "settings")]
    assert failed(a, ktrxer, "pair", b.address, status=2) == [("token_missing", "settings")]
    assert failed(a, ktrxer, "flow", "up", "203.0.113.9", "--token-file", token) == [("unreachable", "path")]
    assert failed(a, ktrxer, "pair", b.address, "--token-file", token, "--count", 10) == [("refused", "far")]


def test_with_a_server(pair, ktrxer, serve, token, tmp_path):
    a, b = pair
    other = tmp_path / "other"
    other.write_text("a token that no server has\n")
    other.chmod(0o600)
    serve(b, "--token-file", token)
    assert failed(a, ktrxer, "flow", "up", b.address, "--token-file", other) == [("token_wrong", "settings")]
    b.run(["nft", "add", "table", "inet", "wall"])
    b.run(["nft", "add", "chain", "inet", "wall", "in", "{ type filter hook input priority 0; }"])
    b.run(["nft", "add", "rule", "inet", "wall", "in", "meta", "l4proto", "udp", "drop"])
    assert failed(a, ktrxer, "flow", "up", b.address, "--udp", "--bitrate", "1M", "--token-file", token) == [("udp_blocked_up", "path")]
