/*
 * Links and the two ends of a transfer, without HTTP. A link is bound to the incarnation of
 * its sandbox and is spent by the transfer that completes: by compare-and-set, so of two at
 * once only one can.
 */
#ifndef SPOOLBOX_BOX_TRANSFER_H
#define SPOOLBOX_BOX_TRANSFER_H

#include "box/files.h"
#include "box/sandbox.h"
#include "store/row_link.h"

struct transfer_link {
	char *url; /* the caller frees it */
	int64_t expires_at;
};
/* size: promised size of a PUT, -1 for none. ttl_s 0: SMCP_URL_TTL. ERR_DESTROYED when the sandbox
 * was destroyed meanwhile. */
bool transfer_make_link(struct app *app, const struct sandbox_row *sandbox, enum link_op op,
			const char *path, int64_t size, int64_t ttl_s, struct transfer_link *link,
			struct err *err) MUST_USE;

/* The link of a URL token and its live sandbox. ERR_DENIED (bad signature), ERR_GONE (expired,
 * used, sandbox removed), ERR_NOT_FOUND. op must match. */
bool transfer_open_link(struct app *app, const char *token, enum link_op op, struct link_row *link,
			struct sandbox_row *sandbox, struct err *err) MUST_USE;

/* Reads up to len bytes of a body: >0, 0 at its end, -1 when the client or server broke off. */
typedef ssize_t transfer_read(void *ctx, void *data, size_t len);

struct transfer_body {
	transfer_read *read;
	void *ctx;
	int64_t length;   /* announced length; -1 unknown */
	int64_t promised; /* size promised by the link; -1 none */
	int64_t max_bytes;
	bool has_sha256;
	unsigned char sha256[32]; /* expected digest when has_sha256 */
};
struct transfer_done {
	int64_t bytes;
	char sha256[65]; /* hex of what was stored */
};
/* Refuses what needs no look at body or sandbox: a body of unknown size, one over the limit, or
 * one of another length than promised. transfer_receive checks it too. */
bool transfer_check(const struct transfer_body *body, struct err *err) MUST_USE;
/* Receives a body into path and publishes it. link may be NULL (push with a bearer token);
 * otherwise it is spent. ERR_LENGTH when nothing tells the size (no length, promise or digest);
 * a body that ends early or late, or has another digest, leaves nothing behind and the link
 * usable. */
bool transfer_receive(struct app *app, struct sandbox_use *use, const struct link_row *link,
		      const char *path, struct transfer_body *body, struct transfer_done *done,
		      struct err *err) MUST_USE;

/* Where a file is sent. begin is called once, before the first byte; both return false when the
 * client has gone. */
struct transfer_sink {
	bool (*begin)(void *ctx);
	bool (*write)(void *ctx, const void *data, size_t len);
	void *ctx;
};
/* Sends length bytes from offset of a file that files_open returned with st. A link (NULL: pull
 * with a bearer token) is spent by a transfer that includes the last byte of the file: claimed
 * when only the last piece is left to be written, given back when that write fails. A file that
 * changed while it was sent is ERR_CONFLICT, a client that has gone ERR_LOST; a failure before
 * begin was called can still be answered, after it the response must be cut short. */
bool transfer_send(struct app *app, const struct link_row *link, int fd, const struct stat *st,
		   int64_t offset, int64_t length, const struct transfer_sink *sink,
		   struct err *err) MUST_USE;

#endif
