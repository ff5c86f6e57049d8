/*
 * One line per event on standard error (a web server puts that in its error log):
 * time, level, program[pid], event, then key=value text. Control characters and malformed
 * UTF-8 are escaped after formatting, so hostile values cannot forge a line. errno is kept.
 * Tokens, commands, file contents and full link URLs are never logged.
 */
#ifndef SPOOLBOX_BASE_LOG_H
#define SPOOLBOX_BASE_LOG_H

#include <stdbool.h>

#include "base/err.h"
#include "base/util.h"

enum log_level {
	LOG_ERROR = 0, /* a human must act */
	LOG_WARN,      /* degraded, or refused */
	LOG_INFO,      /* one per request or change of state */
	LOG_DEBUG,
	LOG_LEVEL__MAX
};

/* program: static string. Until it is called the program is "spoolbox" and the level info. */
void log_open(const char *program, enum log_level level);
bool log_level_parse(const char *s, enum log_level *out);

void log_event(enum log_level level, const char *event, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Logs an error with its code, errno text, trace and message. */
void log_err(enum log_level level, const char *event, const struct err *err);

#endif
