/* exec: what it hands to the runtime, what it makes of each kind of end, and what becomes of a
 * command that outlasts the wait. */
#include <pthread.h>
#include <signal.h>

#include "task_kit.h"

TEST(the_command_gets_its_arguments)
{
	kit_open();
	kit_ok(&tool_exec, "{'sandbox':'work','command':'cat | sort','cwd':'sub','timeout':7,"
			   "'stdin':'b\\na\\n','env':{'COLOUR':'blue'}}");
	ck_assert_ptr_nonnull(strstr(play.command, "cat | sort"));
	ck_assert_str_eq(play.cwd, "/workspace/sub");
	ck_assert_int_eq(play.timeout_ms, 7000);
	ck_assert_str_eq(play.input, "b\na\n");
	ck_assert_ptr_nonnull(strstr(play.env, "COLOUR=blue\n"));
	kit_close();
}
TEST_END

TEST(what_is_left_out_has_the_defaults)
{
	kit_open();
	kit_ok(&tool_exec, "{'sandbox':'work','command':'true','cwd':'','timeout':0}");
	ck_assert_str_eq(play.cwd, "/workspace");
	ck_assert_int_eq(play.timeout_ms, kit.conf.exec_timeout * 1000);
	ck_assert_str_eq(play.input, "");
	kit_close();
}
TEST_END

TEST(output_and_a_non_zero_code_are_a_result)
{
	kit_open();
	play.out = "out\n";
	play.err = "no such file\n";
	play.status = (struct runtime_status){.end = RUNTIME_END_EXIT,
					      .code = 3,
					      .user_us = 4000,
					      .system_us = 3000,
					      .max_rss_kib = 1234};
	kit_ok(&tool_exec, "{'sandbox':'work','command':'x'}");
	ck_assert(!kit.call.is_error);
	ck_assert_int_eq(kit_int("exit_code"), 3);
	ck_assert(!kit_has("signal"));
	ck_assert(!kit_true("timed_out"));
	ck_assert_str_eq(kit_str("status"), "finished");
	ck_assert_str_eq(kit_str("stdout"), "out\n");
	ck_assert_str_eq(kit_str("stderr"), "no such file\n");
	ck_assert_str_eq(kit_str("stdout_encoding"), "utf-8");
	ck_assert_int_eq(kit_int("stderr_bytes"), 13);
	ck_assert_int_eq(kit_int("cpu_ms"), 7);
	ck_assert_int_eq(kit_int("max_rss_kib"), 1234);
	kit_close();
}
TEST_END

TEST(a_new_sandbox_is_said_once)
{
	kit_open();
	kit_ok(&tool_exec, "{'sandbox':'work','command':'true'}");
	ck_assert(kit_true("sandbox_created"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "did not exist"));
	kit_ok(&tool_exec, "{'sandbox':'work','command':'true'}");
	ck_assert(!kit_true("sandbox_created"));
	ck_assert(!kit_has("note"));
	ck_assert_str_eq(kit_str("sandbox"), "work");
	kit_close();
}
TEST_END

TEST(a_signal_is_named)
{
	kit_open();
	play.status = (struct runtime_status){.end = RUNTIME_END_SIGNAL, .signal = SIGKILL};
	kit_ok(&tool_exec, "{'sandbox':'work','command':'x'}");
	ck_assert_str_eq(kit_str("signal"), "SIGKILL");
	ck_assert(!kit_has("exit_code"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "memory"));
	play.status.signal = SIGRTMIN + 3;
	kit_ok(&tool_exec, "{'sandbox':'work','command':'x'}");
	ck_assert_ptr_nonnull(strstr(kit_str("signal"), "signal "));
	kit_close();
}
TEST_END

TEST(a_timeout_is_a_result_that_says_what_to_do)
{
	kit_open();
	play.out = "half";
	play.status = (struct runtime_status){.end = RUNTIME_END_TIMEOUT, .signal = SIGTERM};
	kit_ok(&tool_exec, "{'sandbox':'work','command':'x','timeout':2}");
	ck_assert(!kit.call.is_error);
	ck_assert(kit_true("timed_out"));
	ck_assert_str_eq(kit_str("stdout"), "half");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "within 2 s"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "3600"));
	kit_close();
}
TEST_END

