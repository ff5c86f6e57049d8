#!/usr/bin/env bats
# Background tasks through the whole chain: HTTP, worker, supervisor, sandbox. Those that begin as
# an exec are in task_exec.bats; what happens when something is killed is in task_kills.bats.

load harness
load tasks

SERVICE_SETTINGS=(SMCP_WORKERS=8)

setup_file() { harness_open && start_service "${SERVICE_SETTINGS[@]}" && disown -a; }
teardown_file() { harness_close; }
setup() { load_state; }

@test "seed: start, lose the client and the whole server, come back, read by offsets, cancel, kill" {
	created=$(call create_sandbox '{"template":"base","timeout":600}')
	sandbox=$(field .sandbox_id "$created")
	# a client of its own, which is gone as soon as it has the handle
	started=$(call start_task '{"command":"printf BEFORE; sleep 10; printf AFTER","timeout":120}')
	equal "$(field .sandbox_id "$started")" "$sandbox"
	task=$(field .task_id "$started")
	[[ $task =~ ^[0-9a-f]{32}$ ]]
	equal "$(field .state "$started")" running
	contains "$started" will_remove_at
	first=$(look "$sandbox" "$task" '{"stdout_offset":0,"stderr_offset":0,"limit":16384,"wait":5}')
	equal "$(jq -c '[.state, .stdout, .stdout_next_offset, .stdout_size, .stdout_truncated, has("exit_code")]' <<<"$first")" \
		'["running","BEFORE",6,6,false,false]'
	kill_service
	start_service "${SERVICE_SETTINGS[@]}"
	# the same page again, and the next one
	equal "$(look "$sandbox" "$task" '{"limit":3}' | jq -c '[.stdout, .stdout_next_offset]')" '["BEF",3]'
	rest=$(look "$sandbox" "$task" '{"stdout_offset":6,"wait":20}')
	equal "$(field .stdout "$rest")" AFTER
	last=$(end_of "$task")
	equal "$(jq -c '[.state, .exit_code, .log_tail]' <<<"$last")" '["succeeded",0,"BEFOREAFTER"]'
	page=$(look "$sandbox" "$task" '{"stdout_offset":6}')
	equal "$(jq -c '[.state, .exit_code, .stdout, .stdout_next_offset]' <<<"$page")" '["succeeded",0,"AFTER",11]'
	[ $(($(field .finished_at "$page") - $(field .started_at "$page"))) -ge 10 ]
	second=$(start "$sandbox" "echo up; sleep 311.$MARK" '{"timeout":120}')
	appears "sleep 31[1].$MARK"
	equal "$(cancel "$sandbox" "$second" | jq -c '[.state, .stdout]')" '["cancelled","up\n"]'
	gone "sleep 31[1].$MARK"
	equal "$(cancel "$sandbox" "$second" | jq -r .state)" cancelled
	equal "$(cancel "$sandbox" "$task" | jq -c '[.state, .exit_code]')" '["succeeded",0]'
	equal "$(call kill_sandbox "{\"sandbox_id\":\"$sandbox\"}" | jq 'has("error")')" false
	[ -z "$(supervisors)" ]
}

