#!/usr/bin/env bats
# Settings: what is understood, what stops the start, and the settings file of another program.

load harness

setup_file() {
	harness_open
	SETTINGS=(SMCP_SPOOL="$SPOOL")
	PORT=1 URL='' SERVICE=''
	save_state
}
teardown_file() { harness_close; }
setup() { load_state; }

@test "a bad value stops the start and names variable, value and what is allowed" {
	for bad in SMCP_PORT=80000 SMCP_WORKERS=none SMCP_MEM_LIMIT=2q SMCP_SANDBOX_NETWORK=open \
		SMCP_PUBLIC_BASE_URL=ftp://x SMCP_SPOOL=relative; do
		run as_user "${SETTINGS[@]}" "$bad" "$BIN/spoolbox" serve
		equal "$status" 1
		contains "$output" "${bad%%=*}"
		contains "$output" "${bad#*=}"
		contains "$output" allowed
	done
}

@test "a secret that is refused is not shown" {
	run as_user "${SETTINGS[@]}" SMCP_TOKEN=hush-hush "$BIN/spoolbox" config
	equal "$status" 1
	contains "$output" SMCP_TOKEN
	not grep -q hush <<<"$output"
}

@test "config says value and source of every setting, and never a secret" {
	printf 'SMCP_EXEC_TIMEOUT=33\n' >"$TEST_DIR/env"
	run as_user "${SETTINGS[@]}" SMCP_ENV_FILE="$TEST_DIR/env" SMCP_TOKEN=a-long-secret-token SMCP_PORT=8123 \
		"$BIN/spoolbox" config --json
	equal "$status" 0
	equal "$(jq -c '.[] | select(.name == "SMCP_EXEC_TIMEOUT") | [.value, .source]' <<<"$output")" '["33","file"]'
	equal "$(jq -c '.[] | select(.name == "SMCP_PORT") | [.value, .source]' <<<"$output")" '["8123","environment"]'
	equal "$(jq -r '.[] | select(.name == "SMCP_MAX_SANDBOXES") | .source' <<<"$output")" default
	not grep -q a-long-secret <<<"$output"
	run spoolbox config --readme
	contains "$output" '| `SMCP_SPOOL` |'
	run spoolbox config --nonsense
	equal "$status" 2
}

@test "the settings file of the program in seed 002 is understood as it is" {
	cat >"$TEST_DIR/dotenv" <<-'X'
		# sandbox-mcp
		SMCP_TOKEN=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
		SMCP_SIGNING_KEY=
		SMCP_PUBLIC_BASE_URL=https://box.example.org
		SMCP_HOST=127.0.0.1
		SMCP_PORT=8000
		SMCP_BASE_IMAGE=ghcr.io/greenteodoro839/sandbox-mcp-base:latest
		SMCP_SANDBOX_NETWORK=bridge
		SMCP_MEM_LIMIT=2g
		SMCP_CPUS=2
		SMCP_PIDS_LIMIT=512
		SMCP_MAX_SANDBOXES=20
		SMCP_IDLE_STOP_SECONDS=7200
		SMCP_IDLE_REMOVE_SECONDS=604800
		SMCP_GC_INTERVAL_SECONDS=300
		SMCP_EXEC_TIMEOUT=60
		SMCP_JOB_TIMEOUT=3600
		SMCP_JOB_LOG_RETENTION=86400
		SMCP_URL_TTL=3600
		SMCP_READ_TEXT_MAX_BYTES=200000
	X
	printf 'SMCP_DATA_DIR=%s\nSMCP_STATE_DB=%s\n' "$SPOOL/d" "$SPOOL/s.db" >>"$TEST_DIR/dotenv"
	chmod 644 "$TEST_DIR/dotenv"
	TOKEN=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
	# what the harness sets on top: a spool that this user can write and a free port
	start_service SMCP_ENV_FILE="$TEST_DIR/dotenv" SMCP_TOKEN=
	equal "$(run_in seed 'echo it works' | jq -r .stdout)" 'it works'
	[[ $(upload_url seed f) == https://box.example.org/files/put/* ]]
	[ -f "$SPOOL/s.db" ] && [ -d "$SPOOL/d" ]
	spoolbox stop --all
	stop_service
	save_state
}

@test "doctor finds this machine fit and runs a command in a sandbox" {
	run spoolbox doctor
	equal "$status" 0
	contains "$output" 'OK   sandbox: a command ran in it'
	not grep -q ^FAIL <<<"$output"
	# and nothing of that is left
	equal "$(our_pids)" ""
}

@test "doctor says what Python sandboxes have, and what it can do here" {
	run spoolbox doctor
	equal "$status" 0
	version=$(/usr/bin/python3 -c 'import platform; print(platform.python_version())')
	contains "$output" "OK   python: sandboxes have /usr/bin/python3, version $version"
	for module in numpy pandas matplotlib PIL openpyxl; do
		if /usr/bin/python3 -I -c "import $module" 2>/dev/null; then
			contains "$(grep '^OK   python modules: ' <<<"$output")" "$module"
		else
			contains "$(grep '^WARN python modules: without ' <<<"$output")" "$module"
		fi
	done
	contains "$output" ' fonts: '
	not grep "^WARN python module " <<<"$output"
	[[ $(uname -m) != x86_64 ]] || contains "$output" ' processor: '
}

@test "doctor says what is missing and ends with 1" {
	run as_user "${SETTINGS[@]}" SMCP_MIN_FREE_BYTES=15t "$BIN/spoolbox" doctor
	equal "$status" 1
	contains "$output" 'FAIL disk room'
	mkdir -m 755 "$TEST_DIR/open"
	chown "$TEST_USER" "$TEST_DIR/open" 2>/dev/null || true
	run as_user SMCP_SPOOL="$TEST_DIR/open" "$BIN/spoolbox" doctor
	equal "$status" 1
	contains "$output" 'FAIL spool'
	mkdir -p -m 700 "$TEST_DIR/tmp/mixed"
	mkdir -m 755 "$TEST_DIR/tmp/mixed/data"
	chown -R "$TEST_USER" "$TEST_DIR/tmp/mixed" 2>/dev/null || true
	run as_user SMCP_SPOOL="$TEST_DIR/tmp/mixed" "$BIN/spoolbox" doctor
	contains "$output" 'data/ in the directory that SMCP_SPOOL names has mode 0755'
}

@test "the settings table of README is what the program prints" {
	sed -n '/<!-- settings:/,/<!-- end of settings/p' "$srcdir/README" | sed '1d;$d' >"$TEST_DIR/readme"
	diff "$TEST_DIR/readme" <(as_user PATH="$PATH" "$BIN/spoolbox" config --readme)
}
