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
setup() {
	load_state
	settings=(SMCP_PORT="$PORT" SMCP_SPOOL="$TEST_DIR/home/spool" SMCP_MIN_FREE_BYTES=1m
		XDG_CACHE_HOME="$TEST_DIR/home/cache")
}
teardown() { [ -z "${QUICKSTART:-}" ] || kill -9 -- "-$QUICKSTART" 2>/dev/null || true; }

quickstart() { as_user "${settings[@]}" "$@"; }

# start_quickstart PATTERN: in the background as from a terminal, until it has printed that.
start_quickstart() {
	local i
	(exec_as_user "${settings[@]}" env --default-signal=INT setsid \
		"$TEST_DIR/source/contrib/quickstart" --no-install) >"$TEST_DIR/out" 2>&1 3>&- &
	QUICKSTART=$!
	for ((i = 0; i < 1200; i++)); do
		grep -q "$1" "$TEST_DIR/out" && return 0
		kill -0 "$QUICKSTART" 2>/dev/null || break
		sleep 0.05
	done
	cat "$TEST_DIR/out" >&2
	return 1
}

# ends_with STATUS: that it comes to its end so and leaves neither process nor temporary file.
ends_with() {
	local status=0
	wait "$QUICKSTART" || status=$?
	QUICKSTART=
	equal "$status" "$1"
	nothing_is_left
}
nothing_is_left() {
	equal "$(settled_pids)" ""
	equal "$(find "$TEST_DIR/tmp" -name 'spoolbox-quickstart*')" ""
}
no_files_are_left() {
	equal "$(find "$TEST_DIR/home/spool/data" -mindepth 1 -maxdepth 1 ! -name .trash ! -name spool.id)" ""
}

# The line that says how to look after the service, run as it is printed.
run_printed_line() {
	run as_user bash -c "$(sed -n 's/^To look after it.*): //p' <<<"$1")"
	equal "$status" 0
	equal "$output" 'no sandboxes'
}

@test "--once builds, shows every step with the token that is set, and leaves nothing" {
	run quickstart SMCP_TOKEN=quick-token-0123456789 "$TEST_DIR/source/contrib/quickstart" --once --no-install
	echo "$output" | tail -40
	equal "$status" 0
	for word in initialize exec upload download mcpServers "Bearer quick-token-0123456789\""; do
		contains "$output" "$word"
	done
	if /usr/bin/python3 -I -c 'import matplotlib' 2>/dev/null; then
		contains "$output" 'ok  python'
	else
		contains "$output" 'python3-matplotlib'
	fi
	nothing_is_left
	no_files_are_left
	run_printed_line "$output"
}

@test "a step that fails ends it with an error, and its sandbox goes with it" {
	run quickstart SMCP_MAX_UPLOAD_BYTES=1k "$TEST_DIR/source/contrib/quickstart" --once --no-install
	[ "$status" -ne 0 ]
	contains "$output" 'ok  exec'
	contains "$output" 'the demonstration did not come to its end'
	nothing_is_left
	no_files_are_left
}

@test "Ctrl-C in the demonstration leaves nothing" {
	start_quickstart 'ok  exec'
	kill -INT -- "-$QUICKSTART"
	ends_with 130
	no_files_are_left
}

@test "Ctrl-C or TERM while it serves ends the service and what runs in its sandboxes" {
	local signal=INT
	for status in 130 143; do
		start_quickstart '^Serving'
		URL=http://127.0.0.1:$PORT TOKEN=$(quickstart "$TEST_DIR/home/cache/spoolbox/build/spoolbox" token)
		run_in mine "sleep 377.$MARK &" >/dev/null
		equal "$(pgrep -fc "sleep 37[7].$MARK")" 1
		kill "-$signal" -- "-$QUICKSTART"
		ends_with "$status"
		equal "$(pgrep -fc "sleep 37[7].$MARK")" 0
		signal=TERM
	done
}

