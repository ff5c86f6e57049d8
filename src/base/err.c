/* Error codes in one table, and the few ways to fill a struct err. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct code {
	const char *name;
	int http_status;
	bool retryable;
	bool hide; /* the caller sees a general sentence only */
	const char *message;
	const char *hint;
};

static const struct code codes[ERR__MAX] = {
	[ERR_NONE] = {"none", 200, false, false, "no error", ""},
	[ERR_INVALID] = {"invalid", 400, false, false, "the request is not valid",
			 "Correct the named value and call again. Nothing was changed."},
	[ERR_UNAUTHENTICATED] = {"unauthenticated", 401, false, false, "a valid token is needed",
				 "Send the header 'Authorization: Bearer TOKEN'."},
	[ERR_DENIED] = {"denied", 403, false, false, "this is not allowed",
			"Ask for a new link, or use a token that may do this."},
	[ERR_NOT_FOUND] = {"not_found", 404, false, false, "there is no such thing",
			   "Look with list_sandboxes or list_files which names exist."},
	[ERR_EXISTS] = {"exists", 409, false, false, "it exists already",
			"Choose another name, or remove the existing one first."},
	[ERR_CONFLICT] = {"conflict", 409, false, false, "the present state does not allow this",
			  "Look at the present state, then decide again."},
	[ERR_GONE] = {"gone", 410, false, false, "it is not there any more",
		      "Make a new one; the old one cannot be used again."},
	[ERR_DESTROYED] = {"destroyed", 409, true, false, "it was destroyed in the meantime",
			   "Look with list_sandboxes what there is now, then try again."},
	[ERR_LENGTH] = {"length_required", 411, false, false, "the size of the body is not known",
			"Send a Content-Length header."},
	[ERR_TOO_LARGE] = {"too_large", 413, false, false, "it is larger than the limit",
			   "Use a smaller one, or move it by upload_file and download_file."},
	[ERR_RANGE] = {"range", 416, false, false, "the byte range lies outside of the file",
		       "Ask for a range within the size that Content-Range gives."},
	[ERR_QUOTA] = {"quota", 507, true, false, "a limit of this server is reached",
		       "Free something (destroy_sandbox, delete files), then try again."},
	[ERR_BUSY] = {"busy", 503, true, false, "it is in use at the moment",
		      "Try the same call again in a second."},
	[ERR_TIMEOUT] = {"timeout", 504, true, false, "it took too long",
			 "Try again, with a larger timeout where there is one."},
	[ERR_UNAVAILABLE] = {"unavailable", 503, true, false, "this server cannot do it now",
			     "Its operator should run 'spoolbox doctor'."},
	[ERR_LOST] = {"lost", 502, true, false, "the sandbox went away in the middle",
		      "Look at the files to see how far it came, then decide again."},
	[ERR_IO] = {"io", 500, true, true, "the server could not read or write its own files",
		    "Try again once; if it stays, its operator should look at the error log."},
	[ERR_INTERNAL] =
		{"internal", 500, true, true, "the server made a mistake",
		 "Try again once; if it stays, its operator should look at the error log."},
};

/* vsnprintf that never leaves half a UTF-8 sequence. */
__attribute__((format(printf, 3, 0))) static void format(char *out, size_t size, const char *fmt,
							 va_list ap)
{
	int n = vsnprintf(out, size, fmt, ap);
	if (n >= 0 && (size_t)n >= size) {
		size_t len = size - 1;
		while (len > 0 && ((unsigned char)out[len - 1] & 0xC0) == 0x80)
			len--;
		if (len > 0 && (unsigned char)out[len - 1] >= 0xC0)
			len--;
		out[len] = '\0';
	}
}

bool err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;
	err->code = code;
	err->sys = 0;
	err->hint[0] = '\0';
	err->trace[0] = '\0';
	va_start(ap, fmt);
	format(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return false;
}

bool err_sys(struct err *err, const char *fmt, ...)
{
	int sys = errno;
	va_list ap;
	bool full = sys == ENOSPC || sys == EDQUOT;
	err->code = full ? ERR_QUOTA : ERR_IO;
	err->sys = sys;
	err->hint[0] = '\0';
	if (full)
		snprintf(err->msg, sizeof(err->msg),
			 "the server's disk is full; nothing was changed");
	else
		err->msg[0] = '\0';
	va_start(ap, fmt);
	format(err->trace, sizeof(err->trace), fmt, ap);
	va_end(ap);
	return false;
}

bool err_hint(struct err *err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	format(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
	return false;
}

bool err_in(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->trace)];
	memcpy(old, err->trace, sizeof(old));
	va_list ap;
	va_start(ap, fmt);
	format(err->trace, sizeof(err->trace), fmt, ap);
	va_end(ap);
	size_t used = strlen(err->trace);
	if (old[0] != '\0')
		snprintf(err->trace + used, sizeof(err->trace) - used, ": %s", old);
	return false;
}

const char *err_name(enum err_code code)
{
	return codes[code].name;
}

int err_http_status(enum err_code code)
{
	return codes[code].http_status;
}

bool err_retryable(enum err_code code)
{
	return codes[code].retryable;
}

const char *err_message(const struct err *err)
{
	const struct code *code = &codes[err->code];
	return code->hide || err->msg[0] == '\0' ? code->message : err->msg;
}

const char *err_next(const struct err *err)
{
	const struct code *code = &codes[err->code];
	return code->hide || err->hint[0] == '\0' ? code->hint : err->hint;
}
