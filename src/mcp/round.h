/*
 * What a call needs from its client before it can go on: input from a person, a sample of its
 * model, its roots. A handler is written as if every answer were there; when one is missing it
 * returns, and is called again from its start until nothing is missing. In the modern era the
 * client repeats its request (multi round-trip requests), in the handshake era the core asks over
 * the open stream (peer.h); the handler sees no difference.
 *
 * Nothing is stored on the server in between: what a handler wants to remember goes to the client
 * sealed, bound to the principal, the method and its arguments, and for ROUND_STATE_MS.
 */
#ifndef SPOOLBOX_MCP_ROUND_H
#define SPOOLBOX_MCP_ROUND_H

#include <stdbool.h>

#include "base/json.h"
#include "base/util.h"
#include "mcp/rpc.h"
#include "store/sign.h"

#define ROUND_STATE_MS 600000 /* ten minutes: a person reads and decides */

enum round_kind { ROUND_ELICIT = 1, ROUND_SAMPLE = 2, ROUND_ROOTS = 4 };

struct round {
	unsigned can_ask;            /* kinds that the client of this request declares */
	struct json_object *answers; /* key -> result; NULL: none. Owned */
	struct json_object *kept;    /* what the handler kept in the round before; NULL. Owned */
	/* Answers that the handler has made use of: they go along, so that a client is asked for
	 * each only once. NULL: none. Owned. */
	struct json_object *used;
	/* Left by the handler. Owned. */
	struct json_object *requests; /* key -> {method, params}; NULL: none */
	struct json_object *keep;     /* for the next round; NULL: nothing */
	unsigned missing; /* kinds it cannot do without, which the client does not declare */
};

enum round_answer {
	ROUND_NONE = 0,
	ROUND_CANNOT,   /* the client does not declare it; nothing was asked */
	ROUND_ASKED,    /* not answered yet: leave the handler with success and no result */
	ROUND_ACCEPTED, /* *answer is set, borrowed */
	ROUND_DECLINED, /* by the person, or the dialog was closed */
};

/* Asks a person to fill in a form. schema: JSON text of a flat object schema; what comes back is
 * checked against it, and asked again when it does not fit. *answer: the form's content. */
enum round_answer round_elicit(struct round *round, const char *key, const char *message,
			       const char *schema, struct json_object **answer);
/* Asks for a completion by the client's model. params are taken. *answer: the whole result. */
enum round_answer round_sample(struct round *round, const char *key, struct json_object *params,
			       struct json_object **answer);
/* *answer: the array of roots. */
enum round_answer round_roots(struct round *round, const char *key, struct json_object **answer);

/* Says that the call cannot do without a kind: it is answered as an error that names the
 * capability. Returns whether the client declares it. */
bool round_require(struct round *round, enum round_kind kind);

/* --- for the core -------------------------------------------------------------------------- */

/* What a requestState is bound to, and what opens it. The second key is the one before a rotation.
 */
struct round_binding {
	const struct sign_key *keys;
	size_t key_count;
	const char *principal;
	const char *method;
	struct json_object *params; /* name, uri and arguments in it count */
};

#define ROUND_ALL (ROUND_ELICIT | ROUND_SAMPLE | ROUND_ROOTS)

/* Reads clientCapabilities, inputResponses and requestState out of the params of a modern request.
 * False with -32602: ill-typed, or a state that is altered, expired or of another call. */
bool round_read(struct round *round, const struct round_binding *binding,
		struct rpc_error *error) MUST_USE;
/* Whether the handler left something to ask. */
bool round_is_open(const struct round *round);
/* Adds inputRequests, and requestState where there is something to remember, to a result. */
void round_write(const struct round *round, const struct round_binding *binding,
		 struct json_object *result);
/* Fills an error with -32021 and what is missing; false. */
bool round_refuse(const struct round *round, struct rpc_error *error);
/* An answer (taken) that came by another way than the params of a request. */
void round_add_answer(struct round *round, const char *key, struct json_object *answer);
/* The client does not offer to answer after all: the kind of the request under key. */
void round_cannot(struct round *round, const char *key);
/* Makes it ready for the next run of the handler: what it kept is there, what it asked is gone. */
void round_again(struct round *round);
void round_finish(struct round *round);

#endif