TEST(an_end_that_nobody_saw_is_an_error_with_the_output_so_far)
{
	kit_open();
	play.out = "step 1\n";
	play.status = (struct runtime_status){.end = RUNTIME_END_LOST};
	ck_assert(kit_call(&tool_exec, "{'sandbox':'work','command':'x'}"));
	ck_assert(kit.call.is_error);
	ck_assert_str_eq(kit_str("error"), "lost");
	ck_assert_str_eq(kit_str("stdout"), "step 1\n");
	ck_assert_ptr_nonnull(strstr(kit_str("message"), "not known"));
	ck_assert_ptr_nonnull(strstr(kit_str("fix"), "list_files"));
	ck_assert(!kit_has("exit_code"));
	kit_close();
}
TEST_END

TEST(a_command_that_ended_all_processes_is_not_told_of_a_lack_of_memory)
{
	kit_open();
	play.out = "step 1\n";
	play.status = (struct runtime_status){.end = RUNTIME_END_LOST, .swept = true};
	ck_assert(kit_call(&tool_exec, "{'sandbox':'work','command':'kill -9 -1'}"));
	ck_assert(kit.call.is_error);
	ck_assert_str_eq(kit_str("error"), "lost");
	ck_assert_str_eq(kit_str("stdout"), "step 1\n");
	ck_assert_ptr_nonnull(strstr(kit_str("message"), "ended every process in the sandbox"));
	ck_assert_ptr_nonnull(strstr(kit_str("fix"), "intact"));
	ck_assert_ptr_null(strstr(kit_str("fix"), "memory"));
	kit_close();
}
TEST_END

TEST(processes_left_running_are_counted_and_explained)
{
	kit_open();
	play.status = (struct runtime_status){.end = RUNTIME_END_EXIT, .survivors = 2};
	kit_ok(&tool_exec, "{'sandbox':'work','command':'sleep 100 & sleep 100 &'}");
	ck_assert_int_eq(kit_int("background_processes"), 2);
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "still run: 2"));
	kit_close();
}
TEST_END

TEST(long_output_keeps_its_ends_and_its_size)
{
	setenv("SMCP_STDOUT_BYTES", "1k", 1);
	kit_open();
	char *text = xcalloc(1, 3001);
	memset(text, 'x', 3000);
	memcpy(text, "begin", 5);
	memcpy(text + 2997, "end", 3);
	play.out = text;
	kit_ok(&tool_exec, "{'sandbox':'work','command':'x'}");
	ck_assert(kit_true("stdout_truncated"));
	ck_assert(!kit_true("stderr_truncated"));
	ck_assert_int_eq(kit_int("stdout_bytes"), 3000);
	const char *got = kit_str("stdout");
	ck_assert_uint_lt(strlen(got), 1200);
	ck_assert_int_eq(strncmp(got, "begin", 5), 0);
	ck_assert_str_eq(got + strlen(got) - 3, "end");
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "read_text"));
	free(text);
	kit_close();
}
TEST_END

TEST(chinese_output_is_decoded_and_rubbish_is_marked)
{
	kit_open();
	play.out = "\xc4\xe3\xba\xc3\n";
	play.err = "\xff\xfe\xff\n";
	kit_ok(&tool_exec, "{'sandbox':'work','command':'x'}");
	ck_assert_str_eq(kit_str("stdout"), "\xe4\xbd\xa0\xe5\xa5\xbd\n");
	ck_assert_str_eq(kit_str("stdout_encoding"), "gb18030");
	ck_assert_str_eq(kit_str("stderr_encoding"), "binary");
	kit_close();
}
TEST_END

TEST(a_bad_argument_leaves_nothing_behind)
{
	kit_open();
	kit_fails(ERR_INVALID, &tool_exec, "{'sandbox':'w','command':'a\\u0000b'}");
	kit_message_has("NUL");
	kit_fails(ERR_INVALID, &tool_exec, "{'sandbox':'w','command':'x','env':{'A=B':'1'}}");
	kit_fails(ERR_INVALID, &tool_exec, "{'sandbox':'w','command':'x','cwd':'a\\u0000b'}");
	AUTO_BUF env = BUF_INIT;
	for (int i = 0; i < 5000; i++)
		buf_printf(&env, "%s'V%d':''", i == 0 ? "" : ",", i);
	kit_fails(ERR_TOO_LARGE, &tool_exec, "{'sandbox':'w','command':'x','env':{%s}}",
		  buf_str(&env));
	kit_message_has("5000");
	ck_assert_int_eq(kit_count(), 0);
	ck_assert_int_eq(play.execs, 0);
	kit_close();
}
TEST_END

