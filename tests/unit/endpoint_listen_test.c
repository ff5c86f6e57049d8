/* subscriptions/listen: what is acknowledged, told and ended, with a source of events in memory. */
#include "clock_kit.h"

#include "endpoint_kit.h"

#define EXTENSION "io.modelcontextprotocol/tasks"
#define SUB       "io.modelcontextprotocol/subscriptionId"
#define TASK_ID   "0123456789abcdef0123456789abcdef"
#define OTHER_ID  "ffffffffffffffffffffffffffffffff"

/* --- events and tasks --------------------------------------------------------------------- */

static struct {
	struct mem *mem;
	int looks, goes_at; /* the client goes at this look; 0: never */
	int stops_at;       /* the process is told to stop at this look; 0: never */
	int64_t step_ms;    /* between two looks; 0: 11 s */
	int entered, left;
	enum err_code fails; /* at entering (ERR_BUSY), at looking (ERR_IO) */
	int64_t after[8];
} source;

static int64_t newest_event(void *app, struct err *err)
{
	(void)app, (void)err;
	ck_assert_int_eq(source.entered, 1);
	ck_assert_int_eq(source.mem->writes, 0); /* the number is taken before anything is said */
	return 40;
}

static const struct {
	enum event_kind kind;
	const char *what;
} events[] = {
	{EVENT_TOOLS, NULL},         {EVENT_PROMPTS, NULL},       {EVENT_RESOURCES, NULL},
	{EVENT_RESOURCE, "kit://a"}, {EVENT_RESOURCE, "kit://b"}, {EVENT_TASK, TASK_ID},
	{EVENT_TASK, OTHER_ID},
};

/* All events at the first look, none later; at the third the time is over. */
static int64_t events_since(void *app, int64_t after, event_visit *visit, void *ctx,
			    struct err *err)
{
	(void)app;
	source.after[source.looks++ % 8] = after;
	if (source.fails == ERR_IO) {
		errno = EIO;
		err_sys(err, "read events");
		return -1;
	}
	for (size_t i = 0; source.looks == 1 && i < ARRAY_LEN(events); i++)
		visit(ctx, events[i].kind, events[i].what);
	if (source.looks == source.goes_at)
		source.mem->gone = true;
	if (source.looks == source.stops_at)
		source.mem->stopping = true;
	if (source.step_ms > 0)
		clock_kit_ahead_ms += source.step_ms;
	else
		clock_kit_ahead_ms += source.looks == 3 ? EVENT_LIFE_MS : 11000;
	return 50;
}

static bool enter(void *app, const char *principal, struct err *err)
{
	(void)app;
	ck_assert_str_eq(principal, "tester");
	if (source.fails == ERR_BUSY)
		return err_set(err, ERR_BUSY, "all 4 places for listeners are taken");
	source.entered++;
	return true;
}

static void leave(void *app, const char *principal)
{
	(void)app, (void)principal;
	source.left++;
}

static const struct event_source event_source = {newest_event, events_since, 4, enter, leave};

static bool get_task(struct tool_call *call, const char *id, struct tool_task *task,
		     struct err *err)
{
	(void)call;
	if (strcmp(id, TASK_ID) != 0)
		return err_set(err, ERR_NOT_FOUND, "no such task");
	*task = (struct tool_task){.id = TASK_ID,
				   .status = TOOL_TASK_FAILED,
				   .ttl_ms = 1000,
				   .error = json_literal("{\"code\":-32603,\"message\":\"x\"}")};
	return true;
}

static bool cancel_task(struct tool_call *call, const char *id, struct err *err)
{
	(void)call, (void)id;
	return err_set(err, ERR_INTERNAL, "not called");
}

static const struct tool_tasks tasks = {get_task, cancel_task, NULL};

static bool list_none(struct resource_call *call, const char *after, struct buf *next,
		      struct err *err)
{
	(void)call, (void)after, (void)next, (void)err;
	return true;
}

static bool read_none(struct resource_call *call, const char *uri, struct err *err)
{
	(void)call, (void)uri;
	return err_set(err, ERR_NOT_FOUND, "none");
}

