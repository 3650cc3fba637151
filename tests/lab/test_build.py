# SPDX-License-Identifier: MIT OR Apache-2.0
"""The C unit tests of this build inside the devices."""

from __future__ import annotations

import pytest
from ktrxer_lab import device, places, vm
from ktrxer_lab.errors import Unavailable

DEVICES = ("pc", "phone", "router")
TOO_LONG = {"router": ("test_poisson",)}  # 16 million ciphers: minutes of emulation

UNIT_TESTS = """
for test in /usr/libexec/ktrxer/tests/*; do
    case " $LEFT_OUT " in *" ${test##*/} "*) continue ;; esac
    echo "begin ${test##*/}"
    timeout 200 "$test" 2>&1
    echo "end $?"
done
"""


def built(name: str) -> str:
    build = device.load(name).build
    if not places.program(build):
        pytest.skip(f"no build for the {name} (make lab-builds)")
    return build


@pytest.mark.slow
@pytest.mark.parametrize("name", DEVICES)
def test_c_unit_tests(name: str) -> None:
    left_out = TOO_LONG.get(name, ())
    tests = {path.name for path in vm.unit_tests(built(name))} - set(left_out)
    try:
        job = vm.Job(("sh", "-c", UNIT_TESTS), environment={"LEFT_OUT": " ".join(left_out)}, limit_s=220.0, unit_tests=True)
        answer = vm.boot(vm.Machine.named(name), job)
    except Unavailable as reason:
        pytest.skip(str(reason))
    results: dict[str, tuple[int, str]] = {}
    begun = ""
    lines: list[str] = []
    for line in answer.stdout.decode(errors="replace").splitlines():
        if line.startswith("begin "):
            begun, lines = line.removeprefix("begin "), []
        elif line.startswith("end "):
            results[begun] = (int(line.removeprefix("end ")), "\n".join(lines))
        else:
            lines.append(line)
    assert set(results) == tests != set()
    assert {test: message for test, (status, message) in results.items() if status not in (0, 77)} == {}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "test"), [(name, test) for name, tests in TOO_LONG.items() for test in tests])
def test_c_unit_test_left_out(name: str, test: str) -> None:
    pytest.skip(f"{test} takes minutes of emulation on the {name}: `make test-cross` runs it for the same machine")
