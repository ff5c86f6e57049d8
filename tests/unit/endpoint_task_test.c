/* Calls that take long: progress on the answer's stream, a client that goes, and the tasks
 * extension with a keeper that holds one task. */
#include "endpoint_kit.h"

#define EXTENSION "io.modelcontextprotocol/tasks"
#define TASK_ID   "0123456789abcdef0123456789abcdef"

/* --- a tool that waits, and who keeps what it becomes ------------------------------------- */

static struct {
	int ticks_wanted;   /* how often it ticks */
	int64_t age_ms;     /* how old the call seems to be, at each tick */
	int ticks;          /* how often it did */
	bool was_cancelled; /* its client was told to have gone */
	struct mem *mem;    /* whose client goes, */
	int gone_at;        /* before this tick; 0: stays */
	int written;        /* events at the last tick */
	enum tool_task_status status;
	bool result_fails;
	int cancels;
} slow;

static bool call_slow(struct tool_call *call, struct err *err)
{
	(void)err;
	kit_calls++;
	for (slow.ticks = 0; slow.ticks < slow.ticks_wanted; slow.ticks++) {
		char line[32];
		if (slow.gone_at > 0 && slow.ticks == slow.gone_at)
			slow.mem->gone = true;
		snprintf(line, sizeof line, "line %d", slow.ticks);
		call->stream->started_ms -= slow.age_ms;
		call->stream->progress_ms -= call->stream->progress_ms > 0 ? slow.age_ms : 0;
		if (!tool_call_tick(call, line)) {
			slow.was_cancelled = true;
			break;
		}
		slow.written = slow.mem == NULL ? 0 : slow.mem->writes;
	}
	if (json_get_bool(call->arguments, "as_task", false) && call->takes_task) {
		call->task = (struct tool_task){.id = TASK_ID,
						.status = TOOL_TASK_WORKING,
						.message = xstrdup("half done"),
						.created_at = 1790000000123,
						.updated_at = 1790000000123,
						.ttl_ms = 90000};
		return true;
	}
	if (json_get_bool(call->arguments, "breaks", false))
		return false; /* without an error: its promise is broken */
	call->structured = json_literal("{\"exit\":0}");
	return true;
}

static const struct tool slow_tool = {
	.name = "slow",
	.title = "Slow",
	.description = "Takes its time.",
	.input_schema = KIT_SCHEMA("\"as_task\":{\"type\":\"boolean\"},"
				   "\"breaks\":{\"type\":\"boolean\"}",
				   ""),
	.output_schema = KIT_SCHEMA("\"exit\":{\"type\":\"integer\"}", ""),
	.call = call_slow,
};

static const struct tool long_tool = {
	.name = "long",
	.title = "Long",
	.description = "Goes on as a task or not at all.",
	.input_schema = KIT_SCHEMA("\"as_task\":{\"type\":\"boolean\"}", ""),
	.task_only = true,
	.call = call_slow,
};

static bool get_slow(struct tool_call *call, const char *id, struct tool_task *task,
		     struct err *err)
{
	if (strcmp(id, TASK_ID) != 0 || strcmp(call->principal, "tester") != 0)
		return err_set(err, ERR_NOT_FOUND, "no such task");
	*task = (struct tool_task){.id = TASK_ID,
				   .status = slow.status,
				   .created_at = 1790000000123,
				   .updated_at = 1790000001000,
				   .ttl_ms = 90000};
	if (slow.status == TOOL_TASK_INPUT)
		task->requests = json_literal("{\"sure\":{\"method\":\"elicitation/create\"}}");
	if (slow.status == TOOL_TASK_FAILED)
		task->error = json_literal("{\"code\":-32603,\"message\":\"broken\"}");
	if (slow.status == TOOL_TASK_COMPLETED) {
		call->structured = json_literal("{\"exit\":3}");
		call->is_error = slow.result_fails;
	}
	return true;
}

