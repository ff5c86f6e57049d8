"""Clients that go: soak.py URL TOKEN SANDBOX COUNT makes that many calls, eight at a time; of each three
two are left at a random moment of their first 300 ms. One process, since hundreds of curl would be
most of the load. Prints how many were answered and how many were left."""
import http.client
import json
import random
import sys
import threading
import time
from urllib.parse import urlsplit

base, token, sandbox, count = urlsplit(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
BYTES = random.randbytes(300000)
COMMANDS = {"long": "for i in 1 2 3; do echo $i; sleep 0.3; done", "short": "echo x"}
lock, left_over = threading.Lock(), list(range(count))
counts = {"answered": 0, "left": 0}


def exchange(method, path, body, headers, limit):
    """The answer's body; None when the client went before it was whole."""
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=60)
    until = time.monotonic() + limit
    try:
        connection.putrequest(method, path)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders()
        for at in range(0, len(body), 50000):
            connection.send(body[at:at + 50000])
            if time.monotonic() > until:
                return None
        connection.sock.settimeout(max(until - time.monotonic(), 0.001))
        response = connection.getresponse()
        return response.read()
    except TimeoutError:
        return None
    finally:
        connection.close()


def call(method, params, modern=False, limit=60.0):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    if modern:
        params["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                           "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": 1}
        headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": params["name"]}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return exchange("POST", base.path, body, headers, limit)


def tool(name, arguments, **how):
    return call("tools/call", {"name": name, "arguments": arguments}, **how)


def link(name, arguments):
    answer = json.loads(tool(name, {"sandbox": sandbox, **arguments}))
    return urlsplit(answer["result"]["structuredContent"]["url"]).path


def one(number, limit):
    kind = number % 6
    if kind == 0:
        return tool("exec", {"sandbox": sandbox, "command": COMMANDS["short"]}, limit=limit)
    if kind == 1:
        return tool("exec", {"sandbox": sandbox, "command": COMMANDS["long"]}, modern=True, limit=limit)
    if kind == 2:
        return call("tools/list", {}, limit=limit)
    if kind == 3:
        return exchange("PUT", link("upload_file", {"dest": f"up-{number % 8}"}), BYTES, {}, min(limit, limit / 10))
    if kind == 4:
        return exchange("GET", link("download_file", {"src": "big"}), b"", {}, min(limit, limit / 10))
    return tool("start_task", {"sandbox_id": sandbox, "command": "true"}, limit=limit)


def work():
    while True:
        with lock:
            if not left_over:
                return
            number = left_over.pop()
        stays = random.random() < 1 / 3
        answer = one(number, 60 if stays else random.random() * 0.3)
        with lock:
            counts["left" if answer is None else "answered"] += 1


threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(counts["answered"], counts["left"])
sys.exit(sum(counts.values()) != count)
