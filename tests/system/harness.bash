# What all system tests share: the built programs, copied to a place that an ordinary user can
# read, run as that user (root cannot be the service user: bwrap as root is no sandbox) against a
# spool of their own on a free port.
#
#	setup_file() { harness_open; start_service; }
#	teardown_file() { harness_close; }
#
# bats waits for whoever holds descriptor 3, so everything started in the background closes it.

PROTOCOL=2025-11-25
PATH=$PATH:/usr/sbin:/sbin # where web servers are, which an ordinary user may not have in it

skip_or_fail() {
	if [ "${STRICT:-}" = 1 ]; then
		echo "cannot run: $1" >&2
		return 1
	fi
	skip "$1"
}

# Runs a command as the service user with a clean environment: as_user [NAME=value...] COMMAND...
as_user() {
	local drop=()
	if [ "$(id -u)" = 0 ]; then
		drop=(setpriv --reuid="$TEST_USER" --regid="$(id -g "$TEST_USER")" --clear-groups)
	fi
	"${drop[@]}" env -i PATH="$PATH" HOME="$TEST_DIR/home" LANG=C.UTF-8 TMPDIR="$TEST_DIR/tmp" \
		"${SANITIZER_OPTIONS[@]}" "$@"
}

# As as_user, in place of this shell, so that a background job's pid is the program's own.
exec_as_user() {
	local drop=()
	if [ "$(id -u)" = 0 ]; then
		drop=(setpriv --reuid="$TEST_USER" --regid="$(id -g "$TEST_USER")" --clear-groups)
	fi
	exec "${drop[@]}" env -i PATH="$PATH" HOME="$TEST_DIR/home" LANG=C.UTF-8 \
		TMPDIR="$TEST_DIR/tmp" "${SANITIZER_OPTIONS[@]}" "$@"
}

# The program with the settings of the running service.
spoolbox() {
	as_user "${SETTINGS[@]}" "$BIN/spoolbox" "$@"
}

# What contrib/valgrind has run under memcheck, and how: a script in the place of the program, which
# then lies beside it under another name, so that it still finds its own neighbours.
WATCHED='spoolbox.fcgi spoolbox-task spoolbox-stdio'
watch_program() {
	case " $WATCHED " in
	*" $1 "*) ;;
	*) return 0 ;;
	esac
	mv "$BIN/$1" "$BIN/watched-$1" &&
		printf '#!/bin/sh\nMEMCHECK_NAME=%s exec %s/memcheck %s "$@"\n' \
			"${MEMCHECK_NAME:-program}" "$SPOOLBOX_VALGRIND" "$BIN/watched-$1" >"$BIN/$1" &&
		chmod 755 "$BIN/$1"
}

