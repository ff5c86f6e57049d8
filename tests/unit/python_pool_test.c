/* Ready sandboxes, with a runtime that starts a kernel by keeping its socket open. */
#include "sandbox_kit.h"

#include <sys/eventfd.h>

#include "box/python_pool.h"
#include "box/stdio_session.h"
#include "run/kernel.h"
#include "store/row_python.h"
#include "store/row_reserve.h"

#define TTL_MS 600000

static int exit_code;        /* of the command that starts a kernel */
static void (*before)(void); /* is called when one is started */

/* The kernel of the sandbox in box: whoever holds its socket. It lives as long as this process. */
static bool fake_exec(const struct runtime_box *box, const struct runtime_command *command,
		      struct runtime_exec *exec, struct err *err)
{
	(void)box;
	(void)err;
	kit_note('E');
	if (strstr(command->argv[3], "--preload") != NULL)
		kit_note('P');
	if (before != NULL)
		before();
	if (exit_code == 0 && dup(command->stdin_fd) < 0)
		abort();
	exec->fd = eventfd(1, EFD_CLOEXEC);
	return true;
}

static void fake_finish(struct runtime_exec *exec, struct runtime_status *status)
{
	util_close(&exec->fd);
	*status = (struct runtime_status){.end = RUNTIME_END_EXIT, .code = exit_code};
}

static void begin(void)
{
	setup();
	fake.exec = fake_exec;
	fake.finish = fake_finish;
	exit_code = 0;
	before = NULL;
	conf.python_warm = 1;
	conf.python_idle = 300;
	log_open("test", getenv("SHOW_LOG") != NULL ? LOG_DEBUG : LOG_ERROR);
}

static struct sandbox_row take(void)
{
	struct err err = ERR_INIT;
	struct sandbox_row row = {0};
	ck_ok(python_pool_take(&app, ALICE, TTL_MS, &row, &err), err);
	return row;
}

/* The same when the row is of no interest. */
static void take_any(void)
{
	struct sandbox_row row = take();
	sandbox_row_finish(&row);
}

static int64_t reserves(void)
{
	struct err err = ERR_INIT;
	int64_t count = row_reserve_count(app.db, &err);
	ck_ok(count >= 0, err);
	return count;
}

static int64_t live(void)
{
	struct err err = ERR_INIT;
	int64_t count = row_sandbox_count_live(app.db, &err);
	ck_ok(count >= 0, err);
	return count;
}

static enum sandbox_state state_of(const char *id)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_ge(row_sandbox_any(app.db, id, &row, &err), 0);
	return row.state;
}

static bool is_up(const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	return sandbox_running(&app, row, &err) == 1;
}

/* Makes one reserve. */
static void fill(void)
{
	AUTO_SANDBOX_ROW row = take();
	python_pool_release(&app, &row, false);
	python_pool_settle(&app);
	ck_assert_int_eq(reserves(), 1);
}

TEST(the_first_call_gets_a_new_sandbox_and_the_next_a_ready_one)
{
	begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW first = take();
	ck_assert(!first.is_reserve && first.state == SANDBOX_LIVE);
	ck_assert_int_eq(first.ttl_ms, TTL_MS);
	ck_assert(app.python_used);
	ck_assert_int_eq(kit_count('S'), 0);
	python_pool_settle(&app);
	ck_assert(!app.python_used);
	ck_assert_int_eq(reserves(), 1);
	ck_assert_int_eq(kit_count('S'), 1);
	ck_assert_int_eq(kit_count('P'), 1);
	AUTO_SANDBOX_ROW second = take();
	ck_assert_str_ne(first.id, second.id);
	ck_assert(is_up(&second) && !second.is_reserve);
	ck_assert_int_eq(second.ttl_ms, TTL_MS);
	ck_assert_int_eq(second.expires_at, second.last_used_at + TTL_MS);
	AUTO_SANDBOX_ROW found = {0};
	ck_ok(sandbox_find(&app, ALICE, second.name, &found, &err), err);
	ck_assert_str_eq(found.id, second.id);
	ck_assert_int_eq(reserves(), 0);
	teardown();
}
TEST_END

