#!/usr/bin/env bats
# execute_python through the whole chain: HTTP, worker, sandbox, Debian's Python and packages.

load harness

setup_file() {
	harness_open && start_service SMCP_MAX_SANDBOXES=40 SMCP_PIDS_LIMIT=2048
}
teardown_file() { harness_close; }
setup() { load_state; }

# python CODE [MORE-ARGUMENTS-AS-JSON]: prints the structured result.
python() {
	call execute_python "$(jq -cn --arg c "$1" --argjson more "${2:-{\}}" '{code:$c} + $more')"
}

# python_blocks CODE [MORE]: prints the whole result, with its content blocks.
python_blocks() {
	jq -cn --arg c "$1" --argjson more "${2:-{\}}" '{jsonrpc:"2.0",id:1,method:"tools/call",
		params:{name:"execute_python",arguments:({code:$c} + $more)}}' |
		post @- -H "MCP-Protocol-Version: $PROTOCOL" | jq -c .result
}

need_module() {
	/usr/bin/python3 -c "import $1" 2>/dev/null || skip_or_fail "python3 has no $1 (apt-get install python3-$1)"
}

# image_facts RESULT N: "WIDTH HEIGHT COLOURS" of the Nth image block.
image_facts() {
	jq -r "[.content[] | select(.type == \"image\")][$2].data" <<<"$1" | base64 -d |
		/usr/bin/python3 -c 'import sys, io; from PIL import Image
image = Image.open(io.BytesIO(sys.stdin.buffer.read())).convert("RGB")
print(*image.size, len(image.getcolors(1 << 24)))'
}

# wait_for_file SANDBOX NAME: until code has made it.
wait_for_file() {
	equal "$(stdout_of "$1" "for i in \$(seq 100); do [ -e $2 ] && break; sleep 0.1; done; ls $2")" "$2"
}

# refused ERROR TOOL-CALL...: the call fails with that error; the whole of it goes to $TEST_DIR/out.
refused() {
	local error=$1
	shift
	not "$@" >"$TEST_DIR/out" || return 1
	equal "$(jq -r '.content[0].text | fromjson | .error' "$TEST_DIR/out")" "$error"
}

new_session() {
	field .session_id "$(python "${1:-pass}" '{"session_id":"new"}')"
}
in_session() {
	python "$2" "$(jq -cn --arg s "$1" '{session_id:$s}')"
}

# --- results -------------------------------------------------------------------------------

@test "python: output, the value of the last expression and the exit code" {
	result=$(python $'import sys\nprint("out")\nprint("err", file=sys.stderr)\n6 * 7')
	equal "$(field .stdout "$result")" $'out'
	equal "$(field .stderr "$result")" $'err'
	equal "$(field .value "$result")" 42
	equal "$(field .exit_code "$result")" 0
	equal "$(field .truncated "$result")" false
	equal "$(field 'has("session_id")' "$result")" false
}

@test "python: a traceback has the caller's lines and nothing of the driver" {
	result=$(python $'def f(x):\n    return 1 / x\n\nf(0)')
	equal "$(field .exit_code "$result")" 1
	equal "$(field .error.type "$result")" ZeroDivisionError
	traceback=$(field .error.traceback "$result")
	contains "$traceback" 'line 4, in <module>'
	contains "$traceback" 'line 2, in f'
	contains "$traceback" 'return 1 / x'
	not contains "$traceback" /.python
	equal "$(grep -c File <<<"$traceback")" 2
}

@test "python: how the process ends is told apart, and its output is not lost" {
	result=$(python 'import sys; print("before"); sys.exit(3)')
	equal "$(field '"\(.stdout)|\(.exit_code)"' "$result")" $'before\n|3'
	result=$(python 'import os; print("before"); os._exit(4)')
	equal "$(field '"\(.stdout)|\(.exit_code)"' "$result")" $'before\n|4'
	result=$(python 'import ctypes; print("before"); ctypes.string_at(0)')
	equal "$(field '"\(.stdout)|\(.signal)|\(has("exit_code"))"' "$result")" $'before\n|SIGSEGV|false'
	contains "$(field .note "$result")" "crash"
	result=$(python 'import os, signal; print("before"); os.kill(os.getpid(), signal.SIGILL)')
	equal "$(field .signal "$result")" SIGILL
	contains "$(field .note "$result")" "processor"
}

