/* execute_python: what it refuses before anything is made, where code runs, and what is told of
 * each kind of end. This file plays box/python.h and box/python_pool.h; the real ones have their
 * own tests, and all of it together is tested from outside. */
#include <signal.h>

#include "box/files.h"
#include "box/python.h"
#include "box/python_pool.h"
#include "tool_kit.h"

#define SESSION "0123456789abcdef0123456789abcdef"
#define GONE    "00000000000000000000000000000000"

/* --- the played verbs ---------------------------------------------------------------------- */

static struct {
	/* What the next run gives. */
	void (*fill)(struct python_result *result);
	bool refuses;
	char session_box[ID_LEN + 1]; /* where SESSION is */
	/* What was asked. */
	char code[256], box[ID_LEN + 1];
	int64_t timeout_ms, ttl_ms;
	enum { RUN_NONE, RUN_FRESH, RUN_NEW, RUN_IN } kind;
	int taken, released, kept;
	char staged[256]; /* o: own, c: copied */
} played;

bool python_check(const struct python_options *options, struct err *err)
{
	return options->code_len > 0 || err_set(err, ERR_INVALID, "code is empty");
}

static bool play_run(const struct sandbox_row *row, const struct python_options *options,
		     kernel_tick *tick, void *ctx, struct python_result *result, struct err *err)
{
	snprintf(played.code, sizeof played.code, "%.*s", (int)options->code_len, options->code);
	snprintf(played.box, sizeof played.box, "%s", row->id);
	played.timeout_ms = options->timeout_ms;
	memset(result, 0, sizeof(*result));
	kernel_run_init(&result->run, 3000, 1500);
	if (played.refuses)
		return err_set(err, ERR_UNAVAILABLE, "there is no Python");
	result->run.started = true;
	result->run.end = KERNEL_END_DONE;
	if (played.fill != NULL)
		played.fill(result);
	ck_assert(tick(ctx));
	return true;
}

bool python_run(struct app *app, const struct sandbox_row *row, struct sandbox_use *use,
		const struct python_options *options, const struct python_stage *staged,
		kernel_tick *tick, void *ctx, struct python_result *result, struct err *err)
{
	ck_assert_ptr_eq(app, &kit.app);
	ck_assert_int_ge(use->workspace_fd, 0);
	(void)staged;
	played.kind = RUN_FRESH;
	return play_run(row, options, tick, ctx, result, err);
}

bool python_run_new(struct app *app, const char *principal, const struct sandbox_row *row,
		    struct sandbox_use *use, const struct python_options *options,
		    const struct python_stage *staged, kernel_tick *tick, void *ctx,
		    struct python_result *result, struct err *err)
{
	(void)app;
	(void)use;
	(void)staged;
	ck_assert_str_eq(principal, "me");
	played.kind = RUN_NEW;
	if (!play_run(row, options, tick, ctx, result, err))
		return false;
	if (result->run.state != KERNEL_STATE_LOST) {
		result->run.state = KERNEL_STATE_KEPT;
		memcpy(result->session_id, SESSION, sizeof(SESSION));
	}
	return true;
}

bool python_run_in(struct app *app, const struct python_row *session, const struct sandbox_row *row,
		   struct sandbox_use *use, const struct python_options *options,
		   const struct python_stage *staged, kernel_tick *tick, void *ctx,
		   struct python_result *result, struct err *err)
{
	(void)app;
	(void)use;
	(void)staged;
	ck_assert_str_eq(session->id, SESSION);
	played.kind = RUN_IN;
	if (!play_run(row, options, tick, ctx, result, err))
		return false;
	if (result->run.state != KERNEL_STATE_LOST)
		result->run.state = KERNEL_STATE_KEPT;
	return true;
}

bool python_find(struct app *app, const char *principal, const char *session_id,
		 struct python_row *session, struct err *err)
{
	(void)app;
	ck_assert_str_eq(principal, "me");
	if (strcmp(session_id, SESSION) != 0)
		return err_set(err, ERR_NOT_FOUND, "there is no session %s", session_id);
	memcpy(session->id, SESSION, sizeof(SESSION));
	memcpy(session->sandbox_id, played.session_box, sizeof(session->sandbox_id));
	return true;
}

void python_result_finish(struct python_result *result)
{
	for (size_t i = 0; i < result->changes.count; i++) {
		free(result->changes.files[i].path);
		free(result->changes.files[i].about);
	}
	free(result->changes.files);
	kernel_run_finish(&result->run);
}

