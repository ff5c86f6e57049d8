-- What the workers of the conformance fixture share; nothing is kept in a worker. Times are
-- milliseconds since the Unix epoch.

-- Answers of clients to requests of the server (handshake era): made room for by the worker that
-- asks, filled in by the one that the answer reaches.
CREATE TABLE mailbox (
	id        TEXT PRIMARY KEY,
	principal TEXT NOT NULL,
	answer    TEXT                          -- the whole message; NULL: not there yet
) STRICT;

-- What listeners are told of, in this order.
CREATE TABLE event (
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	kind   INTEGER NOT NULL,                -- enum event_kind
	what   TEXT                             -- URI or task id
) STRICT;

-- Workers that are busy with a listener. A killed one leaves its row: the place is free again when
-- no stream can live that long.
CREATE TABLE listener (
	pid   INTEGER PRIMARY KEY,
	until INTEGER NOT NULL
) STRICT;

-- A task's status follows from these: cancelled_at, else due_at, which is NULL while it waits for
-- answers. No process works on it.
CREATE TABLE task (
	id           TEXT PRIMARY KEY,
	principal    TEXT NOT NULL,
	job          TEXT NOT NULL,             -- name of the tool
	arguments    TEXT NOT NULL CHECK (json_valid(arguments)),
	answers      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(answers)),
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	due_at       INTEGER,
	cancelled_at INTEGER,
	told         INTEGER NOT NULL DEFAULT 0 -- whether there is an event of its end
) STRICT;