TEST(an_unknown_id_is_not_made_into_a_sandbox)
{
	kit_open();
	kit_fails(ERR_NOT_FOUND, &tool_exec,
		  "{'sandbox_id':'0123456789abcdef0123456789abcdef','command':'true'}");
	ck_assert_int_eq(kit_count(), 0);
	kit_close();
}
TEST_END

/* --- beyond the wait ----------------------------------------------------------------------- */

static int command_end = -1; /* closing it ends the command */

static void runs_on(void)
{
	kit_open();
	kit.conf.exec_wait = 0;
	play.runs_on = &command_end;
	play.out = "line 1\nline 2\n";
}

static void end_command(void)
{
	close(command_end);
	command_end = -1;
}

TEST(a_command_that_outlasts_the_wait_is_answered_with_its_output_so_far)
{
	runs_on();
	kit_ok(&tool_exec, "{'sandbox':'work','command':'make','timeout':90}");
	ck_assert_int_eq(played.adopts, 1);
	ck_assert_str_eq(kit_str("status"), "running");
	ck_assert_str_eq(kit_str("job_id"), played.last_id);
	ck_assert_str_eq(kit_str("stdout"), "line 1\nline 2\n");
	ck_assert_ptr_nonnull(strstr(kit_str("next"), "get_job"));
	ck_assert_ptr_nonnull(strstr(kit_str("next"), played.last_id));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "90 s"));
	ck_assert_ptr_nonnull(strstr(kit_str("note"), "Do not start it again"));
	ck_assert(!kit_has("exit_code"));
	ck_assert(kit.call.task.status == TOOL_TASK_NONE);
	kit_ok(&tool_get_job, "{'job_id':'%s'}", played.last_id);
	ck_assert_str_eq(kit_str("log_tail"), "line 1\nline 2\n");
	end_command();
	kit_close();
}
TEST_END

/* Ends the command after some time, in milliseconds. */
static void *end_later(void *ms)
{
	clock_sleep_ms(*(int *)ms);
	end_command();
	return NULL;
}

/* Its last moments, between TERM and KILL, may come after the wait. */
TEST(one_whose_time_is_up_within_the_wait_is_never_handed_over)
{
	pthread_t thread;
	int ms = 1200;
	runs_on();
	kit.conf.exec_wait = 1;
	play.status = (struct runtime_status){.end = RUNTIME_END_TIMEOUT, .signal = SIGTERM};
	pthread_create(&thread, NULL, end_later, &ms);
	kit_ok(&tool_exec, "{'sandbox':'work','command':'x','timeout':1}");
	pthread_join(thread, NULL);
	ck_assert(kit_true("timed_out"));
	ck_assert_int_eq(played.adopts, 0);
	kit_close();
}
TEST_END

TEST(what_cannot_be_handed_over_is_waited_for)
{
	pthread_t thread;
	int ms = 300;
	runs_on();
	played.adopt_fails = ERR_QUOTA;
	pthread_create(&thread, NULL, end_later, &ms);
	kit_ok(&tool_exec, "{'sandbox':'work','command':'make'}");
	pthread_join(thread, NULL);
	ck_assert_int_eq(played.adopts, 1);
	ck_assert_str_eq(kit_str("status"), "finished");
	ck_assert_int_eq(kit_int("exit_code"), 0);
	ck_assert_str_eq(kit_str("stdout"), "line 1\nline 2\n");
	kit_close();
}
TEST_END

/* --- as a task of the protocol ------------------------------------------------------------- */

/* An exec of a client that takes tasks. */
static void exec_as_task(const char *arguments)
{
	kit_clear();
	kit.arguments = json_literal(arguments);
	kit.call = (struct tool_call){
		.app = &kit.app, .principal = "me", .arguments = kit.arguments, .takes_task = true};
	ck_ok(tool_exec.call(&kit.call, &kit.err), kit.err);
}

