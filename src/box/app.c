/*
 * Opens what every verb needs, in the order in which one depends on the other, and knows who a
 * caller is.
 */
#include "box/app.h"

#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "store/identity.h"

#define TOKEN_FILE       "token"
#define TOKEN_FILE_MAX   4096 /* longest token; conf_table.c allows as much for SMCP_TOKEN */
#define TOKEN_MADE_BYTES 32   /* 256 random bits */
#define LINK_KEY_FILE    "link"
#define STATE_KEY_FILE   "state"
#define STATE_KEY_OLD    "state.old" /* before a rotation; see doc/spool.md */
#define PRINCIPAL        "default"   /* one token, one principal */

/* Visible ASCII, as RFC 6750 allows and a header can carry. */
static bool is_token(const char *s)
{
	if (*s == '\0')
		return false;
	for (; *s != '\0'; s++) {
		if (*s <= ' ' || *s > '~')
			return false;
	}
	return true;
}

/* Reads keys/token: one line, written by us or by the operator. 1, 0 when there is none, -1. */
static int read_token(const struct app *app, struct buf *token, struct err *err)
{
	size_t start = token->len;
	int rc = sign_read_secret(app->spool.keys_fd, TOKEN_FILE, TOKEN_FILE_MAX, token, err);
	if (rc != 1)
		return rc;
	while (token->len > start && strchr("\r\n", token->data[token->len - 1]) != NULL)
		token->data[--token->len] = '\0';
	if (strlen(buf_str(token) + start) == token->len - start &&
	    is_token(buf_str(token) + start))
		return 1;
	err_set(err, ERR_UNAVAILABLE, "keys/%s in the spool is not one line of visible ASCII",
		TOKEN_FILE);
	err_hint(err, "Remove the file and run 'spoolbox token' to make a new one.");
	return -1;
}

static void wipe_buf(struct buf *buf)
{
	if (buf->data != NULL)
		sodium_memzero(buf->data, buf->cap);
	buf_finish(buf);
}

