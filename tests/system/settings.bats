#!/usr/bin/env bats
# Settings have the effect that they name: what a command, a client or an operator sees of values
# that are no defaults.

load harness

setup_file() {
	harness_open && start_service SMCP_MEM_LIMIT=64m SMCP_PIDS_LIMIT=40 SMCP_OPEN_FILES=100 \
		SMCP_FILE_SIZE=2m SMCP_URL_TTL=90 SMCP_MAX_BODY_BYTES=64k \
		SMCP_ALLOWED_ORIGINS='https://one.example, https://two.example' SMCP_TOKN=x
}
teardown_file() { harness_close; }
setup() { load_state; }

@test "a command has the limits of the settings" {
	equal "$(stdout_of w 'ulimit -n; ulimit -u')" $'100\n40'
	equal "$(stdout_of w 'echo $(($(ulimit -f) * 1024)) $(($(ulimit -d) * 1024))')" "$((2 << 20)) $((64 << 20))"
}

@test "the limits cannot be raised, and hold" {
	result=$(run_in w 'ulimit -n 101; ulimit -f unlimited; ulimit -d unlimited; ulimit -u 41')
	equal "$(field .stderr "$result" | grep -c 'cannot modify limit')" 4
	equal "$(field .signal "$(run_in w 'exec head -c 3M /dev/zero >big')")" SIGXFSZ
	equal "$(stdout_of w 'stat -c %s big')" $((2 << 20))
	result=$(run_in w 'x=$(head -c 100M /dev/zero | tr "\0" x); echo ${#x}')
	contains "$(field .stderr "$result")" 'cannot allocate'
	result=$(run_in w 'for i in $(seq 60); do sleep 1 & done; wait; echo done')
	contains "$(field .stderr "$result")" fork
	equal "$(stdout_of w '(exec 99</dev/null) && echo 99; (exec 100</dev/null) || echo no more')" $'99\nno more'
}

@test "a link lives as long as SMCP_URL_TTL says unless the call says more" {
	now=$(date +%s)
	for more in '{}' '{"ttl_seconds":0}' '{"ttl_seconds":600}'; do
		seconds=$(jq -r 'if (.ttl_seconds // 0) > 0 then .ttl_seconds else 90 end' <<<"$more")
		expires=$(call upload_file "$(jq -c '. + {sandbox:"w",dest:"f"}' <<<"$more")" | jq -r .expires_at)
		left=$(($(date -d "$expires" +%s) - now))
		[ "$left" -ge "$seconds" ] && [ "$left" -le $((seconds + 30)) ]
	done
}

@test "only origins of SMCP_ALLOWED_ORIGINS may call, and are told so" {
	ping='{"jsonrpc":"2.0","id":1,"method":"ping"}'
	for origin in https://one.example https://two.example; do
		answer=$(post "$ping" -D - -o /dev/null -H "Origin: $origin" | tr -d '\r')
		contains "$answer" ' 200'
		equal "$(sed -n 's/^access-control-allow-origin: //Ip' <<<"$answer")" "$origin"
	done
	for origin in https://three.example http://one.example https://one.example.org null; do
		answer=$(post "$ping" -D - -o /dev/null -H "Origin: $origin" | tr -d '\r')
		contains "$answer" ' 403'
		not grep -qi '^access-control-allow-origin' <<<"$answer"
	done
}

@test "a request may be as large as SMCP_MAX_BODY_BYTES and no larger" {
	body='{"jsonrpc":"2.0","id":1,"method":"ping"}'
	printf '%-65536s' "$body" >"$TEST_DIR/fits"
	printf '%-65537s' "$body" >"$TEST_DIR/large"
	equal "$(post "@$TEST_DIR/fits" -o /dev/null -w '%{http_code}')" 200
	equal "$(post "@$TEST_DIR/large" -o "$TEST_DIR/answer" -w '%{http_code}')" 413
	contains "$(cat "$TEST_DIR/answer")" 65536
}

@test "a name that is no setting is told by every program" {
	contains "$(cat "$TEST_DIR/log")" 'unknown_settings names=SMCP_TOKN'
	contains "$(cat "$TEST_DIR/log")" 'spoolbox: there is no setting of the name SMCP_TOKN'
	printf 'SMCP_WORKER=3\nOTHER=1\n' >"$TEST_DIR/env"
	chmod 644 "$TEST_DIR/env"
	for subcommand in config 'config --json' ls; do
		# shellcheck disable=SC2086
		as_user "${SETTINGS[@]}" SMCP_ENV_FILE="$TEST_DIR/env" "$BIN/spoolbox" $subcommand \
			>"$TEST_DIR/out" 2>"$TEST_DIR/err"
		equal "$(cat "$TEST_DIR/err")" \
			'spoolbox: there is no setting of the name SMCP_WORKER, SMCP_TOKN; is it a typing error?'
		not grep -q SMCP_WORKER, "$TEST_DIR/out"
	done
	run as_user "${SETTINGS[@]}" SMCP_ENV_FILE="$TEST_DIR/env" "$BIN/spoolbox" doctor
	contains "$output" 'there is no setting of the name SMCP_WORKER, SMCP_TOKN'
	equal "$(grep -c 'there is no setting' <<<"$output")" 1
}

@test "a token that no header can carry stops the start and is not shown" {
	for bad in 'hush hush hush hush' 'hush,hush,hush,hush' 'hush=hush=hush=hush'; do
		run as_user "${SETTINGS[@]}" SMCP_TOKEN="$bad" "$BIN/spoolbox" serve
		equal "$status" 1
		contains "$output" 'SMCP_TOKEN has the value "('
		contains "$output" 'letters, digits'
		not grep -q hush <<<"$output"
	done
}
