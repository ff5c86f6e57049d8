/* What is written while a call waits, and when a client that has gone ends it. */
#include "mcp/stream.h"

#include "base/clock.h"
#include "http_mem.h"

static struct mem mem;
static struct http_sink sink;
static struct stream stream;

static void open_stream(const char *token)
{
	mem_init(&mem, "POST", "", 0);
	sink = mem_sink(&mem);
	stream_init(&stream, &sink, NULL, 0);
	stream.may_open = true;
	stream.ends_call = true;
	stream.token = token == NULL ? NULL : json_literal(token);
	stream.started_ms -= 300; /* a call that is some ticks old */
}

static void close_stream(void)
{
	json_object_put(stream.token);
	stream_finish(&stream);
	mem_finish(&mem);
}

/* Lets time pass. */
static void later(int64_t ms)
{
	stream.started_ms -= ms;
	if (stream.progress_ms > 0)
		stream.progress_ms -= ms;
	if (stream.written_ms > 0)
		stream.written_ms -= ms;
}

/* The event at the end of what was written, parsed. */
static struct json_object *last_event(void)
{
	static const char head[] = "event: message\ndata: ";
	const char *text = NULL;
	for (const char *p = buf_str(&mem.out); (p = strstr(p, head)) != NULL; p++)
		text = p + strlen(head);
	ck_assert_ptr_nonnull(text);
	struct err err = ERR_INIT;
	struct json_object *event = json_parse(text, strcspn(text, "\n"), &err);
	ck_ok(event != NULL, err);
	return event;
}

/* checklist 65 */
TEST(the_first_progress_opens_the_stream_with_its_three_headers)
{
	open_stream("\"t\"");
	ck_assert(stream_tick(&stream, "line 1"));
	ck_assert_int_eq(mem.status, 200);
	ck_assert_int_eq(mem.length, -1);
	ck_assert(mem_has_field(&mem, "content-type", "text/event-stream"));
	ck_assert(mem_has_field(&mem, "cache-control", "no-cache, no-transform"));
	ck_assert(mem_has_field(&mem, "x-accel-buffering", "no"));
	ck_assert_int_eq(mem.writes, 1);
	AUTO_JSON *event = last_event();
	ck_assert_str_eq(json_get_str(event, "method"), "notifications/progress");
	ck_assert(!json_has(event, "id"));
	ck_assert_str_eq(json_get_str(json_get(event, "params"), "message"), "line 1");
	close_stream();
}
TEST_END

/* checklist 64 */
TEST(the_token_keeps_its_type_and_progress_grows)
{
	static const char *const tokens[] = {"\"7\"", "7", "\"\"", "9007199254740991"};
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		open_stream(tokens[i]);
		double before = 0;
		for (int n = 0; n < 4; n++) {
			char line[] = {'a', (char)('a' + n), '\0'};
			ck_assert(stream_tick(&stream, line));
			ck_assert_int_eq(mem.writes, n + 1);
			AUTO_JSON *event = last_event();
			struct json_object *params = json_get(event, "params");
			ck_assert_str_eq(json_text(json_get(params, "progressToken"), NULL),
					 tokens[i]);
			double progress = json_object_get_double(json_get(params, "progress"));
			ck_assert(progress > before);
			before = progress;
			later(STREAM_PROGRESS_MS);
		}
		close_stream();
	}
}
TEST_END

TEST(without_a_token_nothing_is_said)
{
	open_stream(NULL);
	for (int i = 0; i < 20; i++) {
		ck_assert(stream_tick(&stream, i % 2 == 0 ? "a" : "b"));
		later(400);
	}
	ck_assert_int_eq(mem.begins, 0);
	close_stream();
}
TEST_END

