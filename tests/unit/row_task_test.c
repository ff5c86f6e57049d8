#include "row_kit.h"

#include "store/row_task.h"

static struct sandbox_row sandbox;

/* A running task of the sandbox that is not stored yet. */
static struct task_row make_task(void)
{
	struct err err = ERR_INIT;
	if (sandbox.id[0] == '\0') {
		sandbox = kit_row(NAME("alice"), NAME("work"));
		ck_ok(row_sandbox_insert(db, &sandbox, &err) == 1, err);
	}
	struct task_row task = {
		.principal = NAME("alice"),
		.origin = TASK_ORIGIN_JOB,
		.command = NAME("make all"),
		.timeout_ms = 300000,
		.state = TASK_RUNNING,
		.created_at = 5,
	};
	id_make(task.id);
	memcpy(task.sandbox_id, sandbox.id, sizeof(task.sandbox_id));
	return task;
}

static struct task_row store_task(const char *request_id, int64_t created_at)
{
	struct err err = ERR_INIT;
	struct task_row task = make_task();
	task.request_id = NAME(request_id);
	task.created_at = created_at;
	ck_ok(row_task_insert(db, &task, &err) == 1, err);
	return task;
}

static void read_back(const char *id, struct task_row *row)
{
	struct err err = ERR_INIT;
	ck_ok(row_task_by_id(db, "alice", id, row, &err) == 1, err);
}

TEST(a_task_comes_back_as_it_was_stored)
{
	setup();
	for (int origin = TASK_ORIGIN_JOB; origin < TASK_ORIGIN__MAX; origin++) {
		struct err err = ERR_INIT;
		struct task_row task = make_task();
		AUTO_TASK_ROW got = {.state = TASK_NONE};
		task.origin = (enum task_origin)origin;
		ck_ok(row_task_insert(db, &task, &err) == 1, err);
		read_back(task.id, &got);
		ck_assert_str_eq(got.id, task.id);
		ck_assert_str_eq(got.sandbox_id, sandbox.id);
		ck_assert_str_eq(got.principal, "alice");
		ck_assert_ptr_null(got.request_id);
		ck_assert_int_eq(got.origin, origin);
		ck_assert_str_eq(got.command, "make all");
		ck_assert_int_eq(got.timeout_ms, 300000);
		ck_assert_int_eq(got.state, TASK_RUNNING);
		ck_assert(!got.has_exit_code);
		ck_assert_int_eq(got.signal, 0);
		ck_assert_ptr_null(got.reason);
		ck_assert_int_eq(got.created_at, 5);
		ck_assert_int_eq(got.started_at, 0);
		ck_assert_int_eq(got.finished_at, 0);
	}
	teardown();
}
TEST_END

/* checklist 82 */
TEST(a_task_of_somebody_else_is_not_found)
{
	setup();
	struct err err = ERR_INIT;
	struct task_row task = store_task("r", 1);
	AUTO_TASK_ROW got = {.state = TASK_NONE};
	ck_assert_int_eq(row_task_by_id(db, "bob", task.id, &got, &err), 0);
	ck_assert_int_eq(row_task_by_request(db, "bob", sandbox.id, "r", &got, &err), 0);
	ck_assert_int_eq(row_task_by_request(db, "alice", task.id, "r", &got, &err), 0);
	ck_assert_int_eq(row_task_by_request(db, "alice", sandbox.id, "r", &got, &err), 1);
	ck_assert_str_eq(got.id, task.id);
	ck_assert_str_eq(got.request_id, "r");
	teardown();
}
TEST_END

TEST(a_request_id_is_one_task_and_none_is_many)
{
	setup();
	struct err err = ERR_INIT;
	store_task("same", 1);
	struct task_row again = make_task();
	again.request_id = NAME("same");
	ck_assert_int_eq(row_task_insert(db, &again, &err), 0);
	store_task(NULL, 2);
	store_task(NULL, 3);
	ck_assert_int_eq(row_task_count(db, sandbox.id, &err), 3);
	teardown();
}
TEST_END