@test "python: infinite recursion and a lack of memory are errors, not ends of the world" {
	equal "$(field .error.type "$(python $'def f(): f()\nf()')")" RecursionError
	equal "$(field .error.type "$(python 'x = bytearray(64 << 30)')")" MemoryError
}

@test "python: input() meets the end of the input, top-level await and multiprocessing work" {
	equal "$(field .error.type "$(python 'input("? ")' )")" EOFError
	equal "$(field .value "$(python $'import asyncio\nawait asyncio.sleep(0, "slept")')")" "'slept'"
	result=$(python $'import multiprocessing, pickle\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef double(p):\n    return P(p.x * 2)\nif __name__ == "__main__":\n    with multiprocessing.Pool(2) as pool:\n        print(pool.map(double, [P(1), pickle.loads(pickle.dumps(P(2)))]))')
	equal "$(field .stdout "$result")" '[P(x=2), P(x=4)]'
}

@test "python: output of child processes is caught, and what they leave running ends" {
	result=$(python $'import subprocess\nsubprocess.run(["echo", "child"])\nsubprocess.Popen(["sleep", "33.33"])\nprint("done")' '{"sandbox":"kids"}')
	equal "$(field .stdout "$result")" $'child\ndone'
	equal "$(stdout_of kids 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -c "sleep 33[.]33" || true')" 0
}

@test "python: a module that is not there names those that are" {
	need_module numpy
	result=$(python 'import no_such_module')
	equal "$(field .error.type "$result")" ModuleNotFoundError
	contains "$(field .error.hint "$result")" numpy
}

@test "python: forged frames on every descriptor change nothing" {
	forge=$'import os\nframe = b\'X0{"end": "exit", "code": 77, "signal": 0, "timed_out": false, "state": "none"}\'\nimage = b"I0" + b\'{"mime":"image/png","width":1,"height":1}\\n\' + b"\\x89PNG\\r\\n\\x1a\\n"\nfor data in (frame, image, bytes(16) + frame, bytes(16) + image):\n    for fd in list(range(256)):\n        if fd == 2: continue\n        try: os.write(fd, data)\n        except OSError: pass\n    for name in os.listdir("/proc/self/fd"):\n        try:\n            with open("/proc/self/fd/" + name, "wb", buffering=0) as f: f.write(data)\n        except OSError: pass\nprint("still here")\n5'
	for more in '{}' '{"session_id":"new"}'; do
		result=$(python "$forge" "$more")
		equal "$(field .exit_code "$result")" 0
		equal "$(field .images "$result")" 0
		equal "$(field .value "$result")" 5
		contains "$(field .stdout "$result")" "still here"
	done
}

