#!/usr/bin/env bats
# exec through the whole chain: HTTP, worker, sandbox.

load harness

setup_file() { harness_open && start_service; }
teardown_file() { harness_close; }
setup() { load_state; }

@test "a missing sandbox is made by exec, and said so once" {
	result=$(run_in fresh 'pwd; id -u; echo $HOME')
	equal "$(field .sandbox_created "$result")" true
	equal "$(field .stdout "$result")" $'/workspace\n1000\n/workspace'
	equal "$(field .sandbox_created "$(run_in fresh true)")" false
}

@test "standard input is empty and closed unless it is given" {
	equal "$(stdout_of main 'cat; echo end=$?')" $'end=0'
	equal "$(run_in main 'cat | tr a-z A-Z' '{"stdin":"some text"}' | jq -r .stdout)" 'SOME TEXT'
}

@test "a here-document and several lines reach the shell as they are" {
	equal "$(stdout_of main $'cat <<\'X\'\n$HOME "quoted" \\n\nX\necho two')" $'$HOME "quoted" \\n\ntwo'
}

@test "an unbalanced quote is the shell's error, not ours" {
	result=$(run_in main "echo 'unbalanced")
	[ "$(field .exit_code "$result")" -ne 0 ]
	contains "$(field .stderr "$result")" "unexpected EOF"
}

@test "the two streams are kept apart" {
	result=$(run_in main 'echo out; echo err >&2; exit 3')
	equal "$(field .stdout "$result")" out
	equal "$(field .stderr "$result")" err
	equal "$(field .exit_code "$result")" 3
}

@test "a signal is told apart from an exit code" {
	result=$(run_in main 'kill -9 $$')
	equal "$(field .signal "$result")" SIGKILL
	equal "$(field 'has("exit_code")' "$result")" false
	equal "$(field .exit_code "$(run_in main 'exit 137')")" 137
}

@test "exit code 124 is not taken for a timeout" {
	equal "$(field .timed_out "$(run_in main 'exit 124')")" false
}

@test "at the timeout the command ends with all that it started" {
	start=$SECONDS
	result=$(run_in killme 'trap "" TERM; (trap "" TERM; setsid sleep 311) & sleep 311 & sleep 311' '{"timeout":1}')
	equal "$(field .timed_out "$result")" true
	[ $((SECONDS - start)) -lt 15 ]
	equal "$(stdout_of killme 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -c "sleep 31[1]" || true')" 0
}

@test "long output is cut in the middle, with the full size said" {
	result=$(run_in main 'echo first; head -c 3000000 /dev/zero | tr "\0" x; echo; echo last')
	equal "$(field .stdout_bytes "$result")" 3000012
	equal "$(field .stdout_truncated "$result")" true
	[[ $(field .stdout "$result") == first* ]]
	[[ $(field .stdout "$result") == *last ]]
	[ "$(field '.stdout | length' "$result")" -lt 34000 ]
}

@test "a gigabyte of output neither fills memory nor hangs" {
	local bytes=$((1 << 30))
	[ -z "${SPOOLBOX_VALGRIND:-}" ] || bytes=$((1 << 26)) # 20 times slower
	result=$(run_in main "yes | head -c $bytes" '{"timeout":120}')
	equal "$(field .stdout_bytes "$result")" $bytes
	for pid in $(workers); do
		small_enough "$pid"
	done
}

@test "output that is not UTF-8 comes as valid UTF-8, and its encoding is said" {
	result=$(run_in main 'printf "\xff\xfe\x00bin"')
	equal "$(field .stdout_encoding "$result")" binary
	contains "$(field .stdout "$result")" bin
	# "Chinese" in GB18030
	result=$(run_in main 'printf "\xd6\xd0\xce\xc4\n"')
	equal "$(field .stdout_encoding "$result")" gb18030
	equal "$(field .stdout "$result")" 中文
	result=$(run_in main 'head -c 4096 /dev/urandom')
	equal "$(field .stdout_bytes "$result")" 4096
}

