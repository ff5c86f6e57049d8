#!/usr/bin/env bats
# What the protocol promises and one process alone cannot show: the same answers from every worker, on
# every connection, across restarts. "checklist N" names the point of the protocol's checklist that a
# test stands for.

load harness
load tasks

# More rounds find more: RACE_ROUNDS=500 make check
ROUNDS=${RACE_ROUNDS:-24}

setup_file() { harness_open && start_service SMCP_CONFIRM_DESTROY=files SMCP_EXEC_WAIT=1 SMCP_WORKERS=8 && disown -a; }
teardown_file() { harness_close; }
setup() { load_state; }

TASKS='{"io.modelcontextprotocol/tasks":{}}'
NOBODY=ffffffffffffffffffffffffffffffff

# Puts other processes in the place of all workers for /mcp; fails when one stays.
replace_workers() {
	local before after i
	before=$(web_pids)
	kill $before
	for ((i = 0; i < 100; i++)); do
		after=$(web_pids)
		[ "$(wc -w <<<"$after")" -ge "$(wc -w <<<"$before")" ] && [ -z "$(comm -12 <(echo "$before") <(echo "$after"))" ] && return 0
		sleep 0.1
	done
	echo "before: $before; after: $after" >&2
	return 1
}

# Process ids of all workers, sorted as text.
web_pids() {
	pgrep -f "^([^ ]*/)?spoolbox.fcgi --workers" | while read -r p; do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" = spoolbox.fcgi ] && [[ $(readlink "/proc/$p/exe") == *"/$TEST_ID/"* ]] && echo "$p"
	done | sort
}

# --- no memory between requests --------------------------------------------------------------

# A request of one file of curl's configuration: config METHOD PARAMS DECLARED NAME
config() {
	jq -rn --arg url "$URL/mcp" --arg token "$TOKEN" --arg m "$1" --argjson p "$2" --argjson x "$3" --arg name "$4" '
		"url = \($url)", "header = \"Authorization: Bearer \($token)\"", "header = \"Content-Type: application/json\"",
		"header = \"MCP-Protocol-Version: 2026-07-28\"", "header = \"Mcp-Method: \($m)\"", "header = \"Mcp-Name: \($name)\"",
		"write-out = \"%{http_code} %{num_connects}\\n\"", "output = /dev/null", "silent",
		"data-binary = \({jsonrpc:"2.0",id:1,method:$m,params:($p + {_meta:{
			"io.modelcontextprotocol/protocolVersion":"2026-07-28",
			"io.modelcontextprotocol/clientCapabilities":{extensions:$x}}})} | tojson | tojson)", "next"'
}

# checklist 36
@test "what one request declares is forgotten, on one connection and on any worker" {
	local i
	for ((i = 0; i < 12; i++)); do
		config tasks/get "{\"taskId\":\"$NOBODY\"}" "$TASKS" $NOBODY
		config tasks/get "{\"taskId\":\"$NOBODY\"}" '{}' $NOBODY
	done | sed '$d' >"$TEST_DIR/curl.conf"
	curl -K "$TEST_DIR/curl.conf" >"$TEST_DIR/codes"
	# declared: it is looked for and not there; not declared: refused. One connection for all.
	equal "$(cut -d' ' -f1 "$TEST_DIR/codes" | paste -sd' ')" "$(yes '200 400' | head -12 | paste -sd' ')"
	equal "$(awk '{n += $2} END {print n}' "$TEST_DIR/codes")" 1
	# and at the same time, on all workers
	curl -Z --parallel-immediate --no-progress-meter -K "$TEST_DIR/curl.conf" | cut -d' ' -f1 | sort | uniq -c | xargs >"$TEST_DIR/codes"
	equal "$(cat "$TEST_DIR/codes")" '12 200 12 400'
}