static bool cancel_slow(struct tool_call *call, const char *id, struct err *err)
{
	(void)call;
	(void)err;
	ck_assert_str_eq(id, TASK_ID);
	slow.cancels++;
	slow.status = TOOL_TASK_CANCELLED;
	return true;
}

static const struct tool_tasks slow_tasks = {get_slow, cancel_slow, NULL};

static bool update_slow(struct tool_call *call, const char *id, struct json_object *answers,
			struct err *err)
{
	ck_assert_str_eq(call->principal, "tester");
	ck_assert_str_eq(id, TASK_ID);
	if (json_has(answers, "late"))
		return err_set(err, ERR_NOT_FOUND, "gone meanwhile");
	if (slow.status == TOOL_TASK_INPUT && json_has(answers, "sure"))
		slow.status = TOOL_TASK_WORKING;
	return true;
}

static const struct tool_tasks asking_tasks = {get_slow, cancel_slow, update_slow};

/* --- requests ------------------------------------------------------------------------------ */

#define TOKEN(t) "\"_meta\":{\"progressToken\":" t ","
#define REST \
	"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":"
#define DECLARED REST "{\"extensions\":{\"" EXTENSION "\":{}}}"

/* Serves a modern request whose params are given whole but for the closing brace. */
static void serve(struct mem *m, struct buf *body, const char *method, const char *name,
		  const char *accept, const char *params)
{
	buf_printf(body, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{%s}}", method,
		   params);
	mem_init(m, "POST", body->data, body->len);
	mem_header(m, "content-type", "application/json");
	mem_header(m, "accept", accept);
	mem_header(m, "authorization", "Bearer sesame");
	mem_header(m, "mcp-protocol-version", "2026-07-28");
	mem_header(m, "mcp-method", method);
	if (name != NULL)
		mem_header(m, "mcp-name", name);
	slow.mem = m;
	kit_serve(m);
}

#define BOTH "application/json, text/event-stream"
#define SLOW "\"name\":\"slow\","

/* Events of a stream, in order; comments are left out. */
static struct json_object *events_of(const struct mem *m)
{
	struct json_object *events = json_object_new_array();
	const char *text = buf_str(&m->out);
	for (const char *p = text; (p = strstr(p, "data: ")) != NULL; p += 6) {
		struct err err = ERR_INIT;
		struct json_object *event = json_parse(p + 6, strcspn(p + 6, "\n"), &err);
		ck_ok(event != NULL, err);
		json_push(events, event);
	}
	return events;
}

/* --- streams ------------------------------------------------------------------------------- */

/* checklist 64, 65 */
TEST(progress_comes_before_the_one_response_and_none_after_it)
{
	static const char *const tokens[] = {"\"a\"", "12"};
	for (size_t t = 0; t < ARRAY_LEN(tokens); t++) {
		AUTO_MEM m;
		AUTO_BUF body = BUF_INIT, params = BUF_INIT;
		buf_printf(&params, SLOW TOKEN("%s") REST "{}}", tokens[t]);
		slow.ticks_wanted = 3;
		slow.age_ms = 500;
		serve(&m, &body, "tools/call", "slow", BOTH, params.data);
		buf_finish(&params);
		ck_assert_int_eq(m.status, 200);
		ck_assert_int_eq(m.length, -1);
		ck_assert_int_eq(slow.written, 3); /* they went out while the handler ran */
		AUTO_JSON *events = events_of(&m);
		ck_assert_uint_eq(json_object_array_length(events), 4);
		for (size_t i = 0; i < 3; i++) {
			struct json_object *event = json_object_array_get_idx(events, i);
			ck_assert_str_eq(kit_text(event, "method"), "notifications/progress");
			ck_assert_str_eq(json_text(kit_at(event, "params.progressToken"), NULL),
					 tokens[t]);
		}
		struct json_object *last = json_object_array_get_idx(events, 3);
		ck_assert_int_eq(json_get_int(last, "id", 0), 7);
		ck_assert_str_eq(kit_text(last, "result.resultType"), "complete");
	}
}
TEST_END

