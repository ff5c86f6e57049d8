#include "base/buf.h"
#include "row_kit.h"

#define ALICE NAME("alice")
#define BOB   NAME("bob")

static void insert_ok(const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	ck_ok(row_sandbox_insert(db, row, &err) == 1, err);
}

TEST(a_row_comes_back_as_it_was_stored)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	row.env = NAME("{\"A\":\"1\"}");
	row.ttl_ms = 500;
	row.expires_at = 1500;
	row.is_explicit = true;
	row.gives_way = true;
	id_make(row.files_id);
	insert_ok(&row);
	AUTO_SANDBOX_ROW got = {0};
	ck_ok(row_sandbox_by_name(db, "alice", "work", &got, &err) == 1, err);
	ck_assert_str_eq(got.id, row.id);
	ck_assert_str_eq(got.files_id, row.files_id);
	ck_assert_str_eq(got.principal, "alice");
	ck_assert_str_eq(got.name, "work");
	ck_assert_int_eq(got.state, SANDBOX_LIVE);
	ck_assert_str_eq(got.template, "base");
	ck_assert_str_eq(got.network, "loopback");
	ck_assert_str_eq(got.env, row.env);
	ck_assert_ptr_null(got.labels);
	ck_assert_int_eq(got.created_at, 1000);
	ck_assert_int_eq(got.last_used_at, 1000);
	ck_assert_int_eq(got.ttl_ms, 500);
	ck_assert_int_eq(got.expires_at, 1500);
	ck_assert(got.is_explicit && got.gives_way && !got.is_reserve);
	AUTO_SANDBOX_ROW by_id = {0};
	ck_assert_int_eq(row_sandbox_by_id(db, "alice", row.id, &by_id, &err), 1);
	ck_assert_str_eq(by_id.name, "work");
	teardown();
}
TEST_END

TEST(another_principal_sees_nothing)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	insert_ok(&row);
	AUTO_SANDBOX_ROW got = {0};
	ck_assert_int_eq(row_sandbox_by_name(db, "bob", "work", &got, &err), 0);
	ck_assert_int_eq(row_sandbox_by_id(db, "bob", row.id, &got, &err), 0);
	struct sandbox_row same_name = kit_row(BOB, NAME("work"));
	insert_ok(&same_name);
	teardown();
}
TEST_END

TEST(a_name_is_taken_until_its_sandbox_is_gone)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row first = kit_row(ALICE, NAME("work"));
	struct sandbox_row second = kit_row(ALICE, NAME("work"));
	insert_ok(&first);
	ck_assert_int_eq(row_sandbox_insert(db, &second, &err), 0);
	ck_assert_int_eq(row_sandbox_move(db, first.id, SANDBOX_LIVE, SANDBOX_KEPT, 2000, &err), 1);
	ck_assert_int_eq(row_sandbox_insert(db, &second, &err), 0);
	ck_assert_int_eq(row_sandbox_move(db, first.id, SANDBOX_KEPT, SANDBOX_GONE, 3000, &err), 1);
	ck_assert_int_eq(row_sandbox_insert(db, &second, &err), 1);
	ck_assert_int_eq(err.code, ERR_NONE);
	AUTO_SANDBOX_ROW got = {0};
	ck_assert_int_eq(row_sandbox_by_name(db, "alice", "work", &got, &err), 1);
	ck_assert_str_eq(got.id, second.id);
	AUTO_SANDBOX_ROW old = {0};
	ck_assert_int_eq(row_sandbox_by_id(db, "alice", first.id, &old, &err), 1);
	ck_assert_int_eq(old.state, SANDBOX_GONE);
	teardown();
}
TEST_END

TEST(an_id_that_exists_is_a_fault_and_not_a_taken_name)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	insert_ok(&row);
	row.name = NAME("other");
	ck_assert_int_eq(row_sandbox_insert(db, &row, &err), -1);
	ck_assert_int_eq(err.code, ERR_INTERNAL);
	teardown();
}
TEST_END

