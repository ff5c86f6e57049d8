/* The one definition of idle. */
#include "box/idle.h"

#include "reap_kit.h"

static struct idle idle;

static void look(const char *id)
{
	struct err err = ERR_INIT;
	struct timeline timeline;
	AUTO_SANDBOX_ROW row = {0};
	ck_assert_int_eq(row_sandbox_any(app.db, id, &row, &err), 1);
	ck_ok(timeline_read(&app, &timeline, &err), err);
	idle_of(&app, &timeline, &row, &idle);
}

TEST(an_unused_sandbox_is_stopped_after_hours_and_removed_after_days)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	look(row.id);
	ck_assert(!idle.in_use && !idle.stop_due && !idle.remove_due);
	ck_assert_int_eq(idle.since, row.last_used_at);
	ck_assert_int_eq(idle.stop_at, row.last_used_at + 2 * HOUR);
	ck_assert_int_eq(idle.remove_at, row.last_used_at + 7 * DAY);
	ck_assert_str_eq(idle.why, "idle");
	reap_later(2 * HOUR - MINUTE);
	look(row.id);
	ck_assert(!idle.stop_due);
	reap_later(MINUTE);
	look(row.id);
	ck_assert(idle.stop_due && !idle.remove_due);
	reap_later(7 * DAY);
	look(row.id);
	ck_assert(idle.stop_due && idle.remove_due);
	reap_end();
}
TEST_END

TEST(idle_counts_from_the_end_of_a_use)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	AUTO_SANDBOX_USE use = SANDBOX_USE_INIT;
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
	reap_later(30 * DAY);
	look(row.id);
	ck_assert(idle.in_use && !idle.stop_due && !idle.remove_due);
	ck_assert_int_eq(idle.stop_at, 0);
	ck_assert_int_eq(idle.remove_at, 0);
	sandbox_touch(&app, &row);
	sandbox_leave(&use);
	look(row.id);
	ck_assert(!idle.in_use && !idle.stop_due && !idle.remove_due);
	ck_assert_int_ge(idle.since, row.last_used_at + 30 * DAY);
	reap_end();
}
TEST_END

TEST(a_lifetime_replaces_the_idle_time_be_it_longer_or_shorter)
{
	reap_begin();
	AUTO_SANDBOX_ROW brief =
		kit_create(&(struct sandbox_options){.name = "brief", .ttl_ms = HOUR});
	AUTO_SANDBOX_ROW lasting =
		kit_create(&(struct sandbox_options){.name = "lasting", .ttl_ms = 30 * DAY});
	look(brief.id);
	ck_assert_int_eq(idle.remove_at, brief.expires_at);
	ck_assert_int_eq(idle.stop_at, 0); /* it goes before */
	ck_assert_str_eq(idle.why, "lifetime");
	reap_later(8 * DAY);
	look(lasting.id);
	ck_assert(!idle.remove_due && idle.stop_due);
	ck_assert_int_eq(idle.remove_at, lasting.expires_at);
	look(brief.id);
	ck_assert(idle.remove_due);
	reap_end();
}
TEST_END

TEST(kept_files_count_from_the_destroy)
{
	reap_begin();
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW row = kit_named("work");
	struct sandbox_destroyed done = {0};
	reap_later(6 * DAY);
	ck_ok(sandbox_destroy(&app, ALICE, "work", false, &done, &err), err);
	free(done.name);
	reap_later(6 * DAY);
	look(row.id);
	ck_assert(!idle.remove_due);
	ck_assert_int_eq(idle.stop_at, 0);
	ck_assert_str_eq(idle.why, "kept");
	reap_later(DAY);
	look(row.id);
	ck_assert(idle.remove_due);
	reap_end();
}
TEST_END

TEST(a_clock_that_jumped_makes_nothing_old)
{
	reap_begin();
	AUTO_SANDBOX_ROW row =
		kit_create(&(struct sandbox_options){.name = "brief", .ttl_ms = HOUR});
	AUTO_SANDBOX_ROW work = kit_named("work");
	reap_jump(10 * YEAR);
	look(row.id);
	ck_assert(!idle.remove_due && !idle.stop_due);
	ck_assert(!sandbox_is_over(&app, &row));
	look(work.id);
	ck_assert(!idle.remove_due && !idle.stop_due);
	ck_assert_int_gt(idle.remove_at, work.last_used_at + 10 * YEAR);
	reap_later(HOUR + MINUTE);
	ck_assert(sandbox_is_over(&app, &row));
	reap_end();
}
TEST_END

TEST(nothing_is_due_for_a_row_whose_stamps_cannot_be_true)
{
	reap_begin();
	static const char *const damages[] = {
		"last_used_at = 0",
		"last_used_at = -5",
		"last_used_at = -9223372036854775807",
		"last_used_at = 1000000",
		"ttl_ms = -1",
		"expires_at = 1",
		"ttl_ms = 60000",
		"ttl_ms = 60000, expires_at = 59999",
		"ttl_ms = 9223372036854775807, expires_at = 1",
	};
	AUTO_SANDBOX_ROW row = kit_named("work");
	reap_later(100 * DAY);
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		AUTO_FREE char *sql = xasprintf("UPDATE sandbox SET %s", damages[i]);
		AUTO_FREE char *back = xasprintf("UPDATE sandbox SET ttl_ms = 0, expires_at = 0,"
						 " last_used_at = %lld",
						 (long long)row.last_used_at);
		kit_sql(back);
		look(row.id);
		ck_assert(idle.remove_due);
		kit_sql(sql);
		look(row.id);
		ck_assert_msg(!idle.remove_due && !idle.stop_due && idle.remove_at == 0, "%s",
			      damages[i]);
	}
	reap_end();
}
TEST_END

TEST(a_stamp_from_the_future_is_not_old)
{
	reap_begin();
	AUTO_SANDBOX_ROW row = kit_named("work");
	kit_sql("UPDATE sandbox SET last_used_at = last_used_at + 1000000000000");
	look(row.id);
	ck_assert(!idle.remove_due && !idle.stop_due);
	ck_assert_int_eq(idle.age_ms, 0);
	reap_end();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		an_unused_sandbox_is_stopped_after_hours_and_removed_after_days,
		idle_counts_from_the_end_of_a_use,
		a_lifetime_replaces_the_idle_time_be_it_longer_or_shorter,
		kept_files_count_from_the_destroy,
		a_clock_that_jumped_makes_nothing_old,
		nothing_is_due_for_a_row_whose_stamps_cannot_be_true,
		a_stamp_from_the_future_is_not_old,
	};
	return unit_run("idle", tests, ARRAY_LEN(tests));
}
