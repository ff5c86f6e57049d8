#!/usr/bin/env bats
# File links over HTTP: what a browser, curl -T and a broken connection see.

load harness

setup_file() {
	harness_open && start_service SMCP_MAX_UPLOAD_BYTES=100m SMCP_URL_TTL=600 || return 1
	head -c 100000 /dev/urandom >"$TEST_DIR/sample"
	call create_sandbox '{"sandbox":"t"}' >/dev/null
}
teardown_file() { harness_close; }
setup() { load_state; }

# put FILE URL [curl arguments]: prints the status; the answer is in $TEST_DIR/answer.
put() {
	local file=$1 url=$2
	shift 2
	curl -s -m 60 -o "$TEST_DIR/answer" -w '%{http_code}' -T "$file" "$url" "$@"
}
# Header lines with names in lower case.
fields() { tr -d '\r' | sed 's/^[^:]*:/\L&/'; }
sum() { sha256sum "$@" | cut -d' ' -f1; }
# Bytes of the request line and headers of a PUT, then a body that is too short.
broken_put() {
	local url=$1 length=$2 body=$3
	exec 5<>"/dev/tcp/127.0.0.1/$PORT"
	printf 'PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Length: %s\r\n\r\n%s' \
		"${url#"$URL"}" "$PORT" "$length" "$body" >&5
	sleep 0.3
	exec 5>&-
}
incoming() { find "$SPOOL"/data/*/incoming -type f | wc -l; }

@test "an upload by PUT appears in the sandbox, byte for byte" {
	url=$(upload_url t in/sample)
	[[ $url == "$URL/files/put/"* ]]
	[[ $(put "$TEST_DIR/sample" "$url") == 20[01] ]]
	equal "$(jq .size "$TEST_DIR/answer")" 100000
	equal "$(stdout_of t 'sha256sum <in/sample | cut -c1-64')" "$(sum "$TEST_DIR/sample")"
}

@test "an upload by POST works as well" {
	url=$(upload_url t posted)
	code=$(curl -s -o /dev/null -w '%{http_code}' --data-binary @"$TEST_DIR/sample" -H 'Content-Type: application/octet-stream' "$url")
	[[ $code == 20[01] ]]
	equal "$(stdout_of t 'stat -c %s posted')" 100000
}

@test "an upload link works once" {
	url=$(upload_url t once)
	[[ $(put "$TEST_DIR/sample" "$url") == 20[01] ]]
	equal "$(put /etc/hostname "$url")" 410
	equal "$(stdout_of t 'stat -c %s once')" 100000
}

@test "of two uploads through one link at the same time one wins, whole" {
	head -c 5000000 /dev/zero | tr '\0' a >"$TEST_DIR/a"
	head -c 5000000 /dev/zero | tr '\0' b >"$TEST_DIR/b"
	for round in 1 2 3 4 5; do
		url=$(upload_url t "race$round")
		for which in a b; do
			curl -s -o /dev/null -w '%{http_code}\n' -T "$TEST_DIR/$which" "$url" >"$TEST_DIR/code.$which" 3>&- &
		done
		wait
		equal "$(cat "$TEST_DIR"/code.? | grep -c '^20')" 1
		equal "$(cat "$TEST_DIR"/code.? | grep -c '^4')" 1
		equal "$(stdout_of t "tr -d a <race$round | wc -c; tr -d b <race$round | wc -c" | sort -n | tr '\n' ' ')" '0 5000000 '
	done
}

@test "a download link gives the file with a safe header and works once" {
	run_in t 'head -c 70000 /dev/urandom > out.bin' >/dev/null
	url=$(download_url t out.bin)
	curl -s -D "$TEST_DIR/headers" -o "$TEST_DIR/got" "$url"
	equal "$(sum "$TEST_DIR/got")" "$(stdout_of t 'sha256sum out.bin | cut -c1-64')"
	headers=$(fields <"$TEST_DIR/headers")
	contains "$headers" 'content-disposition: attachment; filename="out.bin"'
	contains "$headers" 'x-content-type-options: nosniff'
	equal "$(http_status "$url")" 410
}

@test "HEAD tells length and ETag and uses nothing up" {
	run_in t 'printf 0123456789 > ten' >/dev/null
	url=$(download_url t ten)
	for _ in 1 2; do
		headers=$(curl -s -I "$url" | fields)
		contains "$headers" 'content-length: 10'
		contains "$headers" 'etag: "'
	done
	equal "$(curl -s "$url")" 0123456789
}

@test "ranges, conditions and unsatisfiable ranges are answered as RFC 9110 has them" {
	run_in t 'printf 0123456789 > ten' >/dev/null
	url=$(download_url t ten)
	etag=$(curl -s -I "$url" | fields | sed -n 's/^etag: //p')
	equal "$(curl -s -w ' %{http_code}' -r 2-4 "$url")" '234 206'
	contains "$(curl -s -D - -o /dev/null -r 2-4 "$url")" 'bytes 2-4/10'
	equal "$(curl -s -w ' %{http_code}' -H 'Range: bytes=-3' -H 'If-Range: "other"' "$(download_url t ten)")" '0123456789 200'
	equal "$(curl -s -w ' %{http_code}' -r 0-3 -H "If-Range: $etag" "$url")" '0123 206'
	equal "$(http_status -r 10- "$url")" 416
	equal "$(http_status -H "If-None-Match: $etag" "$url")" 304
	# the link is still good: none of these reached the end of the file
	equal "$(curl -s -w ' %{http_code}' -r 4- "$url")" '456789 206'
	equal "$(http_status "$url")" 410
}

@test "a download that breaks off can be taken up again" {
	run_in t 'head -c 40000000 /dev/zero > slow' >/dev/null
	url=$(download_url t slow)
	run curl -s -m 1 --limit-rate 1M -o "$TEST_DIR/part" "$url"
	[ "$status" -ne 0 ]
	curl -s -C - -o "$TEST_DIR/part" "$url"
	equal "$(stat -c %s "$TEST_DIR/part")" 40000000
}

@test "a download that cannot be completed breaks off at once, also on a kept connection" {
	run_in t 'head -c 40000000 /dev/zero > changing' >/dev/null
	curl -s -m 30 --limit-rate 8M -w '%{time_total} %{size_download}\n' -o /dev/null \
		"$(download_url t changing)" >"$TEST_DIR/cut" 3>&- &
	client=$!
	sleep 1
	run_in t 'echo more >> changing' >/dev/null
	status=0
	wait "$client" || status=$?
	equal "$status" 18 # a partial transfer
	read -r seconds bytes <"$TEST_DIR/cut"
	[ "$bytes" -lt 40000000 ]
	[ "${seconds%.*}" -lt 5 ]
	equal "$(http_status "$URL/healthz")" 200
}

@test "names of every kind survive in the download header" {
	for name in '🤣.txt' 'a"b.txt' $'new\nline' 'semi;colon' '%41'; do
		call write_text "$(jq -cn --arg p "$name" '{sandbox:"t",path:$p,content:"x"}')" >/dev/null
		(cd "$TEST_DIR/tmp" && curl -s -D "$TEST_DIR/headers" -o got "$(download_url t "$name")")
		equal "$(grep -ci '^content-disposition: attachment;' "$TEST_DIR/headers")" 1
		encoded=$(jq -rn --arg n "$name" '$n|@uri')
		grep -qiF "filename*=UTF-8''$encoded" "$TEST_DIR/headers" ||
			grep -qF "filename=\"$name\"" "$TEST_DIR/headers"
	done
}

@test "an HTML file of a sandbox cannot run in this origin" {
	call write_text '{"sandbox":"t","path":"x.html","content":"<script>alert(1)</script>"}' >/dev/null
	headers=$(curl -s -D - -o /dev/null "$(download_url t x.html)" | fields)
	contains "$headers" 'content-disposition: attachment'
	contains "$headers" 'content-security-policy: sandbox'
}

@test "a forged, a cut and a foreign token are 403; the link of the other direction is refused" {
	url=$(upload_url t forged)
	token=${url##*/}
	other=$(tr 'A-Za-z' 'B-ZAb-za' <<<"${token:40:1}")
	[ "$other" != "${token:40:1}" ] || other=x
	equal "$(put "$TEST_DIR/sample" "$URL/files/put/${token:0:40}$other${token:41}")" 403
	equal "$(put "$TEST_DIR/sample" "$URL/files/put/${token:0:40}")" 403
	equal "$(put "$TEST_DIR/sample" "$URL/files/put/$(printf 'A%.0s' $(seq 75))")" 403
	equal "$(http_status "$URL/files/get/$token")" 400
	# and none of it used the link up
	[[ $(put "$TEST_DIR/sample" "$url") == 20[01] ]]
}

