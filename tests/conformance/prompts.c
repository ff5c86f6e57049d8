/* Prompts of every kind. */
#include <string.h>

#include "content.h"
#include "fixture.h"

static bool get_simple(struct prompt_call *call, struct err *err)
{
	(void)err;
	prompt_add_text(call, "user", "This is a simple prompt.");
	return true;
}

static bool get_with_arguments(struct prompt_call *call, struct err *err)
{
	(void)err;
	AUTO_BUF text = BUF_INIT;
	buf_printf(&text, "First: %s. Second: %s.", prompt_argument(call, "arg1"),
		   prompt_argument(call, "arg2"));
	prompt_add_text(call, "user", buf_str(&text));
	return true;
}

static bool get_with_resource(struct prompt_call *call, struct err *err)
{
	(void)err;
	prompt_add(call, "user",
		   content_resource(prompt_argument(call, "resourceUri"), "An embedded text."));
	prompt_add_text(call, "user", "Look at the resource above.");
	return true;
}

static bool get_with_image(struct prompt_call *call, struct err *err)
{
	(void)err;
	prompt_add(call, "user", content_image());
	prompt_add_text(call, "user", "Look at the image above.");
	return true;
}

static bool get_with_input(struct prompt_call *call, struct err *err)
{
	(void)err;
	struct json_object *form;
	switch (round_elicit(&call->round, "user_context", "What is it about?",
			     FORM_OF_ONE("context", "string"), &form)) {
	case ROUND_ASKED:
		break;
	case ROUND_ACCEPTED:
		prompt_add_text(call, "user", json_get_str(form, "context"));
		break;
	default:
		prompt_add_text(call, "user", "Nothing is known of the context.");
	}
	return true;
}

static bool complete_argument(void *app, const char *principal, const char *argument,
			      const char *value, struct json_object *values, bool *more,
			      struct err *err)
{
	static const char *const words[] = {"paris", "park", "party"};
	(void)app;
	(void)principal;
	(void)err;
	*more = false;
	for (size_t i = 0; i < ARRAY_LEN(words) && strcmp(argument, "arg1") == 0; i++) {
		if (strncmp(words[i], value, strlen(value)) == 0)
			json_push_str(values, words[i]);
	}
	return true;
}

static const struct prompt simple = {
	.name = "test_simple_prompt",
	.title = "Simple",
	.description = "One message.",
	.get = get_simple,
};

static const struct prompt_argument two_arguments[] = {
	{.name = "arg1", .description = "Any text", .required = true},
	{.name = "arg2", .description = "Any text", .required = true},
};
static const struct prompt with_arguments = {
	.name = "test_prompt_with_arguments",
	.title = "With arguments",
	.description = "Puts two arguments into its message.",
	.arguments = two_arguments,
	.argument_count = ARRAY_LEN(two_arguments),
	.get = get_with_arguments,
	.complete = complete_argument,
};

static const struct prompt_argument resource_argument[] = {
	{.name = "resourceUri", .description = "URI that the resource gets", .required = true},
};
static const struct prompt with_resource = {
	.name = "test_prompt_with_embedded_resource",
	.title = "With a resource",
	.description = "Has a resource in it.",
	.arguments = resource_argument,
	.argument_count = ARRAY_LEN(resource_argument),
	.get = get_with_resource,
};

static const struct prompt with_image = {
	.name = "test_prompt_with_image",
	.title = "With an image",
	.description = "Has an image in it.",
	.get = get_with_image,
};

static const struct prompt with_input = {
	.name = "test_input_required_result_prompt",
	.title = "With a question",
	.description = "Asks a person what it is about.",
	.get = get_with_input,
};

static const struct prompt *const prompts[] = {
	&simple, &with_arguments, &with_resource, &with_image, &with_input,
};

const struct prompt_list fixture_prompts = {prompts, ARRAY_LEN(prompts)};
