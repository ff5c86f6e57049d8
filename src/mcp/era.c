/*
 * The era rule and what depends on the revision, as tables. The rule never falls back: a client
 * that claims the modern era gets modern errors, even when it forgot half of the envelope.
 */
#include "mcp/era.h"

#include <string.h>

#define META "io.modelcontextprotocol/"

static const char *const revision_names[REVISION__MAX] = {
	[REVISION_2025_03_26] = "2025-03-26",
	[REVISION_2025_06_18] = "2025-06-18",
	[REVISION_2025_11_25] = "2025-11-25",
	[REVISION_2026_07_28] = "2026-07-28",
};

const char *era_revision_name(enum revision revision)
{
	return revision_names[revision];
}

bool era_find_revision(const char *name, enum revision *out)
{
	for (int i = 0; i < REVISION__MAX; i++) {
		if (strcmp(name, revision_names[i]) == 0) {
			*out = (enum revision)i;
			return true;
		}
	}
	return false;
}

struct json_object *era_revisions(enum era era)
{
	struct json_object *list = json_object_new_array();
	for (int i = REVISION__MAX - 1; i >= 0; i--) {
		if (era_of((enum revision)i) & era)
			json_push_str(list, revision_names[i]);
	}
	return list;
}

bool era_has_claim(struct json_object *params)
{
	return json_has(json_get(params, "_meta"), META "protocolVersion");
}

const char *era_claim(struct json_object *params)
{
	return rpc_name(json_get(json_get(params, "_meta"), META "protocolVersion"));
}

enum era era_decide(const struct rpc_message *message, const char *version)
{
	if (era_has_claim(message->params))
		return ERA_MODERN;
	if (message->method != NULL && strcmp(message->method, "initialize") == 0)
		return ERA_LEGACY;
	if (version != NULL && strcmp(version, revision_names[REVISION_FIRST_MODERN]) >= 0)
		return ERA_MODERN;
	return ERA_LEGACY;
}

/* --- the modern envelope ------------------------------------------------------------------ */

static bool is_object(struct json_object *value)
{
	return json_object_is_type(value, json_type_object);
}

static bool is_string(struct json_object *value)
{
	return rpc_name(value) != NULL;
}

static bool is_token(struct json_object *value)
{
	return json_object_is_type(value, json_type_string) ||
	       json_object_is_type(value, json_type_int);
}

int era_log_level(struct json_object *name)
{
	static const char *const levels[] = {"debug", "info",     "notice", "warning",
					     "error", "critical", "alert",  "emergency"};
	const char *s = rpc_name(name);
	for (size_t i = 0; s != NULL && i < ARRAY_LEN(levels); i++) {
		if (strcmp(s, levels[i]) == 0)
			return (int)i;
	}
	return -1;
}

static bool is_log_level(struct json_object *value)
{
	return era_log_level(value) >= 0;
}

static const struct {
	const char *key;
	bool required;
	bool (*accepts)(struct json_object *value);
	const char *expected;
} envelope[] = {
	{META "protocolVersion", true, is_string, "a string"},
	{META "clientCapabilities", true, is_object, "an object"},
	{META "clientInfo", false, is_object, "an object"},
	{META "logLevel", false, is_log_level, "a syslog level name such as \"info\""},
	{"progressToken", false, is_token, "a string or an integer"},
};

static bool check_envelope(struct json_object *params, struct rpc_error *error)
{
	struct json_object *meta = json_get(params, "_meta");
	if (!is_object(meta))
		return rpc_refuse(error, RPC_PARAMS,
				  "params._meta must be an object with %s and %s", envelope[0].key,
				  envelope[1].key);
	for (size_t i = 0; i < ARRAY_LEN(envelope); i++) {
		bool present = json_has(meta, envelope[i].key);
		if (present ? !envelope[i].accepts(json_get(meta, envelope[i].key))
			    : envelope[i].required)
			return rpc_refuse(
				error, RPC_PARAMS, "params._meta[\"%s\"] %s%s", envelope[i].key,
				present ? "must be " : "is required: ", envelope[i].expected);
	}
	return true;
}

