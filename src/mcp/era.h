/*
 * The two eras of MCP: the handshake revisions ("legacy") and the one whose requests carry
 * their own metadata ("modern"). Decides which a message belongs to, checks its claims, and
 * takes out of a result what the client's revision does not know.
 */
#ifndef SPOOLBOX_MCP_ERA_H
#define SPOOLBOX_MCP_ERA_H

#include <stdbool.h>

#include "base/json.h"
#include "mcp/rpc.h"

/* In order of time, so that "since" is a comparison. */
enum revision {
	REVISION_2025_03_26,
	REVISION_2025_06_18,
	REVISION_2025_11_25,
	REVISION_2026_07_28,
	REVISION__MAX
};
#define REVISION_NEWEST_LEGACY REVISION_2025_11_25
#define REVISION_FIRST_MODERN  REVISION_2026_07_28

/* As bits, for tables. */
enum era { ERA_LEGACY = 1, ERA_MODERN = 2, ERA_BOTH = 3 };

static inline enum era era_of(enum revision revision)
{
	return revision >= REVISION_FIRST_MODERN ? ERA_MODERN : ERA_LEGACY;
}

const char *era_revision_name(enum revision revision);
bool era_find_revision(const char *name, enum revision *out);
/* The revisions of an era, newest first, as a new array. */
struct json_object *era_revisions(enum era era);

/* Whether params carry a modern claim: _meta with a protocol version, of whatever type. */
bool era_has_claim(struct json_object *params);
/* The version that a modern claim names, or NULL. Borrowed. */
const char *era_claim(struct json_object *params);

/* The era of a message. version is the MCP-Protocol-Version header, trimmed, or NULL. */
enum era era_decide(const struct rpc_message *message, const char *version);

/* Checks the envelope of a modern request, or the version header of a legacy one. On success
 * *revision is what the result is shaped for. */
bool era_read(const struct rpc_message *message, const char *version, enum revision *revision,
	      struct rpc_error *error) MUST_USE;

/* Whether the client of a modern request declares an extension in its capabilities. */
bool era_declares(struct json_object *params, const char *extension);
/* The rank of a log level by its name, debug being 0; -1: it is none. */
int era_log_level(struct json_object *name);
/* The least rank that the client of a modern request takes log messages of; -1: none at all. */
int era_wanted_log_level(struct json_object *params);
/* The token that asks for progress notifications, or NULL. Borrowed. */
struct json_object *era_progress_token(struct json_object *params);

/* Removes the members that a revision does not know from a tool, a result or an Implementation. */
void era_shape(struct json_object *object, enum revision revision);
/* The same for an array of content blocks; a resource_link becomes text where it is unknown. */
void era_shape_content(struct json_object *content, enum revision revision);

#endif
