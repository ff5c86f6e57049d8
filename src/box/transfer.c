/*
 * Links and transfers. The end of a body proves nothing, since several web servers show a cut
 * upload as a clean end: a body counts when it has the length or the digest that was announced.
 * Bytes go through one buffer, whatever the size of the file.
 */
#include "box/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#define PIECE      (64 * 1024)
#define ROOM_EVERY (16 * 1024 * 1024) /* bytes between two looks at the free space */

/* --- links ------------------------------------------------------------------------------- */

bool transfer_make_link(struct app *app, const struct sandbox_row *sandbox, enum link_op op,
			const char *path, int64_t size, int64_t ttl_s, struct transfer_link *link,
			struct err *err)
{
	if (size > app->conf->max_upload) {
		err_set(err, ERR_TOO_LARGE,
			"size %" PRId64 " is over this server's limit of %" PRId64 " bytes", size,
			app->conf->max_upload);
		return err_hint(err, "Split the file, or pack it smaller.");
	}
	int64_t now = clock_wall_ms();
	struct link_row row = {
		.principal = sandbox->principal,
		.op = op,
		.path = (char *)path, /* only read */
		.max_bytes = app->conf->max_upload,
		.size = size,
		.created_at = now,
		.expires_at = now + (ttl_s > 0 ? ttl_s : app->conf->url_ttl) * 1000,
	};
	id_make(row.id);
	memcpy(row.sandbox_id, sandbox->id, sizeof(row.sandbox_id));
	int inserted = row_link_insert(app->db, &row, err);
	if (inserted != 1)
		return inserted == 0 ? sandbox_gone(sandbox, err) : false;

	char token[SIGN_TOKEN_LEN + 1];
	sign_link(&app->link_key, row.id, row.expires_at, token);
	link->url = xasprintf("%s/files/%s/%s", app->conf->public_url,
			      op == LINK_PUT ? "put" : "get", token);
	link->expires_at = row.expires_at;
	return true;
}

static bool link_used(struct err *err)
{
	err_set(err, ERR_GONE,
		"this link has been used; each link works for one completed transfer");
	return err_hint(err, "Make a new link with upload_file or download_file.");
}

bool transfer_open_link(struct app *app, const char *token, enum link_op op, struct link_row *link,
			struct sandbox_row *sandbox, struct err *err)
{
	char id[ID_LEN + 1];
	if (!sign_check(&app->link_key, token, clock_wall_ms(), id, err))
		return false;
	int found = row_link_get(app->db, id, link, err);
	if (found < 0)
		return false;
	if (found == 0) {
		err_set(err, ERR_NOT_FOUND, "this link is not known here");
		return err_hint(err, "Make a new link with upload_file or download_file.");
	}
	if (link->op != op) {
		err_set(err, ERR_INVALID, "this link is for an %s, not for %s",
			link->op == LINK_PUT ? "upload" : "download",
			op == LINK_PUT ? "an upload" : "a download");
		return err_hint(err, "Use the URL exactly as it was given.");
	}
	if (link->used)
		return link_used(err);
	if (sandbox_find(app, link->principal, link->sandbox_id, sandbox, err))
		return true;
	if (err->code != ERR_NOT_FOUND)
		return false;
	err_set(err, ERR_GONE, "the sandbox of this link was removed, and its files with it");
	return err_hint(err, "Ask the assistant that gave you the link to make the file again.");
}

/* Spends a link; NULL has nothing to spend. */
static bool claim(struct app *app, const struct link_row *link, int64_t now, struct err *err)
{
	if (link == NULL)
		return true;
	int claimed = row_link_claim(app->db, link->id, now, err);
	if (claimed == 0) {
		err_set(err, ERR_GONE,
			"another transfer used this link first, or its sandbox was removed");
		return err_hint(err, "Make a new link with upload_file or download_file.");
	}
	return claimed > 0;
}

/* Best effort: a link that stays spent costs its user a new one, nothing else. */
static void unclaim(struct app *app, const struct link_row *link, int64_t claimed_at)
{
	struct err err = ERR_INIT;
	if (link != NULL && row_link_unclaim(app->db, link->id, claimed_at, &err) < 0)
		log_err(LOG_WARN, "link_unclaim", &err);
}

