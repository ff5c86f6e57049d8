/* list_sandboxes, create_sandbox, destroy_sandbox, kill_sandbox. */
#include <sys/wait.h>

#include "box/sandbox.h"
#include "tool_kit.h"

TEST(a_created_sandbox_is_described_and_listed)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work','labels':{'job':'a'}}");
	ck_assert_str_eq(kit_str("name"), "work");
	ck_assert_str_eq(kit_str("status"), "stopped");
	ck_assert_str_eq(kit_str("template"), "base");
	ck_assert_str_eq(kit_str("network"), "loopback");
	ck_assert(kit_true("created"));
	ck_assert(!kit_has("will_stop_at")); /* nothing runs in it */
	struct json_object *limits = json_get(kit.call.structured, "limits");
	ck_assert_int_eq(json_get_int(limits, "processes", 0), kit.conf.pids_limit);
	ck_assert_int_eq(json_get_int(limits, "file_bytes", 0), kit.conf.file_size);
	ck_assert_str_eq(json_get_str(json_get(kit.call.structured, "isolation"), "runtime"),
			 "play");
	char *id = xstrdup(kit_str("sandbox_id"));
	ck_assert(id_is_valid(id));

	kit_ok(&tool_list_sandboxes, "{}");
	ck_assert_int_eq(kit_int("count"), 1);
	ck_assert_int_eq(kit_int("max_sandboxes"), kit.conf.max_sandboxes);
	struct json_object *item =
		json_object_array_get_idx(json_get(kit.call.structured, "sandboxes"), 0);
	ck_assert_str_eq(json_get_str(item, "sandbox_id"), id);
	ck_assert_str_eq(json_get_str(json_get(item, "labels"), "job"), "a");
	ck_assert(strchr(json_get_str(item, "created_at"), 'T') != NULL);
	ck_assert_str_eq(json_get_str(item, "idle_since"), json_get_str(item, "last_used_at"));
	free(id);
	kit_close();
}
TEST_END

TEST(without_a_name_one_is_made_up_and_the_sandbox_ends_some_day)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{}");
	ck_assert(name_is_valid(kit_str("name")));
	ck_assert(kit_has("will_remove_at"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "made up"));
	kit_close();
}
TEST_END

TEST(timeout_is_the_lifetime_in_seconds)
{
	kit_open();
	int64_t before = clock_wall_ms();
	char text[CLOCK_RFC3339_LEN];
	kit_ok(&tool_create_sandbox, "{'sandbox':'short','timeout':600}");
	ck_assert_str_ge(kit_str("will_remove_at"), clock_rfc3339(before + 600000, text));
	ck_assert_str_le(kit_str("will_remove_at"), clock_rfc3339(clock_wall_ms() + 600000, text));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "600 seconds"));
	kit_close();
}
TEST_END

/* The one sandbox of a list. */
static struct json_object *listed(void)
{
	kit_ok(&tool_list_sandboxes, "{}");
	return json_object_array_get_idx(json_get(kit.call.structured, "sandboxes"), 0);
}

/* The member is that many seconds after the sandbox's last use. */
static void check_due(struct json_object *item, const char *member, int64_t seconds)
{
	struct err err = ERR_INIT;
	char text[CLOCK_RFC3339_LEN];
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_by_name(kit.app.db, "me", "work", &row, &err), 1);
	ck_assert_str_eq(json_get_str(item, member),
			 clock_rfc3339(row.last_used_at + seconds * 1000, text));
}

TEST(a_list_tells_when_an_idle_sandbox_is_stopped_and_removed)
{
	kit_open();
	kit_ok(&tool_exec, "{'sandbox':'work','command':'true'}");
	struct json_object *item = listed();
	ck_assert_str_eq(json_get_str(item, "status"), "running");
	check_due(item, "idle_since", 0);
	check_due(item, "will_stop_at", kit.conf.idle_stop);
	check_due(item, "will_remove_at", kit.conf.idle_remove);
	kit_close();
}
TEST_END

TEST(a_list_tells_of_no_end_while_a_sandbox_is_in_use)
{
	kit_open();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	kit_ok(&tool_exec, "{'sandbox':'work','command':'true'}");
	ck_ok(sandbox_find(&kit.app, "me", "work", &row, &err), err);
	ck_ok(sandbox_enter(&kit.app, &row, &use, &err), err);
	struct json_object *item = listed();
	ck_assert(!json_has(item, "idle_since"));
	ck_assert(!json_has(item, "will_stop_at"));
	ck_assert(!json_has(item, "will_remove_at"));
	sandbox_leave(&use);
	ck_assert(json_has(listed(), "will_remove_at"));
	kit_close();
}
TEST_END