TEST(notifications_keep_their_distance)
{
	open_stream("1");
	stream_tick(&stream, "a");
	stream_tick(&stream, "b");
	later(STREAM_PROGRESS_MS - 100);
	stream_tick(&stream, "c");
	ck_assert_int_eq(mem.writes, 1);
	later(100);
	stream_tick(&stream, "d");
	ck_assert_int_eq(mem.writes, 2);
	/* What was said already is said again only for clients whose timeouts it holds off. */
	later(STREAM_SAME_MS - 1000);
	stream_tick(&stream, "d");
	ck_assert_int_eq(mem.writes, 2);
	later(1000);
	stream_tick(&stream, NULL);
	ck_assert_int_eq(mem.writes, 3);
	AUTO_JSON *event = last_event();
	ck_assert_str_eq(json_get_str(json_get(event, "params"), "message"), "d");
	close_stream();
}
TEST_END

TEST(a_long_line_is_cut_between_characters)
{
	open_stream("1");
	AUTO_BUF line = BUF_INIT;
	buf_putc(&line, 'x');
	for (int i = 0; i < 2000; i++)
		buf_puts(&line, "\xC3\xA9");
	stream_tick(&stream, line.data);
	AUTO_JSON *event = last_event();
	const char *message = json_get_str(json_get(event, "params"), "message");
	ck_assert_uint_eq(strlen(message), 499);
	close_stream();
}
TEST_END

/* checklist 66, 68 */
TEST(a_silent_modern_call_opens_the_stream_to_notice_a_disconnect)
{
	open_stream(NULL);
	later(STREAM_QUIET_MS - 1000);
	ck_assert(stream_tick(&stream, NULL));
	ck_assert_int_eq(mem.begins, 0);
	later(1000);
	ck_assert(stream_tick(&stream, NULL));
	ck_assert_str_eq(mem.out.data, ": keep-alive\n\n");
	ck_assert(stream_tick(&stream, NULL));
	ck_assert_int_eq(mem.writes, 1);
	later(STREAM_QUIET_MS);
	mem.write_fails = true;
	ck_assert(!stream_tick(&stream, NULL));
	/* Nothing is written to who has gone. */
	later(STREAM_QUIET_MS);
	ck_assert(!stream_tick(&stream, "x"));
	ck_assert(!stream_message(&stream, "{}", 2));
	ck_assert_int_eq(mem.writes, 2);
	close_stream();
}
TEST_END

/* checklist 68 */
TEST(an_open_stream_is_never_silent_for_15_seconds)
{
	open_stream("1");
	stream.ends_call = false; /* legacy */
	ck_assert(stream_tick(&stream, "a"));
	json_object_put(TAKE_PTR(stream.token)); /* nothing more to say */
	for (int i = 0; i < 60; i++) {           /* half a minute of ticks */
		later(500);
		ck_assert(stream_tick(&stream, NULL));
		ck_assert_int_lt(clock_mono_ms() - stream.written_ms, 15000);
	}
	ck_assert_int_ge(mem.writes, 3);
	close_stream();
}
TEST_END

/* checklist 67 */
TEST(a_legacy_client_that_has_gone_ends_nothing)
{
	open_stream("1");
	stream.ends_call = false;
	mem.gone = true;
	ck_assert(stream_tick(&stream, "a"));
	later(2 * STREAM_QUIET_MS);
	ck_assert(stream_tick(&stream, "b"));
	ck_assert(!stream_message(&stream, "{}", 2));
	ck_assert_int_eq(mem.begins, 0);
	ck_assert_int_eq(mem.writes, 0);
	close_stream();
	open_stream("1");
	stream.ends_call = false;
	later(2 * STREAM_QUIET_MS); /* nor is a stream opened only to find that out */
	json_object_put(TAKE_PTR(stream.token));
	ck_assert(stream_tick(&stream, NULL));
	ck_assert_int_eq(mem.begins, 0);
	close_stream();
}
TEST_END

TEST(a_client_that_takes_no_events_is_still_seen_to_go)
{
	open_stream("1");
	stream.may_open = false;
	later(3 * STREAM_QUIET_MS);
	ck_assert(stream_tick(&stream, "a"));
	ck_assert_int_eq(mem.begins, 0);
	mem.gone = true;
	ck_assert(!stream_tick(&stream, "a"));
	close_stream();
}
TEST_END

