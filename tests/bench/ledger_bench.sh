#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ledger's figures in instructions: ledger_bench.sh PROGRAM [LIVE...]
#
# A pair is the difference of two run lengths under callgrind, so that start and fill cancel.
# The worst insert: callgrind writes one profile for each call of insert_locked, which is all of
# an insert that grows (were it to split twice, too) but the 250 instructions before it.
# Fails when a pair at one number of live records is more than 10% above that at 10 live, or
# a growing insert is above 20,000 instructions.
set -eu

bench=$1
shift
lives=${*:-10 1000 100000 1000000}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

# instructions ARGUMENTS...
instructions() {
	valgrind --tool=callgrind --callgrind-out-file="$tmp/out" "$bench" "$@" \
		>"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	sed -n 's/^summary: //p; s/^totals: //p' "$tmp/out" | tail -n 1
}

for how in same turnover; do
	base=
	for live in $lives; do
		short=$(instructions "$how" "$live" 20000)
		long=$(instructions "$how" "$live" 120000)
		pair=$(( (long - short) * 10 / 100000 ))
		base=${base:-$pair}
		echo "$how, $live live: $((pair / 10)).$((pair % 10)) instructions a pair"
		if [ $((pair * 10)) -gt $((base * 11)) ]; then
			echo "more than 10% above that of the first" >&2
			status=1
		fi
	done
done

valgrind --tool=callgrind --toggle-collect=insert_locked --dump-after=insert_locked \
	--callgrind-out-file="$tmp/grow" "$bench" grow 1000000 >"$tmp/log" 2>&1
worst=$(cat "$tmp"/grow* | sed -n 's/^summary: //p; s/^totals: //p' | sort -n | tail -n 1)
growths=$(find "$tmp" -name 'grow.*' | wc -l)
worst=$((worst + 250))
echo "worst of $growths growing inserts up to 1 million: $worst instructions"
if [ "$worst" -gt 20000 ]; then
	status=1
fi
exit $status
