#!/usr/bin/env bats
# Everything at once on a few names: commands, tasks, uploads, creates, destroys and passes of the
# reaper that stop and remove after seconds, some of them killed in the middle. What is asserted is
# in lifecycle_stress.py. More time finds more: STRESS_SECONDS=600 make check; a failure prints the
# seed, STRESS_SEED=... repeats its choices.

load harness

SECONDS_OF_STRESS=${STRESS_SECONDS:-60}

# Stamps of use are up to 5 s old: shorter limits would find idle what was just used.
BRISK=(SMCP_IDLE_STOP_SECONDS=6 SMCP_IDLE_REMOVE_SECONDS=9 SMCP_GC_INTERVAL_SECONDS=1
	SMCP_EXEC_WAIT=1 SMCP_WORKERS=8)

setup_file() {
	harness_open
	start_service "${BRISK[@]}"
	install -m 644 "$srcdir/tests/system/lifecycle_stress.py" "$TEST_DIR/stress.py"
}
teardown_file() { harness_close; }
setup() { load_state; }

stress() {
	as_user "${SETTINGS[@]}" python3 "$TEST_DIR/stress.py" "$@"
}

@test "of eight clients and a reaper at five names nobody loses what was acknowledged" {
	run stress run "$BIN/spoolbox-reaper" "$URL" "$SECONDS_OF_STRESS" ${STRESS_SEED:+"$STRESS_SEED"}
	echo "$output"
	equal "$status" 0
	stop_service # nothing moves while it is looked at
	SERVICE=
	save_state
	run stress judge "$BIN/spoolbox-reaper" "$TEST_DIR/log"
	echo "$output"
	grep '^# incarnations' <<<"$output" >&3 || true
	equal "$status" 0
}

@test "afterwards all can be destroyed, and nothing is left: no process, no mount, no file" {
	start_service
	for name in n0 n1 n2 n3 n4; do
		call destroy_sandbox "{\"sandbox\":\"$name\",\"delete_files\":true}" >/dev/null || true
	done
	run as_user "${SETTINGS[@]}" "$BIN/spoolbox-reaper"
	equal "$status" 0
	equal "$(find "$SPOOL/run" -mindepth 1 -maxdepth 1 ! -name .trash)" ''
	equal "$(find "$SPOOL/data" -mindepth 1 -maxdepth 1 ! -name .trash ! -name spool.id)" ''
	equal "$(find "$SPOOL"/*/.trash -mindepth 1 | head -3)" ''
	not grep -q "$TEST_ID" /proc/self/mountinfo
	stop_service
	SERVICE=
	save_state
	equal "$(settled_pids)" ''
}
