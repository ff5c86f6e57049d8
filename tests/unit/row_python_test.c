#include "row_kit.h"

#include "store/row_gone.h"
#include "store/row_python.h"

#define ALICE NAME("alice")

static struct sandbox_row sandbox;

static struct python_row store(int64_t at)
{
	struct err err = ERR_INIT;
	if (sandbox.id[0] == '\0') {
		sandbox = kit_row(ALICE, NAME("work"));
		ck_ok(row_sandbox_insert(db, &sandbox, &err) == 1, err);
	}
	struct python_row row = {.created_at = at, .last_used_at = at};
	id_make(row.id);
	memcpy(row.sandbox_id, sandbox.id, sizeof(row.sandbox_id));
	ck_ok(row_python_insert(db, &row, "alice", &err) == 1, err);
	return row;
}

static struct python_row read_back(const char *id)
{
	struct err err = ERR_INIT;
	struct python_row row = {.why = PYTHON_WHY_NONE};
	ck_ok(row_python_by_id(db, "alice", id, &row, &err) == 1, err);
	return row;
}

static bool is_there(const char *id)
{
	struct err err = ERR_INIT;
	struct python_row row;
	int rc = row_python_by_id(db, "alice", id, &row, &err);
	ck_ok(rc >= 0, err);
	return rc == 1;
}

TEST(a_session_comes_back_as_it_was_stored_and_to_its_principal_alone)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row row = store(1000), got = read_back(row.id);
	ck_assert_str_eq(got.id, row.id);
	ck_assert_str_eq(got.sandbox_id, sandbox.id);
	ck_assert_int_eq(got.created_at, 1000);
	ck_assert_int_eq(got.last_used_at, 1000);
	ck_assert_int_eq(got.ended_at, 0);
	ck_assert_int_eq(got.why, PYTHON_WHY_NONE);
	ck_assert_int_eq(row_python_by_id(db, "bob", row.id, &got, &err), 0);
	ck_assert_int_eq(row_python_by_id(db, "alice", sandbox.id, &got, &err), 0);
	teardown();
}
TEST_END

TEST(a_session_needs_a_live_sandbox)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row row = store(1000);
	ck_assert_int_eq(row_sandbox_move(db, sandbox.id, SANDBOX_LIVE, SANDBOX_KEPT, 2000, &err),
			 1);
	id_make(row.id);
	ck_assert_int_eq(row_python_insert(db, &row, "alice", &err), 0);
	ck_assert_int_eq(err.code, ERR_NONE);
	teardown();
}
TEST_END

TEST(a_session_ends_once_and_is_not_touched_afterwards)
{
	setup();
	struct err err = ERR_INIT;
	for (int why = PYTHON_WHY_IDLE; why < PYTHON_WHY__MAX; why++) {
		struct python_row row = store(1000);
		ck_assert_int_eq(row_python_touch(db, row.id, 2000, &err), 1);
		ck_assert_int_eq(read_back(row.id).last_used_at, 2000);
		ck_assert_int_eq(row_python_end(db, row.id, (enum python_why)why, 3000, &err), 1);
		ck_assert_int_eq(row_python_end(db, row.id, PYTHON_WHY_LOST, 4000, &err), 0);
		ck_assert_int_eq(row_python_touch(db, row.id, 5000, &err), 0);
		struct python_row got = read_back(row.id);
		ck_assert_int_eq(got.why, why);
		ck_assert_int_eq(got.ended_at, 3000);
		ck_assert_int_eq(got.last_used_at, 2000);
	}
	teardown();
}
TEST_END

TEST(an_idle_session_is_not_ended_when_it_was_used_since_it_was_seen)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row seen = store(1000);
	ck_assert_int_eq(row_python_touch(db, seen.id, 2000, &err), 1);
	ck_assert_int_eq(row_python_end_idle(db, &seen, 9000, &err), 0);
	seen = read_back(seen.id);
	ck_assert_int_eq(row_python_end_idle(db, &seen, 9000, &err), 1);
	ck_assert_int_eq(row_python_end_idle(db, &seen, 9001, &err), 0);
	ck_assert_int_eq(read_back(seen.id).why, PYTHON_WHY_IDLE);
	ck_assert_int_eq(read_back(seen.id).ended_at, 9000);
	teardown();
}
TEST_END

TEST(the_newest_use_of_a_sandbox_is_that_of_sessions_that_have_not_ended)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row first = store(1000), second = store(5000);
	ck_assert_int_eq(row_python_last_used(db, sandbox.id, &err), 5000);
	ck_assert_int_eq(row_python_end(db, second.id, PYTHON_WHY_EXITED, 6000, &err), 1);
	ck_assert_int_eq(row_python_last_used(db, sandbox.id, &err), 1000);
	ck_assert_int_eq(row_python_end(db, first.id, PYTHON_WHY_EXITED, 6000, &err), 1);
	ck_assert_int_eq(row_python_last_used(db, sandbox.id, &err), 0);
	ck_assert_int_eq(row_python_last_used(db, first.id, &err), 0);
	teardown();
}
TEST_END

