#!/usr/bin/env bats
# The operator's program: subcommands, and `spoolbox serve` from start to end.

load harness

setup_file() { harness_open && start_service; }
teardown_file() { harness_close; }
setup() { load_state; }

@test "help lists the subcommands; what is not understood ends with 2" {
	run spoolbox --help
	equal "$status" 0
	for word in serve token doctor ls stop config; do contains "$output" "  $word "; done
	for wrong in '' 'nosuch' 'serve now' 'ls --nosuch' '--nosuch' 'stop' 'token x' 'doctor x' 'config x'; do
		run spoolbox $wrong
		equal "$status" 2
		contains "$output" spoolbox
	done
	run spoolbox --version
	[[ $output =~ ^spoolbox\ [0-9]+\.[0-9]+ ]]
}

@test "the token is made once, is long, and only its owner can read it" {
	mkdir -m 700 "$TEST_DIR/tmp/s"
	chown "$TEST_USER" "$TEST_DIR/tmp/s" 2>/dev/null || true
	first=$(as_user SMCP_SPOOL="$TEST_DIR/tmp/s" "$BIN/spoolbox" token)
	[ "${#first}" -ge 32 ]
	equal "$(as_user SMCP_SPOOL="$TEST_DIR/tmp/s" "$BIN/spoolbox" token)" "$first"
	equal "$(stat -c %a "$TEST_DIR/tmp/s/keys/token")" 600
	equal "$(spoolbox token)" "$TOKEN"
}

@test "the run directory is private and no command line or file in it holds the token" {
	run_dir=$(echo "$SPOOL"/serve-*)
	equal "$(stat -c %a "$run_dir")" 700
	not grep -rqF "$TOKEN" "$run_dir"
	for p in $(our_pids); do
		equal "$(tr "\\0" " " <"/proc/$p/cmdline" | grep -F "$TOKEN")" ""
	done
}

@test "a port that is taken is said in plain words" {
	run as_user SMCP_SPOOL="$SPOOL" SMCP_PORT="$PORT" "$BIN/spoolbox" serve
	equal "$status" 1
	contains "$output" "port $PORT"
	contains "$output" "in use"
}

@test "an address that is not this machine's is refused with what to do" {
	run as_user SMCP_SPOOL="$SPOOL" SMCP_HOST=192.0.2.1 SMCP_PORT="$(free_port)" "$BIN/spoolbox" serve
	equal "$status" 1
	contains "$output" SMCP_HOST
}

@test "without lighttpd the message names the package" {
	program=$(PATH=$PATH:/usr/sbin command -v lighttpd)
	run as_user SMCP_SPOOL="$SPOOL" SMCP_PORT="$(free_port)" \
		bwrap --dev-bind / / --ro-bind /dev/null "$program" "$BIN/spoolbox" serve
	equal "$status" 1
	contains "$output" 'apt-get install lighttpd'
}

@test "the program cannot be found without its worker, and says where it looked" {
	install -m 755 "$BIN/spoolbox" "$TEST_DIR/tmp/alone"
	# it may be installed on this machine: then it has to be out of sight
	run as_user SMCP_SPOOL="$SPOOL" SMCP_PORT="$(free_port)" \
		bwrap --dev-bind / / --tmpfs /usr/local "$TEST_DIR/tmp/alone" serve
	equal "$status" 1
	contains "$output" spoolbox.fcgi
}

@test "root becomes the owner of the spool, or the user that is named, and never serves as root" {
	if [ "$(id -u)" != 0 ]; then
		run spoolbox --user root ls
		equal "$status" 1
		contains "$output" 'only root'
		return
	fi
	run env SMCP_SPOOL="$SPOOL" SMCP_TOKEN="$TOKEN" "$BIN/spoolbox" ls
	equal "$status" 0
	mkdir -m 700 "$TEST_DIR/rootspool"
	run env SMCP_SPOOL="$TEST_DIR/rootspool" "$BIN/spoolbox" serve
	equal "$status" 1
	contains "$output" 'must not be run by root'
	contains "$output" --user
	run env SMCP_SPOOL="$TEST_DIR/rootspool" "$BIN/spoolbox" --user no-such-user serve
	equal "$status" 1
	contains "$output" no-such-user
	run env SMCP_SPOOL="$TEST_DIR/nosuch" "$BIN/spoolbox" ls
	equal "$status" 1
	contains "$output" "the spool $TEST_DIR/nosuch cannot be read: No such file"
	contains "$output" 'install -d -m 700 -o USER'
	env SMCP_SPOOL="$SPOOL" SMCP_PORT="$(free_port)" SMCP_TOKEN="$TOKEN" "$BIN/spoolbox" --user "$TEST_USER" serve >/dev/null 2>&1 3>&- &
	second=$!
	for _ in $(seq 50); do [ "$(ps -o user= -p $second)" = "$TEST_USER" ] && break; sleep 0.1; done
	equal "$(ps -o user= -p "$second")" "$TEST_USER"
	contains "$(tr '\0' '\n' <"/proc/$second/status" | grep Groups)" Groups
	kill "$second"
	wait_gone "$second"
}