static const struct resource_set watched = {
	.list = list_none, .read = read_none, .subscribe = true};
static const struct resource_set unwatched = {.list = list_none, .read = read_none};

static bool get_nothing(struct prompt_call *call, struct err *err)
{
	(void)call, (void)err;
	return true;
}

static const struct prompt prompt = {.name = "p", .description = "P.", .get = get_nothing};
static const struct prompt *const prompt_array[] = {&prompt};
static const struct prompt_list prompt_list = {prompt_array, 1};

/* --- requests ----------------------------------------------------------------------------- */

#define DECLARED KIT_CAN("\"extensions\":{\"" EXTENSION "\":{}}")

static void serve(struct mem *m, const char *id, const char *accept, const char *wishes,
		  const char *meta)
{
	AUTO_BUF body = BUF_INIT;
	buf_printf(&body,
		   "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"subscriptions/listen\",\"params\":{"
		   "%s\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		   "\"progressToken\":1,%s}}}",
		   id, wishes, meta);
	mem_init(m, "POST", body.data, body.len);
	mem_header(m, "content-type", "application/json");
	mem_header(m, "accept", accept);
	mem_header(m, "authorization", "Bearer sesame");
	mem_header(m, "mcp-protocol-version", "2026-07-28");
	mem_header(m, "mcp-method", "subscriptions/listen");
	source.mem = m;
	kit_serve(m);
}

#define SSE "application/json, text/event-stream"

static struct json_object *listen_for(struct mem *m, const char *wishes)
{
	AUTO_BUF params = BUF_INIT;
	buf_printf(&params, "\"notifications\":%s,", wishes);
	serve(m, "7", SSE, params.data, DECLARED);
	return kit_events(m);
}

#define EVERYTHING \
	"{\"toolsListChanged\":true,\"promptsListChanged\":true,\"resourcesListChanged\":true," \
	"\"resourceSubscriptions\":[\"kit://a\",\"kit://c\"],\"taskIds\":[\"" TASK_ID \
	"\",\"" OTHER_ID "\",\"x\"]}"

/* checklist 70 */
TEST(a_listener_is_acknowledged_told_and_let_go_in_good_order)
{
	AUTO_MEM m;
	AUTO_JSON *got = listen_for(&m, EVERYTHING);
	static const char *const methods[] = {
		"notifications/subscriptions/acknowledged", "notifications/tools/list_changed",
		"notifications/prompts/list_changed",       "notifications/resources/list_changed",
		"notifications/resources/updated",          "notifications/tasks",
	};
	ck_assert_uint_eq(json_object_array_length(got), ARRAY_LEN(methods) + 1);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		struct json_object *event = json_object_array_get_idx(got, i);
		ck_assert_str_eq(json_get_str(event, "method"), methods[i]);
		ck_assert(!json_has(event, "id"));
		struct json_object *meta = json_get(json_get(event, "params"), "_meta");
		ck_assert_str_eq(json_text(json_get(meta, SUB), NULL), "7");
	}
	ck_assert_str_eq(json_text(kit_at(got, "0.params.notifications"), NULL),
			 "{\"toolsListChanged\":true,\"promptsListChanged\":true,"
			 "\"resourcesListChanged\":true,\"resourceSubscriptions\":[\"kit://a\","
			 "\"kit://c\"],\"taskIds\":[\"" TASK_ID "\"]}");
	ck_assert_str_eq(kit_text(got, "4.params.uri"), "kit://a");
	ck_assert_str_eq(kit_text(got, "5.params.taskId"), TASK_ID);
	ck_assert_str_eq(kit_text(got, "5.params.status"), "failed");
	ck_assert_int_eq(json_get_int(kit_at(got, "5.params.error"), "code", 0), -32603);
	struct json_object *end = json_object_array_get_idx(got, ARRAY_LEN(methods));
	ck_assert_int_eq(json_get_int(end, "id", 0), 7);
	ck_assert_str_eq(kit_text(end, "result.resultType"), "complete");
	struct json_object *meta = kit_at(end, "result._meta");
	ck_assert_str_eq(json_text(json_get(meta, SUB), NULL), "7");
	ck_assert(json_has(meta, "io.modelcontextprotocol/serverInfo"));
	ck_assert(!json_has(json_get(end, "result"), "ttlMs"));
	ck_assert_int_eq(source.entered, 1);
	ck_assert_int_eq(source.left, 1);
	ck_assert_int_eq(source.after[0], 40);
	ck_assert_int_eq(source.after[1], 50);
	ck_assert_ptr_nonnull(strstr(m.out.data, ": keep-alive\n\n"));
}
TEST_END

