/*
 * Unit tests: one program per module, Check as the framework, TAP on standard output. A test's
 * name is a sentence. Each test runs in a process of its own (CK_FORK=no for a debugger).
 *
 *	TEST(reading_past_the_end_returns_nothing) { ck_assert_int_eq(...); }
 *	TEST_END
 *	int main(void)
 *	{
 *		const TTest *const unit_tests[] = {reading_past_the_end_returns_nothing};
 *		return unit_run("capture", unit_tests, ARRAY_LEN(unit_tests));
 *	}
 */
#ifndef SPOOLBOX_UNIT_H
#define SPOOLBOX_UNIT_H

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
/* Sanitizers keep freed memory: limits on it mean nothing then. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define UNIT_SANITIZED 1
#else
#define UNIT_SANITIZED 0
#endif

#define TEST(name) START_TEST(name)
#define TEST_END   END_TEST

static inline int unit_run(const char *module, const TTest *const *tests, size_t count)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	Suite *suite = suite_create(module);
	TCase *tcase = tcase_create(module);
	tcase_set_timeout(tcase, 60);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

static inline int unit_remove_(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* A fresh directory, removed with unit_tempdir_remove. The caller frees the name. */
static inline char *unit_tempdir(void)
{
	char *path = strdup("/tmp/spoolbox-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(path));
	return path;
}

static inline void unit_tempdir_remove(char *path)
{
	nftw(path, unit_remove_, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

/* Asserts that a call succeeded and shows why when it did not. */
#define ck_ok(expr, err) \
	ck_assert_msg(expr, "%s: %s [%s]", err_name((err).code), (err).msg, (err).trace)

#endif
