-- What the reaper needs to know: whose spool this is, what the clocks said, and what is due.

-- The identity of the spool, also kept in the files spool.id of SMCP_SPOOL and SMCP_DATA_DIR: a
-- database and a directory that do not belong together are told by it.
CREATE TABLE spool (
	one      INTEGER PRIMARY KEY CHECK (one = 1),
	id       TEXT NOT NULL,
	is_whole INTEGER NOT NULL DEFAULT 0     -- both files are there; until then they are being made
) STRICT;

-- What the clocks said at the end of the newest pass that looked at them.
CREATE TABLE clock_reading (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	boot_id TEXT NOT NULL,                  -- of the kernel; differs after a restart
	boot_ms INTEGER NOT NULL,               -- time since that boot, suspend included
	wall_at INTEGER NOT NULL
) STRICT;

-- Wall time that passed without anybody being able to use the server: the clock was set forward,
-- or the machine was off. Ages do not count it.
CREATE TABLE clock_gap (
	from_at INTEGER PRIMARY KEY,            -- stamps up to here are from before it
	ms      INTEGER NOT NULL CHECK (ms > 0)
) STRICT;

-- From when the retention of a finished task's log counts; 0: it runs, or its log is gone.
ALTER TABLE task ADD COLUMN log_since INTEGER NOT NULL DEFAULT 0;
UPDATE task SET log_since = max(finished_at, started_at, created_at) WHERE state <> 'running';
CREATE INDEX task_log ON task (log_since) WHERE log_since > 0;

CREATE INDEX sandbox_idle ON sandbox (last_used_at) WHERE state = 'live';
CREATE INDEX sandbox_ended ON sandbox (ended_at) WHERE state <> 'live';
CREATE INDEX link_sandbox ON link (sandbox_id);
CREATE INDEX link_used ON link (used_at) WHERE used_at IS NOT NULL;