TEST(image_is_another_word_for_template)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'a','image':'base'}");
	kit_ok(&tool_create_sandbox, "{'sandbox':'b','image':'','template':'base'}");
	kit_fails(ERR_INVALID, &tool_create_sandbox,
		  "{'sandbox':'c','image':'other','template':'base'}");
	kit_message_has("image");
	ck_assert_int_eq(kit_count(), 2);
	kit_close();
}
TEST_END

TEST(an_existing_sandbox_is_returned_as_it_is)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	char *id = xstrdup(kit_str("sandbox_id"));
	kit_ok(&tool_create_sandbox, "{'sandbox':'work'}");
	ck_assert(!kit_true("created"));
	ck_assert_str_eq(kit_str("sandbox_id"), id);
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "existed already"));
	free(id);
	kit_close();
}
TEST_END

TEST(a_bad_name_creates_nothing_whichever_tool_it_is_given_to)
{
	kit_open();
	static const char *const names[] = {"..", "../x", "a/b", "-a", ".hidden", "a b"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		kit_fails(ERR_INVALID, &tool_create_sandbox, "{'sandbox':'%s'}", names[i]);
		kit_fails(ERR_INVALID, &tool_exec, "{'sandbox':'%s','command':'true'}", names[i]);
		kit_fails(ERR_INVALID, &tool_write_text, "{'sandbox':'%s','path':'a'}", names[i]);
		kit_fails(ERR_INVALID, &tool_upload_file, "{'sandbox':'%s','dest':'a'}", names[i]);
		kit_fails(ERR_INVALID, &tool_list_files, "{'sandbox':'%s'}", names[i]);
		kit_fails(ERR_INVALID, &tool_destroy_sandbox, "{'sandbox':'%s'}", names[i]);
	}
	ck_assert_int_eq(kit_count(), 0);
	kit_close();
}
TEST_END

TEST(a_call_without_a_sandbox_names_both_arguments)
{
	kit_open();
	kit_fails(ERR_INVALID, &tool_kill_sandbox, "{}");
	kit_message_has("sandbox");
	kit_message_has("sandbox_id");
	kit_fails(ERR_INVALID, &tool_exec, "{'command':'true','sandbox':''}");
	kit_message_has("sandbox_id");
	kit_fails(ERR_INVALID, &tool_exec, "{'command':'true','sandbox':'a','sandbox_id':'b'}");
	ck_assert_int_eq(kit_count(), 0);
	kit_close();
}
TEST_END

TEST(destroy_keeps_the_files_for_the_next_of_that_name)
{
	kit_open();
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'a.txt','content':'kept'}");
	kit_ok(&tool_destroy_sandbox, "{'sandbox':'work'}");
	ck_assert(kit_true("destroyed"));
	ck_assert(!kit_true("files_deleted"));
	ck_assert(!kit_true("was_running"));
	kit_ok(&tool_list_sandboxes, "{}");
	ck_assert_int_eq(kit_int("count"), 0);
	struct json_object *item =
		json_object_array_get_idx(json_get(kit.call.structured, "sandboxes"), 0);
	ck_assert_str_eq(json_get_str(item, "status"), "kept");
	ck_assert(json_has(item, "will_remove_at"));
	ck_assert(!json_has(item, "will_stop_at"));

	kit_ok(&tool_write_text, "{'sandbox':'work','path':'b.txt'}");
	ck_assert(kit_true("sandbox_created"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "kept"));
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'a.txt'}");
	ck_assert_str_eq(kit_str("content"), "kept");
	kit_close();
}
TEST_END

TEST(kill_removes_the_files_too_and_takes_the_id)
{
	kit_open();
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'a.txt','content':'secret'}");
	char *id = xstrdup(kit_str("sandbox_id"));
	kit_ok(&tool_exec, "{'sandbox':'work','command':'true'}");
	kit_ok(&tool_list_sandboxes, "{}");
	struct json_object *item =
		json_object_array_get_idx(json_get(kit.call.structured, "sandboxes"), 0);
	ck_assert_str_eq(json_get_str(item, "status"), "running");
	kit_ok(&tool_kill_sandbox, "{'sandbox_id':'%s'}", id);
	ck_assert_str_eq(kit_str("name"), "work");
	ck_assert_str_eq(kit_str("sandbox_id"), id);
	ck_assert(kit_true("files_deleted"));
	ck_assert(kit_true("was_running"));
	ck_assert(!play.is_up);
	kit_ok(&tool_list_sandboxes, "{}");
	ck_assert_uint_eq(json_object_array_length(json_get(kit.call.structured, "sandboxes")), 0);
	kit_fails(ERR_NOT_FOUND, &tool_read_text, "{'sandbox':'%s','path':'a.txt'}", id);
	free(id);
	kit_close();
}
TEST_END

