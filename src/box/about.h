/*
 * data/<files id>/about: whose files these are. It is written before the row, out of the sandbox's
 * sight, and read only when there is no row that tells: after a database was restored from an older
 * copy, say.
 */
#ifndef SPOOLBOX_BOX_ABOUT_H
#define SPOOLBOX_BOX_ABOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "store/row_sandbox.h"
#include "store/spool.h"

#define ABOUT_FILE "about"

/* Of a new row whose files were made. */
bool about_write(const struct spool *spool, const struct sandbox_row *row,
		 struct err *err) MUST_USE;

struct about {
	char *principal, *name;
	int64_t created_at;
};
void about_finish(struct about *about);
#define AUTO_ABOUT __attribute__((cleanup(about_finish))) struct about

/* Fills a zeroed about from the opened data/<files id>. False when it is missing or not such a
 * file. */
bool about_read(int files_fd, struct about *about);

#endif