TEST(a_settle_without_a_call_since_does_nothing)
{
	begin();
	python_pool_settle(&app);
	ck_assert_int_eq(live(), 0);
	fill();
	int started = kit_count('S');
	python_pool_settle(&app);
	ck_assert_int_eq(kit_count('S'), started);
	teardown();
}
TEST_END

TEST(without_ready_sandboxes_each_call_gets_a_new_one)
{
	begin();
	conf.python_warm = 0;
	take_any();
	python_pool_settle(&app);
	ck_assert_int_eq(reserves(), 0);
	ck_assert_int_eq(live(), 1);
	teardown();
}
TEST_END

TEST(a_reserve_is_of_one_principal_and_answers_to_nobody)
{
	begin();
	struct err err = ERR_INIT;
	fill();
	AUTO_SANDBOX_ROW reserve = {0}, found = {0};
	ck_assert_int_eq(row_reserve_oldest(app.db, ALICE, clock_wall_ms(), &reserve, &err), 1);
	ck_assert(!sandbox_find(&app, ALICE, reserve.id, &found, &err));
	ck_assert_int_eq(err.code, ERR_NOT_FOUND);
	ck_assert(!sandbox_find(&app, ALICE, reserve.name, &found, &err));
	ck_assert(!sandbox_find_to_destroy(&app, ALICE, reserve.id, &found, &err));
	ck_assert_int_eq(reserve.ttl_ms, 30 * 60 * 1000);
	AUTO_SANDBOX_ROW bobs = {0};
	ck_ok(python_pool_take(&app, "bob", TTL_MS, &bobs, &err), err);
	ck_assert_str_ne(bobs.id, reserve.id);
	ck_assert_str_eq(bobs.principal, "bob");
	ck_assert_int_eq(reserves(), 1);
	teardown();
}
TEST_END

TEST(a_reserve_lives_no_longer_than_a_sandbox_without_a_name)
{
	begin();
	struct err err = ERR_INIT;
	conf.sandbox_ttl = 60;
	fill();
	AUTO_SANDBOX_ROW reserve = {0};
	ck_assert_int_eq(row_reserve_oldest(app.db, ALICE, clock_wall_ms(), &reserve, &err), 1);
	ck_assert_int_eq(reserve.ttl_ms, 60000);
	/* One that is over is not handed out. */
	kit_sql("UPDATE sandbox SET expires_at = 1, last_used_at = 1 WHERE is_reserve = 1");
	AUTO_SANDBOX_ROW row = take();
	ck_assert_str_ne(row.id, reserve.id);
	teardown();
}
TEST_END

TEST(what_is_given_back_is_gone_at_once_and_removed_afterwards)
{
	begin();
	AUTO_SANDBOX_ROW row = take();
	python_pool_release(&app, &row, false);
	ck_assert_int_eq(state_of(row.id), SANDBOX_GONE);
	ck_assert(kit_exists("data", row.files_id, "/workspace"));
	python_pool_settle(&app);
	ck_assert(!kit_exists("data", row.files_id, "") && !kit_exists("run", row.id, ""));
	teardown();
}
TEST_END

TEST(one_whose_files_are_handed_out_is_stopped_and_stays)
{
	begin();
	fill();
	AUTO_SANDBOX_ROW row = take();
	ck_assert(is_up(&row));
	python_pool_release(&app, &row, true);
	ck_assert(is_up(&row));
	python_pool_settle(&app);
	ck_assert_int_eq(state_of(row.id), SANDBOX_LIVE);
	ck_assert(!is_up(&row) && kit_exists("data", row.files_id, "/workspace"));
	teardown();
}
TEST_END

TEST(one_that_somebody_uses_by_then_is_left_alone)
{
	begin();
	struct err err = ERR_INIT;
	fill();
	AUTO_SANDBOX_ROW row = take();
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	python_pool_release(&app, &row, true);
	python_pool_settle(&app);
	ck_assert(is_up(&row));
	sandbox_leave(&use);
	teardown();
}
TEST_END