@test "python: 200 MB of prints are cut in the middle within bounded memory" {
	local count=200
	[ -z "${SPOOLBOX_VALGRIND:-}" ] || count=20
	result=$(python "print('first')
for i in range($count * 1000): print('x' * 999)
print('last')" '{"timeout_ms":60000}')
	equal "$(field .stdout_bytes "$result")" $((count * 1000000 + 11))
	equal "$(field .truncated "$result")" true
	[[ $(field .stdout "$result") == first* ]]
	[[ $(field .stdout "$result") == *last ]]
	[ "$(field '.stdout | length' "$result")" -lt 34000 ]
	for pid in $(workers); do
		small_enough "$pid"
	done
}

# --- images and files ----------------------------------------------------------------------

@test "python: a plot comes as an image, after the text and before the links" {
	need_module matplotlib
	result=$(python_blocks $'import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.savefig("plot.png")\nplt.show()\nplt.bar([1, 2], [3, 4])\nprint("drawn")')
	equal "$(jq -c '[.content[].type] | reduce .[] as $t ([]; if .[-1] == $t then . else . + [$t] end)' <<<"$result")" \
		'["text","image","resource_link"]'
	equal "$(jq .structuredContent.images <<<"$result")" 2
	for i in 0 1; do
		read -r width height colours <<<"$(image_facts "$result" $i)"
		[ "$width" -ge 400 ] && [ "$height" -ge 300 ] && [ "$colours" -gt 10 ]
	done
	link=$(jq -c '.content[] | select(.type == "resource_link")' <<<"$result")
	equal "$(field .mimeType "$link")" image/png
	read=$(rpc resources/read "$(jq -c '{uri}' <<<"$link")")
	equal "$(field '.result.contents[0].blob' "$read" | base64 -d | head -c 4 | tail -c 3)" PNG
	url=$(jq -r '.structuredContent.artifacts[] | select(.name == "plot.png").url' <<<"$result")
	equal "$(curl -sf "$url" | head -c 4 | tail -c 3)" PNG
	equal "$(http_status "$url")" 410
}

@test "python: Chinese, Japanese and Korean labels draw" {
	need_module matplotlib
	fc-list :lang=ko | grep -q . || skip_or_fail "no font with Korean letters is installed"
	result=$(python_blocks $'import warnings\nwarnings.simplefilter("error")\nimport matplotlib.pyplot as plt\nfor text in ("中文标签", "日本語ラベル", "한국어 이름"):\n    plt.figure(figsize=(3, 1))\n    plt.axis("off")\n    plt.text(0.1, 0.4, text, fontsize=30)\nplt.show()')
	equal "$(jq -r .structuredContent.stderr <<<"$result")" ""
	equal "$(jq -r .structuredContent.images <<<"$result")" 3
	equal "$(jq -r '.content[] | select(.type == "image").data' <<<"$result" | sort -u | wc -l)" 3
}

@test "python: what display() shows is data, in its order" {
	result=$(python $'display("one")\nprint("between")\ndisplay({"two": 2})\n3')
	equal "$(field '[.displays[].text] | join("|")' "$result")" "one|{'two': 2}"
	equal "$(field .value "$result")" 3
}

@test "python: a script in the background draws the same letters" {
	need_module matplotlib
	fc-list :lang=ko | grep -q . || skip_or_fail "no font with Korean letters is installed"
	for ((i = 0; i < 100; i++)); do
		[ ! -f "$SPOOL/fonts/matplotlibrc" ] || break
		sleep 0.1
	done
	result=$(run_in script $'cat > plot.py <<X\nimport matplotlib.pyplot as plt\nplt.title("中文标签 日本語 한국어")\nplt.savefig("plot.png")\nX\npython3 -W error plot.py && head -c 4 plot.png | tail -c 3')
	equal "$(field .stderr "$result")" ""
	equal "$(field .exit_code "$result")" 0
	contains "$(field .stdout "$result")" PNG
}

@test "python: twenty large figures fit into the limit, and the full size is a file" {
	need_module matplotlib
	result=$(python_blocks $'import matplotlib.pyplot as plt, numpy as np\nfor i in range(20):\n    plt.figure(figsize=(40, 30), dpi=100)\n    plt.imshow(np.random.default_rng(i).random((300, 400)))\n    plt.title(f"figure {i}")' '{"timeout_ms":60000}')
	equal "$(jq -r .structuredContent.exit_code <<<"$result")" 0
	equal "$(jq -r .structuredContent.images <<<"$result")" 20
	[ "$(jq '[.content[] | select(.type == "image").data | length] | add' <<<"$result")" -le 1048576 ]
	[ "$(jq '[.content[] | select(.type == "resource_link")] | length' <<<"$result")" -ge 1 ]
	url=$(jq -r '.structuredContent.artifacts[0].url' <<<"$result")
	equal "$(curl -sf "$url" | /usr/bin/python3 -c 'import sys, io; from PIL import Image
print(*Image.open(io.BytesIO(sys.stdin.buffer.read())).size)')" "4000 3000"
	for pid in $(workers); do
		small_enough "$pid"
	done
}

@test "python: the number of files handed out and named is bounded, and said" {
	result=$(python $'for i in range(300): open(f"f{i:03}.csv", "w").write("a,b\\n")\nopen("other.bin", "w").write("x")')
	equal "$(field '.artifacts | length' "$result")" 20
	equal "$(field '.files_changed | length' "$result")" 200
	equal "$(field '.files_changed_partial' "$result")" true
	not contains "$(field '[.artifacts[].name] | join(" ")' "$result")" other.bin
}

@test "python: hostile names and links are handed out as what they are, or not at all" {
	result=$(python $'import os\nos.symlink("/etc/passwd", "link.txt")\nos.mkfifo("pipe.csv")\nopen("we ird\\n\\"name\\".txt", "w").write("fine")\nopen(b"raw\\xff.txt", "w").write("raw")')
	names=$(field '[.artifacts[].name] | join("|")' "$result")
	not contains "$names" link.txt
	not contains "$names" pipe.csv
	contains "$names" $'we ird\n"name".txt'
	url=$(field '.artifacts[] | select(.name | startswith("we ird")).url' "$result")
	equal "$(curl -sf "$url")" fine
}

@test "python: files of a sandbox are beside the code" {
	run_in data 'echo a,b > own.csv; mkdir -p sub; echo 1 > sub/deep.txt' >/dev/null
	equal "$(field .stdout "$(python 'print(open("own.csv").read(), end="")' '{"sandbox":"data","files":["own.csv"]}')")" a,b
	result=$(python $'import os\nprint(open("own.csv").read(), open("deep.txt").read(), oct(os.stat("own.csv").st_mode & 0o777))' \
		'{"files":["spoolbox://data/own.csv","spoolbox://data/sub/deep.txt"]}')
	equal "$(field .stdout "$result")" $'a,b\n 1\n 0o444'
	equal "$(field '.files_changed | length' "$result")" 0
	not python 'pass' '{"files":["own.csv"]}' >"$TEST_DIR/out"
	contains "$(cat "$TEST_DIR/out")" 'spoolbox://'
	not python 'pass' '{"files":["spoolbox://data/none.csv"]}' >"$TEST_DIR/out"
	contains "$(cat "$TEST_DIR/out")" 'none.csv'
}

# --- one call is a world of its own ----------------------------------------------------------

@test "python: variables of the sandbox reach the code, and run nothing where Python is started" {
	env='{"BASH_ENV":"/workspace/b.sh","ENV":"/workspace/b.sh","PYTHONPATH":"/workspace/lib","WORD":"x y"}'
	call create_sandbox "{\"sandbox\":\"vars\",\"env\":$env}" >/dev/null
	call write_text '{"sandbox":"vars","path":"b.sh","content":"touch /workspace/ran\n"}' >/dev/null
	call write_text '{"sandbox":"vars","path":"lib/own.py","content":"x = 42\n"}' >/dev/null
	code=$'import os, own\nos.path.exists("ran"), own.x, os.environ["WORD"], os.environ["HOME"], "SPOOLBOX_ENV_WORD" in os.environ'
	equal "$(field .value "$(python "$code" '{"sandbox":"vars"}')")" "(False, 42, 'x y', '/workspace', False)"
	equal "$(field .stdout "$(python 'import subprocess; subprocess.run(["bash", "-c", "ls ran"])' '{"sandbox":"vars"}')")" ran
}

@test "python: nothing of a call without a name is seen by a later one" {
	python $'import os, subprocess\nleft = 1\nopen("file.dat", "w").write("x"); open("/tmp/file.dat", "w").write("x"); open("/dev/shm/file.dat", "w").write("x")\nos.environ["LEFT"] = "1"\nsubprocess.Popen(["sleep", "44.44"], start_new_session=True)' >/dev/null
	result=$(python $'import os, glob\nprint(os.listdir("."), glob.glob("/tmp/file*"), glob.glob("/dev/shm/*"), "LEFT" in os.environ, "left" in globals())\ndef cmdline(path):\n    try: return open(path, "rb").read()\n    except OSError: return b""\nprint(any(b"44.44" in cmdline(path) for path in glob.glob("/proc/[0-9]*/cmdline")))')
	equal "$(field .stdout "$result")" $'[] [] [] False False\nFalse'
}

@test "python: a ready sandbox is used once and made anew, is not listed, and gives way" {
	wait_for_reserve
	id=$(reserve_ids)
	result=$(python 'open("x.txt", "w").write("1")')
	equal "$(field .sandbox_id "$result")" "$id"
	contains "$(field .note "$(python 'open("x.txt")')")" "name its sandbox"
	wait_for_reserve
	not equal "$(reserve_ids)" "$id" 2>/dev/null
	equal "$(call list_sandboxes '{}' | jq --arg id "$(reserve_ids)" '[.. | strings | select(. == $id)] | length')" 0
}

reserve_ids() {
	sql "SELECT id FROM sandbox WHERE is_reserve = 1 AND state = 'live'"
}
wait_for_reserve() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ -n "$(reserve_ids)" ] && return 0
		python pass >/dev/null
		sleep 0.1
	done
	return 1
}