@test "of 1000 short commands, some at a time, none comes back empty" {
	# One curl for 250 requests: a lane's requests follow each other without a pause.
	lane() {
		for i in $(seq 250); do
			printf 'url = "%s/mcp"\nheader = "Authorization: Bearer %s"\n' "$URL" "$TOKEN"
			printf 'header = "Content-Type: application/json"\n'
			printf 'header = "MCP-Protocol-Version: %s"\n' "$PROTOCOL"
			printf 'data-binary = "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"method\\":\\"tools/call\\",\\"params\\":'
			printf '{\\"name\\":\\"exec\\",\\"arguments\\":{\\"sandbox\\":\\"main\\",\\"command\\":\\"echo %s-%s\\"}}}"\nnext\n' "$1" "$i"
		done | sed '$d' | curl -s -K - | jq -r .result.structuredContent.stdout | grep .
	}
	for name in a b c d; do
		lane $name >"$TEST_DIR/lane.$name" 2>&1 3>&- &
	done
	wait
	for name in a b c d; do
		equal "$(cat "$TEST_DIR/lane.$name")" "$(seq -f "$name-%g" 250)"
	done
}

@test "blank lines and output without a newline at its end are kept" {
	equal "$(run_in main 'printf "\n\na\n\nb"' | jq -c .stdout)" '"\n\na\n\nb"'
	equal "$(run_in main true | jq -c '[.exit_code, .stdout, .stderr]')" '[0,"",""]'
}

@test "a background process does not hold the answer, lives on and is counted" {
	start=$SECONDS
	result=$(run_in bg 'sleep 60 & echo started')
	[ $((SECONDS - start)) -lt 10 ]
	equal "$(field .stdout "$result")" started
	equal "$(field .background_processes "$result")" 1
	equal "$(stdout_of bg 'pgrep -c sleep')" 1
}

@test "environment, working directory and relative paths are as asked" {
	run_in main 'mkdir -p sub/dir' >/dev/null
	equal "$(run_in main 'pwd; echo $WORD' '{"cwd":"sub/dir","env":{"WORD":"x y"}}' | jq -r .stdout)" $'/workspace/sub/dir\nx y'
	run run_in main pwd '{"cwd":"no/such"}'
	[ "$status" -eq 1 ]
	contains "$output" no/such
}

@test "nothing of the server's environment and no secret is in the sandbox" {
	environment=$(stdout_of main 'env; cat /proc/1/environ | tr "\0" "\n"; cat /proc/[0-9]*/cmdline | tr "\0" " "')
	not grep -q SMCP_ <<<"$environment"
	not grep -qF "$TOKEN" <<<"$environment"
}

@test "the sandbox cannot see the spool, other processes or the network" {
	equal "$(stdout_of main "ls $SPOOL 2>&1 | grep -c 'No such file'")" 1
	equal "$(stdout_of main 'ls -d /proc/[0-9]* | wc -l | awk "{print (\$1 < 12)}"')" 1
	equal "$(stdout_of main 'ls /sys/class/net 2>/dev/null | grep -vc "^lo$" || true')" 0
	equal "$(stdout_of main 'touch /usr/x 2>&1 | grep -c "Read-only"')" 1
	equal "$(stdout_of main 'grep -E "^Cap(Eff|Prm|Bnd)" /proc/self/status | grep -vc 0000000000000000 || true')" 0
	equal "$(stdout_of main 'grep NoNewPrivs /proc/self/status | cut -f2')" 1
}

@test "settings of the host below /usr are out of sight" {
	# They may hold our own token, and sandboxes run with the service's uid.
	equal "$(stdout_of main 'ls -A /usr/local/etc | wc -l; touch /usr/local/etc/x 2>&1 | grep -c Read-only')" $'0\n1'
	[ ! -d /usr/local/etc ] || contains "$(stdout_of main 'cat /proc/mounts')" ' /usr/local/etc tmpfs ro'
}

@test "a command cannot take PID 1 down by its limits" {
	result=$(run_in main 'prlimit --pid 1 --nofile=0; prlimit --pid 1 --nproc=0; ulimit -n 77; ulimit -n')
	equal "$(field .stdout "$result")" 77
	equal "$(stdout_of main 'echo alive')" alive
}
