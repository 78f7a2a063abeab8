#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_header.sh COMPILER STANDARD INCLUDE SOURCE: the header compiles alone, without a
# warning, as the strict standard; and the object defines the one symbol under its C name.
set -eu
object=$(mktemp)
trap 'rm -f "$object"' EXIT
"$1" "-std=$2" -pedantic -Wall -Wextra -Werror -fvisibility=hidden -fPIC \
	-I "$3" -c "$4" -o "$object"
symbols=$(nm -g --defined-only "$object" | awk '{ print $3 }')
if [ "$symbols" != cuweir_policy_entry ]; then
	echo "symbols of $4: '$symbols', want cuweir_policy_entry alone" >&2
	exit 1
fi
