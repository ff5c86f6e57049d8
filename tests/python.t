#!/bin/sh
# The driver of execute_python (src/python) without a sandbox; see tests/python/tap.py.
srcdir=${srcdir:-.}
if [ ! -x /usr/bin/python3 ]; then
	echo 1..1
	if [ "${STRICT:-}" = 1 ]; then echo "not ok 1 - /usr/bin/python3 is missing"; else
		echo "ok 1 # SKIP /usr/bin/python3 is missing"
	fi
	exit 0
fi
exec /usr/bin/python3 -B "$srcdir/tests/python/tap.py"