TEST(of_several_that_are_given_back_none_is_forgotten)
{
	begin();
	struct sandbox_row rows[3];
	for (int i = 0; i < 3; i++) {
		rows[i] = take();
		python_pool_release(&app, &rows[i], i == 1);
	}
	python_pool_settle(&app);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(kit_exists("data", rows[i].files_id, ""), i == 1);
		sandbox_row_finish(&rows[i]);
	}
	teardown();
}
TEST_END

TEST(a_reserve_that_is_down_when_it_is_taken_is_taken_all_the_same)
{
	begin();
	struct err err = ERR_INIT;
	fill();
	AUTO_SANDBOX_ROW reserve = {0};
	ck_assert_int_eq(row_reserve_oldest(app.db, ALICE, clock_wall_ms(), &reserve, &err), 1);
	AUTO_FREE char *up = xasprintf("%s/run/%s/up", conf.spool, reserve.id);
	ck_assert_int_eq(unlink(up), 0);
	AUTO_SANDBOX_ROW row = take();
	ck_assert_str_eq(row.id, reserve.id);
	teardown();
}
TEST_END

TEST(a_python_that_does_not_come_up_ends_the_filling_and_no_call)
{
	begin();
	conf.python_warm = 4;
	exit_code = 127;
	log_open("test", LOG_ERROR);
	AUTO_SANDBOX_ROW first = take();
	python_pool_settle(&app);
	ck_assert_int_eq(reserves(), 1);
	ck_assert_int_eq(kit_count('E'), 1);
	AUTO_SANDBOX_ROW second = take();
	ck_assert_str_ne(second.id, first.id);
	teardown();
}
TEST_END

/* The sandbox that a call took stays. */
static void fill_up(void)
{
	take_any();
	for (int i = 0; i < 10 && reserves() < conf.python_warm; i++) {
		app.python_used = true;
		python_pool_settle(&app);
	}
	ck_assert_int_eq(reserves(), (int)conf.python_warm);
}

TEST(two_reserves_are_made_after_an_answer_and_the_others_after_the_next)
{
	begin();
	conf.python_warm = 3;
	take_any();
	python_pool_settle(&app);
	ck_assert_int_eq(reserves(), 2);
	take_any();
	python_pool_settle(&app);
	ck_assert_int_eq(reserves(), 3);
	teardown();
}
TEST_END

TEST(no_more_reserves_are_made_than_there_are_places)
{
	begin();
	conf.python_warm = 8;
	conf.max_sandboxes = 3;
	take_any();
	python_pool_settle(&app);
	ck_assert_int_eq(reserves(), 2);
	ck_assert_int_eq(live(), 3);
	teardown();
}
TEST_END

TEST(the_oldest_reserve_gives_way_when_all_places_are_taken)
{
	begin();
	struct err err = ERR_INIT;
	conf.python_warm = 2;
	conf.max_sandboxes = 3;
	take_any();
	python_pool_settle(&app);
	AUTO_SANDBOX_ROW oldest = {0};
	ck_assert_int_eq(row_reserve_oldest(app.db, ALICE, clock_wall_ms(), &oldest, &err), 1);
	kit_make("one");
	ck_assert_int_eq(state_of(oldest.id), SANDBOX_GONE);
	ck_assert(!kit_exists("data", oldest.files_id, "") && !kit_exists("run", oldest.id, ""));
	ck_assert_int_eq(reserves(), 1);
	kit_make("two");
	ck_assert_int_eq(reserves(), 0);
	AUTO_SANDBOX_ROW none = {0};
	bool created;
	ck_assert(!sandbox_create(&app, ALICE, &(struct sandbox_options){.name = "three"}, &none,
				  &created, &err));
	ck_assert_int_eq(err.code, ERR_QUOTA);
	ck_assert_int_eq(live(), 3);
	/* Nor does one take a place for itself. */
	python_pool_settle(&app);
	ck_assert_int_eq(live(), 3);
	teardown();
}
TEST_END

