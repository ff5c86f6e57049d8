/*
 * Questions to the client, and the state that travels with it between two rounds. An answer that a
 * handler has used goes into that state, since a client repeats only what it was asked last.
 *
 * The state is JSON {"expires_at", "kept", "used"}, sealed. What it is bound to is not in it: a
 * digest of principal, method and the params that make the call, so a state opens for no other.
 */
#include "mcp/round.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "mcp/form.h"

/* --- what a client declares --------------------------------------------------------------- */

static const struct {
	enum round_kind kind;
	const char *capability;
	const char *method;
} kinds[] = {
	{ROUND_ELICIT, "elicitation", "elicitation/create"},
	{ROUND_SAMPLE, "sampling", "sampling/createMessage"},
	{ROUND_ROOTS, "roots", "roots/list"},
};

static const char *method_of(enum round_kind kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].kind == kind)
			return kinds[i].method;
	}
	return NULL;
}

/* An elicitation without modes means forms; we ask by no other mode. */
static bool shows_forms(struct json_object *elicitation)
{
	return json_has(elicitation, "form") || !json_has(elicitation, "url");
}

static unsigned declared(struct json_object *params)
{
	struct json_object *capabilities =
		json_get(json_get(params, "_meta"), "io.modelcontextprotocol/clientCapabilities");
	unsigned can = 0;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct json_object *settings = json_get(capabilities, kinds[i].capability);
		if (json_object_is_type(settings, json_type_object) &&
		    (kinds[i].kind != ROUND_ELICIT || shows_forms(settings)))
			can |= kinds[i].kind;
	}
	return can;
}

/* --- questions ---------------------------------------------------------------------------- */

static void put(struct json_object **object, const char *key, struct json_object *value)
{
	if (*object == NULL)
		*object = json_object_new_object();
	json_add(*object, key, value);
}

static enum round_answer use(struct round *round, const char *key, struct json_object *response,
			     enum round_answer answer)
{
	put(&round->used, key, json_object_get(response));
	return answer;
}

/* Puts the question, unless the client cannot be asked. params are taken. */
static enum round_answer ask(struct round *round, const char *key, enum round_kind kind,
			     struct json_object *params)
{
	if ((round->can_ask & kind) == 0) {
		json_object_put(params);
		return ROUND_CANNOT;
	}
	struct json_object *request = json_object_new_object();
	json_add_str(request, "method", method_of(kind));
	json_add(request, "params", params);
	put(&round->requests, key, request);
	return ROUND_ASKED;
}

/* Only a form has a way to say no; but a client that says it of the others means it, too. */
static bool is_declined(struct json_object *response)
{
	const char *action = rpc_name(json_get(response, "action"));
	return action != NULL && (strcmp(action, "decline") == 0 || strcmp(action, "cancel") == 0);
}

static bool is_accepted_form(struct json_object *response, struct json_object *schema)
{
	const char *action = rpc_name(json_get(response, "action"));
	return action != NULL && strcmp(action, "accept") == 0 &&
	       form_accepts(schema, json_get(response, "content"));
}

enum round_answer round_elicit(struct round *round, const char *key, const char *message,
			       const char *schema, struct json_object **answer)
{
	struct json_object *response = json_get(round->answers, key);
	AUTO_JSON *requested = json_literal(schema);
	if (is_declined(response))
		return use(round, key, response, ROUND_DECLINED);
	if (is_accepted_form(response, requested)) {
		*answer = json_get(response, "content");
		return use(round, key, response, ROUND_ACCEPTED);
	}
	struct json_object *params = json_object_new_object();
	json_add_str(params, "message", message);
	json_add(params, "requestedSchema", TAKE_PTR(requested));
	return ask(round, key, ROUND_ELICIT, params);
}

static bool is_sample(struct json_object *response)
{
	struct json_object *content = json_get(response, "content");
	return rpc_name(json_get(response, "role")) != NULL &&
	       (json_object_is_type(content, json_type_object) ||
		json_object_is_type(content, json_type_array));
}

