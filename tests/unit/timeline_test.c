/* Ages on clocks that the test sets: nothing here waits for time to pass. */
#include <fcntl.h>

#include "row_kit.h"

#include "box/timeline.h"

#define MINUTE (60 * 1000LL)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define YEAR   (365 * DAY)
#define START  1700000000000LL
#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000000"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000000"

static int64_t wall, boot;

static int64_t fake_wall(void)
{
	return wall;
}

static int64_t fake_boot(void)
{
	return boot;
}

static struct clock_source source = {fake_wall, fake_boot, fake_boot, BOOT_A};
static struct app app;

static void begin(void)
{
	setup();
	app.db = db;
	wall = START;
	boot = 3 * HOUR;
	source.boot_id = BOOT_A;
	clock_use(&source);
}

static void end(void)
{
	clock_use(NULL);
	teardown();
}

static void pass(int64_t ms)
{
	wall += ms;
	boot += ms;
}

static void restart(const char *boot_id, int64_t up_ms)
{
	source.boot_id = boot_id;
	boot = up_ms;
}

static struct timeline look(void)
{
	struct err err = ERR_INIT;
	struct timeline timeline;
	ck_ok(timeline_read(&app, &timeline, &err), err);
	return timeline;
}

static struct timeline record(void)
{
	struct err err = ERR_INIT;
	struct timeline timeline;
	ck_ok(timeline_record(&app, &timeline, &err), err);
	return timeline;
}

static int64_t age(int64_t stamp)
{
	struct timeline timeline = look();
	return timeline_age(&timeline, stamp);
}

TEST(the_clocks_of_the_system_are_used_unless_a_test_sets_others)
{
	char id[CLOCK_BOOT_ID_LEN], again[CLOCK_BOOT_ID_LEN];
	clock_boot_id(id);
	clock_boot_id(again);
	ck_assert_uint_eq(strlen(id), CLOCK_BOOT_ID_LEN - 1);
	ck_assert_str_eq(id, again);
	int64_t before = clock_boot_ms();
	clock_sleep_ms(20);
	int64_t passed = clock_boot_ms() - before;
	ck_assert_int_ge(passed, 19);
	ck_assert_int_ge(clock_boot_ms(), clock_mono_ms() - 1000);
	wall = 5;
	boot = 6;
	clock_use(&source);
	ck_assert_int_eq(clock_wall_ms(), 5);
	ck_assert_int_eq(clock_mono_ms(), 6);
	ck_assert_int_eq(clock_boot_ms(), 6);
	clock_boot_id(id);
	ck_assert_str_eq(id, BOOT_A);
	clock_use(NULL);
	ck_assert_int_gt(clock_wall_ms(), START);
}
TEST_END

TEST(the_first_reading_knows_no_jump)
{
	begin();
	struct timeline timeline = look();
	ck_assert(timeline.is_first && !timeline.restarted);
	ck_assert_int_eq(timeline.jump_ms, 0);
	ck_assert_int_eq(timeline.gap_count, 0);
	ck_assert_int_eq(timeline.now, START);
	ck_assert_int_eq(timeline_age(&timeline, START - DAY), DAY);
	ck_assert(record().is_first);
	ck_assert(!look().is_first);
	end();
}
TEST_END

TEST(time_that_passes_is_age)
{
	begin();
	record();
	pass(3 * DAY);
	struct timeline timeline = look();
	ck_assert_int_eq(timeline.jump_ms, 0);
	ck_assert_int_eq(timeline_age(&timeline, START), 3 * DAY);
	ck_assert_int_eq(timeline_cutoff(&timeline, 2 * DAY), START + DAY);
	ck_assert_int_eq(timeline_due(&timeline, START, 5 * DAY), START + 5 * DAY);
	end();
}
TEST_END

