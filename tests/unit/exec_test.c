#include "sandbox_kit.h"

#include <sys/eventfd.h>

#include "base/json.h"
#include "box/exec.h"

/* What the driver was asked for, and how often it says that the sandbox went down. */
static char *seen_env, *seen_cwd, *seen_argv[8];
static struct runtime_command seen;
static int lose;
static enum err_code refuse_with;

static void forget(void)
{
	free(seen_env);
	free(seen_cwd);
	seen_env = seen_cwd = NULL;
	for (size_t i = 0; i < ARRAY_LEN(seen_argv); i++) {
		free(seen_argv[i]);
		seen_argv[i] = NULL;
	}
}

static bool fake_exec(const struct runtime_box *box, const struct runtime_command *command,
		      struct runtime_exec *exec, struct err *err)
{
	kit_note('E');
	ck_assert_int_eq(fake_alive(box, err), 1);
	if (lose > 0) {
		lose--;
		unlinkat(box->run_dir_fd, "up", 0);
		return err_set(err, ERR_LOST, "the sandbox is down");
	}
	if (refuse_with != ERR_NONE)
		return err_set(err, refuse_with, "no such cwd");
	forget();
	seen = *command;
	AUTO_BUF env = BUF_INIT;
	buf_putc(&env, '\n');
	for (size_t i = 0; command->env[i] != NULL; i++)
		buf_printf(&env, "%s\n", command->env[i]);
	seen_env = buf_take(&env);
	seen_cwd = xstrdup(command->cwd);
	for (size_t i = 0; command->argv[i] != NULL; i++)
		seen_argv[i] = xstrdup(command->argv[i]);
	ck_assert_int_eq(write(command->stdout_fd, "hello", 5), 5);
	exec->fd = eventfd(1, EFD_CLOEXEC);
	return true;
}

static void fake_finish(struct runtime_exec *exec, struct runtime_status *status)
{
	util_close(&exec->fd);
	*status = (struct runtime_status){.end = RUNTIME_END_EXIT, .code = 3};
}

static struct sandbox_row row;
static struct sandbox_use use;

static void enter_with_env(const char *env_text)
{
	struct err err = ERR_INIT;
	AUTO_JSON *env = env_text == NULL ? NULL : json_literal(env_text);
	fake.exec = fake_exec;
	fake.finish = fake_finish;
	row = kit_create(&(struct sandbox_options){.name = "work", .env = env});
	ck_ok(sandbox_enter(&app, &row, &use, &err), err);
}

static void leave(void)
{
	forget();
	sandbox_leave(&use);
	sandbox_row_finish(&row);
}

static bool run(const struct exec_options *options, struct err *err)
{
	struct session session;
	session_init(&session, 1000, 1000);
	bool ok = exec_run(&app, &row, &use, options, &session, err);
	if (ok) {
		AUTO_BUF out = BUF_INIT;
		capture_text(&session.out, &out);
		ck_assert_str_eq(buf_str(&out), "hello");
		ck_assert_int_eq(session.status.end, RUNTIME_END_EXIT);
		ck_assert_int_eq(session.status.code, 3);
	}
	session_finish(&session);
	return ok;
}

static void run_ok(const struct exec_options *options)
{
	struct err err = ERR_INIT;
	ck_ok(run(options, &err), err);
}

static enum err_code check(const struct exec_options *options, struct err *err)
{
	*err = (struct err)ERR_INIT;
	return exec_check(&app, options, err) ? ERR_NONE : err->code;
}

#define HAS_ENV(line) ck_assert_msg(strstr(seen_env, "\n" line "\n") != NULL, "%s", seen_env)

