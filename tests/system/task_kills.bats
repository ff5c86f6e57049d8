#!/usr/bin/env bats
# Background tasks when something is killed: the commands by a cancel, whatever they did to escape
# it, and everything else by kill -9 at random moments. Nothing is left over, nothing reads
# "running" for ever, and nothing is told to have succeeded that did not.

load harness
load tasks

# More rounds find more: KILL_ROUNDS=200 make check
ROUNDS=${KILL_ROUNDS:-48}
SERVICE_SETTINGS=(SMCP_EXEC_WAIT=1 SMCP_WORKERS=6)

setup_file() { harness_open && start_service "${SERVICE_SETTINGS[@]}" && disown -a; }
teardown_file() { harness_close; }
setup() { load_state; }

# --- what must be gone after a cancel ---------------------------------------------------------

# cancelled_with_all TOOL COMMAND COUNT: COUNT processes show the mark before, none afterwards.
cancelled_with_all() {
	local task state i
	[ "$(alive "32[0].$MARK")" -eq 0 ]
	task=$(start escape "$2")
	appears "32[0].$MARK" "$3"
	for ((i = 0; i < 4; i++)); do
		if [ "$1" = cancel_task ]; then
			state=$(cancel escape "$task" | jq -r .state)
		else
			state=$(call stop_job "{\"job_id\":\"$task\"}" | jq -r .state)
		fi
		[ "$state" = running ] || break
	done
	equal "$state" cancelled
	# confirmed is confirmed: there is nothing to wait for
	equal "$(alive "32[0].$MARK")" 0
	equal "$(stdout_of escape 'ls -d /proc/[0-9]* | wc -l | awk "{print (\$1 < 9)}"')" 1
}

@test "a cancelled command is gone with all it started, whatever that did to get away" {
	call create_sandbox '{"sandbox":"escape"}' >/dev/null
	s="sleep 320.$MARK"
	cancelled_with_all cancel_task "$s" 1
	cancelled_with_all cancel_task "trap '' TERM HUP INT; $s; $s; $s" 1
	cancelled_with_all stop_job "setsid $s & setsid -f $s; nohup $s >/dev/null 2>&1 & $s" 4
	cancelled_with_all cancel_task "( ( trap '' TERM; exec setsid $s ) & ); ( ( setsid sh -c '$s; $s' & ) & ); trap '' TERM; while :; do $s; done" 3
	cancelled_with_all stop_job "for i in 1 2 3 4 5; do ( trap '' TERM; setsid bash -c '(trap \"\" TERM; $s; true) & (trap \"\" TERM; $s; true) & exit' ) & done; $s; true" 11
}

@test "what starts a new process for each that is killed is gone as well" {
	call create_sandbox '{"sandbox":"escape"}' >/dev/null
	# each of two starts the other anew
	cancelled_with_all cancel_task "trap '' TERM; f() { while :; do (trap '' TERM; setsid sleep 0.05) & sleep 0.0320.$MARK; setsid sleep 0.1 & done; }; f & f & f; : 320.$MARK" 3
	cancelled_with_all stop_job ": 320.$MARK; bomb() { bomb | bomb & }; bomb; sleep 1000" 20
}

@test "at its timeout a task ends with all it started" {
	task=$(start escape "trap '' TERM; (trap '' TERM; setsid sleep 320.$MARK) & sleep 320.$MARK; sleep 320.$MARK" '{"timeout":1}')
	equal "$(end_of "$task" | jq -r .state)" timed_out
	equal "$(alive "sleep 32[0].$MARK")" 0
}

# --- kill -9 ----------------------------------------------------------------------------------

pick() { # one line of the input
	shuf -n 1
}

# The processes that make up sandboxes: bwrap, PID 1, and what looks after each command.
sandbox_parts() {
	ps -eo pid=,ppid=,args= | awk -v id="$TEST_ID" '
		{ parent[$1] = $2 }
		/bwrap/ && index($0, id) { outer[$1] }
		END { for (p in parent) if (p in outer || parent[p] in outer || parent[parent[p]] in outer) print p }'
}

