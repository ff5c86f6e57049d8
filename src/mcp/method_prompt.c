/* Prompts, and the completion of their arguments and of the variables of resource templates. */
#include <string.h>

#include "mcp/method_part.h"

/* --- prompts/list ------------------------------------------------------------------------- */

static struct json_object *describe_argument(const struct prompt_argument *argument,
					     enum revision revision)
{
	struct json_object *entry = json_object_new_object();
	json_add_str(entry, "name", argument->name);
	json_add_str(entry, "title", argument->title);
	json_add_str(entry, "description", argument->description);
	json_add_bool(entry, "required", argument->required);
	era_shape(entry, revision);
	return entry;
}

static struct json_object *describe(const struct prompt *prompt, enum revision revision)
{
	struct json_object *arguments = json_object_new_array();
	for (size_t i = 0; i < prompt->argument_count; i++)
		json_push(arguments, describe_argument(&prompt->arguments[i], revision));
	struct json_object *entry = json_object_new_object();
	json_add_str(entry, "name", prompt->name);
	json_add_str(entry, "title", prompt->title);
	json_add_str(entry, "description", prompt->description);
	json_add(entry, "arguments", arguments);
	era_shape(entry, revision);
	return entry;
}

bool method_prompts_list(struct method_call *call)
{
	const struct prompt_list *list = call->endpoint->prompts;
	struct json_object *prompts = json_object_new_array();
	for (size_t i = 0; list != NULL && i < list->count; i++)
		json_push(prompts, describe(list->prompts[i], call->revision));
	call->result = json_object_new_object();
	json_add(call->result, "prompts", prompts);
	return method_refuse_cursor(call);
}

/* --- prompts/get -------------------------------------------------------------------------- */

/* NULL with call->error. */
static const struct prompt *find_prompt(struct method_call *call, const char *member,
					struct json_object *value)
{
	const struct prompt_list *list = call->endpoint->prompts;
	const char *name = rpc_name(value);
	for (size_t i = 0; name != NULL && list != NULL && i < list->count; i++) {
		if (strcmp(list->prompts[i]->name, name) == 0)
			return list->prompts[i];
	}
	if (name == NULL)
		rpc_in_band(&call->error, RPC_PARAMS, "%s must be the name of a prompt", member);
	else
		rpc_in_band(&call->error, RPC_PARAMS,
			    "Unknown prompt \"%.64s\"; prompts/list names those there are", name);
	return NULL;
}

static bool are_strings(struct json_object *arguments)
{
	if (!json_object_is_type(arguments, json_type_object))
		return false;
	json_object_object_foreach(arguments, name, value)
	{
		(void)name;
		if (rpc_name(value) == NULL) /* or with a NUL, where it would end unseen */
			return false;
	}
	return true;
}

static bool check_arguments(struct method_call *call, const struct prompt *prompt,
			    struct json_object *arguments)
{
	if (!are_strings(arguments))
		return rpc_in_band(&call->error, RPC_PARAMS,
				   "params.arguments must be an object of strings");
	for (size_t i = 0; i < prompt->argument_count; i++) {
		const struct prompt_argument *argument = &prompt->arguments[i];
		if (argument->required && !json_has(arguments, argument->name))
			return rpc_in_band(&call->error, RPC_PARAMS,
					   "Prompt \"%s\" needs params.arguments.%s: %s",
					   prompt->name, argument->name, argument->description);
	}
	return true;
}

static void shape_messages(struct json_object *messages, enum revision revision)
{
	for (size_t i = 0; i < json_object_array_length(messages); i++) {
		struct json_object *message = json_object_array_get_idx(messages, i);
		AUTO_JSON *content = json_object_new_array();
		json_push(content, json_object_get(json_get(message, "content")));
		era_shape_content(content, revision);
		json_add(message, "content",
			 json_object_get(json_object_array_get_idx(content, 0)));
	}
}

static bool take_messages(struct method_call *call, const struct prompt *prompt,
			  struct prompt_call *prompt_call)
{
	if (prompt_call->messages == NULL)
		prompt_call->messages = json_object_new_array();
	shape_messages(prompt_call->messages, call->revision);
	call->result = json_object_new_object();
	json_add_str(call->result, "description", prompt->description);
	json_add(call->result, "messages", TAKE_PTR(prompt_call->messages));
	return true;
}

/* Runs the prompt until nothing is left to ask. */
static bool run_prompt(struct method_call *call, const struct prompt *prompt,
		       struct prompt_call *prompt_call)
{
	enum method_step step = STEP_AGAIN;
	while (step == STEP_AGAIN) {
		struct err err = ERR_INIT;
		json_object_put(TAKE_PTR(prompt_call->messages));
		if (!prompt->get(prompt_call, &err) && prompt_call->round.missing == 0)
			return method_failed(call, "prompts_get", &err);
		step = method_end_round(call, &prompt_call->round);
	}
	return step == STEP_DONE ? take_messages(call, prompt, prompt_call) : step != STEP_FAILED;
}

