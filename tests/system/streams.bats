#!/usr/bin/env bats
# What web servers do to calls that last: streams as they come, clients that go, workers that are all
# busy; and what is left of a worker after some hundred of these. "checklist N" names the point of
# the protocol's checklist that a test stands for.

load harness
load servers
load tasks

# More calls find more: SOAK_CALLS=5000 make check
CALLS=${SOAK_CALLS:-400}

setup_file() { harness_open && servers_open && disown -a; }
teardown_file() { harness_close; }
setup() { servers_setup; }
teardown() { stop_server; }

# start_server NAME WORKERS [more lines of its configuration]
start_server() {
	"need_$1"
	adapt "$1/minimal.conf" >"$TEST_DIR/server.conf"
	if [ "$1" = lighttpd ]; then
		sed -i "s/\(-procs\" *=>\) 8/\1 $2/" "$TEST_DIR/server.conf"
	else
		# it hands its own environment to no worker, and starts one a second at most as it needs them
		TOKEN=$(as_user SMCP_SPOOL="$SPOOL" "$BIN/spoolbox" token)
		echo "FcgidMaxProcessesPerClass $2" >>"$TEST_DIR/server.conf"
		echo 'FcgidInitialEnv SMCP_MIN_FREE_BYTES 1m' >>"$TEST_DIR/server.conf"
	fi
	echo "${3:-}" >>"$TEST_DIR/server.conf"
	case $1 in
	lighttpd) serve_with lighttpd -D -f "$TEST_DIR/server.conf" ;;
	apache) serve_with apache2 -f "$TEST_DIR/server.conf" -D FOREGROUND ;;
	esac
}

# modern_exec COMMAND [curl arguments]: exec in the sandbox "s", with progress.
modern_exec() {
	local command=$1
	shift
	modern tools/call "$(jq -cn --arg c "$command" \
		'{name:"exec",arguments:{sandbox:"s",command:$c},_meta:{progressToken:"p"}}')" exec '{}' -N "$@"
}

legacy_exec() {
	local command=$1
	shift
	post "$(jq -cn --arg c "$command" \
		'{jsonrpc:"2.0",id:1,method:"tools/call",params:{name:"exec",arguments:{sandbox:"s",command:$c}}}')" \
		-H "MCP-Protocol-Version: $PROTOCOL" "$@"
}

# Puts the time in milliseconds before each line.
stamp() {
	local line
	while IFS= read -r line; do echo "$(date +%s%3N) $line"; done
}

# --- streams ---------------------------------------------------------------------------------

# The first event is there long before the last, which comes when the command ends.
streams() {
	legacy_exec true >/dev/null # the sandbox runs
	modern_exec 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done' -D "$TEST_DIR/fields" | stamp >"$TEST_DIR/events"
	local first last
	first=$(awk '/ data: .*notifications\/progress/ {print $1; exit}' "$TEST_DIR/events")
	last=$(awk '/ data: .*"result"/ {print $1}' "$TEST_DIR/events")
	[ "$((last - first))" -ge 1000 ]
	contains "$(tr -d '\r' <"$TEST_DIR/fields" | tr '[:upper:]' '[:lower:]')" 'content-type: text/event-stream'
	contains "$(tr '[:upper:]' '[:lower:]' <"$TEST_DIR/fields")" 'cache-control: no-cache'
	contains "$(tr '[:upper:]' '[:lower:]' <"$TEST_DIR/fields")" 'x-accel-buffering: no'
	equal "$(grep -c '"result"' "$TEST_DIR/events")" 1
	not grep -q progress <<<"$(sed '1,/"result"/d' "$TEST_DIR/events")"
}

# A client of the modern era that goes takes its command along, one that waits in silence within two
# heartbeats (10 s; at the first the server notices, at the second the worker); one of the handshake
# era does not, and what it asked for is done.
disconnects() {
	local mark="34[0].$MARK" began
	modern_exec "sleep 340.$MARK" -m 2 >/dev/null 2>&1 3>&- || true &
	modern tools/call "$(jq -cn --arg c "setsid sleep 341.$MARK & sleep 341.$MARK" \
		'{name:"exec",arguments:{sandbox:"s",command:$c}}')" exec '{}' -m 2 >/dev/null 2>&1 3>&- || true &
	legacy_exec 'sleep 4; echo done >kept' -m 2 >/dev/null 2>&1 3>&- || true &
	appears "sleep $mark"
	appears "sleep 34[1].$MARK" 2
	sleep 2
	began=$SECONDS
	gone "sleep $mark" 12
	gone "sleep 34[1].$MARK" 24
	[ $((SECONDS - began)) -le 24 ]
	equal "$(stdout_of s 'cat kept')" done
}

# checklist 65
@test "lighttpd: events come while the handler runs" {
	start_server lighttpd 4
	streams
}

# checklist 65
@test "Apache: events come while the handler runs" {
	start_server apache 4
	streams
}

# checklist 66, 67
@test "lighttpd: who goes ends a modern call, and no legacy one" {
	start_server lighttpd 6
	disconnects
}

# checklist 66, 67
@test "Apache: who goes ends a modern call, and no legacy one" {
	start_server apache 6
	disconnects
}

# --- all workers busy ------------------------------------------------------------------------