/* --- upload ------------------------------------------------------------------------------ */

static bool wrong_size(struct err *err, const char *what, int64_t got, int64_t expected)
{
	err_set(err, ERR_INVALID,
		"the body %s: %" PRId64 " bytes came of %" PRId64 " announced; nothing was stored",
		what, got, expected);
	return err_hint(err, "Send the whole file again to the same URL.");
}

static bool over_limit(const struct transfer_body *body, int64_t size, struct err *err)
{
	err_set(err, ERR_TOO_LARGE,
		"%" PRId64 " bytes are over the limit of %" PRId64 "; nothing was stored", size,
		body->max_bytes);
	return err_hint(err, "Split the file, or pack it smaller.");
}

/* The size that the body must have, -1 when only its digest tells. */
static int64_t expected_size(const struct transfer_body *body)
{
	return body->length >= 0 ? body->length : body->promised;
}

/* Nothing but Content-Length: 0 speaks for the body. Apache's mod_fcgid shows a body over its
 * limits just so, and believing it would replace a file by nothing. */
static bool is_doubtful(const struct transfer_body *body)
{
	return body->length == 0 && body->promised < 0 && !body->has_sha256;
}

bool transfer_check(const struct transfer_body *body, struct err *err)
{
	int64_t expected = expected_size(body);
	if (expected < 0 && !body->has_sha256) {
		err_set(err, ERR_LENGTH,
			"nothing tells the size of the body, so a cut one could "
			"not be told from a whole one");
		return err_hint(err, "Send Content-Length (curl -T FILE does), or Repr-Digest with "
				     "the SHA-256, or make the link with a size.");
	}
	if (is_doubtful(body)) {
		err_set(err, ERR_LENGTH,
			"the body is empty, which is also what some web servers make "
			"of one that is over their own limit; nothing was stored");
		return err_hint(err,
				"If the file is not empty, the server's operator should raise the "
				"web server's limit. An empty file is made with write_text.");
	}
	if (expected > body->max_bytes)
		return over_limit(body, expected, err);
	if (body->length >= 0 && body->promised >= 0 && body->length != body->promised) {
		err_set(err, ERR_INVALID,
			"Content-Length is %" PRId64 " and the link was made for %" PRId64 " bytes",
			body->length, body->promised);
		return err_hint(err, "Send that very file, or make a new link.");
	}
	return true;
}

struct receiver {
	struct app *app;
	struct sandbox_use *use;
	const struct transfer_body *body;
	int64_t expected; /* -1: unknown */
	int64_t bytes;
	crypto_hash_sha256_state hash;
};

/* Counts and stores one piece. */
static bool take_piece(struct receiver *rx, int fd, const char *data, size_t len, struct err *err)
{
	int64_t before = rx->bytes;
	rx->bytes += (int64_t)len;
	if (rx->expected >= 0 && rx->bytes > rx->expected)
		return wrong_size(err, "is too long", rx->bytes, rx->expected);
	if (rx->bytes > rx->body->max_bytes)
		return over_limit(rx->body, rx->bytes, err);
	/* Others fill the disk too, so the look at the start does not hold for ever. */
	if (before / ROOM_EVERY != rx->bytes / ROOM_EVERY &&
	    !files_check_room(rx->app, rx->use, (int64_t)len, err))
		return false;
	crypto_hash_sha256_update(&rx->hash, (const unsigned char *)data, len);
	return fs_write_all(fd, data, len, err);
}

static bool take_body(struct receiver *rx, int fd, struct err *err)
{
	AUTO_FREE char *piece = xmalloc(PIECE);
	for (;;) {
		ssize_t n = rx->body->read(rx->body->ctx, piece, PIECE);
		if (n < 0 && rx->expected >= 0)
			return wrong_size(err, "broke off", rx->bytes, rx->expected);
		if (n < 0) {
			err_set(err, ERR_INVALID,
				"the body broke off after %" PRId64 " bytes; nothing was stored",
				rx->bytes);
			return err_hint(err, "Send the whole file again to the same URL.");
		}
		if (n == 0)
			break;
		if (!take_piece(rx, fd, piece, (size_t)n, err))
			return false;
	}
	if (rx->expected >= 0 && rx->bytes < rx->expected)
		return wrong_size(err, "ended early", rx->bytes, rx->expected);
	return true;
}

