/*
 * Gaps are stretches of wall time that do not count, apart from each other and none beyond now: the
 * age of a stamp is what lies between it and now without them. So ages never grow with a newer
 * stamp, and age, cutoff and due are three readings of one line. A stamp inside of a gap is of the
 * gap's end. Where a jump lies between two readings cannot be known; wherever there is a choice,
 * things come out younger than they are.
 */
#include "box/timeline.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Times beyond (some 70 million years) are nobody's; within, sums of three cannot overflow. */
#define FAR_MS (INT64_MAX / 4)

static int64_t clamp(int64_t value)
{
	return value > FAR_MS ? FAR_MS : value < -FAR_MS ? -FAR_MS : value;
}

static int64_t end_of(const struct clock_gap *gap)
{
	return gap->from_at + gap->ms;
}

/* --- gaps ---------------------------------------------------------------------------------- */

/* Whatever is in the table (a damaged row, a clock that crept back behind a gap): afterwards each
 * gap ends no later than bound and than the next newer one begins. */
static void tidy_gaps(struct timeline *timeline, int64_t bound)
{
	int kept = 0;
	for (int i = 0; i < timeline->gap_count; i++) {
		int64_t from = clamp(timeline->gaps[i].from_at);
		int64_t end = clamp(from + clamp(timeline->gaps[i].ms));
		if (end > bound)
			end = bound;
		if (end <= from)
			continue;
		timeline->gaps[kept++] = (struct clock_gap){from, end - from};
		bound = from;
	}
	timeline->gap_count = kept;
}

/* Joins the two oldest, where the younger one ends: no stamp becomes older by it. */
static void join_oldest(struct timeline *timeline)
{
	const struct clock_gap *oldest = &timeline->gaps[timeline->gap_count - 1];
	struct clock_gap *joined = &timeline->gaps[timeline->gap_count - 2];
	joined->from_at -= oldest->ms;
	joined->ms += oldest->ms;
	timeline->gap_count--;
}

static void add_gap(struct timeline *timeline, int64_t ms)
{
	if (timeline->gap_count == CLOCK_GAPS_MAX)
		join_oldest(timeline);
	memmove(&timeline->gaps[1], &timeline->gaps[0],
		(size_t)timeline->gap_count * sizeof(timeline->gaps[0]));
	timeline->gaps[0] = (struct clock_gap){timeline->now - ms, ms};
	timeline->gap_count++;
}

/* The clock was set back: what it had been set forward before was wrong by as much. */
static void take_back(struct timeline *timeline, int64_t ms)
{
	int gone = 0;
	while (gone < timeline->gap_count && timeline->gaps[gone].ms <= ms)
		ms -= timeline->gaps[gone++].ms;
	timeline->gap_count -= gone;
	memmove(&timeline->gaps[0], &timeline->gaps[gone],
		(size_t)timeline->gap_count * sizeof(timeline->gaps[0]));
	if (timeline->gap_count > 0)
		timeline->gaps[0].ms -= ms;
}

/* --- reading ------------------------------------------------------------------------------- */

/* The wall first: when the machine sleeps between the two, that looks like a jump forward later,
 * which makes things younger; the other way round it would look like one back. */
static void read_clocks(struct clock_reading *reading)
{
	reading->wall_at = clamp(clock_wall_ms());
	reading->boot_ms = clamp(clock_boot_ms());
	clock_boot_id(reading->boot_id);
}

/* Compares with what was recorded. After a restart only the time since then is known to have
 * passed. */
static void find_jump(struct timeline *timeline, const struct clock_reading *recorded)
{
	const struct clock_reading *now = &timeline->reading;
	int64_t recorded_boot = clamp(recorded->boot_ms);
	timeline->restarted =
		strcmp(now->boot_id, recorded->boot_id) != 0 || now->boot_ms < recorded_boot;
	int64_t passed = timeline->restarted ? now->boot_ms : now->boot_ms - recorded_boot;
	int64_t jump = clamp(now->wall_at - clamp(recorded->wall_at) - clamp(passed));
	if (jump >= TIMELINE_JUMP_MS || jump <= -TIMELINE_JUMP_MS)
		timeline->jump_ms = jump;
}

/* --- the mark -------------------------------------------------------------------------------- */

#define MARK "reaper.clock" /* empty; its mtime is the wall time of the newest reading */

