/* Cleanup helpers and the allocators that do not return NULL. */
#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void util_close(int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	close(*fd);
	errno = saved;
	*fd = -1;
}

static void *must(void *p)
{
	if (p == NULL) {
		static const char text[] = "spoolbox: out of memory\n";
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			_exit(71);
		_exit(71); /* EX_OSERR of sysexits.h */
	}
	return p;
}

void *xmalloc(size_t size)
{
	return must(malloc(size == 0 ? 1 : size));
}

void *xcalloc(size_t count, size_t size)
{
	return must(calloc(count == 0 ? 1 : count, size == 0 ? 1 : size));
}

void *xrealloc(void *p, size_t size)
{
	return must(realloc(p, size == 0 ? 1 : size));
}

char *xstrdup(const char *s)
{
	return must(strdup(s));
}

char *xstrndup(const char *s, size_t len)
{
	return must(strndup(s, len));
}

char *xasprintf(const char *fmt, ...)
{
	char *out = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&out, fmt, ap);
	va_end(ap);
	return must(n < 0 ? NULL : out);
}