static bool note_stage(char how, const char *path)
{
	size_t len = strlen(played.staged);
	snprintf(played.staged + len, sizeof played.staged - len, "%c %s,", how, path);
	return true;
}

bool python_stage_own(struct python_stage *stage, const struct sandbox_use *use, const char *path,
		      struct err *err)
{
	(void)stage;
	AUTO_FD fd = files_open(use, path, NULL, err);
	return fd >= 0 && note_stage('o', path);
}

bool python_stage_copy(struct app *app, struct python_stage *stage, const struct sandbox_use *from,
		       const char *path, const struct sandbox_use *to, struct err *err)
{
	(void)app;
	(void)stage;
	(void)err;
	ck_assert_int_ne(from->workspace_fd, to->workspace_fd);
	return note_stage('c', path);
}

void python_stage_finish(struct python_stage *stage)
{
	(void)stage;
}

bool python_pool_take(struct app *app, const char *principal, int64_t ttl_ms,
		      struct sandbox_row *row, struct err *err)
{
	bool created;
	played.taken++;
	played.ttl_ms = ttl_ms;
	return sandbox_create(app, principal,
			      &(struct sandbox_options){.ttl_ms = ttl_ms, .gives_way = true}, row,
			      &created, err);
}

void python_pool_release(struct app *app, const struct sandbox_row *row, bool keep_files)
{
	(void)app;
	ck_assert_str_eq(row->principal, "me");
	played.released++;
	played.kept += keep_files;
}

static void open_all(void)
{
	kit_open();
	memset(&played, 0, sizeof(played));
}

/* A sandbox with a file; its id goes to played.session_box. */
static void make_box(const char *name, const char *file)
{
	struct sandbox_row row = {0};
	struct err err = ERR_INIT;
	bool created;
	ck_ok(sandbox_ensure(&kit.app, "me", name, &row, &created, &err), err);
	memcpy(played.session_box, row.id, sizeof(row.id));
	sandbox_row_finish(&row);
	kit_put(name, file, "x", 1);
}

/* The count'th block of a type, or NULL. */
static struct json_object *block(const char *type, int count)
{
	for (size_t i = 0; i < json_object_array_length(kit.call.content); i++) {
		struct json_object *one = json_object_array_get_idx(kit.call.content, i);
		if (strcmp(json_get_str(one, "type"), type) == 0 && count-- == 0)
			return one;
	}
	return NULL;
}

#define note_has(part) ck_assert_msg(strstr(kit_str("note"), part) != NULL, "%s", kit_str("note"))

/* --- where it runs ------------------------------------------------------------------------- */

TEST(without_sandbox_and_session_it_has_one_for_itself)
{
	open_all();
	kit_ok(&tool_execute_python, "{'code':'1+1','session_id':'','sandbox':'','timeout_ms':0}");
	ck_assert_int_eq(played.kind, RUN_FRESH);
	ck_assert_str_eq(played.code, "1+1");
	ck_assert_int_eq(played.timeout_ms, 10000);
	ck_assert_int_eq(played.ttl_ms, kit.conf.url_ttl * 1000);
	ck_assert(played.taken == 1 && played.released == 1 && played.kept == 0);
	ck_assert(!kit_has("sandbox") && !kit_has("sandbox_id") && !kit_has("session_id"));
	ck_assert(!kit_has("note"));
	ck_assert(!kit_true("state_preserved"));
	ck_assert_int_eq(kit_int("exit_code"), 0);
	kit_close();
}
TEST_END

TEST(a_named_sandbox_is_used_or_made)
{
	open_all();
	kit_ok(&tool_execute_python, "{'code':'1','sandbox':'work','timeout_ms':1234}");
	ck_assert_int_eq(played.timeout_ms, 1234);
	ck_assert(kit_true("sandbox_created"));
	note_has("did not exist");
	kit_ok(&tool_execute_python, "{'code':'1','sandbox_id':'work'}");
	ck_assert(!kit_true("sandbox_created"));
	ck_assert_str_eq(kit_str("sandbox"), "work");
	ck_assert_int_eq(played.kind, RUN_FRESH);
	ck_assert(played.taken == 0 && played.released == 0);
	kit_close();
}
TEST_END

