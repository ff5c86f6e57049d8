# Background tasks in system tests: starting, reading and waiting, many at once, and who is left.
# To be loaded after harness.

# start SANDBOX COMMAND [MORE]: start_task; prints the id of the task.
start() {
	call start_task "$(jq -cn --arg s "$1" --arg c "$2" --argjson more "${3:-{\}}" \
		'{sandbox_id:$s,command:$c} + $more')" | jq -r .task_id
}

# start_job SANDBOX COMMAND [MORE]: run_background; prints the id of the job.
start_job() {
	call run_background "$(jq -cn --arg s "$1" --arg c "$2" --argjson more "${3:-{\}}" \
		'{sandbox:$s,command:$c} + $more')" | jq -r .job_id
}

# look SANDBOX TASK [MORE]: get_task
look() {
	call get_task "$(jq -cn --arg s "$1" --arg t "$2" --argjson more "${3:-{\}}" \
		'{sandbox_id:$s,task_id:$t} + $more')"
}

# cancel SANDBOX TASK
cancel() {
	call cancel_task "$(jq -cn --arg s "$1" --arg t "$2" '{sandbox_id:$s,task_id:$t}')"
}

# job TASK [MORE]: get_job, which waits up to 15 s for the end unless told otherwise.
job() {
	call get_job "$(jq -cn --arg t "$1" --argjson more "${2:-{\}}" '{job_id:$t} + $more')"
}

# end_of TASK: get_job of the ended job; fails after a minute.
end_of() {
	local result i
	for ((i = 0; i < 4; i++)); do
		result=$(job "$1") || return 1
		[ "$(jq -r .status <<<"$result")" = running ] || { echo "$result"; return 0; }
	done
	echo "still running: $result" >&2
	return 1
}

# text_of SANDBOX TASK STREAM [LIMIT]: all that is kept of stdout or stderr, page by page.
text_of() {
	local offset=0 page size
	while :; do
		page=$(look "$1" "$2" "{\"${3}_offset\":$offset,\"limit\":${4:-65536}}") || return 1
		jq -rj ".$3" <<<"$page"
		offset=$(jq ".${3}_next_offset" <<<"$page")
		size=$(jq ".${3}_size" <<<"$page")
		[ "$offset" -lt "$size" ] || return 0
	done
}

# all_at_once DIR TOOL <ARGUMENTS: one call for each line of JSON, up to 100 at a time; the n-th
# response goes to DIR/n.
all_at_once() {
	local dir=$1
	mkdir -p "$dir"
	rm -f "$dir"/*
	jq -r --arg t "$2" --arg dir "$dir" --arg url "$URL/mcp" --arg auth "Authorization: Bearer $TOKEN" \
		--arg version "MCP-Protocol-Version: $PROTOCOL" \
		'{jsonrpc:"2.0",id:1,method:"tools/call",params:{name:$t,arguments:.}} | tojson | tojson |
		"url = \"\($url)\"", "header = \"\($auth)\"", "header = \"Content-Type: application/json\"",
		"header = \"\($version)\"", "max-time = 120", "data-binary = \(.)",
		"output = \"\($dir)/\(input_line_number)\"", "next"' |
		sed '$d' | curl -s --no-progress-meter -Z --parallel-immediate --parallel-max 100 -K - 3>&-
}

# results DIR: the structured results in order.
results() {
	(cd "$1" && jq -c '.result.structuredContent // .' $(ls | sort -n))
}

# Process ids of the supervisors, all or that of one task.
supervisors() {
	pgrep -f "^$BIN/spoolbox-task.*${1:-}"
}

# Process ids of the workers; quicker than looking through /proc as workers does.
web_workers() {
	pgrep -P "$(pgrep -d, -P "$SERVICE" lighttpd)" spoolbox.fcgi
}

# The whole service at once, as when the machine's power goes: what is left are sandboxes and
# supervisors.
kill_service() {
	kill -9 "$SERVICE" $(pgrep -P "$SERVICE") $(web_workers) 2>/dev/null || true
	wait_gone "$SERVICE"
}

# alive PATTERN: how many processes of this machine have it in their command line. Write one of its
# characters in brackets, so that it is not in our own.
alive() {
	pgrep -fc -- "$1" || true
}

# gone PATTERN [SECONDS]: waits until there is none (5 s).
gone() {
	local i
	for ((i = 0; i < ${2:-5} * 10; i++)); do
		[ "$(alive "$1")" -eq 0 ] && return 0
		sleep 0.1
	done
	ps -o pid,ppid,stat,args -p "$(pgrep -fd, -- "$1")" >&2
	return 1
}

# appears PATTERN [COUNT]: waits up to 10 s until there are that many.
appears() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ "$(alive "$1")" -ge "${2:-1}" ] && return 0
		sleep 0.1
	done
	echo "not there: $1" >&2
	return 1
}

# Waits up to 10 s for the end of all supervisors.
no_supervisor() {
	gone "^$BIN/spoolbox-tas[k]" 10
}

# modern METHOD PARAMS [NAME] [EXTENSIONS] [curl arguments...]: the response of the modern era.
modern() {
	local method=$1 params=$2 name=${3:-} extensions=${4:-{\}}
	shift $(($# < 4 ? $# : 4))
	jq -cn --arg m "$method" --argjson p "$params" --argjson x "$extensions" \
		'{jsonrpc:"2.0",id:1,method:$m,params:($p + {_meta:(($p._meta // {}) + {
			"io.modelcontextprotocol/protocolVersion":"2026-07-28",
			"io.modelcontextprotocol/clientCapabilities":{extensions:$x}})})}' |
		post @- -H 'MCP-Protocol-Version: 2026-07-28' -H "Mcp-Method: $method" \
			${name:+-H "Mcp-Name: $name"} "$@"
}
