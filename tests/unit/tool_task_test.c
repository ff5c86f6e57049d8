/* start_task, get_task, cancel_task: the contract of seeds 000/001. */
#include "task_kit.h"

static char sandbox_id[ID_LEN + 1];

/* A task in a fresh sandbox; its ids are in played.last_id and sandbox_id. */
static void start(void)
{
	kit_ok(&tool_create_sandbox, "{'template':'base','timeout':600}");
	kit_ok(&tool_start_task, "{'command':'printf BEFORE; sleep 10; printf AFTER'}");
	memcpy(sandbox_id, kit_str("sandbox_id"), sizeof(sandbox_id));
}

#define get(more) \
	kit_ok(&tool_get_task, "{'sandbox_id':'%s','task_id':'%s'" more "}", sandbox_id, \
	       played.last_id)

TEST(a_task_starts_in_the_newest_sandbox_that_create_sandbox_made)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'old'}");
	clock_sleep_ms(2);
	kit_ok(&tool_create_sandbox, "{'sandbox':'newer'}");
	clock_sleep_ms(2);
	kit_ok(&tool_write_text, "{'sandbox':'by-use','path':'f','content':'x'}");
	kit_ok(&tool_start_task, "{'command':'x','cwd':'d','request_id':'r'}");
	ck_assert_str_eq(kit_str("sandbox"), "newer");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "newer"));
	ck_assert_str_eq(kit_str("task_id"), played.last_id);
	ck_assert_str_eq(kit_str("state"), "running");
	ck_assert(played_is_recent(kit_int("started_at")));
	ck_assert_str_eq(played.cwd, "d");
	ck_assert_str_eq(played.request_id, "r");
	ck_assert_int_eq(played.timeout_ms, 300 * 1000);
	ck_assert_int_eq(played.origin, TASK_ORIGIN_TASK);
	kit_ok(&tool_kill_sandbox, "{'sandbox':'newer'}");
	kit_ok(&tool_start_task, "{'command':'x'}");
	ck_assert_str_eq(kit_str("sandbox"), "old");
	kit_close();
}
TEST_END

TEST(none_is_ever_created)
{
	kit_open();
	kit_fails(ERR_NOT_FOUND, &tool_start_task, "{'command':'x'}");
	ck_assert_ptr_nonnull(strstr(err_next(&kit.err), "create_sandbox"));
	kit_fails(ERR_NOT_FOUND, &tool_start_task, "{'command':'x','sandbox':'work'}");
	ck_assert_int_eq(kit_count(), 0);
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'f','content':'x'}");
	kit_fails(ERR_NOT_FOUND, &tool_start_task, "{'command':'x'}");
	kit_ok(&tool_start_task, "{'command':'x','sandbox':'work'}");
	ck_assert(!kit_has("note"));
	kit_close();
}
TEST_END

TEST(a_sandbox_is_named_by_either_word_and_by_name_or_id)
{
	kit_open();
	start();
	kit_ok(&tool_start_task, "{'command':'x','sandbox_id':'%s'}", sandbox_id);
	kit_ok(&tool_start_task, "{'command':'x','sandbox':'%s'}", sandbox_id);
	kit_fails(ERR_INVALID, &tool_start_task, "{'command':'x','sandbox':'a','sandbox_id':'b'}");
	ck_assert_int_eq(played.starts, 3);
	kit_close();
}
TEST_END

TEST(a_request_above_96_KiB_is_refused_before_anything)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	/* Below the limit of characters, but each newline is two bytes of JSON. */
	AUTO_JSON *arguments = json_object_new_object();
	AUTO_BUF text = BUF_INIT;
	for (int i = 0; i < 50000; i++)
		buf_puts(&text, "\n");
	json_add_str(arguments, "command", text.data);
	struct tool_call call = {.app = &kit.app, .principal = "me", .arguments = arguments};
	struct err err = ERR_INIT;
	ck_assert(!tool_start_task.call(&call, &err));
	ck_assert_int_eq(err.code, ERR_TOO_LARGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "98304"));
	ck_assert_int_eq(played.starts, 0);
	kit_close();
}
TEST_END

