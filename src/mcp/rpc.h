/*
 * JSON-RPC 2.0 messages as MCP narrows them: one object, ids are strings or integers and never
 * null, an id keeps its type, an error without a readable id has no id member.
 */
#ifndef SPOOLBOX_MCP_RPC_H
#define SPOOLBOX_MCP_RPC_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"

enum rpc_code {
	RPC_PARSE = -32700,
	RPC_REQUEST = -32600, /* not a valid message; also refusals below JSON-RPC: 403, 415 */
	RPC_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_RESOURCE = -32002,   /* resource not found, handshake revisions only */
	RPC_HEADER = -32020,     /* a mirrored header differs from the body */
	RPC_CAPABILITY = -32021, /* the client did not declare what is needed */
	RPC_VERSION = -32022,    /* revision not supported */
};

/* A JSON-RPC error that is to be answered, with its HTTP status. */
struct rpc_error {
	int status;
	int code; /* 0: none */
	char message[512];
	struct json_object *data; /* owned; NULL: none */
};
#define RPC_ERROR_INIT \
	{ \
		0, 0, "", NULL \
	}
#define AUTO_RPC_ERROR __attribute__((cleanup(rpc_error_finish))) struct rpc_error

void rpc_error_finish(struct rpc_error *error);

/* Fills an error; always returns false. The two usual statuses have names of their own: in band
 * is HTTP 200, refused is HTTP 400. */
bool rpc_fail(struct rpc_error *error, int status, int code, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
#define rpc_in_band(error, code, ...) rpc_fail(error, 200, code, __VA_ARGS__)
#define rpc_refuse(error, code, ...)  rpc_fail(error, 400, code, __VA_ARGS__)

enum rpc_kind { RPC_KIND_REQUEST, RPC_KIND_NOTIFICATION, RPC_KIND_RESPONSE };

/* Everything is borrowed from the parsed text. */
struct rpc_message {
	enum rpc_kind kind;
	struct json_object *id;     /* NULL: none, or not readable */
	const char *method;         /* NULL in a response */
	struct json_object *params; /* of any type; NULL: absent or null */
};

/* Checks the shape of one message. On failure message->id is still set when it was readable, so
 * that the error can carry it. */
bool rpc_read(struct json_object *value, struct rpc_message *message,
	      struct rpc_error *error) MUST_USE;

/* Appends a whole message. result is the serialized object. */
void rpc_write_result(struct buf *out, struct json_object *id, const char *result, size_t len);
/* The same of an object, which is freed (json_drain): results may be large. */
void rpc_drain_result(struct buf *out, struct json_object *id, struct json_object *result);
void rpc_write_error(struct buf *out, struct json_object *id, const struct rpc_error *error);

/* A string without NULs inside, or NULL: for names that are compared as C strings. */
const char *rpc_name(struct json_object *value);

#endif