static int create_one(int index)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	bool created;
	AUTO_FREE char *name = xasprintf("box-%d", index);
	if (sandbox_create(&app, ALICE, &(struct sandbox_options){.name = name}, &row, &created,
			   &err))
		return 1;
	return err.code == ERR_QUOTA ? 2 : 98;
}

TEST(of_many_that_want_the_places_of_reserves_as_many_get_one_as_there_are)
{
	begin();
	int statuses[100];
	conf.python_warm = 4;
	conf.max_sandboxes = 5;
	fill_up();
	ck_assert_int_eq(reserves(), 4);
	kit_run(8, create_one, statuses);
	ck_assert_int_eq(statuses[1], 4);
	ck_assert_int_eq(statuses[2], 4);
	ck_assert_int_eq(reserves(), 0);
	ck_assert_int_eq(live(), 5);
	teardown();
}
TEST_END

static int take_one(int index)
{
	(void)index;
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	if (!python_pool_take(&app, ALICE, TTL_MS, &row, &err))
		return 98;
	AUTO_FREE char *mark = xasprintf("%s/taken-%s", kit_dir, row.id);
	int fd = open(mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return 97;
	close(fd);
	return is_up(&row) ? 1 : 2;
}

TEST(of_many_calls_at_once_each_gets_a_sandbox_of_its_own)
{
	begin();
	int statuses[100];
	conf.python_warm = 3;
	fill_up();
	kit_run(8, take_one, statuses);
	ck_assert_int_eq(statuses[1], 3);
	ck_assert_int_eq(statuses[2], 5);
	ck_assert_int_eq(live(), 9);
	teardown();
}
TEST_END

static int settle_one(int index)
{
	(void)index;
	app.python_used = true;
	app.python_principal = ALICE;
	python_pool_settle(&app);
	return 1;
}

TEST(of_many_that_fill_at_once_there_are_never_too_many)
{
	begin();
	int statuses[100];
	conf.python_warm = 2;
	kit_slow_ms = 50;
	kit_run(8, settle_one, statuses);
	ck_assert_int_eq(statuses[1], 8);
	ck_assert_int_eq(reserves(), 2);
	ck_assert_int_eq(kit_count('P'), 2);
	teardown();
}
TEST_END

static void die(void)
{
	_exit(1);
}

static int settle_and_die(int index)
{
	before = die;
	return settle_one(index);
}

TEST(a_process_that_dies_while_it_fills_leaves_a_reserve_that_can_be_used)
{
	begin();
	int statuses[100];
	kit_run(1, settle_and_die, statuses);
	ck_assert_int_eq(reserves(), 1);
	/* Its lock is free again, and there is enough. */
	ck_assert_int_eq(settle_one(0), 1);
	ck_assert_int_eq(reserves(), 1);
	take_any();
	ck_assert_int_eq(reserves(), 0);
	python_pool_settle(&app);
	ck_assert_int_eq(reserves(), 1);
	teardown();
}
TEST_END

static void take_it(void)
{
	AUTO_SANDBOX_ROW row = {0};
	struct err err = ERR_INIT;
	before = NULL;
	if (row_reserve_oldest(app.db, ALICE, clock_wall_ms(), &row, &err) != 1 ||
	    row_reserve_take(app.db, &row, TTL_MS, clock_wall_ms(), &err) != 1)
		abort();
}

TEST(a_reserve_that_is_taken_while_it_is_made_ready_is_replaced)
{
	begin();
	before = take_it;
	ck_assert_int_eq(settle_one(0), 1);
	ck_assert_int_eq(reserves(), 1);
	ck_assert_int_eq(live(), 2);
	teardown();
}
TEST_END

TEST(a_reserve_outlives_a_stdio_session_and_one_that_was_taken_in_it_does_not)
{
	begin();
	struct err err = ERR_INIT;
	struct stdio_session session;
	ck_ok(stdio_session_begin(&app, &session, &err), err);
	fill();
	AUTO_SANDBOX_ROW row = take();
	ck_assert(row.ends_with_session);
	ck_assert_str_eq(row.session_id, session.id);
	python_pool_settle(&app);
	ck_assert_int_eq(reserves(), 1);
	stdio_session_end(&app, &session);
	ck_assert_int_eq(state_of(row.id), SANDBOX_GONE);
	ck_assert_int_eq(reserves(), 1);
	ck_assert_int_eq(live(), 1);
	teardown();
}
TEST_END

/* --- those that nobody named ---------------------------------------------------------------- */

/* As if it had not been used for so much longer. */
static void let_pass(const struct sandbox_row *row, int64_t age_ms)
{
	AUTO_FREE char *sql =
		xasprintf("UPDATE sandbox SET last_used_at = last_used_at - %lld WHERE id = '%s'",
			  (long long)age_ms, row->id);
	kit_sql(sql);
}

/* Takes one and gives it back with files that were handed out; it was used so long ago. */
static struct sandbox_row leave(int64_t age_ms)
{
	struct sandbox_row row = take();
	python_pool_release(&app, &row, true);
	python_pool_settle(&app);
	let_pass(&row, age_ms);
	return row;
}

/* ERR_NONE, or why none was made. */
static enum err_code make(const char *name)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	bool created;
	return sandbox_create(&app, ALICE, &(struct sandbox_options){.name = name}, &row, &created,
			      &err)
		       ? ERR_NONE
		       : err.code;
}

