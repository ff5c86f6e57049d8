/* Range and conditional requests as a table: what a client sends, what it gets. */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "web/range.h"

#define ETAG    "\"abc\""
#define DATE    "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER   "Sun, 06 Nov 1994 08:49:38 GMT"
#define EARLIER "Sun, 06 Nov 1994 08:49:36 GMT"
#define DATE_MS (784111777000 + 123)

/* One request with up to three headers. */
struct ask {
	const char *name[3], *value[3];
	const char *method;
};

static struct range_reply decide(const struct ask *ask, int64_t size)
{
	struct http_header headers[3];
	size_t count = 0;
	for (; count < 3 && ask->name[count] != NULL; count++)
		headers[count] = (struct http_header){ask->name[count], ask->value[count]};
	const struct http_request request = {
		.method = ask->method == NULL ? "GET" : ask->method,
		.headers = headers,
		.header_count = count,
	};
	const struct range_file file = {size, DATE_MS, ETAG};
	return range_decide(&request, &file);
}

static const struct {
	const char *range;
	int64_t size;
	enum range_outcome outcome;
	int64_t offset, length;
} ranges[] = {
	{"bytes=0-99", 1000, RANGE_PART, 0, 100},
	{"bytes=0-0", 1000, RANGE_PART, 0, 1},
	{"bytes=999-999", 1000, RANGE_PART, 999, 1},
	{"bytes=500-", 1000, RANGE_PART, 500, 500},
	{"bytes=0-", 1000, RANGE_PART, 0, 1000},
	{"bytes=500-5000", 1000, RANGE_PART, 500, 500},
	{"bytes=-1", 1000, RANGE_PART, 999, 1},
	{"bytes=-5000", 1000, RANGE_PART, 0, 1000},
	{"BYTES=1-1", 1000, RANGE_PART, 1, 1},
	{"bytes= 1-1 ", 1000, RANGE_PART, 1, 1},
	{"bytes=0-99999999999999999999999", 1000, RANGE_PART, 0, 1000},
	{"bytes=-99999999999999999999999", 1000, RANGE_PART, 0, 1000},
	{"bytes=0-9223372036854775807", 1000, RANGE_PART, 0, 1000},
	{"bytes=1000-", 1000, RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=99999999999999999999999-", 1000, RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=-0", 1000, RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=1-", 0, RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=0-", 0, RANGE_WHOLE, 0, 0},
	{"bytes=-5", 0, RANGE_WHOLE, 0, 0},
	{"bytes=0-1,5-6", 1000, RANGE_WHOLE, 0, 1000},
	{"bytes=9-1", 1000, RANGE_WHOLE, 0, 1000},
	{"bytes=", 1000, RANGE_WHOLE, 0, 1000},
	{"bytes=-", 1000, RANGE_WHOLE, 0, 1000},
	{"bytes=--1", 1000, RANGE_WHOLE, 0, 1000},
	{"bytes=+1-2", 1000, RANGE_WHOLE, 0, 1000},
	{"bytes=1", 1000, RANGE_WHOLE, 0, 1000},
	{"bytes=1-2x", 1000, RANGE_WHOLE, 0, 1000},
	{"bytes=0x1-2", 1000, RANGE_WHOLE, 0, 1000},
	{"lines=1-2", 1000, RANGE_WHOLE, 0, 1000},
	{"", 1000, RANGE_WHOLE, 0, 1000},
};

TEST(a_range_is_cut_to_the_file_refused_or_ignored)
{
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		const struct ask ask = {{"range"}, {ranges[i].range}, NULL};
		struct range_reply reply = decide(&ask, ranges[i].size);
		ck_assert_msg(reply.outcome == ranges[i].outcome &&
				      reply.offset == ranges[i].offset &&
				      reply.length == ranges[i].length,
			      "%s of %lld: outcome %d, %lld + %lld", ranges[i].range,
			      (long long)ranges[i].size, reply.outcome, (long long)reply.offset,
			      (long long)reply.length);
	}
}
TEST_END

