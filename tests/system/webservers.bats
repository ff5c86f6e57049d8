#!/usr/bin/env bats
# Each configuration file of contrib/, started for real by an ordinary user with only its paths
# and its port changed: a call in each era, an upload, a download, and 401 without the header.

load harness
load servers

setup_file() {
	harness_open || return 1
	servers_open
}
teardown_file() { harness_close; }
setup() { servers_setup; }
teardown() { stop_server; }

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
