/* exec: what it hands to the runtime and what it makes of each kind of end. */
#include <signal.h>

#include "tool_kit.h"

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
	};
	return unit_run("tool_exec", tests, ARRAY_LEN(tests));
}
