#!/usr/bin/env python3
"""Fills a new spool for contrib/bench: live sandboxes with their directories, and finished tasks
with theirs, used a moment ago, so that there is nothing to do about them.

	many.py SPOOL SANDBOXES TASKS
"""

import os
import secrets
import sqlite3
import sys
import time

spool, sandboxes, tasks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
now = int(time.time() * 1000)
ids = [secrets.token_hex(16) for _ in range(sandboxes)]
task_ids = [secrets.token_hex(16) for _ in range(tasks)]
for id_ in ids:
	for below in ("", "/workspace", "/incoming"):
		os.mkdir(f"{spool}/data/{id_}{below}", 0o700)
	os.mkdir(f"{spool}/run/{id_}", 0o700)
	open(f"{spool}/run/{id_}/use", "w", encoding="utf-8").close()
for id_ in task_ids:
	os.mkdir(f"{spool}/tasks/{id_}", 0o700)
db = sqlite3.connect(f"{spool}/state.db")
db.executemany("""INSERT INTO sandbox (id, files_id, principal, name, state, template, network,
	created_at, last_used_at) VALUES (?1, ?1, 'default', ?2, 'live', 'base', 'loopback', ?3, ?3)""",
	((id_, f"many-{i}", now) for i, id_ in enumerate(ids)))
db.executemany("""INSERT INTO task (id, sandbox_id, principal, origin, command, timeout_ms, state,
	exit_code, created_at, started_at, finished_at, log_since)
	VALUES (?1, ?2, 'default', 'job', 'make', 60000, 'succeeded', 0, ?3, ?3, ?3, ?3)""",
	((id_, ids[i % sandboxes], now) for i, id_ in enumerate(task_ids)))
db.commit()