enum round_answer round_sample(struct round *round, const char *key, struct json_object *params,
			       struct json_object **answer)
{
	struct json_object *response = json_get(round->answers, key);
	bool declines = is_declined(response);
	if (!declines && !is_sample(response))
		return ask(round, key, ROUND_SAMPLE, params);
	json_object_put(params);
	if (declines)
		return use(round, key, response, ROUND_DECLINED);
	*answer = response;
	return use(round, key, response, ROUND_ACCEPTED);
}

static bool are_roots(struct json_object *roots)
{
	if (!json_object_is_type(roots, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(roots); i++) {
		if (json_get_str(json_object_array_get_idx(roots, i), "uri") == NULL)
			return false;
	}
	return true;
}

enum round_answer round_roots(struct round *round, const char *key, struct json_object **answer)
{
	struct json_object *response = json_get(round->answers, key);
	if (is_declined(response))
		return use(round, key, response, ROUND_DECLINED);
	if (!are_roots(json_get(response, "roots")))
		return ask(round, key, ROUND_ROOTS, NULL);
	*answer = json_get(response, "roots");
	return use(round, key, response, ROUND_ACCEPTED);
}

bool round_require(struct round *round, enum round_kind kind)
{
	if ((round->can_ask & kind) == 0)
		round->missing |= kind;
	return (round->can_ask & kind) != 0;
}

/* --- what a state is bound to ------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_canonical(struct buf *out, struct json_object *value);

static void write_members(struct buf *out, struct json_object *object)
{
	size_t count = (size_t)json_object_object_length(object), at = 0;
	AUTO_FREE const char **names = xcalloc(count + 1, sizeof(*names));
	json_object_object_foreach(object, name, member)
	{
		(void)member;
		names[at++] = name;
	}
	qsort(names, count, sizeof(*names), by_name);
	for (size_t i = 0; i < count; i++) {
		AUTO_JSON *quoted = json_new_text(names[i], strlen(names[i]));
		buf_printf(out, "%s%s:", i == 0 ? "" : ",", json_text(quoted, NULL));
		write_canonical(out, json_get(object, names[i]));
	}
}

/* JSON with the members of objects in one order: a client may write them in any. */
static void write_canonical(struct buf *out, struct json_object *value)
{
	if (json_object_is_type(value, json_type_object)) {
		buf_putc(out, '{');
		write_members(out, value);
		buf_putc(out, '}');
	} else if (json_object_is_type(value, json_type_array)) {
		buf_putc(out, '[');
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			buf_puts(out, i == 0 ? "" : ",");
			write_canonical(out, json_object_array_get_idx(value, i));
		}
		buf_putc(out, ']');
	} else {
		buf_puts(out, value == NULL ? "null" : json_text(value, NULL));
	}
}

struct digest {
	unsigned char bytes[crypto_generichash_BYTES];
};

/* As members of one JSON object no part can run into the next. */
static struct digest digest_of(const struct round_binding *binding)
{
	static const char *const bound[] = {"name", "uri", "arguments"};
	AUTO_BUF text = BUF_INIT;
	AUTO_JSON *call = json_object_new_object();
	json_add_str(call, "principal", binding->principal);
	json_add_str(call, "method", binding->method);
	for (size_t i = 0; i < ARRAY_LEN(bound); i++)
		json_add(call, bound[i], json_object_get(json_get(binding->params, bound[i])));
	/* Absent and empty arguments are the same call. */
	if (json_get(call, "arguments") == NULL)
		json_add(call, "arguments", json_object_new_object());
	write_canonical(&text, call);
	struct digest digest;
	crypto_generichash(digest.bytes, sizeof(digest.bytes), (const unsigned char *)text.data,
			   text.len, NULL, 0);
	return digest;
}

/* --- between two rounds ------------------------------------------------------------------- */

static bool refuse_state(struct rpc_error *error)
{
	return rpc_in_band(error, RPC_PARAMS,
			   "params.requestState is not valid: it was changed, has expired or "
			   "belongs to another call. Repeat the call without it");
}

