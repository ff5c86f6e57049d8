/* Answers that http_answer_error does not know: statuses without an error code, with a field that
 * the status demands. */
#ifndef SPOOLBOX_WEB_REFUSE_H
#define SPOOLBOX_WEB_REFUSE_H

#include "mcp/http.h"

/* {"error", "message", "hint"} as http_answer_error writes it. field may be NULL. */
bool refuse(const struct http_sink *sink, int status, const char *error, const char *message,
	    const char *hint, const struct http_header *field);

/* http_answer_error; what the caller may not see goes to the log. */
bool refuse_err(const struct http_sink *sink, const struct err *err);

#endif
