#!/usr/bin/env bats
# Code that leaves files on a server with three places.

load harness

setup_file() {
	harness_open && start_service SMCP_MAX_SANDBOXES=3
}
teardown_file() { harness_close; }
setup() { load_state; }

# leave TEXT: code that leaves a file with it; prints the structured result.
leave() {
	call execute_python "$(jq -cn --arg t "$1" '{code:"open(\"out.txt\", \"w\").write(\"\($t)\")"}')"
}

# As if all that nobody named had not been used for a while.
let_it_rest() {
	sql "UPDATE sandbox SET last_used_at = last_used_at - 61000 WHERE gives_way = 1"
}

# As if no session had been used for as long as one lives without.
let_sessions_pass() {
	sql "UPDATE python_session SET last_used_at = last_used_at - 3600000"
}

# begin CODE: a session in a sandbox of its own; prints the structured result.
begin() {
	call execute_python "$(jq -cn --arg c "$1" '{code:$c,session_id:"new"}')"
}

# go_on SESSION CODE
go_on() {
	call execute_python "$(jq -cn --arg s "$1" --arg c "$2" '{code:$c,session_id:$s}')"
}

url_of() { field '.artifacts[0].url' "$1"; }

@test "python: calls that leave files take turns for the places, and what somebody works in stays" {
	result=$(leave 0)
	contains "$(field .note "$result")" "until its place is needed"
	kept=$(field .sandbox "$result")
	run_in "$kept" 'printf " and more" >>out.txt' >/dev/null
	first=$(leave 1)
	for i in 2 3 4 5 6; do
		let_it_rest
		result=$(leave "$i")
	done
	equal "$(curl -sf "$(url_of "$result")")" 6
	equal "$(http_status "$(url_of "$first")")" 410
	equal "$(stdout_of "$kept" 'cat out.txt')" "0 and more"
	equal "$(call list_sandboxes '{}' | jq .count)" 3
}

@test "python: links that were handed out just now are good even when all places are taken" {
	let_it_rest
	first=$(leave first)
	second=$(leave second)
	not leave third >"$TEST_DIR/out"
	equal "$(jq -r '.content[0].text | fromjson | "\(.error) \(.retryable)"' "$TEST_DIR/out")" "quota true"
	for text in first second; do
		equal "$(curl -sf "$(url_of "${!text}")")" "$text"
	done
	let_it_rest
	leave third >/dev/null
}

@test "python: the place of a session is its own while it lives, and of who named its sandbox for good" {
	let_it_rest
	first=$(begin 'x = 1')
	second=$(begin 'x = 2')
	contains "$(field .note "$first")" "until their place is needed"
	let_it_rest
	not leave fourth >"$TEST_DIR/out"
	equal "$(jq -r '.content[0].text | fromjson | .error' "$TEST_DIR/out")" quota
	for result in "$first" "$second"; do
		go_on "$(field .session_id "$result")" 'print(x)' >/dev/null
	done
	run_in "$(field .sandbox "$second")" 'echo named >named' >/dev/null
	let_it_rest
	let_sessions_pass
	leave third >/dev/null
	not go_on "$(field .session_id "$first")" 'print(x)' >"$TEST_DIR/out"
	contains "$(jq -r '.content[0].text | fromjson | .message' "$TEST_DIR/out")" "removed"
	equal "$(stdout_of "$(field .sandbox "$second")" 'cat named')" named
	equal "$(call list_sandboxes '{}' | jq .count)" 3
}

@test "python: code that runs keeps its place, and after a minute it is free when the worker was killed" {
	for name in $(call list_sandboxes '{}' | jq -r '.sandboxes[].name'); do
		call destroy_sandbox "{\"sandbox\":\"$name\",\"delete_files\":true}" >/dev/null
	done
	for i in 1 2 3; do
		call execute_python '{"code":"import time; time.sleep(50)","timeout_ms":60000}' >/dev/null 2>&1 3>&- &
	done
	sleep 3
	let_it_rest
	not leave refused >"$TEST_DIR/out"
	equal "$(jq -r '.content[0].text | fromjson | .error' "$TEST_DIR/out")" quota
	for pid in $(workers); do kill -9 "$pid"; done
	wait
	wait_for_service
	for i in 1 2 3; do leave "$i" >/dev/null; done
	not leave refused >/dev/null
}