# --- sessions ------------------------------------------------------------------------------

@test "python: a session keeps variables, imports, files and working processes" {
	id=$(new_session 'import math; x = 40; open("kept.txt", "w").write("kept")')
	result=$(in_session "$id" 'print(open("kept.txt").read(), math.floor(2.5)); x + 2')
	equal "$(field .value "$result")" 42
	equal "$(field .stdout "$result")" 'kept 2'
	equal "$(field .state_preserved "$result")" true
	equal "$(field .session_id "$result")" "$id"
	result=$(in_session "$id" '1 / 0')
	contains "$(field .error.traceback "$result")" 'run-3.py'
	equal "$(field .state_preserved "$result")" true
	equal "$(field .value "$(in_session "$id" 'import sys; sys.exit(5) if x == 0 else x')")" 40
	equal "$(field '"\(.exit_code) \(.state_preserved)"' "$(in_session "$id" 'sys.exit(5)')")" "5 true"
	equal "$(field .value "$(in_session "$id" x)")" 40
}

@test "python: children of a session write on between its runs, and nobody reads it" {
	id=$(new_session $'import subprocess\nchild = subprocess.Popen(["sh", "-c", "sleep 0.3; seq 100000 && touch written; exec sleep 60"])')
	for ((i = 0; i < 100; i++)); do
		result=$(in_session "$id" 'import os; os.path.exists("written"), child.poll()')
		equal "$(field .stdout "$result")" ""
		[ "$(field .value "$result")" != "(True, None)" ] || return 0
		sleep 0.1
	done
	return 1
}