static bool open_state(struct round *round, const struct round_binding *binding, const char *sealed,
		       struct rpc_error *error)
{
	struct err err = ERR_INIT;
	AUTO_BUF plain = BUF_INIT;
	struct digest digest = digest_of(binding);
	if (sealed == NULL || !sign_open(binding->keys, binding->key_count, sealed, digest.bytes,
					 sizeof(digest.bytes), &plain, &err))
		return refuse_state(error);
	AUTO_JSON *state = json_parse(buf_str(&plain), plain.len, &err);
	if (clock_wall_ms() >= json_get_int(state, "expires_at", 0))
		return refuse_state(error);
	round->kept = json_object_get(json_get(state, "kept"));
	round->used = json_object_get(json_get(state, "used"));
	return true;
}

/* What was answered and used before holds, whatever comes now under the same key. */
static void collect_answers(struct round *round, struct json_object *responses)
{
	if (responses != NULL) {
		json_object_object_foreach(responses, key, response)
			put(&round->answers, key, json_object_get(response));
	}
	if (round->used != NULL) {
		json_object_object_foreach(round->used, key, response)
			put(&round->answers, key, json_object_get(response));
	}
}

bool round_read(struct round *round, const struct round_binding *binding, struct rpc_error *error)
{
	struct json_object *params = binding->params;
	struct json_object *responses = json_get(params, "inputResponses");
	round->can_ask = declared(params);
	if (json_has(params, "inputResponses") && !json_object_is_type(responses, json_type_object))
		return rpc_in_band(error, RPC_PARAMS, "params.inputResponses must be an object");
	if (json_has(params, "requestState") &&
	    !open_state(round, binding, rpc_name(json_get(params, "requestState")), error))
		return false;
	collect_answers(round, responses);
	return true;
}

bool round_is_open(const struct round *round)
{
	return round->requests != NULL;
}

void round_write(const struct round *round, const struct round_binding *binding,
		 struct json_object *result)
{
	json_add(result, "inputRequests", json_object_get(round->requests));
	if (round->keep == NULL && round->used == NULL)
		return;
	AUTO_JSON *state = json_object_new_object();
	json_add_int(state, "expires_at", clock_wall_ms() + ROUND_STATE_MS);
	json_add(state, "kept", json_object_get(round->keep));
	json_add(state, "used", json_object_get(round->used));
	size_t len;
	const char *text = json_text(state, &len);
	AUTO_BUF sealed = BUF_INIT;
	struct digest digest = digest_of(binding);
	sign_seal(&binding->keys[0], text, len, digest.bytes, sizeof(digest.bytes), &sealed);
	json_add_strn(result, "requestState", sealed.data, sealed.len);
}

void round_add_answer(struct round *round, const char *key, struct json_object *answer)
{
	put(&round->answers, key, answer);
}

void round_cannot(struct round *round, const char *key)
{
	const char *method = json_get_str(json_get(round->requests, key), "method");
	for (size_t i = 0; method != NULL && i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].method, method) == 0)
			round->can_ask &= ~(unsigned)kinds[i].kind;
	}
}

void round_again(struct round *round)
{
	json_object_put(round->kept);
	round->kept = TAKE_PTR(round->keep);
	json_object_put(TAKE_PTR(round->requests));
}

bool round_refuse(const struct round *round, struct rpc_error *error)
{
	AUTO_BUF names = BUF_INIT;
	struct json_object *missing = json_object_new_object();
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if ((round->missing & kinds[i].kind) == 0)
			continue;
		json_add(missing, kinds[i].capability, json_object_new_object());
		buf_printf(&names, "%s%s", names.len == 0 ? "" : ", ", kinds[i].capability);
	}
	rpc_refuse(error, RPC_CAPABILITY,
		   "This call needs what the client does not declare in its capabilities: %s",
		   buf_str(&names));
	error->data = json_object_new_object();
	json_add(error->data, "requiredCapabilities", missing);
	return false;
}

void round_finish(struct round *round)
{
	json_object_put(round->answers);
	json_object_put(round->kept);
	json_object_put(round->used);
	json_object_put(round->requests);
	json_object_put(round->keep);
	*round = (struct round){0};
}
