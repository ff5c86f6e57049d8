#!/bin/sh
# What the built programs are hardened with. Of the flags in configure.ac, each leaves a trace that
# readelf shows.
set -u
builddir=${builddir:-.}
n=0

# verdict NAME SUCCESS-STATUS
verdict() {
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; fi
}

# shows PROGRAM OPTION PATTERN
shows() { readelf -W "$2" "$builddir/$1" | grep -qE "$3"; }
lacks() { ! shows "$@"; }

# Sanitizers and gcov are built without _FORTIFY_SOURCE: it would hide faults from them.
is_fortified() {
	grep -qE '__asan_init|__gcov_' "$builddir/$1" || shows "$1" --dyn-syms '__[a-z]+_chk(@|$)'
}

echo 1..15
for program in spoolbox spoolbox.fcgi; do
	shows $program -h 'Type: +DYN'
	verdict "$program is loaded at a random address" $?
	shows $program -l GNU_RELRO && shows $program -d BIND_NOW
	verdict "$program has its tables of addresses read-only from the start" $?
	shows $program -l 'GNU_STACK .* RW '
	verdict "the stack of $program cannot be executed" $?
	shows $program --dyn-syms __stack_chk_fail
	verdict "$program checks its stack" $?
	is_fortified $program
	verdict "$program checks the sizes of buffers" $?
done
lacks spoolbox-init -l INTERP && lacks spoolbox-init -d NEEDED
verdict "spoolbox-init needs nothing of the machine" $?
shows spoolbox-init -h 'Type: +DYN' || grep -qx 'INIT_LINK = -static' "$builddir/Makefile"
verdict "spoolbox-init is loaded at a random address where its compiler can do that" $?
shows spoolbox-init -l 'GNU_STACK .* RW '
verdict "the stack of spoolbox-init cannot be executed" $?
shows spoolbox-init --syms __stack_chk_fail
verdict "spoolbox-init checks its stack" $?
# The patterns can fail: a program without any of it.
printf 'int main(void) { return 0; }\n' >"${TMPDIR:-/tmp}/bare-$$.c"
${CC:-cc} -no-pie -fno-stack-protector -Wl,-z,norelro,-z,lazy -o "${TMPDIR:-/tmp}/bare-$$" "${TMPDIR:-/tmp}/bare-$$.c"
builddir=${TMPDIR:-/tmp}
lacks "bare-$$" -h 'Type: +DYN' && lacks "bare-$$" -l GNU_RELRO && lacks "bare-$$" -d BIND_NOW &&
	lacks "bare-$$" --dyn-syms __stack_chk_fail && ! is_fortified "bare-$$"
verdict "a program without hardening is told apart" $?
rm -f "$builddir/bare-$$" "$builddir/bare-$$.c"