@test "python: at the timeout an interrupt keeps a session's state" {
	id=$(new_session 'x = 1')
	result=$(python 'while True: pass' "{\"session_id\":\"$id\",\"timeout_ms\":500}")
	equal "$(field '"\(.timed_out) \(.state_preserved) \(.error.type)"' "$result")" "true true KeyboardInterrupt"
	equal "$(field .value "$(in_session "$id" x)")" 1
}

@test "python: what does not react to an interrupt is killed, and the answer says that state is lost" {
	id=$(new_session 'x = 1')
	result=$(python $'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass' "{\"session_id\":\"$id\",\"timeout_ms\":500}")
	equal "$(field '"\(.timed_out) \(.state_preserved) \(has("session_id"))"' "$result")" "true false false"
	refused gone in_session "$id" x
	contains "$(cat "$TEST_DIR/out")" "new"
}

@test "python: an unknown session is an error and never a new one" {
	refused not_found in_session 0123456789abcdef0123456789abcdef 'x'
	refused not_found in_session nonsense 'x'
}

@test "python: a second run at the same time is told that the session is busy" {
	id=$(field .session_id "$(python 'import time' '{"session_id":"new","sandbox":"waits"}')")
	in_session "$id" $'print("began")\nopen("begun", "w")\ntime.sleep(4)' >"$TEST_DIR/first" 3>&- &
	first=$!
	wait_for_file waits begun
	refused busy in_session "$id" '1'
	equal "$(jq -r '.content[0].text | fromjson | .retryable' "$TEST_DIR/out")" true
	wait $first
	equal "$(field .stdout "$(cat "$TEST_DIR/first")")" began
	equal "$(field .value "$(in_session "$id" 1)")" 1
}

