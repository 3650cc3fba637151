# SPDX-License-Identifier: MIT OR Apache-2.0
"""The responsiveness test against servers that are not as the draft says: each is named, before the load where that is possible."""

import asyncio
import contextlib
import ssl

import pytest

pytest.importorskip("h2", reason="the Python package h2 is not installed (python/requirements.txt)")

from ktrxer.commands import serve_http
from ktrxer.http import client, nq, rpm, server

pytestmark = pytest.mark.slow

S = 10**9
TOKEN = "0123456789abcdefghijklmn"


def against_odd_server(monkeypatch, answers, way, length_ns=0):
    """The client in a process with our server, whose `answers` (by object: method of its connections, stream) replace its own. The reasons."""
    class Odd(server.Peer):
        def _request(self, stream, headers, whole):
            kind = self.site.kind(headers[":path"])
            if kind in answers:
                answers[kind](self, stream)
            else:
                super()._request(stream, headers, whole)

    async def both():
        site, listening = server.Site("https://127.0.0.1", TOKEN), asyncio.get_running_loop().create_future()

        def ready(port):
            site.base += f":{port}"
            listening.set_result(None)

        with contextlib.ExitStack() as stack:
            cert, key = serve_http._certificate("127.0.0.1", stack)
            context = server.context_of(cert, key)
            trusting = ssl.create_default_context(cafile=cert)
        trusting.set_alpn_protocols(["h2"])
        serving = asyncio.create_task(server.serve(site, context, "127.0.0.1", 0, ready))
        try:
            await listening
            config = await rpm.configured(site.base, TOKEN, trusting, 0)
            target = client.target_of(config.small)
            address, ramp = await rpm.looked_up(target.connect, target.port, 0), rpm.Ramp(rpm.Parameters(id_ns=S))
            made = rpm.Test(way, config, target, address, trusting, lambda _: None, ramp=ramp)
            if length_ns:
                await made.run(length_ns)
                return [one.text for one in made.reasons]
            await rpm.tried(made)
            return []
        except client.NqError as error:
            return [str(error)]
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    monkeypatch.setattr(server, "Peer", Odd)
    return asyncio.run(both())


def answer(status, size=0, **more):
    fields = {name: str(value) for name, value in more.items()}
    return lambda peer, stream: peer._answer(stream, status, size, fields, follows=size > 0)


@pytest.mark.parametrize(("answers", "way", "complaint"), [
    ({}, "up", None), ({}, "down", None), ({"upload": answer(405)}, "down", None),
    ({"upload": answer(405)}, "up", "the upload with status 405: it takes no uploads at the URL"),
    ({"upload": lambda peer, stream: peer.uploads.add(stream)}, "up", None),
    ({"upload": answer(413)}, "up", "the upload with status 413: it takes no body of 100 MB"),
    ({"large": answer(302, location="https://other/large")}, "down", "the download with status 302: it redirects"),
    ({"large": answer(204)}, "down", "the download with status 204"), ({"small": answer(503)}, "down", "a probe with status 503"),
    ({"nq": answer(302, location="https://other.example/secret")}, "down", "redirects to https://other.example: name the configuration there"),
    ({"nq": answer(302, location="there")}, "down", "redirects to https://127.0.0.1:"),
    ({"nq": answer(200, nq.LARGE_BYTES)}, "down", "the configuration has more than 65536 bytes"),
])
def test_a_server_that_is_not_as_the_draft_says_is_found_before_the_load(monkeypatch, answers, way, complaint):
    reasons = against_odd_server(monkeypatch, answers, way)
    assert bool(reasons) == bool(complaint) and (not complaint or complaint in reasons[0]) and "secret" not in str(reasons), reasons


def test_a_server_without_http_2():
    with contextlib.ExitStack() as stack:
        cert, key = serve_http._certificate("127.0.0.1", stack)
        context, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=cert)
        context.load_cert_chain(cert, key)
    trusting.set_alpn_protocols(["h2"])

    async def refused(protocols):
        context.set_alpn_protocols(protocols)
        far = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
        try:
            with pytest.raises(client.NqError, match=r"the server has no HTTP/2 \(ALPN\)"):
                await rpm.configured(f"https://127.0.0.1:{far.sockets[0].getsockname()[1]}/nq", "", trusting, 0)
        finally:
            far.close()

    asyncio.run(refused(["http/1.1"]))
    assert client.text_of(ssl.SSLError(1, "[SSL] tlsv1 alert no application protocol (_ssl.c:1006)")) == client.NO_HTTP_2, "OpenSSL of nginx and Go sends it"


@pytest.mark.parametrize(("status", "complaint"), [(200, "answers an upload before its end: it does not take the body"), (405, "with status 405")])
def test_an_upload_that_is_answered_at_once(monkeypatch, status, complaint):
    """nginx answers like that where nothing reads the body: the load would be requests without bodies."""
    (reason,) = against_odd_server(monkeypatch, {"upload": answer(status)}, "up", 3 * S)
    assert "a connection of the load ended" in reason and complaint in reason


def test_bodies_of_an_upload_follow_each_other(monkeypatch):
    """Servers limit the size of a body. The next one begins before the last one's answer."""
    monkeypatch.setattr(client, "UPLOAD_BYTES", 200_000)
    begun = []

    def counted(peer, stream):
        begun.append(stream)
        peer.uploads.add(stream)

    assert against_odd_server(monkeypatch, {"upload": counted}, "up", 2 * S) == [] and len(begun) > 3
