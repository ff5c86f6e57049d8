#!/usr/bin/env bats
# The reaper as its operator meets it: started by hand, by cron with next to no environment, by
# `spoolbox serve`; and when the database is not what it should be.

load harness
load tasks

setup_file() {
	harness_open
	start_service SMCP_GC_INTERVAL_SECONDS=3600
	# The service's own first pass is not to come in between.
	for _ in $(seq 300); do
		grep -q 'spoolbox-reaper.* reap_pass ' "$TEST_DIR/log" && return
		sleep 0.1
	done
	return 1
}
teardown_file() { harness_close; }
setup() { load_state; }

# reap [NAME=value...] [-- arguments...]: one pass with the settings of the service.
reap() {
	local settings=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		settings+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	as_user "${SETTINGS[@]}" "${settings[@]}" "$BIN/spoolbox-reaper" "$@" 2>&1
}

# hours_ago SANDBOX HOURS: as if it had been used then for the last time.
hours_ago() {
	sql "UPDATE sandbox SET last_used_at = last_used_at - $2 * 3600000 WHERE name = '$1' AND state = 'live'"
}

state_of() {
	spoolbox ls | awk -v name="$1" '$2 == name { print $3 }'
}

# count COLUMN OUTPUT: of the summary line.
count() {
	sed -n "s/.* reap_pass .*[ ]$1=\([0-9a-z]*\).*/\1/p" <<<"$2"
}

@test "wrong arguments are told and do nothing" {
	for arguments in --no-such-option 'one two' '--budget 0' '--budget x' --budget; do
		# shellcheck disable=SC2086
		run reap -- $arguments
		equal "$status" 2
		contains "$output" 'usage: spoolbox-reaper'
	done
	run reap -- --help
	equal "$status" 0
	contains "$output" 'usage: spoolbox-reaper'
	run reap -- --version
	contains "$output" 'spoolbox-reaper '
}

@test "a dry run says what would be done and changes nothing; a pass does it" {
	run_in idle 'echo kept >file' >/dev/null
	run_in busy true >/dev/null
	hours_ago idle 3
	run reap -- --dry-run
	equal "$status" 0
	contains "$output" 'would='
	contains "$output" "$(sql "SELECT id FROM sandbox WHERE name = 'idle' AND state = 'live'")"
	equal "$(count stopped "$output")" 1
	equal "$(count dry_run "$output")" yes
	equal "$(state_of idle)" running

	run reap
	equal "$status" 0
	contains "$output" 'action='
	equal "$(count stopped "$output")" 1
	equal "$(count failed "$output")" 0
	equal "$(state_of idle)" stopped
	equal "$(state_of busy)" running
	equal "$(stdout_of idle 'cat file')" kept
	run reap
	equal "$(count stopped "$output")" 0
}

@test "a sandbox in which a task runs is left alone, however long nobody called" {
	id=$(start_job long "sleep 30.$MARK")
	hours_ago long 1000
	run reap
	equal "$status" 0
	equal "$(state_of long)" running
	equal "$(field .state "$(look long "$id")")" running
	call stop_job "{\"job_id\":\"$id\"}" >/dev/null
	call destroy_sandbox '{"sandbox":"long","delete_files":true}' >/dev/null
}

@test "the log of a task goes when its time is over, and the task still answers at once" {
	id=$(start_job logs 'echo told; exit 3')
	end_of "$id" >/dev/null
	run reap
	[ -d "$SPOOL/tasks/$id" ]
	sql "UPDATE task SET log_since = log_since - 90000000, finished_at = finished_at - 90000000 WHERE id = '$id'"
	run reap
	equal "$(count logs_pruned "$output")" 1
	[ ! -e "$SPOOL/tasks/$id" ]
	before=$(date +%s)
	result=$(job "$id")
	[ $(($(date +%s) - before)) -le 3 ]
	equal "$(field .status "$result")" finished
	equal "$(field .exit_code "$result")" 3
	contains "$(field .note "$result")" 'not kept any more since'
	result=$(look logs "$id")
	equal "$(field .state "$result")" failed
	contains "$(field .note "$result")" 'SMCP_JOB_LOG_RETENTION'
}

