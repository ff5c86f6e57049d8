#!/bin/sh
# The protocol has a checklist of 98 points, and each is held by a test that names it: "checklist 7, 8"
# in a comment. A file counts when something runs it: `make check` those of the lists in Makefile.am,
# contrib/check the conformance suite and the fuzzers.
set -u
srcdir=${srcdir:-.}
last=98
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT

# What does not apply to this program, and why. What remains of these points is tested all the same.
exceptions="87: nothing is registered with an authorization server: the operator hands out one token, so
	there is no metadata to point to; tested is the plain challenge, and 404 for the well-known paths
88: the one token may do everything, so no scope can be too small; tested is that none is named"

# list TREE NAME: the tests in a list of Makefile.am.
list() {
	awk -v name="$2" '
		$1 == name { inside = 1 }
		inside { for (i = 1; i <= NF; i++) if ($i ~ /^tests\//) print $i }
		inside && !/\\$/ { exit }' "$1/Makefile.am"
}

# run_files TREE: what is run there, as paths below it; with the checks that every answer goes through.
run_files() {
	list "$1" unit_tests | sed 's/$/.c/'
	list "$1" system_tests
	list "$1" mcp_tests
	grep -sq '^stage_fuzz()' "$1/contrib/check" && list "$1" fuzzers | sed 's/$/.c/'
	grep -sq '^stage_conformance()' "$1/contrib/check" && echo contrib/conformance
	echo tests/unit/endpoint_kit.h
}

# named_in TREE: "NUMBER FILE" for each point that a comment of a test names.
named_in() {
	run_files "$1" | while read -r file; do
		grep -soE 'checklist [0-9]+(, [0-9]+)*' "$1/$file" | grep -oE '[0-9]+' | sed "s#\$# $file#"
	done
}

# missing_in TREE: the points that no test names, and what is named but is no point.
missing_in() {
	named_in "$1" >"$temp/named"
	cut -d' ' -f1 "$temp/named" | sort -u >"$temp/have"
	seq "$last" | sort >"$temp/want"
	comm -13 "$temp/have" "$temp/want" | sort -n
	comm -23 "$temp/have" "$temp/want" | sed 's/$/ is no point/'
}

n=0
verdict() {
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; fi
}

echo 1..3
missing=$(missing_in "$srcdir")
echo "$missing" | sed '/./!d; s/^/# no test names point: /'
[ -z "$missing" ]
verdict "each of the $last points is named by a test that is run" $?

printf '%s\n' "$exceptions" | grep -E '^[0-9]+: ' | cut -d: -f1 >"$temp/excepted"
[ "$(wc -l <"$temp/excepted")" -eq 2 ] && grep -q 'checklist 87, 88: what is left' "$srcdir/tests/system/protocol.bats"
verdict "what does not apply is listed with its reason, and what is left of it is tested" $?

# The check itself can fail: one point less, and a file that nothing runs.
bad=$temp/bad
mkdir -p "$bad/tests/unit" "$bad/contrib"
printf 'unit_tests = tests/unit/a_test \\\n\ttests/unit/b_test\n' >"$bad/Makefile.am"
printf '/* checklist %s */\n' "$(seq -s ', ' 96)" >"$bad/tests/unit/b_test.c"
echo '/* checklist 97 */' >"$bad/tests/unit/unused_test.c"
echo '/* checklist 98, 99 */' >"$bad/tests/unit/a_test.c"
[ "$(missing_in "$bad" | tr '\n' ' ')" = '97 99 is no point ' ]
verdict "a point without a test, and a test without a point, is found" $?
