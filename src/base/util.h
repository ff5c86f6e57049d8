/*
 * The few macros that every file uses: cleanup attributes and array length. A resource
 * is declared and initialised on one line with its AUTO_ macro and handed over with TAKE_FD
 * or TAKE_PTR, so there are no goto ladders.
 */
#ifndef SPOOLBOX_BASE_UTIL_H
#define SPOOLBOX_BASE_UTIL_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a)      (sizeof(a) / sizeof((a)[0]))
#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* Closes *fd unless it is negative; keeps errno. */
void util_close(int *fd);
static inline void util_free(void *p)
{
	free(*(void **)p);
}

#define AUTO_FD   __attribute__((cleanup(util_close))) int
#define AUTO_FREE __attribute__((cleanup(util_free)))

/* Hands a descriptor over: the variable holds -1 afterwards. */
static inline int util_take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}
#define TAKE_FD(fd) util_take_fd(&(fd))

/* Hands a pointer over: the variable holds NULL afterwards. */
#define TAKE_PTR(p) \
	({ \
		__auto_type taken_ = (p); \
		(p) = NULL; \
		taken_; \
	})

/* malloc family that ends the process when memory is out. A worker is restarted by its
 * web server and leaves nothing half-written: files appear by rename, rows by commit. Sizes
 * that come from a client are checked against a limit before they get here. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