TEST(a_start_that_nobody_saw_keeps_its_handle)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	played.start_state = TASK_UNKNOWN;
	kit_ok(&tool_start_task, "{'command':'x'}");
	ck_assert_str_eq(kit_str("state"), "unknown");
	ck_assert_str_eq(kit_str("task_id"), played.last_id);
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "get_task"));
	kit_close();
}
TEST_END

TEST(a_lifetime_that_is_shorter_than_the_task_is_said_at_once)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work','timeout':600}");
	kit_ok(&tool_start_task, "{'command':'x','sandbox':'work','timeout':500}");
	ck_assert(!kit_has("note"));
	ck_assert(kit_has("will_remove_at"));
	kit_ok(&tool_start_task, "{'command':'x','sandbox':'work','timeout':700}");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "700 s"));
	kit_close();
}
TEST_END

static int64_t expires_at(const char *name)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_by_name(kit.app.db, "me", name, &row, &err), 1);
	return row.expires_at;
}

/* Makes the last use of every sandbox an hour old without its end coming nearer. */
static void age(void)
{
	struct err err = ERR_INIT;
	AUTO_STMT *stmt = db_prepare(
		kit.app.db, "UPDATE sandbox SET last_used_at = last_used_at - 3600000", &err);
	ck_ok(db_run(kit.app.db, stmt, NULL, &err), err);
}

TEST(tasks_do_not_make_a_sandbox_live_longer_but_exec_does)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work','timeout':600}");
	int64_t end = expires_at("work");
	clock_sleep_ms(5);
	age();
	kit_ok(&tool_start_task, "{'command':'x'}");
	memcpy(sandbox_id, kit_str("sandbox_id"), sizeof(sandbox_id));
	get("");
	kit_ok(&tool_cancel_task, "{'sandbox_id':'%s','task_id':'%s'}", sandbox_id, played.last_id);
	kit_ok(&tool_run_background, "{'sandbox':'work','command':'x'}");
	ck_assert_int_eq(expires_at("work"), end);
	/* Right after that an exec renews it, though the last use is no second old. */
	kit_ok(&tool_exec, "{'sandbox':'work','command':'true'}");
	ck_assert_int_gt(expires_at("work"), end);
	kit_close();
}
TEST_END

TEST(pages_are_read_by_byte_offsets_and_can_be_read_again)
{
	kit_open();
	start();
	played_print(played.last_id, RECORD_STDOUT, "BEFORE", 6);
	played_print(played.last_id, RECORD_STDERR, "warning\n", 8);
	for (int i = 0; i < 2; i++) {
		get(",'limit':4");
		ck_assert_str_eq(kit_str("state"), "running");
		ck_assert_str_eq(kit_str("stdout"), "BEFO");
		ck_assert_int_eq(kit_int("stdout_next_offset"), 4);
		ck_assert_int_eq(kit_int("stdout_size"), 6);
		ck_assert_str_eq(kit_str("stderr"), "warn");
	}
	played_print(played.last_id, RECORD_STDOUT, "AFTER", 5);
	played_end(played.last_id, TASK_SUCCEEDED, 0, 0);
	get(",'stdout_offset':4,'stderr_offset':8");
	ck_assert_str_eq(kit_str("state"), "succeeded");
	ck_assert_int_eq(kit_int("exit_code"), 0);
	ck_assert_str_eq(kit_str("stdout"), "REAFTER");
	ck_assert_int_eq(kit_int("stdout_next_offset"), 11);
	ck_assert_int_eq(kit_int("stdout_seen"), 11);
	ck_assert(!kit_true("stdout_truncated"));
	ck_assert_str_eq(kit_str("stderr"), "");
	ck_assert_int_eq(kit_int("stderr_next_offset"), 8);
	ck_assert(played_is_recent(kit_int("started_at")));
	ck_assert(played_is_recent(kit_int("finished_at")));
	/* Past the end there is nothing, and the offset stays. */
	get(",'stdout_offset':1048576");
	ck_assert_str_eq(kit_str("stdout"), "");
	ck_assert_int_eq(kit_int("stdout_next_offset"), 1048576);
	kit_close();
}
TEST_END

