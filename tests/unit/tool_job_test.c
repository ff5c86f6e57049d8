/* run_background, get_job, stop_job, list_jobs: arguments, results and what the notes say. */
#include <signal.h>

#include "task_kit.h"

TEST(a_job_gets_its_arguments_and_makes_a_missing_sandbox)
{
	kit_open();
	kit_ok(&tool_run_background,
	       "{'sandbox':'work','command':'make','cwd':'src','timeout':90,'request_id':'r-1',"
	       "'env':{'A':'1'}}");
	ck_assert_str_eq(played.command, "make");
	ck_assert_str_eq(played.cwd, "src");
	ck_assert_str_eq(played.request_id, "r-1");
	ck_assert_ptr_nonnull(strstr(played.env, "\"A\""));
	ck_assert_int_eq(played.timeout_ms, 90000);
	ck_assert_int_eq(played.origin, TASK_ORIGIN_JOB);
	ck_assert_str_eq(kit_str("job_id"), played.last_id);
	ck_assert_str_eq(kit_str("task_id"), played.last_id);
	ck_assert_str_eq(kit_str("status"), "running");
	ck_assert_str_eq(kit_str("sandbox"), "work");
	ck_assert(kit_true("sandbox_created"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "did not exist"));
	ck_assert(!kit_has("will_remove_at"));
	kit_close();
}
TEST_END

TEST(without_a_timeout_the_setting_counts)
{
	setenv("SMCP_JOB_TIMEOUT", "7200", 1);
	kit_open();
	kit_ok(&tool_run_background, "{'sandbox':'work','command':'make','timeout':0}");
	ck_assert_int_eq(played.timeout_ms, 7200 * 1000);
	kit_close();
}
TEST_END

TEST(what_is_refused_makes_no_sandbox)
{
	kit_open();
	kit_fails(ERR_INVALID, &tool_run_background, "{'sandbox':'w','command':'a\\u0000b'}");
	kit_fails(ERR_INVALID, &tool_run_background, "{'command':'true'}");
	played.check_fails = ERR_TOO_LARGE;
	kit_fails(ERR_TOO_LARGE, &tool_run_background, "{'sandbox':'w','command':'x'}");
	ck_assert_int_eq(kit_count(), 0);
	ck_assert_int_eq(played.starts, 0);
	kit_close();
}
TEST_END

TEST(the_same_request_is_the_same_job)
{
	kit_open();
	kit_ok(&tool_run_background, "{'sandbox':'work','command':'make','request_id':'r'}");
	char *first = xstrdup(kit_str("job_id"));
	ck_assert(!kit_has("note") || strstr(kit_str("note"), "request_id") == NULL);
	kit_ok(&tool_run_background, "{'sandbox':'work','command':'make','request_id':'r'}");
	ck_assert_str_eq(kit_str("job_id"), first);
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "nothing was started now"));
	free(first);
	kit_close();
}
TEST_END

TEST(a_start_that_nobody_saw_says_to_look_first)
{
	kit_open();
	played.start_state = TASK_UNKNOWN;
	played_job();
	ck_assert_str_eq(kit_str("status"), "unknown");
	ck_assert_str_eq(kit_str("job_id"), played.last_id);
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "get_job"));
	kit_close();
}
TEST_END

TEST(a_sandbox_that_ends_first_is_said_at_once)
{
	kit_open();
	kit_ok(&tool_create_sandbox, "{'sandbox':'short','timeout':60}");
	kit_ok(&tool_run_background, "{'sandbox':'short','command':'x','timeout':30}");
	ck_assert(kit_has("will_remove_at"));
	ck_assert(!kit_has("note"));
	kit_ok(&tool_run_background, "{'sandbox':'short','command':'x','timeout':120}");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "lifetime of sandbox short"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "120 s"));
	kit_close();
}
TEST_END

static void print_while_waiting(const struct task_row *row)
{
	played_print(row->id, RECORD_STDOUT, "one\n", 4);
	played_print(row->id, RECORD_STDERR, "two\n", 4);
	played_print(row->id, RECORD_STDOUT, "three\n", 6);
}

TEST(get_job_waits_15_seconds_and_shows_both_streams_in_order)
{
	kit_open();
	played_job();
	played.during_wait = print_while_waiting;
	kit_ok(&tool_get_job, "{'job_id':'%s'}", played.last_id);
	ck_assert_int_eq(played.wait_ms, 15000);
	ck_assert_int_eq(played.stdout_offset, -1); /* waits for the end, not for output */
	ck_assert_int_eq(played.stderr_offset, -1);
	ck_assert_str_eq(kit_str("status"), "running");
	ck_assert_str_eq(kit_str("state"), "running");
	ck_assert_str_eq(kit_str("command"), "make all");
	ck_assert_str_eq(kit_str("sandbox"), "work");
	ck_assert_str_eq(kit_str("log_tail"), "one\ntwo\nthree\n");
	ck_assert_int_eq(kit_int("log_bytes"), 14);
	ck_assert(!kit_true("log_truncated"));
	ck_assert_int_le(kit_int("elapsed_seconds"), 60);
	ck_assert_int_eq(kit_str("polled_at")[10], 'T');
	ck_assert(!kit_has("exit_code"));
	played.during_wait = NULL;
	kit_ok(&tool_get_job, "{'job_id':'%s','wait':0,'tail_lines':1}", played.last_id);
	ck_assert_int_eq(played.wait_ms, 0);
	ck_assert_str_eq(kit_str("log_tail"), "three\n");
	ck_assert(kit_true("log_truncated"));
	kit_close();
}
TEST_END