TEST(the_subscription_id_keeps_its_type)
{
	AUTO_MEM m;
	serve(&m, "\"7\"", SSE, "\"notifications\":{\"toolsListChanged\":true},", KIT_CAN(""));
	AUTO_JSON *got = kit_events(&m);
	ck_assert_uint_eq(json_object_array_length(got), 3);
	for (size_t i = 0; i < 3; i++) {
		struct json_object *event = json_object_array_get_idx(got, i);
		struct json_object *meta =
			json_get(json_get(event, i < 2 ? "params" : "result"), "_meta");
		ck_assert_str_eq(json_text(json_get(meta, SUB), NULL), "\"7\"");
	}
}
TEST_END

TEST(only_what_is_asked_for_and_there_is_told)
{
	static const struct {
		const char *wishes, *honoured;
		size_t told;
	} cases[] = {
		{"{}", "{}", 0},
		{"{\"toolsListChanged\":false,\"unknown\":true}", "{}", 0},
		{"{\"promptsListChanged\":true}", "{}", 0}, /* there are none */
		{"{\"resourceSubscriptions\":[\"kit://a\"]}", "{}", 0},
		{"{\"resourcesListChanged\":true}", "{\"resourcesListChanged\":true}", 1},
		{"{\"resourcesListChanged\":null}", "{}", 0},
	};
	kit.prompts = NULL;
	kit.resources = &unwatched;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		source.looks = source.entered = 0;
		AUTO_JSON *got = listen_for(&m, cases[i].wishes);
		ck_assert_str_eq(json_text(kit_at(got, "0.params.notifications"), NULL),
				 cases[i].honoured);
		ck_assert_uint_eq(json_object_array_length(got), cases[i].told + 2);
	}
}
TEST_END

TEST(a_client_that_goes_gives_its_place_back)
{
	AUTO_MEM m;
	source.goes_at = 2;
	AUTO_JSON *got = listen_for(&m, "{\"toolsListChanged\":true}");
	ck_assert_uint_eq(json_object_array_length(got), 2); /* and no result */
	ck_assert_int_eq(source.looks, 2);
	ck_assert_int_eq(source.left, 1);
}
TEST_END

TEST(a_worker_that_is_told_to_stop_ends_its_stream_in_good_order)
{
	AUTO_MEM m;
	source.stops_at = 2;
	AUTO_JSON *got = listen_for(&m, "{\"toolsListChanged\":true}");
	ck_assert_int_eq(source.looks, 2);
	ck_assert_uint_eq(json_object_array_length(got), 3); /* acknowledgement, event, result */
	ck_assert_str_eq(kit_text(got, "2.result.resultType"), "complete");
	ck_assert_int_eq(source.left, 1);
}
TEST_END

/* Who listens keeps a worker, so it has to show soon that a client has gone: at the second write
 * after that. */
TEST(a_listener_is_written_to_every_few_seconds)
{
	AUTO_MEM m;
	source.step_ms = 500;
	source.stops_at = 20;
	AUTO_JSON *got = listen_for(&m, "{}");
	ck_assert_uint_eq(json_object_array_length(got), 2);
	/* Ten seconds, and what it slept: a keep-alive after at most 2.5 of them. */
	ck_assert_int_ge(m.writes, 2 + 4);
	ck_assert_int_le(m.writes, 2 + 10);
}
TEST_END

