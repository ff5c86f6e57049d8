#!/usr/bin/env bats
# contrib/quickstart as a new user runs it, without installing packages.

load harness

setup_file() {
	harness_open || return 1
	PORT=$(free_port) URL='' SERVICE='' SETTINGS=(SMCP_SPOOL="$TEST_DIR/home/spool")
	save_state
	# a copy that the ordinary user can read, wherever the source lies
	mkdir "$TEST_DIR/source"
	(cd "$srcdir" && tar cf - --exclude=.git --exclude=node_modules --exclude=./build-quickstart --exclude='*.log' .) |
		tar xf - -C "$TEST_DIR/source" --no-same-owner
	chmod -R go+rX "$TEST_DIR/source"
}
teardown_file() { harness_close; }
setup() { load_state; }

quickstart() {
	as_user SMCP_PORT="$PORT" SMCP_SPOOL="$TEST_DIR/home/spool" SMCP_MIN_FREE_BYTES=1m \
		XDG_CACHE_HOME="$TEST_DIR/home/cache" "$@"
}

@test "--once builds, shows every step, ends with 0 and leaves no process" {
	run quickstart "$TEST_DIR/source/contrib/quickstart" --once --no-install
	echo "$output" | tail -40
	equal "$status" 0
	for word in initialize exec upload download mcpServers "Bearer "; do contains "$output" "$word"; done
	[ -z "$(settled_pids)" ]
}

@test "a port that is in use ends it with a clear message" {
	(exec_as_user bash -c "exec -a spoolbox-test-listener socat TCP-LISTEN:$PORT,bind=127.0.0.1,fork,reuseaddr SYSTEM:true") 3>&- &
	listener=$!
	for _ in $(seq 50); do (exec 4<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && break; sleep 0.1; done
	run quickstart "$TEST_DIR/source/contrib/quickstart" --once --no-install
	kill "$listener"
	[ "$status" -ne 0 ]
	contains "$output" "$PORT"
	contains "$output" "in use"
}

@test "a package that is missing is named in the command to run" {
	run quickstart bwrap --dev-bind / / --ro-bind /dev/null "$(command -v jq)" \
		"$TEST_DIR/source/contrib/quickstart" --once --no-install
	equal "$status" 1
	contains "$output" 'apt-get install --no-install-recommends jq'
}

@test "an option that is not known ends with 2 and the usage" {
	run quickstart "$TEST_DIR/source/contrib/quickstart" --nonsense
	equal "$status" 2
	contains "$output" usage
}
