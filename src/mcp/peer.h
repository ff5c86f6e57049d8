/*
 * Requests of the server in the handshake era: they go out on the stream of the call that needs
 * them, and the answer is posted by the client in a request of its own, most likely to another
 * worker. Whoever offers this keeps a mailbox that all workers see. NULL in an endpoint: posted
 * answers are accepted and dropped, and nothing is asked in the handshake era.
 */
#ifndef SPOOLBOX_MCP_PEER_H
#define SPOOLBOX_MCP_PEER_H

#include "base/buf.h"
#include "base/err.h"

struct peer {
	/* A posted response: its id is one that we made (a string), text the whole message. Unknown
	 * ids are dropped with success. */
	bool (*post)(void *app, const char *principal, const char *id, const char *text, size_t len,
		     struct err *err);
	/* Makes room for an answer before its request goes out. */
	bool (*open)(void *app, const char *principal, const char *id, struct err *err);
	/* Takes the answer out of the mailbox: 1, 0 not there yet, -1 with err. */
	int (*take)(void *app, const char *principal, const char *id, struct buf *text,
		    struct err *err);
	void (*close)(void *app, const char *id);
};

#define PEER_POLL_MS 50
#define PEER_WAIT_MS 60000 /* a person answers; then the call fails */

#endif
