#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Rules beside somebody else's XDP program, by libxdp's dispatcher. A scenario for tests/system/test_rules_beside.py and, since many a kernel
# refuses what the dispatcher is made of, for a device (tests/lab/test_beside.py). It prints `name: value` lines; beside.py judges them.
#
#     a0 10.98.0.1 ------------- b0 10.98.0.2      b0 has the other's program, and our rules
#
# Usage: beside.sh KTRXER NEIGHBOUR FOLDER
set -u
ktrxer=$1 neighbour=$2 folder=$3
a=ktxa-$$ b=ktxb-$$
mkdir -p "$folder/bpf"
mount -t bpf bpf "$folder/bpf" || exit 1
export LIBXDP_BPFFS="$folder/bpf"
ip netns add $a && ip netns add $b || exit 1
trap 'kill $(jobs -p) 2>/dev/null; ip netns del $a; ip netns del $b; umount "$folder/bpf"' EXIT
ip -n $a link add a0 type veth peer name b0 netns $b
ip -n $a addr add 10.98.0.1/24 dev a0; ip -n $a link set a0 up
ip -n $b addr add 10.98.0.2/24 dev b0; ip -n $b link set b0 up

in_b() { ip netns exec $b "$@"; }
parts() { find "$LIBXDP_BPFFS/xdp" -name "*-prog" | wc -l; }
wait_for() { # WORD FILE
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do grep -q "$1" "$2" 2>/dev/null && return; sleep 0.2; done
	echo "waited in vain for '$1' in $2: $(cat "$2")"
	exit 1
}
# Five packets to port 9; how many of them came past the rules to a tap is printed under the name $1.
five() {
	in_b "$ktrxer" recv --device b0 --backend packet --rule 'capture udp from any to any:9' --count 5 --for 1500ms --json >"$folder/tap" 2>&1 &
	tap=$!
	sleep 0.4
	ip netns exec $a "$ktrxer" send --engine packet --device a0 10.98.0.2 --count 5 --interval 1ms --no-realtime -q
	wait $tap
	echo "$1: $(sed -n 's/^ *"captured": *\([0-9]*\),.*/\1/p' "$folder/tap" | head -1)"
}
rules() { # NAME; started beside, with $recv as its number
	ip netns exec $b "$ktrxer" recv --device b0 --backend xdp --rule 'drop udp from any to any:9' --json >"$folder/$1" 2>"$folder/$1.err" &
	recv=$!
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ "$(parts)" -eq "$2" ] && return; sleep 0.2; done
	echo "$1 did not begin: $(cat "$folder/$1.err")"
	exit 1
}
# What rules.json says of a run that has ended.
told() {
	sed -n 's/^ *"\(backend\|backend_note\|dropped\|lost\)": *\(.*\)$/'"$1"'-\1: \2/p' "$folder/$1" | sed 's/,$//' |
		awk '!seen[$1]++' # the accounts of the output have a "dropped" as well
}
doctor() { in_b "$ktrxer" doctor --device b0 "$@" 2>&1 | sed -n "s/^device b0: \([0-9]* XDP program.*\)/\1/p; /^nothing was left behind/p"; }

mkfifo "$folder/in"
in_b "$neighbour" b0 <"$folder/in" >"$folder/neighbour" 2>"$folder/neighbour.err" &
exec 9>"$folder/in"
wait_for ready "$folder/neighbour"
echo "parts-alone: $(parts)"
if [ "$(parts)" -ne 1 ]; then
	echo "refused: $(grep -i libxdp "$folder/neighbour.err" | tail -1)"
	exit 0
fi

five came-before
rules together 2
five came-together
echo "seen-by-doctor: $(doctor)"
kill -TERM $recv; wait $recv
told together
echo "parts-after: $(parts)"

rules stopped 2
kill -STOP $recv; sleep 1.3
five came-stopped
kill -CONT $recv; sleep 0.3
five came-continued
kill -TERM $recv; wait $recv
told stopped

rules killed 2
echo "clean-while-alive: $(doctor --clean)"
kill -KILL $recv; wait $recv 2>/dev/null; sleep 1.1
five came-killed
echo "parts-killed: $(parts)"
echo "doctor: $(doctor)"
echo "clean: $(doctor --clean)"
echo "clean-again: $(doctor --clean)"
echo "parts-cleaned: $(parts)"

echo >&9; sleep 0.2
echo "neighbour-saw: $(tail -1 "$folder/neighbour")"
exec 9>&-
wait
echo "parts-left: $(parts)"
