#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_exports.sh WANT MODULE...: each module exports WANT and nothing else.
set -eu
want=$1
shift
status=0
for module in "$@"; do
	symbols=$(nm -D --defined-only "$module" | awk '{ print $3 }')
	if [ "$symbols" != "$want" ]; then
		echo "$module exports '$symbols', want '$want'" >&2
		status=1
	fi
done
exit $status