TEST(an_id_that_is_taken_is_an_error)
{
	setup();
	struct err err = ERR_INIT;
	struct task_row task = store_task(NULL, 1);
	ck_assert_int_eq(row_task_insert(db, &task, &err), -1);
	teardown();
}
TEST_END

TEST(a_task_needs_its_sandbox)
{
	setup();
	struct err err = ERR_INIT;
	struct task_row task = make_task();
	id_make(task.sandbox_id);
	ck_assert_int_eq(row_task_insert(db, &task, &err), -1);
	teardown();
}
TEST_END

static int finish_as(struct task_row *task, enum task_state state)
{
	struct err err = ERR_INIT;
	task->state = state;
	task->finished_at = 900;
	int rc = row_task_finish(db, task, &err);
	ck_ok(rc >= 0, err);
	return rc;
}

TEST(a_task_is_finished_once)
{
	setup();
	struct err err = ERR_INIT;
	struct task_row task = store_task(NULL, 1);
	AUTO_TASK_ROW got = {.state = TASK_NONE}, again = {.state = TASK_NONE};
	ck_assert_int_eq(row_task_started(db, task.id, 77, &err), 1);
	task.has_exit_code = true;
	task.exit_code = 0;
	task.cpu_ms = 12;
	task.max_rss_kib = 3456;
	task.survivors = 2;
	ck_assert_int_eq(finish_as(&task, TASK_SUCCEEDED), 1);
	read_back(task.id, &got);
	ck_assert_int_eq(got.state, TASK_SUCCEEDED);
	ck_assert(got.has_exit_code);
	ck_assert_int_eq(got.exit_code, 0);
	ck_assert_int_eq(got.cpu_ms, 12);
	ck_assert_int_eq(got.max_rss_kib, 3456);
	ck_assert_int_eq(got.survivors, 2);
	ck_assert_int_eq(got.started_at, 77);
	ck_assert_int_eq(got.finished_at, 900);
	task.has_exit_code = false;
	ck_assert_int_eq(finish_as(&task, TASK_UNKNOWN), 0);
	ck_assert_int_eq(row_task_started(db, task.id, 99, &err), 0);
	read_back(task.id, &again);
	ck_assert_int_eq(again.state, TASK_SUCCEEDED);
	ck_assert(again.has_exit_code);
	ck_assert_int_eq(again.started_at, 77);
	teardown();
}
TEST_END

TEST(an_end_without_an_exit_code_has_none)
{
	setup();
	struct task_row task = store_task(NULL, 1);
	AUTO_TASK_ROW got = {.state = TASK_NONE};
	task.signal = 9;
	task.exit_code = 3; /* without has_exit_code it means nothing */
	task.reason = NAME("its time of 3 seconds was over");
	task.started_at = 55;
	ck_assert_int_eq(finish_as(&task, TASK_TIMED_OUT), 1);
	read_back(task.id, &got);
	ck_assert_int_eq(got.state, TASK_TIMED_OUT);
	ck_assert(!got.has_exit_code);
	ck_assert_int_eq(got.signal, 9);
	ck_assert_str_eq(got.reason, "its time of 3 seconds was over");
	ck_assert_int_eq(got.started_at, 55);
	teardown();
}
TEST_END

static bool finish_mine(struct db *mine, int index, void *ctx)
{
	struct err err = ERR_INIT;
	struct task_row task = *(struct task_row *)ctx;
	task.state = index % 2 == 0 ? TASK_SUCCEEDED : TASK_UNKNOWN;
	return row_task_finish(mine, &task, &err) == 1;
}

/* checklist 80 */
TEST(of_many_who_finish_a_task_one_does)
{
	setup();
	for (int round = 0; round < 10; round++) {
		struct task_row task = store_task(NULL, 1);
		ck_assert_int_eq(kit_run(8, finish_mine, &task), 1);
	}
	teardown();
}
TEST_END

