#include "row_kit.h"

#include "store/row_reserve.h"

#define ALICE NAME("alice")
#define BOB   NAME("bob")

static struct sandbox_row store(char *principal, char *name, int64_t created_at, int64_t expires_at)
{
	struct err err = ERR_INIT;
	struct sandbox_row row = kit_row(principal, name);
	row.is_reserve = true;
	row.created_at = created_at;
	row.ttl_ms = 1800;
	row.expires_at = expires_at;
	ck_ok(row_sandbox_insert(db, &row, &err) == 1, err);
	return row;
}

static bool is_oldest(const char *principal, int64_t now, const struct sandbox_row *row)
{
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW got = {0};
	int rc = row_reserve_oldest(db, principal, now, &got, &err);
	ck_ok(rc >= 0, err);
	return row == NULL ? rc == 0 : rc == 1 && strcmp(got.id, row->id) == 0 && got.is_reserve;
}

static bool count_one(void *ctx, const struct sandbox_row *row)
{
	(void)row;
	++*(int *)ctx;
	return true;
}

TEST(people_do_not_see_reserves_and_the_clean_up_and_the_limit_do)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = store(ALICE, NAME("calm-otter"), 1000, 2000);
	AUTO_SANDBOX_ROW got = {0}, by_id = {0};
	int seen = 0, over = 0, unused = 0;
	ck_assert_int_eq(row_sandbox_by_name(db, "alice", "calm-otter", &got, &err), 0);
	ck_ok(row_sandbox_each(db, "alice", count_one, &seen, &err), err);
	ck_assert_int_eq(seen, 0);
	ck_assert_int_eq(row_sandbox_any(db, row.id, &by_id, &err), 1);
	ck_assert(by_id.is_reserve);
	ck_ok(row_sandbox_each_over(db, 2000, count_one, &over, &err), err);
	ck_ok(row_sandbox_each_unused(db, 2000, count_one, &unused, &err), err);
	ck_assert_int_eq(over, 1);
	ck_assert_int_eq(unused, 1);
	ck_assert_int_eq(row_sandbox_count_live(db, &err), 1);
	ck_assert_int_eq(row_reserve_count(db, &err), 1);
	teardown();
}
TEST_END

TEST(the_oldest_that_is_not_over_is_found_by_principal)
{
	setup();
	struct sandbox_row second = store(ALICE, NAME("b"), 2000, 9000);
	struct sandbox_row first = store(ALICE, NAME("a"), 1000, 3000);
	struct sandbox_row bobs = store(BOB, NAME("c"), 500, 9000);
	ck_assert(is_oldest("alice", 2999, &first));
	ck_assert(is_oldest("alice", 3000, &second));
	ck_assert(is_oldest("bob", 3000, &bobs));
	ck_assert(is_oldest(NULL, 3000, &bobs));
	ck_assert(is_oldest("alice", 9000, NULL));
	teardown();
}
TEST_END

TEST(one_that_is_taken_is_an_ordinary_sandbox_that_begins_now)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row row = store(ALICE, NAME("calm-otter"), 1000, 2000);
	id_make(row.session_id);
	row.ends_with_session = true;
	ck_assert_int_eq(row_reserve_take(db, &row, 500, 1500, &err), 1);
	ck_assert_int_eq(row_reserve_take(db, &row, 500, 1500, &err), 0);
	ck_assert_int_eq(row_reserve_end(db, row.id, 1600, &err), 0);
	AUTO_SANDBOX_ROW got = {0};
	ck_assert_int_eq(row_sandbox_by_name(db, "alice", "calm-otter", &got, &err), 1);
	ck_assert(!row.is_reserve && !got.is_reserve && row.gives_way && got.gives_way);
	ck_assert_int_eq(got.created_at, 1500);
	ck_assert_int_eq(got.last_used_at, 1500);
	ck_assert_int_eq(got.ttl_ms, 500);
	ck_assert_int_eq(got.expires_at, 2000);
	ck_assert_str_eq(got.session_id, row.session_id);
	ck_assert(got.ends_with_session);
	ck_assert_int_eq(row.expires_at, 2000);
	ck_assert_int_eq(row_reserve_count(db, &err), 0);
	struct sandbox_row forever = store(ALICE, NAME("other"), 1000, 2000);
	ck_assert_int_eq(row_reserve_take(db, &forever, 0, 1500, &err), 1);
	AUTO_SANDBOX_ROW kept = {0};
	ck_assert_int_eq(row_sandbox_any(db, forever.id, &kept, &err), 1);
	ck_assert_int_eq(kept.expires_at, 0);
	ck_assert_str_eq(kept.session_id, "");
	teardown();
}
TEST_END

TEST(one_that_gave_way_or_was_cleaned_up_cannot_be_taken)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_row one = store(ALICE, NAME("a"), 1000, 2000);
	struct sandbox_row two = store(ALICE, NAME("b"), 1000, 2000);
	ck_assert_int_eq(row_reserve_end(db, one.id, 1500, &err), 1);
	ck_assert_int_eq(row_reserve_take(db, &one, 500, 1500, &err), 0);
	AUTO_SANDBOX_ROW got = {0};
	ck_assert_int_eq(row_sandbox_any(db, one.id, &got, &err), 1);
	ck_assert_int_eq(got.state, SANDBOX_GONE);
	ck_assert_int_eq(got.ended_at, 1500);
	ck_assert_int_eq(row_sandbox_end(db, &two, 1500, &err), 1);
	ck_assert_int_eq(row_reserve_take(db, &two, 500, 1500, &err), 0);
	ck_assert_int_eq(row_reserve_count(db, &err), 0);
	teardown();
}
TEST_END

static bool take_one(struct db *mine, int index, void *ctx)
{
	struct err err = ERR_INIT;
	struct sandbox_row row = *(const struct sandbox_row *)ctx;
	int rc = index % 4 == 3 ? row_reserve_end(mine, row.id, 1500, &err)
				: row_reserve_take(mine, &row, 500, 1500, &err);
	if (rc < 0)
		abort();
	return rc == 1;
}

TEST(of_many_that_want_one_reserve_one_gets_it)
{
	setup();
	struct sandbox_row row = store(ALICE, NAME("a"), 1000, 2000);
	ck_assert_int_eq(kit_run(16, take_one, &row), 1);
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		people_do_not_see_reserves_and_the_clean_up_and_the_limit_do,
		the_oldest_that_is_not_over_is_found_by_principal,
		one_that_is_taken_is_an_ordinary_sandbox_that_begins_now,
		one_that_gave_way_or_was_cleaned_up_cannot_be_taken,
		of_many_that_want_one_reserve_one_gets_it,
	};
	return unit_run("row_reserve", unit_tests, ARRAY_LEN(unit_tests));
}