static bool get_as(const char *principal, const char *id, struct tool_task *task)
{
	kit_clear();
	kit.call = (struct tool_call){.app = &kit.app, .principal = principal};
	*task = (struct tool_task){0};
	return toolset_tasks.get(&kit.call, id, task, &kit.err);
}

static char task_id[ID_LEN + 1];

static void promote(void)
{
	runs_on();
	exec_as_task("{\"sandbox\":\"work\",\"command\":\"make\",\"timeout\":90}");
	memcpy(task_id, kit.call.task.id, sizeof(task_id));
}

TEST(a_client_that_takes_tasks_gets_one_for_a_slow_exec)
{
	promote();
	ck_assert_int_eq(kit.call.task.status, TOOL_TASK_WORKING);
	ck_assert_str_eq(kit.call.task.id, played.last_id);
	ck_assert_str_eq(kit.call.task.message, "line 2");
	ck_assert_int_eq(kit.call.task.ttl_ms, 90000 + kit.conf.job_log_retention * 1000);
	ck_assert_ptr_null(kit.call.structured);
	tool_task_finish(&kit.call.task);
	end_command();
	play.runs_on = NULL;
	exec_as_task("{\"sandbox\":\"work\",\"command\":\"true\"}");
	ck_assert_int_eq(kit.call.task.status, TOOL_TASK_NONE);
	ck_assert_str_eq(kit_str("status"), "finished");
	kit_close();
}
TEST_END

TEST(its_result_is_what_exec_would_have_given)
{
	struct tool_task task;
	promote();
	tool_task_finish(&kit.call.task);
	ck_assert(get_as("me", task_id, &task));
	ck_assert_int_eq(task.status, TOOL_TASK_WORKING);
	ck_assert_str_eq(task.message, "line 2");
	tool_task_finish(&task);
	played_print(task_id, RECORD_STDERR, "warning\n", 8);
	played_end(task_id, TASK_FAILED, 3, 0);
	ck_assert(get_as("me", task_id, &task));
	ck_assert_int_eq(task.status, TOOL_TASK_COMPLETED);
	ck_assert_int_ge(task.updated_at, task.created_at);
	kit_conforms(tool_exec.output_schema, kit.call.structured, "result");
	ck_assert(!kit.call.is_error);
	ck_assert_str_eq(kit_str("status"), "finished");
	ck_assert_int_eq(kit_int("exit_code"), 3);
	ck_assert_str_eq(kit_str("stdout"), "line 1\nline 2\n");
	ck_assert_str_eq(kit_str("stderr"), "warning\n");
	ck_assert_int_eq(kit_int("cpu_ms"), 7);
	ck_assert_int_eq(kit_int("max_rss_kib"), 2048);
	ck_assert_int_eq(kit_int("background_processes"), 1);
	ck_assert_str_eq(kit_str("sandbox"), "work");
	end_command();
	kit_close();
}
TEST_END