@test "of 1000 very short commands, 100 at a time, each has its output and its exit code" {
	call create_sandbox '{"sandbox":"short"}' >/dev/null
	for round in $(seq 0 9); do
		tool=start_task
		[ $((round % 2)) = 0 ] || tool=run_background
		for i in $(seq $((round * 100 + 1)) $((round * 100 + 100))); do
			echo "{\"sandbox\":\"short\",\"command\":\"echo out $i; echo err $i >&2; exit $((i % 5))\"}"
		done >"$TEST_DIR/arguments"
		all_at_once "$TEST_DIR/started" $tool <"$TEST_DIR/arguments"
		results "$TEST_DIR/started" | jq -c '{sandbox:"short", task_id}' >"$TEST_DIR/handles"
		jq -c '{job_id:.task_id, wait:25}' "$TEST_DIR/handles" | all_at_once "$TEST_DIR/ended" get_job
		results "$TEST_DIR/ended" | jq -c '[.status, .exit_code]' >>"$TEST_DIR/all.ended"
		all_at_once "$TEST_DIR/read" get_task <"$TEST_DIR/handles"
		results "$TEST_DIR/read" | jq -c '[.state, .exit_code, .stdout, .stderr]' >>"$TEST_DIR/all.read"
	done
	seq 1000 | jq -c '["finished", . % 5]' >"$TEST_DIR/want.ended"
	seq 1000 | jq -c '[if . % 5 == 0 then "succeeded" else "failed" end, . % 5, "out \(.)\n", "err \(.)\n"]' >"$TEST_DIR/want.read"
	diff "$TEST_DIR/want.ended" "$TEST_DIR/all.ended" >&2
	diff "$TEST_DIR/want.read" "$TEST_DIR/all.read" >&2
	no_supervisor
}

@test "300 MB of output: bounded memory and disk, an honest size, and a tail that is current" {
	call create_sandbox '{"sandbox":"flood"}' >/dev/null
	task=$(start flood 'yes | head -c 300M; echo; echo the end')
	memory=0
	while pid=$(supervisors "$task"); do
		peak=$(awk '/VmHWM/ {print $2}' "/proc/$pid/status" 2>/dev/null || true)
		memory=${peak:-$memory}
		sleep 0.05
	done
	result=$(end_of "$task")
	equal "$(field .state "$result")" succeeded
	equal "$(field .log_bytes "$result")" $((300 * 1048576 + 9))
	[[ $(field .log_tail "$result") == *$'y\n\nthe end' ]]
	page=$(look flood "$task" '{"stdout_offset":1048570}')
	equal "$(jq -c '[.stdout, .stdout_next_offset, .stdout_size, .stdout_truncated, .stdout_seen]' <<<"$page")" \
		'["y\ny\ny\n",1048576,1048576,true,314572809]'
	[ "$memory" -gt 0 ]
	grep -q __asan_init "$BIN/spoolbox-task" || [ "$memory" -le 8192 ]
	[ "$(du -sk "$SPOOL/tasks/$task" | cut -f1)" -le 3072 ]
}

@test "bytes of any kind: pages are valid UTF-8, offsets count bytes, text that is not UTF-8 is read" {
	call create_sandbox '{"sandbox":"bytes"}' >/dev/null
	task=$(start bytes 'head -c 100000 /dev/urandom; head -c 50000 /dev/urandom >&2')
	end_of "$task" >"$TEST_DIR/random.job"
	iconv -f utf-8 -t utf-8 "$TEST_DIR/random.job" >/dev/null
	equal "$(look bytes "$task" '{"limit":65536}' | iconv -f utf-8 -t utf-8 | jq -c '[.stdout_next_offset, .stdout_size, .stderr_next_offset]')" \
		'[65536,100000,50000]'
	# every byte below 128, NUL among them, comes back as it is, whatever the size of a page
	task=$(start bytes 'for i in $(seq 0 127); do printf "\\x$(printf %x "$i")"; done >t; for i in $(seq 40); do cat t; done')
	end_of "$task" >/dev/null
	text_of bytes "$task" stdout 777 | sha256sum >"$TEST_DIR/pages"
	equal "$(cat "$TEST_DIR/pages")" "$(for _ in $(seq 40); do cat "$SPOOL"/data/*/workspace/t; done | sha256sum)"
	# "Chinese" in GB18030: the tail is decoded, a page of bytes shows what it is
	task=$(start bytes 'printf "\xd6\xd0\xce\xc4\n"')
	equal "$(end_of "$task" | jq -r .log_tail)" 中文
	contains "$(look bytes "$task" | jq -r .stdout)" $'\xef\xbf\xbd'
	# an emoji of four bytes cut at the edge of a page, in each way
	task=$(start bytes 'printf "a\360\237\230\200b"')
	end_of "$task" >/dev/null
	equal "$(look bytes "$task" '{"limit":5}' | jq -rj .stdout)" 'a😀'
	equal "$(look bytes "$task" '{"stdout_offset":1}' | jq -rj .stdout)" '😀b'
	for cut in 2 3 4; do
		head=$(look bytes "$task" "{\"limit\":$cut}")
		equal "$(field .stdout_next_offset "$head")" "$cut"
		[[ $(field .stdout "$head") == a$'\xef\xbf\xbd'* ]]
		[[ $(look bytes "$task" "{\"stdout_offset\":$cut}" | jq -r .stdout) == *$'\xef\xbf\xbd'b ]]
	done
}

