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

# As if all that is there for links had not been used for more than a minute.
let_a_minute_pass() {
	as_user sqlite3 -cmd ".timeout 10000" "$SPOOL/state.db" \
		"UPDATE sandbox SET last_used_at = last_used_at - 61000 WHERE gives_way = 1"
}

url_of() { field '.artifacts[0].url' "$1"; }

@test "python: calls that leave files take turns for the places, and what somebody works in stays" {
	result=$(leave 0)
	contains "$(field .note "$result")" "until its place is needed"
	kept=$(field .sandbox "$result")
	run_in "$kept" 'printf " and more" >>out.txt' >/dev/null
	first=$(leave 1)
	for i in 2 3 4 5 6; do
		let_a_minute_pass
		result=$(leave "$i")
	done
	equal "$(curl -sf "$(url_of "$result")")" 6
	equal "$(http_status "$(url_of "$first")")" 410
	equal "$(stdout_of "$kept" 'cat out.txt')" "0 and more"
	equal "$(call list_sandboxes '{}' | jq .count)" 3
}

@test "python: links that were handed out just now are good even when all places are taken" {
	let_a_minute_pass
	first=$(leave first)
	second=$(leave second)
	not leave third >"$TEST_DIR/out"
	equal "$(jq -r '.content[0].text | fromjson | "\(.error) \(.retryable)"' "$TEST_DIR/out")" "quota true"
	for text in first second; do
		equal "$(curl -sf "$(url_of "${!text}")")" "$text"
	done
	let_a_minute_pass
	leave third >/dev/null
}
