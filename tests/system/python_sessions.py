"""Many Python sessions at a time: python_sessions.py URL TOKEN COUNT. Each must keep its own state."""

import json
import sys
import threading
import urllib.request

URL, TOKEN, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
ROUNDS = 3
faults = []


def run(arguments):
    """The structured result; a busy server is asked again, as it says."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "execute_python", "arguments": arguments},
    }
    request = urllib.request.Request(
        URL,
        json.dumps(body).encode(),
        {
            "Authorization": "Bearer " + TOKEN,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        },
    )
    with urllib.request.urlopen(request, timeout=110) as response:
        return json.load(response)["result"]["structuredContent"]


def one(number):
    sandbox = "many-%d" % (number % 3)
    code = "total = [%d]; mine = %d" % (number, number)
    result = run({"code": code, "session_id": "new", "sandbox": sandbox, "timeout_ms": 60000})
    session = result["session_id"]
    for i in range(ROUNDS):
        code = "total.append(total[-1] + 1); (mine, len(total), total[0])"
        result = run({"code": code, "session_id": session, "timeout_ms": 60000})
        wanted = repr((number, i + 2, number))
        if result.get("value") != wanted:
            faults.append("session %d: %s instead of %s" % (number, result, wanted))


def guarded(number):
    try:
        one(number)
    except Exception as error:
        faults.append("session %d: %r" % (number, error))


threads = [threading.Thread(target=guarded, args=(i,)) for i in range(COUNT)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\n".join(faults))
sys.exit(1 if faults else 0)
