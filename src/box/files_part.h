/* Paths in a workspace as they are looked up and shown. Private to files*.c. */
#ifndef SPOOLBOX_BOX_FILES_PART_H
#define SPOOLBOX_BOX_FILES_PART_H

#include "box/files.h"

#define FILES_SHOWN_MAX 160 /* bytes of a path in a message */

/* A path as the sandbox sees it, by value so that it can stand in an argument list. */
struct files_shown {
	char text[FILES_SHOWN_MAX * 2];
};
struct files_shown files_show(const char *path);

/* Whether a name is there, links not followed at its end. */
bool files_is_there(const struct sandbox_use *use, const char *path);
/* Appends the spelling under which path exists. Archives made on Chinese Windows leave names in
 * GB18030, which listings show decoded; so a component that is not there in UTF-8 is looked up
 * in GB18030. This only chooses among spellings: whoever uses the result opens it beneath the
 * root like any other path. */
void files_spell(const struct sandbox_use *use, const char *path, struct buf *out);

/* "a directory" and the like. */
const char *files_kind(mode_t mode);
/* Turns errno of an open beneath the workspace into what the caller may know. Always false. */
bool files_fail(const struct sandbox_use *use, const char *path, struct err *err);
/* The same for a path that is to be written. */
bool files_fail_write(const struct sandbox_use *use, const char *path, struct err *err);
/* What is there is nothing that a file may replace. Always false. */
bool files_not_writable(const char *path, mode_t mode, struct err *err);

#endif