TEST(a_state_moves_only_from_the_one_expected)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	insert_ok(&row);
	ck_assert_int_eq(row_sandbox_move(db, row.id, SANDBOX_KEPT, SANDBOX_GONE, 2000, &err), 0);
	ck_assert_int_eq(row_sandbox_move(db, row.id, SANDBOX_LIVE, SANDBOX_GONE, 2000, &err), 1);
	ck_assert_int_eq(row_sandbox_move(db, row.id, SANDBOX_LIVE, SANDBOX_GONE, 2000, &err), 0);
	teardown();
}
TEST_END

static int64_t last_used(const char *id, int64_t *expires_at)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW got = {0};
	ck_ok(row_sandbox_by_id(db, "alice", id, &got, &err) == 1, err);
	*expires_at = got.expires_at;
	return got.last_used_at;
}

TEST(a_touch_renews_the_lifetime_but_not_too_often)
{
	setup();
	struct err err = ERR_INIT;
	int64_t expires;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	row.ttl_ms = 60000;
	row.expires_at = 61000;
	insert_ok(&row);
	ck_assert_int_eq(row_sandbox_touch(db, row.id, 5999, 5000, &err), 0);
	ck_assert_int_eq(last_used(row.id, &expires), 1000);
	ck_assert_int_eq(row_sandbox_touch(db, row.id, 6000, 5000, &err), 1);
	ck_assert_int_eq(last_used(row.id, &expires), 6000);
	ck_assert_int_eq(expires, 66000);
	/* The clock was set back. */
	ck_assert_int_eq(row_sandbox_touch(db, row.id, 500, 5000, &err), 1);
	ck_assert_int_eq(last_used(row.id, &expires), 500);
	row_sandbox_move(db, row.id, SANDBOX_LIVE, SANDBOX_GONE, 700, &err);
	ck_assert_int_eq(row_sandbox_touch(db, row.id, 90000, 5000, &err), 0);

	struct sandbox_row persistent = kit_row(ALICE, NAME("forever"));
	insert_ok(&persistent);
	ck_assert_int_eq(row_sandbox_touch(db, persistent.id, 9000, 5000, &err), 1);
	ck_assert_int_eq(last_used(persistent.id, &expires), 9000);
	ck_assert_int_eq(expires, 0);
	teardown();
}
TEST_END

TEST(a_stamp_leaves_the_end_where_it_is_and_the_next_touch_moves_it)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	row.ttl_ms = 60000;
	row.expires_at = 61000;
	insert_ok(&row);
	ck_assert_int_eq(row_sandbox_stamp(db, row.id, 5999, 5000, &err), 0);
	ck_assert_int_eq(row_sandbox_stamp(db, row.id, 8000, 5000, &err), 1);
	AUTO_SANDBOX_ROW got = {0};
	ck_assert_int_eq(row_sandbox_by_id(db, "alice", row.id, &got, &err), 1);
	ck_assert_int_eq(got.last_used_at, 8000);
	ck_assert_int_eq(got.expires_at, 61000);
	/* Not due by the stamp, which is a second old, but by the end of the lifetime. */
	ck_assert_int_eq(row_sandbox_touch(db, row.id, 9000, 5000, &err), 1);
	AUTO_SANDBOX_ROW later = {0};
	ck_assert_int_eq(row_sandbox_by_id(db, "alice", row.id, &later, &err), 1);
	ck_assert_int_eq(later.expires_at, 69000);
	ck_assert_int_eq(row_sandbox_touch(db, row.id, 9500, 5000, &err), 0);
	teardown();
}
TEST_END

TEST(a_touch_that_is_not_due_does_not_wait_for_a_writer)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	insert_ok(&row);
	struct db *writer = kit_open();
	AUTO_TX tx = TX_INIT;
	ck_ok(db_begin(writer, &tx, &err), err);
	int64_t start = clock_mono_ms();
	ck_assert_int_eq(row_sandbox_touch(db, row.id, 2000, 5000, &err), 0);
	ck_assert_int_lt(clock_mono_ms() - start, 1000);
	db_rollback(&tx);
	db_close(writer);
	teardown();
}
TEST_END

