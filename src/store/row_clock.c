/* Statements of tables clock_reading and clock_gap. */
#include "store/row_clock.h"

#include <string.h>

enum statement { READ, SET_READING, DROP_GAPS, ADD_GAP };

static const char *const sql[] = {
	/* One statement sees one state of both tables; a reading without gaps is one row. */
	[READ] = "SELECT boot_id, boot_ms, wall_at, from_at, ms"
		 " FROM clock_reading LEFT JOIN clock_gap ORDER BY from_at DESC LIMIT :limit",
	[SET_READING] = "INSERT OR REPLACE INTO clock_reading (one, boot_id, boot_ms, wall_at)"
			" VALUES (1, :boot_id, :boot_ms, :wall_at)",
	[DROP_GAPS] = "DELETE FROM clock_gap",
	[ADD_GAP] = "INSERT INTO clock_gap (from_at, ms) VALUES (:from_at, :ms)",
};

static void read_reading(sqlite3_stmt *stmt, struct clock_reading *reading)
{
	const char *boot_id = (const char *)sqlite3_column_text(stmt, 0);
	reading->boot_id[0] = '\0';
	if (boot_id != NULL)
		strncat(reading->boot_id, boot_id, CLOCK_BOOT_ID_LEN - 1);
	reading->boot_ms = sqlite3_column_int64(stmt, 1);
	reading->wall_at = sqlite3_column_int64(stmt, 2);
}

int row_clock_read(struct db *db, struct clock_record *record, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[READ], err);
	if (stmt == NULL)
		return -1;
	db_bind_int(stmt, ":limit", CLOCK_GAPS_MAX);
	memset(record, 0, sizeof(*record));
	int rc, found = 0;
	while ((rc = db_step(db, stmt, err)) == 1) {
		if (!found)
			read_reading(stmt, &record->reading);
		found = 1;
		if (sqlite3_column_type(stmt, 3) != SQLITE_NULL)
			record->gaps[record->gap_count++] =
				(struct clock_gap){.from_at = sqlite3_column_int64(stmt, 3),
						   .ms = sqlite3_column_int64(stmt, 4)};
	}
	return rc < 0 ? -1 : found;
}

static bool set_reading(struct db *db, const struct clock_reading *reading, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[SET_READING], err);
	if (stmt == NULL)
		return false;
	db_bind_text(stmt, ":boot_id", reading->boot_id);
	db_bind_int(stmt, ":boot_ms", reading->boot_ms);
	db_bind_int(stmt, ":wall_at", reading->wall_at);
	return db_run(db, stmt, NULL, err);
}

static bool add_gap(struct db *db, const struct clock_gap *gap, struct err *err)
{
	AUTO_STMT *stmt = db_prepare(db, sql[ADD_GAP], err);
	if (stmt == NULL)
		return false;
	db_bind_int(stmt, ":from_at", gap->from_at);
	db_bind_int(stmt, ":ms", gap->ms);
	return db_run(db, stmt, NULL, err);
}

bool row_clock_write(struct db *db, const struct clock_record *record, struct err *err)
{
	AUTO_STMT *drop = db_prepare(db, sql[DROP_GAPS], err);
	if (drop == NULL || !set_reading(db, &record->reading, err) || !db_run(db, drop, NULL, err))
		return false;
	for (int i = 0; i < record->gap_count; i++)
		if (!add_gap(db, &record->gaps[i], err))
			return false;
	return true;
}