TEST(a_quick_call_with_a_token_is_answered_as_json)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	slow.ticks_wanted = 0;
	serve(&m, &body, "tools/call", "slow", BOTH, SLOW TOKEN("1") REST "{}}");
	ck_assert(mem_has_field(&m, "content-type", "application/json"));
}
TEST_END

TEST(a_client_that_takes_json_only_gets_no_events)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	slow.ticks_wanted = 3;
	slow.age_ms = 20000;
	serve(&m, &body, "tools/call", "slow", "application/json", SLOW TOKEN("1") REST "{}}");
	ck_assert(mem_has_field(&m, "content-type", "application/json"));
	ck_assert_int_eq(slow.ticks, 3);
}
TEST_END

TEST(an_error_after_the_stream_began_goes_on_the_stream)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	slow.ticks_wanted = 2;
	slow.age_ms = 500;
	serve(&m, &body, "tools/call", "slow", BOTH,
	      SLOW "\"arguments\":{\"breaks\":true}," TOKEN("1") REST "{}}");
	ck_assert_int_eq(m.status, 200);
	AUTO_JSON *events = events_of(&m);
	ck_assert_uint_eq(json_object_array_length(events), 3);
	ck_assert_int_eq(kit_code(json_object_array_get_idx(events, 2)), -32603);
}
TEST_END

/* checklist 66 */
TEST(a_modern_client_that_goes_cancels_its_call_and_gets_nothing_more)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	slow.ticks_wanted = 9;
	slow.age_ms = 500;
	slow.gone_at = 2;
	serve(&m, &body, "tools/call", "slow", BOTH, SLOW TOKEN("1") REST "{}}");
	ck_assert(slow.was_cancelled);
	ck_assert_int_eq(slow.ticks, 2);
	ck_assert_int_eq(m.writes, 2);
}
TEST_END

static void legacy(struct mem *m, const char *version, const char *body)
{
	kit_post(m, body);
	if (version != NULL)
		mem_header(m, "mcp-protocol-version", version);
	slow.mem = m;
	kit_serve(m);
}

/* checklist 67 */
TEST(a_legacy_client_that_goes_cancels_nothing)
{
	AUTO_MEM m;
	slow.ticks_wanted = 9;
	slow.age_ms = 500;
	slow.gone_at = 2;
	legacy(&m, "2025-11-25",
	       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
	       "\"name\":\"slow\",\"_meta\":{\"progressToken\":\"p\"}}}");
	ck_assert(!slow.was_cancelled);
	ck_assert_int_eq(slow.ticks, 9);
	ck_assert_int_eq(m.writes, 2);
}
TEST_END

TEST(legacy_clients_get_progress_too_and_a_token_of_another_type_is_none)
{
	static const struct {
		const char *token;
		size_t events;
	} cases[] = {{"\"p\"", 4}, {"5", 4}, {"1.5", 0}, {"{}", 0}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_MEM m;
		AUTO_BUF body = BUF_INIT;
		slow.ticks_wanted = 3;
		slow.age_ms = 500;
		buf_printf(&body,
			   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			   "\"name\":\"slow\",\"_meta\":{\"progressToken\":%s}}}",
			   cases[i].token);
		legacy(&m, "2025-06-18", body.data);
		AUTO_JSON *events = events_of(&m);
		ck_assert_uint_eq(json_object_array_length(events), cases[i].events);
	}
}
TEST_END

TEST(nothing_streams_out_of_a_batch)
{
	AUTO_MEM m;
	slow.ticks_wanted = 3;
	slow.age_ms = 20000;
	legacy(&m, NULL,
	       "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
	       "\"name\":\"slow\",\"_meta\":{\"progressToken\":\"p\"}}},"
	       "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]");
	ck_assert(mem_has_field(&m, "content-type", "application/json"));
	AUTO_JSON *answer = kit_json(&m);
	ck_assert_uint_eq(json_object_array_length(answer), 2);
}
TEST_END

