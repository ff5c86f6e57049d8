-- Sandboxes and file links. Times are milliseconds since the Unix epoch.

CREATE TABLE sandbox (
	id           TEXT PRIMARY KEY,          -- 32 hex digits, new for every incarnation
	files_id     TEXT NOT NULL,             -- directory below data/ that holds its files
	principal    TEXT NOT NULL,             -- label of the bearer token that owns it
	name         TEXT NOT NULL,
	state        TEXT NOT NULL CHECK (state IN ('live', 'kept', 'gone')),
	template     TEXT NOT NULL,
	network      TEXT NOT NULL,
	env          TEXT CHECK (env IS NULL OR json_valid(env)),
	labels       TEXT CHECK (labels IS NULL OR json_valid(labels)),
	created_at   INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL,
	ttl_ms       INTEGER NOT NULL DEFAULT 0, -- 0: persistent
	expires_at   INTEGER NOT NULL DEFAULT 0, -- 0: persistent
	ended_at     INTEGER                     -- when it left 'live'
) STRICT;

-- A name has at most one incarnation that answers to it.
CREATE UNIQUE INDEX sandbox_name ON sandbox (principal, name) WHERE state <> 'gone';
CREATE INDEX sandbox_live ON sandbox (expires_at) WHERE state = 'live';

CREATE TABLE link (
	id         TEXT PRIMARY KEY,
	sandbox_id TEXT NOT NULL REFERENCES sandbox (id),
	principal  TEXT NOT NULL,
	op         TEXT NOT NULL CHECK (op IN ('put', 'get')),
	path       TEXT NOT NULL,               -- relative to the workspace
	max_bytes  INTEGER NOT NULL,
	size       INTEGER NOT NULL DEFAULT -1, -- promised size; -1: none
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	used_at    INTEGER                      -- set once, by the transfer that completes
) STRICT;

CREATE INDEX link_expiry ON link (expires_at);
