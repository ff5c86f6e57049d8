#!/usr/bin/env bats
# /mcp over HTTP: both eras, authentication, and what is not a call.

load harness

setup_file() { harness_open && start_service; }
teardown_file() { harness_close; }
setup() { load_state; }

META='{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

# modern METHOD PARAMS [curl arguments]: a request of 2026-07-28 with its mirrored headers.
modern() {
	local method=$1 params=$2
	shift 2
	post "$(jq -cn --arg m "$method" --argjson p "$params" --argjson meta "$META" \
		'{jsonrpc:"2.0",id:"m1",method:$m,params:($p + {_meta:$meta})}')" \
		-H 'MCP-Protocol-Version: 2026-07-28' -H "Mcp-Method: $method" "$@"
}

@test "initialize answers with the revision that was asked for" {
	for revision in 2025-03-26 2025-06-18 2025-11-25; do
		answer=$(post "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"$revision\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}")
		equal "$(field .result.protocolVersion "$answer")" "$revision"
		equal "$(field .id "$answer")" 7
		equal "$(field .result.serverInfo.name "$answer")" spoolbox
	done
}

@test "initialize with an unknown revision offers the newest of the handshake era" {
	answer=$(post '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}')
	equal "$(field .result.protocolVersion "$answer")" 2025-11-25
}

@test "tools/list names the tools with object schemas, in the same order each time" {
	answer=$(rpc tools/list)
	names=$(field '[.result.tools[].name] | join(" ")' "$answer")
	for tool in create_sandbox list_sandboxes destroy_sandbox exec list_files read_text write_text \
		upload_file download_file; do
		contains " $names " " $tool "
	done
	equal "$(field '[.result.tools[] | select(.inputSchema.type != "object" or (.description|length) == 0)] | length' "$answer")" 0
	equal "$(rpc tools/list)" "$answer"
}

@test "a legacy call works without a version header and with each legacy revision" {
	body='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"sandbox":"eras","command":"echo hi"}}}'
	contains "$(post "$body" | jq -r '.result.content[0].text')" 'hi\n'
	for revision in 2025-03-26 2025-06-18 2025-11-25; do
		contains "$(post "$body" -H "MCP-Protocol-Version: $revision" | jq -r '.result.content[0].text')" 'hi\n'
	done
}

@test "a legacy request with a revision that nobody knows is 400" {
	equal "$(post '{"jsonrpc":"2.0","id":1,"method":"ping"}' -H 'MCP-Protocol-Version: 2024-01-01' -o /dev/null -w '%{http_code}')" 400
}

@test "server/discover lists the modern revision only" {
	answer=$(modern server/discover '{}')
	equal "$(field '.result.supportedVersions | join(",")' "$answer")" 2026-07-28
	equal "$(field .result.resultType "$answer")" complete
	equal "$(field .id "$answer")" m1
}

@test "a modern call runs a command and says that it is complete" {
	answer=$(modern tools/call '{"name":"exec","arguments":{"sandbox":"eras","command":"echo modern"}}' -H 'Mcp-Name: exec')
	equal "$(field .result.structuredContent.stdout "$answer")" modern
	equal "$(field .result.resultType "$answer")" complete
}

@test "a modern request whose headers do not mirror the body is 400 with -32020" {
	run modern tools/call '{"name":"exec","arguments":{"sandbox":"eras","command":"touch /workspace/never"}}' -H 'Mcp-Name: other' -w '\n%{http_code}'
	equal "${lines[1]}" 400
	equal "$(field .error.code "${lines[0]}")" -32020
	run modern tools/list '{}' -H 'Mcp-Method: tools/call' -w '\n%{http_code}'
	equal "${lines[1]}" 400
	# and the command was not run
	run call read_text '{"sandbox":"eras","path":"never"}'
	[ "$status" -eq 1 ]
}

@test "an unknown method is 404 in the modern era and in-band in the legacy era" {
	run modern no/such '{}' -w '\n%{http_code}'
	equal "${lines[1]}" 404
	equal "$(field .error.code "${lines[0]}")" -32601
	run post '{"jsonrpc":"2.0","id":1,"method":"no/such"}' -w '\n%{http_code}'
	equal "${lines[1]}" 200
	equal "$(field .error.code "${lines[0]}")" -32601
}

@test "an unsupported modern revision is refused with what is supported" {
	run post '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}' \
		-H 'MCP-Protocol-Version: 2031-01-01' -H 'Mcp-Method: tools/list' -w '\n%{http_code}'
	equal "${lines[1]}" 400
	equal "$(field .error.code "${lines[0]}")" -32022
	equal "$(field '.error.data.supported[0]' "${lines[0]}")" 2026-07-28
}

