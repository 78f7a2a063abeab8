#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh LEAST PROGRAM [RUNTIME]: what a CUDA runtime is given when it looks up the driver,
# with and without libcuweir.so; see compare.c. The rest comes in the environment.
set -u
least=$1 program=$2 runtime=${3:-}
if [ ! -e "$program" ] || { [ -n "$runtime" ] && [ ! -e "$runtime" ]; }; then
	echo "not there: $program $runtime"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=${CUWEIR_TEST_PRELOAD_FIRST:+$CUWEIR_TEST_PRELOAD_FIRST:}

OBSERVER=$work/bare LD_PRELOAD=$first$OBSERVER_LIBRARY \
	"$program" ${runtime:+"$runtime"} || exit 1
OBSERVER=$work/hooked OBSERVER_BEHIND=$SHIM LD_PRELOAD=$first$OBSERVER_LIBRARY:$SHIM \
	"$program" ${runtime:+"$runtime"} || exit 1
"$COMPARE" "$work/bare" "$work/hooked" "$least"
