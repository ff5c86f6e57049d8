-- Background tasks. What a task printed and how it ended is in tasks/<id>/ first; the row follows.

CREATE TABLE task (
	id          TEXT PRIMARY KEY,           -- 32 hex digits; job_id and task_id alike
	sandbox_id  TEXT NOT NULL REFERENCES sandbox (id),
	principal   TEXT NOT NULL,
	request_id  TEXT,                       -- the caller's own: the same id is the same task
	origin      TEXT NOT NULL CHECK (origin IN ('job', 'task', 'exec')),
	command     TEXT NOT NULL,
	timeout_ms  INTEGER NOT NULL,
	state       TEXT NOT NULL CHECK (state IN
		('running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'unknown')),
	exit_code   INTEGER,                    -- when it ended by itself
	signal      INTEGER,                    -- when a signal ended it
	reason      TEXT,                       -- why the end is not known, or what ended it
	cpu_ms      INTEGER NOT NULL DEFAULT 0, -- of all its processes that have ended; 0: not known
	max_rss_kib INTEGER NOT NULL DEFAULT 0, -- of the largest of them
	survivors   INTEGER NOT NULL DEFAULT 0, -- processes that it left running on purpose
	created_at  INTEGER NOT NULL,
	started_at  INTEGER NOT NULL DEFAULT 0, -- 0: not yet
	finished_at INTEGER NOT NULL DEFAULT 0  -- 0: not yet
) STRICT;

CREATE UNIQUE INDEX task_request ON task (principal, sandbox_id, request_id)
	WHERE request_id IS NOT NULL;
CREATE INDEX task_sandbox ON task (sandbox_id, created_at);
CREATE INDEX task_principal ON task (principal, created_at);
CREATE INDEX task_running ON task (sandbox_id) WHERE state = 'running';

-- Whether it was made by create_sandbox: the newest of those is the default of start_task.
ALTER TABLE sandbox ADD COLUMN explicit INTEGER NOT NULL DEFAULT 0;

-- The stdio session that made it. Whether a session lives is told by its lock file alone.
ALTER TABLE sandbox ADD COLUMN session_id TEXT;
-- Whether it goes at the end of that session. A task that is started in it, or another change of
-- state, sets this to 0; so with state 'gone' it means: the session's end is not through with it.
ALTER TABLE sandbox ADD COLUMN ends_with_session INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sandbox_session ON sandbox (session_id) WHERE ends_with_session = 1;
