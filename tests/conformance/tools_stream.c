/* Tools that say something before their answer, or to those who listen. */
#include "base/clock.h"
#include "content.h"
#include "fixture.h"

#define PAUSE_MS 50 /* what the suite asks for between two notifications */

static bool tool_with_logging(struct tool_call *call, struct err *err)
{
	static const char *const lines[] = {"Begun", "Half way", "Done"};
	(void)err;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		if (i > 0)
			clock_sleep_ms(PAUSE_MS);
		tool_call_log(call, "info", lines[i]);
	}
	return call_say(call, "Three lines were logged.");
}

static bool tool_with_progress(struct tool_call *call, struct err *err)
{
	(void)err;
	for (int percent = 0; percent <= 100; percent += 50) {
		if (percent > 0)
			clock_sleep_ms(PAUSE_MS);
		if (!tool_call_progress(call, percent, 100, NULL))
			return call_say(call, "Nobody waits for this any more.");
	}
	return call_say(call, "All done.");
}

static bool logging_tool(struct tool_call *call, struct err *err)
{
	(void)err;
	tool_call_log(call, "info", "Said because the request set a level.");
	return call_say(call, "Logged, if it was wanted.");
}

/* The suite looks at what is on the stream besides the answer. */
static bool streaming_elicitation(struct tool_call *call, struct err *err)
{
	(void)err;
	if (call->stream != NULL && call->stream->may_open)
		stream_open(call->stream);
	return call_say(call, "An answer on a stream.");
}

static bool add_event(struct tool_call *call, enum event_kind kind, struct err *err)
{
	struct fixture *fixture = call->app;
	return event_add(fixture->db, kind, NULL, err) && call_say(call, "Listeners are told.");
}

static bool trigger_tool_change(struct tool_call *call, struct err *err)
{
	return add_event(call, EVENT_TOOLS, err);
}

static bool trigger_prompt_change(struct tool_call *call, struct err *err)
{
	return add_event(call, EVENT_PROMPTS, err);
}

static const struct tool tools[] = {
	{PLAIN_TOOL("test_tool_with_logging", "Logs three lines, then answers.",
		    tool_with_logging)},
	{PLAIN_TOOL("test_tool_with_progress", "Reports progress, then answers.",
		    tool_with_progress)},
	{PLAIN_TOOL("test_logging_tool", "Logs one line, then answers.", logging_tool)},
	{PLAIN_TOOL("test_streaming_elicitation", "Answers on a stream.", streaming_elicitation)},
	{PLAIN_TOOL("test_trigger_tool_change", "Tells listeners that the tools changed.",
		    trigger_tool_change)},
	{PLAIN_TOOL("test_trigger_prompt_change", "Tells listeners that the prompts changed.",
		    trigger_prompt_change)},
};

const struct tool_family tools_stream = {tools, ARRAY_LEN(tools)};