static bool check_digest(struct receiver *rx, char hex[static 65], struct err *err)
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_final(&rx->hash, digest);
	sodium_bin2hex(hex, 65, digest, sizeof(digest));
	if (!rx->body->has_sha256 || memcmp(digest, rx->body->sha256, sizeof(digest)) == 0)
		return true;
	err_set(err, ERR_INVALID,
		"the SHA-256 of the %" PRId64 " bytes that came is %s, not the announced one; "
		"nothing was stored",
		rx->bytes, hex);
	return err_hint(err, "Send the whole file again to the same URL.");
}

/* The link is spent at the last moment at which publication can still be refused: of two
 * uploads at once one publishes, and a failed one leaves the link usable. */
static bool claim_and_publish(struct app *app, const struct link_row *link,
			      struct files_draft *draft, const char *path, struct err *err)
{
	int64_t now = clock_wall_ms();
	if (!files_draft_sync(draft, err) || !claim(app, link, now, err))
		return false;
	if (files_draft_publish(draft, path, err))
		return true;
	unclaim(app, link, now);
	return false;
}

bool transfer_receive(struct app *app, struct sandbox_use *use, const struct link_row *link,
		      const char *path, struct transfer_body *body, struct transfer_done *done,
		      struct err *err)
{
	struct receiver rx = {
		.app = app, .use = use, .body = body, .expected = expected_size(body)};
	if (!transfer_check(body, err) || !files_can_write(use, path, err) ||
	    !files_check_room(app, use, rx.expected > 0 ? rx.expected : 0, err))
		return false;
	AUTO_FILES_DRAFT draft = FILES_DRAFT_INIT;
	if (!files_draft_open(use, &draft, err))
		return false;
	crypto_hash_sha256_init(&rx.hash);
	if (!take_body(&rx, draft.fd, err) || !check_digest(&rx, done->sha256, err) ||
	    !claim_and_publish(app, link, &draft, path, err))
		return false;
	done->bytes = rx.bytes;
	return true;
}

/* --- download ---------------------------------------------------------------------------- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_unchanged(int fd, const struct stat *st)
{
	struct stat now;
	return fstat(fd, &now) == 0 && now.st_size == st->st_size &&
	       same_time(&now.st_mtim, &st->st_mtim) && same_time(&now.st_ctim, &st->st_ctim);
}

/* Reads exactly len bytes at an offset; false when the file is shorter now. */
static bool read_piece(int fd, int64_t offset, char *piece, size_t len, struct err *err)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = pread(fd, piece + got, len - got, offset + (int64_t)got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read file to send");
		if (n == 0)
			return err_set(err, ERR_CONFLICT,
				       "the file became shorter while it was sent");
		got += (size_t)n;
	}
	return true;
}

bool transfer_send(struct app *app, const struct link_row *link, int fd, const struct stat *st,
		   int64_t offset, int64_t length, const struct transfer_sink *sink,
		   struct err *err)
{
	AUTO_FREE char *piece = xmalloc(PIECE);
	if (offset + length < st->st_size)
		link = NULL; /* a part without the end leaves the link alone */
	int64_t end = offset + length;
	for (bool begun = false, last = false; !last; begun = true) {
		last = end - offset <= PIECE;
		size_t len = last ? (size_t)(end - offset) : PIECE;
		if (!read_piece(fd, offset, piece, len, err))
			return false;
		/* Looked at after the read and before the write: bytes of a changed file never
		 * complete a response. */
		if (!is_unchanged(fd, st))
			return err_set(err, ERR_CONFLICT, "the file was changed while it was sent");
		int64_t now = clock_wall_ms();
		if (last && !claim(app, link, now, err))
			return false;
		if ((!begun && !sink->begin(sink->ctx)) ||
		    (len > 0 && !sink->write(sink->ctx, piece, len))) {
			if (last)
				unclaim(app, link, now);
			return err_set(err, ERR_LOST, "the client went away");
		}
		offset += (int64_t)len;
	}
	return true;
}