static bool gives_way(const char *id)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_any(app.db, id, &row, &err), 1);
	return row.gives_way;
}

TEST(what_is_there_for_links_gives_way_by_its_last_use_but_not_at_once)
{
	begin();
	conf.python_warm = 0;
	conf.max_sandboxes = 3;
	AUTO_SANDBOX_ROW second = leave(70000), first = leave(90000), fresh = leave(6000);
	ck_assert_int_eq(make("one"), ERR_NONE);
	ck_assert_int_eq(state_of(first.id), SANDBOX_GONE);
	ck_assert(!kit_exists("data", first.files_id, "") && !kit_exists("run", first.id, ""));
	ck_assert_int_eq(state_of(second.id), SANDBOX_LIVE);
	ck_assert_int_eq(make("two"), ERR_NONE);
	ck_assert_int_eq(state_of(second.id), SANDBOX_GONE);
	ck_assert_int_eq(make("three"), ERR_QUOTA);
	ck_assert_int_eq(state_of(fresh.id), SANDBOX_LIVE);
	ck_assert_int_eq(live(), 3);
	teardown();
}
TEST_END

TEST(one_whose_worker_was_killed_gives_way_and_one_that_runs_code_does_not)
{
	begin();
	struct err err = ERR_INIT;
	conf.max_sandboxes = 2;
	conf.python_warm = 0;
	AUTO_SANDBOX_ROW fresh = take();
	conf.python_warm = 1;
	ck_assert_int_eq(settle_one(0), 1);
	conf.python_warm = 0;
	AUTO_SANDBOX_ROW ready = take();
	ck_assert(fresh.gives_way && ready.gives_way && is_up(&ready));
	/* Between its taking and its entering nothing holds it. */
	ck_assert_int_eq(make("one"), ERR_QUOTA);
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT, other = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &fresh, &use, &err), err);
	ck_ok(sandbox_enter(&app, &ready, &other, &err), err);
	let_pass(&fresh, 80000);
	let_pass(&ready, 90000);
	ck_assert_int_eq(make("one"), ERR_QUOTA);
	sandbox_leave(&other); /* as the end of a process does */
	ck_assert_int_eq(make("one"), ERR_NONE);
	ck_assert_int_eq(state_of(ready.id), SANDBOX_GONE);
	ck_assert(!is_up(&ready) && !kit_exists("run", ready.id, ""));
	ck_assert_int_eq(make("two"), ERR_QUOTA);
	sandbox_leave(&use);
	ck_assert_int_eq(make("two"), ERR_NONE);
	ck_assert_int_eq(state_of(fresh.id), SANDBOX_GONE);
	teardown();
}
TEST_END

