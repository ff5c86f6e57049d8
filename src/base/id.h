/* Handles: random ids, and the grammar of sandbox names. */
#ifndef SPOOLBOX_BASE_ID_H
#define SPOOLBOX_BASE_ID_H

#include <stdbool.h>

#define ID_BYTES 16 /* 128 random bits */
#define ID_LEN   32 /* as lower-case hex */

/* A new random id, NUL-terminated. */
void id_make(char out[static ID_LEN + 1]);

/* Exactly 32 lower-case hex digits. */
bool id_is_valid(const char *s);

#define NAME_MAX_LEN 63 /* [A-Za-z0-9][A-Za-z0-9_-]{0,62}, as in seed 002 */

bool name_is_valid(const char *s);

/* A pronounceable new name such as "calm-otter-4f2a". */
#define NAME_MADE_LEN 32
void name_make(char out[static NAME_MADE_LEN]);

#endif