TEST(each_end_has_its_status)
{
	static const struct {
		enum task_state state;
		int signal;
		enum tool_task_status status;
		bool timed_out, is_error;
	} cases[] = {
		{TASK_SUCCEEDED, 0, TOOL_TASK_COMPLETED, false, false},
		{TASK_FAILED, SIGSEGV, TOOL_TASK_COMPLETED, false, false},
		{TASK_TIMED_OUT, SIGKILL, TOOL_TASK_COMPLETED, true, false},
		{TASK_UNKNOWN, 0, TOOL_TASK_COMPLETED, false, true},
		{TASK_CANCELLED, SIGTERM, TOOL_TASK_CANCELLED, false, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tool_task task;
		promote();
		tool_task_finish(&kit.call.task);
		played_end(task_id, cases[i].state, 0, cases[i].signal);
		ck_assert(get_as("me", task_id, &task));
		ck_assert_int_eq(task.status, cases[i].status);
		ck_assert_int_eq(kit.call.is_error, cases[i].is_error);
		if (cases[i].is_error) {
			ck_assert_str_eq(kit_str("error"), "lost");
			ck_assert_ptr_nonnull(strstr(kit_str("message"), "supervisor was killed"));
			ck_assert_str_eq(kit_str("stdout"), "line 1\nline 2\n");
		} else if (task.status == TOOL_TASK_COMPLETED) {
			ck_assert_int_eq(kit_true("timed_out"), cases[i].timed_out);
			ck_assert_int_eq(kit_has("signal"), cases[i].signal != 0);
		}
		end_command();
		kit_close();
	}
}
TEST_END

TEST(long_output_of_a_task_keeps_its_ends_and_beyond_the_record_its_start)
{
	struct tool_task task;
	setenv("SMCP_STDOUT_BYTES", "1k", 1);
	promote();
	tool_task_finish(&kit.call.task);
	char *block = xcalloc(1, RECORD_KEPT_MAX + 1);
	memset(block, 'z', RECORD_KEPT_MAX);
	memcpy(block + 99997, "end", 3);
	played_print(task_id, RECORD_STDOUT, block, 100000);
	played_end(task_id, TASK_SUCCEEDED, 0, 0);
	ck_assert(get_as("me", task_id, &task));
	ck_assert_int_eq(kit_int("stdout_bytes"), 100014);
	ck_assert(kit_true("stdout_truncated"));
	const char *text = kit_str("stdout");
	ck_assert_int_eq(strncmp(text, "line 1\n", 7), 0);
	ck_assert_str_eq(text + strlen(text) - 3, "end");
	ck_assert_uint_lt(strlen(text), 1200);
	played_print(task_id, RECORD_STDOUT, block, RECORD_KEPT_MAX);
	ck_assert(get_as("me", task_id, &task));
	ck_assert_int_eq(kit_int("stdout_bytes"), 100014 + RECORD_KEPT_MAX);
	text = kit_str("stdout");
	ck_assert_int_eq(strncmp(text, "line 1\n", 7), 0);
	ck_assert_ptr_nonnull(strstr(text, "left out"));
	free(block);
	end_command();
	kit_close();
}
TEST_END

TEST(only_what_exec_handed_over_is_such_a_task_and_only_to_its_owner)
{
	struct tool_task task;
	promote();
	tool_task_finish(&kit.call.task);
	ck_assert(!get_as("somebody else", task_id, &task));
	ck_assert_int_eq(kit.err.code, ERR_NOT_FOUND);
	kit_ok(&tool_run_background, "{'sandbox':'work','command':'x'}");
	ck_assert(!get_as("me", played.last_id, &task));
	ck_assert_int_eq(kit.err.code, ERR_NOT_FOUND);
	kit_clear();
	kit.call = (struct tool_call){.app = &kit.app, .principal = "me"};
	ck_assert(!toolset_tasks.cancel(&kit.call, played.last_id, &kit.err));
	ck_assert_int_eq(played.cancels, 0);
	kit.err = (struct err)ERR_INIT;
	played.cancel_state = TASK_CANCELLED;
	ck_ok(toolset_tasks.cancel(&kit.call, task_id, &kit.err), kit.err);
	ck_assert(get_as("me", task_id, &task));
	ck_assert_int_eq(task.status, TOOL_TASK_CANCELLED);
	end_command();
	kit_close();
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		the_command_gets_its_arguments,
		what_is_left_out_has_the_defaults,
		output_and_a_non_zero_code_are_a_result,
		a_new_sandbox_is_said_once,
		a_signal_is_named,
		a_timeout_is_a_result_that_says_what_to_do,
		an_end_that_nobody_saw_is_an_error_with_the_output_so_far,
		a_command_that_ended_all_processes_is_not_told_of_a_lack_of_memory,
		processes_left_running_are_counted_and_explained,
		long_output_keeps_its_ends_and_its_size,
		chinese_output_is_decoded_and_rubbish_is_marked,
		a_bad_argument_leaves_nothing_behind,
		an_unknown_id_is_not_made_into_a_sandbox,
		a_command_that_outlasts_the_wait_is_answered_with_its_output_so_far,
		one_whose_time_is_up_within_the_wait_is_never_handed_over,
		what_cannot_be_handed_over_is_waited_for,
		a_client_that_takes_tasks_gets_one_for_a_slow_exec,
		its_result_is_what_exec_would_have_given,
		each_end_has_its_status,
		long_output_of_a_task_keeps_its_ends_and_beyond_the_record_its_start,
		only_what_exec_handed_over_is_such_a_task_and_only_to_its_owner,
	};
	return unit_run("tool_exec", tests, ARRAY_LEN(tests));
}