static void add_session(const struct sandbox_row *row, struct python_row *session)
{
	struct err err = ERR_INIT;
	int64_t now = clock_wall_ms();
	*session = (struct python_row){.created_at = now, .last_used_at = now};
	id_make(session->id);
	memcpy(session->sandbox_id, row->id, sizeof(session->sandbox_id));
	ck_assert_int_eq(row_python_insert(app.db, session, ALICE, &err), 1);
}

TEST(one_with_a_session_gives_way_when_the_session_is_over_unless_somebody_named_it)
{
	begin();
	struct err err = ERR_INIT;
	struct python_row ended, idle, unnamed;
	bool created;
	conf.python_warm = 0;
	conf.max_sandboxes = 3;
	AUTO_SANDBOX_ROW first = take(), second = take(), named = take(), found = {0};
	add_session(&first, &ended);
	add_session(&second, &idle);
	add_session(&named, &unnamed);
	let_pass(&first, 90000);
	let_pass(&second, 80000);
	let_pass(&named, 99000);
	ck_assert_int_eq(make("one"), ERR_QUOTA);
	ck_ok(sandbox_ensure(&app, ALICE, named.name, &found, &created, &err), err);
	ck_assert_int_eq(row_python_end(app.db, unnamed.id, PYTHON_WHY_IDLE, 1, &err), 1);
	ck_assert_int_eq(row_python_end(app.db, ended.id, PYTHON_WHY_IDLE, 1, &err), 1);
	ck_assert_int_eq(make("one"), ERR_NONE);
	ck_assert_int_eq(state_of(first.id), SANDBOX_GONE);
	ck_assert_int_eq(make("two"), ERR_QUOTA);
	/* No pass of the reaper is needed. */
	ck_assert_int_eq(row_python_touch(app.db, idle.id, clock_wall_ms() - 301000, &err), 1);
	ck_assert_int_eq(make("two"), ERR_NONE);
	ck_assert_int_eq(state_of(second.id), SANDBOX_GONE);
	ck_assert_int_eq(state_of(named.id), SANDBOX_LIVE);
	ck_assert_int_eq(make("three"), ERR_QUOTA);
	teardown();
}
TEST_END

TEST(one_that_somebody_named_while_its_code_ran_stays_with_its_files)
{
	begin();
	struct err err = ERR_INIT;
	bool created;
	conf.python_warm = 0;
	AUTO_SANDBOX_ROW row = take(), found = {0};
	ck_ok(sandbox_ensure(&app, ALICE, row.name, &found, &created, &err), err);
	python_pool_release(&app, &row, true);
	python_pool_settle(&app);
	ck_assert(!gives_way(row.id));
	teardown();
}
TEST_END

TEST(reserves_give_way_first_and_make_nothing_give_way)
{
	begin();
	conf.python_warm = 0;
	conf.max_sandboxes = 2;
	AUTO_SANDBOX_ROW left = leave(90000);
	conf.python_warm = 1;
	ck_assert_int_eq(settle_one(0), 1);
	ck_assert_int_eq(reserves(), 1);
	ck_assert_int_eq(make("one"), ERR_NONE);
	ck_assert_int_eq(reserves(), 0);
	ck_assert_int_eq(state_of(left.id), SANDBOX_LIVE);
	ck_assert_int_eq(settle_one(0), 1);
	ck_assert_int_eq(reserves(), 0);
	ck_assert_int_eq(state_of(left.id), SANDBOX_LIVE);
	/* The next code without a name is somebody's. */
	take_any();
	ck_assert_int_eq(state_of(left.id), SANDBOX_GONE);
	teardown();
}
TEST_END