# checklist 48
@test "a conversation of the handshake era is the same with another process for each request" {
	local answer id
	answer=$(post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}')
	equal "$(field .result.protocolVersion "$answer")" 2025-06-18
	PROTOCOL=2025-06-18
	replace_workers
	equal "$(post '{"jsonrpc":"2.0","method":"notifications/initialized"}' -H "MCP-Protocol-Version: $PROTOCOL" -o /dev/null -w '%{http_code}')" 202
	replace_workers
	contains "$(rpc tools/list | jq -c '[.result.tools[].name]')" '"exec"'
	replace_workers
	call write_text '{"sandbox":"talk","path":"a","content":"one"}' >/dev/null
	replace_workers
	equal "$(stdout_of talk 'cat a')" one
	replace_workers
	id=$(start_job talk 'echo from a job; sleep 2')
	replace_workers
	equal "$(end_of "$id" | jq -r .log_tail)" 'from a job'
	replace_workers
	equal "$(rpc resources/read '{"uri":"spoolbox://talk/a"}' | jq -r '.result.contents[0].text')" one
	equal "$(rpc ping | jq -c .result)" '{}'
}

# checklist 90
@test "the list of tools is the same for every connection, worker, and whatever was done before" {
	local i first
	first=$(modern tools/list '{}' | jq -cS .result.tools)
	contains "$first" '"create_sandbox"'
	modern tools/list '{}' '' "$TASKS" >/dev/null
	call create_sandbox '{"sandbox":"listed"}' >/dev/null
	for i in 1 2 3 4 5 6 7 8; do
		equal "$(modern tools/list '{}' | jq -cS .result.tools)" "$first"
	done
	replace_workers
	equal "$(modern tools/list '{}' | jq -cS .result.tools)" "$first"
	equal "$(modern tools/list '{}' '' "$TASKS" | jq -cS .result.tools)" "$first"
	first=$(rpc tools/list)
	post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}' >/dev/null
	equal "$(rpc tools/list)" "$first"
}

# --- what is offered -------------------------------------------------------------------------