TEST(a_character_that_a_page_cuts_shows_as_replacement)
{
	kit_open();
	start();
	played_print(played.last_id, RECORD_STDOUT, "a\xF0\x9F\x98\x80z", 6);
	get(",'limit':3");
	ck_assert_str_eq(kit_str("stdout"), "a\xEF\xBF\xBD");
	ck_assert_int_eq(kit_int("stdout_next_offset"), 3);
	get(",'stdout_offset':1,'limit':4");
	ck_assert_str_eq(kit_str("stdout"), "\xF0\x9F\x98\x80");
	kit_close();
}
TEST_END

TEST(beyond_1_MiB_it_is_counted_and_said_to_be_cut)
{
	kit_open();
	start();
	char *block = xcalloc(1, RECORD_KEPT_MAX + 5);
	memset(block, 'y', RECORD_KEPT_MAX + 5);
	played_print(played.last_id, RECORD_STDOUT, block, RECORD_KEPT_MAX + 5);
	get(",'stdout_offset':1048570,'limit':65536");
	ck_assert_str_eq(kit_str("stdout"), "yyyyyy");
	ck_assert_int_eq(kit_int("stdout_size"), 1048576);
	ck_assert_int_eq(kit_int("stdout_seen"), 1048581);
	ck_assert(kit_true("stdout_truncated"));
	ck_assert(!kit_true("stderr_truncated"));
	free(block);
	kit_close();
}
TEST_END

TEST(waiting_is_for_output_beyond_the_offsets)
{
	kit_open();
	start();
	get("");
	ck_assert_int_eq(played.wait_ms, 0);
	get(",'wait':20,'stdout_offset':7,'stderr_offset':9");
	ck_assert_int_eq(played.wait_ms, 20000);
	ck_assert_int_eq(played.stdout_offset, 7);
	ck_assert_int_eq(played.stderr_offset, 9);
	kit_close();
}
TEST_END

TEST(a_task_belongs_to_its_sandbox)
{
	kit_open();
	start();
	kit_ok(&tool_create_sandbox, "{'sandbox':'other'}");
	kit_fails(ERR_NOT_FOUND, &tool_get_task, "{'sandbox_id':'other','task_id':'%s'}",
		  played.last_id);
	kit_fails(ERR_INVALID, &tool_get_task, "{'task_id':'%s'}", played.last_id);
	kit_fails(ERR_NOT_FOUND, &tool_cancel_task,
		  "{'sandbox_id':'%s','task_id':'ffffffffffffffffffffffffffffffff'}", sandbox_id);
	ck_assert_int_eq(played.cancels, 0);
	kit_close();
}
TEST_END

TEST(state_and_output_outlive_the_sandbox)
{
	kit_open();
	start();
	played_print(played.last_id, RECORD_STDOUT, "BEFORE", 6);
	played_end(played.last_id, TASK_UNKNOWN, 0, 0);
	kit_ok(&tool_kill_sandbox, "{'sandbox_id':'%s'}", sandbox_id);
	get("");
	ck_assert_str_eq(kit_str("state"), "unknown");
	ck_assert_ptr_nonnull(strstr(kit_str("reason"), "killed"));
	ck_assert_str_eq(kit_str("stdout"), "BEFORE");
	played.log_fails = ERR_GONE;
	get(",'stdout_offset':3");
	ck_assert_str_eq(kit_str("state"), "unknown");
	ck_assert_str_eq(kit_str("stdout"), "");
	ck_assert_int_eq(kit_int("stdout_next_offset"), 3);
	ck_assert(kit_true("stdout_truncated"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "not kept any more"));
	kit_close();
}
TEST_END

#define cancel() \
	kit_ok(&tool_cancel_task, "{'sandbox_id':'%s','task_id':'%s'}", sandbox_id, played.last_id)

TEST(cancel_returns_the_page_and_claims_only_what_is_confirmed)
{
	kit_open();
	start();
	played_print(played.last_id, RECORD_STDOUT, "BEFORE", 6);
	cancel();
	ck_assert_str_eq(kit_str("state"), "running");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "not confirmed"));
	played.cancel_state = TASK_CANCELLED;
	cancel();
	ck_assert_str_eq(kit_str("state"), "cancelled");
	ck_assert_str_eq(kit_str("stdout"), "BEFORE");
	ck_assert(!kit.call.is_error);
	ck_assert(!kit_has("note"));
	cancel();
	ck_assert_str_eq(kit_str("state"), "cancelled");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "had ended before"));
	kit_close();
}
TEST_END

