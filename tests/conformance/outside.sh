#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# P-21 and AT_SECURE: programs that the shim does not reach, and one whose settings it may not
# believe. outside.sh SECURE [STATIC]; SECURE is linked to the shim.
set -u

secure=$1 static=${2-}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

fail()
{
	echo "$1: status $status"
	cat "$directory/out" "$directory/err"
	exit 1
}

# is_silent STATUS WORD: it ended so, printed that, and nobody said anything.
is_silent()
{
	[ $status -eq "$1" ] && [ "$(cat "$directory/out")" = "$2" ] && [ ! -s "$directory/err" ]
}

# What it does, with all settings that would be seen; status, out and err are left.
run()
{
	env CUWEIR_DEBUG=1 CUWEIR_REPORT=1 CUWEIR_STRICT=1 CUWEIR_POLICY=nobody "$@" \
		>"$directory/out" 2>"$directory/err"
	status=$?
}

if [ -n "$static" ]; then
	run LD_PRELOAD="$SHIM" "$static"
	is_silent 23 outside || fail "static program"
fi

script='alloc a 8192; free a; echo done'
run "$secure" linked "$script"
if [ $status -ne 127 ] || ! grep -q '"nobody": there is no policy' "$directory/err"; then
	fail "the program that is to be secure, when it is not"
fi
run env -i "$secure" linked "$script"
is_silent 0 "done" || fail "env -i"

# Another group than the caller's makes the loader and us take care (AT_SECURE).
cp "$secure" "$directory/secure"
group=$(id -G | tr ' ' '\n' | grep -vx "$(id -g)" | head -n 1)
[ "$(id -u)" -eq 0 ] && group=65534
if [ -z "$group" ] || ! chgrp "$group" "$directory/secure" || ! chmod g+s "$directory/secure"; then
	exit 77
fi
auxv=$(LD_SHOW_AUXV=1 "$directory/secure" linked '' 2>&1 | grep -c AT_SECURE)
run "$directory/secure" linked "$script"
if [ $status -eq 127 ] && [ "$auxv" -ne 0 ]; then
	exit 77 # set-group-id programs are not honoured in this directory
fi
is_silent 0 "done" || fail "AT_SECURE"