TEST(only_live_rows_are_counted)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row a = kit_row(ALICE, NAME("a")), b = kit_row(BOB, NAME("b"));
	struct sandbox_row c = kit_row(ALICE, NAME("c"));
	ck_assert_int_eq(row_sandbox_count_live(db, &err), 0);
	insert_ok(&a);
	insert_ok(&b);
	insert_ok(&c);
	ck_assert_int_eq(row_sandbox_count_live(db, &err), 3);
	row_sandbox_move(db, a.id, SANDBOX_LIVE, SANDBOX_KEPT, 1, &err);
	row_sandbox_move(db, b.id, SANDBOX_LIVE, SANDBOX_GONE, 1, &err);
	ck_assert_int_eq(row_sandbox_count_live(db, &err), 1);
	teardown();
}
TEST_END

static bool note_due(void *ctx, const struct sandbox_row *row)
{
	struct buf *names = ctx;
	buf_printf(names, "%s ", row->name);
	return true;
}

/* Names that one of the row_sandbox_each_* visits. */
typedef bool due_each(struct db *db, int64_t at, row_sandbox_visit *visit, void *ctx,
		      struct err *err);
static const char *due(due_each *each, int64_t at)
{
	static struct buf names;
	struct err err = ERR_INIT;
	buf_clear(&names);
	ck_ok(each(db, at, note_due, &names, &err), err);
	return buf_str(&names);
}

TEST(what_is_due_comes_the_oldest_first)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row late = kit_row(ALICE, NAME("late")), early = kit_row(BOB, NAME("early"));
	struct sandbox_row never = kit_row(ALICE, NAME("never"));
	late.ttl_ms = early.ttl_ms = 10;
	late.expires_at = 300;
	early.expires_at = 200;
	late.last_used_at = 500;
	early.last_used_at = 400;
	insert_ok(&late);
	insert_ok(&never);
	insert_ok(&early);
	ck_assert_str_eq(due(row_sandbox_each_over, 199), "");
	ck_assert_str_eq(due(row_sandbox_each_over, 5000), "early late ");
	ck_assert_str_eq(due(row_sandbox_each_unused, 499), "early ");
	ck_assert_str_eq(due(row_sandbox_each_unused, 1000), "early late never ");
	ck_assert_str_eq(due(row_sandbox_each_used, 1000), "never ");
	ck_assert_str_eq(due(row_sandbox_each_kept, 9999), "");
	ck_assert_int_eq(row_sandbox_move(db, early.id, SANDBOX_LIVE, SANDBOX_KEPT, 700, &err), 1);
	ck_assert_str_eq(due(row_sandbox_each_over, 5000), "late ");
	ck_assert_str_eq(due(row_sandbox_each_unused, 1000), "late never ");
	ck_assert_str_eq(due(row_sandbox_each_kept, 699), "");
	ck_assert_str_eq(due(row_sandbox_each_kept, 700), "early ");
	AUTO_SANDBOX_ROW kept = {0};
	ck_assert_int_eq(row_sandbox_any(db, early.id, &kept, &err), 1);
	ck_assert_int_eq(kept.ended_at, 700);
	teardown();
}
TEST_END

TEST(stamps_from_the_future_become_now)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW got = {0};
	struct sandbox_row row = kit_row(ALICE, NAME("future")), fine = kit_row(BOB, NAME("fine"));
	row.ttl_ms = fine.ttl_ms = 100;
	row.last_used_at = 9000;
	row.expires_at = 9100;
	fine.last_used_at = 5000;
	fine.expires_at = 5100;
	insert_ok(&row);
	insert_ok(&fine);
	ck_assert_str_eq(due(row_sandbox_each_future, 9000), "");
	ck_assert_str_eq(due(row_sandbox_each_future, 5000), "future ");
	struct sandbox_row stale = row;
	stale.last_used_at = 1;
	ck_assert_int_eq(row_sandbox_unfuture(db, &stale, 5000, &err), 0);
	ck_assert_int_eq(row_sandbox_unfuture(db, &row, 5000, &err), 1);
	ck_assert_int_eq(row_sandbox_any(db, row.id, &got, &err), 1);
	ck_assert_int_eq(got.last_used_at, 5000);
	ck_assert_int_eq(got.expires_at, 5100);
	ck_assert_int_eq(got.ended_at, 0);
	teardown();
}
TEST_END