TEST(a_new_session_says_its_id_and_when_it_ends)
{
	setenv("SMCP_PYTHON_IDLE_SECONDS", "77", 1);
	open_all();
	kit_ok(&tool_execute_python, "{'code':'a = 1','session_id':'new'}");
	ck_assert_int_eq(played.kind, RUN_NEW);
	ck_assert(played.taken == 1 && played.released == 0);
	ck_assert_int_eq(played.ttl_ms, kit.conf.sandbox_ttl * 1000);
	ck_assert_str_eq(kit_str("session_id"), SESSION);
	ck_assert(kit_true("state_preserved"));
	ck_assert(kit_true("sandbox_created"));
	note_has("77 s");
	kit_ok(&tool_execute_python, "{'code':'a = 1','session_id':'new','sandbox':'mine'}");
	ck_assert_int_eq(played.taken, 1);
	ck_assert_str_eq(kit_str("sandbox"), "mine");
	kit_close();
}
TEST_END

TEST(a_session_goes_on_in_its_own_sandbox_and_in_no_other)
{
	open_all();
	make_box("other", "o");
	make_box("mine", "a.csv");
	kit_ok(&tool_execute_python, "{'code':'a','session_id':'" SESSION "'}");
	ck_assert_int_eq(played.kind, RUN_IN);
	ck_assert_str_eq(played.box, played.session_box);
	ck_assert_str_eq(kit_str("sandbox"), "mine");
	ck_assert_str_eq(kit_str("session_id"), SESSION);
	ck_assert(!kit_has("note"));
	kit_ok(&tool_execute_python, "{'code':'a','session_id':'" SESSION "','sandbox':'mine'}");
	kit_ok(&tool_execute_python, "{'code':'a','session_id':'" SESSION "','sandbox_id':'%s'}",
	       played.session_box);
	kit_fails(ERR_INVALID, &tool_execute_python,
		  "{'code':'a','session_id':'" SESSION "','sandbox':'other'}");
	kit_message_has("in sandbox mine, not in other");
	kit_fails(ERR_INVALID, &tool_execute_python,
		  "{'code':'a','session_id':'" SESSION "','sandbox':'absent'}");
	ck_assert_int_eq(kit_count(), 2);
	kit_close();
}
TEST_END

TEST(a_session_that_is_unknown_or_without_its_sandbox_is_never_replaced)
{
	open_all();
	kit_fails(ERR_NOT_FOUND, &tool_execute_python, "{'code':'a','session_id':'" GONE "'}");
	kit_fails(ERR_NOT_FOUND, &tool_execute_python, "{'code':'a','session_id':'NEW'}");
	memcpy(played.session_box, GONE, sizeof(GONE));
	kit_fails(ERR_GONE, &tool_execute_python, "{'code':'a','session_id':'" SESSION "'}");
	kit_message_has("its sandbox was removed");
	ck_assert_int_eq(kit_count(), 0);
	ck_assert_int_eq(played.kind, RUN_NONE);
	kit_close();
}
TEST_END

TEST(a_bad_argument_leaves_nothing_behind)
{
	open_all();
	kit_fails(ERR_INVALID, &tool_execute_python, "{'code':'1','sandbox':'w','timeout_ms':99}");
	kit_message_has("99");
	kit_fails(ERR_INVALID, &tool_execute_python, "{'code':'1','sandbox':'w','sandbox_id':'v'}");
	kit_fails(ERR_INVALID, &tool_execute_python, "{'code':'1','files':['a.csv']}");
	kit_message_has("in which sandbox");
	ck_assert_ptr_nonnull(strstr(err_next(&kit.err), "spoolbox://"));
	kit_fails(ERR_INVALID, &tool_execute_python,
		  "{'code':'1','files':['a.csv'],'session_id':'new'}");
	kit_fails(ERR_INVALID, &tool_execute_python,
		  "{'code':'1','sandbox':'w','files':['spoolbox://w/../a']}");
	kit_fails(ERR_INVALID, &tool_execute_python,
		  "{'code':'1','sandbox':'w','files':['spoolbox://w/']}");
	kit_fails(ERR_INVALID, &tool_execute_python,
		  "{'code':'1','sandbox':'w','files':['../../etc/passwd']}");
	kit_fails(ERR_INVALID, &tool_execute_python,
		  "{'code':'1','sandbox':'w','files':['a\\u0000b']}");
	kit_fails(ERR_INVALID, &tool_execute_python, "{'code':'1','sandbox':'w','files':['d/']}");
	kit_fails(ERR_NOT_FOUND, &tool_execute_python,
		  "{'code':'1','sandbox':'w','files':['spoolbox://v/a.csv']}");
	/* A file in a sandbox that does not exist cannot be there. */
	kit_fails(ERR_NOT_FOUND, &tool_execute_python,
		  "{'code':'1','sandbox':'w','files':['a.csv']}");
	ck_assert_int_eq(kit_count(), 0);
	ck_assert(played.kind == RUN_NONE && played.taken == 0);
	kit_close();
}
TEST_END