static void check_refused(const char *wishes, const char *meta, int status, int code)
{
	AUTO_MEM m;
	serve(&m, "7", SSE, wishes, meta);
	AUTO_JSON *answer = kit_json(&m);
	ck_assert_msg(m.status == status && kit_code(answer) == code, "%s: %s", wishes,
		      buf_str(&m.out));
	ck_assert_int_eq(json_get_int(answer, "id", 0), 7);
	ck_assert_int_eq(m.length >= 0, true); /* no stream was begun */
	ck_assert_int_eq(source.entered, source.left);
}

TEST(a_refusal_comes_before_the_acknowledgement)
{
	static const char *const wishes[] = {
		"",
		"\"notifications\":null,",
		"\"notifications\":[],",
		"\"notifications\":{\"toolsListChanged\":1},",
		"\"notifications\":{\"resourceSubscriptions\":\"kit://a\"},",
		"\"notifications\":{\"resourceSubscriptions\":[7]},",
		"\"notifications\":{\"taskIds\":{}},",
	};
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		check_refused(wishes[i], DECLARED, 200, -32602);
	check_refused("\"notifications\":{\"taskIds\":[\"" TASK_ID "\"]},", KIT_CAN(""), 400,
		      -32021);
	source.fails = ERR_BUSY;
	check_refused("\"notifications\":{},", DECLARED, 200, -32603);
}
TEST_END

TEST(events_that_cannot_be_read_end_the_stream_with_an_error)
{
	AUTO_MEM m;
	source.fails = ERR_IO;
	AUTO_JSON *got = listen_for(&m, "{\"toolsListChanged\":true}");
	ck_assert_uint_eq(json_object_array_length(got), 2);
	ck_assert_int_eq(kit_code(json_object_array_get_idx(got, 1)), -32603);
	ck_assert_int_eq(source.left, 1);
}
TEST_END

TEST(a_client_that_takes_no_events_cannot_listen)
{
	AUTO_MEM m;
	serve(&m, "7", "application/json", "\"notifications\":{},", DECLARED);
	ck_assert_int_eq(m.status, 406);
	ck_assert_int_eq(source.entered, 0);
}
TEST_END

static void check_capabilities(const char *modern, const char *legacy)
{
	AUTO_JSON *discovered = kit_ask_modern("server/discover", NULL, "", 200);
	ck_assert_str_eq(json_text(kit_at(discovered, "result.capabilities"), NULL), modern);
	AUTO_JSON *hello = kit_ask_legacy(NULL, "initialize", "{}", 200);
	ck_assert_str_eq(json_text(kit_at(hello, "result.capabilities"), NULL), legacy);
}

/* checklist 71 */
TEST(flags_are_set_only_where_somebody_can_listen)
{
	kit.tasks = NULL;
	check_capabilities("{\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":true},"
			   "\"resources\":{\"listChanged\":true,\"subscribe\":true}}",
			   "{\"tools\":{},\"prompts\":{},\"resources\":{\"subscribe\":true}}");
	kit.events = NULL;
	check_capabilities("{\"tools\":{},\"prompts\":{},\"resources\":{}}",
			   "{\"tools\":{},\"prompts\":{},\"resources\":{\"subscribe\":true}}");
	check_refused("\"notifications\":{},", DECLARED, 404, -32601);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_listener_is_acknowledged_told_and_let_go_in_good_order,
		the_subscription_id_keeps_its_type,
		only_what_is_asked_for_and_there_is_told,
		a_client_that_goes_gives_its_place_back,
		a_worker_that_is_told_to_stop_ends_its_stream_in_good_order,
		a_listener_is_written_to_every_few_seconds,
		a_refusal_comes_before_the_acknowledgement,
		events_that_cannot_be_read_end_the_stream_with_an_error,
		a_client_that_takes_no_events_cannot_listen,
		flags_are_set_only_where_somebody_can_listen,
	};
	kit.events = &event_source;
	kit.tasks = &tasks;
	kit.resources = &watched;
	kit.prompts = &prompt_list;
	kit_open();
	int failed = unit_run("endpoint_listen", unit_tests, ARRAY_LEN(unit_tests));
	kit_close();
	return failed;
}
