#!/usr/bin/env bats
# The worker process: what its children inherit, and how it ends.

load harness

setup_file() { harness_open && start_service; }
teardown_file() { harness_close; }
setup() { load_state; }

@test "a command has only its three descriptors" {
	equal "$(stdout_of w 'ls /proc/self/fd | tr "\n" " "')" '0 1 2 3 ' # 3: ls reads the directory
	equal "$(stdout_of w 'sh -c "readlink /proc/\$\$/fd/*" | grep -c socket || true')" 0
}

@test "a command has default signals and an empty mask" {
	masks=$(stdout_of w 'cat /proc/self/status' | grep -E '^Sig(Blk|Ign|Cgt)')
	equal "$(wc -l <<<"$masks")" 3
	equal "$(grep -vc 0000000000000000 <<<"$masks")" 0
}

@test "the outermost process of a sandbox has no descriptor of the service" {
	run_in w true >/dev/null
	for p in $(our_pids); do
		case $(readlink "/proc/$p/exe") in
		*/bwrap)
			# its own pipes and lock are fine; the listening socket, the database and logs are not
			equal "$(ls -l "/proc/$p/fd" | grep -E 'state\.db|\.sock|lighttpd')" ""
			equal "$(tr '\0' '\n' <"/proc/$p/environ" | grep -E 'SMCP_|TOKEN')" ""
			;;
		esac
	done
}

@test "every worker has few descriptors after many calls" {
	for _ in $(seq 30); do run_in w true >/dev/null; done
	for p in $(workers); do
		[ "$(ls "/proc/$p/fd" | wc -l)" -lt 30 ]
	done
}

@test "TERM in the middle of a call lets the call finish" {
	run_in w 'sleep 2; echo finished' >"$TEST_DIR/term.out" 2>&1 3>&- &
	caller=$!
	sleep 0.8
	kill $(workers)
	wait "$caller"
	equal "$(jq -r .stdout "$TEST_DIR/term.out")" finished
	equal "$(stdout_of w 'echo next')" next
}

@test "workers end when their web server is killed" {
	other=$(mktemp -d "$TEST_DIR/tmp/spool.XXXXXX")
	chown "$TEST_USER" "$other" 2>/dev/null || true
	port=$(free_port)
	(exec_as_user SMCP_SPOOL="$other" SMCP_PORT="$port" SMCP_MIN_FREE_BYTES=1m "$BIN/spoolbox" serve) >/dev/null 2>&1 3>&- &
	second=$!
	for _ in $(seq 100); do curl -s "http://127.0.0.1:$port/healthz" >/dev/null && break; sleep 0.1; done
	before=$(workers | wc -l)
	[ "$before" -gt 8 ]
	kill -9 "$second"
	for _ in $(seq 80); do [ "$(workers | wc -l)" -le 8 ] && break; sleep 0.1; done
	equal "$(workers | wc -l)" 8
	[ -z "$(curl -s -m 2 "http://127.0.0.1:$port/healthz")" ]
	# the directory that was left is removed by the next one
	equal "$(find "$other" -maxdepth 1 -name 'serve-*' | wc -l)" 1
	(exec_as_user SMCP_SPOOL="$other" SMCP_PORT="$port" SMCP_MIN_FREE_BYTES=1m "$BIN/spoolbox" serve) >/dev/null 2>&1 3>&- &
	second=$!
	for _ in $(seq 100); do curl -s "http://127.0.0.1:$port/healthz" >/dev/null && break; sleep 0.1; done
	equal "$(find "$other" -maxdepth 1 -name 'serve-*' | wc -l)" 1
	kill "$second"
	wait_gone "$second"
	equal "$(find "$other" -maxdepth 1 -name 'serve-*' | wc -l)" 0
}

# checklist 91
@test "no token, command or file content is in the log" {
	run_in w 'echo planted-secret-in-command' >/dev/null
	call write_text '{"sandbox":"w","path":"s","content":"planted-secret-in-file"}' >/dev/null
	url=$(download_url w s)
	curl -s "$url" >/dev/null
	not grep -qF "$TOKEN" "$TEST_DIR/log"
	not grep -q planted-secret "$TEST_DIR/log"
	not grep -qF "${url##*/}" "$TEST_DIR/log"
}
