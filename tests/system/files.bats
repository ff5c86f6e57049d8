#!/usr/bin/env bats
# Files of a sandbox through the tools.

load harness

setup_file() { harness_open && start_service; }
teardown_file() { harness_close; }
setup() { load_state; }

# write SANDBOX PATH CONTENT
write() {
	call write_text "$(jq -cn --arg s "$1" --arg p "$2" --arg c "$3" '{sandbox:$s,path:$p,content:$c}')"
}
# read SANDBOX PATH [MORE]
read_file() {
	call read_text "$(jq -cn --arg s "$1" --arg p "$2" --argjson m "${3:-{\}}" '{sandbox:$s,path:$p} + $m')"
}

@test "a sandbox that closes its workspace shuts out neither the server nor itself" {
	run_in closed 'echo kept > f' >/dev/null
	for mode in 000 600 300; do
		run_in closed "chmod $mode /workspace" >/dev/null
		contains "$(call read_text '{"sandbox":"closed","path":"f"}')" kept
		run_in closed "chmod $mode /workspace" >/dev/null
		equal "$(stdout_of closed 'cat f')" kept
		run_in closed "chmod $mode /workspace" >/dev/null
		spoolbox stop --all >/dev/null
		equal "$(stdout_of closed 'cat f')" kept
	done
}

@test "what is written is what is read, in here and in the sandbox" {
	text=$'line "one"\n\ttwo\\n 中文 🤣\n$HOME `x`'
	result=$(write main notes/a.txt "$text")
	equal "$(field .created "$result")" true
	equal "$(field .size "$result")" "$(printf %s "$text" | wc -c)"
	equal "$(read_file main /workspace/notes/a.txt | jq -r .content)" "$text"
	equal "$(stdout_of main 'sha256sum <notes/a.txt')" "$(printf %s "$text" | sha256sum)"
}

@test "an edit replaces one passage and refuses an ambiguous or a missing one" {
	write main e.txt $'aa\nbb\naa\n' >/dev/null
	run call edit_text '{"sandbox":"main","path":"e.txt","old_text":"aa","new_text":"x"}'
	[ "$status" -eq 1 ]
	run call edit_text '{"sandbox":"main","path":"e.txt","old_text":"zz","new_text":"x"}'
	[ "$status" -eq 1 ]
	equal "$(call edit_text '{"sandbox":"main","path":"e.txt","old_text":"bb\n","new_text":"cc\n"}' | jq .replacements)" 1
	equal "$(read_file main e.txt | jq -r .content)" $'aa\ncc\naa'
	equal "$(call edit_text '{"sandbox":"main","path":"e.txt","old_text":"aa","new_text":"","replace_all":true}' | jq .replacements)" 2
}

@test "a part of a long file is read by lines" {
	run_in main 'seq 1 5000 > long' >/dev/null
	result=$(read_file main long '{"offset":100,"limit":3}')
	equal "$(field .content "$result")" $'100\n101\n102'
	equal "$(field .next_offset "$result")" 103
	equal "$(field .truncated "$result")" true
}

@test "a directory is listed with types and sizes" {
	run_in list 'mkdir d; printf 12345 > f; ln -s /etc/passwd l; mkfifo p; printf x > .hidden' >/dev/null
	equal "$(call list_files '{"sandbox":"list"}' | jq -c '[.entries[] | [.name, .type, .size]]')" \
		'[[".hidden","file",1],["d","dir",null],["f","file",5],["l","link",null],["p","other",null]]'
	equal "$(call list_files '{"sandbox":"list","offset":1,"limit":2}' | jq -c '[[.entries[].name], .total, .next_offset]')" \
		'[["d","f"],5,3]'
}

@test "names of every kind come back as they were" {
	for name in '🤣.txt' 'a"b.txt' $'new\nline' '%41' 'a+b' '-leading' 'back\slash' "$(printf 'n%.0s' $(seq 255))"; do
		write names "$name" "$name" >/dev/null
		equal "$(read_file names "$name" | jq -rj .content)" "$name"
	done
	equal "$(call list_files '{"sandbox":"names"}' | jq .total)" 8
	run write names "$(printf 'n%.0s' $(seq 256))" x
	[ "$status" -eq 1 ]
}