@test "python: a worker that is killed leaves a session that can be used again" {
	id=$(field .session_id "$(python 'x = 7' '{"session_id":"new","sandbox":"orphan"}')")
	in_session "$id" $'import time\nopen("begun", "w")\ntime.sleep(30)' >/dev/null 2>&1 3>&- &
	wait_for_file orphan begun
	for pid in $(workers); do kill -9 "$pid"; done
	wait $! || true
	wait_for_service
	for ((i = 0; i < 50; i++)); do
		result=$(in_session "$id" x) && break
		contains "$result" busy
		sleep 0.2
	done
	equal "$(field .value "$result")" 7
}

@test "python: thirty sessions in parallel keep their own state" {
	/usr/bin/python3 "$srcdir/tests/system/python_sessions.py" "$URL/mcp" "$TOKEN" 30
}

@test "python: an idle session is ended by the reaper, which says so" {
	id=$(new_session 'x = 1')
	sql "UPDATE python_session SET last_used_at = last_used_at - 400000 WHERE id = '$id'"
	contains "$(as_user "${SETTINGS[@]}" "$BIN/spoolbox-reaper" 2>&1)" "$id"
	refused gone in_session "$id" x
	contains "$(cat "$TEST_DIR/out")" "was not used for 300 seconds"
}

# --- arguments -----------------------------------------------------------------------------

@test "python: bad arguments are explained and make nothing" {
	before=$(call list_sandboxes '{}')
	not python '' >"$TEST_DIR/out"
	contains "$(cat "$TEST_DIR/out")" code
	not python 'pass' '{"timeout_ms":70000}' >"$TEST_DIR/out"
	contains "$(cat "$TEST_DIR/out")" 60000
	not python 'pass' '{"files":["/etc/passwd"],"sandbox":"never"}' >"$TEST_DIR/out"
	equal "$(call list_sandboxes '{}' | jq '[.. | strings | select(. == "never")] | length')" \
		"$(jq '[.. | strings | select(. == "never")] | length' <<<"$before")"
}

# --- real work -----------------------------------------------------------------------------

@test "python: statistics of the iris data" {
	need_module sklearn
	result=$(python $'from sklearn.datasets import load_iris\nframe = load_iris(as_frame=True).frame\nprint(len(frame), round(float(frame["petal length (cm)"].mean()), 3))\nframe.groupby("target")["sepal width (cm)"].mean().round(3).tolist()' '{"timeout_ms":60000}')
	equal "$(field .stdout "$result")" '150 3.758'
	equal "$(field .value "$result")" '[3.428, 2.77, 2.974]'
}

@test "python: prices that matplotlib ships, as a table, a sheet and a plot" {
	need_module pandas
	need_module openpyxl
	result=$(python_blocks $'import matplotlib.cbook as cbook, pandas as pd, matplotlib.pyplot as plt\nprices = pd.read_csv(cbook.get_sample_data("msft.csv", asfileobj=False))\nprices.to_excel("prices.xlsx", index=False)\nback = pd.read_excel("prices.xlsx")\nplt.plot(back["Close"])\nprint(len(back), back["Volume"].max())\nback' '{"timeout_ms":60000}')
	lines=$(/usr/bin/python3 -c 'import csv, matplotlib
rows = list(csv.DictReader(open(matplotlib.get_data_path() + "/sample_data/msft.csv")))
print(len(rows), max(int(r["Volume"]) for r in rows))')
	equal "$(jq -r .structuredContent.stdout <<<"$result")" "$lines"
	contains "$(jq -r .structuredContent.value <<<"$result")" Volume
	contains "$(jq -r '[.structuredContent.artifacts[].name] | join(" ")' <<<"$result")" prices.xlsx
	equal "$(jq .structuredContent.images <<<"$result")" 1
}