# checklist 85
@test "no token, a wrong token and a wrong scheme are 401 with a challenge" {
	body='{"jsonrpc":"2.0","id":1,"method":"ping"}'
	for header in 'X-None: 1' 'Authorization: Bearer wrong' "Authorization: Basic $TOKEN" \
		"Authorization: Bearer ${TOKEN}x" "Authorization: $TOKEN"; do
		run curl -s -i "$URL/mcp" -H "$header" -H 'Content-Type: application/json' -d "$body"
		contains "${lines[0]}" " 401"
		contains "${output,,}" "www-authenticate: bearer"
		not grep -qF "$TOKEN" <<<"$output"
	done
	equal "$(curl -s -o /dev/null -w '%{http_code}' "$URL/mcp" -H "Authorization: bearer $TOKEN" -H 'Content-Type: application/json' -d "$body")" 200
}

@test "GET and DELETE are 405 with Allow and an empty body" {
	for method in GET DELETE PUT PATCH; do
		run curl -s -i -X "$method" "$URL/mcp" -H "Authorization: Bearer $TOKEN"
		contains "${lines[0]}" " 405"
		contains "${output,,}" "allow: post"
		contains "${output,,}" "content-length: 0"
	done
}

@test "a notification is 202 without a body" {
	run post '{"jsonrpc":"2.0","method":"notifications/initialized"}' -w '%{http_code} %{size_download}'
	equal "$output" "202 0"
}

@test "whatever Accept says is served in a type that it allows" {
	body='{"jsonrpc":"2.0","id":1,"method":"ping"}'
	for accept in 'application/json' '*/*' 'application/json, text/event-stream' 'application/*'; do
		equal "$(curl -s -o /dev/null -w '%{http_code} %{content_type}' "$URL/mcp" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -H "Accept: $accept" -d "$body")" "200 application/json"
	done
	run curl -s -w '\n%{http_code} %{content_type}' "$URL/mcp" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -H 'Accept: text/event-stream' -d "$body"
	contains "$output" '200 text/event-stream'
	contains "$output" 'data: {'
	equal "$(curl -s -o /dev/null -w '%{http_code}' "$URL/mcp" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -H 'Accept: text/html' -d "$body")" 406
}

@test "a body that is not JSON by name is 415, by content 400 without an id" {
	equal "$(http_status "$URL/mcp" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: text/plain' -d '{}')" 415
	run post '{"jsonrpc":"2.0","id":1,' -w '\n%{http_code}'
	equal "${lines[1]}" 400
	equal "$(field .error.code "${lines[0]}")" -32700
	equal "$(field 'has("id")' "${lines[0]}")" false
}

@test "a foreign Origin or Host is refused, loopback ones are not" {
	body='{"jsonrpc":"2.0","id":1,"method":"ping"}'
	equal "$(post "$body" -H 'Origin: https://evil.example' -o /dev/null -w '%{http_code}')" 403
	equal "$(post "$body" -H 'Origin: null' -o /dev/null -w '%{http_code}')" 403
	code=$(post "$body" -H 'Host: evil.example' -o /dev/null -w '%{http_code}')
	[[ $code == 4?? ]]
	equal "$(post "$body" -H "Origin: http://localhost:$PORT" -o /dev/null -w '%{http_code}')" 200
	equal "$(post "$body" -H "Host: localhost:$PORT" -o /dev/null -w '%{http_code}')" 200
}

@test "a body over the limit is 413 and the next request is served" {
	head -c 9000000 /dev/zero | tr '\0' ' ' >"$TEST_DIR/big"
	equal "$(post "@$TEST_DIR/big" -o /dev/null -w '%{http_code}')" 413
	equal "$(field .result "$(rpc ping)")" '{}'
}

@test "ids come back with value and type unchanged" {
	for id in 0 '"0"' '""' 1790000000000; do
		equal "$(post "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"ping\"}" | jq -c .id)" "$id"
	done
	equal "$(post '{"jsonrpc":"2.0","id":null,"method":"ping"}' -o /dev/null -w '%{http_code}')" 400
}

@test "bad arguments are a tool error that names the argument, and nothing happens" {
	run call exec '{"sandbox":"argtest","command":"touch /workspace/x","tiemout":3}'
	[ "$status" -eq 1 ]
	contains "$output" tiemout
	run call exec '{"sandbox":"argtest"}'
	[ "$status" -eq 1 ]
	contains "$output" command
	contains "$(call list_sandboxes '{}' | jq -c '[.sandboxes[].name] | index("argtest")')" null
	run call no_such_tool '{}'
	equal "$(field .error.code "$output")" -32602
}

@test "the path is matched exactly, with or without a slash at the end" {
	body='{"jsonrpc":"2.0","id":1,"method":"ping"}'
	for path in mcp mcp/ ; do
		equal "$(http_status "$URL/$path" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d "$body")" 200
	done
	for path in mcpx MCP mcp/x; do
		equal "$(http_status "$URL/$path" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d "$body")" 404
	done
	[[ $(http_status "$URL/mcp%2fx" -H "Authorization: Bearer $TOKEN" -d "$body") == 4?? ]]
	equal "$(curl -s "$URL/healthz")" '{"ok":true}'
}