TEST(ten_years_forward_make_nothing_old_before_and_after_a_pass_saw_them)
{
	begin();
	int64_t stamp = START - HOUR;
	record();
	pass(HOUR);
	wall += 10 * YEAR;
	struct timeline timeline = look();
	ck_assert_int_eq(timeline.jump_ms, 10 * YEAR);
	ck_assert(!timeline.restarted);
	ck_assert_int_eq(timeline_age(&timeline, stamp), 2 * HOUR);
	ck_assert_int_eq(timeline_age(&timeline, START + HOUR), 0); /* just before the jump */
	ck_assert_int_eq(record().jump_ms, 10 * YEAR);
	timeline = look();
	ck_assert_int_eq(timeline.jump_ms, 0);
	ck_assert_int_eq(timeline_age(&timeline, stamp), 2 * HOUR);
	/* Things age as ever from then on, older ones and new ones. */
	int64_t fresh = wall;
	pass(DAY);
	ck_assert_int_eq(age(stamp), 2 * HOUR + DAY);
	ck_assert_int_eq(age(fresh), DAY);
	record();
	pass(DAY);
	ck_assert_int_eq(age(stamp), 2 * HOUR + 2 * DAY);
	end();
}
TEST_END

TEST(a_day_back_makes_nothing_immortal)
{
	begin();
	record();
	pass(HOUR);
	int64_t stamp = wall; /* will be in the future */
	int64_t old = START - 3 * DAY;
	wall -= DAY;
	struct timeline timeline = look();
	ck_assert_int_eq(timeline.jump_ms, -DAY);
	ck_assert_int_eq(timeline.gap_count, 0);
	ck_assert_int_eq(timeline_age(&timeline, stamp), 0);
	ck_assert_int_eq(timeline_age(&timeline, old), 2 * DAY + HOUR);
	record();
	ck_assert_int_eq(look().jump_ms, 0);
	pass(3 * DAY);
	ck_assert_int_eq(age(stamp), 2 * DAY);
	ck_assert_int_eq(age(old), 5 * DAY + HOUR);
	end();
}
TEST_END

TEST(forward_and_back_again_leaves_no_gap)
{
	for (int recorded = 0; recorded < 2; recorded++) {
		begin();
		record();
		pass(HOUR);
		wall += 10 * YEAR;
		if (recorded)
			record();
		pass(HOUR);
		wall -= 10 * YEAR;
		struct timeline timeline = look();
		ck_assert_int_eq(timeline.gap_count, 0);
		ck_assert_int_eq(timeline_age(&timeline, START), 2 * HOUR);
		record();
		pass(DAY);
		ck_assert_int_eq(age(START), DAY + 2 * HOUR);
		end();
	}
}
TEST_END

TEST(a_part_of_the_way_back_leaves_the_rest_of_the_newest_gaps)
{
	begin();
	record();
	wall += 2 * DAY;
	record();
	pass(HOUR);
	wall += 3 * DAY;
	record();
	pass(HOUR);
	ck_assert_int_eq(look().gap_count, 2);
	ck_assert_int_eq(age(START), 2 * HOUR);
	wall -= 4 * DAY;
	struct timeline timeline = look();
	ck_assert_int_eq(timeline.gap_count, 1);
	ck_assert_int_eq(timeline.gaps[0].from_at, START);
	ck_assert_int_eq(timeline.gaps[0].ms, DAY);
	ck_assert_int_eq(timeline_age(&timeline, START), 2 * HOUR);
	end();
}
TEST_END

TEST(a_suspend_is_no_jump)
{
	begin();
	record();
	/* Boot time goes on while the machine sleeps; only the monotonic clock stands. */
	pass(7 * DAY);
	struct timeline timeline = look();
	ck_assert_int_eq(timeline.jump_ms, 0);
	ck_assert_int_eq(timeline_age(&timeline, START), 7 * DAY);
	end();
}
TEST_END