bool method_prompts_get(struct method_call *call)
{
	struct json_object *given = json_get(call->params, "arguments");
	const struct prompt *prompt =
		find_prompt(call, "params.name", json_get(call->params, "name"));
	AUTO_JSON *arguments = given == NULL ? json_object_new_object() : json_object_get(given);
	if (prompt == NULL || !check_arguments(call, prompt, arguments))
		return false;
	struct prompt_call prompt_call = {
		.app = call->endpoint->app, .principal = call->principal, .arguments = arguments};
	bool ok = method_begin_round(call, &prompt_call.round) &&
		  run_prompt(call, prompt, &prompt_call);
	json_object_put(prompt_call.messages);
	round_finish(&prompt_call.round);
	return ok;
}

/* --- completion/complete ------------------------------------------------------------------ */

/* What is to be completed. */
struct completion {
	const char *argument, *value;
	struct json_object *known; /* what is filled in already, or NULL */
	struct json_object *values;
	bool more;
};

static bool complete_prompt(struct method_call *call, struct completion *completion)
{
	struct err err = ERR_INIT;
	struct json_object *ref = json_get(call->params, "ref");
	const struct prompt *prompt = find_prompt(call, "params.ref.name", json_get(ref, "name"));
	if (prompt == NULL)
		return false;
	return prompt->complete == NULL ||
	       prompt->complete(call->endpoint->app, call->principal, completion->argument,
				completion->value, completion->values, &completion->more, &err) ||
	       method_failed(call, "complete", &err);
}

static bool is_template(const struct resource_set *set, const char *uri)
{
	for (size_t i = 0; set != NULL && uri != NULL && i < set->template_count; i++) {
		if (strcmp(set->templates[i].uri_template, uri) == 0)
			return true;
	}
	return false;
}

static bool complete_template(struct method_call *call, struct completion *completion)
{
	struct err err = ERR_INIT;
	const struct resource_set *set = call->endpoint->resources;
	const char *uri = rpc_name(json_get(json_get(call->params, "ref"), "uri"));
	if (!is_template(set, uri))
		return rpc_in_band(&call->error, RPC_PARAMS,
				   "params.ref.uri must be one of resources/templates/list");
	if (set->complete == NULL)
		return true;
	struct resource_call resource = {.app = call->endpoint->app,
					 .principal = call->principal,
					 .result = completion->values};
	return set->complete(&resource, uri, completion->argument, completion->value,
			     completion->known, &completion->more, &err) ||
	       method_failed(call, "complete", &err);
}

static bool read_completion(struct method_call *call, struct completion *completion)
{
	struct json_object *argument = json_get(call->params, "argument");
	struct json_object *known = json_get(json_get(call->params, "context"), "arguments");
	completion->argument = rpc_name(json_get(argument, "name"));
	completion->value = rpc_name(json_get(argument, "value"));
	completion->known = json_object_is_type(known, json_type_object) ? known : NULL;
	return (completion->argument != NULL && completion->value != NULL) ||
	       rpc_in_band(&call->error, RPC_PARAMS,
			   "params.argument must have the strings name and value");
}

static bool run_completion(struct method_call *call, struct completion *completion)
{
	static const struct {
		const char *type;
		bool (*complete)(struct method_call *call, struct completion *completion);
	} refs[] = {{"ref/prompt", complete_prompt}, {"ref/resource", complete_template}};
	const char *type = rpc_name(json_get(json_get(call->params, "ref"), "type"));
	for (size_t i = 0; type != NULL && i < ARRAY_LEN(refs); i++) {
		if (strcmp(refs[i].type, type) == 0)
			return refs[i].complete(call, completion);
	}
	return rpc_in_band(&call->error, RPC_PARAMS,
			   "params.ref.type must be \"ref/prompt\" or \"ref/resource\"");
}

/* The limit holds whatever a provider does. */
static void cut_values(struct completion *completion)
{
	size_t count = json_object_array_length(completion->values);
	if (count <= COMPLETE_MAX)
		return;
	json_object_array_del_idx(completion->values, COMPLETE_MAX, count - COMPLETE_MAX);
	completion->more = true;
}

bool method_complete(struct method_call *call)
{
	AUTO_JSON *values = json_object_new_array();
	struct completion completion = {.values = values};
	if (!read_completion(call, &completion) || !run_completion(call, &completion))
		return false;
	cut_values(&completion);
	struct json_object *answer = json_object_new_object();
	json_add(answer, "values", json_object_get(values));
	json_add_bool(answer, "hasMore", completion.more);
	call->result = json_object_new_object();
	json_add(call->result, "completion", answer);
	return true;
}
