#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_oom.sh PROGRAM: alone it runs out of memory; with a policy that waits for the frees of
# its other thread and has the allocation tried again, it does not. SHIM, EXAMPLE, SIM_DIR are set.
set -u
CUWEIR_SIM_CAPACITY=1G LD_LIBRARY_PATH=$SIM_DIR
export CUWEIR_SIM_CAPACITY LD_LIBRARY_PATH
alone=$("$1") && exit 1
[ "$alone" = "oom: block 11 of 12: out of memory" ] || { echo "alone: $alone"; exit 1; }
saved=$(LD_PRELOAD=${CUWEIR_TEST_PRELOAD_FIRST:+$CUWEIR_TEST_PRELOAD_FIRST:}$SHIM \
	CUWEIR_POLICY=$EXAMPLE "$1") || { echo "with cuweir: $saved"; exit 1; }
[ "$saved" = "oom: all 12 blocks of 102 MiB were had" ] || { echo "with cuweir: $saved"; exit 1; }