TEST(counts_tell_all_from_those_that_run)
{
	setup();
	struct err err = ERR_INIT;
	struct task_row first = store_task(NULL, 1);
	store_task(NULL, 2);
	struct task_row third = store_task(NULL, 3);
	ck_assert_int_eq(finish_as(&first, TASK_CANCELLED), 1);
	ck_assert_int_eq(row_task_count(db, sandbox.id, &err), 3);
	ck_assert_int_eq(row_task_count_running(db, sandbox.id, &err), 2);
	ck_assert_int_eq(row_task_delete(db, third.id, &err), 1);
	ck_assert_int_eq(row_task_delete(db, third.id, &err), 0);
	ck_assert_int_eq(row_task_count(db, sandbox.id, &err), 2);
	ck_assert_int_eq(row_task_count(db, third.id, &err), 0);
	teardown();
}
TEST_END

struct seen {
	int count, most;
	int64_t last;
};

static bool note(void *ctx, const struct task_row *row)
{
	struct seen *seen = ctx;
	ck_assert_int_lt(row->created_at, seen->last);
	seen->last = row->created_at;
	return ++seen->count < seen->most;
}

static int visit(const char *principal, const char *sandbox_id, int64_t limit, int most)
{
	struct err err = ERR_INIT;
	struct seen seen = {.most = most, .last = INT64_MAX};
	ck_ok(row_task_each(db, principal, sandbox_id, limit, note, &seen, &err), err);
	return seen.count;
}

TEST(tasks_are_listed_newest_first)
{
	setup();
	for (int i = 1; i <= 5; i++)
		store_task(NULL, i * 7 % 11);
	ck_assert_int_eq(visit("alice", NULL, 100, 100), 5);
	ck_assert_int_eq(visit("alice", sandbox.id, 100, 100), 5);
	ck_assert_int_eq(visit("alice", sandbox.id, 3, 100), 3);
	ck_assert_int_eq(visit("alice", NULL, 100, 2), 2);
	ck_assert_int_eq(visit("alice", "00000000000000000000000000000000", 100, 100), 0);
	ck_assert_int_eq(visit("bob", NULL, 100, 100), 0);
	ck_assert_int_eq(visit("bob", sandbox.id, 100, 100), 0);
	ck_assert_int_eq(visit("alice", NULL, -1, 100), 0);
	teardown();
}
TEST_END

TEST(states_and_origins_have_words)
{
	for (int i = TASK_RUNNING; i < TASK_STATE__MAX; i++) {
		enum task_state state = TASK_NONE;
		ck_assert(task_state_parse(task_state_name((enum task_state)i), &state));
		ck_assert_int_eq(state, i);
	}
	for (int i = TASK_ORIGIN_JOB; i < TASK_ORIGIN__MAX; i++) {
		enum task_origin origin = TASK_ORIGIN_NONE;
		ck_assert(task_origin_parse(task_origin_name((enum task_origin)i), &origin));
		ck_assert_int_eq(origin, i);
	}
	enum task_state state = TASK_FAILED;
	ck_assert_str_eq(task_state_name(TASK_TIMED_OUT), "timed_out");
	ck_assert(!task_state_parse("none", &state));
	ck_assert(!task_state_parse("Running", &state));
	ck_assert(!task_state_parse(NULL, &state));
	ck_assert_int_eq(state, TASK_FAILED);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_task_comes_back_as_it_was_stored,
		a_task_of_somebody_else_is_not_found,
		a_request_id_is_one_task_and_none_is_many,
		an_id_that_is_taken_is_an_error,
		a_task_needs_its_sandbox,
		a_task_is_finished_once,
		an_end_without_an_exit_code_has_none,
		of_many_who_finish_a_task_one_does,
		counts_tell_all_from_those_that_run,
		tasks_are_listed_newest_first,
		states_and_origins_have_words,
	};
	return unit_run("row_task", unit_tests, ARRAY_LEN(unit_tests));
}
