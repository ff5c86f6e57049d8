#!/usr/bin/env bats
# MCP over standard input and output: both eras by raw lines, what goes and what stays at the end of
# a session, and its end in each way that there is.

load harness
load tasks

setup_file() {
	harness_open
	start_service
}
teardown_file() {
	harness_close
}
setup() {
	load_state
}
teardown() {
	[ -z "${TO:-}" ] || exec {TO}>&-
	[ -z "${SESSION:-}" ] || kill -9 "$SESSION" 2>/dev/null || true
	[ -z "${KEPT:-}" ] || call kill_sandbox "{\"sandbox\":\"$KEPT\"}" >/dev/null
}

INITIALIZE='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}'
MODERN='{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

# tool ID NAME ARGUMENTS [META]: a line that calls it.
tool() {
	jq -cn --argjson i "$1" --arg n "$2" --argjson a "$3" --argjson m "${4:-null}" \
		'{jsonrpc:"2.0",id:$i,method:"tools/call",params:({name:$n,arguments:$a} +
			if $m then {_meta:$m} else {} end)}'
}

# talk LINE...: a whole session; its output. Fails when anything on it is no message.
talk() {
	local out
	out=$(printf '%s\n' "$@" | spoolbox stdio 2>>"$TEST_DIR/stdio.log" 3>&-) || return 1
	jq -es 'all(.[]; .jsonrpc == "2.0")' >/dev/null <<<"$out" || { echo "no message: $out" >&2; return 1; }
	echo "$out"
}

# of ID OUTPUT: the result of one request, a tool's as its structured part.
of() {
	jq -c --argjson i "$1" 'select(.id == $i) | .result.structuredContent // .result // .error' <<<"$2"
}

# open_session: one to be talked to by say and hear.
open_session() {
	mkfifo "$TEST_DIR/in.$BATS_TEST_NUMBER" "$TEST_DIR/out.$BATS_TEST_NUMBER"
	(exec_as_user "${SETTINGS[@]}" "$BIN/spoolbox" stdio) <"$TEST_DIR/in.$BATS_TEST_NUMBER" \
		>"$TEST_DIR/out.$BATS_TEST_NUMBER" 2>>"$TEST_DIR/stdio.log" 3>&- &
	SESSION=$!
	exec {TO}>"$TEST_DIR/in.$BATS_TEST_NUMBER" {FROM}<"$TEST_DIR/out.$BATS_TEST_NUMBER"
	say "$INITIALIZE"
	hear >/dev/null
}
say() {
	printf '%s\n' "$@" >&"$TO"
}
hear() {
	local line
	IFS= read -r -t 20 -u "$FROM" line && echo "$line"
}
close_session() {
	exec {TO}>&-
	TO=
	wait_gone "$SESSION"
}

# The live sandboxes' ids, one a line.
live() {
	call list_sandboxes '{}' | jq -r '.sandboxes[] | select(.status != "kept") | .sandbox_id'
}
# Fails unless a sandbox and its files are gone.
removed() {
	[ "$(live | grep -c "$1")" -eq 0 ] && [ ! -e "$SPOOL/data/$1" ] && [ ! -e "$SPOOL/run/$1" ]
}

@test "the handshake era: initialize, list, call" {
	out=$(talk "$INITIALIZE" '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' \
		"$(tool 2 exec '{"sandbox":"raw","command":"echo out; exit 3"}')")
	equal "$(wc -l <<<"$out")" 3
	equal "$(of 0 "$out" | jq -r .protocolVersion)" 2025-11-25
	of 1 "$out" | jq -e '.tools | length > 10'
	equal "$(of 2 "$out" | jq -c '[.stdout,.exit_code]')" '["out\n",3]'
}

@test "the modern era: every request by itself, without a header" {
	out=$(talk "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{\"_meta\":$MODERN}}" \
		"$(tool 2 exec '{"sandbox":"raw","command":"echo out"}' "$MODERN")")
	equal "$(of 1 "$out" | jq -r '.supportedVersions[0]')" 2026-07-28
	equal "$(jq -r 'select(.id == 2) | .result.resultType' <<<"$out")" complete
	equal "$(of 2 "$out" | jq -r .stdout)" out
}

@test "garbage is answered by an error without an id, and the next line is served" {
	out=$(talk 'garbage' "$INITIALIZE" "$(tool 1 list_sandboxes '{}')")
	equal "$(head -1 <<<"$out" | jq -c '[has("id"), .error.code]')" '[false,-32700]'
	of 1 "$out" | jq -e .count
}