/* 0: there is none. */
static int64_t marked_at(const struct app *app)
{
	struct stat st;
	if (fstatat(app->spool.root_fd, MARK, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;
	return clamp(clamp((int64_t)st.st_mtim.tv_sec * 1000) + st.st_mtim.tv_nsec / 1000000);
}

/* After the database has it: who dies in between leaves an older mark, which says nothing. */
static void mark(const struct app *app, int64_t wall_at)
{
	struct timespec at = {.tv_sec = wall_at / 1000, .tv_nsec = wall_at % 1000 * 1000000};
	AUTO_FD fd = openat(app->spool.root_fd, MARK,
			    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)!futimens(fd, (struct timespec[]){at, at});
}

/* The database is older than the mark: it came back from a backup, and what its stamps say is of
 * then. Whoever was used since did not stamp this one, so all time since then is a gap. */
static void find_restore(struct timeline *timeline, int64_t recorded_at, int64_t mark_at)
{
	int64_t lost = timeline->now - clamp(recorded_at);
	timeline->restored = mark_at - clamp(recorded_at) >= TIMELINE_JUMP_MS;
	if (timeline->restored && lost >= TIMELINE_JUMP_MS)
		timeline->jump_ms = lost;
}

static bool read_now(struct app *app, struct timeline *timeline, struct err *err)
{
	struct clock_record record;
	int64_t mark_at = marked_at(app); /* before the reading that it is compared with */
	int rc = row_clock_read(app->db, &record, err);
	if (rc < 0)
		return false;
	*timeline = (struct timeline){.is_first = rc == 0, .gap_count = record.gap_count};
	memcpy(timeline->gaps, record.gaps, sizeof(timeline->gaps));
	read_clocks(&timeline->reading);
	timeline->now = timeline->reading.wall_at;
	if (!timeline->is_first)
		find_jump(timeline, &record.reading);
	find_restore(timeline, record.reading.wall_at, mark_at);
	tidy_gaps(timeline, FAR_MS);
	if (timeline->jump_ms < 0)
		take_back(timeline, -timeline->jump_ms);
	if (timeline->jump_ms > 0)
		add_gap(timeline, timeline->jump_ms);
	tidy_gaps(timeline, timeline->now);
	return true;
}

bool timeline_read(struct app *app, struct timeline *timeline, struct err *err)
{
	return read_now(app, timeline, err);
}

bool timeline_record(struct app *app, struct timeline *timeline, struct err *err)
{
	AUTO_TX tx = TX_INIT;
	if (!db_begin(app->db, &tx, err) || !read_now(app, timeline, err))
		return false;
	struct clock_record record = {.reading = timeline->reading,
				      .gap_count = timeline->gap_count};
	memcpy(record.gaps, timeline->gaps, sizeof(record.gaps));
	if (!row_clock_write(app->db, &record, err) || !db_commit(&tx, err))
		return false;
	mark(app, timeline->reading.wall_at);
	return true;
}

/* --- ages ---------------------------------------------------------------------------------- */

int64_t timeline_age(const struct timeline *timeline, int64_t stamp_at)
{
	int64_t stamp = clamp(stamp_at);
	if (stamp >= timeline->now)
		return 0;
	int64_t age = timeline->now - stamp;
	for (int i = 0; i < timeline->gap_count && end_of(&timeline->gaps[i]) > stamp; i++) {
		const struct clock_gap *gap = &timeline->gaps[i];
		age -= end_of(gap) - (gap->from_at > stamp ? gap->from_at : stamp);
	}
	return age;
}

int64_t timeline_cutoff(const struct timeline *timeline, int64_t age_ms)
{
	if (age_ms <= 0)
		return INT64_MAX;
	int64_t at = timeline->now;
	int64_t left = clamp(age_ms);
	for (int i = 0; i < timeline->gap_count; i++) {
		int64_t counted = at - end_of(&timeline->gaps[i]);
		if (left <= counted)
			break;
		left -= counted;
		at = timeline->gaps[i].from_at;
	}
	return at - left;
}

int64_t timeline_due(const struct timeline *timeline, int64_t stamp_at, int64_t age_ms)
{
	int64_t at = clamp(stamp_at);
	int64_t left = clamp(age_ms);
	if (left <= 0)
		return at < timeline->now ? at : timeline->now;
	for (int i = timeline->gap_count - 1; i >= 0; i--) {
		const struct clock_gap *gap = &timeline->gaps[i];
		if (end_of(gap) <= at)
			continue;
		int64_t counted = gap->from_at > at ? gap->from_at - at : 0;
		if (left <= counted)
			break;
		left -= counted;
		at = end_of(gap);
	}
	return at + left;
}
