#!/usr/bin/env bats
# Sandboxes over time: many at once, across a restart of the service, and when a worker is killed
# in the middle.

load harness

setup_file() { harness_open && start_service SMCP_MAX_SANDBOXES=20; }
teardown_file() { harness_close; }
setup() { load_state; }

# The worker whose pool is at work on something: the only one with a child or a busy connection.
busy_workers() {
	local p
	for p in $(workers); do
		# a worker that serves a request has an accepted connection beside the listening socket
		[ "$(find "/proc/$p/fd" -lname 'socket:*' 2>/dev/null | wc -l)" -gt 1 ] && echo "$p"
	done
}

@test "of 50 creates at once exactly 20 succeed and the others say why" {
	for i in $(seq 50); do
		call create_sandbox "{\"sandbox\":\"many-$i\"}" >"$TEST_DIR/many.$i" 2>&1 3>&- &
	done
	wait
	live=$(call list_sandboxes '{}' | jq .count)
	for i in $(seq 50); do
		call destroy_sandbox "{\"sandbox\":\"many-$i\",\"delete_files\":true}" >/dev/null || true
	done
	equal "$live" 20
	equal "$(cat "$TEST_DIR"/many.* | jq -s '[.[] | select(.created == true)] | length')" 20
	equal "$(grep -l 'destroy' "$TEST_DIR"/many.* | wc -l)" 30
	equal "$(call list_sandboxes '{}' | jq .count)" 0
}

@test "of ten first commands at once in one new sandbox all run in the same one" {
	for i in $(seq 10); do
		run_in together "echo $i >> all; readlink /proc/1/ns/pid" >"$TEST_DIR/together.$i" 2>&1 3>&- &
	done
	wait
	equal "$(cat "$TEST_DIR"/together.* | jq -r .stdout | sort -u | wc -l)" 1
	equal "$(stdout_of together 'wc -l <all')" 10
}

@test "a sandbox and what runs in it survive a restart of the service" {
	run_in keeps 'echo kept > file; sleep 300 & echo $! > pid' >/dev/null
	kill "$SERVICE"
	wait_gone "$SERVICE"
	equal "$(workers)" ""
	start_service SMCP_MAX_SANDBOXES=20
	equal "$(stdout_of keeps 'cat file; kill -0 $(cat pid) && echo alive')" $'kept\nalive'
}

@test "a worker killed in the middle of a command leaves no process, and the next call is served" {
	run_in killed true >/dev/null
	run_in killed "sleep 322.$MARK; touch done" '{"timeout":60}' >/dev/null 2>&1 3>&- &
	for _ in $(seq 50); do [ "$(pgrep -fc "sleep 32[2].$MARK")" -ge 1 ] && break; sleep 0.1; done
	kill -9 $(busy_workers)
	for _ in $(seq 80); do [ "$(pgrep -fc "sleep 32[2].$MARK")" -eq 0 ] && break; sleep 0.1; done
	equal "$(pgrep -fc "sleep 32[2].$MARK")" 0
	wait
	equal "$(stdout_of killed 'ls; echo next')" next
}

@test "with all workers killed at once the next request is served" {
	run_in phoenix-workers 'echo before > f' >/dev/null
	before=$(workers)
	kill -9 $before
	equal "$(stdout_of phoenix-workers 'cat f')" before
	equal "$(comm -12 <(sort <<<"$before") <(workers | sort))" ""
}

@test "a worker killed in the middle of an upload leaves no half file" {
	url=$(upload_url upkill f)
	exec 5<>"/dev/tcp/127.0.0.1/$PORT"
	printf 'PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Length: 1000000\r\n\r\n' "${url#"$URL"}" "$PORT" >&5
	head -c 300000 /dev/zero >&5
	for _ in $(seq 50); do [ -n "$(busy_workers)" ] && break; sleep 0.1; done
	kill -9 $(busy_workers)
	exec 5>&-
	equal "$(stdout_of upkill 'ls -A')" ""
	head -c 1000 /dev/zero >"$TEST_DIR/small"
	[[ $(http_status -T "$TEST_DIR/small" "$url") == 20[01] ]]
	equal "$(stdout_of upkill 'stat -c %s f')" 1000
}