TEST(files_of_the_own_sandbox_stay_and_others_are_copied)
{
	open_all();
	make_box("other", "b.csv");
	make_box("mine", "a.csv");
	kit_ok(&tool_execute_python, "{'code':'1','sandbox':'mine','files':['a.csv',"
				     "'/workspace/a.csv','spoolbox://mine/a%%2ecsv',"
				     "'spoolbox://other/b.csv']}");
	ck_assert_str_eq(played.staged, "o a.csv,o a.csv,o a.csv,c b.csv,");
	played.staged[0] = '\0';
	kit_ok(&tool_execute_python, "{'code':'1','session_id':'" SESSION "','files':['a.csv']}");
	ck_assert_str_eq(played.staged, "o a.csv,");
	played.staged[0] = '\0';
	kit_ok(&tool_execute_python, "{'code':'1','files':['spoolbox://other/b.csv']}");
	ck_assert_str_eq(played.staged, "c b.csv,");
	kit_fails(ERR_NOT_FOUND, &tool_execute_python,
		  "{'code':'1','files':['spoolbox://other/none']}");
	ck_assert_int_eq(played.taken, 1);
	kit_close();
}
TEST_END

static bool box_gives_way(void)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_any(kit.app.db, played.session_box, &row, &err), 1);
	return row.gives_way;
}

TEST(a_sandbox_that_gives_way_stays_for_code_in_it_and_not_for_a_copy_of_its_files)
{
	static const char *const inside[] = {
		"{'code':'1','sandbox':'work'}",
		"{'code':'1','sandbox':'work','files':['a.csv']}",
		"{'code':'1','sandbox':'work','session_id':'new'}",
		"{'code':'1','sandbox':'work','session_id':'" SESSION "'}",
	};
	open_all();
	make_box("work", "a.csv");
	for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
		kit_let_give_way(played.session_box);
		kit_ok(&tool_execute_python, "{'code':'1','files':['spoolbox://work/a.csv']}");
		ck_assert(box_gives_way());
		kit_ok(&tool_execute_python, "%s", inside[i]);
		ck_assert(!box_gives_way());
	}
	kit_close();
}
TEST_END

TEST(a_session_alone_does_not_make_its_sandbox_stay_and_its_name_does)
{
	open_all();
	kit_ok(&tool_execute_python, "{'code':'1','session_id':'new'}");
	note_has("until their place is needed");
	note_has(kit_str("sandbox"));
	AUTO_FREE char *name = xstrdup(kit_str("sandbox"));
	memcpy(played.session_box, kit_str("sandbox_id"), sizeof(played.session_box));
	ck_assert(box_gives_way());
	kit_ok(&tool_execute_python, "{'code':'1','session_id':'" SESSION "'}");
	ck_assert(box_gives_way());
	kit_fails(ERR_INVALID, &tool_execute_python,
		  "{'code':'1','session_id':'" SESSION "','sandbox':'other'}");
	ck_assert(box_gives_way());
	kit_ok(&tool_execute_python, "{'code':'1','session_id':'" SESSION "','sandbox':'%s'}",
	       name);
	ck_assert(!box_gives_way());
	/* One that is in a sandbox which was named keeps nothing that did not stay anyhow. */
	kit_ok(&tool_execute_python, "{'code':'1','session_id':'new','sandbox':'%s'}", name);
	ck_assert_ptr_null(strstr(kit_str("note"), "place"));
	kit_close();
}
TEST_END

TEST(what_did_not_run_gives_its_sandbox_back)
{
	open_all();
	played.refuses = true;
	kit_fails(ERR_UNAVAILABLE, &tool_execute_python, "{'code':'1'}");
	kit_fails(ERR_UNAVAILABLE, &tool_execute_python, "{'code':'1','session_id':'new'}");
	ck_assert(played.taken == 2 && played.released == 2 && played.kept == 0);
	kit_close();
}
TEST_END