TEST(who_changes_something_in_it_makes_it_stay_and_who_reads_does_not)
{
	begin();
	struct err err = ERR_INIT;
	bool created;
	conf.python_warm = 0;
	conf.max_sandboxes = 3;
	AUTO_SANDBOX_ROW by_name = leave(90000), by_id = leave(90000), read = leave(90000);
	AUTO_SANDBOX_ROW one = {0}, two = {0}, three = {0};
	ck_ok(sandbox_ensure(&app, ALICE, by_name.name, &one, &created, &err), err);
	ck_ok(sandbox_ensure(&app, ALICE, by_id.id, &two, &created, &err), err);
	ck_assert(!one.gives_way && !gives_way(by_name.id) && !gives_way(by_id.id));
	ck_ok(sandbox_find(&app, ALICE, read.name, &three, &err), err);
	ck_assert(three.gives_way && gives_way(read.id));
	ck_assert_int_eq(make("one"), ERR_NONE);
	ck_assert_int_eq(state_of(read.id), SANDBOX_GONE);
	ck_assert_int_eq(make("two"), ERR_QUOTA);
	/* Who saw it before, and only now wants to change something, is told when it goes in. */
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_stay(&app, &three, &err), err);
	ck_assert(!sandbox_enter(&app, &three, &use, &err));
	ck_assert_int_eq(err.code, ERR_DESTROYED);
	teardown();
}
TEST_END

TEST(asking_for_it_as_a_sandbox_makes_it_stay)
{
	begin();
	conf.python_warm = 0;
	conf.max_sandboxes = 1;
	AUTO_SANDBOX_ROW row = leave(90000);
	ck_assert_int_eq(make(row.name), ERR_NONE);
	ck_assert_int_eq(state_of(row.id), SANDBOX_LIVE);
	ck_assert(!gives_way(row.id));
	ck_assert_int_eq(make("one"), ERR_QUOTA);
	teardown();
}
TEST_END

TEST(one_that_is_being_read_for_long_does_not_give_way)
{
	begin();
	struct err err = ERR_INIT;
	conf.python_warm = 0;
	conf.max_sandboxes = 2;
	AUTO_SANDBOX_ROW next = leave(70000), row = leave(0);
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	kit_sql("UPDATE sandbox SET last_used_at = last_used_at - 90000");
	ck_assert_int_eq(make("one"), ERR_NONE);
	ck_assert_int_eq(state_of(next.id), SANDBOX_GONE);
	ck_assert_int_eq(make("two"), ERR_QUOTA);
	ck_ok(sandbox_confirm(&use, &err), err);
	sandbox_leave(&use);
	ck_assert_int_eq(make("two"), ERR_NONE);
	ck_assert_int_eq(state_of(row.id), SANDBOX_GONE);
	teardown();
}
TEST_END

TEST(one_that_was_destroyed_before_it_is_given_back_stays_so)
{
	begin();
	struct err err = ERR_INIT;
	struct sandbox_destroyed out = {.name = NULL};
	conf.python_warm = 0;
	AUTO_SANDBOX_ROW row = take();
	ck_ok(sandbox_destroy(&app, ALICE, row.name, false, &out, &err), err);
	free(out.name);
	python_pool_release(&app, &row, true);
	python_pool_settle(&app);
	ck_assert_int_eq(state_of(row.id), SANDBOX_KEPT);
	ck_assert(kit_exists("data", row.files_id, "/workspace"));
	/* Whoever goes on with the files named them. */
	conf.max_sandboxes = 1;
	ck_assert_int_eq(make(row.name), ERR_NONE);
	kit_sql("UPDATE sandbox SET last_used_at = last_used_at - 90000");
	ck_assert_int_eq(make("one"), ERR_QUOTA);
	teardown();
}
TEST_END

#define LEFT 4
static char left_ids[LEFT][ID_LEN + 1];

static void leave_all(void)
{
	for (int i = 0; i < LEFT; i++) {
		AUTO_SANDBOX_ROW row = leave(90000);
		memcpy(left_ids[i], row.id, sizeof(left_ids[i]));
	}
}

TEST(of_many_that_want_the_places_of_what_gives_way_as_many_get_one_as_there_are)
{
	begin();
	int statuses[100];
	conf.python_warm = 0;
	conf.max_sandboxes = LEFT;
	leave_all();
	kit_run(10, create_one, statuses);
	ck_assert_int_eq(statuses[1], LEFT);
	ck_assert_int_eq(statuses[2], 10 - LEFT);
	ck_assert_int_eq(live(), LEFT);
	teardown();
}
TEST_END

