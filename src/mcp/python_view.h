/*
 * What a model is told of Python code that ran: the structured result, and behind it, as content
 * blocks, what the code showed (texts, then images) and links to the files that it made. All of it
 * comes out of a sandbox, so whatever has no bound yet gets one here.
 */
#ifndef SPOOLBOX_MCP_PYTHON_VIEW_H
#define SPOOLBOX_MCP_PYTHON_VIEW_H

#include "box/python.h"
#include "mcp/literal.h"
#include "mcp/target.h"
#include "mcp/tool.h"

struct python_view {
	const struct target *target;
	struct python_result *result; /* its images go as they are shown */
	int64_t timeout_ms;
	const char
		*session_id; /* the one that was called or made, "" when it is over; NULL: none */
	bool is_new_session;
	int64_t idle_s;    /* after which a session ends */
	bool is_throwaway; /* the sandbox was made for this call alone */
};

/* Fills in the call's result. True when files were handed out: they have to stay. */
bool python_view_report(struct tool_call *call, const struct python_view *view);

/* clang-format off */
#define PYTHON_VIEW_SCHEMA \
	L_RESULT( \
		L_QUOTE("stdout") "," L_QUOTE("stderr") "," L_QUOTE("stdout_bytes") "," \
		L_QUOTE("stderr_bytes") "," L_QUOTE("truncated") "," L_QUOTE("timed_out") "," \
		L_QUOTE("images") "," L_QUOTE("artifacts") "," L_QUOTE("files_changed") "," \
		L_QUOTE("duration_ms") "," L_QUOTE("state_preserved"), \
		L_STR("session_id", "", "The session, while it lives.") "," \
		L_STR("stdout", "", "Standard output, cut in the middle when too long.") "," \
		L_STR("stderr", "", "Error output, likewise.") "," \
		L_INT("stdout_bytes", L_AT_LEAST(0), "Bytes of standard output in all.") "," \
		L_INT("stderr_bytes", L_AT_LEAST(0), "Bytes of error output in all.") "," \
		L_BOOL("truncated", "", "Whether either is cut here.") "," \
		L_INT("exit_code", "", "0 at the end of the code, 1 after an exception, else that of exit.") "," \
		L_STR("signal", "", "Signal that ended it, e.g. SIGSEGV.") "," \
		L_BOOL("timed_out", "", "Whether its time was up.") "," \
		L_STR("value", "", "Value of the last line, if it is an expression.") "," \
		L_ARRAY("displays", \
			L_RESULT(L_QUOTE("mime") "," L_QUOTE("text"), \
				L_STR("mime", "", "text/plain, text/markdown, text/html or application/json.") "," \
				L_STR("text", "", "What was shown.")), \
			"Texts and tables that display() showed, in their order.") "," \
		L_STRUCT("error", \
			L_MEMBERS( \
				L_STR("type", "", "Its class.") "," \
				L_STR("message", "", "Its text.") "," \
				L_STR("traceback", "", "Where it happened in the code.") "," \
				L_STR("hint", "", "What to do about it.")), \
			"The exception that ended the code.") "," \
		L_INT("images", L_AT_LEAST(0), "Image blocks in this result.") "," \
		L_ARRAY("artifacts", \
			L_RESULT( \
				L_QUOTE("name") "," L_QUOTE("path") "," L_QUOTE("uri") "," L_QUOTE("mime") "," L_QUOTE("size"), \
				L_STR("name", "", "Its name.") "," \
				L_STR("path", "", "Where it is.") "," \
				L_STR("uri", "", "For resources/read, and for files of a later call.") "," \
				L_STR("mime", "", "Its type by its name.") "," \
				L_INT("size", L_AT_LEAST(0), "Its bytes.") "," \
				L_STR("url", "", "Download link for the person; it works once.") "," \
				L_STR("expires_at", "", "When the link ends, RFC 3339.")), \
			"Files handed out.") "," \
		L_ARRAY("files_changed", "{\"type\":\"string\"}", "Files that the code made or changed.") "," \
		L_BOOL("files_changed_partial", "", "Whether there may be more.") "," \
		L_INT("duration_ms", L_AT_LEAST(0), "How long it took.") "," \
		L_INT("cpu_ms", L_AT_LEAST(0), "Processor time it used.") "," \
		L_INT("max_rss_kib", L_AT_LEAST(0), "Memory of its largest process.") "," \
		L_BOOL("state_preserved", "", \
		       "Whether the next call with session_id sees these variables; false without a session.") "," \
		TARGET_PROPERTIES "," \
		L_STR("note", "", "What else to know, and what to do about it."))
/* clang-format on */

#endif
