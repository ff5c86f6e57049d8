/*
 * Headers that repeat a part of the body, so that proxies can route without parsing it. They
 * must agree with the body; the modern era only.
 */
#ifndef SPOOLBOX_MCP_MIRROR_H
#define SPOOLBOX_MCP_MIRROR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "mcp/http.h"
#include "mcp/rpc.h"

/* The value of a header without blanks at its edges. False when the header is absent. */
bool mirror_header(const struct http_request *request, const char *name, struct buf *out);

/* No MCP header may occur twice: which of them counts would be a matter of taste. */
bool mirror_check_single(const struct http_request *request, struct rpc_error *error) MUST_USE;

/* Mcp-Method and, where the method has one, Mcp-Name. */
bool mirror_check(const struct http_request *request, const struct rpc_message *message,
		  struct rpc_error *error) MUST_USE;

/* The parameters of one tool that are repeated in Mcp-Param-* headers. */
struct mirror_param {
	char *header;                     /* lower-case: "mcp-param-region" */
	const char *path[JSON_MAX_DEPTH]; /* members from the root, borrowed from the schema */
	size_t depth;
};
struct mirror_params {
	struct mirror_param *params;
	size_t count;
};

/* Collects the x-mcp-header declarations of a tool's input schema. ERR_INVALID when one breaks
 * the rules: a token of letters, digits and hyphens, unique, on a string, integer or boolean that
 * is reached through properties alone. */
bool mirror_declare(struct json_object *schema, struct mirror_params *params,
		    struct err *err) MUST_USE;
void mirror_params_finish(struct mirror_params *params);

/* Compares the declared headers with the arguments of a call (NULL or no object: none set). */
bool mirror_check_params(const struct http_request *request, const struct mirror_params *params,
			 struct json_object *arguments, struct rpc_error *error) MUST_USE;

#endif