harness_open() {
	local program
	srcdir=$(cd "${srcdir:-$BATS_TEST_DIRNAME/../..}" && pwd)
	builddir=$(cd "${builddir:-$srcdir}" && pwd)
	# Where the spool of a real service would lie: /tmp may be another kind of file system.
	TEST_DIR=$(mktemp -d /var/tmp/spoolbox-test.XXXXXX)
	TEST_ID=${TEST_DIR##*/}
	TEST_USER=${SPOOLBOX_TEST_USER:-www-data}
	[ "$(id -u)" = 0 ] || TEST_USER=$(id -un)
	BIN=$TEST_DIR/bin
	SPOOL=$TEST_DIR/spool
	TOKEN=test-token-$$-$RANDOM$RANDOM$RANDOM
	MARK=$((RANDOM + 10000)) # a fraction of a second that tells our sleeps from those of others
	# A sandbox of its own has no leak report worth reading, and LeakSanitizer wants ptrace.
	SANITIZER_OPTIONS=(ASAN_OPTIONS=detect_leaks=0:abort_on_error=1
		UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1)
	chmod 755 "$TEST_DIR"
	mkdir "$BIN" "$SPOOL" "$TEST_DIR/home" "$TEST_DIR/tmp"
	for program in spoolbox spoolbox-reaper spoolbox.fcgi spoolbox-task spoolbox-stdio spoolbox-init; do
		install -m 755 "$builddir/$program" "$BIN/$program" || return 1
		[ -z "${SPOOLBOX_VALGRIND:-}" ] || watch_program "$program" || return 1
	done
	cp -rL "$builddir/python" "$BIN/python" || return 1
	chmod 700 "$SPOOL"
	chown "$TEST_USER" "$SPOOL" "$TEST_DIR/home" "$TEST_DIR/tmp" 2>/dev/null || true
	export srcdir builddir TEST_DIR TEST_ID TEST_USER BIN SPOOL TOKEN MARK
	cd "$TEST_DIR" || return 1
	if ! as_user bwrap --unshare-user --ro-bind / / true 2>/dev/null; then
		skip_or_fail "bwrap cannot make a sandbox here; run: spoolbox doctor"
	fi
}

# Stops everything and fails when a process is left behind.
harness_close() {
	stop_service
	[ -z "${BIN:-}" ] || spoolbox stop --all >/dev/null
	local left
	left=$(settled_pids)
	if [ -n "$left" ]; then
		echo "processes were left behind:" >&2
		ps -o pid,ppid,stat,args -p "${left//$'\n'/,}" >&2
		xargs kill -9 <<<"$left" 2>/dev/null
	fi
	[ "${KEEP:-}" = 1 ] || rm -rf "$TEST_DIR"
	[ -z "$left" ]
}

# A TCP port that nobody listens on.
free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 12000))
		(exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

# start_service [NAME=value...]: `spoolbox serve` with these settings on top, until it answers.
start_service() {
	for _ in 1 2 3; do
		PORT=$(free_port)
		URL=http://127.0.0.1:$PORT
		SETTINGS=(SMCP_SPOOL="$SPOOL" SMCP_TOKEN="$TOKEN" SMCP_PORT="$PORT" SMCP_WORKERS=4
			SMCP_MIN_FREE_BYTES=1m "$@")
		(exec_as_user "${SETTINGS[@]}" "$BIN/spoolbox" serve) \
			>>"$TEST_DIR/log" 2>&1 3>&- &
		SERVICE=$!
		wait_for_service && { save_state; return 0; }
	done
	cat "$TEST_DIR/log" >&2
	return 1
}

wait_for_service() {
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(curl -s -m 5 "$URL/healthz" 2>/dev/null)" ] && return 0
		kill -0 "$SERVICE" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# bats runs each test in a process of its own: what setup_file found out goes through a file.
save_state() {
	declare -p PORT URL SERVICE SETTINGS SANITIZER_OPTIONS >"$TEST_DIR/state"
}
load_state() {
	# declare inside a function would make locals
	# shellcheck source=/dev/null
	source <(sed 's/^declare -\([-aix]*\) /declare -g\1 /; s/declare -g-/declare -g/' "$TEST_DIR/state")
}

stop_service() {
	[ -f "${TEST_DIR:-/nonexistent}/state" ] && load_state
	[ -n "${SERVICE:-}" ] || return 0
	kill "$SERVICE" 2>/dev/null
	wait_gone "$SERVICE"
	SERVICE=
}

# Waits up to 10 s for the end of a process that may not be our child.
wait_gone() {
	local i
	for ((i = 0; i < 200; i++)); do
		kill -0 "$1" 2>/dev/null || return 0
		case $(ps -o stat= -p "$1") in Z*) wait "$1" 2>/dev/null || true; return 0 ;; esac
		sleep 0.05
	done
	return 1
}

# All processes that belong to this test's service: by program, directory, mounts or arguments.
our_pids() {
	local p exe cwd
	for p in /proc/[0-9]*; do
		[ "${p#/proc/}" = "$$" ] || [ "${p#/proc/}" = "$BASHPID" ] && continue
		exe=$(readlink "$p/exe" 2>/dev/null) || continue
		cwd=$(readlink "$p/cwd" 2>/dev/null)
		case "$exe:$cwd" in
		*"/$TEST_ID/"*)
			echo "${p#/proc/}"
			continue
			;;
		esac
		if grep -q "/$TEST_ID/" "$p/mountinfo" 2>/dev/null ||
			{ [ "${exe##*/}" = bwrap ] && grep -q "$TEST_ID" "$p/cmdline" 2>/dev/null; }; then
			echo "${p#/proc/}"
		fi
	done
}

