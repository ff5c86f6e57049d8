#!/usr/bin/env bats
# An exec that takes long: progress while it is waited for, and what becomes of it beyond the wait.

load harness
load tasks

# It is handed over after two seconds, so that the tests need not wait for 25.
setup_file() { harness_open && start_service SMCP_EXEC_WAIT=2 SMCP_WORKERS=8; }
teardown_file() { harness_close; }
setup() { load_state; }

@test "progress comes through the web server while the command runs, and the answer last" {
	run_in stream true >/dev/null
	body=$(jq -cn '{sandbox:"stream",command:"for i in 1 2 3 4; do echo line $i; sleep 0.4; done"}' |
		jq -c '{name:"exec",arguments:.,_meta:{progressToken:"p-1"}}')
	for era in legacy modern; do
		begin=$(date +%s%N)
		if [ $era = legacy ]; then
			post "$(jq -cn --argjson p "$body" '{jsonrpc:"2.0",id:1,method:"tools/call",params:$p}')" -N -H "MCP-Protocol-Version: $PROTOCOL"
		else
			modern tools/call "$body" exec '{}' -N
		fi | while read -r line; do
			case $line in
			data:*) printf '%s %s\n' $((($(date +%s%N) - begin) / 1000000)) "${line#data:}" ;;
			esac
		done >"$TEST_DIR/events"
		cut -d' ' -f2- "$TEST_DIR/events" >"$TEST_DIR/messages"
		head -n -1 "$TEST_DIR/messages" | jq -c .params.progressToken | sort -u >"$TEST_DIR/tokens"
		equal "$(cat "$TEST_DIR/tokens")" '"p-1"'
		[ "$(wc -l <"$TEST_DIR/messages")" -ge 3 ]
		# well before the end, which is after 1.6 s
		[ "$(head -1 "$TEST_DIR/events" | cut -d' ' -f1)" -lt 1500 ]
		[ "$(tail -1 "$TEST_DIR/events" | cut -d' ' -f1)" -ge 1600 ]
		contains "$(head -1 "$TEST_DIR/messages" | jq -r .params.message)" 'line '
		equal "$(head -n -1 "$TEST_DIR/messages" | jq -s '[.[].params.progress] | . == (sort | unique)')" true
		equal "$(tail -1 "$TEST_DIR/messages" | jq -r .result.structuredContent.stdout)" $'line 1\nline 2\nline 3\nline 4'
	done
	# no token, or a client that takes JSON alone: a plain answer
	equal "$(run_in stream 'echo plain; sleep 0.6' | jq -r .stdout)" plain
}

@test "a long exec becomes a job with no byte lost or repeated" {
	command='for i in $(seq 0 59); do seq $((i * 1000)) $((i * 1000 + 999)); [ $((i % 7)) = 0 ] && echo "$i" >&2; sleep 0.08; done; exit 9'
	call create_sandbox '{"sandbox":"long"}' >/dev/null
	for i in 1 2 3; do
		run_in long "$command" '{"timeout":60}' >"$TEST_DIR/long.$i" 2>&1 3>&- &
	done
	wait
	for i in 1 2 3; do
		result=$(cat "$TEST_DIR/long.$i")
		equal "$(field .status "$result")" running
		equal "$(field 'has("exit_code")' "$result")" false
		[[ $(field .stdout "$result") == $'0\n1\n2\n'* ]]
		id=$(field .job_id "$result")
		contains "$(field .next "$result")" "$id"
		equal "$(end_of "$id" | jq -c '[.state, .exit_code]')" '["failed",9]'
		text_of long "$id" stdout >"$TEST_DIR/long.out"
		seq 0 59999 | cmp - "$TEST_DIR/long.out" >&2
		equal "$(text_of long "$id" stderr | tr '\n' ' ')" '0 7 14 21 28 35 42 49 56 '
	done
	# the timeout is still counted from the start of the command
	result=$(run_in long "echo begun; sleep 312.$MARK" '{"timeout":4}')
	equal "$(end_of "$(field .job_id "$result")" | jq -c '[.state, .elapsed_seconds, .log_tail]')" '["timed_out",4,"begun\n"]'
	gone "sleep 31[2].$MARK"
	# a command that ends within the wait is no job
	equal "$(run_in long 'sleep 1; echo done' | jq -c '[.status, .stdout, has("job_id")]')" '["finished","done\n",false]'
}

@test "the tasks extension: a declared client gets a task, reads and cancels it; another does not" {
	tasks='{"io.modelcontextprotocol/tasks":{}}'
	run_in extended true >/dev/null
	slow=$(jq -cn '{name:"exec",arguments:{sandbox:"extended",command:"echo one; sleep 3; echo two; exit 6"}}')
	contains "$(modern server/discover '{}' | jq -c .result.capabilities.extensions)" io.modelcontextprotocol/tasks
	created=$(modern tools/call "$slow" exec "$tasks" | jq .result)
	equal "$(jq -c '[.resultType, .status, has("content"), has("structuredContent")]' <<<"$created")" '["task","working",false,false]'
	id=$(field .taskId "$created")
	[[ $(field .createdAt "$created") == 20??-*Z ]]
	[ "$(field .ttlMs "$created")" -gt 0 ]
	get() { modern tasks/get "{\"taskId\":\"$id\"}" "$id" "$tasks" | jq .result; }
	equal "$(get | jq -c '[.resultType, .status, .taskId == "'"$id"'"]')" '["complete","working",true]'
	for _ in $(seq 100); do [ "$(get | jq -r .status)" = working ] || break; sleep 0.1; done
	equal "$(get | jq -c '[.status, .result.structuredContent.stdout, .result.structuredContent.exit_code, .result.isError // false]')" \
		'["completed","one\ntwo\n",6,false]'
	# what ends within the wait is answered as ever, and so is a client that declared nothing
	equal "$(modern tools/call '{"name":"exec","arguments":{"sandbox":"extended","command":"echo now"}}' exec "$tasks" | jq -c '[.result.resultType, .result.structuredContent.stdout]')" \
		'["complete","now\n"]'
	equal "$(modern tools/call "$slow" exec | jq -c '[.result.resultType, .result.structuredContent.status]')" '["complete","running"]'
	for method in tasks/get tasks/cancel tasks/update; do
		equal "$(modern $method "{\"taskId\":\"$id\",\"inputResponses\":{}}" "$id" | jq .error.code)" -32021
		equal "$(modern $method '{"taskId":"00000000000000000000000000000000","inputResponses":{}}' 00000000000000000000000000000000 "$tasks" | jq .error.code)" -32602
	done
	created=$(modern tools/call "{\"name\":\"exec\",\"arguments\":{\"sandbox\":\"extended\",\"command\":\"sleep 318.$MARK\"}}" exec "$tasks" | jq .result)
	id=$(field .taskId "$created")
	for _ in 1 2; do
		equal "$(modern tasks/cancel "{\"taskId\":\"$id\"}" "$id" "$tasks" | jq -c '[.result.resultType, .result.status]')" '["complete",null]'
		equal "$(get | jq -r .status)" cancelled
	done
	gone "sleep 31[8].$MARK"
}