# strike ROUND: kills something. Sets $down when the service has to be started again.
strike() {
	local victims
	down=
	case $(($1 % 6)) in
	0) victims=$(web_workers | pick) ;;
	1) victims=$(supervisors | pick) ;;
	2) victims=$(sandbox_parts | pick) ;;
	3) victims=$(web_workers) ;;
	4) down=1 victims=$(pgrep -P "$SERVICE" lighttpd) ;;
	5) down=1 victims="$SERVICE $(pgrep -P "$SERVICE") $(web_workers) $(supervisors | pick)" ;;
	esac
	kill -9 $victims 2>/dev/null || true
	[ -z "$down" ] || wait_gone "$SERVICE"
}

# begin ROUND KIND COMMAND: start_task whose answer may be lost. Without jq: rounds are to be short.
begin() {
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"start_task","arguments":
		{"sandbox_id":"kill-%d","command":"%s","request_id":"%s-%d","timeout":200}}}' \
		$(($1 % 4)) "$3" "$2" "$1" | post @- -H "MCP-Protocol-Version: $PROTOCOL" 2>&1
}

# The id of what begin began or was to begin: the same request_id is the same task. lighttpd
# answers 503 until it has new workers.
find_again() {
	local result i
	for ((i = 0; i < 50; i++)); do
		result=$(begin "$@")
		if [[ $result =~ \"task_id\":\"([0-9a-f]{32})\" ]]; then
			echo "${BASH_REMATCH[1]}"
			return 0
		fi
		sleep 0.1
	done
	echo "$result" >&2
	return 1
}

one_round() {
	local i=$1 down short long id callers
	short="echo $i >>ran-$i; echo BEGIN; sleep 0.$((RANDOM % 5)); echo END; echo x >end-$i"
	long="echo BEGIN; setsid sleep 330.$MARK & sleep 330.$MARK"
	# the grace of two seconds is not for every round
	[ $((i % 8)) != 3 ] || long="trap '' TERM; $long; sleep 330.$MARK"
	begin "$i" short "$short" >/dev/null 2>&1 3>&- &
	callers=$!
	begin "$i" long "$long" >/dev/null 2>&1 3>&- &
	callers="$callers $!"
	sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
	strike "$i"
	wait $callers || true
	[ -z "$down" ] || start_service "${SERVICE_SETTINGS[@]}"
	for kind in short long; do
		id=$(find_again "$i" $kind "${!kind}") || return 1
		echo "$i $kind kill-$((i % 4)) $id" >>"$TEST_DIR/rounds"
	done
	# the others run on through the next rounds
	[ $((i % 2)) = 0 ] || cancel "kill-$((i % 4))" "$id" >/dev/null
}

# honest ROUND KIND SANDBOX ID STATE HAS-EXIT-CODE REASON LOG: the final state, against what is there.
honest() {
	local files=$SPOOL/data/${sandboxes[$3]}/workspace ran=()
	case $2:$5 in
	short:succeeded) [ -e "$files/end-$1" ] && [ "$8" = '"BEGIN\nEND\n"' ] ;;
	short:unknown | long:unknown) [ "$6" = false ] && [ "$7" != null ] ;;
	long:cancelled) [ "$8" = '"BEGIN\n"' ] || [ "$8" = '""' ] ;;
	*) false ;;
	esac || { echo "round $*" >&2; return 1; }
	# nothing ran twice, whoever asked for it again
	[ "$2" = long ] || [ ! -e "$files/ran-$1" ] || mapfile -t ran <"$files/ran-$1"
	[ ${#ran[@]} -le 1 ] || { echo "ran ${#ran[@]} times: round $*" >&2; return 1; }
	echo "$2 $5" >>"$TEST_DIR/states"
}

# checklist 83
@test "$ROUNDS rounds of kill -9: no orphan, no task that runs for ever, no invented success" {
	declare -A sandboxes
	local i start=$SECONDS
	for i in 0 1 2 3; do
		sandboxes[kill-$i]=$(call create_sandbox "{\"sandbox\":\"kill-$i\"}" | jq -r .sandbox_id)
	done
	for ((i = 0; i < ROUNDS; i++)); do
		one_round "$i" || { echo "in round $i" >&2; return 1; }
	done
	echo "# $ROUNDS rounds took $((SECONDS - start)) s" >&3
	awk '$2 == "long" {printf "{\"sandbox_id\":\"%s\",\"task_id\":\"%s\"}\n", $3, $4}' "$TEST_DIR/rounds" |
		all_at_once "$TEST_DIR/cancelled" cancel_task
	awk '{printf "{\"job_id\":\"%s\",\"wait\":25}\n", $4}' "$TEST_DIR/rounds" |
		all_at_once "$TEST_DIR/ended" get_job
	results "$TEST_DIR/ended" | jq -r '[.state, has("exit_code"), (.reason | tojson | gsub(" "; "_")), (.log_tail | tojson)] | join(" ")' |
		paste -d' ' "$TEST_DIR/rounds" - >"$TEST_DIR/outcomes"
	equal "$(wc -l <"$TEST_DIR/outcomes")" $((2 * ROUNDS))
	while read -r round kind box id state has_code reason log; do
		honest "$round" "$kind" "$box" "$id" "$state" "$has_code" "$reason" "$log"
	done <"$TEST_DIR/outcomes"
	echo "# $(sort "$TEST_DIR/states" | uniq -c | xargs)" >&3
	# rows of which no caller learned would be here
	for i in 0 1 2 3; do
		equal "$(call list_jobs "{\"sandbox\":\"kill-$i\",\"limit\":100}" | jq '[.jobs[] | select(.state == "running")] | length')" 0
	done
	gone "sleep 33[0].$MARK"
	no_supervisor
	# something of each kind did happen
	grep -q 'short succeeded' "$TEST_DIR/states"
	grep -q 'long cancelled' "$TEST_DIR/states"
	grep -q unknown "$TEST_DIR/states"
}

tasks_there() {
	set -- "$SPOOL"/tasks/* "$SPOOL"/tasks/.new-*
	echo $#
}

@test "a worker killed while it hands a long exec over: the command goes on whole, or not at all" {
	local i id state round before
	call create_sandbox '{"sandbox":"handed"}' >/dev/null
	for round in 1 2 3; do
		before=$(tasks_there)
		for i in 1 2 3 4 5 6; do
			run_in handed "for i in \$(seq 15); do echo \$i; sleep 0.1; done; : 331.$MARK; sleep 0.1" >/dev/null 2>&1 3>&- &
		done
		# they are handed over a second after their start; from the first one on, each worker is
		# killed at some moment
		for ((i = 0; i < 300 && $(tasks_there) == before; i++)); do sleep 0.01; done
		for id in $(web_workers | shuf); do
			kill -9 "$id" 2>/dev/null || true
			sleep "0.0$((RANDOM % 8))"
		done
		wait
	done
	gone "33[1].$MARK" 10
	call list_jobs '{"sandbox":"handed","limit":100}' | jq -r '.jobs[] | .job_id' >"$TEST_DIR/handed"
	for id in $(cat "$TEST_DIR/handed"); do
		state=$(end_of "$id" | jq -r .state)
		case $state in
		succeeded) equal "$(text_of handed "$id" stdout)" "$(seq 15)" ;;
		unknown) ;;
		*) echo "$state: $(job "$id")" >&2; return 1 ;;
		esac
		echo "$state" >>"$TEST_DIR/handed.states"
	done
	echo "# $(sort "$TEST_DIR/handed.states" 2>/dev/null | uniq -c | xargs) of 18" >&3
	no_supervisor
}

@test "a supervisor that is killed is seen at once, and the command does not run on" {
	task=$(start handed "echo begun; (trap '' TERM; setsid sleep 332.$MARK) & sleep 332.$MARK")
	appears "sleep 33[2].$MARK" 2
	kill -9 "$(supervisors "$task")"
	result=$(look handed "$task")
	equal "$(jq -c '[.state, .stdout, has("exit_code")]' <<<"$result")" '["unknown","begun\n",false]'
	[ -n "$(field .reason "$result")" ]
	gone "sleep 33[2].$MARK"
	# and its request is not started again by who repeats it
	task=$(start handed 'echo x >>once; sleep 60' '{"request_id":"once"}')
	kill -9 "$(supervisors "$task")"
	equal "$(start handed 'echo x >>once; sleep 60' '{"request_id":"once"}')" "$task"
	equal "$(stdout_of handed 'cat once')" x
}

@test "a supervisor that is told to end says so, and ends the command" {
	task=$(start handed "sleep 333.$MARK")
	kill -TERM "$(supervisors "$task")"
	result=$(end_of "$task")
	equal "$(field .state "$result")" cancelled
	contains "$(field .reason "$result")" supervisor
	gone "sleep 33[3].$MARK"
}
