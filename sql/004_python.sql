-- Python: sessions, and sandboxes that wait for code.

-- A session is a process in a sandbox; whether it lives is told by its socket. The row follows.
CREATE TABLE python_session (
	id           TEXT PRIMARY KEY,          -- 32 hex digits; its socket and its lock have it
	sandbox_id   TEXT NOT NULL REFERENCES sandbox (id) ON DELETE CASCADE,
	principal    TEXT NOT NULL,
	created_at   INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL,          -- end of the newest run
	ended_at     INTEGER NOT NULL DEFAULT 0, -- 0: not as far as is known
	why          TEXT CHECK (why IN ('idle', 'killed', 'exited', 'crashed', 'lost'))
) STRICT;

CREATE INDEX python_session_sandbox ON python_session (sandbox_id);
CREATE INDEX python_session_used ON python_session (last_used_at) WHERE ended_at = 0;
CREATE INDEX python_session_ended ON python_session (ended_at) WHERE ended_at > 0;

-- Waits with Python ready and belongs to nobody's work yet: set to 0 once, when it is taken.
ALTER TABLE sandbox ADD COLUMN is_reserve INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sandbox_reserve ON sandbox (created_at) WHERE state = 'live' AND is_reserve = 1;

-- Was taken for code that named none, and nobody named it since: it goes when its place is needed.
ALTER TABLE sandbox ADD COLUMN gives_way INTEGER NOT NULL DEFAULT 0;