@test "secrets are masked before they reach the disk, wherever a write splits them" {
	secret=swordfish-$MARK-swordfish
	call create_sandbox "{\"sandbox\":\"masked\",\"env\":{\"API_TOKEN\":\"$secret\",\"PLAIN\":\"not-masked\"}}" >/dev/null
	task=$(start masked 's=$API_TOKEN; for i in $(seq 0 ${#s}); do printf "<%s" "${s:0:i}"; sleep 0.02; printf "%s>" "${s:i}"; sleep 0.02; done; echo $PLAIN')
	other=$(start_job masked 'echo "$PASS_WORD $DB_PASSWORD" >&2' '{"env":{"DB_PASSWORD":"job-only-password","PASS_WORD":"plain-word"}}')
	server=$(start masked "echo $TOKEN | rev | rev")
	equal "$(end_of "$task" | jq -rj .log_tail)" "$(for _ in $(seq 0 ${#secret}); do printf '<***>'; done; echo not-masked)"
	equal "$(end_of "$other" | jq -r .log_tail)" 'plain-word ***'
	equal "$(end_of "$server" | jq -r .log_tail)" '***'
	# the spec has what the caller gave; what came out is in the other files
	equal "$(cd "$SPOOL/tasks" && grep -rlF -e "$secret" -e job-only-password -e "$TOKEN" "$task" "$other" "$server" | grep -v '/spec$')" ''
}

@test "the same request_id is the same task, also for twenty at once" {
	call create_sandbox '{"sandbox":"again"}' >/dev/null
	first=$(start again 'echo ran >>count; sleep 30' '{"request_id":"r 1"}')
	again=$(call start_task '{"sandbox_id":"again","command":"echo ran >>count; sleep 30","request_id":"r 1"}')
	equal "$(field .task_id "$again")" "$first"
	contains "$(field .note "$again")" 'nothing was started'
	for _ in $(seq 20); do
		echo '{"sandbox":"again","command":"echo ran >>twenty","request_id":"all of us"}'
	done | all_at_once "$TEST_DIR/twenty" run_background
	equal "$(results "$TEST_DIR/twenty" | jq -r .job_id | sort | uniq -c | awk '{print $1}')" 20
	end_of "$(results "$TEST_DIR/twenty" | jq -r .job_id | head -1)" >/dev/null
	equal "$(stdout_of again 'cat count twenty')" $'ran\nran'
	# another command is another task and so a mistake
	run call start_task '{"sandbox_id":"again","command":"echo other >>count","request_id":"r 1"}'
	equal "$status" 1
	contains "$output" "$first"
	equal "$(cancel again "$first" | jq -r .state)" cancelled
	equal "$(start again 'echo ran >>count; sleep 30' '{"request_id":"r 1"}')" "$first"
	equal "$(stdout_of again 'cat count')" ran
}

