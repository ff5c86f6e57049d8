/* The text for the model. */
#include "mcp/instructions.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.h"
#include "box/app.h"
#include "unit.h"

static char *made(const char *variable, const char *value)
{
	if (variable != NULL)
		setenv(variable, value, 1);
	setenv("SMCP_ENV_FILE", "/dev/null", 1);
	struct conf conf;
	struct err err = ERR_INIT;
	ck_ok(conf_load(&conf, &err), err);
	struct app app = {.conf = &conf};
	char *text = instructions_make(&app);
	conf_finish(&conf);
	return text;
}

#define has(text, part)   ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text)
#define lacks(text, part) ck_assert_msg(strstr(text, part) == NULL, "\"%s\" is in: %s", part, text)

TEST(the_text_is_short_and_names_what_matters)
{
	char *text = made(NULL, NULL);
	ck_assert_uint_lt(strlen(text), 4096);
	ck_assert(text_is_utf8(text, strlen(text)));
	has(text, "/workspace");
	has(text, "upload_file");
	has(text, "spoolbox://");
	has(text, "25 s");
	has(text, "60 s");
	has(text, "run_background");
	has(text, "get_job");
	has(text, "socket timeout");
	has(text, "3600");
	has(text, "7200 s");
	has(text, "604800 s");
	has(text, "10 GiB");
	has(text, "loopback only");
	has(text, "GBK");
	has(text, "execute_python");
	has(text, "300 s pass");
	free(text);
}
TEST_END

TEST(numbers_follow_the_settings)
{
	char *text = made("SMCP_EXEC_TIMEOUT", "77");
	has(text, "77 s");
	free(text);
	text = made("SMCP_EXEC_WAIT", "9");
	has(text, "9 s at most");
	free(text);
	text = made("SMCP_PYTHON_IDLE_SECONDS", "66");
	has(text, "66 s pass");
	free(text);
	text = made("SMCP_TMP_SIZE", "3m");
	has(text, "3 MiB");
	free(text);
	text = made("SMCP_SANDBOX_NETWORK", "none");
	has(text, "Network: none");
	lacks(text, "loopback");
	free(text);
}
TEST_END

static void touch(const char *usr, const char *dir, const char *name, bool is_dir)
{
	char *path = xasprintf("%s/%s/%s", usr, dir, name);
	for (char *p = path + strlen(usr) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	if (is_dir)
		ck_assert_int_eq(mkdir(path, 0755), 0);
	else
		close(open(path, O_CREAT | O_WRONLY, 0755));
	free(path);
}

TEST(programs_and_modules_are_found_by_their_names)
{
	char *usr = unit_tempdir();
	touch(usr, "bin", "python3.11", false);
	touch(usr, "bin", "jq", false);
	touch(usr, "local/bin", "ffmpeg", false);
	touch(usr, "lib/python3/dist-packages", "numpy", true);
	touch(usr, "local/lib/python3.11/dist-packages", "pypdf", true);
	touch(usr, "lib/python3/dist-packages", "chardet.py", false);
	char *link = xasprintf("%s/bin/python3", usr);
	ck_assert_int_eq(symlink("python3.11", link), 0);
	free(link);
	AUTO_BUF out = BUF_INIT;
	instructions_installed(&out, usr);
	has(buf_str(&out), "python3 3.11, ");
	has(buf_str(&out), "jq");
	has(buf_str(&out), "ffmpeg");
	has(buf_str(&out), "numpy, pypdf, chardet.");
	lacks(buf_str(&out), "gcc");
	lacks(buf_str(&out), "pandas");
	unit_tempdir_remove(usr);
}
TEST_END

/* What an operator may install of it, and what a model then is to know of. */
TEST(the_whole_set_is_named_and_still_short)
{
	static const char *const names[] = {"numpy",   "pandas",   "matplotlib", "scipy",
					    "PIL",     "openpyxl", "lxml",       "bs4",
					    "sympy",   "requests", "networkx",   "docx",
					    "seaborn", "sklearn",  "pypdf",      "PyPDF2"};
	char *usr = unit_tempdir();
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		touch(usr, "lib/python3/dist-packages", names[i], true);
	AUTO_BUF out = BUF_INIT;
	instructions_installed(&out, usr);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		has(buf_str(&out), names[i]);
	ck_assert_uint_lt(out.len, 256);
	unit_tempdir_remove(usr);
}
TEST_END

TEST(a_bare_system_is_no_reason_to_claim_anything)
{
	AUTO_BUF out = BUF_INIT;
	instructions_installed(&out, "/nonexistent");
	ck_assert_uint_eq(out.len, 0);
}
TEST_END

int main(void)
{
	const TTest *const tests[] = {
		the_text_is_short_and_names_what_matters,
		numbers_follow_the_settings,
		programs_and_modules_are_found_by_their_names,
		the_whole_set_is_named_and_still_short,
		a_bare_system_is_no_reason_to_claim_anything,
	};
	return unit_run("instructions", tests, ARRAY_LEN(tests));
}