/* --- what is told -------------------------------------------------------------------------- */

static void give_output(struct python_result *result)
{
	capture_add(&result->run.out, "one\ntwo\n", 8);
	capture_add(&result->run.err, "careful\n", 8);
	result->run.value = json_literal("{\"text\":\"42\",\"type\":\"int\"}");
	result->run.cpu_ms = 7;
	result->run.max_rss_kib = 1234;
	result->run.duration_ms = 9;
}

TEST(output_value_and_figures_are_told)
{
	open_all();
	played.fill = give_output;
	kit_ok(&tool_execute_python, "{'code':'42','sandbox':'w'}");
	ck_assert(!kit.call.is_error);
	ck_assert_str_eq(kit_str("stdout"), "one\ntwo\n");
	ck_assert_str_eq(kit_str("stderr"), "careful\n");
	ck_assert_str_eq(kit_str("value"), "42");
	ck_assert_int_eq(kit_int("stdout_bytes"), 8);
	ck_assert_int_eq(kit_int("stderr_bytes"), 8);
	ck_assert(!kit_true("truncated") && !kit_true("timed_out"));
	ck_assert_int_eq(kit_int("cpu_ms"), 7);
	ck_assert_int_eq(kit_int("max_rss_kib"), 1234);
	ck_assert_int_eq(kit_int("duration_ms"), 9);
	ck_assert_int_eq(kit_int("images"), 0);
	ck_assert(!kit_has("error") && !kit_has("signal") && !kit_has("files_changed_partial"));
	ck_assert_uint_eq(json_object_array_length(kit.call.content), 0);
	kit_close();
}
TEST_END

static void give_much(struct python_result *result)
{
	AUTO_FREE char *text = xcalloc(1, 200001);
	memset(text, 'x', 200000);
	capture_add(&result->run.out, text, 5000);
	result->run.value = json_object_new_object();
	json_add_str(result->run.value, "text", text);
	result->run.error = json_object_new_object();
	json_add_str(result->run.error, "type", text);
	json_add_str(result->run.error, "message", text);
	json_add_str(result->run.error, "traceback", text);
	buf_puts(&result->run.notes, text);
	result->run.left_out = true;
	for (size_t i = 0; i < KERNEL_DISPLAYS_MAX; i++) {
		struct kernel_display *display = &result->run.displays[i];
		display->mime = xstrdup("text/markdown");
		display->text = (struct buf)BUF_INIT;
		buf_append(&display->text, text, 3000);
		result->run.display_count++;
	}
}

TEST(whatever_the_sandbox_sends_a_result_is_bounded)
{
	open_all();
	played.fill = give_much;
	kit_ok(&tool_execute_python, "{'code':'42','sandbox':'w'}");
	ck_assert(kit_true("truncated"));
	ck_assert_int_eq(kit_int("stdout_bytes"), 5000);
	ck_assert_uint_lt(strlen(kit_str("stdout")), 3100);
	ck_assert_uint_lt(strlen(json_text(kit.call.structured, NULL)), 95000);
	ck_assert_uint_eq(json_object_array_length(kit.call.content), 0);
	note_has("The value was cut");
	note_has("Output was cut");
	note_has("left out");
	note_has("too long to be shown here: 54");
	kit_close();
}
TEST_END

static void raise_error(struct python_result *result)
{
	result->run.end = KERNEL_END_EXCEPTION;
	result->run.code = 1;
	result->run.error = json_literal("{\"type\":\"ValueError\",\"message\":\"no\","
					 "\"traceback\":\"line 1\",\"hint\":\"look\",\"x\":1}");
}

TEST(an_exception_is_a_result)
{
	open_all();
	played.fill = raise_error;
	kit_ok(&tool_execute_python, "{'code':'x','sandbox':'w'}");
	ck_assert(!kit.call.is_error);
	ck_assert_int_eq(kit_int("exit_code"), 1);
	struct json_object *error = json_get(kit.call.structured, "error");
	ck_assert_str_eq(json_get_str(error, "type"), "ValueError");
	ck_assert_str_eq(json_get_str(error, "message"), "no");
	ck_assert_str_eq(json_get_str(error, "traceback"), "line 1");
	ck_assert_str_eq(json_get_str(error, "hint"), "look");
	ck_assert_int_eq(json_object_object_length(error), 4);
	kit_close();
}
TEST_END