@test "128 tasks run in a sandbox and the next one is refused, until one has ended" {
	call create_sandbox '{"sandbox":"full"}' >/dev/null
	for _ in $(seq 128); do
		echo "{\"sandbox_id\":\"full\",\"command\":\"exec sleep 313.$MARK\"}"
	done | all_at_once "$TEST_DIR/full" start_task
	equal "$(results "$TEST_DIR/full" | jq -r .state | sort | uniq -c | xargs)" '128 running'
	appears "sleep 31[3].$MARK" 128
	run call start_task '{"sandbox_id":"full","command":"touch started"}'
	equal "$status" 1
	contains "$output" 128
	contains "$output" cancel_task
	equal "$(stdout_of full 'ls -A')" ""
	victim=$(results "$TEST_DIR/full" | jq -r .task_id | head -1)
	equal "$(cancel full "$victim" | jq -r .state)" cancelled
	next=$(start full 'echo there is room')
	equal "$(end_of "$next" | jq -r .log_tail)" 'there is room'
	call kill_sandbox '{"sandbox_id":"full"}' >/dev/null
	gone "sleep 31[3].$MARK"
	no_supervisor
	equal "$(look "$(results "$TEST_DIR/full" | jq -r .sandbox_id | tail -1)" "$(results "$TEST_DIR/full" | jq -r .task_id | tail -1)" | jq -r .state)" unknown
}

@test "what is malformed is refused before anything happens" {
	call create_sandbox '{"sandbox":"strict"}' >/dev/null
	task=$(start strict 'echo kept')
	end_of "$task" >/dev/null
	before=$(ls -A "$SPOOL/tasks" | wc -l)
	long=$(head -c 65537 /dev/zero | tr '\0' x)
	refused() { # TOOL ARGUMENTS PART
		run call "$1" "$2"
		[ "$status" -ne 0 ]
		contains "$output" "$3"
	}
	refused start_task '{"sandbox_id":"strict","command":"touch x","colour":"red"}' colour
	refused run_background '{"sandbox":"strict-never","command":"touch x","colour":"red"}' colour
	refused run_background '{"sandbox":"strict-never","command":"touch x","timeout":3601}' 3600
	refused start_task '{"sandbox_id":"strict","command":"touch x","timeout":0}' timeout
	refused start_task '{"sandbox_id":"strict","command":"touch x","timeout":3601}' timeout
	refused start_task '{"sandbox_id":"strict","command":""}' command
	refused start_task '{"sandbox_id":"strict"}' command
	refused start_task '{"sandbox_id":"strict","command":"touch x","request_id":"caf\u00e9"}' request_id
	refused start_task '{"sandbox_id":"strict-never","command":"touch x"}' strict-never
	refused start_task '{"sandbox_id":"strict","command":"touch x\u0000y"}' NUL
	refused start_task "{\"sandbox_id\":\"strict\",\"command\":\"touch x #$long\"}" 65536
	refused start_task "$(jq -cn '{sandbox_id:"strict",command:("touch x #" + ("\"" * 60000))}')" 98304
	for id in ../tasks "${task^^}" "${task:1}" "${task}0" '' "$task/../$task" "${task:0:31}g"; do
		for tool in get_task cancel_task; do
			refused $tool "$(jq -cn --arg id "$id" '{sandbox_id:"strict",task_id:$id}')" task
		done
		for tool in get_job stop_job; do
			refused $tool "$(jq -cn --arg id "$id" '{job_id:$id}')" job
		done
	done
	# an id of somewhere else is an unknown id
	call create_sandbox '{"sandbox":"elsewhere"}' >/dev/null
	refused get_task "{\"sandbox_id\":\"elsewhere\",\"task_id\":\"$task\"}" 'no task'
	refused get_task "{\"sandbox_id\":\"strict\",\"task_id\":\"${task//[0-9]/0}\"}" 'no task'
	refused get_task "{\"sandbox_id\":\"strict\",\"task_id\":\"$task\",\"stdout_offset\":1048577}" stdout_offset
	refused get_task "{\"sandbox_id\":\"strict\",\"task_id\":\"$task\",\"limit\":65537}" limit
	refused get_task "{\"sandbox_id\":\"strict\",\"task_id\":\"$task\",\"wait\":26}" wait
	refused get_job "{\"job_id\":\"$task\",\"tail\":5}" tail
	equal "$(ls -A "$SPOOL/tasks" | wc -l)" "$before"
	equal "$(call list_sandboxes '{}' | jq '[.sandboxes[] | select(.name == "strict-never")] | length')" 0
	equal "$(stdout_of strict 'ls -A')" ""
}