TEST(a_machine_that_was_off_for_a_week_did_not_age_anything)
{
	begin();
	record();
	wall += 7 * DAY;
	restart(BOOT_B, 10 * MINUTE);
	struct timeline timeline = look();
	ck_assert(timeline.restarted);
	ck_assert_int_eq(timeline.jump_ms, 7 * DAY - 10 * MINUTE);
	ck_assert_int_eq(timeline_age(&timeline, START - HOUR), HOUR + 10 * MINUTE);
	record();
	timeline = look();
	ck_assert(!timeline.restarted);
	ck_assert_int_eq(timeline.jump_ms, 0);
	pass(HOUR);
	ck_assert_int_eq(age(START - HOUR), 2 * HOUR + 10 * MINUTE);
	end();
}
TEST_END

TEST(after_a_restart_only_the_time_since_is_known_to_have_passed)
{
	begin();
	record();
	/* Up for longer than it was up when it was recorded, so only the id tells. */
	wall += 2 * DAY;
	restart(BOOT_B, DAY);
	ck_assert_int_eq(age(START), DAY);
	/* Where there is no id, time since boot tells when it is less. */
	source.boot_id = "";
	boot = 5 * HOUR;
	record();
	wall += DAY;
	boot = HOUR;
	struct timeline timeline = look();
	ck_assert(timeline.restarted);
	ck_assert_int_eq(timeline.jump_ms, DAY - HOUR);
	end();
}
TEST_END

TEST(a_quick_restart_is_no_jump)
{
	begin();
	record();
	wall += 4 * MINUTE;
	restart(BOOT_B, MINUTE);
	struct timeline timeline = look();
	ck_assert(timeline.restarted);
	ck_assert_int_eq(timeline.jump_ms, 0);
	ck_assert_int_eq(timeline_age(&timeline, START), 4 * MINUTE);
	end();
}
TEST_END

TEST(a_machine_without_a_clock_of_its_own_boots_in_the_past_and_catches_up)
{
	begin();
	record();
	wall = 10 * MINUTE; /* 1970 */
	restart(BOOT_B, 10 * MINUTE);
	struct timeline timeline = look();
	ck_assert_int_lt(timeline.jump_ms, 0);
	ck_assert_int_eq(timeline_age(&timeline, START), 0);
	record();
	pass(20 * MINUTE);
	int64_t made_in_1970 = wall;
	pass(MINUTE);
	wall = START + 2 * DAY;
	timeline = look();
	ck_assert_int_gt(timeline.jump_ms, 50 * YEAR);
	ck_assert_int_le(timeline_age(&timeline, START), 2 * DAY);
	ck_assert_int_le(timeline_age(&timeline, made_in_1970), 21 * MINUTE);
	record();
	pass(DAY);
	ck_assert_int_ge(age(START), DAY);
	ck_assert_int_ge(age(made_in_1970), DAY);
	ck_assert_int_le(age(made_in_1970), DAY + 21 * MINUTE);
	end();
}
TEST_END

TEST(drift_and_small_corrections_are_no_jump)
{
	begin();
	static const int64_t steps[] = {
		1, -1, MINUTE, -MINUTE, TIMELINE_JUMP_MS - 1, 1 - TIMELINE_JUMP_MS};
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		record();
		pass(HOUR);
		wall += steps[i];
		struct timeline timeline = look();
		ck_assert_int_eq(timeline.jump_ms, 0);
		ck_assert_int_eq(timeline.gap_count, 0);
	}
	record();
	wall += TIMELINE_JUMP_MS;
	ck_assert_int_eq(record().jump_ms, TIMELINE_JUMP_MS);
	ck_assert_int_eq(record().jump_ms, 0);
	wall -= TIMELINE_JUMP_MS;
	ck_assert_int_eq(record().jump_ms, -TIMELINE_JUMP_MS);
	end();
}
TEST_END

static bool record_in_child(struct db *mine, int index, void *ctx)
{
	(void)index;
	(void)ctx;
	struct err err = ERR_INIT;
	struct app here = {.db = mine};
	struct timeline timeline;
	return timeline_record(&here, &timeline, &err) && timeline.jump_ms != 0;
}