bool app_make_token(const struct app *app, struct buf *token, struct err *err)
{
	int rc = read_token(app, token, err);
	if (rc != 0)
		return rc == 1;
	unsigned char bytes[TOKEN_MADE_BYTES];
	char text[sodium_base64_ENCODED_LEN(TOKEN_MADE_BYTES,
					    sodium_base64_VARIANT_URLSAFE_NO_PADDING) +
		  1];
	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2base64(text, sizeof(text), bytes, sizeof(bytes),
			  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	size_t len = strlen(text);
	text[len++] = '\n';
	bool ok = sign_publish_secret(app->spool.keys_fd, TOKEN_FILE, text, len, err);
	sodium_memzero(bytes, sizeof(bytes));
	sodium_memzero(text, sizeof(text));
	if (!ok)
		return false;
	/* Read back: somebody else may have made it first. */
	rc = read_token(app, token, err);
	return rc == 1 || (rc == 0 && err_set(err, ERR_BUSY,
					      "keys/%s was removed while it was made", TOKEN_FILE));
}

static bool load_token(struct app *app, struct err *err)
{
	if (app->conf->token != NULL) {
		app->token = xstrdup(app->conf->token);
		return true;
	}
	struct buf token = BUF_INIT;
	int rc = read_token(app, &token, err);
	if (rc == 1)
		app->token = xstrdup(buf_str(&token));
	wipe_buf(&token);
	return rc >= 0;
}

static bool load_link_key(struct app *app, struct err *err)
{
	if (app->conf->signing_key == NULL)
		return sign_key_from_file(&app->link_key, app->spool.keys_fd, LINK_KEY_FILE, err);
	sign_key_from_text(&app->link_key, app->conf->signing_key);
	return true;
}

/* The key before a rotation: 1, 0 when there is none, -1. One that is no key is an operator's
 * mistake, and passing over it would look like states that expire at random. */
static int load_old_state_key(struct app *app, struct sign_key *key, struct err *err)
{
	struct buf text = BUF_INIT;
	int rc = sign_read_secret(app->spool.keys_fd, STATE_KEY_OLD, SIGN_KEY_BYTES, &text, err);
	bool is_key = text.len == sizeof(key->bytes);
	if (rc == 1 && is_key)
		memcpy(key->bytes, text.data, sizeof(key->bytes));
	wipe_buf(&text);
	if ((rc != 1 || is_key) && (rc != -1 || err->code != ERR_TOO_LARGE))
		return rc;
	err_set(err, ERR_UNAVAILABLE, "keys/%s in the spool does not hold exactly %d bytes",
		STATE_KEY_OLD, SIGN_KEY_BYTES);
	err_hint(err, "Remove the file and start again; only what clients keep from before the "
		      "rotation is lost.");
	return -1;
}

static bool load_state_keys(struct app *app, struct err *err)
{
	if (!sign_key_from_file(&app->state_keys[0], app->spool.keys_fd, STATE_KEY_FILE, err))
		return false;
	int rc = load_old_state_key(app, &app->state_keys[1], err);
	app->state_key_count = rc == 1 ? 2 : 1;
	return rc >= 0;
}

static bool pick_runtime(struct app *app, struct err *err)
{
	app->runtime = runtime_find(app->conf->runtime);
	if (app->runtime != NULL)
		return true;
	AUTO_BUF names = BUF_INIT;
	runtime_names(&names);
	err_set(err, ERR_INVALID, "SMCP_RUNTIME is \"%s\"; this program has: %s",
		app->conf->runtime, buf_str(&names));
	return err_hint(err, "Set SMCP_RUNTIME to one of these names, then start again.");
}

bool app_open_db(struct app *app, struct err *err)
{
	int rc = identity_is_known(&app->spool, err);
	if (rc < 0)
		return false;
	app->db = rc == 1 ? db_open_known(app->conf->state_db, err)
			  : db_open(app->conf->state_db, err);
	if (app->db != NULL && identity_check(&app->spool, app->db, err))
		return true;
	db_close(app->db);
	app->db = NULL;
	return false;
}

bool app_open(struct app *app, const struct conf *conf, struct err *err)
{
	*app = (struct app){.conf = conf, .spool = SPOOL_INIT};
	app->fonts_path = xasprintf("%s/" SPOOL_FONTS_NAME, conf->spool);
	if (sodium_init() < 0)
		return err_set(err, ERR_UNAVAILABLE, "libsodium found no source of random numbers");
	if (pick_runtime(app, err) && spool_open(&app->spool, conf, err) && load_token(app, err) &&
	    load_link_key(app, err) && load_state_keys(app, err) && app_open_db(app, err))
		return true;
	app_close(app);
	return false;
}

void app_close(struct app *app)
{
	db_close(app->db);
	spool_close(&app->spool);
	if (app->token != NULL)
		sodium_memzero(app->token, strlen(app->token));
	free(app->token);
	free(app->fonts_path);
	sodium_memzero(&app->link_key, sizeof(app->link_key));
	sodium_memzero(app->state_keys, sizeof(app->state_keys));
	*app = (struct app){.spool = SPOOL_INIT};
}

/* The token of "Bearer TOKEN", or NULL: the scheme in any case, then exactly one word. */
static const char *bearer(const char *authorization)
{
	static const char scheme[] = "bearer";
	size_t len = sizeof(scheme) - 1;
	if (strncasecmp(authorization, scheme, len) != 0 || authorization[len] != ' ')
		return NULL;
	const char *token = authorization + len + strspn(authorization + len, " ");
	return is_token(token) ? token : NULL;
}

const char *app_owner(void)
{
	return PRINCIPAL;
}

bool app_authenticate(const struct app *app, const char *authorization, const char **principal,
		      struct err *err)
{
	if (app->token == NULL) {
		err_set(err, ERR_UNAUTHENTICATED,
			"this server has no token yet, so it refuses every call");
		return err_hint(err,
				"Its operator should set SMCP_TOKEN or run 'spoolbox token', then "
				"start the server again.");
	}
	if (authorization == NULL || *authorization == '\0')
		return err_set(err, ERR_UNAUTHENTICATED, "the Authorization header is missing");
	const char *token = bearer(authorization);
	if (token == NULL)
		return err_set(err, ERR_UNAUTHENTICATED,
			       "the Authorization header is not of the form 'Bearer TOKEN'");
	if (!sign_equal(token, app->token)) {
		err_set(err, ERR_UNAUTHENTICATED,
			"the token in the Authorization header is not the one "
			"of this server");
		return err_hint(
			err,
			"Use the token that SMCP_TOKEN or 'spoolbox token' on the server shows.");
	}
	*principal = PRINCIPAL;
	return true;
}
