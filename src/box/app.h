/*
 * What every verb needs: settings, database, spool, keys and the runtime driver. Opened once
 * per process; nothing in it changes afterwards but the session, which begins later, and what
 * python_pool.h notes.
 */
#ifndef SPOOLBOX_BOX_APP_H
#define SPOOLBOX_BOX_APP_H

#include "base/conf.h"
#include "base/id.h"
#include "run/runtime.h"
#include "store/db.h"
#include "store/sign.h"
#include "store/spool.h"

struct app {
	const struct conf *conf; /* borrowed */
	struct spool spool;
	struct db *db;
	struct sign_key link_key;
	/* For what clients keep for us: keys/state, and keys/state.old when there is one. */
	struct sign_key state_keys[2];
	size_t state_key_count;
	char *fonts_path; /* of python_fonts.h */
	char *token; /* SMCP_TOKEN or keys/token; NULL: none is set and every call is refused */
	const struct runtime *runtime;
	const char *session_id; /* the stdio session that this process serves; NULL: none */

	/* What python_pool_settle has to do. */
	bool python_used;             /* Python code was run, or a sandbox asked for */
	const char *python_principal; /* the last was by this one; as of app_authenticate */
	struct app_released {
		char id[ID_LEN + 1]; /* "": none */
		bool keep_files;
	} python_released;
};

/* On failure nothing stays open. */
bool app_open(struct app *app, const struct conf *conf, struct err *err) MUST_USE;
void app_close(struct app *app);
/* The database alone, for who closed it in between: it may have been lost or swapped since. */
bool app_open_db(struct app *app, struct err *err) MUST_USE;

/* Checks an Authorization header value (NULL: none) in constant time. On success *principal is
 * the label of the token, a static string. ERR_UNAUTHENTICATED otherwise; the message says what
 * is missing and never shows any part of a token. */
bool app_authenticate(const struct app *app, const char *authorization, const char **principal,
		      struct err *err) MUST_USE;

/* The principal of whoever may start programs as the service user: the same as the token's. */
const char *app_owner(void);

/* The token in keys/token, made there when missing. For `spoolbox serve` and `spoolbox token`. */
bool app_make_token(const struct app *app, struct buf *token, struct err *err) MUST_USE;

#endif