static bool refuse_revision(const char *requested, struct rpc_error *error)
{
	rpc_refuse(error, RPC_VERSION, "Unsupported protocol version");
	error->data = json_object_new_object();
	json_add(error->data, "supported", era_revisions(ERA_MODERN));
	json_add_str(error->data, "requested", requested);
	return false;
}

static bool read_modern(const struct rpc_message *message, const char *version,
			enum revision *revision, struct rpc_error *error)
{
	if (!check_envelope(message->params, error))
		return false;
	const char *claimed =
		json_get_str(json_get(message->params, "_meta"), META "protocolVersion");
	if (version != NULL && strcmp(version, claimed) != 0)
		return rpc_refuse(error, RPC_HEADER,
				  "Header MCP-Protocol-Version differs from params._meta[\"%s\"]",
				  envelope[0].key);
	if (!era_find_revision(claimed, revision) || era_of(*revision) != ERA_MODERN)
		return refuse_revision(claimed, error);
	if (version == NULL)
		return rpc_refuse(error, RPC_HEADER, "Header MCP-Protocol-Version is missing");
	return true;
}

/* Without the header a client is taken for one of the first revision that had no such header. */
static bool read_legacy(const struct rpc_message *message, const char *version,
			enum revision *revision, struct rpc_error *error)
{
	*revision = REVISION_2025_03_26;
	if (version == NULL || strcmp(message->method, "initialize") == 0)
		return true;
	if (era_find_revision(version, revision) && era_of(*revision) == ERA_LEGACY)
		return true;
	AUTO_JSON *supported = era_revisions(ERA_BOTH);
	return rpc_refuse(error, RPC_REQUEST,
			  "Unsupported MCP-Protocol-Version header; supported: %s",
			  json_text(supported, NULL));
}

bool era_read(const struct rpc_message *message, const char *version, enum revision *revision,
	      struct rpc_error *error)
{
	return era_decide(message, version) == ERA_MODERN
		       ? read_modern(message, version, revision, error)
		       : read_legacy(message, version, revision, error);
}

/* --- what a client asks for --------------------------------------------------------------- */

bool era_declares(struct json_object *params, const char *extension)
{
	struct json_object *capabilities =
		json_get(json_get(params, "_meta"), META "clientCapabilities");
	return is_object(json_get(json_get(capabilities, "extensions"), extension));
}

int era_wanted_log_level(struct json_object *params)
{
	return era_log_level(json_get(json_get(params, "_meta"), META "logLevel"));
}

/* The envelope of a modern request was checked; in a legacy one another type is no token. */
struct json_object *era_progress_token(struct json_object *params)
{
	struct json_object *token = json_get(json_get(params, "_meta"), "progressToken");
	return is_token(token) ? token : NULL;
}

/* --- shaping ------------------------------------------------------------------------------ */

static const struct {
	const char *member;
	enum revision since;
} members[] = {
	{"title", REVISION_2025_06_18},        {"_meta", REVISION_2025_06_18},
	{"outputSchema", REVISION_2025_06_18}, {"structuredContent", REVISION_2025_06_18},
	{"icons", REVISION_2025_11_25},        {"websiteUrl", REVISION_2025_11_25},
};

void era_shape(struct json_object *object, enum revision revision)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		if (revision < members[i].since)
			json_object_object_del(object, members[i].member);
	}
}

static struct json_object *link_as_text(struct json_object *block)
{
	AUTO_BUF text = BUF_INIT;
	const char *name = json_get_str(block, "name");
	const char *uri = json_get_str(block, "uri");
	buf_printf(&text, "%s: %s", name == NULL ? "resource" : name, uri == NULL ? "" : uri);
	struct json_object *plain = json_object_new_object();
	json_add_str(plain, "type", "text");
	json_add_strn(plain, "text", buf_str(&text), text.len);
	return plain;
}

void era_shape_content(struct json_object *content, enum revision revision)
{
	size_t count = json_object_array_length(content);
	for (size_t i = 0; i < count; i++) {
		struct json_object *block = json_object_array_get_idx(content, i);
		const char *type = json_get_str(block, "type");
		if (revision < REVISION_2025_06_18 && type != NULL &&
		    strcmp(type, "resource_link") == 0)
			json_object_array_put_idx(content, i, link_as_text(block));
		else
			era_shape(block, revision);
	}
}
