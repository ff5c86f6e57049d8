#!/usr/bin/env bats
# Each configuration file of contrib/, started for real by an ordinary user with only its paths
# and its port changed: a call in each era, an upload, a download, and 401 without the header.

load harness

setup_file() {
	harness_open || return 1
	mkdir -p "$TEST_DIR/run" "$TEST_DIR/www"
	chown "$TEST_USER" "$TEST_DIR/run" "$TEST_DIR/www" 2>/dev/null || true
	PORT=1 URL='' SERVICE='' SETTINGS=(SMCP_SPOOL="$SPOOL" SMCP_TOKEN="$TOKEN")
	save_state
}
teardown_file() { harness_close; }
setup() {
	load_state
	PORT=$(free_port)
	URL=http://127.0.0.1:$PORT
	RUN=$TEST_DIR/run
	printf 'SMCP_TOKEN=%s\nSMCP_SPOOL=%s\nSMCP_PUBLIC_BASE_URL=%s\nSMCP_MIN_FREE_BYTES=1m\n' \
		"$TOKEN" "$SPOOL" "$URL${PREFIX:-}" >"$TEST_DIR/spoolbox.env"
	chmod 644 "$TEST_DIR/spoolbox.env"
}
teardown() {
	[ -z "${SERVER:-}" ] || { kill "$SERVER" 2>/dev/null; wait_gone "$SERVER"; }
	local i
	for ((i = 0; i < 100; i++)); do [ -z "$(workers)" ] && break; sleep 0.1; done
}

# Puts our paths in place of the documented ones.
adapt() {
	sed -e "s#/usr/local/libexec/spoolbox#$BIN#g" -e "s#/var/lib/spoolbox#$SPOOL#g" \
		-e "s#/etc/spoolbox.env#$TEST_DIR/spoolbox.env#g" -e "s#/run/spoolbox#$RUN#g" \
		-e "s#/run/lighttpd#$RUN#g" -e "s#\b8000\b#$PORT#g" \
		"$srcdir/contrib/$1"
}

serve_with() {
	(exec_as_user SMCP_ENV_FILE="$TEST_DIR/spoolbox.env" "$@") >>"$TEST_DIR/log" 2>&1 3>&- &
	SERVER=$!
	local i
	for ((i = 0; i < 100; i++)); do
		[ "$(curl -s -m 5 "$URL${PREFIX:-}/healthz")" = '{"ok":true}' ] && return 0
		kill -0 "$SERVER" 2>/dev/null || break
		sleep 0.1
	done
	cat "$TEST_DIR/log" "$RUN/error.log" 2>/dev/null | tail -40 >&2
	return 1
}

# What must hold behind any web server. $1: a body size that it can take; $2: how it answers a body
# without a length: fcgid reads a whole body before it starts and then knows its length, lighttpd
# refuses it by itself.
acceptance() {
	local body='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"sandbox":"ws","command":"echo legacy"}}}'
	URL=$URL${PREFIX:-}
	equal "$(http_status "$URL/mcp" -H 'Content-Type: application/json' -d "$body")" 401
	equal "$(post "$body" -H 'MCP-Protocol-Version: 2025-11-25' | jq -r .result.structuredContent.stdout)" legacy
	body=$(jq -cn '{jsonrpc:"2.0",id:2,method:"tools/call",params:{name:"exec",arguments:{sandbox:"ws",command:"echo modern"},
		_meta:{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}')
	equal "$(post "$body" -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: exec' |
		jq -r '.result | [.resultType, .structuredContent.stdout] | join(" ")' | tr -d '\n')" 'complete modern'
	head -c "$1" /dev/urandom >"$TEST_DIR/bytes"
	[[ $(http_status -T "$TEST_DIR/bytes" "$(upload_url ws dir/bytes)") == 20[01] ]]
	equal "$(curl -s "$(download_url ws dir/bytes)" | sha256sum)" "$(sha256sum <"$TEST_DIR/bytes")"
	local url
	equal "$(http_status -T - "$(upload_url ws piped)" <<<"from a pipe")" "$2"
	url=$(download_url ws dir/bytes)
	equal "$(curl -s -r 10-19 -w ' %{http_code}' -o "$TEST_DIR/range" "$url")" ' 206'
	equal "$(cat "$TEST_DIR/range" | sha256sum)" "$(tail -c +11 "$TEST_DIR/bytes" | head -c 10 | sha256sum)"
	call destroy_sandbox '{"sandbox":"ws","delete_files":true}' >/dev/null
}