TEST(of_many_that_record_one_jump_at_once_one_records_it)
{
	begin();
	record();
	pass(HOUR);
	wall += YEAR;
	ck_assert_int_eq(kit_run(8, record_in_child, NULL), 1);
	struct timeline timeline = look();
	ck_assert_int_eq(timeline.gap_count, 1);
	ck_assert_int_eq(timeline.gaps[0].ms, YEAR);
	ck_assert_int_eq(timeline_age(&timeline, START), HOUR);
	/* A jump back that was recorded twice would make things older than they are. */
	wall -= YEAR / 2;
	ck_assert_int_eq(kit_run(8, record_in_child, NULL), 1);
	ck_assert_int_eq(age(START), HOUR);
	end();
}
TEST_END

TEST(a_read_changes_nothing)
{
	begin();
	record();
	wall += YEAR;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(look().jump_ms, YEAR);
	end();
}
TEST_END

TEST(beyond_their_number_the_oldest_gaps_are_joined_and_nothing_becomes_older)
{
	begin();
	record();
	int64_t stamps[CLOCK_GAPS_MAX * 2];
	int64_t passed = 0;
	for (int i = 0; i < CLOCK_GAPS_MAX * 2; i++) {
		stamps[i] = wall;
		pass(HOUR);
		passed += HOUR;
		wall += DAY;
		ck_assert_int_eq(record().jump_ms, DAY);
		for (int j = 0; j <= i; j++)
			ck_assert_int_le(age(stamps[j]), passed - j * HOUR);
	}
	struct timeline timeline = look();
	ck_assert_int_eq(timeline.gap_count, CLOCK_GAPS_MAX);
	/* All of the wrong time is still known, and the newer stamps are exact. */
	ck_assert_int_eq(timeline_age(&timeline, START), passed);
	for (int j = CLOCK_GAPS_MAX + 1; j < CLOCK_GAPS_MAX * 2; j++)
		ck_assert_int_eq(timeline_age(&timeline, stamps[j]), passed - j * HOUR);
	end();
}
TEST_END