TEST(destroying_what_does_not_exist_is_an_error)
{
	kit_open();
	kit_fails(ERR_NOT_FOUND, &tool_destroy_sandbox, "{'sandbox':'nobody'}");
	kit_message_has("nobody");
	ck_assert_uint_gt(strlen(err_next(&kit.err)), 0);
	kit_fails(ERR_NOT_FOUND, &tool_kill_sandbox, "{'sandbox_id':'nobody'}");
	kit_close();
}
TEST_END

TEST(a_full_server_says_so_and_that_it_may_pass)
{
	setenv("SMCP_MAX_SANDBOXES", "1", 1);
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'one'}");
	kit_fails(ERR_QUOTA, &tool_create_sandbox, "{'sandbox':'two'}");
	kit_fails(ERR_QUOTA, &tool_exec, "{'sandbox':'two','command':'true'}");
	ck_assert(err_retryable(kit.err.code));
	ck_assert_int_eq(play.execs, 0);
	kit_close();
}
TEST_END

/* --- a person is asked --------------------------------------------------------------------- */

/* What one round of a call came to. */
static struct tool_call asked;
static struct err asked_err;

static void forget_round(void)
{
	round_finish(&asked.round);
	json_object_put(asked.structured);
	json_object_put(asked.arguments);
	asked = (struct tool_call){0};
	asked_err = (struct err)ERR_INIT;
}

/* Calls a tool for a client that can ask; kept and answers (an object as JSON or NULL) are what it
 * brings from the round before. */
static bool call_asking(const struct tool *tool, const char *arguments, struct json_object *kept,
			const char *answers)
{
	struct json_object *brought = json_object_get(kept);
	forget_round();
	asked.app = &kit.app;
	asked.principal = "me";
	asked.arguments = json_literal(arguments);
	asked.round.can_ask = ROUND_ELICIT;
	asked.round.kept = brought;
	asked.round.answers = answers == NULL ? NULL : json_literal(answers);
	bool ok = tool->call(&asked, &asked_err);
	ck_assert_int_eq(ok, asked_err.code == ERR_NONE);
	return ok;
}

#define YES "{\"delete\":{\"action\":\"accept\",\"content\":{\"delete\":true}}}"

/* The first round; returns what is kept for the next, which the caller releases. */
static struct json_object *ask_first(const struct tool *tool, const char *arguments)
{
	ck_assert(call_asking(tool, arguments, NULL, NULL));
	ck_assert(round_is_open(&asked.round));
	ck_assert_ptr_null(asked.structured);
	return json_object_get(asked.round.keep);
}

static const char *question(void)
{
	struct json_object *request = json_get(asked.round.requests, "delete");
	ck_assert_str_eq(json_get_str(request, "method"), "elicitation/create");
	return json_get_str(json_get(request, "params"), "message");
}

static void open_asking(void)
{
	setenv("SMCP_CONFIRM_DESTROY", "files", 1);
	kit_open();
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'d/a','content':'12345'}");
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'.b','content':'12'}");
}

static void close_asking(void)
{
	forget_round();
	kit_close();
}

TEST(before_files_go_a_person_is_asked_and_a_yes_deletes_them)
{
	static const struct {
		const struct tool *tool;
		const char *arguments;
	} calls[] = {
		{&tool_kill_sandbox, "{\"sandbox\":\"work\"}"},
		{&tool_destroy_sandbox, "{\"sandbox\":\"work\",\"delete_files\":true}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		open_asking();
		AUTO_JSON *kept = ask_first(calls[i].tool, calls[i].arguments);
		ck_assert_str_eq(question(), "Delete sandbox work with all its files? It holds 2 "
					     "files, 7 bytes together. This cannot be undone.");
		ck_assert_int_eq(kit_count(), 1);
		ck_assert(call_asking(calls[i].tool, calls[i].arguments, kept, YES));
		ck_assert(json_get_bool(asked.structured, "files_deleted", false));
		ck_assert_int_eq(kit_count(), 0);
		close_asking();
	}
}
TEST_END

TEST(a_no_in_any_form_changes_nothing_and_says_so)
{
	static const char *const answers[] = {
		"{\"delete\":{\"action\":\"decline\"}}",
		"{\"delete\":{\"action\":\"cancel\"}}",
		"{\"delete\":{\"action\":\"accept\",\"content\":{\"delete\":false}}}",
	};
	open_asking();
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		AUTO_JSON *kept = ask_first(&tool_kill_sandbox, "{\"sandbox\":\"work\"}");
		ck_assert(!call_asking(&tool_kill_sandbox, "{\"sandbox\":\"work\"}", kept,
				       answers[i]));
		ck_assert_int_eq(asked_err.code, ERR_DENIED);
		ck_assert_ptr_nonnull(strstr(asked_err.msg, "nothing was changed"));
	}
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'d/a'}");
	close_asking();
}
TEST_END