TEST(a_sandbox_ends_only_as_it_was_seen)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	insert_ok(&row);
	ck_assert_int_eq(row_sandbox_stamp(db, row.id, 2000, 0, &err), 1);
	ck_assert_int_eq(row_sandbox_end(db, &row, 3000, &err), 0);
	row.last_used_at = 2000;
	ck_assert_int_eq(row_sandbox_end(db, &row, 3000, &err), 1);
	ck_assert_int_eq(row_sandbox_end(db, &row, 3000, &err), 0);
	AUTO_SANDBOX_ROW got = {0};
	ck_assert_int_eq(row_sandbox_any(db, row.id, &got, &err), 1);
	ck_assert_int_eq(got.state, SANDBOX_GONE);
	ck_assert_int_eq(got.ended_at, 3000);
	teardown();
}
TEST_END

struct seen {
	char names[64];
	int stop_after;
};

static bool see(void *ctx, const struct sandbox_row *row)
{
	struct seen *seen = ctx;
	struct err err = ERR_INIT;
	strcat(seen->names, row->name);
	/* A visitor may use the table itself. */
	ck_assert_int_ge(row_sandbox_touch(db, row->id, 99999, 0, &err), 0);
	return --seen->stop_after != 0;
}

TEST(live_and_kept_sandboxes_of_one_principal_are_visited_by_name)
{
	setup();
	struct err err = ERR_INIT;
	static const char *const names[] = {"c", "a", "d", "b"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct sandbox_row row = kit_row(ALICE, NAME(names[i]));
		insert_ok(&row);
		if (i == 0)
			row_sandbox_move(db, row.id, SANDBOX_LIVE, SANDBOX_KEPT, 1, &err);
		if (i == 2)
			row_sandbox_move(db, row.id, SANDBOX_LIVE, SANDBOX_GONE, 1, &err);
	}
	struct sandbox_row foreign = kit_row(BOB, NAME("aa"));
	insert_ok(&foreign);
	struct seen all = {"", 0}, two = {"", 2};
	ck_ok(row_sandbox_each(db, "alice", see, &all, &err), err);
	ck_assert_str_eq(all.names, "abc");
	ck_ok(row_sandbox_each(db, "alice", see, &two, &err), err);
	ck_assert_str_eq(two.names, "ab");
	teardown();
}
TEST_END

static bool insert_same_name(struct db *mine, int index, void *ctx)
{
	(void)index;
	(void)ctx;
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(ALICE, NAME("work"));
	return row_sandbox_insert(mine, &row, &err) == 1;
}

TEST(of_many_that_insert_one_name_one_succeeds)
{
	setup();
	ck_assert_int_eq(kit_run(16, insert_same_name, NULL), 1);
	teardown();
}
TEST_END

/* Touches and inserts for a second; answers whether nothing failed. */
static bool work_for_a_second(struct db *mine, int index, void *ctx)
{
	const char *shared = ctx;
	struct err err = ERR_INIT;
	int64_t end = clock_mono_ms() + 1000;
	for (int i = 0; clock_mono_ms() < end; i++) {
		AUTO_FREE char *name = xasprintf("w%d-%d", index, i);
		struct sandbox_row row = kit_row(ALICE, name);
		AUTO_SANDBOX_ROW got = {0};
		AUTO_TX tx = TX_INIT;
		bool ok = row_sandbox_touch(mine, shared, clock_wall_ms(), 0, &err) >= 0 &&
			  db_begin(mine, &tx, &err) && row_sandbox_count_live(mine, &err) >= 0 &&
			  row_sandbox_insert(mine, &row, &err) == 1 && db_commit(&tx, &err) &&
			  row_sandbox_by_name(mine, "alice", name, &got, &err) == 1 &&
			  row_sandbox_move(mine, row.id, SANDBOX_LIVE, SANDBOX_GONE, 1, &err) == 1;
		if (!ok) {
			fprintf(stderr, "# %s: %s [%s]\n", err_name(err.code), err.msg, err.trace);
			return false;
		}
	}
	return true;
}