@test "a task whose supervisor was killed is settled without anybody asking for it" {
	id=$(start_job lost "sleep 40.$MARK")
	kill -9 $(supervisors "$id")
	run reap
	equal "$(count tasks_settled "$output")" 1
	equal "$(sql "SELECT state FROM task WHERE id = '$id'")" unknown
	gone "[s]leep 40.$MARK"
}

@test "a stopped supervisor past the timeout of its task is ended, with its command" {
	id=$(start_job stuck "sleep 50.$MARK")
	pid=$(supervisors "$id")
	kill -STOP "$pid"
	run reap
	equal "$(count tasks_ended "$output")" 0
	kill -0 "$pid"
	sql "UPDATE task SET timeout_ms = 1000, started_at = started_at - 100000 WHERE id = '$id'"
	run reap
	equal "$status" 0
	equal "$(count tasks_ended "$output")" 1
	wait_gone "$pid" # process 1 may take a while to collect it
	gone "[s]leep 50.$MARK"
	result=$(job "$id")
	equal "$(field .status "$result")" unknown
	contains "$(field .reason "$result")" 'timeout passed'
}

@test "of two passes at once one leaves" {
	reap >/dev/null
	# 37 is F_OFD_SETLK; python closes the file and so lets go at its end
	(exec_as_user python3 -c 'import fcntl, struct, sys, time
f = open(sys.argv[1], "r+")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
print("held", flush=True)
time.sleep(60)' "$SPOOL/reaper.lock") >"$TEST_DIR/held" 3>&- &
	holder=$!
	for _ in $(seq 50); do [ -s "$TEST_DIR/held" ] && break; sleep 0.1; done
	run reap
	kill "$holder"
	wait_gone "$holder"
	equal "$status" 0
	contains "$output" 'other_runs=yes'
	for i in 1 2 3 4; do reap >"$TEST_DIR/pass.$i" 3>&- & done
	wait
	run grep -L -e 'other_runs=yes' -e 'failed=0' "$TEST_DIR"/pass.[1-4]
	equal "$output" ''
}

@test "a pass goes on when nobody reads what it says" {
	reap | true
	equal "${PIPESTATUS[0]}" 0
}

# What doubt there can be about the database: each time nothing of the sandbox may go.
@test "with a database that is lost, damaged, read-only or another's nothing is deleted" {
	other=$TEST_DIR/tmp/other
	as_user mkdir -m 700 "$other"
	as_user SMCP_SPOOL="$other" SMCP_ENV_FILE=/dev/null "$BIN/spoolbox" ls >/dev/null
	run_in precious 'echo data >file' >/dev/null
	hours_ago precious 10000
	files=$(sql "SELECT files_id FROM sandbox WHERE name = 'precious' AND state = 'live'")
	sql 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
	# The service has it open; the passes get a copy of the spool's database under another name.
	for damage in lost cut garbage other; do
		copy=$TEST_DIR/tmp/state.$damage
		case $damage in
		lost) ;;
		cut) head -c 5000 "$SPOOL/state.db" >"$copy" ;;
		garbage) head -c 20000 /dev/urandom >"$copy" ;;
		other) cp "$other/state.db" "$copy" ;;
		esac
		[ ! -e "$copy" ] || { chown "$TEST_USER" "$copy" 2>/dev/null || true; chmod 600 "$copy"; }
		for dry in '' --dry-run; do
			# shellcheck disable=SC2086
			run reap SMCP_STATE_DB="$copy" -- $dry
			echo "$damage: $output"
			equal "$status" 1
			contains "$output" 'nothing was changed'
			contains "$output" 'SMCP_STATE_DB'
		done
		[ "$(cat "$SPOOL/data/$files/workspace/file")" = data ]
		[ -d "$SPOOL/run" ]
	done
	call destroy_sandbox '{"sandbox":"precious","delete_files":true}' >/dev/null
}

