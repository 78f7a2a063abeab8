#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A long scenario under the shim under valgrind: memory errors of the shim's, in the program's
# process. No search for leaks, which would read all of the simulated GPU. valgrind.sh PROGRAM;
# SHIM, SIM_DIR and PLUGINS are in the environment.
set -u

program=$1
command -v valgrind >/dev/null || exit 77
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

script='
repeat 20 { alloc a 8192; pitch b 100 10; managed c 4096; host d 1000; hostalloc e 2000;
async f 3000 s; async g 500 ptds; free a; free b; free c; free d; free e; freeasync f s;
freeasync g ptds };
expect 2 alloc z 1000G; alloc h 0x400; info;
capture begin s; async p 4096 s; freeasync p s; capture end s; stream destroy s;
threads 4 { repeat 20 { alloc .a 8192; async .b 100; free .a; freeasync .b } }; join;
repeat 2 { fork { echo child } };
ctx create 0; alloc i 4096; alloc j 4096; host k 100; ctx destroy;
alloc l 1M; free h; free l; truth; echo done'

LD_LIBRARY_PATH=$SIM_DIR LD_PRELOAD=$SHIM CUWEIR_SIM_CAPACITY=1G CUWEIR_REPORT=1 \
	CUWEIR_POLICY="$PLUGINS/recorder.so:file=$directory/events,alloc=1K+8K,dealloc=8K+1,\
retry=2,nested=1,debug=1;/no/such.so" \
	CUWEIR_LIMT=1 CUWEIR_MAX_RETRIES=x \
	valgrind --quiet --tool=memcheck --error-exitcode=99 --leak-check=no --trace-children=no \
	"$program" linked "$(printf '%s' "$script" | tr '\n' ' ')" \
	>"$directory/out" 2>"$directory/err"
status=$?
if [ $status -ne 0 ] || ! grep -q '^done$' "$directory/out" ||
	! grep -q ' 0 allocations still live' "$directory/err"; then
	echo "status $status"
	tail -n 60 "$directory/err"
	exit 1
fi
# A test of the test: something was recorded.
[ "$(grep -c '^allocated ' "$directory/events")" -gt 100 ]