TEST(thirty_two_writers_at_once_never_see_a_locked_database)
{
	setup();
	struct sandbox_row row = kit_row(ALICE, NAME("shared"));
	insert_ok(&row);
	ck_assert_int_eq(kit_run(32, work_for_a_second, row.id), 32);
	struct err err = ERR_INIT;
	ck_assert_int_eq(row_sandbox_count_live(db, &err), 1);
	teardown();
}
TEST_END

/* --- sessions ------------------------------------------------------------------------------ */

#define SESSION "0123456789abcdef0123456789abcdef"

static struct sandbox_row of_session(char *name)
{
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(NAME("alice"), name);
	memcpy(row.session_id, SESSION, sizeof(row.session_id));
	row.ends_with_session = true;
	ck_ok(row_sandbox_insert(db, &row, &err) == 1, err);
	return row;
}

static bool note_name(void *ctx, const struct sandbox_row *row)
{
	ck_assert_str_eq(row->session_id, SESSION);
	ck_assert(row->ends_with_session);
	buf_printf(ctx, "%s ", row->name);
	return true;
}

static char *names_of_session(void)
{
	struct err err = ERR_INIT;
	struct buf names = BUF_INIT;
	ck_ok(row_sandbox_each_of_session(db, SESSION, note_name, &names, &err), err);
	return buf_take(&names);
}

TEST(a_session_ends_what_is_marked_and_a_retained_one_is_not)
{
	struct err err = ERR_INIT;
	setup();
	struct sandbox_row goes = of_session(NAME("goes"));
	struct sandbox_row stays = of_session(NAME("stays"));
	struct sandbox_row other = kit_row(NAME("alice"), NAME("other"));
	ck_assert_int_eq(row_sandbox_insert(db, &other, &err), 1);
	ck_assert_int_eq(row_sandbox_retain(db, stays.id, &err), 1);
	ck_assert_int_eq(row_sandbox_retain(db, stays.id, &err), 0);
	ck_assert_int_eq(row_sandbox_retain(db, other.id, &err), 0);
	AUTO_FREE char *names = names_of_session();
	ck_assert_str_eq(names, "goes ");
	ck_assert_int_eq(row_sandbox_end_with_session(db, stays.id, 9, &err), 0);
	ck_assert_int_eq(row_sandbox_end_with_session(db, other.id, 9, &err), 0);
	ck_assert_int_eq(row_sandbox_end_with_session(db, goes.id, 9, &err), 1);
	ck_assert_int_eq(row_sandbox_end_with_session(db, goes.id, 9, &err), 0);
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_by_id(db, "alice", goes.id, &row, &err), 1);
	ck_assert_int_eq(row.state, SANDBOX_GONE);
	teardown();
}
TEST_END

TEST(one_that_is_gone_is_visited_until_it_is_settled_and_cannot_be_retained)
{
	struct err err = ERR_INIT;
	setup();
	struct sandbox_row row = of_session(NAME("goes"));
	ck_assert_int_eq(row_sandbox_settled(db, row.id, &err), 0);
	ck_assert_int_eq(row_sandbox_end_with_session(db, row.id, 9, &err), 1);
	ck_assert_int_eq(row_sandbox_retain(db, row.id, &err), 0);
	AUTO_FREE char *before = names_of_session();
	ck_assert_str_eq(before, "goes ");
	ck_assert_int_eq(row_sandbox_settled(db, row.id, &err), 1);
	AUTO_FREE char *after = names_of_session();
	ck_assert_str_eq(after, "");
	teardown();
}
TEST_END