static int signal_number;

static void end_by_signal(struct python_result *result)
{
	result->run.end = KERNEL_END_SIGNAL;
	result->run.signal = signal_number;
	result->run.state = KERNEL_STATE_LOST;
	capture_add(&result->run.out, "before\n", 7);
}

TEST(a_signal_is_named_and_explained)
{
	static const struct {
		int number;
		const char *name, *part;
	} cases[] = {
		{SIGSEGV, "SIGSEGV", "extension module"}, {SIGILL, "SIGILL", "processor lacks"},
		{SIGKILL, "SIGKILL", "memory"},           {SIGXFSZ, "SIGXFSZ", "size limit"},
		{SIGTERM, "SIGTERM", "did not exist"},
	};
	open_all();
	played.fill = end_by_signal;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		signal_number = cases[i].number;
		kit_ok(&tool_execute_python, "{'code':'x','sandbox':'w%zu'}", i);
		ck_assert_str_eq(kit_str("signal"), cases[i].name);
		ck_assert_str_eq(kit_str("stdout"), "before\n");
		ck_assert(!kit_has("exit_code") && !kit_true("timed_out"));
		note_has(cases[i].part);
	}
	kit_close();
}
TEST_END

TEST(a_session_that_dies_is_said_to_be_over)
{
	open_all();
	make_box("mine", "a");
	played.fill = end_by_signal;
	signal_number = SIGSEGV;
	kit_ok(&tool_execute_python, "{'code':'x','session_id':'" SESSION "'}");
	ck_assert(!kit_has("session_id") && !kit_true("state_preserved"));
	note_has("session is over");
	note_has("sandbox mine");
	kit_ok(&tool_execute_python, "{'code':'x','session_id':'new'}");
	ck_assert(!kit_has("session_id") && !kit_true("state_preserved"));
	note_has("session is over");
	kit_close();
}
TEST_END

static enum kernel_state timeout_state;

static void time_out(struct python_result *result)
{
	result->run.timed_out = true;
	result->run.end =
		timeout_state == KERNEL_STATE_KEPT ? KERNEL_END_EXCEPTION : KERNEL_END_SIGNAL;
	result->run.code = 1;
	result->run.signal = SIGKILL;
	result->run.state = timeout_state;
}

TEST(a_timeout_says_what_became_of_the_variables)
{
	open_all();
	make_box("mine", "a");
	played.fill = time_out;
	timeout_state = KERNEL_STATE_KEPT;
	kit_ok(&tool_execute_python, "{'code':'x','session_id':'" SESSION "','timeout_ms':2000}");
	ck_assert(kit_true("timed_out") && kit_true("state_preserved") && !kit.call.is_error);
	note_has("within 2000 ms");
	note_has("KeyboardInterrupt");
	note_has("variables and imports are kept");
	timeout_state = KERNEL_STATE_LOST;
	kit_ok(&tool_execute_python, "{'code':'x','session_id':'" SESSION "'}");
	ck_assert(kit_true("timed_out") && !kit_true("state_preserved"));
	note_has("was killed");
	note_has("variables and imports are lost");
	ck_assert_ptr_null(strstr(kit_str("note"), "ran out"));
	timeout_state = KERNEL_STATE_NONE;
	kit_ok(&tool_execute_python, "{'code':'x'}");
	note_has("run_background");
	ck_assert_ptr_null(strstr(kit_str("note"), "session"));
	kit_close();
}
TEST_END

static void get_lost(struct python_result *result)
{
	result->run.end = KERNEL_END_LOST;
	capture_add(&result->run.out, "step 1\n", 7);
}

TEST(an_end_that_nobody_saw_is_an_error_with_the_output_so_far)
{
	open_all();
	played.fill = get_lost;
	ck_assert(kit_call(&tool_execute_python, "{'code':'x','sandbox':'w'}"));
	ck_assert(kit.call.is_error);
	ck_assert_str_eq(kit_str("error"), "lost");
	ck_assert_ptr_nonnull(strstr(kit_str("message"), "not known"));
	ck_assert_ptr_nonnull(strstr(kit_str("fix"), "list_files"));
	ck_assert_str_eq(kit_str("stdout"), "step 1\n");
	ck_assert(!kit_has("exit_code"));
	ck_assert(kit_call(&tool_execute_python, "{'code':'x'}"));
	ck_assert(kit.call.is_error);
	ck_assert_ptr_null(strstr(kit_str("fix"), "list_files"));
	ck_assert_int_eq(played.released, 1);
	kit_close();
}
TEST_END

