/*
 * What must not reach a log: the values that the masks of command output are made of.
 */
#ifndef SPOOLBOX_BOX_SECRETS_H
#define SPOOLBOX_BOX_SECRETS_H

#include "box/app.h"
#include "run/mask.h"
#include "store/row_sandbox.h"

/* A new mask of
 *   - the values of variables whose names contain KEY, TOKEN, SECRET or PASSWORD in any case: of
 *     the sandbox's env and of call_env (object of strings or NULL), which does not replace the
 *     sandbox's here, as files may hold that as well
 *   - the server's own secrets: the bearer token, the signing key, and what the files in keys/ hold
 * Values shorter than MASK_VALUE_MIN are left. NULL with err when one of them cannot be read: no
 * output is kept then. */
struct mask *secrets_mask(const struct app *app, const struct sandbox_row *sandbox,
			  struct json_object *call_env, struct err *err);

#endif