/* --- tasks --------------------------------------------------------------------------------- */

static struct json_object *ask(const char *method, const char *name, const char *params, int status)
{
	AUTO_MEM m;
	AUTO_BUF body = BUF_INIT;
	slow.ticks_wanted = 0;
	serve(&m, &body, method, name, BOTH, params);
	ck_assert_msg(m.status == status, "%s: got %d %s", body.data, m.status, buf_str(&m.out));
	return kit_json(&m);
}

#define META(caps) "\"_meta\":{" caps "}"
#define AS_TASK    SLOW "\"arguments\":{\"as_task\":true},"
#define WITH_ID    "\"taskId\":\"" TASK_ID "\","

/* checklist 79 */
TEST(a_declaring_client_gets_a_task_of_exactly_these_members)
{
	static const char *const members[] = {"resultType",    "taskId",         "status",
					      "statusMessage", "createdAt",      "lastUpdatedAt",
					      "ttlMs",         "pollIntervalMs", "_meta"};
	AUTO_JSON *answer = ask("tools/call", "slow", AS_TASK META(DECLARED), 200);
	struct json_object *result = json_get(answer, "result");
	ck_assert_int_eq(json_object_object_length(result), (int)ARRAY_LEN(members));
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		ck_assert_msg(json_has(result, members[i]), "%s", members[i]);
	ck_assert_str_eq(kit_text(result, "resultType"), "task");
	ck_assert_str_eq(kit_text(result, "taskId"), TASK_ID);
	ck_assert_str_eq(kit_text(result, "status"), "working");
	ck_assert_str_eq(kit_text(result, "createdAt"), "2026-09-21T14:13:20.123Z");
	ck_assert_int_eq(json_get_int(result, "ttlMs", 0), 90000);
	ck_assert_int_gt(json_get_int(result, "pollIntervalMs", 0), 0);
}
TEST_END

/* checklist 77, 84 */
TEST(a_client_that_does_not_declare_never_gets_a_task)
{
	static const char *const capabilities[] = {
		"{}", "{\"extensions\":{}}", "{\"extensions\":{\"" EXTENSION "\":null}}",
		"{\"extensions\":[\"" EXTENSION "\"]}", "{\"" EXTENSION "\":{}}"};
	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++) {
		AUTO_BUF params = BUF_INIT;
		buf_printf(&params, AS_TASK "\"task\":{\"ttl\":1000}," META(REST "%s"),
			   capabilities[i]);
		AUTO_JSON *answer = ask("tools/call", "slow", params.data, 200);
		ck_assert_str_eq(kit_text(answer, "result.resultType"), "complete");
	}
	AUTO_MEM m;
	legacy(&m, "2025-11-25",
	       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" AS_TASK
	       "\"task\":{\"ttl\":1000},\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":"
	       "{\"extensions\":{\"" EXTENSION "\":{}}}}}}");
	AUTO_JSON *answer = kit_json(&m);
	ck_assert(kit_at(answer, "result.structuredContent") != NULL);
	ck_assert(kit_at(answer, "result.taskId") == NULL);
}
TEST_END

TEST(a_tool_that_is_always_a_task_does_not_run_for_who_takes_none)
{
#define LONG "\"name\":\"long\",\"arguments\":{\"as_task\":true},"
	AUTO_JSON *task = ask("tools/call", "long", LONG META(DECLARED), 200);
	ck_assert_str_eq(kit_text(task, "result.resultType"), "task");
	kit_calls = 0;
	AUTO_JSON *refusal = ask("tools/call", "long", LONG META(REST "{}"), 400);
	ck_assert_int_eq(kit_code(refusal), -32021);
	struct json_object *extensions =
		kit_at(refusal, "error.data.requiredCapabilities.extensions");
	ck_assert(json_object_is_type(json_get(extensions, EXTENSION), json_type_object));
	AUTO_JSON *legacy_refusal =
		kit_ask_legacy("2025-11-25", "tools/call", "{" LONG "\"_meta\":{}}", 200);
	ck_assert_int_eq(kit_code(legacy_refusal), -32602);
	ck_assert_int_eq(kit_calls, 0);
}
TEST_END

