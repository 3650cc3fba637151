# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer serve-http`: a server of the responsiveness test (http/server.py), started by its operator."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import os
import re
import secrets
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

from ktrxer import printed
from ktrxer.arguments import Parser, any_port
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, command_line, complain

EXAMPLES = """\
examples:
  ktrxer serve-http --token-file token --cert cert.pem --key key.pem --name far.example
  ktrxer serve-http --token-file token --name far --cert-out far.pem      a certificate of its own for 30 days: clients need far.pem
Only clients that have the token make this server send. Exit status: 0 stopped, 1 failed, 2 usage."""
TOKEN = re.compile(r"[!-~]{22,128}")


def parser() -> Parser:
    p = command_line("serve-http", "Serves the responsiveness test of the IETF draft: HTTP/2 over TLS.", EXAMPLES)
    p.add_argument("-p", "--port", type=any_port, default=8443, metavar="N", help="TCP port; 0: any (8443)")
    p.add_argument("--bind", metavar="ADDRESS", help="answer at this address of this host alone")
    p.add_argument("--name", metavar="HOST", help="the host's name or address in the URLs (the name of this host)")
    p.add_argument("--cert", metavar="FILE", help="certificate with its chain, PEM")
    p.add_argument("--key", metavar="FILE", help="private key, PEM")
    p.add_argument("--cert-out", type=Path, metavar="FILE", help="without --cert: write the certificate there, for the clients' --ca-file")
    p.add_argument("--token-file", type=Path, metavar="FILE", help="the token that clients need, in a file of mode 0600")
    p.add_argument("--open", action="store_true", help="answer at /.well-known/nq, without a token: any client can make this host send")
    results = p.add_mutually_exclusive_group()
    results.add_argument("--json", action="store_true", help="print the URL as a JSON object")
    results.add_argument("--jsonl", action="store_true", help="print one JSON object a line: the URL, then the counts at the end")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    return p


class ServeError(Exception):
    """One line: what failed, on what, why, what to do."""


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    if bool(given.cert) != bool(given.key) or (given.cert and given.cert_out):
        complain("serve-http", "--cert and --key go together, and --cert-out without them")
        return USAGE
    if bool(given.token_file) == given.open:
        complain("serve-http", "give a token (`(umask 077; head -c 16 /dev/urandom | base64 >token)`, then --token-file token), or --open")
        return USAGE
    try:
        return _serve(given)
    except ServeError as error:
        complain("serve-http", str(error))
        return NO_RESULT


def _serve(given: argparse.Namespace) -> int:
    from ktrxer.http import nq, server

    name = given.name or socket.getfqdn()
    with contextlib.ExitStack() as stack:
        cert, key = (given.cert, given.key) if given.cert else _certificate(name, stack)
        if given.cert_out:
            try:
                given.cert_out.write_bytes(Path(cert).read_bytes())
            except OSError as error:
                raise ServeError(f"{given.cert_out}: the certificate cannot be written: {error.strerror}") from None
        try:
            context = server.context_of(cert, key)
        except (OSError, ssl.SSLError) as error:
            raise ServeError(f"{cert}, {key}: no certificate and key: {error.strerror or error}; both are PEM files") from None
    site = server.Site("", _token(given.token_file) if given.token_file else secrets.token_urlsafe(16), given.open)

    def ready(port: int) -> None:
        host = f"[{name}]" if ":" in name else name
        site.base = f"https://{host}" + ("" if port == 443 else f":{port}")
        if given.quiet:
            return
        if given.json or given.jsonl:
            printed.show({"type": "serve_http", "url": site.base, "port": port, "open": site.open}, line=True)
            return
        print(f"listening at {site.base}: a client measures by `ktrxer check --nq {site.base}{'' if site.open else ' --token-file FILE'}`")
        if site.open or sys.stdout.isatty():  # the token is printed to a terminal only
            print(f"configuration for other programs: {site.base}{nq.WELL_KNOWN if site.open else f'{site.root}/nq'}")
        sys.stdout.flush()

    async def until_stopped() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        await server.serve(site, context, given.bind, given.port, ready)

    try:
        asyncio.run(until_stopped())
    except asyncio.CancelledError:
        if given.jsonl and not given.quiet:
            printed.show({"type": "end", "requests": site.requests, "refused": site.refused}, line=True)
    except OSError as error:
        if error.errno == errno.EACCES:
            raise ServeError(f"TCP port {given.port} needs root or CAP_NET_BIND_SERVICE, as all below 1024 do") from None
        where = f"{given.bind or 'all addresses'}, TCP port {given.port}"
        raise ServeError(f"{where}: cannot be opened: {error.strerror or error}; name another one by --port or --bind") from None
    return VALID


def _token(path: Path) -> str:
    try:
        token = path.read_text().strip()
        mode = path.stat().st_mode & 0o7777
    except (OSError, UnicodeError) as error:
        raise ServeError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if mode & 0o077:
        raise ServeError(f"{path} holds a token, and has mode {mode:04o}, so that other users may use it: `chmod 600 '{path}'`")
    if not TOKEN.fullmatch(token):
        raise ServeError(f"{path}: no token: 22 to 128 visible ASCII characters, from 128 random bits at least")
    return token


def _certificate(name: str, stack: contextlib.ExitStack) -> tuple[str, str]:
    """A certificate that no authority has signed, made by openssl. The certificate and its key are in memory until `stack` closes: a killed
    server leaves no key on the disk."""
    files = [stack.enter_context(os.fdopen(os.memfd_create(f"ktrxer-{what}"))).fileno() for what in ("certificate", "key")]
    cert, key = (f"/proc/self/fd/{number}" for number in files)
    kind = "IP" if re.fullmatch(r"[0-9.]+|.*:.*", name) else "DNS"
    if not re.fullmatch(r"[A-Za-z0-9.:_-]{1,200}", name):
        raise ServeError(f"{name[:60]!r} is no name of a host; see --name")
    words = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
        "-subj", f"/CN={name[:64]}", "-addext", f"subjectAltName={kind}:{name}", "-keyout", key, "-out", cert,
    ]  # fmt: skip
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False, pass_fds=files)
    except FileNotFoundError:
        raise ServeError("openssl is not installed (Debian: openssl), which makes a certificate; name one by --cert and --key") from None
    except subprocess.TimeoutExpired:
        raise ServeError("openssl made no certificate within 30 s; name one by --cert and --key") from None
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise ServeError(f"openssl made no certificate: {''.join(last) or f'exit status {done.returncode}'}; name one by --cert and --key")
    return cert, key