TEST(a_yes_to_one_incarnation_never_deletes_another)
{
	open_asking();
	AUTO_JSON *kept = ask_first(&tool_kill_sandbox, "{\"sandbox\":\"work\"}");
	kit_ok(&tool_destroy_sandbox, "{'sandbox':'work'}");
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'new','content':'x'}");
	ck_assert(!call_asking(&tool_kill_sandbox, "{\"sandbox\":\"work\"}", kept, YES));
	ck_assert_int_eq(asked_err.code, ERR_NOT_FOUND);
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'new'}");
	kit_ok(&tool_read_text, "{'sandbox':'work','path':'d/a'}");
	close_asking();
}
TEST_END

TEST(a_yes_that_no_question_came_before_is_asked_for_again)
{
	open_asking();
	ck_assert(call_asking(&tool_kill_sandbox, "{\"sandbox\":\"work\"}", NULL, YES));
	ck_assert(round_is_open(&asked.round));
	ck_assert_int_eq(kit_count(), 1);
	close_asking();
}
TEST_END

TEST(nobody_is_asked_when_files_stay_and_kept_ones_are_asked_about)
{
	open_asking();
	ck_assert(call_asking(&tool_destroy_sandbox, "{\"sandbox\":\"work\"}", NULL, NULL));
	ck_assert(!round_is_open(&asked.round));
	ck_assert_int_eq(kit_count(), 0);
	static const char arguments[] = "{\"sandbox\":\"work\",\"delete_files\":true}";
	AUTO_JSON *kept = ask_first(&tool_destroy_sandbox, arguments);
	ck_assert_ptr_nonnull(strstr(question(), "2 files"));
	ck_assert(call_asking(&tool_destroy_sandbox, arguments, kept, YES));
	ck_assert(!call_asking(&tool_destroy_sandbox, arguments, NULL, NULL));
	ck_assert_int_eq(asked_err.code, ERR_NOT_FOUND);
	close_asking();
}
TEST_END

TEST(a_client_that_cannot_ask_and_a_server_that_does_not_want_to_are_as_ever)
{
	open_asking();
	kit_ok(&tool_kill_sandbox, "{'sandbox':'work'}");
	ck_assert(kit_true("files_deleted"));
	close_asking();
	setenv("SMCP_CONFIRM_DESTROY", "never", 1);
	kit_open();
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'a'}");
	ck_assert(call_asking(&tool_kill_sandbox, "{\"sandbox\":\"work\"}", NULL, NULL));
	ck_assert(!round_is_open(&asked.round));
	ck_assert_int_eq(kit_count(), 0);
	close_asking();
}
TEST_END

/* --- what nobody named --------------------------------------------------------------------- */

static bool gives_way(void)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_by_name(kit.app.db, "me", "work", &row, &err), 1);
	return row.gives_way;
}

TEST(a_call_that_writes_or_runs_makes_a_sandbox_stay_and_one_that_reads_does_not)
{
	static const struct {
		const struct tool *tool;
		const char *arguments;
		bool stays;
	} calls[] = {
		{&tool_list_sandboxes, "{}", false},
		{&tool_list_files, "{'sandbox':'work'}", false},
		{&tool_read_text, "{'sandbox':'work','path':'a'}", false},
		{&tool_download_file, "{'sandbox':'work','src':'a'}", false},
		{&tool_edit_text, "{'sandbox':'work','path':'a','old_text':'x','new_text':'y'}",
		 true},
		{&tool_write_text, "{'sandbox':'work','path':'b'}", true},
		{&tool_upload_file, "{'sandbox':'work','dest':'c'}", true},
		{&tool_exec, "{'sandbox':'work','command':'true'}", true},
		{&tool_create_sandbox, "{'sandbox':'work'}", true},
	};
	kit_open();
	struct err err = ERR_INIT;
	kit_ok(&tool_write_text, "{'sandbox':'work','path':'a','content':'x'}");
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_by_name(kit.app.db, "me", "work", &row, &err), 1);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		kit_let_give_way(row.id);
		kit_ok(calls[i].tool, "%s", calls[i].arguments);
		ck_assert_msg(gives_way() != calls[i].stays, "%s", calls[i].tool->name);
	}
	kit_close();
}
TEST_END