TEST(a_non_zero_exit_is_data)
{
	kit_open();
	start();
	played_end(played.last_id, TASK_FAILED, 2, 0);
	get("");
	ck_assert(!kit.call.is_error);
	ck_assert_str_eq(kit_str("state"), "failed");
	ck_assert_int_eq(kit_int("exit_code"), 2);
	kit_close();
}
TEST_END

TEST(either_family_reads_the_tasks_of_the_other)
{
	kit_open();
	start();
	kit_ok(&tool_get_job, "{'job_id':'%s'}", played.last_id);
	ck_assert_str_eq(kit_str("status"), "running");
	played_job();
	kit_ok(&tool_get_task, "{'sandbox':'work','task_id':'%s'}", played.last_id);
	ck_assert_str_eq(kit_str("state"), "running");
	kit_close();
}
TEST_END

/* Refused by the schema, so before the handler runs. */
TEST(malformed_ids_offsets_and_unknown_fields_never_reach_the_handler)
{
	static const char *const bad[] = {
		"{'sandbox_id':'a','task_id':'0123456789ABCDEF0123456789ABCDEF'}",
		"{'sandbox_id':'a','task_id':'0123'}",
		"{'sandbox_id':'a','task_id':''}",
		"{'sandbox_id':'a'}",
		"{'sandbox_id':'a','task_id':'0123456789abcdef0123456789abcdef','pid':1}",
		"{'sandbox_id':'a','task_id':'0123456789abcdef0123456789abcdef','limit':0}",
		"{'sandbox_id':'a','task_id':'0123456789abcdef0123456789abcdef','limit':65537}",
		"{'sandbox_id':'a','task_id':'0123456789abcdef0123456789abcdef','stdout_offset':-"
		"1}",
		"{'sandbox_id':'a','task_id':'0123456789abcdef0123456789abcdef',"
		"'stderr_offset':1048577}",
	};
	static const struct tool *const tools[] = {&tool_get_task, &tool_cancel_task};
	for (size_t i = 0; i < ARRAY_LEN(bad) * ARRAY_LEN(tools); i++) {
		struct err err = ERR_INIT;
		AUTO_FREE char *text = xstrdup(bad[i / ARRAY_LEN(tools)]);
		for (char *p = text; *p != '\0'; p++)
			*p = *p == '\'' ? '"' : *p;
		AUTO_JSON *arguments = json_literal(text);
		AUTO_JSON *json = json_literal(tools[i % ARRAY_LEN(tools)]->input_schema);
		struct schema *schema = schema_compile(json, &err);
		struct schema_faults faults = SCHEMA_FAULTS_INIT;
		ck_assert_msg(!schema_validate(schema, arguments, "arguments", &faults), "%s",
			      text);
		schema_faults_finish(&faults);
		schema_free(schema);
	}
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_task_starts_in_the_newest_sandbox_that_create_sandbox_made,
		none_is_ever_created,
		a_sandbox_is_named_by_either_word_and_by_name_or_id,
		a_request_above_96_KiB_is_refused_before_anything,
		a_start_that_nobody_saw_keeps_its_handle,
		a_lifetime_that_is_shorter_than_the_task_is_said_at_once,
		tasks_do_not_make_a_sandbox_live_longer_but_exec_does,
		pages_are_read_by_byte_offsets_and_can_be_read_again,
		a_character_that_a_page_cuts_shows_as_replacement,
		beyond_1_MiB_it_is_counted_and_said_to_be_cut,
		waiting_is_for_output_beyond_the_offsets,
		a_task_belongs_to_its_sandbox,
		state_and_output_outlive_the_sandbox,
		cancel_returns_the_page_and_claims_only_what_is_confirmed,
		a_non_zero_exit_is_data,
		either_family_reads_the_tasks_of_the_other,
		malformed_ids_offsets_and_unknown_fields_never_reach_the_handler,
	};
	return unit_run("tool_task", tests, ARRAY_LEN(tests));
}
