/* Refusals as JSON. */
#include "web/refuse.h"

#include "base/json.h"
#include "base/log.h"

bool refuse(const struct http_sink *sink, int status, const char *error, const char *message,
	    const char *hint, const struct http_header *field)
{
	AUTO_JSON *body = json_object_new_object();
	json_add_str(body, "error", error);
	json_add_str(body, "message", message);
	json_add_str(body, "hint", hint);
	size_t len;
	const char *text = json_text(body, &len);
	return http_answer(sink, status, "application/json", text, len, field, field != NULL);
}

bool refuse_err(const struct http_sink *sink, const struct err *err)
{
	if (err_http_status(err->code) >= 500)
		log_err(LOG_ERROR, "request", err);
	return http_answer_error(sink, err);
}