@test "a database that cannot be written is told, and nothing is deleted" {
	run_in readonly 'echo data >file' >/dev/null
	files=$(sql "SELECT files_id FROM sandbox WHERE name = 'readonly' AND state = 'live'")
	hours_ago readonly 10000
	copy=$TEST_DIR/tmp/ro/state.db
	as_user mkdir "$TEST_DIR/tmp/ro"
	sql "VACUUM INTO '$copy'"
	chmod 400 "$copy"
	chmod 500 "$TEST_DIR/tmp/ro"
	run reap SMCP_STATE_DB="$copy"
	chmod 700 "$TEST_DIR/tmp/ro"
	equal "$status" 1
	contains "$output" 'nothing was changed'
	[ "$(cat "$SPOOL/data/$files/workspace/file")" = data ]
	call destroy_sandbox '{"sandbox":"readonly","delete_files":true}' >/dev/null
}

@test "a spool that is not there is told" {
	run reap SMCP_SPOOL="$TEST_DIR/nosuch/spool"
	equal "$status" 1
	contains "$output" 'nothing was changed'
	contains "$output" 'SMCP_SPOOL'
}

# command_of FILE FIELDS: the command of the only line of a crontab that starts with a star, after
# that many fields.
command_of() {
	awk -v fields="$2" '/^\*/ { for (i = 1; i <= fields; i++) sub(/^[^ \t]+[ \t]+/, ""); print }' "$1"
}

# variables_of FILE: its NAME=value lines.
variables_of() {
	grep -E '^[A-Z_]+=' "$1"
}

@test "the crontab for the system is in form, and its line works with nothing of an environment" {
	cron=$srcdir/contrib/cron/spoolbox.cron
	equal "$(grep -cE '^(\*|\*/[0-9]+)( \S+){4}\s+\S+\s+\S' "$cron")" 1
	equal "$(grep -vcE '^(#|[A-Z_]+=|\*|$)' "$cron")" 0
	not grep -q '%' <(command_of "$cron" 6)
	equal "$(tail -c 1 "$cron" | od -An -c | tr -d ' ')" '\n'
	printf '%s\n' "${SETTINGS[@]}" >"$TEST_DIR/cron.env"
	chmod 644 "$TEST_DIR/cron.env"
	# What logger gets is what we want to see.
	mkdir -p "$TEST_DIR/fake"
	printf '#!/bin/sh\ncat >"%s/tmp/logged"\n' "$TEST_DIR" >"$TEST_DIR/fake/logger"
	chmod 755 "$TEST_DIR/fake" "$TEST_DIR/fake/logger"
	run as_user env -i HOME="$TEST_DIR/home" PATH="$TEST_DIR/fake:$BIN:/usr/bin:/bin" \
		"${SANITIZER_OPTIONS[@]}" SMCP_ENV_FILE="$TEST_DIR/cron.env" /bin/sh -c "$(command_of "$cron" 6)"
	equal "$status" 0
	equal "$output" ''
	contains "$(cat "$TEST_DIR/tmp/logged")" 'failed=0'
	# A failure reaches the mail.
	echo "SMCP_SPOOL=$TEST_DIR/nosuch" >"$TEST_DIR/cron.env"
	run as_user env -i HOME="$TEST_DIR/home" PATH="$TEST_DIR/fake:$BIN:/usr/bin:/bin" \
		"${SANITIZER_OPTIONS[@]}" SMCP_ENV_FILE="$TEST_DIR/cron.env" /bin/sh -c "$(command_of "$cron" 6)"
	contains "$output" 'spoolbox-reaper failed'
	contains "$(variables_of "$cron")" 'MAILTO='
}

@test "the crontab for a user is in form, and its line works with what cron gives" {
	cron=$srcdir/contrib/cron/crontab.user
	equal "$(grep -cE '^(\*|\*/[0-9]+)( \S+){4}\s+\S' "$cron")" 1
	equal "$(grep -vcE '^(#|[A-Z_]+=|\*|$)' "$cron")" 0
	not grep -q '%' <(command_of "$cron" 5)
	printf '%s\n' "${SETTINGS[@]}" >"$TEST_DIR/cron.env"
	as_user ln -sfn "$BIN" "$TEST_DIR/home/bin"
	run as_user env -i HOME="$TEST_DIR/home" PATH=/usr/bin:/bin "${SANITIZER_OPTIONS[@]}" \
		SMCP_ENV_FILE="$TEST_DIR/cron.env" /bin/sh -c "$(command_of "$cron" 5)"
	equal "$status" 0
	equal "$output" ''
	contains "$(cat "$TEST_DIR/home/.spoolbox-reaper.log")" 'failed=0'
	echo "SMCP_SPOOL=$TEST_DIR/nosuch" >"$TEST_DIR/cron.env"
	run as_user env -i HOME="$TEST_DIR/home" PATH=/usr/bin:/bin "${SANITIZER_OPTIONS[@]}" \
		SMCP_ENV_FILE="$TEST_DIR/cron.env" /bin/sh -c "$(command_of "$cron" 5)"
	contains "$output" 'SMCP_SPOOL'
}