TEST(task_methods_are_refused_to_who_does_not_declare)
{
	static const char *const methods[] = {"tasks/get", "tasks/update", "tasks/cancel"};
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		AUTO_JSON *answer = ask(methods[i], TASK_ID, WITH_ID META(REST "{}"), 400);
		ck_assert_int_eq(kit_code(answer), -32021);
		struct json_object *extensions =
			kit_at(answer, "error.data.requiredCapabilities.extensions");
		ck_assert(json_object_is_type(json_get(extensions, EXTENSION), json_type_object));
	}
	ck_assert_int_eq(slow.cancels, 0);
}
TEST_END

/* checklist 81 */
TEST(tasks_get_tells_each_status_with_what_belongs_to_it)
{
	slow.status = TOOL_TASK_WORKING;
	AUTO_JSON *working = ask("tasks/get", TASK_ID, WITH_ID META(DECLARED), 200);
	ck_assert_str_eq(kit_text(working, "result.resultType"), "complete");
	ck_assert_str_eq(kit_text(working, "result.status"), "working");
	ck_assert(kit_at(working, "result.result") == NULL);
	slow.status = TOOL_TASK_COMPLETED;
	AUTO_JSON *done = ask("tasks/get", TASK_ID, WITH_ID META(DECLARED), 200);
	ck_assert_str_eq(kit_text(done, "result.status"), "completed");
	ck_assert_str_eq(kit_text(done, "result.lastUpdatedAt"), "2026-09-21T14:13:21.000Z");
	ck_assert_int_eq(json_get_int(kit_at(done, "result.result.structuredContent"), "exit", 0),
			 3);
	ck_assert_str_eq(kit_text(done, "result.result.content.0.type"), "text");
	ck_assert(kit_at(done, "result.error") == NULL);
	slow.result_fails = true;
	AUTO_JSON *failed = ask("tasks/get", TASK_ID, WITH_ID META(DECLARED), 200);
	ck_assert_str_eq(kit_text(failed, "result.status"), "completed");
	ck_assert(json_get_bool(kit_at(failed, "result.result"), "isError", false));
	slow.status = TOOL_TASK_CANCELLED;
	AUTO_JSON *cancelled = ask("tasks/get", TASK_ID, WITH_ID META(DECLARED), 200);
	ck_assert_str_eq(kit_text(cancelled, "result.status"), "cancelled");
	ck_assert(kit_at(cancelled, "result.result") == NULL);
}
TEST_END

/* checklist 82 */
TEST(unknown_and_malformed_ids_are_answered_alike)
{
	static const char *const ids[] = {"ffffffffffffffffffffffffffffffff", "x", "",
					  "0123456789ABCDEF0123456789ABCDEF"};
	static const char *const methods[] = {"tasks/get", "tasks/update", "tasks/cancel"};
	AUTO_BUF first = BUF_INIT;
	for (size_t i = 0; i < ARRAY_LEN(ids) * ARRAY_LEN(methods); i++) {
		const char *id = ids[i / ARRAY_LEN(methods)];
		AUTO_BUF params = BUF_INIT;
		buf_printf(&params, "\"taskId\":\"%s\",\"inputResponses\":{}," META(DECLARED), id);
		AUTO_JSON *answer = ask(methods[i % ARRAY_LEN(methods)], id, params.data, 200);
		ck_assert_int_eq(kit_code(answer), -32602);
		if (i == 0)
			buf_puts(&first, kit_text(answer, "error.message"));
		ck_assert_str_eq(kit_text(answer, "error.message"), first.data);
	}
	AUTO_JSON *none = ask("tasks/get", NULL, META(DECLARED), 200);
	ck_assert_int_eq(kit_code(none), -32602);
}
TEST_END

