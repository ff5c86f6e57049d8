/*
 * The error value. A function that can fail returns false and fills a struct err
 * that its caller owns; on success the struct is left untouched. The line that finds
 * the fault sets the error; callers add context with err_in() or just return. Nobody
 * both logs and returns.
 *
 * A struct err has a fixed size and needs no release, so it is usable when memory is
 * short. msg and hint are for the caller (a model or a person): they name the value,
 * the limit and the next step, and never hold a host path, SQL or a secret. trace is
 * for the log only.
 */
#ifndef SPOOLBOX_BASE_ERR_H
#define SPOOLBOX_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

enum err_code {
	ERR_NONE = 0,
	ERR_INVALID,         /* the request is wrong: an argument, a header, a path */
	ERR_UNAUTHENTICATED, /* no or wrong credentials */
	ERR_DENIED,          /* known caller, not allowed */
	ERR_NOT_FOUND,       /* no such sandbox, file, link */
	ERR_EXISTS,          /* it is there already */
	ERR_CONFLICT,        /* the state changed or does not allow it */
	ERR_GONE,            /* it was there and is not any more: used link, removed sandbox */
	ERR_DESTROYED,       /* another call destroyed it in the meantime: a lost race */
	ERR_LENGTH,          /* a body without a length */
	ERR_TOO_LARGE,       /* over a size limit */
	ERR_RANGE,           /* unsatisfiable byte range */
	ERR_QUOTA,           /* disk or count limit reached */
	ERR_BUSY,            /* try again shortly */
	ERR_TIMEOUT,         /* took too long */
	ERR_UNAVAILABLE,     /* the host cannot do it now or at all */
	ERR_LOST,            /* the sandbox or its init went away in the middle */
	ERR_IO,              /* the host failed; details only in the log */
	ERR_INTERNAL,        /* our own fault; details only in the log */
	ERR__MAX
};

struct err {
	enum err_code code;
	int sys;         /* the errno behind it, or 0; for the log */
	char msg[384];   /* what happened: their value, our limit, what state things are in */
	char hint[384];  /* what to do next; empty: the code's own hint is used */
	char trace[192]; /* for the log: context added on the way up */
};

#define ERR_INIT \
	{ \
		.code = ERR_NONE \
	}

/* Set code and message and clear the rest. Always returns false. Long text is cut on a
 * UTF-8 boundary. */
bool err_set(struct err *err, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Set from errno: ENOSPC and EDQUOT become ERR_QUOTA, everything else ERR_IO. The text goes
 * to the trace only; the caller's message is the code's own. Always returns false. */
bool err_sys(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Set the next step. Call it after err_set. Always returns false. */
bool err_hint(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "context: " in front of the trace. Always returns false. */
bool err_in(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Stable lower-case name of a code, e.g. "not_found". */
const char *err_name(enum err_code code);

/* HTTP status with which a code is answered outside of a tool result. */
int err_http_status(enum err_code code);

/* Whether the same call may succeed later without a change. */
bool err_retryable(enum err_code code);

/* Message and hint to show to a caller; never NULL. ERR_IO and ERR_INTERNAL show a general
 * sentence whatever msg holds. */
const char *err_message(const struct err *err);
const char *err_next(const struct err *err);

#endif