@test "PID 1 of a sandbox killed from outside: the next command starts it again" {
	run_in again 'echo x > f' >/dev/null
	spoolbox stop again
	equal "$(call list_sandboxes '{}' | jq -r '.sandboxes[] | select(.name == "again") | .status')" stopped
	equal "$(stdout_of again 'cat f')" x
}

@test "nothing inside a sandbox can end it by signalling PID 1" {
	equal "$(run_in immortal 'kill -9 1; kill -15 1; echo still' | jq -r .stdout)" still
	run_in immortal 'echo alive' >/dev/null
}

@test "a command that kills all processes is told so, and its files are there" {
	run_in swept 'echo kept > f' >/dev/null
	result=$(run_in swept 'echo before; sleep 0.2; kill -9 -1; echo after') || true
	contains "$result" 'ended every process in the sandbox'
	contains "$result" 'before'
	equal "$(stdout_of swept 'cat f')" kept
	call destroy_sandbox '{"sandbox":"swept","delete_files":true}' >/dev/null
}

@test "destroy ends everything in a sandbox, and the name starts empty" {
	run_in doomed "sleep 333.$MARK & echo x > f" >/dev/null
	result=$(call destroy_sandbox '{"sandbox":"doomed","delete_files":true}')
	equal "$(field .destroyed "$result")" true
	for _ in $(seq 30); do [ "$(pgrep -fc "sleep 33[3].$MARK")" -eq 0 ] && break; sleep 0.1; done
	equal "$(pgrep -fc "sleep 33[3].$MARK")" 0
	equal "$(stdout_of doomed 'ls -A')" ""
	run call destroy_sandbox '{"sandbox":"never-was"}'
	[ "$status" -eq 1 ]
}

@test "files that are kept wait for the next sandbox of that name" {
	run_in phoenix 'echo ashes > f' >/dev/null
	equal "$(call destroy_sandbox '{"sandbox":"phoenix"}' | jq .files_deleted)" false
	equal "$(stdout_of phoenix 'cat f')" ashes
}

@test "a fork bomb stays in its sandbox and other calls are served" {
	run_in bomb ':(){ :|:& };: ; sleep 1' '{"timeout":3}' >/dev/null 2>&1 3>&- &
	sleep 1
	equal "$(stdout_of calm 'echo fine')" fine
	wait
	call destroy_sandbox '{"sandbox":"bomb","delete_files":true}' >/dev/null
}

@test "when the parents of all workers are killed the next call is served" {
	call create_sandbox '{"sandbox":"pools"}' >/dev/null
	for p in $(our_pids); do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" != spoolbox-pool ] || kill -9 "$p"
	done
	equal "$(stdout_of pools 'echo served')" served
}

@test "short calls do not wait behind long ones while a worker is idle" {
	long=() short=()
	for i in 1 2 3; do # one worker fewer than there are
		run_in "long$i" "sleep 34$i.$MARK" >/dev/null 2>&1 3>&- &
		long+=($!)
	done
	for _ in $(seq 100); do [ "$(pgrep -fc "sleep 34[123].$MARK")" = 3 ] && break; sleep 0.1; done
	for i in $(seq 16); do
		call list_sandboxes '{}' >"$TEST_DIR/short.$i" 3>&- &
		short+=($!)
	done
	wait "${short[@]}"
	for i in "${long[@]}"; do kill -0 "$i"; done # none of the long calls was answered yet
	equal "$(cat "$TEST_DIR"/short.* | jq -s 'map(select(.count >= 3)) | length')" 16
	for i in 1 2 3; do call kill_sandbox "{\"sandbox\":\"long$i\"}" >/dev/null; done
	wait "${long[@]}" || true
}