TEST(a_sandbox_that_somebody_destroyed_is_none_of_its_session)
{
	struct err err = ERR_INIT;
	setup();
	struct sandbox_row row = of_session(NAME("goes"));
	ck_assert_int_eq(row_sandbox_move(db, row.id, SANDBOX_LIVE, SANDBOX_KEPT, 9, &err), 1);
	AUTO_FREE char *names = names_of_session();
	ck_assert_str_eq(names, "");
	teardown();
}
TEST_END

/* The names of those that give way, in their order. */
static bool add_name(void *ctx, const struct sandbox_row *row)
{
	buf_puts(ctx, row->name);
	return row->gives_way;
}

static bool gives_way(int64_t until, const char *names)
{
	struct err err = ERR_INIT;
	AUTO_BUF found = BUF_INIT;
	ck_ok(row_sandbox_each_giving_way(db, until, add_name, &found, &err), err);
	return strcmp(buf_str(&found), names) == 0;
}

TEST(one_that_gives_way_does_so_by_its_last_use_until_somebody_lets_it_stay)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row rows[3];
	for (int i = 0; i < 3; i++) {
		rows[i] = kit_row(ALICE, (char *[]){NAME("a"), NAME("b"), NAME("c")}[i]);
		rows[i].last_used_at = 3000 - i * 1000;
		rows[i].gives_way = true;
		insert_ok(&rows[i]);
	}
	struct sandbox_row stays = kit_row(ALICE, NAME("stays"));
	insert_ok(&stays);
	ck_assert(gives_way(9000, "cba") && gives_way(2000, "cb") && gives_way(999, ""));
	ck_assert_int_eq(row_sandbox_stay(db, rows[1].id, &err), 1);
	ck_assert_int_eq(row_sandbox_stay(db, rows[1].id, &err), 0);
	ck_assert(gives_way(9000, "ca"));
	teardown();
}
TEST_END

TEST(one_that_is_not_live_neither_gives_way_nor_stays)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row gone = kit_row(ALICE, NAME("gone")), kept = kit_row(ALICE, NAME("kept"));
	gone.gives_way = kept.gives_way = true;
	insert_ok(&gone);
	insert_ok(&kept);
	ck_assert_int_eq(row_sandbox_move(db, gone.id, SANDBOX_LIVE, SANDBOX_GONE, 2000, &err), 1);
	ck_assert_int_eq(row_sandbox_move(db, kept.id, SANDBOX_LIVE, SANDBOX_KEPT, 2000, &err), 1);
	ck_assert(gives_way(9000, ""));
	ck_assert_int_eq(row_sandbox_stay(db, gone.id, &err), 0);
	ck_assert_int_eq(row_sandbox_stay(db, kept.id, &err), 0);
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_row_comes_back_as_it_was_stored,
		another_principal_sees_nothing,
		a_name_is_taken_until_its_sandbox_is_gone,
		an_id_that_exists_is_a_fault_and_not_a_taken_name,
		a_state_moves_only_from_the_one_expected,
		a_touch_renews_the_lifetime_but_not_too_often,
		a_stamp_leaves_the_end_where_it_is_and_the_next_touch_moves_it,
		a_touch_that_is_not_due_does_not_wait_for_a_writer,
		only_live_rows_are_counted,
		what_is_due_comes_the_oldest_first,
		stamps_from_the_future_become_now,
		a_sandbox_ends_only_as_it_was_seen,
		live_and_kept_sandboxes_of_one_principal_are_visited_by_name,
		a_session_ends_what_is_marked_and_a_retained_one_is_not,
		one_that_is_gone_is_visited_until_it_is_settled_and_cannot_be_retained,
		a_sandbox_that_somebody_destroyed_is_none_of_its_session,
		one_that_gives_way_does_so_by_its_last_use_until_somebody_lets_it_stay,
		one_that_is_not_live_neither_gives_way_nor_stays,
		of_many_that_insert_one_name_one_succeeds,
		thirty_two_writers_at_once_never_see_a_locked_database,
	};
	return unit_run("row_sandbox", unit_tests, ARRAY_LEN(unit_tests));
}