# checklist 38
@test "what the product advertises works, and what it does not advertise is unknown, in both eras" {
	local offered method
	offered=$(modern server/discover '{}' | jq -cS .result.capabilities)
	equal "$offered" "$(jq -cnS --argjson x "$TASKS" '{completions:{},extensions:$x,prompts:{},resources:{},tools:{}}')"
	# the extension is of the modern era only
	equal "$(rpc initialize '{"protocolVersion":"2025-11-25","capabilities":{}}' | jq -cS .result.capabilities)" \
		"$(jq -cS 'del(.extensions)' <<<"$offered")"
	call write_text '{"sandbox":"offer","path":"a","content":"x"}' >/dev/null
	for method in tools/list:tools prompts/list:prompts resources/list:resources resources/templates/list:resourceTemplates; do
		[ "$(modern "${method%:*}" '{}' | jq ".result.${method#*:} | length")" -gt 0 ]
		[ "$(rpc "${method%:*}" | jq ".result.${method#*:} | length")" -gt 0 ]
	done
	local ref='{"ref":{"type":"ref/prompt","name":"process_file"},"argument":{"name":"sandbox","value":"off"}}'
	equal "$(modern completion/complete "$ref" | jq -c .result.completion.values)" '["offer"]'
	equal "$(rpc completion/complete "$ref" | jq -c .result.completion.values)" '["offer"]'
	equal "$(modern tasks/get "{\"taskId\":\"$NOBODY\"}" $NOBODY "$TASKS" | jq .error.code)" -32602
	for method in subscriptions/listen logging/setLevel resources/subscribe resources/unsubscribe \
		tasks/list tasks/result tasks/cancel_all roots/list sampling/createMessage ping initialize; do
		equal "$(modern $method '{"notifications":{}}' '' "$TASKS" -w '%{http_code}' | jq -r 'numbers // .error.code' | xargs)" '-32601 404'
	done
	for method in subscriptions/listen logging/setLevel resources/subscribe tasks/get tasks/cancel tasks/list server/discover; do
		equal "$(rpc $method '{"uri":"spoolbox://offer/a","level":"info"}' | jq .error.code)" -32601
	done
}

# checklist 87, 88: what is left of them for one token that may do everything
@test "no authorization server is promised: a plain challenge, and no well-known document" {
	local path headers
	headers=$(curl -s -D - -o /dev/null "$URL/mcp" -H 'Content-Type: application/json' -d '{}' | tr -d '\r')
	contains "$headers" ' 401'
	contains "${headers,,}" 'www-authenticate: bearer realm="mcp"'
	not grep -qi 'resource_metadata\|insufficient_scope\|scope=' <<<"$headers"
	for path in oauth-protected-resource oauth-protected-resource/mcp oauth-authorization-server openid-configuration; do
		equal "$(http_status "$URL/.well-known/$path")" 404
	done
}

# checklist 30
@test "a header that comes twice is refused, also when the web server makes one of the two" {
	local header
	for header in 'Mcp-Method: tools/list' 'MCP-Protocol-Version: 2026-07-28'; do
		equal "$(modern tools/list '{}' '' '{}' -o /dev/null -w '%{http_code}' -H "$header")" 400
	done
	equal "$(modern tools/call '{"name":"list_sandboxes"}' list_sandboxes '{}' -o /dev/null -w '%{http_code}' -H 'Mcp-Name: list_sandboxes')" 400
	equal "$(modern tools/list '{}' '' '{}' -o /dev/null -w '%{http_code}')" 200
}

# --- a question and its answer ---------------------------------------------------------------

# ask_to_destroy SANDBOX [MORE-PARAMS]: the modern call of a client that can put a question.
ask_to_destroy() {
	jq -cn --arg s "$1" --argjson more "${2:-{\}}" '{jsonrpc:"2.0",id:1,method:"tools/call",params:({
		name:"destroy_sandbox",arguments:{sandbox:$s,delete_files:true},_meta:{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{elicitation:{form:{}}}}} + $more)}' |
		post @- -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: destroy_sandbox'
}

# agree SANDBOX STATE: the same call with a yes.
agree() {
	ask_to_destroy "$1" "$(jq -cn --arg state "$2" \
		'{requestState:$state,inputResponses:{delete:{action:"accept",content:{delete:true}}}}')"
}

# question SANDBOX: makes it and asks; prints the requestState.
question() {
	local answer
	call write_text "{\"sandbox\":\"$1\",\"path\":\"f\",\"content\":\"x\"}" >/dev/null
	answer=$(ask_to_destroy "$1")
	equal "$(jq -r .result.resultType <<<"$answer")" input_required || return 1
	jq -r .result.requestState <<<"$answer"
}

rotate_state_key() {
	as_user mv "$SPOOL/keys/state" "$SPOOL/keys/state.old"
	replace_workers
}

# checklist 76
@test "the answer to a question is good for another worker, and across one rotation of the key, not two" {
	local first second third
	first=$(question first)
	second=$(question second)
	third=$(question third)
	replace_workers
	equal "$(agree first "$first" | jq .result.structuredContent.files_deleted)" true
	rotate_state_key
	[ -f "$SPOOL/keys/state" ] && [ -f "$SPOOL/keys/state.old" ]
	not cmp -s "$SPOOL/keys/state" "$SPOOL/keys/state.old"
	equal "$(agree second "$second" | jq .result.structuredContent.files_deleted)" true
	rotate_state_key
	equal "$(agree third "$third" | jq .error.code)" -32602
	equal "$(stdout_of third 'cat f')" x
	# what is sealed now is good for all workers
	for _ in 1 2 3 4 5 6; do third=$(ask_to_destroy third | jq -r .result.requestState); done
	equal "$(agree third "$third" | jq .result.structuredContent.files_deleted)" true
}

# --- ends of tasks ---------------------------------------------------------------------------

# A call that goes on as a task of the modern era; prints its id.
start_modern() {
	modern tools/call "$(jq -cn --arg s "$1" --arg c "$2" '{name:"exec",arguments:{sandbox:$s,command:$c}}')" exec "$TASKS" |
		jq -r '.result | select(.resultType == "task") | .taskId'
}

# task METHOD ID: tasks/METHOD; prints the response.
task() {
	modern "tasks/$1" "{\"taskId\":\"$2\"}" "$2" "$TASKS"
}

# checklist 78
@test "a task that was just created is found by every worker" {
	local i id pids
	call create_sandbox '{"sandbox":"found"}' >/dev/null
	for i in 1 2 3; do
		id=$(start_modern found 'sleep 30')
		equal "${#id}" 32
		pids=
		for _ in 1 2 3 4 5 6 7 8; do
			task get "$id" | jq -r .result.status >>"$TEST_DIR/states" 3>&- &
			pids="$pids $!"
		done
		wait $pids
	done
	replace_workers
	task get "$id" | jq -r .result.status >>"$TEST_DIR/states"
	equal "$(sort "$TEST_DIR/states" | uniq -c | xargs)" '25 working'
}

# looks ID COUNT: what so many looks at a task see, one after the other.
looks() {
	local i
	for ((i = 0; i < $2; i++)); do task get "$1" | jq -r .result.status; done
}

# race N: a task that ends by itself at about the time when it is cancelled, in two ways at once. What
# is seen meanwhile goes to race.N.looks, what is seen afterwards to race.N.ends.
race() {
	local id tenths watcher cancels
	# a second is the wait; on a busy machine the command may still end within it, and is no task then
	until [ "${id:-}" ]; do
		tenths=$((RANDOM % 10 + 15))
		id=$(start_modern race "sleep ${tenths%?}.${tenths#?}")
	done
	looks "$id" 6 >"$TEST_DIR/race.$1.looks" 3>&- &
	watcher=$!
	sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
	task cancel "$id" >/dev/null 3>&- &
	cancels=$!
	call stop_job "{\"job_id\":\"$id\"}" >/dev/null
	wait $watcher $cancels
	looks "$id" 3 >"$TEST_DIR/race.$1.ends"
}

# checklist 80
@test "a cancel at the moment of the end: $ROUNDS rounds, and no end ever changes" {
	local i end pids=
	call create_sandbox '{"sandbox":"race"}' >/dev/null
	for ((i = 1; i <= ROUNDS; i++)); do
		race "$i" 3>&- &
		pids="$pids $!"
		[ $((i % 4)) != 0 ] && [ "$i" != "$ROUNDS" ] || { wait $pids; pids=; }
	done
	for ((i = 1; i <= ROUNDS; i++)); do
		equal "$(wc -l <"$TEST_DIR/race.$i.ends")" 3
		end=$(sort -u "$TEST_DIR/race.$i.ends")
		[ "$end" = completed ] || [ "$end" = cancelled ]
		echo "$end" >>"$TEST_DIR/race.ends"
		# "working" some times, then this end and no other
		equal "$(sed '/^working$/d' "$TEST_DIR/race.$i.looks" | sort -u | grep -vx "$end")" ''
		equal "$(uniq "$TEST_DIR/race.$i.looks" | sed 1d | grep -cx working)" 0
	done
	echo "# $(sort "$TEST_DIR/race.ends" | uniq -c | xargs)" >&3
	grep -q completed "$TEST_DIR/race.ends"
	grep -q cancelled "$TEST_DIR/race.ends"
}

# checklist 83
# It ends as the call itself would have: with a result that is an error, says why, and has what was kept.
@test "a task whose supervisor was killed has failed, and does not work for ever" {
	local id answer
	id=$(start_modern lost 'echo begun; sleep 100')
	equal "$(task get "$id" | jq -r .result.status)" working
	kill -9 $(supervisors "$id")
	gone "^$BIN/spoolbox-task.*$id"
	answer=$(task get "$id")
	equal "$(jq -c '.result | [.status, .result.isError, (.result | has("structuredContent"))]' <<<"$answer")" '["completed",true,false]'
	contains "$(field '.result.result.content[0].text' "$answer")" 'what looks after it was killed'
	contains "$(field '.result.result.content[0].text' "$answer")" 'begun'
	equal "$(task get "$id" | jq -r .result.status)" completed
}