TEST(in_lines_a_message_is_a_line_and_silence_stays_silence)
{
	open_stream("1");
	stream.in_lines = true;
	mem.begins = 1; /* there is no header block to begin with */
	ck_assert(stream_tick(&stream, "line 1"));
	ck_assert_int_eq(mem.begins, 1);
	ck_assert_int_eq(mem.writes, 1);
	ck_assert_int_eq(buf_str(&mem.out)[0], '{');
	ck_assert_str_eq(strchr(mem.out.data, '\n'), "\n");
	json_object_put(TAKE_PTR(stream.token));
	later(3 * STREAM_QUIET_MS);
	ck_assert(stream_tick(&stream, "line 2"));
	ck_assert_int_eq(mem.writes, 1);
	close_stream();
}
TEST_END

/* --- progress by the handler's own count -------------------------------------------------- */

/* How many notifications of progress were written, whatever else was. */
static int progress_count(void)
{
	int count = 0;
	for (const char *p = buf_str(&mem.out); (p = strstr(p, "/progress\"")) != NULL; p++)
		count++;
	return count;
}

/* checklist 64 */
TEST(counted_progress_is_sent_at_once_and_only_when_it_grows)
{
	static const struct {
		double progress, total;
		const char *message, *params;
	} steps[] = {
		{0, 100, NULL, "{\"progressToken\":\"t\",\"progress\":0,\"total\":100}"},
		{50, 100, "half",
		 "{\"progressToken\":\"t\",\"progress\":50,\"total\":100,"
		 "\"message\":\"half\"}"},
		{50.5, -1, NULL, "{\"progressToken\":\"t\",\"progress\":50.5}"},
	};
	open_stream("\"t\"");
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		ck_assert(stream_progress(&stream, steps[i].progress, steps[i].total,
					  steps[i].message));
		ck_assert_int_eq(progress_count(), (int)i + 1);
		AUTO_JSON *event = last_event();
		ck_assert_str_eq(json_text(json_get(event, "params"), NULL), steps[i].params);
	}
	static const double no_growth[] = {50.5, 50, 0, -1, 0.0 / 0.0, 1.0 / 0.0};
	for (size_t i = 0; i < ARRAY_LEN(no_growth); i++)
		ck_assert(stream_progress(&stream, no_growth[i], 100, NULL));
	ck_assert_int_eq(progress_count(), 3);
	/* the clock does not count any more */
	later(STREAM_QUIET_MS);
	ck_assert(stream_tick(&stream, "line"));
	ck_assert_int_eq(progress_count(), 3);
	ck_assert_int_eq(mem.writes, 4); /* but the stream is kept alive */
	close_stream();
}
TEST_END

TEST(counted_progress_needs_a_token_and_a_client_that_takes_it)
{
	open_stream(NULL);
	ck_assert(stream_progress(&stream, 1, 2, NULL));
	ck_assert_int_eq(mem.begins, 0);
	close_stream();
	open_stream("1");
	stream.may_open = false;
	ck_assert(stream_progress(&stream, 1, 2, NULL));
	ck_assert_int_eq(mem.begins, 0);
	close_stream();
	open_stream("1");
	mem.gone = true;
	ck_assert(!stream_progress(&stream, 1, 2, NULL));
	ck_assert_int_eq(mem.begins, 0);
	close_stream();
	open_stream("1");
	mem.gone = true;
	stream.ends_call = false;
	ck_assert(stream_progress(&stream, 1, 2, NULL));
	ck_assert_int_eq(mem.begins, 0);
	close_stream();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		the_first_progress_opens_the_stream_with_its_three_headers,
		the_token_keeps_its_type_and_progress_grows,
		without_a_token_nothing_is_said,
		notifications_keep_their_distance,
		a_long_line_is_cut_between_characters,
		a_silent_modern_call_opens_the_stream_to_notice_a_disconnect,
		an_open_stream_is_never_silent_for_15_seconds,
		a_legacy_client_that_has_gone_ends_nothing,
		a_client_that_takes_no_events_is_still_seen_to_go,
		in_lines_a_message_is_a_line_and_silence_stays_silence,
		counted_progress_is_sent_at_once_and_only_when_it_grows,
		counted_progress_needs_a_token_and_a_client_that_takes_it,
	};
	return unit_run("stream", tests, ARRAY_LEN(tests));
}