TEST(cancel_is_acknowledged_and_asks_only_for_what_still_works)
{
	slow.status = TOOL_TASK_WORKING;
	for (int i = 0; i < 2; i++) {
		AUTO_JSON *answer = ask("tasks/cancel", TASK_ID, WITH_ID META(DECLARED), 200);
		ck_assert_str_eq(kit_text(answer, "result.resultType"), "complete");
		ck_assert_int_eq(json_object_object_length(json_get(answer, "result")), 2);
		ck_assert_int_eq(slow.cancels, 1);
	}
}
TEST_END

/* checklist 75 */
TEST(update_is_acknowledged_and_wants_an_object)
{
	static const struct {
		const char *responses;
		int code;
	} cases[] = {
		{"\"inputResponses\":{\"nobody-asked\":{}},", 0},
		{"\"inputResponses\":{},", 0},
		{"\"inputResponses\":null,", -32602},
		{"\"inputResponses\":[],", -32602},
		{"", -32602},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_BUF params = BUF_INIT;
		buf_printf(&params, WITH_ID "%s" META(DECLARED), cases[i].responses);
		AUTO_JSON *answer = ask("tasks/update", TASK_ID, params.data, 200);
		ck_assert_int_eq(kit_code(answer), cases[i].code);
	}
}
TEST_END

/* checklist 79, 81 */
TEST(a_task_that_asks_or_failed_says_what_belongs_to_it)
{
	slow.status = TOOL_TASK_INPUT;
	AUTO_JSON *asks = ask("tasks/get", TASK_ID, WITH_ID META(DECLARED), 200);
	ck_assert_str_eq(kit_text(asks, "result.status"), "input_required");
	ck_assert_str_eq(kit_text(asks, "result.resultType"), "complete");
	ck_assert_str_eq(kit_text(asks, "result.inputRequests.sure.method"), "elicitation/create");
	ck_assert(!json_has(json_get(asks, "result"), "result"));
	ck_assert(!json_has(json_get(asks, "result"), "requestState"));
	slow.status = TOOL_TASK_FAILED;
	AUTO_JSON *failed = ask("tasks/get", TASK_ID, WITH_ID META(DECLARED), 200);
	ck_assert_str_eq(kit_text(failed, "result.status"), "failed");
	ck_assert_str_eq(kit_text(failed, "result.error.message"), "broken");
	ck_assert(!json_has(json_get(failed, "result"), "result"));
	ck_assert(!json_has(json_get(failed, "result"), "inputRequests"));
	AUTO_JSON *over = ask("tasks/cancel", TASK_ID, WITH_ID META(DECLARED), 200);
	ck_assert_int_eq(kit_code(over), 0);
	ck_assert_int_eq(slow.cancels, 0);
	slow.status = TOOL_TASK_INPUT;
	AUTO_JSON *cancelled = ask("tasks/cancel", TASK_ID, WITH_ID META(DECLARED), 200);
	ck_assert_int_eq(kit_code(cancelled), 0);
	ck_assert_int_eq(slow.cancels, 1);
}
TEST_END

TEST(answers_reach_the_task_that_asked)
{
	kit.tasks = &asking_tasks;
	slow.status = TOOL_TASK_INPUT;
	AUTO_JSON *unknown = ask("tasks/update", TASK_ID,
				 WITH_ID "\"inputResponses\":{\"other\":{}}," META(DECLARED), 200);
	ck_assert_int_eq(kit_code(unknown), 0);
	ck_assert_int_eq(slow.status, TOOL_TASK_INPUT);
	AUTO_JSON *null = ask("tasks/update", TASK_ID,
			      WITH_ID "\"inputResponses\":null," META(DECLARED), 200);
	ck_assert_int_eq(kit_code(null), -32602);
	AUTO_JSON *sure = ask("tasks/update", TASK_ID,
			      WITH_ID "\"inputResponses\":{\"sure\":{}}," META(DECLARED), 200);
	ck_assert_str_eq(kit_text(sure, "result.resultType"), "complete");
	ck_assert_int_eq(json_object_object_length(json_get(sure, "result")), 2);
	ck_assert_int_eq(slow.status, TOOL_TASK_WORKING);
	AUTO_JSON *late = ask("tasks/update", TASK_ID,
			      WITH_ID "\"inputResponses\":{\"late\":{}}," META(DECLARED), 200);
	ck_assert_int_eq(kit_code(late), -32602);
}
TEST_END

