/* The log: formats into one buffer, cleans it, writes it with one write(2) so that lines of
 * several workers do not mix. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

#define LINE_MAX_BYTES 2000 /* below PIPE_BUF, so one write is one line also into a pipe */

/* The only mutable global of the program besides signal flags: set once at start. */
static struct {
	const char *program;
	enum log_level level;
} state = {"spoolbox", LOG_INFO};

static const char *const level_names[LOG_LEVEL__MAX] = {
	[LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};

void log_open(const char *program, enum log_level level)
{
	state.program = program;
	state.level = level;
}

bool log_level_parse(const char *s, enum log_level *out)
{
	for (int i = 0; i < LOG_LEVEL__MAX; i++) {
		if (strcmp(s, level_names[i]) == 0) {
			*out = (enum log_level)i;
			return true;
		}
	}
	return false;
}

/* Escapes what could forge or break a line. */
static void clean(struct buf *out, const char *text, size_t len)
{
	AUTO_BUF valid = BUF_INIT;
	text_repair(&valid, text, len);
	for (size_t i = 0; i < valid.len; i++) {
		unsigned char c = (unsigned char)valid.data[i];
		if (c < 0x20 || c == 0x7F)
			buf_printf(out, "\\x%02x", c);
		else
			buf_putc(out, (char)c);
	}
}

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
	if (level > state.level)
		return;
	int saved = errno;
	char text[LINE_MAX_BYTES];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

	char now[CLOCK_RFC3339_LEN];
	AUTO_BUF line = BUF_INIT;
	buf_printf(&line, "%s %s %s[%ld] %s ", clock_rfc3339(clock_wall_ms(), now),
		   level_names[level], state.program, (long)getpid(), event);
	clean(&line, text, len);
	buf_putc(&line, '\n');
	ssize_t written = write(STDERR_FILENO, line.data, line.len);
	(void)written; /* a log that cannot be written must not stop the work */
	errno = saved;
}

static const char *errno_name(int sys)
{
	const char *name = strerrorname_np(sys);
	return name == NULL ? "unknown" : name;
}

void log_err(enum log_level level, const char *event, const struct err *err)
{
	log_event(level, event, "code=%s errno=%s trace=\"%s\" message=\"%s\"", err_name(err->code),
		  err->sys == 0 ? "none" : errno_name(err->sys), err->trace, err->msg);
}