@test "get_job returns at the end and not at the end of its wait; tail_lines is what it says" {
	id=$(start_job jobs 'seq 100; sleep 2; echo err >&2; sleep 0.1; echo last; exit 3')
	start=$SECONDS
	result=$(job "$id")
	[ $((SECONDS - start)) -lt 8 ]
	equal "$(jq -c '[.status, .state, .exit_code, .log_bytes]' <<<"$result")" '["finished","failed",3,301]'
	equal "$(job "$id" '{"tail_lines":3}' | jq -c '[.log_tail, .log_truncated]')" '["100\nerr\nlast\n",true]'
	# one that prints nothing: the wait is kept, and two polls differ
	id=$(start_job jobs "sleep 314.$MARK")
	start=$SECONDS
	first=$(job "$id" '{"wait":2}')
	[ $((SECONDS - start)) -ge 2 ]
	second=$(job "$id" '{"wait":0}')
	equal "$(field .status "$first $second" | sort -u)" running
	[ "$(field .polled_at "$first")" != "$(field .polled_at "$second")" ]
	stopped=$(call stop_job "{\"job_id\":\"$id\"}")
	equal "$(jq -c '[.stopped, .state]' <<<"$stopped")" '[true,"cancelled"]'
	gone "sleep 31[4].$MARK"
	again=$(call stop_job "{\"job_id\":\"$id\"}")
	equal "$(field .stopped "$again")" true
	contains "$(field .note "$again")" before
}

@test "list_jobs shows the jobs of a sandbox, newest first, as they are" {
	a=$(start_job listed 'exit 4')
	end_of "$a" >/dev/null
	b=$(start_job listed "sleep 315.$MARK" '{"timeout":1}')
	end_of "$b" >/dev/null
	c=$(start listed "sleep 315.$MARK")
	listed=$(call list_jobs '{"sandbox":"listed"}')
	equal "$(jq -c '[.jobs[] | [.job_id, .state]]' <<<"$listed")" \
		"[[\"$c\",\"running\"],[\"$b\",\"timed_out\"],[\"$a\",\"failed\"]]"
	equal "$(call list_jobs '{"sandbox":"listed","limit":1}' | jq -r '.jobs[].job_id')" "$c"
	kill -9 "$(supervisors "$c")"
	equal "$(call list_jobs '{"sandbox":"listed"}' | jq -r '.jobs[0].state')" unknown
	gone "sleep 31[5].$MARK"
}

@test "destroying a sandbox ends its task, which is unknown and says why" {
	created=$(call create_sandbox '{"sandbox":"doomed"}')
	sandbox=$(field .sandbox_id "$created")
	task=$(start doomed "echo begun; setsid sleep 316.$MARK & sleep 316.$MARK")
	appears "sleep 31[6].$MARK" 2
	call destroy_sandbox '{"sandbox":"doomed","delete_files":true}' >/dev/null
	gone "sleep 31[6].$MARK"
	result=$(look "$sandbox" "$task")
	equal "$(jq -c '[.state, .stdout, has("exit_code")]' <<<"$result")" '["unknown","begun\n",false]'
	contains "$(field .reason "$result")" destroyed
	equal "$(job "$task" | jq -r .status)" unknown
	no_supervisor
}

@test "children that a job leaves running on purpose are counted and stay until their sandbox is destroyed" {
	task=$(start_job leaves "sleep 317.$MARK & echo left")
	start=$SECONDS
	equal "$(end_of "$task" | jq -c "[.state, .log_tail, .background_processes]")" '["succeeded","left\n",1]'
	[ $((SECONDS - start)) -lt 10 ]
	equal "$(alive "sleep 31[7].$MARK")" 1
	call destroy_sandbox '{"sandbox":"leaves"}' >/dev/null
	gone "sleep 31[7].$MARK"
}