/* An older state.db is put back: its own reading, and none of the stamps since. */
TEST(what_was_used_since_a_database_that_came_back_from_a_backup_is_not_old)
{
	begin();
	struct err err = ERR_INIT;
	struct clock_record backup;
	app.spool.root_fd = open(kit_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	record();
	int64_t before = wall;
	ck_assert_int_eq(row_clock_read(db, &backup, &err), 1);
	pass(30 * DAY);
	ck_assert_int_eq(age(before), 30 * DAY);
	ck_assert(!record().restored);
	pass(HOUR);
	ck_ok(row_clock_write(db, &backup, &err), err);
	for (int i = 0; i < 2; i++) {
		ck_assert(look().restored);
		ck_assert_int_eq(look().jump_ms, 30 * DAY + HOUR);
		ck_assert_int_eq(age(before), 0);
	}
	ck_assert(record().restored);
	pass(HOUR);
	ck_assert_int_eq(record().jump_ms, 0);
	ck_assert_int_eq(age(before), HOUR);
	/* One from before there were readings. */
	AUTO_STMT *stmt = db_prepare(db, "DELETE FROM clock_reading", &err);
	ck_ok(stmt != NULL && db_run(db, stmt, NULL, &err), err);
	db_release(&stmt);
	ck_assert(look().restored);
	ck_assert_int_eq(age(before), 0);
	close(app.spool.root_fd);
	app.spool.root_fd = -1;
	end();
}
TEST_END

TEST(a_stamp_from_the_future_is_new_and_ages_from_when_it_is_reached)
{
	begin();
	struct timeline timeline = look();
	ck_assert_int_eq(timeline_age(&timeline, START + 1), 0);
	ck_assert_int_eq(timeline_age(&timeline, INT64_MAX), 0);
	ck_assert_int_eq(timeline_due(&timeline, START + DAY, HOUR), START + DAY + HOUR);
	ck_assert_int_lt(timeline_cutoff(&timeline, 1), START);
	end();
}
TEST_END

/* --- age, cutoff and due agree -------------------------------------------------------------- */

static uint64_t seed = 88172645463325252ULL;

/* xorshift64: the same tests at each run. */
static int64_t random_below(int64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (int64_t)(seed % (uint64_t)limit);
}

static void check_agreement(const struct timeline *timeline, int64_t stamp, int64_t ms)
{
	int64_t stamp_age = timeline_age(timeline, stamp);
	int64_t cutoff = timeline_cutoff(timeline, ms);
	int64_t due = timeline_due(timeline, stamp, ms);
	ck_assert_int_ge(stamp_age, 0);
	ck_assert_msg((stamp_age >= ms) == (stamp <= cutoff),
		      "stamp %lld age %lld cutoff(%lld) %lld", (long long)stamp,
		      (long long)stamp_age, (long long)ms, (long long)cutoff);
	ck_assert_msg((stamp_age >= ms) == (due <= timeline->now),
		      "stamp %lld age %lld due(%lld) %lld now %lld", (long long)stamp,
		      (long long)stamp_age, (long long)ms, (long long)due,
		      (long long)timeline->now);
	/* A newer stamp is never older. */
	if (stamp < INT64_MAX)
		ck_assert_int_le(timeline_age(timeline, stamp + 1), stamp_age);
}

/* Recorded by the real thing: jumps to and fro, restarts, and time that passes. */
static struct timeline random_history(int64_t unit)
{
	record();
	for (int64_t i = random_below(12); i > 0; i--) {
		pass(random_below(unit));
		if (random_below(4) == 0)
			restart(random_below(2) ? BOOT_A : BOOT_B, random_below(unit));
		wall += random_below(8 * unit) - 2 * unit;
		if (random_below(3) > 0)
			record();
	}
	return look();
}

TEST(age_cutoff_and_due_agree_whatever_the_clock_did)
{
	for (int round = 0; round < 60; round++) {
		begin();
		/* Jumps are beyond TIMELINE_JUMP_MS in most rounds; nearer ones meet edges. */
		int64_t unit = round % 3 == 0 ? 2 * TIMELINE_JUMP_MS : DAY;
		struct timeline timeline = random_history(unit);
		for (int i = 0; i < timeline.gap_count; i++) {
			const struct clock_gap *gap = &timeline.gaps[i];
			int64_t edges[] = {gap->from_at, gap->from_at + gap->ms};
			for (int64_t e = 0; e < 2; e++)
				for (int64_t near = -1; near <= 1; near++)
					for (int64_t ms = -1; ms <= 1; ms++)
						check_agreement(&timeline, edges[e] + near,
								timeline_age(&timeline, edges[e]) +
									ms);
		}
		for (int i = 0; i < 300; i++)
			check_agreement(&timeline, timeline.now - random_below(50 * unit) + unit,
					random_below(40 * unit) - unit);
		end();
	}
}
TEST_END

TEST(absurd_values_are_neither_old_nor_a_fault)
{
	static const int64_t values[] = {
		INT64_MIN, INT64_MIN + 1, INT64_MIN / 2, INT64_MIN / 4, -1,       0, 1,
		START,     INT64_MAX / 4, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
	begin();
	for (size_t i = 0; i < ARRAY_LEN(values) * ARRAY_LEN(values); i++) {
		wall = values[i % ARRAY_LEN(values)];
		boot = values[i / ARRAY_LEN(values)];
		restart(i % 2 ? BOOT_A : BOOT_B, boot);
		struct timeline timeline = record();
		for (size_t j = 0; j < ARRAY_LEN(values); j++) {
			int64_t is = timeline_age(&timeline, values[j]);
			ck_assert_int_ge(is, 0);
			if (values[j] >= timeline.now)
				ck_assert_int_eq(is, 0);
			for (size_t k = 0; k < ARRAY_LEN(values); k++) {
				timeline_cutoff(&timeline, values[k]);
				timeline_due(&timeline, values[j], values[k]);
			}
		}
	}
	end();
}
TEST_END

static void write_record(const struct clock_record *written)
{
	struct err err = ERR_INIT;
	AUTO_TX tx = TX_INIT;
	ck_ok(db_begin(db, &tx, &err), err);
	ck_ok(row_clock_write(db, written, &err), err);
	ck_ok(db_commit(&tx, &err), err);
}

TEST(a_table_full_of_absurd_gaps_takes_one_more)
{
	begin();
	struct clock_record damaged = {.reading = {BOOT_A, boot, wall},
				       .gap_count = CLOCK_GAPS_MAX};
	for (int i = 0; i < CLOCK_GAPS_MAX; i++)
		damaged.gaps[i] = (struct clock_gap){INT64_MIN + CLOCK_GAPS_MAX - i, INT64_MAX};
	write_record(&damaged);
	wall += YEAR;
	struct timeline timeline = record();
	ck_assert_int_eq(timeline.jump_ms, YEAR);
	ck_assert_int_eq(timeline_age(&timeline, START - HOUR), HOUR);
	end();
}
TEST_END

TEST(damaged_rows_of_gaps_are_put_right)
{
	begin();
	struct clock_record damaged = {.reading = {BOOT_A, boot, wall}, .gap_count = 5};
	damaged.gaps[0] = (struct clock_gap){INT64_MAX, INT64_MAX};
	damaged.gaps[1] = (struct clock_gap){START - HOUR, 2 * HOUR};     /* ends in the future */
	damaged.gaps[2] = (struct clock_gap){START - 3 * HOUR, 5 * HOUR}; /* overlaps the last */
	damaged.gaps[3] = (struct clock_gap){-1, 1};
	damaged.gaps[4] = (struct clock_gap){INT64_MIN, 5};
	write_record(&damaged);
	struct timeline timeline = look();
	ck_assert_int_eq(timeline.jump_ms, 0);
	ck_assert_int_eq(timeline_age(&timeline, START - 4 * HOUR), HOUR);
	for (int64_t stamp = START - 5 * HOUR; stamp < START + HOUR; stamp += 7 * MINUTE)
		for (int64_t ms = 1; ms < 6 * HOUR; ms += 11 * MINUTE)
			check_agreement(&timeline, stamp, ms);
	/* One far in the future does not stand for those that a jump back is to take. */
	damaged.gaps[1] = (struct clock_gap){START - 2 * YEAR, YEAR};
	damaged.gap_count = 2;
	write_record(&damaged);
	wall -= YEAR;
	ck_assert_int_eq(record().gap_count, 0);
	end();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		the_clocks_of_the_system_are_used_unless_a_test_sets_others,
		the_first_reading_knows_no_jump,
		time_that_passes_is_age,
		ten_years_forward_make_nothing_old_before_and_after_a_pass_saw_them,
		a_day_back_makes_nothing_immortal,
		forward_and_back_again_leaves_no_gap,
		a_part_of_the_way_back_leaves_the_rest_of_the_newest_gaps,
		a_suspend_is_no_jump,
		a_machine_that_was_off_for_a_week_did_not_age_anything,
		after_a_restart_only_the_time_since_is_known_to_have_passed,
		a_quick_restart_is_no_jump,
		a_machine_without_a_clock_of_its_own_boots_in_the_past_and_catches_up,
		drift_and_small_corrections_are_no_jump,
		of_many_that_record_one_jump_at_once_one_records_it,
		a_read_changes_nothing,
		beyond_their_number_the_oldest_gaps_are_joined_and_nothing_becomes_older,
		what_was_used_since_a_database_that_came_back_from_a_backup_is_not_old,
		a_stamp_from_the_future_is_new_and_ages_from_when_it_is_reached,
		age_cutoff_and_due_agree_whatever_the_clock_did,
		absurd_values_are_neither_old_nor_a_fault,
		a_table_full_of_absurd_gaps_takes_one_more,
		damaged_rows_of_gaps_are_put_right,
	};
	return unit_run("timeline", unit_tests, ARRAY_LEN(unit_tests));
}