TEST(each_end_has_its_words)
{
	static const struct {
		enum task_state state;
		int code, signal;
		const char *status, *name, *in_note;
	} ends[] = {
		{TASK_SUCCEEDED, 0, 0, "finished", "succeeded", NULL},
		{TASK_FAILED, 3, 0, "finished", "failed", NULL},
		{TASK_FAILED, 0, SIGSEGV, "finished", "failed", NULL},
		{TASK_CANCELLED, 0, SIGTERM, "finished", "cancelled", NULL},
		{TASK_TIMED_OUT, 0, SIGKILL, "finished", "timed_out", "3600 s"},
		{TASK_UNKNOWN, 0, 0, "unknown", "unknown", "Nobody saw"},
	};
	kit_open();
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		played_job();
		played_end(played.last_id, ends[i].state, ends[i].code, ends[i].signal);
		kit_ok(&tool_get_job, "{'job_id':'%s'}", played.last_id);
		ck_assert(!kit.call.is_error);
		ck_assert_str_eq(kit_str("status"), ends[i].status);
		ck_assert_str_eq(kit_str("state"), ends[i].name);
		ck_assert_int_eq(kit_has("signal"), ends[i].signal != 0);
		if (ends[i].code != 0)
			ck_assert_int_eq(kit_int("exit_code"), ends[i].code);
		ck_assert_int_eq(kit_has("reason"), ends[i].state == TASK_UNKNOWN);
		if (ends[i].in_note != NULL)
			ck_assert_ptr_nonnull(strstr(kit_str("note"), ends[i].in_note));
	}
	kit_close();
}
TEST_END

TEST(a_huge_line_is_bounded_and_chinese_is_decoded)
{
	kit_open();
	played_job();
	char *line = xcalloc(1, 200001);
	memset(line, 'x', 200000);
	played_print(played.last_id, RECORD_STDOUT, line, 200000);
	played_print(played.last_id, RECORD_STDOUT, "\n\xc4\xe3\xba\xc3\n", 6);
	kit_ok(&tool_get_job, "{'job_id':'%s','tail_lines':2000}", played.last_id);
	const char *tail = kit_str("log_tail");
	ck_assert_uint_le(strlen(tail), 33000);
	ck_assert_ptr_nonnull(strstr(tail, "\xe4\xbd\xa0\xe5\xa5\xbd"));
	ck_assert_int_eq(kit_int("log_bytes"), 200006);
	ck_assert(kit_true("log_truncated"));
	free(line);
	kit_close();
}
TEST_END

TEST(a_long_command_is_shown_in_part)
{
	kit_open();
	AUTO_BUF command = BUF_INIT;
	for (int i = 0; i < 400; i++)
		buf_puts(&command, "echo; ");
	kit_ok(&tool_run_background, "{'sandbox':'work','command':'%s'}", command.data);
	kit_ok(&tool_get_job, "{'job_id':'%s'}", played.last_id);
	ck_assert_uint_lt(strlen(kit_str("command")), 600);
	ck_assert_ptr_nonnull(strstr(kit_str("command"), "bytes more]"));
	kit_close();
}
TEST_END

TEST(a_pruned_log_leaves_the_state)
{
	kit_open();
	played_job();
	played_end(played.last_id, TASK_FAILED, 9, 0);
	played.log_fails = ERR_GONE;
	kit_ok(&tool_get_job, "{'job_id':'%s'}", played.last_id);
	ck_assert_str_eq(kit_str("status"), "finished");
	ck_assert_int_eq(kit_int("exit_code"), 9);
	ck_assert_str_eq(kit_str("log_tail"), "");
	ck_assert(kit_true("log_truncated"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "not kept any more"));
	kit_close();
}
TEST_END

TEST(a_job_that_is_just_being_started_has_printed_nothing)
{
	kit_open();
	played_job();
	played.log_fails = ERR_BUSY;
	kit_ok(&tool_get_job, "{'job_id':'%s'}", played.last_id);
	ck_assert_str_eq(kit_str("status"), "running");
	ck_assert(!kit_true("log_truncated"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "being started"));
	played.log_fails = ERR_IO;
	kit_fails(ERR_IO, &tool_get_job, "{'job_id':'%s'}", played.last_id);
	kit_close();
}
TEST_END

TEST(a_job_can_be_looked_at_when_its_sandbox_has_gone)
{
	kit_open();
	played_job();
	char id[ID_LEN + 1];
	memcpy(id, played.last_id, sizeof(id));
	played_end(id, TASK_UNKNOWN, 0, 0);
	kit_ok(&tool_kill_sandbox, "{'sandbox':'work'}");
	kit_ok(&tool_get_job, "{'job_id':'%s'}", id);
	ck_assert_str_eq(kit_str("sandbox"), "work");
	ck_assert(!kit_has("will_remove_at"));
	kit_close();
}
TEST_END

