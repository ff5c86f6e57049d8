/* spoolbox doctor: what its parts share. */
#ifndef SPOOLBOX_CMD_DOCTOR_H
#define SPOOLBOX_CMD_DOCTOR_H

#include "box/app.h"

enum verdict { OK, NOTE, WARN, FAIL };

struct doctor {
	const struct conf *conf;
	struct app *app; /* NULL: the spool could not be opened */
	struct err app_err;
	bool failed;
};

/* Writes one line. FAIL makes the exit status 1. */
void doctor_report(struct doctor *doctor, enum verdict verdict, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* What a sandbox is asked about its Python, and the lines about what it answered. */
extern const char doctor_python_command[];
void doctor_python(struct doctor *doctor, const struct buf *answer);

#endif
