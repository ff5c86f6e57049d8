#include "unit.h"

#include <fcntl.h>

#include "base/conf.h"

static void clear(void)
{
	clearenv();
	setenv("SMCP_ENV_FILE", "/dev/null", 1);
}

static void expect_refused(const char *name, const char *value, const char *allowed)
{
	clear();
	setenv(name, value, 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_assert_msg(!conf_load(&conf, &err), "%s=%s was accepted", name, value);
	ck_assert_ptr_nonnull(strstr(err.msg, name));
	ck_assert_msg(strstr(err.msg, allowed) != NULL, "%s", err.msg);
	conf_finish(&conf);
}

TEST(defaults_are_those_of_the_documents)
{
	clear();
	struct conf conf;
	struct err err = ERR_INIT;
	ck_ok(conf_load(&conf, &err), err);
	ck_assert_ptr_null(conf.token);
	ck_assert_str_eq(conf.public_url, "http://127.0.0.1:8000");
	ck_assert_str_eq(conf.data_dir, "/var/lib/spoolbox/data");
	ck_assert_int_eq(conf.mem_limit, 2147483648LL);
	ck_assert_int_eq(conf.cpus_milli, 2000);
	ck_assert_int_eq(conf.pids_limit, 512);
	ck_assert_int_eq(conf.max_sandboxes, 20);
	ck_assert_int_eq(conf.idle_stop, 7200);
	ck_assert_int_eq(conf.exec_timeout, 60);
	ck_assert_int_eq(conf.url_ttl, 3600);
	ck_assert_int_eq(conf.read_text_max, 200000);
	ck_assert_int_eq(conf.confirm_destroy, CONF_CONFIRM_NEVER);
	ck_assert_int_eq(conf.python_warm, 1);
	ck_assert_int_eq(conf.python_idle, 300);
	ck_assert_int_eq(conf.python_images, 1048576);
	ck_assert_str_eq(conf.python_artifacts,
			 ".png .csv .json .svg .html .pdf .xlsx .txt .md .zip");
	ck_assert(!conf.python_guard);
	conf_finish(&conf);
}
TEST_END

TEST(a_switch_is_on_or_off_and_python_can_do_without_ready_sandboxes)
{
	clear();
	setenv("SMCP_PYTHON_GUARD", "on", 1);
	setenv("SMCP_PYTHON_WARM", "0", 1);
	setenv("SMCP_PYTHON_ARTIFACTS", "*", 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_ok(conf_load(&conf, &err), err);
	ck_assert(conf.python_guard);
	ck_assert_int_eq(conf.python_warm, 0);
	ck_assert_str_eq(conf.python_artifacts, "*");
	conf_finish(&conf);
	clear();
	setenv("SMCP_PYTHON_GUARD", "off", 1);
	ck_ok(conf_load(&conf, &err), err);
	ck_assert(!conf.python_guard);
	conf_finish(&conf);
}
TEST_END

TEST(a_bad_value_is_refused_with_its_name_and_what_is_allowed)
{
	expect_refused("SMCP_PORT", "80a", "from 1 to 65535");
	expect_refused("SMCP_PORT", "0", "from 1 to 65535");
	expect_refused("SMCP_MEM_LIMIT", "lots", "bytes");
	expect_refused("SMCP_CPUS", "1.2345", "0.01 to 1024");
	expect_refused("SMCP_SPOOL", "relative", "absolute");
	/* Sandboxes see /usr and have the service's uid. */
	expect_refused("SMCP_SPOOL", "/usr/local/spool", "outside of /usr");
	expect_refused("SMCP_ENV_FILE", "/usr/share/spoolbox.env", "sandboxes can read");
	expect_refused("SMCP_PUBLIC_BASE_URL", "ftp://x", "https://");
	expect_refused("SMCP_SANDBOX_NETWORK", "full", "loopback");
	expect_refused("SMCP_LOG_LEVEL", "loud", "debug");
	expect_refused("SMCP_CONFIRM_DESTROY", "yes", "never or files");
	expect_refused("SMCP_URL_TTL", "999999999", "from 1 to 604800");
	expect_refused("SMCP_PYTHON_WARM", "17", "from 0 to 16");
	expect_refused("SMCP_PYTHON_IDLE_SECONDS", "9", "from 10 to 86400");
	expect_refused("SMCP_PYTHON_IMAGE_BYTES", "17m", "bytes");
	expect_refused("SMCP_PYTHON_GUARD", "true", "off or on");
}
TEST_END

TEST(a_refused_secret_is_not_shown)
{
	clear();
	setenv("SMCP_TOKEN", "hunter2", 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_assert(!conf_load(&conf, &err));
	ck_assert_ptr_null(strstr(err.msg, "hunter2"));
	conf_finish(&conf);
}
TEST_END

struct seen {
	const char *name;
	char value[128], note[256], source[32];
};

static void look(void *ctx, const struct conf_view *view)
{
	struct seen *seen = ctx;
	if (strcmp(view->name, seen->name) != 0)
		return;
	snprintf(seen->value, sizeof(seen->value), "%s", view->value);
	snprintf(seen->note, sizeof(seen->note), "%s", view->note == NULL ? "" : view->note);
	snprintf(seen->source, sizeof(seen->source), "%s", view->source);
}

static struct seen see(const struct conf *conf, const char *name)
{
	struct seen seen = {.name = name};
	conf_each(conf, look, &seen);
	return seen;
}

TEST(a_token_is_what_a_header_can_carry_as_one_word)
{
	static const char *const bad[] = {"0123456789abcdef 0123", "0123456789abcdef=0123",
					  "0123456789abcdef,0123", "0123456789abcdef\xc3\xa4",
					  "0123456789abcdef\t",    "\"0123456789abcdef\""};
	static const char *const good[] = {"0123456789abcdef", "aZ09-._~+/aZ09-._~+/=="};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		expect_refused("SMCP_TOKEN", bad[i], "letters, digits");
	expect_refused("SMCP_TOKEN", "0123456789abcde", "from 16 to 4096");
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		clear();
		setenv("SMCP_TOKEN", good[i], 1);
		struct conf conf;
		struct err err = ERR_INIT;
		ck_ok(conf_load(&conf, &err), err);
		ck_assert_str_eq(conf.token, good[i]);
		ck_assert_str_eq(see(&conf, "SMCP_TOKEN").value, "(set)");
		conf_finish(&conf);
	}
	expect_refused("SMCP_TOKEN", "================", "letters, digits");
	/* A signing key is never sent. */
	clear();
	setenv("SMCP_SIGNING_KEY", "a pass phrase, with blanks", 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_ok(conf_load(&conf, &err), err);
	conf_finish(&conf);
}
TEST_END

TEST(names_that_are_no_setting_are_noted_from_file_and_environment)
{
	clear();
	setenv("SMCP_TOKN", "x", 1);
	setenv("SMCP_", "x", 1);
	setenv("SMCPX", "x", 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_ok(conf_load(&conf, &err), err);
	ck_assert_str_eq(conf.unknown, "SMCP_TOKN, SMCP_");
	conf_finish(&conf);
	clear();
	ck_ok(conf_load(&conf, &err), err);
	ck_assert_ptr_null(conf.unknown);
	conf_finish(&conf);
}
TEST_END

TEST(an_env_file_of_another_program_works_and_notes_say_what_becomes_of_it)
{
	clear();
	char *dir = unit_tempdir();
	AUTO_BUF path = BUF_INIT;
	buf_printf(&path, "%s/env", dir);
	FILE *file = fopen(buf_str(&path), "w");
	fputs("# comment\nexport SMCP_TOKEN=\"0123456789abcdef0123\"\r\n\n"
	      "SMCP_BASE_IMAGE=registry.example/sandbox:latest\nSMCP_SANDBOX_NETWORK=bridge\n"
	      "SMCP_PUBLIC_BASE_URL='https://box.example/'\nSMCP_PIDS_LIMIT=100\nSMCP_TOKN=x\n"
	      "SMCP_SIGNING_KEY=\n",
	      file);
	fclose(file);
	setenv("SMCP_ENV_FILE", buf_str(&path), 1);
	setenv("SMCP_PIDS_LIMIT", "200", 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_ok(conf_load(&conf, &err), err);
	ck_assert_str_eq(conf.token, "0123456789abcdef0123");
	ck_assert_str_eq(conf.public_url, "https://box.example");
	ck_assert_int_eq(conf.pids_limit, 200);
	ck_assert_int_eq(conf.network, CONF_NETWORK_LOOPBACK);
	ck_assert_ptr_null(conf.signing_key);
	ck_assert_str_eq(conf.unknown, "SMCP_TOKN");
	ck_assert_str_eq(see(&conf, "SMCP_TOKEN").value, "(set)");
	ck_assert_ptr_nonnull(strstr(see(&conf, "SMCP_BASE_IMAGE").note, "template base"));
	ck_assert_ptr_nonnull(strstr(see(&conf, "SMCP_SANDBOX_NETWORK").note, "not the internet"));
	ck_assert_str_eq(see(&conf, "SMCP_PIDS_LIMIT").source, "environment");
	ck_assert_str_eq(see(&conf, "SMCP_BASE_IMAGE").source, "file");
	ck_assert_str_eq(see(&conf, "SMCP_EXEC_TIMEOUT").source, "default");
	conf_finish(&conf);
	unit_tempdir_remove(dir);
}
TEST_END

TEST(a_named_env_file_that_is_missing_stops_the_start)
{
	clear();
	setenv("SMCP_ENV_FILE", "/does/not/exist", 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_assert(!conf_load(&conf, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "/does/not/exist"));
	conf_finish(&conf);
}
TEST_END

TEST(an_env_file_with_a_nul_byte_stops_the_start_as_what_follows_would_not_be_seen)
{
	clear();
	static const char text[] = "SMCP_PIDS_LIMIT=100\n\0\nSMCP_TOKEN=0123456789abcdef0123\n";
	char *dir = unit_tempdir();
	AUTO_FREE char *path = xasprintf("%s/env", dir);
	FILE *file = fopen(path, "w");
	ck_assert_uint_eq(fwrite(text, sizeof(text) - 1, 1, file), 1);
	fclose(file);
	setenv("SMCP_ENV_FILE", path, 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_assert(!conf_load(&conf, &err));
	ck_assert_int_eq(err.code, ERR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.msg, "NUL"));
	conf_finish(&conf);
	unit_tempdir_remove(dir);
}
TEST_END

int main(void)
{
	const TTest *const unit_tests[] = {
		defaults_are_those_of_the_documents,
		a_switch_is_on_or_off_and_python_can_do_without_ready_sandboxes,
		a_bad_value_is_refused_with_its_name_and_what_is_allowed,
		a_refused_secret_is_not_shown,
		a_token_is_what_a_header_can_carry_as_one_word,
		names_that_are_no_setting_are_noted_from_file_and_environment,
		an_env_file_of_another_program_works_and_notes_say_what_becomes_of_it,
		a_named_env_file_that_is_missing_stops_the_start,
		an_env_file_with_a_nul_byte_stops_the_start_as_what_follows_would_not_be_seen,
	};
	return unit_run("conf", unit_tests, ARRAY_LEN(unit_tests));
}