TEST(an_unknown_job_is_an_error_everywhere)
{
	kit_open();
	kit_fails(ERR_NOT_FOUND, &tool_get_job, "{'job_id':'0123456789abcdef0123456789abcdef'}");
	kit_fails(ERR_NOT_FOUND, &tool_stop_job, "{'job_id':'0123456789abcdef0123456789abcdef'}");
	ck_assert_int_eq(played.cancels, 0);
	kit_close();
}
TEST_END

TEST(stop_job_says_what_happened)
{
	static const struct {
		enum task_state before, by_cancel;
		bool stopped;
		const char *state, *in_note;
	} cases[] = {
		{TASK_NONE, TASK_CANCELLED, true, "cancelled", "was ended with everything"},
		{TASK_NONE, TASK_SUCCEEDED, true, "succeeded", "by itself"},
		{TASK_NONE, TASK_NONE, false, "running", "not confirmed"},
		{TASK_NONE, TASK_UNKNOWN, false, "unknown", "Nobody saw"},
		{TASK_FAILED, TASK_NONE, true, "failed", "had ended before"},
	};
	kit_open();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		played_job();
		if (cases[i].before != TASK_NONE)
			played_end(played.last_id, cases[i].before, 1, 0);
		played.cancel_state = cases[i].by_cancel;
		kit_ok(&tool_stop_job, "{'job_id':'%s'}", played.last_id);
		ck_assert_int_eq(kit_true("stopped"), cases[i].stopped);
		ck_assert_str_eq(kit_str("state"), cases[i].state);
		ck_assert_ptr_nonnull(strstr(kit_str("note"), cases[i].in_note));
	}
	kit_close();
}
TEST_END

static struct json_object *job(size_t index)
{
	return json_object_array_get_idx(json_get(kit.call.structured, "jobs"), index);
}

TEST(list_jobs_is_newest_first_and_can_be_narrowed)
{
	kit_open();
	kit_ok(&tool_list_jobs, "{}");
	ck_assert_int_eq(kit_int("count"), 0);
	for (int i = 0; i < 3; i++) {
		kit_ok(&tool_run_background, "{'sandbox':'s%d','command':'run %d'}", i % 2, i);
		clock_sleep_ms(2);
	}
	played_end(played.last_id, TASK_FAILED, 5, 0);
	kit_ok(&tool_list_jobs, "{}");
	ck_assert_int_eq(kit_int("count"), 3);
	ck_assert_str_eq(json_get_str(job(0), "command"), "run 2");
	ck_assert_str_eq(json_get_str(job(0), "status"), "finished");
	ck_assert_int_eq(json_get_int(job(0), "exit_code", 0), 5);
	ck_assert(json_has(job(0), "finished_at"));
	ck_assert_str_eq(json_get_str(job(2), "command"), "run 0");
	ck_assert_str_eq(json_get_str(job(2), "status"), "running");
	ck_assert(!json_has(job(2), "finished_at"));
	kit_ok(&tool_list_jobs, "{'sandbox':'s1'}");
	ck_assert_int_eq(kit_int("count"), 1);
	ck_assert_str_eq(json_get_str(job(0), "sandbox"), "s1");
	kit_ok(&tool_list_jobs, "{'limit':2}");
	ck_assert_int_eq(kit_int("count"), 2);
	kit_fails(ERR_NOT_FOUND, &tool_list_jobs, "{'sandbox':'nowhere'}");
	kit_close();
}
TEST_END

TEST(others_jobs_are_not_listed)
{
	kit_open();
	played_job();
	struct err err = ERR_INIT;
	struct tool_call other = {.app = &kit.app,
				  .principal = "somebody else",
				  .arguments = json_object_new_object()};
	ck_ok(tool_list_jobs.call(&other, &err), err);
	ck_assert_int_eq(json_get_int(other.structured, "count", -1), 0);
	json_object_put(other.structured);
	json_object_put(other.arguments);
	kit_close();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		a_job_gets_its_arguments_and_makes_a_missing_sandbox,
		without_a_timeout_the_setting_counts,
		what_is_refused_makes_no_sandbox,
		the_same_request_is_the_same_job,
		a_start_that_nobody_saw_says_to_look_first,
		a_sandbox_that_ends_first_is_said_at_once,
		get_job_waits_15_seconds_and_shows_both_streams_in_order,
		each_end_has_its_words,
		a_huge_line_is_bounded_and_chinese_is_decoded,
		a_long_command_is_shown_in_part,
		a_pruned_log_leaves_the_state,
		a_job_that_is_just_being_started_has_printed_nothing,
		a_job_can_be_looked_at_when_its_sandbox_has_gone,
		an_unknown_job_is_an_error_everywhere,
		stop_job_says_what_happened,
		list_jobs_is_newest_first_and_can_be_narrowed,
		others_jobs_are_not_listed,
	};
	return unit_run("tool_job", tests, ARRAY_LEN(tests));
}
