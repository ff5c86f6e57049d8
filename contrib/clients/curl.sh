#!/bin/sh
# Lists the tools, then runs a command in a sandbox named "demo".
url=https://your.host/mcp
token=YOUR-TOKEN

call() {
	curl -sS "$url" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
		-H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2025-11-25' \
		-d "$1"
	echo
}

call '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
call '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"sandbox":"demo","command":"uname -a"}}}'