TEST(a_command_goes_by_argv_to_a_shell_with_a_clean_environment)
{
	setup();
	enter_with_env(NULL);
	setenv("SMCP_TOKEN", "server-secret", 1);
	run_ok(&(struct exec_options){.command = "-x; cat <<'EOF'\n'\"$(id)"});
	bool bash = access("/usr/bin/bash", X_OK) == 0;
	ck_assert_str_eq(seen_argv[0], bash ? "/bin/bash" : "/bin/sh");
	ck_assert_str_eq(seen_argv[1], "-c");
	ck_assert_str_eq(seen_argv[2], "--");
	ck_assert_str_eq(seen_argv[3], "-x; cat <<'EOF'\n'\"$(id)");
	ck_assert_ptr_null(seen_argv[4]);
	ck_assert_str_eq(seen_cwd, "/workspace");
	HAS_ENV("HOME=/workspace");
	HAS_ENV("USER=user");
	HAS_ENV("LOGNAME=user");
	HAS_ENV("LANG=C.UTF-8");
	HAS_ENV("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	ck_assert_ptr_null(strstr(seen_env, "SMCP"));
	ck_assert_int_eq(seen.timeout_ms, 60000);
	ck_assert_int_eq(seen.limits.processes, 512);
	ck_assert_int_eq(seen.limits.open_files, 4096);
	ck_assert_int_eq(seen.limits.file_bytes, conf.file_size);
	ck_assert_int_eq(seen.limits.data_bytes, conf.mem_limit);
	leave();
	teardown();
}
TEST_END

TEST(the_limits_are_those_of_the_settings)
{
	setup();
	enter_with_env(NULL);
	conf.pids_limit = 33;
	conf.open_files = 77;
	conf.file_size = 5 << 20;
	conf.mem_limit = 48 << 20;
	conf.exec_timeout = 9;
	run_ok(&(struct exec_options){.command = "true"});
	ck_assert_int_eq(seen.limits.processes, 33);
	ck_assert_int_eq(seen.limits.open_files, 77);
	ck_assert_int_eq(seen.limits.file_bytes, 5 << 20);
	ck_assert_int_eq(seen.limits.data_bytes, 48 << 20);
	ck_assert_int_eq(seen.timeout_ms, 9000);
	leave();
	teardown();
}
TEST_END

TEST(the_calls_environment_is_over_the_sandboxs_and_that_over_the_base)
{
	setup();
	enter_with_env("{\"A\":\"sandbox\",\"B\":\"sandbox\",\"LANG\":\"zh_CN.UTF-8\"}");
	AUTO_JSON *env = json_literal("{\"B\":\"call\",\"AB\":\"x=y z\"}");
	run_ok(&(struct exec_options){.command = "true", .env = env});
	HAS_ENV("A=sandbox");
	HAS_ENV("B=call");
	HAS_ENV("AB=x=y z");
	HAS_ENV("LANG=zh_CN.UTF-8");
	ck_assert_ptr_null(strstr(seen_env, "C.UTF-8"));
	ck_assert_ptr_null(strstr(seen_env, "B=sandbox"));
	leave();
	teardown();
}
TEST_END

TEST(a_relative_cwd_is_below_the_workspace)
{
	setup();
	static const char *const cases[][2] = {{NULL, "/workspace"},
					       {"", "/workspace"},
					       {"a/b", "/workspace/a/b"},
					       {"/tmp", "/tmp"},
					       {"/workspace/x", "/workspace/x"}};
	enter_with_env(NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		run_ok(&(struct exec_options){.command = "true", .cwd = cases[i][0]});
		ck_assert_str_eq(seen_cwd, cases[i][1]);
	}
	leave();
	teardown();
}
TEST_END

TEST(a_sandbox_that_goes_down_before_the_command_is_started_again)
{
	setup();
	struct err err = ERR_INIT;
	enter_with_env(NULL);
	lose = 2;
	run_ok(&(struct exec_options){.command = "true"});
	ck_assert_int_eq(kit_count('S'), 3);
	ck_assert_int_eq(kit_count('E'), 3);
	lose = 100;
	ck_assert(!run(&(struct exec_options){.command = "true"}, &err));
	ck_assert_int_eq(err.code, ERR_LOST);
	ck_assert_ptr_nonnull(strstr(err.hint, "did not run"));
	ck_assert_int_eq(kit_count('E'), 6);
	leave();
	teardown();
}
TEST_END

TEST(other_failures_of_the_driver_are_not_tried_again)
{
	setup();
	struct err err = ERR_INIT;
	enter_with_env(NULL);
	refuse_with = ERR_INVALID;
	ck_assert(!run(&(struct exec_options){.command = "true"}, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert_str_eq(err.msg, "no such cwd");
	ck_assert_int_eq(kit_count('E'), 1);
	leave();
	teardown();
}
TEST_END

TEST(a_destroyed_sandbox_runs_nothing)
{
	setup();
	struct err err = ERR_INIT;
	struct sandbox_destroyed out = {0};
	enter_with_env(NULL);
	ck_ok(sandbox_destroy(&app, ALICE, "work", true, &out, &err), err);
	free(out.name);
	ck_assert(!run(&(struct exec_options){.command = "true"}, &err));
	ck_assert_int_eq(err.code, ERR_DESTROYED);
	ck_assert_int_eq(kit_count('S'), 0);
	ck_assert_int_eq(kit_count('E'), 0);
	leave();
	teardown();
}
TEST_END

TEST(commands_are_checked_in_characters_and_bytes)
{
	setup();
	struct err err;
	ck_assert_int_eq(check(&(struct exec_options){.command = NULL}, &err), ERR_INVALID);
	ck_assert_int_eq(check(&(struct exec_options){.command = ""}, &err), ERR_INVALID);
	ck_assert_int_eq(check(&(struct exec_options){.command = "a\0b", .command_len = 3}, &err),
			 ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.msg, "NUL"));
	ck_assert_int_eq(check(&(struct exec_options){.command = "\xff"}, &err), ERR_INVALID);
	/* 65,536 characters of one byte pass, one more does not; of three bytes the sum is too
	 * much. */
	AUTO_FREE char *text = xcalloc(1, EXEC_COMMAND_MAX + 2);
	memset(text, 'x', EXEC_COMMAND_MAX);
	ck_assert_int_eq(check(&(struct exec_options){.command = text}, &err), ERR_NONE);
	text[EXEC_COMMAND_MAX] = 'x';
	ck_assert_int_eq(check(&(struct exec_options){.command = text}, &err), ERR_TOO_LARGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "65537"));
	AUTO_BUF wide = BUF_INIT;
	while (wide.len <= EXEC_REQUEST_MAX)
		buf_puts(&wide, "\xe4\xbd\xa0");
	ck_assert_int_eq(check(&(struct exec_options){.command = buf_str(&wide)}, &err),
			 ERR_TOO_LARGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "98304"));
	teardown();
}
TEST_END