@test "a path that leaves the workspace is refused, with the reason" {
	for path in ../x a/../../x /etc/passwd /workspace/../etc/passwd; do
		run read_file main "$path"
		[ "$status" -eq 1 ]
		run write main "$path" x
		[ "$status" -eq 1 ]
	done
	contains "$output" workspace
	[ ! -e "$SPOOL/x" ]
}

@test "a link to a file of the host is not followed, for reading, writing, listing or download" {
	run_in escape 'ln -s /etc/passwd file; ln -s /etc dir; ln -s /proc/self/root root; ln -s ../../../../../../../../etc up' >/dev/null
	for path in file dir/passwd root/etc/passwd up/passwd; do
		run read_file escape "$path"
		[ "$status" -eq 1 ]
		not grep -q 'root:' <<<"$output"
		run write escape "$path" hacked
		[ "$status" -eq 1 ]
		run call download_file "{\"sandbox\":\"escape\",\"src\":\"$path\"}"
		[ "$status" -eq 1 ]
	done
	for path in dir root/etc up; do
		run call list_files "{\"sandbox\":\"escape\",\"path\":\"$path\"}"
		[ "$status" -eq 1 ]
	done
}

@test "a FIFO, a device and a directory are refused at once" {
	run_in special 'mkfifo fifo; mkdir dir' >/dev/null
	for path in fifo dir; do
		run timeout 5 bash -c "$(declare -f call post); URL=$URL TOKEN=$TOKEN PROTOCOL=$PROTOCOL; call read_text '{\"sandbox\":\"special\",\"path\":\"$path\"}'"
		[ "$status" -eq 1 ]
	done
}

@test "a directory that is swapped for a link all the time lets nothing out" {
	run_in race 'mkdir -p real; echo mine > real/passwd; (while :; do ln -sfn real sub; ln -sfn /etc sub; done) >/dev/null 2>&1 &' >/dev/null
	for _ in $(seq 60); do
		read_file race sub/passwd || true
	done >"$TEST_DIR/race.out" 2>&1
	run_in race 'pkill -9 -f ln || true' >/dev/null
	not grep -q 'root:' "$TEST_DIR/race.out"
}

@test "reading tools do not make a sandbox, and say which one is missing" {
	run read_file nosuch a.txt
	[ "$status" -eq 1 ]
	contains "$output" nosuch
	equal "$(call list_sandboxes '{}' | jq '[.sandboxes[] | select(.name == "nosuch")] | length')" 0
}

@test "a name that could be a path is refused by every tool" {
	for tool in exec read_text write_text list_files upload_file download_file destroy_sandbox create_sandbox; do
		for name in ../x .. a/b '' "$(printf 'a%.0s' $(seq 64))"; do
			arguments=$(jq -cn --arg s "$name" --arg t "$tool" '{sandbox:$s} +
				{exec:{command:"true"},read_text:{path:"a"},write_text:{path:"a"},list_files:{},
				upload_file:{dest:"a"},download_file:{src:"a"},destroy_sandbox:{},create_sandbox:{}}[$t]')
			run call "$tool" "$arguments"
			[ "$status" -eq 1 ]
		done
	done
}

@test "a name in GB18030, as old archives have it, is found by its Unicode spelling" {
	run_in gb 'printf inside > "$(printf "\xd6\xd0\xce\xc4.txt")"' >/dev/null
	equal "$(call list_files '{"sandbox":"gb"}' | jq -c '[.entries[] | [.name, .renamed]]')" '[["中文.txt",true]]'
	equal "$(read_file gb 中文.txt | jq -r .content)" inside
}

@test "messages show paths as the sandbox has them" {
	run read_file main no/such/file
	not grep -q "$TEST_ID" <<<"$output"
	contains "$output" no/such/file
}