struct seen {
	char ids[4][ID_LEN + 1];
	int count, stop_after;
};

static bool note(void *ctx, const struct python_row *row)
{
	struct seen *seen = ctx;
	ck_assert_int_lt(seen->count, 4);
	memcpy(seen->ids[seen->count++], row->id, ID_LEN + 1);
	/* No read is open: a visitor may write. */
	struct err err = ERR_INIT;
	ck_ok(row_python_touch(db, row->id, row->last_used_at, &err) == 1, err);
	return seen->count != seen->stop_after;
}

TEST(unused_sessions_are_visited_the_oldest_first)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row late = store(3000), early = store(1000), ended = store(500),
			  used = store(9000);
	ck_assert_int_eq(row_python_end(db, ended.id, PYTHON_WHY_LOST, 600, &err), 1);
	struct seen seen = {.count = 0};
	ck_ok(row_python_each_unused(db, 3000, note, &seen, &err), err);
	ck_assert_int_eq(seen.count, 2);
	ck_assert_str_eq(seen.ids[0], early.id);
	ck_assert_str_eq(seen.ids[1], late.id);
	seen = (struct seen){.stop_after = 1};
	ck_ok(row_python_each_unused(db, 9000, note, &seen, &err), err);
	ck_assert_int_eq(seen.count, 1);
	ck_assert(is_there(used.id));
	teardown();
}
TEST_END

TEST(stamps_from_the_future_become_now)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row live = store(90000), ended = store(1000), right = store(2000);
	ck_assert_int_eq(row_python_end(db, ended.id, PYTHON_WHY_IDLE, 90000, &err), 1);
	ck_assert_int_eq(row_python_reset(db, 3500, 3000, &err), 2);
	ck_assert_int_eq(row_python_reset(db, 3500, 3000, &err), 0);
	ck_assert_int_eq(read_back(live.id).last_used_at, 3000);
	ck_assert_int_eq(read_back(live.id).ended_at, 0);
	ck_assert_int_eq(read_back(ended.id).ended_at, 3000);
	ck_assert_int_eq(read_back(ended.id).last_used_at, 1000);
	ck_assert_int_eq(read_back(right.id).last_used_at, 2000);
	teardown();
}
TEST_END

TEST(sessions_are_forgotten_when_they_ended_long_ago_or_their_sandbox_is_gone)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row old = store(100), ended = store(100), live = store(100);
	ck_assert_int_eq(row_python_end(db, old.id, PYTHON_WHY_IDLE, 1000, &err), 1);
	ck_assert_int_eq(row_python_end(db, ended.id, PYTHON_WHY_IDLE, 1001, &err), 1);
	ck_assert_int_eq(row_python_count_old(db, 1000, &err), 1);
	ck_assert_int_eq(row_python_forget(db, 1000, 10, &err), 1);
	ck_assert(!is_there(old.id) && is_there(ended.id) && is_there(live.id));
	ck_assert_int_eq(row_sandbox_move(db, sandbox.id, SANDBOX_LIVE, SANDBOX_KEPT, 2000, &err),
			 1);
	ck_assert_int_eq(row_python_count_old(db, 1000, &err), 0);
	ck_assert_int_eq(row_sandbox_move(db, sandbox.id, SANDBOX_KEPT, SANDBOX_GONE, 3000, &err),
			 1);
	ck_assert_int_eq(row_python_count_old(db, 1000, &err), 2);
	ck_assert_int_eq(row_python_forget(db, 1000, 1, &err), 1);
	ck_assert_int_eq(row_python_forget(db, 1000, 10, &err), 1);
	ck_assert_int_eq(row_python_forget(db, 1000, 10, &err), 0);
	teardown();
}
TEST_END

TEST(a_sandbox_that_is_forgotten_takes_its_sessions_with_it)
{
	setup();
	struct err err = ERR_INIT;
	struct python_row row = store(100);
	ck_assert_int_eq(row_sandbox_move(db, sandbox.id, SANDBOX_LIVE, SANDBOX_GONE, 2000, &err),
			 1);
	ck_ok(row_gone_forget(db, sandbox.id, &err) == 1, err);
	ck_assert(!is_there(row.id));
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_session_comes_back_as_it_was_stored_and_to_its_principal_alone,
		a_session_needs_a_live_sandbox,
		a_session_ends_once_and_is_not_touched_afterwards,
		an_idle_session_is_not_ended_when_it_was_used_since_it_was_seen,
		the_newest_use_of_a_sandbox_is_that_of_sessions_that_have_not_ended,
		unused_sessions_are_visited_the_oldest_first,
		stamps_from_the_future_become_now,
		sessions_are_forgotten_when_they_ended_long_ago_or_their_sandbox_is_gone,
		a_sandbox_that_is_forgotten_takes_its_sessions_with_it,
	};
	return unit_run("row_python", unit_tests, ARRAY_LEN(unit_tests));
}