@test "an expired link is 410" {
	url=$(upload_url t late '{"ttl_seconds":1}')
	sleep 1.2
	equal "$(put "$TEST_DIR/sample" "$url")" 410
}

@test "the links of a destroyed sandbox are 410, whatever has its name now" {
	run_in gone 'echo old > f' >/dev/null
	up=$(upload_url gone f)
	down=$(download_url gone f)
	call destroy_sandbox '{"sandbox":"gone","delete_files":true}' >/dev/null
	run_in gone 'echo new > f' >/dev/null
	equal "$(put "$TEST_DIR/sample" "$up")" 410
	equal "$(http_status "$down")" 410
	equal "$(stdout_of gone 'cat f')" new
}

@test "a file that went away is 404; a directory in its place is refused" {
	run_in t 'echo x > gone.txt' >/dev/null
	url=$(download_url t gone.txt)
	run_in t 'rm gone.txt' >/dev/null
	equal "$(http_status "$url")" 404
	url=$(upload_url t later-a-dir)
	run_in t 'mkdir later-a-dir' >/dev/null
	equal "$(put "$TEST_DIR/sample" "$url")" 409
	equal "$(incoming)" 0
}

@test "a body over the limit or over the promise is 413, another size than promised 400" {
	truncate -s 101M "$TEST_DIR/huge"
	equal "$(put "$TEST_DIR/huge" "$(upload_url t big)")" 413
	rm "$TEST_DIR/huge"
	url=$(upload_url t promised '{"size":100000}')
	printf short >"$TEST_DIR/short"
	[[ $(put "$TEST_DIR/short" "$url") == 4?? ]]
	head -c 100001 /dev/zero >"$TEST_DIR/long"
	[[ $(put "$TEST_DIR/long" "$url") == 4?? ]]
	[[ $(put "$TEST_DIR/sample" "$url") == 20[01] ]]
	equal "$(incoming)" 0
}

