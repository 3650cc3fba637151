# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shared by the tests of commands that measure between two hosts: the command in one host, another implementation of its protocol in the other."""

import contextlib


def client(ktrxer, *words, token=None):
    """A function that runs this command of ktrxer in a host, against the address `to`."""

    def go(host, to, *options, token=token, status=None, **more):
        key = ["--token-file", token] if token else []
        done = host.run([ktrxer, *words, to, *key, *map(str, options)], check=False, timeout=90, **more)
        assert status in (None, done.returncode), done.stdout + done.stderr
        return done

    return go


@contextlib.contextmanager
def servers(host, *words):
    """A function that starts a server in a host and waits until it is ready. All of them end with the context."""
    started = []

    def start(*more):
        process = host.popen([*words, *more])
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    try:
        yield start
    finally:
        for one in started:
            if one.poll() is None:
                one.kill()
            one.communicate()
