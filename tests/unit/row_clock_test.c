#include "row_kit.h"

#include "store/row_clock.h"

static void write_record(const struct clock_record *record)
{
	struct err err = ERR_INIT;
	AUTO_TX tx = TX_INIT;
	ck_ok(db_begin(db, &tx, &err), err);
	ck_ok(row_clock_write(db, record, &err), err);
	ck_ok(db_commit(&tx, &err), err);
}

TEST(nothing_is_found_before_something_was_recorded)
{
	setup();
	struct err err = ERR_INIT;
	struct clock_record record = {.gap_count = 7};
	ck_assert_int_eq(row_clock_read(db, &record, &err), 0);
	ck_assert_int_eq(record.gap_count, 0);
	teardown();
}
TEST_END

TEST(a_reading_without_gaps_comes_back)
{
	setup();
	struct err err = ERR_INIT;
	struct clock_record record = {.reading = {"6ba7b810-9dad-11d1-80b4-00c04fd430c8", 5, 17}};
	struct clock_record back;
	write_record(&record);
	ck_assert_int_eq(row_clock_read(db, &back, &err), 1);
	ck_assert_str_eq(back.reading.boot_id, record.reading.boot_id);
	ck_assert_int_eq(back.reading.boot_ms, 5);
	ck_assert_int_eq(back.reading.wall_at, 17);
	ck_assert_int_eq(back.gap_count, 0);
	teardown();
}
TEST_END

TEST(gaps_come_back_newest_first_and_are_replaced_as_a_whole)
{
	setup();
	struct err err = ERR_INIT;
	struct clock_record record = {.reading = {"", INT64_MAX, INT64_MIN}, .gap_count = 3};
	record.gaps[0] = (struct clock_gap){INT64_MAX, 1};
	record.gaps[1] = (struct clock_gap){-5, INT64_MAX};
	record.gaps[2] = (struct clock_gap){INT64_MIN, 2};
	write_record(&record);
	struct clock_record back;
	ck_assert_int_eq(row_clock_read(db, &back, &err), 1);
	ck_assert_str_eq(back.reading.boot_id, "");
	ck_assert_int_eq(back.reading.boot_ms, INT64_MAX);
	ck_assert_int_eq(back.reading.wall_at, INT64_MIN);
	ck_assert_int_eq(back.gap_count, 3);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(back.gaps[i].from_at, record.gaps[i].from_at);
		ck_assert_int_eq(back.gaps[i].ms, record.gaps[i].ms);
	}
	record.gap_count = 1;
	record.gaps[0] = (struct clock_gap){3, 4};
	write_record(&record);
	ck_assert_int_eq(row_clock_read(db, &back, &err), 1);
	ck_assert_int_eq(back.gap_count, 1);
	ck_assert_int_eq(back.gaps[0].from_at, 3);
	teardown();
}
TEST_END

TEST(as_many_gaps_as_a_record_holds_are_kept)
{
	setup();
	struct err err = ERR_INIT;
	struct clock_record record = {.gap_count = CLOCK_GAPS_MAX};
	for (int i = 0; i < CLOCK_GAPS_MAX; i++)
		record.gaps[i] = (struct clock_gap){1000 - i, 1};
	write_record(&record);
	struct clock_record back;
	ck_assert_int_eq(row_clock_read(db, &back, &err), 1);
	ck_assert_int_eq(back.gap_count, CLOCK_GAPS_MAX);
	ck_assert_int_eq(back.gaps[CLOCK_GAPS_MAX - 1].from_at, 1000 - CLOCK_GAPS_MAX + 1);
	teardown();
}
TEST_END

TEST(a_gap_of_no_length_is_refused_and_nothing_is_replaced)
{
	setup();
	struct err err = ERR_INIT;
	struct clock_record record = {.reading = {"x", 1, 2}};
	write_record(&record);
	record.reading.wall_at = 3;
	record.gap_count = 1;
	{
		AUTO_TX tx = TX_INIT;
		ck_ok(db_begin(db, &tx, &err), err);
		ck_assert(!row_clock_write(db, &record, &err));
		ck_assert_int_eq(err.code, ERR_INTERNAL);
	}
	ck_assert_int_eq(row_clock_read(db, &record, &err), 1);
	ck_assert_int_eq(record.reading.wall_at, 2);
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		nothing_is_found_before_something_was_recorded,
		a_reading_without_gaps_comes_back,
		gaps_come_back_newest_first_and_are_replaced_as_a_whole,
		as_many_gaps_as_a_record_holds_are_kept,
		a_gap_of_no_length_is_refused_and_nothing_is_replaced,
	};
	return unit_run("row_clock", unit_tests, ARRAY_LEN(unit_tests));
}