@test "ls shows the sandboxes, stop ends one, stop --all ends the rest; the files stay" {
	run_in one "echo 1 > f; sleep 344.$MARK &" >/dev/null
	run_in two "sleep 344.$MARK &" >/dev/null
	call create_sandbox '{"sandbox":"three"}' >/dev/null
	equal "$(spoolbox ls --json | jq -c '[.[] | [.name, .state]] | sort')" '[["one","running"],["three","stopped"],["two","running"]]'
	equal "$(spoolbox ls | head -1 | tr -s ' ')" 'ID NAME STATE LAST USED REMOVED AT'
	contains "$(spoolbox ls)" " one "
	equal "$(spoolbox stop one)" '1 stopped'
	equal "$(pgrep -fc "sleep 34[4].$MARK")" 1
	equal "$(spoolbox stop --all)" '1 stopped'
	equal "$(pgrep -fc "sleep 34[4].$MARK")" 0
	equal "$(stdout_of one 'cat f')" 1
	run spoolbox stop nosuch
	equal "$status" 1
	contains "$output" 'spoolbox ls'
	equal "$(as_user SMCP_SPOOL="$TEST_DIR/tmp/empty" "$BIN/spoolbox" ls)" 'no sandboxes'
}

@test "with --with-parent the service ends when its parent is killed" {
	workers_before=$(workers | wc -l)
	(exec_as_user SMCP_SPOOL="$TEST_DIR/tmp/p" SMCP_PORT="$(free_port)" \
		sh -c "'$BIN/spoolbox' serve --with-parent & echo \$! >$TEST_DIR/tmp/pid; wait") >/dev/null 2>&1 3>&- &
	parent=$!
	for _ in $(seq 100); do [ "$(workers | wc -l)" -gt "$workers_before" ] && break; sleep 0.1; done
	[ "$(workers | wc -l)" -gt "$workers_before" ]
	kill -9 "$parent"
	wait_gone "$(cat "$TEST_DIR/tmp/pid")"
	equal "$(workers | wc -l)" "$workers_before"
	equal "$(find "$TEST_DIR/tmp/p" -maxdepth 1 -name 'serve-*' | wc -l)" 0
}

@test "when lighttpd is killed the service says so, ends and takes the workers along" {
	mkdir -m 700 "$TEST_DIR/tmp/k"
	chown "$TEST_USER" "$TEST_DIR/tmp/k" 2>/dev/null || true
	others=$(workers | wc -l)
	(exec_as_user SMCP_SPOOL="$TEST_DIR/tmp/k" SMCP_PORT="$(free_port)" "$BIN/spoolbox" serve) >"$TEST_DIR/killed" 2>&1 3>&- &
	second=$!
	for _ in $(seq 50); do [ "$(workers | wc -l)" -ge $((others + 8)) ] && break; sleep 0.1; done
	kill -9 "$(pgrep -P "$second" lighttpd)"
	run wait "$second"
	wait_gone "$second"
	contains "$(cat "$TEST_DIR/killed")" 'lighttpd ended by itself (signal 9)'
	equal "$(workers | wc -l)" "$others"
	equal "$(find "$TEST_DIR/tmp/k" -name 'serve-*' | wc -l)" 0
}

@test "TERM ends the service within two seconds and leaves no directory, but the sandboxes" {
	run_in stays "sleep 355.$MARK &" >/dev/null
	run_dir=$(echo "$SPOOL"/serve-*)
	start=$SECONDS
	kill "$SERVICE"
	wait_gone "$SERVICE"
	[ $((SECONDS - start)) -le 2 ]
	[ ! -e "$run_dir" ]
	equal "$(workers)" ""
	equal "$(pgrep -fc "sleep 35[5].$MARK")" 1
	spoolbox stop --all
}