@test "the units for systemd are in form" {
	units=$TEST_DIR/units
	mkdir -p "$units"
	sed "s|^ExecStart=.*|ExecStart=$BIN/spoolbox-reaper|; s|^User=.*|User=$TEST_USER|" \
		"$srcdir/contrib/cron/spoolbox-reaper.service" >"$units/spoolbox-reaper.service"
	cp "$srcdir/contrib/cron/spoolbox-reaper.timer" "$units"
	for unit in "$srcdir"/contrib/cron/spoolbox-reaper.*; do
		equal "$(grep -vcE '^(#|\[[A-Z][a-z]+\]|[A-Z][A-Za-z]+=.+|$)' "$unit")" 0
	done
	grep -q '^Type=oneshot' "$units/spoolbox-reaper.service"
	grep -q '^WantedBy=timers.target' "$units/spoolbox-reaper.timer"
	if command -v systemd-analyze >/dev/null; then
		run systemd-analyze verify "$units/spoolbox-reaper.timer" "$units/spoolbox-reaper.service"
		equal "$(grep -F spoolbox-reaper <<<"$output" || true)" ''
	fi
}

@test "started as root it becomes the owner of the spool" {
	[ "$(id -u)" = 0 ] || skip "only root can be root"
	run env -i PATH="$PATH" HOME=/root "${SETTINGS[@]}" "$BIN/spoolbox-reaper"
	equal "$status" 0
	contains "$output" 'failed=0'
	equal "$(find "$SPOOL" -user root | head -1)" ''
	mkdir -p -m 700 "$TEST_DIR/rootspool"
	run env -i PATH="$PATH" SMCP_SPOOL="$TEST_DIR/rootspool" SMCP_ENV_FILE=/dev/null "$BIN/spoolbox-reaper"
	equal "$status" 1
	contains "$output" "root's"
}

@test "doctor says when the last pass was, and how to get one when there was none" {
	reap >/dev/null
	run spoolbox doctor
	contains "$output" 'OK   clean-up: the last pass of spoolbox-reaper was at 20'
	sql "UPDATE clock_reading SET wall_at = wall_at - 2 * 3600 * 1000"
	run spoolbox doctor
	contains "$output" 'OK   clean-up' # three intervals, here of an hour, are not over
	sql "UPDATE clock_reading SET wall_at = wall_at - 2 * 3600 * 1000"
	run spoolbox doctor
	equal "$status" 0
	contains "$output" 'WARN clean-up: no pass since 20'
	contains "$output" "*/5 * * * * SMCP_SPOOL=$SPOOL $BIN/spoolbox-reaper"
	sql 'DELETE FROM clock_reading'
	run spoolbox doctor
	contains "$output" 'WARN clean-up: no pass yet'
}

@test "spoolbox serve runs a pass soon after its start, and another at each interval" {
	stop_service
	: >"$TEST_DIR/log"
	start_service SMCP_GC_INTERVAL_SECONDS=2
	for _ in $(seq 80); do
		[ "$(grep -c 'spoolbox-reaper.* reap_pass ' "$TEST_DIR/log")" -ge 3 ] && break
		sleep 0.1
	done
	[ "$(grep -c 'spoolbox-reaper.* reap_pass ' "$TEST_DIR/log")" -ge 3 ]
	contains "$(grep reap_pass "$TEST_DIR/log" | tail -1)" 'failed=0'
	contains "$(call list_sandboxes '{}')" idle
	before=$(date +%s%N)
	stop_service
	[ $((($(date +%s%N) - before) / 1000000)) -lt 4000 ]
	not pgrep -f "^$BIN/spoolbox-reaper"
	SERVICE=
	save_state
}
