/* What is on disk beside what the database knows of. Private to reap_orphan*.c. */
#ifndef SPOOLBOX_BOX_REAP_CENSUS_H
#define SPOOLBOX_BOX_REAP_CENSUS_H

#include "base/buf.h"
#include "box/reap_rule.h"
#include "store/row_census.h"

/* Ids in their order, each with its NUL. */
struct id_list {
	struct buf ids;
};
size_t id_list_count(const struct id_list *list);
const char *id_list_at(const struct id_list *list, size_t i);
bool id_list_has(const struct id_list *list, const char *id);
void id_list_add(struct id_list *list, const char *id);
void id_list_sort(struct id_list *list);
/* Adds, in their order, the entries of a directory that are prefix and an id. */
bool id_list_read(struct id_list *list, int dirfd, const char *prefix, struct err *err) MUST_USE;
void id_list_finish(struct id_list *list);
#define AUTO_ID_LIST __attribute__((cleanup(id_list_finish))) struct id_list

struct census {
	struct id_list runs;  /* run/<id> */
	struct id_list files; /* data/<id> */
	struct census_sandbox *rows;
	size_t row_count;
	struct id_list row_ids, row_files; /* of rows: their ids, their files_ids */
};
void census_finish(struct census *census);
#define AUTO_CENSUS __attribute__((cleanup(census_finish))) struct census

/* Fills a zeroed census. Directories are read before the rows: of a sandbox that is being made or
 * removed meanwhile, the row is what is seen last. A failure is counted under name. */
bool census_take(struct reap *reap, const char *name, struct census *census) MUST_USE;

#endif