/* --- what is shown ------------------------------------------------------------------------- */

static void add_display(struct kernel_run *run, const char *mime, const char *text, size_t times)
{
	struct kernel_display *display = &run->displays[run->display_count++];
	display->mime = xstrdup(mime);
	display->text = (struct buf)BUF_INIT;
	for (size_t i = 0; i < times; i++)
		buf_puts(&display->text, text);
}

static void show_things(struct python_result *result)
{
	struct kernel_run *run = &result->run;
	add_display(run, "text/markdown", "# first", 1);
	add_display(run, "text/html", "<p>", 2000);
	add_display(run, "text/html", "<b>x</b>", 1);
	for (int i = 0; i < 2; i++) {
		struct kernel_image *image = &run->images[run->image_count++];
		strcpy(image->mime, i == 0 ? "image/png" : "image/jpeg");
		image->data = (struct buf)BUF_INIT;
		buf_append(&image->data, i == 0 ? "\x89PNG" : "\xff\xd8\xff", i == 0 ? 4 : 3);
		image->scaled = i == 1;
	}
}

static const char *display_text(size_t i)
{
	struct json_object *displays = json_get(kit.call.structured, "displays");
	return json_get_str(json_object_array_get_idx(displays, i), "text");
}

TEST(displays_are_data_and_images_are_blocks_in_their_order)
{
	open_all();
	played.fill = show_things;
	kit_ok(&tool_execute_python, "{'code':'x','sandbox':'w'}");
	ck_assert_int_eq(kit_int("images"), 2);
	ck_assert_uint_eq(json_object_array_length(kit.call.content), 2);
	ck_assert_str_eq(display_text(0), "# first");
	ck_assert_str_eq(display_text(1), "<b>x</b>");
	ck_assert_ptr_null(display_text(2));
	ck_assert_str_eq(json_get_str(block("image", 0), "data"), "iVBORw==");
	ck_assert_str_eq(json_get_str(block("image", 0), "mimeType"), "image/png");
	ck_assert_str_eq(json_get_str(block("image", 1), "data"), "/9j/");
	ck_assert_str_eq(json_get_str(block("image", 1), "mimeType"), "image/jpeg");
	note_has("too long to be shown here: 1");
	note_has("1 of 2");
	kit_close();
}
TEST_END

static void add_file(struct python_result *result, const char *path, bool is_artifact,
		     const char *about)
{
	struct python_changes *changes = &result->changes;
	changes->files = xrealloc(changes->files, (changes->count + 1) * sizeof(changes->files[0]));
	changes->files[changes->count++] =
		(struct python_file){.path = xstrdup(path),
				     .size = 12,
				     .is_artifact = is_artifact,
				     .about = about == NULL ? NULL : xstrdup(about)};
}

static void make_files(struct python_result *result)
{
	add_file(result, "out/a b.csv", true, "the table");
	add_file(result, "\xc4\xe3.png", true, NULL);
	add_file(result, "cache.bin", false, NULL);
}

TEST(artifacts_are_handed_out_with_uri_and_link)
{
	open_all();
	played.fill = make_files;
	kit_ok(&tool_execute_python, "{'code':'x','sandbox':'w'}");
	struct json_object *all = json_get(kit.call.structured, "artifacts");
	ck_assert_uint_eq(json_object_array_length(all), 2);
	struct json_object *one = json_object_array_get_idx(all, 0);
	ck_assert_str_eq(json_get_str(one, "name"), "a b.csv");
	ck_assert_str_eq(json_get_str(one, "path"), "/workspace/out/a b.csv");
	ck_assert_str_eq(json_get_str(one, "uri"), "spoolbox://w/out/a%20b.csv");
	ck_assert_str_eq(json_get_str(one, "mime"), "text/csv");
	ck_assert_int_eq(json_get_int(one, "size", 0), 12);
	ck_assert_int_eq(strncmp(json_get_str(one, "url"), "https://box.example/files/", 26), 0);
	ck_assert_ptr_nonnull(json_get_str(one, "expires_at"));
	struct json_object *link = block("resource_link", 0);
	ck_assert_str_eq(json_get_str(link, "uri"), "spoolbox://w/out/a%20b.csv");
	ck_assert_str_eq(json_get_str(link, "name"), "a b.csv");
	ck_assert_str_eq(json_get_str(link, "description"), "the table");
	ck_assert_str_eq(json_get_str(link, "mimeType"), "text/csv");
	ck_assert_int_eq(json_get_int(link, "size", 0), 12);
	/* A name in GB18030 is shown as text and meant as it is. */
	one = json_object_array_get_idx(all, 1);
	ck_assert_str_eq(json_get_str(one, "name"), "\xe4\xbd\xa0.png");
	ck_assert_str_eq(json_get_str(one, "uri"), "spoolbox://w/%C4%E3.png");
	struct json_object *changed = json_get(kit.call.structured, "files_changed");
	ck_assert_uint_eq(json_object_array_length(changed), 3);
	ck_assert_str_eq(json_str(json_object_array_get_idx(changed, 2)), "/workspace/cache.bin");
	kit_close();
}
TEST_END