/* Enters one, to read or to change something; who is in it keeps it. */
static int enter_one(int index)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = {0};
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	const char *id = left_ids[index % LEFT];
	bool created;
	bool found = index % 2 == 0 ? sandbox_find(&app, ALICE, id, &row, &err)
				    : sandbox_ensure(&app, ALICE, id, &row, &created, &err);
	if (!found || !sandbox_enter(&app, &row, &use, &err))
		return err.code == ERR_DESTROYED || err.code == ERR_NOT_FOUND ? 4 : 98;
	clock_sleep_ms(30);
	return sandbox_confirm(&use, &err) ? 3 : 97;
}

static int enter_or_create(int index)
{
	return index < LEFT ? enter_one(index) : create_one(index);
}

TEST(of_who_enters_one_and_who_wants_its_place_one_gets_it)
{
	int entered = 0, refused = 0;
	for (int round = 0; round < 10; round++) {
		begin();
		int statuses[100];
		conf.python_warm = 0;
		conf.max_sandboxes = LEFT;
		leave_all();
		kit_run(2 * LEFT, enter_or_create, statuses);
		ck_assert_int_eq(statuses[97] + statuses[98], 0);
		ck_assert_int_eq(statuses[3] + statuses[4], LEFT);
		ck_assert_int_eq(statuses[1], statuses[4]);
		ck_assert_int_eq(live(), LEFT);
		entered += statuses[3];
		refused += statuses[4];
		teardown();
	}
	printf("# %d entered, %d found it gone\n", entered, refused);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_first_call_gets_a_new_sandbox_and_the_next_a_ready_one,
		a_settle_without_a_call_since_does_nothing,
		without_ready_sandboxes_each_call_gets_a_new_one,
		a_reserve_is_of_one_principal_and_answers_to_nobody,
		a_reserve_lives_no_longer_than_a_sandbox_without_a_name,
		what_is_given_back_is_gone_at_once_and_removed_afterwards,
		one_whose_files_are_handed_out_is_stopped_and_stays,
		one_that_somebody_uses_by_then_is_left_alone,
		of_several_that_are_given_back_none_is_forgotten,
		a_reserve_that_is_down_when_it_is_taken_is_taken_all_the_same,
		a_python_that_does_not_come_up_ends_the_filling_and_no_call,
		two_reserves_are_made_after_an_answer_and_the_others_after_the_next,
		no_more_reserves_are_made_than_there_are_places,
		the_oldest_reserve_gives_way_when_all_places_are_taken,
		of_many_that_want_the_places_of_reserves_as_many_get_one_as_there_are,
		of_many_calls_at_once_each_gets_a_sandbox_of_its_own,
		of_many_that_fill_at_once_there_are_never_too_many,
		a_process_that_dies_while_it_fills_leaves_a_reserve_that_can_be_used,
		a_reserve_that_is_taken_while_it_is_made_ready_is_replaced,
		a_reserve_outlives_a_stdio_session_and_one_that_was_taken_in_it_does_not,
		what_is_there_for_links_gives_way_by_its_last_use_but_not_at_once,
		one_whose_worker_was_killed_gives_way_and_one_that_runs_code_does_not,
		one_with_a_session_gives_way_when_the_session_is_over_unless_somebody_named_it,
		one_that_somebody_named_while_its_code_ran_stays_with_its_files,
		reserves_give_way_first_and_make_nothing_give_way,
		who_changes_something_in_it_makes_it_stay_and_who_reads_does_not,
		asking_for_it_as_a_sandbox_makes_it_stay,
		one_that_is_being_read_for_long_does_not_give_way,
		one_that_was_destroyed_before_it_is_given_back_stays_so,
		of_many_that_want_the_places_of_what_gives_way_as_many_get_one_as_there_are,
		of_who_enters_one_and_who_wants_its_place_one_gets_it,
	};
	return unit_run("python_pool", unit_tests, ARRAY_LEN(unit_tests));
}
