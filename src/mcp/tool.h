/*
 * A tool: one const struct per tool, in the file of its family; toolset.c lists them all. The
 * protocol core takes the list as a parameter, so the conformance fixture passes its own.
 */
#ifndef SPOOLBOX_MCP_TOOL_H
#define SPOOLBOX_MCP_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/util.h"
#include "mcp/round.h"
#include "mcp/stream.h"

/* A call that goes on after its answer (tasks extension). It is durable before it is told. */
enum tool_task_status {
	TOOL_TASK_NONE = 0,
	TOOL_TASK_WORKING,
	TOOL_TASK_INPUT,     /* input_required: it waits for answers */
	TOOL_TASK_COMPLETED, /* there is a result, be it one that reports a failure */
	TOOL_TASK_FAILED,    /* there is a JSON-RPC error */
	TOOL_TASK_CANCELLED,
};
struct tool_task {
	char id[ID_LEN + 1];
	enum tool_task_status status;
	char *message; /* what to tell a person of it; NULL: nothing */
	int64_t created_at, updated_at;
	int64_t ttl_ms;               /* from its creation: how long it can be asked for */
	struct json_object *requests; /* with TOOL_TASK_INPUT: key -> {method, params}; owned */
	struct json_object *error;    /* with TOOL_TASK_FAILED: {code, message}; owned */
};
void tool_task_finish(struct tool_task *task);

/* One call. The core has validated arguments against the schema before the handler runs. */
struct tool_call {
	void *app;                     /* the program's context: struct app in the product */
	const char *principal;         /* borrowed */
	struct json_object *arguments; /* an object, never NULL; borrowed */
	struct stream *stream;         /* see tool_call_tick; NULL: nobody listens */
	bool takes_task;               /* the client takes a task in place of a result */
	struct round round;            /* what it asks of the client; see round.h */
	/* Result, set by the handler: structured becomes structuredContent and, as text, the first
	 * content block. content (an array of extra blocks) may stay NULL. Both are owned by the
	 * call. */
	struct json_object *structured;
	struct json_object *content;
	bool is_error; /* with structured or content: the tool ran and reports a failure as data */
	/* In place of a result, and only when takes_task: what the call goes on as. Owned by the
	 * call. */
	struct tool_task task;
};

/* To be called about twice a second by a handler that waits; newest_line is the newest output, or
 * NULL. Reports progress where it was asked for. False: the client has gone and what it called for
 * is to be cancelled. */
bool tool_call_tick(struct tool_call *call, const char *newest_line);

/* Progress as the handler counts it, when it was asked for. False as above. */
bool tool_call_progress(struct tool_call *call, double progress, double total, const char *message);
/* A log message for the client; dropped unless the endpoint logs and the client takes this level.
 * level: a word of RFC 5424, e.g. "info". */
void tool_call_log(struct tool_call *call, const char *level, const char *text);

struct tool {
	const char *name;
	const char *title;
	const char *description;
	const char *input_schema;  /* JSON text; object root, additionalProperties false */
	const char *output_schema; /* JSON text; object root; NULL: none */
	bool read_only, destructive, idempotent, open_world;
	/* The input schema goes to clients as it is and is not checked here: it may use keywords
	 * that schema.h does not know. No tool of the product sets this: model APIs refuse such
	 * schemas. */
	bool schema_is_foreign;
	/* It always goes on as a task: refused to clients that take none. */
	bool task_only;
	/* False with err: answered as an isError result with {error, message, fix, usage,
	 * retryable}: the last says whether the same call may succeed later. */
	bool (*call)(struct tool_call *call, struct err *err);
};

struct tool_list {
	const struct tool *const *tools; /* in the order of tools/list */
	size_t count;
};

/* Who keeps the tasks that calls went on as. ERR_NOT_FOUND for unknown and foreign ids alike. */
struct tool_tasks {
	/* Fills task; with TOOL_TASK_COMPLETED also the result in call, as the handler would have.
	 * call has no arguments. */
	bool (*get)(struct tool_call *call, const char *id, struct tool_task *task,
		    struct err *err);
	/* Asks for its end; success when it ended already. */
	bool (*cancel)(struct tool_call *call, const char *id, struct err *err);
	/* Answers to what a task asked: key -> result. Unknown and answered keys are ignored. NULL:
	 * no task of this endpoint ever asks. */
	bool (*update)(struct tool_call *call, const char *id, struct json_object *answers,
		       struct err *err);
};

/* All tools of the product. */
extern const struct tool_list toolset;
/* Those of its tasks that are tasks of the protocol. */
extern const struct tool_tasks toolset_tasks;

/* What tools/list says of a tool in the newest revision, as a new object. */
struct json_object *tool_describe(const struct tool *tool);

/* One line that shows a call: arguments that are required or for which the schema gives an example
 * of its own, such as the sandbox, which may be named in two ways; then the names of the others. */
void tool_usage(const char *name, struct json_object *input_schema, struct buf *out);

/* For tests: whether a result conforms to the tool's output schema. ERR_INVALID with the faults. */
bool tool_check_result(const struct tool *tool, struct json_object *structured,
		       struct err *err) MUST_USE;

#endif
