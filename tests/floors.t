#!/bin/sh
# The floors: a file of the library includes only headers that Makefile.am lists above it, or its
# own. The order of the lists is the order of the floors, so there can be no cycle. Programs stand
# on top; src/init shares one header with the rest.
set -u
srcdir=${srcdir:-.}
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT

# Prints one line for each violation in the tree $1.
violations() {
	(cd "$1" && awk '
	# The files of all source lists of the library, in order; continued lines are joined.
	/^(nodist_)?lib[a-z]+_a_SOURCES *=/ { in_list = 1; sub(/^[^=]*=/, "") }
	in_list {
		more = /\\$/
		sub(/\\$/, "")
		for (i = 1; i <= NF; i++)
			if ($i ~ /\.[ch]$/ && !($i in place)) {
				place[$i] = ++count
				file[count] = $i
			}
		in_list = more
	}
	function includes(path, line, names, n) {
		n = 0
		while ((getline line < path) > 0)
			if (line ~ /^[ \t]*#[ \t]*include[ \t]*"/) {
				split(line, names, "\"")
				found[++n] = names[2]
			}
		close(path)
		return n
	}
	function own_header(path) {
		sub(/\.c$/, ".h", path)
		return path
	}
	END {
		if (count == 0)
			print "no source list was found in Makefile.am"
		for (f = 1; f <= count; f++) {
			n = includes(file[f])
			for (i = 1; i <= n; i++) {
				header = "src/" found[i]
				if (!(header in place))
					print file[f] " includes " found[i] ", which is in no source list"
				else if (place[header] > f && header != own_header(file[f]))
					print file[f] " includes " found[i] " of a higher floor"
			}
		}
		while ("ls src/init/*.[ch] 2>/dev/null" | getline path) {
			n = includes(path)
			for (i = 1; i <= n; i++)
				if (found[i] != "run/wire.h" && found[i] !~ /^(init\/)?[a-z_]+\.h$/)
					print path " includes " found[i] "; it may share run/wire.h only"
		}
		while ("ls src/base/*.[ch] src/store/*.[ch] src/run/*.[ch] src/box/*.[ch] src/mcp/*.[ch] src/stdio/*.[ch] src/web/*.[ch] 2>/dev/null" | getline path)
			if (!(path in place) && path != "src/store/schema.c")
				print path " is in no source list"
	}' Makefile.am)
}

n=0
# verdict NAME SUCCESS-STATUS
verdict() {
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; fi
}

echo 1..5
violations "$srcdir" >"$temp/found"
sed 's/^/# /' "$temp/found"
[ ! -s "$temp/found" ]
verdict "each file includes only what stands below it" $?

# The check itself can fail: a bad tree of four files.
bad=$temp/bad
mkdir -p "$bad/src/base" "$bad/src/run" "$bad/src/init"
cat >"$bad/Makefile.am" <<'EOF'
libbase_a_SOURCES = \
	src/base/low.h src/base/low.c
librun_a_SOURCES = src/run/high.h src/run/high.c
EOF
printf '#include "run/high.h"\n' >"$bad/src/base/low.c"
printf '#include <stdio.h>\n' >"$bad/src/base/low.h"
printf '#include "run/high.h"\n#include "base/low.h"\n' >"$bad/src/run/high.c"
: >"$bad/src/run/high.h"
: >"$bad/src/run/stray.c"
printf '#include "init.h"\n#include "run/wire.h"\n#include "base/low.h"\n' >"$bad/src/init/main.c"
violations "$bad" >"$temp/found"
grep -q '^src/base/low.c includes run/high.h of a higher floor$' "$temp/found"
verdict "an include from below of a header above is found" $?
grep -q '^src/init/main.c includes base/low.h' "$temp/found"
verdict "an include of the library from src/init is found" $?
grep -q '^src/run/stray.c is in no source list$' "$temp/found"
verdict "a file that no list names is found" $?
[ "$(wc -l <"$temp/found")" -eq 3 ]
verdict "and nothing else is found in that tree" $?