@test "kill -9 ends the service as well, and no file is left with the token" {
	start_quickstart '^Serving'
	token=$(quickstart "$TEST_DIR/home/cache/spoolbox/build/spoolbox" token)
	kill -9 "$QUICKSTART"
	equal "$(settled_pids)" ""
	equal "$(grep -rlF "$token" "$TEST_DIR"/tmp/spoolbox-quickstart*)" ""
	rm -rf "$TEST_DIR"/tmp/spoolbox-quickstart*
}

@test "a spool that a running service uses is refused, and its sandboxes run on" {
	start_service
	run_in theirs "sleep 388.$MARK &" >/dev/null
	settings=("${settings[@]}" SMCP_SPOOL="$SPOOL" SMCP_TOKEN="$TOKEN" SMCP_PORT="$(free_port)")
	run quickstart "$TEST_DIR/source/contrib/quickstart" --once --no-install
	equal "$status" 1
	contains "$output" "a running service uses the spool $SPOOL"
	equal "$(pgrep -fc "sleep 38[8].$MARK")" 1
	# without its service the spool is free, but what an earlier service left running stays
	stop_service
	run quickstart "$TEST_DIR/source/contrib/quickstart" --once --no-install
	equal "$status" 0
	equal "$(pgrep -fc "sleep 38[8].$MARK")" 1
	spoolbox stop --all
}

@test "a spool that cannot be made is said with the setting" {
	run quickstart SMCP_SPOOL=/proc/spool "$TEST_DIR/source/contrib/quickstart" --once --no-install
	equal "$status" 1
	contains "$output" 'Set SMCP_SPOOL to'
}

# With an /etc, /opt and /var/lib that nobody else sees. An ordinary user cannot try this.
@test "run by root it serves as the user spoolbox from /opt, and says what it made" {
	[ "$(id -u)" = 0 ] || return 0
	unshare -m true || skip_or_fail "root may not make a mount namespace here"
	mkdir "$TEST_DIR/opt" "$TEST_DIR/lib"
	cp -a /etc "$TEST_DIR/etc"
	sed -i '/^spoolbox:/d' "$TEST_DIR"/etc/passwd "$TEST_DIR"/etc/group "$TEST_DIR"/etc/shadow "$TEST_DIR"/etc/gshadow
	cat >"$TEST_DIR/as-root" <<-X
		mount --bind "$TEST_DIR/etc" /etc && mount --bind "$TEST_DIR/opt" /opt && mount --bind "$TEST_DIR/lib" /var/lib || exit 99
		"$TEST_DIR/source/contrib/quickstart" --once --no-install || exit
		ps -eo user,args | grep -vE 'ps -eo|grep|as-root'
		stat -c '%U %a' /var/lib/spoolbox
		SMCP_SPOOL=/var/lib/spoolbox /opt/spoolbox/bin/spoolbox ls
	X
	run unshare -mpf --mount-proc --kill-child env -i PATH="$PATH" HOME=/root SMCP_PORT="$PORT" \
		SMCP_MIN_FREE_BYTES=1m sh "$TEST_DIR/as-root"
	echo "$output" | tail -40
	equal "$status" 0
	contains "$output" "as spoolbox, spool /var/lib/spoolbox"
	contains "$output" "user spoolbox, /opt/spoolbox, /var/lib/spoolbox"
	contains "$output" "SMCP_SPOOL=/var/lib/spoolbox /opt/spoolbox/bin/spoolbox ls"
	equal "$(tail -3 <<<"$output")" $'USER     COMMAND\nspoolbox 700\nno sandboxes'
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

@test "what Python would like to have is named, and not needed" {
	run quickstart bwrap --dev-bind / / --tmpfs /usr/share/fonts --tmpfs /usr/local/share \
		"$TEST_DIR/source/contrib/quickstart" --once --no-install
	echo "$output" | tail -20
	equal "$status" 0
	contains "$output" 'fonts-wqy-zenhei execute_python has less to offer'
	nothing_is_left
}

@test "an option that is not known ends with 2 and the usage" {
	run quickstart "$TEST_DIR/source/contrib/quickstart" --nonsense
	equal "$status" 2
	contains "$output" usage
}
