/*
 * Tools that need answers of the client. Each is written once: in the modern era the client
 * repeats its request, in the handshake era the core asks over the open stream.
 */
#include <string.h>

#include "content.h"
#include "fixture.h"

#define NAME_FORM  FORM_OF_ONE("name", "string")
#define COLOR_FORM FORM_OF_ONE("color", "string")
#define OK_FORM    FORM_OF_ONE("ok", "boolean")

static struct json_object *sampling_params(const char *prompt)
{
	struct json_object *message = json_object_new_object();
	json_add_str(message, "role", "user");
	json_add(message, "content", content_text(prompt));
	struct json_object *messages = json_object_new_array();
	json_push(messages, message);
	struct json_object *params = json_object_new_object();
	json_add(params, "messages", messages);
	json_add_int(params, "maxTokens", 100);
	return params;
}

static const char *sampled_text(struct json_object *answer)
{
	const char *text = json_get_str(json_get(answer, "content"), "text");
	return text == NULL ? "(no text)" : text;
}

/* What is said in place of an answer. */
static bool say_refusal(struct tool_call *call, enum round_answer answer)
{
	return call_say(call, answer == ROUND_DECLINED ? "The question was declined."
						       : "The client cannot be asked this.");
}

/* Asks one form and answers with what came back. */
static bool ask_form(struct tool_call *call, const char *key, const char *message,
		     const char *schema)
{
	struct json_object *form;
	enum round_answer answer = round_elicit(&call->round, key, message, schema, &form);
	if (answer == ROUND_ASKED)
		return true;
	if (answer != ROUND_ACCEPTED)
		return say_refusal(call, answer);
	return call_say(call, "The form came back: %s", json_text(form, NULL));
}

static bool ask_model(struct tool_call *call, const char *key, const char *prompt)
{
	struct json_object *sample;
	enum round_answer answer =
		round_sample(&call->round, key, sampling_params(prompt), &sample);
	if (answer == ROUND_ASKED)
		return true;
	if (answer != ROUND_ACCEPTED)
		return say_refusal(call, answer);
	return call_say(call, "The model said: %s", sampled_text(sample));
}

static bool ask_roots(struct tool_call *call, const char *key)
{
	struct json_object *roots;
	enum round_answer answer = round_roots(&call->round, key, &roots);
	if (answer == ROUND_ASKED)
		return true;
	if (answer != ROUND_ACCEPTED)
		return say_refusal(call, answer);
	return call_say(call, "The roots are: %s", json_text(roots, NULL));
}

static void keep_number(struct tool_call *call, const char *key, int64_t number)
{
	call->round.keep = json_object_new_object();
	json_add_int(call->round.keep, key, number);
}

/* --- one question -------------------------------------------------------------------------- */

static bool sampling(struct tool_call *call, struct err *err)
{
	(void)err;
	return ask_model(call, "sample", json_get_str(call->arguments, "prompt"));
}

static bool elicitation(struct tool_call *call, struct err *err)
{
	(void)err;
	return ask_form(
		call, "person", json_get_str(call->arguments, "message"),
		"{\"type\": \"object\", \"properties\": {"
		"\"username\": {\"type\": \"string\", \"description\": \"Name to sign in with\"},"
		"\"email\": {\"type\": \"string\", \"description\": \"Address\"}},"
		" \"required\": [\"username\", \"email\"]}");
}

static bool elicitation_defaults(struct tool_call *call, struct err *err)
{
	(void)err;
	return ask_form(call, "person", "Look through what is filled in",
			"{\"type\": \"object\", \"properties\": {"
			"\"name\": {\"type\": \"string\", \"default\": \"John Doe\"},"
			"\"age\": {\"type\": \"integer\", \"default\": 30},"
			"\"score\": {\"type\": \"number\", \"default\": 95.5},"
			"\"status\": {\"type\": \"string\", \"default\": \"active\","
			" \"enum\": [\"active\", \"inactive\", \"pending\"]},"
			"\"verified\": {\"type\": \"boolean\", \"default\": true}}}");
}

#define ONE(value, label) "{\"const\": \"" value "\", \"title\": \"" label "\"}"
#define THREE_TITLED      ONE("value1", "First") "," ONE("value2", "Second") "," ONE("value3", "Third")

static bool elicitation_enums(struct tool_call *call, struct err *err)
{
	(void)err;
	return ask_form(
		call, "choices", "Choose",
		"{\"type\": \"object\", \"properties\": {"
		"\"untitledSingle\": {\"type\": \"string\", \"enum\": [\"option1\", \"option2\", "
		"\"option3\"]},"
		"\"titledSingle\": {\"type\": \"string\", \"oneOf\": [" THREE_TITLED "]},"
		"\"legacyEnum\": {\"type\": \"string\", \"enum\": [\"opt1\", \"opt2\", \"opt3\"],"
		" \"enumNames\": [\"First\", \"Second\", \"Third\"]},"
		"\"untitledMulti\": {\"type\": \"array\", \"items\": {\"type\": \"string\","
		" \"enum\": [\"option1\", \"option2\", \"option3\"]}},"
		"\"titledMulti\": {\"type\": \"array\", \"items\": {\"anyOf\": [" THREE_TITLED
		"]}}}}");
}

static bool missing_capability(struct tool_call *call, struct err *err)
{
	(void)err;
	if (!round_require(&call->round, ROUND_SAMPLE))
		return true;
	return call_say(call, "The client declares sampling.");
}

static bool input_elicitation(struct tool_call *call, struct err *err)
{
	(void)err;
	return ask_form(call, "user_name", "What is your name?", NAME_FORM);
}

static bool input_sampling(struct tool_call *call, struct err *err)
{
	(void)err;
	return ask_model(call, "capital_question", "What is the capital of France?");
}

