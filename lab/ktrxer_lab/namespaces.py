# SPDX-License-Identifier: MIT OR Apache-2.0
"""Shell commands that create network namespaces as hosts. `wiring.py` uses them for topologies, `hosts.py` for tests and benches.

The commands need only `ip`, `tc`, `ethtool` and a POSIX shell. A script ends at the first feature that the kernel lacks, with one line that
names the feature.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

PRELUDE = """\
set -eu
fail() { echo "topology: $*" >&2; exit 1; }
lack() { fail "this kernel has no $*${KTRXER_LAB_REMEDY:+; $KTRXER_LAB_REMEDY}"; }
# step WHAT COMMAND...: on failure print one line, with the first line of the command's output
step() {
	what=$1; shift
	said=$("$@" 2>&1) && return
	said=$(printf '%s\\n' "$said" | sed -n '1s/^Error: //;1s/[.]$//;1p')
	case $said in
	*"Unknown device type"*) lack "device of the kind that $what needs" ;;
	*"kind is unknown"* | *"Unknown qdisc"*) lack "$what" ;;
	*) fail "$what: $said" ;;
	esac
}
# try NODE WHAT QUEUE...: on a node's idle lo, so that a missing feature is reported before anything is created
try() {
	node=$1 label=$2; shift 2
	step "$label" tc -n "$node" qdisc replace dev lo root "$@"
	tc -n "$node" qdisc del dev lo root
}
tune() {
	node=$1; shift
	ip netns exec "$node" sh -c 'for each in "$@"; do
		file=/proc/sys/net/${each%%=*}; [ ! -e "$file" ] || echo "${each#*=}" >"$file"; done' sh "$@"
}
# no packets larger than those on the wire
bare() { step "ethtool -K $2" ip netns exec "$1" ethtool -K "$2" tso off gso off gro off; }
[ -e /proc/sys/net/ipv6 ] && v6=1 || v6=0
"""
# Settings of a node: it sends no packets of its own, its addresses are valid at once, it answers on the link of the request, and each TCP
# connection begins as the first one: a kernel keeps round trips and windows of a former connection to the same host.
QUIET = (
    "ipv4/conf/all/rp_filter=0",
    "ipv4/conf/default/rp_filter=0",
    "ipv4/tcp_no_metrics_save=1",
    "ipv6/conf/all/accept_dad=0",
    "ipv6/conf/all/router_solicitations=0",
    "ipv6/conf/default/accept_dad=0",
    "ipv6/conf/default/router_solicitations=0",
)


def script(lines: Iterable[str]) -> str:
    return PRELUDE + "\n".join(lines) + "\n"


def host(name: str) -> str:
    return f"step 'network namespaces' ip netns add {name}"


def settle(name: str, *settings: str) -> Iterator[str]:
    """Settings of a host with IPv6, independent of the settings of the machine."""
    yield f"ip -n {name} link set lo up"
    yield f"tune {name} ipv6/conf/all/disable_ipv6=0 ipv6/conf/default/disable_ipv6=0 {' '.join((*settings, *QUIET))}"


def cable(what: str, a: tuple[str, str], b: tuple[str, str]) -> str:
    """A veth pair between two hosts, each given as namespace and device."""
    return f"step {shlex.quote(what)} ip link add name {a[1]} netns {a[0]} type veth peer name {b[1]} netns {b[0]}"


def batch(what: str, node: str, lines: Iterable[str]) -> Iterator[str]:
    """Commands of `ip` in a host."""
    yield f"step {shlex.quote(what)} ip -n {node} -batch - <<'END'"
    yield from lines
    yield "END"


def batch6(what: str, node: str, lines: Iterable[str]) -> Iterator[str]:
    """The same, only if the kernel has IPv6."""
    yield "if [ $v6 = 1 ]; then"
    yield from batch(what, node, lines)
    yield "fi"