@test "a pipe has no length: lighttpd refuses it with 411 by itself, and the link stays good" {
	url=$(upload_url t chunked)
	equal "$(put - "$url" <<<"from a pipe")" 411
	contains "$(cat "$TEST_DIR/answer")" '<h1>411 Length Required</h1>'
	[[ $(put "$TEST_DIR/sample" "$url") == 20[01] ]]
}

@test "without room on the disk an upload is 507 and says so, and its link stays good" {
	url=$(upload_url t room)
	port=$(free_port)
	(exec_as_user "${SETTINGS[@]}" SMCP_PORT="$port" SMCP_MIN_FREE_BYTES=15t "$BIN/spoolbox" serve) >/dev/null 2>&1 3>&- &
	full=$!
	for _ in $(seq 100); do curl -s "http://127.0.0.1:$port/healthz" >/dev/null && break; sleep 0.1; done
	equal "$(put "$TEST_DIR/sample" "http://127.0.0.1:$port${url#"$URL"}")" 507
	equal "$(jq -r .error "$TEST_DIR/answer")" quota
	kill "$full"
	wait_gone "$full"
	equal "$(incoming)" 0
	[[ $(put "$TEST_DIR/sample" "$url") == 20[01] ]]
}

@test "a digest that does not fit is 400 and leaves nothing; one that fits is taken" {
	url=$(upload_url t digest)
	right=$(openssl dgst -sha256 -binary "$TEST_DIR/sample" | base64)
	wrong=$(printf x | openssl dgst -sha256 -binary | base64)
	equal "$(put "$TEST_DIR/sample" "$url" -H "Repr-Digest: sha-256=:$wrong:")" 400
	equal "$(incoming)" 0
	equal "$(stdout_of t 'ls digest 2>/dev/null | wc -l')" 0
	[[ $(put "$TEST_DIR/sample" "$url" -H "Repr-Digest: sha-256=:$right:") == 20[01] ]]
}

@test "an upload that is cut leaves nothing behind and its link stays good" {
	url=$(upload_url t cut)
	broken_put "$url" 1000 'only this much'
	for _ in $(seq 50); do [ "$(incoming)" -eq 0 ] && break; sleep 0.1; done
	equal "$(incoming)" 0
	equal "$(stdout_of t 'ls cut 2>/dev/null | wc -l')" 0
	[[ $(put "$TEST_DIR/sample" "$url") == 20[01] ]]
}

@test "64 MiB go both ways with the same checksum, and no worker grows" {
	head -c 67108864 /dev/urandom >"$TEST_DIR/large"
	[[ $(put "$TEST_DIR/large" "$(upload_url t large)") == 20[01] ]]
	equal "$(stdout_of t 'sha256sum large | cut -c1-64')" "$(sum "$TEST_DIR/large")"
	equal "$(curl -s "$(download_url t large)" | sum)" "$(sum "$TEST_DIR/large")"
	for pid in $(workers); do
		small_enough "$pid"
	done
	rm "$TEST_DIR/large"
}

@test "an empty body is taken when it was promised; else it may be one that a server swallowed" {
	empty_put() { http_status -X PUT -H 'Content-Length: 0' "$1"; }
	equal "$(empty_put "$(upload_url t empty)")" 411
	[[ $(empty_put "$(upload_url t empty '{"size":0}')") == 20[01] ]]
	equal "$(curl -s -w '%{http_code}' "$(download_url t empty)")" 200
}

@test "an upload link in a browser says how to use it and is not used up" {
	url=$(upload_url t page)
	answer=$(curl -s -w ' %{http_code}' "$url")
	contains "$answer" 'curl -T'
	contains "$answer" ' 405'
	[[ $(put "$TEST_DIR/sample" "$url") == 20[01] ]]
}
