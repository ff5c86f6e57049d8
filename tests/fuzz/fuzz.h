/*
 * Fuzzers: one program per subject, libFuzzer as the engine (contrib/fuzz). A fuzzer takes any
 * bytes, hands them to the product as whoever is not trusted would, and asserts what must hold
 * whatever they are: an oracle that is simpler than the product, or a way back to the input.
 *
 * Inputs are texts of lines where that is possible, so that a seed in corpus/NAME/ can be read and
 * written by hand. Fuzzers keep no state from one input to the next: a crash must come again from
 * its file alone.
 */
#ifndef SPOOLBOX_FUZZ_H
#define SPOOLBOX_FUZZ_H

#undef NDEBUG /* what is asserted is what is looked for */
#include <assert.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "base/util.h"

/* Called by libFuzzer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is left of an input. */
struct fuzz_input {
	const char *at;
	size_t len;
};

static inline struct fuzz_input fuzz_input(const uint8_t *data, size_t size)
{
	return (struct fuzz_input){(const char *)data, size};
}

/* Takes the next line, as a string in memory of just its size: reading beyond it is found. "" at
 * the end; a NUL ends it early. The caller frees it. */
static inline char *fuzz_line(struct fuzz_input *in)
{
	const char *newline = in->len > 0 ? memchr(in->at, '\n', in->len) : NULL;
	size_t len = newline == NULL ? in->len : (size_t)(newline - in->at);
	char *line = xstrndup(in->len > 0 ? in->at : "", len);
	len += newline != NULL;
	in->at += len;
	in->len -= len;
	return line;
}

/* Takes everything up to a line that is just separator, or to the end; *len tells how much it is.
 * Borrowed from the input. */
static inline const char *fuzz_part(struct fuzz_input *in, const char *separator, size_t *len)
{
	AUTO_FREE char *line = xasprintf("\n%s\n", separator);
	const char *part = in->at;
	const char *end = in->len > 0 ? memmem(in->at, in->len, line, strlen(line)) : NULL;
	*len = end == NULL ? in->len : (size_t)(end - in->at);
	size_t taken = end == NULL ? in->len : *len + strlen(line);
	in->at += taken;
	in->len -= taken;
	return part;
}

/* An error that may be shown: set, text, and of the one place that is for callers. */
static inline void fuzz_check_err(const struct err *err)
{
	assert(err->code > ERR_NONE && err->code < ERR__MAX);
	assert(err_message(err)[0] != '\0');
	assert(text_is_utf8(err_message(err), strlen(err_message(err))));
	assert(text_is_utf8(err_next(err), strlen(err_next(err))));
}

/* --- a directory for the life of the process ---------------------------------------------- */

static char *fuzz_dir;

static inline int fuzz_remove_(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void fuzz_clean_(void)
{
	nftw(fuzz_dir, fuzz_remove_, 64, FTW_DEPTH | FTW_PHYS);
}

/* A fresh directory below TMPDIR (contrib/fuzz removes what a crash leaves). */
static inline const char *fuzz_tempdir(void)
{
	const char *parent = getenv("TMPDIR");
	fuzz_dir = xasprintf("%s/fuzz-XXXXXX", parent == NULL ? "/tmp" : parent);
	if (mkdtemp(fuzz_dir) == NULL || atexit(fuzz_clean_) != 0)
		abort();
	return fuzz_dir;
}

#endif