# With both workers in streams of $1 s, further calls are answered, at the latest when these are
# over: 200, or 503 with Retry-After.
busy() {
	local i began=$SECONDS status pids=
	legacy_exec true >/dev/null
	for i in 1 2; do
		modern_exec "sleep $1; echo busy" >"$TEST_DIR/busy.$i" 2>&1 3>&- &
		pids="$pids $!"
	done
	appears "sleep $1" 2
	for i in 1 2 3 4; do
		post '{"jsonrpc":"2.0","id":1,"method":"ping"}' -m 20 -D "$TEST_DIR/ping.$i" -o /dev/null 2>/dev/null 3>&- &
		pids="$pids $!"
	done
	wait $pids
	[ $((SECONDS - began)) -le 15 ]
	for i in 1 2; do
		contains "$(cat "$TEST_DIR/busy.$i")" '"stdout":"busy\n"'
	done
	for i in 1 2 3 4; do
		status=$(awk 'NR == 1 {print $2}' "$TEST_DIR/ping.$i")
		[ "$status" = 200 ] || { [ "$status" = 503 ] && grep -qi '^retry-after:' "$TEST_DIR/ping.$i"; }
	done
}

# checklist 72
@test "lighttpd: with all workers busy the next call waits its turn" {
	start_server lighttpd 2
	busy "4.$MARK"
}

# checklist 72
@test "Apache: with all workers busy the next call waits its turn" {
	start_server apache 2
	busy "4.$MARK"
}

# checklist 72
@test "spoolbox serve: with all workers busy the next call waits its turn" {
	start_service SMCP_WORKERS=2
	busy "4.$MARK"
	stop_service
}

# --- authorization ---------------------------------------------------------------------------

# checklist 89
@test "Apache without CGIPassAuth: a clean 401 that says what is missing; with it calls work" {
	local body='{"jsonrpc":"2.0","id":1,"method":"ping"}'
	start_server apache 2
	equal "$(post "$body" | jq -c .result)" '{}'
	stop_server
	SERVER=
	start_server apache 2 '<Directory ${PROGRAM_DIR}>
		CGIPassAuth Off
	</Directory>'
	run post "$body" -i
	contains "${lines[0]}" ' 401'
	contains "${output,,}" 'www-authenticate: bearer'
	contains "$output" 'CGIPassAuth On'
	not grep -qF "$TOKEN" <<<"$output"
}

# --- soak ------------------------------------------------------------------------------------

# Anonymous memory of a worker in KiB: what it made itself, without what it shares.
memory_of() {
	awk '/^RssAnon:/ {print $2}' "/proc/$1/status"
}

# "PID DESCRIPTORS MEMORY" of each worker.
weigh() {
	local p
	for p in $(workers | sort -n); do
		echo "$p $(ls "/proc/$p/fd" | wc -l) $(memory_of "$p")"
	done
}

# grown BEFORE AFTER: the workers that have more descriptors, or a MiB more memory, than before.
grown() {
	local spare=1024
	grep -q __asan_init "$BIN/spoolbox.fcgi" && spare=1000000 # sanitizers keep freed memory
	paste -d' ' <(echo "$1") <(echo "$2") | awk -v spare=$spare '$1 != $4 || $5 > $2 || $6 > $3 + spare'
}

# soak COUNT: that many calls, most of whose clients go; prints how many were answered and how many left.
soak() {
	python3 "$srcdir/tests/system/soak.py" "$URL/mcp" "$TOKEN" s "$1"
}

# Nobody is in a transaction: one that writes begins at once, and the log can be put away whole.
database_is_free() {
	as_user python3 -c '
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
db.execute("ROLLBACK")
busy, log, moved = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
sys.exit(f"busy {busy}, {log} pages, {moved} moved" if busy else 0)' "$SPOOL/state.db"
}

# Waits until nothing runs any more: the commands take a second, and tasks have supervisors.
settle_calls() {
	sleep 1
	no_supervisor
}

# checklist 98
@test "soak: after $CALLS calls with clients that go, workers are as before and nothing is locked" {
	local before after answered left i began=$SECONDS
	start_server lighttpd 4
	run_in s 'head -c 1000000 /dev/urandom >big' >/dev/null
	soak 96 # each worker has done everything
	settle_calls
	before=$(weigh)
	read -r answered left < <(soak "$CALLS")
	settle_calls
	after=$(weigh)
	echo "# $answered calls were answered, $left were left, in $((SECONDS - began)) s" >&3
	# of each kind enough: two thirds of the clients mean to go, and some are answered before
	[ "$answered" -ge $((CALLS / 5)) ]
	[ "$left" -ge $((CALLS / 5)) ]
	# none has ended and been replaced
	equal "$(cut -d' ' -f1 <<<"$after" | xargs)" "$(cut -d' ' -f1 <<<"$before" | xargs)"
	equal "$(wc -l <<<"$after")" 8
	for ((i = 0; i < 8; i++)); do # what a call of a client that went holds is given back in a moment
		[ -n "$(grown "$before" "$after")" ] || break
		sleep 0.5
		after=$(weigh)
	done
	equal "$(grown "$before" "$after")" ''
	database_is_free
	equal "$(stdout_of s 'echo on')" on
}