static const struct {
	struct ask ask;
	enum range_outcome outcome;
} conditions[] = {
	{{{NULL}, {NULL}, NULL}, RANGE_WHOLE},
	{{{"range"}, {"bytes=0-1"}, "HEAD"}, RANGE_WHOLE},
	{{{"range", "range"}, {"bytes=0-1", "bytes=2-3"}, NULL}, RANGE_WHOLE},
	{{{"if-none-match"}, {ETAG}, NULL}, RANGE_NOT_MODIFIED},
	{{{"if-none-match"}, {ETAG}, "HEAD"}, RANGE_NOT_MODIFIED},
	{{{"if-none-match"}, {"W/" ETAG}, NULL}, RANGE_NOT_MODIFIED},
	{{{"if-none-match"}, {"\"x\", W/\"y,z\" ,\t" ETAG}, NULL}, RANGE_NOT_MODIFIED},
	{{{"if-none-match", "if-none-match"}, {"\"x\"", ETAG}, NULL}, RANGE_NOT_MODIFIED},
	{{{"if-none-match"}, {"*"}, NULL}, RANGE_NOT_MODIFIED},
	{{{"if-none-match"}, {"\"ABC\""}, NULL}, RANGE_WHOLE},
	{{{"if-none-match"}, {"abc"}, NULL}, RANGE_WHOLE},
	{{{"if-none-match"}, {"\"abc"}, NULL}, RANGE_WHOLE},
	{{{"if-none-match"}, {""}, NULL}, RANGE_WHOLE},
	{{{"if-none-match", "range"}, {ETAG, "bytes=0-1"}, NULL}, RANGE_NOT_MODIFIED},
	/* With an entity tag the date does not count. */
	{{{"if-none-match", "if-modified-since"}, {"\"x\"", LATER}, NULL}, RANGE_WHOLE},
	{{{"if-modified-since"}, {DATE}, NULL}, RANGE_NOT_MODIFIED},
	{{{"if-modified-since"}, {LATER}, NULL}, RANGE_NOT_MODIFIED},
	{{{"if-modified-since"}, {EARLIER}, NULL}, RANGE_WHOLE},
	{{{"if-modified-since"}, {"yesterday"}, NULL}, RANGE_WHOLE},
	{{{"if-match"}, {ETAG}, NULL}, RANGE_WHOLE},
	{{{"if-match"}, {"*"}, NULL}, RANGE_WHOLE},
	{{{"if-match"}, {"W/" ETAG}, NULL}, RANGE_FAILED},
	{{{"if-match"}, {"\"x\""}, NULL}, RANGE_FAILED},
	{{{"if-match", "if-none-match"}, {"\"x\"", ETAG}, NULL}, RANGE_FAILED},
	{{{"if-unmodified-since"}, {DATE}, NULL}, RANGE_WHOLE},
	{{{"if-unmodified-since"}, {EARLIER}, NULL}, RANGE_FAILED},
	{{{"if-range", "range"}, {ETAG, "bytes=0-1"}, NULL}, RANGE_PART},
	{{{"if-range", "range"}, {"\"x\"", "bytes=0-1"}, NULL}, RANGE_WHOLE},
	{{{"if-range", "range"}, {"W/" ETAG, "bytes=0-1"}, NULL}, RANGE_WHOLE},
	{{{"if-range", "range"}, {"*", "bytes=0-1"}, NULL}, RANGE_WHOLE},
	{{{"if-range", "range"}, {DATE, "bytes=0-1"}, NULL}, RANGE_PART},
	{{{"if-range", "range"}, {LATER, "bytes=0-1"}, NULL}, RANGE_WHOLE},
	{{{"if-range", "range"}, {"\"x\"", "bytes=5000-"}, NULL}, RANGE_WHOLE},
};

TEST(conditions_are_evaluated_in_the_order_of_the_standard)
{
	for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
		struct range_reply reply = decide(&conditions[i].ask, 1000);
		ck_assert_msg(reply.outcome == conditions[i].outcome, "row %zu (%s: %s): %d", i,
			      conditions[i].ask.name[0], conditions[i].ask.value[0], reply.outcome);
	}
}
TEST_END

TEST(an_entity_tag_changes_with_content_size_and_file)
{
	char *dir = unit_tempdir();
	ck_assert_int_eq(chdir(dir), 0);
	char first[RANGE_ETAG_LEN], second[RANGE_ETAG_LEN];
	struct stat st;
	AUTO_FD fd = open("a", O_RDWR | O_CREAT, 0644);
	ck_assert_int_eq(write(fd, "1234", 4), 4);
	ck_assert_int_eq(fstat(fd, &st), 0);
	range_etag(&st, first);
	range_etag(&st, second);
	ck_assert_str_eq(first, second);
	ck_assert_uint_eq(strlen(first), 34);
	ck_assert(first[0] == '"' && first[33] == '"');

	/* Same size, and the time of the change is put back: the inode's own time still tells. */
	clock_sleep_ms(20);
	struct timespec times[2] = {st.st_atim, st.st_mtim};
	ck_assert_int_eq(pwrite(fd, "4321", 4, 0), 4);
	ck_assert_int_eq(futimens(fd, times), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	range_etag(&st, second);
	ck_assert_str_ne(first, second);

	AUTO_FD other = open("b", O_RDWR | O_CREAT, 0644);
	ck_assert_int_eq(fstat(other, &st), 0);
	range_etag(&st, first);
	ck_assert_str_ne(first, second);
	unit_tempdir_remove(dir);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_range_is_cut_to_the_file_refused_or_ignored,
		conditions_are_evaluated_in_the_order_of_the_standard,
		an_entity_tag_changes_with_content_size_and_file,
	};
	return unit_run("range", tests, ARRAY_LEN(tests));
}