# The same after up to 5 s in which they may come to their end.
settled_pids() {
	local i left
	for ((i = 0; i < 50; i++)); do
		left=$(our_pids)
		[ -z "$left" ] && return 0
		sleep 0.1
	done
	echo "$left"
}

workers() {
	local p
	for p in $(our_pids); do
		# not their parent, which is named spoolbox-pool
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" != spoolbox.fcgi ] || echo "$p"
	done
}

# Whether a worker's memory never went over 8 MiB (doc/design.md). Sanitizers and valgrind keep freed memory.
small_enough() {
	[ -n "${SPOOLBOX_VALGRIND:-}" ] || grep -q __asan_init "$BIN/spoolbox.fcgi" ||
		[ "$(awk '/VmHWM/ {print $2}' "/proc/$1/status")" -le 8192 ]
}

# sql STATEMENT: on the database of the service.
sql() {
	as_user python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=10)
for row in db.execute(sys.argv[2]): print(*row, sep="|")
db.commit()' "$SPOOL/state.db" "$1"
}

# --- MCP -----------------------------------------------------------------------------------

# post BODY [curl arguments...]: one POST to /mcp with the usual headers.
post() {
	local body=$1
	shift
	curl -sS -m 120 "$URL/mcp" -H "Authorization: Bearer $TOKEN" \
		-H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
		"$@" --data-binary "$body"
}

# rpc METHOD PARAMS: the JSON-RPC response of the legacy era.
rpc() {
	post "$(jq -cn --arg m "$1" --argjson p "${2:-{\}}" '{jsonrpc:"2.0",id:1,method:$m,params:$p}')" \
		-H "MCP-Protocol-Version: $PROTOCOL"
}

# call TOOL ARGUMENTS: prints the tool's structured result (or its error); status 1 on isError.
call() {
	local response
	response=$(jq -cn --arg t "$1" --argjson a "$2" \
		'{jsonrpc:"2.0",id:1,method:"tools/call",params:{name:$t,arguments:$a}}' |
		post @- -H "MCP-Protocol-Version: $PROTOCOL") || return 2
	if jq -e '.error' >/dev/null <<<"$response"; then
		echo "$response"
		return 3
	fi
	jq -c 'if .result.structuredContent then .result.structuredContent else .result end' <<<"$response"
	jq -e '.result.isError != true' >/dev/null <<<"$response"
}

# run_in SANDBOX COMMAND [MORE-ARGUMENTS-AS-JSON]: exec; prints the structured result.
run_in() {
	call exec "$(jq -cn --arg s "$1" --arg c "$2" --argjson more "${3:-{\}}" \
		'{sandbox:$s,command:$c} + $more')"
}

# stdout_of SANDBOX COMMAND
stdout_of() {
	run_in "$1" "$2" | jq -rj .stdout
}

# field FILTER JSON
field() {
	jq -r "$1" <<<"$2"
}

# upload_url SANDBOX DEST [MORE]; download_url SANDBOX SRC
upload_url() {
	call upload_file "$(jq -cn --arg s "$1" --arg d "$2" --argjson more "${3:-{\}}" \
		'{sandbox:$s,dest:$d} + $more')" | jq -r .url
}
download_url() {
	call download_file "$(jq -cn --arg s "$1" --arg p "$2" '{sandbox:$s,src:$p}')" | jq -r .url
}

# http_status curl-arguments...: the status alone.
http_status() {
	curl -s -o /dev/null -m 120 -w '%{http_code}' "$@"
}

# Fails with both values unless they are equal.
equal() {
	if [ "$1" != "$2" ]; then
		printf 'expected: %s\nactual:   %s\n' "$2" "$1" >&2
		return 1
	fi
}

# contains TEXT PART
contains() {
	if [[ "$1" != *"$2"* ]]; then
		printf 'missing:  %s\nin:       %s\n' "$2" "$1" >&2
		return 1
	fi
}

# Fails when the command succeeds. A plain "! command" never fails a test of bats unless it is the
# last line: errexit does not look at it.
not() {
	if "$@"; then
		echo "succeeded, but should not have: $*" >&2
		return 1
	fi
}