TEST(a_throw_away_sandbox_stays_for_what_was_handed_out)
{
	open_all();
	played.fill = make_files;
	kit_ok(&tool_execute_python, "{'code':'x'}");
	ck_assert(played.released == 1 && played.kept == 1);
	note_has(kit_str("sandbox"));
	note_has("links work");
	ck_assert_ptr_null(strstr(kit_str("note"), "did not exist"));
	kit_close();
}
TEST_END

static void make_junk(struct python_result *result)
{
	add_file(result, "cache.bin", false, NULL);
	result->changes.partial = true;
}

TEST(files_that_go_with_a_throw_away_sandbox_are_said_to_be_gone)
{
	open_all();
	played.fill = make_junk;
	kit_ok(&tool_execute_python, "{'code':'x'}");
	ck_assert(played.released == 1 && played.kept == 0);
	ck_assert(kit_true("files_changed_partial"));
	note_has("no more than 200 are named");
	note_has("directly into /workspace");
	note_has("are gone");
	ck_assert(!kit_has("sandbox"));
	kit_close();
}
TEST_END

static void make_many(struct python_result *result)
{
	for (int i = 0; i < PYTHON_ARTIFACTS_MAX + 3; i++) {
		char name[32];
		snprintf(name, sizeof name, "%02d.png", i);
		add_file(result, name, i < PYTHON_ARTIFACTS_MAX, NULL);
	}
}

TEST(files_beyond_those_handed_out_are_named)
{
	open_all();
	played.fill = make_many;
	kit_ok(&tool_execute_python, "{'code':'x','sandbox':'w'}");
	ck_assert_uint_eq(json_object_array_length(json_get(kit.call.structured, "artifacts")),
			  PYTHON_ARTIFACTS_MAX);
	ck_assert_uint_eq(json_object_array_length(json_get(kit.call.structured, "files_changed")),
			  PYTHON_ARTIFACTS_MAX + 3);
	note_has("No more than 20 files");
	kit_close();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		without_sandbox_and_session_it_has_one_for_itself,
		a_named_sandbox_is_used_or_made,
		a_new_session_says_its_id_and_when_it_ends,
		a_session_goes_on_in_its_own_sandbox_and_in_no_other,
		a_session_that_is_unknown_or_without_its_sandbox_is_never_replaced,
		a_bad_argument_leaves_nothing_behind,
		files_of_the_own_sandbox_stay_and_others_are_copied,
		a_sandbox_that_gives_way_stays_for_code_in_it_and_not_for_a_copy_of_its_files,
		a_session_alone_does_not_make_its_sandbox_stay_and_its_name_does,
		what_did_not_run_gives_its_sandbox_back,
		output_value_and_figures_are_told,
		whatever_the_sandbox_sends_a_result_is_bounded,
		an_exception_is_a_result,
		a_signal_is_named_and_explained,
		a_session_that_dies_is_said_to_be_over,
		a_timeout_says_what_became_of_the_variables,
		an_end_that_nobody_saw_is_an_error_with_the_output_so_far,
		displays_are_data_and_images_are_blocks_in_their_order,
		artifacts_are_handed_out_with_uri_and_link,
		a_throw_away_sandbox_stays_for_what_was_handed_out,
		files_that_go_with_a_throw_away_sandbox_are_said_to_be_gone,
		files_beyond_those_handed_out_are_named,
	};
	return unit_run("tool_python", tests, ARRAY_LEN(tests));
}