/* --- many at once -------------------------------------------------------------------------- */

#define RACERS  10
#define RACE_MS 1500

static const struct race {
	const struct tool *tool;
	const char *arguments;
	bool may_miss; /* another one may have destroyed it; the others make it anew */
} races[] = {
	{&tool_create_sandbox, "{\"sandbox\":\"work\"}", false},
	{&tool_exec, "{\"sandbox\":\"work\",\"command\":\"true\"}", false},
	{&tool_write_text, "{\"sandbox\":\"work\",\"path\":\"a/b/c\",\"content\":\"x\"}", false},
	{&tool_upload_file, "{\"sandbox\":\"work\",\"dest\":\"d/e\"}", false},
	{&tool_list_files, "{\"sandbox\":\"work\"}", true},
	{&tool_read_text, "{\"sandbox\":\"work\",\"path\":\"a/b/c\"}", true},
	{&tool_edit_text,
	 "{\"sandbox\":\"work\",\"path\":\"a/b/c\",\"old_text\":\"x\",\"new_text\":\"y\"}", true},
	{&tool_destroy_sandbox, "{\"sandbox\":\"work\",\"delete_files\":true}", true},
	{&tool_destroy_sandbox, "{\"sandbox\":\"work\"}", true},
};

static bool is_allowed(const struct race *race, const struct err *err)
{
	switch (err->code) {
	case ERR_NONE:
	case ERR_BUSY:
		return true;
	case ERR_DESTROYED: /* while it worked; create_sandbox has nothing to lose */
		return race->tool != &tool_create_sandbox;
	case ERR_NOT_FOUND:
		return race->may_miss;
	case ERR_INVALID: /* the old text is not there */
		return race->tool == &tool_edit_text;
	default:
		return false;
	}
}

static void race_in_child(int index)
{
	struct app app;
	struct err err = ERR_INIT;
	if (!app_open(&app, &kit.conf, &err))
		_exit(1);
	app.runtime = &play_runtime;
	int64_t until_ms = clock_mono_ms() + RACE_MS;
	for (size_t i = (size_t)index; clock_mono_ms() < until_ms; i++) {
		const struct race *race = &races[i * 7 % ARRAY_LEN(races)];
		struct tool_call call = {
			.app = &app, .principal = "me", .arguments = json_literal(race->arguments)};
		err = (struct err)ERR_INIT;
		if (!race->tool->call(&call, &err) && !is_allowed(race, &err)) {
			printf("# %s: %s: %s [%s]\n", race->tool->name, err_name(err.code), err.msg,
			       err.trace);
			fflush(stdout);
			_exit(2);
		}
		json_object_put(call.arguments);
		json_object_put(call.structured);
		json_object_put(call.content);
	}
	app_close(&app);
	_exit(0);
}

TEST(a_destroy_among_other_calls_is_no_fault_of_the_server)
{
	kit_open();
	play.is_up = true;
	for (int i = 0; i < RACERS; i++)
		if (fork() == 0)
			race_in_child(i);
	for (int i = 0; i < RACERS; i++) {
		int status;
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	kit_close();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_created_sandbox_is_described_and_listed,
		without_a_name_one_is_made_up_and_the_sandbox_ends_some_day,
		timeout_is_the_lifetime_in_seconds,
		a_list_tells_when_an_idle_sandbox_is_stopped_and_removed,
		a_list_tells_of_no_end_while_a_sandbox_is_in_use,
		image_is_another_word_for_template,
		an_existing_sandbox_is_returned_as_it_is,
		a_bad_name_creates_nothing_whichever_tool_it_is_given_to,
		a_call_without_a_sandbox_names_both_arguments,
		destroy_keeps_the_files_for_the_next_of_that_name,
		kill_removes_the_files_too_and_takes_the_id,
		destroying_what_does_not_exist_is_an_error,
		a_full_server_says_so_and_that_it_may_pass,
		before_files_go_a_person_is_asked_and_a_yes_deletes_them,
		a_no_in_any_form_changes_nothing_and_says_so,
		a_yes_to_one_incarnation_never_deletes_another,
		a_yes_that_no_question_came_before_is_asked_for_again,
		nobody_is_asked_when_files_stay_and_kept_ones_are_asked_about,
		a_client_that_cannot_ask_and_a_server_that_does_not_want_to_are_as_ever,
		a_call_that_writes_or_runs_makes_a_sandbox_stay_and_one_that_reads_does_not,
		a_destroy_among_other_calls_is_no_fault_of_the_server,
	};
	return unit_run("tool_sandbox", tests, ARRAY_LEN(tests));
}
