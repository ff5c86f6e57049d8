/* Wall, monotonic and boot time, and the two date formats that go over the wire. */
#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

#define MAX_WALL_S 253402300799LL   /* 9999-12-31T23:59:59Z */
#define MIN_WALL_S (-62135596800LL) /* 0001-01-01T00:00:00Z */

/* A test's clocks; NULL in every program. */
static const struct clock_source *faked;

void clock_use(const struct clock_source *source)
{
	faked = source;
}

static int64_t now_ms(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
	return faked != NULL ? faked->wall_ms() : now_ms(CLOCK_REALTIME);
}

int64_t clock_mono_ms(void)
{
	return faked != NULL ? faked->mono_ms() : now_ms(CLOCK_MONOTONIC);
}

int64_t clock_boot_ms(void)
{
	return faked != NULL ? faked->boot_ms() : now_ms(CLOCK_BOOTTIME);
}

/* No error is reported: who compares ids goes by the time since boot as well. */
void clock_boot_id(char out[static CLOCK_BOOT_ID_LEN])
{
	memset(out, 0, CLOCK_BOOT_ID_LEN);
	if (faked != NULL) {
		strncat(out, faked->boot_id, CLOCK_BOOT_ID_LEN - 1);
		return;
	}
	AUTO_FD fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, out, CLOCK_BOOT_ID_LEN - 1);
	if (len != CLOCK_BOOT_ID_LEN - 1)
		out[0] = '\0';
}

void clock_sleep_ms(int64_t ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
	nanosleep(&ts, NULL);
}

/* Splits into whole seconds and milliseconds, rounding towards the past, and clamps. */
static int split(int64_t wall_ms, struct tm *tm)
{
	int64_t s = wall_ms / 1000;
	int ms = (int)(wall_ms % 1000);
	if (ms < 0) {
		ms += 1000;
		s--;
	}
	if (s > MAX_WALL_S)
		s = MAX_WALL_S;
	if (s < MIN_WALL_S)
		s = MIN_WALL_S;
	time_t t = (time_t)s;
	gmtime_r(&t, tm);
	return ms;
}

const char *clock_rfc3339(int64_t wall_ms, char out[static CLOCK_RFC3339_LEN])
{
	struct tm tm;
	int ms = split(wall_ms, &tm);
	char text[96]; /* wider than any int fields, so that no compiler doubts it */
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
		 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ms);
	memcpy(out, text, CLOCK_RFC3339_LEN - 1);
	out[CLOCK_RFC3339_LEN - 1] = '\0';
	return out;
}

static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
				   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

const char *clock_http_date(int64_t wall_ms, char out[static CLOCK_HTTP_LEN])
{
	struct tm tm;
	split(wall_ms, &tm);
	char text[96];
	snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday],
		 tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
		 tm.tm_sec);
	memcpy(out, text, CLOCK_HTTP_LEN - 1);
	out[CLOCK_HTTP_LEN - 1] = '\0';
	return out;
}

bool clock_parse_http_date(const char *s, int64_t *wall_ms)
{
	struct tm tm = {0};
	char day[4], month[4];
	int consumed = 0;
	if (strlen(s) != CLOCK_HTTP_LEN - 1 ||
	    /* Fields of two and four digits do not overflow. NOLINTNEXTLINE(cert-err34-c) */
	    sscanf(s, "%3s, %2d %3s %4d %2d:%2d:%2d GMT%n", day, &tm.tm_mday, month, &tm.tm_year,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &consumed) != 7 ||
	    consumed != CLOCK_HTTP_LEN - 1)
		return false;
	tm.tm_mon = -1;
	for (int i = 0; i < 12; i++) {
		if (strcmp(month, months[i]) == 0)
			tm.tm_mon = i;
	}
	if (tm.tm_mon < 0)
		return false;
	tm.tm_year -= 1900;
	*wall_ms = (int64_t)timegm(&tm) * 1000;
	return true;
}