@test "a line may have SMCP_MAX_BODY_BYTES, and one that has more costs nothing but an error" {
	SETTINGS+=(SMCP_MAX_BODY_BYTES=2m)
	head -c 1000000 /dev/zero | tr '\0' x >"$TEST_DIR/million"
	jq -cn --rawfile c "$TEST_DIR/million" \
		'{jsonrpc:"2.0",id:1,method:"tools/call",params:{name:"write_text",arguments:{sandbox:"raw",path:"m",content:$c}}}' \
		>"$TEST_DIR/lines"
	(
		head -c 3000000 /dev/zero | tr '\0' y
		echo
		tool 2 list_sandboxes '{}'
	) >>"$TEST_DIR/lines"
	out=$(talk "$INITIALIZE" "$(cat "$TEST_DIR/lines")")
	equal "$(of 1 "$out" | jq -r .size)" 1000000
	contains "$(jq -r 'select(has("id") | not) | .error.message' <<<"$out")" 2097152
	of 2 "$out" | jq -e .count
}

@test "a sandbox without a name goes at the end of input, one with a name stays" {
	out=$(talk "$INITIALIZE" "$(tool 1 create_sandbox '{}')" "$(tool 2 create_sandbox '{"sandbox":"stays"}')" \
		"$(tool 3 exec '{"sandbox":"stays","command":"echo x >kept"}')")
	contains "$(of 1 "$out" | jq -r .note)" 'when this session ends'
	removed "$(of 1 "$out" | jq -r .sandbox_id)"
	contains "$(live)" "$(of 2 "$out" | jq -r .sandbox_id)"
	equal "$(stdout_of stays 'cat kept')" x
	equal "$(find "$SPOOL/sessions" -type f ! -name guard | wc -l)" 0
}

@test "what runs in a session's sandbox ends with it" {
	open_session
	say "$(tool 1 create_sandbox '{}')"
	id=$(of 1 "$(hear)" | jq -r .sandbox_id)
	say "$(tool 2 exec "{\"sandbox\":\"$id\",\"command\":\"sleep 500.$MARK >/dev/null 2>&1 & echo started\"}")"
	equal "$(of 2 "$(hear)" | jq -r .stdout)" started
	appears "^sleep 500[.]$MARK"
	close_session
	removed "$id"
	gone "^sleep 500[.]$MARK"
}

@test "a task keeps its sandbox: a second session and HTTP read it, the default of the second is another" {
	first=$(talk "$INITIALIZE" "$(tool 1 create_sandbox '{"template":"base","timeout":600}')" \
		"$(tool 2 start_task '{"command":"printf BEFORE; sleep 2; printf AFTER","timeout":120}')")
	KEPT=$(of 1 "$first" | jq -r .sandbox_id)
	task=$(of 2 "$first" | jq -r .task_id)
	equal "$(of 2 "$first" | jq -r .sandbox_id)" "$KEPT"
	contains "$(of 2 "$first" | jq -r .note)" 'is kept for this task when the session ends'
	contains "$(live)" "$KEPT"
	handle="{\"sandbox_id\":\"$KEPT\",\"task_id\":\"$task\",\"wait\":20}"
	second=$(talk "$INITIALIZE" "$(tool 1 get_task "$(jq -c '.stdout_offset = 6' <<<"$handle")")" \
		"$(tool 2 start_task '{"command":"true"}')")
	equal "$(of 1 "$second" | jq -r .stdout)" AFTER
	contains "$(of 2 "$second" | jq -r '.content[0].text')" 'in this session'
	equal "$(call get_task "$handle" | jq -c '[.stdout,.exit_code]')" '["BEFOREAFTER",0]'
	contains "$(live)" "$KEPT"
}

@test "a task does not hold the client's descriptors" {
	out=$(talk "$INITIALIZE" "$(tool 1 create_sandbox '{}')" "$(tool 2 start_task '{"command":"sleep 600"}')" |
		timeout 20 cat)
	KEPT=$(of 1 "$out" | jq -r .sandbox_id)
	equal "$(of 2 "$out" | jq -r .state)" running
}