need_lighttpd() { command -v lighttpd >/dev/null || skip_or_fail "lighttpd is not installed"; }
need_apache() {
	command -v apache2 >/dev/null || skip_or_fail "apache2-bin is not installed"
	[ -f /usr/lib/apache2/modules/mod_fcgid.so ] || skip_or_fail "libapache2-mod-fcgid is not installed"
}
# What Debian's own apache2.conf and mods-enabled bring, for files that are included in it.
apache_base() {
	cat <<-X
		ServerName localhost
		Listen 127.0.0.1:$PORT
		DefaultRuntimeDir $RUN
		PidFile $RUN/httpd.pid
		Mutex file:$RUN default
		ErrorLog $RUN/error.log
		TypesConfig /etc/mime.types
		DocumentRoot $TEST_DIR/www
		FcgidIPCDir $RUN
		FcgidProcessTableFile $RUN/fcgid_shm
		<Directory />
			Require all denied
			AllowOverride None
		</Directory>
	X
}
apache_modules() {
	local module
	echo "ServerRoot /usr/lib/apache2"
	for module in mpm_event authz_core alias env mime setenvif rewrite headers fcgid; do
		echo "LoadModule ${module}_module modules/mod_$module.so"
	done
}

@test "contrib/lighttpd/minimal.conf" {
	need_lighttpd
	adapt lighttpd/minimal.conf >"$TEST_DIR/lighttpd.conf"
	serve_with lighttpd -D -f "$TEST_DIR/lighttpd.conf"
	acceptance 3000000 411
}

@test "contrib/lighttpd/production.conf, included in a main configuration" {
	need_lighttpd
	{
		printf 'server.bind = "127.0.0.1"\nserver.port = %s\nserver.document-root = "%s"\n' "$PORT" "$TEST_DIR/www"
		printf 'server.upload-dirs = ( "%s" )\nserver.modules = ( "mod_access" )\n' "$RUN"
		adapt lighttpd/production.conf
	} >"$TEST_DIR/lighttpd.conf"
	serve_with lighttpd -D -f "$TEST_DIR/lighttpd.conf"
	acceptance 3000000 411
	equal "$(http_status "$URL/mcpx" -H "Authorization: Bearer $TOKEN")" 404
}

@test "contrib/apache/minimal.conf" {
	need_apache
	TOKEN=$(as_user SMCP_SPOOL="$SPOOL" "$BIN/spoolbox" token)
	adapt apache/minimal.conf >"$TEST_DIR/apache.conf"
	serve_with apache2 -f "$TEST_DIR/apache.conf" -D FOREGROUND
	acceptance 3000000 200
	not grep -E 'AH[0-9]+: client denied|:error\]' "$RUN/error.log"
}

@test "contrib/apache/production.conf, included in a main configuration" {
	need_apache
	{
		apache_modules
		apache_base
		adapt apache/production.conf
	} >"$TEST_DIR/apache.conf"
	serve_with apache2 -f "$TEST_DIR/apache.conf" -D FOREGROUND
	acceptance 3000000 200
	not grep -E 'AH[0-9]+: client denied|:error\]' "$RUN/error.log"
}

@test "contrib/apache/htaccess in a directory of a host where only that can be written" {
	need_apache
	PREFIX=/box
	sed -i "s#^SMCP_PUBLIC_BASE_URL=.*#&$PREFIX#" "$TEST_DIR/spoolbox.env"
	mkdir -p "$TEST_DIR/www/box"
	cp "$srcdir/contrib/apache/htaccess" "$TEST_DIR/www/box/.htaccess"
	sed -e "s#/home/you/libexec/spoolbox#$BIN#" -e "s#/home/you/spoolbox.env#$TEST_DIR/spoolbox.env#" \
		"$srcdir/contrib/apache/spoolbox.fcgi" >"$TEST_DIR/www/box/spoolbox.fcgi"
	chmod 755 "$TEST_DIR/www/box" "$TEST_DIR/www/box/spoolbox.fcgi"
	{
		apache_modules
		apache_base
		printf '<Directory %s>\n\tRequire all granted\n\tAllowOverride All\n</Directory>\n' "$TEST_DIR/www"
	} >"$TEST_DIR/apache.conf"
	serve_with apache2 -f "$TEST_DIR/apache.conf" -D FOREGROUND
	acceptance 100000 200
}