static bool input_roots(struct tool_call *call, struct err *err)
{
	(void)err;
	return ask_roots(call, "client_roots");
}

/* --- several, and what is kept between them ------------------------------------------------ */

/* For both tools about state: the core refuses one that was altered. */
static bool input_state(struct tool_call *call, struct err *err)
{
	(void)err;
	struct json_object *form;
	enum round_answer answer = round_elicit(&call->round, "confirm", "Go on?", OK_FORM, &form);
	if (answer == ROUND_ASKED) {
		keep_number(call, "number", 42);
		return true;
	}
	if (answer != ROUND_ACCEPTED)
		return say_refusal(call, answer);
	if (json_get_int(call->round.kept, "number", 0) == 42)
		return call_say(call, "state-ok");
	call->is_error = true;
	return call_say(call, "The answer came back without its requestState.");
}

static bool input_multiple(struct tool_call *call, struct err *err)
{
	(void)err;
	struct json_object *form, *sample, *roots;
	enum round_answer answers[] = {
		round_elicit(&call->round, "user_name", "What is your name?", NAME_FORM, &form),
		round_sample(&call->round, "greeting", sampling_params("Greet somebody"), &sample),
		round_roots(&call->round, "client_roots", &roots),
	};
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		if (answers[i] == ROUND_ASKED) {
			keep_number(call, "questions", ARRAY_LEN(answers));
			return true;
		}
		if (answers[i] != ROUND_ACCEPTED)
			return say_refusal(call, answers[i]);
	}
	return call_say(call, "%s, %s; roots: %d", sampled_text(sample), json_get_str(form, "name"),
			(int)json_object_array_length(roots));
}

/* Keeps the first answer while it asks the second time. */
static bool input_multi_round(struct tool_call *call, struct err *err)
{
	(void)err;
	struct json_object *form = call->round.kept;
	const char *name = json_get_str(form, "name");
	if (name == NULL) {
		enum round_answer answer = round_elicit(
			&call->round, "step1", "Step 1: what is your name?", NAME_FORM, &form);
		if (answer == ROUND_ASKED) {
			keep_number(call, "step", 1);
			return true;
		}
		if (answer != ROUND_ACCEPTED)
			return say_refusal(call, answer);
		name = json_get_str(form, "name");
	}
	struct json_object *color;
	enum round_answer answer = round_elicit(
		&call->round, "step2", "Step 2: which colour do you like?", COLOR_FORM, &color);
	if (answer == ROUND_ASKED) {
		call->round.keep = json_object_new_object();
		json_add_str(call->round.keep, "name", name);
		return true;
	}
	if (answer != ROUND_ACCEPTED)
		return say_refusal(call, answer);
	return call_say(call, "%s likes %s.", name, json_get_str(color, "color"));
}

/* Asks whatever this client can answer, and nothing else. */
static bool input_capabilities(struct tool_call *call, struct err *err)
{
	(void)err;
	struct json_object *unused;
	enum round_answer answers[] = {
		round_elicit(&call->round, "user_name", "What is your name?", NAME_FORM, &unused),
		round_sample(&call->round, "greeting", sampling_params("Greet somebody"), &unused),
		round_roots(&call->round, "client_roots", &unused),
	};
	int answered = 0;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		if (answers[i] == ROUND_ASKED)
			return true;
		answered += answers[i] == ROUND_ACCEPTED;
	}
	return call_say(call, "%d of %d questions were answered.", answered,
			(int)ARRAY_LEN(answers));
}

#define ONE_TEXT(name, about) \
	"{\"type\": \"object\", \"properties\": {\"" name "\": {\"type\": \"string\"," \
	" \"description\": \"" about "\"}}, \"required\": [\"" name "\"]," \
	" \"additionalProperties\": false}"

static const struct tool tools[] = {
	{
		.name = "test_sampling",
		.title = "test_sampling",
		.description = "Asks the client's model.",
		.input_schema = ONE_TEXT("prompt", "What to ask"),
		.read_only = true,
		.call = sampling,
	},
	{
		.name = "test_elicitation",
		.title = "test_elicitation",
		.description = "Asks a person to fill in a form.",
		.input_schema = ONE_TEXT("message", "What to say above the form"),
		.read_only = true,
		.call = elicitation,
	},
	{PLAIN_TOOL("test_elicitation_sep1034_defaults", "Asks with a form that is filled in.",
		    elicitation_defaults)},
	{PLAIN_TOOL("test_elicitation_sep1330_enums", "Asks with a form of choices.",
		    elicitation_enums)},
	{PLAIN_TOOL("test_missing_capability", "Needs a client with sampling.",
		    missing_capability)},
	{PLAIN_TOOL("test_input_required_result_elicitation", "Asks a person.", input_elicitation)},
	{PLAIN_TOOL("test_input_required_result_sampling", "Asks a model.", input_sampling)},
	{PLAIN_TOOL("test_input_required_result_list_roots", "Asks for roots.", input_roots)},
	{PLAIN_TOOL("test_input_required_result_request_state", "Keeps something while it asks.",
		    input_state)},
	{PLAIN_TOOL("test_input_required_result_tampered_state",
		    "Keeps something that must not be altered.", input_state)},
	{PLAIN_TOOL("test_input_required_result_multiple_inputs", "Asks three things at once.",
		    input_multiple)},
	{PLAIN_TOOL("test_input_required_result_multi_round", "Asks one thing after the other.",
		    input_multi_round)},
	{PLAIN_TOOL("test_input_required_result_capabilities", "Asks what the client can be asked.",
		    input_capabilities)},
};

const struct tool_family tools_ask = {tools, ARRAY_LEN(tools)};