@test "after kill -9 the next start removes what the session left, and keeps what a task is in" {
	open_session
	say "$(tool 1 create_sandbox '{}')" "$(tool 2 start_task '{"command":"sleep 600"}')" "$(tool 3 create_sandbox '{}')"
	KEPT=$(of 1 "$(hear)" | jq -r .sandbox_id)
	hear >/dev/null
	id=$(of 3 "$(hear)" | jq -r .sandbox_id)
	say "$(tool 4 exec "{\"sandbox\":\"$id\",\"command\":\"sleep 501.$MARK\"}")"
	appears "^sleep 501[.]$MARK"
	kill -9 "$SESSION"
	wait_gone "$SESSION"
	contains "$(live)" "$id"
	gone "^sleep 501[.]$MARK"
	talk "$INITIALIZE"
	removed "$id"
	contains "$(live)" "$KEPT"
	equal "$(find "$SPOOL/sessions" -type f ! -name guard | wc -l)" 0
}

@test "a session that lives is left alone by the start of another" {
	open_session
	say "$(tool 1 create_sandbox '{}')"
	id=$(of 1 "$(hear)" | jq -r .sandbox_id)
	talk "$INITIALIZE"
	contains "$(live)" "$id"
	say "$(tool 2 exec "{\"sandbox\":\"$id\",\"command\":\"echo here\"}")"
	equal "$(of 2 "$(hear)" | jq -r .stdout)" here
	close_session
	removed "$id"
}

@test "notifications/cancelled ends a running exec, which is not answered" {
	open_session
	say "$(tool 1 exec "{\"sandbox\":\"raw\",\"command\":\"sleep 502.$MARK\"}")"
	appears "^sleep 502[.]$MARK"
	say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}' \
		"$(tool 2 exec '{"sandbox":"raw","command":"echo next"}')"
	equal "$(of 2 "$(hear)" | jq -r .stdout)" next
	gone "^sleep 502[.]$MARK"
	close_session
}

@test "progress comes as messages when a token was given" {
	out=$(talk "$INITIALIZE" "$(tool 1 exec \
		'{"sandbox":"raw","command":"for i in 1 2 3 4; do echo line $i; sleep 0.5; done"}' '{"progressToken":7}')")
	[ "$(jq -c 'select(.method == "notifications/progress") | .params.progressToken' <<<"$out" | grep -c 7)" -ge 2 ]
	equal "$(tail -1 <<<"$out" | jq -c .id)" 1
}

@test "TERM ends a running exec and the session in order" {
	open_session
	say "$(tool 1 create_sandbox '{}')"
	id=$(of 1 "$(hear)" | jq -r .sandbox_id)
	say "$(tool 2 exec "{\"sandbox\":\"$id\",\"command\":\"sleep 503.$MARK\"}")"
	appears "^sleep 503[.]$MARK"
	kill "$SESSION"
	wait_gone "$SESSION"
	removed "$id"
	gone "^sleep 503[.]$MARK"
}

@test "a client that is gone ends a running exec and the session" {
	open_session
	say "$(tool 1 create_sandbox '{}')"
	id=$(of 1 "$(hear)" | jq -r .sandbox_id)
	say "$(tool 2 exec "{\"sandbox\":\"$id\",\"command\":\"sleep 504.$MARK\"}")"
	appears "^sleep 504[.]$MARK"
	exec {FROM}<&-
	close_session
	removed "$id"
	gone "^sleep 504[.]$MARK"
}

@test "root becomes the owner of the spool, with a settings file that only root can read" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	printf 'SMCP_SPOOL=%s\nSMCP_EXEC_WAIT=7\n' "$SPOOL" >"$TEST_DIR/root.env"
	chmod 600 "$TEST_DIR/root.env"
	out=$(printf '%s\n' "$INITIALIZE" "$(tool 1 exec '{"sandbox":"raw","command":"true"}')" |
		env -i PATH="$PATH" "${SANITIZER_OPTIONS[@]}" SMCP_ENV_FILE="$TEST_DIR/root.env" \
			"$BIN/spoolbox" stdio 2>>"$TEST_DIR/stdio.log")
	equal "$(of 1 "$out" | jq .exit_code)" 0
	contains "$(of 0 "$out" | jq -r .instructions)" 'waits 7 s at most'
	[ -z "$(find "$SPOOL" -user root -print -quit)" ]
	run env -i PATH="$PATH" "${SANITIZER_OPTIONS[@]}" SMCP_ENV_FILE="$TEST_DIR/root.env" "$BIN/spoolbox-stdio" </dev/null
	equal "$status" 1
	contains "$output" 'must not be run by root'
}
