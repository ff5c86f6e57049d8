/* A prompt: one const struct each; promptset.c lists the product's. */
#ifndef SPOOLBOX_MCP_PROMPT_H
#define SPOOLBOX_MCP_PROMPT_H

#include "base/err.h"
#include "base/json.h"
#include "mcp/round.h"

struct prompt_argument {
	const char *name, *title, *description;
	bool required;
};

struct prompt_call {
	void *app;
	const char *principal;
	struct json_object *arguments; /* object of strings, never NULL; borrowed */
	struct round round;
	/* Left by the handler; owned by the call. Messages are {role, content}. */
	struct json_object *messages;
};

/* Adds a message of a role ("user", "assistant"); text is copied, content is taken. */
void prompt_add_text(struct prompt_call *call, const char *role, const char *text);
void prompt_add(struct prompt_call *call, const char *role, struct json_object *content);
/* The text of an argument; NULL when it was not given. */
const char *prompt_argument(const struct prompt_call *call, const char *name);

struct prompt {
	const char *name, *title, *description;
	const struct prompt_argument *arguments;
	size_t argument_count;
	/* Required arguments are there. False with err: ERR_INVALID, ERR_NOT_FOUND for its
	 * arguments. */
	bool (*get)(struct prompt_call *call, struct err *err);
	/* Values for an argument that begin with value: strings pushed to values, at most
	 * COMPLETE_MAX; NULL: nothing is completed. */
	bool (*complete)(void *app, const char *principal, const char *argument, const char *value,
			 struct json_object *values, bool *more, struct err *err);
};

struct prompt_list {
	const struct prompt *const *prompts; /* in the order of prompts/list */
	size_t count;
};

/* All prompts of the product. */
extern const struct prompt_list promptset;

#endif