TEST(the_name_header_must_be_the_task_id)
{
	AUTO_JSON *answer = ask("tasks/get", "other", WITH_ID META(DECLARED), 400);
	ck_assert_int_eq(kit_code(answer), -32020);
}
TEST_END

/* checklist 34, 38 */
TEST(what_is_advertised_is_what_is_served)
{
	AUTO_JSON *with = ask("server/discover", NULL, META(DECLARED), 200);
	struct json_object *capabilities = kit_at(with, "result.capabilities");
	ck_assert(json_object_is_type(json_get(json_get(capabilities, "extensions"), EXTENSION),
				      json_type_object));
	ck_assert(!json_has(capabilities, "tasks"));
	AUTO_JSON *list = ask("tasks/list", NULL, META(DECLARED), 404);
	ck_assert_int_eq(kit_code(list), -32601);
	AUTO_JSON *legacy_get =
		kit_ask_legacy("2025-11-25", "tasks/get", "{" WITH_ID "\"x\":1}", 200);
	ck_assert_int_eq(kit_code(legacy_get), -32601);
	AUTO_JSON *hello =
		kit_ask_legacy(NULL, "initialize",
			       "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}", 200);
	ck_assert(kit_at(hello, "result.capabilities.extensions") == NULL);
	kit.tasks = NULL;
	AUTO_JSON *without = ask("server/discover", NULL, META(DECLARED), 200);
	ck_assert(kit_at(without, "result.capabilities.extensions") == NULL);
	AUTO_JSON *get = ask("tasks/get", TASK_ID, WITH_ID META(DECLARED), 404);
	ck_assert_int_eq(kit_code(get), -32601);
	AUTO_JSON *call = ask("tools/call", "slow", AS_TASK META(DECLARED), 200);
	ck_assert_str_eq(kit_text(call, "result.resultType"), "complete");
}
TEST_END

int main(void)
{
	static const struct tool *const tools[] = {&slow_tool, &long_tool};
	static const struct tool_list list = {tools, ARRAY_LEN(tools)};
	const TTest *const tests[] = {
		progress_comes_before_the_one_response_and_none_after_it,
		a_quick_call_with_a_token_is_answered_as_json,
		a_client_that_takes_json_only_gets_no_events,
		an_error_after_the_stream_began_goes_on_the_stream,
		a_modern_client_that_goes_cancels_its_call_and_gets_nothing_more,
		a_legacy_client_that_goes_cancels_nothing,
		legacy_clients_get_progress_too_and_a_token_of_another_type_is_none,
		nothing_streams_out_of_a_batch,
		a_declaring_client_gets_a_task_of_exactly_these_members,
		a_client_that_does_not_declare_never_gets_a_task,
		a_tool_that_is_always_a_task_does_not_run_for_who_takes_none,
		task_methods_are_refused_to_who_does_not_declare,
		tasks_get_tells_each_status_with_what_belongs_to_it,
		unknown_and_malformed_ids_are_answered_alike,
		cancel_is_acknowledged_and_asks_only_for_what_still_works,
		update_is_acknowledged_and_wants_an_object,
		a_task_that_asks_or_failed_says_what_belongs_to_it,
		answers_reach_the_task_that_asked,
		the_name_header_must_be_the_task_id,
		what_is_advertised_is_what_is_served,
	};
	kit.tools = &list;
	kit.tasks = &slow_tasks;
	kit_open();
	int failed = unit_run("endpoint_task", tests, ARRAY_LEN(tests));
	kit_close();
	return failed;
}