TEST(timeout_cwd_and_env_are_checked)
{
	setup();
	struct err err;
	static const int64_t bad[] = {-1, 3600001, INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_int_eq(
			check(&(struct exec_options){.command = "x", .timeout_ms = bad[i]}, &err),
			ERR_INVALID);
	ck_assert_int_eq(check(&(struct exec_options){.command = "x", .timeout_ms = 3600000}, &err),
			 ERR_NONE);
	AUTO_FREE char *cwd = xcalloc(1, 5000);
	memset(cwd, 'd', 4096);
	ck_assert_int_eq(check(&(struct exec_options){.command = "x", .cwd = cwd}, &err),
			 ERR_INVALID);
	AUTO_JSON *env = json_literal("{\"A B\":\"x\"}");
	ck_assert_int_eq(check(&(struct exec_options){.command = "x", .env = env}, &err),
			 ERR_INVALID);
	teardown();
}
TEST_END

static struct json_object *variables(char letter, int count)
{
	struct json_object *env = json_object_new_object();
	for (int i = 0; i < count; i++) {
		AUTO_FREE char *name = xasprintf("%c%d", letter, i);
		json_add_str(env, name, "");
	}
	return env;
}

/* What the check lets through must not be refused when the sandbox is there. */
TEST(the_largest_requests_that_pass_the_check_can_be_sent)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_JSON *own = variables('O', SANDBOX_ENV_MAX), *env = variables('C', SANDBOX_ENV_MAX);
	AUTO_JSON *more = variables('C', SANDBOX_ENV_MAX + 1);
	enter_with_env(json_text(own, NULL));
	run_ok(&(struct exec_options){.command = "true", .env = env});
	ck_assert_int_eq(check(&(struct exec_options){.command = "true", .env = more}, &err),
			 ERR_TOO_LARGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "1001"));
	leave();
	kit_sql("UPDATE sandbox SET state = 'gone'");
	enter_with_env(NULL);
	AUTO_BUF wide = BUF_INIT;
	do {
		buf_puts(&wide, "\xe4\xbd\xa0");
	} while (check(&(struct exec_options){.command = buf_str(&wide)}, &err) == ERR_NONE);
	ck_assert_int_eq(err.code, ERR_TOO_LARGE);
	ck_assert_uint_gt(wide.len, EXEC_REQUEST_MAX - 512);
	wide.data[wide.len - 3] = '\0';
	run_ok(&(struct exec_options){.command = buf_str(&wide)});
	leave();
	teardown();
}
TEST_END

TEST(the_sandboxs_own_environment_counts_towards_the_limit)
{
	setup();
	struct err err = ERR_INIT;
	AUTO_JSON *env = json_object_new_object();
	AUTO_FREE char *value = xcalloc(1, 60001);
	memset(value, 'v', 60000);
	json_add_str(env, "BIG", value);
	enter_with_env(json_text(env, NULL));
	AUTO_FREE char *command = xcalloc(1, 60001);
	memset(command, 'x', 60000);
	ck_assert_int_eq(check(&(struct exec_options){.command = command}, &err), ERR_NONE);
	ck_assert(!run(&(struct exec_options){.command = command}, &err));
	ck_assert_int_eq(err.code, ERR_TOO_LARGE);
	ck_assert_int_eq(kit_count('S'), 0);
	run_ok(&(struct exec_options){.command = "true"});
	leave();
	teardown();
}
TEST_END

TEST(a_command_renews_the_lifetime_when_it_ends)
{
	setup();
	enter_with_env(NULL);
	kit_sql("UPDATE sandbox SET ttl_ms = 60000, expires_at = last_used_at - 86400000,"
		" last_used_at = last_used_at - 86500000");
	run_ok(&(struct exec_options){.command = "true"});
	struct err err = ERR_INIT;
	AUTO_SANDBOX_ROW now = {0};
	ck_ok(sandbox_find(&app, ALICE, "work", &now, &err), err);
	ck_assert_int_gt(now.expires_at, clock_wall_ms());
	leave();
	teardown();
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		a_command_goes_by_argv_to_a_shell_with_a_clean_environment,
		the_limits_are_those_of_the_settings,
		the_calls_environment_is_over_the_sandboxs_and_that_over_the_base,
		a_relative_cwd_is_below_the_workspace,
		a_sandbox_that_goes_down_before_the_command_is_started_again,
		other_failures_of_the_driver_are_not_tried_again,
		a_destroyed_sandbox_runs_nothing,
		commands_are_checked_in_characters_and_bytes,
		timeout_cwd_and_env_are_checked,
		the_largest_requests_that_pass_the_check_can_be_sent,
		the_sandboxs_own_environment_counts_towards_the_limit,
		a_command_renews_the_lifetime_when_it_ends,
	};
	return unit_run("exec", unit_tests, ARRAY_LEN(unit_tests));
}
